//! Past decisions decided again by another policy set: what would have changed?

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::policies::Policies;
use crate::model::{
    AgentId, AgentState, AgentTraits, Capability, Constraints, Decision, DenialClass, Error, Intent, ProofId,
    RiskLevel, Timestamp, TrustSnapshot,
};
use crate::policy::{PolicyRequest, PolicySet, PolicyVerdict};
use crate::proof::{Evidence, Kept, PastRange};

/// Which past decisions to replay: all, unless narrowed.
///
/// ```
/// use rulekeep::preview::ReplayRange;
///
/// let range = ReplayRange::all().of_agent("support-1".parse()?);
/// # Ok::<(), rulekeep::intent::InvalidValue>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ReplayRange(PastRange);

impl ReplayRange {
    /// Every decision in the log.
    pub fn all() -> Self {
        Self::default()
    }

    /// Of one agent only.
    #[must_use]
    pub fn of_agent(mut self, agent: AgentId) -> Self {
        self.0.entity = Some(agent);
        self
    }

    /// Only from this moment on, inclusive.
    #[must_use]
    pub fn from(mut self, from: impl Into<Timestamp>) -> Self {
        self.0.from = Some(from.into());
        self
    }

    /// Only up to this moment, inclusive.
    #[must_use]
    pub fn to(mut self, to: impl Into<Timestamp>) -> Self {
        self.0.to = Some(to.into());
        self
    }
}

/// What a policy set would have decided otherwise.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Replay {
    /// Decisions that were replayed.
    pub records: u64,
    /// How many of them come out otherwise whatever the counters of limits say, listed or not.
    pub changed: u64,
    /// Number of decisions that depend on counters, which are not replayed: a limit of the candidate set has a part in the
    /// new decision, or a limit that was used up in the old one.
    #[serde(rename = "hanging")]
    pub counter_dependent: u64,
    /// What changed: what loosens most first (DENY to ALLOW), then the older; at most [`Replay::MOST_CHANGES`].
    pub changes: Vec<ReplayChange>,
    /// Decisions that depend on counters and would differ with all counters at zero; ordered and bounded
    /// like `changes`.
    #[serde(rename = "hangingChanges")]
    pub counter_dependent_changes: Vec<ReplayChange>,
    /// For each rule that decided a change, before or now, the first eight of each, how many.
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::BTreeMap<String, u64>))]
    pub by_rule: BTreeMap<Arc<str>, u64>,
    /// Decisions that cannot be replayed, for their evidence is of another form.
    pub not_replayable: u64,
    /// Of the decisions replayed, those on an intent of which secrets are masked in the evidence: a condition that looks at
    /// these sees `***`.
    pub masked: u64,
    /// Of the decisions replayed, those that rest on what a person said: an answer to an escalation, or the approval of a
    /// class of actions. Where the candidate has a person decide too, the same answer is taken for given, and only
    /// what it would grant otherwise counts as changed.
    pub answered: u64,
    /// Decisions that no policies made, whatever set was in force, and that are not replayed: denials by a stop, and of an
    /// agent that was suspended or retired.
    pub barred: u64,
    /// Decisions that cannot be replayed, for their evidence was erased.
    pub erased: u64,
    /// Decisions on which a condition of the candidate set failed.
    pub failed: u64,
}

/// One decision that comes out otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReplayChange {
    /// The record.
    pub proof_id: ProofId,
    /// What was decided.
    pub was: Decision,
    /// What would be decided.
    pub now: Decision,
    /// The rules of the candidate set that decide.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<String>))]
    pub rules: Arc<[Arc<str>]>,
    /// The rules that decided then.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<String>))]
    pub was_rules: Vec<Arc<str>>,
    /// What differs: `decision`, `granted`, `constraints`.
    pub differs: Vec<&'static str>,
}

impl Replay {
    /// The most changes that are listed one by one.
    pub const MOST_CHANGES: usize = 10_000;

