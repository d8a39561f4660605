//! The checks of an export from line to line, used for writing and for reading.

use super::line::{End, EntryLine, FORMAT, RecordLine, Start};
use crate::journal::entry::Entry;
use crate::journal::evidence;
use crate::journal::record::CanonicalRecord;
use crate::store::Frontier;
use rulekeep_types::{Digest, ProofId, Sequence, Timestamp};

/// A line that differs from what is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mismatch {
    pub(crate) expected: String,
    pub(crate) found: String,
}

impl Mismatch {
    pub(crate) fn new(expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { expected: expected.into(), found: found.into() }
    }
}

/// The state after the lines so far.
#[derive(Debug, Clone)]
pub(crate) struct Check {
    pub(crate) start: Start,
    pub(crate) records: u64,
    pub(crate) entries: u64,
    pub(crate) without_evidence: u64,
    /// The hash of the last record.
    pub(crate) head: Digest,
    pub(crate) last: Option<ProofId>,
    last_time: Option<Timestamp>,
    /// The tree over the entries, if the export has all of them.
    tree: Option<Frontier>,
    /// The size and root that the tree must have at that size.
    known: Option<(u64, Digest)>,
    /// The lowest sequence that may follow.
    pub(crate) next: u64,
}

/// The stored bytes of a record, in buffers reused from line to line.
#[derive(Default)]
pub(crate) struct Stored {
    /// The bytes that are hashed.
    pub(crate) body: Vec<u8>,
    pub(crate) evidence: Vec<u8>,
}

impl Check {
    /// Begins the checks of an export. `known` is a size and root of the log's tree from a checkpoint.
    pub(crate) fn new(start: Start, known: Option<(u64, Digest)>) -> Result<Self, Mismatch> {
        if start.format != FORMAT {
            return Err(Mismatch::new(format!("an export of format {FORMAT}"), format!("format {}", start.format)));
        }
        // If records are left out, the hash links between them cannot be checked.
        if start.agent_id.is_some() != start.previous_hash.is_none() || (start.agent_id.is_some() && start.entries) {
            return Err(Mismatch::new("previousHash, or an agentId and no entries", "neither, or both"));
        }
        let tree = (start.entries && start.first == Sequence::FIRST).then(Frontier::new);
        if known.is_some() && tree.is_none() {
            let expected = "all entries from the first one on, because the checkpoint covers all of them";
            return Err(Mismatch::new(expected, "an export without some"));
        }
        Ok(Self {
            tree,
            known,
            head: start.previous_hash.unwrap_or(Digest::ZERO),
            next: start.first.get(),
            start,
            records: 0,
            entries: 0,
            without_evidence: 0,
            last: None,
            last_time: None,
        })
    }

    /// Checks a record. Leaves its stored bytes in `stored`.
    pub(crate) fn record(&mut self, line: &RecordLine<'_>, stored: &mut Stored) -> Result<(), Mismatch> {
        let record = &line.record;
        self.place(record.id.sequence())?;
        if self.start.agent_id.as_ref().is_some_and(|agent| *agent != record.entity_id) {
            return Err(Mismatch::new(
                "a record of the export's agent",
                format!("one of {:?}", record.entity_id.as_str()),
            ));
        }
        if record.outcome.is_some() {
            return Err(Mismatch::new("a record without its outcome, which is a field of its own", "one with it"));
        }
        stored.body.clear();
        CanonicalRecord::of(record)
            .write(&mut stored.body)
            .map_err(|error| Mismatch::new("a record", error.to_string()))?;
        same("a content of hash", record.hash, crate::store::digest(&stored.body))?;
        if self.start.previous_hash.is_some() {
            same("previousHash", self.head, record.previous_hash)?;
        }
        // Without entries, a confirmed step back of the clock is not visible.
        if let Some(last) = self.last_time.filter(|last| record.timestamp < *last && self.start.entries) {
            return Err(Mismatch::new(format!("a time not before {last}"), record.timestamp.to_string()));
        }
        stored.evidence.clear();
        match &line.evidence {
            Some(_) if !self.start.evidence => return Err(Mismatch::new("no evidence, as the start says", "evidence")),
            Some(evidence) => {
                if evidence.stored(&mut stored.evidence).is_none() {
                    return Err(Mismatch::new("a salt in hex and parts of evidence", "others"));
                }
                same("evidence of hash", record.evidence_hash, evidence::digest(&stored.evidence))?;
            }
            None => self.without_evidence += 1,
        }
        self.records += 1;
        self.head = record.hash;
        self.last = Some(record.id);
        self.last_time = Some(record.timestamp);
        self.next = record.id.sequence().get() + 1;
        self.grow(&record.hash)
    }

    /// Adds an entry to the tree, and compares its root with the one that is known.
    fn grow(&mut self, leaf: &Digest) -> Result<(), Mismatch> {
        let Some(tree) = &mut self.tree else { return Ok(()) };
        tree.push(leaf);
        match self.known {
            Some((size, root)) if size == tree.size() => same("entries of the checkpoint's root", root, tree.root()),
            _ => Ok(()),
        }
    }

    /// The root of the tree over all entries so far.
    pub(crate) fn root(&self) -> Option<Digest> {
        self.tree.as_ref().map(Frontier::root)
    }

    /// Checks an entry that is not a decision.
    pub(crate) fn entry(&mut self, line: &EntryLine<'_>) -> Result<(), Mismatch> {
        let entry = &line.entry;
        if !self.start.entries {
            return Err(Mismatch::new("records alone, as the start says", format!("an entry, {}", entry.kind)));
        }
        self.place(entry.sequence)?;
        match Entry::read(entry.kind, entry.body.as_bytes()) {
            Some(Entry::Clock(clock)) => self.last_time = Some(clock.timestamp),
            Some(_) => {}
            None => {
                return Err(Mismatch::new("an entry that is no decision and can be read", entry.kind.as_str()));
            }
        }
        self.entries += 1;
        self.next = entry.sequence.get() + 1;
        self.grow(&crate::store::digest(entry.body.as_bytes()))
    }

    /// Checks the last line, except the digest.
    pub(crate) fn end(&self, line: &End) -> Result<(), Mismatch> {
        if (line.records, line.entries) != (self.records, self.entries) {
            let expected = format!("{} records and {} entries", self.records, self.entries);
            return Err(Mismatch::new(expected, format!("{} and {}", line.records, line.entries)));
        }
        if let (Some((size, _)), Some(tree)) = (self.known, &self.tree)
            && tree.size() < size
        {
            return Err(Mismatch::new(format!("the {size} entries of the checkpoint"), tree.size().to_string()));
        }
        if let Some(stated) = line.root {
            let root = self.root().ok_or_else(|| Mismatch::new("no root, because entries are left out", "one"))?;
            same("entries of root", root, stated)?;
        }
        same("headHash", self.head, line.head_hash)
    }

    /// Checks that entries are in order, and without gaps if all of them are included.
    fn place(&self, found: Sequence) -> Result<(), Mismatch> {
        let found = found.get();
        if found == self.next || (found > self.next && !self.start.entries) {
            return Ok(());
        }
        let expected = if self.start.entries { "entry" } else { "an entry not before" };
        Err(Mismatch::new(format!("{expected} {}", self.next), format!("entry {found}")))
    }
}

pub(crate) fn same(what: &str, expected: Digest, found: Digest) -> Result<(), Mismatch> {
    if expected == found { Ok(()) } else { Err(Mismatch::new(format!("{what} {expected}"), found.to_string())) }
}
