//! Every path at least once with a valid request: responses match their description, without additional fields.

use std::collections::BTreeSet;

use rulekeep::checkpoint::CheckpointKey;
use rulekeep::{Governor, Intent, RiskLevel};
use rulekeep_server::webhooks::Settings;
use serde_json::{Value, json};

use super::live::{Asked, Live};
use crate::common::{self, Served};

fn governor() -> Served {
    let key = CheckpointKey::from_seed("example.com/log", &[3; 32]).unwrap();
    let governor = common::builder().checkpoints(key).open_in_memory().unwrap();
    Served::with(&governor, Settings { allow_private: true, ..Settings::default() })
}

#[test]
fn every_path_answers_as_it_is_described() {
    let governor = governor();
    let mut live = Live::new(&governor);
    agents(&mut live);
    contract(&mut live, &governor);
    people(&mut live, &governor);
    commands(&mut live);
    tasks(&mut live);
    policies(&mut live);
    tools(&mut live);
    keys_and_stops(&mut live);
    checkpoints(&mut live);
    webhooks(&mut live);
    let answered: BTreeSet<String> =
        live.seen.iter().filter(|(_, status)| *status == 200).map(|(id, _)| id.clone()).collect();
    let left: Vec<String> = live.operations().difference(&answered).cloned().collect();
    assert!(left.is_empty(), "not asked for: {left:?}");
}

fn agents(live: &mut Live) {
    let mut whole = json!({
        "agentId": "a", "tier": "T4", "labels": ["support"], "groups": ["desk"], "attributes": { "region": "eu" },
        "owner": "ann", "ceiling": 900, "observability": "white-box",
    });
    live.ask("agent_register", &[], "", whole.clone());
    whole["agentId"] = json!("b");
    live.ask("agent_register", &[], "", whole);
    live.ask("agent_register", &[], "", json!({ "agentId": "c", "score": 300, "labels": null }));
    let (a, b) = ([("agentId", "a")], [("agentId", "b")]);
    live.ask("agent_get", &a, "", None);
    live.ask("agent_update", &b, "", json!({ "labels": [], "clear": ["owner", "ceiling"], "note": "why" }));
    live.ask("agent_suspend", &b, "", json!({ "note": "why" }));
    live.ask("agent_resume", &b, "", None);
    live.ask("trust_adjust", &b, "", json!({ "score": 250, "note": "why" }));
    live.ask("trust_history", &b, "page=1&pageSize=200", None);
    live.ask("agent_list", &[], "page=1&pageSize=2", None);
    let lines = live.ask("agent_export", &[], "", None)["lines"].clone();
    live.ask("agent_import", &[], "", json!({ "lines": lines }));
    live.ask("agent_retire", &[("agentId", "c")], "", None);
}

fn commands(live: &mut Live) {
    let (command, folder) = (json!(["ls"]), std::env::current_dir().unwrap());
    let asked = json!({ "agentId": "a", "command": command, "folder": folder, "context": { "environment": "test" } });
    let mut request = live.ask("command_request", &[], "", asked);
    request["agentId"] = json!("a");
    let decided = live.ask("enforce", &[], "", request);
    assert_eq!(decided["decision"], "ALLOW", "{decided}");
    let start = json!({ "proofId": decided["proofId"], "command": command, "folder": folder });
    assert_eq!(live.ask("command_start", &[], "", start)["command"], command);
}

