//! Rulekeep governs what software agents do, in process.

mod edge;
mod governor;
mod model;
mod parse;
mod policy;
mod proof;
mod store;
mod system;
mod trust;

pub use edge::{sidecar, signature};
pub use governor::{Explanation, Governor, GovernorBuilder};
pub use model::*;
pub use parse::{Lexicon, Parser};
pub use policy::{Effect, PolicyFormat, PolicySet, RuleTrace};
pub use proof::{Durability, Evidence, ProofQuery};
pub use system::{Clock, Entropy, SystemClock, SystemEntropy};
pub use trust::{PerRisk, TrustModel};
