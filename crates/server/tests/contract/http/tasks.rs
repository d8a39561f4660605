//! Tasks over HTTP: the runtime opens them with an admin key, and agents act with keys of their own.

use rulekeep::{Agent, Durability, Governor, Tier};
use rulekeep_server::gateway::{KeyDraft, Scope};
use rulekeep_server::http::Server;
use serde_json::{Value, json};

use super::live::{Answer, Ask, Live, NOON, wide};
use crate::common::Hand;

const WORDS: &str = "Send the agenda to ann@example.com";

/// A server with the recommended policies, and the agents `desk` and `helper`, which may send mail.
fn live() -> Live {
    let governor = Governor::builder().clock(Hand::at(NOON)).durability(Durability::Buffered).open_in_memory().unwrap();
    for agent in ["desk", "helper"] {
        governor.agents().register(Agent::new(agent).at_tier(Tier::T5)).unwrap();
    }
    Live::of(governor, Server::new())
}

fn open(live: &Live, agent: &str) -> String {
    let opened = live.post("/v1/admin/tasks", &live.admin, &json!({ "agentId": agent, "input": WORDS })).ok();
    opened["taskId"].as_str().unwrap().to_owned()
}

fn mail(to: &str) -> Value {
    json!({ "tool": "send_email", "arguments": { "recipients": [to], "subject": "Agenda", "body": "The agenda" } })
}

fn enforce(live: &Live, key: &str, agent: &str, task: &str) -> Answer {
    let request = json!({ "agentId": agent, "input": mail("ann@example.com"), "taskId": task });
    live.post("/v1/enforce", key, &request)
}

#[test]
fn a_task_is_opened_worked_on_and_closed() {
    let live = live();
    let task = open(&live, "desk");
    let path = |call: &str| format!("/v1/admin/tasks/{task}{call}");
    let post = |call: &str, body: Value| live.post(&path(call), &live.admin, &body).ok();
    assert_eq!(enforce(&live, &live.agent, "desk", &task).ok()["decision"], "ALLOW");
    let call = json!({ "name": "send_email", "arguments": mail("ann@example.com")["arguments"] });
    assert_eq!(post("/observe", json!({ "call": call, "result": null })), json!({}));
    // Larger than other requests may be.
    assert_eq!(post("/observe", json!({ "call": call, "result": "word ".repeat(100_000) })), json!({}));
    assert_eq!(post("/say", json!({ "input": "And bob@example.com" }))["mandate"]["words"][1], "And bob@example.com");
    let part = post("/delegate", json!({ "agentId": "helper", "input": WORDS }));
    assert_eq!(enforce(&live, &live.agent, "helper", part["taskId"].as_str().unwrap()).ok()["decision"], "ALLOW");
    assert_eq!(live.get(&path(""), &live.admin).ok()["calls"], 2);
    assert_eq!(post("/close", json!({ "outcome": "SUCCESS" }))["state"], "closed");
    assert_eq!(live.post(&path("/close"), &live.admin, &json!({})).refusal(), (409, "CONFLICT".into()));
    assert_eq!(enforce(&live, &live.agent, "desk", &task).refusal(), (409, "CONFLICT".into()));
    let other = json!({ "taskId": part["taskId"], "input": "more" });
    assert_eq!(live.post(&path("/say"), &live.admin, &other).refusal(), (400, "INVALID_INPUT".into()));
}

