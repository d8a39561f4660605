//! `rulekeep policy suggest`: the least set that would have allowed what a log shows to be habit.
//!
//! A habit is a role, a tool and a capability that were fine at least [`LEAST_CALLS`] times on [`LEAST_DAYS`] days: allowed or
//! approved, and no failure reported. `targets` finds which targets belong to it, `merge` puts habits together until they fit
//! into the wanted number of rules, `written` writes the document. No rule covers a request that was refused, and none
//! allows what is HIGH or CRITICAL.

mod merge;
mod targets;
mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use clap::Args;
use rulekeep::intent::UnreadKind;
use rulekeep::proof::ProofId;
use rulekeep::system::Timestamp;
use rulekeep::{Decision, Governor, Outcome, PolicySet, RiskLevel, Tier};
use serde_json::json;

use super::past::{Past, Store};
use targets::Place;

/// The arguments of `rulekeep policy suggest`.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    store: Store,
    /// The most rules to write
    #[arg(long, value_name = "N", default_value_t = 39, value_parser = clap::value_parser!(u16).range(1..=1000))]
    max_rules: u16,
    /// Print the document and what it covers as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// A past request, as far as habits depend on it.
struct Call {
    id: ProofId,
    at: Timestamp,
    agent: String,
    /// The form, and the server where there is one: rules never mix these.
    form: Form,
    /// The tool's name, or the action of a request without a tool that was not a text.
    what: String,
    capabilities: Vec<String>,
    places: Vec<Place>,
    risk: RiskLevel,
    tier: Tier,
    verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Form {
    formats: Vec<String>,
    server: Option<String>,
    /// Whether `what` is an action and not a tool.
    is_action: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Fine { was_approved: bool },
    Refused,
}

/// What rests on a set of calls.
#[derive(Debug, Clone, Default)]
struct Support {
    calls: usize,
    approved: usize,
    agents: BTreeSet<String>,
    days: BTreeSet<i64>,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    examples: Vec<ProofId>,
}

/// The fewest calls that make a habit, and the fewest days that they are spread over.
const LEAST_CALLS: usize = 3;
const LEAST_DAYS: usize = 2;

/// Writes a suggestion. Returns whether there is any.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    let governor = arguments.store.open()?;
    let mut calls = Vec::new();
    let mut counts = Counts::default();
    counts.unreadable = arguments.store.range.each(&governor, |past| {
        counts.decisions += 1;
        if let Some(call) = Call::of(&past) {
            counts.note(&call);
            calls.push(call);
        }
    })?;
    let mut rules = merge::rules(&calls, usize::from(arguments.max_rules).saturating_sub(1));
    let (text, set, covered) = loop {
        let text = written::document(&rules, &counts, &calls);
        let set = PolicySet::from_toml(&text).map_err(|error| format!("the suggestion does not load: {error}"))?;
        let Held { covered, loosened } = hold(&set, &arguments.store, &governor)?;
        if loosened.is_empty() {
            break (text, set, covered);
        }
        // Several rules can grant together what none of them covers alone.
        rules.retain(|rule| !loosened.contains(&rule.id));
    };
    governor.close()?;
    let share = if counts.fine == 0 { 100.0 } else { percent(covered, counts.fine) };
    let said =
        format!("covers {covered} of {} requests that were fine ({share:.1} %) by {} rules", counts.fine, set.len());
    if arguments.json {
        super::print_json(&json!({
            "policy": text, "rules": set.len(), "decisions": counts.decisions, "fine": counts.fine, "covered": covered,
            "high": counts.high, "critical": counts.critical, "unreadable": counts.unreadable,
        }))?;
    } else {
        super::print(&text)?;
        eprintln!("{said}; read it before it is put in force, and try it with `policy replay`");
    }
    Ok(!rules.is_empty())
}

/// How many decisions were of which kind.
#[derive(Debug, Default)]
struct Counts {
    decisions: u64,
    unreadable: u64,
    /// Fine, at LOW or MEDIUM risk.
    fine: u64,
    high: u64,
    critical: u64,
}

impl Counts {
    fn note(&mut self, call: &Call) {
        let count = match (call.verdict, call.risk) {
            (Verdict::Refused, _) => return,
            (_, RiskLevel::Low | RiskLevel::Medium) => &mut self.fine,
            (_, RiskLevel::High) => &mut self.high,
            (_, RiskLevel::Critical) => &mut self.critical,
        };
        *count += 1;
    }
}

