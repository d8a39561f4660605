//! Learned from labeled requests: a word table scores the clauses of a text and gives each an operation and a
//! resource.
//!
//! `clause` splits a text into clauses; `table` holds the weights and scores them; `rows` adapts it to a user's own
//! rows; `relevance` rates how well tools fit a request; `training` passes clauses to the trainer in
//! `tools/intent-model` and packs its result.

mod clause;
mod read;
pub(crate) mod relevance;
pub(crate) mod rows;
mod table;
#[cfg(feature = "training")]
pub mod training;

pub(crate) use clause::{Clause, Stance, Vocabulary, clauses};
pub(crate) use read::{Heard, LearnedRisk, weigh};
pub(crate) use table::IntentTable;
