//! The proof engine: an append-only, hash-linked log of decisions, their outcomes, and all states that must last.
//!
//! Callers on any thread enqueue drafts and get proof IDs back; one writer turns drafts into entries of the journal
//! and then applies them to the index. Queries and statistics are answered from the index, records from the journal.
//! The engine knows nothing of policies or trust.
//!
//! A log has four parts, and each knows only those before it:
//!
//! | part | responsibility |
//! |---|---|
//! | `queue/` | the order of entries: drafts in, sequence and time out; outcomes in flight |
//! | `journal/` | the source of truth: the content of entries, appending them, and how far they are on disk |
//! | `index/` | which records match and what they add up to; reading the journal into it |
//! | `maintenance/` | verify, export, import, erase, archive, repair |
//!
//! | file | subject |
//! |---|---|
//! | `parts.rs`, `commit.rs` | the four parts together; the path of an entry through them |
//! | `log/` | the interface: open, wait, read, query, close |
//! | `follow/` | entries as they come, and the events derived from them |
//! | `query.rs` | the query and its checks |
//! | `ticket.rs` | waiting without blocking a thread |

// Which items are reachable from outside depends on these features.
#![cfg_attr(not(all(feature = "checkpoints", feature = "testing")), allow(unreachable_pub))]

#[cfg(feature = "checkpoints")]
pub mod checkpoint;
mod commit;
mod follow;
mod index;
mod journal;
mod log;
mod maintenance;
mod parts;
mod query;
mod queue;
#[doc(hidden)]
pub mod store;
mod telemetry;
mod ticket;

pub use journal::erase::EvidenceSelection;
pub use journal::evidence::{Evidence, InputEvidence};
#[cfg(feature = "checkpoints")]
pub use maintenance::export::verify_export_against;
pub use maintenance::export::{ExportPoint, ExportRange, ExportReport, verify_export};
pub use query::ProofQuery;
pub use queue::Durability;
pub use rulekeep_types::{
    Breakage, BrokenKind, ChainPosition, Checked, Digest, LogProgress, OpenVerification, Order, OutcomeReport, Period,
    ProofCursor, ProofId, ProofPage, ProofStats, Sequence, Verification, VerificationState, VerifyOptions, VerifySince,
};

#[doc(hidden)]
pub use {
    follow::moves::TrustStep,
    follow::past::PastRange,
    follow::{Details, Fed, Feed, Happened, Seen, events_of_entry},
    index::recent::DecisionFacts,
    journal::erase::Kept,
    journal::evidence::{KeptInput, encode as encode_evidence},
    journal::used::UsedLimit,
    log::{LogOptions, LogState, OpenLogError, Place, Probe, ProofLog, Startup},
    maintenance::{FoundStates, RepairStates, import, repair, verify_archive},
    queue::{ChangeDraft, Committed, DecisionDraft, OutcomeBasis, OutcomeDraft, StateDraft, TrustMove},
    ticket::Ticket,
};

#[cfg(test)]
mod tests;
