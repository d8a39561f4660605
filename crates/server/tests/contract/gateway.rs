//! API keys, plans and rate limits in front of a governor.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use rulekeep::event::{EventData, EventFilter};
use rulekeep::system::Timestamp;
use rulekeep::{Agent, Decision, Durability, Error, Governor, GovernorBuilder, Intent, PolicySet, RiskLevel, Tier};
use rulekeep_server::gateway::{Admitted, ApiKey, Gateway, KeyDraft, KeyState, Plan, Scope};
use serde_json::{Value, json};

use crate::common::{self, Hand, Served, call, copy_folder, heavy, wait_until_sealed};

const NOON: i64 = 1_800_014_400_000;
const DAY: i64 = 24 * 3_600_000;
const HERE: &str = "10.0.0.7";

fn builder(clock: &Hand) -> GovernorBuilder {
    Governor::builder().clock(clock.clone()).durability(Durability::Buffered)
}

fn opened(clock: &Hand) -> (Governor, Gateway) {
    let governor = builder(clock).open_in_memory().unwrap();
    for agent in ["a", "b"] {
        governor.agents().register(Agent::new(agent).at_tier(Tier::T4)).unwrap();
    }
    let gateway = Gateway::new(&governor).unwrap();
    (governor, gateway)
}

/// A call's name and its parameters.
type Request = (&'static str, Value);

fn reading(agent: &str) -> Request {
    let intent = Intent::new(agent, "read_document", RiskLevel::Low, ["document:read"]).unwrap();
    ("enforce", json!({ "intent": intent }))
}

fn status() -> Request {
    ("admin/status", json!({}))
}

fn handle(gateway: &Gateway, bearer: Option<&str>, caller: &str, (name, params): Request) -> Result<Value, Error> {
    answered(&gateway.admit(bearer, caller)?, (name, params))
}

fn answered(admitted: &Admitted, (name, params): Request) -> Result<Value, Error> {
    Ok(serde_json::from_str(admitted.call(name, &params.to_string())?.get()).unwrap())
}

fn ask(gateway: &Gateway, key: &ApiKey, request: Request) -> Result<Value, Error> {
    handle(gateway, Some(key.expose()), HERE, request)
}

fn code(answer: Result<Value, Error>) -> &'static str {
    answer.map_or_else(|error| error.code(), |_| "")
}

#[test]
fn a_key_is_shown_once_and_the_store_has_its_digest_alone() {
    let folder = tempfile::tempdir().unwrap();
    let governor = Governor::open(folder.path()).unwrap();
    let gateway = Gateway::new(&governor).unwrap();
    let draft = KeyDraft::new(Scope::Agent, Plan::Pro).name("shop").agent("a");
    let made = gateway.keys().create(draft).unwrap();
    let text = made.key.expose().to_owned();
    assert_eq!(serde_json::to_value(&made).unwrap()["key"], text.as_str());
    let random = text.rsplit('_').next().unwrap();
    for shown in [format!("{made:?}"), format!("{gateway:?}"), format!("{:?}", gateway.keys().list())] {
        assert!(!shown.contains(random), "{shown}");
    }
    let listed = serde_json::to_value(gateway.keys().list()).unwrap();
    assert_eq!(listed[0]["name"], "shop");
    assert_eq!(listed[0]["plan"], "pro");
    assert!(listed[0].get("digest").is_none() && listed[0].get("key").is_none(), "{listed}");
    governor.close().unwrap();
    let mut files = 0;
    let folders = [folder.path().to_owned(), folder.path().join("journal")];
    for file in folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(Result::unwrap) {
        if file.path().is_file() {
            let bytes = std::fs::read(file.path()).unwrap();
            assert!(!bytes.windows(random.len()).any(|window| window == random.as_bytes()), "{file:?}");
            files += 1;
        }
    }
    assert!(files > 1, "nothing was looked at");
}

#[test]
fn what_is_no_key_of_this_store_is_unauthorized() {
    let (_, gateway) = opened(&Hand::at(NOON));
    let (_, other) = opened(&Hand::at(NOON));
    let draft = || KeyDraft::new(Scope::Agent, Plan::Pro);
    let strange = other.keys().create(draft()).unwrap().key;
    let right = gateway.keys().create(draft()).unwrap().key;
    let cut = &right.expose()[..80];
    let capital = right.expose().to_uppercase();
    for wrong in [None, Some(""), Some("Bearer"), Some(strange.expose()), Some(cut), Some(capital.as_str())] {
        let error = handle(&gateway, wrong, "elsewhere", reading("a")).unwrap_err();
        assert_eq!((error.code(), error.http_status()), ("UNAUTHORIZED", 401), "{wrong:?}");
        assert!(wrong.is_none_or(|wrong| wrong.is_empty() || !error.to_string().contains(wrong)), "{error}");
    }
    assert_eq!(code(ask(&gateway, &right, reading("a"))), "");
}