/// What a suggestion comes to on the log that it was made of.
struct Held {
    covered: u64,
    /// Rules that allow what was refused.
    loosened: BTreeSet<String>,
}

fn hold(set: &PolicySet, store: &Store, governor: &Governor) -> Result<Held, Box<dyn Error>> {
    let mut held = Held { covered: 0, loosened: BTreeSet::new() };
    store.range.each(governor, |past| {
        let Some(call) = Call::of(&past) else { return };
        let Ok(verdict) = set.evaluate(&past.request()) else { return };
        match call.verdict {
            Verdict::Fine { .. } if call.risk <= RiskLevel::Medium => {
                held.covered += u64::from(verdict.decision == Decision::Allow);
            }
            Verdict::Refused if verdict.decision == Decision::Allow => {
                held.loosened.extend(verdict.rules.iter().map(ToString::to_string));
            }
            _ => {}
        }
    })?;
    Ok(held)
}

impl Call {
    /// None for what says nothing about habits: what is open, failed, was granted in part, or was refused by something else
    /// than policies and people.
    fn of(past: &Past) -> Option<Self> {
        let verdict = match (past.record.decision, past.record.outcome) {
            (Decision::Allow, None | Some(Outcome::Success)) => {
                Verdict::Fine { was_approved: past.record.resolves.is_some() }
            }
            (Decision::Deny, _) if !past.is_barred() && !past.is_over_limit() => Verdict::Refused,
            _ => return None,
        };
        let facts = past.intent.facts();
        let named = [Some(past.record.entity_id.as_str()), facts.tool.as_deref(), facts.server.as_deref()];
        if named.into_iter().flatten().any(|name| name.contains(['*', '?'])) {
            // In a rule such a name would stand for others too.
            return None;
        }
        let readings = facts.readings.iter();
        let capabilities: BTreeSet<String> =
            past.intent.required_capabilities.iter().chain(readings).map(ToString::to_string).collect();
        let is_hidden = |kind: UnreadKind| matches!(kind, UnreadKind::Target | UnreadKind::Argument);
        let places = facts.targets.iter().map(Place::of);
        let unread = facts.unread.iter().filter(|unread| is_hidden(unread.kind)).map(|_| Place::Unread);
        let is_action = facts.tool.is_none() && facts.formats.is_empty();
        let what =
            if is_action { past.intent.parsed_action.to_string() } else { facts.tool.clone().unwrap_or_default() };
        Some(Self {
            id: past.record.id,
            at: past.record.timestamp,
            agent: past.record.entity_id.to_string(),
            form: Form { formats: facts.formats, server: facts.server, is_action },
            what,
            capabilities: capabilities.into_iter().collect(),
            places: places.chain(unread).collect(),
            risk: past.risk(),
            tier: past.record.trust_tier,
            verdict,
        })
    }

    fn is_fine(&self) -> bool {
        self.verdict != Verdict::Refused
    }

    fn day(&self) -> i64 {
        self.at.as_millis().div_euclid(86_400_000)
    }

    /// The agent's id without the number at its end: agents of one role share their habits.
    fn role(&self) -> &str {
        self.agent.trim_end_matches(|c: char| c.is_ascii_digit())
    }
}

impl Support {
    fn add(&mut self, call: &Call) {
        self.calls += 1;
        self.approved += usize::from(call.verdict == Verdict::Fine { was_approved: true });
        self.agents.insert(call.agent.clone());
        self.days.insert(call.day());
        self.first = Some(self.first.map_or(call.at, |first| first.min(call.at)));
        self.last = Some(self.last.map_or(call.at, |last| last.max(call.at)));
        if self.examples.len() < 3 {
            self.examples.push(call.id);
        }
    }

    fn is_habit(&self) -> bool {
        self.calls >= LEAST_CALLS && self.days.len() >= LEAST_DAYS
    }
}

/// Calls by what they were and needed, one entry for each capability.
type Habits<'a> = BTreeMap<(&'a str, &'a Form, &'a str, &'a str, bool), Vec<&'a Call>>;

fn percent(part: u64, whole: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let share = part as f64 * 100.0 / whole as f64;
    share
}
