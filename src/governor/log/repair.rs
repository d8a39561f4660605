//! Repair: replacing a broken log by a new one, with options.

use std::path::Path;

use crate::governor::state_kinds::Repairing;
use crate::model::{Error, RepairReport};
use crate::proof;
use crate::store::{KeptCheckpoint, StoreId};
use crate::system::{Clock, Entropy, SystemClock, SystemEntropy};

/// Options of a repair.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct RepairOptions {
    suspend_all: bool,
    checkpoint: Option<KeptCheckpoint>,
}

impl RepairOptions {
    /// Suspends every agent that is taken over, to be resumed one by one. Use it when entries are missing, because they
    /// may have suspended agents.
    pub fn suspend_all(mut self) -> Self {
        self.suspend_all = true;
        self
    }

    /// Returns whether every agent is suspended.
    pub(crate) const fn suspends_all(&self) -> bool {
        self.suspend_all
    }

    /// Compares the broken log with a checkpoint that was stored elsewhere, signed by `key`. The checkpoint confirms
    /// the entries it covers; a log that contradicts it counts as broken.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for a checkpoint that cannot be read or is not signed by the key.
    #[cfg(feature = "checkpoints")]
    pub fn checkpoint(mut self, note: &str, key: &crate::checkpoint::VerifierKey) -> Result<Self, Error> {
        let kept = crate::governor::log::checkpoints::opened(note, key)?;
        self.checkpoint = Some(KeptCheckpoint::handed_in(kept.size(), &kept.root()));
        Ok(self)
    }
}

/// Replaces a broken log, one that is damaged, tampered with or missing entries, by a new one.
///
/// The broken log is kept byte for byte in a folder `damaged-<time>` inside the store's folder. Opened by itself, that
/// folder answers queries as far as it can be read. The first entries of the new log name the last valid entry and the
/// position of the break, and take over the agents and the policy set in force.
///
/// # Entries that are trusted
///
/// An entry before the break is trusted if something else confirms it: `HEAD`, `CHECKPOINT` and the index in the
/// folder, or a checkpoint stored elsewhere (`RepairOptions::checkpoint`). One of these from after the break confirms
/// the entries before it if each damaged entry differs by at most one bit. [`RepairReport::first_unconfirmed`] names
/// the first entry that nothing confirms.
///
/// Unconfirmed entries and entries after the break are used only where they restrict:
///
/// - Agents suspended or retired there stay so, with the lowest score seen. An agent known only from there is
///   suspended.
/// - A kill switch set on either side stays in force unless a confirmed entry lifts it.
/// - Every agent is suspended if one of the confirming sources contradicts the entries, or if a policy set was put in
///   force in untrusted entries or none is known. In the last case everything is denied until a policy set is loaded.
///
/// # Other states
///
/// - The trust model is taken over from confirmed entries.
/// - Webhook endpoints are taken over with their secrets; one removed or disabled after the break receives nothing.
///   Endpoints and named cursors start at the beginning of the new log and skip what they had not read of the broken
///   one.
/// - Pins and overrides of tools are taken over. For a tool pinned or overridden after the break, every call is at
///   least HIGH until that is repeated.
/// - Pending escalations end, with a reason, and open tasks end. Pre-approvals are not taken over. Rate-limit counters start at zero.
///
/// After a power failure the folder holds the old log, the new log, or a state that the next call completes; until
/// then, nothing else opens it.
///
/// ```no_run
/// let report = rulekeep::maintenance::repair("governance", &rulekeep::maintenance::RepairOptions::default())?;
/// println!("{} records hold; all is kept in {}", report.records, report.kept);
/// # Ok::<(), rulekeep::Error>(())
/// ```
///
/// # Errors
///
/// [`Error::Conflict`] for a log that is not broken, or is frozen; [`Error::StorageUnavailable`] when the folder is not
/// a store, is open in a governor, or cannot be read or written.
pub fn repair(folder: impl AsRef<Path>, options: &RepairOptions) -> Result<RepairReport, Error> {
    let fresh = StoreId(SystemEntropy.bits().to_le_bytes());
    let checkpoint = options.checkpoint.clone();
    proof::repair(folder.as_ref(), SystemClock.now(), fresh, checkpoint, &|found| {
        Repairing::of(found, options.suspends_all())
    })
}
