//! Tests of the commands' output: tables and JSON, no control characters, colors only on a terminal; and of exit
//! codes.

use std::process::Command;

use crate::fixture::{PROGRAM, Place};

#[test]
fn no_control_character_of_the_log_reaches_the_reader() {
    let place = Place::new();
    let (question, record) = (place.id("esc_"), place.id("esc_").replace("esc_", "prf_"));
    for (verb, says) in [
        (vec!["escalations", "show", question], [r"  | \u{1b}[31m", r"lunch\u{9b}2J\u{202e}"]),
        (vec!["escalations", "show", question, "--json"], [r"123\n\u001b[31m", r"lunch\u009b2J\u202e"]),
        (vec!["escalations", "list"], [r"123\u{a}\u{1b}[31m", "pending"]),
        (vec!["log", "show", &record, "--evidence"], [r"123\n\u001b[31m", r"lunch\u{9b}2J\u{202e}"]),
        (vec!["log", "show", &record, "--evidence", "--json"], [r"123\n\u001b[31m", r"lunch\u009b2J\u202e"]),
    ] {
        let printed = place.ok(&verb);
        assert!(says.iter().all(|text| printed.contains(text)), "{verb:?}: {printed}");
        let is_hidden = |one: char| (one.is_control() && one != '\n') || one == '\u{202e}';
        assert!(!printed.chars().any(is_hidden), "{verb:?}: {printed:?}");
    }
}

