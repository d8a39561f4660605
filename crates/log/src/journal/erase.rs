//! Erasures of evidence. An erasure names records, an agent or a time, and is written to the journal before any byte
//! is erased.
//!
//! Missing evidence is valid if an erasure covers its record, and damage or tampering otherwise.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use super::entry::{Entry, ErasureEntry, kept_under};
use super::evidence::{self, Evidence};
use super::record::CanonicalRecord;
use crate::store::{self, Files, Frame, Kind, Reader};
use rulekeep_types::{AgentId, ProofId, Sequence, Timestamp};

/// Returns the erasures among the states, with the sequences of their entries.
pub(crate) fn of_states<'a>(states: impl IntoIterator<Item = (&'a String, &'a Vec<u8>)>) -> Vec<(Sequence, Erasure)> {
    let erasure = |(key, body): (&String, &'a Vec<u8>)| match kept_under(key)? {
        (sequence, kind @ Kind::Erasure) => match Entry::read(kind, body)? {
            Entry::Erasure(erasure, _) => Some((sequence, erasure)),
            _ => None,
        },
        _ => None,
    };
    states.into_iter().filter_map(erasure).collect()
}

/// The records whose evidence to erase.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EvidenceSelection {
    /// The records with these IDs.
    Records(Vec<ProofId>),
    /// Every record of an agent.
    Agent(AgentId),
    /// All records of an agent from before a moment.
    AgentBefore(AgentId, Timestamp),
    /// All records from before a moment.
    Before(Timestamp),
}

impl EvidenceSelection {
    /// Returns whether the evidence of a record is selected.
    #[doc(hidden)]
    pub fn covers(&self, id: ProofId, agent: &AgentId, created: Timestamp) -> bool {
        match self {
            Self::Records(ids) => ids.contains(&id),
            Self::Agent(selected) => selected == agent,
            Self::Before(moment) => created < *moment,
            Self::AgentBefore(selected, moment) => selected == agent && created < *moment,
        }
    }
}

/// One erasure: a selection among the first entries of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Erasure {
    pub(crate) selection: EvidenceSelection,
    /// Number of entries covered: records from this sequence on are not.
    pub(crate) entries: u64,
}

impl Erasure {
    /// Reads an erasure from its entry; `None` if the entry does not select exactly one thing.
    pub(crate) fn of(entry: ErasureEntry<'_>) -> Option<Self> {
        let selection = match (entry.proof_ids, entry.agent_id, entry.before) {
            (Some(ids), None, None) => EvidenceSelection::Records(ids),
            (None, Some(agent), None) => EvidenceSelection::Agent(agent),
            (None, Some(agent), Some(before)) => EvidenceSelection::AgentBefore(agent, before),
            (None, None, Some(before)) => EvidenceSelection::Before(before),
            _ => return None,
        };
        Some(Self { selection, entries: entry.entries })
    }
}

/// The properties of a record by which erasures select it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) sequence: Sequence,
    pub(crate) entity: &'a AgentId,
    pub(crate) time: Timestamp,
}

impl<'a> Subject<'a> {
    pub(crate) fn of(record: &'a CanonicalRecord<'_>) -> Self {
        Self { sequence: record.id.sequence(), entity: &record.entity_id, time: record.timestamp }
    }
}

/// The union of several erasures.
#[derive(Debug, Clone, Default)]
pub(crate) struct Covered {
    records: BTreeSet<u64>,
    /// For each agent, the number of entries covered and the time before which, if any.
    agents: HashMap<AgentId, Vec<(u64, Option<Timestamp>)>>,
    /// For all agents, the number of entries covered and the time before which.
    before: Vec<(u64, Timestamp)>,
}