#[test]
fn a_key_ends_when_it_expires_and_when_it_is_revoked() {
    let clock = Hand::at(NOON);
    let (_, gateway) = opened(&clock);
    let expiring = KeyDraft::new(Scope::Agent, Plan::Pro).expires_at(Timestamp::from_millis(NOON + 1000));
    let expiring = gateway.keys().create(expiring).unwrap();
    let revoked = gateway.keys().create(KeyDraft::new(Scope::Agent, Plan::Pro)).unwrap();
    clock.set(NOON + 999);
    assert_eq!(code(ask(&gateway, &expiring.key, reading("a"))), "");
    clock.set(NOON + 1000);
    assert_eq!(code(ask(&gateway, &expiring.key, reading("a"))), "UNAUTHORIZED");
    assert_eq!(code(ask(&gateway, &revoked.key, reading("a"))), "");
    assert_eq!(gateway.keys().revoke(revoked.info.id).unwrap().state, KeyState::Revoked);
    assert_eq!(code(ask(&gateway, &revoked.key, reading("a"))), "UNAUTHORIZED");
    let states: Vec<KeyState> = gateway.keys().list().iter().map(|key| key.state).collect();
    assert!(states.contains(&KeyState::Expired) && states.contains(&KeyState::Revoked), "{states:?}");
}

#[test]
fn a_key_that_ends_behind_the_door_does_nothing_more() {
    let clock = Hand::at(NOON);
    let (governor, gateway) = opened(&clock);
    let draft = || KeyDraft::new(Scope::Admin, Plan::Pro);
    let revoked = gateway.keys().create(draft()).unwrap();
    let expiring = gateway.keys().create(draft().expires_at(Timestamp::from_millis(NOON + 1000))).unwrap();
    let admit = |key: &ApiKey| gateway.admit(Some(key.expose()), HERE).unwrap();
    let making = || ("key/create", json!({ "scope": "admin", "plan": "pro" }));
    let admitted = [admit(&revoked.key), admit(&revoked.key), admit(&expiring.key)];
    gateway.keys().revoke(revoked.info.id).unwrap();
    clock.set(NOON + 1000);
    for (admitted, request) in admitted.into_iter().zip([making(), reading("a"), reading("a")]) {
        assert_eq!(code(answered(&admitted, request)), "UNAUTHORIZED");
    }
    assert_eq!(gateway.keys().list().len(), 2, "a revoked key made another");
    assert_eq!(governor.status().metrics.decisions_today, 0);
}

#[test]
fn an_answered_revocation_outlasts_a_crash_at_any_durability() {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Hand::at(NOON));
    let governor = builder(&clock).auto_register().open(folder.path()).unwrap();
    let gateway = Gateway::new(&governor).unwrap();
    for _ in 0..10 {
        let made = gateway.keys().create(KeyDraft::new(Scope::Agent, Plan::Pro)).unwrap();
        gateway.keys().revoke(made.info.id).unwrap();
        // The store that a crash at this moment leaves.
        let left = tempfile::tempdir().unwrap();
        copy_folder(folder.path(), left.path());
        let reopened = builder(&clock).auto_register().open(left.path()).unwrap();
        let gateway = Gateway::new(&reopened).unwrap();
        assert_eq!(code(ask(&gateway, &made.key, reading("a"))), "UNAUTHORIZED");
        assert!(gateway.keys().list().iter().any(|key| key.id == made.info.id), "not even the key is there");
    }
}

#[test]
fn keys_outlast_a_restart_and_so_does_a_revocation() {
    let folder = tempfile::tempdir().unwrap();
    let (kept, revoked) = {
        let governor = Governor::builder().auto_register().open(folder.path()).unwrap();
        let gateway = Gateway::new(&governor).unwrap();
        let draft = || KeyDraft::new(Scope::Agent, Plan::Pro).agent("a").built_intents();
        let (kept, revoked) = (gateway.keys().create(draft()).unwrap(), gateway.keys().create(draft()).unwrap());
        gateway.keys().revoke(revoked.info.id).unwrap();
        governor.close().unwrap();
        (kept, revoked)
    };
    let governor = Governor::builder().auto_register().open(folder.path()).unwrap();
    let gateway = Gateway::new(&governor).unwrap();
    assert_eq!(code(ask(&gateway, &kept.key, reading("a"))), "");
    assert_eq!(code(ask(&gateway, &kept.key, reading("b"))), "FORBIDDEN");
    assert_eq!(code(ask(&gateway, &revoked.key, reading("a"))), "UNAUTHORIZED");
}

