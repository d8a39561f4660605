//! Following the journal: its entries one after another, and the events derived from them.

mod details;
mod events;
mod feed;
pub(super) mod moves;
pub(super) mod past;
mod seen;

pub use details::Details;
pub use events::of_entry as events_of_entry;
pub use feed::{Fed, Feed};
pub use seen::{Happened, Seen};
