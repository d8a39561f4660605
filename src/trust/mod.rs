//! The trust engine: an agent's score, and what changes it.
//!
//! Everything but the ledger is pure. A change that must last is written by the caller: it is computed, recorded in
//! the log, and then stored in the ledger.
//!
//! | file | subject |
//! |---|---|
//! | `model.rs` | all numbers, in one serializable [`TrustModel`] |
//! | `validate.rs` | the models that are valid |
//! | `state.rs` | the next state, given a state and an event |
//! | `denials.rs` | streaks of denials |
//! | `rebuild.rs` | recomputing a state from the journal |
//! | `ledger.rs` | the agents, so that any thread can read one without waiting for others |

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