    fn note(&mut self, change: ReplayChange) {
        self.changed += 1;
        let gone = change.was_rules.iter().filter(|rule| !change.rules.contains(rule));
        for rule in change.rules.iter().chain(gone) {
            *self.by_rule.entry(Arc::clone(rule)).or_default() += 1;
        }
        add(&mut self.changes, change);
    }

    fn sort(&mut self) {
        sort(&mut self.changes);
        sort(&mut self.counter_dependent_changes);
    }
}

/// Keeps a list short while it grows.
fn add(changes: &mut Vec<ReplayChange>, change: ReplayChange) {
    changes.push(change);
    if changes.len() >= 2 * Replay::MOST_CHANGES {
        sort(changes);
    }
}

/// What loosens most comes first, then the older.
fn sort(changes: &mut Vec<ReplayChange>) {
    changes.sort_by_key(|change| {
        let loosens = freedom(change.now) - freedom(change.was);
        (std::cmp::Reverse(loosens), change.proof_id.sequence())
    });
    changes.truncate(Replay::MOST_CHANGES);
}

/// How much a decision lets through.
const fn freedom(decision: Decision) -> i8 {
    match decision {
        Decision::Deny => 0,
        Decision::Escalate => 1,
        Decision::Degrade => 2,
        Decision::Allow => 3,
    }
}

/// What evidence says of a decision.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Detail {
    granted_capabilities: Vec<String>,
    risk_level: RiskLevel,
    trust_snapshot: TrustSnapshot,
    #[serde(flatten)]
    traits: AgentTraits,
    agent_state: AgentState,
    /// There where a stop denied it.
    stop: Option<IgnoredAny>,
    /// Absent where it was recorded before conditions could look at the time.
    now: Option<Timestamp>,
    #[serde(default)]
    limits: Vec<PastLimit>,
    #[serde(default)]
    masked: u64,
    constraints: Constraints,
    #[serde(default)]
    rules: Vec<Arc<str>>,
    /// There where a person answered an escalation by this record.
    resolution: Option<IgnoredAny>,
    /// There where a person had agreed to its class beforehand.
    grant: Option<IgnoredAny>,
    /// There where it was decided under a task.
    task: Option<PastTask>,
    denial_class: Option<DenialClass>,
}

/// The task that a decision was made under.
#[derive(Deserialize)]
struct PastTask {
    /// What its mandate had against the call; absent where it is about the task itself.
    faults: Option<Vec<IgnoredAny>>,
}

impl Detail {
    /// Whether no policy had the last word: the agent was not to act, or a mandate decided.
    fn is_barred(&self) -> bool {
        let by_mandate = self.denial_class == Some(DenialClass::Mandate)
            || self.task.as_ref().is_some_and(|task| task.faults.as_ref().is_none_or(|faults| !faults.is_empty()));
        self.stop.is_some() || self.agent_state != AgentState::Active || by_mandate
    }

    /// Whether a person decided on it, or had agreed to its class beforehand.
    const fn is_by_person(&self) -> bool {
        self.resolution.is_some() || self.grant.is_some()
    }
}

/// What is held against a record: the verdict, or what came of it by a person.
struct Now<'a> {
    decision: Decision,
    granted: &'a [Capability],
    constraints: Cow<'a, Constraints>,
}

impl<'a> Now<'a> {
    /// What a verdict comes to. Where a person had decided on the record, and the candidate has one decide too, the
    /// same answer is taken for given.
    fn of(verdict: &'a PolicyVerdict, was: Decision, detail: &Detail) -> Self {
        let Some(approval) = verdict.on_approval.as_ref().filter(|_| detail.is_by_person()) else {
            return Self {
                decision: verdict.decision,
                granted: &verdict.granted,
                constraints: Cow::Borrowed(&verdict.constraints),
            };
        };
        let decision = match (was, approval.granted.is_empty(), approval.denied.is_empty()) {
            // Whoever refused it would do so again.
            (Decision::Deny, ..) | (_, true, _) => Decision::Deny,
            (_, false, true) => Decision::Allow,
            (_, false, false) => Decision::Degrade,
        };
        if decision == Decision::Deny {
            return Self { decision, granted: &[], constraints: Cow::Owned(Constraints::new()) };
        }
        // An approval ends with its expiry, which is nothing that a policy says.
        let mut constraints = approval.constraints.clone();
        if let Some(at) = detail.constraints.get("expiresAt") {
            let mut ends = Constraints::new();
            ends.insert("expiresAt", at.clone());
            constraints.tighten(&ends);
        }
        Self { decision, granted: &approval.granted, constraints: Cow::Owned(constraints) }
    }
}