#[test]
fn a_key_limited_to_one_agent_reaches_no_other_by_any_call() {
    let (governor, gateway) = opened(&Hand::at(NOON));
    let made = |draft: KeyDraft| gateway.keys().create(draft).unwrap().key;
    let key = made(
        KeyDraft::new(
            Scope::Agent,
            Plan::Enterprise { per_minute: 1000.try_into().unwrap(), burst: 1000.try_into().unwrap() },
        )
        .agent("a")
        .built_intents(),
    );
    let escalating = |agent: &str| Intent::new(agent, "pay_invoice", RiskLevel::High, ["payment:transfer"]).unwrap();
    let mine = governor.enforce(&escalating("a")).unwrap().proof_id;
    let theirs = governor.enforce(&escalating("b")).unwrap().proof_id;
    let requests = |agent: &str, proof| {
        vec![
            ("intent", json!({ "agentId": agent, "input": "read the file notes.txt", "context": {} })),
            reading(agent),
            ("enforce", json!({ "agentId": agent, "input": "read the file notes.txt", "context": {} })),
            ("proof/query", json!({ "entityId": agent, "page": 1 })),
            ("proof/stats", json!({ "entityId": agent, "from": null })),
            ("agent/get", json!({ "agentId": agent })),
            ("trust/history", json!({ "agentId": agent })),
            ("proof/get", json!({ "proofId": proof, "evidence": true })),
            ("escalation/get", json!({ "id": proof })),
            ("intent", json!({ "agentId": agent, "input": "read the file notes.txt" })),
            ("enforce", json!({ "agentId": agent, "input": "read the file notes.txt" })),
            ("proof/query", json!({ "entityId": agent })),
            ("proof/stats", json!({ "entityId": agent })),
        ]
    };
    for request in requests("a", mine) {
        let shown = format!("{request:?}");
        assert_eq!(code(ask(&gateway, &key, request)), "", "{shown}");
    }
    let before = governor.stats("b", ..).unwrap().total_records;
    for request in requests("b", theirs) {
        let shown = format!("{request:?}");
        assert_eq!(code(ask(&gateway, &key, request)), "FORBIDDEN", "{shown}");
    }
    let report = ("outcome/report", json!({ "proofId": theirs, "outcome": "SUCCESS" }));
    assert_eq!(code(ask(&gateway, &key, report)), "FORBIDDEN");
    for unnamed in [json!({ "outcome": "SUCCESS" }), json!({ "callId": "call_1", "outcome": "SUCCESS" })] {
        assert_eq!(code(ask(&gateway, &key, ("outcome/report", unnamed))), "INVALID_INPUT");
    }
    assert_eq!(governor.stats("b", ..).unwrap().total_records, before);
    assert!(governor.log().record(&theirs).unwrap().outcome.is_none());
    let unlimited = made(KeyDraft::new(Scope::Agent, Plan::Pro));
    for request in requests("b", theirs) {
        assert_eq!(code(ask(&gateway, &unlimited, request)), "");
    }
}

#[test]
fn an_agents_key_is_forbidden_all_administrator_calls() {
    let (_, gateway) = opened(&Hand::at(NOON));
    let plan = Plan::enterprise(6000, 1000).unwrap();
    let agents = gateway.keys().create(KeyDraft::new(Scope::Agent, plan)).unwrap().key;
    let admins = gateway.keys().create(KeyDraft::new(Scope::Admin, plan)).unwrap().key;
    let calls = [
        ("agent/register", json!({ "agentId": "c" })),
        ("agent/suspend", json!({ "agentId": "a" })),
        ("agent/resume", json!({ "agentId": "a" })),
        ("trust/adjust", json!({ "agentId": "a", "score": 300, "note": "why" })),
        ("policy/explain", json!({ "agentId": "a", "input": "read the file notes.txt" })),
        ("policy/load", json!({ "format": "toml", "text": "name = \"n\"" })),
        ("stop/set", json!({ "all": true, "by": "ann", "note": "why" })),
        ("escalation/list", json!({})),
        ("proof/verify", json!({})),
        ("agent/export", json!({})),
        ("key/create", json!({ "scope": "agent", "plan": "free" })),
        ("key/list", json!({})),
    ];
    for (name, params) in calls {
        assert_eq!(code(ask(&gateway, &agents, (name, params.clone()))), "FORBIDDEN", "{name}");
        let admitted = code(ask(&gateway, &admins, (name, params)));
        assert!(admitted != "FORBIDDEN" && admitted != "UNAUTHORIZED", "{name}: {admitted}");
    }
    assert_eq!(code(ask(&gateway, &agents, status())), "FORBIDDEN");
    assert_eq!(code(ask(&gateway, &admins, status())), "");
    let admit = |key: &ApiKey| gateway.admit(Some(key.expose()), HERE).unwrap().admin().is_ok();
    assert!(!admit(&agents) && admit(&admins));
}

