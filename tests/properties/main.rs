//! What holds whatever was put in, much of it as a stranger checks it: hashes, exports, proofs and trust.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

#[path = "../common/mod.rs"]
mod common;

mod catalogue;
mod checkpoints;
mod export;
mod facts;
mod hash;
mod spelling;
mod trust_simulation;
mod verify_page;
