//! `rulekeep policy explain`: the decision on an intent, rule by rule.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use rulekeep::policy::RuleTrace;
use rulekeep::system::{Clock, Timestamp};
use rulekeep::trust::Score;
use rulekeep::{Agent, Governor, Intent, PolicySet, Tier};
use serde_json::Value;

/// The arguments of `rulekeep policy explain`.
#[derive(Args)]
pub struct Arguments {
    /// The policy document: .toml or .json
    policy: PathBuf,
    /// An intent: `{"agentId": "a", "parsedAction": "send_mail", "riskLevel": "LOW",`
    /// `"requiredCapabilities": ["email:send"], "context": {}}`
    #[arg(value_name = "INTENT.json")]
    intent: PathBuf,
    /// The agent's tier, T0 to T5
    #[arg(long, conflicts_with = "score")]
    tier: Option<Tier>,
    /// The agent's score, 0 to 1000
    #[arg(long, value_parser = score)]
    score: Option<Score>,
    /// A label of the agent
    #[arg(long = "label", value_name = "NAME")]
    labels: Vec<String>,
    /// A group of the agent
    #[arg(long = "group", value_name = "NAME")]
    groups: Vec<String>,
    /// An attribute of the agent; a value is JSON, or else a text
    #[arg(long = "attribute", value_name = "NAME=VALUE", value_parser = attribute)]
    attributes: Vec<(String, Value)>,
    /// The time of the decision, ISO 8601 with an offset
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
    /// Print the explanation as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn explain(arguments: Arguments) -> Result<bool, Box<dyn Error>> {
    let policies = PolicySet::from_file(&arguments.policy)?;
    let file = arguments.intent.display();
    let intent = read_intent(&arguments.intent).map_err(|error| format!("{file}: {error}"))?;
    let mut builder = Governor::builder().policies(policies);
    if let Some(at) = arguments.at {
        builder = builder.clock(Stopped(at));
    }
    let (governor, as_json) = (builder.open_in_memory()?, arguments.json);
    governor.agents().register(arguments.agent(intent.agent_id.as_str()))?;
    let explanation = governor.policies().explain(&intent)?;
    if as_json {
        super::print(format_args!("{}\n", serde_json::to_string_pretty(&explanation)?))?;
        return Ok(true);
    }
    let preview = &explanation.preview;
    let outcome = match &preview.error {
        Some(error) => format!("No decision: {}", error.code),
        None => preview.decision.to_string(),
    };
    let (tier, risk) = (preview.trust_snapshot.tier, preview.risk_level);
    let mut text = format!("{} at {tier}, risk {risk}: {outcome}\n", intent.parsed_action);
    writeln!(text, "{}", preview.error.as_ref().map_or(&preview.reasoning, |error| &error.message))?;
    // Where nothing is decided no rule decides.
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
    super::print(text)?;
    Ok(true)
}

fn read_intent(file: &Path) -> Result<Intent, Box<dyn Error>> {
    let value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    Ok(Intent::from_json(&value)?)
}

impl Arguments {
    /// The agent that asks.
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

fn score(text: &str) -> Result<Score, String> {
    let number: u64 = text.parse().map_err(|error: std::num::ParseIntError| error.to_string())?;
    Score::try_from(number).map_err(|error| error.to_string())
}

/// Reads `name=value`; the value is JSON, or else a text.
fn attribute(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("expected name=value")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    Ok((name.to_owned(), value))
}

/// A clock that shows one moment.
struct Stopped(Timestamp);

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        self.0
    }
}
