//! Reading the journal from front to back: what stands in each entry is
//! checked, and what is new to the index goes into it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use crate::model::{
    AgentId, Breakage, BrokenKind, ChainPosition, Decision, Digest, IntentId, Outcome, ProofId, RiskLevel, Score,
    Sequence, Timestamp,
};
use crate::store::{Finding, Frame, GONE, Kind, Manner, Parts, Position, Reader, Start, StoreId, ViewError, Visitor};

use super::entry::{self, AlertEntry, NewState, OutcomeEntry, RecoveryEntry, StateEntry, StoreEntry};
use super::erase::{self, Absences, Erasure, Erasures, Subject};
use super::evidence;
use super::fields::RecordFields;
use super::index::{Census, HeldSums, Index, KeptStart, RecordFacts, Rule, Totals};
use super::record::CanonicalRecord;
use super::retention::Retained;
use super::used::{UsedLimit, UsedLimits};

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
    /// The erasures with the places of their entries.
    pub(super) erasures: Vec<(Sequence, Erasure)>,
    /// What was erased, as far as it is known before the journal is read; otherwise what lacks its evidence is noted, to be
    /// held against the erasures that were read.
    known: Option<Arc<Erasures>>,
    absences: Absences,
    /// Why the index takes in nothing more.
    pub(super) view_error: Option<ViewError>,
    chain: Chain,
    /// The chain as it was at the beginning.
    start: Chain,
    /// The chain as it was at the first break.
    before_break: Option<Chain>,
    /// It began in the middle of the journal.
    is_part: bool,
    begins: Option<Begins>,
    /// Where the journal begins.
    origin: Start,
    /// How much evidence is gone, where that is counted: in an archive, whose log says what was erased.
    pub(super) erased: Option<u64>,
    range: CheckedRange,
    /// What the journal says, added up to be compared with what the index says.
    pub(super) held: HeldSums,
}

/// Which entries are checked, and how.
#[derive(Debug, Clone)]
pub(super) struct CheckedRange {
    /// Records before it are archived.
    first: u64,
    /// Records before it are read, and not counted.
    from: u64,
    /// Entries from here on are for the next time.
    until: u64,
    /// By what the index was added up.
    rule: Option<Arc<Rule>>,
}

impl CheckedRange {
    const ALL: Self = Self { first: 0, from: 0, until: u64::MAX, rule: None };
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

/// What is checked of a record.
struct Seen {
    decision: Decision,
    entity_id: AgentId,
    evidence_hash: Digest,
    id: ProofId,
    intent_id: IntentId,
    previous_hash: Digest,
    risk_level: RiskLevel,
    timestamp: Timestamp,
    trust_score: Score,
}

impl Seen {
    fn subject(&self) -> Subject<'_> {
        Subject { sequence: self.id.sequence(), entity: &self.entity_id, time: self.timestamp }
    }
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

    /// A reading that only checks, behind `since` and up to `until`, and adds up what it reads as `rule` says.
    pub(super) fn checking_range(
        known: Arc<Erasures>,
        since: Option<&ChainPosition>,
        until: Position,
        rule: Option<Arc<Rule>>,
    ) -> Self {
        let mut reading = Self::checking(known);
        let from = since.map_or(0, |since| since.entries);
        reading.range = CheckedRange { first: 0, from, until: until.entries, rule };
        if let Some(since) = since {
            reading.is_part = true;
            reading.used = UsedLimits::of_part();
            reading.start = Chain { records: since.records, head_hash: since.head_hash, ..Chain::START };
            reading.chain = reading.start;
        }
        reading
    }

    /// Goes on with what is known behind so many entries: read again are only the last of these.
    pub(super) fn going_on(mut self, totals: &Totals, kept: KeptStart) -> Self {
        self.range.from = totals.applied.entries;
        self.is_part = true;
        self.start = Chain { records: totals.records, head_hash: totals.head_hash, ..Chain::START };
        self.chain = self.start;
        self.states = kept.states;
        self.used = kept.used;
        self
    }

    /// The totals of the index that it feeds.
    pub(super) fn totals(&self) -> Option<&Totals> {
        self.index.as_ref().map(|index| index.totals())
    }

    /// Whether the records that were read lead to those totals.
    pub(super) fn leads_to(&self, totals: &Totals) -> bool {
        let Chain { records, head_hash, .. } = self.chain;
        (records, head_hash) == (totals.records, totals.head_hash) && (self.begins.is_some() || records == 0)
    }

    /// Knows what was erased.
    pub(super) fn knowing(self, known: Arc<Erasures>) -> Self {
        Self { known: Some(known), ..self }
    }

