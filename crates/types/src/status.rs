//! Health and metrics of the governor.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{Timestamp, closed_words};

closed_words! {
    /// The health of a component or of the whole service, in worsening order.
    pub enum Health("health") {
        /// The component is fully operational.
        Healthy = "healthy",
        /// The component works, but with a fault.
        Degraded = "degraded",
        /// The component does not work.
        Unhealthy = "unhealthy",
    }
}

/// The health of each component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Components {
    /// The decision path: whether the queue accepts decisions and their results are processed.
    pub gateway: Health,
    /// The trust ledger: whether agent states can be stored.
    pub trust_engine: Health,
    /// The journal and its hash chain.
    pub proof_chain: Health,
    /// The intent parser.
    pub intent_parser: Health,
    /// The index, a sled database.
    pub database: Health,
}

impl Components {
    /// Creates the report from the components' health.
    pub const fn new(
        gateway: Health,
        trust_engine: Health,
        proof_chain: Health,
        intent_parser: Health,
        database: Health,
    ) -> Self {
        Self { gateway, trust_engine, proof_chain, intent_parser, database }
    }

    /// The health of the whole: the worst component's. An unhealthy index only counts as degraded, because it can be
    /// rebuilt from the journal.
    pub fn overall(&self) -> Health {
        let database = self.database.min(Health::Degraded);
        [self.gateway, self.trust_engine, self.proof_chain, self.intent_parser, database]
            .into_iter()
            .max()
            .unwrap_or(Health::Unhealthy)
    }
}

crate::parts::outward! {
    /// The duration of recent enforcements that reached a decision, in milliseconds.
    ///
    /// A percentile is accurate to 3 % between half a microsecond and four seconds.
    #[derive(Copy, Deserialize)]
    pub struct LatencyMetrics from LatencyMetricsParts {
        /// The length of the window in seconds, including the current unfinished ten seconds.
        pub window_seconds: u64,
        /// Number of enforcements that ended in the window.
        pub count: u64,
        /// The median in milliseconds.
        pub p50_ms: f64,
        /// The 90th percentile in milliseconds.
        pub p90_ms: f64,
        /// The 99th percentile in milliseconds.
        pub p99_ms: f64,
        /// The exact maximum in milliseconds.
        pub max_ms: f64,
    }
}

/// Metrics of the governor.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Metrics {
    /// Number of registered agents that are neither suspended nor retired.
    pub active_agents: u64,
    /// Number of decisions since midnight UTC.
    pub decisions_today: u64,
    /// Mean duration of an enforcement in the window of `latency`, in milliseconds; 0 without any.
    pub average_latency_ms: f64,
    /// Number of proof records in the chain.
    pub proof_chain_length: u64,
    /// Number of ESCALATE decisions since midnight UTC.
    pub escalations_today: u64,
    /// The distribution of enforcement durations.
    pub latency: LatencyMetrics,
}

impl Metrics {
    /// Creates metrics from their values.
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

/// A report on the governor's health and metrics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct SystemStatus {
    /// The health of the whole.
    pub status: Health,
    /// The library's version, `major.minor.patch`.
    pub version: Cow<'static, str>,
    /// Whole seconds since the governor was opened.
    pub uptime: u64,
    /// The health of each component.
    pub components: Components,
    /// Metrics of the governor.
    pub metrics: Metrics,
    /// The time of the report.
    pub timestamp: Timestamp,
    /// Problems that an operator should look at, as text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl SystemStatus {
    /// Creates a report; the overall status follows from the components.
    pub fn new(uptime: u64, components: Components, metrics: Metrics, timestamp: Timestamp) -> Self {
        let version = Cow::Borrowed(env!("CARGO_PKG_VERSION"));
        Self { status: components.overall(), version, uptime, components, metrics, timestamp, warnings: Vec::new() }
    }
}

/// Size and state of the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct JournalStatus {
    /// Number of entries on disk: decisions, outcomes, state changes, alerts.
    pub entries: u64,
    /// Number of fsyncs since the governor was opened. One fsync serves every caller that waits at that moment (group
    /// commit).
    pub syncs: u64,
    /// Number of segment files; a sealed segment counts once.
    pub segments: u64,
    /// Number of full segments that are not sealed yet.
    pub unsealed: u64,
}

impl JournalStatus {
    /// Creates a status from its values.
    pub const fn new(entries: u64, syncs: u64, segments: u64, unsealed: u64) -> Self {
        Self { entries, syncs, segments, unsealed }
    }
}

/// Findings from opening the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Opening {
    /// Whether the store was newly created.
    pub created: bool,
    /// The torn tail of a write that a crash cut short, if there was one. The write had not been acknowledged. The tail
    /// was copied aside, and the journal notes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovered: Option<Recovered>,
    /// Number of records whose erased evidence was still in a file, for example after a crash during the erasure or a
    /// restored backup. It has been erased again.
    pub erased_evidence_found: u64,
}

impl Opening {
    /// Creates findings from their values.
    pub const fn new(created: bool, recovered: Option<Recovered>, erased_evidence_found: u64) -> Self {
        Self { created, recovered, erased_evidence_found }
    }
}

/// The torn tail that was set aside when the store was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Recovered {
    /// The path of the copy, within the store.
    pub copy: String,
    /// Size of the tail in bytes.
    pub bytes: usize,
    /// The segment that contained it.
    pub segment: String,
    /// The byte offset in the segment at which it started.
    pub offset: u64,
}

impl Recovered {
    /// Creates a description of the tail from its parts.
    pub const fn new(copy: String, bytes: usize, segment: String, offset: u64) -> Self {
        Self { copy, bytes, segment, offset }
    }
}
