//! Escalations: pending requests, the reviewers' votes, and the resulting decisions.
//!
//! The log contains an ESCALATE decision next to the escalation that it opens, and the record that resolves it next to
//! the ESCALATED outcome of the first record. Open escalations are in memory; others are read from the log.
//!
//! | file | subject |
//! |---|---|
//! | `queue.rs` | open escalations, and the log positions of the others |
//! | `digest.rs` | the digest that an approval is bound to |
//! | `ask.rs` | enqueuing an ESCALATE decision |
//! | `review.rs` | approving and rejecting |
//! | `grant.rs` | the grant of an approval |
//! | `resolve.rs` | the record that resolves an escalation |
//! | `end.rs` | ending expired, stopped or otherwise answered escalations |
//! | `claim.rs` | claiming approvals, and waiting for reviewers |
//! | `preapprovals.rs` | giving, listing and revoking pre-approvals |
//! | `preapproval_table.rs` | the requests that a pre-approval covers, and the changes that end it |
//! | `restore.rs` | restoring escalations from a store, and watching for expiries |

use crate::governor::background::Background;
use crate::governor::keys::{self, Keyed as _};
use crate::governor::{Base, Inner, Intake, Roster, Rules, checked_agent_id, states};
use crate::model::parts::EscalationPageParts;
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

pub use claim::EscalationClaim;
pub(crate) use preapproval_table::PreApprovals;
pub use preapprovals::PreApprovalStanding;
pub(crate) use queue::Queue;

use std::sync::{Arc, OnceLock};

use self::queue::{Listed, Open};
use crate::model::{
    Error, Escalation, EscalationId, EscalationPage, EscalationQuery, EscalationRecord, EscalationState,
};
use crate::proof::{ChangeDraft, Evidence, InputEvidence, Kept, ProofQuery, StateDraft};
use crate::telemetry;

/// Pending requests and pre-approvals.
///
/// Lock order: the repair after a crash, an escalation, an agent, the counters of the limits, the pre-approvals, the
/// log, then the maps of the escalations.
pub(crate) struct Approvals {
    pub(crate) base: Arc<Base>,
    pub(crate) roster: Arc<Roster>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) intake: Arc<Intake>,
    pub(crate) queue: Queue,
    pub(crate) given: PreApprovals,
    /// The thread that ends expired escalations; started with the first one.
    pub(crate) watch: OnceLock<Option<Background>>,
    /// Called once the log is verified and repaired after a crash, if it was not when it was opened.
    pub(crate) mended: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Approvals {
    /// Publishes the number of pending escalations.
    pub(crate) fn publish_pending(&self) {
        telemetry::pending(|| self.queue.pending());
    }

    /// Returns whether the thread that ends escalations should be running but is not.
    pub(super) fn is_unwatched(&self) -> bool {
        self.watch.get().is_some_and(|watch| !watch.as_ref().is_some_and(Background::is_alive))
    }
}

/// The escalations and pre-approvals of a governor, see [`Governor::escalations`](crate::Governor::escalations).
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
    pub(crate) inner: &'a Arc<Inner>,
}

impl Escalations<'_> {
    /// Lists the escalations that await a reviewer, oldest first.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when the log cannot be read.
    pub fn pending(self) -> Result<Vec<Escalation>, Error> {
        self.inner.here()?.approvals.end_what_is_due();
        let open = self.inner.approvals.queue.all_open();
        let records = open.iter().map(|open| open.lock().clone());
        records
            .filter(|record| record.state == EscalationState::Pending)
            .map(|record| self.inner.approvals.shown(record))
            .collect()
    }

    /// Counts the escalations, pending or approved but unclaimed, that were opened under other policies than those in
    /// force, for example before [`Policies::load`](crate::handle::Policies::load). They cannot be approved or claimed
    /// unless those policies are loaded again.
    pub fn left_behind(self) -> u64 {
        self.inner.approvals.end_what_is_due();
        let in_force = self.inner.rules.policies.load().digest();
        let open = self.inner.approvals.queue.all_open();
        open.iter().filter(|open| open.lock().policy_digest != in_force).map(|_| 1).sum()
    }

    /// Lists escalations, newest first, one page at a time.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidQuery`], which names the parameter; [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when
    /// the log cannot be read.
    pub fn list(self, query: &EscalationQuery) -> Result<EscalationPage, Error> {
        let (page, page_size) = (query.page.unwrap_or(1), query.page_size.unwrap_or(50));
        ProofQuery::all().page(page).page_size(page_size).checked()?;
        let agent = query.agent_id.as_deref().map(checked_agent_id).transpose()?;
        self.inner.here()?.approvals.end_what_is_due();
        let skip = (page - 1).saturating_mul(page_size);
        let (total, found) = self.inner.approvals.queue.page(query.state, agent.as_ref(), skip, page_size);
        let items = found
            .into_iter()
            .map(|listed| self.inner.approvals.shown(self.inner.approvals.whole(&listed)?))
            .collect::<Result<_, Error>>()?;
        let has_more = skip.saturating_add(page_size) < total;
        Ok(EscalationPage::from(EscalationPageParts { items, total, page, page_size, has_more }))
    }

    /// Returns an escalation by its id.
    ///
    /// # Errors
    ///
    /// [`Error::ProofNotFound`]; [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when the log cannot be read.
    pub fn get(self, id: EscalationId) -> Result<Escalation, Error> {
        self.inner.here()?.approvals.end_if_due(id);
        self.inner.approvals.shown(self.inner.approvals.escalation(id)?)
    }
}

