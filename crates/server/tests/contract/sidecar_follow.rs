//! Over lines: following events from a stored position, and listing open records.

use std::io::{BufRead, BufReader, Write};
use std::thread;
use std::time::Duration;

use crate::common::{Served, builder, decide, in_folder, in_memory, intent, reading, refusal, result, serve};
use rulekeep::escalation::{EscalationState, Review};
use rulekeep::{Agent, Decision, Outcome, PolicySet, Tier};
use rulekeep_server::sidecar;
use serde_json::{Value, json};

fn line(id: u64, method: &str, params: &Value) -> String {
    format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
}

/// A session that is used while it lasts.
struct Session<'a> {
    to: &'a mut dyn Write,
    from: &'a mut dyn BufRead,
}

impl Session<'_> {
    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn send(&mut self, method: &str, params: &Value) {
        self.to.write_all(line(1, method, params).as_bytes()).unwrap();
    }

    /// The response to a call, with no event before it.
    fn call(&mut self, method: &str, params: &Value) -> Value {
        self.send(method, params);
        self.next()
    }

    fn events(&mut self, count: usize) -> Vec<Value> {
        (0..count).map(|_| self.next()["params"]["event"]["id"].clone()).collect()
    }
}

/// Runs a session until the closure ends.
fn talk(governor: &Served, talk: impl FnOnce(&mut Session<'_>)) {
    let ((input, mut to), (from, output)) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    thread::scope(|scope| {
        let served = scope.spawn(move || sidecar::serve(&governor.gateway, BufReader::new(input), output));
        talk(&mut Session { to: &mut to, from: &mut BufReader::new(from) });
        drop(to);
        served.join().unwrap().unwrap();
    });
}

#[test]
fn a_named_cursor_goes_on_after_a_new_session_and_run() {
    let folder = tempfile::tempdir().unwrap();
    let governor = in_folder(folder.path());
    let subscribe = json!({ "cursor": "billing" });
    let mut ids = Vec::new();
    talk(&governor, |session| {
        let id = session.call("event/subscribe", &subscribe)["result"]["subscriptionId"].clone();
        for _ in 0..3 {
            decide(&governor, "a");
        }
        ids = session.events(6);
        let of = |event: &Value| json!({ "subscriptionId": id, "eventId": event });
        assert_eq!(session.call("event/acknowledge", &of(&ids[3]))["result"], of(&ids[3]));
        assert_eq!(session.call("event/acknowledge", &of(&ids[1]))["result"], of(&ids[1]), "it never goes back");
    });
    governor.close().unwrap();
    let governor = in_folder(folder.path());
    talk(&governor, |session| {
        session.call("event/subscribe", &subscribe);
        assert_eq!(session.events(2), ids[4..]);
    });
    let told = |lines: &[Value]| lines.iter().filter(|line| line["method"] == "event").count();
    assert_eq!(told(&serve(&governor, line(1, "event/subscribe", &subscribe))), 2, "nothing more was acknowledged");
    assert_eq!(result(&governor, "event/forget", &json!({ "cursor": "billing" })), json!({ "cursor": "billing" }));
    assert_eq!(told(&serve(&governor, line(1, "event/subscribe", &subscribe))), 0, "it begins anew");
}

#[test]
fn what_was_not_told_or_has_no_cursor_is_not_acknowledged() {
    let governor = in_memory();
    let mut plain = governor.subscribe(&rulekeep::event::EventFilter::all()).unwrap();
    let cursor = json!({ "cursor": "billing", "agentId": "b" });
    talk(&governor, |session| {
        session.call("event/subscribe", &cursor);
        session.call("event/subscribe", &json!({ "types": ["alert.triggered"] }));
        decide(&governor, "a");
        let event = plain.wait().unwrap().unwrap().id;
        for (id, code) in [("sub_1", "INVALID_QUERY"), ("sub_2", "CONFLICT"), ("sub_3", "INVALID_INPUT")] {
            let params = json!({ "subscriptionId": id, "eventId": event });
            assert_eq!(session.call("event/acknowledge", &params)["error"]["data"]["code"], code, "{id}");
        }
    });
    for (method, params, code) in [
        ("event/subscribe", json!({ "cursor": "alerts" }), "INVALID_INPUT"),
        ("event/subscribe", json!({ "cursor": 1 }), "INVALID_INPUT"),
        ("event/subscribe", json!({ "latest": "1" }), "INVALID_INPUT"),
        ("event/forget", json!({ "cursor": "nobody's" }), "INVALID_INPUT"),
        ("event/forget", json!({}), "INVALID_INPUT"),
        ("event/acknowledge", json!({ "subscriptionId": "sub_1" }), "INVALID_QUERY"),
    ] {
        assert_eq!(refusal(&governor, method, &params)["code"], code, "{method} {params}");
    }
}

#[test]
fn who_wants_the_latest_jumps_ahead_and_is_told_how_far() {
    let governor = in_memory();
    let mut plain = governor.subscribe(&rulekeep::event::EventFilter::all()).unwrap();
    decide(&governor, "a");
    let first = plain.wait().unwrap().unwrap().id;
    let last = [(); 10].map(|()| decide(&governor, "a"))[9];
    let subscribe = json!({ "after": first, "latest": 1, "types": ["governance.decision"] });
    let lines = serve(&governor, line(1, "event/subscribe", &subscribe));
    assert_eq!(lines.len(), 2, "{lines:?}");
    let params = &lines[1]["params"];
    assert_eq!((&params["event"]["data"]["proofId"], &params["skipped"]), (&json!(last), &json!(9)));
}

#[test]
fn agents_are_listed_by_pages() {
    let governor = in_memory();
    for number in 0..5 {
        governor.agents().register(Agent::new(format!("b{number}")).with_label("staff")).unwrap();
    }
    let page = |page: u64| result(&governor, "agent/list", &json!({ "page": page, "pageSize": 4 }));
    let ids = |page: &Value| -> Vec<String> {
        page["items"].as_array().unwrap().iter().map(|agent| agent["agentId"].as_str().unwrap().to_owned()).collect()
    };
    let (first, second) = (page(1), page(2));
    assert_eq!([ids(&first), ids(&second)].concat(), ["a", "b0", "b1", "b2", "b3", "b4"]);
    let rest = |page: &Value| (page["total"].clone(), page["hasMore"].clone());
    assert_eq!((rest(&first), rest(&second)), ((json!(6), json!(true)), (json!(6), json!(false))));
    assert_eq!((&first["items"][1]["labels"], &first["items"][1]["state"]), (&json!(["staff"]), &json!("active")));
    assert!(ids(&page(u64::MAX)).is_empty());
    for params in [json!({ "page": 0 }), json!({ "pageSize": 0 }), json!({ "pageSize": 201 })] {
        assert_eq!(refusal(&governor, "agent/list", &params)["code"], "INVALID_QUERY", "{params}");
    }
}

#[test]
fn what_was_granted_and_has_no_outcome_is_listed_by_pages() {
    let governor = in_memory();
    governor.agents().register(Agent::new("b").at_tier(Tier::T4)).unwrap();
    let granted: Vec<_> = ["a", "b", "a", "a"].map(|agent| decide(&governor, agent)).to_vec();
    let denied = governor.enforce(&intent("a", &["file:delete"])).unwrap();
    assert_eq!(denied.decision, Decision::Deny);
    governor.report(&granted[2], Outcome::Success).unwrap();
    let open = |params: Value| {
        let page = result(&governor, "proof/open", &params);
        let ids: Vec<Value> = page["items"].as_array().unwrap().iter().map(|item| item["id"].clone()).collect();
        (ids, page["total"].clone())
    };
    let [a, b, _, d] = granted[..] else { unreachable!() };
    assert_eq!(open(json!({})), (vec![json!(d), json!(b), json!(a)], json!(3)));
    assert_eq!(open(json!({ "pageSize": 2, "page": 2, "decision": "ALLOW" })), (vec![json!(a)], json!(3)));
    assert_eq!(open(json!({ "entityId": "b" })), (vec![json!(b)], json!(1)));
    assert_eq!(refusal(&governor, "proof/open", &json!({ "page": 0 }))["code"], "INVALID_QUERY");
}

#[test]
fn an_escalation_is_waited_for_and_not_longer_than_was_asked() {
    let asks = "name = \"p\"\n[[rule]]\nid = \"all\"\neffect = \"escalate\"\nmatch.capabilities = [\"*:*\"]\n\
                reviewer = \"ann\"";
    let policies = PolicySet::from_toml(asks).unwrap();
    let governor = Served::new(&builder().policies(policies).open_in_memory().unwrap());
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    let asked = governor.enforce(&reading("a")).unwrap().proof_id;
    let wait = |millis: u64| result(&governor, "escalation/wait", &json!({ "id": asked, "timeoutMs": millis }));
    assert_eq!(wait(0)["state"], "pending");
    assert_eq!(result(&governor, "escalation/wait", &json!({ "id": asked }))["state"], "pending");
    assert_eq!(wait(20)["state"], "pending");
    talk(&governor, |session| {
        session.send("escalation/wait", &json!({ "id": asked, "timeoutMs": 1_000 }));
        let id = governor.escalations().pending().unwrap()[0].id;
        let resolved = governor.escalations().approve(id, Review::by("ann")).unwrap();
        let mut answer = session.next();
        if answer["result"]["state"] == "pending" {
            // A line may not wait longer, whatever else the machine is doing.
            session.send("escalation/wait", &json!({ "id": asked, "timeoutMs": 1_000 }));
            answer = session.next();
        }
        assert_eq!(answer["result"]["state"], json!(EscalationState::Approved), "{answer}");
        assert_eq!(answer["result"]["id"], json!(id));
        assert!(resolved.proof_id.is_some());
        // Waiting has claimed nothing.
        governor.escalations().claim(id, &reading("a")).unwrap();
        assert_eq!(governor.escalations().wait_answered(id, Duration::MAX).unwrap().state, EscalationState::Approved);
    });
    let too_long = json!({ "id": asked, "timeoutMs": 1_001 });
    assert_eq!(refusal(&governor, "escalation/wait", &too_long)["code"], "INVALID_INPUT");
}
