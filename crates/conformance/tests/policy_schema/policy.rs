//! The policy document as its JSON Schema describes it. The loader in
//! `crates/policy/src/document.rs` is what counts; `main.rs` holds the two together.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::words::{AlertOn, Classification, Effect, Measured, Over, Risk, Share, Tier};

/// Rules that decide what agents may do; docs/reference/policies.md describes them.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Rulekeep policy document", extend("$id" = "policy.schema.json"))]
pub(crate) struct PolicyDocument {
    /// The schema that an editor holds the document against; the loader passes it over.
    #[serde(rename = "$schema")]
    pub(crate) schema: Option<String>,
    /// The set's name.
    #[schemars(length(min = 1, max = 128))]
    pub(crate) name: String,
    /// What the set is for, for people.
    #[schemars(length(min = 1, max = 1000))]
    pub(crate) description: Option<String>,
    /// Capabilities of your own that the rules may name.
    pub(crate) vocabulary: Option<Vec<Capability>>,
    /// What documents that are laid over this one may grant by themselves.
    #[schemars(length(min = 1))]
    pub(crate) delegates: Option<Vec<CapabilityPattern>>,
    /// The people behind the names that rules ask; a name without a list is itself the only person.
    #[schemars(extend("propertyNames" = { "minLength": 1, "maxLength": 128 }))]
    pub(crate) reviewers: Option<BTreeMap<String, People>>,
    /// What commands name environments by: clusters, profiles, workspaces, stages.
    #[schemars(extend("propertyNames" = { "minLength": 1, "maxLength": 128 }))]
    pub(crate) environments: Option<BTreeMap<String, EnvironmentNames>>,
    /// The rules; their order never matters to a decision.
    pub(crate) rule: Option<Vec<Rule>>,
    /// Another name for `rule`; only one of the two may stand.
    pub(crate) rules: Option<Vec<Rule>>,
    /// When somebody is alerted; no decision hangs on it.
    #[schemars(length(max = 100))]
    pub(crate) alert: Option<Vec<Alert>>,
}

/// Names and globs of one environment.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct EnvironmentNames(#[schemars(length(min = 1))] Vec<Glob>);

/// People who may answer, each once, whatever the case of the letters.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct People(#[schemars(length(min = 1, max = 100))] Vec<Person>);

/// One person, as whoever answers is called.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Person(#[schemars(length(min = 1, max = 256))] String);

/// A length of time: a whole number and s, m, h or d, at most 31d.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Duration(#[schemars(regex(pattern = r"^[0-9]+[smhd]$"))] String);

/// One rule.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("allOf" = [
    { "if": { "properties": { "effect": { "const": "escalate" } }, "required": ["effect"] },
      "then": { "required": ["reviewer"] },
      "else": { "properties": { "reviewer": false, "approvals": false, "expires": false } } },
    { "if": { "properties": { "effect": { "const": "degrade" } }, "required": ["effect"] },
      "then": { "required": ["to"] }, "else": { "properties": { "to": false } } },
    { "if": { "properties": { "effect": { "enum": ["deny", "escalate"] } }, "required": ["effect"] },
      "then": { "properties": { "limit": false, "constraints": false } } }
]))]
pub(crate) struct Rule {
    /// Unique in the set.
    #[schemars(regex(pattern = r"^[a-z0-9][a-z0-9._-]*$"), length(max = 128))]
    pub(crate) id: String,
    /// What it does with the capabilities that it matches; a deny is never outvoted.
    pub(crate) effect: Effect,
    /// Who decides; required with escalate, and only there.
    #[schemars(length(min = 1, max = 128))]
    pub(crate) reviewer: Option<String>,
    /// How many different people have to agree; 1 when absent, and with escalate only.
    #[schemars(range(min = 1, max = 5))]
    pub(crate) approvals: Option<u8>,
    /// How long they have to answer; 24h when absent, and with escalate only.
    pub(crate) expires: Option<Duration>,
    /// What remains of the matched capabilities; required with degrade, and only there.
    #[schemars(length(min = 1))]
    pub(crate) to: Option<Vec<CapabilityPattern>>,
    /// Why, for people; becomes part of the reasoning.
    #[schemars(length(min = 1, max = 1000))]
    pub(crate) reason: Option<String>,
    /// How grave a match is, for people and alerts.
    pub(crate) severity: Option<Risk>,
    /// Every clause must hold; one that is absent holds for anything.
    #[serde(rename = "match")]
    pub(crate) matches: Option<Match>,
    /// Names for CEL expressions that `when` and `unless` may use.
    #[serde(rename = "let")]
    pub(crate) bindings: Option<BTreeMap<String, String>>,
    /// A CEL expression that must hold.
    pub(crate) when: Option<String>,
    /// A CEL expression that must not hold.
    pub(crate) unless: Option<String>,
    /// Limits on what is granted; with allow and degrade only.
    pub(crate) constraints: Option<Constraints>,
    /// How often, or for how much, what it grants may be used; with allow and degrade only.
    pub(crate) limit: Option<Limit>,
    /// Requests that the rule must match and must not match, checked at load.
    pub(crate) examples: Option<Examples>,
}

