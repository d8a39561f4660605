//! Persisting the index and loading it.
//!
//! | key | value |
//! |---|---|
//! | `m` | the mark: the store, the position of the last applied entry, the totals |
//! | `x` | present if the log was found broken |
//! | `e` + page | 16 entities, each: length of the ID, the ID, number of postings, the postings; 255 for a list with blocks |
//! | `s` + list + chunk | 8 summaries of 168 bytes |
//! | `b` + number | the 512 postings of a full block, by the number in its summary |
//! | `p` + list | the postings of the list's last block, while it is not full |
//! | `i` + run + chunk | mentions of intents in a full run of 65,536 records, 12 bytes each |
//! | `o` + piece | 256 mentions of the run that is not full |
//! | `t` + key | the latest value of a state |
//! | `u` + batch | JSON: the use of limits since the batch before, and the records whose use was released |
//! | `n` + chunk | 64 nodes of level 8 of the tree over the entries |
//!
//! Page, list, chunk and so on are big-endian numbers of four bytes. A list is that of an entity, or the last number
//! for the list of all records. All changes are written in one batch with the mark, except full blocks and full runs of
//! intents. These go to the view before the mark: nothing refers to them until it is written, and a log that lost the mark
//! writes the same ones again. Full blocks are numbered in the order in which they filled, so that sled appends them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::dirty::{CHUNK, PAGE};
use super::intents::Intents;
use super::kept::{Kept, KeptStart};
use super::posting::{Block, FEW, Posting};
use super::sums::{OPEN, SumTree, Summary, Sums};
use super::{ALL, Entity, Index, List, Totals};
use crate::journal::entry;
use crate::store::{BlockBatch, Blocks, Position, StoreId, ViewError};
use rulekeep_types::{AgentId, Digest, Sequence};

/// The state that the persisted index describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) store: StoreId,
    pub(crate) totals: Totals,
    next_block: u32,
}

/// Changes of an index to be persisted. Writing them does not need the index's lock.
pub(crate) struct Changes {
    blocks: Arc<Blocks>,
    batch: BlockBatch,
    of: u64,
    part: Part,
}

/// Changes that are persisted now.
pub(crate) struct Written {
    of: u64,
    part: Part,
}

#[derive(Debug, Clone, Copy)]
enum Part {
    /// Full blocks and full runs of intents alone.
    Full,
    /// All changes, with the mark and so many nodes of the tree.
    All { nodes: u64 },
}

impl Changes {
    /// Writes the changes in one batch.
    pub(crate) fn write(self) -> Result<Written, ViewError> {
        match self.part {
            Part::Full => self.blocks.apply(self.batch)?,
            Part::All { .. } => self.blocks.apply_and_flush(self.batch)?,
        }
        Ok(Written { of: self.of, part: self.part })
    }
}

impl Index {
    /// Loads the index. The mark is `None` if nothing is persisted.
    pub(crate) fn load(blocks: Blocks) -> Result<(Self, Option<Mark>), ViewError> {
        let Some(mark) = blocks.get(MARK)? else { return Ok((Self::new(Some(blocks)), None)) };
        let mark = Mark::decode(&mark).ok_or(ViewError::Disagrees("its mark cannot be read"))?;
        let entities = load_entities(&blocks)?;
        let all = List::Many(Box::new(load_summaries(&blocks, ALL)?));
        let intents = Intents::load(&blocks, mark.totals.records)?;
        let kept = Kept::load(&blocks, mark.totals.last_time)?;
        let mut index = Self::new(Some(blocks));
        index.numbers = (0_u32..).zip(&entities).map(|(number, entity)| (entity.id.clone(), number)).collect();
        index.entities = entities;
        index.all = all;
        index.intents = intents;
        index.kept = kept;
        index.totals = mark.totals;
        index.next_block = mark.next_block;
        index.eras = load_eras(index.blocks.as_deref())?;
        // An entity that is listed twice would answer with one of its lists.
        let is_listed_once = index.numbers.len() == index.entities.len();
        if is_listed_once && index.all.sums().total() == mark.totals.records && index.adds_up() {
            Ok((index, Some(mark)))
        } else {
            Err(ViewError::Disagrees("its summaries do not add up to its records"))
        }
    }

    /// Checks that the persisted index can be read.
    pub(crate) fn probe(&self) -> Result<(), ViewError> {
        let mark = self.blocks.as_ref().map(|blocks| blocks.get(MARK)).transpose()?;
        match mark.flatten() {
            Some(mark) if Mark::decode(&mark).is_none() => Err(ViewError::Disagrees("its mark cannot be read")),
            _ => Ok(()),
        }
    }

