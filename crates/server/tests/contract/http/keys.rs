//! The keys that may make each call.

use rulekeep::system::Timestamp;
use rulekeep_server::gateway::{KeyDraft, Scope};
use serde_json::{Value, json};

use super::live::{Ask, Live, NOON, builder, mailing, reading, wide};
use crate::common::Hand;
use rulekeep_server::http::Server;

/// Every path that requires an admin key.
const ADMINS: &[(&str, &str)] = &[
    ("GET", "/admin/status"),
    ("GET", "/admin/records"),
    ("GET", "/admin/records/open"),
    ("GET", "/admin/verification"),
    ("POST", "/admin/checkpoints"),
    ("POST", "/admin/checkpoints/proof"),
    ("GET", "/admin/agents"),
    ("POST", "/admin/agents"),
    ("POST", "/admin/agents/import"),
    ("GET", "/admin/agents/export"),
    ("PATCH", "/admin/agents/a"),
    ("POST", "/admin/agents/a/suspend"),
    ("POST", "/admin/agents/a/resume"),
    ("POST", "/admin/agents/a/retire"),
    ("POST", "/admin/agents/a/trust"),
    ("POST", "/admin/trust/correct"),
    ("GET", "/admin/trust/verification"),
    ("POST", "/admin/tasks"),
    ("GET", "/admin/tasks/x"),
    ("POST", "/admin/tasks/x/observe"),
    ("POST", "/admin/tasks/x/say"),
    ("POST", "/admin/tasks/x/delegate"),
    ("POST", "/admin/tasks/x/close"),
    ("GET", "/admin/stops"),
    ("POST", "/admin/stops"),
    ("POST", "/admin/stops/x/lift"),
    ("POST", "/admin/clock"),
    ("GET", "/admin/escalations"),
    ("POST", "/admin/escalations/x/approve"),
    ("POST", "/admin/escalations/x/reject"),
    ("GET", "/admin/grants"),
    ("POST", "/admin/grants"),
    ("POST", "/admin/grants/x/revoke"),
    ("GET", "/admin/keys"),
    ("POST", "/admin/keys"),
    ("DELETE", "/admin/keys/x"),
    ("GET", "/admin/policies"),
    ("PUT", "/admin/policies"),
    ("POST", "/admin/policies/validate"),
    ("POST", "/admin/policies/replay"),
    ("POST", "/admin/policies/shadow"),
    ("POST", "/admin/policies/explain"),
    ("POST", "/admin/policies/preview"),
    ("GET", "/admin/catalogue"),
    ("POST", "/admin/catalogue"),
    ("POST", "/admin/catalogue/override"),
    ("POST", "/admin/catalogue/pin"),
    ("POST", "/admin/catalogue/remove"),
    ("GET", "/admin/webhooks"),
    ("POST", "/admin/webhooks"),
    ("DELETE", "/admin/webhooks/x"),
    ("POST", "/admin/webhooks/x/rotate"),
    ("POST", "/admin/webhooks/x/readdress"),
    ("POST", "/admin/webhooks/x/resume"),
    ("GET", "/admin/webhooks/x/deliveries"),
    ("POST", "/admin/webhooks/redeliver"),
];

/// The paths for agents, which require a key as well.
const AGENTS: &[(&str, &str)] = &[
    ("POST", "/intent"),
    ("POST", "/enforce"),
    ("GET", "/proof/query"),
    ("GET", "/proof/stats"),
    ("POST", "/proof/outcome"),
    ("GET", "/proof/records/x"),
    ("GET", "/agents/a"),
    ("GET", "/agents/a/trust"),
    ("GET", "/escalations/x"),
    ("POST", "/escalations/x/claim"),
    ("POST", "/escalations/x/wait"),
    ("POST", "/commands/request"),
    ("POST", "/commands/start"),
];

#[test]
fn the_lists_here_have_every_path() {
    // The table in the page is generated from the calls.
    let page = include_str!("../../../../../docs/reference/calls.md");
    let paths = page.lines().filter(|line| {
        let http = line.split('`').nth(3).and_then(|cell| cell.split_once(' '));
        line.starts_with("| `") && http.is_some_and(|(_, path)| path.starts_with('/'))
    });
    assert_eq!(paths.count(), ADMINS.len() + AGENTS.len());
}

