//! Writing an export line by line, and continuing one that was cut short.

use std::io::{BufRead, Write};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::check::{Check, Mismatch, Stored};
use super::line::{End, Ends, EntryLine, FORMAT, RecordLine, Start};
use super::read;
use rulekeep_types::{AgentId, Digest, Error, ProofId, Sequence, Timestamp};

/// The range of an export. The default is every record with its evidence.
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
    pub(crate) until: Option<Timestamp>,
    without_evidence: bool,
    pub(crate) entries: bool,
}

impl ExportRange {
    /// Selects every record in the log.
    pub fn all() -> Self {
        Self::default()
    }

    /// Selects the records of one agent only. Such an export has gaps in the chain, so records removed from it are
    /// detected only by its last line.
    #[must_use]
    pub fn of_agent(mut self, agent: AgentId) -> Self {
        self.agent = Some(agent);
        self
    }

    /// Selects only what follows this record, to continue where another export ended.
    #[must_use]
    pub fn after(mut self, proof_id: ProofId) -> Self {
        self.after = Some(proof_id);
        self
    }

    /// Selects only records up to this time, inclusive: the export ends before the first later one, also if the clock
    /// was confirmed to step back after it. Such an export cannot have entries.
    #[must_use]
    pub fn until(mut self, last: Timestamp) -> Self {
        self.until = Some(last);
        self
    }

    /// Leaves out the evidence, which may be confidential. The chain can still be verified.
    #[must_use]
    pub fn without_evidence(mut self) -> Self {
        self.without_evidence = true;
        self
    }

    /// Includes the entries that are not decisions: outcomes, agents, policies, alerts. Only an export of everything
    /// with entries can be imported.
    #[must_use]
    pub fn with_entries(mut self) -> Self {
        self.entries = true;
        self
    }

    /// Returns the first line of the export.
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

/// A summary of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExportReport {
    /// ID of the store that was exported, in hex.
    pub store: String,
    /// The agent that the export is limited to, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The hash of the record before the first one; absent if the export is limited to an agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previous_hash: Option<Digest>,
    /// Number of records in the export.
    pub records: u64,
    /// Number of records without evidence in the export.
    pub without_evidence: u64,
    /// Number of entries that are not decisions.
    pub entries: u64,
    /// The hash of the last record; without records, the hash that precedes the first one.
    pub head_hash: Digest,
    /// The root of the tree over all entries, which a checkpoint states. Absent from an export that lacks some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<Digest>,
    /// The ID of the last record, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<ProofId>,
    /// Number of lines, including the first and the last.
    pub lines: u64,
    /// Size of the export in bytes.
    pub bytes: u64,
}

/// The point after the last whole line of an export that was cut short. It holds the running totals and digest, so
/// that the last line of the completed export covers all of it.
#[derive(Debug, Clone)]
pub struct ExportPoint {
    pub(crate) check: Check,
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
    pub(crate) digest: Sha256,
}

impl ExportPoint {
    /// Reads an export that was cut short, verifying its whole lines like
    /// [`verify_export`](crate::verify_export). `progress` receives the number of lines and bytes read.
    ///
    /// # Errors
    ///
    /// [`Error::ExportBroken`] if a line is invalid or even the first line is incomplete; [`Error::Conflict`] if the
    /// export is complete; [`Error::StorageUnavailable`] if it cannot be read.
    pub fn of(part: &mut dyn BufRead, progress: &mut dyn FnMut(u64, u64)) -> Result<Self, Error> {
        read::read_part(part, progress)
    }

    /// Size of the whole lines in bytes. Truncate the file to this size before continuing the export.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The ID of the last record so far, if there is one.
    pub fn last(&self) -> Option<ProofId> {
        self.check.last
    }

    /// The point before the first line.
    pub(crate) fn new(check: Check) -> Self {
        Self { check, lines: 0, bytes: 0, digest: Sha256::new() }
    }

    /// Counts a line, including its newline.
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
            root: check.root(),
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
    /// Begins an export by writing its first line.
    pub(crate) fn begin(start: &Start, out: &'a mut dyn Write) -> Result<Self, Error> {
        let check = Check::new(start.clone(), None).map_err(unexportable)?;
        let mut exporter = Self::resume(ExportPoint::new(check), out);
        exporter.line(start)?;
        Ok(exporter)
    }

    /// Continues after the last whole line.
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
            root: self.point.check.root(),
            sha256: self.point.sha256(),
        };
        self.line(&end)?;
        self.out.flush().map_err(unwritable)?;
        Ok(self.point.report())
    }

    fn line(&mut self, line: &impl Serialize) -> Result<(), Error> {
        self.text.clear();
        serde_json::to_writer(&mut self.text, line).map_err(|error| unwritable(error.into()))?;
        self.text.push(b'\n');
        self.out.write_all(&self.text).map_err(unwritable)?;
        self.point.add(&self.text);
        Ok(())
    }
}

fn unwritable(error: std::io::Error) -> Error {
    Error::storage("cannot write the export").caused_by(error)
}

/// The error for a log that is not sound.
fn unexportable(Mismatch { expected, found }: Mismatch) -> Error {
    Error::ChainBroken { message: format!("expected {expected}, found {found}; verify the log") }
}
