//! Exporting the log.

use std::io::Write;

use super::{EntryLine, Evidence, Exporter, RecordLine};
use crate::ProofLog;
use crate::follow::Fed;
use crate::journal::erase::Subject;
use crate::journal::evidence;
use crate::journal::record::CanonicalRecord;
use crate::store::{Frame, Kind};
use crate::{ExportPoint, ExportRange, ExportReport};
use rulekeep_types::{Error, Sequence, Timestamp};

impl ProofLog {
    /// Exports what is in the log now. `progress` receives the number of exported entries and of all entries.
    pub fn export(
        &self,
        range: &ExportRange,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<ExportReport, Error> {
        if range.entries && range.until.is_some() {
            // The erasure of evidence that is left out may follow only later.
            return Err(Error::input("until", "expected no end of an export with entries"));
        }
        self.parts.catch_up()?;
        let (first, previous) = match &range.after {
            Some(proof_id) => (proof_id.sequence().get() + 1, self.record(proof_id)?.hash),
            // Archived entries are not in the log any more.
            None => (self.parts.journal.reader.start().entries, self.parts.journal.reader.start().head_hash),
        };
        let start = range.start(self.parts.journal.store.to_string(), Sequence::new(first), previous);
        self.export_from(first, range.until, Exporter::begin(&start, out)?, progress)
    }

    /// Continues an export that was cut short.
    pub fn resume_export(
        &self,
        point: ExportPoint,
        out: &mut dyn Write,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<ExportReport, Error> {
        self.parts.catch_up()?;
        let store = self.parts.journal.store.to_string();
        let is_ours = match point.check.last {
            Some(last) => self.record(&last).is_ok_and(|record| record.hash == point.check.head),
            None => true,
        };
        if point.check.start.store != store || !is_ours {
            let message = format!("the export is of another log than that of store {store}");
            return Err(Error::Conflict { message });
        }
        self.export_from(point.check.next, None, Exporter::resume(point, out), progress)
    }

    fn export_from(
        &self,
        first: u64,
        last_time: Option<Timestamp>,
        mut exporter: Exporter<'_>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<ExportReport, Error> {
        let mut until = self.parts.index.applied().entries;
        let total = until.saturating_sub(first);
        let mut feed = self.feed(Some(Sequence::new(first)));
        // Evidence erased meanwhile is left out, so the entry of the erasure has to be included.
        while feed.place() < until || feed.place() < self.parts.journal.erasures.entries() {
            until = until.max(self.parts.journal.erasures.entries());
            match feed.next(None, |frame| self.export_entry(frame, last_time, &mut exporter))? {
                Fed::Entry(written) => {
                    if !written? {
                        break;
                    }
                }
                Fed::Nothing | Fed::Ended => return Err(self.parts.queue.refused("the log was closed")),
            }
            let done = feed.place().saturating_sub(first);
            if done.is_multiple_of(PROGRESS_EVERY) {
                progress(done, total);
            }
        }
        let total = total.max(until.saturating_sub(first));
        progress(total, total);
        exporter.end()
    }

    /// Exports an entry. Returns false if it is a record from after `last_time`.
    fn export_entry(
        &self,
        frame: &Frame<'_>,
        last_time: Option<Timestamp>,
        exporter: &mut Exporter<'_>,
    ) -> Result<bool, Error> {
        let broken = |what| Error::ChainBroken {
            message: format!("{what} of entry {} cannot be read; verify the log", frame.sequence),
        };
        if frame.kind != Kind::Decision {
            if !exporter.start().entries {
                return Ok(true);
            }
            let body = std::str::from_utf8(frame.body).map_err(|_| broken("the body"))?;
            return exporter.entry(&EntryLine::new(frame.sequence, frame.kind, body)).map(|()| true);
        }
        let record = CanonicalRecord::read(frame.body).map_err(|_| broken("the record"))?;
        if last_time.is_some_and(|last| record.timestamp > last) {
            return Ok(false);
        }
        if exporter.start().agent_id.as_ref().is_some_and(|agent| *agent != record.entity_id) {
            return Ok(true);
        }
        // Checked first, because erased evidence may be back in a file, for example after restoring a backup.
        let is_erased = self.parts.journal.erasures.has(Subject::of(&record));
        // Even evidence that is not exported must be sound.
        if !is_erased && evidence::digest(frame.evidence) != record.evidence_hash {
            return Err(broken("the evidence"));
        }
        let evidence = if !is_erased && exporter.start().evidence {
            Some(Evidence::of(frame.evidence).ok_or_else(|| broken("the evidence"))?)
        } else {
            None
        };
        let outcome = self.parts.index.outcome_of(&self.parts.journal, &record.entity_id, frame.sequence)?;
        exporter.record(&RecordLine { record: record.into_record(frame.digest(), None), evidence, outcome })?;
        Ok(true)
    }
}

const PROGRESS_EVERY: u64 = 1024;
