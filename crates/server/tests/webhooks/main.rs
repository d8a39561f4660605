//! Webhooks: events arrive whatever happens in between.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

#[path = "../common/mod.rs"]
mod common;

mod deliveries;
mod faults;
mod kill;
mod repair;

use std::path::Path;
use std::time::Duration;

use common::{Served, builder, open_with};
use rulekeep::{Agent, GovernorBuilder, Tier};
use rulekeep_server::webhooks::Settings;

/// Settings for receivers on loopback with this many quick retries.
fn soon(retries: usize) -> Settings {
    Settings { schedule: Some(vec![Duration::from_millis(1); retries]), allow_private: true, public_url: None }
}

fn in_memory() -> Served {
    let governor = builder().open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    Served::with(&governor, soon(2))
}

fn opened(folder: &Path) -> Served {
    opened_with(builder(), folder)
}

fn opened_with(builder: GovernorBuilder, folder: &Path) -> Served {
    Served::with(&open_with(builder, folder), soon(2))
}
