//! Rate limits over HTTP, with a clock that stands still.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rulekeep_server::gateway::{KeyDraft, Plan, Scope};
use rulekeep_server::http::Server;

use super::live::{Ask, Live, NOON, builder, reading};
use crate::common::Hand;

#[test]
fn behind_a_trusted_proxy_one_who_guesses_holds_up_nobody_else() {
    let here: std::net::IpAddr = "127.0.0.1".parse().unwrap();
    for (proxies, status) in [(vec![], 429), (vec![here], 200)] {
        let live = Live::with(Server::new().trusted_proxies(proxies));
        let ask = |key: &str, client: &str| {
            live.ask(&Ask::new("GET", "/v1/agents/a").key(key).header("X-Forwarded-For", client)).status
        };
        for _ in 0..21 {
            assert!(matches!(ask("wrong", "203.0.113.9, 192.0.2.1"), 401 | 429));
        }
        assert_eq!(ask(&live.agent, "203.0.113.9, 192.0.2.1"), 429, "who guessed waits, whatever it says of others");
        assert_eq!(ask(&live.agent, "192.0.2.2"), status);
    }
}

#[test]
fn at_once_a_plan_lets_in_exactly_its_burst() {
    let live = Live::new();
    let key = live.key(KeyDraft::new(Scope::Agent, Plan::enterprise(600, 137).unwrap())).key;
    let (barrier, decided, refused) = (Barrier::new(16), AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let mut client = live.client();
                let asked = Ask::new("POST", "/v1/enforce").key(key.expose()).json(&reading("a"));
                barrier.wait();
                for _ in 0..20 {
                    match client.ask(&asked).refusal() {
                        (200, _) => decided.fetch_add(1, Ordering::SeqCst),
                        (429, code) if code == "RATE_LIMITED" => refused.fetch_add(1, Ordering::SeqCst),
                        other => panic!("{other:?}"),
                    };
                }
            });
        }
    });
    assert_eq!((decided.load(Ordering::SeqCst), refused.load(Ordering::SeqCst)), (137, 16 * 20 - 137));
    assert_eq!(live.records("a"), 137, "a request past the limit was decided");
}

#[test]
fn an_answer_says_what_is_left_and_when_more_is() {
    let clock = Hand::at(NOON);
    let live = Live::of(builder(&clock).open_in_memory().unwrap(), Server::new());
    let key = live.key(KeyDraft::new(Scope::Agent, Plan::Free)).key;
    let ask = || live.get("/v1/agents/a", key.expose());
    for left in (0..10).rev() {
        let answer = ask();
        answer.ok();
        assert_eq!(answer.header("ratelimit-policy"), Some("\"free\";q=60;w=60, \"burst\";q=10"));
        assert_eq!(answer.header("ratelimit").unwrap(), format!("\"burst\";r={left};t={}", 10 - left));
        assert_eq!(answer.header("retry-after"), None);
    }
    let full = ask();
    assert_eq!(full.refusal(), (429, "RATE_LIMITED".into()));
    assert_eq!((full.header("retry-after"), full.header("ratelimit")), (Some("1"), Some("\"burst\";r=0;t=10")));
    assert_eq!(full.header("ratelimit-policy"), Some("\"free\";q=60;w=60, \"burst\";q=10"));
    assert_eq!(full.json()["error"]["details"]["retryAfter"], 1);
    clock.set(NOON + 999);
    assert_eq!(ask().status, 429);
    clock.set(NOON + 1000);
    assert_eq!(ask().status, 200);
    assert_eq!(ask().status, 429);
}

#[test]
fn every_path_and_every_error_takes_room() {
    let live = Live::new();
    let key = live.key(KeyDraft::new(Scope::Agent, Plan::Free)).key;
    let key = key.expose();
    for (method, path) in [
        ("GET", "/v1/agents/a"),
        ("GET", "/v1/agents/nobody"),
        ("GET", "/v1/admin/status"),
        ("POST", "/v1/enforce"),
        ("POST", "/v1/intent"),
        ("GET", "/v1/proof/query"),
        ("GET", "/v1/proof/stats?entityId=a"),
        ("HEAD", "/v1/agents/a"),
        ("POST", "/access/v1/evaluation"),
        ("POST", "/v1/proof/outcome"),
    ] {
        let mut client = live.client();
        client.send(Ask::new(method, path).key(key).bytes()).unwrap();
        assert_ne!(client.head().unwrap().status, 429, "{method} {path}");
    }
    assert_eq!(live.get("/v1/agents/a", key).status, 429);
}

#[test]
fn guessing_is_slow_and_says_nothing_of_a_right_guess() {
    let live = Live::new();
    let right = live.key(KeyDraft::new(Scope::Agent, Plan::Pro)).key;
    live.get("/v1/agents/a", &live.agent).ok();
    let codes: Vec<u16> = (0..25).map(|_| live.get("/v1/agents/a", "rkp_agent_guess").status).collect();
    assert_eq!(codes, [[401; 20].as_slice(), &[429; 5]].concat());
    let (wrong, right) = (live.get("/v1/agents/a", "rkp_agent_guess"), live.get("/v1/agents/a", right.expose()));
    let shown = |answer: &super::live::Answer| {
        let mut headers = answer.headers.clone();
        headers.retain(|(name, _)| name != "x-request-id" && name != "date");
        let mut body = answer.json();
        body["error"]["requestId"].take();
        (answer.status, headers, body)
    };
    assert_eq!((wrong.status, shown(&wrong)), (429, shown(&right)));
    live.get("/v1/agents/a", &live.agent).ok();
}
