//! A client that repeats a request gets the first result, and nothing is done twice.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

use rulekeep::agent::AgentChange;
use rulekeep::escalation::{EscalationId, Review};
use rulekeep::kill_switch::KillSwitchScope;
use rulekeep::proof::ProofId;
use rulekeep::system::Timestamp;
use rulekeep::trust::Score;
use rulekeep::{Agent, Durability, Governor, PolicySet, Tier};
use rulekeep_server::gateway::{KeyDraft, NewKey, Plan, Scope};
use rulekeep_server::http::{Server, router};
use serde_json::json;

use super::live::{Ask, Live, NOON, builder, mailing, reading, wide};
use crate::common::{Hand, policies};

const DAY: i64 = 24 * 3_600_000;

fn enforce<'a>(live: &Live, idempotency_key: &str) -> Ask<'a> {
    Ask::new("POST", "/v1/enforce").key(&live.agent).json(&reading("a")).header("Idempotency-Key", idempotency_key)
}

#[test]
fn the_same_again_is_answered_the_same_and_recorded_once() {
    let live = Live::new();
    let first = live.ask(&enforce(&live, "one"));
    assert_eq!((first.ok()["decision"].as_str(), first.header("idempotent-replayed")), (Some("ALLOW"), None));
    for _ in 0..3 {
        let again = live.ask(&enforce(&live, "one"));
        assert_eq!((again.ok(), again.header("idempotent-replayed")), (first.ok(), Some("true")));
        assert_ne!(again.header("x-request-id"), first.header("x-request-id"));
    }
    assert_eq!(live.records("a"), 1);
    assert_ne!(live.ask(&enforce(&live, "two")).ok()["proofId"], first.ok()["proofId"]);
    assert_eq!(live.records("a"), 2);
}

