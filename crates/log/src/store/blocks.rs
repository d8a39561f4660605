//! Files of compressed blocks, the format of sealed segments. "Content offsets" below count the uncompressed bytes.
//!
//! | part | content |
//! |---|---|
//! | head | `RKblk002`, then the caller's head bytes, uncompressed |
//! | block | CRC-32 of the compressed bytes, 4 bytes; the compressed bytes (LZ4 block format) |
//! | table | for each block: its content offset, its offset in the file, the length of its content, 4 bytes each |
//! | trailer | offset of the table, number of blocks, content offset of the end, CRC-32 over these 12 bytes and the table, 4 bytes each; `RKblk002` |
//!
//! Numbers are little-endian.

use std::io;
use std::sync::Arc;

use super::files::StoreFile;
use super::frame::u32_at;

/// Builds a block file in memory.
pub(super) struct BlockWriter {
    bytes: Vec<u8>,
    table: Vec<BlockPlace>,
}

/// One row of the table: a block's content offset, its offset in the file, and the length of its content.
#[derive(Debug, Clone, Copy)]
struct BlockPlace {
    start: u32,
    offset: u32,
    len: u32,
}

impl BlockWriter {
    pub(super) fn new(head: &[u8]) -> Self {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(head);
        Self { bytes, table: Vec::new() }
    }

    /// Adds a block that starts at content offset `start`. Returns `None` past 4 GiB.
    pub(super) fn push(&mut self, start: u32, content: &[u8]) -> Option<()> {
        let offset = u32::try_from(self.bytes.len()).ok()?;
        self.table.push(BlockPlace { start, offset, len: u32::try_from(content.len()).ok()? });
        let stored = lz4_flex::block::compress(content);
        self.bytes.extend_from_slice(&crc32fast::hash(&stored).to_le_bytes());
        self.bytes.extend_from_slice(&stored);
        Some(())
    }