    /// Number of entries applied since the index was last persisted.
    pub(crate) fn unpersisted(&self) -> u64 {
        self.unpersisted
    }

    /// Returns whether the changes take so much memory that the index should be persisted.
    pub(crate) fn is_heavy(&self) -> bool {
        self.blocks.is_some() && self.dirty.bytes() + self.intents.unpersisted_bytes() + self.kept.bytes() >= HEAVY
    }

    /// Returns the data with which a log starts; `None` without a persisted index.
    pub(crate) fn kept(&self) -> Result<Option<KeptStart>, ViewError> {
        self.blocks.as_deref().map(|blocks| self.kept.start(blocks)).transpose()
    }

    /// Returns the persisted states whose keys start with `prefix`.
    pub(crate) fn persisted_states(&self, prefix: &str) -> Result<BTreeMap<String, Vec<u8>>, ViewError> {
        self.blocks.as_deref().map_or_else(|| Ok(BTreeMap::new()), |blocks| Kept::states(blocks, prefix))
    }

    /// Returns whether the log was found broken since the index was created.
    pub(crate) fn is_noted_broken(&self) -> Result<bool, ViewError> {
        self.blocks.as_deref().map_or(Ok(false), |blocks| Ok(blocks.get(BROKEN)?.is_some()))
    }

    /// Stores whether the log was found broken; if so, the next open verifies all of it.
    pub(crate) fn note_broken(&self, is_broken: bool) -> Result<(), ViewError> {
        let Some(blocks) = self.blocks.as_deref() else { return Ok(()) };
        if self.is_noted_broken()? == is_broken {
            return Ok(());
        }
        let mut batch = BlockBatch::default();
        if is_broken {
            batch.put(BROKEN, b"broken");
        } else {
            batch.remove(BROKEN);
        }
        blocks.apply_and_flush(batch)
    }

    /// The first node of the tree to pass to [`Index::changes`].
    pub(crate) fn first_node(&self) -> u64 {
        self.kept.first_node()
    }

    /// Returns the full blocks and runs that the view does not have, once there are many of them.
    pub(crate) fn full_changes(&self) -> Option<Changes> {
        let blocks = self.blocks.as_ref().filter(|_| self.has_full_changes())?;
        let mut batch = BlockBatch::default();
        for (list, number) in self.dirty.full() {
            if let Some(block) = self.dirty.block((*list, *number)) {
                self.put_block(&mut batch, *list, *number, block);
            }
        }
        self.intents.put_full(&mut batch);
        Some(Changes { blocks: Arc::clone(blocks), batch, of: self.identity, part: Part::Full })
    }

    fn put_block(&self, batch: &mut BlockBatch, list: u32, number: u32, block: &Block) {
        let mut bytes = Vec::with_capacity(PACKED_BYTES);
        block.pack(&mut bytes);
        let summary = self.list(list).and_then(|list| list.leaves().get(number as usize));
        batch.put(&block_key(list, summary), &bytes);
    }

    /// Collects all changes, ready to be written, with nodes of the tree from [`Index::first_node`] on. Returns
    /// `None` if there are no changes, or the index is in memory only.
    pub(crate) fn changes(&self, store: StoreId, nodes: &[Digest]) -> Option<Changes> {
        let blocks = self.blocks.as_ref().filter(|_| self.unpersisted > 0 || self.kept.lacks(nodes))?;
        let mut batch = BlockBatch::default();
        let mut bytes = Vec::new();
        for ((list, number), block) in self.dirty.changed() {
            self.put_block(&mut batch, list, number, block);
        }
        for (list, chunk) in self.dirty.chunks() {
            bytes.clear();
            let leaves = self.list(list).map_or(&[][..], List::leaves);
            let summaries = leaves.chunks(CHUNK as usize).nth(chunk as usize).unwrap_or_default();
            for summary in summaries {
                summary.encode(&mut bytes);
            }
            batch.put(&key(SUMMARIES, list, Some(chunk)), &bytes);
        }
        for page in self.dirty.pages() {
            bytes.clear();
            let entities = self.entities.chunks(PAGE as usize).nth(page as usize).unwrap_or_default();
            for entity in entities {
                entity.encode(&mut bytes);
            }
            batch.put(&key(ENTITIES, page, None), &bytes);
        }
        self.intents.put(&mut batch);
        self.kept.put(&mut batch, nodes, self.totals.last_time);
        batch.put(MARK, &Mark { store, totals: self.totals, next_block: self.next_block }.encode());
        Some(Changes {
            blocks: Arc::clone(blocks),
            batch,
            of: self.identity,
            part: Part::All { nodes: nodes.len() as u64 },
        })
    }