#[test]
fn of_many_at_once_one_is_done() {
    let live = Live::new();
    let barrier = Barrier::new(32);
    let answers: Vec<String> = thread::scope(|scope| {
        let ask = || {
            let mut client = live.client();
            barrier.wait();
            client.ask(&enforce(&live, "at once")).ok()["proofId"].to_string()
        };
        let asked: Vec<_> = (0..32).map(|_| scope.spawn(ask)).collect();
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    assert_eq!(answers.into_iter().collect::<BTreeSet<_>>().len(), 1);
    assert_eq!(live.records("a"), 1);
}

#[test]
fn one_key_for_two_bodies_is_a_conflict() {
    let live = Live::new();
    let first = live.ask(&enforce(&live, "k")).ok();
    let other = Ask::new("POST", "/v1/enforce").key(&live.agent).json(&mailing("a")).header("Idempotency-Key", "k");
    assert_eq!(live.ask(&other).refusal(), (409, "CONFLICT".into()));
    assert_eq!(live.ask(&enforce(&live, "k")).ok(), first);
    assert_eq!(live.records("a"), 1);
}

#[test]
fn another_api_key_or_another_path_is_another() {
    let live = Live::new();
    let other = live.key(KeyDraft::new(Scope::Agent, wide())).key;
    let first = live.ask(&enforce(&live, "k")).ok();
    let asked = Ask::new("POST", "/v1/enforce").key(other.expose()).json(&reading("a")).header("Idempotency-Key", "k");
    let second = live.ask(&asked);
    assert_eq!(second.header("idempotent-replayed"), None);
    assert_ne!(second.ok()["proofId"], first["proofId"], "somebody got another's answer");
    let parse = Ask::new("POST", "/v1/intent").key(&live.agent).json(&json!({ "agentId": "a", "input": "read" }));
    assert!(live.ask(&parse.header("Idempotency-Key", "k")).ok()["intent"].is_object());
    assert_eq!(live.records("a"), 2);
}

#[test]
fn who_was_refused_may_come_again() {
    let clock = Hand::at(NOON);
    let live = Live::of(builder(&clock).open_in_memory().unwrap(), Server::new());
    let asked = |key: &str, agent: &str| {
        live.ask(&Ask::new("POST", "/v1/enforce").key(key).json(&reading(agent)).header("Idempotency-Key", "k"))
    };
    // 404, until the agent exists.
    assert_eq!(asked(&live.agent, "c").refusal().0, 404);
    live.governor.agents().register(Agent::new("c").at_tier(Tier::T4)).unwrap();
    asked(&live.agent, "c").ok();
    // 403, and then a request about an agent that the key is for.
    let limited = live.key(KeyDraft::new(Scope::Agent, wide()).agent("a").built_intents()).key;
    assert_eq!(asked(limited.expose(), "b").refusal().0, 403);
    asked(limited.expose(), "a").ok();
    // 429, until there is room.
    let tight = live.key(KeyDraft::new(Scope::Agent, Plan::enterprise(60, 1).unwrap())).key;
    live.get("/v1/agents/a", tight.expose()).ok();
    assert_eq!(asked(tight.expose(), "a").refusal().0, 429);
    clock.set(NOON + 1000);
    assert_eq!(asked(tight.expose(), "a").header("idempotent-replayed"), None);
    // A repetition takes room as well.
    assert_eq!(asked(tight.expose(), "a").refusal().0, 429);
    clock.set(NOON + 2000);
    assert_eq!(asked(tight.expose(), "a").header("idempotent-replayed"), Some("true"));
    assert_eq!((live.records("a"), live.records("b"), live.records("c")), (2, 0, 1));
    // 401.
    assert_eq!(asked("x", "a").refusal().0, 401);
}

#[test]
fn what_the_store_could_not_do_is_not_kept() {
    let live = Live::new();
    live.governor.close().unwrap();
    for _ in 0..2 {
        let answer = live.ask(&enforce(&live, "k"));
        assert_eq!((answer.refusal().0, answer.header("idempotent-replayed")), (503, None));
    }
}

#[test]
fn a_client_that_hangs_up_and_asks_again_gets_the_one_decision() {
    let folder = tempfile::tempdir().unwrap();
    // Every decision waits for the disk, so clients disconnect before they are answered.
    let governor = Governor::builder().policies(policies()).durability(Durability::Sync).open(folder.path()).unwrap();
    let live = Live::of(governor, Server::new());
    for round in 1..=20 {
        let asked = enforce(&live, &format!("round-{round}"));
        let mut client = live.client();
        client.send(asked.bytes()).unwrap();
        drop(client);
        let (second, third) = (live.ask(&asked).ok(), live.ask(&asked));
        assert_eq!((second, Some("true")), (third.ok(), third.header("idempotent-replayed")));
        assert_eq!(live.records("a"), round);
    }
}

#[test]
fn an_answer_is_kept_for_a_day() {
    let clock = Hand::at(NOON);
    let live = Live::of(builder(&clock).open_in_memory().unwrap(), Server::new());
    let first = live.ask(&enforce(&live, "k")).ok();
    for _ in 0..1_000 {
        live.governor.enforce(&crate::common::reading("b")).unwrap();
    }
    clock.set(NOON + DAY - 1);
    assert_eq!(live.ask(&enforce(&live, "k")).ok(), first);
    clock.set(NOON + DAY);
    assert_ne!(live.ask(&enforce(&live, "k")).ok()["proofId"], first["proofId"]);
    assert_eq!(live.records("a"), 2);
}

#[test]
fn a_key_that_is_none_is_refused_before_anything_is_done() {
    let live = Live::new();
    for wrong in ["", &"x".repeat(256), "ü", "a\tb"] {
        assert_eq!(live.ask(&enforce(&live, wrong)).refusal(), (400, "INVALID_INPUT".into()), "{wrong:?}");
    }
    let twice = enforce(&live, "a").header("Idempotency-Key", "b");
    assert_eq!(live.ask(&twice).refusal().0, 400);
    assert_eq!(live.records("a"), 0);
    live.ask(&enforce(&live, &"x".repeat(255))).ok();
}

#[test]
fn two_routers_of_one_governor_decide_once() {
    let live = Live::new();
    let other = Live::of_gateway(live.gateway.clone(), Server::new(), router);
    let first = live.ask(&enforce(&live, "k")).ok();
    let second = other.ask(&enforce(&live, "k"));
    assert_eq!((second.ok(), second.header("idempotent-replayed")), (first, Some("true")));
    assert_eq!(live.records("a"), 1);
}

#[test]
fn a_secret_is_shown_once_and_what_has_it_made_once() {
    let live = Live::new();
    let before = live.gateway.keys().list().len();
    let asked = Ask::new("POST", "/v1/admin/keys").key(&live.admin).json(&json!({ "scope": "agent", "plan": "free" }));
    let asked = asked.header("Idempotency-Key", "k");
    let made = live.ask(&asked).ok();
    let again = live.ask(&asked);
    assert_eq!(again.refusal(), (409, "CONFLICT".into()));
    assert!(!String::from_utf8_lossy(&again.body).contains(made["key"].as_str().unwrap()));
    live.ask(&Ask::new("DELETE", &format!("/v1/admin/keys/{}", made["id"].as_str().unwrap())).key(&live.admin)).ok();
    assert_eq!(live.ask(&asked).refusal(), (409, "CONFLICT".into()));
    assert_eq!(live.gateway.keys().list().len(), before + 1);
}

/// A request that lets an agent act, made once.
fn granted<'a>(live: &Live, agent: &str) -> (Ask<'a>, serde_json::Value) {
    asked_once(live, agent, &reading(agent))
}

fn asked_once<'a>(live: &Live, idempotency_key: &str, body: &serde_json::Value) -> (Ask<'a>, serde_json::Value) {
    let asked = Ask::new("POST", "/v1/enforce").key(&live.agent).json(body);
    let asked = asked.header("Idempotency-Key", idempotency_key);
    let answer = live.ask(&asked).ok();
    (asked, answer)
}

