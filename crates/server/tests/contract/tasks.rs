//! Tasks over lines: their life, what is refused, and what a restart keeps.

use std::path::Path;

use rulekeep::{Agent, Governor, GovernorBuilder, Tier};
use serde_json::{Value, json};

use crate::common::{Hand, NOON, Served, call, refusal, result};

const WORDS: &str = "Send the agenda to ann@example.com";
const UNKNOWN: &str = "tsk_01kx0000000000000000000000";
/// A time just after the default lifetime of a task.
const NEXT_DAY: i64 = NOON + 24 * 3_600_000;

/// A governor with the recommended policies, a clock that stands still, and two agents that may send mail.
fn governor() -> (Served, Hand) {
    let clock = Hand::at(NOON);
    let governor = builder(&clock).open_in_memory().unwrap();
    (with_agents(&governor), clock)
}

fn in_folder(folder: &Path, clock: &Hand) -> Served {
    with_agents(&builder(clock).open(folder).unwrap())
}

fn builder(clock: &Hand) -> GovernorBuilder {
    Governor::builder().clock(clock.clone())
}

fn with_agents(governor: &Governor) -> Served {
    for agent in ["desk", "helper"] {
        if governor.agents().get(agent).is_err() {
            governor.agents().register(Agent::new(agent).at_tier(Tier::T5)).unwrap();
        }
    }
    Served::new(governor)
}

fn open(governor: &Served) -> String {
    let opened = result(governor, "task/open", &json!({ "agentId": "desk", "input": WORDS }));
    opened["taskId"].as_str().unwrap().to_owned()
}

fn arguments(to: &str) -> Value {
    json!({ "recipients": [to], "subject": "Agenda", "body": "The agenda" })
}

fn mail(to: &str) -> Value {
    json!({ "tool": "send_email", "arguments": arguments(to) })
}

/// A tool call that the task's words do not ask for.
fn deletion(id: &str) -> Value {
    json!({ "tool": "delete_email", "arguments": { "email_id": id } })
}

fn enforce(governor: &Served, task: &str, input: &Value) -> Value {
    result(governor, "enforce", &json!({ "agentId": "desk", "input": input, "taskId": task }))
}

fn with(params: &Value, more: Value) -> Value {
    let mut params = params.clone();
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    params
}

fn keys(value: &Value) -> Vec<&String> {
    value.as_object().unwrap().keys().collect()
}

