//! `rulekeep tune --whole`: the smallest set that would have allowed the habits in a log.
//!
//! A habit is a role, a tool and a capability that were fine at least [`LEAST_CALLS`] times on [`LEAST_DAYS`] days:
//! allowed or approved, and without a reported failure. `targets` finds the targets of a habit, `merge` merges habits
//! until they fit into the wanted number of rules, `written` writes the document. No rule covers a refused request,
//! and none allows HIGH or CRITICAL risk.

mod merge;
mod targets;
mod written;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use clap::Args;
use rulekeep::intent::Cause;
use rulekeep::proof::ProofId;
use rulekeep::system::Timestamp;
use rulekeep::{Decision, Governor, Outcome, PolicySet, RiskLevel, Tier};
use serde_json::json;

use super::past::{Past, Store};
use targets::Place;

/// The arguments of `rulekeep tune --whole`.
#[derive(Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    pub(super) store: Store,
    /// The largest number of rules to write with --whole
    #[arg(long, value_name = "N", default_value_t = 39, value_parser = clap::value_parser!(u16).range(1..=1000))]
    max_rules: u16,
    /// Prints the answer as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// The properties of a past request that habits depend on.
struct Call {
    id: ProofId,
    at: Timestamp,
    agent: String,
    /// The form of the request, and the server if there is one. Rules never mix these.
    form: Form,
    /// The tool's name, or the action of a structured request without a tool.
    what: String,
    capabilities: Vec<String>,
    places: Vec<Place>,
    risk: RiskLevel,
    /// A reviewer approved it, after being asked because of another possible reading, some of which are decided at
    /// HIGH.
    is_unsure: bool,
    tier: Tier,
    verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Form {
    formats: Vec<String>,
    server: Option<String>,
    /// The name is that of an action, not of a tool.
    is_action: bool,
    /// An act runs code whose effects no text shows.
    runs: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Fine { was_approved: bool },
    Refused,
}

/// The calls that support a rule.
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

/// Least number of calls that make a habit, and of days over which they are spread.
const LEAST_CALLS: usize = 3;
const LEAST_DAYS: usize = 2;

/// Writes a suggestion. Returns whether there is one.
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
    let mut rules = merge::rules(&calls, usize::from(arguments.max_rules).saturating_sub(2));
    let (text, set, held) = loop {
        let text = written::document(&rules, &counts, &calls);
        let set = PolicySet::from_toml(&text).map_err(|error| format!("the suggestion does not load: {error}"))?;
        let held = hold(&set, &arguments.store, &governor)?;
        if held.loosened.is_empty() {
            break (text, set, held);
        }
        // Several rules can grant together what none of them covers alone.
        rules.retain(|rule| !held.loosened.contains(&rule.id));
    };
    governor.close()?;
    let text = format!("{}{text}", written::coverage(&held, &counts));
    if arguments.json {
        let (covered, fine, high, critical) = (held.covered, counts.fine, counts.high, counts.critical);
        super::print_json(&json!({
            "policy": text, "rules": set.len(), "decisions": counts.decisions, "fine": fine, "covered": covered,
            "high": high, "critical": critical, "unreadable": counts.unreadable,
        }))?;
    } else {
        super::print(&text)?;
        eprintln!("read the rules before they are put in force, and try them with `rulekeep policy replay`");
    }
    if rules.is_empty() {
        eprintln!(
            "no habit was found: one needs {LEAST_CALLS} calls on {LEAST_DAYS} days that were allowed and did not fail"
        );
    }
    Ok(!rules.is_empty())
}

/// Numbers of decisions by kind.
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
        let count = match (call.verdict, call.level()) {
            (Verdict::Refused, _) => return,
            (_, RiskLevel::Low | RiskLevel::Medium) => &mut self.fine,
            (_, RiskLevel::High) => &mut self.high,
            (_, RiskLevel::Critical) => &mut self.critical,
        };
        *count += 1;
    }
}

