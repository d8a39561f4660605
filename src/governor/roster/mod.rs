//! The agents: who may act, and how far each is trusted.

pub(crate) mod agent_file;
pub(crate) mod agents;
pub(crate) mod kill_switch;
pub(crate) mod permit;
pub(crate) mod standing;
pub(crate) mod streaks;
pub(crate) mod trust;
