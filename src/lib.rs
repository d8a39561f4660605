//! Rulekeep governs the actions of software agents, inside your process.
//!
//! It parses an agent's request into an intent, decides on the intent by policy and by the agent's trust, and records
//! every decision in a hash-linked proof log. A decision is ALLOW, DENY, ESCALATE or DEGRADE. It needs no server, no
//! model and no network.
//!
//! # Start here
//!
//! | you want to | read |
//! |---|---|
//! | see the library at work | the [tour](#tour) below |
//! | govern an agent that you write in Rust | [`guides::agent_loop`], then [`Governor`] |
//! | write, test and load a policy | [`guides::first_policy`], then [`PolicySet`] |
//! | govern a coding agent such as Claude Code | [`guides::coding_agents`] |
//! | govern MCP servers | [`guides::mcp`] |
//! | check a log that somebody else keeps | [`guides::auditors`], then [`proof`] |
//! | run it in production | [`guides::operators`] and [`guides::fleet`], then [`maintenance`] |
//! | look up a term | [`guides::glossary`] |
//! | use another language, or look up a rule, format, limit or error code | `docs/reference/` in this package, indexed by `docs/README.md` |
//!
//! # Tour
//!
//! A [`Governor`] owns everything. Open it on a folder, or in memory for tests:
//!
//! ```
//! use rulekeep::{Agent, Decision, Governor, Intent, Outcome, ProofQuery, RiskLevel, Tier};
//!
//! let governor = Governor::builder().open_in_memory()?;
//! governor.agents().register(Agent::new("support-1").at_tier(Tier::T4))?;
//!
//! // A request, as text or as a tool call, is parsed into an intent ...
//! let parsed = governor.parse("support-1", "Send the agenda to ann@example.com")?;
//! assert_eq!(parsed.intent.required_capabilities[0].as_str(), "email:send");
//!
//! // ... which is decided on. Every decision leaves a proof record.
//! let verdict = governor.enforce(&parsed.intent)?;
//! assert_eq!(verdict.decision, Decision::Allow);
//!
//! // The outcome changes the agent's trust: a success raises it slowly, a failure lowers it fast.
//! let trust = governor.report(&verdict.proof_id, Outcome::Failure)?;
//! assert!(trust.score < verdict.trust_snapshot.score);
//!
//! // A runtime that knows what a call needs builds the intent itself. It cannot understate the risk:
//! // a payment without an amount is HIGH, and the recommended policies escalate it to a reviewer.
//! let payment = Intent::new("support-1", "pay_invoice", RiskLevel::Low, ["payment:transfer"])?;
//! let verdict = governor.enforce(&payment)?;
//! assert_eq!(verdict.decision, Decision::Escalate);
//! println!("{}", verdict.reasoning);
//!
//! // Records can be queried, counted and verified.
//! let page = governor.query(&ProofQuery::entity("support-1").decision(Decision::Escalate))?;
//! assert_eq!(page.items[0].risk_level, RiskLevel::High);
//! assert_eq!(governor.stats("support-1", ..)?.total_records, 2);
//! assert!(governor.verify()?.valid);
//! governor.close()?;
//! # Ok::<(), rulekeep::Error>(())
//! ```
//!
//! # Items by subject
//!
//! A [`Governor`] parses, decides, reports and queries. For other subjects it returns a [`handle`]. The module of a
//! subject contains its types.
//!
//! | subject | where to start | module |
//! |---|---|---|
//! | opening a store | [`Governor::builder`], [`Durability`] | |
//! | requests and intents | [`Governor::parse`], [`Intent`], [`RiskLevel`] | [`intent`] |
//! | decisions | [`Governor::enforce`], [`Enforcement`], [`Decision`] | |
//! | carrying a decision out | [`Governor::guard`], [`Governor::guard_command`], [`Enforcement::grant`] | [`grant`] |
//! | outcomes | [`Governor::report`], [`Outcome`] | |
//! | policies | [`Governor::policies`], [`PolicySet`] | [`policy`], [`preview`] |
//! | agents and trust | [`Governor::agents`], [`Governor::trust`], [`Agent`], [`Tier`] | [`agent`], [`trust`] |
//! | tool definitions | [`Governor::tools`] | [`catalogue`] |
//! | reviewers | [`Governor::escalations`] | [`escalation`] |
//! | tasks of a user | [`Governor::tasks`] | [`task`] |
//! | stopping agents | [`Governor::kill_switch`] | [`kill_switch`] |
//! | records and verification | [`Governor::query`], [`Governor::log`], [`ProofRecord`], [`ProofQuery`] | [`proof`] |
//! | events | [`Governor::subscribe`], [`Event`] | [`event`] |
//! | health and metrics | [`Governor::status`] | [`status`] |
//! | archives, import, repair | [`maintenance::verify_archive`], [`maintenance::repair`] | [`maintenance`] |
//! | webhook signatures | [`signature::verify_signature`] | [`signature`] |
//! | errors | [`Error`] | |
//! | test clocks and randomness | [`system::Clock`], [`system::Entropy`] | [`system`] |
//! | reading documents | | [`document`] |
//!
//! # Features
//!
//! No feature is on by default, and each only adds API or output.
//!
//! | feature | adds |
//! |---|---|
//! | `checkpoints` | signed checkpoints of the log, and proofs against them: the module `checkpoint` |
//! | `metrics`, `tracing` | metrics and spans for the crates of these names |
//! | `schema` | OpenAPI schemas of the public types |
//! | `training` | the module `intent::training`, for adapting the parser's word table |
//!
//! # Architecture
//!
//! The library has three layers, and imports only point down. The vocabulary (`rulekeep-types`) is at the bottom. Above
//! it are the engines, which do not depend on each other: `rulekeep-intent`, `rulekeep-policy` and `rulekeep-log`, which
//! can be used alone, and `trust` and `mandate`. On top, the [`Governor`] composes the engines; this crate re-exports
//! them. Profiles of confined commands are in `rulekeep-confine`. The crate `rulekeep-server` serves a governor over HTTP and over lines of JSON.

