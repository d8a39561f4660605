//! Past and hypothetical decisions: previews, replays, and the check of trust.

pub(crate) mod preview;
pub(crate) mod replay;
pub(crate) mod trust_check;

use std::sync::Arc;

use crate::governor::Decider;

/// Looks at decisions through the parts of the decider, without making any.
///
/// It has no lock of its own, and takes those of other parts in the order of a decision.
pub(crate) struct Past(pub(crate) Arc<Decider>);