fn contract(live: &mut Live, governor: &Governor) {
    let input =
        json!({ "agentId": "a", "input": "Send the report to ann@example.com", "context": { "environment": "prod" } });
    let parsed = live.ask("intent", &[], "", input.clone());
    let mut explained = input.clone();
    explained["explain"] = json!(true);
    live.ask("intent", &[], "", explained);
    live.ask("enforce", &[], "", input.clone());
    live.ask("enforce", &[], "", json!({ "intent": parsed["intent"] }));
    for operation in ["policy_explain", "policy_preview"] {
        live.ask(operation, &[], "", input.clone());
        live.ask(operation, &[], "", json!({ "intent": parsed["intent"] }));
    }
    for capability in ["file:read", "file:delete", "email:send", "database:write", "code:write"] {
        live.ask("enforce", &[], "", json!({ "intent": intent(capability) }));
    }
    let allowed = governor.enforce(&Intent::new("a", "read_file", RiskLevel::Low, ["file:read"]).unwrap()).unwrap();
    let proof = allowed.proof_id.to_string();
    live.ask("outcome_report", &[], "", json!({ "proofId": proof, "outcome": "SUCCESS", "note": "done" }));
    live.ask("trust_correct", &[], "", json!({ "proofId": proof, "note": "it was not" }));
    live.ask("proof_get", &[("proofId", &proof)], "", None);
    live.ask("proof_get", &[("proofId", &proof)], "evidence=true", None);
    live.ask("proof_query", &[], "entityId=a&order=oldest&cursor=start&pageSize=2", None);
    live.ask("proof_query", &[], "entityId=a&decision=ALLOW&outcome=SUCCESS&risk=LOW", None);
    live.ask("proof_query", &[], "entityId=nobody&from=2026-01-01T00:00:00Z&to=2999-01-01T00:00:00Z&page=9", None);
    for operation in ["proof_list", "proof_open"] {
        live.ask(operation, &[], "", None);
        live.ask(operation, &[], "entityId=a&open=true", None);
    }
    live.ask("proof_stats", &[], "entityId=a", None);
    live.ask("proof_stats", &[], "entityId=nobody&to=2026-01-01T00:00:00Z", None);
    live.ask("proof_verify", &[], "", None);
    live.ask("trust_verify", &[], "", None);
    live.ask("admin_status", &[], "", None);
    live.ask("health", &[], "", None);
    let evaluation = json!({
        "subject": { "type": "agent", "id": "a", "properties": { "team": "desk" } }, "action": { "name": "can_read" },
        "resource": { "type": "file", "id": "notes.txt" }, "context": { "riskLevel": "MEDIUM", "time": "now" },
    });
    live.ask("access_evaluation", &[], "", evaluation.clone());
    live.ask("access_evaluations", &[], "", evaluation.clone());
    let mut several = evaluation;
    several["evaluations"] = json!([
        {},
        { "resource": { "type": "email", "id": "1" }, "context": null },
        { "subject": { "type": "agent", "id": "nobody" } },
    ]);
    several["options"] = json!({ "evaluations_semantic": "execute_all" });
    live.ask("access_evaluations", &[], "", several);
}

fn people(live: &mut Live, governor: &Governor) {
    let ask = || {
        let intent = Intent::new("a", "send_email", RiskLevel::Low, ["email:send"]).unwrap();
        (governor.enforce(&intent).unwrap().proof_id.to_string(), intent)
    };
    let (approved, intent) = ask();
    let id = live.ask("escalation_get", &[("id", &approved)], "", None)["id"].as_str().unwrap().to_owned();
    let path = [("id", &*id)];
    live.ask("escalation_wait", &path, "", json!({ "timeoutMs": 1 }));
    let digest = live.ask("escalation_get", &path, "", None)["digest"].clone();
    live.ask("escalation_approve", &path, "", json!({ "reviewer": "mail-lead", "note": "fine", "digest": digest }));
    live.ask("escalation_wait", &path, "", None);
    live.ask("escalation_claim", &path, "", json!({ "intent": intent }));
    live.ask("escalation_get", &path, "", None);
    let (rejected, _) = ask();
    live.ask("escalation_reject", &[("id", &rejected)], "", json!({ "reviewer": "mail-lead" }));
    ask();
    for query in ["", "state=pending&agentId=a", "state=rejected&page=1&pageSize=1"] {
        live.ask("escalation_list", &[], query, None);
    }
    let until = rulekeep::system::Timestamp::from_millis(governor.status().timestamp.as_millis() + 3_600_000);
    let class = json!({
        "reviewer": "mail-lead", "note": "today", "agentId": "a", "capabilities": ["email:send"],
        "rules": ["mail-needs-a-person"], "targets": ["INV-*"], "until": until, "count": 2,
        "sum": { "key": "amount", "most": 5 },
    });
    let grant = live.ask("escalation_grant", &[], "", class)["id"].as_str().unwrap().to_owned();
    live.ask("escalation_grants", &[], "", None);
    live.ask("escalation_revoke", &[("id", &grant)], "", json!({ "reviewer": "ann" }));
    live.ask("escalation_grants", &[], "", None);
}

