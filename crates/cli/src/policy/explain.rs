//! `rulekeep policy explain`: the parse of a request and the decision on it, rule by rule.

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use rulekeep::intent::{Action, Capability, Classification, Facts, Input, ParseExplanation};
use rulekeep::policy::RuleTrace;
use rulekeep::preview::{Explanation, PreviewRequest};
use rulekeep::system::{Clock, Timestamp};
use rulekeep::trust::Score;
use rulekeep::{Agent, Governor, Intent, PolicySet, Tier};
use serde::Serialize;
use serde_json::{Map, Value};

use super::asked::{Asked, Request, told};
use crate::operate::score;

/// The arguments of `rulekeep policy explain`.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    asked: Asked,
    /// The policy document: .toml or .json (default: the one in the home, or the recommended policies without a home)
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// A key of the request's context; the value is JSON, otherwise text
    #[arg(long, value_name = "KEY=VALUE", value_parser = attribute)]
    context: Vec<(String, Value)>,
    /// The agent that asks (default: the agent of the intent, or `example`)
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// The agent's tier, T0 to T5
    #[arg(long, conflicts_with = "score")]
    tier: Option<Tier>,
    /// The agent's score, 0 to 1000
    #[arg(long, value_parser = score)]
    score: Option<Score>,
    /// A label of the agent; can be given several times
    #[arg(long = "label", value_name = "NAME")]
    labels: Vec<String>,
    /// A group of the agent; can be given several times
    #[arg(long = "group", value_name = "NAME")]
    groups: Vec<String>,
    /// An attribute of the agent; the value is JSON, otherwise text
    #[arg(long = "attribute", value_name = "NAME=VALUE", value_parser = attribute)]
    attributes: Vec<(String, Value)>,
    /// The time of the decision
    #[arg(long, value_name = "TIME", value_parser = crate::times::from)]
    at: Option<Timestamp>,
    /// Prints the explanation as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// The parse of a request, and the decision on it.
#[derive(Serialize)]
struct Explained {
    /// The parse; `None` if an intent was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    parse: Option<ParseExplanation>,
    #[serde(skip)]
    action: Action,
    /// The class that `match.classification` compares; `None` if there is none.
    #[serde(rename = "dataClass", skip_serializing_if = "Option::is_none")]
    class: Option<DataClass>,
    #[serde(flatten)]
    decision: Explanation,
}

/// The class of the data of a request.
#[derive(Serialize)]
struct DataClass {
    class: Classification,
    /// The capabilities that imply it; empty if the context says it.
    #[serde(rename = "impliedBy")]
    implied_by: Vec<Capability>,
}

impl DataClass {
    fn of(intent: &Intent) -> Option<Self> {
        let floor = |needed: &[Capability]| Classification::floor(&intent.parsed_action, needed);
        let needed = &intent.required_capabilities;
        let claimed = intent.context.get("dataClassification").filter(|class| !class.is_null());
        let claimed = claimed.map(|class| class.as_str().map_or(Classification::Restricted, Classification::of_word));
        let class = claimed.max(floor(needed))?;
        let implies = |one: &&Capability| floor(std::slice::from_ref(*one)) == Some(class);
        Some(Self { class, implied_by: needed.iter().filter(implies).cloned().collect() })
    }
}

/// Adds the environment that a request names, as hooks do, unless the caller states one.
pub(super) fn add_environment(set: &PolicySet, facts: &Facts, context: &mut Map<String, Value>) -> Result<(), String> {
    if !context.contains_key("environment")
        && let Some(environment) = set.environment_of(facts)?
    {
        context.insert("environment".to_owned(), environment.into());
    }
    Ok(())
}

