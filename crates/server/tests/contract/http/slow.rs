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
fn past_the_most_connections_one_waits_for_another() {
    let live = Live::with(Server::new().max_connections(2));
    let asked = Ask::new("GET", "/v1/agents/a").key(&live.agent);
    let (mut first, mut second, mut third) = (live.client(), live.client(), live.client());
    first.ask(&asked).ok();
    second.ask(&asked).ok();
    third.send(asked.bytes()).unwrap();
    third.stream.get_ref().set_read_timeout(Some(SHORT)).unwrap();
    assert!(third.answer().is_err(), "a third was served");
    third.stream.get_ref().set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    drop(first);
    third.answer().unwrap().ok();
    second.ask(&asked).ok();
}
