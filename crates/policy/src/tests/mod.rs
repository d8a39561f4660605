//! Tests of the whole engine: against a slow, obvious implementation, on random sets, and of the recommended set.

mod alerts;
mod conditions;
mod context_page;
mod evaluation;
mod facts;
mod forms;
mod loading;
mod properties;
mod recommended;
mod reviewers;
mod twin;

use super::limit::Unused;
use super::request::PolicyRequest;
use super::verdict::PolicyVerdict;
use super::{PolicyFormat, PolicySet, RuleTrace};
use std::sync::LazyLock;

use rulekeep_types::{AgentTraits, Intent, Label, RiskLevel, Tier, Timestamp, TrustSnapshot};

static NO_TRAITS: LazyLock<AgentTraits> = LazyLock::new(AgentTraits::default);

/// A minimal intent of `bot-1`.
fn intent(action: &str, capabilities: &[&str]) -> Intent {
    Intent::new("bot-1", action, RiskLevel::Low, capabilities).unwrap()
}

/// A request at a tier and a risk, without labels.
fn request(intent: &Intent, tier: Tier, risk: RiskLevel) -> PolicyRequest<'_> {
    PolicyRequest {
        intent,
        risk,
        trust: TrustSnapshot::new(tier.middle(), tier),
        traits: &NO_TRAITS,
        now: Timestamp::from_millis(0),
    }
}

fn decide(policies: &PolicySet, intent: &Intent) -> PolicyVerdict {
    policies.decide(&request(intent, Tier::T3, RiskLevel::Medium))
}

impl PolicySet {
    fn decide(&self, request: &PolicyRequest<'_>) -> PolicyVerdict {
        self.evaluate(request).unwrap()
    }

    fn traces(&self, request: &PolicyRequest<'_>) -> Vec<RuleTrace> {
        self.explain(request, &mut Unused)
    }
}

fn label(text: &str) -> Label {
    text.parse().unwrap()
}

fn words<T: ToString>(items: &[T]) -> Vec<String> {
    items.iter().map(ToString::to_string).collect()
}

/// A set of `rules`, each given as the inside of a TOML rule table.
fn toml(rules: &[&str]) -> PolicySet {
    let tables: Vec<String> = rules.iter().map(|rule| format!("[[rule]]\n{rule}\n")).collect();
    PolicySet::from_toml(&format!("name = \"test\"\n{}", tables.concat())).unwrap()
}

/// The problems of a TOML document as `line:column severity message`.
fn problems(text: &str) -> Vec<String> {
    PolicySet::validate(text, PolicyFormat::Toml)
        .iter()
        .map(|problem| format!("{}:{} {} {}", problem.line, problem.column, problem.severity, problem.message))
        .collect()
}
