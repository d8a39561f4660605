//! Hubs and members over a real PostgreSQL: what they agree on, and what is left of it after faults.
//!
//! The server is started by `postgres/cluster` from Debian's package. Without one the tests print SKIPPED; with
//! `RULEKEEP_REQUIRE_POSTGRES=1` they fail.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

mod below;
mod contract;
mod faults;
mod members;
mod network;
mod promises;
mod strangers;
#[allow(dead_code)] // the load program uses the rest
mod support;

/// Other tests start this program again as a hub. As a test it has nothing to do.
#[test]
fn a_hub_for_other_tests() {
    support::hub::be_a_hub();
}
