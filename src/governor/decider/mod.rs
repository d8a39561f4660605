//! Decisions, the work under them, and their outcomes.

pub(crate) mod calls;
pub(crate) mod decide;
pub(crate) mod detail;
pub(crate) mod guard;
pub(crate) mod latency;
pub(crate) mod outcome;
pub(crate) mod pending;
