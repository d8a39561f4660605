//! Giving, listing and revoking pre-approvals.

use std::sync::Arc;

use serde::Serialize;

use super::Escalations;
use super::digest::folded;
use super::preapproval_table::{Held, ONE, PreApprovalRecord, change};
use super::review::checked_vote;
use crate::governor::roster::{kill_switch, kill_switch::KillSwitchTable};
use crate::governor::{Approvals, conflict};
use crate::model::{AgentId, Digest, Error, KillSwitchScope, PreApprovalId, PreApprovalState, Review, Timestamp, Vote};
use crate::parse::seen_as;
use crate::policy::{Meter, PolicySet, PreApproval, PreApprovalTerms, PreApprovalUse};
use crate::trust::AgentRecord;

/// A pre-approval and its use so far.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PreApprovalStanding {
    /// The identifier, needed to revoke it. Decisions that rest on it name it as `grant` in their evidence.
    pub id: PreApprovalId,
    /// The requests that are approved.
    #[cfg_attr(feature = "schema", schema(value_type = PreApprovalTerms))]
    #[serde(rename = "class")]
    pub approval: PreApproval,
    /// The reviewer who gave it.
    pub reviewer: String,
    /// The reviewer's note, with secrets redacted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The votes of every reviewer who agreed.
    pub votes: Vec<Vote>,
    /// Number of reviewers who must agree.
    pub approvals: u8,
    /// The time it was given.
    pub created_at: Timestamp,
    /// Number of uses in the last 31 days.
    pub used_count: u64,
    /// Total amount used in the last 31 days, if it has a maximum sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub used_sum: Option<f64>,
    /// The state of the pre-approval.
    pub state: PreApprovalState,
    /// The reason it was revoked or expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Escalations<'_> {
    /// Gives a pre-approval: requests that its terms cover are granted without asking a reviewer, until its expiry, its
    /// count or its sum is reached, or it is revoked. If one of its rules requires several approvals, it grants nothing
    /// until other reviewers agree too, with [`Escalations::agree_to_pre_approval`].
    ///
    /// It answers the rules that it names, in their current form. It ends when a policy set is put in force that
    /// changes one of these rules or its reviewers, and when a kill switch stops or an operator suspends an agent it
    /// covers.
    ///
    /// ```
    /// use rulekeep::escalation::{PreApproval, Review};
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
    /// let id = governor.escalations().pre_approve(PreApproval::new(terms, now)?, Review::by("ann"))?;
    ///
    /// let pay = Intent::new("clerk", "pay_invoice", RiskLevel::High, ["payment:transfer"])?
    ///     .with_context("target", "INV-2026-7");
    /// assert_eq!(governor.enforce(&pay)?.decision, Decision::Allow);
    /// assert_eq!(governor.escalations().pre_approvals()[0].used_count, 1);
    /// assert_eq!(governor.enforce(&pay)?.decision, Decision::Escalate, "its count is used up");
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Forbidden`] for a reviewer that one of its rules does not name, or the agent itself;
    /// [`Error::InvalidInput`], which names the term; [`Error::AgentNotFound`]; [`Error::Conflict`] while the agent may
    /// not act, and when 1,000 pre-approvals are in force; [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when
    /// it cannot be recorded.
    #[expect(clippy::needless_pass_by_value, reason = "what is given away is not kept")]
    pub fn pre_approve(self, approval: PreApproval, review: Review) -> Result<PreApprovalId, Error> {
        let inner = self.inner.here()?;
        let now = inner.base.clock.now();
        let approval = PreApproval::new(approval.terms().clone(), now)?;
        let vote = vote(review, now)?;
        let id = PreApprovalId::new(now, inner.base.entropy.bits());
        self.put(approval.terms(), &vote, now, |known, policies| {
            if known.values().filter(|held| held.record.is_live(now)).count() >= MOST_LIVE {
                let message = format!("{MOST_LIVE} pre-approvals are in force; revoke one first");
                return Err(Error::Conflict { message });
            }
            let (rules, approvals) = asked(policies, approval.terms(), &vote.reviewer)?;
            let state = if approvals > 1 { PreApprovalState::Pending } else { PreApprovalState::Active };
            let (approval, votes) = (approval.clone(), vec![vote.clone()]);
            let place = crate::proof::StateDraft::OWN_PLACE;
            Ok(PreApprovalRecord { id, approval, rules, approvals, votes, created_at: now, state, why: None, place })
        })?;
        Ok(id)
    }

    /// Agrees to a pre-approval of another reviewer that requires several approvals.
    ///
    /// # Errors
    ///
    /// The errors of [`Escalations::pre_approve`]; [`Error::Conflict`] when it is not pending, or the same person has
    /// agreed.
    pub fn agree_to_pre_approval(self, id: &PreApprovalId, review: Review) -> Result<PreApprovalState, Error> {
        let inner = self.inner.here()?;
        let now = inner.base.clock.now();
        let vote = vote(review, now)?;
        let conflict = |message: String| Error::Conflict { message };
        let unknown = || conflict(format!("no pre-approval {id} is pending"));
        let terms = inner.approvals.given.lock().get(id).ok_or_else(unknown)?.record.approval.terms().clone();
        self.put(&terms, &vote, now, |known, policies| {
            let held = known.get(id).filter(|held| held.record.is_live(now)).ok_or_else(unknown)?;
            if held.record.state != PreApprovalState::Pending {
                return Err(unknown());
            }
            asked(policies, &terms, &vote.reviewer)?;
            if held.policies != policies.digest() {
                return Err(conflict(format!("{id} was given under another policy set")));
            }
            let mut record = held.record.clone();
            if record.votes.iter().any(|known| seen_as(&known.reviewer) == seen_as(&vote.reviewer)) {
                let message = format!("{:?} approved {id} already; it needs another reviewer", vote.reviewer);
                return Err(conflict(message));
            }
            record.votes.push(vote.clone());
            if record.votes.len() >= usize::from(record.approvals) {
                record.state = PreApprovalState::Active;
            }
            Ok(record)
        })
    }

    /// Revokes a pre-approval: it grants nothing any more. Anybody may revoke one.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] when it is not in force; [`Error::InvalidInput`] for a malformed review;
    /// [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when it cannot be recorded; then it grants nothing until
    /// a restart.
    pub fn revoke(self, id: &PreApprovalId, review: Review) -> Result<(), Error> {
        let approvals = &self.inner.here()?.approvals;
        let Vote { reviewer, note, .. } = vote(review, approvals.base.clock.now())?;
        let note = note.map(|note| format!(": {note}")).unwrap_or_default();
        let said = |error| {
            kill_switch::with_context(
                error,
                &format!("{id} grants nothing any more, but its revocation is lost on a restart"),
            )
        };
        let is_found = std::cell::Cell::new(false);
        let taken = approvals.take_back(|held| {
            is_found.set(is_found.get() || held.record.id == *id);
            (held.record.id == *id).then(|| format!("revoked by {reviewer}{note}"))
        });
        let placed = match taken.map_err(said)? {
            None if is_found.get() => {
                // It grants nothing already, and is recorded once the log is verified.
                approvals.base.log.wait_verified().and_then(|()| approvals.write_taken_back()).map_err(said)?;
                approvals.given.lock().get(id).map(|held| held.record.place)
            }
            placed => placed,
        };
        match placed {
            Some(sequence) => approvals.base.log.settle(sequence).map_err(said),
            None => Err(Error::Conflict { message: format!("no pre-approval {id} is in force") }),
        }
    }

    /// Lists all pre-approvals, oldest first, with their use. Ended ones are listed until they are archived.
    pub fn pre_approvals(self) -> Vec<PreApprovalStanding> {
        let inner = self.inner;
        self.inner.approvals.expire_pre_approvals();
        let now = inner.base.clock.now();
        let records: Vec<PreApprovalRecord> =
            inner.approvals.given.lock().values().map(|held| held.record.clone()).collect();
        // Locks the counters for one pre-approval at a time, because decisions with limits wait for them.
        records.iter().map(|record| standing(record, &mut inner.rules.limits.window(now))).collect()
    }

    /// Enqueues the pre-approval that `next` creates, so that nothing can revoke it in between.
    fn put(
        self,
        terms: &PreApprovalTerms,
        vote: &Vote,
        now: Timestamp,
        next: impl Fn(&std::collections::BTreeMap<PreApprovalId, Held>, &PolicySet) -> Result<PreApprovalRecord, Error>,
    ) -> Result<PreApprovalState, Error> {
        let inner = self.inner;
        inner.base.log.wait_verified()?;
        let cell = terms.agent_id.as_ref().map(|agent| self.inner.roster.registered(agent)).transpose()?;
        self.inner.approvals.is_other_than_agents(terms, &vote.reviewer)?;
        let (sequence, state) = loop {
            let agent = cell.as_ref().map(|cell| cell.read());
            let stops = inner.roster.stops.load();
            self.inner.approvals.may_act(terms, agent.as_deref(), &stops)?;
            let mut meter = inner.rules.limits.local_meter(now);
            meter.hold();
            let mut known = inner.approvals.given.lock();
            // An agent suspended later finds the pre-approval given here, and revokes it.
            if !Arc::ptr_eq(&stops, &inner.roster.stops.load()) {
                continue;
            }
            // Read while the meter is held: a policy set put in force later finds the pre-approval given here.
            let policies = inner.rules.policies.load();
            let mut record = next(&known, &policies)?;
            let cause = format!("approved by {}", vote.reviewer);
            let Some(sequence) =
                inner.base.log.queue().change_unless_stopped(now, change(&record, cause)?, stops.epoch())?
            else {
                continue;
            };
            record.place = sequence;
            let state = record.state;
            known.insert(record.id, Held { record, policies: policies.digest(), is_owed: false });
            inner.approvals.given.note(&known, now);
            break (sequence, state);
        };
        self.inner.approvals.watch_escalations();
        inner.base.log.settle(sequence)?;
        Ok(state)
    }
}

impl Approvals {
    /// Checks that the agent, or the group, may act at all.
    fn may_act(
        &self,
        terms: &PreApprovalTerms,
        agent: Option<&AgentRecord>,
        stops: &KillSwitchTable,
    ) -> Result<(), Error> {
        if let Some(why) = agent.and_then(|agent| stops.refusal(agent)) {
            return conflict(why);
        }
        let is_member = |agent: &&AgentId| {
            let belongs =
                |group| self.roster.registered(agent).is_ok_and(|cell| cell.read().traits().groups.contains(group));
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
        match self.roster.stops.list().into_iter().find(|stop| covers(&stop.scope)) {
            Some(stop) => conflict(format!("the kill switch {} for {} was set by {}", stop.id, stop.scope, stop.by)),
            None => Ok(()),
        }
    }

    /// Checks that the reviewer is not an agent that the pre-approval covers.
    fn is_other_than_agents(&self, terms: &PreApprovalTerms, reviewer: &str) -> Result<(), Error> {
        let is_same = |agent: &AgentId| seen_as(agent.as_str()) == seen_as(reviewer);
        let is_one = match (&terms.agent_id, &terms.group) {
            (Some(agent), _) => is_same(agent),
            (None, Some(group)) => self.roster.ledger.all().iter().any(|cell| {
                let agent = cell.read();
                is_same(&agent.agent_id) && agent.traits().groups.contains(group)
            }),
            (None, None) => false,
        };
        if is_one {
            return Err(Error::Forbidden { message: format!("{reviewer:?} cannot pre-approve its own requests") });
        }
        Ok(())
    }
}

/// The digests of the named rules, and the number of reviewers who must agree. Every rule must name the reviewer.
fn asked(
    policies: &PolicySet,
    terms: &PreApprovalTerms,
    reviewer: &str,
) -> Result<(std::collections::BTreeMap<String, Digest>, u8), Error> {
    let mut rules = std::collections::BTreeMap::new();
    let mut approvals = 1;
    for id in &terms.rules {
        let unasked = || Error::input("rules", format!("the policies in force have no rule {id:?} that escalates"));
        let (need, digest) = policies.need_of(id).zip(policies.rule_digest(id)).ok_or_else(unasked)?;
        let person = folded(reviewer);
        // A reviewer without a list of people is the only person.
        let is_only = need.people.is_empty() && folded(&need.reviewer) == person;
        let is_asked = is_only || need.people.iter().any(|known| folded(known) == person);
        if !is_asked {
            let message = format!("the rule {id:?} escalates to {:?}, not to {reviewer:?}", need.reviewer);
            return Err(Error::Forbidden { message });
        }
        approvals = approvals.max(need.approvals);
        rules.insert(id.clone(), digest);
    }
    Ok((rules, approvals))
}

/// A reviewer's vote, validated.
fn vote(review: Review, now: Timestamp) -> Result<Vote, Error> {
    if review.digest.is_some() {
        return Err(Error::input("digest", "a pre-approval has no digest; omit it"));
    }
    checked_vote(review, true, now)
}

fn standing(record: &PreApprovalRecord, meter: &mut dyn Meter) -> PreApprovalStanding {
    let [count, sum] = {
        let charges = record.charges(PreApprovalUse::default());
        let mut used = charges.iter().map(|charge| meter.used(charge).amount);
        [used.next().unwrap_or(0), used.next().unwrap_or(0)]
    };
    let used_count = u64::try_from(count / ONE).unwrap_or(0);
    let state = match record.state {
        PreApprovalState::Active if used_count >= u64::from(record.approval.terms().count) => PreApprovalState::Spent,
        state => state,
    };
    let first = record.votes.first();
    #[expect(clippy::cast_precision_loss, reason = "for people; what is counted stays whole")]
    let used_sum = record.approval.most().map(|_| sum as f64 / 1e6);
    PreApprovalStanding {
        id: record.id,
        approval: record.approval.clone(),
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

/// Maximum number of pre-approvals in force.
const MOST_LIVE: usize = 1_000;