/// The decisions of a suggestion on the log it was made from.
struct Held {
    covered: u64,
    /// Rules that allow refused requests.
    loosened: BTreeSet<String>,
    /// Fine requests that are not covered, by name and capabilities.
    missed: BTreeMap<String, u64>,
}

fn hold(set: &PolicySet, store: &Store, governor: &Governor) -> Result<Held, Box<dyn Error>> {
    let mut held = Held { covered: 0, loosened: BTreeSet::new(), missed: BTreeMap::new() };
    store.range.each(governor, |past| {
        let Some(call) = Call::of(&past) else { return };
        let Ok(verdict) = set.evaluate(&past.request()) else { return };
        match call.verdict {
            Verdict::Fine { .. } if call.level() <= RiskLevel::Medium => {
                if verdict.decision == Decision::Allow {
                    held.covered += 1;
                } else {
                    let what = if call.what.is_empty() { call.form.formats.join(" ") } else { call.what };
                    *held.missed.entry(format!("{what}, {}", call.capabilities.join(" "))).or_default() += 1;
                }
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
    /// Returns `None` for requests that say nothing about habits: those that are open, failed, were granted in part,
    /// or were denied by something other than policies and reviewers.
    fn of(past: &Past) -> Option<Self> {
        let verdict = match (past.record.decision, past.record.outcome) {
            (Decision::Allow, None | Some(Outcome::Success)) => {
                Verdict::Fine { was_approved: past.record.resolves.is_some() }
            }
            (Decision::Deny, _) if !past.is_barred() && !past.is_over_limit() => Verdict::Refused,
            _ => return None,
        };
        let facts = past.intent.facts();
        let named = [Some(past.record.entity_id.as_str()), facts.tool(), facts.server()];
        if named.into_iter().flatten().any(|name| name.contains(['*', '?'])) {
            // In a rule such a name would match others too.
            return None;
        }
        let readings = facts.readings.iter();
        let capabilities: BTreeSet<String> =
            past.intent.required_capabilities.iter().chain(readings).map(ToString::to_string).collect();
        let targets = facts.targets();
        let is_open = |cause: Cause| facts.acts.iter().any(|act| act.open.iter().any(|open| open.cause == cause));
        let (is_hidden, runs) = (is_open(Cause::Text), is_open(Cause::Execution) || is_open(Cause::Folder));
        let unread = is_hidden.then_some(Place::Unread);
        let trees = facts.acts.iter().flat_map(|act| &act.operands).filter_map(Place::below);
        let is_action = facts.tool().is_none() && facts.formats.is_empty();
        let what =
            if is_action { past.intent.parsed_action.to_string() } else { facts.tool().unwrap_or_default().to_owned() };
        let server = facts.server().map(str::to_owned);
        let is_unsure = past.record.resolves.is_some() && !facts.readings.is_empty();
        Some(Self {
            id: past.record.id,
            at: past.record.timestamp,
            agent: past.record.entity_id.to_string(),
            form: Form { formats: facts.formats, server, is_action, runs },
            what,
            capabilities: capabilities.into_iter().collect(),
            places: targets.iter().map(Place::of).chain(trees).chain(unread).collect(),
            risk: past.risk(),
            is_unsure,
            tier: past.record.trust_tier,
            verdict,
        })
    }

    fn is_fine(&self) -> bool {
        self.verdict != Verdict::Refused
    }

    /// The risk at which the request is decided.
    fn level(&self) -> RiskLevel {
        if self.is_unsure { self.risk.max(RiskLevel::High) } else { self.risk }
    }

    fn day(&self) -> i64 {
        self.at.as_millis().div_euclid(86_400_000)
    }

    /// The agent's ID without the number at its end: agents of one role share their habits.
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

/// Calls by name and capability, with one entry for each capability.
type Habits<'a> = BTreeMap<(&'a str, &'a Form, &'a str, &'a str, bool), Vec<&'a Call>>;
