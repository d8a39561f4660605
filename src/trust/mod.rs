//! The trust engine: what an agent's score is, and what an outcome does to it.
//!
//! `model.rs` is pure: a state and an outcome in, the next state out, all
//! numbers in one serialisable [`TrustModel`]. `ledger.rs` keeps the agents, so
//! that any thread can read one without waiting for the others. What must last
//! is written by the caller: a change is prepared, recorded, and then kept.

mod ledger;
mod model;

pub use model::{PerRisk, TrustModel};

pub(crate) use ledger::{AgentCell, AgentRecord, Ledger};
pub(crate) use model::{TrustEvent, TrustState};
