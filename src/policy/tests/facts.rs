//! Clauses over facts: an allow needs all, a refusal any, and what is unread fits no allow and every refusal.

use serde_json::{Value, json};

use super::*;
use crate::model::Decision;

fn parsed(targets: &[(&str, &str)], unread: &[&str]) -> Intent {
    let target = |(kind, value): &(&str, &str)| json!({ "kind": kind, "role": "to", "value": value });
    let facts: Value = json!({
        "tool": "Bash", "formats": ["tool_call", "shell"],
        "targets": targets.iter().map(target).collect::<Vec<_>>(),
        "unread": unread.iter().map(|kind| json!({ "kind": kind, "found": "x" })).collect::<Vec<_>>(),
    });
    intent("send_mail", &["email:send"]).with_context("facts", facts)
}

fn rule(effect: &str, clause: &str) -> PolicySet {
    let all = "[[rule]]\nid = \"all\"\neffect = \"allow\"\n";
    let rest = if effect == "deny" { all } else { "" };
    let text = format!("name = \"t\"\n[[rule]]\nid = \"a\"\neffect = \"{effect}\"\nmatch = {{ {clause} }}\n{rest}");
    PolicySet::from_toml(&text).unwrap()
}

#[test]
fn an_allow_needs_every_value_and_a_deny_one() {
    let ours = ("recipient", "ann@ours.example");
    let theirs = ("recipient", "eve@evil.example");
    let file = ("path", "/srv/a");
    for (effect, clause, targets, unread, allowed) in [
        ("allow", "recipients = [\"*@ours.example\"]", &[ours][..], &[][..], true),
        ("allow", "recipients = [\"*@OURS.example\"]", &[ours, file], &[], true),
        ("allow", "recipients = [\"*@ours.example\"]", &[ours, theirs], &[], false),
        ("allow", "recipients = [\"*@ours.example\"]", &[], &[], false),
        ("allow", "recipients = [\"*@ours.example\"]", &[ours], &["target"], false),
        ("allow", "recipients = [\"*@ours.example\"]", &[ours], &["argument"], false),
        ("allow", "recipients = [\"*@ours.example\"]", &[ours], &["text"], true),
        ("allow", "targets = [\"*@ours.example\"]", &[ours, file], &[], false),
        ("allow", "context = [{ key = \"target\", matches = \"@ours[.]example$\" }]", &[ours, theirs], &[], false),
        ("allow", "tools = [\"bash\"]", &[], &[], true),
        ("allow", "formats = [\"tool_call\"]", &[], &[], false),
        ("deny", "recipients = [\"*@evil.example\"]", &[ours, theirs], &[], false),
        ("deny", "recipients = [\"*@evil.example\"]", &[ours], &[], true),
        ("deny", "recipients = [\"*@evil.example\"]", &[ours], &["target"], false),
        ("deny", "formats = [\"shell\"]", &[], &[], false),
        ("deny", "formats = [\"sql\"]", &[], &[], true),
        ("deny", "tools = [\"other\"]", &[], &["target"], true),
    ] {
        let decision = decide(&rule(effect, clause), &parsed(targets, unread)).decision;
        assert_eq!(decision == Decision::Allow, allowed, "{effect} {clause} {targets:?} {unread:?}: {decision}");
    }
}

#[test]
fn of_an_intent_that_was_built_the_target_of_its_context_counts() {
    let policies = rule("allow", "targets = [\"*@ours.example\"]");
    for (target, allowed) in [
        (json!("ann@ours.example"), true),
        (json!(["ann@ours.example", "eve@evil.example"]), false),
        (json!({ "a": 1 }), false),
        (Value::Null, false),
    ] {
        let asked = intent("send_mail", &["email:send"]).with_context("target", target.clone());
        assert_eq!(decide(&policies, &asked).decision == Decision::Allow, allowed, "{target}");
    }
}

#[test]
fn an_explanation_names_the_values_that_did_not_match() {
    let policies = rule("allow", "recipients = [\"*@ours.example\"]");
    let asked = parsed(&[("recipient", "eve@evil.example")], &[]);
    let why = &policies.traces(&request(&asked, Tier::T3, RiskLevel::Medium))[0].why;
    assert!(why.contains("facts.recipients is \"eve@evil.example\""), "{why}");
}
