//! Rulekeep governs what software agents do, in process.

mod model;

pub use model::*;