#[test]
fn no_path_answers_without_an_accepted_key() {
    let clock = Hand::at(NOON);
    let live = Live::of(builder(&clock).open_in_memory().unwrap(), Server::new());
    let draft = || KeyDraft::new(Scope::Admin, wide());
    let revoked = live.key(draft());
    live.gateway.keys().revoke(revoked.info.id).unwrap();
    let expired = live.key(draft().expires_at(Timestamp::from_millis(NOON + 1)));
    let elsewhere = Live::new();
    let bearer = |key: &str| Some(format!("Bearer {key}"));
    let mut wrong = vec![
        None,
        Some(String::new()),
        Some("Bearer".to_owned()),
        Some(live.admin.clone()),
        Some(format!("Basic {}", live.admin)),
        bearer(""),
        bearer(&elsewhere.admin),
        bearer(&live.admin[..live.admin.len() - 1]),
        bearer(&format!("{}0", live.admin)),
        bearer(&live.admin.to_uppercase()),
        bearer(&live.admin.replace("rkp_admin", "rkp_agent")),
        bearer(&format!("{}, {}", live.admin, live.admin)),
        bearer(revoked.key.expose()),
        bearer(expired.key.expose()),
    ];
    wrong.push(wrong[5].clone());
    let mut now = NOON;
    for (method, path) in ADMINS.iter().chain(AGENTS) {
        for authorization in &wrong {
            // Time for another attempt by a rejected caller.
            now += 3_000;
            clock.set(now);
            let path = format!("/v1{path}");
            let mut asked = Ask::new(method, &path);
            if let Some(authorization) = authorization {
                asked = asked.header("Authorization", authorization);
            }
            let answer = live.ask(&asked);
            assert_eq!(answer.refusal(), (401, "UNAUTHORIZED".into()), "{method} {path} {authorization:?}");
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            assert!(answer.header("ratelimit").is_none(), "a plan is told to whom it is not for");
        }
    }
    now += 3_000;
    clock.set(now);
    let twice = Ask::new("GET", "/v1/admin/status").key(&live.admin).key(&live.admin);
    assert_eq!(live.ask(&twice).refusal().0, 401, "one of two keys was taken");
    clock.set(now + 3_000);
    live.get("/v1/admin/status", &live.admin).ok();
    assert!(live.governor.kill_switch().list().is_empty() && live.governor.agents().list().len() == 2);
}

#[test]
fn an_agents_key_is_forbidden_every_administrator_path() {
    let live = Live::new();
    for (method, path) in ADMINS {
        let path = format!("/v1{path}");
        let asked = Ask::new(method, &path).key(&live.agent);
        assert_eq!(live.ask(&asked).refusal(), (403, "FORBIDDEN".into()), "{method} {path}");
        // Refused before a body is read: this body never comes.
        let mut client = live.client();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: 5000000\r\n\r\n",
            live.agent
        );
        client.send(head).unwrap();
        assert_eq!(client.answer().unwrap().refusal(), (403, "FORBIDDEN".into()), "{method} {path}");
    }
    let explained = json!({ "agentId": "a", "input": "read", "explain": true });
    assert_eq!(live.post("/v1/intent", &live.agent, &explained).refusal(), (403, "FORBIDDEN".into()));
}

