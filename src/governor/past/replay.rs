//! Replay: reevaluating past decisions with another policy set.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::governor::Past;
use crate::governor::rules::policies::Policies;
use crate::governor::rules::shadow::parts;
use crate::model::{
    AgentId, AgentState, AgentTraits, Capability, Constraints, Decision, DenialClass, Error, Intent, ProofId,
    RiskLevel, Timestamp, TrustSnapshot,
};
use crate::policy::{PolicyRequest, PolicySet, PolicyVerdict};
use crate::proof::{Evidence, Kept, PastRange};

/// The past decisions to replay: all of them, unless narrowed.
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
    /// Selects every decision in the log.
    pub fn all() -> Self {
        Self::default()
    }

    /// Selects decisions of one agent only.
    #[must_use]
    pub fn of_agent(mut self, agent: AgentId) -> Self {
        self.0.entity = Some(agent);
        self
    }

    /// Selects decisions from this time on, inclusive.
    #[must_use]
    pub fn from(mut self, from: impl Into<Timestamp>) -> Self {
        self.0.from = Some(from.into());
        self
    }

    /// Selects decisions up to this time, inclusive.
    #[must_use]
    pub fn to(mut self, to: impl Into<Timestamp>) -> Self {
        self.0.to = Some(to.into());
        self
    }
}

/// The result of a replay: the decisions that another policy set would change.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Replay {
    /// Number of decisions replayed.
    pub records: u64,
    /// Number of changed decisions that do not depend on rate-limit counters, listed or not.
    pub changed: u64,
    /// Number of decisions that depend on rate-limit counters, which are not replayed: a limit of the candidate set
    /// contributes to the new decision, or an exhausted limit to the old one.
    #[serde(rename = "hanging")]
    pub counter_dependent: u64,
    /// The changes, the most permissive first (DENY to ALLOW), then the oldest; at most [`Replay::MOST_CHANGES`].
    pub changes: Vec<ReplayChange>,
    /// Decisions that depend on rate-limit counters and would differ with all counters at zero; ordered and bounded
    /// like `changes`.
    #[serde(rename = "hangingChanges")]
    pub counter_dependent_changes: Vec<ReplayChange>,
    /// Number of changes per rule that decided one, before or now; for each change the first eight rules of either
    /// side.
    #[cfg_attr(feature = "schema", schema(value_type = std::collections::BTreeMap<String, u64>))]
    pub by_rule: BTreeMap<Arc<str>, u64>,
    /// Number of decisions that cannot be replayed because their evidence has another form.
    pub not_replayable: u64,
    /// Number of replayed decisions whose intent has redacted secrets: conditions on them see `***`.
    pub masked: u64,
    /// Number of replayed decisions that rest on a reviewer's answer to an escalation, or on a pre-approval. If the
    /// candidate set escalates too, the same answer is assumed, and only a different grant counts as a change.
    pub answered: u64,
    /// Number of decisions that are not replayed because no policy made them: denials by a kill switch or a mandate, or
    /// because the agent was suspended or retired.
    pub barred: u64,
    /// Number of decisions that cannot be replayed because their evidence was erased.
    pub erased: u64,
    /// Number of decisions for which a condition of the candidate set failed.
    pub failed: u64,
}

/// A decision that another policy set would change.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ReplayChange {
    /// The record of the decision.
    pub proof_id: ProofId,
    /// The decision that was made.
    pub was: Decision,
    /// The decision by the candidate set.
    pub now: Decision,
    /// The rules of the candidate set that decide.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<String>))]
    pub rules: Arc<[Arc<str>]>,
    /// The rules that decided originally.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<String>))]
    pub was_rules: Vec<Arc<str>>,
    /// The parts that differ: `decision`, `granted`, `constraints`.
    pub differs: Vec<&'static str>,
}

