//! The storage below the engines: the journal, which is the truth, and the
//! block view on sled, which can be thrown away and made anew.
//!
//! The journal takes in whole frames in one order and hands back frames by
//! their sequence; it knows nothing of what stands in them. The view takes in
//! batches of blocks by key. All file access goes through [`Files`], so that
//! tests can fail, tear or drop any single call.
//!
//! | file | subject |
//! |---|---|
//! | `files.rs` | the I/O seam |
//! | `real.rs` | the file system below a folder that is held |
//! | `memory.rs` | a file system in memory, for stores that leave nothing behind |
//! | `faulty.rs` | files of which a chosen call fails, for tests |
//! | `crash.rs` | files on a disk that loses its power, for tests |
//! | `frame.rs` | one entry as bytes |
//! | `fuzzing.rs` | what the fuzz targets of these formats hold |
//! | `blocks.rs`, `sealed.rs`, `sealer.rs` | segments that are full: compressed, read as they were, and made so behind the writer |
//! | `segment.rs` | one journal file: header, space ahead, offsets |
//! | `walk.rs` | reading a segment from front to back, checking everything |
//! | `parallel.rs` | many segments checked at once |
//! | `head.rs` | the small file that says what the journal must contain |
//! | `erase.rs` | evidence taken out of the segments for good |
//! | `secrets.rs` | a small file beside the journal for what must not stand in it |
//! | `checkpoint.rs` | the newest signed checkpoint, and holding the journal to it |
//! | `merkle/`, `tree.rs` | the Merkle tree over the entries; growing it with the journal |
//! | `journal.rs` | the segments together: append, read, seal |
//! | `recovery.rs`, `known.rs` | opening: torn tails, damage, missing entries; by what is known already |
//! | `archive.rs` | the first entries as a file of their own |
//! | `repair.rs` | a broken journal: how far it holds, and another one in its place |
//! | `witness.rs`, `mend.rs` | how many of its entries are confirmed; what an entry with a flipped bit was |
//! | `lock.rs` | one process a folder |
//! | `view.rs` | blocks on sled, its panics contained |

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

pub(crate) use archive::{ArchiveError, Archived, Archiving, Counted, remove_archived, verify as verify_archive};
pub(crate) use checkpoint::Kept as KeptCheckpoint;
pub(crate) use erase::{carried_out, note_carried_out};
pub(crate) use files::{Files, OpenMode};
pub(crate) use frame::{Frame, FrameDraft, GONE, Kind, claimed_size, digest};
pub(crate) use head::{FORMAT, Start};
pub(crate) use journal::{Journal, JournalOptions, Position, Reader, Staged};
pub(crate) use known::Known;
pub(crate) use lock::{FolderLock, LockError};
pub(crate) use memory::MemoryFiles;
pub(crate) use overlay::OverlayFiles;
pub(crate) use parallel::{Manner, Parts};
pub(crate) use real::RealFiles;
pub(crate) use recovery::{OpenError, Opened, Opening, RECOVERED, VIEW as VIEW_FOLDER, open, refuse_foreign, store_of};
pub(crate) use repair::{Below, Exchange, Inspection, NEXT as REPAIRED, clear_next, inspect, kept_name};
pub(crate) use secrets::{read as read_secrets, write as write_secrets};
pub(crate) use segment::{FOLDER as JOURNAL_FOLDER, StoreId};
pub(crate) use view::{BlockBatch, Blocks, ViewError, set_aside as set_view_aside};
pub(crate) use walk::{Finding, Visitor};
#[cfg(feature = "checkpoints")]
pub(crate) use {
    checkpoint::{NAME as CHECKPOINT, read_note as read_checkpoint, write_note as write_checkpoint},
    merkle::TreeError,
};

#[cfg(test)]
pub(crate) mod crash;
#[cfg(test)]
pub(crate) use {files::StoreFile, sealer::Sealing};
#[cfg(test)]
pub(crate) mod faulty;
// Public for the fuzz targets, which is shown nowhere but there.
#[cfg(any(test, fuzzing))]
#[cfg_attr(not(fuzzing), allow(unreachable_pub))]
pub mod fuzzing;
