//! The end of a server.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use rulekeep::gateway::{Gateway, KeyDraft, Scope};
use rulekeep::http::{Server, ServerError, router};
use rulekeep::{Agent, Review};
use serde_json::json;

use crate::common::{Hand, policies};
use crate::live::{Ask, Client, Live, NOON, builder, mailing, wide};

/// Waits until that is so.
fn until(mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "it never came to be");
        std::thread::yield_now();
    }
}

/// Whether a request by the key was let in.
fn is_used(gateway: &Gateway, id: rulekeep::KeyId) -> bool {
    gateway.keys().list().iter().any(|key| key.id == id && key.last_used_at.is_some())
}

#[test]
fn what_is_being_answered_is_and_nothing_new_is() {
    let mut live = Live::new();
    let escalated = live.post("/v1/enforce", &live.agent, &mailing("a")).ok()["proofId"].as_str().unwrap().to_owned();
    let made = live.key(KeyDraft::new(Scope::Agent, wide()));
    let mut idle = live.client();
    idle.ask(&Ask::new("GET", "/v1/agents/a").key(&live.agent)).ok();
    let mut client = live.client();
    let path = format!("/v1/escalations/{escalated}/wait");
    client.send(Ask::new("POST", &path).key(made.key.expose()).json(&json!({ "timeoutMs": 10_000 })).bytes()).unwrap();
    until(|| is_used(&live.gateway, made.info.id));
    live.end();
    until(|| TcpStream::connect(live.address).is_err());
    assert!(idle.is_closed(), "a connection that asks nothing holds up the end");
    live.governor
        .escalations()
        .approve(
            escalated.parse::<rulekeep::ProofId>().map(rulekeep::EscalationId::of).unwrap(),
            Review::by("mail-lead"),
        )
        .unwrap();
    let answer = client.answer().unwrap();
    assert_eq!(answer.ok()["state"], "approved");
    assert!(client.is_closed());
    live.ended().unwrap();
}

#[test]
fn what_does_not_end_in_time_is_cut_and_said() {
    let governor = builder(&Hand::at(NOON)).policies(policies()).open_in_memory().unwrap();
    governor.register_agent(Agent::new("a")).unwrap();
    let gateway = Gateway::new(&governor).unwrap();
    let made = gateway.keys().create(KeyDraft::new(Scope::Agent, wide())).unwrap();
    // This runtime lives on behind the server.
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
            "POST /v1/enforce HTTP/1.1\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{{",
            made.key.expose()
        ))
        .unwrap();
    until(|| is_used(&gateway, made.info.id));
    end.send(()).unwrap();
    let ended = runtime.block_on(served).unwrap();
    assert!(matches!(ended, Err(ServerError::NotDrained(_))), "{ended:?}");
    assert!(client.is_closed(), "its connection goes on");
}
