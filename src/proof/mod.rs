//! The proof engine: an append-only, hash-linked log of decisions, their
//! outcomes, and every state that must last.
//!
//! It takes in drafts from any thread, puts them in one order, and hands back
//! proof ids; one writer thread turns drafts into entries of the journal and
//! then into the index. It answers queries and statistics from the index and
//! reads records from the journal. It knows nothing of policies or trust.
//!
//! | file | subject |
//! |---|---|
//! | `record.rs`, `fields.rs` | a record's canonical form and its hash; reading it by hand |
//! | `evidence.rs` | what is kept beside a record, and its salted digest |
//! | `erase.rs` | which evidence was erased, and what may be missing therefore |
//! | `entry.rs` | the bodies of the journal's other entries |
//! | `durability.rs`, `draft.rs` | when a call that writes comes back; what is on its way to the journal |
//! | `intake.rs` | the order of entries: drafts in, sequence and time out |
//! | `writer.rs` | writing: journal first, then index |
//! | `progress.rs` | how far it has come, and waiting for it |
//! | `recent.rs` | what outcomes need to know of the last decisions |
//! | `ticket.rs` | waiting without holding up a thread |
//! | `feed.rs`, `events.rs`, `details.rs` | entries as they come, and the events that they tell |
//! | `shared.rs` | what callers and the writer share; the index's life |
//! | `apply.rs` | reading the journal: checking entries and feeding the index |
//! | `verify/` | checking what is stored, while the log is in use |
//! | `index/` | which records match, and what they add up to |
//! | `export/` | the log as lines that can be checked without us, and read back |
//! | `query.rs` | the query and its checks |
//! | `repair.rs` | a new log in place of a broken one |
//! | `retention.rs` | what a log says of its own past and end: repaired, archived, frozen |
//! | `log/` | the door: open, append, wait, read, verify, close |

mod apply;
mod details;
mod draft;
mod durability;
mod entry;
mod erase;
mod events;
mod evidence;
mod export;
mod feed;
mod fields;
mod index;
mod intake;
mod log;
mod moves;
mod past;
mod progress;
mod query;
mod recent;
mod record;
mod repair;
mod retention;
mod seen;
mod shared;
mod ticket;
mod used;
mod verify;
mod writer;

pub use crate::model::{
    Breakage, BrokenKind, ChainPosition, Checked, Digest, LogProgress, OpenVerification, Order, OutcomeReport, Period,
    ProofCursor, ProofId, ProofPage, ProofStats, ScrubOptions, ScrubPass, ScrubStatus, Sequence, Verification,
    VerificationState, VerifyOptions, VerifySince, VerifyView, ViewFinding,
};
pub use durability::Durability;
pub use erase::EvidenceSelection;
pub use export::{ExportPoint, ExportRange, ExportReport, verify_export};
pub use query::ProofQuery;

pub(crate) use details::Details;
pub(crate) use draft::{ChangeDraft, DecisionDraft, OutcomeBasis, OutcomeDraft, StateDraft, TrustMove};
pub(crate) use erase::Kept;
pub(crate) use events::of_entry as events_of_entry;
pub(crate) use evidence::KeptInput;
pub(crate) use evidence::encode as encode_evidence;
pub use evidence::{Evidence, InputEvidence};
pub(crate) use feed::{Fed, Feed};
pub(crate) use log::{
    Committed, DecisionFacts, LogOptions, LogState, OpenLogError, Place, Probe, ProofLog, Reported, Startup, import,
    verify_archive,
};
pub(crate) use moves::TrustStep;
pub(crate) use past::PastRange;
pub(crate) use repair::{FoundStates, RepairStates, repair};
pub(crate) use seen::{Happened, Seen};
pub(crate) use ticket::Ticket;
pub(crate) use used::UsedLimit;

#[cfg(test)]
mod tests;
