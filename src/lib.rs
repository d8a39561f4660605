//! Rulekeep governs what software agents do, in process.

mod model;
mod proof;
mod store;
mod system;
mod trust;

pub use model::*;
pub use proof::{Durability, ProofQuery};
pub use system::{Clock, Entropy, SystemClock, SystemEntropy};
pub use trust::{PerRisk, TrustModel};