#[test]
fn a_plan_is_held_to_the_millisecond() {
    let clock = Hand::at(NOON);
    let (_, gateway) = opened(&clock);
    let key = gateway.keys().create(KeyDraft::new(Scope::Agent, Plan::Free)).unwrap().key;
    for left in (0..10).rev() {
        let admitted = gateway.admit(Some(key.expose()), HERE).unwrap();
        assert_eq!((admitted.allowance().remaining, admitted.allowance().reset_seconds), (left, 10 - u64::from(left)));
    }
    let error = ask(&gateway, &key, reading("a")).unwrap_err();
    assert_eq!((error.code(), error.http_status(), error.retry_after()), ("RATE_LIMITED", 429, Some(1)));
    clock.set(NOON + 999);
    assert_eq!(code(ask(&gateway, &key, reading("a"))), "RATE_LIMITED");
    clock.set(NOON + 1000);
    assert_eq!(code(ask(&gateway, &key, reading("a"))), "");
    assert_eq!(code(ask(&gateway, &key, reading("a"))), "RATE_LIMITED");
    // A call that the key does not permit takes room too: every request counts.
    clock.set(NOON + 2000);
    assert_eq!(code(ask(&gateway, &key, status())), "FORBIDDEN");
    assert_eq!(code(ask(&gateway, &key, status())), "RATE_LIMITED");
}

#[test]
fn each_plan_has_exactly_its_burst_and_its_rate() {
    for (plan, per_minute, burst) in [(Plan::Free, 60, 10), (Plan::Pro, 600, 100)] {
        let clock = Hand::at(NOON);
        let (_, gateway) = opened(&clock);
        let key = gateway.keys().create(KeyDraft::new(Scope::Agent, plan)).unwrap().key;
        // The number of requests admitted at this moment.
        let let_in = || (0..1_000).take_while(|_| gateway.admit(Some(key.expose()), HERE).is_ok()).count();
        assert_eq!(let_in(), burst, "{plan:?}");
        let each = 60_000 / per_minute;
        for request in 1..=per_minute {
            clock.set(NOON + request * each - 1);
            assert_eq!(let_in(), 0, "{plan:?}, {request}");
            clock.set(NOON + request * each);
            assert_eq!(let_in(), 1, "{plan:?}, {request}");
        }
        // An idle time saves up no more than the burst.
        clock.set(NOON + DAY);
        assert_eq!(let_in(), burst, "{plan:?}");
    }
}