impl Approvals {
    /// An open escalation; an error says how it ended.
    fn open_escalation(&self, id: EscalationId) -> Result<Arc<Open>, Error> {
        if let Some(open) = self.queue.open(id) {
            return Ok(open);
        }
        let record = self.escalation(id)?;
        let how = if record.claimed_at.is_some() { "approved and claimed" } else { record.state.as_str() };
        let why = record.why.map(|why| format!(": {why}")).unwrap_or_default();
        Err(Error::Conflict { message: format!("{id} is {how} already{why}") })
    }

    fn escalation(&self, id: EscalationId) -> Result<EscalationRecord, Error> {
        let unknown = || Error::ProofNotFound { proof_id: id.to_string() };
        let listed = self.queue.listed(id).ok_or_else(unknown)?;
        self.whole(&listed)
    }

    /// The full state of an escalation, from memory or the log.
    fn whole(&self, listed: &Listed) -> Result<EscalationRecord, Error> {
        let id = listed.id;
        if let Some(open) = self.queue.open(id) {
            return Ok(open.lock().clone());
        }
        let value = self.base.log.state_at(listed.place, &key(id))?;
        serde_json::from_slice(&value)
            .map_err(|error| Error::ChainBroken { message: format!("{id} cannot be read: {error}; verify the log") })
    }

    /// The escalation with the intent from its evidence.
    fn shown(&self, record: EscalationRecord) -> Result<Escalation, Error> {
        self.base.log.catch_up()?;
        // An unreadable escalation must not hide the others.
        Ok(match self.asked_evidence(&record)? {
            AskedEvidence::Whole(evidence) => {
                let text = evidence.input.and_then(InputEvidence::into_text);
                let task = evidence.detail.get("task").cloned();
                record.shown(Ok((evidence.intent, text, task)))
            }
            AskedEvidence::Elsewhere(why) | AskedEvidence::Lost(why) => record.shown(Err(why)),
        })
    }

    /// Reads the evidence without waiting for other entries.
    pub(super) fn asked_evidence(&self, record: &EscalationRecord) -> Result<AskedEvidence, Error> {
        let lost = |why: &str| Ok(AskedEvidence::Lost(why.to_owned()));
        match self.base.log.kept_so_far(&record.proof_id) {
            Ok(Kept::Evidence(evidence)) => Ok(AskedEvidence::Whole(evidence)),
            Ok(Kept::Erased) => lost("its evidence was erased"),
            Ok(Kept::Unreadable) => lost("its evidence cannot be read, or is not what was kept; verify the log"),
            Err(error @ Error::ProofElsewhere { .. }) => Ok(AskedEvidence::Elsewhere(error.to_string())),
            // A crash can leave an escalation whose record was never written.
            Err(Error::ProofNotFound { .. }) => {
                lost("the record of the escalation is not in the log or cannot be read")
            }
            Err(error) => Err(error),
        }
    }
}

/// The evidence of an escalated request.
pub(super) enum AskedEvidence {
    Whole(Box<Evidence>),
    /// The evidence is in an archive or in the log before a repair; the text names the place.
    Elsewhere(String),
    /// The evidence cannot be read anywhere; the text says why.
    Lost(String),
}

/// The error for a request whose evidence cannot be read, so nothing is granted.
pub(super) fn evidence_conflict(record: &EscalationRecord, what: &str, why: &str) -> Error {
    let next = if record.state == EscalationState::Pending { "reject it, or let it expire" } else { "ask again" };
    Error::Conflict { message: format!("{} cannot be {what}: {why}; {next}", record.id()) }
}

/// The state of an escalation that ends with a repair of the log; `None` if it had ended before.
pub(super) fn ended_by(record: &EscalationRecord, why: &str) -> Result<Option<StateDraft>, Error> {
    if !queue::is_open(record) {
        return Ok(None);
    }
    let ended = EscalationRecord {
        state: EscalationState::Expired,
        why: Some(why.to_owned()),
        // The approving record is not in the new log and grants nothing there.
        resolution: None,
        grant: None,
        ..record.clone()
    };
    state_of(&ended).map(Some)
}

fn key(id: EscalationId) -> String {
    keys::Escalations::key(id)
}

/// A state of an escalation, with the cause of the change.
fn change(record: &EscalationRecord, cause: &str) -> Result<ChangeDraft, Error> {
    Ok(ChangeDraft { state: state_of(record)?, cause: cause.to_owned(), trust: None })
}

/// The state that the log stores for an escalation; the entry's position is filled in later.
pub(super) fn state_of(record: &EscalationRecord) -> Result<StateDraft, Error> {
    let standing = EscalationRecord { place: StateDraft::OWN_PLACE, ..record.clone() };
    Ok(states::draft(key(record.id()), &standing)?.with_own_place())
}
