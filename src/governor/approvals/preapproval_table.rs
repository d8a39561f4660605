//! The table of pre-approvals: the requests they cover, and the changes that end them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use arc_swap::ArcSwap;
use serde::{Deserialize, Serialize};

use crate::governor::keys::{self, Keyed as _};
use crate::governor::rules::limits::LimitMeter;
use crate::governor::{Approvals, Hold as _, states};
use crate::model::{
    AgentId, AgentState, AgentTraits, Constraints, Decision, Digest, Error, GRANT_PREFIX, KillSwitchScope,
    LONGEST_LIMIT_WINDOW, Label, PreApprovalId, PreApprovalState, Sequence, Timestamp, Vote,
};
use crate::parse::seen_as;
use crate::policy::{Charge, PolicyRequest, PolicySet, PolicyVerdict, PreApproval, PreApprovalTerms, PreApprovalUse};
use crate::proof::{ChangeDraft, StateDraft};

/// All pre-approvals.
#[derive(Default)]
pub(crate) struct PreApprovals {
    /// The latest expiry, exclusive: the only check of a decision when there are no pre-approvals.
    until: AtomicI64,
    // Changed only by the holder of the limits' meter, so that none changes while a decision rests on it. Acquired
    // after the meter and before the log's locks.
    known: Mutex<BTreeMap<PreApprovalId, Held>>,
    /// The pre-approvals that may cover a request; updated together with `known`.
    live: ArcSwap<Live>,
}

/// The pre-approvals that may cover a request, by agent or group, oldest first.
#[derive(Default)]
struct Live {
    agents: HashMap<AgentId, Vec<PreApprovalId>>,
    groups: HashMap<Label, Vec<PreApprovalId>>,
}

impl Live {
    /// The pre-approvals of an agent and its groups.
    fn of(&self, agent: &AgentId, traits: &AgentTraits) -> Vec<PreApprovalId> {
        let groups = traits.groups.iter().filter_map(|group| self.groups.get(group));
        let mut found: Vec<_> = self.agents.get(agent).into_iter().chain(groups).flatten().copied().collect();
        found.sort_unstable();
        found
    }
}

/// A pre-approval in memory.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) record: PreApprovalRecord,
    /// The digest of the policy set whose rules it answers unchanged; it covers nothing under another set.
    pub(super) policies: Digest,
    /// True if it was revoked before the log was verified, so that this must still be recorded.
    pub(super) is_owed: bool,
}

/// A pre-approval as the log stores it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PreApprovalRecord {
    pub(super) id: PreApprovalId,
    #[serde(rename = "class")]
    pub(super) approval: PreApproval,
    /// The rules that it answers, with their digests when it was given.
    pub(super) rules: BTreeMap<String, Digest>,
    /// Number of reviewers who must agree.
    pub(super) approvals: u8,
    pub(super) votes: Vec<Vote>,
    pub(super) created_at: Timestamp,
    /// Pending, active, revoked, or expired once that was noticed; being used up follows from the counters.
    pub(super) state: PreApprovalState,
    /// The reason it was revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
    /// The position of its log entry; the last field, where it is filled in.
    pub(super) place: Sequence,
}

impl PreApprovals {
    /// Restores a pre-approval from the log.
    pub(crate) fn restore(&self, key: &str, value: &[u8]) -> Result<(), Error> {
        let record: PreApprovalRecord = states::read(key, value)?;
        // It covers nothing until it is compared with the policies in force.
        self.lock().insert(record.id, Held { record, policies: Digest::ZERO, is_owed: false });
        Ok(())
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<PreApprovalId, Held>> {
        // No code between two related changes can panic.
        self.known.hold()
    }

    /// Updates the lookup tables.
    pub(super) fn note(&self, known: &BTreeMap<PreApprovalId, Held>, now: Timestamp) {
        let (mut live, mut until) = (Live::default(), i64::MIN);
        for Held { record, .. } in known.values() {
            if record.state != PreApprovalState::Active || !record.is_live(now) {
                continue;
            }
            let terms = record.approval.terms();
            until = until.max(terms.until.as_millis());
            let theirs = match (&terms.agent_id, &terms.group) {
                (Some(agent), _) => live.agents.entry(agent.clone()).or_default(),
                (None, Some(group)) => live.groups.entry(group.clone()).or_default(),
                (None, None) => continue,
            };
            theirs.push(record.id);
        }
        self.live.store(Arc::new(live));
        self.until.store(until, Ordering::Release);
    }

    /// Removes ended pre-approvals whose last entry is before this position.
    pub(crate) fn forget_before(&self, first: u64, now: Timestamp) {
        let mut known = self.lock();
        known.retain(|_, held| held.record.place.get() >= first || !held.record.has_ended());
        self.note(&known, now);
    }
}

impl PreApprovalRecord {
    /// Returns whether it was revoked or seen to expire; that is final, whatever the clock does.
    pub(super) const fn has_ended(&self) -> bool {
        matches!(self.state, PreApprovalState::Revoked | PreApprovalState::Expired)
    }

