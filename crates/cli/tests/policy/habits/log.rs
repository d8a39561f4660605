//! A log of several weeks: agents with habits, one-time actions, and attacks.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rulekeep::escalation::Review;
use rulekeep::proof::ProofId;
use rulekeep::system::{Clock, Timestamp};
use rulekeep::{Agent, Decision, Durability, Governor, Outcome, PolicySet, Tier};
use serde_json::{Value, json};

/// The kind of a request in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Habit,
    /// Harmless, and done only once.
    Once,
    Attack,
}

/// A role: its agents, their scripts, and the number of requests per day.
pub(super) struct Role {
    pub(super) name: &'static str,
    pub(super) agents: usize,
    pub(super) scripts: Vec<Vec<String>>,
    pub(super) a_day: u64,
}

pub(super) struct Plan {
    pub(super) roles: Vec<Role>,
    pub(super) once: Vec<String>,
    pub(super) attacks: Vec<String>,
    pub(super) days: i64,
    /// Share of one-time requests and of attacks, in thousandths.
    pub(super) once_in_1000: u64,
    pub(super) attacks_in_1000: u64,
    pub(super) seed: u64,
}

/// The start of the log, a Monday.
pub(super) const START: i64 = 1_790_553_600_000;
pub(super) const DAY: i64 = 86_400_000;

struct Moving(Arc<AtomicI64>);

impl Clock for Moving {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}

/// The generator `SplitMix64`.
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// Returns a number below `bound`, small ones more often: halved in each step.
    fn skewed(&mut self, bound: u64) -> u64 {
        let widest = bound >> self.below(5);
        self.below(widest.max(1))
    }

    fn of<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        let at = self.skewed(list.len() as u64);
        &list[usize::try_from(at).unwrap()]
    }
}

/// Writes the log into a store. Returns the kind of each record.
pub(super) fn write(plan: &Plan, store: &Path) -> BTreeMap<ProofId, Kind> {
    let clock = Arc::new(AtomicI64::new(START));
    let text = format!("{}{HOUSE_RULE}", include_str!("../../../../../policies/recommended.toml"));
    let governor = Governor::builder()
        .policies(PolicySet::from_toml(&text).unwrap())
        .durability(Durability::Buffered)
        .clock(Moving(Arc::clone(&clock)))
        .open(store)
        .unwrap();
    let mut chance = Chance(plan.seed);
    let mut kinds = BTreeMap::new();
    let mut once = plan.once.iter().cycle();
    for role in &plan.roles {
        for number in 1..=role.agents {
            governor.agents().register(Agent::new(format!("{}-{number}", role.name)).at_tier(Tier::T4)).unwrap();
        }
    }
    for day in (0..plan.days).filter(|day| day % 7 < 5) {
        let mut clock_time = START + day * DAY + 8 * 3_600_000;
        for role in &plan.roles {
            for number in 1..=role.agents {
                // The last agent of a role joins in the second half.
                if number == role.agents && role.agents > 2 && day < plan.days / 2 {
                    continue;
                }
                let agent = format!("{}-{number}", role.name);
                // Each agent has its own favorites among the scripts.
                let favourites: Vec<&Vec<String>> =
                    (0..role.scripts.len()).map(|at| &role.scripts[(at + number * 3) % role.scripts.len()]).collect();
                for _ in 0..role.a_day {
                    let draw = chance.below(1000);
                    let (kind, calls) = if draw < plan.attacks_in_1000 {
                        (Kind::Attack, vec![chance.of(&plan.attacks).clone()])
                    } else if draw < plan.attacks_in_1000 + plan.once_in_1000 && !plan.once.is_empty() {
                        (Kind::Once, vec![once.next().unwrap().clone()])
                    } else {
                        (Kind::Habit, (*chance.of(&favourites)).clone())
                    };
                    for call in calls {
                        clock_time += 1 + i64::try_from(chance.below(20_000)).unwrap();
                        clock.store(clock_time, Ordering::SeqCst);
                        let call = filled(&call, &mut chance, day);
                        ask(&governor, &agent, &call, kind, &mut chance, &mut kinds);
                    }
                }
            }
        }
    }
    governor.close().unwrap();
    kinds
}

