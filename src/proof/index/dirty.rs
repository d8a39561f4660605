//! The changes of the index that are not persisted yet, and their size.

use std::collections::{HashMap, HashSet};

use super::posting::{Block, Posting};
use super::sums::Summary;

/// The items to persist, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    blocks: HashMap<(u32, u32), Block>,
    chunks: HashSet<(u32, u32)>,
    pages: HashSet<u32>,
    /// Approximate encoded size in bytes.
    bytes: usize,
}

impl Dirty {
    pub(super) fn has_block(&self, place: (u32, u32)) -> bool {
        self.blocks.contains_key(&place)
    }

    pub(super) fn block(&self, place: (u32, u32)) -> Option<&Block> {
        self.blocks.get(&place)
    }

    pub(super) fn block_mut(&mut self, place: (u32, u32)) -> Option<&mut Block> {
        self.blocks.get_mut(&place)
    }

    pub(super) fn put_block(&mut self, place: (u32, u32), block: Block) {
        self.bytes += block.postings().len() * Posting::BYTES + OVERHEAD;
        self.blocks.insert(place, block);
    }

    /// Records that a block in memory grew by a posting.
    pub(super) fn grew(&mut self) {
        self.bytes += Posting::BYTES;
    }

    /// Records that the summary of a block changed.
    pub(super) fn summary(&mut self, list: u32, block: u32) {
        if self.chunks.insert((list, block / CHUNK)) {
            // A partly filled chunk is smaller, and grows.
            self.bytes += (block % CHUNK + 1) as usize * Summary::BYTES + OVERHEAD;
        }
    }

    /// Records that something on an entity's page changed.
    pub(super) fn page(&mut self, entity: u32) {
        if self.pages.insert(entity / PAGE) {
            self.bytes += PAGE_BYTES;
        }
        self.bytes += Posting::BYTES;
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = ((u32, u32), &Block)> {
        self.blocks.iter().map(|(place, block)| (*place, block))
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

/// Number of summaries under one key.
pub(super) const CHUNK: u32 = 32;
/// Number of entities under one key.
pub(super) const PAGE: u32 = 16;
/// Approximate overhead of a key and of its places in maps and batches, in bytes.
const OVERHEAD: usize = 128;
/// Approximate size of a page in bytes: 16 IDs and a few postings each.
const PAGE_BYTES: usize = 1024 + OVERHEAD;