/// Asserts that the response is not repeated, and that the error names the original record.
fn is_over(live: &Live, asked: &Ask<'_>, proof_id: &serde_json::Value) {
    let again = live.ask(asked);
    assert_eq!(again.refusal(), (409, "CONFLICT".into()));
    let message = again.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains(proof_id.as_str().unwrap()), "{message}");
}

#[test]
fn a_key_that_ends_while_a_body_comes_is_given_nothing_again() {
    let clock = Hand::at(NOON);
    let live = Live::of(builder(&clock).open_in_memory().unwrap(), Server::new());
    let expires = Timestamp::from_millis(NOON + 1_000);
    let expiring = live.key(KeyDraft::new(Scope::Agent, wide()).expires_at(expires));
    let revoked = live.key(KeyDraft::new(Scope::Agent, wide()));
    let ends: [(&NewKey, &dyn Fn()); 2] = [
        (&revoked, &|| drop(live.gateway.keys().revoke(revoked.info.id).unwrap())),
        (&expiring, &|| clock.set(NOON + 1_000)),
    ];
    for (key, end) in ends {
        let asked = Ask::new("POST", "/v1/enforce").key(key.key.expose()).json(&reading("a"));
        let asked = asked.header("Idempotency-Key", "k");
        assert_eq!(live.ask(&asked).ok()["decision"], "ALLOW");
        let bytes = asked.bytes();
        let (most, last) = bytes.split_at(bytes.len() - 1);
        let mut client = live.client();
        client.send(most).unwrap();
        // Admitted by now: a later request on the same kind of connection has been answered.
        assert_eq!(live.ask(&asked).header("idempotent-replayed"), Some("true"));
        end();
        client.send(last).unwrap();
        assert_eq!(client.answer().unwrap().refusal(), (401, "UNAUTHORIZED".into()));
    }
}

#[test]
fn a_stored_grant_is_not_returned_after_its_basis_changed() {
    let other = crate::common::POLICIES.replace("maxRecords = 100", "maxRecords = 1");
    let changes: [&dyn Fn(&Governor); 3] = [
        &|governor| {
            let group = AgentChange::new().groups(["held"]);
            drop(governor.agents().update("a", group, "into a group").unwrap());
        },
        &|governor| drop(governor.trust().adjust("a", Score::try_from(10).unwrap(), "compromised").unwrap()),
        &|governor| {
            for policies in [&other, crate::common::POLICIES] {
                governor.policies().load(PolicySet::from_toml(policies).unwrap()).unwrap();
            }
        },
    ];
    for change in changes {
        let live = Live::new();
        let (of_a, first) = granted(&live, "a");
        assert_eq!(live.ask(&of_a).ok(), first);
        change(&live.governor);
        is_over(&live, &of_a, &first["proofId"]);
    }

    let live = Live::new();
    let terms = json!({
        "agentId": "a", "capabilities": ["email:send"], "rules": ["mail-needs-a-person"], "until": "2027-01-16T08:00:00Z",
        "reviewer": "mail-lead",
    });
    let class = live.post("/v1/admin/grants", &live.admin, &terms).ok();
    let mailed = Ask::new("POST", "/v1/enforce").key(&live.agent).json(&mailing("a")).header("Idempotency-Key", "m");
    let first = live.ask(&mailed).ok();
    assert_eq!(first["decision"], "ALLOW");
    assert_eq!(live.ask(&mailed).ok(), first);
    let revoke = format!("/v1/admin/grants/{}/revoke", class["id"].as_str().unwrap());
    live.post(&revoke, &live.admin, &json!({ "reviewer": "mail-lead" })).ok();
    is_over(&live, &mailed, &first["proofId"]);
}

#[test]
fn what_was_granted_before_a_suspension_is_not_given_again() {
    let live = Live::new();
    let (of_a, first) = granted(&live, "a");
    let (of_b, second) = granted(&live, "b");
    live.governor.agents().suspend("a", "a look at it").unwrap();
    is_over(&live, &of_a, &first["proofId"]);
    assert_eq!(live.ask(&of_b).ok(), second, "another's");
    live.governor.agents().resume("a", "it is well").unwrap();
    is_over(&live, &of_a, &first["proofId"]);
    assert_eq!(live.records("a"), 1);
}

