//! People in the loop: what waits for them, what they said, and what comes of it.
//!
//! An ESCALATE decision and the escalation that it opens stand side by side in the log, as do the record that
//! answers it and the ESCALATED outcome of the first. What is open is in memory; the rest is read from the log.
//!
//! | file | subject |
//! |---|---|
//! | `queue.rs` | what is open, and where the rest is to be read |
//! | `digest.rs` | what an approval binds to |
//! | `ask.rs` | a decision that asks, put in order |
//! | `review.rs` | what people say |
//! | `grant.rs` | what an approval grants by what holds by then |
//! | `resolve.rs` | the record that answers |
//! | `end.rs` | ending what is due, stopped or answered otherwise |
//! | `claim.rs` | taking up what was approved, waiting for it |
//! | `preapprovals.rs` | pre-approvals: giving, listing and revoking them |
//! | `preapproval_table.rs` | the requests that a pre-approval covers, and the changes that end it |
//! | `asked_evidence.rs` | what the evidence still tells of what was asked |
//! | `restore.rs` | opening a store, watching what is due |

mod ask;
mod asked_evidence;
mod claim;
mod digest;
mod end;
mod grant;
mod preapproval_table;
mod preapprovals;
mod queue;
mod resolve;
mod restore;
mod review;

pub use claim::EscalationAnswer;
pub(super) use digest::plain;
use preapproval_table::PreApprovals;
pub use preapprovals::PreApprovalStanding;
use queue::Queue;
pub(super) use restore::KEY_PREFIX;

use std::sync::{Arc, OnceLock};

use self::asked_evidence::AskedEvidence;
use self::queue::{Listed, Open};
use super::background::Background;
use super::{Governor, checked_agent_id, states};
use crate::model::{
    Error, Escalation, EscalationId, EscalationPage, EscalationQuery, EscalationRecord, EscalationState,
};
use crate::proof::{ChangeDraft, InputEvidence, ProofQuery, StateDraft};

/// What reviewers are asked for, and what they agreed to beforehand.
#[derive(Default)]
pub(super) struct Approvals {
    pub(super) queue: Queue,
    pub(super) given: PreApprovals,
    /// Ends escalations that are due; started with the first.
    pub(super) watch: OnceLock<Option<Background>>,
}

impl Approvals {
    /// Whether the thread that ends escalations should run and does not.
    pub(super) fn is_unwatched(&self) -> bool {
        self.watch.get().is_some_and(|watch| !watch.as_ref().is_some_and(Background::is_alive))
    }
}

/// The escalations of a governor.
///
/// ```
/// use rulekeep::escalation::Review;
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
/// let intent = Intent::new("clerk", "pay_invoice", RiskLevel::High, ["payment:transfer"])?.with_context("amount", 40);
/// assert_eq!(governor.enforce(&intent)?.decision, Decision::Escalate);
///
/// let asked = governor.escalations().pending()?.remove(0);
/// governor.escalations().approve(asked.id, Review::by("ann").note("order 8812 was seen"))?;
/// let granted = governor.escalations().claim(asked.id, &intent)?;
/// assert_eq!(granted.decision, Decision::Allow);
/// assert!(governor.escalations().claim(asked.id, &intent).is_err(), "it grants once");
/// # Ok::<(), rulekeep::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Escalations<'a> {
    pub(super) governor: &'a Governor,
}

