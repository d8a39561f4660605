//! The document of cases as its JSON Schema describes it. The reader in
//! `crates/cli/src/policy/cases/read.rs` is what counts; `main.rs` holds the two together.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::policy::Capability;
use crate::words::{Decision, Failure, Risk, Tier};

/// Tests of a policy set; docs/reference/policy-tests.md describes them.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Rulekeep policy cases", extend("$id" = "policy-cases.schema.json"))]
pub(crate) struct CasesDocument {
    /// The schema that an editor holds the document against; the loader passes it over.
    #[serde(rename = "$schema")]
    pub(crate) schema: Option<String>,
    /// The cases' name.
    #[schemars(length(min = 1, max = 128))]
    pub(crate) name: Option<String>,
    /// What they are for, for people.
    #[schemars(length(min = 1, max = 1000))]
    pub(crate) description: Option<String>,
    /// What stands for the fields that a case leaves out.
    pub(crate) defaults: Option<Defaults>,
    /// The cases.
    #[schemars(length(min = 1))]
    pub(crate) case: Vec<Case>,
    /// Changes to rules that change nothing, and why.
    pub(crate) equivalent: Option<Vec<Equivalent>>,
}

/// What stands for the fields that a case leaves out, field by field.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Defaults {
    pub(crate) intent: Option<Intent>,
    pub(crate) agent: Option<Agent>,
    /// The time, ISO 8601 with an offset.
    pub(crate) now: Option<String>,
}

/// A request and what it must come to; either an intent or an input.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// Unique in the document.
    #[schemars(length(min = 1, max = 128))]
    pub(crate) name: String,
    pub(crate) intent: Option<Intent>,
    /// A text, read by the parser.
    pub(crate) input: Option<String>,
    /// The caller's context of an input.
    pub(crate) context: Option<Map<String, Value>>,
    pub(crate) agent: Option<Agent>,
    /// The time, ISO 8601 with an offset.
    pub(crate) now: Option<String>,
    /// How much of the limits of rules has been used within their windows, by rule id.
    pub(crate) used: Option<BTreeMap<String, f64>>,
    pub(crate) expect: Expect,
}

/// What the agent wants to do.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Intent {
    /// The action.
    #[schemars(length(min = 1, max = 128))]
    pub(crate) action: Option<String>,
    /// What the action needs.
    pub(crate) capabilities: Option<Vec<Capability>>,
    /// The effective risk; when absent, what action and capabilities imply.
    pub(crate) risk: Option<Risk>,
    /// The caller's context.
    pub(crate) context: Option<Map<String, Value>>,
}

/// Who asks; a newcomer when absent. A tier or a score, not both.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Agent {
    /// The agent's id.
    #[schemars(length(min = 1, max = 128))]
    pub(crate) id: Option<String>,
    /// The tier in force, at the middle of its scores.
    pub(crate) tier: Option<Tier>,
    /// The score; the tier follows from it.
    #[schemars(range(max = 1000))]
    pub(crate) score: Option<u16>,
    /// Its labels.
    pub(crate) labels: Option<Vec<String>>,
    /// Its groups.
    pub(crate) groups: Option<Vec<String>>,
    /// What conditions read as `agent.attributes`.
    pub(crate) attributes: Option<Map<String, Value>>,
}

/// What the verdict must be; what is absent may be anything.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{ "required": ["decision"], "properties": { "error": false } }, { "required": ["error"], "maxProperties": 1 }]))]
pub(crate) struct Expect {
    /// The decision.
    pub(crate) decision: Option<Decision>,
    /// That a condition fails and nothing is decided; nothing else stands beside it.
    pub(crate) error: Option<Failure>,
    /// Exactly what is granted, in any order.
    pub(crate) granted: Option<Vec<Capability>>,
    /// Exactly what is refused, in any order.
    pub(crate) denied: Option<Vec<Capability>>,
    /// Constraints that must be there with these values; others may be there too.
    pub(crate) constraints: Option<Map<String, Value>>,
    /// Constraints that must not be there.
    #[schemars(length(min = 1))]
    pub(crate) unconstrained: Option<Vec<String>>,
    /// Whom an escalation goes to.
    #[schemars(length(min = 1, max = 128))]
    pub(crate) reviewer: Option<String>,
    /// Rules that must be among those that decide.
    #[schemars(length(min = 1))]
    pub(crate) rules: Option<Vec<String>>,
}

/// A change to a rule that changes nothing.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Equivalent {
    /// The rule's id.
    pub(crate) rule: String,
    /// The change, as the report of mutants names it.
    pub(crate) mutation: String,
    /// Why it changes nothing.
    #[schemars(length(min = 1, max = 1000))]
    pub(crate) reason: String,
}
