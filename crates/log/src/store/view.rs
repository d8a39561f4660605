//! The index's blocks on sled, by key. They can be rebuilt from the journal.
//!
//! sled can panic on damage, and its flush is not an fsync on Linux, so nothing here is trusted: every value carries
//! a checksum, every call contains panics, and the caller rebuilds from the journal on any error.

use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// The blocks of the index. One thread writes; any thread reads.
pub struct Blocks {
    db: sled::Db,
}

/// A key and its block.
pub(crate) type KeyAndBlock = (Vec<u8>, Vec<u8>);

/// The reason the index cannot be used; the caller then rebuilds it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    #[error("sled failed: {0}")]
    Failed(String),
    #[error("sled panicked: {0}")]
    Panicked(String),
    #[error("a block's checksum is wrong")]
    Checksum,
    #[error("the index disagrees with the journal: {0}")]
    Disagrees(&'static str),
    #[error("{0} are not those that the journal has")]
    Differs(String),
}

/// A set of changes that is applied atomically.
#[derive(Default)]
pub struct BlockBatch {
    batch: sled::Batch,
}

impl BlockBatch {
    /// Stores a block under a key.
    pub fn put(&mut self, key: &[u8], block: &[u8]) {
        let mut value = Vec::with_capacity(block.len() + CRC_BYTES);
        value.extend_from_slice(&crc32fast::hash(block).to_le_bytes());
        value.extend_from_slice(block);
        self.batch.insert(key, value);
    }

    /// Removes a block.
    pub(crate) fn remove(&mut self, key: &[u8]) {
        self.batch.remove(key);
    }
}

impl Blocks {
    /// Opens the index in a folder, or a temporary one that is deleted when dropped.
    pub fn open(folder: Option<&Path>, cache_bytes: u64) -> Result<Self, ViewError> {
        let config = sled::Config::new()
            .cache_capacity((cache_bytes / MEMORY_OF_CACHE).max(LEAST_CACHE))
            .segment_size(SEGMENT_BYTES)
            .flush_every_ms(None)
            .print_profile_on_drop(false);
        let config = match folder {
            Some(folder) => {
                remove_half_written_snapshots(folder);
                config.path(folder)
            }
            None => config.temporary(true),
        };
        let deadline = Instant::now() + LOCK_PATIENCE;
        loop {
            match contain(|| config.open()) {
                Ok(db) => return Ok(Self { db }),
                // A store that was just closed may hold its lock for a moment longer.
                Err(ViewError::Failed(message)) if message.contains("lock") && Instant::now() < deadline => {
                    thread::sleep(LOCK_PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the block under a key.
    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, ViewError> {
        contain(|| self.db.get(key))?.map(|value| verified(&value)).transpose()
    }

    /// Returns all blocks whose keys start with `prefix`, in the order of their keys.
    pub fn scan(&self, prefix: &[u8]) -> Result<Vec<KeyAndBlock>, ViewError> {
        contain(|| self.db.scan_prefix(prefix).collect::<Result<Vec<_>, _>>())?
            .into_iter()
            .map(|(key, value)| verified(&value).map(|block| (key.to_vec(), block)))
            .collect()
    }

    /// Applies a batch and flushes.
    pub fn apply_and_flush(&self, batch: BlockBatch) -> Result<(), ViewError> {
        self.apply(batch)?;
        contain(|| self.db.flush()).map(drop)
    }

    /// Applies a batch.
    pub(crate) fn apply(&self, batch: BlockBatch) -> Result<(), ViewError> {
        contain(|| self.db.apply_batch(batch.batch))?;
        // sled frees replaced data while it is used, which is rare here: most of what a batch replaced would stay in
        // memory.
        (0..COLLECTED).for_each(|_| crossbeam_epoch::pin().flush());
        Ok(())
    }
}

/// Moves an unusable index out of the way, replacing one that was moved before.
pub fn set_aside(folder: &Path) -> io::Result<()> {
    let aside = folder.with_extension("damaged");
    match fs::remove_dir_all(&aside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    match fs::rename(folder, &aside) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        renamed => renamed,
    }
}

/// Number of steps that free replaced data, about a hundred objects each: more than the largest batch leaves.
const COLLECTED: usize = 256;
/// Memory that sled takes for a byte of its cache, about (its issue 1388, and measured).
const MEMORY_OF_CACHE: u64 = 8;
const LEAST_CACHE: u64 = 1 << 20;
/// sled fills buffers of this size, and keeps values and nodes above a quarter of it in files of their own, so a node of
/// 16 values of up to 4 KiB still fits.
const SEGMENT_BYTES: usize = 256 << 10;
const CRC_BYTES: usize = 4;
const LOCK_PATIENCE: Duration = Duration::from_secs(1);
const LOCK_PAUSE: Duration = Duration::from_millis(20);

fn verified(value: &[u8]) -> Result<Vec<u8>, ViewError> {
    let (crc, block) = value.split_first_chunk::<CRC_BYTES>().ok_or(ViewError::Checksum)?;
    if u32::from_le_bytes(*crc) == crc32fast::hash(block) { Ok(block.to_vec()) } else { Err(ViewError::Checksum) }
}

/// Deletes half-written snapshots, which sled would take for the newest one (sled issues 1527 and 1533).
fn remove_half_written_snapshots(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_string_lossy().ends_with(".generating") {
            // If it cannot be deleted, opening fails and the index is rebuilt.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Calls sled and turns its panics into errors.
fn contain<T>(call: impl FnOnce() -> Result<T, sled::Error>) -> Result<T, ViewError> {
    // A panic may leave sled's state torn. The caller drops it and rebuilds, so the torn state is never used.
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(ViewError::Failed(error.to_string())),
        Err(panic) => {
            let message = panic.downcast_ref::<String>().cloned();
            let message = message.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
            Err(ViewError::Panicked(message.unwrap_or_else(|| "without a message".to_owned())))
        }
    }
}
