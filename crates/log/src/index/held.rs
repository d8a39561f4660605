//! Checksums over everything the index says of every record, to compare it with the journal.
//!
//! Each statement about a record, its outcome or its intent is hashed with a secret made for one comparison, and the
//! hashes are summed per entity. Two sides with the same statements in any order reach the same sums, and nobody
//! without the secret can forge statements that do.
//!
//! The index is read in pieces while the log stays in use. Each piece records the number of entries applied at that
//! time; later statements of the journal do not count for it.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::thread;

use super::posting::{Block, Posting};
use super::{ALL, Index, List, RecordFacts};
use crate::store::ViewError;
use rulekeep_types::{AgentId, Outcome, Sequence};

/// The checksums of an index.
#[derive(Debug)]
pub(crate) struct Held {
    rule: Arc<Rule>,
    sums: HeldSums,
}

/// The rule by which the journal is summed in the same way.
#[derive(Debug, Default)]
pub(crate) struct Rule {
    secret: RandomState,
    /// The pieces in which each list was read.
    entities: HashMap<AgentId, Vec<Piece>>,
    all: Vec<Piece>,
    /// Number of entries applied when the intents were read, and at the beginning.
    intents: u64,
    begin: u64,
}

/// The records from `first` on, as they were when `applied` entries were applied.
#[derive(Debug, Clone, Copy)]
struct Piece {
    first: u64,
    applied: u64,
}

/// Sums over statements.
#[derive(Debug, Default)]
pub(crate) struct HeldSums {
    entities: HashMap<AgentId, u64>,
    all: u64,
    intents: u64,
}

/// The position up to which the index was read.
#[derive(Debug, Default)]
pub(crate) struct HoldPlace {
    list: u32,
    block: usize,
    /// The last record read of the list.
    last: Option<Sequence>,
    /// The list of all records and the intents are not read.
    is_of_entities: bool,
}

impl Index {
    /// Reads the next piece into `held`. Returns false if there is none left.
    pub(crate) fn hold(&self, place: &mut HoldPlace, held: &mut Holding) -> Result<bool, ViewError> {
        let applied = self.totals.applied.entries;
        held.rule.begin = held.rule.begin.min(applied);
        let mut budget = BLOCKS_AT_ONCE;
        while budget > 0 {
            if place.list != ALL && place.list as usize >= self.entities.len() {
                if place.is_of_entities {
                    return Ok(false);
                }
                *place = HoldPlace { list: ALL, ..HoldPlace::default() };
            }
            let Some(list) = self.list(place.list) else { return Err(ViewError::Disagrees("a list is missing")) };
            let count = list.leaves().len();
            let until = count.min(place.block.saturating_add(budget));
            let mut sum = 0_u64;
            let first = match list {
                List::Few(few) => {
                    sum = held.rule.of_block(few, &mut place.last)?;
                    0
                }
                List::Many(tree) => {
                    for number in place.block..until {
                        let block = self.held_block(place.list, number)?;
                        sum = sum.wrapping_add(held.rule.of_block(&block, &mut place.last)?);
                    }
                    if place.block == 0 { 0 } else { tree.leaves().get(place.block).map_or(0, |leaf| leaf.first.get()) }
                }
            };
            held.add(self.entities.get(place.list as usize).map(|entity| &entity.id), Piece { first, applied }, sum);
            budget = budget.saturating_sub((until - place.block).max(1));
            if until < count {
                place.block = until;
            } else if place.list == ALL {
                held.rule.intents = applied;
                let rule = &held.rule;
                let mut sum = 0_u64;
                self.intents.each(self.blocks.as_deref(), &mut |mark, sequence| {
                    sum = sum.wrapping_add(rule.of_intent(mark, sequence));
                })?;
                held.sums.intents = sum;
                return Ok(false);
            } else {
                *place = HoldPlace { list: place.list + 1, block: 0, last: None, ..*place };
            }
        }
        Ok(true)
    }

