//! Slow clients.

use std::io::{ErrorKind, Write};
use std::time::Duration;

use rulekeep_server::http::Server;

use super::live::{Ask, Live, reading};

const SHORT: Duration = Duration::from_millis(200);

fn head(live: &Live) -> String {
    format!(
        "POST /v1/enforce HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n",
        live.agent
    )
}

#[test]
fn a_missing_head_ends_its_connection_and_delays_nobody() {
    let live = Live::with(Server::new().header_timeout(SHORT));
    let asked = Ask::new("GET", "/v1/agents/a").key(&live.agent);
    let mut held: Vec<_> = (0..50).map(|_| live.client()).collect();
    for client in &mut held {
        client.send("GET /v1/agents/a HTTP/1.1\r\nHost: x\r\nX-Slow:").unwrap();
    }
    live.ask(&asked).ok();
    for client in &mut held {
        // The client may be told the reason.
        assert!(client.answer().map_or(408, |answer| answer.status) == 408);
        assert!(client.is_closed());
    }
    live.ask(&asked).ok();
}

#[test]
fn a_head_that_comes_byte_by_byte_has_no_more_time() {
    let live = Live::with(Server::new().header_timeout(SHORT));
    let mut client = live.client();
    client.send("GET /v1/agents/a HTTP/1.1\r\nHost: x\r\nX-Slow: ").unwrap();
    // Each round sends one more byte; the server ends this.
    let closed = (0..100_000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        client.send("x").is_err()
    });
    assert!(closed, "it went on for ever");
}

#[test]
fn an_idle_connection_ends() {
    let live = Live::with(Server::new().header_timeout(SHORT));
    let mut client = live.client();
    client.ask(&Ask::new("GET", "/v1/agents/a").key(&live.agent)).ok();
    assert!(client.is_closed());
    assert!(live.client().is_closed(), "one that never asked");
}

#[test]
fn a_body_that_does_not_come_is_told_so_and_holds_up_nobody() {
    let live = Live::with(Server::new().body_timeout(SHORT));
    let mut held: Vec<_> = (0..50).map(|_| live.client()).collect();
    for client in &mut held {
        client.send(format!("{}{{\"intent\":", head(&live))).unwrap();
    }
    live.post("/v1/enforce", &live.agent, &reading("a")).ok();
    for client in &mut held {
        let answer = client.answer().unwrap();
        assert_eq!(answer.refusal(), (408, "REQUEST_TIMEOUT".into()));
        assert_eq!(answer.header("connection"), Some("close"));
        assert!(client.is_closed());
    }
    assert_eq!(live.records("a"), 1);
}

#[test]
fn a_client_that_reads_no_answers_is_cut_off() {
    let live = Live::with(Server::new().write_timeout(SHORT));
    for _ in 0..200 {
        live.governor.enforce(&crate::common::reading("a")).unwrap();
    }
    let mut client = live.client();
    let asked = Ask::new("GET", "/v1/proof/query?entityId=a&pageSize=200").key(&live.agent).bytes();
    let error = loop {
        if let Err(error) = client.stream.get_mut().write_all(&asked) {
            break error;
        }
    };
    assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error:?}");
}

#[test]
fn a_new_connection_gets_the_place_of_the_oldest_stranger() {
    let live = Live::with(Server::new().max_connections(4));
    let asked = Ask::new("GET", "/v1/agents/a").key(&live.agent);
    let mut known = live.client();
    let mut strangers: Vec<_> = (0..3).map(|_| live.client()).collect();
    for stranger in &mut strangers {
        // Once it is answered, it has its place.
        assert_eq!(stranger.ask(&Ask::new("GET", "/v1/agents/a")).status, 401);
    }
    // The answer makes it the newest.
    known.ask(&asked).ok();
    strangers[2].send("GET /v1/agents/a HTTP/1.1\r\nHost: x\r\nX-Slow:").unwrap();
    let mut newer = Vec::new();
    for oldest in &mut strangers {
        newer.push(live.client());
        newer.last_mut().unwrap().ask(&asked).ok();
        assert!(oldest.is_closed());
    }
    known.ask(&asked).ok();
}

#[test]
fn a_call_with_a_key_keeps_its_place_among_strangers() {
    let live = Live::with(Server::new().max_connections(4).body_timeout(Duration::from_secs(3_600)));
    let body = reading("a").to_string();
    // Another connection may take its place before its head is read; then it comes again.
    let is_kept = (0..10).any(|_| {
        let mut half = live.client();
        half.send(head(&live).replace("100", &body.len().to_string())).unwrap();
        for _ in 0..100 {
            live.ask(&Ask::new("GET", "/v1/agents/a").key(&live.agent)).ok();
        }
        half.send(&body).is_ok() && half.answer().is_ok_and(|answer| answer.status == 200)
    });
    assert!(is_kept, "its place was given away");
}

#[test]
fn calls_with_keys_leave_a_quarter_of_the_places() {
    let live = Live::with(Server::new().max_connections(4).body_timeout(Duration::from_secs(3_600)));
    let mut held: Vec<_> = (0..8).map(|_| live.client()).collect();
    for client in &mut held {
        client.send(head(&live)).unwrap();
    }
    live.ask(&Ask::new("GET", "/v1/agents/a").key(&live.agent)).ok();
}
