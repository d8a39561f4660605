//! Past and hypothetical decisions: previews, replays, and the check of trust.

pub(crate) mod preview;
pub(crate) mod replay;
pub(crate) mod trust_check;

use std::sync::Arc;

use crate::governor::{Approvals, Base, Intake, Roster, Rules};

/// Looks at decisions without making any. It has no lock, and holds one of another part at a time.
pub(crate) struct Past {
    pub(crate) base: Arc<Base>,
    pub(crate) roster: Arc<Roster>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) intake: Arc<Intake>,
    pub(crate) approvals: Arc<Approvals>,
}