#[test]
fn a_key_limited_to_one_agent_reaches_no_other_by_any_path() {
    let live = Live::new();
    let key = live.key(KeyDraft::new(Scope::Agent, wide()).agent("a").built_intents());
    let key = key.key.expose();
    let decided = |agent: &str| {
        live.post("/v1/enforce", &live.agent, &mailing(agent)).ok()["proofId"].as_str().unwrap().to_owned()
    };
    let (mine, theirs) = (decided("a"), decided("b"));
    let requests = |agent: &str, proof: &str| -> Vec<(&'static str, String, Value)> {
        let encoded = format!("%{:02x}", agent.as_bytes()[0]);
        vec![
            ("POST", "/intent".into(), json!({ "agentId": agent, "input": "read" })),
            ("POST", "/enforce".into(), reading(agent)),
            ("POST", "/enforce".into(), json!({ "agentId": agent, "input": "Read the file notes.txt" })),
            ("GET", format!("/proof/query?entityId={agent}"), Value::Null),
            ("GET", format!("/proof/query?entityId={encoded}"), Value::Null),
            ("GET", format!("/proof/query?entity%49d={agent}"), Value::Null),
            ("GET", format!("/proof/stats?entityId={agent}"), Value::Null),
            ("GET", format!("/agents/{agent}"), Value::Null),
            ("GET", format!("/agents/{encoded}"), Value::Null),
            ("GET", format!("/agents/{agent}/trust"), Value::Null),
            ("GET", format!("/agents/{encoded}/trust?pageSize=1"), Value::Null),
            ("GET", format!("/proof/records/{proof}"), Value::Null),
            ("GET", format!("/proof/records/{proof}?evidence=true"), Value::Null),
            ("GET", format!("/escalations/{proof}"), Value::Null),
            ("POST", format!("/escalations/{proof}/wait"), json!({ "timeoutMs": 0 })),
            ("POST", "/proof/outcome".into(), json!({ "proofId": proof, "outcome": "ESCALATED" })),
        ]
    };
    let ask = |(method, path, body): (&'static str, String, Value)| {
        let path = format!("/v1{path}");
        let mut asked = Ask::new(method, &path).key(key);
        if !body.is_null() {
            asked = asked.json(&body);
        }
        (format!("{method} {path} {body}"), live.ask(&asked).refusal())
    };
    let before = live.records("b");
    for request in requests("b", &theirs) {
        let (asked, answered) = ask(request);
        assert_eq!(answered, (403, "FORBIDDEN".into()), "{asked}");
    }
    assert_eq!(live.records("b"), before);
    let claim = live.post(&format!("/v1/escalations/{theirs}/claim"), key, &mailing("b"));
    assert_eq!(claim.refusal().0, 403);
    for request in requests("a", &mine) {
        let (asked, answered) = ask(request);
        assert_eq!(answered.0, 200, "{asked}: {answered:?}");
    }
    // Given twice, neither value is used.
    for path in [
        "/proof/query?entityId=a&entityId=b",
        "/proof/stats?entityId=a&entityId=b",
        "/agents/b?agentId=a",
        "/agents/a?agentId=b",
    ] {
        let status = live.get(&format!("/v1{path}"), key).status;
        assert_eq!(status, 400, "{path}");
    }
    let nested = json!({ "agentId": "a", "intent": reading("b")["intent"] });
    assert_eq!(live.post("/v1/enforce", key, &nested).refusal(), (403, "FORBIDDEN".into()));
    let evaluation = json!({
        "subject": { "type": "agent", "id": "b" }, "action": { "name": "read" }, "resource": { "type": "document", "id": "1" },
    });
    assert_eq!(live.post("/access/v1/evaluation", key, &evaluation).refusal(), (403, "FORBIDDEN".into()));
    let batch = json!({ "agentId": ["a", "b"], "input": "read" });
    assert_eq!(live.post("/v1/enforce", key, &batch).refusal().0, 400);
    assert_eq!(live.records("b"), before);
}

#[test]
fn a_key_revoked_over_http_is_refused_from_the_answer_on() {
    let live = Live::new();
    let made = live.post("/v1/admin/keys", &live.admin, &json!({ "scope": "agent", "plan": "pro" })).ok();
    let key = made["key"].as_str().unwrap();
    let mut client = live.client();
    let asked = Ask::new("GET", "/v1/agents/a").key(key);
    assert_eq!(client.ask(&asked).status, 200);
    let path = format!("/v1/admin/keys/{}", made["id"].as_str().unwrap());
    live.ask(&Ask::new("DELETE", &path).key(&live.admin)).ok();
    assert_eq!(client.ask(&asked).refusal(), (401, "UNAUTHORIZED".into()), "on a connection that was open before");
}

/// A script with an empty variable would otherwise agree to more than intended.
#[test]
fn a_field_without_a_value_is_refused_where_it_would_loosen() {
    let live = Live::new();
    let asked = live.post("/v1/enforce", &live.agent, &mailing("a")).ok()["proofId"].as_str().unwrap().to_owned();
    let unseen = json!({ "reviewer": "mail-lead", "digest": null });
    for (path, body) in [
        (format!("/v1/admin/escalations/{asked}/approve"), &unseen),
        (format!("/v1/admin/escalations/{asked}/reject"), &unseen),
        ("/v1/admin/keys".to_owned(), &json!({ "scope": "agent", "plan": "pro", "agents": null })),
        ("/v1/admin/keys".to_owned(), &json!({ "scope": "agent", "plan": "pro", "expiresAt": null })),
    ] {
        assert_eq!(live.post(&path, &live.admin, body).refusal(), (400, "INVALID_INPUT".into()), "{path} {body}");
    }
    let state = live.get(&format!("/v1/escalations/{asked}"), &live.agent).ok()["state"].clone();
    assert_eq!(state, "pending");
}
