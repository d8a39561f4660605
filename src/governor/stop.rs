//! Who must not act, whatever the policies say.

use arc_swap::{ArcSwap, Guard};
use std::sync::Arc;

use crate::trust::AgentRecord;

/// All stops in force. A decision loads them without a lock.
#[derive(Debug, Default)]
pub(super) struct Stops {
    table: ArcSwap<StopTable>,
}

impl Stops {
    pub(super) fn load(&self) -> Guard<Arc<StopTable>> {
        self.table.load()
    }
}

/// The stops at one moment.
#[derive(Debug, Default)]
pub(super) struct StopTable {
    epoch: u64,
}

impl StopTable {
    /// How often stops were set since the governor was opened.
    pub(super) const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Why an agent must not act, if so.
    pub(super) fn over(&self, _agent: &AgentRecord) -> Option<String> {
        None
    }
}