pub use rulekeep_log as proof;
#[cfg(feature = "checkpoints")]
pub use rulekeep_log::checkpoint;
pub use rulekeep_policy as policy;
pub use rulekeep_types::{document, system};
#[cfg(test)]
#[path = "../tests/common/generated.rs"]
mod generated;
mod governor;
mod mandate;
mod narrow;
pub mod signature;
mod telemetry;
pub mod trust;

// The engines by the names of their subjects.
use rulekeep_intent as parse;
use rulekeep_log::store;
use rulekeep_types as model;

pub use governor::{Governor, GovernorBuilder};
pub use model::{Agent, Decision, Enforcement, Error, Event, Intent, Outcome, ProofRecord, RiskLevel, Tier};
pub use policy::PolicySet;
pub use proof::{Durability, ProofQuery};

/// Agents: registration, profile and state. [`Governor::agents`] registers and lists them.
pub mod agent {
    pub use crate::model::{
        AgentChange, AgentId, AgentImport, AgentInfo, AgentState, AgentTraits, Label, Observability,
    };
}

/// Intents: requests, the parser's result for them, and the vocabulary of actions and capabilities.
///
/// ```
/// use rulekeep::intent::Parser;
/// use serde_json::Map;
///
/// let parsed = Parser::new()?.parse_text(&"support-1".parse()?, "Delete all customer records", &Map::new())?;
/// assert_eq!(parsed.intent.required_capabilities[0].as_str(), "customer:delete");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub mod intent {
    pub use crate::governor::InputText;
    pub use crate::model::facts::{Act, Cause, Doing, Kind, Kinds, Open, Operand, Role};
    pub use crate::model::{
        ActEvidence, Action, Alternative, Amount, Capability, Classification, DenialClass, FactorEvidence, Facts,
        Input, InputEnforcement, IntentId, InvalidValue, MAX_CONTEXT_BYTES, MAX_CONTEXT_DEPTH, MAX_INPUT_BYTES,
        Operation, ParseExplanation, ParseResult, Resource, Rewrite, Target, TargetKind, TargetRole, Unread,
        UnreadKind, WordEvidence, risk_floor,
    };
    pub use crate::parse::Parser;
    #[cfg(feature = "training")]
    pub use crate::parse::training;
}

/// The tool catalogue: classifications of the tools that a runtime loads. [`Governor::tools`] loads them.
pub mod catalogue {
    pub use crate::model::{
        CatalogueReport, ToolChange, ToolClassification, ToolEvidence, ToolLikeness, ToolOverride, ToolResemblance,
    };
}

/// Escalations and pre-approvals: requests that a reviewer decides on. [`Governor::escalations`] lists and answers
/// them; [`Escalations`](handle::Escalations) has an example.
pub mod escalation {
    pub use crate::governor::{EscalationClaim, PreApprovalStanding};
    pub use crate::model::{
        ApprovalOffer, Escalation, EscalationId, EscalationPage, EscalationQuery, EscalationState, PreApprovalId,
        PreApprovalState, Resolved, Review, ReviewNeed, ReviewerIdentity, Vote,
    };
    pub use crate::policy::{PreApproval, PreApprovalSum, PreApprovalTerms, PreApprovalUse};
}

/// Tasks: a user's words limit what an agent may do for them. [`Governor::tasks`] opens them;
/// [`Tasks::open`](handle::Tasks::open) has an example.
pub mod task {
    pub use crate::governor::Task;
    pub use crate::model::{Mandate, OpenedTask, TaskId, TaskInfo, TaskRequest, TaskState, ToolCall};
}

/// Events: subscriptions to decisions, trust changes, proof records and alerts. [`Governor::subscribe`] opens one.
pub mod event {
    pub use crate::governor::{EventFilter, Subscription};
    pub use crate::model::{
        Alert, AlertKind, DecisionDetail, DecisionRendered, EventData, EventId, EventType, TrustChange, TrustChanged,
    };
}