/// Acts that run code whose effects no text shows.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Runs {
    /// None of them is covered.
    None,
    /// They are covered if the code lies in the working folder or is configured by it, and all that their text names is
    /// inside.
    Folder,
    /// They are covered if all that their text names is inside.
    Any,
}

/// A table with the clauses that a rule can name and exclude.
macro_rules! clauses {
    ($(#[$meta:meta])* $name:ident { $($own:tt)* }) => {
        #[derive(Debug, Serialize, Deserialize, JsonSchema)]
        $(#[$meta])*
        #[serde(deny_unknown_fields)]
        pub(crate) struct $name {
            /// Ids of agents, exact or by glob.
            #[schemars(length(min = 1))]
            pub(crate) agents: Option<Vec<Glob>>,
            /// Labels of the agent, exact or by glob.
            #[schemars(length(min = 1))]
            pub(crate) labels: Option<Vec<Glob>>,
            /// Groups of the agent, exact or by glob.
            #[schemars(length(min = 1))]
            pub(crate) groups: Option<Vec<Glob>>,
            /// Actions, exact or by glob.
            #[schemars(length(min = 1))]
            pub(crate) actions: Option<Vec<Glob>>,
            /// Commands that are run, as written in each layer; a restriction also meets their normal form, exact or by glob.
            #[schemars(length(min = 1))]
            pub(crate) commands: Option<Vec<Glob>>,
            /// `context.environment` is one of these; case does not count.
            #[schemars(length(min = 1))]
            pub(crate) environment: Option<Vec<Glob>>,
            /// Values of the context match regular expressions.
            #[schemars(length(min = 1))]
            pub(crate) context: Option<Vec<ContextClause>>,
            /// The tool that is called, as it was sent, by glob; case does not count.
            #[schemars(length(min = 1))]
            pub(crate) tools: Option<Vec<Glob>>,
            /// The server of the tool, as it was sent, by glob.
            #[schemars(length(min = 1))]
            pub(crate) servers: Option<Vec<Glob>>,
            /// The forms that were read: `tool_call`, `shell`, `sql`, `http`, `code`, `text`.
            #[schemars(length(min = 1))]
            pub(crate) formats: Option<Vec<Glob>>,
            /// What the request acts on, of every kind, by glob.
            #[schemars(length(min = 1))]
            pub(crate) targets: Option<Vec<Glob>>,
            /// Every recipient, by glob.
            #[schemars(length(min = 1))]
            pub(crate) recipients: Option<Vec<Glob>>,
            /// Every file and folder, by glob.
            #[schemars(length(min = 1))]
            pub(crate) paths: Option<Vec<Glob>>,
            /// Every bare host, by glob.
            #[schemars(length(min = 1))]
            pub(crate) hosts: Option<Vec<Glob>>,
            /// Every address on the web, with its scheme, by glob.
            #[schemars(length(min = 1))]
            pub(crate) urls: Option<Vec<Glob>>,
            /// Every table, by glob.
            #[schemars(length(min = 1))]
            pub(crate) tables: Option<Vec<Glob>>,
            /// Every account, by glob.
            #[schemars(length(min = 1))]
            pub(crate) accounts: Option<Vec<Glob>>,
            $($own)*
        }
    };
}

clauses! {
    /// What a rule is about. In a list any one will do.
    Match {
        /// The required capabilities that the rule speaks about, and no others.
        #[schemars(length(min = 1))]
        pub(crate) capabilities: Option<Vec<CapabilityPattern>>,
        /// The effective risk lies between both ends.
        pub(crate) risk: Option<RiskRange>,
        /// The tier in force lies between both ends.
        pub(crate) tiers: Option<TierRange>,
        /// The data class that counts is one of these.
        #[schemars(length(min = 1))]
        pub(crate) classification: Option<Vec<Classification>>,
        /// Whether an allow covers acts that run code: `none` when absent.
        pub(crate) runs: Option<Runs>,
        /// Whether a restriction without a folder, such as `*.env`, also binds folders that are read: not when absent.
        pub(crate) trees: Option<bool>,
        /// What it is not about: none of these clauses holds.
        pub(crate) not: Option<Not>,
    }
}

clauses! {
    /// What a rule is not about.
    #[schemars(extend("minProperties" = 1))]
    Not {}
}

/// `resource:operation`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Capability(#[schemars(regex(pattern = r"^[^:*?\s]+:[^:*?\s]+$"))] String);

/// `resource:operation`, each a word or `*`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct CapabilityPattern(#[schemars(regex(pattern = r"^(\*|[^:*?\s]+):(\*|[^:*?\s]+)$"))] String);

/// A name; `*` stands for any run of characters, `?` for one.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Glob(#[schemars(length(min = 1, max = 256))] String);

/// Risks from `min` to `max`; an end that is absent is the extreme.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub(crate) struct RiskRange {
    pub(crate) min: Option<Risk>,
    pub(crate) max: Option<Risk>,
}

/// Tiers from `min` to `max`; an end that is absent is the extreme.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub(crate) struct TierRange {
    pub(crate) min: Option<Tier>,
    pub(crate) max: Option<Tier>,
}

