//! Exports: the log, or an agent's part of it, as lines of JSON that can be verified without this library.
//!
//! The first line describes the export, one line follows for each record with its evidence, and the last line has the
//! number of records, the hash of the last one, and the SHA-256 of all lines before. Writing and reading use the same
//! checks, and both keep only one line in memory.
//!
//! | file | subject |
//! |---|---|
//! | `line.rs` | the lines |
//! | `check.rs` | the checks from line to line |
//! | `write.rs` | writing lines, and the point at which a partial export ends |
//! | `read.rs` | reading and verifying lines |
//! | `log.rs` | exporting the log |

mod check;
mod line;
mod log;
mod read;
mod write;

pub use read::verify_export;
#[cfg(feature = "checkpoints")]
pub use read::verify_export_against;
pub use write::{ExportPoint, ExportRange, ExportReport};

pub(crate) use line::{EntryLine, Evidence, RecordLine, Start};
pub(crate) use read::{Item, read_whole};
pub(crate) use write::Exporter;