    /// Returns the whole file, given the content offset of the end. Returns `None` past 4 GiB.
    pub(super) fn finish(mut self, end: u32) -> Option<Vec<u8>> {
        let table_at = u32::try_from(self.bytes.len()).ok()?;
        for place in &self.table {
            for number in [place.start, place.offset, place.len] {
                self.bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
        let mut trailer = Vec::with_capacity(TRAILER_BYTES);
        for number in [table_at, u32::try_from(self.table.len()).ok()?, end] {
            trailer.extend_from_slice(&number.to_le_bytes());
        }
        let crc = trailer_crc(&trailer, self.bytes.get(table_at as usize..)?);
        trailer.extend_from_slice(&crc.to_le_bytes());
        self.bytes.extend_from_slice(&trailer);
        self.bytes.extend_from_slice(MAGIC);
        Some(self.bytes)
    }
}

/// An open block file.
pub(super) struct BlockFile {
    file: Arc<dyn StoreFile>,
    table: Vec<BlockPlace>,
    end: u32,
    table_at: u32,
}

impl BlockFile {
    /// Reads head and table. Returns `None` if either is invalid.
    pub(crate) fn open(file: Arc<dyn StoreFile>, head: &mut [u8]) -> io::Result<Option<Self>> {
        let len = file.len()?;
        let mut front = vec![0; MAGIC.len() + head.len()];
        let mut trailer = [0; TRAILER_BYTES];
        let Some(trailer_at) = len.checked_sub(TRAILER_BYTES as u64) else { return Ok(None) };
        file.read_at(&mut front, 0)?;
        file.read_at(&mut trailer, trailer_at)?;
        let (Some(head_read), Some(numbers)) = (front.strip_prefix(MAGIC), trailer.strip_suffix(MAGIC)) else {
            return Ok(None);
        };
        head.copy_from_slice(head_read);
        let [table_at, blocks, end, crc] = [0, 4, 8, 12].map(|at| u32_at(numbers, at));
        let table_len = u64::from(blocks) * PLACE_BYTES as u64;
        if u64::from(table_at) + table_len != trailer_at {
            return Ok(None);
        }
        let mut table = vec![0; usize::try_from(table_len).map_err(io::Error::other)?];
        file.read_at(&mut table, u64::from(table_at))?;
        if trailer_crc(numbers.get(..12).unwrap_or_default(), &table) != crc {
            return Ok(None);
        }
        let place =
            |bytes: &[u8]| BlockPlace { start: u32_at(bytes, 0), offset: u32_at(bytes, 4), len: u32_at(bytes, 8) };
        let table: Vec<BlockPlace> = table.chunks_exact(PLACE_BYTES).map(place).collect();
        let is_ordered =
            table.windows(2).all(|pair| matches!(pair, [a, b] if a.start < b.start && a.offset < b.offset));
        Ok(is_ordered.then_some(Self { file, table, end, table_at }))
    }

    /// The content offset of the end.
    pub(super) fn end(&self) -> u32 {
        self.end
    }

    /// Finds the block that covers a content offset. Returns its number and the content offsets of its start and end.
    pub(super) fn covering(&self, at: u32) -> Option<(usize, u32, u32)> {
        let block = self.table.partition_point(|place| place.start <= at).checked_sub(1)?;
        let end = self.table.get(block + 1).map_or(self.end, |next| next.start);
        self.table.get(block).filter(|_| at < end).map(|place| (block, place.start, end))
    }

    /// The content offset of each block.
    pub(super) fn starts(&self) -> impl Iterator<Item = u32> + '_ {
        self.table.iter().map(|place| place.start)
    }

    /// The content offset of a block.
    pub(super) fn start(&self, block: usize) -> Option<u32> {
        self.table.get(block).map(|place| place.start)
    }

    pub(super) fn blocks(&self) -> usize {
        self.table.len()
    }

    /// Reads the content of a block. Returns `None` if its checksum does not match or it does not decompress.
    pub(crate) fn read(&self, block: usize) -> io::Result<Option<Vec<u8>>> {
        let mut buffers = BlockBuffers::default();
        let holds = self.read_into(block, &mut buffers)?;
        Ok(holds.then_some(buffers.content))
    }

    /// Like [`BlockFile::read`], but reads into `buffers` to reuse memory. Returns false where `read` returns `None`.
    pub(super) fn read_into(&self, block: usize, buffers: &mut BlockBuffers) -> io::Result<bool> {
        let Some(place) = self.table.get(block) else { return Ok(false) };
        let end = self.table.get(block + 1).map_or(self.table_at, |next| next.offset);
        buffers.stored.resize(end.saturating_sub(place.offset) as usize, 0);
        let read = self.file.read_at(&mut buffers.stored, u64::from(place.offset))?;
        buffers.stored.truncate(read);
        let Some((crc, stored)) = buffers.stored.split_first_chunk() else { return Ok(false) };
        let len = place.len as usize;
        if crc32fast::hash(stored) != u32::from_le_bytes(*crc) || len > stored.len().saturating_mul(MOST_GAIN) {
            return Ok(false);
        }
        buffers.content.resize(len, 0);
        Ok(lz4_flex::block::decompress_into(stored, &mut buffers.content).is_ok_and(|written| written == len))
    }
}

/// Buffers reused from one block to the next.
#[derive(Default)]
pub(super) struct BlockBuffers {
    stored: Vec<u8>,
    pub(super) content: Vec<u8>,
}

const MAGIC: &[u8; 8] = b"RKblk002";
const PLACE_BYTES: usize = 12;
const TRAILER_BYTES: usize = 24;
/// Upper bound of the compression ratio (LZ4 reaches at most 255), so that a forged length cannot allocate much
/// memory.
const MOST_GAIN: usize = 256;

fn trailer_crc(numbers: &[u8], table: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(numbers);
    crc.update(table);
    crc.finalize()
}