#[test]
fn a_task_is_opened_worked_on_and_closed() {
    let (governor, _) = governor();
    let request = json!({
        "agentId": "desk", "input": WORDS, "trusted": ["bob@example.com", 4711, 12.0], "context": { "channel": "chat" },
        "expiresIn": 600, "maxCalls": 50,
    });
    let opened = result(&governor, "task/open", &request);
    assert_eq!(keys(&opened), ["expiresAt", "mandate", "proofId", "taskId"]);
    let mandate = &opened["mandate"];
    assert_eq!(keys(mandate), ["capabilities", "open", "riskLevel", "trusted", "words"]);
    assert_eq!((&mandate["words"], &mandate["trusted"]), (&json!([WORDS]), &json!(3)));
    assert_eq!((&mandate["capabilities"], &mandate["open"]), (&json!(["email:send"]), &json!(false)));
    assert_eq!(opened["expiresAt"], json!(rulekeep::system::Timestamp::from_millis(NOON + 600_000)));
    let record = result(&governor, "proof/get", &json!({ "proofId": opened["proofId"], "evidence": true }));
    assert_eq!((&record["entityId"], &record["decision"]), (&json!("desk"), &json!("ALLOW")));
    let trusted = &record["evidence"]["intent"]["context"]["trusted"];
    assert_eq!(trusted, &json!(["bob@example.com", "4711", "12"]), "a number stands for its text");

    let task = opened["taskId"].as_str().unwrap();
    let without = result(&governor, "enforce", &json!({ "agentId": "desk", "input": mail("ann@example.com") }));
    let sent = enforce(&governor, task, &mail("ann@example.com"));
    assert_eq!((keys(&sent), &sent["decision"]), (keys(&without), &json!("ALLOW")), "{sent}");
    assert_eq!(enforce(&governor, task, &mail("bob@example.com"))["decision"], "ALLOW", "a trusted value");
    let denied = enforce(&governor, task, &deletion("7"));
    assert_eq!((&denied["decision"], &denied["denialClass"]), (&json!("DENY"), &json!("mandate")), "{denied}");

    let observed = json!({
        "taskId": task, "call": { "name": "send_email", "arguments": arguments("ann@example.com") },
        "result": { "id": 81, "status": "sent" },
    });
    for value in [json!({ "id": 81, "status": "sent" }), json!("sent"), json!(null), json!(7), json!(["a"])] {
        let answer = result(&governor, "task/observe", &with(&observed, json!({ "result": value })));
        assert_eq!(answer, json!({}));
    }
    let said = result(&governor, "task/say", &json!({ "taskId": task, "input": "And delete the email with id 7" }));
    assert_eq!(keys(&said), ["mandate"]);
    assert_eq!(said["mandate"]["words"], json!([WORDS, "And delete the email with id 7"]));
    assert_ne!(enforce(&governor, task, &deletion("7"))["decision"], "DENY", "the user asks for it now");

    let part = json!({ "taskId": task, "agentId": "helper", "input": "Delete the email with id 7" });
    let delegated = result(&governor, "task/delegate", &part);
    assert_eq!(keys(&delegated), keys(&opened));
    assert_eq!(delegated["expiresAt"], opened["expiresAt"], "no delegate outlives its parent");
    let child = json!({ "taskId": delegated["taskId"] });
    let shown = result(&governor, "task/get", &child);
    assert_eq!((&shown["parent"], &shown["agentId"]), (&opened["taskId"], &json!("helper")));
    let by_helper = json!({ "agentId": "helper", "input": mail("ann@example.com"), "taskId": delegated["taskId"] });
    assert_eq!(result(&governor, "enforce", &by_helper)["denialClass"], "mandate", "its own words do not ask for that");

    let shown = result(&governor, "task/get", &json!({ "taskId": task }));
    assert_eq!((&shown["state"], &shown["calls"], &shown["maxCalls"]), (&json!("open"), &json!(5), &json!(50)));
    assert_eq!((&shown["proofId"], &shown["refused"]), (&opened["proofId"], &json!({ "mandate": 1 })));
    let closed = result(&governor, "task/close", &json!({ "taskId": task, "outcome": "SUCCESS" }));
    assert_eq!((&closed["state"], &closed["outcome"]), (&json!("closed"), &json!("SUCCESS")));
    assert_eq!((closed.get("mandate"), &closed["calls"]), (None, &json!(5)));
    assert_eq!(result(&governor, "task/get", &json!({ "taskId": task })), closed);
    assert_eq!(result(&governor, "task/get", &child)["state"], "closed", "what was delegated from it closes too");
}

#[test]
fn an_intent_is_enforced_under_a_task_as_an_input_is() {
    let (governor, _) = governor();
    let task = open(&governor);
    let decided = |input: &Value| {
        let intent = result(&governor, "intent", &json!({ "agentId": "desk", "input": input }))["intent"].clone();
        result(&governor, "enforce", &json!({ "intent": intent, "taskId": task }))
    };
    let sent = decided(&mail("ann@example.com"));
    assert_eq!(sent["decision"], "ALLOW", "{sent}");
    assert!(sent.get("intent").is_none());
    assert_eq!(decided(&mail("eve@evil.example"))["decision"], "ESCALATE", "an address that the user did not name");
    assert_eq!(decided(&deletion("7"))["denialClass"], "mandate");
    // A complete parse result can be sent back.
    let parsed = result(&governor, "intent", &json!({ "agentId": "desk", "input": deletion("8") }));
    assert_eq!(result(&governor, "enforce", &with(&parsed, json!({ "taskId": task })))["denialClass"], "mandate");
    assert_eq!(result(&governor, "task/get", &json!({ "taskId": task }))["calls"], 4);
}

