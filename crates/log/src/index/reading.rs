//! Reading the journal from front to back: the content of each entry is verified, and entries that the index lacks
//! are added to it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use super::{HeldSums, Index, KeptStart, RecordFacts, Rule, Totals};
use crate::journal::entry::{ClockEntry, Entry, OutcomeEntry, kept_key};
use crate::journal::erase::{Absences, Covered, Erasure, Erasures, Subject};
use crate::journal::evidence;
use crate::journal::record::CanonicalRecord;
use crate::journal::retention::Retained;
use crate::journal::used::{UsedLimit, UsedLimits};
use crate::queue::OutcomeBasis;
use crate::store::{Finding, Frame, GONE, Kind, Manner, Parts, Position, Reader, Start, StoreId, ViewError, Visitor};
use rulekeep_types::{Breakage, BrokenKind, ChainPosition, Digest, Sequence};

/// A reading of the journal.
pub(crate) struct Reading<'a> {
    index: Option<&'a mut Index>,
    /// The store whose index may be persisted during the reading.
    persist: Option<StoreId>,
    /// The latest value of each state, from the journal alone.
    pub(crate) states: BTreeMap<String, Vec<u8>>,
    /// The use of limits that was not released.
    pub(crate) used: UsedLimits,
    /// The entries about the log's own past and end.
    pub(crate) past: Retained,
    /// The erasures with the sequences of their entries.
    pub(crate) erasures: Vec<(Sequence, Erasure)>,
    /// The erasures known before the journal is read. Without them, records without evidence are collected and
    /// compared later with the erasures that were read.
    known: Option<Arc<Erasures>>,
    absences: Absences,
    /// Evidence exists although an erasure in [`CheckedRange::erased`] covers it.
    pub(crate) finds_erased: bool,
    /// The reason the index takes no more entries.
    pub(crate) view_error: Option<ViewError>,
    chain: Chain,
    /// The state of the chain at the beginning.
    start: Chain,
    /// The state of the chain at the first break.
    before_break: Option<Chain>,
    /// The reading began in the middle of the journal.
    is_part: bool,
    begins: Option<Begins>,
    /// The clock was confirmed within the reading.
    restarts: bool,
    /// The beginning of the journal.
    origin: Start,
    /// Number of erased evidences, if counted. That is only for an archive, whose log has the erasures.
    pub(crate) erased: Option<u64>,
    range: CheckedRange,
    /// The checksums of the journal's statements, to compare with those of the index.
    pub(crate) held: HeldSums,
}

/// The entries to verify, and options of verifying them.
#[derive(Debug, Clone)]
pub(crate) struct CheckedRange {
    /// Records before this sequence are archived.
    first: u64,
    /// Records before this sequence are read, but not counted.
    from: u64,
    /// Entries from this sequence on are left for later.
    until: u64,
    /// The rule by which the index was summed.
    rule: Option<Arc<Rule>>,
    /// The erasures known beforehand; `None` if there are none.
    erased: Option<Arc<Covered>>,
}

impl CheckedRange {
    const ALL: Self = Self { first: 0, from: 0, until: u64::MAX, rule: None, erased: None };
}

/// The chain of proof records so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Chain {
    pub(crate) records: u64,
    pub(crate) head_hash: Digest,
    last_time: i64,
    /// The latest time of any entry, in milliseconds since 1970.
    pub(crate) latest: i64,
}

impl Chain {
    /// The state before the first record.
    const START: Self = Self { records: 0, head_hash: Digest::ZERO, last_time: i64::MIN, latest: i64::MIN };
}

/// The claims of a part's first record about the records before it.
#[derive(Debug, Clone, Copy)]
struct Begins {
    previous_hash: Digest,
    /// The latest time that records before may have; `None` if the clock was confirmed in between.
    time: Option<i64>,
}

impl<'a> Reading<'a> {
    /// Creates a reading that adds to the index what it lacks.
    pub(crate) fn into_index(index: &'a mut Index) -> Self {
        Self::new(Some(index))
    }

    /// Persists the index during the reading, whenever it takes too much memory.
    pub(crate) fn persisting(self, store: StoreId) -> Self {
        Self { persist: Some(store), ..self }
    }

    /// Creates a reading that only verifies, and knows the erasures.
    pub(crate) fn checking(known: Arc<Erasures>) -> Self {
        Self::new(None).knowing(known)
    }

