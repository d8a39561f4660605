//! Conditions against the `cel` crate. The library keeps conditions to itself, so their files are compiled here too.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on
#![allow(dead_code)] // the library uses what is not used here

mod model {
    pub(crate) use rulekeep::{Capability, Label, RiskLevel, Tier, Timestamp};
}

mod document {
    pub(crate) use rulekeep::document::did_you_mean;
}

#[path = "../../../../src/policy"]
mod policy {
    #[path = "condition/mod.rs"]
    pub(crate) mod condition;
}
