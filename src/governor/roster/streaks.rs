//! Streaks of denials: repeated denials of an agent within a time span.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use crate::governor::Hold as _;
use crate::model::{AgentId, RiskLevel, Timestamp};
use crate::trust::{Denials, TrustModel};

/// The streaks of all agents that were denied recently.
#[derive(Debug)]
pub(crate) struct Streaks {
    // Held to count one denial.
    of: Mutex<Counted>,
    most: usize,
}

#[derive(Debug, Default)]
struct Counted {
    denials: HashMap<AgentId, Denials>,
    /// The same agents, in the order in which they are checked for finished streaks.
    turns: VecDeque<AgentId>,
}

impl Default for Streaks {
    fn default() -> Self {
        Self { of: Mutex::default(), most: MOST_STREAKS }
    }
}

impl Streaks {
    /// Counts a denial. If it completes a streak that costs trust, returns the highest risk in the streak.
    pub(crate) fn count(
        &self,
        model: &TrustModel,
        agent: &AgentId,
        risk: RiskLevel,
        now: Timestamp,
    ) -> Option<RiskLevel> {
        let mut counted = self.of.hold();
        let Counted { denials, turns } = &mut *counted;
        if let Some(known) = denials.get_mut(agent) {
            return known.count(model, risk, now);
        }
        // Checks a few for each new agent, never all of them: no caller waits long, and finished streaks are removed
        // eventually.
        for _ in 0..LOOKED_AT {
            let Some(next) = turns.pop_front() else { break };
            if denials.get(&next).is_none_or(|denials| denials.is_over(model, now)) {
                denials.remove(&next);
            } else {
                turns.push_back(next);
            }
        }
        if denials.len() >= self.most {
            // With so many agents denied at once, one more carries no information.
            return None;
        }
        turns.push_back(agent.clone());
        denials.entry(agent.clone()).or_default().count(model, risk, now)
    }
}

/// Maximum number of agents with a streak.
const MOST_STREAKS: usize = 65_536;
/// Number of agents checked for each new one.
const LOOKED_AT: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_millis(minutes * 60_000)
    }

    fn agent(number: usize) -> AgentId {
        format!("agent-{number}").parse().unwrap()
    }

    fn held(streaks: &Streaks) -> usize {
        let counted = streaks.of.lock().unwrap();
        assert_eq!(counted.turns.len(), counted.denials.len());
        counted.denials.len()
    }

    #[test]
    fn each_newcomer_looks_at_a_few_and_not_at_all_of_them() {
        let (model, most) = (TrustModel::default(), 100);
        let streaks = Streaks { of: Mutex::default(), most };
        for number in 0..most * 2 {
            assert_eq!(streaks.count(&model, &agent(number), RiskLevel::Low, at(0)), None);
        }
        assert_eq!(held(&streaks), most, "those that came too late are not counted");
        // Every streak is over by now.
        for newcomer in 1..=20 {
            streaks.count(&model, &agent(1000 + newcomer), RiskLevel::Low, at(600));
            assert_eq!(held(&streaks), most - newcomer * (LOOKED_AT - 1));
        }
        for newcomer in 0..most {
            streaks.count(&model, &agent(2000 + newcomer), RiskLevel::Low, at(600));
        }
        assert!(held(&streaks) <= most);
        let counted = streaks.of.lock().unwrap();
        assert!((0..most).all(|number| !counted.denials.contains_key(&agent(number))), "what was over has left");
    }

    #[test]
    fn one_that_is_not_over_goes_on_however_many_come() {
        let model = TrustModel::default();
        let streaks = Streaks { of: Mutex::default(), most: 10 };
        let streak = usize::from(model.denial_streak);
        let mut cost = Vec::new();
        for turn in 0..streak {
            cost.push(streaks.count(&model, &agent(0), RiskLevel::High, at(0)));
            (1..50).for_each(|other| _ = streaks.count(&model, &agent(turn * 50 + other), RiskLevel::Low, at(0)));
        }
        assert_eq!(cost.iter().flatten().collect::<Vec<_>>(), [&RiskLevel::High]);
        assert!(cost.last().unwrap().is_some());
    }
}