pub(super) fn run(mut arguments: Arguments) -> Result<bool, Box<dyn Error>> {
    let policies = match arguments.policy.take() {
        Some(file) => PolicySet::from_file(file)?,
        None => super::default_policy()?,
    };
    let mut builder = Governor::builder().policies(policies);
    if let Some(at) = arguments.at {
        builder = builder.clock(Stopped(at));
    }
    let governor = builder.open_in_memory()?;
    let mut context: Map<String, Value> = std::mem::take(&mut arguments.context).into_iter().collect();
    let as_json = arguments.json;
    let explained = match std::mem::take(&mut arguments.asked).read()? {
        Request::Text(text) => {
            let agent = arguments.agent.clone().unwrap_or_else(|| "example".to_owned());
            governor.agents().register(arguments.agent(&agent))?;
            let intent = governor.tools().explain_parse(&agent, Input::new(&text).context(&context))?.parse.intent;
            add_environment(&governor.policies().current(), &intent.facts(), &mut context)?;
            let input = || Input::new(&text).context(&context);
            let parse = governor.tools().explain_parse(&agent, input())?;
            let decision = governor.policies().explain(PreviewRequest::input(&agent, input()))?;
            let (class, action) = (DataClass::of(&parse.parse.intent), parse.parse.intent.parsed_action.clone());
            Explained { parse: Some(parse), action, class, decision }
        }
        Request::Intent(mut intent) => {
            if let Some(agent) = &arguments.agent {
                intent.agent_id = agent.parse()?;
            }
            intent.context.extend(context);
            governor.agents().register(arguments.agent(intent.agent_id.as_str()))?;
            let decision = governor.policies().explain(&*intent)?;
            let class = DataClass::of(&intent);
            Explained { parse: None, action: intent.parsed_action, class, decision }
        }
    };
    if as_json {
        super::print_json(&explained)?;
        return Ok(true);
    }
    let mut text = explained.parse.as_ref().map(told).unwrap_or_default();
    decided(&mut text, &explained)?;
    super::print(text)?;
    Ok(true)
}

/// Shows the decision to people, and each rule's part in it.
fn decided(text: &mut String, explained: &Explained) -> std::fmt::Result {
    let Explained { action, class, decision: explanation, .. } = explained;
    let preview = &explanation.preview;
    let outcome = match &preview.error {
        Some(error) => format!("No decision: {}", error.code),
        None => preview.decision.to_string(),
    };
    let (tier, risk) = (preview.trust_snapshot.tier, preview.risk_level);
    writeln!(text, "{action} at {tier}, risk {risk}: {outcome}")?;
    if let Some(DataClass { class, implied_by }) = class {
        let by: Vec<&str> = implied_by.iter().map(Capability::as_str).collect();
        let by = if by.is_empty() {
            "by context.dataClassification".to_owned()
        } else {
            format!("implied by {}", by.join(", "))
        };
        writeln!(text, "data class {class}, {by}")?;
    }
    writeln!(text, "{}", preview.error.as_ref().map_or(&preview.reasoning, |error| &error.message))?;
    if let Some(rewrite) = &preview.rewrite {
        writeln!(text, "rewrite {:?}: {}", rewrite.part, rewrite.how)?;
    }
    // If nothing is decided, no rule decides.
    let decides = |rule: &RuleTrace| rule.decided && preview.error.is_none();
    for (title, is_decided) in [("decided by", true), ("without a part in it", false)] {
        let rules: Vec<&RuleTrace> = explanation.rules.iter().filter(|rule| decides(rule) == is_decided).collect();
        if !rules.is_empty() {
            writeln!(text, "\n{title}:")?;
        }
        for rule in rules {
            let severity = rule.severity.map(|severity| format!(" (severity {severity})")).unwrap_or_default();
            writeln!(text, "  line {:>4}  {:<8} {}{severity}: {}", rule.line, rule.effect, rule.rule, rule.why)?;
        }
    }
    Ok(())
}

impl Arguments {
    /// Returns the agent that asks.
    fn agent(self, id: &str) -> Agent {
        let mut agent = Agent::new(id);
        if let Some(tier) = self.tier {
            agent = agent.at_tier(tier);
        }
        if let Some(score) = self.score {
            agent = agent.at_score(score);
        }
        agent = self.labels.into_iter().fold(agent, Agent::with_label);
        agent = self.groups.into_iter().fold(agent, Agent::in_group);
        self.attributes.into_iter().fold(agent, |agent, (name, value)| agent.with_attribute(name, value))
    }
}

/// Parses `name=value`; the value is JSON, otherwise text.
fn attribute(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("expected name=value")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    Ok((name.to_owned(), value))
}

/// A clock that always shows the same time.
struct Stopped(Timestamp);

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        self.0
    }
}
