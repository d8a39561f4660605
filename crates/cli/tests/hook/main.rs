//! `rulekeep hook`: the dialects of hosts, and the entries in their settings.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

#[cfg(unix)]
#[path = "../../../server/tests/common/programs.rs"]
mod programs;

mod dialects;
mod install;
#[cfg(unix)]
mod plugin;
