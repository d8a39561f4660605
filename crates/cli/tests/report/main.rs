//! Tests of `rulekeep report` as a process: its file for logs that are empty, busy, limited to a period or broken,
//! and its display in a browser.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

#[path = "../../../server/tests/common/programs.rs"]
mod programs;

mod contents;
mod fill;
mod screens;