    /// Creates a reading that only verifies, and learns the erasures as it reads them. Call [`Reading::unexplained`]
    /// afterwards.
    pub(crate) fn learning() -> Self {
        Self::new(None)
    }

    /// Creates a reading that only verifies, after `since` and up to `until`, and sums what it reads by `rule`.
    pub(crate) fn checking_range(
        known: Arc<Erasures>,
        since: Option<&ChainPosition>,
        until: Position,
        rule: Option<Arc<Rule>>,
    ) -> Self {
        let covered = known.covered();
        let mut reading = Self::checking(known).expecting(covered);
        let from = since.map_or(0, |since| since.entries);
        reading.range = CheckedRange { from, until: until.entries, rule, ..reading.range };
        if let Some(since) = since {
            reading.is_part = true;
            reading.used = UsedLimits::of_part();
            reading.start = Chain { records: since.records, head_hash: since.head_hash, ..Chain::START };
            reading.chain = reading.start;
        }
        reading
    }

    /// Looks for evidence that is covered by these erasures.
    pub(crate) fn expecting(mut self, covered: Covered) -> Self {
        self.range.erased = (!covered.is_empty()).then(|| Arc::new(covered));
        self
    }

    /// Continues from the persisted state; only the last of the entries it covers are read again.
    pub(crate) fn going_on(mut self, totals: &Totals, kept: KeptStart) -> Self {
        self.range.from = totals.applied.entries;
        self.is_part = true;
        self.start = Chain { records: totals.records, head_hash: totals.head_hash, ..Chain::START };
        self.chain = self.start;
        self.states = kept.states;
        self.used = kept.used;
        self
    }

    /// The totals of the index being filled.
    pub(crate) fn totals(&self) -> Option<&Totals> {
        self.index.as_ref().map(|index| index.totals())
    }

    /// Returns whether the records that were read lead to these totals.
    pub(crate) fn leads_to(&self, totals: &Totals) -> bool {
        let Chain { records, head_hash, .. } = self.chain;
        (records, head_hash) == (totals.records, totals.head_hash) && (self.begins.is_some() || records == 0)
    }

    /// Sums what it reads by `rule`, for comparison with an index.
    pub(crate) fn summing(mut self, rule: Option<Arc<Rule>>) -> Self {
        self.range.rule = rule;
        self
    }

    /// Supplies the known erasures.
    pub(crate) fn knowing(self, known: Arc<Erasures>) -> Self {
        Self { known: Some(known), ..self }
    }

    /// Returns the first record whose evidence is missing without an erasure. The journal is read a second time if
    /// there is one, or may be one.
    pub(crate) fn unexplained(&self, reader: &Reader, until: Position) -> io::Result<Option<Breakage>> {
        let Some(known) = self.unexplained_but_for() else { return Ok(None) };
        let verified = reader.verify_parts(&mut Self::checking(known), None, until, Manner::default())?;
        Ok(verified.breakage)
    }

    /// Returns the erasures that were read, if they may not cover every record without evidence.
    pub(crate) fn unexplained_but_for(&self) -> Option<Arc<Erasures>> {
        let known = Erasures::of(&self.erasures);
        (!self.absences.are_covered(|subject| known.has(subject))).then_some(known)
    }

    /// The records that were verified, up to the first break.
    pub(crate) fn verified(&self) -> Chain {
        self.before_break.unwrap_or(self.chain)
    }

    fn new(index: Option<&'a mut Index>) -> Self {
        Self {
            index,
            persist: None,
            states: BTreeMap::new(),
            used: UsedLimits::default(),
            past: Retained::default(),
            erasures: Vec::new(),
            known: None,
            absences: Absences::default(),
            finds_erased: false,
            view_error: None,
            chain: Chain::START,
            start: Chain::START,
            before_break: None,
            is_part: false,
            begins: None,
            restarts: false,
            origin: Start::WHOLE,
            erased: None,
            range: CheckedRange::ALL,
            held: HeldSums::default(),
        }
    }

    /// Calls the index, unless it already has the entry or has failed.
    fn feed(&mut self, frame: &Frame<'_>, feed: impl FnOnce(&mut Index) -> Result<(), ViewError>) {
        let Some(index) = self.index.as_mut().filter(|index| !index.has_applied(frame.sequence)) else { return };
        if self.view_error.is_none()
            && let Err(error) = feed(index)
        {
            self.view_error = Some(error);
        }
    }

