//! Rulekeep governs what software agents do, in process.

mod model;
mod policy;

pub use model::*;
pub use policy::{Effect, PolicyFormat, PolicySet, RuleTrace};
