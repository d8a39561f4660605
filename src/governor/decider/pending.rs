//! Decisions whose commit the caller awaits later.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::governor::Roster;
use crate::model::{Enforcement, Error, ProofId};
use crate::proof::Ticket;

/// A decision whose record is enqueued but may not be durable yet. The verdict cannot be read until it is.
///
/// Block on [`PendingEnforcement::wait`], poll it with [`PendingEnforcement::try_result`], or `.await` it on any async
/// runtime; it needs no runtime of its own and blocks no thread. Dropping it does not undo the decision, which is
/// recorded all the same.
///
/// ```
/// use rulekeep::{Agent, Governor, Intent, RiskLevel};
///
/// let governor = Governor::builder().open_in_memory()?;
/// governor.agents().register(Agent::new("support-1"))?;
/// let intent = Intent::new("support-1", "read_document", RiskLevel::Low, ["document:read"])?;
///
/// // All of them share the writes to disk.
/// let pending = (0..10).map(|_| governor.enforce_pending(&intent)).collect::<Result<Vec<_>, _>>()?;
/// for decision in pending {
///     let verdict = decision.wait()?;
///     assert!(governor.log().record(&verdict.proof_id).is_ok());
/// }
/// # Ok::<(), rulekeep::Error>(())
/// ```
#[must_use = "the verdict is in it"]
pub struct PendingEnforcement {
    // INVARIANT: returned only when the ticket says that its record is durable.
    enforcement: Enforcement,
    ticket: Ticket,
    roster: Arc<Roster>,
}

impl PendingEnforcement {
    pub(crate) fn new(enforcement: Enforcement, ticket: Ticket, roster: &Arc<Roster>) -> Self {
        Self { enforcement, ticket, roster: Arc::clone(roster) }
    }

    /// The verdict once its record is durable, unless it is not in force any more.
    fn settled(&self, settled: Result<(), Error>) -> Result<Enforcement, Error> {
        settled.and_then(|()| self.roster.handed_out(self.enforcement.clone()))
    }

    /// The id of the record. It reveals nothing about the verdict.
    pub fn proof_id(&self) -> ProofId {
        self.enforcement.proof_id
    }

    /// Blocks until the record is durable, and returns the verdict.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when the record could not be written; [`Error::Withdrawn`]
    /// when the agent was stopped or the permit ended meanwhile. Then the action is not allowed.
    pub fn wait(self) -> Result<Enforcement, Error> {
        self.ticket.wait()?;
        self.roster.handed_out(self.enforcement)
    }

    /// Returns the verdict, or the error of [`PendingEnforcement::wait`], without blocking; `None` while the record is
    /// not durable.
    pub fn try_result(&self) -> Option<Result<Enforcement, Error>> {
        self.ticket.look().map(|settled| self.settled(settled))
    }
}

impl Future for PendingEnforcement {
    type Output = Result<Enforcement, Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.ticket.poll(context).map(|settled| self.settled(settled))
    }
}

impl std::fmt::Debug for PendingEnforcement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PendingEnforcement").field("proof_id", &self.enforcement.proof_id).finish_non_exhaustive()
    }
}

const _: fn() = || {
    fn moved_between_threads<T: Send + Sync + Unpin>() {}
    moved_between_threads::<PendingEnforcement>();
};
