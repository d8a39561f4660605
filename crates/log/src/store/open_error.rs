//! The reason a journal does not open, and the place of what is set aside when it does.

use std::io;

/// The reason a folder could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("the folder is not a store: it holds {0:?}, and neither HEAD nor a journal; choose an empty folder")]
    NotAStore(String),
    #[error("the store's journal is gone: there is {0}, but no segment; restore the folder from a copy")]
    JournalGone(&'static str),
    #[error("a repair of the store was begun but not finished; repair it again")]
    RepairUnfinished,
    #[error("the store's format {0} is newer than this library reads; use a newer one")]
    Newer(u32),
    #[error("the store's format {0} is older than this library reads; it was never in a released version")]
    Older(u32),
    #[error("the journal is not the one that was verified before")]
    NotAsKnown,
    #[error("cannot {0}")]
    Io(&'static str, #[source] io::Error),
}

/// The folder for copies of what was set aside.
pub const RECOVERED: &str = "recovered";
/// Prefix of the names of copies of torn tails.
pub(super) const TAIL: &str = "tail-";
