//! The console in a browser: headless Chromium, driven by `console.py` with `selenium`, and checked by `axe-core`.
//!
//! If Chromium, Python or npm is missing, the test prints this to standard error and is skipped; with
//! `RULEKEEP_REQUIRE_PEERS` set it fails instead. `RULEKEEP_CONSOLE_RECORDS` sets the number of records in the store,
//! `RULEKEEP_CONSOLE_SHOTS` a folder for screenshots.

use std::path::{Path, PathBuf};
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

#[test]
fn the_console_does_in_a_browser_what_its_page_says() {
    if !nightly() {
        return;
    }
    let (python, axe) = match selenium_and_axe() {
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
    for agent in ["a", "b", "bulk", HOSTILE, "with/slash?and#hash", "שלום"] {
        governor.agents().register(Agent::new(agent).at_tier(Tier::T4)).unwrap();
    }
    for number in 0..60 {
        governor.agents().register(Agent::new(format!("fleet-{number:03}")).at_tier(Tier::T2)).unwrap();
    }
    for _ in 0..records {
        // It is enqueued, and on disk after the next flush.
        drop(governor.enforce_pending(&reading("bulk")).unwrap());
    }
    for number in 0..40 {
        let proof = governor.enforce(&reading("a")).unwrap().proof_id;
        let outcome = if number % 4 == 3 { Outcome::Failure } else { Outcome::Success };
        governor.report(&proof, outcome).unwrap();
    }
    governor.trust().adjust(HOSTILE, Score::try_from(700).unwrap(), &format!("note {HOSTILE}")).unwrap();
    let asked = |agent: &str, risk| Intent::new(agent, "send_email", risk, ["email:send"]).unwrap();
    for number in 0..30 {
        governor.enforce(&asked("b", RiskLevel::Medium).with_context("number", number)).unwrap();
    }
    governor.enforce(&asked("a", RiskLevel::High).with_context("to", "ann@example.org")).unwrap();
    governor.enforce(&intent(HOSTILE, &["file:delete"]).with_context(HOSTILE, HOSTILE)).unwrap();
    let context = [(HOSTILE.to_owned(), HOSTILE.into())].into_iter().collect();
    let text = format!("Send an email to ann@example.org: {HOSTILE}");
    let hostile = governor.enforce_input(HOSTILE, Input::new(&text).context(&context)).unwrap();
    assert_eq!(hostile.enforcement.decision, Decision::Escalate, "{}", hostile.enforcement.reasoning);
    governor.log().flush().unwrap();
}

/// Runs the script on the page; its findings are on its output.
fn check(python: &Path, told: &Value) {
    let mut script = Command::new(python);
    script.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/peers/console.py"));
    let said = programs::succeeded(&mut script, told.to_string().as_bytes(), programs::LATER);
    assert!(said.trim_end().ends_with("all as expected"), "{said}");
}

/// A Python with selenium, and axe-core's file: fetched once, and kept with the build. Otherwise the reason there is
/// none.
fn selenium_and_axe() -> Result<(PathBuf, PathBuf), String> {
    for program in ["chromium", "chromedriver", "python3", "npm"] {
        programs::found(program)?;
    }
    let python = programs::python("selenium==4.51.0")?;
    let folder = programs::kept("axe-core==4.14.1");
    let axe = folder.join("node_modules/axe-core/axe.min.js");
    if !axe.exists() {
        let install = ["install", "--silent", "--no-save", "--ignore-scripts", "axe-core@4.14.1", "--prefix"];
        programs::done(Command::new("npm").args(install).arg(&folder), programs::LATER)?;
    }
    Ok((python, axe))
}