    fn decision(&mut self, frame: &Frame<'_>, hash: Digest) -> Option<Finding> {
        let known = |entity: &str| self.held.known(entity).cloned();
        let Ok(record) = CanonicalRecord::read_facts(frame.body, known) else {
            return Some(unreadable("a proof record".to_owned()));
        };
        let time = record.timestamp.as_millis();
        self.chain.latest = self.chain.latest.max(time);
        if self.is_part && self.begins.is_none() {
            let time = (!self.restarts).then_some(time);
            self.begins = Some(Begins { previous_hash: record.previous_hash, time });
            self.chain.head_hash = record.previous_hash;
        }
        let tampering = |expected: String, found: String| {
            Some(Finding { proof_id: Some(record.id), kind: BrokenKind::Tampering, expected, found })
        };
        let found = if record.previous_hash != self.chain.head_hash {
            let expected = format!("previousHash {}", self.chain.head_hash);
            tampering(expected, format!("previousHash {}", record.previous_hash))
        } else if record.id.sequence() != frame.sequence {
            let found = format!("the id of entry {}", record.id.sequence());
            tampering(format!("an id of entry {}", frame.sequence), found)
        } else if time < self.chain.last_time {
            tampering("a time not before the last record's".to_owned(), record.timestamp.to_string())
        } else {
            self.evidence(&record, frame)
        };
        if found.is_some() {
            // The record itself is not sound.
            self.before_break.get_or_insert(self.chain);
        }
        self.chain.records += u64::from(self.is_new(frame));
        self.chain.head_hash = hash;
        self.chain.last_time = time.max(self.chain.last_time);
        if self.is_new(frame)
            && let Some(used) = UsedLimit::of(frame.sequence, record.timestamp, frame.evidence)
        {
            self.used.push(used.clone());
            self.feed(frame, |index| {
                index.use_limits(used);
                Ok(())
            });
        }
        let facts = RecordFacts {
            entity: &record.entity_id,
            intent: record.intent_id,
            time: record.timestamp,
            decision: record.decision,
            risk: record.risk_level,
            score: record.trust_score,
            hash,
        };
        self.held.add_record(self.range.rule.as_deref(), frame.sequence, &facts);
        self.feed(frame, |index| index.add_record(frame.sequence, &facts));
        found
    }

    fn evidence(&mut self, record: &CanonicalRecord<'_>, frame: &Frame<'_>) -> Option<Finding> {
        let stored = frame.evidence;
        self.finds_erased |= !self.finds_erased
            && !frame.has_no_evidence()
            && self.range.erased.as_ref().is_some_and(|covered| covered.has(Subject::of(record)));
        let found = evidence::digest(stored);
        if found == record.evidence_hash {
            return None;
        }
        if let Some(erased) = &mut self.erased
            && frame.has_no_evidence()
            && self.known.as_ref().is_none_or(|known| known.has(Subject::of(record)))
        {
            *erased += 1;
            return None;
        }
        match &self.known {
            _ if self.erased.is_some() => {}
            Some(known) if known.has(Subject::of(record)) => return None,
            // Evidence without any of the bytes that an erasure leaves was not erased.
            None if stored.is_empty() || stored.contains(&GONE) => {
                self.absences.add(Subject::of(record));
                return None;
            }
            Some(_) | None => {}
        }
        Some(other_evidence(record, stored, found))
    }

    /// Returns whether the entry is not known already.
    fn is_new(&self, frame: &Frame<'_>) -> bool {
        frame.sequence.get() >= self.range.from
    }

    /// Processes an entry that is not a decision.
    fn entry(&mut self, frame: &Frame<'_>) -> Option<Finding> {
        let entry = Entry::read(frame.kind, frame.body).filter(|entry| match entry {
            Entry::Erasure(erasure, _) => erasure.entries <= frame.sequence.get(),
            _ => true,
        });
        let Some(entry) = entry else { return Some(unreadable_entry(frame.kind)) };
        let at = entry.time();
        self.chain.latest = self.chain.latest.max(at.as_millis());
        if self.is_new(frame) {
            for state in entry.states() {
                self.set_state(frame, &state.key, state.value.get().as_bytes());
            }
            if let Some(key) = kept_key(frame.kind, frame.sequence) {
                self.set_state(frame, &key, frame.body);
            }
        }
        self.feed(frame, |index| {
            index.see_time(at);
            Ok(())
        });
        match entry {
            Entry::Outcome(entry) => self.outcome(frame, &entry),
            Entry::Erasure(erasure, _) if self.is_new(frame) => self.erasures.push((frame.sequence, erasure)),
            Entry::Clock(entry) => self.clock(frame, &entry),
            entry => self.past.take(entry),
        }
        None
    }