    /// Marks the changes as persisted, after they are written. Nothing else may have changed the index since
    /// [`Index::changes`]. An index that was rebuilt in the meantime keeps its changes.
    pub(crate) fn forget_changes(&mut self, Written { of, part }: Written) {
        if of != self.identity {
            return;
        }
        match part {
            Part::Full => {
                self.dirty.forget_full();
                self.intents.forget_full();
            }
            Part::All { nodes } => {
                let mut dirty = std::mem::take(&mut self.dirty);
                dirty.forget(|place| self.is_open(place));
                self.dirty = dirty;
                self.intents.forget();
                self.kept.forget(nodes, self.totals.last_time);
                self.unpersisted = 0;
            }
        }
    }

    /// Returns whether it is the last block of its list, and not full.
    fn is_open(&self, (list, number): (u32, u32)) -> bool {
        let leaves = self.list(list).map_or(&[][..], List::leaves);
        leaves.len() == number as usize + 1 && leaves.last().is_some_and(|last| last.id == OPEN)
    }

    /// Returns whether [`Self::relieve`] has anything to do.
    pub(crate) fn is_to_be_relieved(&self) -> bool {
        self.has_full_changes() || self.is_heavy()
    }

    fn has_full_changes(&self) -> bool {
        self.blocks.is_some() && (self.dirty.full().len() >= FULL_AT_ONCE || self.intents.has_fresh())
    }

    /// Persists what takes too much memory, while nobody else can change the index.
    pub(crate) fn relieve(&mut self, store: StoreId) -> Result<(), ViewError> {
        if let Some(changes) = self.full_changes() {
            self.forget_changes(changes.write()?);
        }
        if self.is_heavy() { self.persist(store) } else { Ok(()) }
    }

    /// Persists the changes. The caller must have exclusive access.
    pub(crate) fn persist(&mut self, store: StoreId) -> Result<(), ViewError> {
        let Some(changes) = self.changes(store, &[]) else { return Ok(()) };
        self.forget_changes(changes.write()?);
        Ok(())
    }

    /// Loads a block and checks it against its summary.
    pub(super) fn fetch(&self, list: u32, number: u32) -> Result<Block, ViewError> {
        let missing = ViewError::Disagrees("a block is missing");
        let blocks = self.blocks.as_ref().ok_or_else(|| missing.clone())?;
        let summary = self.list(list).and_then(|list| list.leaves().get(number as usize));
        let bytes = blocks.get(&block_key(list, summary))?.ok_or(missing)?;
        let block = Block::unpack(&bytes).ok_or(ViewError::Disagrees("a block cannot be read"))?;
        if summary.is_some_and(|summary| Summary::of(&block).is_some_and(|of| of.numbered(summary.id) == *summary)) {
            Ok(block)
        } else {
            Err(ViewError::Disagrees("a block does not add up to its summary"))
        }
    }

    /// Returns whether the list of all records has the same sums as those of the entities together.
    fn adds_up(&self) -> bool {
        let mut sums = Sums::default();
        for entity in &self.entities {
            sums.add(&entity.list.sums());
        }
        sums == self.all.sums()
    }
}

fn load_entities(blocks: &Blocks) -> Result<Vec<Entity>, ViewError> {
    let mut entities = Vec::new();
    let unreadable = ViewError::Disagrees("a page of entities cannot be read");
    for (place, (_, page)) in blocks.scan(ENTITIES)?.into_iter().enumerate() {
        let mut rest = page.as_slice();
        while !rest.is_empty() {
            let (mut entity, behind) = Entity::decode(rest).ok_or_else(|| unreadable.clone())?;
            if let List::Many(tree) = &mut entity.list {
                **tree = load_summaries(blocks, super::block_number(entities.len())?)?;
            }
            entities.push(entity);
            rest = behind;
        }
        if entities.len().div_ceil(PAGE as usize) != place + 1 {
            return Err(ViewError::Disagrees("a page of entities is missing"));
        }
    }
    Ok(entities)
}

