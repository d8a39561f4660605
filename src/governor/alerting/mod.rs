//! Alerts derived from the log, and event subscriptions.

pub(crate) mod cursor;
pub(crate) mod events;
pub(crate) mod follow;