    /// The first record that lacks its evidence where no erasure says so, given the journal that was read: it is read
    /// once more if there is one, or if there may be.
    pub(super) fn unexplained(&self, reader: &Reader, until: Position) -> io::Result<Option<Breakage>> {
        let Some(known) = self.unexplained_but_for() else { return Ok(None) };
        let verified = reader.verify_parts(&mut Self::checking(known), None, until, Manner::default())?;
        Ok(verified.breakage)
    }

    /// The erasures that were read, where they may not cover every record that lacks its evidence.
    pub(super) fn unexplained_but_for(&self) -> Option<Arc<Erasures>> {
        let known = Erasures::of(&self.erasures);
        (!self.absences.are_covered(|subject| known.has(subject))).then_some(known)
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
            erasures: Vec::new(),
            known: None,
            absences: Absences::default(),
            view_error: None,
            chain: Chain::START,
            start: Chain::START,
            before_break: None,
            is_part: false,
            begins: None,
            origin: Start::WHOLE,
            erased: None,
            range: CheckedRange::ALL,
            held: HeldSums::default(),
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
        let Some(fields) = self.record(frame.body) else { return Some(unreadable("a proof record")) };
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
            self.evidence(&fields, frame)
        };
        if found.is_some() {
            // It is none of those that hold.
            self.before_break.get_or_insert(self.chain);
        }
        self.chain = Chain {
            records: self.chain.records + u64::from(frame.sequence.get() >= self.range.from),
            head_hash: hash,
            last_time: fields.timestamp.as_millis().max(self.chain.last_time),
        };
        if self.is_new(frame)
            && let Some(used) = UsedLimit::of(frame.sequence, fields.timestamp, frame.evidence)
        {
            self.used.push(used.clone());
            self.feed(frame.sequence, |index| {
                index.use_limits(used);
                Ok(())
            });
        }
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
        if let Some(rule) = &self.range.rule {
            self.held.add_record(rule, frame.sequence, &facts);
        }
        self.feed(frame.sequence, |index| index.add_record(frame.sequence, &facts));
        found
    }

    /// What is checked of a record; `None` where the body is none.
    fn record(&self, body: &[u8]) -> Option<Seen> {
        let by_hand = RecordFields::read(body).and_then(|fields| {
            let entity_id = match self.census.known(fields.entity_id) {
                Some(known) => known.clone(),
                None => fields.entity_id.parse().ok()?,
            };
            Some(Seen {
                decision: fields.decision,
                entity_id,
                evidence_hash: fields.evidence_hash,
                id: fields.id,
                intent_id: fields.intent_id,
                previous_hash: fields.previous_hash,
                risk_level: fields.risk_level,
                timestamp: fields.timestamp,
                trust_score: fields.trust_score,
            })
        });
        by_hand.or_else(|| {
            let record = CanonicalRecord::read(body).ok()?;
            Some(Seen {
                decision: record.decision,
                entity_id: record.entity_id,
                evidence_hash: record.evidence_hash,
                id: record.id,
                intent_id: record.intent_id,
                previous_hash: record.previous_hash,
                risk_level: record.risk_level,
                timestamp: record.timestamp,
                trust_score: record.trust_score,
            })
        })
    }

    fn evidence(&mut self, fields: &Seen, frame: &Frame<'_>) -> Option<Finding> {
        let stored = frame.evidence;
        let found = evidence::digest(stored);
        if found == fields.evidence_hash {
            return None;
        }
        if let Some(erased) = &mut self.erased
            && frame.has_no_evidence()
            && self.known.as_ref().is_none_or(|known| known.has(fields.subject()))
        {
            *erased += 1;
            return None;
        }
        match &self.known {
            _ if self.erased.is_some() => {}
            Some(known) if known.has(fields.subject()) => return None,
            // What has none of the bytes that an erasure leaves was not touched by one.
            None if stored.is_empty() || stored.contains(&GONE) => {
                self.absences.add(fields.subject());
                return None;
            }
            Some(_) | None => {}
        }
        Some(other_evidence(fields, stored, found))
    }

    fn erasure(&mut self, frame: &Frame<'_>) -> Option<Finding> {
        let erasure = entry::read_erasure(frame.body).filter(|erasure| erasure.entries <= frame.sequence.get());
        let Some(erasure) = erasure else { return Some(unreadable("an erasure")) };
        if self.is_new(frame) {
            let key = erase::key(frame.sequence);
            self.states.insert(key.clone(), frame.body.to_vec());
            self.feed(frame.sequence, |index| {
                index.set_state(&key, frame.body);
                Ok(())
            });
            self.erasures.push((frame.sequence, erasure));
        }
        None
    }

    fn outcome(&mut self, frame: &Frame<'_>) -> Option<Finding> {
        let Ok(entry) = serde_json::from_slice::<OutcomeEntry<'_>>(frame.body) else {
            return Some(unreadable("an outcome"));
        };
        for state in entry.state.iter().chain(&entry.asked) {
            self.set_state(frame, state);
        }
        if entry.outcome == Outcome::Failure && self.is_new(frame) {
            self.used.give_back(entry.proof_id.sequence());
            self.feed(frame.sequence, |index| {
                index.give_back(entry.proof_id.sequence());
                Ok(())
            });
        }
        let record = entry.proof_id.sequence();
        if record.get() >= self.range.first {
            self.census.add_outcome(&entry.entity_id, entry.outcome);
            if let Some(rule) = &self.range.rule {
                self.held.add_outcome(rule, &entry.entity_id, record, entry.outcome, frame.sequence);
            }
        }
        self.feed(frame.sequence, |index| {
            index.add_outcome(&entry.entity_id, entry.proof_id.sequence(), entry.outcome, entry.timestamp)
        });
        None
    }

    /// Whether the entry is not known from elsewhere.
    fn is_new(&self, frame: &Frame<'_>) -> bool {
        frame.sequence.get() >= self.range.from
    }

    fn set_state(&mut self, frame: &Frame<'_>, state: &NewState<'_>) {
        if self.is_new(frame) {
            let (key, value) = (&*state.key, state.value.get().as_bytes());
            self.states.insert(key.to_owned(), value.to_vec());
            self.feed(frame.sequence, |index| {
                index.set_state(key, value);
                Ok(())
            });
        }
    }

    /// What the log says of its own past is kept among the states, so that it is known before all is read.
    fn past(&mut self, frame: &Frame<'_>) -> Option<Finding> {
        let finding = self.past.visit(frame);
        if finding.is_none() && self.is_new(frame) {
            let (key, last) = (Retained::key(frame.sequence, frame.kind), self.past.last_time);
            self.states.insert(key.clone(), frame.body.to_vec());
            self.feed(frame.sequence, |index| {
                index.set_state(&key, frame.body);
                index.see_time(last);
                Ok(())
            });
        }
        finding
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
        self.set_state(frame, &entry.state);
        self.feed(frame.sequence, |index| {
            index.see_time(entry.timestamp);
            Ok(())
        });
        None
    }
}

