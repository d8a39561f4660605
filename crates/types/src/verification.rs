//! Verification of the log: options, progress and results.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Digest;

/// Progress of a pass over the entries of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LogProgress {
    /// Number of entries processed.
    pub done: u64,
    /// Number of entries in total.
    pub of: u64,
}

impl LogProgress {
    /// Creates a progress report.
    pub const fn new(done: u64, of: u64) -> Self {
        Self { done, of }
    }
}

/// A position in the hash chain, after a number of entries.
///
/// A caller can store it as JSON and pass it to a later verification, which continues from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct ChainPosition {
    /// Number of entries before the position: decisions, outcomes, state changes and alerts.
    pub entries: u64,
    /// The chain link of the last of these entries; it depends on all entries before it.
    pub link: Digest,
    /// Number of proof records among them.
    pub records: u64,
    /// The hash of the last of these proof records.
    pub head_hash: Digest,
}

impl ChainPosition {
    #[doc(hidden)]
    pub const fn new(entries: u64, link: Digest, records: u64, head_hash: Digest) -> Self {
        Self { entries, link, records, head_hash }
    }
}

/// The position at which a verification starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerifySince {
    /// The first entry that is not archived (the default).
    #[default]
    Start,
    /// The end of the last verification in this process that found no break, including the one at open.
    LastVerified,
    /// The position that the caller stored. The chain links show whether it belongs to this log; its number of records
    /// is taken as given. A position whose entries have been archived no longer does.
    Position(ChainPosition),
}

impl VerifySince {
    /// The position to start at, with the end of the last verification; `None` is the start of the log.
    #[doc(hidden)]
    pub const fn position(self, verified: Option<ChainPosition>) -> Option<ChainPosition> {
        match self {
            Self::Start => None,
            Self::LastVerified => verified,
            Self::Position(position) => Some(position),
        }
    }
}

/// A callback that receives the progress of a pass.
#[derive(Clone)]
pub struct OnProgress(pub Arc<dyn Fn(LogProgress) + Send + Sync>);

impl fmt::Debug for OnProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnProgress")
    }
}

/// Options of a verification.
///
/// ```
/// use rulekeep::proof::{VerifyOptions, VerifySince};
/// use rulekeep::Governor;
///
/// let governor = Governor::builder().open_in_memory()?;
/// let all = governor.log().verify(&VerifyOptions::new())?;
/// assert!(all.valid && all.checked.is_index_compared);
/// // Later, only what has come since.
/// let more = governor.log().verify(&VerifyOptions::new().since(VerifySince::LastVerified))?;
/// assert_eq!(more.checked.from, all.checked.until.unwrap().entries);
/// # Ok::<(), rulekeep::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct VerifyOptions {
    pub since: VerifySince,
    pub threads: usize,
    pub progress: Option<OnProgress>,
}

impl VerifyOptions {
    /// Verifies the whole log, on all processors, without progress reports.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the starting position. Default: the first entry.
    pub fn since(mut self, since: VerifySince) -> Self {
        self.since = since;
        self
    }

    /// Sets the number of threads, at most 8. Default, and 0: one per processor.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Calls `progress` after every few thousand entries.
    pub fn on_progress(mut self, progress: impl Fn(LogProgress) + Send + Sync + 'static) -> Self {
        self.progress = Some(OnProgress(Arc::new(progress)));
        self
    }
}

/// The part of a log that is verified before opening it returns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenVerification {
    /// The whole log (the default).
    #[default]
    Before,
    /// The end of the log; background threads verify the rest.
    ///
    /// Meanwhile decisions rely on the index: agent states, policies in force and rate-limit counters. If the rest of
    /// the journal contradicts the index, the log becomes read-only. If the index does not fit the journal, or the first
    /// entries are archived, the whole log is verified before opening returns.
    Behind,
}

/// Progress of the verification that started when the log was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerificationState {
    /// All entries that existed at open are verified.
    Verified,
    /// Verification is still running.
    Running(LogProgress),
    /// The log is broken. It accepts no new entries.
    Broken(super::Breakage),
    /// The log could not be read to its end, for the given reason. It accepts no new entries.
    Failed(String),
    /// The log was closed before verification finished.
    Stopped,
}

/// The range and the parts of the log that a verification covered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// Number of entries before the starting position, which were trusted or are archived.
    pub from: u64,
    /// The position after the last verified entry; `None` if a break was found.
    pub until: Option<ChainPosition>,
    /// True if the index's records, outcomes and intents were compared with the journal. A range, a broken log and a store
    /// that another process has open are verified without.
    pub is_index_compared: bool,
    /// The torn tail that was set aside when the log was opened: a write that was cut short before it was acknowledged.
    /// It is neither damage nor tampering, and the chain continues without it.
    pub torn: Option<super::Recovered>,
}