/// Enforces a request, lets a reviewer answer if one is asked, and reports the outcome.
fn ask(
    governor: &Governor,
    agent: &str,
    call: &str,
    kind: Kind,
    chance: &mut Chance,
    kinds: &mut BTreeMap<ProofId, Kind>,
) {
    let Ok(asked) = governor.enforce_input(agent, call) else { return };
    let (mut id, mut decision) = (asked.enforcement.proof_id, asked.enforcement.decision);
    kinds.insert(id, kind);
    if decision == Decision::Escalate && chance.below(10) < 7 {
        let pending = governor.escalations().pending().unwrap();
        let Some(open) = pending.into_iter().find(|open| open.proof_id == id) else { return };
        let review = Review::by("agent-owner");
        if kind == Kind::Attack {
            governor.escalations().reject(open.id, review).unwrap();
        } else {
            let resolved = governor.escalations().approve(open.id, review).unwrap();
            kinds.extend(resolved.proof_id.map(|answer| (answer, kind)));
            // The agent may have lost the required trust meanwhile.
            let Ok(claimed) = governor.escalations().claim(open.id, &asked.parse.intent) else { return };
            (id, decision) = (claimed.proof_id, claimed.decision);
        }
    }
    if decision == Decision::Allow {
        // Half of an attacker's successes are noticed; harmless work sometimes fails.
        let outcome = match (kind, chance.below(100)) {
            (Kind::Attack, 0..50) => Some(Outcome::Failure),
            (Kind::Habit, 0..70) => Some(Outcome::Success),
            _ => None,
        };
        if let Some(outcome) = outcome {
            governor.report(&id, outcome).unwrap();
        }
    }
}

/// Fills the placeholders of a request: recurring files, people and words, and new ones.
fn filled(call: &str, chance: &mut Chance, day: i64) -> String {
    let mut text = call.to_owned();
    for (mark, fill) in [
        ("{file}", file as fn(&mut Chance, i64) -> String),
        ("{doc}", |chance, day| format!("docs/{}/{}.md", chance.of(&MODULES), chance.skewed(20 + day.unsigned_abs()))),
        ("{person}", |chance, day| format!("person{}@house.example", chance.skewed(20 + day.unsigned_abs() / 2))),
        ("{partner}", |chance, _| format!("contact{}@partner{}.example", chance.skewed(6), chance.below(3))),
        ("{page}", |chance, day| format!("https://{}/{}", chance.of(&SITES), chance.skewed(40 + day.unsigned_abs()))),
        ("{word}", |chance, day| format!("topic {}", chance.skewed(100 + day.unsigned_abs()))),
        ("{number}", |chance, _| chance.below(500).to_string()),
    ] {
        while text.contains(mark) {
            text = text.replacen(mark, &fill(chance, day), 1);
        }
    }
    text
}

fn file(chance: &mut Chance, day: i64) -> String {
    let repository = if chance.below(10) < 8 { "app" } else { "site" };
    let end = if chance.below(10) < 8 { "rs" } else { "toml" };
    format!("/projects/{repository}/{}/part{}.{end}", chance.of(&MODULES), chance.skewed(30 + day.unsigned_abs()))
}

/// Replaces addresses and words in a tool call by placeholders.
pub(super) fn loosened(call: &Value) -> String {
    fn walk(value: &mut Value, key: &str) {
        match value {
            Value::String(text) if text.contains('@') => "{person}".clone_into(text),
            Value::String(text) if FREE.contains(&key) => *text = format!("{text} {{word}}"),
            Value::Array(items) => items.iter_mut().for_each(|item| walk(item, key)),
            Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| walk(value, key)),
            _ => {}
        }
    }
    let mut arguments = call["arguments"].clone();
    walk(&mut arguments, "");
    json!({ "tool": call["name"], "arguments": arguments }).to_string()
}

const FREE: &[&str] = &["query", "body", "content", "title", "subject", "description", "location"];
const MODULES: [&str; 7] = ["src", "src/api", "src/store", "tests", "src/parse", "benches", "tools"];
const SITES: [&str; 4] = ["docs.rs/serde", "doc.rust-lang.org/std", "developer.mozilla.org/en", "github.com/house/app"];
const HOUSE_RULE: &str = "\n[[rule]]\nid = \"nothing-to-known-thieves\"\neffect = \"deny\"\n\
                          match = { recipients = [\"*@thief.example\"] }\n";