#[test]
fn what_names_no_task_of_the_agent_is_not_found() {
    let (governor, _) = governor();
    let task = open(&governor);
    let intent = |agent: &str| json!({ "agentId": agent, "parsedAction": "send_email", "riskLevel": "LOW", "requiredCapabilities": ["email:send"] });
    for (agent, id) in [("desk", "x"), ("desk", ""), ("desk", UNKNOWN), ("helper", task.as_str())] {
        for params in [
            json!({ "agentId": agent, "input": mail("ann@example.com"), "taskId": id }),
            json!({ "intent": intent(agent), "taskId": id }),
        ] {
            let refused = refusal(&governor, "enforce", &params);
            assert_eq!((&refused["code"], &refused["httpStatus"]), (&json!("TASK_NOT_FOUND"), &json!(404)), "{params}");
        }
    }
    for id in ["x", UNKNOWN] {
        for (method, more) in [
            ("task/get", json!({})),
            ("task/close", json!({})),
            ("task/say", json!({ "input": "more" })),
            ("task/delegate", json!({ "agentId": "helper", "input": "more" })),
            ("task/observe", json!({ "call": { "name": "send_email" }, "result": "sent" })),
        ] {
            let refused = refusal(&governor, method, &with(&json!({ "taskId": id }), more));
            assert_eq!((&refused["code"], &refused["httpStatus"]), (&json!("TASK_NOT_FOUND"), &json!(404)), "{method}");
        }
    }
    assert_eq!(result(&governor, "proof/query", &json!({ "entityId": "helper" }))["total"], 0);
}

/// A request that loses its task id must not be decided without the mandate.
#[test]
fn a_task_id_that_is_malformed_or_misspelt_never_counts_as_none() {
    let (governor, _) = governor();
    let task = open(&governor);
    let intent =
        result(&governor, "intent", &json!({ "agentId": "desk", "input": mail("ann@example.com") }))["intent"].clone();
    let before = result(&governor, "proof/query", &json!({ "entityId": "desk" }))["total"].clone();
    for request in [json!({ "agentId": "desk", "input": mail("ann@example.com") }), json!({ "intent": intent })] {
        for wrong in [json!(null), json!(7), json!([task]), json!({ "taskId": task })] {
            let refused = refusal(&governor, "enforce", &with(&request, json!({ "taskId": wrong })));
            assert_eq!((&refused["code"], &refused["details"]["field"]), (&json!("INVALID_INPUT"), &json!("taskId")));
        }
        for misspelt in ["taskid", "task_id", "TaskId"] {
            let refused = call(&governor, "enforce", &with(&request, json!({ misspelt: task })))["error"].clone();
            assert_eq!(refused["data"]["code"], "INVALID_INPUT", "{misspelt}");
            assert!(refused["message"].as_str().unwrap().contains("taskId"), "{refused}");
        }
        for method in ["policy/explain", "policy/preview"] {
            for value in [json!(task), json!(null)] {
                let refused = call(&governor, method, &with(&request, json!({ "taskId": value })))["error"].clone();
                assert_eq!(refused["data"]["code"], "INVALID_INPUT", "{method}: {refused}");
                assert!(refused["message"].as_str().unwrap().contains("unknown field \"taskId\""), "{refused}");
            }
        }
    }
    assert_eq!(result(&governor, "proof/query", &json!({ "entityId": "desk" }))["total"], before);
}

