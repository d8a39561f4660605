//! What changed in the index and is not in the view yet, and how much that is.

use std::collections::{HashMap, HashSet};

use super::posting::{Block, Posting};
use super::sums::Summary;

/// What is to be persisted. Lists, blocks, chunks and pages go by their numbers.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    blocks: HashMap<(u32, u32), Block>,
    chunks: HashSet<(u32, u32)>,
    pages: HashSet<u32>,
    /// About what all of it holds once it is encoded.
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

    /// Notes that a block in memory grew by a posting.
    pub(super) fn grew(&mut self) {
        self.bytes += Posting::BYTES;
    }

    /// Notes that the summary of a block changed.
    pub(super) fn summary(&mut self, list: u32, block: u32) {
        if self.chunks.insert((list, block / CHUNK)) {
            // A chunk that is not full is smaller, and grows.
            self.bytes += (block % CHUNK + 1) as usize * Summary::BYTES + OVERHEAD;
        }
    }

    /// Notes that something of an entity changed that stands in its page.
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

/// Summaries under one key.
pub(super) const CHUNK: u32 = 32;
/// Entities under one key.
pub(super) const PAGE: u32 = 16;
/// What a key and the places in maps and batches take, roughly.
const OVERHEAD: usize = 128;
/// What a page takes, roughly: 16 ids and some postings each.
const PAGE_BYTES: usize = 1024 + OVERHEAD;
