//! Access points for a member of a fleet: permits, shared limits and kill switches by order of the organisation, and the
//! log's tree.

use std::sync::Arc;

use crate::governor::extension::Extension;
use crate::governor::roster::{kill_switch::ordered, permit::Permit};
use crate::governor::rules::shared_limits::SharedLimits;
#[cfg(feature = "checkpoints")]
use crate::model::Digest;
use crate::model::{Error, KillSwitchId, KillSwitchReport, KillSwitchScope};

impl Extension<'_> {
    /// Requires a permit for every decision from now on, until the governor is closed. Without one, requests are denied
    /// with [`DenialClass::NoPermit`](crate::intent::DenialClass), approvals fail, and grants end.
    ///
    /// A kill switch and a suspension take precedence. To require a permit from the opening on, use
    /// [`GovernorBuilder::require_permit`](crate::GovernorBuilder::require_permit).
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] where the clock does not tell the time since boot.
    pub fn require_permit(self) -> Result<(), Error> {
        self.inner().here()?.roster.permits.require(&*self.inner().base.clock)
    }

    /// Replaces the permit in force, also by one that ends earlier.
    pub fn grant_permit(self, permit: Permit) {
        self.inner().roster.permits.grant(permit);
    }

    /// Ends the permit in force, with its offline term.
    pub fn revoke_permit(self) {
        self.inner().roster.permits.revoke();
    }

    /// Returns the permit granted last, also if it has ended; `None` before the first and after a revocation.
    pub fn permit(self) -> Option<Permit> {
        self.inner().roster.permits.permit()
    }

    /// Provides the limits that the governor shares with its organisation: those with `by = "organisation"`. Until then
    /// they count as used up. A later call replaces the provider.
    ///
    /// No lock of the governor is held while a decision waits for [`SharedLimits::take`], except that of its task; an
    /// approval holds that of its escalation.
    pub fn share_limits(self, limits: Arc<dyn SharedLimits>) {
        self.inner().rules.shared.store(Some(Arc::new(limits)));
    }

    /// Stops agents by an order of the governor's organisation, like [`KillSwitch::set`](crate::handle::KillSwitch::set).
    /// The kill switch is recorded as set by `organisation/<by>`, and only [`Extension::lift_kill_switch`] lifts it.
    ///
    /// # Errors
    ///
    /// The errors of [`KillSwitch::set`](crate::handle::KillSwitch::set).
    pub fn set_kill_switch(self, scope: KillSwitchScope, by: &str, note: &str) -> Result<KillSwitchReport, Error> {
        let (by, note) = ordered(by, note)?;
        self.governor.kill_switch().set_by(scope, by, note)
    }

    /// Lifts a kill switch that an order of the governor's organisation set.
    ///
    /// # Errors
    ///
    /// The errors of [`KillSwitch::lift`](crate::handle::KillSwitch::lift); [`Error::Conflict`] also for a kill switch
    /// that was set at this governor.
    pub fn lift_kill_switch(self, id: &KillSwitchId, by: &str, note: &str) -> Result<(), Error> {
        let (by, note) = ordered(by, note)?;
        self.governor.kill_switch().lift_by(id, by, note)
    }

    /// Returns the size and the root of the log's Merkle tree over everything decided and reported so far, which is
    /// verified and on disk then.
    ///
    /// # Errors
    ///
    /// [`Error::ChainBroken`] for a broken log; [`Error::StorageUnavailable`] when it cannot be written.
    #[cfg(feature = "checkpoints")]
    pub fn tree_head(self) -> Result<(u64, Digest), Error> {
        self.wait_until_verified()?;
        self.inner().here()?.base.log.tree_head()
    }

    /// Returns the inclusion proof (RFC 6962) of the entry at `index` in the tree over the first `size` entries. A
    /// record's entry is at [`ProofId::sequence`](crate::proof::ProofId::sequence).
    ///
    /// # Errors
    ///
    /// [`Error::Internal`] for an index or a size that the log does not have; [`Error::ChainBroken`] or
    /// [`Error::StorageUnavailable`] when it cannot be read.
    #[cfg(feature = "checkpoints")]
    pub fn inclusion(self, index: u64, size: u64) -> Result<Vec<Digest>, Error> {
        self.inner().here()?.base.log.inclusion(index, size)
    }
}
