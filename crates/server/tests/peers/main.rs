//! The server against independent programs, and against many clients for a while.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on
#![allow(clippy::needless_pass_by_value)] // what is handed to a helper is of no further use

#[path = "../common/mod.rs"]
mod common;
#[path = "../contract/http/live.rs"]
mod live;

mod console;
mod load;
mod schemathesis;
mod signatures;

/// Returns whether tests run that take minutes, or need a browser or packages of `PyPI` and npm.
fn nightly() -> bool {
    std::env::var_os("RULEKEEP_NIGHTLY").is_some()
}
