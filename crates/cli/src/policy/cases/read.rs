//! The schema of a document of cases: parses it and reports every problem with case, field and position.

use std::collections::{BTreeMap, HashMap};

use rulekeep::agent::{AgentId, AgentTraits, Label};
use rulekeep::document::{Fields, Node, Report, Value};
use rulekeep::intent::Capability;
use rulekeep::system::Timestamp;
use rulekeep::trust::{Score, TrustSnapshot};
use rulekeep::{Agent, Decision, Intent, RiskLevel, Tier};
use serde_json::{Map, Value as Json, json};

use super::PolicyCases;

/// A test case.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) line: usize,
    pub(super) asked: Asked,
    pub(super) agent_id: String,
    pub(super) trust: TrustSnapshot,
    pub(super) traits: AgentTraits,
    pub(super) now: Timestamp,
    /// The use of a rule's limit within its window.
    pub(super) used: BTreeMap<String, f64>,
    pub(super) expect: Expect,
}

/// The request of a case.
#[derive(Debug, Clone)]
pub(super) enum Asked {
    /// An intent, and its effective risk if the case gives it.
    Intent { intent: Box<Intent>, risk: Option<RiskLevel> },
    /// A text, with the caller's context.
    Text { text: String, context: Map<String, Json> },
}

/// The expected result of a case; omitted parts may be anything.
#[derive(Debug, Clone)]
pub(super) struct Expect {
    pub(super) outcome: Outcome,
    pub(super) granted: Option<Vec<Capability>>,
    pub(super) denied: Option<Vec<Capability>>,
    pub(super) constraints: Map<String, Json>,
    /// Constraints that must be absent.
    pub(super) unconstrained: Vec<String>,
    pub(super) reviewer: Option<String>,
    pub(super) rules: Vec<String>,
}

/// The result of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Decision(Decision),
    /// A condition fails and the decision depends on it.
    PolicyError,
}

/// The error that a case can expect, as written in documents and reports.
pub(super) const POLICY_ERROR: &str = "POLICY_ERROR";

/// A change to a rule that is declared to have no effect.
#[derive(Debug, Clone)]
pub(super) struct Equivalent {
    pub(super) rule: String,
    pub(super) mutation: String,
    pub(super) reason: String,
}

/// Parses a document.
pub(super) fn read(root: Node, report: &mut Report<'_>) -> Option<PolicyCases> {
    let mut fields = Fields::of_document(root, DOCUMENT_FIELDS, report)?;
    fields.line("name", MAX_NAME_CHARS, report);
    fields.line("description", MAX_TEXT_CHARS, report);
    let defaults = fields.take("defaults").and_then(|node| Partial::read(node, "defaults.", DEFAULT_FIELDS, report));
    let defaults = defaults.unwrap_or_default();
    let list_at = fields.place("case");
    let mut cases: Vec<Case> = Vec::new();
    let mut lines: HashMap<String, usize> = HashMap::new();
    if let Some(list) = fields.take("case") {
        for (index, node) in report.list(list, "case").into_iter().enumerate() {
            let at = node.at;
            let is_name = |name: &&str| !name.trim().is_empty() && name.chars().count() <= MAX_NAME_CHARS;
            report.reading(Some(match node.text_of("name").filter(is_name) {
                Some(name) => format!("case {name:?}"),
                None => format!("case number {}", index + 1),
            }));
            if let Some(case) = read_case(node, &defaults, report) {
                if let Some(line) = lines.insert(case.name.clone(), case.line) {
                    report.error(at, "name", format!("another case has the name {:?}, on line {line}", case.name));
                }
                cases.push(case);
            }
            report.reading(None);
        }
    }
    if cases.is_empty() && !report.has_errors() {
        report.error(list_at.unwrap_or(0), "", "the document has no cases; a case begins with [[case]]");
    }
    let mut equivalents = Vec::new();
    if let Some(list) = fields.take("equivalent") {
        for node in report.list(list, "equivalent") {
            equivalents.extend(read_equivalent(node, report));
        }
    }
    Some(PolicyCases { cases, equivalents })
}