    fn held_block(&self, list: u32, number: usize) -> Result<std::borrow::Cow<'_, Block>, ViewError> {
        let number = super::block_number(number)?;
        match self.dirty.block((list, number)) {
            Some(block) => Ok(std::borrow::Cow::Borrowed(block)),
            None => self.fetch(list, number).map(std::borrow::Cow::Owned),
        }
    }
}

/// The checksums of an index while it is being read.
#[derive(Debug)]
pub(crate) struct Holding {
    rule: Rule,
    sums: HeldSums,
}

impl Holding {
    pub(crate) fn new() -> Self {
        Self { rule: Rule { begin: u64::MAX, ..Rule::default() }, sums: HeldSums::default() }
    }

    /// Reads all of an index that nobody changes meanwhile, in two threads.
    pub(crate) fn all(index: &Index) -> Result<Held, ViewError> {
        let applied = index.totals.applied.entries;
        let rule = |secret| Rule { secret, begin: applied, intents: applied, ..Rule::default() };
        let secret = RandomState::new();
        let read = |mut place: HoldPlace| {
            let mut holding = Self { rule: rule(secret.clone()), sums: HeldSums::default() };
            while index.hold(&mut place, &mut holding)? {}
            Ok::<_, ViewError>(holding.sums)
        };
        let (entities, all) = thread::scope(|scope| {
            let entities = scope.spawn(|| read(HoldPlace { is_of_entities: true, ..HoldPlace::default() }));
            let all = read(HoldPlace { list: ALL, ..HoldPlace::default() });
            (entities.join().unwrap_or(Err(ViewError::Panicked("while it was read".to_owned()))), all)
        });
        let mut sums = entities?;
        sums.join(all?);
        Ok(Held { rule: Arc::new(rule(secret)), sums })
    }

    /// Completes the reading.
    pub(crate) fn done(self) -> Held {
        Held { rule: Arc::new(self.rule), sums: self.sums }
    }

    fn add(&mut self, entity: Option<&AgentId>, piece: Piece, sum: u64) {
        let (pieces, total) = match entity {
            Some(entity) => (
                self.rule.entities.entry(entity.clone()).or_default(),
                self.sums.entities.entry(entity.clone()).or_default(),
            ),
            None => (&mut self.rule.all, &mut self.sums.all),
        };
        pieces.push(piece);
        *total = total.wrapping_add(sum);
    }
}

impl Held {
    pub(crate) fn rule(&self) -> Arc<Rule> {
        Arc::clone(&self.rule)
    }

    /// Describes the first difference from the journal; `None` if there is none.
    pub(crate) fn differs_from(&self, journal: &HeldSums) -> Option<String> {
        let sum = |sums: &HeldSums, entity: &AgentId| sums.entities.get(entity).copied().unwrap_or(0);
        let other = self.sums.entities.keys().chain(journal.entities.keys());
        if let Some(entity) = other.min_by_key(|entity| (sum(&self.sums, entity) == sum(journal, entity), *entity))
            && sum(&self.sums, entity) != sum(journal, entity)
        {
            return Some(format!("the records of {entity:?}, or their outcomes", entity = entity.as_str()));
        }
        if self.sums.all != journal.all {
            return Some("the records of all entities, or their outcomes".to_owned());
        }
        (self.sums.intents != journal.intents).then(|| "which records intents have".to_owned())
    }
}

impl HeldSums {
    /// Returns an entity that was seen, by its ID.
    pub(crate) fn known(&self, entity: &str) -> Option<&AgentId> {
        self.entities.get_key_value(entity).map(|(entity, _)| entity)
    }

