//! The trust engine: what an agent's score is, and what moves it.
//!
//! Everything but the ledger is pure. `model.rs` holds all numbers in one
//! serialisable [`TrustModel`], `validate.rs` says which models keep the
//! promises, `state.rs` takes a state and what happened and gives the next
//! state, `denials.rs` counts streaks, and `rebuild.rs` makes a state anew from
//! what the journal says. `ledger.rs` keeps the agents, so that any thread can
//! read one without waiting for the others. What must last is written by the
//! caller: a change is prepared, recorded, and then kept.

mod denials;
mod ledger;
mod model;
mod rebuild;
mod state;
mod validate;

#[cfg(test)]
mod tests;

pub use crate::model::{Score, TrustCause, TrustCheck, TrustDifference, TrustEntry, TrustPage, TrustSnapshot};
pub use model::{PerObservability, PerRisk, TrustModel};

pub(crate) use denials::Denials;
pub(crate) use ledger::{AgentCell, AgentRecord, Ledger};
pub(crate) use rebuild::{Rebuild, TrustFact};
pub(crate) use state::{Facts, TrustEvent, TrustState};