impl Covered {
    /// Combines erasures.
    pub(crate) fn of<'a>(erasures: impl IntoIterator<Item = &'a (Sequence, Erasure)>) -> Self {
        let mut covered = Self::default();
        erasures.into_iter().for_each(|(_, erasure)| covered.add(erasure));
        covered
    }

    pub(crate) fn add(&mut self, erasure: &Erasure) {
        let entries = erasure.entries;
        match &erasure.selection {
            EvidenceSelection::Records(ids) => {
                let places = ids.iter().map(|id| id.sequence().get()).filter(|place| *place < entries);
                self.records.extend(places);
            }
            EvidenceSelection::Agent(agent) => {
                self.agents.entry(agent.clone()).or_default().push((entries, None));
            }
            EvidenceSelection::AgentBefore(agent, before) => {
                self.agents.entry(agent.clone()).or_default().push((entries, Some(*before)));
            }
            EvidenceSelection::Before(before) => self.before.push((entries, *before)),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.agents.is_empty() && self.before.is_empty()
    }

    pub(crate) fn has(&self, subject: Subject<'_>) -> bool {
        let place = subject.sequence.get();
        let is_before = |entries: u64, before: Option<Timestamp>| {
            place < entries && before.is_none_or(|before| subject.time < before)
        };
        self.records.contains(&place)
            || self.before.iter().any(|(entries, before)| is_before(*entries, Some(*before)))
            || self
                .agents
                .get(subject.entity)
                .is_some_and(|rules| rules.iter().any(|(entries, before)| is_before(*entries, *before)))
    }

    /// Returns whether any record in the range may be covered, as far as can be told without reading it.
    fn may_have(&self, range: &Range<u64>) -> bool {
        let mut bounds = self.before.iter().map(|(entries, _)| *entries);
        let mut of_agents = self.agents.values().flatten().map(|(entries, _)| *entries);
        self.records.range(range.clone()).next().is_some()
            || bounds.any(|entries| range.start < entries)
            || of_agents.any(|entries| range.start < entries)
    }

    /// Returns whether the evidence of an entry is covered.
    fn has_entry(&self, frame: &Frame<'_>) -> bool {
        frame.kind == Kind::Decision
            && CanonicalRecord::read(frame.body).is_ok_and(|record| self.has(Subject::of(&record)))
    }

    /// Passes the time and the evidence of each covered record that still has evidence to `look`.
    pub(crate) fn each_kept(&self, reader: &Reader, look: &mut dyn FnMut(Timestamp, &[u8])) -> std::io::Result<()> {
        reader.each_entry(&|range| self.may_have(range), &mut |frame| {
            if frame.kind != Kind::Decision || frame.has_no_evidence() {
                return;
            }
            if let Ok(record) = CanonicalRecord::read(frame.body)
                && self.has(Subject::of(&record))
            {
                look(record.timestamp, frame.evidence);
            }
        })
    }

    /// Number of covered records that still have evidence.
    pub(crate) fn count_kept(&self, reader: &Reader) -> std::io::Result<u64> {
        let mut count = 0;
        self.each_kept(reader, &mut |_, _| count += 1)?;
        Ok(count)
    }

    /// Erases all covered evidence, and records the number of entries searched for erasures.
    pub(crate) fn carry_out(&self, reader: &Reader, files: &dyn Files, entries: u64) -> std::io::Result<()> {
        reader.erase(files, &|range| self.may_have(range), &|frame| self.has_entry(frame))?;
        store::note_carried_out(files, entries)
    }
}

/// The erasures that readers of a log know of. An erasure is added before any byte is erased.
#[derive(Debug, Default)]
pub(crate) struct Erasures {
    // Held to look up or to add.
    state: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    covered: Covered,
    /// Number of entries up to and including the last erasure's.
    entries: u64,
}

impl Erasures {
    pub(crate) fn of(erasures: &[(Sequence, Erasure)]) -> Arc<Self> {
        let known = Self::default();
        for (sequence, erasure) in erasures {
            known.add(*sequence, erasure);
        }
        Arc::new(known)
    }

    /// Adds an erasure whose entry is at `sequence`.
    pub(crate) fn add(&self, sequence: Sequence, erasure: &Erasure) {
        let mut known = self.state.write().unwrap_or_else(PoisonError::into_inner);
        known.covered.add(erasure);
        known.entries = known.entries.max(sequence.get() + 1);
    }

    pub(crate) fn has(&self, subject: Subject<'_>) -> bool {
        self.state.read().unwrap_or_else(PoisonError::into_inner).covered.has(subject)
    }

    /// Returns everything covered so far.
    pub(crate) fn covered(&self) -> Covered {
        self.state.read().unwrap_or_else(PoisonError::into_inner).covered.clone()
    }

    /// Number of entries up to and including the last erasure's.
    pub(crate) fn entries(&self) -> u64 {
        self.state.read().unwrap_or_else(PoisonError::into_inner).entries
    }

    /// Reads the evidence of a record from its stored bytes.
    pub(crate) fn look(&self, record: &CanonicalRecord<'_>, stored: &[u8]) -> Kept {
        // The bytes do not matter: they may still be there in part, or may have been put back.
        if self.has(Subject::of(record)) {
            return Kept::Erased;
        }
        let evidence = Some(stored).filter(|stored| evidence::digest(stored) == record.evidence_hash);
        match evidence.and_then(evidence::decode) {
            Some(evidence) => Kept::Evidence(Box::new(evidence)),
            None => Kept::Unreadable,
        }
    }
}

/// The state of a record's evidence.
#[derive(Debug)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub enum Kept {
    Evidence(Box<Evidence>),
    Erased,
    /// The evidence is missing or changed, and no erasure covers it.
    Unreadable,
}

/// Records without evidence, collected during a reading that does not know the erasures yet.
#[derive(Debug, Default)]
pub(crate) struct Absences {
    records: Vec<(Sequence, AgentId, Timestamp)>,
    /// More records were found than are kept.
    has_more: bool,
}

impl Absences {
    pub(crate) fn add(&mut self, subject: Subject<'_>) {
        if self.records.len() >= MOST_ABSENCES {
            self.has_more = true;
        } else {
            self.records.push((subject.sequence, subject.entity.clone(), subject.time));
        }
    }

    pub(crate) fn join(&mut self, later: &Self) {
        self.has_more |= later.has_more;
        for (sequence, entity, time) in &later.records {
            self.add(Subject { sequence: *sequence, entity, time: *time });
        }
    }

    /// Returns whether each of them is covered; false if not all are known.
    pub(crate) fn are_covered(&self, has: impl Fn(Subject<'_>) -> bool) -> bool {
        !self.has_more
            && self
                .records
                .iter()
                .all(|(sequence, entity, time)| has(Subject { sequence: *sequence, entity, time: *time }))
    }
}

/// Largest number kept, a few megabytes. With more, the journal is read a second time.
const MOST_ABSENCES: usize = if cfg!(test) { 4 } else { 1 << 16 };
