//! Events between the responses of the sidecar.

use std::io::{BufReader, Read, Write};
use std::sync::{Arc, Mutex};

use rulekeep::{Agent, Durability, Tier};
use rulekeep_server::sidecar;
use serde_json::{Value, json};

use crate::common::{Served, builder, in_memory, reading, refusal, serve};

fn line(id: u64, method: &str, params: &Value) -> String {
    format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

fn enforce(id: u64) -> String {
    line(id, "enforce", &json!({ "intent": reading("a") }))
}

#[test]
fn events_come_between_answers_after_their_subscriptions_answer() {
    let governor = builder().durability(Durability::Buffered).open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    let types = json!({ "types": ["proof.recorded"], "agentId": "a" });
    let input = enforce(1) + &line(2, "event/subscribe", &types) + &enforce(3) + &enforce(4);
    let governor = Served::new(&governor);
    let lines = serve(&governor, input);
    let answer = |id: u64| lines.iter().position(|line| line["id"] == id).unwrap();
    assert_eq!(lines[answer(2)]["result"], json!({ "subscriptionId": "sub_1" }));
    let events: Vec<&Value> = lines.iter().filter(|line| line["method"] == "event").collect();
    assert_eq!(events.len(), 2);
    for (event, id) in events.iter().zip([3, 4]) {
        assert_eq!((&event["jsonrpc"], &event["params"]["subscriptionId"]), (&json!("2.0"), &json!("sub_1")));
        assert!(event.get("id").is_none());
        let data = &event["params"]["event"]["data"];
        assert_eq!(data["id"], lines[answer(id)]["result"]["proofId"]);
    }
    let first_event = lines.iter().position(|line| line["method"] == "event").unwrap();
    assert!(first_event > answer(2));
}

#[test]
fn a_subscription_goes_on_behind_an_event_and_ends_when_told() {
    let governor = in_memory();
    let lines = serve(&governor, line(1, "event/subscribe", &json!({})) + &enforce(2));
    let events: Vec<&Value> = lines.iter().filter(|line| line["method"] == "event").collect();
    assert_eq!(events.len(), 2);
    let after = json!({ "after": events[0]["params"]["event"]["id"] });
    let again = serve(&governor, line(1, "event/subscribe", &after));
    assert_eq!(again[1]["params"]["event"], events[1]["params"]["event"]);
    assert_eq!(again.len(), 2);

    let end = json!({ "subscriptionId": "sub_1" });
    let ended = line(1, "event/subscribe", &json!({})) + &line(2, "event/unsubscribe", &end) + &enforce(3);
    assert_eq!(serve(&governor, ended).iter().filter(|line| line["method"] == "event").count(), 0);
}

#[test]
fn what_cannot_be_subscribed_to_is_refused_with_the_field() {
    let governor = in_memory();
    for (method, params, code, field) in [
        ("event/subscribe", json!({ "types": ["decision"] }), "INVALID_INPUT", "types"),
        ("event/subscribe", json!({ "types": "proof.recorded" }), "INVALID_INPUT", "types"),
        ("event/subscribe", json!({ "agentId": 1 }), "INVALID_INPUT", "agentId"),
        ("event/subscribe", json!({ "after": "evt_1" }), "INVALID_QUERY", "after"),
        ("event/unsubscribe", json!({ "subscriptionId": "sub_9" }), "INVALID_INPUT", "subscriptionId"),
        ("event/unsubscribe", json!({}), "INVALID_INPUT", "subscriptionId"),
    ] {
        let data = refusal(&governor, method, &params);
        assert_eq!(data["code"], code, "{method} {params}");
        let shown = data["details"].to_string();
        assert!(shown.contains(field), "{method} {params}: {shown}");
    }
    let many: String = (0..65).map(|id| line(id, "event/subscribe", &json!({}))).collect();
    let answers = serve(&governor, many);
    assert_eq!(answers[64]["error"]["data"]["code"], "CONFLICT");
    assert!(answers[63]["result"]["subscriptionId"].is_string());
}

/// A slow output.
#[derive(Clone, Default)]
struct Slow(Arc<Mutex<Vec<u8>>>);

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // A few bytes at a time, so that a line not written under one lock would be torn.
        let some = bytes.len().min(7);
        self.0.lock().unwrap().extend_from_slice(&bytes[..some]);
        std::thread::yield_now();
        Ok(some)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn lines_stay_whole_when_many_write() {
    let governor = in_memory();
    let subscriptions: String = (0..8).map(|id| line(id, "event/subscribe", &json!({}))).collect();
    let input = subscriptions + &(100..150).map(enforce).collect::<String>();
    let output = Slow::default();
    sidecar::serve(&governor.gateway, BufReader::new(input.as_bytes()), output.clone()).unwrap();
    let mut text = String::new();
    output.0.lock().unwrap().as_slice().read_to_string(&mut text).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 8 + 50 + 8 * 50 * 2);
}
