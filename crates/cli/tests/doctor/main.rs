//! Compares `rulekeep doctor` with test doubles of the eight hosts, under every fault of the battery.

#![allow(clippy::unwrap_used)]

mod battery;
mod double;
mod faults;
#[path = "../setup/mod.rs"]
mod setup;
mod world;
