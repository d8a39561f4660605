//! Erasing evidence: first the entry that records it, then the bytes.

use std::io;
use std::path::Path;

use crate::ProofLog;
use crate::journal::entry::ErasureEntry;
use crate::journal::erase::{Covered, Erasure, EvidenceSelection};
use crate::journal::evidence;
use crate::journal::read_error;
use crate::parts::Parts;
use crate::queue::Refusal;
use crate::store::{self, Kind};
use rulekeep_types::{Error, LONGEST_LIMIT_WINDOW, Timestamp};

impl ProofLog {
    /// Erases the evidence of all selected records. Returns the number of records that had evidence. `kept_until`
    /// returns the time until which the evidence of a record must be kept, given the time of the record.
    pub fn erase(
        &self,
        now: Timestamp,
        selection: &EvidenceSelection,
        cause: &str,
        kept_until: &dyn Fn(Timestamp) -> Option<Timestamp>,
    ) -> Result<u64, Error> {
        let _turn = self.parts.maintenance.erasing();
        if let Some(refusal) = self.refusal() {
            return Err(refusal);
        }
        self.flush()?;
        if let EvidenceSelection::Records(ids) = selection {
            for id in ids {
                self.record(id)?;
            }
        }
        let entries = self.parts.index.applied().entries;
        let erasure = Erasure { selection: selection.clone(), entries };
        let mut covered = Covered::default();
        covered.add(&erasure);

        let (mut count, mut young, mut counting) = (0_u64, Held::default(), Held::default());
        let looked = covered.each_kept(&self.parts.journal.reader, &mut |time, stored| {
            count += 1;
            if let Some(until) = kept_until(time).filter(|until| now < *until) {
                young.add(until);
            }
            let still_counts = Timestamp::from_millis(time.as_millis().saturating_add(LONGEST_LIMIT_WINDOW));
            if now < still_counts && evidence::charges(stored).is_some_and(|charges| !charges.is_empty()) {
                counting.add(still_counts);
            }
        });
        looked.map_err(read_error)?;
        young.refuse("must be kept")?;
        counting.refuse("counts in limits and is needed")?;
        // Copies made after a crash may hold evidence that belongs to no record.
        let copies = self.parts.journal.files.list(Path::new(store::RECOVERED)).map_err(read_error)?;
        if count == 0 && copies.is_empty() {
            return Ok(0);
        }

        let entry = |at| ErasureEntry::new(&erasure, cause, at);
        let (sequence, _) = self.parts.queue.entry(now, Kind::Erasure, None, entry)?;
        self.parts.queue.hurry();
        if !self.parts.journal.progress.wait_durable(sequence) {
            return Err(self.parts.queue.refused("the writer stopped"));
        }
        // From here on, missing or partial evidence is explained by the erasure.
        self.parts.journal.erasures.add(sequence, &erasure);
        carry_out(&self.parts, &covered).map_err(|refusal| refusal.error())?;
        self.parts.index.recent.clear();
        Ok(count)
    }
}

/// Carries out all erasures again if evidence that they cover exists, for example after restoring a backup. Returns
/// the number of records concerned. A log that cannot be written leaves this to its next open, an unverified one to
/// its background verification.
pub(super) fn carry_out_again(parts: &Parts) -> io::Result<u64> {
    let _turn = parts.maintenance.erasing();
    if parts.maintenance.believes() || !matches!(parts.queue.refusal(), None | Some(Refusal::Frozen(_))) {
        return Ok(0);
    }
    let covered = parts.journal.erasures.covered();
    // Erasures that were in progress are done by now.
    let found = covered.count_kept(&parts.journal.reader)?;
    if found > 0 {
        carry_out(parts, &covered).map_err(|refusal| io::Error::other(refusal.error()))?;
        parts.maintenance.note_erased_evidence(found);
    }
    Ok(found)
}

fn carry_out(parts: &Parts, covered: &Covered) -> Result<(), Refusal> {
    let entries = parts.journal.erasures.entries();
    covered.carry_out(&parts.journal.reader, &*parts.journal.files, entries).map_err(|error| {
        // The state on disk is unknown; the next open carries the erasure out.
        let refusal = Refusal::Failed(format!("erasing evidence: {error}"));
        parts.queue.refuse(refusal.clone());
        refusal
    })
}

/// Records whose evidence must not be erased yet.
#[derive(Default)]
struct Held {
    count: u64,
    until: Option<Timestamp>,
}

impl Held {
    fn add(&mut self, until: Timestamp) {
        self.count += 1;
        self.until = self.until.max(Some(until));
    }

    fn refuse(&self, why: &str) -> Result<(), Error> {
        let Some(until) = self.until else { return Ok(()) };
        let message =
            format!("the evidence of {} of the selected records {why} until {until}; nothing was erased", self.count);
        Err(Error::Conflict { message })
    }
}
