//! One organisation, many governors: one policy in force everywhere, a kill switch that binds everywhere within a
//! bound, limits that hold over all processes, and one log that a stranger can check.
//!
//! A governor becomes a [`Member`] and decides in its own process as before, as long as it holds a permit. Hubs, with
//! the feature `hub`, give permits and pass on the orders that operators have signed; they keep everything in
//! `PostgreSQL`. The module `guides::fleet` of the crate `rulekeep` walks through it; `docs/reference/fleet.md` in that
//! package says what is guaranteed and what happens in each failure.
//!
//! | module | subject |
//! |---|---|
//! | [`order`] | signed orders in one chain, and what they amount to |
//! | [`enrolment`] | invitations, and how governors accept them |
//! | [`permit`] | the time for which a governor may decide |
//! | [`budget`], [`purse`] | shared limits: the arithmetic of the hub and of a governor |
//! | [`session`] | a member's side of the conversation, apart from network and governor |
//! | [`membership`] | a member as hubs know it, and the judgment of its beats |
//! | [`wire`] | the messages between members and hubs |
//! | [`log`], [`cosignature`], [`witness`] | the organisation's log, and those who watch it |
//! | [`bundle`] | the proof of one record, for a stranger |
//! | `member`, `hub` | the two sides with their network and storage, each with the feature of its name |
//!
//! The state machines in `permit`, `purse`, `budget`, `membership`, `session` and `order` do no I/O, so that simulations and the product share
//! them.

pub mod budget;
pub mod bundle;
pub mod cosignature;
pub mod enrolment;
#[cfg(feature = "hub")]
pub mod hub;
mod keys;
pub mod log;
#[cfg(feature = "member")]
mod member;
pub mod membership;
pub mod order;
pub mod permit;
pub mod purse;
pub mod session;
pub mod wire;
pub mod witness;

pub use keys::{KeyFileError, read_key, write_key};
#[cfg(feature = "member")]
pub use member::{CopyRule, Member, MemberBuilder, MemberError, MemberStatus, Offline};
