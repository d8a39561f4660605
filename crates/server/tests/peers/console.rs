//! The console in a browser: headless Chromium, driven by `console.py` with `selenium`, and checked by `axe-core`.
//!
//! If Chromium, Python or npm is missing, the test prints this to standard error and is skipped; with
//! `RULEKEEP_REQUIRE_PEERS` set it fails instead. `RULEKEEP_CONSOLE_RECORDS` sets the number of records in the store,
//! `RULEKEEP_CONSOLE_SHOTS` a folder for screenshots.

use std::path::Path;
use std::process::Command;

use rulekeep::intent::Input;
use rulekeep::intent::InputText;
use rulekeep::trust::Score;
use rulekeep::{Agent, Decision, Durability, Governor, Intent, Outcome, RiskLevel, Tier};
use rulekeep_server::gateway::{Gateway, KeyDraft, Plan, Scope};
use rulekeep_server::http::{Server, console, router};
use serde_json::{Value, json};

use crate::common::{self, intent, programs, reading};
use crate::nightly;

/// Text that could be run, displayed as something else, or be invisible.
const HOSTILE: &str = "<img src=x onerror=\"window.hacked=1\">\u{202e}live\u{200b}\u{3164}\u{feff}&lt;b&gt;'\"`${1}";

/// An agent's name of markup; characters that are invisible or change the direction of text are refused in names.
const HOSTILE_NAME: &str = "<img src=x onerror=\"window.hacked=1\">&lt;b&gt;'\"`${1}";

/// A name, and a command with a path, that are longer than a column is wide.
const LONG_NAME: &str = "customer-support-conversation-summarizer-production-2";
const COMMAND: &str = "cat /home/ann/Documents/ReconciliationReports/european-subsidiaries/2026-quarterly-overview.txt";

#[test]
fn the_console_does_in_a_browser_what_its_page_says() {
    if !nightly() {
        return;
    }
    let (python, axe) = match programs::selenium_and_axe() {
        Ok(found) => found,
        Err(why) => return programs::pass_over(&why),
    };
    let records = std::env::var("RULEKEEP_CONSOLE_RECORDS").map_or(20_000, |text| text.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let governor =
        common::builder().durability(Durability::Buffered).input_text(InputText::Whole).open(folder.path()).unwrap();
    fill(&governor, records);
    let gateway = Gateway::new(&governor).unwrap();
    let made = |scope, plan| gateway.keys().create(KeyDraft::new(scope, plan)).unwrap();
    let (admin, free) = (made(Scope::Admin, Plan::enterprise(60_000, 1_000).unwrap()), made(Scope::Admin, Plan::Free));
    let (agent, revoked) = (made(Scope::Agent, Plan::Pro), made(Scope::Admin, Plan::Pro));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let app = router(&gateway).merge(console(&gateway));
    runtime.spawn(async move { Server::new().serve(listener, app, std::future::pending()).await });
    let told = json!({
        "url": url,
        "axe": axe,
        "records": records,
        "hostile": HOSTILE,
        "hostileName": HOSTILE_NAME,
        "longName": LONG_NAME,
        "command": COMMAND,
        "keys": {
            "admin": admin.key.expose(),
            "free": free.key.expose(),
            "agent": agent.key.expose(),
            "revoked": revoked.key.expose(),
            "revokedId": revoked.info.id,
        },
    });
    check(&python, &told);
    let approved = governor.verify().unwrap();
    assert!(approved.valid);
}

/// Creates agents, escalations, hostile texts, and the requested number of records.
fn fill(governor: &Governor, records: u64) {
    for agent in ["a", "b", "bulk", HOSTILE_NAME, "with/slash?and#hash", "שלום"] {
        governor.agents().register(Agent::new(agent).at_tier(Tier::T4)).unwrap();
    }
    for number in 0..59 {
        governor.agents().register(Agent::new(format!("fleet-{number:03}")).at_tier(Tier::T2)).unwrap();
    }
    governor.agents().register(Agent::new(LONG_NAME).at_tier(Tier::T4)).unwrap();
    for _ in 0..records {
        // It is enqueued, and on disk after the next flush.
        drop(governor.enforce_pending(&reading("bulk")).unwrap());
    }
    for number in 0..40 {
        let proof = governor.enforce(&reading("a")).unwrap().proof_id;
        let outcome = if number % 4 == 3 { Outcome::Failure } else { Outcome::Success };
        governor.report(&proof, outcome).unwrap();
    }
    governor.trust().adjust(HOSTILE_NAME, Score::try_from(700).unwrap(), &format!("note {HOSTILE}")).unwrap();
    let asked = |agent: &str, risk| Intent::new(agent, "send_email", risk, ["email:send"]).unwrap();
    for number in 0..30 {
        governor.enforce(&asked("b", RiskLevel::Medium).with_context("number", number)).unwrap();
    }
    governor.enforce(&asked("a", RiskLevel::High).with_context("to", "ann@example.org")).unwrap();
    governor.enforce(&intent(HOSTILE_NAME, &["file:delete"]).with_context(HOSTILE, HOSTILE)).unwrap();
    let context = [(HOSTILE.to_owned(), HOSTILE.into())].into_iter().collect();
    // In a sentence, the signs could be read as those of a command.
    let text = json!({ "tool": "send_email", "arguments": { "to": "ann@example.org", "body": HOSTILE } }).to_string();
    let hostile = governor.enforce_input(HOSTILE_NAME, Input::new(&text).context(&context)).unwrap();
    assert_eq!(hostile.enforcement.decision, Decision::Escalate, "{}", hostile.enforcement.reasoning);
    let call = json!({ "tool": "Bash", "arguments": { "command": COMMAND } }).to_string();
    let read = governor.enforce_input(LONG_NAME, Input::new(&call)).unwrap();
    assert_eq!(read.enforcement.decision, Decision::Allow, "{}", read.enforcement.reasoning);
    governor.log().flush().unwrap();
}

/// Runs the script on the page; its findings are on its output.
fn check(python: &Path, told: &Value) {
    let mut script = Command::new(python);
    script.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/console.py"));
    let said = programs::succeeded(&mut script, told.to_string().as_bytes(), programs::LATER);
    assert!(said.trim_end().ends_with("all as expected"), "{said}");
}
