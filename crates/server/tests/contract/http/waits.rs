//! Waiting for an escalation delays neither other requests nor the end of the server.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use rulekeep::escalation::{EscalationId, Review};
use rulekeep::proof::ProofId;
use rulekeep_server::gateway::{KeyDraft, Plan, Scope};
use rulekeep_server::http::Server;
use serde_json::json;

use super::live::{Ask, Client, Live, mailing, reading, wide};

/// Makes a request that a reviewer has to answer.
fn escalated(live: &Live) -> EscalationId {
    let asked = live.post("/v1/enforce", &live.agent, &mailing("a")).ok();
    EscalationId::of(asked["proofId"].as_str().unwrap().parse::<ProofId>().unwrap())
}

fn approve(live: &Live, id: EscalationId) {
    live.governor.escalations().approve(id, Review::by("mail-lead")).unwrap();
}

/// Starts this many waiting clients with a key of their own, and returns when all are admitted.
fn waiting(live: &Live, id: EscalationId, many: u32) -> Vec<Client<TcpStream>> {
    // The clock stands still, so the remaining allowance shows how many were admitted.
    let burst = 100_000;
    let key = live.key(KeyDraft::new(Scope::Agent, Plan::enterprise(1, burst).unwrap())).key;
    let path = format!("/v1/escalations/{id}/wait");
    let asked = Ask::new("POST", &path).key(key.expose()).json(&json!({ "timeoutMs": 10_000 })).bytes();
    let send = |_| {
        let mut client = live.client();
        client.send(&asked).unwrap();
        client
    };
    let clients = (0..many).map(send).collect();
    let deadline = Instant::now() + Duration::from_secs(30);
    for looked in 1.. {
        let limit = live.get("/v1/agents/a", key.expose()).header("ratelimit").unwrap().to_owned();
        if limit.contains(&format!("r={};", burst - many - looked)) {
            break;
        }
        assert!(Instant::now() < deadline, "{limit}");
    }
    clients
}

#[test]
fn who_waits_holds_up_nobody_who_waits_for_another() {
    let live = Live::new();
    let (first, second) = (escalated(&live), escalated(&live));
    let waiting = waiting(&live, first, 200);
    let looked = live.post(&format!("/v1/escalations/{second}/wait"), &live.agent, &json!({ "timeoutMs": 0 })).ok();
    assert_eq!(looked["state"], "pending");
    let mut other = live.client();
    let path = format!("/v1/escalations/{second}/wait");
    other.send(Ask::new("POST", &path).key(&live.agent).json(&json!({ "timeoutMs": 10_000 })).bytes()).unwrap();
    approve(&live, second);
    assert_eq!(other.answer().unwrap().ok()["state"], "approved");
    // They are still waiting: had one ended before the approval, its response would be pending.
    approve(&live, first);
    for mut client in waiting {
        assert_eq!(client.answer().unwrap().ok()["state"], "approved");
    }
}

#[test]
fn who_waits_does_not_hold_up_the_end() {
    let mut live = Live::with(Server::new().drain_timeout(Duration::from_secs(5)));
    let id = escalated(&live);
    let waiting = waiting(&live, id, 3);
    live.end();
    for mut client in waiting {
        assert_eq!(client.answer().unwrap().ok()["state"], "pending");
        assert!(client.is_closed());
    }
    live.ended().unwrap();
}

#[test]
fn a_wait_under_an_idempotency_key_is_waited_anew() {
    let live = Live::new();
    let id = escalated(&live);
    let path = format!("/v1/escalations/{id}/wait");
    let asked =
        Ask::new("POST", &path).key(&live.agent).json(&json!({ "timeoutMs": 0 })).header("Idempotency-Key", "k");
    assert_eq!(live.ask(&asked).ok()["state"], "pending");
    approve(&live, id);
    let again = live.ask(&asked);
    assert_eq!((again.ok()["state"].as_str(), again.header("idempotent-replayed")), (Some("approved"), None));
}

#[test]
fn a_wait_for_a_missing_or_foreign_record_is_refused_at_once() {
    let live = Live::new();
    let id = escalated(&live);
    let others = live.key(KeyDraft::new(Scope::Agent, wide()).agent("b")).key;
    let wait = |id: &str, key: &str, millis: u64| {
        live.post(&format!("/v1/escalations/{id}/wait"), key, &json!({ "timeoutMs": millis })).refusal()
    };
    assert_eq!(wait(&id.to_string(), others.expose(), 10_000), (403, "FORBIDDEN".into()));
    let allowed = live.post("/v1/enforce", &live.agent, &reading("a")).ok()["proofId"].as_str().unwrap().to_owned();
    assert_eq!(wait(&allowed, &live.agent, 10_000), (404, "PROOF_NOT_FOUND".into()));
    assert_eq!(wait(&id.to_string(), &live.agent, 10_001), (400, "INVALID_INPUT".into()));
}

#[test]
fn who_may_not_see_it_is_refused_while_others_wait_for_it() {
    let live = Live::new();
    let id = escalated(&live);
    let others = live.key(KeyDraft::new(Scope::Agent, wide()).agent("b")).key;
    let waiting = waiting(&live, id, 1);
    // Each for as long as the first: if they waited, the first would end before, unanswered.
    for _ in 0..2 {
        let refused =
            live.post(&format!("/v1/escalations/{id}/wait"), others.expose(), &json!({ "timeoutMs": 10_000 }));
        assert_eq!(refused.refusal(), (403, "FORBIDDEN".into()));
    }
    approve(&live, id);
    for mut client in waiting {
        assert_eq!(client.answer().unwrap().ok()["state"], "approved", "whoever was refused had waited");
    }
}
