//! The past decisions of a store, in a form that policies can decide again.

use std::error::Error;
use std::path::{Path, PathBuf};

use clap::Args;
use rulekeep::agent::{AgentId, AgentState, AgentTraits};
use rulekeep::intent::DenialClass;
use rulekeep::policy::PolicyRequest;
use rulekeep::preview::ReplayRange;
use rulekeep::proof::{Evidence, Order};
use rulekeep::system::Timestamp;
use rulekeep::trust::TrustSnapshot;
use rulekeep::{Governor, Intent, ProofQuery, ProofRecord, RiskLevel};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::times::Period;

/// The part of a log that a command reads.
#[derive(Args)]
pub(super) struct Range {
    #[command(flatten)]
    period: Period,
    /// Only decisions of this agent
    #[arg(long, value_name = "ID")]
    agent: Option<AgentId>,
}

impl Range {
    pub(super) fn to_replay(&self) -> ReplayRange {
        let range = self.period.from.into_iter().fold(ReplayRange::all(), ReplayRange::from);
        let range = self.period.to.into_iter().fold(range, ReplayRange::to);
        self.agent.clone().into_iter().fold(range, ReplayRange::of_agent)
    }

    fn to_query(&self) -> ProofQuery {
        let query = self.agent.as_ref().map_or_else(ProofQuery::all, |agent| ProofQuery::entity(agent.as_str()));
        let query = self.period.from.into_iter().fold(query, ProofQuery::from);
        self.period.to.into_iter().fold(query, ProofQuery::to).order(Order::OldestFirst)
    }

    /// Passes every decision in the range whose evidence can be read to `look`, oldest first. Returns the number of
    /// the others.
    pub(super) fn each(&self, governor: &Governor, mut look: impl FnMut(Past)) -> Result<u64, Box<dyn Error>> {
        let mut unreadable = 0;
        for record in governor.log().records(&self.to_query()) {
            let record = record?;
            match governor.log().evidence(&record.id).ok().and_then(|evidence| Past::of(record, evidence)) {
                Some(past) => look(past),
                None => unreadable += 1,
            }
        }
        Ok(unreadable)
    }
}

/// Opens a store for reading. A service may write to it meanwhile.
pub(super) fn open(store: &Path) -> Result<Governor, Box<dyn Error>> {
    Ok(Governor::open_read_only(store)?)
}

/// The store that a command reads.
#[derive(Args)]
pub(super) struct Store {
    /// The folder of the store, which is only read (default: the one in the home)
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    #[command(flatten)]
    pub(super) range: Range,
}

impl Store {
    pub(super) fn open(&self) -> Result<Governor, Box<dyn Error>> {
        open(&crate::home::store_of(self.store.as_deref())?)
    }
}

/// A past decision with its evidence.
pub(super) struct Past {
    pub(super) record: ProofRecord,
    pub(super) intent: Intent,
    pub(super) detail: Detail,
}

/// The part of a decision's evidence other than the intent.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Detail {
    risk_level: RiskLevel,
    trust_snapshot: TrustSnapshot,
    #[serde(flatten)]
    traits: AgentTraits,
    agent_state: AgentState,
    now: Option<Timestamp>,
    stop: Option<IgnoredAny>,
    denial_class: Option<DenialClass>,
    /// The rules that decided.
    #[serde(default)]
    pub(super) rules: Vec<String>,
    /// The task's part, if the request came under one.
    #[serde(default)]
    pub(super) task: serde_json::Value,
}

impl Past {
    fn of(record: ProofRecord, evidence: Evidence) -> Option<Self> {
        let intent = serde_json::from_value(evidence.intent).ok()?;
        Some(Self { record, intent, detail: serde_json::from_value(evidence.detail).ok()? })
    }

    /// Returns whether the kill switch, the agent's state, a missing permit or a task's mandate denied it, rather than a
    /// policy.
    pub(super) fn is_barred(&self) -> bool {
        let Detail { stop, agent_state, denial_class, .. } = &self.detail;
        stop.is_some()
            || *agent_state != AgentState::Active
            || matches!(denial_class, Some(DenialClass::Mandate | DenialClass::NoPermit))
    }

    /// Returns whether an exhausted limit denied it, which says nothing against the request.
    pub(super) fn is_over_limit(&self) -> bool {
        self.detail.denial_class == Some(DenialClass::Limit)
    }

    /// The effective risk.
    pub(super) fn risk(&self) -> RiskLevel {
        self.detail.risk_level
    }

    /// Returns the request as policies decide it, with the trust and the time of the original decision.
    pub(super) fn request(&self) -> PolicyRequest<'_> {
        let now = self.detail.now.unwrap_or(self.record.timestamp);
        PolicyRequest::new(&self.intent, self.detail.trust_snapshot)
            .at_risk(self.detail.risk_level)
            .of_agent(&self.detail.traits)
            .at(now)
    }
}
