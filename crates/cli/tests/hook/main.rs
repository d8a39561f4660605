//! `rulekeep hook`: the dialects of hosts, and the entries in their settings.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

mod dialects;
mod install;
