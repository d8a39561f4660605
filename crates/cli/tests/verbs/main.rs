//! Tests of `rulekeep`'s commands as people and scripts use them, each in a process of its own.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

mod examples;
mod fixture;
mod interrupted;
mod reading;
mod shown;
mod working;
#[path = "../fleet/world.rs"]
mod world;
