//! The policy sets in force, the rate limits they count, and the alerts they raise.

pub(crate) mod alerts;
pub(crate) mod limits;
pub(crate) mod policies;
pub(crate) mod shadow;
pub(crate) mod shared_limits;
pub(crate) mod standing;
pub(crate) mod watch;

use std::sync::{Arc, Mutex};

use arc_swap::ArcSwapOption;

use crate::governor::{Base, Roster};
use limits::Counters;
use policies::PolicySets;
use shared_limits::SharedLimits;
use watch::Watch;

/// The policy set in force, and what is counted by its rules.
///
/// Lock order: the turn to load policies or an agent, the counters of the limits, then the log.
pub(crate) struct Rules {
    pub(crate) base: Arc<Base>,
    pub(crate) roster: Arc<Roster>,
    pub(crate) policies: PolicySets,
    pub(crate) limits: Counters,
    /// The organisation's limits; without them, shared limits are used up.
    pub(crate) shared: ArcSwapOption<Arc<dyn SharedLimits>>,
    // Held to look up and count one subject; no other lock is acquired meanwhile.
    pub(crate) watch: Mutex<Watch>,
}
