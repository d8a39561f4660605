//! Reading the log: records, evidence, and the findings at opening.

#[cfg(feature = "checkpoints")]
pub(crate) mod checkpoints;
pub(crate) mod decision_clock;
pub(crate) mod erasure;
pub(crate) mod export;
pub(crate) mod repair;
pub(crate) mod retention;
pub(crate) mod verification;

use crate::governor::Governor;
use crate::model::{Error, IntentId, Opening, Order, ProofId, ProofRecord};
use crate::proof::{Evidence, ProofQuery};

/// The proof log of a governor, see [`Governor::log`].
#[derive(Debug, Clone, Copy)]
pub struct Log<'a> {
    pub(crate) governor: &'a Governor,
}

impl<'a> Log<'a> {
    /// Iterates over all matching proof records that exist now, in bounded memory. The query's page and page size are
    /// ignored.
    ///
    /// An item is an error when the query is invalid or the index cannot be read, and then it is the last item, or when
    /// a record of a damaged log cannot be read.
    pub fn records(self, query: &ProofQuery) -> impl Iterator<Item = Result<ProofRecord, Error>> + use<'a> {
        self.governor.inner.base.log.records(query)
    }

    /// Iterates over the proof records of an intent, oldest first: one for each time it was decided.
    pub fn of_intent(self, intent_id: IntentId) -> impl Iterator<Item = Result<ProofRecord, Error>> {
        self.records(&ProofQuery::all().intent(intent_id).order(Order::OldestFirst))
    }

    /// Returns a proof record by its id.
    ///
    /// # Errors
    ///
    /// [`Error::ProofNotFound`], [`Error::ProofElsewhere`] for an archived record, [`Error::StorageUnavailable`].
    pub fn record(self, proof_id: &ProofId) -> Result<ProofRecord, Error> {
        self.governor.inner.base.log.record(proof_id)
    }

    /// Returns the evidence of a decision: the inputs it was based on, stored beside its record.
    ///
    /// # Errors
    ///
    /// [`Error::ProofNotFound`], [`Error::ProofElsewhere`] for an archived record, [`Error::EvidenceErased`],
    /// [`Error::StorageUnavailable`].
    pub fn evidence(self, proof_id: &ProofId) -> Result<Evidence, Error> {
        self.governor.inner.base.log.evidence(proof_id)
    }

    /// The findings when the store was opened: whether it is new, and whether a crash had cut a write short.
    pub fn opening(self) -> &'a Opening {
        &self.governor.inner.opening
    }

    /// Waits until every earlier decision and report is on disk; useful with
    /// [`Durability::Buffered`](crate::Durability::Buffered).
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when an entry could not be written.
    pub fn flush(self) -> Result<(), Error> {
        self.governor.inner.base.log.flush()
    }
}
