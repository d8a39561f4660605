//! Changes of the index that are not in the view yet, and the blocks that will change next.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use super::posting::{Block, Posting};
use super::sums::Summary;

/// The blocks in memory, and the numbers of everything to be persisted.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    /// By list and number: those that changed, and the last ones of lists as long as there is room for them.
    blocks: HashMap<(u32, u32), Block, Numbers>,
    /// Blocks that the view does not have as they are.
    changed: HashSet<(u32, u32), Numbers>,
    /// Blocks that are full since the index was last persisted, and not in the view.
    full: Vec<(u32, u32)>,
    chunks: HashSet<(u32, u32), Numbers>,
    pages: HashSet<u32>,
    /// About the memory that the changes take.
    bytes: usize,
}

impl Dirty {
    pub(super) fn has_block(&self, place: (u32, u32)) -> bool {
        self.blocks.contains_key(&place)
    }

    pub(super) fn block(&self, place: (u32, u32)) -> Option<&Block> {
        self.blocks.get(&place)
    }

    /// Returns a block to be changed.
    pub(super) fn block_mut(&mut self, place: (u32, u32)) -> Option<&mut Block> {
        let block = self.blocks.get_mut(&place)?;
        if self.changed.insert(place) {
            self.bytes += weight(block);
        }
        Some(block)
    }

    pub(super) fn put_block(&mut self, place: (u32, u32), block: Block) {
        self.blocks.insert(place, block);
    }

    /// Records that a block in memory grew by a posting.
    pub(super) fn grew(&mut self) {
        self.bytes += Posting::BYTES;
    }

    /// Records that a block in memory is full.
    pub(super) fn filled(&mut self, place: (u32, u32)) {
        self.full.push(place);
    }

    /// The blocks that are full and not in the view. They may go there before anything refers to them.
    pub(super) fn full(&self) -> &[(u32, u32)] {
        &self.full
    }

    /// Forgets the full blocks, which are in the view now.
    pub(super) fn forget_full(&mut self) {
        for place in std::mem::take(&mut self.full) {
            if let Some(block) = self.blocks.remove(&place).filter(|_| self.changed.remove(&place)) {
                self.bytes = self.bytes.saturating_sub(weight(&block));
            }
        }
    }

    /// Forgets all changes, which are in the view now, and keeps those blocks that are likely to change next, unless
    /// they take too much memory.
    pub(super) fn forget(&mut self, is_last: impl Fn((u32, u32)) -> bool) {
        self.blocks.retain(|place, _| is_last(*place));
        if self.blocks.values().map(Block::bytes).sum::<usize>() > MOST_LAST {
            self.blocks = HashMap::default();
        }
        *self = Self { blocks: std::mem::take(&mut self.blocks), ..Self::default() };
    }

    /// Records that the summary of a block changed.
    pub(super) fn summary(&mut self, list: u32, block: u32) {
        if self.chunks.insert((list, block / CHUNK)) {
            // A chunk that is not full is smaller, and grows.
            self.bytes += (block % CHUNK + 1) as usize * Summary::BYTES + OVERHEAD;
        }
    }

    /// Records a change in the page of an entity.
    pub(super) fn page(&mut self, entity: u32) {
        if self.pages.insert(entity / PAGE) {
            self.bytes += PAGE_BYTES;
        }
        self.bytes += Posting::BYTES;
    }

    pub(super) fn changed(&self) -> impl Iterator<Item = ((u32, u32), &Block)> {
        self.changed.iter().filter_map(|place| Some((*place, self.blocks.get(place)?)))
    }

    pub(super) fn chunks(&self) -> impl Iterator<Item = (u32, u32)> {
        self.chunks.iter().copied()
    }

    pub(super) fn pages(&self) -> impl Iterator<Item = u32> {
        self.pages.iter().copied()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

type Numbers = BuildHasherDefault<NumberHasher>;

/// Hashes the numbers of lists and blocks. Nobody outside chooses them, so it only has to be fast.
#[derive(Debug, Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32((*byte).into());
        }
    }

    fn write_u32(&mut self, number: u32) {
        // The golden ratio, as Fibonacci hashing has it.
        self.0 = (self.0.rotate_left(32) ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

fn weight(block: &Block) -> usize {
    block.postings().len() * Posting::BYTES + OVERHEAD
}

/// Memory that the last blocks of all lists may take while they have not changed; tests want to see them go.
const MOST_LAST: usize = if cfg!(test) { 32 << 10 } else { 12 << 20 };
/// Summaries under one key.
pub(super) const CHUNK: u32 = 8;
/// Entities under one key.
pub(super) const PAGE: u32 = 16;
/// The approximate overhead of a key and its places in maps and batches.
const OVERHEAD: usize = 128;
/// The approximate size of a page: 16 ids and some postings each.
const PAGE_BYTES: usize = 1024 + OVERHEAD;
