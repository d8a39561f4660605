//! Erasing evidence.

use crate::governor::Log;
use crate::governor::states::checked_note;
use crate::model::Error;
use crate::proof::EvidenceSelection;

impl Log<'_> {
    /// Erases the evidence of the selected records permanently: their intents with context, and the details of the
    /// decisions. Returns the number of records whose evidence was erased. The records, the hash chain, checkpoints and
    /// proofs remain; reading the evidence then fails with [`Error::EvidenceErased`]. `cause` says why, in at most
    /// 4,096 characters, and is stored in the log.
    ///
    /// When the call returns, no file in the store's folder contains any of the evidence. After a crash during the
    /// call, reopening the store either completes the erasure, or nothing is erased and the log does not mention it.
    ///
    /// ```
    /// use rulekeep::proof::EvidenceSelection;
    /// use rulekeep::{Error, Governor};
    ///
    /// let governor = Governor::builder().auto_register().open_in_memory()?;
    /// let verdict = governor.enforce_input("support-1", "Summarize the meeting notes")?.enforcement;
    /// let selection = EvidenceSelection::Agent("support-1".parse()?);
    /// assert_eq!(governor.log().erase_evidence(&selection, "asked for by the customer")?, 1);
    /// assert!(matches!(governor.log().evidence(&verdict.proof_id), Err(Error::EvidenceErased { .. })));
    /// assert!(governor.verify()?.valid);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] when some of the evidence is under a minimum lifetime, belongs to a pending escalation, or
    /// is younger than 31 days and counts in a rate limit (the counters are rebuilt from it when the store is opened);
    /// [`Error::ProofNotFound`]; [`Error::InvalidInput`] for a cause that is too long or more than 10,000 ids;
    /// [`Error::StorageUnavailable`]; [`Error::ChainBroken`]. After an error nothing is erased, except that after
    /// [`Error::StorageUnavailable`] the result is only known once the store is reopened.
    pub fn erase_evidence(self, selection: &EvidenceSelection, cause: &str) -> Result<u64, Error> {
        let cause = checked_note(cause)?;
        if let EvidenceSelection::Records(ids) = selection
            && ids.len() > MOST_IDS
        {
            return Err(Error::input("proofIds", format!("expected at most {MOST_IDS} ids at once")));
        }
        if let Some(asked) = self.governor.inner.approvals.pending_in(selection) {
            let message = format!("{asked} is pending, and its reviewer needs the evidence; have it answered first");
            return Err(Error::Conflict { message });
        }
        let (retention, now) = (self.governor.inner.retention, self.governor.inner.base.clock.now());
        self.governor.inner.base.clock.check()?;
        let erased = self.governor.inner.base.log.erase(now, selection, &cause, &|time| retention.kept_until(time))?;
        self.governor.inner.tasks.forget_observed()?;
        Ok(erased)
    }
}

/// Maximum number of ids per erasure.
const MOST_IDS: usize = 10_000;
