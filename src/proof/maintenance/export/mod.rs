//! Exports: the log, or an agent's part of it, as lines of JSON that need
//! nothing of ours to be checked.
//!
//! A line says where the export begins, one follows for each record with its
//! evidence, and one at the end says how many there are, the hash of the last,
//! and the SHA-256 of all lines before. Whoever writes one and whoever reads
//! one goes by the same checks, and neither keeps more than a line in memory.
//!
//! | file | subject |
//! |---|---|
//! | `line.rs` | what stands in a line |
//! | `check.rs` | what must hold from line to line |
//! | `write.rs` | lines written, and the place where a part of an export ends |
//! | `read.rs` | lines read and checked |

mod check;
mod line;
mod log;
mod read;
mod write;

pub use read::verify_export;
pub use write::{ExportPoint, ExportRange, ExportReport};

pub(crate) use line::{EntryLine, Evidence, RecordLine, Start};
pub(crate) use read::{Item, read_whole};
pub(crate) use write::Exporter;
