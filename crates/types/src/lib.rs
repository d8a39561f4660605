//! The vocabulary of the library: every term of the service contract as a type.
//!
//! The engines exchange only these types. Fixed sets of words are enums. Names with a required form are newtypes built
//! by `FromStr` or `TryFrom`. Every type serializes to the JSON of the contract.

mod action;
mod agent;
mod capability;
mod classification;
mod constraints;
mod context_key;
mod cursor;
mod decision;
pub mod document;
mod enforcement;
mod error;
mod error_code;
mod escalation;
mod event;
pub mod facts;
mod glob;
mod grant;
mod id;
mod intent;
#[doc(hidden)]
pub mod json;
mod kill_switch;
mod parse_explanation;
#[doc(hidden)]
pub mod parts;
mod path;
mod preapproval;
mod record;
mod reserved;
mod retention;
mod risk;
#[cfg(feature = "schema")]
#[doc(hidden)]
pub mod schema;
mod share;
mod status;
pub mod system;
mod task;
mod time;
mod tool;
mod trust;
mod unseen;
mod verification;
mod word;

pub use action::Action;
pub use agent::{Agent, AgentChange, AgentImport, AgentInfo, AgentState, AgentTraits, Label};
pub use capability::{Capability, Operation, Resource};
pub use classification::Classification;
pub use constraints::Constraints;
pub use cursor::{Order, ProofCursor};
pub use decision::{Decision, Outcome, OutcomeReport};
pub use enforcement::{DenialClass, Enforcement, InputEnforcement, Rewrite};
pub use error::{Cause, Error, InvalidValue, Problem, Severity, excerpt};
pub use error_code::{ERROR_CODES, ErrorCode};
pub use escalation::{
    ApprovalOffer, Escalation, EscalationPage, EscalationQuery, EscalationState, Resolved, Review, ReviewNeed,
    ReviewerIdentity, Vote,
};
pub use event::{
    Alert, AlertKind, DecisionDetail, DecisionRendered, Event, EventData, EventType, TrustChange, TrustChanged,
};
pub use facts::{Amount, Facts, Target, TargetKind, TargetRole, Unread, UnreadKind};
pub use grant::{Grant, GrantError};
pub use id::{
    AgentId, EscalationId, EventId, IntentId, KeyId, KillSwitchId, PreApprovalId, ProofId, Sequence, TaskId, WebhookId,
};
pub use intent::{Alternative, Input, Intent, MAX_CONTEXT_BYTES, MAX_CONTEXT_DEPTH, MAX_INPUT_BYTES, ParseResult};
pub use kill_switch::{KillSwitchEntry, KillSwitchReport, KillSwitchScope};
pub use parse_explanation::{ActEvidence, FactorEvidence, ParseExplanation, WordEvidence};
pub use path::DeniedPath;
pub use preapproval::PreApprovalState;
pub use record::{Breakage, BrokenKind, Digest, Period, ProofPage, ProofRecord, ProofStats, Verification};
pub use retention::{ArchiveReport, RepairReport};
pub use risk::{RiskLevel, risk_floor};
pub use share::Share;
pub use status::{Components, Health, JournalStatus, LatencyMetrics, Metrics, Opening, Recovered, SystemStatus};
pub use task::{Mandate, OpenedTask, TaskInfo, TaskRequest, TaskState, ToolCall};
pub use time::{ClockReport, Timestamp};
pub use tool::{
    CatalogueReport, ToolChange, ToolClassification, ToolEvidence, ToolLikeness, ToolOverride, ToolResemblance,
};
pub use trust::{
    Observability, Score, Tier, TrustCause, TrustCheck, TrustDifference, TrustEntry, TrustPage, TrustSnapshot,
};
pub use verification::{
    ChainPosition, Checked, LogProgress, OpenVerification, VerificationState, VerifyOptions, VerifySince,
};
#[doc(hidden)]
pub use {
    agent::{AgentProfile, checked_person},
    context_key::{CALLERS_KEYS, PARSED_KEYS, RETRY_OF},
    cursor::CursorPlace,
    escalation::{ANYBODY, ENDED_BY_KILL_SWITCH, ENDED_BY_KILL_SWITCH_BEFORE, EscalationRecord, LimitCharge},
    facts::{FACTS_KEY, MAX_FACTS_BYTES, Member, Members, ParsedFacts},
    glob::Glob,
    grant::{GrantAuthority, GrantOrigin, GrantSource, GrantTerms},
    intent::{IntentStamp, check_context},
    path::without_dots,
    preapproval::{GRANT_PREFIX, is_grant_counter},
    risk::names_production,
    risk::usual_risk,
    share::{ORGANISATION, is_shared_counter},
    time::LONGEST_LIMIT_WINDOW,
    tool::ToolAct,
    unseen::{hides_or_breaks, is_invisible, turns_direction, visible},
    verification::OnProgress,
};

pub use intent::json_depth;
pub use reserved::{RESERVED, is_reserved};
#[cfg(feature = "schema")]
#[doc(hidden)]
pub use utoipa;
