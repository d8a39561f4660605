//! Storage below the engines: the journal, which is the source of truth, and the index on sled, which can be
//! discarded and rebuilt.
//!
//! The journal accepts whole frames in one order and returns frames by their sequence; it does not interpret their
//! content. The index stores batches of blocks by key. All file access of the journal goes through [`Files`], so that
//! tests can make any single call fail, tear a write or lose data.
//!
//! | file | subject |
//! |---|---|
//! | `files.rs` | the I/O traits |
//! | `real.rs` | the file system below a folder that is held open |
//! | `memory.rs` | a file system in memory, for stores that leave nothing behind |
//! | `overlay.rs` | a folder opened read-only, with changes kept in memory |
//! | `faulty.rs` | files that fail at a chosen call, for tests |
//! | `crash.rs` | a simulated disk that loses power, for tests |
//! | `frame.rs` | one entry as bytes |
//! | `fuzzing.rs` | the properties that the fuzz targets of these formats check |
//! | `blocks.rs`, `sealed.rs`, `sealer.rs` | sealed segments: compressed in the background, read as the originals were |
//! | `segment.rs` | one journal file: header, frames, preallocated space, offsets |
//! | `walk.rs` | reading a segment from front to back and verifying everything |
//! | `parallel.rs` | verifying many segments in parallel |
//! | `head.rs` | the small file that names the minimum the journal must contain |
//! | `erase.rs` | erasing evidence from the segments for good |
//! | `secrets.rs` | a small file for secrets that must not be in the journal |
//! | `checkpoint.rs` | the newest signed checkpoint, which the journal is compared with |
//! | `merkle/`, `tree.rs` | the Merkle tree over the entries; growing it with the journal |
//! | `journal.rs` | the segments together: append, read, seal |
//! | `recovery.rs`, `known.rs`, `open_error.rs` | opening: torn tails, damage, missing entries; opening from what is already known |
//! | `archive.rs` | moving the first entries to a file of their own |
//! | `repair.rs` | a broken journal: how far it is sound, and replacing it |
//! | `witness.rs`, `mend.rs` | how many of its entries are confirmed; reconstructing an entry with a flipped bit |
//! | `lock.rs` | one process per folder |
//! | `view.rs` | the index's blocks on sled, with sled's panics contained |

mod archive;
mod blocks;
mod checkpoint;
mod erase;
mod files;
mod frame;
mod head;
mod journal;
mod known;
mod lock;
mod memory;
mod mend;
mod merkle;
mod open_error;
mod overlay;
mod parallel;
mod real;
mod recovery;
mod repair;
mod sealed;
mod sealer;
mod secrets;
mod segment;
mod tree;
mod view;
mod walk;
mod witness;

pub use archive::{ArchiveError, Archived, Archiving, Counted, remove_archived, verify as verify_archive};
pub use checkpoint::Kept as KeptCheckpoint;
pub use erase::{carried_out, note_carried_out};
pub use files::{Files, OpenMode};
pub use frame::{Frame, FrameDraft, GONE, Kind, claimed_size, digest};
pub use head::{FORMAT, Start};
pub use journal::{Journal, JournalOptions, Position, Reader, Staged};
pub use known::Known;
pub use lock::{FolderLock, LockError};
pub use memory::MemoryFiles;
pub use open_error::{OpenError, RECOVERED};
pub use overlay::OverlayFiles;
pub use parallel::{Manner, Parts};
pub use real::RealFiles;
pub use recovery::{Opened, Opening, VIEW as VIEW_FOLDER, has_traces, open, refuse_foreign, store_of};
pub use repair::{Below, Exchange, Inspection, NEXT as REPAIRED, clear_next, inspect, kept_name};
pub use secrets::{read as read_secrets, write as write_secrets};
pub use segment::{FOLDER as JOURNAL_FOLDER, StoreId};
pub use view::{BlockBatch, Blocks, ViewError, set_aside as set_view_aside};
pub use walk::{Finding, Visitor};
#[cfg(feature = "checkpoints")]
pub use {
    checkpoint::{NAME as CHECKPOINT, read_note as read_checkpoint, write_note as write_checkpoint},
    merkle::TreeError,
};

pub(crate) use merkle::Frontier;

#[cfg(test)]
pub(crate) mod crash;
#[cfg(any(test, feature = "testing"))]
pub use {files::StoreFile, sealer::Sealing};
#[cfg(any(test, feature = "testing"))]
pub mod faulty;
// Public for the fuzz targets only.
#[cfg(any(test, fuzzing))]
#[cfg_attr(not(fuzzing), allow(unreachable_pub))]
pub mod fuzzing;