#[test]
fn a_task_that_is_over_takes_nothing_more() {
    let (governor, clock) = governor();
    let assert_over = |task: &str, state: &str| {
        for (method, more) in [
            ("enforce", json!({ "agentId": "desk", "input": mail("ann@example.com") })),
            ("task/say", json!({ "input": "more" })),
            ("task/delegate", json!({ "agentId": "helper", "input": "more" })),
            ("task/observe", json!({ "call": { "name": "send_email" }, "result": "sent" })),
            ("task/close", json!({})),
        ] {
            let refused = refusal(&governor, method, &with(&more, json!({ "taskId": task })));
            assert_eq!(
                (&refused["code"], &refused["httpStatus"]),
                (&json!("CONFLICT"), &json!(409)),
                "{method} {state}"
            );
        }
        assert_eq!(result(&governor, "task/get", &json!({ "taskId": task }))["state"], state);
    };
    let closed = open(&governor);
    result(&governor, "task/close", &json!({ "taskId": closed }));
    assert_over(&closed, "closed");

    // Refused calls cost only themselves.
    let expired = open(&governor);
    for id in ["1", "2", "3", "4"] {
        assert_eq!(enforce(&governor, &expired, &deletion(id))["denialClass"], "mandate");
    }
    assert_eq!(enforce(&governor, &expired, &mail("ann@example.com"))["decision"], "ALLOW");
    clock.set(NEXT_DAY);
    assert_over(&expired, "expired");
}

#[test]
fn calls_beyond_the_limit_are_denied() {
    let (governor, _) = governor();
    let request = json!({ "agentId": "desk", "input": WORDS, "maxCalls": 1 });
    let task = result(&governor, "task/open", &request)["taskId"].as_str().unwrap().to_owned();
    assert_eq!(enforce(&governor, &task, &mail("ann@example.com"))["decision"], "ALLOW");
    assert_eq!(enforce(&governor, &task, &mail("ann@example.com"))["decision"], "DENY");
}

#[test]
fn a_field_that_does_not_fit_is_named() {
    let (governor, _) = governor();
    let request = json!({ "agentId": "desk", "input": WORDS });
    let task = json!({ "taskId": open(&governor) });
    let call = json!({ "name": "send_email", "arguments": {} });
    let many: Vec<u32> = (0..1001).collect();
    for (method, base, more, field) in [
        ("task/open", &json!({ "input": WORDS }), json!({}), "agentId"),
        ("task/open", &json!({ "agentId": "desk" }), json!({}), "input"),
        ("task/open", &request, json!({ "agentId": 7 }), "agentId"),
        ("task/open", &request, json!({ "agentId": "" }), "agentId"),
        ("task/open", &request, json!({ "input": "  " }), "input"),
        ("task/open", &request, json!({ "input": { "tool": "send_email", "arguments": {} } }), "input"),
        ("task/open", &request, json!({ "trusted": "ann@example.com" }), "trusted"),
        ("task/open", &request, json!({ "trusted": [true] }), "trusted"),
        ("task/open", &request, json!({ "trusted": [["ann@example.com"]] }), "trusted"),
        ("task/open", &request, json!({ "trusted": [null] }), "trusted"),
        ("task/open", &request, json!({ "trusted": [" "] }), "trusted"),
        ("task/open", &request, json!({ "trusted": ["x".repeat(1025)] }), "trusted"),
        ("task/open", &request, json!({ "trusted": many }), "trusted"),
        ("task/open", &request, json!({ "context": [] }), "context"),
        ("task/open", &request, json!({ "context": { "trusted": ["eve@evil.example"] } }), "context"),
        ("task/open", &request, json!({ "expiresIn": 0 }), "expiresIn"),
        ("task/open", &request, json!({ "expiresIn": -1 }), "expiresIn"),
        ("task/open", &request, json!({ "expiresIn": 0.5 }), "expiresIn"),
        ("task/open", &request, json!({ "expiresIn": "60" }), "expiresIn"),
        ("task/open", &request, json!({ "expiresIn": 2_678_401 }), "expiresIn"),
        ("task/open", &request, json!({ "expiresIn": u64::MAX }), "expiresIn"),
        ("task/open", &request, json!({ "maxCalls": 0 }), "maxCalls"),
        ("task/open", &request, json!({ "maxCalls": 100_001 }), "maxCalls"),
        ("task/open", &request, json!({ "maxCalls": true }), "maxCalls"),
        ("task/say", &task, json!({}), "input"),
        ("task/say", &task, json!({ "input": "" }), "input"),
        ("task/say", &json!({ "input": "more" }), json!({}), "taskId"),
        ("task/get", &json!({}), json!({}), "taskId"),
        ("task/get", &json!({ "taskId": 7 }), json!({}), "taskId"),
        ("task/delegate", &task, json!({ "agentId": "helper" }), "input"),
        ("task/delegate", &task, json!({ "input": "more" }), "agentId"),
        ("task/close", &task, json!({ "outcome": "DONE" }), "outcome"),
        ("task/observe", &task, json!({ "result": "x" }), "call"),
        ("task/observe", &task, json!({ "call": call }), "result"),
        ("task/observe", &task, json!({ "call": ["send_email", {}], "result": "x" }), "call"),
        (
            "task/observe",
            &task,
            json!({ "call": { "toolName": "send_email", "arguments": {} }, "result": "x" }),
            "call",
        ),
        ("task/observe", &task, json!({ "call": { "name": "send_email", "arguments": [] }, "result": "x" }), "call"),
    ] {
        let params = with(base, more);
        let refused = refusal(&governor, method, &params);
        let (code, at) = (&refused["code"], &refused["details"]["field"]);
        assert_eq!((code, at), (&json!("INVALID_INPUT"), &json!(field)), "{method} {params}: {refused}");
    }
    // A field that is ignored or has lost its value would leave the agent more than intended.
    for more in
        [json!({ "maxcalls": 1 }), json!({ "expires": 60 }), json!({ "maxCalls": null }), json!({ "expiresIn": null })]
    {
        assert_eq!(refusal(&governor, "task/open", &with(&request, more.clone()))["code"], "INVALID_INPUT", "{more}");
    }
    for (method, params) in [
        ("task/open", json!({ "agentId": "nobody", "input": WORDS })),
        ("task/delegate", with(&task, json!({ "agentId": "nobody", "input": "more" }))),
    ] {
        assert_eq!(refusal(&governor, method, &params)["code"], "AGENT_NOT_FOUND", "{method}");
    }
    let long = json!({ "agentId": "desk", "input": "x ".repeat(40_000) });
    assert_eq!(refusal(&governor, "task/open", &long)["code"], "PAYLOAD_TOO_LARGE");
}

