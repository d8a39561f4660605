//! Tests of the command line: exit codes and output.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

pub(crate) fn policy(arguments: &[&str]) -> Output {
    run(&[&["policy"], arguments].concat())
}

pub(crate) fn run(arguments: &[&str]) -> Output {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    Command::new(env!("CARGO_BIN_EXE_rulekeep")).args(arguments).current_dir(root).output().unwrap()
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Creates a file in a temporary folder that the operating system cleans up.
pub(crate) fn file(name: &str, text: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn the_recommended_cases_pass_and_too_little_coverage_fails() {
    let recommended = ["test", "policies/recommended.toml", "policies/recommended.cases.toml"];
    let output = policy(&[&recommended[..], &["--min-coverage", "100"]].concat());
    assert!(output.status.success(), "{}", stdout(&output));
    let report: serde_json::Value =
        serde_json::from_slice(&policy(&[&recommended[..], &["--json"]].concat()).stdout).unwrap();
    assert_eq!(report["coverage"]["rulesPercent"], 100.0);

    let one = "[[case]]\nname = \"a\"\nintent = { action = \"b\", capabilities = [\"web:read\"] }\nexpect = { decision = \"ALLOW\" }\n";
    let cases = file("one.cases.toml", one);
    let output = policy(&["test", "policies/recommended.toml", cases.to_str().unwrap(), "--min-coverage", "90"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("coverage is below 90 %: rules "));
}

#[test]
fn a_problem_is_printed_with_its_place_and_bad_usage_exits_2() {
    let wrong = file("wrong.toml", "name = \"w\"\n[[rule]]\nid = \"a\"\neffect = \"alow\"\n");
    let output = policy(&["check", wrong.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stdout(&output).contains("wrong.toml:4:10: error: unknown effect \"alow\"; did you mean \"allow\"?"));
    let output = policy(&["check", "policies/recommended.toml"]);
    assert!(output.status.success() && stdout(&output).contains("\"recommended\", "), "{}", stdout(&output));
    for usage in [&["judge"][..], &["check"], &["test", "a.toml", "b.toml", "--min-coverage", "101"]] {
        assert_eq!(policy(usage).status.code(), Some(2), "{usage:?}");
    }
}

#[test]
fn a_decision_is_explained_rule_by_rule_and_schemas_are_printed() {
    let intent =
        r#"{"agentId": "a", "parsedAction": "open_page", "riskLevel": "LOW", "requiredCapabilities": ["web:read"]}"#;
    let intent = file("intent.json", intent);
    let options = ["--tier", "T3", "--label", "eu", "--attribute", "senior=true", "--at", "2026-11-23T09:00:00Z"];
    let named = ["explain", "--policy", "policies/recommended.toml", "--intent", intent.to_str().unwrap()];
    let output = policy(&[&named[..], &options].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(stdout(&output).starts_with("open_page at T3, risk LOW: ALLOW\n"), "{}", stdout(&output));
    assert!(stdout(&output).contains("\ndecided by:\n  line "));
    let schema: serde_json::Value = serde_json::from_slice(&policy(&["schema", "--cases"]).stdout).unwrap();
    assert_eq!(schema["$id"], "policy-cases.schema.json");
}