/// The text of a value of the context matches a regular expression.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContextClause {
    /// The key in the context.
    #[schemars(length(min = 1, max = 256))]
    pub(crate) key: String,
    /// A regular expression of at most 1,024 bytes, without look-around.
    #[schemars(length(max = 1024))]
    pub(crate) matches: String,
}

/// Limits that the library hands out with a grant; any other key holds what you like.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Constraints {
    /// Most records.
    pub(crate) max_records: Option<u64>,
    /// How often the grant can be used; once by default.
    pub(crate) max_uses: Option<u64>,
    /// Longest time, in milliseconds.
    pub(crate) timeout_ms: Option<u64>,
    /// Largest amount.
    #[schemars(range(min = 0.0))]
    pub(crate) max_amount: Option<f64>,
    /// Nothing may be changed.
    pub(crate) read_only: Option<bool>,
    /// Where it may go.
    pub(crate) allowed_targets: Option<Vec<String>>,
    /// Which hosts it may reach.
    pub(crate) allowed_hosts: Option<Vec<String>>,
    /// What is blotted out.
    pub(crate) redact_fields: Option<Vec<String>>,
    /// A timestamp with an offset.
    #[schemars(with = "Option<String>")]
    pub(crate) expires_at: Option<Value>,
    /// What the programs of the action may reach.
    pub(crate) confine: Option<Confine>,
    #[serde(flatten)]
    pub(crate) others: Map<String, Value>,
}

/// A confinement, or several, of which all hold.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Confine {
    One(Confinement),
    All(Vec<Confinement>),
}

/// The folder of the work, the same without hosts, or lists.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Confinement {
    Word(ConfineWord),
    Lists(ConfineLists),
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ConfineWord {
    Workspace,
    Offline,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
// An unknown list is refused by the loader alone: of an untagged enum serde names no field.
pub(crate) struct ConfineLists {
    /// Paths that may be read.
    pub(crate) read: Option<Vec<String>>,
    /// Paths that may be written.
    pub(crate) write: Option<Vec<String>>,
    /// Hosts that may be reached.
    pub(crate) hosts: Option<Vec<String>>,
}

/// Either `count`, or `sum` and `max`, within a window that slides.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend(
    "oneOf" = [
        { "required": ["count"], "properties": { "sum": false, "max": false } },
        { "required": ["sum", "max"], "properties": { "count": false } }
    ],
    "if" = { "properties": { "over": { "const": "escalate" } }, "required": ["over"] },
    "then" = { "required": ["reviewer"] },
    "else" = { "properties": { "reviewer": false } },
    "allOf" = [{
        "if": { "required": ["share"] },
        "then": { "properties": { "by": { "const": "organisation" } }, "required": ["by"] }
    }]
))]
pub(crate) struct Limit {
    /// Most actions.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(crate) count: Option<u64>,
    /// The key of the context whose numbers are added up.
    #[schemars(length(min = 1, max = 128))]
    pub(crate) sum: Option<String>,
    /// The most that they may add up to.
    pub(crate) max: Option<f64>,
    /// The window: a whole number and s, m, h or d, at most 31d.
    #[schemars(regex(pattern = r"^[0-9]+[smhd]$"))]
    pub(crate) per: String,
    /// Whose uses are counted together; each agent's apart when absent.
    pub(crate) by: Option<Measured>,
    /// How uses are obtained: each one reserved with the organisation (when absent), or from an amount that it lent;
    /// only with `by = "organisation"`.
    pub(crate) share: Option<Share>,
    /// What happens once it is used up; deny when absent.
    pub(crate) over: Option<Over>,
    /// Who decides then; required with `over = "escalate"`, and only there.
    #[schemars(length(min = 1, max = 128))]
    pub(crate) reviewer: Option<String>,
}

