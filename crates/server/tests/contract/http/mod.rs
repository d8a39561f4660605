//! The contract over HTTP, and whatever a client may try.
#![cfg(feature = "http")]
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

#[path = "../common/mod.rs"]
mod common;
mod live;

mod authzen;
mod console;
mod contract;
mod end;
mod errors;
mod features;
mod idempotency;
mod keys;
mod limits;
mod routes;
#[cfg(feature = "tracing")]
mod secrets;
mod shapes;
mod slow;
mod tls;
mod waits;