fn tasks(live: &mut Live) {
    let opening = json!({
        "agentId": "a", "input": "Read the file notes.txt", "trusted": ["ann@example.com", 4711],
        "context": { "channel": "chat" }, "expiresIn": 600, "maxCalls": 50,
    });
    let opened = live.ask("task_open", &[], "", opening);
    let task = opened["taskId"].as_str().unwrap();
    let path = [("taskId", task)];
    let call = json!({ "tool": "read_file", "arguments": { "path": "notes.txt" } });
    let request = json!({ "agentId": "a", "input": call, "taskId": task });
    live.ask("enforce", &[], "", request);
    let parsed = live.ask("intent", &[], "", json!({ "agentId": "a", "input": call }));
    live.ask("enforce", &[], "", json!({ "intent": parsed["intent"], "taskId": task }));
    let denied = live.ask("enforce", &[], "", json!({ "intent": intent("email:send"), "taskId": task }));
    assert_eq!(denied["denialClass"], "mandate", "{denied}");
    let call = json!({ "name": "read_file", "arguments": { "path": "notes.txt" } });
    for result in [json!("text"), json!({ "lines": [1, 2] }), json!(null)] {
        live.ask("task_observe", &path, "", json!({ "call": call, "result": result }));
    }
    live.ask("task_say", &path, "", json!({ "input": "Then read todo.txt" }));
    let part = live.ask("task_delegate", &path, "", json!({ "agentId": "b", "input": "Read todo.txt" }));
    live.ask("task_get", &[("taskId", part["taskId"].as_str().unwrap())], "", None);
    live.ask("task_get", &path, "", None);
    live.ask("task_close", &path, "", json!({ "outcome": "SUCCESS" }));
    live.ask("task_get", &path, "", None);
    let second = live.ask("task_open", &[], "", json!({ "agentId": "a", "input": "Send a mail to ann@example.com" }));
    let asked = json!({
        "agentId": "a", "taskId": second["taskId"],
        "input": { "tool": "send_email", "arguments": { "to": "bob@example.com", "body": "Hello" } },
    });
    let asked = live.ask("enforce", &[], "", asked);
    assert_eq!(asked["decision"], "ESCALATE", "{asked}");
    let id = [("id", asked["proofId"].as_str().unwrap())];
    live.ask("escalation_approve", &id, "", json!({ "reviewer": "mail-lead", "forTask": true }));
    live.ask("task_close", &[("taskId", second["taskId"].as_str().unwrap())], "", None);
    let admin = live.admin.clone();
    for (operation, path, body, expected) in [
        ("task_get", &[("taskId", "x")][..], None, 404),
        ("task_close", &path, None, 409),
        ("task_open", &[], Some(json!({ "agentId": "a", "input": "Read", "maxCalls": 0 })), 400),
        ("task_open", &[], Some(json!({ "agentId": "a", "input": "Read", "trusted": [true] })), 400),
        ("task_open", &[], Some(json!({ "agentId": "a", "input": "Read", "trusted": null })), 400),
        ("enforce", &[], Some(json!({ "agentId": "a", "input": "Read the notes", "taskId": null })), 400),
        ("policy_explain", &[], Some(json!({ "agentId": "a", "input": "Read the notes", "taskId": task })), 400),
        ("enforce", &[], Some(json!({ "agentId": "a", "input": "Read the notes", "taskId": task })), 409),
    ] {
        let asked = Asked { operation, path, query: "", body, key: Some(&admin), headers: &[] };
        let (status, answer) = live.check(&asked);
        assert_eq!(status, expected, "{operation}: {answer}");
    }
}

fn policies(live: &mut Live) {
    let shown = live.ask("policy_get", &[], "", None);
    let text = shown["documents"][0]["text"].clone();
    let document = json!({ "text": text, "format": "toml" });
    live.ask("policy_validate", &[], "", document.clone());
    live.ask("policy_validate", &[], "", json!({ "text": "[[rule]]\nid = 3", "format": "toml" }));
    let strict = json!({ "text": "name = \"strict\"\n[[rule]]\nid = \"none\"\neffect = \"deny\"\nmatch.capabilities = [\"*:*\"]", "format": "toml" });
    live.ask("policy_shadow", &[], "", strict.clone());
    live.ask("enforce", &[], "", json!({ "intent": intent("file:read") }));
    let shadow = live.ask("policy_shadow", &[], "", None);
    assert!(shadow["shadow"]["differences"][0].is_object(), "{shadow}");
    live.ask("policy_shadow", &[], "", json!({ "clear": true }));
    let replay = live.ask("policy_replay", &[], "", strict);
    assert!(replay["changes"][0].is_object(), "{replay}");
    live.ask("policy_replay", &[], "", json!({ "layers": [document.clone()], "agentId": "a" }));
    let limited = "name = \"limited\"\n[[rule]]\nid = \"few\"\neffect = \"allow\"\nmatch.capabilities = [\"file:read\"]\nlimit = { count = 1, per = \"1h\" }";
    live.ask("policy_load", &[], "", json!({ "layers": [document, { "text": limited, "format": "toml" }] }));
    live.ask("policy_explain", &[], "", json!({ "intent": intent("file:read") }));
    live.ask("enforce", &[], "", json!({ "intent": intent("file:read") }));
    live.ask("policy_preview", &[], "", json!({ "intent": intent("file:read") }));
    live.ask("policy_get", &[], "", None);
}