/// Grants: permissions to carry out one decision, which enforce its constraints. [`Enforcement::grant`] makes one,
/// [`Governor::guard`] runs work under one, [`Governor::guard_command`] a program.
pub mod grant {
    pub use crate::governor::{AgentCommand, Confiner, GuardError, GuardRequest, Guarded};
    pub use crate::model::{Grant, GrantError};
    pub use crate::narrow::narrowed;
}

/// The kill switch: stops an agent, a group or every agent. [`Governor::kill_switch`] sets and lifts it.
///
/// ```
/// use rulekeep::kill_switch::KillSwitchScope;
/// use rulekeep::{Agent, Decision, Governor};
///
/// let governor = Governor::builder().open_in_memory()?;
/// governor.agents().register(Agent::new("support-1"))?;
/// let stopped = governor.kill_switch().set(KillSwitchScope::All, "ann", "looking into an incident")?;
/// let verdict = governor.enforce_input("support-1", "Read the file notes.txt")?.enforcement;
/// assert_eq!(verdict.decision, Decision::Deny);
/// governor.kill_switch().lift(&stopped.id, "ann", "resolved")?;
/// # Ok::<(), rulekeep::Error>(())
/// ```
pub mod kill_switch {
    pub use crate::model::{KillSwitchEntry, KillSwitchId, KillSwitchReport, KillSwitchScope};
}

/// Previews of decisions: for a request now, for past decisions with another policy set (replay), and for every decision
/// with a shadow policy set. [`Governor::policies`] returns them.
pub mod preview {
    pub use crate::governor::{
        Explanation, Preview, PreviewError, PreviewRequest, Replay, ReplayChange, ReplayRange, ShadowDifference,
        ShadowReport,
    };
}

/// Health and metrics, which [`Governor::status`] measures.
///
/// ```
/// use rulekeep::Governor;
/// use rulekeep::status::Health;
///
/// let governor = Governor::builder().open_in_memory()?;
/// let status = governor.status();
/// assert_eq!((status.status, status.metrics.active_agents), (Health::Healthy, 0));
/// # Ok::<(), rulekeep::Error>(())
/// ```
pub mod status {
    pub use crate::model::{
        Components, Health, JournalStatus, LatencyMetrics, Metrics, Opening, Recovered, SystemStatus,
    };
}

/// Handles to the parts of a [`Governor`], one per subject.
///
/// ```
/// use rulekeep::{Agent, Governor};
///
/// let governor = Governor::builder().open_in_memory()?;
/// governor.agents().register(Agent::new("support-1"))?;
/// governor.agents().suspend("support-1", "on leave")?;
/// assert!(governor.kill_switch().list().is_empty());
/// # Ok::<(), rulekeep::Error>(())
/// ```
pub mod handle {
    pub use crate::governor::{
        Agents, Escalations, KillSwitch, Log, PendingEnforcement, Policies, Tasks, Tools, Trust,
    };
}

/// The guides: what to do, step by step. Their links lead to files in the folder `docs` of this package.
#[cfg(all(doc, not(doctest)))]
pub mod guides {
    #[doc = include_str!("../docs/guides/agent-loop.md")]
    pub mod agent_loop {}
    #[doc = include_str!("../docs/guides/auditors.md")]
    pub mod auditors {}
    #[doc = include_str!("../docs/guides/coding-agents.md")]
    pub mod coding_agents {}
    #[doc = include_str!("../docs/guides/first-policy.md")]
    pub mod first_policy {}
    #[doc = include_str!("../docs/guides/fleet.md")]
    pub mod fleet {}
    #[doc = include_str!("../docs/glossary.md")]
    pub mod glossary {}
    #[doc = include_str!("../docs/guides/mcp.md")]
    pub mod mcp {}
    #[doc = include_str!("../docs/guides/operators.md")]
    pub mod operators {}
}

/// Maintenance of stores that no governor has open: importing an export, verifying archives, repairing a broken log.
pub mod maintenance {
    pub use crate::governor::{RepairOptions, import, repair, verify_archive};
    #[cfg(feature = "checkpoints")]
    pub use crate::governor::{import_against, verify_signed_archive};
    pub use crate::model::{ArchiveReport, RepairReport};
}

/// Extension points for the crates of this repository that build on a governor: the server, the MCP gateway, the program
/// and the fleet. They are hidden from the documentation because programs that only govern agents do not need them, and
/// they change with those crates.
#[doc(hidden)]
pub mod extension {
    pub use crate::governor::extension::*;
    pub use crate::model::{ERROR_CODES, ErrorCode, KeyId, WebhookId};
}

/// Entry points of the fuzz targets for internal formats.
#[cfg(fuzzing)]
#[doc(hidden)]
pub use {mandate::fuzzing as mandate_fuzzing, store::fuzzing};

/// The code in the README is compiled and run with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// The programs in the guides are compiled and run with the doc tests.
#[cfg(doctest)]
mod guides {
    #[doc = include_str!("../docs/guides/agent-loop.md")]
    struct AgentLoop;
    #[doc = include_str!("../docs/guides/first-policy.md")]
    struct FirstPolicy;
}