#[test]
fn what_was_granted_before_a_stop_is_not_given_again() {
    for scope in [KillSwitchScope::All, KillSwitchScope::agent("a").unwrap(), KillSwitchScope::group("some").unwrap()] {
        let live = Live::new();
        let (of_a, first) = granted(&live, "a");
        let mailed =
            Ask::new("POST", "/v1/enforce").key(&live.agent).json(&mailing("a")).header("Idempotency-Key", "m");
        let escalated = live.ask(&mailed).ok();
        let stop = live.governor.kill_switch().set(scope, "ann", "").unwrap();
        is_over(&live, &of_a, &first["proofId"]);
        live.governor.kill_switch().lift(&stop.id, "ann", "").unwrap();
        is_over(&live, &of_a, &first["proofId"]);
        assert_eq!(live.ask(&mailed).ok(), escalated, "it lets nobody act");
    }
}

#[test]
fn what_was_granted_before_a_retirement_is_not_given_again() {
    let live = Live::new();
    let (of_a, first) = granted(&live, "a");
    let (of_b, second) = granted(&live, "b");
    assert_eq!(live.ask(&of_a).ok(), first);
    live.governor.agents().retire("a", "its work is done").unwrap();
    is_over(&live, &of_a, &first["proofId"]);
    assert_eq!(live.ask(&of_b).ok(), second, "another's");
    assert_eq!(live.records("a"), 1);
}

#[test]
fn what_was_granted_in_part_before_a_stop_is_not_given_again() {
    let live = Live::new();
    let changing = json!({ "intent": {
        "agentId": "a", "parsedAction": "change_rows", "riskLevel": "LOW",
        "requiredCapabilities": ["database:read", "database:write"],
    } });
    let (asked, first) = asked_once(&live, "in part", &changing);
    assert_eq!(first["decision"], "DEGRADE");
    assert_eq!(live.ask(&asked).ok(), first);
    let stop = live.governor.kill_switch().set(KillSwitchScope::agent("a").unwrap(), "ann", "").unwrap();
    is_over(&live, &asked, &first["proofId"]);
    live.governor.kill_switch().lift(&stop.id, "ann", "").unwrap();
    is_over(&live, &asked, &first["proofId"]);
    assert_eq!(live.records("a"), 1);
}

#[test]
fn what_was_granted_under_other_policies_is_not_given_again() {
    let live = Live::new();
    let (of_a, first) = granted(&live, "a");
    let evaluations = json!({ "evaluations": [
        { "subject": { "type": "agent", "id": "a" }, "action": { "name": "read" }, "resource": { "type": "document", "id": "1" } },
        { "subject": { "type": "agent", "id": "a" }, "action": { "name": "send" }, "resource": { "type": "email", "id": "1" } },
    ] });
    let several = Ask::new("POST", "/access/v1/evaluations").key(&live.agent).json(&evaluations);
    let several = several.header("Idempotency-Key", "several");
    let evaluated = live.ask(&several).ok();
    assert_eq!(live.ask(&several).ok(), evaluated);
    let mailed = Ask::new("POST", "/v1/enforce").key(&live.agent).json(&mailing("a")).header("Idempotency-Key", "m");
    let asked = live.ask(&mailed).ok()["proofId"].as_str().unwrap().to_owned();
    let id = EscalationId::of(asked.parse::<ProofId>().unwrap());
    live.governor.escalations().approve(id, Review::by("mail-lead")).unwrap();
    let claim = format!("/v1/escalations/{id}/claim");
    let claim = Ask::new("POST", &claim).key(&live.agent).json(&mailing("a")).header("Idempotency-Key", "claim");
    let claimed = live.ask(&claim).ok();
    assert_eq!(live.ask(&claim).ok(), claimed);

    let other = crate::common::POLICIES.replace("maxRecords = 100", "maxRecords = 1");
    live.governor.policies().load(PolicySet::from_toml(&other).unwrap()).unwrap();
    is_over(&live, &of_a, &first["proofId"]);
    is_over(&live, &several, &evaluated["evaluations"][0]["context"]["proofId"]);
    is_over(&live, &claim, &claimed["proofId"]);
}

#[test]
fn a_webhooks_secret_is_shown_once() {
    let live = Live::new();
    let once = |path: &str, body: serde_json::Value| {
        let asked = Ask::new("POST", path).key(&live.admin).json(&body).header("Idempotency-Key", "k");
        let made = live.ask(&asked).ok();
        assert!(made["secret"].is_string());
        assert_eq!(live.ask(&asked).refusal(), (409, "CONFLICT".into()), "{path}");
        made["id"].as_str().unwrap().to_owned()
    };
    let id = once("/v1/admin/webhooks", json!({ "url": "https://hooks.example/x" }));
    once(&format!("/v1/admin/webhooks/{id}/rotate"), json!({}));
    assert_eq!(live.get("/v1/admin/webhooks", &live.admin).ok()["endpoints"].as_array().unwrap().len(), 1);
}
