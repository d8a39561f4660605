//! Compares conditions with the `cel` crate. Conditions are private to the policy engine, so their files are compiled here
//! too.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on
#![allow(dead_code)] // the library uses what is not used here

#[path = "../../../policy/src/condition/mod.rs"]
mod condition;
