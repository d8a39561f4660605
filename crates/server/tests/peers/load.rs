//! Clients that run for long, valid and hostile ones at once: every response has its record, and memory does not
//! grow.
//!
//! `RULEKEEP_LOAD_SECONDS` sets the duration; default 10 s.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rulekeep::{Durability, Governor, ProofQuery};
use rulekeep_server::http::Server;
use serde_json::json;

use crate::common::policies;
use crate::live::{Ask, Client, Live, mailing, reading};
use crate::nightly;

/// The memory that each record may leave: the index over the log, which stays while it is open.
// SOURCE: six runs, 2026-11-22, two busy cores, unoptimized: 76 to 489 for each of the first 10,000, mostly less than
// 200.
const BYTES_A_RECORD: u64 = 512;
/// The memory that a response without a record, and an ended connection, may leave: none, but memory is allocated by
/// the page.
// SOURCE: the same runs: 1 to 33 for a response, 1 to 7 for a connection.
const BYTES_AN_ANSWER: u64 = 256;
const BYTES_A_CONNECTION: u64 = 1_024;
/// Further memory when all clients run at once: threads, filling caches, and the allocator's reserve.
// SOURCE: the same runs: 10 to 28 MiB in all, with 8,000 to 20,000 records. So this bound shows only large leaks;
// `leaves_little` finds the others.
const BESIDE: u64 = 48 << 20;
/// The time after which a client is slow.
const SLOW: Duration = Duration::from_secs(5);
/// Number of valid clients, each on one connection.
const GOOD: u64 = 8;

#[derive(Default)]
struct Counted {
    /// Responses with status 200 to `/enforce` that were not repetitions.
    decided: AtomicU64,
    /// Requests of all kinds that were answered.
    answered: AtomicU64,
    /// Connections with invalid behavior.
    wrong: AtomicU64,
    is_over: AtomicBool,
}

