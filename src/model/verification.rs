//! What a verification is asked for, and how far it has come.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Digest, Timestamp, Verification};

/// How far something has come that goes over the entries of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LogProgress {
    /// Entries that are done.
    pub done: u64,
    /// Entries in all.
    pub of: u64,
}

impl LogProgress {
    /// The numbers put together.
    pub const fn new(done: u64, of: u64) -> Self {
        Self { done, of }
    }
}

/// A place in the chain: behind so many entries.
///
/// It can be kept, as JSON, and given to a later verification, which goes on from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct ChainPosition {
    /// How many entries: decisions, outcomes, states, alerts.
    pub entries: u64,
    /// The link of the last of them, which depends on all of them.
    pub link: Digest,
    /// How many of them are proof records.
    pub records: u64,
    /// The hash of the last of these.
    pub head_hash: Digest,
}

impl ChainPosition {
    pub(crate) const fn new(entries: u64, link: Digest, records: u64, head_hash: Digest) -> Self {
        Self { entries, link, records, head_hash }
    }
}

/// Where a verification begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerifySince {
    /// With the first entry that was not archived.
    #[default]
    Start,
    /// Where the last verification of this process ended that found nothing broken, the one at open among them.
    LastVerified,
    /// Behind a place that the caller has kept. The links show whether it is one of this log; the number of
    /// records is taken from it. One whose entries were archived is none any more.
    Position(ChainPosition),
}

/// Whether the view is held against the journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerifyView {
    /// It is left alone; when the log was opened its sums were compared.
    #[default]
    Leave,
    /// All that it says of every record, every outcome and every intent. This reads the journal from the first entry on.
    Compare,
}

/// Someone who is told how far a piece of work has come.
#[derive(Clone)]
pub(crate) struct OnProgress(pub(crate) Arc<dyn Fn(LogProgress) + Send + Sync>);

impl fmt::Debug for OnProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnProgress")
    }
}

/// How a verification is to be done.
///
/// ```
/// use rulekeep::proof::{VerifyOptions, VerifySince, VerifyView};
/// use rulekeep::Governor;
///
/// let governor = Governor::builder().open_in_memory()?;
/// let all = governor.log().verify(&VerifyOptions::new().view(VerifyView::Compare))?;
/// assert!(all.valid);
/// // Later, only what has come since.
/// let more = governor.log().verify(&VerifyOptions::new().since(VerifySince::LastVerified))?;
/// assert_eq!(more.checked.from, all.checked.until.unwrap().entries);
/// # Ok::<(), rulekeep::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct VerifyOptions {
    pub(crate) since: VerifySince,
    pub(crate) view: VerifyView,
    pub(crate) threads: usize,
    pub(crate) progress: Option<OnProgress>,
}

impl VerifyOptions {
    /// The whole log, on all processors, without a word on the way.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where to begin. Default: with the first entry.
    pub fn since(mut self, since: VerifySince) -> Self {
        self.since = since;
        self
    }

    /// Whether to hold the view against the journal too. Default: not.
    pub fn view(mut self, view: VerifyView) -> Self {
        self.view = view;
        self
    }

    /// How many threads read and check, 8 at most. Default, and 0: as many as there are processors.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Calls `progress` on the way, whenever some thousand entries more are checked.
    pub fn on_progress(mut self, progress: impl Fn(LogProgress) + Send + Sync + 'static) -> Self {
        self.progress = Some(OnProgress(Arc::new(progress)));
        self
    }
}

/// When a log that is opened is verified.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpenVerification {
    /// All of it before opening returns.
    #[default]
    Before,
    /// Its end before opening returns, the rest on threads behind. Meanwhile decisions go by what the view has: the
    /// agents' states, the policies in force, what was used of limits. What proves to be otherwise makes the log
    /// read-only. A view that does not fit the journal is not believed: then all is verified before, as it is
    /// where the first entries were archived.
    Behind,
}

/// How far a log was verified that was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerificationState {
    /// All that was there when it was opened.
    Verified,
    /// Not all yet.
    Running(LogProgress),
    /// It is broken; nothing new is taken in.
    Broken(super::Breakage),
    /// It could not be read to its end; nothing new is taken in.
    Failed(String),
    /// It was closed before that.
    Stopped,
}

/// How all that is stored is read again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScrubOptions {
    /// Bytes of the journal a second, on an average; a sealed segment counts by what it stands for, and is read
    /// in one go. Default: 4 MiB.
    pub bytes_per_second: u64,
    /// From the end of a pass to the beginning of the next. Default: a day.
    pub pause: Duration,
}

impl Default for ScrubOptions {
    fn default() -> Self {
        Self { bytes_per_second: 4 << 20, pause: Duration::from_secs(24 * 60 * 60) }
    }
}

impl ScrubOptions {
    /// At most so many bytes a second.
    #[must_use]
    pub fn bytes_per_second(mut self, bytes: u64) -> Self {
        self.bytes_per_second = bytes;
        self
    }

    /// So long from one pass to the next.
    #[must_use]
    pub fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }
}

/// How the scrub stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScrubStatus {
    /// The pass that runs.
    pub running: Option<LogProgress>,
    /// How many passes are finished.
    pub passes: u64,
    /// The last one that is finished. Behind one that finds a break there is no other.
    pub last: Option<ScrubPass>,
    /// Why the last pass could not read to the end, where it could not.
    pub unreadable: Option<String>,
}

/// A pass of the scrub that is finished.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScrubPass {
    /// When it was finished.
    pub finished: Timestamp,
    /// What it found.
    pub found: Verification,
}

impl ScrubPass {
    pub(crate) const fn new(finished: Timestamp, found: Verification) -> Self {
        Self { finished, found }
    }
}

/// What a verification looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// How many entries were before its beginning, and taken for good or archived.
    pub from: u64,
    /// Behind the last entry that was checked; `None` where something does not hold.
    pub until: Option<ChainPosition>,
    /// How the view stands to the journal.
    pub view: ViewFinding,
    /// The torn tail that was set aside when the log was opened: a write that was cut short and that nobody had been
    /// told was on disk. It is neither damage nor tampering, and the chain goes on without it.
    pub torn: Option<super::Recovered>,
}

/// How the view stands to the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ViewFinding {
    /// It was not compared, or the journal is broken.
    #[default]
    NotCompared,
    /// It says what the journal says.
    Agrees,
    /// It did not, and where first; it was made anew from the journal.
    Differed(String),
}