fn read_case(node: Node, defaults: &Partial, report: &mut Report<'_>) -> Option<Case> {
    let at = node.at;
    let problems = report.count();
    let mut fields = Fields::of(node, "", CASE_FIELDS, report)?;
    let name = fields.required_line("name", MAX_NAME_CHARS, report);
    let input_at = fields.place("input");
    let input = fields.take("input").and_then(|node| report.text(node, "input"));
    let context_at = fields.place("context");
    let context = fields.object("context", report);
    let intent_at = fields.place("intent");
    let used = fields.take("used").map(|node| used(node, report)).unwrap_or_default();
    let expect_at = fields.place("expect");
    let expect = fields.take("expect").and_then(|node| Expect::read(node, report));
    if expect_at.is_none() {
        report.error(at, "expect", "the field \"expect\" is missing: state what the case expects");
    }
    let own = Partial::of(&mut fields, report).or(defaults);

    match (input_at, intent_at, context_at) {
        (Some(_), Some(second), _) => report.error(second, "intent", "a case is an intent or an input, not both"),
        (None, None, _) if own.intent.capabilities.is_none() => {
            report.error(at, "intent", "a case needs a field \"intent\" or a field \"input\"");
        }
        (None, _, Some(context)) => {
            report.error(context, "context", "the context of an intent stands within it: intent.context");
        }
        _ => {}
    }
    if report.count() > problems {
        return None;
    }
    let agent_id = own.agent.id.unwrap_or_else(|| "example".to_owned());
    let asked = match input {
        Some(text) => Asked::Text { text, context: context.or(own.intent.context).unwrap_or_default() },
        None => own.intent.into_asked(&agent_id, intent_at.unwrap_or(at), report)?,
    };
    if let Err(error) = agent_id.parse::<AgentId>() {
        report.error(at, "agent.id", error);
        return None;
    }
    let trust = own.agent.trust.unwrap_or(TrustSnapshot::new(Agent::NEWCOMER_SCORE, Agent::NEWCOMER_SCORE.tier()));
    let mut traits = AgentTraits::default();
    traits.labels = own.agent.labels.unwrap_or_default();
    traits.groups = own.agent.groups.unwrap_or_default();
    traits.attributes = own.agent.attributes.unwrap_or_default();
    let line = report.line_of(at);
    let now = own.now.unwrap_or(Timestamp::from_millis(0));
    Some(Case { name: name?, line, asked, agent_id, trust, traits, now, used, expect: expect? })
}

/// The fields that the file's defaults may supply.
#[derive(Debug, Clone, Default)]
struct Partial {
    intent: PartialIntent,
    agent: PartialAgent,
    now: Option<Timestamp>,
}

impl Partial {
    fn read(node: Node, path: &'static str, known: &[&str], report: &mut Report<'_>) -> Option<Self> {
        let mut fields = Fields::of(node, path, known, report)?;
        Some(Self::of(&mut fields, report))
    }

    fn of(fields: &mut Fields, report: &mut Report<'_>) -> Self {
        let intent = fields.take("intent").and_then(|node| PartialIntent::read(node, report));
        let agent = fields.take("agent").and_then(|node| PartialAgent::read(node, report));
        let now = fields.parsed("now", report);
        Self { intent: intent.unwrap_or_default(), agent: agent.unwrap_or_default(), now }
    }

    fn or(self, other: &Self) -> Self {
        let (intent, agent) = (other.intent.clone(), other.agent.clone());
        Self {
            intent: PartialIntent {
                action: self.intent.action.or(intent.action),
                capabilities: self.intent.capabilities.or(intent.capabilities),
                risk: self.intent.risk.or(intent.risk),
                context: self.intent.context.or(intent.context),
            },
            agent: PartialAgent {
                id: self.agent.id.or(agent.id),
                trust: self.agent.trust.or(agent.trust),
                labels: self.agent.labels.or(agent.labels),
                groups: self.agent.groups.or(agent.groups),
                attributes: self.agent.attributes.or(agent.attributes),
            },
            now: self.now.or(other.now),
        }
    }
}

