//! Reading the journal from front to back: what stands in each entry is
//! checked, and what is new to the index goes into it.

use std::collections::BTreeMap;

use crate::model::{AgentId, BrokenKind, Digest, Outcome, ProofId, Sequence};
use crate::store::{Finding, Frame, Kind, Parts, Position, Start, StoreId, ViewError, Visitor};

use super::entry::{AlertEntry, OutcomeEntry, RecoveryEntry, StateEntry, StoreEntry};
use super::evidence;
use super::index::{Census, Index, RecordFacts};
use super::record::CanonicalRecord;
use super::retention::Retained;
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
    /// What the log says of its own past, and of its end.
    pub(super) past: Retained,
    /// Why the index takes in nothing more.
    pub(super) view_error: Option<ViewError>,
    chain: Chain,
    /// The chain as it was at the first break.
    before_break: Option<Chain>,
    /// It began in the middle of the journal.
    is_part: bool,
    begins: Option<Begins>,
    /// The first entry that is there; in a part, of it.
    first: u64,
    has_begun: bool,
    /// Outcomes in a part of records before it.
    of_earlier: Vec<(AgentId, Outcome, u64)>,
    /// Where the journal begins.
    start: Start,
    /// Evidence that is gone is no break, but counted: only in an archive, whose log says what was erased.
    pub(super) erased: Option<u64>,
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

    /// A reading that only checks.
    pub(super) fn checking() -> Self {
        Self::new(None)
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
            past: Retained::default(),
            view_error: None,
            chain: Chain::START,
            before_break: None,
            is_part: false,
            begins: None,
            first: 0,
            has_begun: false,
            of_earlier: Vec::new(),
            start: Start::WHOLE,
            erased: None,
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
        } else if let Some(erased) = self.erased.as_mut().filter(|_| is_gone(frame.evidence)) {
            *erased += 1;
            None
        } else {
            check_evidence(fields.id, &fields.evidence_hash, frame.evidence)
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
        let record = entry.proof_id.sequence().get();
        if record >= self.first {
            self.census.add_outcome(&entry.entity_id, entry.outcome);
        } else if self.is_part {
            self.of_earlier.push((entry.entity_id.clone(), entry.outcome, record));
        }
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
        Reading { is_part: true, used: UsedLimits::of_part(), ..Reading::checking() }
    }

    fn join(&mut self, part: Reading<'static>) -> bool {
        if let Some(begins) = part.begins {
            if begins.previous_hash != self.chain.head_hash || begins.time < self.chain.last_time {
                return false;
            }
            self.chain.head_hash = part.chain.head_hash;
            self.chain.last_time = part.chain.last_time;
        }
        self.chain.records += part.chain.records;
        self.states.extend(part.states);
        self.used.join(part.used);
        self.census.join(part.census);
        for (entity, outcome, _) in part.of_earlier.iter().filter(|(_, _, record)| *record >= self.first) {
            self.census.add_outcome(entity, *outcome);
        }
        if self.past.freeze.is_some() {
            return false;
        }
        self.past.join(part.past);
        true
    }

    fn reset(&mut self) {
        let (persist, start) = (self.persist.take(), self.start);
        *self = Self { persist, ..Self::new(self.index.take()) };
        self.begins(&start);
    }
}

impl Visitor for Reading<'_> {
    fn begins(&mut self, start: &Start) {
        if *start == Start::WHOLE {
            return;
        }
        (self.start, self.first) = (*start, start.entries);
        self.chain.head_hash = start.head_hash;
        if let Some(index) = &mut self.index {
            index.begin_with(start.head_hash);
        }
    }

    fn ends(&mut self) -> Option<Finding> {
        self.past.missing_archive(&self.start)
    }

    fn visit(&mut self, frame: &Frame<'_>, digest: &Digest) -> Option<Finding> {
        if self.is_part && !self.has_begun {
            (self.first, self.has_begun) = (frame.sequence.get(), true);
        }
        if self.past.freeze.is_some() {
            return Some(Finding {
                proof_id: None,
                kind: BrokenKind::Tampering,
                expected: "the end of a log that is frozen".to_owned(),
                found: format!("another entry, a {}", frame.kind),
            });
        }
        let finding = match frame.kind {
            Kind::Decision => self.decision(frame, *digest),
            Kind::Outcome => self.outcome(frame),
            Kind::State => self.state(frame),
            Kind::Store => {
                serde_json::from_slice::<StoreEntry>(frame.body).err().map(|_| unreadable("the store's entry"))
            }
            Kind::Alert => self.alert(frame),
            Kind::Recovery => {
                serde_json::from_slice::<RecoveryEntry>(frame.body).err().map(|_| unreadable("a recovery"))
            }
            Kind::Freeze | Kind::Archive | Kind::Repair => {
                let found = self.past.visit(frame);
                let last = self.past.last_time;
                self.feed(frame.sequence, |index| {
                    index.see_time(last);
                    Ok(())
                });
                found
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

/// Whether evidence is what erased evidence is read as.
fn is_gone(evidence: &[u8]) -> bool {
    !evidence.is_empty() && evidence.iter().all(|byte| *byte == 1)
}

fn check_evidence(proof_id: ProofId, expected: &Digest, bytes: &[u8]) -> Option<Finding> {
    let found = evidence::digest(bytes);
    if found == *expected {
        return None;
    }
    // Bytes that still read as evidence were more likely written than decayed.
    let kind = if evidence::decode(bytes).is_some() { BrokenKind::Tampering } else { BrokenKind::Damage };
    let (expected, found) = (format!("evidenceHash {expected}"), format!("evidence of hash {found}"));
    Some(Finding { proof_id: Some(proof_id), kind, expected, found })
}

fn unreadable(what: &str) -> Finding {
    Finding {
        proof_id: None,
        kind: BrokenKind::Tampering,
        expected: what.to_owned(),
        found: "a body that cannot be read".to_owned(),
    }
}
