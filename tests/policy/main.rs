//! Policies through the public face: the documents that the pages show, limits, and sets that change while decisions run.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

#[path = "../common/mod.rs"]
mod common;

mod documents;
mod limits;
mod runtime;