impl Parts for Reading<'_> {
    type Part = Reading<'static>;
    type Plan = CheckedRange;

    fn plan(&self) -> CheckedRange {
        self.range.clone()
    }

    fn part(plan: &CheckedRange) -> Reading<'static> {
        Reading { is_part: true, used: UsedLimits::of_part(), range: plan.clone(), ..Reading::learning() }
    }

    fn join(&mut self, part: Reading<'static>) -> bool {
        if let Some(begins) = part.begins {
            let is_first = self.is_part && self.begins.is_none();
            if is_first {
                self.begins = Some(begins);
            } else if begins.previous_hash != self.chain.head_hash || begins.time < self.chain.last_time {
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
        if self.past.freeze.is_some() {
            return false;
        }
        self.past.join(part.past);
        self.held.join(part.held);
        true
    }

    fn reset(&mut self) {
        let (persist, range, is_part) = (self.persist.take(), self.range.clone(), self.is_part);
        let used = if is_part { UsedLimits::of_part() } else { UsedLimits::default() };
        let (chain, known, origin, erased) = (self.start, self.known.take(), self.origin, self.erased.map(|_| 0));
        let new = Self::new(self.index.take());
        *self = Self { persist, known, range, is_part, used, chain, start: chain, erased, ..new };
        self.begins(&origin);
    }
}

impl Visitor for Reading<'_> {
    fn begins(&mut self, start: &Start) {
        if *start == Start::WHOLE {
            return;
        }
        (self.origin, self.range.first) = (*start, start.entries);
        self.chain.head_hash = start.head_hash;
        if let Some(index) = &mut self.index {
            index.begin_with(start.head_hash);
        }
    }

    fn ends(&mut self) -> Option<Finding> {
        self.past.missing_archive(&self.origin)
    }

    fn visit(&mut self, frame: &Frame<'_>, digest: &Digest) -> Option<Finding> {
        if frame.sequence.get() >= self.range.until {
            // Where the journal begins may be said there.
            return if frame.kind == Kind::Archive { self.past.visit(frame) } else { None };
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
            Kind::Erasure => self.erasure(frame),
            Kind::Recovery => {
                serde_json::from_slice::<RecoveryEntry>(frame.body).err().map(|_| unreadable("a recovery"))
            }
            Kind::Freeze | Kind::Archive | Kind::Repair => self.past(frame),
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

fn other_evidence(fields: &Seen, bytes: &[u8], found: Digest) -> Finding {
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
