//! Compares conditions with the `cel` crate. Conditions are private to the library, so their files are compiled here
//! too.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on
#![allow(dead_code)] // the library uses what is not used here

mod model {
    pub(crate) use rulekeep::agent::Label;
    pub(crate) use rulekeep::intent::Capability;
    pub(crate) use rulekeep::system::Timestamp;
    pub(crate) use rulekeep::{RiskLevel, Tier};
}

mod document {
    pub(crate) use rulekeep::document::did_you_mean;
}

#[path = "../../../../src/policy"]
mod policy {
    #[path = "condition/mod.rs"]
    pub(crate) mod condition;
}
