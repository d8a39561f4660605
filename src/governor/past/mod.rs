//! Past and hypothetical decisions: previews, replays, and the check of trust.

pub(crate) mod preview;
pub(crate) mod replay;
pub(crate) mod trust_check;
