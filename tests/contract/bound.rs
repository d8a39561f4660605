//! A parsed intent is bound to its parse, and a built one has no facts but those that its caller can set.

use rulekeep::intent::{Capability, IntentId};
use rulekeep::{Agent, Decision, Governor, Intent, PolicySet, RiskLevel, Tier};
use serde_json::{Value, json};

const OURS: &str = r#"
name = "ours"
[[rule]]
id = "our-people"
effect = "allow"
match = { capabilities = ["email:send"], recipients = ["*@ours.example"] }
[[rule]]
id = "reading"
effect = "allow"
match = { capabilities = ["*:read"], risk = { max = "LOW" } }
"#;

fn governor() -> Governor {
    let governor = Governor::builder().policies(PolicySet::from_toml(OURS).unwrap()).open_in_memory().unwrap();
    for agent in ["desk", "other"] {
        governor.agents().register(Agent::new(agent).at_tier(Tier::T4)).unwrap();
    }
    governor
}

fn mail(to: &[&str]) -> String {
    json!({ "tool": "send_email", "arguments": { "to": to, "subject": "Lunch", "body": "At noon?" } }).to_string()
}

fn decide(governor: &Governor, intent: &Intent) -> Decision {
    governor.enforce(intent).unwrap().decision
}

/// The intent as it arrives in JSON, with a context key set by its sender.
fn sent(intent: &Intent, key: &str, value: &Value) -> Intent {
    let mut json = serde_json::to_value(intent).unwrap();
    json["context"][key] = value.clone();
    Intent::from_json(&json).unwrap()
}

#[test]
fn what_is_asked_by_id_is_never_less_than_what_was_parsed() {
    let governor = governor();
    let parsed = governor.parse("desk", mail(&["ann@ours.example", "eve@evil.example"]).as_str()).unwrap().intent;
    assert_eq!(decide(&governor, &parsed), Decision::Deny);
    let mut calmer = parsed.clone();
    calmer.risk_level = RiskLevel::Low;
    calmer.required_capabilities = vec!["information:read".parse::<Capability>().unwrap()];
    calmer.context.clear();
    let verdict = governor.enforce(&calmer).unwrap();
    assert_eq!(verdict.decision, Decision::Deny);
    assert!(verdict.denied_capabilities.contains(&"email:send".parse().unwrap()));
    let ours = json!({ "targets": [{ "kind": "recipient", "role": "to", "value": "ann@ours.example" }] });
    let narrowed = sent(&parsed, "facts", &ours).with_context("target", "ann@ours.example");
    assert_eq!(decide(&governor, &narrowed), Decision::Deny);
    let ours = governor.parse("desk", mail(&["ann@ours.example"]).as_str()).unwrap().intent;
    assert_eq!(decide(&governor, &ours), Decision::Allow);
    assert_eq!(decide(&governor, &ours.clone().with_context("note", "mine")), Decision::Allow);
    let mut raised = governor.parse("desk", "Read the file notes.txt").unwrap().intent;
    assert_eq!(decide(&governor, &raised), Decision::Allow);
    raised.risk_level = RiskLevel::High;
    assert_eq!(decide(&governor, &raised), Decision::Deny);
}

#[test]
fn a_built_intent_cannot_say_what_the_parser_found() {
    let governor = governor();
    let forged = json!({ "targets": [{ "kind": "recipient", "role": "to", "value": "ann@ours.example" }] });
    let built = Intent::new("desk", "send_email", RiskLevel::Medium, ["email:send"]).unwrap();
    let ours = built.clone().with_context("target", "ann@ours.example");
    let built = sent(&built.with_context("target", "eve@evil.example"), "facts", &forged);
    assert_eq!(built.facts().acts[0].operands[0].value, "ann@ours.example");
    assert_eq!(decide(&governor, &built), Decision::Deny);
    // Facts that no parse vouches for leave the intent open, whatever else it says.
    assert_eq!(decide(&governor, &built.clone().with_context("target", "ann@ours.example")), Decision::Deny);
    assert_eq!(decide(&governor, &ours), Decision::Allow);
    // The id of another agent's parse, or of none, binds nothing and lends nothing.
    let parsed = governor.parse("other", mail(&["ann@ours.example"]).as_str()).unwrap().intent;
    let unknown: IntentId = "int_01arz3ndektsv4rrffq69g5fav".parse().unwrap();
    for id in [parsed.id.unwrap(), unknown] {
        let mut lent = built.clone();
        lent.id = Some(id);
        lent = sent(&lent, "facts", &serde_json::to_value(parsed.facts()).unwrap());
        lent.context.clone_from(&parsed.context);
        lent.context.insert("target".to_owned(), json!("eve@evil.example"));
        assert_eq!(decide(&governor, &lent), Decision::Deny);
    }
}
