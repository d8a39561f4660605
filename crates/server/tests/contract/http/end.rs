//! The end of a server.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use rulekeep::Agent;
use rulekeep_server::gateway::{Gateway, KeyDraft, Scope};
use rulekeep_server::http::{Server, ServerError, router};

use super::live::{Ask, Client, Live, NOON, builder, reading, wide};
use crate::common::{Hand, policies};

/// Waits until the condition holds.
fn until(mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "it never came to be");
        std::thread::yield_now();
    }
}

/// Returns whether a request with the key has been admitted.
fn is_used(gateway: &Gateway, id: rulekeep::extension::KeyId) -> bool {
    gateway.keys().list().iter().any(|key| key.id == id && key.last_used_at.is_some())
}

#[test]
fn what_is_being_answered_is_and_nothing_new_is() {
    let mut live = Live::new();
    let made = live.key(KeyDraft::new(Scope::Agent, wide()));
    let mut idle = live.client();
    idle.ask(&Ask::new("GET", "/v1/agents/a").key(&live.agent)).ok();
    let mut client = live.client();
    let asked = Ask::new("POST", "/v1/enforce").key(made.key.expose()).json(&reading("a")).bytes();
    let (first, rest) = asked.split_at(asked.len() - 1);
    client.send(first).unwrap();
    until(|| is_used(&live.gateway, made.info.id));
    live.end();
    until(|| TcpStream::connect(live.address).is_err());
    assert!(idle.is_closed(), "a connection that asks nothing holds up the end");
    client.send(rest).unwrap();
    assert_eq!(client.answer().unwrap().ok()["decision"], "ALLOW");
    assert!(client.is_closed());
    live.ended().unwrap();
}

#[test]
fn what_was_asked_in_part_does_not_hold_up_the_end() {
    let hour = Duration::from_secs(3_600);
    let mut live = Live::with(Server::new().header_timeout(hour).drain_timeout(Duration::from_secs(5)));
    let mut held: Vec<_> = (0..20).map(|_| live.client()).collect();
    for client in &mut held[..10] {
        client.send("GET /v1/agents/a HTTP/1.1\r\nX-Slow: ").unwrap();
    }
    let asked = Ask::new("GET", "/v1/agents/a").key(&live.agent);
    for client in &mut held[10..] {
        client.ask(&asked).ok();
        client.send("GET /v1/agents/a HTTP/1.1\r\nX-Slow: ").unwrap();
    }
    // When this request is answered, the earlier ones have been admitted.
    live.ask(&asked).ok();
    live.end();
    for client in &mut held {
        assert!(client.is_closed());
    }
    live.ended().unwrap();
}

#[test]
fn what_does_not_end_in_time_is_cut_and_said() {
    let governor = builder(&Hand::at(NOON)).policies(policies()).open_in_memory().unwrap();
    governor.agents().register(Agent::new("a")).unwrap();
    let gateway = Gateway::new(&governor).unwrap();
    let made = gateway.keys().create(KeyDraft::new(Scope::Agent, wide())).unwrap();
    // This runtime outlives the server.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let server = Server::new().drain_timeout(Duration::from_millis(100)).body_timeout(Duration::from_secs(3_600));
    let shutdown = async {
        let _ = ended.await;
    };
    let served = runtime.spawn(server.serve(listener, router(&gateway), shutdown));
    let mut client = Client::to(address);
    client
        .send(format!(
            "POST /v1/enforce HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{{",
            made.key.expose()
        ))
        .unwrap();
    until(|| is_used(&gateway, made.info.id));
    end.send(()).unwrap();
    let ended = runtime.block_on(served).unwrap();
    assert!(matches!(ended, Err(ServerError::NotDrained(_))), "{ended:?}");
    assert!(client.is_closed(), "its connection goes on");
}
