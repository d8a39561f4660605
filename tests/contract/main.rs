//! What a governor promises its callers: agents, decisions, escalations, events, trust and the log they leave.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

#[path = "../common/mod.rs"]
mod common;

mod agents;
mod alerts;
mod bound;
mod calls;
mod catalogue;
mod checkpoint_log;
mod clock;
mod cursors;
mod durability;
mod erasure;
mod escalations;
mod event_archives;
mod events;
mod evidence;
mod forms;
mod grants;
mod guard;
mod newcomer;
mod old_store;
mod operands;
mod permit;
mod read_only;
mod restart;
mod retention;
mod shared_limits;
mod status;
mod stop;
mod task_records;
mod tasks;
mod trust;
mod unknown_outcome;
mod verification;
mod work_area;
