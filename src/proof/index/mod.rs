//! The index over the journal: for each entity its records in order, in blocks
//! with summaries; and the totals.
//!
//! It takes in entries in their order and answers which records match, how
//! many there are, and what their counts add up to. Blocks that changed stay in
//! memory until they are persisted to the view; summaries are always in memory.
//!
//! `posting.rs` holds what is kept of a record, `select.rs` answers,
//! `persist.rs` brings the index to the view and back, and `census.rs` counts
//! what the view is held against.

mod census;
mod persist;
mod posting;
mod select;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use census::Census;
pub(crate) use persist::Mark;
pub(crate) use posting::{Filter, Tally};

use posting::{Block, Posting, Summary};

use crate::model::{AgentId, Decision, Digest, Outcome, RiskLevel, Score, Sequence, Timestamp};
use crate::store::{Blocks, Position, ViewError};

/// The index. The log's writer changes it; anybody reads it.
pub(crate) struct Index {
    /// Where blocks are persisted; an index without it keeps everything in memory.
    blocks: Option<Arc<Blocks>>,
    /// Tells this index from one that is made in its place.
    identity: u64,
    numbers: HashMap<AgentId, u32>,
    entities: Vec<Entity>,
    /// Blocks by entity and number that the view does not have as they are.
    dirty: HashMap<(u32, u32), Block>,
    dirty_entities: HashSet<u32>,
    /// Entries applied since the index was last persisted.
    unpersisted: u64,
    totals: Totals,
}

/// What is counted over the whole journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Totals {
    /// Behind the last applied entry.
    pub(crate) applied: Position,
    /// How many proof records.
    pub(crate) records: u64,
    /// The hash of the last proof record.
    pub(crate) head_hash: Digest,
    /// The time of the last entry that has one.
    pub(crate) last_time: i64,
    /// The UTC day of the two counts below.
    pub(crate) day: i64,
    pub(crate) decisions_that_day: u64,
    pub(crate) escalations_that_day: u64,
}

struct Entity {
    id: AgentId,
    summaries: Vec<Summary>,
}

/// What the index takes in of a proof record.
pub(crate) struct RecordFacts<'a> {
    pub(crate) entity: &'a AgentId,
    pub(crate) time: Timestamp,
    pub(crate) decision: Decision,
    pub(crate) risk: RiskLevel,
    pub(crate) score: Score,
    pub(crate) hash: Digest,
}

impl Index {
    /// An empty index.
    pub(crate) fn new(blocks: Option<Blocks>) -> Self {
        Self {
            blocks: blocks.map(Arc::new),
            identity: NEXT_IDENTITY.fetch_add(1, Ordering::Relaxed),
            numbers: HashMap::new(),
            entities: Vec::new(),
            dirty: HashMap::new(),
            dirty_entities: HashSet::new(),
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
        }
    }

    /// The totals so far.
    pub(crate) fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Whether the entry was applied already.
    pub(crate) fn has_applied(&self, sequence: Sequence) -> bool {
        sequence.get() < self.totals.applied.entries
    }

    /// Moves the mark behind an entry, once what it says is applied.
    pub(crate) fn advance(&mut self, position: Position) {
        self.totals.applied = position;
        self.unpersisted += 1;
    }

    /// Takes in a proof record.
    pub(crate) fn add_record(&mut self, sequence: Sequence, facts: &RecordFacts<'_>) -> Result<(), ViewError> {
        let number = self.number(facts.entity)?;
        let posting = Posting::new(sequence, facts.time.as_millis(), facts.decision, facts.risk, facts.score);
        let summaries = self.entities.get(number as usize).map_or(&[][..], |entity| &entity.summaries);
        let full = summaries.last().is_none_or(|last| last.tally.total() >= Block::CAPACITY as u64);
        let block_number = block_number(summaries.len() - usize::from(!full))?;
        if full {
            self.dirty.insert((number, block_number), Block::default());
        }
        self.block_mut(number, block_number)?.push(posting);
        if let Some(entity) = self.entities.get_mut(number as usize) {
            match entity.summaries.last_mut().filter(|_| !full) {
                Some(summary) => summary.add(posting),
                None => entity.summaries.push(Summary::new(posting)),
            }
        }
        self.dirty_entities.insert(number);
        self.count_record(facts);
        Ok(())
    }

    /// Takes in an outcome; one for a record that has one already changes nothing.
    pub(crate) fn add_outcome(
        &mut self,
        entity: &AgentId,
        sequence: Sequence,
        outcome: Outcome,
        at: Timestamp,
    ) -> Result<(), ViewError> {
        self.see_time(at);
        let Some((number, block_number)) = self.place_of(entity, sequence)? else { return Ok(()) };
        let block = self.block_mut(number, block_number)?;
        let posting = block.find(sequence);
        let set = block.set_outcome(sequence, outcome);
        if let (Some(posting), Some(())) = (posting, set) {
            let entity = self.entities.get_mut(number as usize);
            if let Some(summary) = entity.and_then(|entity| entity.summaries.get_mut(block_number as usize)) {
                summary.set_outcome(posting, outcome);
            }
            self.dirty_entities.insert(number);
        }
        Ok(())
    }

    /// Notes the time of an entry.
    pub(crate) fn see_time(&mut self, at: Timestamp) {
        self.totals.last_time = self.totals.last_time.max(at.as_millis());
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
        self.entities.push(Entity { id: entity.clone(), summaries: Vec::new() });
        Ok(number)
    }

    /// The entity's number and the block that a record of it would stand in.
    fn place_of(&self, entity: &AgentId, sequence: Sequence) -> Result<Option<(u32, u32)>, ViewError> {
        let Some(number) = self.numbers.get(entity).copied() else { return Ok(None) };
        let summaries = self.entities.get(number as usize).map_or(&[][..], |entity| &entity.summaries);
        let behind = summaries.partition_point(|summary| summary.first <= sequence);
        behind.checked_sub(1).map(|block| block_number(block).map(|block| (number, block))).transpose()
    }

    /// A block to change, fetched from the view when it is not in memory.
    fn block_mut(&mut self, entity: u32, number: u32) -> Result<&mut Block, ViewError> {
        if !self.dirty.contains_key(&(entity, number)) {
            let block = self.fetch(entity, number)?;
            self.dirty.insert((entity, number), block);
        }
        self.dirty.get_mut(&(entity, number)).ok_or(ViewError::Disagrees("a block is missing"))
    }
}

static NEXT_IDENTITY: AtomicU64 = AtomicU64::new(0);

fn block_number(count: usize) -> Result<u32, ViewError> {
    u32::try_from(count).map_err(|_| ViewError::Disagrees("more blocks than can be numbered"))
}