#[test]
fn at_one_moment_a_plan_lets_in_exactly_its_burst() {
    let (_, gateway) = opened(&Hand::at(NOON));
    let plan = Plan::enterprise(600, 137).unwrap();
    let key = gateway.keys().create(KeyDraft::new(Scope::Agent, plan)).unwrap().key;
    let (barrier, admitted) = (Barrier::new(16), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                barrier.wait();
                for _ in 0..40 {
                    if gateway.admit(Some(key.expose()), HERE).is_ok() {
                        admitted.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    assert_eq!(admitted.load(Ordering::SeqCst), 137);
}

#[test]
fn guessing_is_slow_and_harms_nobody_who_has_a_key_in_use() {
    let clock = Hand::at(NOON);
    let (_, gateway) = opened(&clock);
    let key = || gateway.keys().create(KeyDraft::new(Scope::Agent, Plan::Pro)).unwrap().key;
    let (in_use, new) = (key(), key());
    assert_eq!(code(ask(&gateway, &in_use, reading("a"))), "");
    let guess = |caller: &str| code(handle(&gateway, Some("rkp_agent_guess"), caller, reading("a")));
    let refused: Vec<&str> = (0..30).map(|_| guess(HERE)).collect();
    assert_eq!(refused.iter().filter(|code| **code == "UNAUTHORIZED").count(), 20, "{refused:?}");
    assert_eq!(guess(HERE), "RATE_LIMITED");
    assert_eq!(code(ask(&gateway, &new, reading("a"))), "RATE_LIMITED", "a right guess is told from a wrong one");
    assert_eq!(code(ask(&gateway, &in_use, reading("a"))), "");
    assert_eq!(code(handle(&gateway, Some(new.expose()), "10.0.0.8", reading("a"))), "");
    assert_eq!(guess("10.0.0.9"), "UNAUTHORIZED");
    clock.set(NOON + 3000);
    assert_eq!(code(ask(&gateway, &new, reading("a"))), "");
}

#[test]
fn whatever_is_refused_counts_as_a_guess_does() {
    let clock = Hand::at(NOON);
    let (_, gateway) = opened(&clock);
    let draft = || KeyDraft::new(Scope::Agent, Plan::Pro);
    let revoked = gateway.keys().create(draft()).unwrap();
    let expired = gateway.keys().create(draft().expires_at(Timestamp::from_millis(NOON + 1))).unwrap();
    let new = gateway.keys().create(draft()).unwrap().key;
    let ask = |bearer: Option<&str>, caller: &str| code(handle(&gateway, bearer, caller, reading("a")));
    let all = [("none", None), ("revoked", Some(revoked.key.expose())), ("expired", Some(expired.key.expose()))];
    for (name, bearer) in all {
        // A caller that used a valid key once.
        assert_eq!(ask(bearer, &format!("{name} used")), if bearer.is_some() { "" } else { "UNAUTHORIZED" });
    }
    gateway.keys().revoke(revoked.info.id).unwrap();
    // Time for the rejected keys to be forgotten.
    clock.set(NOON + 60_000);
    for (name, bearer) in all {
        for caller in [format!("{name} used"), format!("{name} new")] {
            let refused: Vec<&str> = (0..21).map(|_| ask(bearer, &caller)).collect();
            assert_eq!(refused, [["UNAUTHORIZED"; 20].as_slice(), &["RATE_LIMITED"]].concat(), "{caller}");
            assert_eq!(ask(Some("rkp_agent_guess"), &caller), "RATE_LIMITED", "{caller}");
            assert_eq!(ask(Some(new.expose()), &caller), "RATE_LIMITED", "{caller}");
        }
    }
    assert_eq!(ask(None, "another"), "UNAUTHORIZED");
}

#[test]
fn from_when_a_revocation_returns_nothing_is_let_in() {
    let (_, gateway) = opened(&Hand::at(NOON));
    let plan = Plan::enterprise(60_000_000, 1_000_000).unwrap();
    for round in 0..50 {
        // A caller that keeps trying is slowed down, so each round uses another one.
        let caller = format!("10.0.1.{round}");
        let made = gateway.keys().create(KeyDraft::new(Scope::Agent, plan)).unwrap();
        let (is_revoked, let_in) = (AtomicBool::new(false), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    loop {
                        let is_over = is_revoked.load(Ordering::SeqCst);
                        let is_let_in = gateway.admit(Some(made.key.expose()), &caller).is_ok();
                        if is_let_in {
                            let_in.fetch_add(1, Ordering::SeqCst);
                        }
                        assert!(!(is_over && is_let_in), "it was let in behind its revocation");
                        if is_over {
                            break;
                        }
                    }
                });
            }
            while let_in.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            gateway.keys().revoke(made.info.id).unwrap();
            is_revoked.store(true, Ordering::SeqCst);
        });
    }
}