#[derive(Debug, Clone, Default)]
struct PartialIntent {
    action: Option<String>,
    capabilities: Option<Vec<Capability>>,
    risk: Option<RiskLevel>,
    context: Option<Map<String, Json>>,
}

impl PartialIntent {
    fn read(node: Node, report: &mut Report<'_>) -> Option<Self> {
        let mut fields = Fields::of(node, "intent.", INTENT_FIELDS, report)?;
        Some(Self {
            action: fields.line("action", MAX_NAME_CHARS, report),
            capabilities: fields.all_parsed("capabilities", report),
            risk: fields.word("risk", RiskLevel::ALL, report),
            context: fields.object("context", report),
        })
    }

    fn into_asked(self, agent_id: &str, at: usize, report: &mut Report<'_>) -> Option<Asked> {
        let Some(action) = self.action else {
            report.error(at, "intent.action", "the field \"action\" is missing");
            return None;
        };
        let Some(capabilities) = self.capabilities else {
            report.error(at, "intent.capabilities", "the field \"capabilities\" is missing");
            return None;
        };
        // Parsed as a governor does, so that whatever a governor refuses is refused here.
        let intent = Intent::from_json(&json!({
            "agentId": agent_id,
            "parsedAction": action,
            "riskLevel": self.risk.unwrap_or(RiskLevel::Low),
            "requiredCapabilities": capabilities,
            "context": self.context.unwrap_or_default(),
        }));
        match intent {
            Ok(intent) => Some(Asked::Intent { intent: Box::new(intent), risk: self.risk }),
            Err(error) => {
                report.error(at, "intent", error);
                None
            }
        }
    }
}

#[derive(Debug, Clone, Default)]
struct PartialAgent {
    id: Option<String>,
    trust: Option<TrustSnapshot>,
    labels: Option<Vec<Label>>,
    groups: Option<Vec<Label>>,
    attributes: Option<Map<String, Json>>,
}

impl PartialAgent {
    fn read(node: Node, report: &mut Report<'_>) -> Option<Self> {
        let mut fields = Fields::of(node, "agent.", AGENT_FIELDS, report)?;
        let score_at = fields.place("score");
        let tier: Option<Tier> = fields.word("tier", Tier::ALL, report);
        let score = fields.take("score").and_then(|node| score(&node, report));
        if let (Some(at), Some(_)) = (score_at, tier) {
            report.error(at, "agent.score", "an agent has a tier or a score, not both");
        }
        Some(Self {
            labels: fields.all_parsed("labels", report),
            groups: fields.all_parsed("groups", report),
            id: fields.line("id", MAX_NAME_CHARS, report),
            trust: tier
                .map(|tier| TrustSnapshot::new(tier.middle(), tier))
                .or(score.map(|score| TrustSnapshot::new(score, score.tier()))),
            attributes: fields.object("attributes", report),
        })
    }
}

impl Expect {
    fn read(node: Node, report: &mut Report<'_>) -> Option<Self> {
        let mut fields = Fields::of(node, "expect.", EXPECT_FIELDS, report)?;
        let outcome = Outcome::read(&mut fields, report);
        let (granted, denied) = (fields.all_parsed("granted", report), fields.all_parsed("denied", report));
        let constraints = fields.object("constraints", report);
        let reviewer = fields.line("reviewer", MAX_NAME_CHARS, report);
        let mut names = |name: &str| -> Vec<String> {
            let names = fields.read_with(name, report, |node, path, report| {
                let items = report.filled_list(node, path).into_iter();
                items.filter_map(|item| report.line(item, path, MAX_NAME_CHARS)).collect()
            });
            names.unwrap_or_default()
        };
        let (unconstrained, rules) = (names("unconstrained"), names("rules"));
        Some(Self {
            outcome: outcome?,
            granted,
            denied,
            constraints: constraints.unwrap_or_default(),
            unconstrained,
            reviewer,
            rules,
        })
    }
}

