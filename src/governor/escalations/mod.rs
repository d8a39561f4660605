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
//! | `seen.rs` | what the evidence still tells of what was asked |
//! | `restore.rs` | opening a store, watching what is due |

mod ask;
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
mod seen;

pub use claim::EscalationAnswer;
pub(super) use digest::plain;
pub(super) use preapproval_table::PreApprovals;
pub use preapprovals::PreApprovalStanding;
pub(super) use queue::Queue;
pub(super) use restore::KEY_PREFIX;

use std::sync::Arc;

use self::queue::{Listed, Open};
use self::seen::AskedEvidence;
use super::{Governor, checked_agent_id};
use crate::model::{
    Error, Escalation, EscalationId, EscalationPage, EscalationQuery, EscalationRecord, EscalationState,
};
use crate::proof::{ChangeDraft, InputEvidence, StateDraft};

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
        let open = self.governor.inner.escalations.all_open();
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
        let open = self.governor.inner.escalations.all_open();
        open.iter().filter(|open| open.lock().policy_digest != in_force).map(|_| 1).sum()
    }

    /// A page of escalations, newest first.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidQuery`] that names the parameter; [`Error::StorageUnavailable`], [`Error::ChainBroken`].
    pub fn list(self, query: &EscalationQuery) -> Result<EscalationPage, Error> {
        const MAX_PAGE_SIZE: u64 = 200;
        let (page, page_size) = (query.page.unwrap_or(1), query.page_size.unwrap_or(50));
        if page == 0 {
            return Err(Error::query("page", "expected a page from 1 on"));
        }
        if !(1..=MAX_PAGE_SIZE).contains(&page_size) {
            return Err(Error::query("pageSize", format!("expected 1 to {MAX_PAGE_SIZE}")));
        }
        let agent = query.agent_id.as_deref().map(checked_agent_id).transpose()?;
        self.governor.end_what_is_due();
        let skip = (page - 1).saturating_mul(page_size);
        let (total, found) = self.governor.inner.escalations.page(query.state, agent.as_ref(), skip, page_size);
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
        if let Some(open) = self.inner.escalations.open(id) {
            return Ok(open);
        }
        let record = self.escalation(id)?;
        let how = if record.claimed_at.is_some() { "approved and taken up" } else { record.state.as_str() };
        let why = record.why.map(|why| format!(": {why}")).unwrap_or_default();
        Err(Error::Conflict { message: format!("{id} is {how} already{why}") })
    }

    fn escalation(&self, id: EscalationId) -> Result<EscalationRecord, Error> {
        let unknown = || Error::ProofNotFound { proof_id: id.to_string() };
        let listed = self.inner.escalations.listed(id).ok_or_else(unknown)?;
        self.whole(&listed)
    }

    /// All that the log keeps of one.
    fn whole(&self, listed: &Listed) -> Result<EscalationRecord, Error> {
        let id = listed.id;
        if let Some(open) = self.inner.escalations.open(id) {
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
                record.shown(Ok((evidence.intent, text)))
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
    let value = serde_json::to_string(&standing)
        .map_err(|error| Error::Internal { message: format!("an escalation does not serialise: {error}") })?;
    Ok(StateDraft::new(key(record.id()), value).with_own_place())
}
