//! The journal of a log: the bodies of its entries, the writer that appends them, and the knowledge about those on
//! disk.

pub(super) mod entry;
pub(super) mod erase;
pub(super) mod evidence;
pub(super) mod fields;
pub(super) mod overdue;
pub(super) mod progress;
pub(super) mod record;
pub(super) mod retention;
pub(super) mod used;
pub(super) mod writer;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock, RwLockReadGuard};

use crate::store::{Files, Frame, Kind, Reader, StoreId};
use erase::Erasures;
use overdue::{Lateness, Overdue};
use progress::Progress;
use retention::Retained;
use rulekeep_types::{Breakage, Error, ProofId, Sequence};
use writer::Writer;

/// The journal and the knowledge about it. It owns all of these; only the writer appends.
pub(super) struct JournalPart {
    pub(super) reader: Reader,
    pub(super) store: StoreId,
    pub(super) files: Arc<dyn Files>,
    /// Number of entries on disk, and in the index.
    pub(super) progress: Progress,
    // The holder of the queue's turn locks it while it writes, across I/O; taken before the index's lock. `None` in a
    // broken log, and once the writer has ended.
    pub(super) writer: Mutex<Option<Writer>>,
    /// Files beside the entries that could not be written.
    pub(super) overdue: Overdue,
    /// Number of syncs by the writer.
    pub(super) syncs: AtomicU64,
    // The entries about the log's own past. Held to look or to add.
    past: RwLock<Retained>,
    /// The erasures.
    pub(super) erasures: Arc<Erasures>,
    /// The first break that any check found.
    pub(super) breakage: OnceLock<Breakage>,
}

impl JournalPart {
    pub(super) fn new(
        (reader, store, files): (Reader, StoreId, Arc<dyn Files>),
        entries: u64,
        past: Retained,
        erasures: Arc<Erasures>,
        broken: Option<Breakage>,
        lateness: Lateness,
    ) -> Self {
        let progress = Progress::new(entries);
        let breakage = broken.map_or_else(OnceLock::new, OnceLock::from);
        let (writer, syncs, past) = (Mutex::new(None), AtomicU64::new(0), RwLock::new(past));
        let overdue = Overdue::new(lateness);
        Self { reader, store, files, progress, writer, overdue, syncs, past, erasures, breakage }
    }

    /// The entries about the log's own past.
    pub(super) fn past(&self) -> RwLockReadGuard<'_, Retained> {
        self.past.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an entry about the log's own past.
    pub(super) fn add_past(&self, add: impl FnOnce(&mut Retained)) {
        add(&mut self.past.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns whether the log is known to break at or before an entry.
    pub(super) fn is_broken_at(&self, sequence: u64) -> bool {
        self.breakage.get().is_some_and(|broken| broken.sequence.get() <= sequence)
    }

    /// Fails if the log is broken.
    pub(super) fn check_integrity(&self) -> Result<(), Error> {
        match self.breakage.get() {
            Some(breakage) => Err(Error::ChainBroken { message: breakage.to_string() }),
            None => Ok(()),
        }
    }

    /// Looks at the entry at a sequence; `None` if it cannot be read.
    pub(super) fn look<T>(
        &self,
        sequence: Sequence,
        look: impl FnOnce(&Frame<'_>) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let bytes = self.reader.read(sequence).map_err(read_error)?;
        let frame = bytes.as_deref().and_then(|bytes| Frame::decode(bytes).ok());
        Ok(frame.filter(|frame| frame.sequence == sequence).and_then(|frame| look(&frame)))
    }

    /// Looks at the stored decision with a proof ID.
    pub(super) fn look_at_record<T>(
        &self,
        proof_id: &ProofId,
        look: impl FnOnce(&Frame<'_>) -> Option<T>,
    ) -> Result<T, Error> {
        let found = self.look(proof_id.sequence(), |frame| (frame.kind == Kind::Decision).then(|| look(frame))?)?;
        found.ok_or_else(|| self.not_found(proof_id))
    }

    /// The error for a record that is not in the log.
    pub(super) fn not_found(&self, proof_id: &ProofId) -> Error {
        self.past().not_found(proof_id, &self.reader.start())
    }
}

pub(super) fn read_error(error: std::io::Error) -> Error {
    Error::storage("cannot read the journal").caused_by(error)
}