fn load_summaries(blocks: &Blocks, list: u32) -> Result<SumTree, ViewError> {
    let mut summaries = Vec::new();
    for (_, chunk) in blocks.scan(&key(SUMMARIES, list, None))? {
        let (whole, rest) = chunk.as_chunks::<{ Summary::BYTES }>();
        if !rest.is_empty() {
            return Err(ViewError::Disagrees("a chunk of summaries cannot be read"));
        }
        summaries.extend(whole.iter().map(Summary::decode));
    }
    summaries.shrink_to_fit();
    Ok(SumTree::new(summaries))
}

impl Entity {
    fn encode(&self, out: &mut Vec<u8>) {
        let id = self.id.as_str().as_bytes();
        // An ID has at most 256 characters, which take at most 1,024 bytes.
        out.extend_from_slice(&u16::try_from(id.len()).unwrap_or(u16::MAX).to_le_bytes());
        out.extend_from_slice(id);
        match &self.list {
            List::Few(block) => {
                out.push(u8::try_from(block.postings().len()).unwrap_or(HAS_BLOCKS));
                block.encode(out);
            }
            List::Many(_) => out.push(HAS_BLOCKS),
        }
    }

    /// Decodes an entity, without the summaries of its blocks. Returns the remaining bytes too.
    fn decode(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (length, bytes) = bytes.split_first_chunk::<2>()?;
        let (id, bytes) = bytes.split_at_checked(u16::from_le_bytes(*length).into())?;
        let id: AgentId = std::str::from_utf8(id).ok()?.parse().ok()?;
        let (count, bytes) = bytes.split_first()?;
        if *count == HAS_BLOCKS {
            return Some((Self { id, list: List::Many(Box::default()) }, bytes));
        }
        let count = usize::from(*count);
        let (few, bytes) = bytes.split_at_checked(count * Posting::BYTES).filter(|_| count <= FEW)?;
        Some((Self { id, list: List::Few(Block::decode(few)?) }, bytes))
    }
}

fn load_eras(blocks: Option<&Blocks>) -> Result<Vec<Sequence>, ViewError> {
    let Some(blocks) = blocks else { return Ok(Vec::new()) };
    let kept = Kept::states(blocks, entry::PAST)?;
    Ok(kept.iter().filter_map(|(key, body)| entry::step_back(key, body)).map(|(sequence, _)| sequence).collect())
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
        bytes.extend_from_slice(&self.next_block.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (version, bytes) = bytes.split_first()?;
        let (store, bytes) = bytes.split_first_chunk::<16>()?;
        let (link, bytes) = bytes.split_first_chunk::<32>()?;
        let (head_hash, bytes) = bytes.split_first_chunk::<32>()?;
        let (words, rest) = bytes.as_chunks::<8>();
        let next_block = u32::from_le_bytes(rest.try_into().ok()?);
        let [entries, records, decisions, escalations, last_time, day] = words.try_into().ok()?;
        if *version != VERSION {
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
        Some(Self { store: StoreId(*store), totals, next_block })
    }
}

/// Size of the changes in bytes at which the index is persisted. Small in tests, so that it happens there.
const HEAVY: usize = if cfg!(test) { 64 << 10 } else { 8 << 20 };
/// Marks a list with blocks, in place of a short list's number of postings.
const HAS_BLOCKS: u8 = u8::MAX;

const VERSION: u8 = 4;
const MARK: &[u8] = b"m";
const BROKEN: &[u8] = b"x";
const ENTITIES: &[u8] = b"e";
const SUMMARIES: &[u8] = b"s";
const BLOCK: &[u8] = b"b";
const OPEN_BLOCK: &[u8] = b"p";
/// Full blocks that go to the view together.
const FULL_AT_ONCE: usize = if cfg!(test) { 2 } else { 128 };
/// About the size of a full block as it is stored.
const PACKED_BYTES: usize = 3 << 10;
pub(super) const INTENTS: &[u8] = b"i";
pub(super) const OPEN_INTENTS: &[u8] = b"o";

fn block_key(list: u32, summary: Option<&Summary>) -> Vec<u8> {
    match summary.map_or(OPEN, |summary| summary.id) {
        OPEN => key(OPEN_BLOCK, list, None),
        id => key(BLOCK, id, None),
    }
}

pub(super) fn key(kind: &[u8], first: u32, second: Option<u32>) -> Vec<u8> {
    let mut key = kind.to_vec();
    key.extend_from_slice(&first.to_be_bytes());
    key.extend(second.iter().flat_map(|number| number.to_be_bytes()));
    key
}
