//! The agents: who may act, and how far each is trusted.

pub(crate) mod agent_file;
pub(crate) mod agents;
pub(crate) mod interventions;
pub(crate) mod kill_switch;
pub(crate) mod permit;
pub(crate) mod streaks;
pub(crate) mod trust;

use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::governor::{Base, checked_agent_id};
use crate::model::{AgentId, Decision, Enforcement, Error, GrantAuthority, GrantOrigin, GrantSource, Timestamp};
use crate::system::Clock as _;
use crate::trust::{Ledger, TrustModel};
use kill_switch::KillSwitches;
use permit::PermitGate;
use streaks::Streaks;

/// The agents, and what stops them.
///
/// Lock order: lifting a kill switch, the turn to change the kill switches, then the log; or an agent, then the log.
/// No lock is acquired under those that count denials and interventions.
pub(crate) struct Roster {
    pub(crate) base: Arc<Base>,
    pub(crate) ledger: Ledger,
    pub(crate) trust_model: TrustModel,
    pub(crate) auto_register: bool,
    pub(crate) denials: Streaks,
    pub(crate) stops: KillSwitches,
    pub(crate) permits: PermitGate,
}

impl Roster {
    /// The id of a registered agent, or of one that its first request registers.
    pub(crate) fn known_agent(&self, agent_id: &str) -> Result<AgentId, Error> {
        let agent_id = checked_agent_id(agent_id)?;
        if !self.auto_register && self.ledger.get(&agent_id).is_none() {
            // A log that could not be read completely may contain the agent.
            return Err(self.base.log.refusal().unwrap_or_else(|| Error::agent_not_found(agent_id.as_str())));
        }
        Ok(agent_id)
    }

    /// Adds the source of grants to an enforcement that grants something.
    pub(crate) fn granting(
        self: &Arc<Self>,
        mut enforcement: Enforcement,
        agent: &AgentId,
        at: Timestamp,
        is_low_read: bool,
        interventions: u64,
    ) -> Enforcement {
        if !matches!(enforcement.decision, Decision::Allow | Decision::Degrade) {
            return enforcement;
        }
        let Enforcement { granted_capabilities, constraints, proof_id, .. } = &enforcement;
        // A separate binding, because a `Weak` of a trait object is made from one of the type.
        let authority: Weak<Self> = Arc::downgrade(self);
        let origin = GrantOrigin { at, proof_id: *proof_id, is_low_read, interventions };
        enforcement.source = GrantSource::new(authority, origin, agent, granted_capabilities, constraints);
        enforcement
    }

    /// Returns an enforcement whose record is as durable as promised. If it grants something and meanwhile its agent was
    /// stopped or the permit ended, reports its outcome as UNKNOWN, without waiting for the disk, and returns an error.
    pub(crate) fn handed_out(&self, enforcement: Enforcement) -> Result<Enforcement, Error> {
        let Some((agent, origin)) = enforcement.source.origin() else { return Ok(enforcement) };
        if self.stops.interventions().count() == origin.interventions && !self.permits.is_required() {
            return Ok(enforcement);
        }
        let Some(why) = self.halted(agent, origin.is_low_read) else { return Ok(enforcement) };
        let proof_id = enforcement.proof_id;
        let note = format!("the decision was not handed out: {why}");
        // If it cannot be recorded, the record has no outcome, which says the same.
        let _ = self.base.log.report_unknown(self.base.clock.now(), agent, &proof_id, Some(&note));
        Err(Error::Withdrawn { proof_id, why })
    }

    /// The reason an agent may not act on what it was granted, if any.
    fn halted(&self, agent_id: &AgentId, is_low_read: bool) -> Option<String> {
        let Some(cell) = self.ledger.get(agent_id) else { return Some(format!("agent {agent_id} is not registered")) };
        let agent = cell.read();
        let stopped = self.stops.load().refusal(&agent);
        stopped.or_else(|| self.permits.refusal(&*self.base.clock, self.base.clock.now(), is_low_read))
    }
}

impl GrantAuthority for Roster {
    fn now(&self) -> Timestamp {
        self.base.clock.now()
    }

    fn monotonic(&self) -> Duration {
        self.base.clock.monotonic()
    }

    fn barred(&self, agent_id: &AgentId, is_low_read: bool) -> Option<String> {
        if let Err(error) = self.base.log.check_process() {
            return Some(error.to_string());
        }
        if self.base.log.is_closed() {
            return Some("the governor was closed".to_owned());
        }
        self.halted(agent_id, is_low_read)
    }
}