    /// Returns whether it may still cover a request.
    pub(super) fn is_live(&self, now: Timestamp) -> bool {
        !self.has_ended() && now < self.approval.terms().until
    }

    /// The charges of a use: one of the count, and an amount of the sum if there is one.
    pub(super) fn charges(&self, used: PreApprovalUse) -> Vec<Charge> {
        let charge = |what: &str, amount, most| Charge {
            counter: format!("{GRANT_PREFIX}{}/{what}", self.id).into(),
            amount,
            most,
            // No pre-approval lasts longer, so uses stay counted until it ends.
            window: LONGEST_LIMIT_WINDOW,
            share: None,
        };
        let count = charge("count", ONE, i64::from(self.approval.terms().count) * ONE);
        let sum = self.approval.most().map(|most| charge("sum", used.amount, most));
        std::iter::once(count).chain(sum).collect()
    }

    /// Returns whether it answers every escalating rule, and no requester is one of its reviewers.
    fn answers(&self, request: &PolicyRequest<'_>, verdict: &PolicyVerdict) -> bool {
        let is_answered = |rule: &Arc<str>| self.rules.contains_key(&**rule);
        // Only the first rules are listed; the others may not be answered.
        if verdict.rules_total != verdict.rules.len() || !verdict.rules.iter().all(is_answered) {
            return false;
        }
        let mut askers = request.intent.askers().map(seen_as);
        askers.all(|asker| self.votes.iter().all(|vote| seen_as(&vote.reviewer) != asker))
    }

    /// The names of the reviewers who agreed.
    pub(super) fn people(&self) -> String {
        self.votes.iter().map(|vote| vote.reviewer.as_str()).collect::<Vec<_>>().join(" and ")
    }
}

/// A state of a pre-approval, with the cause of the change.
pub(super) fn change(record: &PreApprovalRecord, cause: String) -> Result<ChangeDraft, Error> {
    let standing = PreApprovalRecord { place: StateDraft::OWN_PLACE, ..record.clone() };
    let state = states::draft(keys::Grants::key(record.id), &standing)?.with_own_place();
    Ok(ChangeDraft { state, cause, trust: None })
}

impl Approvals {
    /// Turns an escalation into the decision of a pre-approval that covers the request and is not used up, and returns
    /// its id; otherwise returns the verdict unchanged. Holds the meter from then on.
    pub(crate) fn agreed_beforehand(
        &self,
        request: &PolicyRequest<'_>,
        mut verdict: PolicyVerdict,
        policies: Digest,
        meter: &mut LimitMeter<'_>,
    ) -> (PolicyVerdict, Option<PreApprovalId>) {
        let table = &self.given;
        if request.now.as_millis() >= table.until.load(Ordering::Acquire) {
            return (verdict, None);
        }
        let Some(offer) = verdict.on_approval.as_ref().filter(|offer| !offer.granted.is_empty()) else {
            return (verdict, None);
        };
        meter.hold();
        // A reviewer cannot exceed rate limits, except those whose rule escalates.
        if !offer.charges.iter().all(|charge| charge.fits(meter)) {
            return (verdict, None);
        }
        let candidates = table.live.load().of(&request.intent.agent_id, request.traits);
        if candidates.is_empty() {
            return (verdict, None);
        }
        let known = table.lock();
        let candidates = candidates.iter().filter_map(|id| known.get(id));
        let found = candidates.into_iter().find_map(|Held { record, policies: bound, .. }| {
            if record.state != PreApprovalState::Active || *bound != policies || !record.answers(request, &verdict) {
                return None;
            }
            let charges = record.charges(record.approval.covers(request, &offer.granted)?);
            charges.iter().all(|charge| charge.fits(meter)).then_some((record, charges))
        });
        let Some((record, charges)) = found else { return (verdict, None) };
        let Some(mut offer) = verdict.on_approval.take() else { return (verdict, None) };
        let until = record.approval.terms().until;
        let mut end = Constraints::new();
        end.insert("expiresAt", until.to_string().into());
        offer.constraints.tighten(&end);
        let (decision, word) =
            if offer.denied.is_empty() { (Decision::Allow, "Allowed") } else { (Decision::Degrade, "Allowed in part") };
        let note = record.votes.iter().find_map(|vote| vote.note.as_deref());
        let note = note.map(|note| format!(": {note}")).unwrap_or_default();
        verdict.reasoning =
            format!("{word}: {} pre-approved such requests until {until} ({}){note}.", record.people(), record.id);
        verdict.decision = decision;
        verdict.granted = offer.granted;
        verdict.denied = offer.denied;
        verdict.constraints = offer.constraints;
        verdict.charges = offer.charges;
        verdict.charges.extend(charges);
        verdict.reviewer = None;
        verdict.needs = Vec::new();
        verdict.expires = std::time::Duration::ZERO;
        (verdict, Some(record.id))
    }

