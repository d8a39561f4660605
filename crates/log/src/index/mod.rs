//! The index over the journal: the records of each entity and of all entities, in order and in blocks with summaries;
//! the records of each intent; and totals.
//!
//! The index takes in entries in their order and answers which records match, how many there are, and what their
//! counts add up to. Changes stay in memory until they are persisted, which is due when they take too much memory.
//! Summaries and short lists are always in memory. The persisted index can be rebuilt from the journal.
//!
//! | file | subject |
//! |---|---|
//! | `posting.rs` | the data kept for each record |
//! | `sums.rs` | sums over records |
//! | `intents.rs` | the records of an intent |
//! | `dirty.rs` | changes not persisted yet |
//! | `kept.rs` | the data with which a log starts before its journal is read |
//! | `select.rs` | answering queries |
//! | `persist.rs` | persisting and loading the index |
//! | `held.rs` | checksums to compare all of the index with the journal |
//! | `recent.rs` | the last decisions, for outcomes |
//! | `reading.rs` | reading the journal into the index |
//! | `part.rs` | the index of a running log |

mod dirty;
mod held;
mod intents;
mod kept;
mod part;
mod persist;
mod posting;
pub(super) mod reading;
pub(super) mod recent;
mod select;
mod sums;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use held::{Held, HeldSums, HoldPlace, Holding, Rule};
pub(crate) use kept::KeptStart;
pub(super) use part::{IndexPart, held_in, load_view};
pub(crate) use persist::Mark;
pub(crate) use posting::{Cells, Filter};
pub(crate) use select::{Paging, Selection};
pub(crate) use sums::Sums;

use dirty::Dirty;
use intents::Intents;
use kept::Kept;
use posting::{Block, FEW, Posting};
use sums::{OPEN, SumTree, Summary};

use crate::journal::used::UsedLimit;
use crate::store::{Blocks, Position, ViewError};
use rulekeep_types::{AgentId, Decision, Digest, IntentId, Outcome, RiskLevel, Score, Sequence, Timestamp};

/// The index. The log's writer changes it; any thread reads it.
pub(crate) struct Index {
    /// The storage of persisted blocks. Without it the index is in memory only.
    blocks: Option<Arc<Blocks>>,
    /// Distinguishes this index from one that replaces it.
    identity: u64,
    numbers: HashMap<AgentId, u32>,
    entities: Vec<Entity>,
    /// The records of all entities.
    all: List,
    intents: Intents,
    kept: Kept,
    /// The changes that are not persisted yet.
    dirty: Dirty,
    /// The number of the next block that is full.
    next_block: u32,
    /// Number of entries applied since the index was last persisted.
    unpersisted: u64,
    totals: Totals,
    /// The entries at which the log's time stepped back. Between two of them it only rises.
    eras: Vec<Sequence>,
}

/// Totals over the whole journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// The position after the last applied entry.
    pub(crate) applied: Position,
    /// Number of proof records.
    pub records: u64,
    /// The hash of the last proof record.
    pub(crate) head_hash: Digest,
    /// The time of the last entry, in milliseconds since 1970.
    pub(crate) last_time: i64,
    /// The UTC day of the two counts below.
    pub day: i64,
    pub decisions_that_day: u64,
    pub escalations_that_day: u64,
}

struct Entity {
    id: AgentId,
    list: List,
}

/// Records in order.
enum List {
    /// A short list, kept in memory.
    Few(Block),
    /// The summaries of the list's blocks.
    Many(Box<SumTree>),
}

/// The properties of a proof record that the index stores.
pub(crate) struct RecordFacts<'a> {
    pub(crate) entity: &'a AgentId,
    pub(crate) intent: IntentId,
    pub(crate) time: Timestamp,
    pub(crate) decision: Decision,
    pub(crate) risk: RiskLevel,
    pub(crate) score: Score,
    pub(crate) hash: Digest,
}

