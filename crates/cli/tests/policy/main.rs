//! `rulekeep policy`: cases through the library, and the command line.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

mod cases;
mod commands;
mod explain;
mod format;
mod habits;
mod import;
mod pages;
mod past;
