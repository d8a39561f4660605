//! Tests of `policy diff`, `replay` and `shadow`: the effect of another set on decisions.

use std::path::Path;

use clap::Parser as _;
use rulekeep::{Agent, Governor, PolicySet, Tier};
use rulekeep_cli::policy::{ShadowArguments, run_shadow};
use rulekeep_server::Access;
use rulekeep_server::gateway::Gateway;
use serde_json::{Value, json};

use super::commands::{file, policy, stdout};

const READS: &str =
    "name = \"reads\"\n[[rule]]\nid = \"reads\"\neffect = \"allow\"\nmatch.capabilities = [\"*:read\"]\n";
const MORE: &str = "name = \"more\"\n[[rule]]\nid = \"reads\"\neffect = \"allow\"\n\
                    match = { capabilities = [\"*:read\"], tiers = { min = \"T4\" } }\n\
                    [[rule]]\nid = \"mail\"\neffect = \"allow\"\nmatch.capabilities = [\"email:send\"]\n";

/// A store with a read that was allowed, and a mail that was denied.
fn store(folder: &Path) {
    let set = PolicySet::from_toml(READS).unwrap();
    let governor = Governor::builder().policies(set).open(folder).unwrap();
    governor.agents().register(Agent::new("desk-1").at_tier(Tier::T3)).unwrap();
    governor.enforce_input("desk-1", "Read the file notes.txt").unwrap();
    governor.enforce_input("desk-1", "Send the agenda to ann@example.com").unwrap();
    governor.close().unwrap();
}

fn json_of(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn a_replay_names_agent_action_and_time_and_writes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    let more = file("more.toml", MORE);
    let (store, more) = (folder.path().to_str().unwrap(), more.to_str().unwrap());
    let before = fingerprint(folder.path());
    let output = policy(&["replay", "--store", store, more]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains("Z  desk-1  send_emailaddress  DENY (no rule) -> ALLOW (mail)  prf_"), "{text}");
    assert!(lines[1].contains("Z  desk-1  read_file  ALLOW (reads) -> DENY (no rule)  prf_"), "{text}");
    assert_eq!(lines[2], "2 of 2 decisions would differ");
    let report = json_of(&policy(&["replay", "--store", store, more, "--json"]));
    assert_eq!(
        (&report["changes"][0]["action"], &report["changes"][0]["now"]),
        (&json!("send_emailaddress"), &json!("ALLOW"))
    );

    let narrowed = policy(&["replay", "--store", store, more, "--to", "2020-01-01T00:00:00Z"]);
    assert_eq!((narrowed.status.code(), stdout(&narrowed).as_str()), (Some(0), "0 of 0 decisions would differ\n"));
    assert_eq!(policy(&["replay", "--store", "no-such-folder", more]).status.code(), Some(2));
    assert_eq!(fingerprint(folder.path()), before, "the store is only read");
}

/// The files of a store and their bytes.
fn fingerprint(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push((path.display().to_string(), std::fs::read(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}

#[test]
fn a_diff_tells_rules_by_id_and_decisions_loosened_first() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path());
    let (reads, more) = (file("reads.toml", READS), file("more.toml", MORE));
    let (reads, more) = (reads.to_str().unwrap(), more.to_str().unwrap());
    let output = policy(&["diff", reads, more, "--store", folder.path().to_str().unwrap()]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text.starts_with(
            "added    rule mail\nchanged  rule reads\n           match.tiers: absent -> {\"min\":\"T4\"}\n"
        ),
        "{text}"
    );
    let (loosened, tightened) = (text.find("send_emailaddress").unwrap(), text.find("read_file").unwrap());
    assert!(loosened < tightened && text.contains("DENY (no rule) -> ALLOW (mail)"), "{text}");
    assert!(text.ends_with("2 rules differ; 2 of 2 decisions differ\n"), "{text}");

    let one = "[[case]]\nname = \"mail\"\nintent = { action = \"send_mail\", capabilities = [\"email:send\"] }\nexpect = { decision = \"DENY\" }\n";
    let cases = file("diff.cases.toml", one);
    let report = json_of(&policy(&["diff", reads, more, "--cases", cases.to_str().unwrap(), "--json"]));
    assert_eq!(report["decisions"][0]["request"], "mail");
    assert_eq!(report["decisions"][0]["after"]["decision"], "ALLOW");
    assert_eq!(report["compared"], 1);

    let other_form =
        json!({ "name": "x", "rule": [{ "effect": "allow", "id": "reads", "match": { "capabilities": ["*:read"] } }] });
    let same = file("same.json", &other_form.to_string());
    let output = policy(&["diff", reads, same.to_str().unwrap()]);
    assert!(output.status.success(), "another format is no difference: {}", stdout(&output));
    assert_eq!(policy(&["diff", reads, "no-such.toml"]).status.code(), Some(2));
}

#[derive(clap::Parser)]
struct Line {
    #[command(flatten)]
    shadow: ShadowArguments,
}

#[test]
fn a_shadow_set_is_set_shown_and_removed_by_service_calls() {
    let set = PolicySet::from_toml(READS).unwrap();
    let governor = Governor::builder().policies(set).auto_register().open_in_memory().unwrap();
    let gateway = Gateway::new(&governor).unwrap();
    let make = |call| Access::Everything.make(&gateway, call).map_err(|error| error.to_string());
    let more = file("shadow.toml", MORE);
    let run = |arguments: &[&str]| {
        let line = Line::try_parse_from([&["shadow"], arguments].concat()).unwrap();
        run_shadow(&line.shadow, &make).map_err(|error| error.to_string())
    };
    assert_eq!(run(&[more.to_str().unwrap()]), Ok(true));
    governor.enforce_input("desk-1", "Send the agenda to ann@example.com").unwrap();
    assert_eq!(run(&[]), Ok(false), "it would have decided otherwise");
    assert_eq!(run(&["--clear", "--json"]), Ok(true));
    assert_eq!(governor.policies().shadow_report(), None);
    assert!(run(&["no-such.toml"]).unwrap_err().contains("no-such.toml"));
}
