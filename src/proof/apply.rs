//! Reading the journal from front to back: what stands in each entry is
//! checked, and what is new to the index goes into it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use crate::model::{Breakage, BrokenKind, Digest, Outcome, Sequence};
use crate::store::{Finding, Frame, GONE, Kind, Parts, Position, Reader, StoreId, ViewError, Visitor};

use super::entry::{self, AlertEntry, OutcomeEntry, RecoveryEntry, StateEntry, StoreEntry};
use super::erase::{Absences, Erasure, Erasures, Subject};
use super::evidence;
use super::index::{Census, Index, RecordFacts};
use super::record::CanonicalRecord;
use super::used::UsedLimits;

/// A reading of the journal.
pub(super) struct Reading<'a> {
    index: Option<&'a mut Index>,
    /// The store whose index may be persisted meanwhile.
    persist: Option<StoreId>,
    /// The latest value of each state, from the journal alone.
    pub(super) states: BTreeMap<String, Vec<u8>>,
    /// What was used of limits, and not given back.
    pub(super) used: UsedLimits,
    /// What the index must add up to.
    pub(super) census: Census,
    /// The erasures with the places of their entries.
    pub(super) erasures: Vec<(Sequence, Erasure)>,
    /// What was erased, as far as it is known before the journal is read; otherwise what lacks its evidence is noted, to be
    /// held against the erasures that were read.
    known: Option<Arc<Erasures>>,
    absences: Absences,
    /// Why the index takes in nothing more.
    pub(super) view_error: Option<ViewError>,
    chain: Chain,
    /// The chain as it was at the first break.
    before_break: Option<Chain>,
    /// It began in the middle of the journal.
    is_part: bool,
    begins: Option<Begins>,
}

/// The chain of proof records so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chain {
    pub(super) records: u64,
    pub(super) head_hash: Digest,
    last_time: i64,
}

impl Chain {
    /// Before the first record.
    const START: Self = Self { records: 0, head_hash: Digest::ZERO, last_time: i64::MIN };
}

/// What the first record of a part says of what stands before it.
#[derive(Debug, Clone, Copy)]
struct Begins {
    previous_hash: Digest,
    time: i64,
}

impl<'a> Reading<'a> {
    /// A reading that brings what the index lacks into it.
    pub(super) fn into_index(index: &'a mut Index) -> Self {
        Self::new(Some(index))
    }

    /// Persists the index on the way, whenever it takes too much memory.
    pub(super) fn persisting(self, store: StoreId) -> Self {
        Self { persist: Some(store), ..self }
    }

    /// A reading that only checks, and that knows what was erased.
    pub(super) fn checking(known: Arc<Erasures>) -> Self {
        Self::new(None).knowing(known)
    }

    /// A reading that only checks, and learns of erasures as it comes to them: ask it then for
    /// [`Reading::unexplained`].
    pub(super) fn learning() -> Self {
        Self::new(None)
    }

    /// Knows what was erased.
    pub(super) fn knowing(self, known: Arc<Erasures>) -> Self {
        Self { known: Some(known), ..self }
    }

    /// The first record that lacks its evidence where no erasure says so, given the journal that was read: it is read
    /// once more if there is one, or if there may be.
    pub(super) fn unexplained(&self, reader: &Reader, until: Position) -> io::Result<Option<Breakage>> {
        let known = Erasures::of(&self.erasures);
        if self.absences.are_covered(|subject| known.has(subject)) {
            return Ok(None);
        }
        reader.verify_parts(&mut Self::checking(known), until)
    }

    /// The records that were checked, up to the first break.
    pub(super) fn verified(&self) -> Chain {
        self.before_break.unwrap_or(self.chain)
    }

    fn new(index: Option<&'a mut Index>) -> Self {
        Self {
            index,
            persist: None,
            states: BTreeMap::new(),
            used: UsedLimits::default(),
            census: Census::default(),
            erasures: Vec::new(),
            known: None,
            absences: Absences::default(),
            view_error: None,
            chain: Chain::START,
            before_break: None,
            is_part: false,
            begins: None,
        }
    }