#[test]
fn an_agents_key_reaches_only_its_own_agents_tasks() {
    let live = live();
    let (mine, theirs) = (open(&live, "desk"), open(&live, "helper"));
    let key = live.key(KeyDraft::new(Scope::Agent, wide()).agent("desk")).key;
    let key = key.expose();
    let opening = json!({ "agentId": "desk", "input": WORDS, "trusted": ["eve@evil.example"] });
    assert_eq!(live.post("/v1/admin/tasks", key, &opening).refusal(), (403, "FORBIDDEN".into()));
    for (call, body) in [
        ("observe", json!({ "call": { "name": "send_email" }, "result": "sent" })),
        ("say", json!({ "input": "Send it to eve@evil.example too" })),
        ("delegate", json!({ "agentId": "desk", "input": "more" })),
        ("close", json!({})),
    ] {
        let refused = live.post(&format!("/v1/admin/tasks/{mine}/{call}"), key, &body).refusal();
        assert_eq!(refused, (403, "FORBIDDEN".into()), "{call}");
    }
    assert_eq!(live.get(&format!("/v1/admin/tasks/{mine}"), key).refusal(), (403, "FORBIDDEN".into()));

    assert_eq!(enforce(&live, key, "desk", &mine).ok()["decision"], "ALLOW");
    assert_eq!(enforce(&live, key, "desk", &theirs).refusal(), (404, "TASK_NOT_FOUND".into()));
    assert_eq!(enforce(&live, key, "helper", &theirs).refusal(), (403, "FORBIDDEN".into()));
    assert_eq!(enforce(&live, key, "helper", &mine).refusal(), (403, "FORBIDDEN".into()));
    assert_eq!(enforce(&live, key, "desk", "x").refusal(), (404, "TASK_NOT_FOUND".into()));
    assert_eq!((live.records("desk"), live.records("helper")), (2, 1), "what is refused has no record");
}

#[test]
fn an_intent_built_by_a_caller_needs_its_key_in_a_task_too() {
    let live = live();
    let task = open(&live, "desk");
    let made = |draft: KeyDraft| live.key(draft.agent("desk")).key;
    let (limited, trusted) =
        (made(KeyDraft::new(Scope::Agent, wide())), made(KeyDraft::new(Scope::Agent, wide()).built_intents()));
    let built = json!({
        "intent": { "agentId": "desk", "parsedAction": "read_email", "riskLevel": "LOW", "requiredCapabilities": ["email:read"] },
        "taskId": task,
    });
    assert_eq!(live.post("/v1/enforce", limited.expose(), &built).refusal(), (403, "FORBIDDEN".into()));
    assert_eq!(live.post("/v1/enforce", trusted.expose(), &built).ok()["decision"], "ALLOW");
    let input = json!({ "agentId": "desk", "input": mail("eve@evil.example") });
    let mut parsed = live.post("/v1/intent", limited.expose(), &input).ok()["intent"].clone();
    // The parser's findings count, whatever the caller changes.
    parsed["requiredCapabilities"] = json!(["email:read"]);
    parsed["riskLevel"] = json!("LOW");
    parsed["context"] = json!({});
    for key in [limited.expose(), trusted.expose(), live.admin.as_str()] {
        let decided = live.post("/v1/enforce", key, &json!({ "intent": parsed, "taskId": task })).ok();
        assert_eq!(decided["decision"], "ESCALATE", "{decided}");
    }
}

/// A stored response permits an action, and must not outlive its task.
#[test]
fn an_allow_under_a_task_is_not_repeated_after_its_end() {
    let live = live();
    let ask = |task: Option<&str>, name: &str| {
        let mut body = json!({ "agentId": "desk", "input": mail("ann@example.com") });
        if let Some(task) = task {
            body["taskId"] = json!(task);
        }
        live.ask(&Ask::new("POST", "/v1/enforce").key(&live.agent).json(&body).header("Idempotency-Key", name))
    };
    let (task, other) = (open(&live, "desk"), open(&live, "desk"));
    for (task, name) in [(Some(&*task), "one"), (Some(&*other), "other"), (None, "none")] {
        let first = ask(task, name);
        assert_eq!(first.ok()["decision"], "ALLOW");
        let again = ask(task, name);
        assert_eq!((again.ok(), again.header("idempotent-replayed")), (first.ok(), Some("true")));
    }
    live.post(&format!("/v1/admin/tasks/{task}/close"), &live.admin, &json!({})).ok();
    assert_eq!(ask(Some(&task), "one").refusal(), (409, "CONFLICT".into()));
    for (task, name) in [(Some(&*other), "other"), (None, "none")] {
        assert_eq!(ask(task, name).header("idempotent-replayed"), Some("true"), "{name}");
    }
}
