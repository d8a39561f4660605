//! What was learned from labelled requests: the clauses of a text are scored by one
//! table of words, which gives each an operation and a resource.
//!
//! `clause` cuts a text into clauses; `table` holds the weights and scores them; `rows` adapts it to a user's own;
//! `relevance` tells how well tools fit a request;
//! `training` hands clauses to the trainer in `tools/intent-model` and packs what it returns.

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
