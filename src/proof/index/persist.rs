//! Bringing the index to the view and back.
//!
//! | key | value |
//! |---|---|
//! | `m` | the mark: which store, which entries are applied, the totals |
//! | `n` + entity | the entity's id |
//! | `s` + entity + chunk | 256 summaries of 108 bytes |
//! | `b` + entity + block | up to 512 postings of 16 bytes |
//!
//! Entity, chunk and block are big-endian numbers of four bytes. All that
//! changed is written in one batch with the mark.

use std::collections::HashMap;
use std::sync::Arc;

use super::census::Census;
use super::posting::{Block, Summary};
use super::{Entity, Index, Totals};
use crate::model::{AgentId, Digest};
use crate::store::{BlockBatch, Blocks, Position, StoreId, ViewError};

/// What the view says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) store: StoreId,
    pub(crate) totals: Totals,
}

/// Changes of an index on their way to the view: writing them needs no hold of
/// the index.
pub(crate) struct Changes {
    blocks: Arc<Blocks>,
    batch: BlockBatch,
    of: u64,
}

/// Changes that are in the view now.
pub(crate) struct Written {
    of: u64,
}

impl Changes {
    /// Writes them in one batch.
    pub(crate) fn write(self) -> Result<Written, ViewError> {
        self.blocks.apply(self.batch)?;
        Ok(Written { of: self.of })
    }
}

impl Index {
    /// Loads the index from the view; `None` when the view is empty.
    pub(crate) fn load(blocks: Blocks) -> Result<(Self, Option<Mark>), ViewError> {
        let Some(mark) = blocks.get(MARK)? else { return Ok((Self::new(Some(blocks)), None)) };
        let mark = Mark::decode(&mark).ok_or(ViewError::Disagrees("its mark cannot be read"))?;
        let entities = load_entities(&blocks)?;
        let records: u64 = entities.iter().flat_map(|entity| &entity.summaries).map(|block| block.tally.total()).sum();
        if records != mark.totals.records {
            return Err(ViewError::Disagrees("its summaries do not add up to its records"));
        }
        let numbers: HashMap<AgentId, u32> =
            (0_u32..).zip(&entities).map(|(number, entity)| (entity.id.clone(), number)).collect();
        let mut index = Self::new(Some(blocks));
        index.entities = entities;
        index.numbers = numbers;
        index.totals = mark.totals;
        Ok((index, Some(mark)))
    }

    /// Whether each entity's sums are those that a walk of the journal counted.
    pub(crate) fn agrees_with(&self, counted: &Census) -> bool {
        let present = self.entities.iter().filter(|entity| !entity.summaries.is_empty()).count();
        present == counted.entities()
            && self.entities.iter().all(|entity| {
                let mut sums = super::Tally::default();
                entity.summaries.iter().for_each(|summary| sums.add(&summary.tally));
                counted.agrees_on(&entity.id, &sums)
            })
    }

    /// Entries applied since the index was last persisted.
    pub(crate) fn unpersisted(&self) -> u64 {
        self.unpersisted
    }

    /// Everything that changed, ready to be written; `None` when nothing did, or
    /// there is no view.
    pub(crate) fn changes(&self, store: StoreId) -> Option<Changes> {
        let blocks = self.blocks.as_ref().filter(|_| self.unpersisted > 0)?;
        let mut batch = BlockBatch::default();
        for ((entity, number), block) in &self.dirty {
            batch.put(&key(BLOCK, *entity, Some(*number)), &block.encode());
        }
        for number in &self.dirty_entities {
            if let Some(entity) = self.entities.get(*number as usize) {
                put_entity(&mut batch, *number, entity);
            }
        }
        batch.put(MARK, &Mark { store, totals: self.totals }.encode());
        Some(Changes { blocks: Arc::clone(blocks), batch, of: self.identity })
    }

    /// Forgets what changed, once it is written. Nothing else may have changed
    /// the index since [`Index::changes`]; an index that was made anew meanwhile
    /// keeps all it has.
    pub(crate) fn forget_changes(&mut self, Written { of }: Written) {
        if of == self.identity {
            self.dirty.clear();
            self.dirty_entities.clear();
            self.unpersisted = 0;
        }
    }

