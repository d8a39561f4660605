//! Following the journal: its entries one after another, and the events derived from them.

mod details;
mod events;
mod feed;
pub(super) mod moves;
pub(super) mod past;
mod seen;

pub(crate) use details::Details;
pub(crate) use events::of_entry as events_of_entry;
pub(crate) use feed::{Fed, Feed};
pub(crate) use seen::{Happened, Seen};
