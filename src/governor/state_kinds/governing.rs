//! The kinds of states that decisions are made by: agents, policies, the trust model, kill switches and tools.

use super::{CARRIED, Repaired, Repairing, Rest, Restored, StateKind};
use crate::governor::intake::catalogue;
use crate::governor::keys::{Agents, Keyed as _, Model, Policies, Rerecording, Stops, Tools};
use crate::governor::roster::{agents, kill_switch};
use crate::governor::rules::policies::PolicyState;
use crate::governor::{Hold as _, states};
use crate::model::{AgentState, Error};
use crate::parse::ToolRuling;
use crate::policy::PolicySet;
use crate::trust::{AgentRecord, TrustModel};

impl StateKind for Agents {
    fn restore(restored: &mut Restored, key: &str, value: &[u8]) -> Result<(), Error> {
        // The ledger is new, and every key occurs once.
        let _ = restored.ledger.insert(states::read(key, value)?, |_| Ok::<(), Error>(()))?;
        Ok(())
    }

    fn rerecord(again: &mut Rerecording<'_>) -> Result<Rest, Error> {
        for cell in again.governor.inner.roster.ledger.all_to_come() {
            // Held so that no change happens meanwhile.
            let agent = cell.write();
            again.record(agents::state_of(&agent)?)?;
        }
        Ok(Rest::None)
    }

    fn repair(repairing: &mut Repairing<'_>) -> Result<Repaired, Error> {
        for key in repairing.keys(Self::PREFIX) {
            let read = |value: &Vec<u8>| serde_json::from_slice::<AgentRecord>(value).ok();
            let behind: Vec<AgentRecord> = repairing.behind(key).filter_map(read).collect();
            let good = repairing.found.good.get(key).and_then(read);
            let Some(known) = good.clone().or_else(|| behind.last().cloned()) else {
                repairing.say_unreadable(key);
                continue;
            };
            let record = tightened(&known, &behind, repairing.suspend_all || good.is_none());
            let cause = if good.as_ref() == Some(&record) {
                CARRIED
            } else {
                repairing.carried.tightened.push(record.agent_id.to_string());
                "carried over by a repair, with restrictions from unconfirmed entries"
            };
            repairing.carried.states.push((agents::state_of(&record)?, cause.to_owned()));
            repairing.carried.agents += 1;
        }
        Ok(Repaired::Carried)
    }
}

/// The agent with the most restrictive of these states.
fn tightened(known: &AgentRecord, behind: &[AgentRecord], suspended: bool) -> AgentRecord {
    let mut record = known.clone();
    for later in behind {
        record.state = record.state.max(later.state);
        if later.trust.score < record.trust.score {
            record.trust = later.trust;
        }
    }
    if suspended {
        record.state = record.state.max(AgentState::Suspended);
    }
    record
}

const _: fn() = || {
    // INVARIANT: states are ordered by restrictiveness.
    const { assert!((AgentState::Active as u8) < AgentState::Suspended as u8) };
    const { assert!((AgentState::Suspended as u8) < AgentState::Retired as u8) };
};

impl StateKind for Policies {
    fn restore(restored: &mut Restored, key: &str, value: &[u8]) -> Result<(), Error> {
        restored.policies = Some(states::read(key, value)?);
        Ok(())
    }

    fn rerecord(again: &mut Rerecording<'_>) -> Result<Rest, Error> {
        let governor = again.governor;
        let _turn = governor.inner.rules.policies.turn.hold();
        again.record(PolicyState::of(&governor.inner.rules.policies.load())?.draft()?)?;
        Ok(Rest::None)
    }

    fn repair(repairing: &mut Repairing<'_>) -> Result<Repaired, Error> {
        let found = repairing.found;
        let Some(policies) = found.good.get(Self::PREFIX) else {
            let state = PolicyState::of(&PolicySet::from_toml(NOTHING)?)?.draft()?;
            let cause = "no confirmed entry says which policy set was in force".to_owned();
            repairing.carried.states.push((state, cause));
            repairing.say(
                "no confirmed entry says which policy set was in force: everything is denied until one is loaded, and \
                 every agent was suspended",
            );
            return Ok(Repaired::Carried);
        };
        repairing.carry_as_it_is(Self::PREFIX, policies);
        if found.behind.contains_key(Self::PREFIX) {
            repairing.say(
                "unconfirmed entries put a policy set in force that may be stricter: the set before it was carried \
                 over, and every agent was suspended; load the right set, then resume the agents",
            );
        }
        Ok(Repaired::Carried)
    }
}

/// The policy set in force when the previous one is unknown.
const NOTHING: &str = r#"
name = "nothing-until-a-set-is-loaded"
[[rule]]
id = "the-log-was-repaired"
effect = "deny"
match.capabilities = ["*:*"]
"#;