#[test]
fn a_result_is_taken_only_of_a_call_that_was_enforced() {
    let (governor, _) = governor();
    let task = open(&governor);
    enforce(&governor, &task, &mail("ann@example.com"));
    let observed = |name: &str, to: &str, value: Value| json!({ "taskId": task, "call": { "name": name, "arguments": arguments(to) }, "result": value });
    for (name, to) in [("read_email", "ann@example.com"), ("send_email", "bob@example.com")] {
        let refused = refusal(&governor, "task/observe", &observed(name, to, json!("sent")));
        assert_eq!((&refused["code"], &refused["httpStatus"]), (&json!("CONFLICT"), &json!(409)));
    }
    // Tool results may be larger than other requests.
    let large = "word ".repeat(200_000);
    result(&governor, "task/observe", &observed("send_email", "ann@example.com", json!(large)));
    assert_eq!(result(&governor, "task/get", &json!({ "taskId": task }))["state"], "open");
    let too_large = "x".repeat(8 << 20);
    let refused = refusal(&governor, "task/observe", &observed("send_email", "ann@example.com", json!(too_large)));
    assert_eq!(refused["code"], "PAYLOAD_TOO_LARGE");
}

#[test]
fn an_approval_for_the_task_widens_its_mandate() {
    let (governor, _) = governor();
    let task = open(&governor);
    let ask = || {
        let asked = enforce(&governor, &task, &mail("carol@example.com"));
        assert_eq!(asked["decision"], "ESCALATE", "{asked}");
        asked["proofId"].clone()
    };
    let trusted = || result(&governor, "task/get", &json!({ "taskId": task }))["mandate"]["trusted"].clone();
    let once = json!({ "id": ask(), "reviewer": "ann", "forTask": false });
    assert_eq!(result(&governor, "escalation/approve", &once)["state"], "approved");
    assert_eq!(trusted(), 0);

    let asked = ask();
    let rejected = json!({ "id": asked, "reviewer": "ann", "forTask": true });
    assert_eq!(refusal(&governor, "escalation/reject", &rejected)["code"], "INVALID_INPUT");
    for wrong in [json!(null), json!("yes"), json!(1)] {
        let refused = refusal(&governor, "escalation/approve", &with(&rejected, json!({ "forTask": wrong })));
        assert_eq!(refused["code"], "INVALID_INPUT", "{wrong}");
    }
    let for_task = json!({ "id": asked, "reviewer": "ann", "note": "known", "forTask": true });
    assert_eq!(result(&governor, "escalation/approve", &for_task)["state"], "approved");
    assert_eq!(trusted(), 1);
    assert_eq!(enforce(&governor, &task, &mail("carol@example.com"))["decision"], "ALLOW");
    assert_eq!(enforce(&governor, &task, &mail("dave@example.com"))["decision"], "ESCALATE");
}