/// How a limit stood.
#[derive(Deserialize)]
struct PastLimit {
    used: i64,
    most: i64,
    amount: Option<i64>,
}

impl PastLimit {
    fn is_spent(&self) -> bool {
        self.amount.and_then(|amount| self.used.checked_add(amount)).is_none_or(|after| after > self.most)
    }
}

impl Policies<'_> {
    /// Decides a range of the past again by a candidate set, and lists what would
    /// come out otherwise: another decision, other capabilities granted, or other
    /// constraints on them. Nothing is recorded. `progress` is called with the number of decisions replayed so
    /// far, every thousand.
    ///
    /// ```
    /// use rulekeep::preview::ReplayRange;
    /// use rulekeep::{Agent, Decision, Governor, PolicySet, Tier};
    ///
    /// let governor = Governor::builder().open_in_memory()?;
    /// governor.agents().register(Agent::new("a").at_tier(Tier::T4))?;
    /// governor.enforce_input("a", "Summarize the meeting notes")?;
    /// let closed = PolicySet::from_toml("name = \"closed\"")?;
    /// let replay = governor.policies().replay(&closed, &ReplayRange::all(), |_| {})?;
    /// assert_eq!((replay.records, replay.changed), (1, 1));
    /// assert_eq!((replay.changes[0].was, replay.changes[0].now), (Decision::Allow, Decision::Deny));
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when the log cannot be read.
    pub fn replay(
        self,
        candidate: &PolicySet,
        range: &ReplayRange,
        mut progress: impl FnMut(u64),
    ) -> Result<Replay, Error> {
        let mut replay = Replay::default();
        let mut seen = 0_u64;
        let reads_now = candidate.reads_now();
        self.governor.inner.log.each_past(&range.0, &mut |past| {
            seen += 1;
            if seen.is_multiple_of(1000) {
                progress(seen);
            }
            let evidence = match past.evidence {
                Kept::Evidence(evidence) => read(*evidence),
                Kept::Erased => {
                    replay.erased += 1;
                    return Ok(());
                }
                Kept::Unreadable => None,
            };
            if evidence.as_ref().is_some_and(|(_, detail)| detail.is_barred()) {
                replay.barred += 1;
                return Ok(());
            }
            // Where the time was not kept, a set that asks for it cannot say what it would have said.
            let Some((intent, detail)) = evidence.filter(|(_, detail)| detail.now.is_some() || !reads_now) else {
                replay.not_replayable += 1;
                return Ok(());
            };
            replay.records += 1;
            replay.masked += u64::from(detail.masked > 0);
            replay.answered += u64::from(detail.is_by_person());
            let request = PolicyRequest::new(&intent, detail.trust_snapshot)
                .at_risk(detail.risk_level)
                .of_agent(&detail.traits)
                .at(detail.now.or(intent.timestamp).unwrap_or(Timestamp::from_millis(0)));
            let Ok(verdict) = candidate.evaluate(&request) else {
                replay.failed += 1;
                return Ok(());
            };
            let hangs_on_counters = detail.limits.iter().any(PastLimit::is_spent) || !verdict.limits.is_empty();
            let now = Now::of(&verdict, past.decision, &detail);
            let differs = differing(past.decision, &detail, &now);
            let hangs = hangs_on_counters && (!differs.is_empty() || !verdict.limits.is_empty());
            replay.counter_dependent += u64::from(hangs);
            if differs.is_empty() {
                return Ok(());
            }
            let change = ReplayChange {
                proof_id: past.proof_id,
                was: past.decision,
                now: now.decision,
                rules: Arc::clone(&verdict.rules),
                was_rules: detail.rules,
                differs,
            };
            if hangs {
                add(&mut replay.counter_dependent_changes, change);
            } else {
                replay.note(change);
            }
            Ok(())
        })?;
        replay.sort();
        Ok(replay)
    }
}