#[test]
fn a_key_made_over_lines_works_for_every_gateway_of_a_governor() {
    let (_, gateway) = opened(&Hand::at(NOON));
    let governor = Served { gateway: gateway.clone() };
    let made = call(
        &governor,
        "key/create",
        &json!({ "scope": "agent", "plan": "pro", "agents": ["a"], "builtIntents": true }),
    );
    let text = made["result"]["key"].as_str().unwrap();
    assert_eq!(code(handle(&gateway, Some(text), HERE, reading("a"))), "");
    let listed = call(&governor, "key/list", &json!({}));
    assert_eq!(listed["result"]["keys"][0]["id"], made["result"]["id"]);
    assert!(!listed.to_string().contains(text) && !listed.to_string().contains("sha256"), "{listed}");
    let revoked = call(&governor, "key/revoke", &json!({ "id": made["result"]["id"] }));
    assert_eq!(revoked["result"]["state"], "revoked");
    assert_eq!(code(handle(&gateway, Some(text), HERE, reading("a"))), "UNAUTHORIZED");
    for wrong in [
        json!({ "plan": "pro" }),
        json!({ "scope": "agent" }),
        json!({ "scope": "all", "plan": "pro" }),
        json!({ "scope": "agent", "plan": "gold" }),
        json!({ "scope": "agent", "plan": { "perMinute": 0, "burst": 1 } }),
        json!({ "scope": "admin", "plan": "pro", "agents": ["a"] }),
        json!({ "scope": "agent", "plan": "pro", "agents": ["a\nb"] }),
        json!({ "scope": "agent", "plan": "pro", "builtIntents": true }),
        json!({ "scope": "agent", "plan": "pro", "agents": ["a"], "builtIntents": "yes" }),
        json!({ "scope": "agent", "plan": "pro", "expiresAt": "2020-01-01T00:00:00Z" }),
        json!({ "scope": "agent", "plan": "pro", "expiresAt": "tomorrow" }),
        json!({ "scope": "agent", "plan": "pro", "agents": [] }),
        json!({ "scope": "agent", "plan": "pro", "agents": null }),
        json!({ "scope": "agent", "plan": "pro", "expiresAt": null }),
        json!({ "scope": "agent", "plan": "pro", "agentIds": ["a"] }),
        json!({ "scope": "agent", "plan": "pro", "expires_at": "2100-01-01T00:00:00Z" }),
    ] {
        let answer = call(&governor, "key/create", &wrong);
        assert_eq!(answer["error"]["data"]["code"], "INVALID_INPUT", "{wrong}: {answer}");
    }
}

/// The holder of a key for named agents may be one of them, and could declare a deletion of everything as reading.
#[test]
fn a_key_for_named_agents_decides_only_on_parsed_requests() {
    let (_, gateway) = opened(&Hand::at(NOON));
    let made = |draft: KeyDraft| gateway.keys().create(draft.name("k")).unwrap();
    let of_a = made(KeyDraft::new(Scope::Agent, Plan::Pro).agent("a"));
    assert!(!of_a.info.built_intents);
    let of_runtime = made(KeyDraft::new(Scope::Agent, Plan::Pro).agent("a").built_intents());
    let of_all = made(KeyDraft::new(Scope::Agent, Plan::Pro));
    assert!(of_runtime.info.built_intents && of_all.info.built_intents);
    assert_eq!(code(ask(&gateway, &of_a.key, reading("a"))), "FORBIDDEN");
    assert_eq!(code(ask(&gateway, &of_runtime.key, reading("a"))), "");
    assert_eq!(code(ask(&gateway, &of_all.key, reading("a"))), "");

    let wish = json!({ "agentId": "a", "input": "Delete all customer records" });
    let asked = ask(&gateway, &of_a.key, ("enforce", wish.clone())).unwrap();
    assert_eq!(asked["intent"]["requiredCapabilities"][0], "customer:delete");
    let intent = ask(&gateway, &of_a.key, ("intent", wish)).unwrap()["intent"].clone();
    let same = ask(&gateway, &of_a.key, ("enforce", json!({ "intent": intent }))).unwrap();
    assert_eq!(same["decision"], asked["decision"]);
    // If the intent claims less than the parse, the parse decides.
    let mut less = intent.clone();
    less["riskLevel"] = json!("LOW");
    less["requiredCapabilities"] = json!(["document:read"]);
    let decided = ask(&gateway, &of_a.key, ("enforce", json!({ "intent": less }))).unwrap();
    assert_eq!(decided["decision"], asked["decision"]);
    // Another agent's parse, or no parse at all, is not accepted.
    for id in ["int_01kf7xqzzz0000000000000000".to_owned(), {
        let of_b = json!({ "agentId": "b", "input": "Read the file notes.txt" });
        let parsed = ask(&gateway, &of_all.key, ("intent", of_b)).unwrap();
        parsed["intent"]["id"].as_str().unwrap().to_owned()
    }] {
        less["id"] = json!(id);
        assert_eq!(code(ask(&gateway, &of_a.key, ("enforce", json!({ "intent": less })))), "FORBIDDEN", "{id}");
    }
}

