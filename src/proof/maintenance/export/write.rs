//! Writing an export line by line, and what is known where a part of one ends.

use std::io::{BufRead, Write};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::check::{Check, Mismatch, Stored};
use super::line::{End, Ends, EntryLine, FORMAT, RecordLine, Start};
use super::read;
use crate::model::{AgentId, Digest, Error, ProofId, Sequence};

/// The range of an export: every record with its evidence, unless said otherwise.
///
/// ```
/// use rulekeep::proof::ExportRange;
///
/// let range = ExportRange::all().of_agent("support-1".parse()?).without_evidence();
/// # Ok::<(), rulekeep::intent::InvalidValue>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ExportRange {
    pub(crate) agent: Option<AgentId>,
    pub(crate) after: Option<ProofId>,
    without_evidence: bool,
    pub(crate) entries: bool,
}

impl ExportRange {
    /// Every record in the log.
    pub fn all() -> Self {
        Self::default()
    }

    /// The records of one agent only. What was taken out of such an export is
    /// not shown by the chain, for it has gaps; by its last line alone.
    #[must_use]
    pub fn of_agent(mut self, agent: AgentId) -> Self {
        self.agent = Some(agent);
        self
    }

    /// Only what stands behind this record: the export goes on where another
    /// one ended.
    #[must_use]
    pub fn after(mut self, proof_id: ProofId) -> Self {
        self.after = Some(proof_id);
        self
    }

    /// Leaves out the evidence, which may hold what not everybody may see. The
    /// chain is complete all the same.
    #[must_use]
    pub fn without_evidence(mut self) -> Self {
        self.without_evidence = true;
        self
    }

    /// Includes the entries that are no decisions: outcomes, agents, policies,
    /// alerts. Only such an export of everything can be imported.
    #[must_use]
    pub fn with_entries(mut self) -> Self {
        self.entries = true;
        self
    }

    /// The first line of the export.
    pub(crate) fn start(&self, store: String, first: Sequence, previous: Digest) -> Start {
        Start {
            manifest: super::line::Begins::Start,
            format: FORMAT,
            store,
            previous_hash: self.agent.is_none().then_some(previous),
            agent_id: self.agent.clone(),
            first,
            evidence: !self.without_evidence,
            entries: self.entries,
            made_by: format!("rulekeep {}", env!("CARGO_PKG_VERSION")),
        }
    }
}

/// The contents of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExportReport {
    /// The store that it was made from.
    pub store: String,
    /// The agent that it is limited to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The hash of the record before the first one; absent where it is limited to an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_hash: Option<Digest>,
    /// The number of records.
    pub records: u64,
    /// The number of records without evidence beside them.
    pub without_evidence: u64,
    /// The number of entries that are no decisions.
    pub entries: u64,
    /// The hash of the last record; without any, what the first would have to name.
    pub head_hash: Digest,
    /// The last record, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<ProofId>,
    /// Its size in lines, the first and the last counted.
    pub lines: u64,
    /// Its size in bytes.
    pub bytes: u64,
}

/// The place where an export that was cut short ends: behind its last whole line.
///
/// It holds what the lines so far add up to, so that the line at the end of the
/// whole covers all of it.
#[derive(Debug, Clone)]
pub struct ExportPoint {
    pub(crate) check: Check,
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
    pub(crate) digest: Sha256,
}

impl ExportPoint {
    /// Reads an export that was cut short, checking its whole lines as
    /// [`verify_export`](crate::proof::verify_export) does. `progress` gets lines and
    /// bytes.
    ///
    /// # Errors
    ///
    /// [`Error::ExportBroken`] when a line does not hold, or not even the first
    /// is whole; [`Error::Conflict`] when the export is complete.
    pub fn of(part: &mut dyn BufRead, progress: &mut dyn FnMut(u64, u64)) -> Result<Self, Error> {
        read::read_part(part, progress)
    }

    /// The size of the whole lines in bytes. What stands behind them is to be cut off
    /// before the export goes on there.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The last record that is there.
    pub fn last(&self) -> Option<ProofId> {
        self.check.last
    }

    /// Before the first line.
    pub(crate) fn new(check: Check) -> Self {
        Self { check, lines: 0, bytes: 0, digest: Sha256::new() }
    }

    /// Counts a line, with its newline.
    pub(crate) fn add(&mut self, line: &[u8]) {
        self.lines += 1;
        self.bytes += line.len() as u64;
        self.digest.update(line);
    }

    /// The digest of all lines so far.
    pub(crate) fn sha256(&self) -> Digest {
        Digest::new(self.digest.clone().finalize().into())
    }

    pub(crate) fn report(&self) -> ExportReport {
        let check = &self.check;
        ExportReport {
            store: check.start.store.clone(),
            agent_id: check.start.agent_id.clone(),
            previous_hash: check.start.previous_hash,
            records: check.records,
            without_evidence: check.without_evidence,
            entries: check.entries,
            head_hash: check.head,
            last: check.last,
            lines: self.lines,
            bytes: self.bytes,
        }
    }
}

/// Writes an export.
pub(crate) struct Exporter<'a> {
    out: &'a mut dyn Write,
    point: ExportPoint,
    text: Vec<u8>,
    stored: Stored,
}

impl<'a> Exporter<'a> {
    /// Begins an export.
    pub(crate) fn begin(start: &Start, out: &'a mut dyn Write) -> Result<Self, Error> {
        let check = Check::new(start.clone()).map_err(unexportable)?;
        let mut exporter = Self::resume(ExportPoint::new(check), out);
        exporter.line(start)?;
        Ok(exporter)
    }

    /// Goes on behind the last whole line.
    pub(crate) fn resume(point: ExportPoint, out: &'a mut dyn Write) -> Self {
        Self { out, point, text: Vec::new(), stored: Stored::default() }
    }

    pub(crate) fn start(&self) -> &Start {
        &self.point.check.start
    }

    pub(crate) fn record(&mut self, line: &RecordLine<'_>) -> Result<(), Error> {
        self.point.check.record(line, &mut self.stored).map_err(unexportable)?;
        self.line(line)
    }

    pub(crate) fn entry(&mut self, line: &EntryLine<'_>) -> Result<(), Error> {
        self.point.check.entry(line).map_err(unexportable)?;
        self.line(line)
    }

    /// Writes the last line.
    pub(crate) fn end(mut self) -> Result<ExportReport, Error> {
        let end = End {
            manifest: Ends::End,
            records: self.point.check.records,
            entries: self.point.check.entries,
            head_hash: self.point.check.head,
            sha256: self.point.sha256(),
        };
        self.line(&end)?;
        self.out.flush().map_err(|error| unwritable(&error))?;
        Ok(self.point.report())
    }

    fn line(&mut self, line: &impl Serialize) -> Result<(), Error> {
        self.text.clear();
        serde_json::to_writer(&mut self.text, line).map_err(|error| unwritable(&error.into()))?;
        self.text.push(b'\n');
        self.out.write_all(&self.text).map_err(|error| unwritable(&error))?;
        self.point.add(&self.text);
        Ok(())
    }
}

fn unwritable(error: &std::io::Error) -> Error {
    Error::storage(format!("cannot write the export: {error}"))
}

/// The log itself does not hold.
fn unexportable(Mismatch { expected, found }: Mismatch) -> Error {
    Error::ChainBroken { message: format!("expected {expected}, found {found}; verify the log") }
}
