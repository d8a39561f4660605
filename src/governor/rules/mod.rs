//! The policy sets in force, the rate limits they count, and the alerts they raise.

pub(crate) mod alerts;
pub(crate) mod limits;
pub(crate) mod policies;
pub(crate) mod shadow;
pub(crate) mod shared_limits;
pub(crate) mod watch;
