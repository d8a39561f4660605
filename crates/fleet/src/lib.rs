//! One organisation, many governors: signed orders, permits, shared limits and one log.
pub mod budget;
pub mod bundle;
pub mod cosignature;
#[cfg(feature = "hub")]
pub mod hub;
mod keys;
pub mod log;
#[cfg(feature = "member")]
pub mod member;
pub mod order;
pub mod permit;
pub mod purse;
pub mod session;
pub mod wire;
pub mod witness;

#[cfg(feature = "member")]
pub use member::{CopyRule, Member, MemberBuilder, MemberError, MemberStatus, Offline};
