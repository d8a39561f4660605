//! Tests of `rulekeep` as a process, and of the clients that call it.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

#[path = "../../../server/tests/common/programs.rs"]
mod programs;

mod clients;
mod flaky_line;
mod process;
mod webhook_waits;