    /// Adds a record of the journal. Without a rule only its entity becomes known.
    pub(crate) fn add_record(&mut self, rule: Option<&Rule>, sequence: Sequence, facts: &RecordFacts<'_>) {
        let Some(rule) = rule else { return self.add_to(facts.entity, 0) };
        let posting = Posting::new(sequence, facts.time.as_millis(), facts.decision, facts.risk, facts.score);
        let hash = rule.of_posting(posting);
        self.add(rule, facts.entity, sequence, sequence, hash);
        if sequence.get() < rule.intents {
            let hash = rule.of_intent(super::intents::mark(facts.intent), sequence.get());
            self.intents = self.intents.wrapping_add(hash);
        }
    }

    /// Adds an outcome, which is in the journal at `at`.
    pub(crate) fn add_outcome(&mut self, rule: &Rule, entity: &AgentId, of: Sequence, outcome: Outcome, at: Sequence) {
        self.add(rule, entity, of, at, rule.of_outcome(of, outcome));
    }

    /// Adds the sums of other entries.
    pub(crate) fn join(&mut self, other: Self) {
        for (entity, sum) in other.entities {
            let total = self.entities.entry(entity).or_default();
            *total = total.wrapping_add(sum);
        }
        self.all = self.all.wrapping_add(other.all);
        self.intents = self.intents.wrapping_add(other.intents);
    }

    fn add_to(&mut self, entity: &AgentId, hash: u64) {
        match self.entities.get_mut(entity) {
            Some(total) => *total = total.wrapping_add(hash),
            None => _ = self.entities.insert(entity.clone(), hash),
        }
    }

    fn add(&mut self, rule: &Rule, entity: &AgentId, record: Sequence, at: Sequence, hash: u64) {
        let pieces = rule.entities.get(entity).map_or(&[][..], Vec::as_slice);
        if at.get() < applied(pieces, record).unwrap_or(rule.begin) {
            self.add_to(entity, hash);
        }
        if at.get() < applied(&rule.all, record).unwrap_or(rule.begin) {
            self.all = self.all.wrapping_add(hash);
        }
    }
}

impl Rule {
    /// The sum over a block of a list, of which `last` is the last record so far. A sum does not show the order.
    fn of_block(&self, block: &Block, last: &mut Option<Sequence>) -> Result<u64, ViewError> {
        let mut sum = 0_u64;
        for posting in block.postings() {
            if last.replace(posting.sequence()).is_some_and(|last| last >= posting.sequence()) {
                return Err(ViewError::Disagrees("a list is not in order"));
            }
            sum = sum.wrapping_add(self.of_posting(*posting));
        }
        Ok(sum)
    }

    fn of_posting(&self, posting: Posting) -> u64 {
        let outcome = posting.outcome().map_or(0, |outcome| self.of_outcome(posting.sequence(), outcome));
        let record = posting.without_outcome();
        self.of_words(record.packed(), record.time.cast_unsigned()).wrapping_add(outcome)
    }

    fn of_outcome(&self, record: Sequence, outcome: Outcome) -> u64 {
        self.of_words(record.get() | (outcome as u64 + 1) << KIND_AT, u64::MAX)
    }

    fn of_intent(&self, mark: u32, sequence: u64) -> u64 {
        self.of_words(sequence | 3 << KIND_AT, mark.into())
    }

    /// Hashes two words. INVARIANT: the two highest bits of the first are 0 for a posting, and for an outcome its number; an
    /// intent, with 3, has a smaller second word than an outcome.
    fn of_words(&self, first: u64, second: u64) -> u64 {
        let mut hasher = self.secret.build_hasher();
        hasher.write(&(u128::from(first) << 64 | u128::from(second)).to_le_bytes());
        hasher.finish()
    }
}

/// The number of entries applied when the piece with the record was read.
fn applied(pieces: &[Piece], record: Sequence) -> Option<u64> {
    let behind = pieces.partition_point(|piece| piece.first <= record.get());
    pieces.get(behind.checked_sub(1)?).map(|piece| piece.applied)
}

/// Position of the bits that tell kinds of statements apart.
const KIND_AT: u32 = 62;
/// Number of blocks read at once, during which the writer must wait.
const BLOCKS_AT_ONCE: usize = if cfg!(test) { 2 } else { 256 };
