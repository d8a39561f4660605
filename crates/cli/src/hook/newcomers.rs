//! The registration of agents under names that clients of the agents' socket choose: bounded by hour and in total, so
//! that no client fills the roster.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rulekeep::{Agent, Error, Governor, Tier};

/// The agents that clients registered lately.
#[derive(Default)]
pub(super) struct Newcomers {
    /// Names with the time of their registration, oldest first.
    recent: Mutex<VecDeque<(Instant, String)>>,
}

impl Newcomers {
    /// Registers an agent, unless it is known.
    pub(super) fn register(&self, governor: &Governor, agent_id: &str, tier: Tier) -> Result<(), Error> {
        let agents = governor.agents();
        match agents.get(agent_id) {
            Err(Error::AgentNotFound { .. }) => self.admit(agent_id, agents.page(0, 0).0, Instant::now())?,
            known => return known.map(drop),
        }
        agents.ensure(Agent::new(agent_id).at_tier(tier)).map(drop)
    }

    /// Counts a new name, once for calls at the same time. `registered` is the number of agents in the roster.
    fn admit(&self, agent_id: &str, registered: usize, now: Instant) -> Result<(), Error> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        while recent.front().is_some_and(|(at, _)| now.saturating_duration_since(*at) >= HOUR) {
            recent.pop_front();
        }
        if recent.iter().any(|(_, known)| known == agent_id) {
            return Ok(());
        }
        let remedy = "an operator adds one with: rulekeep agents register";
        if registered >= MOST_REGISTERED {
            let message = format!("{registered} agents are registered, and hooks and gateways add no more; {remedy}");
            return Err(Error::Forbidden { message });
        }
        if let Some((oldest, _)) = recent.front().filter(|_| recent.len() >= MOST_AN_HOUR) {
            let message = format!("hooks and gateways added {MOST_AN_HOUR} agents within an hour; {remedy}");
            return Err(Error::RateLimited { message, retry_after: HOUR.saturating_sub(now - *oldest) });
        }
        recent.push_back((now, agent_id.to_owned()));
        Ok(())
    }
}

const HOUR: Duration = Duration::from_secs(60 * 60);
/// Largest number of new names in an hour. A test farm gives each run a name of its own.
const MOST_AN_HOUR: usize = 4096;
/// Number of agents in the roster from which on no new name is registered.
const MOST_REGISTERED: usize = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    fn code(admitted: Result<(), Error>) -> &'static str {
        admitted.map_or_else(|error| error.code(), |()| "")
    }

    #[test]
    fn new_names_are_bounded_by_hour_and_in_total() {
        let (newcomers, start) = (Newcomers::default(), Instant::now());
        for number in 0..MOST_AN_HOUR {
            newcomers.admit(&number.to_string(), number, start).unwrap();
        }
        assert_eq!(code(newcomers.admit("x", 0, start)), "RATE_LIMITED");
        assert_eq!(code(newcomers.admit("0", 0, start)), "", "it is being registered");
        assert_eq!(code(newcomers.admit("x", MOST_REGISTERED, start + HOUR)), "FORBIDDEN");
        assert_eq!(code(newcomers.admit("x", 0, start + HOUR)), "");
    }

    #[test]
    fn known_agents_need_no_room() {
        let (newcomers, governor) = (Newcomers::default(), Governor::builder().open_in_memory().unwrap());
        governor.agents().register(Agent::new("known")).unwrap();
        let now = Instant::now();
        (0..MOST_AN_HOUR - 1).for_each(|number| newcomers.admit(&number.to_string(), 0, now).unwrap());
        let register = |name: &str| code(newcomers.register(&governor, name, Tier::T3));
        assert_eq!((register("last"), register("new")), ("", "RATE_LIMITED"));
        assert_eq!((register("known"), register("last")), ("", ""));
        assert_eq!(governor.agents().page(0, 0).0, 2);
    }
}
