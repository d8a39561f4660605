//! Faults on the real thing: bad input, full disks, flipped bits, and processes that are killed while they decide.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

#[path = "../common/mod.rs"]
mod common;

mod bad_input;
mod flips;
#[cfg(unix)]
mod forked;
mod ground;
mod kill;
mod power_cut;
mod read_only;
mod repair;
mod strace;
mod tamper;
mod unconfirmed;