impl Index {
    /// Creates an empty index.
    pub(crate) fn new(blocks: Option<Blocks>) -> Self {
        Self {
            blocks: blocks.map(Arc::new),
            identity: NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed),
            numbers: HashMap::new(),
            entities: Vec::new(),
            // This list always has blocks.
            all: List::Many(Box::default()),
            intents: Intents::default(),
            kept: Kept::default(),
            dirty: Dirty::default(),
            next_block: 0,
            unpersisted: 0,
            totals: Totals {
                applied: Position { entries: 0, link: Digest::ZERO },
                records: 0,
                head_hash: Digest::ZERO,
                last_time: i64::MIN,
                day: i64::MIN,
                decisions_that_day: 0,
                escalations_that_day: 0,
            },
            eras: Vec::new(),
        }
    }

    /// The totals so far.
    pub(crate) fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Returns whether the entry was applied already.
    pub(crate) fn has_applied(&self, sequence: Sequence) -> bool {
        sequence.get() < self.totals.applied.entries
    }

    /// Moves the position past an entry, after its content is applied.
    pub(crate) fn advance(&mut self, position: Position) {
        self.totals.applied = position;
        self.unpersisted += 1;
    }

    /// Adds a proof record.
    pub(crate) fn add_record(&mut self, sequence: Sequence, facts: &RecordFacts<'_>) -> Result<(), ViewError> {
        let posting = Posting::new(sequence, facts.time.as_millis(), facts.decision, facts.risk, facts.score);
        let number = self.number(facts.entity)?;
        self.push(number, posting)?;
        self.push(ALL, posting)?;
        self.intents.push(facts.intent, sequence);
        self.count_record(facts);
        Ok(())
    }

    /// Adds an outcome. Has no effect if the record already has one.
    pub(crate) fn add_outcome(
        &mut self,
        entity: &AgentId,
        sequence: Sequence,
        outcome: Outcome,
    ) -> Result<(), ViewError> {
        let Some(number) = self.numbers.get(entity).copied() else { return Ok(()) };
        if self.set_outcome(number, sequence, outcome)? {
            self.set_outcome(ALL, sequence, outcome)?;
        }
        Ok(())
    }

    /// Sets the hash that precedes the first record, if earlier records are not in the journal.
    pub(crate) fn begin_with(&mut self, head_hash: Digest) {
        if self.totals.applied.entries == 0 {
            self.totals.head_hash = head_hash;
        }
    }

    /// Keeps the new value of a state, for a log that is opened before its journal is read.
    pub(crate) fn set_state(&mut self, key: &str, value: &[u8]) {
        if self.blocks.is_some() {
            self.kept.set_state(key, value);
        }
    }

    /// Keeps the use of limits by a decision, for the same purpose.
    pub(crate) fn use_limits(&mut self, used: UsedLimit) {
        if self.blocks.is_some() {
            self.kept.used(used);
        }
    }

    /// Keeps that the limits used by a decision were released.
    pub(crate) fn give_back(&mut self, record: Sequence) {
        if self.blocks.is_some() {
            self.kept.give_back(record);
        }
    }

    /// Updates the last time with that of an entry.
    pub(crate) fn see_time(&mut self, at: Timestamp) {
        self.totals.last_time = self.totals.last_time.max(at.as_millis());
    }

    /// Lets time continue from `at` after an entry, which may be a step back.
    pub(crate) fn restart_time(&mut self, entry: Sequence, at: Timestamp) {
        if at.as_millis() < self.totals.last_time {
            self.eras.push(entry);
        }
        self.totals.last_time = at.as_millis();
    }

    /// The entry at which time last stepped back; the first entry if it never did.
    pub(crate) fn era_start(&self) -> Sequence {
        self.eras.last().copied().unwrap_or(Sequence::FIRST)
    }

    fn count_record(&mut self, facts: &RecordFacts<'_>) {
        self.see_time(facts.time);
        let totals = &mut self.totals;
        totals.records += 1;
        totals.head_hash = facts.hash;
        if totals.day != facts.time.day() {
            totals.day = facts.time.day();
            totals.decisions_that_day = 0;
            totals.escalations_that_day = 0;
        }
        totals.decisions_that_day += 1;
        totals.escalations_that_day += u64::from(facts.decision == Decision::Escalate);
    }

    fn number(&mut self, entity: &AgentId) -> Result<u32, ViewError> {
        if let Some(number) = self.numbers.get(entity) {
            return Ok(*number);
        }
        let number = block_number(self.entities.len())?;
        self.numbers.insert(entity.clone(), number);
        self.entities.push(Entity { id: entity.clone(), list: List::Few(Block::default()) });
        self.dirty.page(number);
        Ok(number)
    }

    fn list(&self, number: u32) -> Option<&List> {
        if number == ALL { Some(&self.all) } else { self.entities.get(number as usize).map(|entity| &entity.list) }
    }

    fn list_mut(&mut self, number: u32) -> Result<&mut List, ViewError> {
        let list = if number == ALL {
            Some(&mut self.all)
        } else {
            self.entities.get_mut(number as usize).map(|entity| &mut entity.list)
        };
        list.ok_or(ViewError::Disagrees("a list is missing"))
    }

    fn push(&mut self, number: u32, posting: Posting) -> Result<(), ViewError> {
        let list = self.list_mut(number)?;
        if let List::Few(few) = list {
            if few.postings().len() < FEW {
                few.push(posting);
                self.dirty.page(number);
                return Ok(());
            }
            let block = std::mem::take(few);
            *list = List::Many(Box::new(SumTree::new(Summary::of(&block).into_iter().collect())));
            self.dirty.put_block((number, 0), block);
            self.dirty.page(number);
        }
        self.push_to_blocks(number, posting)
    }

    fn push_to_blocks(&mut self, number: u32, posting: Posting) -> Result<(), ViewError> {
        let leaves = self.list(number).map_or(&[][..], List::leaves);
        let is_new = leaves.last().is_none_or(|last| last.id != OPEN);
        let block = block_number(leaves.len() - usize::from(!is_new))?;
        if is_new {
            self.dirty.put_block((number, block), Block::default());
        }
        let grown = self.block_mut(number, block)?;
        grown.push(posting);
        let is_full = grown.postings().len() >= Block::CAPACITY;
        self.dirty.grew();
        self.dirty.summary(number, block);
        let id = self.next_block;
        let List::Many(tree) = self.list_mut(number)? else { return Ok(()) };
        if is_new {
            tree.push_block(posting);
        } else {
            tree.push(posting);
        }
        if is_full {
            tree.fill(id);
            self.next_block = block_number(id as usize + 1)?;
            self.dirty.filled((number, block));
        }
        Ok(())
    }

    /// Sets the outcome of a record. Returns true if the record exists and had none.
    fn set_outcome(&mut self, number: u32, sequence: Sequence, outcome: Outcome) -> Result<bool, ViewError> {
        if let List::Few(few) = self.list_mut(number)? {
            let set = few.set_outcome(sequence, outcome).is_some();
            if set {
                self.dirty.page(number);
            }
            return Ok(set);
        }
        let Some(block) = self.list(number).and_then(|list| list.block_of(sequence)) else { return Ok(false) };
        let changed = self.block_mut(number, block_number(block)?)?.set_outcome(sequence, outcome);
        let Some((before, after)) = changed else { return Ok(false) };
        if let List::Many(tree) = self.list_mut(number)? {
            tree.change(block, before, after);
        }
        self.dirty.summary(number, block_number(block)?);
        Ok(true)
    }

    /// Returns a block to be changed, loading it if it is not in memory.
    fn block_mut(&mut self, list: u32, number: u32) -> Result<&mut Block, ViewError> {
        if !self.dirty.has_block((list, number)) {
            let block = self.fetch(list, number)?;
            self.dirty.put_block((list, number), block);
        }
        self.dirty.block_mut((list, number)).ok_or(ViewError::Disagrees("a block is missing"))
    }
}

impl List {
    fn leaves(&self) -> &[Summary] {
        match self {
            Self::Few(_) => &[],
            Self::Many(tree) => tree.leaves(),
        }
    }

    /// The block in which the record would be.
    fn block_of(&self, sequence: Sequence) -> Option<usize> {
        self.leaves().partition_point(|summary| summary.first <= sequence).checked_sub(1)
    }

    fn sums(&self) -> Sums {
        match self {
            Self::Few(few) => {
                let mut sums = Sums::default();
                for posting in few.postings() {
                    sums.add_posting(*posting);
                }
                sums
            }
            Self::Many(tree) => tree.all(),
        }
    }
}

static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(0);

/// The number of the list of all records.
const ALL: u32 = u32::MAX;

fn block_number(count: usize) -> Result<u32, ViewError> {
    u32::try_from(count).ok().filter(|number| *number != ALL).ok_or(ViewError::Disagrees("more than can be numbered"))
}
