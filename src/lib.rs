//! Rulekeep governs what software agents do, in process.

mod model;
mod parse;

pub use model::*;
pub use parse::{Lexicon, Parser};
