//! Which evidence was erased, and by whom it may be missed: an erasure names
//! records, an agent or a time, and stands in the journal before any byte goes.
//!
//! Evidence that is not there is in order where an erasure covers its record,
//! and damage or tampering otherwise.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use super::entry::{Entry, ErasureEntry, kept_under};
use super::evidence::{self, Evidence};
use super::record::CanonicalRecord;
use crate::model::{AgentId, ProofId, Sequence, Timestamp};
use crate::store::{self, Files, Frame, Kind, Reader};

/// The erasures that the states tell of, with the places of their entries.
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
    /// These records.
    Records(Vec<ProofId>),
    /// Every record of an agent.
    Agent(AgentId),
    /// An agent's records from before a moment.
    AgentBefore(AgentId, Timestamp),
    /// All records from before a moment.
    Before(Timestamp),
}

/// One erasure: what it covers, of the first so many entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Erasure {
    pub(crate) selection: EvidenceSelection,
    /// No record from this place on is covered.
    pub(crate) entries: u64,
}

impl Erasure {
    /// What an entry says; `None` where it does not say one thing.
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

/// What a record is to an erasure.
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

/// What some erasures cover together.
#[derive(Debug, Clone, Default)]
pub(crate) struct Covered {
    records: BTreeSet<u64>,
    /// The records of an agent that stand before a place, from before a moment if there is one.
    agents: HashMap<AgentId, Vec<(u64, Option<Timestamp>)>>,
    /// All records that stand before a place, from before a moment.
    before: Vec<(u64, Timestamp)>,
}

impl Covered {
    /// What these erasures cover.
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

    /// Whether any record there can be covered, as far as that shows without reading it.
    fn may_have(&self, range: &Range<u64>) -> bool {
        let mut bounds = self.before.iter().map(|(entries, _)| *entries);
        let mut of_agents = self.agents.values().flatten().map(|(entries, _)| *entries);
        self.records.range(range.clone()).next().is_some()
            || bounds.any(|entries| range.start < entries)
            || of_agents.any(|entries| range.start < entries)
    }

    /// Whether the evidence of an entry is to go.
    fn has_entry(&self, frame: &Frame<'_>) -> bool {
        frame.kind == Kind::Decision
            && CanonicalRecord::read(frame.body).is_ok_and(|record| self.has(Subject::of(&record)))
    }

    /// Hands on the records that are covered and still have their evidence, with that.
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

    /// The number of covered records that still have evidence.
    pub(crate) fn count_kept(&self, reader: &Reader) -> std::io::Result<u64> {
        let mut count = 0;
        self.each_kept(reader, &mut |_, _| count += 1)?;
        Ok(count)
    }

    /// Takes the bytes of all that is covered away, and notes it, given how many entries were looked at for erasures.
    pub(crate) fn carry_out(&self, reader: &Reader, files: &dyn Files, entries: u64) -> std::io::Result<()> {
        reader.erase(files, &|range| self.may_have(range), &|frame| self.has_entry(frame))?;
        store::note_carried_out(files, entries)
    }
}

/// What was erased of a log, as whoever reads it knows. Grows before any byte goes.
#[derive(Debug, Default)]
pub(crate) struct Erasures {
    // Held to look up or to add.
    state: RwLock<Known>,
}

#[derive(Debug, Default)]
struct Known {
    covered: Covered,
    /// Behind the last erasure's entry.
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

    /// Takes in an erasure, whose entry stands at `sequence`.
    pub(crate) fn add(&self, sequence: Sequence, erasure: &Erasure) {
        let mut known = self.state.write().unwrap_or_else(PoisonError::into_inner);
        known.covered.add(erasure);
        known.entries = known.entries.max(sequence.get() + 1);
    }

    pub(crate) fn has(&self, subject: Subject<'_>) -> bool {
        self.state.read().unwrap_or_else(PoisonError::into_inner).covered.has(subject)
    }

    /// All that is covered by now.
    pub(crate) fn covered(&self) -> Covered {
        self.state.read().unwrap_or_else(PoisonError::into_inner).covered.clone()
    }

    /// How many entries there are up to the last erasure.
    pub(crate) fn entries(&self) -> u64 {
        self.state.read().unwrap_or_else(PoisonError::into_inner).entries
    }

    /// What stands beside a record, given the bytes that were read there.
    pub(crate) fn look(&self, record: &CanonicalRecord<'_>, stored: &[u8]) -> Kept {
        // Whatever the bytes are: they may be there in part still, or be put there again.
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

/// What stands beside a record.
#[derive(Debug)]
pub(crate) enum Kept {
    Evidence(Box<Evidence>),
    Erased,
    /// It is gone or changed, and no erasure says so.
    Unreadable,
}

/// Records without their evidence, as a reading found them before it knew of any erasure.
#[derive(Debug, Default)]
pub(crate) struct Absences {
    records: Vec<(Sequence, AgentId, Timestamp)>,
    /// There are more, which were not kept.
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

    /// Whether each of them is covered, as far as they are known.
    pub(crate) fn are_covered(&self, has: impl Fn(Subject<'_>) -> bool) -> bool {
        !self.has_more
            && self
                .records
                .iter()
                .all(|(sequence, entity, time)| has(Subject { sequence: *sequence, entity, time: *time }))
    }
}

/// What is kept of them takes a few megabytes. Where there are more the journal is read a second time.
const MOST_ABSENCES: usize = if cfg!(test) { 4 } else { 1 << 16 };
