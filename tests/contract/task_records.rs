//! What the log keeps of tasks: a mandate that a restart does not widen, and counts that outlast the end of a task.

use std::path::Path;

use rulekeep::intent::DenialClass;
use rulekeep::task::{TaskRequest, TaskState, ToolCall};
use rulekeep::{Agent, Decision, Governor, Tier};
use serde_json::{Map, Value, json};

fn opened(folder: &Path) -> Governor {
    let governor = Governor::open(folder).unwrap();
    if governor.agents().get("desk").is_err() {
        governor.agents().register(Agent::new("desk").at_tier(Tier::T5)).unwrap();
    }
    governor
}

fn request() -> TaskRequest {
    TaskRequest::new("desk", "Send the agenda to ann@example.com")
}

fn context(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// The record of an opening keeps trusted values and acts in its context, from which a restart restores the mandate.
#[test]
fn a_context_cannot_widen_the_mandate_by_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let governor = opened(folder.path());
    for key in ["trusted", "acts", "taskId"] {
        let error =
            governor.tasks().open(request().context(context(&json!({ key: ["payment:transfer"] })))).unwrap_err();
        assert_eq!((error.code(), error.details().unwrap()["field"].as_str()), ("INVALID_INPUT", Some("context")));
        assert!(error.to_string().contains(key), "{error}");
    }
    let task = governor.tasks().open(request().context(context(&json!({ "channel": "chat" })))).unwrap();
    let before = task.info().unwrap().mandate;
    let id = task.id();
    drop(task);
    governor.close().unwrap();
    drop(governor);
    let after = opened(folder.path()).tasks().get(id).unwrap().info().unwrap();
    assert_eq!((after.mandate, after.state), (before, TaskState::Open));
}

#[test]
fn a_context_that_does_not_hold_is_a_fault_of_the_input() {
    let governor = opened(tempfile::tempdir().unwrap().path());
    let nested = (0..40).fold(json!(1), |inner, _| json!([inner]));
    for wrong in [json!({ "callId": 7 }), json!({ "deep": nested }), json!({ "environment": 7 })] {
        let error = governor.tasks().open(request().context(context(&wrong))).unwrap_err();
        assert_eq!(
            (error.code(), error.details().unwrap()["field"].as_str()),
            ("INVALID_INPUT", Some("context")),
            "{wrong}"
        );
    }
}

#[test]
fn trusted_values_that_no_record_can_keep_are_too_large() {
    let governor = opened(tempfile::tempdir().unwrap().path());
    let values = (0..64).map(|number| format!("{number:01000}"));
    let error = governor.tasks().open(request().trusting(values)).unwrap_err();
    assert_eq!(error.code(), "PAYLOAD_TOO_LARGE");
    assert!(error.to_string().contains("trusted"), "{error}");
}

#[test]
fn a_task_that_was_closed_keeps_its_counts_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let governor = opened(folder.path());
    let task = governor.tasks().open(request()).unwrap();
    let asked = ToolCall::new("send_email", json!({ "recipients": ["ann@example.com"], "body": "The agenda" }));
    assert_eq!(task.enforce(&asked).unwrap().enforcement.decision, Decision::Allow);
    let unasked = ToolCall::new("delete_email", json!({ "email_id": "7" }));
    assert_eq!(task.enforce(&unasked).unwrap().enforcement.decision, Decision::Deny);
    let closed = task.close(None).unwrap();
    assert_eq!((closed.calls, closed.refused.get(&DenialClass::Mandate)), (2, Some(&1)));
    let id = task.id();
    drop(task);
    governor.close().unwrap();
    drop(governor);
    let after = opened(folder.path()).tasks().get(id).unwrap().info().unwrap();
    assert_eq!((after.calls, after.refused, after.state), (2, closed.refused, TaskState::Closed));
}