fn read(evidence: Evidence) -> Option<(Intent, Detail)> {
    let intent = serde_json::from_value(evidence.intent).ok()?;
    Some((intent, serde_json::from_value(evidence.detail).ok()?))
}

fn differing(was: Decision, detail: &Detail, now: &Now<'_>) -> Vec<&'static str> {
    let is_other_grant = detail.granted_capabilities.len() != now.granted.len()
        || detail.granted_capabilities.iter().zip(now.granted).any(|(was, now)| was != now.as_str());
    parts([was != now.decision, is_other_grant, detail.constraints != *now.constraints])
}

/// The parts of a verdict that differ, by name. What is refused is what is not granted, and needs no name of its own.
pub(super) fn parts([decision, granted, constraints]: [bool; 3]) -> Vec<&'static str> {
    let all = [("decision", decision), ("granted", granted), ("constraints", constraints)];
    all.into_iter().filter_map(|(part, differs)| differs.then_some(part)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::Tier;

    /// What a set says of a record of `web:send` that a person decided on, or of a plain one.
    fn differs(rules: &str, was: Decision, granted: &[&str], more: &Value) -> Vec<&'static str> {
        let set = PolicySet::from_toml(&format!("name = \"t\"\n{rules}")).unwrap();
        let trust = TrustSnapshot::new(Tier::T3.middle(), Tier::T3);
        let mut detail = json!({
            "grantedCapabilities": granted, "riskLevel": "LOW", "trustSnapshot": trust, "labels": [],
            "agentState": "active", "now": "2027-01-15T08:00:00.000Z", "constraints": {},
        });
        detail.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let detail: Detail = serde_json::from_value(detail).unwrap();
        let intent = Intent::new("a", "send_it", RiskLevel::Low, ["web:send", "web:read"]).unwrap();
        let verdict = set.evaluate(&PolicyRequest::new(&intent, trust)).unwrap();
        differing(was, &detail, &Now::of(&verdict, was, &detail))
    }

    #[test]
    fn what_a_person_decided_is_held_against_what_a_person_would_be_asked_for() {
        let asks = "[[rule]]\nid = \"e\"\neffect = \"escalate\"\nreviewer = \"x\"\n";
        let partly = format!(
            "{asks}[[rule]]\nid = \"d\"\neffect = \"degrade\"\nto = [\"web:send\"]\nmatch.capabilities = [\"web:*\"]\n"
        );
        let few = format!("{asks}[[rule]]\nid = \"f\"\neffect = \"allow\"\nconstraints = {{ maxRecords = 5 }}\n");
        let allows = "[[rule]]\nid = \"a\"\neffect = \"allow\"\n";
        let all = &["web:send", "web:read"][..];
        let (resolved, granted, plain) = (json!({ "resolution": {} }), json!({ "grant": "apv" }), json!({}));
        let ends = json!({ "resolution": {}, "constraints": { "expiresAt": "2027-01-15T09:00:00.000Z" } });
        for (rules, was, grants, more, expected) in [
            (asks, Decision::Allow, all, &resolved, &[][..]),
            (asks, Decision::Allow, all, &granted, &[]),
            (asks, Decision::Allow, all, &plain, &["decision", "granted"]),
            (asks, Decision::Allow, all, &ends, &[]),
            (asks, Decision::Deny, &[], &resolved, &[]),
            (asks, Decision::Deny, &[], &plain, &["decision"]),
            (&partly, Decision::Allow, all, &resolved, &["decision", "granted"]),
            (&partly, Decision::Degrade, &["web:send"], &resolved, &[]),
            (&few, Decision::Allow, all, &resolved, &["constraints"]),
            (allows, Decision::Deny, &[], &resolved, &["decision", "granted"]),
            ("", Decision::Allow, all, &resolved, &["decision", "granted"]),
        ] {
            assert_eq!(differs(rules, was, grants, more), expected, "{rules} {was} {more}");
        }
    }
}