#[test]
fn an_agent_that_needs_a_mandate_is_denied_without_a_task() {
    let (governor, _) = governor();
    let agent = json!({ "agentId": "strict", "tier": "T5", "attributes": { "mandate": "required" } });
    result(&governor, "agent/register", &agent);
    let request = json!({ "agentId": "strict", "input": mail("ann@example.com") });
    let denied = result(&governor, "enforce", &request);
    assert_eq!((&denied["decision"], &denied["denialClass"]), (&json!("DENY"), &json!("mandate")), "{denied}");
    let opened = result(&governor, "task/open", &json!({ "agentId": "strict", "input": WORDS }));
    let under = with(&request, json!({ "taskId": opened["taskId"] }));
    assert_eq!(result(&governor, "enforce", &under)["decision"], "ALLOW");
    let lifted = json!({ "agentId": "strict", "attributes": {} });
    result(&governor, "agent/update", &lifted);
    assert_eq!(result(&governor, "enforce", &request)["decision"], "ALLOW");
}

#[test]
fn a_task_outlasts_a_restart_with_words_counts_and_end() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Hand::at(NOON));
    let governor = in_folder(folder.path(), &clock);
    let request = json!({ "agentId": "desk", "input": WORDS, "trusted": ["bob@example.com"], "maxCalls": 4 });
    let opened = result(&governor, "task/open", &request);
    let task = opened["taskId"].as_str().unwrap();
    result(&governor, "task/say", &json!({ "taskId": task, "input": "Copy carol@example.com too" }));
    assert_eq!(enforce(&governor, task, &mail("ann@example.com"))["decision"], "ALLOW");
    assert_eq!(enforce(&governor, task, &deletion("7"))["denialClass"], "mandate");
    let closed = open(&governor);
    result(&governor, "task/close", &json!({ "taskId": closed, "outcome": "FAILURE" }));
    let id = json!({ "taskId": task });
    let before = result(&governor, "task/get", &id);
    governor.close().unwrap();
    drop(governor);

    let governor = in_folder(folder.path(), &clock);
    assert_eq!(result(&governor, "task/get", &id), before);
    let ended = result(&governor, "task/get", &json!({ "taskId": closed }));
    assert_eq!((&ended["state"], &ended["outcome"]), (&json!("closed"), &json!("FAILURE")));
    assert_eq!(enforce(&governor, task, &mail("bob@example.com"))["decision"], "ALLOW", "a trusted value");
    assert_eq!(enforce(&governor, task, &deletion("8"))["denialClass"], "mandate");
    assert_eq!(enforce(&governor, task, &mail("carol@example.com"))["decision"], "DENY", "its calls are used up");
    clock.set(NEXT_DAY);
    let late = json!({ "agentId": "desk", "input": mail("ann@example.com"), "taskId": task });
    assert_eq!(refusal(&governor, "enforce", &late)["code"], "CONFLICT");
    assert_eq!(result(&governor, "task/get", &id)["state"], "expired");
}
