//! Alerts derived from the log, and event subscriptions.

pub(crate) mod cursor;
pub(crate) mod events;
pub(crate) mod follow;

use std::sync::Arc;

use crate::governor::{Base, Rules};
use cursor::Cursors;
use follow::Following;

/// The thread that derives alerts from the log, and the positions of the readers of events.
///
/// Lock order: the thread's state or the cursors, then the log. No lock is acquired under that of the cursors' readers.
pub(crate) struct Alerting {
    pub(crate) base: Arc<Base>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) following: Following,
    pub(crate) cursors: Cursors,
}