#[test]
fn a_failure_by_an_agents_own_word_returns_nothing_of_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Hand::at(NOON);
    let text = "name = \"l\"\n[[rule]]\nid = \"l\"\neffect = \"allow\"\nlimit = { count = 1, per = \"1h\" }";
    let open =
        || builder(&clock).policies(PolicySet::from_toml(text).unwrap()).auto_register().open(folder.path()).unwrap();
    let decision = |governor: &Governor| governor.enforce_input("a", "Read the file notes.txt").unwrap().enforcement;
    let governor = open();
    let gateway = Gateway::new(&governor).unwrap();
    let of_agents = gateway.keys().create(KeyDraft::new(Scope::Agent, Plan::Pro)).unwrap().key;
    let of_admin = gateway.keys().create(KeyDraft::new(Scope::Admin, Plan::Pro)).unwrap().key;
    let fails = |id| ("outcome/report", json!({ "proofId": id, "outcome": "FAILURE" }));

    let first = decision(&governor);
    assert_eq!(first.decision, Decision::Allow);
    ask(&gateway, &of_agents, fails(first.proof_id)).unwrap();
    assert_eq!(decision(&governor).decision, Decision::Deny);
    governor.close().unwrap();
    drop((governor, gateway));
    let governor = open();
    assert_eq!(decision(&governor).decision, Decision::Deny, "a restart gives it back no more");
    clock.set(NOON + 3_600_000);
    let gateway = Gateway::new(&governor).unwrap();
    let second = decision(&governor);
    ask(&gateway, &of_admin, fails(second.proof_id)).unwrap();
    assert_eq!(decision(&governor).decision, Decision::Allow);
}

#[test]
fn plans_are_read_as_the_contract_writes_them() {
    let governor = Served { gateway: opened(&Hand::at(NOON)).1 };
    for (written, plan) in [("Free", "free"), ("free", "free"), ("Pro", "pro"), ("pro", "pro")] {
        let made = call(&governor, "key/create", &json!({ "scope": "agent", "plan": written }));
        assert_eq!(made["result"]["plan"], plan, "{made}");
    }
}

#[test]
fn an_administrators_first_key_is_made_once() {
    let clock = Hand::at(NOON);
    let (_, gateway) = opened(&clock);
    let first = gateway.keys().ensure_admin("first").unwrap().unwrap();
    assert!(gateway.keys().ensure_admin("first").unwrap().is_none());
    gateway.keys().revoke(first.info.id).unwrap();
    assert!(gateway.keys().ensure_admin("second").unwrap().is_some(), "nobody could get in");
}

#[test]
fn an_administrator_whose_only_key_expired_gets_another() {
    for is_revoked in [false, true] {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Hand::at(NOON));
        let ended = {
            let governor = builder(&clock).open(folder.path()).unwrap();
            let gateway = Gateway::new(&governor).unwrap();
            let draft = KeyDraft::new(Scope::Admin, Plan::Pro);
            let draft = if is_revoked { draft } else { draft.expires_at(Timestamp::from_millis(NOON + 1000)) };
            let only = gateway.keys().create(draft).unwrap();
            // A key that is not an admin key does not count.
            gateway.keys().create(KeyDraft::new(Scope::Agent, Plan::Pro)).unwrap();
            clock.set(NOON + 999);
            assert!(gateway.keys().ensure_admin("second").unwrap().is_none(), "the first is accepted");
            if is_revoked {
                gateway.keys().revoke(only.info.id).unwrap();
            }
            governor.close().unwrap();
            only
        };
        clock.set(NOON + 1000);
        let governor = builder(&clock).open(folder.path()).unwrap();
        let gateway = Gateway::new(&governor).unwrap();
        assert_eq!(code(ask(&gateway, &ended.key, status())), "UNAUTHORIZED");
        let second = gateway.keys().ensure_admin("second").unwrap();
        let second = second.unwrap_or_else(|| panic!("nobody can get in; revoked: {is_revoked}"));
        assert_eq!(code(ask(&gateway, &second.key, status())), "");
        assert!(gateway.keys().ensure_admin("third").unwrap().is_none(), "a third");
    }
}

#[test]
fn keys_that_are_refused_again_and_again_raise_an_alert() {
    let (governor, gateway) = opened(&Hand::at(NOON));
    let rule = "name = \"n\"\n[[alert]]\nid = \"keys\"\non = \"key\"\ncount = 3\nper = \"1h\"\nseverity = \"HIGH\"";
    governor.policies().load(PolicySet::from_toml(rule).unwrap()).unwrap();
    let mut events = governor.subscribe(&EventFilter::all()).unwrap();
    let made = gateway.keys().create(KeyDraft::new(Scope::Agent, Plan::Pro)).unwrap();
    gateway.keys().revoke(made.info.id).unwrap();
    for _ in 0..3 {
        assert_eq!(code(ask(&gateway, &made.key, reading("a"))), "UNAUTHORIZED");
    }
    governor.log().flush().unwrap();
    let EventData::Alert(alert) = events.poll().unwrap().unwrap().data else { panic!("no alert") };
    assert!(alert.message.contains(&made.info.id.to_string()), "{alert:?}");
    assert!(!alert.message.contains(&made.key.expose()[10..]), "{alert:?}");
}