    /// Calls the index, unless it has the entry or has failed.
    fn feed(&mut self, sequence: Sequence, feed: impl FnOnce(&mut Index) -> Result<(), ViewError>) {
        let Some(index) = self.index.as_mut().filter(|index| !index.has_applied(sequence)) else { return };
        if self.view_error.is_none()
            && let Err(error) = feed(index)
        {
            self.view_error = Some(error);
        }
    }

    fn decision(&mut self, frame: &Frame<'_>, hash: Digest) -> Option<Finding> {
        let Ok(fields) = CanonicalRecord::read(frame.body) else { return Some(unreadable("a proof record")) };
        let finding =
            |kind, expected: String, found: String| Some(Finding { proof_id: Some(fields.id), kind, expected, found });
        if self.is_part && self.begins.is_none() {
            let (previous_hash, time) = (fields.previous_hash, fields.timestamp.as_millis());
            self.begins = Some(Begins { previous_hash, time });
            self.chain.head_hash = previous_hash;
        }
        let found = if fields.previous_hash != self.chain.head_hash {
            let expected = format!("previousHash {}", self.chain.head_hash);
            finding(BrokenKind::Tampering, expected, format!("previousHash {}", fields.previous_hash))
        } else if fields.id.sequence() != frame.sequence {
            let found = format!("the id of entry {}", fields.id.sequence());
            finding(BrokenKind::Tampering, format!("an id of entry {}", frame.sequence), found)
        } else if fields.timestamp.as_millis() < self.chain.last_time {
            finding(
                BrokenKind::Tampering,
                "a time not before the last record's".to_owned(),
                fields.timestamp.to_string(),
            )
        } else {
            self.evidence(&fields, frame.evidence)
        };
        self.chain = Chain {
            records: self.chain.records + 1,
            head_hash: hash,
            last_time: fields.timestamp.as_millis().max(self.chain.last_time),
        };
        self.used.add(frame.sequence, fields.timestamp, frame.evidence);
        let facts = RecordFacts {
            entity: &fields.entity_id,
            intent: fields.intent_id,
            time: fields.timestamp,
            decision: fields.decision,
            risk: fields.risk_level,
            score: fields.trust_score,
            hash,
        };
        self.census.add_record(&facts);
        self.feed(frame.sequence, |index| index.add_record(frame.sequence, &facts));
        found
    }

    fn evidence(&mut self, fields: &CanonicalRecord<'_>, stored: &[u8]) -> Option<Finding> {
        let found = evidence::digest(stored);
        if found == fields.evidence_hash {
            return None;
        }
        match &self.known {
            Some(known) if known.has(Subject::of(fields)) => return None,
            // What has none of the bytes that an erasure leaves was not touched by one.
            None if stored.is_empty() || stored.contains(&GONE) => {
                self.absences.add(Subject::of(fields));
                return None;
            }
            Some(_) | None => {}
        }
        Some(other_evidence(fields, stored, found))
    }

    fn erasure(&mut self, frame: &Frame<'_>) -> Option<Finding> {
        let erasure = entry::read_erasure(frame.body).filter(|erasure| erasure.entries <= frame.sequence.get());
        let Some(erasure) = erasure else { return Some(unreadable("an erasure")) };
        self.erasures.push((frame.sequence, erasure));
        None
    }

