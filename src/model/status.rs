//! The report on the governor's own health.

use serde::Serialize;

use super::{Timestamp, closed_words};

closed_words! {
    /// How well a component, or the whole, works; the later the worse.
    pub enum Health("health") {
        /// Works.
        Healthy = "healthy",
        /// Works with a fault beside it.
        Degraded = "degraded",
        /// Does not work.
        Unhealthy = "unhealthy",
    }
}

/// The health of each component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Components {
    /// The way in: whether decisions are taken at all, and what comes of them seen to.
    pub gateway: Health,
    /// The trust ledger: whether what is kept of agents can be.
    pub trust_engine: Health,
    /// The journal and its chain.
    pub proof_chain: Health,
    /// The intent parser.
    pub intent_parser: Health,
    /// The sled view.
    pub database: Health,
}

impl Components {
    /// The components' healths put together.
    pub const fn new(
        gateway: Health,
        trust_engine: Health,
        proof_chain: Health,
        intent_parser: Health,
        database: Health,
    ) -> Self {
        Self { gateway, trust_engine, proof_chain, intent_parser, database }
    }

    /// The worst that matters: a sick database only degrades the whole, for it
    /// is a view that can be rebuilt.
    pub fn overall(&self) -> Health {
        let database = self.database.min(Health::Degraded);
        [self.gateway, self.trust_engine, self.proof_chain, self.intent_parser, database]
            .into_iter()
            .max()
            .unwrap_or(Health::Unhealthy)
    }
}

/// How long enforcements took that came to a verdict of late, in milliseconds.
///
/// A percentile is the length that so many of a hundred do not exceed, within
/// 3 % of it from half a microsecond to four seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LatencyMetrics {
    /// What is looked back at, in seconds: the ten seconds that are not over yet are part of it.
    pub window_seconds: u64,
    /// Enforcements that ended in the window.
    pub count: u64,
    /// The median.
    pub p50_ms: f64,
    /// The 90th percentile.
    pub p90_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// The longest, as it was.
    pub max_ms: f64,
}

/// Numbers on what the governor does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Metrics {
    /// Registered agents that are neither suspended nor retired.
    pub active_agents: u64,
    /// Decisions since midnight, UTC.
    pub decisions_today: u64,
    /// Mean time of an enforcement in the window of `latency`, in milliseconds; 0 without any.
    pub average_latency_ms: f64,
    /// Proof records in the chain.
    pub proof_chain_length: u64,
    /// Decisions to escalate since midnight, UTC.
    pub escalations_today: u64,
    /// How the times of enforcements are spread.
    pub latency: LatencyMetrics,
}

impl Metrics {
    /// The numbers put together.
    pub const fn new(
        active_agents: u64,
        decisions_today: u64,
        average_latency_ms: f64,
        proof_chain_length: u64,
        escalations_today: u64,
        latency: LatencyMetrics,
    ) -> Self {
        Self { active_agents, decisions_today, average_latency_ms, proof_chain_length, escalations_today, latency }
    }
}

/// The report on the governor's own health.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct SystemStatus {
    /// The whole.
    pub status: Health,
    /// The version of this library, major.minor.patch.
    pub version: &'static str,
    /// Whole seconds since the governor was opened.
    pub uptime: u64,
    /// Each component.
    pub components: Components,
    /// The numbers.
    pub metrics: Metrics,
    /// When the report was made.
    pub timestamp: Timestamp,
    /// What an operator should look at, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl SystemStatus {
    /// A report of this version whose whole follows from its components.
    pub fn new(uptime: u64, components: Components, metrics: Metrics, timestamp: Timestamp) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        Self { status: components.overall(), version, uptime, components, metrics, timestamp, warnings: Vec::new() }
    }
}

/// How the journal stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct JournalStatus {
    /// Entries on disk: decisions, outcomes, states, alerts.
    pub entries: u64,
    /// How often what was written was made to last since the governor was opened; each serves all
    /// who wait at that moment.
    pub syncs: u64,
    /// Files that hold entries; a sealed one counts once.
    pub segments: u64,
    /// Of these, full ones that are not sealed yet.
    pub unsealed: u64,
}

impl JournalStatus {
    /// The numbers put together.
    pub const fn new(entries: u64, syncs: u64, segments: u64, unsealed: u64) -> Self {
        Self { entries, syncs, segments, unsealed }
    }
}

/// What was found when a store was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Opening {
    /// The store was made just now.
    pub created: bool,
    /// The torn tail of a write that a crash had cut short. It had never been
    /// acknowledged as on disk; it was copied aside, and a note of it is in the
    /// journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovered: Option<Recovered>,
    /// The number of records whose evidence stood in a file although an erasure covers it, as after a crash in the
    /// middle of the erasure or a restored backup. It was erased.
    pub erased_evidence_found: u64,
}

impl Opening {
    /// The findings put together.
    pub const fn new(created: bool, recovered: Option<Recovered>, erased_evidence_found: u64) -> Self {
        Self { created, recovered, erased_evidence_found }
    }
}

/// The torn tail that was set aside when a store was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Recovered {
    /// The copy's path in the store.
    pub copy: String,
    /// How many bytes it holds.
    pub bytes: usize,
    /// The segment it stood in.
    pub segment: String,
    /// The byte where it started there.
    pub offset: u64,
}

impl Recovered {
    /// The parts put together.
    pub const fn new(copy: String, bytes: usize, segment: String, offset: u64) -> Self {
        Self { copy, bytes, segment, offset }
    }
}
