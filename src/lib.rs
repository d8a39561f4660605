//! Rulekeep governs what software agents do, in process: it turns what an agent
//! asks into an intent, decides on it by policy and by the agent's trust, and
//! keeps a hash-linked proof of every decision.
//!
//! # A tour
//!
//! A [`Governor`] owns everything. It is opened on a folder, or in memory:
//!
//! ```
//! use rulekeep::{Agent, Decision, Governor, Intent, Outcome, ProofQuery, RiskLevel, Tier};
//!
//! let governor = Governor::builder().open_in_memory()?;
//! governor.agents().register(Agent::new("support-1").at_tier(Tier::T4))?;
//!
//! // What an agent asks, in words or as a tool call, is parsed into an intent ...
//! let parsed = governor.parse("support-1", "Send the agenda to ann@example.com")?;
//! assert_eq!(parsed.intent.required_capabilities[0].as_str(), "email:send");
//!
//! // ... and decided on. Every decision leaves a proof record.
//! let verdict = governor.enforce(&parsed.intent)?;
//! assert_eq!(verdict.decision, Decision::Allow);
//!
//! // What became of it moves the agent's trust: successes slowly up, a failure fast down.
//! let trust = governor.report(&verdict.proof_id, Outcome::Failure)?;
//! assert!(trust.score < verdict.trust_snapshot.score);
//!
//! // A runtime that knows what a call needs builds the intent itself. A caller cannot talk its own risk down:
//! // a payment without a stated amount is HIGH, whatever it says.
//! let payment = Intent::new("support-1", "pay_invoice", RiskLevel::Low, ["payment:transfer"])?;
//! let verdict = governor.enforce(&payment)?;
//! assert_eq!(verdict.decision, Decision::Escalate);
//! println!("{}", verdict.reasoning);
//!
//! // The records can be queried, counted, and verified.
//! let page = governor.query(&ProofQuery::entity("support-1").decision(Decision::Escalate))?;
//! assert_eq!(page.items[0].risk_level, RiskLevel::High);
//! assert_eq!(governor.stats("support-1", ..)?.total_records, 2);
//! assert!(governor.verify()?.valid);
//! governor.close()?;
//! # Ok::<(), rulekeep::Error>(())
//! ```
//!
//! Your own policies are a [`PolicySet`] from TOML or JSON, put in force by
//! [`GovernorBuilder::policies`] or, while running, by `governor.policies().load(set)`;
//! `governor.policies().explain(&intent)` says, rule by rule, what they would decide.
//! The crate `rulekeep-server` speaks the same contract over lines of JSON and over HTTP.
//!
//! # Modules
//!
//! [`Governor`] has the verbs of the contract and hands out a [`handle`] for each other subject. The types of a subject
//! are in the module of its name: [`intent`], [`policy`], [`preview`], [`trust`], [`proof`], [`escalation`], [`event`],
//! [`status`], [`catalogue`], [`agent`], [`grant`], [`kill_switch`]. [`signature`] verifies what was signed for a receiver,
//! [`system`]
//! has the clock and the random bits that a test replaces, [`maintenance`] works on stores that are not open.
//!
//! # The house
//!
//! Four floors, and an import only ever points down: the vocabulary (`model`, and [`document`] for files);
//! the engines `parse`, `policy`, `trust`, `proof` and, by feature,
//! `checkpoint`, which do not know each other, with `store` below `proof`;
//! [`Governor`], which composes them; and the crates under `crates/`. `docs/` has a page an engine.

#[cfg(feature = "checkpoints")]
pub mod checkpoint;
pub mod document;
#[cfg(test)]
#[path = "../tests/common/generated.rs"]
mod generated;
mod governor;
mod mandate;
mod model;
mod parse;
pub mod policy;
pub mod proof;
pub mod signature;
mod store;
pub mod system;
mod telemetry;
pub mod trust;

pub use governor::{Governor, GovernorBuilder};
pub use model::{Agent, Decision, Enforcement, Error, Event, Intent, Outcome, ProofRecord, RiskLevel, Tier};
pub use policy::PolicySet;
pub use proof::{Durability, ProofQuery};

/// Agents: what is known of one, and what an operator changes. [`Governor::agents`] registers and lists them.
pub mod agent {
    pub use crate::model::{
        AgentChange, AgentId, AgentImport, AgentInfo, AgentState, AgentTraits, Label, Observability,
    };
}