    fn outcome(&mut self, frame: &Frame<'_>) -> Option<Finding> {
        let Ok(entry) = serde_json::from_slice::<OutcomeEntry<'_>>(frame.body) else {
            return Some(unreadable("an outcome"));
        };
        if let Some(state) = &entry.state {
            self.states.insert(state.key.to_string(), state.value.get().as_bytes().to_vec());
        }
        if entry.outcome == Outcome::Failure {
            self.used.give_back(entry.proof_id.sequence());
        }
        self.census.add_outcome(&entry.entity_id, entry.outcome);
        self.feed(frame.sequence, |index| {
            index.add_outcome(&entry.entity_id, entry.proof_id.sequence(), entry.outcome, entry.timestamp)
        });
        None
    }

    fn alert(&mut self, frame: &Frame<'_>) -> Option<Finding> {
        let Ok(entry) = serde_json::from_slice::<AlertEntry>(frame.body) else { return Some(unreadable("an alert")) };
        self.feed(frame.sequence, |index| {
            index.see_time(entry.timestamp);
            Ok(())
        });
        None
    }

    fn state(&mut self, frame: &Frame<'_>) -> Option<Finding> {
        let Ok(entry) = serde_json::from_slice::<StateEntry<'_>>(frame.body) else {
            return Some(unreadable("a state"));
        };
        self.states.insert(entry.state.key.to_string(), entry.state.value.get().as_bytes().to_vec());
        self.feed(frame.sequence, |index| {
            index.see_time(entry.timestamp);
            Ok(())
        });
        None
    }
}

impl Parts for Reading<'_> {
    type Part = Reading<'static>;

    fn part() -> Reading<'static> {
        Reading { is_part: true, used: UsedLimits::of_part(), ..Reading::learning() }
    }

    fn join(&mut self, part: Reading<'static>) -> bool {
        if let Some(begins) = part.begins {
            if begins.previous_hash != self.chain.head_hash || begins.time < self.chain.last_time {
                return false;
            }
            self.chain.head_hash = part.chain.head_hash;
            self.chain.last_time = part.chain.last_time;
        }
        match &self.known {
            Some(known) if !part.absences.are_covered(|subject| known.has(subject)) => return false,
            Some(_) => {}
            None => self.absences.join(&part.absences),
        }
        self.erasures.extend(part.erasures);
        self.chain.records += part.chain.records;
        self.states.extend(part.states);
        self.used.join(part.used);
        self.census.join(part.census);
        true
    }

    fn reset(&mut self) {
        let (persist, known) = (self.persist.take(), self.known.take());
        *self = Self { persist, known, ..Self::new(self.index.take()) };
    }
}

impl Visitor for Reading<'_> {
    fn visit(&mut self, frame: &Frame<'_>, digest: &Digest) -> Option<Finding> {
        let finding = match frame.kind {
            Kind::Decision => self.decision(frame, *digest),
            Kind::Outcome => self.outcome(frame),
            Kind::State => self.state(frame),
            Kind::Store => {
                serde_json::from_slice::<StoreEntry>(frame.body).err().map(|_| unreadable("the store's entry"))
            }
            Kind::Alert => self.alert(frame),
            Kind::Erasure => self.erasure(frame),
            Kind::Recovery => {
                serde_json::from_slice::<RecoveryEntry>(frame.body).err().map(|_| unreadable("a recovery"))
            }
        };
        let position = Position { entries: frame.sequence.get() + 1, link: frame.link };
        let persist = self.persist;
        self.feed(frame.sequence, |index| {
            index.advance(position);
            match persist.filter(|_| index.is_heavy()) {
                Some(store) => index.persist(store),
                None => Ok(()),
            }
        });
        finding
    }

    fn broken(&mut self) {
        self.before_break.get_or_insert(self.chain);
    }
}

fn other_evidence(fields: &CanonicalRecord<'_>, bytes: &[u8], found: Digest) -> Finding {
    // Bytes that still read as evidence were more likely written than decayed.
    let kind = if evidence::decode(bytes).is_some() { BrokenKind::Tampering } else { BrokenKind::Damage };
    let (expected, found) = (format!("evidenceHash {}", fields.evidence_hash), format!("evidence of hash {found}"));
    Finding { proof_id: Some(fields.id), kind, expected, found }
}

fn unreadable(what: &str) -> Finding {
    Finding {
        proof_id: None,
        kind: BrokenKind::Tampering,
        expected: what.to_owned(),
        found: "a body that cannot be read".to_owned(),
    }
}
