//! The point at which a call that writes returns.

use std::time::Duration;

use rulekeep_types::{InvalidValue, RiskLevel};

/// The point at which a call that writes returns.
///
/// ```
/// use rulekeep::{Durability, Governor, RiskLevel};
///
/// // LOW and MEDIUM decisions return before they are on disk; HIGH and CRITICAL ones wait for it.
/// let durability = Durability::SyncFrom(RiskLevel::High);
/// let governor = Governor::builder().durability(durability).auto_register().open_in_memory()?;
/// let verdict = governor.enforce_input("support-1", "Summarize the meeting notes")?.enforcement;
/// governor.log().flush()?; // waits until everything so far is on disk
/// assert!(governor.log().record(&verdict.proof_id).is_ok());
/// # Ok::<(), rulekeep::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// Returns once the record is on disk: it survives `kill -9` and a power failure. Concurrent callers share one
    /// fsync (group commit).
    #[default]
    Sync,
    /// Returns once the record is enqueued in memory. The record is on disk 10 milliseconds plus one write with its
    /// `fdatasync` later, as long as the disk keeps up; a crash before that loses it. At most 131,072 entries or 8
    /// MiB, whichever comes first, are acknowledged and not yet on disk. If the disk is full or fails, these entries
    /// are lost, later calls are refused, and the status reports it.
    Buffered,
    /// Like `Sync` for decisions at or above a risk level and for their outcomes, like `Buffered` for others. The
    /// effective risk counts, not the one the caller claimed. Changes of agents and policies are always on disk when
    /// their call returns. An entry on disk implies that all entries before it are on disk, whatever their risk.
    SyncFrom(RiskLevel),
}

impl Durability {
    /// Returns whether a call waits until a decision of this risk, or its outcome, is on disk.
    pub(crate) fn awaits(self, risk: RiskLevel) -> bool {
        match self {
            Self::Sync => true,
            Self::Buffered => false,
            Self::SyncFrom(least) => risk >= least,
        }
    }

    /// The time for which the writer gathers drafts before it writes, when no caller waits.
    pub(crate) fn gathers(self) -> Duration {
        if self == Self::Sync { Duration::ZERO } else { Duration::from_millis(10) }
    }

    /// Returns whether a call waits until a change of agents or policies is on disk.
    pub(crate) fn awaits_changes(self) -> bool {
        self != Self::Buffered
    }
}

impl std::fmt::Display for Durability {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sync => f.pad("sync"),
            Self::Buffered => f.pad("buffered"),
            Self::SyncFrom(least) => write!(f, "{SYNC_FROM}{least}"),
        }
    }
}

impl std::str::FromStr for Durability {
    type Err = InvalidValue;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "sync" => Ok(Self::Sync),
            "buffered" => Ok(Self::Buffered),
            _ => match word.strip_prefix(SYNC_FROM).map(str::parse) {
                Some(Ok(least)) => Ok(Self::SyncFrom(least)),
                _ => Err(InvalidValue::new("durability", word, "sync, buffered, or a level as in sync-from:HIGH")),
            },
        }
    }
}

const SYNC_FROM: &str = "sync-from:";