impl Escalations<'_> {
    /// All that wait for a person, the oldest first.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`], [`Error::ChainBroken`].
    pub fn pending(self) -> Result<Vec<Escalation>, Error> {
        self.governor.end_what_is_due();
        let open = self.governor.inner.approvals.queue.all_open();
        let records = open.iter().map(|open| open.lock().clone());
        records
            .filter(|record| record.state == EscalationState::Pending)
            .map(|record| self.governor.shown(record))
            .collect()
    }

    /// How many of those that wait, or are approved and not taken up, were asked under other policies than those in force:
    /// what [`Policies::load`](crate::handle::Policies::load) left behind. None of them can be approved or taken up
    /// while that is so.
    pub fn left_behind(self) -> u64 {
        self.governor.end_what_is_due();
        let in_force = self.governor.inner.policies.load().digest();
        let open = self.governor.inner.approvals.queue.all_open();
        open.iter().filter(|open| open.lock().policy_digest != in_force).map(|_| 1).sum()
    }

    /// A page of escalations, newest first.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidQuery`] that names the parameter; [`Error::StorageUnavailable`], [`Error::ChainBroken`].
    pub fn list(self, query: &EscalationQuery) -> Result<EscalationPage, Error> {
        let (page, page_size) = (query.page.unwrap_or(1), query.page_size.unwrap_or(50));
        ProofQuery::all().page(page).page_size(page_size).checked()?;
        let agent = query.agent_id.as_deref().map(checked_agent_id).transpose()?;
        self.governor.end_what_is_due();
        let skip = (page - 1).saturating_mul(page_size);
        let (total, found) = self.governor.inner.approvals.queue.page(query.state, agent.as_ref(), skip, page_size);
        let items = found
            .into_iter()
            .map(|listed| self.governor.shown(self.governor.whole(&listed)?))
            .collect::<Result<_, Error>>()?;
        let has_more = skip.saturating_add(page_size) < total;
        Ok(EscalationPage { items, total, page, page_size, has_more })
    }

    /// An escalation by its id.
    ///
    /// # Errors
    ///
    /// [`Error::ProofNotFound`]; [`Error::StorageUnavailable`], [`Error::ChainBroken`].
    pub fn get(self, id: EscalationId) -> Result<Escalation, Error> {
        self.governor.end_if_due(id);
        self.governor.shown(self.governor.escalation(id)?)
    }
}

impl Governor {
    /// One that is open.
    fn open_escalation(&self, id: EscalationId) -> Result<Arc<Open>, Error> {
        if let Some(open) = self.inner.approvals.queue.open(id) {
            return Ok(open);
        }
        let record = self.escalation(id)?;
        let how = if record.claimed_at.is_some() { "approved and taken up" } else { record.state.as_str() };
        let why = record.why.map(|why| format!(": {why}")).unwrap_or_default();
        Err(Error::Conflict { message: format!("{id} is {how} already{why}") })
    }

    fn escalation(&self, id: EscalationId) -> Result<EscalationRecord, Error> {
        let unknown = || Error::ProofNotFound { proof_id: id.to_string() };
        let listed = self.inner.approvals.queue.listed(id).ok_or_else(unknown)?;
        self.whole(&listed)
    }

    /// All that the log keeps of one.
    fn whole(&self, listed: &Listed) -> Result<EscalationRecord, Error> {
        let id = listed.id;
        if let Some(open) = self.inner.approvals.queue.open(id) {
            return Ok(open.lock().clone());
        }
        let value = self.inner.log.state_at(listed.place, &key(id))?;
        serde_json::from_slice(&value)
            .map_err(|error| Error::ChainBroken { message: format!("{id} cannot be read: {error}; verify the log") })
    }

    /// The escalation with what is kept of its intent.
    fn shown(&self, record: EscalationRecord) -> Result<Escalation, Error> {
        self.inner.log.catch_up()?;
        // One that cannot be read keeps nobody from the others.
        Ok(match self.asked_evidence(&record)? {
            AskedEvidence::Whole(evidence) => {
                let text = evidence.input.and_then(InputEvidence::into_text);
                let task = evidence.detail.get("task").cloned();
                record.shown(Ok((evidence.intent, text, task)))
            }
            AskedEvidence::Elsewhere(why) | AskedEvidence::Lost(why) => record.shown(Err(why)),
        })
    }
}

/// The state of one that ends with a repair of the log; none where it had ended before.
pub(super) fn ended_by(record: &EscalationRecord, why: &str) -> Result<Option<StateDraft>, Error> {
    if !queue::is_open(record) {
        return Ok(None);
    }
    let ended = EscalationRecord {
        state: EscalationState::Expired,
        why: Some(why.to_owned()),
        // What approved it is no record of the new log, and grants nothing there.
        resolution: None,
        grant: None,
        ..record.clone()
    };
    state_of(&ended).map(Some)
}

fn key(id: EscalationId) -> String {
    format!("{KEY_PREFIX}{id}")
}

/// A state of an escalation, and why it is so.
fn change(record: &EscalationRecord, cause: &str) -> Result<ChangeDraft, Error> {
    Ok(ChangeDraft { state: state_of(record)?, cause: cause.to_owned(), trust: None })
}

/// The state that the log keeps of an escalation; the entry's place is filled in when it is known.
pub(super) fn state_of(record: &EscalationRecord) -> Result<StateDraft, Error> {
    let standing = EscalationRecord { place: StateDraft::OWN_PLACE, ..record.clone() };
    Ok(states::draft(key(record.id()), &standing)?.with_own_place())
}