    /// Processes a confirmation of the clock: times continue from what it showed.
    fn clock(&mut self, frame: &Frame<'_>, entry: &ClockEntry) {
        self.chain.last_time = entry.timestamp.as_millis();
        self.restarts = true;
        if entry.steps_back() && self.is_new(frame) {
            self.used.restart(entry.timestamp);
        }
        self.feed(frame, |index| {
            index.restart_time(frame.sequence, entry.timestamp);
            Ok(())
        });
    }

    fn outcome(&mut self, frame: &Frame<'_>, entry: &OutcomeEntry<'_>) {
        let record = entry.proof_id.sequence();
        if OutcomeBasis::gives_back(entry.basis, entry.outcome) && self.is_new(frame) {
            self.used.give_back(record);
            self.feed(frame, |index| {
                index.give_back(record);
                Ok(())
            });
        }
        if record.get() >= self.range.first
            && let Some(rule) = &self.range.rule
        {
            self.held.add_outcome(rule, &entry.entity_id, record, entry.outcome, frame.sequence);
        }
        self.feed(frame, |index| index.add_outcome(&entry.entity_id, record, entry.outcome));
    }

    fn set_state(&mut self, frame: &Frame<'_>, key: &str, value: &[u8]) {
        self.states.insert(key.to_owned(), value.to_vec());
        self.feed(frame, |index| {
            index.set_state(key, value);
            Ok(())
        });
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
                self.begins = Some(Begins { time: begins.time.filter(|_| !self.restarts), ..begins });
            } else if begins.previous_hash != self.chain.head_hash
                || begins.time.is_some_and(|time| time < self.chain.last_time)
            {
                return false;
            }
            self.chain.head_hash = part.chain.head_hash;
        }
        if part.begins.is_some() || part.restarts {
            self.chain.last_time = part.chain.last_time;
        }
        self.restarts |= part.restarts;
        self.chain.latest = self.chain.latest.max(part.chain.latest);
        match &self.known {
            Some(known) if !part.absences.are_covered(|subject| known.has(subject)) => return false,
            Some(_) => {}
            None => self.absences.join(&part.absences),
        }
        self.finds_erased |= part.finds_erased;
        self.erasures.extend(part.erasures);
        self.chain.records += part.chain.records;
        self.states.extend(part.states);
        self.used.join(part.used);
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
            // The beginning of the journal may be stated there.
            if frame.kind != Kind::Archive {
                return None;
            }
            let Some(entry) = Entry::read(frame.kind, frame.body) else { return Some(unreadable_entry(frame.kind)) };
            self.past.take(entry);
            return None;
        }
        if self.past.freeze.is_some() {
            return Some(Finding {
                proof_id: None,
                kind: BrokenKind::Tampering,
                expected: "the end of a log that is frozen".to_owned(),
                found: format!("another entry, a {}", frame.kind),
            });
        }
        let finding = if frame.kind == Kind::Decision { self.decision(frame, *digest) } else { self.entry(frame) };
        let position = Position { entries: frame.sequence.get() + 1, link: frame.link };
        let persist = self.persist;
        self.feed(frame, |index| {
            index.advance(position);
            persist.map_or(Ok(()), |store| index.relieve(store))
        });
        finding
    }

    fn broken(&mut self) {
        self.before_break.get_or_insert(self.chain);
    }
}

fn other_evidence(record: &CanonicalRecord<'_>, bytes: &[u8], found: Digest) -> Finding {
    // Bytes that still decode as evidence were more likely written than corrupted.
    let kind = if evidence::decode(bytes).is_some() { BrokenKind::Tampering } else { BrokenKind::Damage };
    let (expected, found) = (format!("evidenceHash {}", record.evidence_hash), format!("evidence of hash {found}"));
    Finding { proof_id: Some(record.id), kind, expected, found }
}

fn unreadable(expected: String) -> Finding {
    let found = "a body that cannot be read".to_owned();
    Finding { proof_id: None, kind: BrokenKind::Tampering, expected, found }
}

fn unreadable_entry(kind: Kind) -> Finding {
    unreadable(format!("an entry of the kind {kind}"))
}