/// Requests that the rule must match, and must not match.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Examples {
    /// Those that it must match.
    #[serde(rename = "match")]
    #[schemars(length(min = 1))]
    pub(crate) matching: Option<Vec<Example>>,
    /// Those that it must not match.
    #[schemars(length(min = 1))]
    pub(crate) not_match: Option<Vec<Example>>,
}

/// A request; what it leaves out is taken as the rule wants it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Example {
    /// The agent's id.
    #[schemars(length(min = 1, max = 256))]
    pub(crate) agent: Option<String>,
    /// The action.
    #[schemars(length(min = 1, max = 256))]
    pub(crate) action: Option<String>,
    /// What the action needs.
    pub(crate) capabilities: Option<Vec<Capability>>,
    /// The agent's labels.
    pub(crate) labels: Option<Vec<String>>,
    /// The agent's groups.
    pub(crate) groups: Option<Vec<String>>,
    /// What conditions read as `agent.attributes`.
    pub(crate) attributes: Option<Map<String, Value>>,
    /// The effective risk.
    pub(crate) risk: Option<Risk>,
    /// The tier in force.
    pub(crate) tier: Option<Tier>,
    /// The caller's context.
    pub(crate) context: Option<Map<String, Value>>,
    /// The time, ISO 8601 with an offset.
    pub(crate) now: Option<String>,
}

/// Something that somebody should be told of at once.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("allOf" = [
    { "if": { "properties": { "on": { "const": "tier" } }, "required": ["on"] },
      "then": { "required": ["below"] }, "else": { "properties": { "below": false } } },
    { "if": { "properties": { "on": { "enum": ["chain", "key"] } }, "required": ["on"] },
      "then": { "properties": { "match": false } } },
    { "if": { "properties": { "on": { "const": "chain" } }, "required": ["on"] },
      "then": { "properties": { "count": { "const": 1 } } } },
    { "if": { "properties": { "on": { "const": "denials" } }, "required": ["on"] },
      "then": { "if": { "properties": { "count": { "const": 1 } }, "required": ["count"] },
                "then": { "properties": { "per": false } }, "else": { "required": ["per"] } },
      "else": { "if": { "properties": { "count": { "const": 1 } } },
                "then": { "properties": { "per": false } }, "else": { "required": ["per"] } } }
]))]
pub(crate) struct Alert {
    /// Unique among the alerts of the set.
    #[schemars(regex(pattern = r"^[a-z0-9][a-z0-9._-]*$"), length(max = 128))]
    pub(crate) id: String,
    /// What it looks for.
    pub(crate) on: AlertOn,
    /// How often it has to happen; 5 for denials and 1 for all else when absent.
    #[schemars(range(min = 1, max = 10_000))]
    pub(crate) count: Option<u32>,
    /// Within which time; required with a count above 1, and only there.
    pub(crate) per: Option<Duration>,
    /// The tier below which an agent drops, T1 to T5; required with `on = "tier"`, and only there.
    pub(crate) below: Option<Tier>,
    /// Whose doing counts; anybody's when absent.
    #[serde(rename = "match")]
    pub(crate) matches: Option<AlertMatch>,
    /// How much it matters; MEDIUM when absent.
    pub(crate) severity: Option<Risk>,
    /// How long the same is not told again; 60s when absent.
    pub(crate) cooldown: Option<Duration>,
}

/// Whose doing counts. Every clause must hold; in a list any one will do.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub(crate) struct AlertMatch {
    /// Ids of agents, exact or by glob.
    #[schemars(length(min = 1))]
    pub(crate) agents: Option<Vec<Glob>>,
    /// Labels of the agent, exact or by glob.
    #[schemars(length(min = 1))]
    pub(crate) labels: Option<Vec<Glob>>,
    /// Groups of the agent, exact or by glob.
    #[schemars(length(min = 1))]
    pub(crate) groups: Option<Vec<Glob>>,
}