    /// A block as the view has it, checked against its summary.
    pub(super) fn fetch(&self, entity: u32, number: u32) -> Result<Block, ViewError> {
        let missing = ViewError::Disagrees("a block is missing");
        let blocks = self.blocks.as_ref().ok_or_else(|| missing.clone())?;
        let bytes = blocks.get(&key(BLOCK, entity, Some(number)))?.ok_or(missing)?;
        let block = Block::decode(&bytes).ok_or(ViewError::Disagrees("a block cannot be read"))?;
        let entity = self.entities.get(entity as usize);
        let summary = entity.and_then(|entity| entity.summaries.get(number as usize));
        let mut tally = super::Tally::default();
        block.postings().iter().for_each(|posting| tally.add_posting(*posting));
        if summary.is_some_and(|summary| summary.tally == tally) {
            Ok(block)
        } else {
            Err(ViewError::Disagrees("a block does not add up to its summary"))
        }
    }
}

fn load_entities(blocks: &Blocks) -> Result<Vec<Entity>, ViewError> {
    let mut entities = Vec::new();
    for (place, (_, name)) in blocks.scan(NAME)?.into_iter().enumerate() {
        let id = String::from_utf8(name).ok().and_then(|name| name.parse().ok());
        let id = id.ok_or(ViewError::Disagrees("an entity's id cannot be read"))?;
        let number = u32::try_from(place).map_err(|_| ViewError::Disagrees("too many entities"))?;
        let mut summaries = Vec::new();
        for (_, chunk) in blocks.scan(&key(SUMMARIES, number, None))? {
            let (whole, rest) = chunk.as_chunks::<{ Summary::BYTES }>();
            if !rest.is_empty() {
                return Err(ViewError::Disagrees("a chunk of summaries cannot be read"));
            }
            summaries.extend(whole.iter().map(Summary::decode));
        }
        entities.push(Entity { id, summaries });
    }
    Ok(entities)
}

/// An entity's id, and the chunks of its summaries that can have changed: an
/// outcome may reach any of them, so all are written; there is one for each
/// 131,072 records.
fn put_entity(batch: &mut BlockBatch, number: u32, entity: &Entity) {
    batch.put(&key(NAME, number, None), entity.id.as_str().as_bytes());
    for (chunk, summaries) in (0_u32..).zip(entity.summaries.chunks(CHUNK)) {
        let mut bytes = Vec::with_capacity(summaries.len() * Summary::BYTES);
        for summary in summaries {
            summary.encode(&mut bytes);
        }
        batch.put(&key(SUMMARIES, number, Some(chunk)), &bytes);
    }
}

impl Mark {
    fn encode(&self) -> Vec<u8> {
        let Totals { applied, records, head_hash, last_time, day, decisions_that_day, escalations_that_day } =
            self.totals;
        let mut bytes = vec![VERSION];
        bytes.extend_from_slice(&self.store.0);
        bytes.extend_from_slice(applied.link.as_bytes());
        bytes.extend_from_slice(head_hash.as_bytes());
        for number in [applied.entries, records, decisions_that_day, escalations_that_day] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for number in [last_time, day] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (version, bytes) = bytes.split_first()?;
        let (store, bytes) = bytes.split_first_chunk::<16>()?;
        let (link, bytes) = bytes.split_first_chunk::<32>()?;
        let (head_hash, bytes) = bytes.split_first_chunk::<32>()?;
        let (words, rest) = bytes.as_chunks::<8>();
        let [entries, records, decisions, escalations, last_time, day] = words.try_into().ok()?;
        if *version != VERSION || !rest.is_empty() {
            return None;
        }
        let totals = Totals {
            applied: Position { entries: u64::from_le_bytes(entries), link: Digest::new(*link) },
            records: u64::from_le_bytes(records),
            head_hash: Digest::new(*head_hash),
            last_time: i64::from_le_bytes(last_time),
            day: i64::from_le_bytes(day),
            decisions_that_day: u64::from_le_bytes(decisions),
            escalations_that_day: u64::from_le_bytes(escalations),
        };
        Some(Self { store: StoreId(*store), totals })
    }
}

const VERSION: u8 = 1;
const MARK: &[u8] = b"m";
const NAME: &[u8] = b"n";
const SUMMARIES: &[u8] = b"s";
const BLOCK: &[u8] = b"b";
const CHUNK: usize = 256;

fn key(kind: &[u8], entity: u32, number: Option<u32>) -> Vec<u8> {
    let mut key = kind.to_vec();
    key.extend_from_slice(&entity.to_be_bytes());
    key.extend(number.iter().flat_map(|number| number.to_be_bytes()));
    key
}
