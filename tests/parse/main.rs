//! Requests through the public parser, form by form, and catalogues of tools.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

#[path = "../common/mod.rs"]
mod common;

mod catalogue;
mod classification;
mod evasion;
mod facts;
mod http;
mod language;
mod page;
mod shell;
mod sql;
mod tools;
