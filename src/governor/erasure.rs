//! Erasing evidence.

use super::log::Log;
use super::states::checked_note;
use crate::model::Error;
use crate::proof::EvidenceSelection;

impl Log<'_> {
    /// Erases the evidence of the selected records for good: intents, with their
    /// context, and what decisions on them depended on. Returns how many records
    /// had evidence that is gone now. The records stand, and with them the chain,
    /// checkpoints and proofs; asked for its evidence, such a record answers
    /// [`Error::EvidenceErased`]. `cause` says why, in at most 4,096 characters,
    /// and is kept in the log.
    ///
    /// When it returns, no file of the store's folder has a byte of it left. After
    /// a crash in the middle, all of it is gone once the store was opened again, or
    /// nothing, and then it is not in the log either.
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
    /// [`Error::Conflict`] when some of it must be kept, waits for a person, or counts in a limit: what
    /// a decision used of limits stands in its evidence and is read from there when
    /// the store is opened, so it can be erased 31 days after the decision, which is the
    /// longest that a limit looks back. [`Error::ProofNotFound`];
    /// [`Error::InvalidInput`] for a longer cause or more than 10,000 ids;
    /// [`Error::StorageUnavailable`], [`Error::ChainBroken`]. Nothing is erased after these, but after
    /// [`Error::StorageUnavailable`] that is not known until the store is opened.
    pub fn erase_evidence(self, selection: &EvidenceSelection, cause: &str) -> Result<u64, Error> {
        let cause = checked_note(cause)?;
        if let EvidenceSelection::Records(ids) = selection
            && ids.len() > MOST_IDS
        {
            return Err(Error::input("proofIds", format!("expected at most {MOST_IDS} ids at once")));
        }
        if let Some(asked) = self.governor.pending_in(selection) {
            let message =
                format!("{asked} waits for a person, who answers what its evidence shows; have it answered first");
            return Err(Error::Conflict { message });
        }
        let (retention, now) = (self.governor.inner.retention, self.governor.inner.clock.now());
        self.governor.inner.clock.check()?;
        let erased = self.governor.inner.log.erase(now, selection, &cause, &|time| retention.kept_until(time))?;
        self.governor.forget_observed()?;
        Ok(erased)
    }
}

/// Ids of one erasure.
const MOST_IDS: usize = 10_000;