#[test]
fn guessing_beyond_the_rate_of_a_minute_raises_an_alert() {
    let (governor, gateway) = opened(&Hand::at(NOON));
    let rule = "name = \"n\"\n[[alert]]\nid = \"keys\"\non = \"key\"\ncount = 100\nper = \"1m\"\nseverity = \"HIGH\"";
    governor.policies().load(PolicySet::from_toml(rule).unwrap()).unwrap();
    let mut events = governor.subscribe(&EventFilter::all()).unwrap();
    for _ in 0..100 {
        handle(&gateway, Some("guess"), "10.6.6.6", reading("a")).unwrap_err();
    }
    governor.log().flush().unwrap();
    let EventData::Alert(alert) = events.poll().unwrap().unwrap().data else { panic!("no alert") };
    assert!(alert.message.contains("10.6.6.6"), "{alert:?}");
}

#[test]
fn a_key_outlasts_what_leaves_for_an_archive() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Hand::at(NOON);
    let governor = builder(&clock).auto_register().open(folder.path().join("log")).unwrap();
    let made = Gateway::new(&governor).unwrap().keys().create(KeyDraft::new(Scope::Agent, Plan::Pro)).unwrap();
    heavy(&governor, 400, 1);
    clock.set(NOON + 40 * DAY);
    heavy(&governor, 380, 2);
    wait_until_sealed(&governor);
    let report = governor.log().archive(Timestamp::from_millis(NOON + DAY), folder.path().join("a.rka")).unwrap();
    assert!(report.is_some(), "nothing left");
    governor.close().unwrap();
    drop(governor);
    let governor = builder(&clock).auto_register().open(folder.path().join("log")).unwrap();
    let gateway = Gateway::new(&governor).unwrap();
    assert_eq!(code(ask(&gateway, &made.key, reading("a"))), "");
}

#[test]
fn a_repair_keeps_keys_and_believes_only_revocations_after_it() {
    let store = tempfile::tempdir().unwrap();
    let governor = Governor::builder().auto_register().open(store.path()).unwrap();
    let gateway = Gateway::new(&governor).unwrap();
    let make = || gateway.keys().create(KeyDraft::new(Scope::Agent, Plan::Pro)).unwrap();
    let (kept, revoked) = (make(), make());
    let damaged = common::decide(&governor, "a");
    gateway.keys().revoke(revoked.info.id).unwrap();
    let made_behind = make();
    governor.close().unwrap();
    drop((gateway, governor));
    let file = common::journal(store.path());
    let mut bytes = std::fs::read(&file).unwrap();
    let frame = common::frames(&bytes)[usize::try_from(damaged.sequence().get()).unwrap()].clone();
    bytes[frame.start + 80] ^= 1;
    std::fs::write(&file, bytes).unwrap();

    let report = rulekeep::maintenance::repair(store.path(), &rulekeep::maintenance::RepairOptions::default()).unwrap();
    assert!(report.notes.iter().any(|note| note.starts_with("1 API keys")), "{:?}", report.notes);
    let governor = Governor::builder().auto_register().open(store.path()).unwrap();
    let gateway = Gateway::new(&governor).unwrap();
    assert_eq!(code(ask(&gateway, &kept.key, reading("a"))), "");
    for refused in [&revoked, &made_behind] {
        assert_eq!(code(ask(&gateway, &refused.key, reading("a"))), "UNAUTHORIZED");
    }
}

#[test]
fn a_gateway_does_not_keep_a_governor_open() {
    let folder = tempfile::tempdir().unwrap();
    let governor = Governor::open(folder.path()).unwrap();
    let gateway = Gateway::new(&governor).unwrap();
    drop((governor, gateway));
    Governor::open(folder.path()).unwrap();
}

#[test]
fn a_governor_has_one_gateway_which_is_cloned() {
    let (governor, gateway) = opened(&Hand::at(NOON));
    let made = gateway.clone().keys().create(KeyDraft::new(Scope::Agent, Plan::Pro)).unwrap();
    let second = Gateway::new(&governor).unwrap_err();
    assert_eq!((second.code(), second.http_status()), ("CONFLICT", 409), "{second}");
    assert_eq!(code(handle(&gateway, Some(made.key.expose()), HERE, reading("a"))), "");
}