    /// Revokes the pre-approvals for which `why` returns a reason. They grant nothing any more, even if that cannot be
    /// recorded; then the first error is returned. Otherwise returns the last entry, if any. Before the log is
    /// verified, recording is postponed.
    pub(super) fn take_back(&self, why: impl Fn(&mut Held) -> Option<String>) -> Result<Option<Sequence>, Error> {
        self.end_pre_approvals(PreApprovalState::Revoked, why)
    }

    /// Ends the expired pre-approvals. If the log accepts no entries, they are expired all the same.
    pub(crate) fn expire_pre_approvals(&self) {
        let now = self.base.clock.now();
        let is_due = |record: &PreApprovalRecord| !record.has_ended() && !record.is_live(now);
        if self.given.lock().values().any(|held| is_due(&held.record)) {
            let ended = self.end_pre_approvals(PreApprovalState::Expired, |held| {
                is_due(&held.record).then(|| format!("it expired at {}", held.record.approval.terms().until))
            });
            // An expiry that was reported must survive a crash.
            let _ = ended.map(|last| last.map(|last| self.base.log.settle(last)));
        }
    }

    /// Revokes pre-approvals that, counted from `now`, would last longer than their uses are counted.
    pub(crate) fn end_long_pre_approvals(&self, now: Timestamp) {
        let last = now.as_millis().saturating_add(LONGEST_LIMIT_WINDOW);
        let _ = self.end_pre_approvals(PreApprovalState::Revoked, |held| {
            let is_long = held.record.approval.terms().until.as_millis() > last;
            is_long.then(|| format!("the clock was confirmed to step back to {now}"))
        });
    }

    fn end_pre_approvals(
        &self,
        state: PreApprovalState,
        why: impl Fn(&mut Held) -> Option<String>,
    ) -> Result<Option<Sequence>, Error> {
        let now = self.base.clock.now();
        let mut meter = self.rules.limits.local_meter(now);
        meter.hold();
        let mut known = self.given.lock();
        let mut taken = Ok(None);
        for held in known.values_mut().filter(|held| !held.record.has_ended()) {
            let Some(why) = why(held) else { continue };
            held.record.state = state;
            held.record.why = Some(why);
            // Data read from the log must not be written again before it is verified.
            held.is_owed = !self.base.log.is_verified();
            if held.is_owed {
                continue;
            }
            match self.write_revoked(held, now) {
                Ok(sequence) => taken = taken.map(|_| Some(sequence)),
                Err(error) => taken = taken.and(Err(error)),
            }
        }
        self.given.note(&known, now);
        self.roster.stops.interventions().note_change();
        taken
    }

    fn write_revoked(&self, held: &mut Held, now: Timestamp) -> Result<Sequence, Error> {
        let why = held.record.why.clone().unwrap_or_default();
        // Needs no room in the queue: a revocation does not wait for decisions.
        let sequence = self.base.log.queue().stop(now, 0, change(&held.record, why)?)?;
        held.record.place = sequence;
        held.is_owed = false;
        Ok(sequence)
    }

    /// Records the revocations from before the log was verified. Returns the first error; those not recorded are
    /// revoked again when the store is opened.
    pub(super) fn write_taken_back(&self) -> Result<(), Error> {
        let now = self.base.clock.now();
        let mut known = self.given.lock();
        let mut owed = known.values_mut().filter(|held| held.is_owed);
        owed.try_for_each(|held| self.write_revoked(held, now).map(drop))
    }

