//! Tests of `rulekeep watch` in a pseudo-terminal.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

mod terminal;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rulekeep::escalation::{EscalationQuery, EscalationState};
use rulekeep::{Agent, Decision, Governor, Intent, PolicySet, RiskLevel, Tier};
use tempfile::TempDir;
use terminal::Terminal;

const POLICIES: &str = r#"
name = "desk"
[[rule]]
id = "money-needs-a-person"
effect = "escalate"
match.capabilities = ["payment:transfer"]
reviewer = "ann"
"#;

/// Creates a store with a denial and an escalation that waits for ann.
fn store() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let governor = Governor::builder().policies(PolicySet::from_toml(POLICIES).unwrap()).open(&path).unwrap();
    governor.agents().register(Agent::new("clerk-7").at_tier(Tier::T4)).unwrap();
    for (action, capability, decision) in
        [("delete_file", "file:delete", Decision::Deny), ("pay_invoice", "payment:transfer", Decision::Escalate)]
    {
        let intent = Intent::new("clerk-7", action, RiskLevel::High, [capability]).unwrap();
        assert_eq!(governor.enforce(&intent).unwrap().decision, decision);
    }
    governor.close().unwrap();
    (folder, path)
}

fn states(store: &Path) -> Vec<EscalationState> {
    let governor = Governor::open_read_only(store).unwrap();
    let page = governor.escalations().list(&EscalationQuery::all()).unwrap();
    page.items.iter().map(|escalation| escalation.state).collect()
}

#[test]
fn decisions_are_shown_and_a_key_press_approves_an_escalation() {
    let (_folder, store) = store();
    let mut terminal = Terminal::watch(&store, &["--reviewer", "ann"]);
    terminal.wait_for("delete_file");
    terminal.wait_for("Pending escalations: 1");
    assert!(terminal.is_raw());

    // A confirmation is asked first, and nothing is sent unless it is given.
    terminal.press("a");
    terminal.wait_for("approve as ann?");
    terminal.press("n");
    terminal.wait_for("Nothing was sent.");

    terminal.press("a");
    terminal.wait_for("approve as ann?");
    terminal.wait_for("payment:transfer");
    terminal.press("y");
    terminal.wait_for("Pending escalations: 0");
    terminal.wait_for("ALLOW");

    terminal.resize(40, 140);
    terminal.wait_for_line(39, "is approved");
    terminal.press("q");
    terminal.ends_restored(true);
    assert_eq!(states(&store), [EscalationState::Approved]);
}

#[test]
fn every_way_out_restores_the_terminal() {
    let (_folder, store) = store();
    for end in ["q", "\u{3}", "TERM", "HUP"] {
        let mut terminal = Terminal::watch(&store, &[]);
        terminal.wait_for("delete_file");
        if end.len() > 1 {
            terminal.signal(end);
        } else {
            terminal.press(end);
        }
        terminal.ends_restored(true);
    }
    assert_eq!(states(&store), [EscalationState::Pending]);
}

#[test]
fn a_store_that_cannot_be_opened_is_an_error_without_a_screen() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("no-folder");
    std::fs::write(&file, "text").unwrap();
    let mut terminal = Terminal::watch(&file, &[]);
    terminal.wait_for("there is no store in this folder");
    terminal.ends_restored(false);
}

#[test]
fn without_a_terminal_it_says_so_and_ends() {
    let (_folder, store) = store();
    let mut watch = Command::new(env!("CARGO_BIN_EXE_rulekeep"));
    let output = watch.args(["watch", "--store"]).arg(store).stdin(Stdio::null()).output().unwrap();
    assert!(!output.status.success());
    assert!(output.stdout.is_empty(), "{:?}", output.stdout);
    assert!(String::from_utf8_lossy(&output.stderr).contains("expected a terminal on standard input and output"));
}
