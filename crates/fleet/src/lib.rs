//! One organisation, many governors: signed orders, permits, shared limits and one log.
mod keys;
pub mod order;
pub mod wire;