    /// Compares the pre-approvals with a policy set that is put in force, and revokes those that answer a rule which is
    /// missing or changed in it.
    pub(crate) fn bind_pre_approvals(&self, set: &PolicySet) {
        // A revocation that could not be recorded is repeated when the store is opened, because the rules are the same
        // then.
        let _ = self.take_back(|held| {
            let is_other = |(id, digest): &(&String, &Digest)| set.rule_digest(id) != Some(**digest);
            held.policies = set.digest();
            let (rule, _) = held.record.rules.iter().find(is_other)?;
            Some(format!("a policy set was loaded that changes the rule {rule:?}"))
        });
    }

    /// Revokes the pre-approvals of the agents that a kill switch covers, and of their groups.
    pub(crate) fn end_pre_approvals_of(&self, scope: &KillSwitchScope, why: &str) {
        let covered = self.pre_approvals_of(scope);
        if covered.is_empty() {
            return;
        }
        let _ = self.take_back(|held| covered.contains(&held.record.id).then(|| format!("{scope}: {why}")));
    }

    /// The pre-approvals of the agents that a kill switch covers. None can be given while it is in force, so all are
    /// older.
    fn pre_approvals_of(&self, scope: &KillSwitchScope) -> BTreeSet<PreApprovalId> {
        let known: Vec<(PreApprovalId, PreApprovalTerms)> = {
            let given = |held: &&Held| !held.record.has_ended();
            // Whoever gives a pre-approval holds this lock until it is added.
            let known = self.given.lock();
            known.values().filter(given).map(|held| (held.record.id, held.record.approval.terms().clone())).collect()
        };
        // An agent's lock is acquired before the meter, never after it.
        known.into_iter().filter(|(_, terms)| self.concerns(scope, terms)).map(|(id, _)| id).collect()
    }

    fn concerns(&self, scope: &KillSwitchScope, terms: &PreApprovalTerms) -> bool {
        let belongs = |agent: &AgentId, group: &Label| {
            self.roster.registered(agent).is_ok_and(|cell| cell.read().traits().groups.contains(group))
        };
        match (scope, &terms.agent_id, &terms.group) {
            (KillSwitchScope::All, ..) | (_, None, None) => true,
            (KillSwitchScope::Agent(stopped), Some(agent), _) => agent == stopped,
            (KillSwitchScope::Agent(stopped), None, Some(group)) => belongs(stopped, group),
            (KillSwitchScope::Group(stopped), Some(agent), _) => belongs(agent, stopped),
            (KillSwitchScope::Group(stopped), None, Some(group)) => {
                let is_both = |agent: &crate::trust::AgentRecord| {
                    let groups = &agent.traits().groups;
                    groups.contains(group) && groups.contains(stopped)
                };
                group == stopped || self.roster.ledger.all().iter().any(|cell| is_both(&cell.read()))
            }
        }
    }

    /// Compares the pre-approvals with the current state once the log can be written: a crash may have separated a kill
    /// switch, suspension or policy set from the revocations it causes.
    pub(crate) fn mend_pre_approvals(&self) {
        if self.given.lock().is_empty() {
            return;
        }
        self.bind_pre_approvals(&self.rules.policies.load());
        for stop in self.roster.stops.list() {
            let covered = self.pre_approvals_of(&stop.scope);
            let why = format!("{}: a kill switch was set", stop.scope);
            let _ = self.take_back(|held| covered.contains(&held.record.id).then(|| why.clone()));
        }
        let agents: BTreeSet<_> = self.given.lock().values().filter_map(Held::agent).collect();
        let is_inactive = |id: &_| self.roster.registered(id).is_ok_and(|cell| cell.read().state != AgentState::Active);
        let inactive: BTreeSet<_> = agents.into_iter().filter(is_inactive).collect();
        let _ = self.take_back(|held| {
            let agent = held.agent().filter(|agent| inactive.contains(agent))?;
            Some(format!("agent {agent}: it was suspended"))
        });
    }
}

impl Held {
    fn agent(&self) -> Option<crate::model::AgentId> {
        self.record.approval.terms().agent_id.clone()
    }
}

/// One, in millionths, the unit of the counters.
pub(super) const ONE: i64 = 1_000_000;