impl Replay {
    /// Maximum number of changes that are listed.
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

/// Adds a change, and truncates the list when it grows too long.
fn add(changes: &mut Vec<ReplayChange>, change: ReplayChange) {
    changes.push(change);
    if changes.len() >= 2 * Replay::MOST_CHANGES {
        sort(changes);
    }
}

/// Sorts the most permissive changes first, then the oldest, and truncates the list.
fn sort(changes: &mut Vec<ReplayChange>) {
    changes.sort_by_key(|change| {
        let loosens = freedom(change.now) - freedom(change.was);
        (std::cmp::Reverse(loosens), change.proof_id.sequence())
    });
    changes.truncate(Replay::MOST_CHANGES);
}

/// Rank of a decision by permissiveness.
const fn freedom(decision: Decision) -> i8 {
    match decision {
        Decision::Deny => 0,
        Decision::Escalate => 1,
        Decision::Degrade => 2,
        Decision::Allow => 3,
    }
}

/// The decision's details in its evidence.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Detail {
    granted_capabilities: Vec<String>,
    risk_level: RiskLevel,
    trust_snapshot: TrustSnapshot,
    #[serde(flatten)]
    traits: AgentTraits,
    agent_state: AgentState,
    /// Present if a kill switch denied it.
    stop: Option<IgnoredAny>,
    /// Absent in evidence from before conditions could use the time.
    now: Option<Timestamp>,
    #[serde(default)]
    limits: Vec<PastLimit>,
    #[serde(default)]
    masked: u64,
    constraints: Constraints,
    #[serde(default)]
    rules: Vec<Arc<str>>,
    /// Present if this record resolved an escalation.
    resolution: Option<IgnoredAny>,
    /// Present if a pre-approval covered it.
    grant: Option<IgnoredAny>,
    /// Present if it was decided under a task.
    task: Option<PastTask>,
    denial_class: Option<DenialClass>,
}

/// The task that a decision was made under.
#[derive(Deserialize)]
struct PastTask {
    /// The mandate's objections to the call; absent if the decision is about the task itself.
    faults: Option<Vec<IgnoredAny>>,
}

impl Detail {
    /// Returns whether no policy decided: the agent could not act, the governor had no permit, or a mandate decided.
    fn is_barred(&self) -> bool {
        let by_mandate = matches!(self.denial_class, Some(DenialClass::Mandate | DenialClass::NoPermit))
            || self.task.as_ref().is_some_and(|task| task.faults.as_ref().is_none_or(|faults| !faults.is_empty()));
        self.stop.is_some() || self.agent_state != AgentState::Active || by_mandate
    }

    /// Returns whether a reviewer decided on it, or a pre-approval covered it.
    const fn is_by_person(&self) -> bool {
        self.resolution.is_some() || self.grant.is_some()
    }
}

/// The new result to compare with a record: the verdict, or its result after a review.
struct Now<'a> {
    decision: Decision,
    granted: &'a [Capability],
    constraints: Cow<'a, Constraints>,
}

impl<'a> Now<'a> {
    /// The result of a verdict. If a reviewer had decided on the record and the candidate set escalates too, the same
    /// answer is assumed.
    fn of(verdict: &'a PolicyVerdict, was: Decision, detail: &Detail) -> Self {
        let Some(approval) = verdict.on_approval.as_ref().filter(|_| detail.is_by_person()) else {
            return Self {
                decision: verdict.decision,
                granted: &verdict.granted,
                constraints: Cow::Borrowed(&verdict.constraints),
            };
        };
        let decision = match (was, approval.granted.is_empty(), approval.denied.is_empty()) {
            // A reviewer who rejected it would reject it again.
            (Decision::Deny, ..) | (_, true, _) => Decision::Deny,
            (_, false, true) => Decision::Allow,
            (_, false, false) => Decision::Degrade,
        };
        if decision == Decision::Deny {
            return Self { decision, granted: &[], constraints: Cow::Owned(Constraints::new()) };
        }
        // The expiry of an approval comes from the approval, not from a policy.
        let mut constraints = approval.constraints.clone();
        if let Some(at) = detail.constraints.get("expiresAt") {
            let mut ends = Constraints::new();
            ends.insert("expiresAt", at.clone());
            constraints.tighten(&ends);
        }
        Self { decision, granted: &approval.granted, constraints: Cow::Owned(constraints) }
    }
}

/// The past state of a rate limit.
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
    /// Replays a range of past decisions with a candidate policy set and lists those that would change: another
    /// decision, other granted capabilities, or other constraints. Nothing is recorded. `progress` receives the number
    /// of decisions replayed so far, after every 1,000.
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
        progress: impl FnMut(u64),
    ) -> Result<Replay, Error> {
        self.inner.here()?.past.replay(candidate, range, progress)
    }
}

impl Past {
    fn replay(
        &self,
        candidate: &PolicySet,
        range: &ReplayRange,
        mut progress: impl FnMut(u64),
    ) -> Result<Replay, Error> {
        let mut replay = Replay::default();
        let mut seen = 0_u64;
        let reads_now = candidate.reads_now();
        self.0.base.log.each_past(&range.0, &mut |past| {
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
            // Without a recorded time, a set whose conditions use the time cannot be evaluated.
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::Tier;

    /// The result of a set for a record of `web:send`, decided by a reviewer or not.
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
    fn an_answer_is_compared_with_the_question_a_person_would_get() {
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
