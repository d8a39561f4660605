//! The examples of a rule: requests that it must match, and requests that it must not. They are checked whenever the
//! document is loaded; one that fails refuses the document.
//!
//! A field that an example leaves out takes a value that the rule accepts, so that an example states only what it is
//! about.

use rulekeep_types::parts::AgentTraitsParts;
use serde_json::{Map, Value as Json};

use super::explain;
use super::request::PolicyRequest;
use super::rule::Rule;
use rulekeep_types::document::{Fields, Node, Report};
use rulekeep_types::{AgentTraits, Intent, Label, RiskLevel, Score, Tier, Timestamp, TrustSnapshot};

/// The examples of one rule.
pub(super) struct Examples {
    all: Vec<Example>,
}

struct Example {
    at: usize,
    /// Position among the examples of the same kind, from 1.
    number: usize,
    must_match: bool,
    agent: Option<String>,
    action: Option<String>,
    capabilities: Option<Vec<String>>,
    labels: Option<Vec<Label>>,
    groups: Option<Vec<Label>>,
    attributes: Map<String, Json>,
    risk: Option<RiskLevel>,
    tier: Option<Tier>,
    context: Option<Map<String, Json>>,
    now: Option<Timestamp>,
}

impl Examples {
    /// Reads a rule's `examples`.
    pub(super) fn read(node: Node, report: &mut Report<'_>) -> Option<Self> {
        let mut fields = Fields::of(node, "examples.", &["match", "not_match"], report)?;
        let mut all = Vec::new();
        for (name, must_match) in [("match", true), ("not_match", false)] {
            let Some(list) = fields.take(name) else { continue };
            let field = format!("examples.{name}");
            for (index, node) in report.filled_list(list, &field).into_iter().enumerate() {
                all.extend(Example::read(node, index + 1, must_match, report));
            }
        }
        Some(Self { all })
    }

    /// Checks the examples against their rule.
    pub(super) fn check(&self, rule: &Rule, report: &mut Report<'_>) {
        for example in &self.all {
            let field = format!(
                "examples.{} number {}",
                if example.must_match { "match" } else { "not_match" },
                example.number
            );
            match example.why_not(rule) {
                Err(message) => report.error(example.at, &field, message),
                Ok(Some(why)) if example.must_match => {
                    report.error(example.at, &field, format!("the rule does not match this example: {why}"));
                }
                Ok(None) if !example.must_match => {
                    report.error(example.at, &field, "the rule matches this example, but must not");
                }
                Ok(_) => {}
            }
        }
    }
}

impl Example {
    fn read(node: Node, number: usize, must_match: bool, report: &mut Report<'_>) -> Option<Self> {
        let at = node.at;
        let mut fields = Fields::of(node, "examples.", FIELDS, report)?;
        let agent = fields.line("agent", MAX_CHARS, report);
        let action = fields.line("action", MAX_CHARS, report);
        let capabilities = fields.read_with("capabilities", report, words);
        let (labels, groups) = (fields.all_parsed("labels", report), fields.all_parsed("groups", report));
        let attributes = fields.object("attributes", report).unwrap_or_default();
        let context = fields.object("context", report);
        let risk = fields.word("risk", RiskLevel::ALL, report);
        let tier = fields.word("tier", Tier::ALL, report);
        let now = fields.parsed("now", report);
        Some(Self {
            at,
            number,
            must_match,
            agent,
            action,
            capabilities,
            labels,
            groups,
            attributes,
            risk,
            tier,
            context,
            now,
        })
    }

    /// Explains why the rule does not match the example; `None` if it matches.
    fn why_not(&self, rule: &Rule) -> Result<Option<String>, String> {
        let matches = &rule.matches;
        let names = |given: &Option<Vec<Label>>, wanted: &super::pattern::Names| match given {
            Some(labels) => labels.clone(),
            None => wanted.texts().next().and_then(|name| as_name(name).parse().ok()).into_iter().collect(),
        };
        let agent = self.agent.clone().unwrap_or_else(|| name_of(matches.agents.texts().next(), "example"));
        let action = self.action.clone().unwrap_or_else(|| name_of(matches.actions.texts().next(), "do_it"));
        let capabilities = self.capabilities.clone().unwrap_or_else(|| {
            let wanted = matches.capabilities.first().map(|pattern| {
                let (resource, operation) = (pattern.resource.as_deref(), pattern.operation.as_deref());
                format!("{}:{}", resource.unwrap_or("information"), operation.unwrap_or("read"))
            });
            vec![wanted.unwrap_or_else(|| "information:read".to_owned())]
        });
        let risk = self.risk.or_else(|| RiskLevel::ALL.iter().copied().find(|level| matches.levels.has_risk(*level)));
        let tier = self.tier.or_else(|| Tier::ALL.iter().copied().find(|tier| matches.levels.has_tier(*tier)));
        let (risk, tier) = (risk.unwrap_or(RiskLevel::Low), tier.unwrap_or(Tier::T0));
        let mut intent = Intent::new(&agent, &action, risk, &capabilities).map_err(|error| error.to_string())?;
        intent.context = self.context.clone().unwrap_or_default();
        let traits = AgentTraits::from(AgentTraitsParts {
            labels: names(&self.labels, &matches.labels),
            groups: names(&self.groups, &matches.groups),
            attributes: self.attributes.clone(),
        });
        let now = self.now.unwrap_or(Timestamp::from_millis(0));
        let score: Score = tier.middle();
        let request =
            PolicyRequest { intent: &intent, risk, trust: TrustSnapshot::new(score, tier), traits: &traits, now };
        // Without a context in the example, `classification` and `environment` are assumed to match.
        explain::why_not(rule, &request, self.context.is_none())
    }
}

/// A name that a glob matches: each wildcard is replaced by a letter.
fn as_name(glob: &str) -> String {
    glob.replace(['*', '?'], "x")
}

fn name_of(glob: Option<&str>, otherwise: &str) -> String {
    glob.map_or_else(|| otherwise.to_owned(), as_name)
}

fn words(node: Node, field: &str, report: &mut Report<'_>) -> Vec<String> {
    report.list(node, field).into_iter().filter_map(|item| report.text(item, field)).collect()
}

const FIELDS: &[&str] =
    &["agent", "action", "capabilities", "labels", "groups", "attributes", "risk", "tier", "context", "now"];
const MAX_CHARS: usize = 256;
