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
//! governor.register_agent(Agent::new("support-1").at_tier(Tier::T4))?;
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
//! [`GovernorBuilder::policies`] or, while running, by [`Governor::load_policies`];
//! [`Governor::explain`] says, rule by rule, what they would decide.
//! The crate `rulekeep-server` speaks the same contract over lines of JSON and over HTTP.
//!
//! # The house
//!
//! Four floors, and an import only ever points down: the vocabulary (`model`);
//! the engines `parse`, `policy`, `trust`, `proof` and, by feature,
//! `checkpoint`, which do not know each other, with `store` below `proof`;
//! [`Governor`], which composes them; and the edges. `docs/` has a page an engine.

#[cfg(feature = "checkpoints")]
pub mod checkpoint;
mod governor;
mod model;
mod parse;
mod policy;
mod proof;
pub mod signature;
mod store;
mod system;
mod telemetry;
mod trust;

pub use governor::extension;
#[cfg(feature = "checkpoints")]
pub use governor::verify_signed_archive;
pub use governor::{
    ClassStanding, EscalationAnswer, Escalations, EventFilter, Explanation, Governor, GovernorBuilder, InputText,
    PendingEnforcement, Preview, PreviewError, RepairOptions, Replay, ReplayChange, ReplayRange, ShadowDifference,
    ShadowReport, Subscription, repair, verify_archive,
};
pub use model::*;
pub use parse::{Lexicon, Parser};
pub use policy::{
    AlertOn, AlertRule, Approval, CaseDifference, CaseReader, CaseReport, CaseResult, ClassApproval, ClassSum,
    ClassTerms, ClassUse, ClauseCoverage, ConditionFailure, Coverage, Effect, LimitUse, MutantReport, Need,
    PolicyCases, PolicyFormat, PolicyRequest, PolicySet, PolicySource, PolicyVerdict, RuleCoverage, RuleTrace,
    Survivor,
};
pub use proof::{
    Durability, Evidence, EvidenceSelection, ExportPoint, ExportRange, ExportReport, InputEvidence, ProofQuery,
    verify_export,
};
pub use system::{Clock, Entropy, SystemClock, SystemEntropy};
pub use trust::{PerObservability, PerRisk, TrustModel};

/// What the fuzz targets of formats that are not on the public face hold.
#[cfg(fuzzing)]
#[doc(hidden)]
pub use store::fuzzing;

/// The code in the README is compiled and run with the doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
