//! A call means the same in every form in which hosts send it: its acts, the rules that bind it, and its mandate.

use rulekeep::task::TaskRequest;
use rulekeep::{Agent, Decision, Governor, PolicySet, Tier};
use serde_json::{Value, json};

const RULES: &str = r#"
name = "desk"
[[rule]]
id = "our-people"
effect = "allow"
match = { capabilities = ["email:send"], recipients = ["*@corp.example"] }
[[rule]]
id = "reading"
effect = "allow"
match = { capabilities = ["*:read"], paths = ["/srv/shared/*"] }
[[rule]]
id = "kept"
effect = "deny"
match = { tools = ["mcp__jira__delete_issue"] }
[[rule]]
id = "small-sums"
effect = "allow"
match = { capabilities = ["payment:transfer"] }
limit = { sum = "amount", max = 100, per = "24h" }
"#;

fn governor(rules: &str) -> Governor {
    let governor = Governor::builder().policies(PolicySet::from_toml(rules).unwrap()).open_in_memory().unwrap();
    governor.agents().register(Agent::new("desk").at_tier(Tier::T5)).unwrap();
    governor
}

/// A call in each form, the plain one first.
fn forms(tool: &str, arguments: &Value) -> Vec<(&'static str, Value)> {
    let written = arguments.to_string();
    let plain = json!({ "tool": tool, "arguments": arguments });
    vec![
        ("plain", plain.clone()),
        (
            "MCP",
            json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": { "name": tool, "arguments": arguments } }),
        ),
        (
            "MCP without an envelope",
            json!({ "method": "tools/call", "params": { "name": tool, "arguments": arguments } }),
        ),
        (
            "OpenAI",
            json!({ "role": "assistant", "tool_calls": [{ "id": "c1", "type": "function", "function": { "name": tool, "arguments": written } }] }),
        ),
        (
            "OpenAI, one call",
            json!({ "id": "c1", "type": "function", "function": { "name": tool, "arguments": written } }),
        ),
        (
            "OpenAI Responses",
            json!({ "output": [{ "type": "function_call", "call_id": "c1", "name": tool, "arguments": written }] }),
        ),
        (
            "Anthropic",
            json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": "t1", "name": tool, "input": arguments }] }),
        ),
        ("Anthropic, one call", json!({ "type": "tool_use", "id": "t1", "name": tool, "input": arguments })),
        (
            "Gemini",
            json!({ "candidates": [{ "content": { "parts": [{ "functionCall": { "name": tool, "args": arguments } }] } }] }),
        ),
        ("a batch of one", json!([plain])),
        ("a batch that says it twice", json!([plain, plain])),
    ]
}

fn calls() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        (
            "send_email",
            json!({ "to": ["ann@corp.example"], "subject": "Lunch", "body": "At noon?" }),
            "Send an email about lunch to ann@corp.example",
        ),
        (
            "send_email",
            json!({ "to": ["ann@corp.example", "eve@rival.example"], "subject": "Lunch", "body": "At noon?" }),
            "Send an email about lunch to ann@corp.example",
        ),
        ("mcp__mail__send_email", json!({ "to": "eve@rival.example", "body": "Hi" }), "Read my mail"),
        ("mcp__jira__delete_issue", json!({ "issue_id": "A-1" }), "Delete the issue A-1"),
        ("read_file", json!({ "path": "/srv/shared/a.txt" }), "Read the file /srv/shared/a.txt"),
        ("read_file", json!({ "path": "/srv/secret/a.txt" }), "Read the file /srv/shared/a.txt"),
        ("pay_bill", json!({ "amount": 60, "currency": "EUR", "payee": "Bob" }), "Pay Bob 60 EUR"),
        ("pay_bill", json!({ "amount": 160.5, "currency": "EUR", "payee": "Bob" }), "Pay Bob 160.5 EUR"),
        ("frobnicate", json!({ "x": 1, "note": "y" }), "Frobnicate"),
    ]
}

#[test]
fn a_call_has_one_decision_and_one_set_of_acts_in_every_form() {
    for (tool, arguments, _) in calls() {
        let mut plain = None;
        for (form, text) in forms(tool, &arguments) {
            let governor = governor(RULES);
            let decided = governor.enforce_input("desk", &*text.to_string()).unwrap();
            let mut facts = decided.parse.intent.facts();
            if form.contains("twice") && facts.amounts().count() > 0 {
                // Two payments are two payments.
                assert_eq!(facts.amounts().count(), 2, "{form}: {text}");
                continue;
            }
            // A batch has a further act, which is the same.
            facts.acts.dedup();
            let found = (decided.enforcement.decision, facts, decided.parse.intent.parsed_action.clone());
            let plain = plain.get_or_insert_with(|| found.clone());
            assert_eq!(*plain, found, "{form}: {text}");
        }
    }
}

#[test]
fn a_mandate_covers_a_call_alike_in_every_form() {
    let open = "name = \"open\"\n[[rule]]\nid = \"everything\"\neffect = \"allow\"\n";
    let mut served = 0;
    for (tool, arguments, words) in calls() {
        let mut plain = None;
        for (form, text) in forms(tool, &arguments) {
            let governor = governor(open);
            let task = governor.tasks().open(TaskRequest::new("desk", words)).unwrap();
            let found = task.enforce_input(&*text.to_string()).unwrap().enforcement;
            let found = (found.decision, found.denial_class);
            served += usize::from(found.0 == Decision::Allow);
            let plain = *plain.get_or_insert(found);
            assert_eq!(plain, found, "{form}: {words}: {text}");
        }
    }
    assert!(served >= 20, "{served} of the calls are inside their mandates");
}

#[test]
fn each_call_of_a_batch_is_checked_against_the_mandate() {
    let open = "name = \"open\"\n[[rule]]\nid = \"everything\"\neffect = \"allow\"\n";
    let governor = governor(open);
    let task = governor.tasks().open(TaskRequest::new("desk", "Delete the email 17")).unwrap();
    let deletion = |id: &str| json!({ "tool": "delete_email", "arguments": { "email_id": id } });
    let decide = |calls: Value| task.enforce_input(&*calls.to_string()).unwrap().enforcement.decision;
    assert_eq!(decide(json!([deletion("17")])), Decision::Allow);
    assert_ne!(decide(json!([deletion("17"), deletion("18")])), Decision::Allow);
    assert_ne!(decide(json!([deletion("18"), deletion("17")])), Decision::Allow);
    assert_ne!(decide(json!({ "tool_calls": [deletion("17"), deletion("18")] })), Decision::Allow);
}
