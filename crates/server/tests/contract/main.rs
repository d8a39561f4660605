//! The calls on the wire: over lines, behind API keys and over HTTP.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on
#![allow(clippy::needless_pass_by_value)] // what is handed to a helper is of no further use

#[path = "../common/mod.rs"]
mod common;

mod calls;
mod cases;
mod escalations;
mod events;
mod gateway;
mod http;
mod inputs;
mod json;
mod newcomer;
mod openapi;
mod sidecar;
mod sidecar_follow;
mod tasks;