/// The trust model in force.
impl StateKind for Model {
    fn restore(restored: &mut Restored, _: &str, value: &[u8]) -> Result<(), Error> {
        restored.trust_model = Some(value.to_vec());
        Ok(())
    }

    fn rerecord(again: &mut Rerecording<'_>) -> Result<Rest, Error> {
        again.record(states::draft(Self::PREFIX, &again.governor.inner.roster.trust_model)?)?;
        Ok(Rest::None)
    }

    fn repair(repairing: &mut Repairing<'_>) -> Result<Repaired, Error> {
        let found = repairing.found;
        if found.behind.contains_key(Self::PREFIX) {
            repairing.say("a trust model was set in unconfirmed entries and was not carried over: set it again");
        }
        if let Some(value) = found.good.get(Self::PREFIX) {
            match serde_json::from_slice(value).map(TrustModel::checked) {
                Ok(Ok(_)) => repairing.carry_as_it_is(Self::PREFIX, value),
                _ => repairing.say_unreadable(Self::PREFIX),
            }
        }
        Ok(Repaired::Carried)
    }
}

/// Kill switches.
impl StateKind for Stops {
    fn restore(restored: &mut Restored, key: &str, value: &[u8]) -> Result<(), Error> {
        restored.stops.extend(kill_switch::read(key, value)?);
        Ok(())
    }

    fn rerecord(again: &mut Rerecording<'_>) -> Result<Rest, Error> {
        let governor = again.governor;
        // Held so that none is lifted meanwhile.
        let _lifting = governor.inner.roster.stops.lifting.hold();
        for stop in governor.kill_switch().list() {
            again.record(kill_switch::state_of(&stop)?)?;
        }
        // Lifted ones.
        Ok(Rest::Over)
    }

    /// A set kill switch counts wherever it is found, a lifted one only in the valid part of the log.
    fn repair(repairing: &mut Repairing<'_>) -> Result<Repaired, Error> {
        let mut stops = Vec::new();
        for key in repairing.keys(Self::PREFIX) {
            for value in repairing.found.good.get(key).into_iter().chain(repairing.behind(key)) {
                match kill_switch::read(key, value) {
                    Ok(stop) => stops.extend(stop),
                    Err(_) => repairing.say_unreadable(key),
                }
            }
        }
        stops.sort_by_key(|stop| stop.id);
        stops.dedup_by_key(|stop| stop.id);
        for stop in &stops {
            repairing.carry(kill_switch::state_of(stop)?);
        }
        Ok(Repaired::Carried)
    }
}

/// Pins and overrides of tools.
impl StateKind for Tools {
    fn restore(restored: &mut Restored, key: &str, value: &[u8]) -> Result<(), Error> {
        restored.rulings.extend(states::read::<Option<ToolRuling>>(key, value)?);
        Ok(())
    }

    fn rerecord(again: &mut Rerecording<'_>) -> Result<Rest, Error> {
        let governor = again.governor;
        // Held so that no change happens meanwhile.
        let _turn = governor.inner.intake.tools.turn.hold();
        for ruling in governor.inner.intake.tools.load().rulings() {
            again.record(catalogue::state_of(&ruling)?)?;
        }
        // Removed ones.
        Ok(Rest::Over)
    }

    /// If entries after the break contradict a pin or an override, or nothing can be trusted, no definition of the tool
    /// is accepted, so every call of it is at least HIGH.
    fn repair(repairing: &mut Repairing<'_>) -> Result<Repaired, Error> {
        let (found, mut disputed) = (repairing.found, 0_u64);
        for key in repairing.keys(Self::PREFIX) {
            let mut read = |value: &Vec<u8>| {
                states::read::<Option<ToolRuling>>(key, value).unwrap_or_else(|_| {
                    repairing.say_unreadable(key);
                    None
                })
            };
            let good = found.good.get(key).and_then(&mut read);
            let mut behind: Vec<ToolRuling> = found.behind.get(key).into_iter().flatten().filter_map(read).collect();
            behind.retain(|ruling| Some(ruling) != good.as_ref());
            let is_believed = behind.is_empty() && !found.is_contradicted;
            let Some(ruling) = good.or_else(|| behind.pop()) else { continue };
            let ruling = if is_believed {
                ruling
            } else {
                disputed += 1;
                ruling.disputed(behind)
            };
            repairing.carry(catalogue::state_of(&ruling)?);
        }
        if disputed > 0 {
            repairing.say(format!(
                "the pins and overrides of {disputed} tools are unconfirmed: every call of these tools is at least HIGH \
                 until they are pinned or overridden again"
            ));
        }
        Ok(Repaired::Carried)
    }
}