#[test]
fn colors_are_for_a_terminal_that_wants_them() {
    let place = Place::new();
    let on_terminal = |environment: &[(&str, &str)]| {
        let mut script = Command::new("script");
        script.args(["-qec", &format!("{PROGRAM} log query"), "/dev/null"]);
        place.prepare(&mut script);
        script.env("TERM", "xterm-256color").env_remove("NO_COLOR").envs(environment.iter().copied());
        script.output().ok().map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let Some(colored) = on_terminal(&[]) else {
        eprintln!("skipped: there is no program script to make a terminal with");
        return;
    };
    assert!(colored.contains("\u{1b}[31mDENY"), "{colored:?}");
    for plain in
        [on_terminal(&[("NO_COLOR", "1")]), on_terminal(&[("TERM", "dumb")]), Some(place.ok(&["log", "query"]))]
    {
        assert!(!plain.unwrap().contains("\u{1b}["));
    }
}

#[test]
fn mistyped_filters_are_errors() {
    let place = Place::new();
    for (arguments, says) in [
        (vec!["--decision", "denied"], "expected one of"),
        (vec!["--risk", "hihg"], "expected one of"),
        (vec!["--outcome", "sucess"], "expected one of"),
        (vec!["--from", "someday"], "ISO 8601"),
        (vec!["--desicion", "deny"], "--decision"),
        (vec!["--order", "newset"], "newest"),
        (vec!["--intent", "int_none"], "expected"),
        (vec!["--cursor", "nowhere"], "expected"),
        (vec!["--page-size", "2000"], "pageSize"),
        (vec!["--page", "0"], "page"),
        (vec!["--call", "1"], "--agent"),
    ] {
        let said = place.fails(2, &[&["log", "query"], arguments.as_slice()].concat());
        assert!(said.contains(says), "{arguments:?}: {said}");
    }
    let count = |arguments: &[&str]| place.json(&[&["log", "query"], arguments].concat())["total"].as_u64().unwrap();
    let all = count(&[]);
    assert_eq!(count(&["--from", "1d", "--to", "today"]), all);
    assert_eq!(count(&["--to", "1d"]) + count(&["--from", "2020-01-01", "--to", "2020-12-31"]), 0);
    let said = place.fails(1, &["log", "query", "--agent", "suport-1"]);
    assert!(said.contains("AGENT_NOT_FOUND") && said.contains("rulekeep agents list"), "{said}");
    for (command, list) in [
        (["escalations", "show", "esc_01m89vy2x6z7e9r8r000000003"], "rulekeep escalations list"),
        (["log", "show", "prf_01m89vy2x6z7e9r8r000000003"], "rulekeep log query"),
    ] {
        let said = place.fails(1, &command);
        assert!(said.contains("PROOF_NOT_FOUND") && said.contains(list), "{command:?}: {said}");
    }
    place.fails(2, &["escalations", "list", "--state", "open"]);
}

#[test]
fn csv_and_json_show_what_the_table_shows() {
    let place = Place::new();
    let csv = place.ok(&["log", "query", "--csv"]);
    let mut lines = csv.split_terminator("\r\n");
    assert_eq!(lines.next(), Some("time,id,agent,decision,risk,outcome,action,tool,command,reasoning"));
    let items = place.json(&["log", "query"])["items"].clone();
    assert_eq!(lines.count(), items.as_array().unwrap().len());
    for item in items.as_array().unwrap() {
        let action = item["request"]["action"].as_str().unwrap();
        assert!(csv.contains(item["id"].as_str().unwrap()) && csv.contains(action), "{csv}");
        assert!(place.ok(&["log", "query"]).contains(action) && item["request"]["tool"].is_null(), "{item}");
    }
    place.fails(2, &["log", "query", "--csv", "--json"]);
}

#[test]
fn statistics_without_an_agent_count_all() {
    let place = Place::new();
    let all = place.json(&["log", "stats"]);
    let one = place.json(&["log", "stats", "support-1"]);
    for field in ["totalRecords", "decisionBreakdown", "riskBreakdown", "period"] {
        assert_eq!(all[field], one[field], "{field}");
    }
    assert_eq!(place.json(&["log", "stats", "--to", "2020-12-31"])["totalRecords"], 0);
}

#[test]
fn exit_codes_are_those_of_the_help() {
    let place = Place::new();
    place.fails(2, &["log"]);
    place.fails(3, &["log", "tail", "--follow"]);
    place.fails(3, &["status"]);
    place.fails(1, &["log", "verify", "broken"]);
    place.fails(1, &["log", "show", "prf_none"]);
    let said = place.fails(2, &["log", "erase", "--cause", "none", "--yes"]);
    assert!(said.contains("--record"), "{said}");
    let help = place.ok(&["--help"]);
    for code in ["0    done", "1    failed", "2    wrong use", "3    the daemon", "130  ended"] {
        assert!(help.contains(code), "{code}: {help}");
    }
}

#[test]
fn writing_verbs_need_the_operators_key() {
    let place = Place::with_daemon();
    let escalation = place.id("esc_");
    for verb in [
        vec!["escalations", "approve", escalation],
        vec!["escalations", "reject", escalation],
        vec!["kill-switch", "set", "--all"],
        vec!["keys", "create", "--scope", "admin"],
        vec!["keys", "revoke", place.id("key_")],
        vec!["agents", "suspend", "support-1"],
        vec!["agents", "trust", "support-1", "--score", "900", "--note", "more"],
        vec!["webhooks", "remove", place.id("whk_")],
        vec!["tasks", "open", "support-1", "Read the notes"],
        vec!["log", "checkpoint"],
        vec!["down"],
    ] {
        for (key, says) in [(None, "RULEKEEP_OPERATOR_KEY"), (Some("rkp_admin_wrong"), "UNAUTHORIZED")] {
            let mut command = place.command(&verb);
            command.env_remove("RULEKEEP_OPERATOR_KEY").envs(key.map(|key| ("RULEKEEP_OPERATOR_KEY", key)));
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{verb:?}: {said}");
            assert!(said.contains(says), "{verb:?}: {said}");
        }
    }
}

#[test]
fn every_shell_has_completions_and_every_verb_a_page() {
    let place = Place::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let completions = place.ok(&["completions", shell]);
        assert!(completions.contains("kill-switch") && completions.contains("suspend"), "{shell}");
    }
    assert!(place.ok(&["man"]).contains(".TH rulekeep 1"));
    let page = place.ok(&["man", "log", "query"]);
    assert!(page.contains("decision") && page.contains("Examples:"), "{page}");
    place.fails(1, &["man", "log", "quarry"]);
}
