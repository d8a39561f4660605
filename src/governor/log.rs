//! Reading the log: records, evidence, and what was found at opening.

use super::Governor;
use crate::model::{Error, IntentId, Opening, Order, ProofId, ProofRecord};
use crate::proof::{Evidence, ProofQuery};

/// The proof log of a governor. See [`Governor::log`].
#[derive(Debug, Clone, Copy)]
pub struct Log<'a> {
    pub(super) governor: &'a Governor,
}

impl<'a> Log<'a> {
    /// All proof records that match, one after another, in bounded memory: those
    /// that are there now. Page and page size of the query do not count.
    ///
    /// An item is an error when the query is refused or the index cannot be
    /// read, and then it is the last one, or when a record of a damaged log
    /// cannot be read.
    pub fn records(self, query: &ProofQuery) -> impl Iterator<Item = Result<ProofRecord, Error>> + use<'a> {
        self.governor.inner.log.records(query)
    }

    /// The proof records of an intent, the oldest first: each time that it was
    /// decided on.
    pub fn of_intent(self, intent_id: IntentId) -> impl Iterator<Item = Result<ProofRecord, Error>> {
        self.records(&ProofQuery::all().intent(intent_id).order(Order::OldestFirst))
    }

    /// A proof record by its id.
    ///
    /// # Errors
    ///
    /// [`Error::ProofNotFound`].
    pub fn record(self, proof_id: &ProofId) -> Result<ProofRecord, Error> {
        self.governor.inner.log.record(proof_id)
    }

    /// What a decision depended on, as it was kept beside its record.
    ///
    /// # Errors
    ///
    /// [`Error::ProofNotFound`].
    pub fn evidence(self, proof_id: &ProofId) -> Result<Evidence, Error> {
        self.governor.inner.log.evidence(proof_id)
    }

    /// What was found when the store was opened: whether it is new, and whether
    /// a crash had cut a write short.
    pub fn opening(self) -> &'a Opening {
        &self.governor.inner.opening
    }

    /// Waits until everything that was decided and reported before is on disk. Of use with
    /// [`Durability::Buffered`](crate::Durability::Buffered).
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when it could not be written.
    pub fn flush(self) -> Result<(), Error> {
        self.governor.inner.log.flush()
    }
}