/// Intents: the text of a request, what the parser makes of it, and the vocabulary of actions and capabilities.
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
    pub use crate::model::{
        ActEvidence, Action, Alternative, Amount, Capability, Classification, DenialClass, FactorEvidence, Facts,
        Input, InputEnforcement, IntentId, InvalidValue, MAX_CONTEXT_BYTES, MAX_CONTEXT_DEPTH, MAX_INPUT_BYTES,
        Operation, ParseExplanation, ParseResult, Resource, Target, TargetKind, TargetRole, Unread, UnreadKind,
        WordEvidence, risk_floor,
    };
    pub use crate::parse::Parser;
    #[cfg(feature = "training")]
    pub use crate::parse::training;
}

/// Tools: how the definitions that a runtime hands over were classified. [`Governor::tools`] loads them.
pub mod catalogue {
    pub use crate::model::{
        CatalogueReport, ToolChange, ToolClassification, ToolEvidence, ToolLikeness, ToolOverride, ToolResemblance,
    };
}

/// Escalations and pre-approvals: requests that a reviewer decides on. [`Governor::escalations`] lists and answers
/// them.
pub mod escalation {
    pub use crate::governor::{EscalationAnswer, PreApprovalStanding};
    pub use crate::model::{
        ApprovalOffer, Escalation, EscalationId, EscalationPage, EscalationQuery, EscalationState, PreApprovalId,
        PreApprovalState, Resolved, Review, ReviewNeed, Vote,
    };
    pub use crate::policy::{PreApproval, PreApprovalSum, PreApprovalTerms, PreApprovalUse};
}

/// Tasks: a user's words as the ceiling of what an agent does for them. [`Governor::tasks`] opens them.
pub mod task {
    pub use crate::governor::Task;
    pub use crate::model::{Mandate, OpenedTask, TaskId, TaskInfo, TaskRequest, TaskState, ToolCall};
}

/// Events: subscriptions to decisions, changes of trust and alerts. [`Governor::subscribe`] opens one.
pub mod event {
    pub use crate::governor::{EventFilter, Subscription};
    pub use crate::model::{
        Alert, AlertKind, DecisionDetail, DecisionRendered, EventData, EventId, EventType, TrustChange, TrustChanged,
    };
}

/// Grants: the permission to carry out what was decided, which enforces its own constraints. [`Enforcement::grant`] makes
/// one, [`Governor::guard`] runs work under one.
pub mod grant {
    pub use crate::governor::{GuardError, Guarded};
    pub use crate::model::{Grant, GrantError};
}

/// The kill switch: denies everything to an agent, a group or every agent. [`Governor::kill_switch`] sets and lifts it.
pub mod kill_switch {
    pub use crate::model::{KillSwitchEntry, KillSwitchId, KillSwitchReport, KillSwitchScope};
}

/// Previews of what policies decide: a request now, past decisions under another set, and a set in the shadow of the
/// one in force. [`Governor::policies`] gives them.
pub mod preview {
    pub use crate::governor::{
        Explanation, Preview, PreviewError, PreviewRequest, Replay, ReplayChange, ReplayRange, ShadowDifference,
        ShadowReport,
    };
}

/// Health and metrics, as [`Governor::status`] measures them.
pub mod status {
    pub use crate::model::{
        Components, Health, JournalStatus, LatencyMetrics, Metrics, Opening, Recovered, SystemStatus,
    };
}

/// Handles on the parts of a [`Governor`], by what they are about.
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

/// Maintenance of a store that no governor has open: reading an export in, verifying archives, repairing.
pub mod maintenance {
    #[cfg(feature = "checkpoints")]
    pub use crate::governor::verify_signed_archive;
    pub use crate::governor::{RepairOptions, import, repair, verify_archive};
    pub use crate::model::{ArchiveReport, RepairReport};
}

/// Extension points: what crates on top of the library need of it.
pub mod extension {
    pub use crate::governor::extension::*;
    pub use crate::model::{ERROR_CODES, ErrorCode, KeyId, WebhookId};
}

/// What the fuzz targets of formats that are not on the public face hold.
#[cfg(fuzzing)]
#[doc(hidden)]
pub use {mandate::fuzzing as mandate_fuzzing, store::fuzzing};

/// The code in the README is compiled and run with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