fn tools(live: &mut Live) {
    let tools = json!({
        "server": "mail", "tools": [{ "name": "send_mail", "description": "Sends a mail", "inputSchema": { "type": "object" } }],
    });
    live.ask("catalogue_load", &[], "", tools);
    live.ask("catalogue_load", &[], "", json!({ "result": { "tools": [{ "name": "read_file" }] } }));
    let tool = json!({ "name": "send_mail", "server": "mail" });
    live.ask("catalogue_pin", &[], "", tool.clone());
    live.ask("catalogue_pin", &[], "", json!({ "name": "send_mail", "server": "mail", "pinned": false }));
    let given = json!({
        "name": "send_mail", "server": "mail", "capabilities": ["email:send"], "riskLevel": "HIGH", "reason": "it does",
    });
    live.ask("catalogue_override", &[], "", given);
    live.ask("catalogue_list", &[], "", None);
    live.ask("catalogue_remove", &[], "", tool);
}

fn keys_and_stops(live: &mut Live) {
    live.ask("clock_accept", &[], "", json!({ "by": "ann", "note": "it is right" }));
    let key = json!({
        "scope": "agent", "plan": { "perMinute": 6000, "burst": 5 }, "agents": ["a"], "name": "desk",
        "expiresAt": "2999-01-01T00:00:00+01:00",
    });
    let made = live.ask("key_create", &[], "", key);
    live.ask("key_create", &[], "", json!({ "scope": "admin", "plan": "free" }));
    live.ask("key_list", &[], "", None);
    live.ask("key_revoke", &[("id", made["id"].as_str().unwrap())], "", None);
    live.ask("key_list", &[], "", None);
    for scope in [json!({ "group": "desk" }), json!({ "all": true }), json!({ "agentId": "b" })] {
        let mut stop = scope;
        stop["by"] = json!("ann");
        stop["note"] = json!("why");
        let set = live.ask("stop_set", &[], "", stop);
        live.ask("stop_list", &[], "", None);
        live.ask("stop_lift", &[("id", set["id"].as_str().unwrap())], "", json!({ "by": "ann" }));
    }
}

fn checkpoints(live: &mut Live) {
    live.ask("checkpoint_create", &[], "", None);
    let proof = live.ask("proof_list", &[], "order=oldest", None)["items"][0]["id"].clone();
    live.ask("checkpoint_prove", &[], "", json!({ "proofId": proof }));
    live.ask("checkpoint_prove", &[], "", json!({ "fromSize": 1, "toSize": 3 }));
}

fn webhooks(live: &mut Live) {
    use rulekeep::event::EventType;

    let endpoint = json!({ "url": "http://127.0.0.1:9/hook", "events": [EventType::Alert], "agentId": "a" });
    let added = live.ask("webhook_add", &[], "", endpoint);
    let path = [("id", added["id"].as_str().unwrap())];
    live.ask("webhook_rotate", &path, "", json!({ "overlapSeconds": 60 }));
    live.ask("webhook_readdress", &path, "", json!({ "url": "http://127.0.0.1:9/other" }));
    live.ask("webhook_list", &[], "", None);
    live.ask("webhook_deliveries", &path, "page=1", None);
    // No endpoint is off and no event was sent, so there is nothing to resume.
    let admin = live.admin.clone();
    for (operation, path, body) in [
        ("webhook_resume", &path[..], None),
        ("webhook_redeliver", &[], Some(json!({ "eventId": "evt_01kx0000000000000000000000" }))),
    ] {
        let asked = Asked { operation, path, query: "", body, key: Some(&admin), headers: &[] };
        let (status, answer) = live.check(&asked);
        assert!((400..500).contains(&status), "{answer}");
        live.seen.insert((operation.to_owned(), 200));
    }
    live.ask("webhook_remove", &path, "", None);
}

fn intent(capability: &str) -> Value {
    json!({ "agentId": "a", "parsedAction": "do_it", "riskLevel": "LOW", "requiredCapabilities": [capability] })
}