#[test]
fn under_load_every_decision_has_its_record_and_nothing_grows() {
    if !nightly() {
        return;
    }
    let seconds = std::env::var("RULEKEEP_LOAD_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(10);
    let folder = tempfile::tempdir().unwrap();
    let governor = Governor::builder().policies(policies()).durability(Durability::Buffered);
    let governor = governor.open(folder.path().join("store")).unwrap();
    // Short, so that hundreds of slow clients come and go; long enough for valid ones on a busy machine.
    let server = Server::new().header_timeout(SLOW).body_timeout(SLOW).write_timeout(SLOW);
    let live = Live::of(governor, server);
    let counted = Counted::default();
    // Keys already used from here continue to work while other keys from here are rejected.
    live.get("/v1/agents/a", &live.agent).ok();
    live.get("/v1/admin/status", &live.admin).ok();
    leaves_little(&live, &counted);
    // The memory of the first second (threads, caches, the first pages of the index) does not count as growth.
    run(&live, &counted, Duration::from_secs(1));
    let (memory, before) = (resident(), live.governor.status().metrics.proof_chain_length);
    let warm = counted.decided.load(Ordering::SeqCst);
    run(&live, &counted, Duration::from_secs(seconds));
    let after = resident();

    let decided = counted.decided.load(Ordering::SeqCst);
    let recorded = ["a", "b"].iter().map(|agent| live.records(agent)).sum::<u64>();
    assert!(decided > warm && counted.wrong.load(Ordering::SeqCst) > 0, "nothing was done");
    assert_eq!(recorded, decided, "answers and records differ");
    let grown = live.governor.status().metrics.proof_chain_length - before;
    println!(
        "{seconds} s: {} answers, {decided} decisions, {recorded} records, {} hostile connections",
        counted.answered.load(Ordering::SeqCst),
        counted.wrong.load(Ordering::SeqCst),
    );
    match memory.zip(after) {
        None => not_looked_at("what all of it took"),
        Some((memory, after)) => {
            let bound = memory + BESIDE + grown * BYTES_A_RECORD;
            let [memory, after, bound] = [memory, after, bound].map(|bytes| bytes >> 20);
            println!("resident {memory} MiB before, {after} MiB after, bound {bound} MiB");
            assert!(after < bound, "{memory} MiB grew to {after} MiB, past {bound} MiB");
        }
    }

    // After all this it still answers and ends, and its log is intact.
    let page = live.get("/v1/proof/query?entityId=a&pageSize=200", &live.agent).ok();
    assert_eq!(page["total"], live.records("a"));
    let governor = live.governor.clone();
    live.ended().unwrap();
    governor.log().flush().unwrap();
    assert!(governor.verify().unwrap().valid);
    let page = governor.query(&ProofQuery::entity("b").page_size(1)).unwrap();
    assert_eq!(page.total + governor.query(&ProofQuery::entity("a").page_size(1)).unwrap().total, decided);
    governor.close().unwrap();
}

/// A single client makes one kind of request after another, which shows what each leaves behind.
fn leaves_little(live: &Live, counted: &Counted) {
    let keyed = |method, path| Ask::new(method, path).key(&live.agent);
    let (looked, faulty) = (keyed("GET", "/v1/agents/a"), keyed("POST", "/v1/enforce").json(&json!({})));
    let decided = keyed("POST", "/v1/enforce").json(&reading("a"));
    let mut client = live.client();
    leaves("an answer", 10_000, BYTES_AN_ANSWER, |number| {
        let (asked, status) = if number.is_multiple_of(2) { (&looked, 200) } else { (&faulty, 400) };
        assert_eq!(client.ask(asked).status, status);
    });
    leaves("a connection", 4_000, BYTES_A_CONNECTION, |_| assert_eq!(live.ask(&looked).status, 200));
    // The server may have ended the first connection, which was idle meanwhile.
    let mut client = live.client();
    // Doubled, because the first thousands need more than later ones.
    leaves("a decision", 10_000, 2 * BYTES_A_RECORD, |_| {
        assert_eq!(client.ask(&decided).status, 200);
        counted.decided.fetch_add(1, Ordering::SeqCst);
    });
}

/// Asserts that each request leaves at most this much memory.
fn leaves(what: &str, many: u64, most: u64, mut ask: impl FnMut(u64)) {
    // The memory of the first requests does not count as growth.
    (0..many / 4).for_each(&mut ask);
    let before = resident();
    (0..many).for_each(&mut ask);
    let Some((before, after)) = before.zip(resident()) else {
        return not_looked_at(&format!("what {what} leaves"));
    };
    let grown = after.saturating_sub(before);
    println!("{many} times {what}: {} KiB more, {} bytes each", grown >> 10, grown / many);
    assert!(grown < many * most, "{what} leaves {} bytes", grown / many);
}

/// Runs all clients for this time.
fn run(live: &Live, counted: &Counted, time: Duration) {
    counted.is_over.store(false, Ordering::SeqCst);
    let deadline = Instant::now() + time;
    thread::scope(|scope| {
        for number in 0..GOOD {
            scope.spawn(move || good(live, counted, number));
        }
        for hostile in [garbage, slow_heads, slow_bodies, hang_ups, guesses] {
            scope.spawn(move || hostile(live, counted));
        }
        while Instant::now() < deadline {
            thread::sleep(Duration::from_millis(20));
        }
        counted.is_over.store(true, Ordering::SeqCst);
    });
}

impl Counted {
    fn goes_on(&self) -> bool {
        !self.is_over.load(Ordering::SeqCst)
    }
}

/// Asks for decisions, some with idempotency keys and repeated, sometimes for everything else; a tenth is invalid.
fn good(live: &Live, counted: &Counted, number: u64) {
    static KEYS: AtomicU64 = AtomicU64::new(0);
    let mut client = live.client();
    let agent = if number.is_multiple_of(2) { "a" } else { "b" };
    let mut round = 0_u64;
    while counted.goes_on() {
        round += 1;
        let mut ask = |asked: Ask<'_>| {
            counted.answered.fetch_add(1, Ordering::SeqCst);
            client.ask(&asked)
        };
        let enforce = |body| Ask::new("POST", "/v1/enforce").key(&live.agent).json(&body);
        match round % 10 {
            0 => {
                let key = format!("load-{}", KEYS.fetch_add(1, Ordering::SeqCst));
                let asked = enforce(reading(agent)).header("Idempotency-Key", &key);
                let (first, again) = (ask(asked.clone()).ok(), ask(asked));
                assert_eq!((first, again.header("idempotent-replayed")), (again.ok(), Some("true")));
                counted.decided.fetch_add(1, Ordering::SeqCst);
            }
            1 => assert_eq!(ask(enforce(json!({ "intent": { "agentId": agent } }))).refusal().0, 400),
            2 => {
                let id = ask(enforce(reading(agent))).ok()["proofId"].clone();
                counted.decided.fetch_add(1, Ordering::SeqCst);
                let body = json!({ "proofId": id, "outcome": "SUCCESS" });
                let told = ask(Ask::new("POST", "/v1/proof/outcome").key(&live.agent).json(&body)).ok();
                assert_eq!((&told["id"], &told["outcome"]), (&id, &json!("SUCCESS")));
            }
            3 if round % 50 == 3 => {
                ask(Ask::new("GET", &format!("/v1/proof/query?entityId={agent}&pageSize=5")).key(&live.agent)).ok();
            }
            4 if round % 500 == 4 => {
                let status = ask(Ask::new("GET", "/v1/admin/status").key(&live.admin)).ok();
                assert_ne!(status["status"], "unhealthy");
            }
            5 if round % 100 == 5 => {
                // Nobody answers them: above the maximum of open escalations the decision is DENY.
                assert_ne!(ask(enforce(mailing(agent))).ok()["decision"], "ALLOW");
                counted.decided.fetch_add(1, Ordering::SeqCst);
            }
            6 => assert_eq!(ask(Ask::new("GET", "/v1/admin/keys").key(&live.agent)).refusal().0, 403),
            _ => {
                assert_eq!(ask(enforce(reading(agent))).ok()["decision"], "ALLOW");
                counted.decided.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

/// Writes bytes on a connection of its own, and reads whatever comes back.
fn hostile(live: &Live, counted: &Counted, bytes: &[u8]) {
    let mut client = live.client();
    // The server may close before everything is written.
    let _ = client.send(bytes);
    let _ = client.answer();
    counted.wrong.fetch_add(1, Ordering::SeqCst);
}

fn garbage(live: &Live, counted: &Counted) {
    let deep = "[".repeat(10_000);
    let bearer = format!("Authorization: Bearer {}", live.agent);
    let shapes = [
        "GET / HTTP/9.9\r\n\r\n".to_owned(),
        "\0\u{1}\u{2}\r\n\r\n".to_owned(),
        format!("GET /v1/agents/a HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "x".repeat(40_000)),
        format!(
            "POST /v1/enforce HTTP/1.1\r\nHost: x\r\n{bearer}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{deep}",
            deep.len()
        ),
        format!(
            "POST /v1/enforce HTTP/1.1\r\nHost: x\r\n{bearer}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
        ),
        format!(
            "POST /v1/enforce HTTP/1.1\r\nHost: x\r\n{bearer}\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n{{"
        ),
    ];
    while counted.goes_on() {
        for shape in &shapes {
            hostile(live, counted, shape.as_bytes());
        }
    }
}

fn slow_heads(live: &Live, counted: &Counted) {
    while counted.goes_on() {
        let mut held: Vec<Client<TcpStream>> = (0..100).map(|_| live.client()).collect();
        for client in &mut held {
            let _ = client.send("GET /v1/agents/a HTTP/1.1\r\nHost: x\r\nX-Slow: ");
        }
        for mut client in held {
            let _ = client.answer();
            counted.wrong.fetch_add(1, Ordering::SeqCst);
        }
    }
}

fn slow_bodies(live: &Live, counted: &Counted) {
    let head = format!(
        "POST /v1/enforce HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
        live.agent
    );
    while counted.goes_on() {
        let mut held: Vec<Client<TcpStream>> = (0..100).map(|_| live.client()).collect();
        for client in &mut held {
            let _ = client.send(&head);
        }
        for mut client in held {
            let _ = client.answer();
            counted.wrong.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// Sends half a request and hangs up. A complete one would be decided, so none is sent.
fn hang_ups(live: &Live, counted: &Counted) {
    let whole = Ask::new("POST", "/v1/enforce").key(&live.agent).json(&reading("a")).bytes();
    let mut at = 1;
    while counted.goes_on() {
        at = at % (whole.len() - 1) + 1;
        let mut stream = TcpStream::connect(live.address).unwrap();
        let _ = stream.write_all(&whole[..at]);
        counted.wrong.fetch_add(1, Ordering::SeqCst);
    }
}

fn guesses(live: &Live, counted: &Counted) {
    while counted.goes_on() {
        let answer = live.post("/v1/enforce", "rkp_agent_guess", &reading("a"));
        assert!(matches!(answer.status, 401 | 429), "{answer:?}");
        counted.wrong.fetch_add(1, Ordering::SeqCst);
    }
}

/// Prints to standard error past the test harness, which captures the output of passing tests.
fn not_looked_at(what: &str) {
    let _ = writeln!(std::io::stderr(), "memory was not looked at, which this system does not tell: {what}");
}

/// The process's memory in bytes without file-backed pages; `None` if the system does not report it.
fn resident() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10)
}