impl Outcome {
    fn read(fields: &mut Fields, report: &mut Report<'_>) -> Option<Self> {
        let at = fields.at;
        let decision_at = fields.place("decision");
        let decision = fields.word("decision", Decision::ALL, report);
        let Some(node) = fields.take("error") else {
            if decision_at.is_none() {
                report.error(at, "expect.decision", "the field \"decision\" is missing");
            }
            return decision.map(Self::Decision);
        };
        let error_at = node.at;
        if report.text(node, "expect.error")? != POLICY_ERROR {
            report.error(
                error_at,
                "expect.error",
                format!("expected {POLICY_ERROR:?}, the one error that rules cause"),
            );
            return None;
        }
        let beside = EXPECT_FIELDS.iter().find(|name| fields.place(name).is_some());
        if let Some(beside) = beside.copied().or(decision_at.map(|_| "decision")) {
            let message = format!("a case that expects an error cannot have {beside}: no decision is made");
            report.error(error_at, "expect.error", message);
            return None;
        }
        Some(Self::PolicyError)
    }
}

fn read_equivalent(node: Node, report: &mut Report<'_>) -> Option<Equivalent> {
    let mut fields = Fields::of(node, "equivalent.", EQUIVALENT_FIELDS, report)?;
    let mut line = |name: &str| fields.required_line(name, MAX_TEXT_CHARS, report);
    let (rule, mutation, reason) = (line("rule"), line("mutation"), line("reason"));
    Some(Equivalent { rule: rule?, mutation: mutation?, reason: reason? })
}

fn used(node: Node, report: &mut Report<'_>) -> BTreeMap<String, f64> {
    let at = node.at;
    let Value::Table(fields) = node.value else {
        report.error(at, "used", "expected a table: a rule's id, and how much of its limit has been used");
        return BTreeMap::new();
    };
    let mut used = BTreeMap::new();
    for field in fields {
        #[expect(clippy::cast_precision_loss, reason = "checked against a bound far below 2^53")]
        let number = match field.node.value {
            Value::Integer(number) => number as f64,
            Value::Float(number) => number,
            _ => f64::NAN,
        };
        if (0.0..=MOST_USED).contains(&number) {
            used.insert(field.name, number);
        } else {
            report.error(field.node.at, "used", format!("expected a number from 0 to {MOST_USED}"));
        }
    }
    used
}

fn score(node: &Node, report: &mut Report<'_>) -> Option<Score> {
    let number = match node.value {
        Value::Integer(number) => u64::try_from(number).ok().and_then(|number| Score::try_from(number).ok()),
        _ => None,
    };
    if number.is_none() {
        report.error(node.at, "agent.score", "expected a whole number from 0 to 1000");
    }
    number
}

const DOCUMENT_FIELDS: &[&str] = &["name", "description", "defaults", "case", "equivalent"];
const DEFAULT_FIELDS: &[&str] = &["intent", "agent", "now"];
const CASE_FIELDS: &[&str] = &["name", "intent", "input", "context", "agent", "now", "used", "expect"];
const INTENT_FIELDS: &[&str] = &["action", "capabilities", "risk", "context"];
const AGENT_FIELDS: &[&str] = &["id", "tier", "score", "labels", "groups", "attributes"];
const EXPECT_FIELDS: &[&str] =
    &["decision", "error", "granted", "denied", "constraints", "unconstrained", "reviewer", "rules"];
const EQUIVALENT_FIELDS: &[&str] = &["rule", "mutation", "reason"];
const MAX_NAME_CHARS: usize = 128;
const MAX_TEXT_CHARS: usize = 1_000;
/// Upper bound of numbers that millionths represent exactly.
const MOST_USED: f64 = 9e9;
