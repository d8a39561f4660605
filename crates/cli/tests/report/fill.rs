//! Stores to report about: 90 days of a few agents' decisions, any number of them.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rulekeep::escalation::Review;
use rulekeep::intent::Input;
use rulekeep::system::{Clock, Timestamp};
use rulekeep::{Agent, Decision, Durability, Governor, Intent, Outcome, PolicySet, RiskLevel, Tier};

/// 2026-01-01T00:00:00Z.
pub(crate) const BEGIN: i64 = 1_767_225_600_000;
pub(crate) const DAY: i64 = 86_400_000;

const POLICIES: &str = r#"
name = "desk"
[[rule]]
id = "no-deletions"
effect = "deny"
match.capabilities = ["file:delete"]
[[rule]]
id = "money-needs-a-person"
effect = "escalate"
match.capabilities = ["payment:transfer"]
reviewer = "ann"
expires = "1d"
[[rule]]
id = "daily-work"
effect = "allow"
match.capabilities = ["document:read", "email:send", "calendar:write", "customer:read"]
"#;

const ASKED: [(&str, RiskLevel, &[&str]); 8] = [
    ("read_document", RiskLevel::Low, &["document:read"]),
    ("read_document", RiskLevel::Low, &["document:read"]),
    ("send_email", RiskLevel::Medium, &["email:send"]),
    ("plan_meeting", RiskLevel::Low, &["calendar:write", "email:send"]),
    ("export_contacts", RiskLevel::High, &["customer:read"]),
    (DELETES, RiskLevel::High, &["file:delete"]),
    ("search_web", RiskLevel::Low, &["web:read"]),
    ("read_document", RiskLevel::Low, &["document:read"]),
];

/// The action of requests that are calls of a shell, and denied.
const DELETES: &str = "delete_folder";
pub(crate) const COMMAND: &str = "rm -r /home/ann/Documents/ReconciliationReports/european-subsidiaries/overview-2026";

/// A clock that a test sets.
#[derive(Clone)]
struct Set(Arc<AtomicI64>);

impl Clock for Set {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// Creates a store with this number of requests; answers to escalations are additional records.
pub(crate) fn fill(store: &Path, requests: u64) {
    let clock = Set(Arc::new(AtomicI64::new(BEGIN)));
    let builder = Governor::builder().durability(Durability::Buffered).clock(clock.clone());
    let governor = builder.policies(PolicySet::from_toml(POLICIES).unwrap()).open(store).unwrap();
    for agent in 0..12 {
        governor.agents().register(Agent::new(named(agent)).at_tier(Tier::T4)).unwrap();
    }
    for request in 0..requests {
        let mixed = request.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let at = BEGIN + i64::try_from(u128::from(request) * 90 * 86_400_000 / u128::from(requests)).unwrap();
        clock.0.store(at, Ordering::Relaxed);
        // The first agents have most of the work.
        let agent = (mixed % 144).isqrt();
        let transfers = request % 97 == 3;
        let (action, risk, capabilities) = ASKED[(mixed >> 12) as usize % ASKED.len()];
        let intent = if transfers {
            Intent::new(&named(agent), "pay_invoice", RiskLevel::High, ["payment:transfer"]).unwrap()
        } else {
            Intent::new(&named(agent), action, risk, capabilities).unwrap()
        };
        let verdict = if intent.parsed_action.as_str() == DELETES {
            let call = serde_json::json!({ "tool": "Bash", "arguments": { "command": COMMAND } }).to_string();
            governor.enforce_input(&named(agent), Input::new(&call)).unwrap().enforcement
        } else {
            governor.enforce(&intent).unwrap()
        };
        if verdict.decision == Decision::Escalate {
            answer(&governor, &clock, request, at);
        } else if verdict.decision == Decision::Allow && mixed % 3 == 0 {
            let fails = mixed % 17 == 0 || (agent == 10 && request > requests / 2 && mixed % 4 == 0);
            let outcome = if fails { Outcome::Failure } else { Outcome::Success };
            governor.report(&verdict.proof_id, outcome).unwrap();
        }
    }
    governor.close().unwrap();
}

fn answer(governor: &Governor, clock: &Set, request: u64, at: i64) {
    let pending = governor.escalations().pending().unwrap();
    let Some(asked) = pending.last() else { return };
    let seconds = i64::try_from(request * 37 % 300).unwrap();
    match request % 5 {
        0..=2 => {
            clock.0.store(at + seconds * 1000, Ordering::Relaxed);
            governor.escalations().approve(asked.id, Review::by("ann")).unwrap();
        }
        3 => {
            clock.0.store(at + seconds * 4000, Ordering::Relaxed);
            governor.escalations().reject(asked.id, Review::by("ann")).unwrap();
        }
        _ => {}
    }
}

/// Includes an agent whose name is markup, and one with a long name.
fn named(agent: u64) -> String {
    match agent {
        8 => "customer-support-conversation-summarizer-production-2".to_owned(),
        9 => "<img/src=x/onerror=alert(1)>".to_owned(),
        _ => format!("agent-{agent}"),
    }
}

/// Runs `rulekeep report` on a store.
pub(crate) fn report(store: &Path, to: &Path, more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rulekeep"));
    command.args(["report", "--store"]).arg(store).arg("--out").arg(to).args(more).output().unwrap()
}
