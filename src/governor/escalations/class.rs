//! What people agree to beforehand, and take back.

use std::sync::Arc;

use serde::Serialize;

use super::super::kill_switch::KillSwitchTable;
use super::super::{Governor, kill_switch};
use super::Escalations;
use super::classes::{Class, ClassRecord, ONE, change};
use super::digest::folded;
use super::review::checked_vote;
use crate::model::{
    AgentId, AgentState, ClassApprovalId, ClassState, Digest, Error, KillSwitchScope, Review, Timestamp, Vote,
};
use crate::policy::{ClassApproval, ClassTerms, ClassUse, Meter, PolicySet};
use crate::trust::AgentRecord;

/// The approval of a class of actions, and what is left of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "http", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ClassStanding {
    /// Its id, by which it is revoked; the evidence of each decision that rests on it names it as `grant`.
    pub id: ClassApprovalId,
    /// What is agreed to.
    #[cfg_attr(feature = "http", schema(value_type = ClassTerms))]
    pub class: ClassApproval,
    /// Who gave it.
    pub reviewer: String,
    /// What they noted, with secrets masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// All who agreed, whoever gave it first.
    pub votes: Vec<Vote>,
    /// How many people have to agree.
    pub approvals: u8,
    /// When it was given.
    pub created_at: Timestamp,
    /// How often it was used; counted for 31 days from each use.
    pub used_count: u64,
    /// For how much in all, where it names a sum; counted likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_sum: Option<f64>,
    /// How it stands.
    pub state: ClassState,
    /// Why it was revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Escalations<'_> {
    /// Agrees beforehand to a class of actions: what it covers is granted from then on without anybody being asked,
    /// until its time, its count or its sum is over, or it is revoked. Where one of its rules asks for more than one
    /// approval it grants nothing until others agree too: [`Escalations::agree_to_class`].
    ///
    /// It answers the rules that it names, as they stand now. It ends when a policy set is put in force in which one of
    /// them, or the people whom it asks, is not what it was, and when an agent that it covers is stopped or suspended.
    ///
    /// ```
    /// use rulekeep::escalation::{ClassApproval, Review};
    /// use rulekeep::system::{Clock, SystemClock, Timestamp};
    /// use rulekeep::{Agent, Decision, Governor, Intent, PolicySet, RiskLevel};
    ///
    /// let policies = PolicySet::from_toml(
    ///     r#"
    ///     name = "payments"
    ///     [[rule]]
    ///     id = "money-needs-a-person"
    ///     effect = "escalate"
    ///     match.capabilities = ["payment:transfer"]
    ///     reviewer = "ann"
    ///     "#,
    /// )?;
    /// let governor = Governor::builder().policies(policies).open_in_memory()?;
    /// governor.agents().register(Agent::new("clerk"))?;
    ///
    /// let now = SystemClock.now();
    /// let terms = serde_json::from_value(serde_json::json!({
    ///     "agentId": "clerk", "capabilities": ["payment:transfer"], "rules": ["money-needs-a-person"],
    ///     "targets": ["INV-2026-*"], "maxRisk": "HIGH", "until": Timestamp::from_millis(now.as_millis() + 3_600_000),
    ///     "count": 1,
    /// })).expect("terms");
    /// let id = governor.escalations().approve_class(ClassApproval::new(terms, now)?, Review::by("ann"))?;
    ///
    /// let pay = Intent::new("clerk", "pay_invoice", RiskLevel::High, ["payment:transfer"])?
    ///     .with_context("target", "INV-2026-7");
    /// assert_eq!(governor.enforce(&pay)?.decision, Decision::Allow);
    /// assert_eq!(governor.escalations().classes()[0].used_count, 1);
    /// assert_eq!(governor.enforce(&pay)?.decision, Decision::Escalate, "its count is used up");
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Forbidden`] for who is not asked by all of its rules, or is the agent itself; [`Error::InvalidInput`]
    /// that names the term; [`Error::AgentNotFound`]; [`Error::Conflict`] while the agent may not act;
    /// [`Error::StorageUnavailable`], [`Error::ChainBroken`].
    #[expect(clippy::needless_pass_by_value, reason = "what is given away is not kept")]
    pub fn approve_class(self, class: ClassApproval, review: Review) -> Result<ClassApprovalId, Error> {
        let inner = &*self.governor.inner;
        let now = inner.clock.now();
        let class = ClassApproval::new(class.terms().clone(), now)?;
        let vote = vote(review, now)?;
        let id = ClassApprovalId::new(now, inner.entropy.bits());
        self.put(class.terms(), &vote, now, |known, policies| {
            if known.values().filter(|class| class.record.is_live(now)).count() >= MOST_LIVE {
                let message = format!("{MOST_LIVE} class approvals are in force; revoke one first");
                return Err(Error::Conflict { message });
            }
            let (rules, approvals) = asked(policies, class.terms(), &vote.reviewer)?;
            let state = if approvals > 1 { ClassState::Pending } else { ClassState::Active };
            let (class, votes) = (class.clone(), vec![vote.clone()]);
            let place = crate::proof::StateDraft::OWN_PLACE;
            Ok(ClassRecord { id, class, rules, approvals, votes, created_at: now, state, why: None, place })
        })?;
        Ok(id)
    }

    /// Agrees to a class that another person approved, where that needs more than one.
    ///
    /// # Errors
    ///
    /// Those of [`Escalations::approve_class`]; [`Error::Conflict`] when it is not pending, or the same person agreed.
    pub fn agree_to_class(self, id: &ClassApprovalId, review: Review) -> Result<ClassState, Error> {
        let inner = &*self.governor.inner;
        let now = inner.clock.now();
        let vote = vote(review, now)?;
        let conflict = |message: String| Error::Conflict { message };
        let unknown = || conflict(format!("no class approval {id} is pending"));
        let terms = inner.approvals.classes.lock().get(id).ok_or_else(unknown)?.record.class.terms().clone();
        self.put(&terms, &vote, now, |known, policies| {
            let class = known.get(id).filter(|class| class.record.is_live(now)).ok_or_else(unknown)?;
            if class.record.state != ClassState::Pending {
                return Err(unknown());
            }
            asked(policies, &terms, &vote.reviewer)?;
            if class.policies != policies.digest() {
                return Err(conflict(format!("{id} was given under other policies")));
            }
            let mut record = class.record.clone();
            if record.votes.iter().any(|known| folded(&known.reviewer) == folded(&vote.reviewer)) {
                let message = format!("{:?} agreed to {id} already; it needs another person too", vote.reviewer);
                return Err(conflict(message));
            }
            record.votes.push(vote.clone());
            if record.votes.len() >= usize::from(record.approvals) {
                record.state = ClassState::Active;
            }
            Ok(record)
        })
    }

    /// Takes an approval back: it grants nothing any more from then on. Anybody may.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] when it is not in force; [`Error::InvalidInput`]; [`Error::StorageUnavailable`] or
    /// [`Error::ChainBroken`] when that cannot be recorded: then it grants nothing until a restart.
    pub fn revoke(self, id: &ClassApprovalId, review: Review) -> Result<(), Error> {
        let governor = self.governor;
        let Vote { reviewer, note, .. } = vote(review, governor.inner.clock.now())?;
        let note = note.map(|note| format!(": {note}")).unwrap_or_default();
        let said = |error| {
            kill_switch::with_context(error, &format!("{id} grants nothing any more, which is gone after a restart"))
        };
        let is_found = std::cell::Cell::new(false);
        let taken = governor.take_back(|class| {
            is_found.set(is_found.get() || class.record.id == *id);
            (class.record.id == *id).then(|| format!("revoked by {reviewer}{note}"))
        });
        let placed = match taken.map_err(said)? {
            None if is_found.get() => {
                // It grants nothing already, and is recorded once the log is verified.
                governor.inner.log.wait_verified().and_then(|()| governor.write_taken_back()).map_err(said)?;
                governor.inner.approvals.classes.lock().get(id).map(|class| class.record.place)
            }
            placed => placed,
        };
        match placed {
            Some(sequence) => governor.inner.log.settle(sequence).map_err(said),
            None => Err(Error::Conflict { message: format!("no class approval {id} is in force") }),
        }
    }

    /// All class approvals, the oldest first, with how much of them was used; those that ended until they leave with an
    /// archive.
    pub fn classes(self) -> Vec<ClassStanding> {
        let inner = &*self.governor.inner;
        let now = inner.clock.now();
        let records: Vec<ClassRecord> =
            inner.approvals.classes.lock().values().map(|class| class.record.clone()).collect();
        // Decisions with limits wait for one at a time.
        records.iter().map(|record| standing(record, now, &mut inner.limits.window(now))).collect()
    }

    /// Puts what `next` makes of the approvals in order, with nothing that could take it back in between.
    fn put(
        self,
        terms: &ClassTerms,
        vote: &Vote,
        now: Timestamp,
        next: impl Fn(&std::collections::BTreeMap<ClassApprovalId, Class>, &PolicySet) -> Result<ClassRecord, Error>,
    ) -> Result<ClassState, Error> {
        let inner = &*self.governor.inner;
        inner.log.wait_verified()?;
        let cell = terms.agent_id.as_ref().map(|agent| self.governor.registered(agent)).transpose()?;
        self.governor.is_other_than_agents(terms, &vote.reviewer)?;
        let (sequence, state) = loop {
            let agent = cell.as_ref().map(|cell| cell.read());
            let stops = inner.stops.load();
            self.governor.may_act(terms, agent.as_deref(), &stops)?;
            let mut meter = inner.limits.meter(now);
            meter.hold();
            let mut known = inner.approvals.classes.lock();
            // Whoever is suspended later finds what is given here, and takes it back.
            if !Arc::ptr_eq(&stops, &inner.stops.load()) {
                continue;
            }
            // Behind the meter: a set that is put in force later finds what is given here.
            let policies = inner.policies.load();
            let mut record = next(&known, &policies)?;
            let cause = format!("approved by {}", vote.reviewer);
            let Some(sequence) = inner.log.change_unless_stopped(now, change(&record, cause)?, stops.epoch())? else {
                continue;
            };
            record.place = sequence;
            let state = record.state;
            known.insert(record.id, Class { record, policies: policies.digest(), is_owed: false });
            inner.approvals.classes.note(&known, now);
            break (sequence, state);
        };
        inner.log.settle(sequence)?;
        Ok(state)
    }
}

impl Governor {
    /// Whether the agent, or the group, may act at all.
    fn may_act(&self, terms: &ClassTerms, agent: Option<&AgentRecord>, stops: &KillSwitchTable) -> Result<(), Error> {
        let conflict = |message: String| Err(Error::Conflict { message });
        if let Some(agent) = agent {
            if agent.state != AgentState::Active {
                return conflict(format!("agent {} is {}", agent.agent_id, agent.state));
            }
            if let Some(why) = stops.over(agent) {
                return conflict(why);
            }
        }
        let is_member = |agent: &&AgentId| {
            let belongs = |group| self.registered(agent).is_ok_and(|cell| cell.read().traits().groups.contains(group));
            terms.group.as_ref().is_some_and(belongs)
        };
        if let Some(member) = stops.held().find(is_member) {
            return conflict(format!("agent {member} of that group is being suspended"));
        }
        let covers = |scope: &KillSwitchScope| match scope {
            KillSwitchScope::All => true,
            KillSwitchScope::Group(group) => terms.group.as_ref() == Some(group),
            KillSwitchScope::Agent(_) => false,
        };
        match self.kill_switch().list().into_iter().find(|stop| covers(&stop.scope)) {
            Some(stop) => conflict(format!("{} was stopped by {} ({})", stop.scope, stop.by, stop.id)),
            None => Ok(()),
        }
    }

    /// No agent agrees to what it may do itself.
    fn is_other_than_agents(&self, terms: &ClassTerms, reviewer: &str) -> Result<(), Error> {
        let is_same = |agent: &AgentId| folded(agent.as_str()) == folded(reviewer);
        let is_one = match (&terms.agent_id, &terms.group) {
            (Some(agent), _) => is_same(agent),
            (None, Some(group)) => self.inner.ledger.all().iter().any(|cell| {
                let agent = cell.read();
                is_same(&agent.agent_id) && agent.traits().groups.contains(group)
            }),
            (None, None) => false,
        };
        if is_one {
            return Err(Error::Forbidden { message: format!("{reviewer:?} would approve what it may do itself") });
        }
        Ok(())
    }
}

/// What the rules say that a class names, and how many people have to agree; each of them is asked by every rule.
fn asked(
    policies: &PolicySet,
    terms: &ClassTerms,
    reviewer: &str,
) -> Result<(std::collections::BTreeMap<String, Digest>, u8), Error> {
    let mut rules = std::collections::BTreeMap::new();
    let mut approvals = 1;
    for id in &terms.rules {
        let unasked = || Error::input("rules", format!("no rule {id:?} asks a person in the policies in force"));
        let (need, digest) = policies.need_of(id).zip(policies.rule_digest(id)).ok_or_else(unasked)?;
        let person = folded(reviewer);
        // A name without a list is itself the only person.
        let is_only = need.people.is_empty() && folded(&need.reviewer) == person;
        let is_asked = is_only || need.people.iter().any(|known| folded(known) == person);
        if !is_asked {
            let message = format!("{reviewer:?} is not asked by the rule {id:?}, but {:?} is", need.reviewer);
            return Err(Error::Forbidden { message });
        }
        approvals = approvals.max(need.approvals);
        rules.insert(id.clone(), digest);
    }
    Ok((rules, approvals))
}

/// A reviewer's word, fit to be kept.
fn vote(review: Review, now: Timestamp) -> Result<Vote, Error> {
    if review.digest.is_some() {
        return Err(Error::input("digest", "the approval of a class has none; leave it out"));
    }
    checked_vote(review, true, now)
}

fn standing(record: &ClassRecord, now: Timestamp, meter: &mut dyn Meter) -> ClassStanding {
    let [count, sum] = {
        let charges = record.charges(ClassUse::default());
        let mut used = charges.iter().map(|charge| meter.used(charge).amount);
        [used.next().unwrap_or(0), used.next().unwrap_or(0)]
    };
    let used_count = u64::try_from(count / ONE).unwrap_or(0);
    let state = match record.state {
        ClassState::Revoked => ClassState::Revoked,
        _ if now >= record.class.terms().until => ClassState::Expired,
        ClassState::Active if used_count >= u64::from(record.class.terms().count) => ClassState::Spent,
        state => state,
    };
    let first = record.votes.first();
    #[expect(clippy::cast_precision_loss, reason = "for people; what is counted stays whole")]
    let used_sum = record.class.most().map(|_| sum as f64 / 1e6);
    ClassStanding {
        id: record.id,
        class: record.class.clone(),
        reviewer: first.map(|vote| vote.reviewer.clone()).unwrap_or_default(),
        note: first.and_then(|vote| vote.note.clone()),
        votes: record.votes.clone(),
        approvals: record.approvals,
        created_at: record.created_at,
        used_count,
        used_sum,
        state,
        why: record.why.clone(),
    }
}

/// Most approvals that can grant something at a time.
const MOST_LIVE: usize = 1_000;
