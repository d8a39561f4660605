//! The cost of HTTP on top of a decision: the same call within the process, through the gateway, and over loopback on
//! a kept connection; the cost of the rate limiter alone; the memory of a thousand idle connections.
//!
//! `cargo bench -p rulekeep-server --bench http`. Medians and tails come from calls that take turns, so that changes
//! of the machine's speed affect all of them alike. `RULEKEEP_BENCH_ROUNDS` sets the number of rounds (default
//! 20,000).

#![allow(missing_docs)] // criterion's macros make public items without any
#![allow(clippy::expect_used)] // a bench that cannot be set up has nothing to measure

use std::hint::black_box;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::post;
use criterion::{Criterion, criterion_group, criterion_main};
use gcra::middleware::StateInformationMiddleware;
use gcra::{Quota, RateLimiter};
use rulekeep::{Agent, Durability, Governor, Intent, RiskLevel, Tier};
use rulekeep_server::calls::decisions::{DecisionForm, Enforce, IntentForm};
use rulekeep_server::gateway::{Gateway, KeyDraft, Plan, Scope};
use rulekeep_server::http::{Server, router};
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;

const AGENT: &str = "bench";
const CALLER: &str = "127.0.0.1";
const SENTENCE: &str = "Please send a short summary of the quarterly report to ann@example.com";

/// A governor, and the same one behind HTTP.
struct Served {
    governor: Governor,
    gateway: Gateway,
    key: String,
    address: SocketAddr,
    /// The same server with a response of equal length that needs no work.
    idle: SocketAddr,
    // In this order: the runtime ends before the folder is removed.
    _runtime: Runtime,
    _folder: TempDir,
}

impl Served {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let governor =
            Governor::builder().durability(Durability::Buffered).open(folder.path()).expect("the store opens");
        governor.agents().register(Agent::new(AGENT).at_tier(Tier::T4)).expect("the agent is new");
        let gateway = Gateway::new(&governor).expect("keys");
        let plan = Plan::enterprise(60_000_000, 1_000_000).expect("within what can be agreed on");
        let key = gateway.keys().create(KeyDraft::new(Scope::Agent, plan).agent(AGENT).built_intents()).expect("a key");
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        let serve = |router| {
            let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a port");
            let address = listener.local_addr().expect("its address");
            runtime.spawn(Server::new().serve(listener, router, std::future::pending()));
            address
        };
        let (address, idle) = (serve(router(&gateway)), serve(nothing()));
        Self { governor, gateway, key: key.key.expose().to_owned(), address, idle, _runtime: runtime, _folder: folder }
    }

    fn connect(&self) -> Connection {
        Connection::to(self.address)
    }

    /// A request to `/enforce`, ready to be sent.
    fn request(&self, body: &serde_json::Value) -> Vec<u8> {
        let (key, body) = (&self.key, body.to_string());
        let length = body.len();
        format!(
            "POST /v1/enforce HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

/// The base cost of any such server: it reads the body, and answers with the size of a verdict.
fn nothing() -> Router {
    const VERDICT: [u8; 400] = [b' '; 400];
    Router::new()
        .route("/v1/enforce", post(|body: Bytes| async move { (StatusCode::OK, black_box((VERDICT, body)).0) }))
}

/// A client that does as little as possible.
struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    fn to(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("no delay");
        Self { stream, buffer: vec![0; 64 << 10] }
    }

    fn ask(&mut self, request: &[u8]) {
        self.stream.write_all(request).expect("the request goes out");
        let mut filled = 0;
        loop {
            let read = self.stream.read(&mut self.buffer[filled..]).expect("an answer");
            assert!(read > 0, "the connection was closed");
            filled += read;
            let answer = &self.buffer[..filled];
            let Some(head) = answer.windows(4).position(|end| end == b"\r\n\r\n") else { continue };
            assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(answer));
            let text = std::str::from_utf8(&answer[..head]).expect("a head in ASCII");
            let (_, length) = text.split_once("content-length: ").expect("a length");
            let length: usize = length.split("\r\n").next().and_then(|digits| digits.parse().ok()).expect("a number");
            if filled >= head + 4 + length {
                return;
            }
        }
    }
}

fn intent() -> Intent {
    Intent::new(AGENT, "send_report", RiskLevel::Low, ["document:read", "email:send"])
        .expect("the intent is well formed")
        .with_context("target", "ann@example.com")
}

fn enforce(criterion: &mut Criterion) {
    let served = Served::start();
    let intent = intent();
    let (bearer, mut connection) = (Some(served.key.as_str()), served.connect());
    let request = served.request(&json!({ "intent": intent }));
    let mut group = criterion.benchmark_group("enforce_buffered");
    group.bench_function("in_process", |bencher| {
        bencher.iter(|| served.governor.enforce(black_box(&intent)).expect("a verdict"));
    });
    group.bench_function("gateway", |bencher| {
        bencher.iter(|| {
            served.gateway.admit(bearer, CALLER).and_then(|admitted| admitted.make(asked(&intent))).expect("a verdict")
        });
    });
    group.bench_function("http", |bencher| bencher.iter(|| connection.ask(black_box(&request))));
    group.finish();
    in_turns(&served);
}

/// Single calls that take turns, because Criterion reports no tails and measures one function after another.
fn in_turns(served: &Served) {
    let (intent, bearer) = (&intent(), Some(served.key.as_str()));
    let over_http = |body: serde_json::Value| {
        let (request, mut connection) = (served.request(&body), served.connect());
        Box::new(move || connection.ask(&request)) as Call<'_>
    };
    let nothing = {
        let (request, mut connection) = (served.request(&json!({ "intent": intent })), Connection::to(served.idle));
        Box::new(move || connection.ask(&request)) as Call<'_>
    };
    let mut calls: [(&str, Call<'_>); 6] = [
        ("nothing, http", nothing),
        ("intent, in process", Box::new(|| drop(served.governor.enforce(intent).expect("a verdict")))),
        ("input, in process", Box::new(|| drop(served.governor.enforce_input(AGENT, SENTENCE).expect("a verdict")))),
        (
            "intent, gateway",
            Box::new(|| {
                let made = served.gateway.admit(bearer, CALLER).and_then(|admitted| admitted.make(asked(intent)));
                drop(made.expect("a verdict"));
            }),
        ),
        ("intent, http", over_http(json!({ "intent": intent }))),
        ("input, http", over_http(json!({ "agentId": AGENT, "input": SENTENCE }))),
    ];
    let mut nanos: [Vec<u128>; 6] = Default::default();
    for _ in 0..rounds() {
        for ((_, call), nanos) in calls.iter_mut().zip(&mut nanos) {
            let started = Instant::now();
            call();
            nanos.push(started.elapsed().as_nanos());
        }
    }
    for ((name, _), nanos) in calls.iter().zip(&mut nanos) {
        nanos.sort_unstable();
        println!("in turns, {name}: {}", tails(nanos));
    }
    let [nothing, intent, input, _, intent_http, input_http] = nanos.map(|nanos| micros(&nanos, 0.5));
    println!(
        "http adds to the median: {:.1} us by intent, {:.1} us by input, of which {nothing:.1} us are the round trip",
        intent_http - intent,
        input_http - input
    );
}

type Call<'a> = Box<dyn FnMut() + 'a>;

fn tails(sorted: &[u128]) -> String {
    let at = |share| micros(sorted, share);
    format!("p50 {:.1} us, p99 {:.1} us, p99.9 {:.1} us, max {:.0} us", at(0.5), at(0.99), at(0.999), at(1.0))
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a share of some 10,000
fn micros(sorted: &[u128], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share) as usize] as f64 / 1000.0
}

fn rounds() -> usize {
    let rounds = std::env::var("RULEKEEP_BENCH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    rounds.unwrap_or(if is_test() { 20 } else { 20_000 })
}

/// Returns whether this is a test run, by Criterion's rule.
fn is_test() -> bool {
    let has = |name: &str| std::env::args().any(|argument| argument == name);
    has("--test") || !has("--bench")
}

/// The rate limiter alone, and everything that admits a request: the key's checksum, its digest, the table, the plan.
fn limiter(criterion: &mut Criterion) {
    let served = Served::start();
    let mut group = criterion.benchmark_group("limiter");
    let most = |number: u32| NonZeroU32::new(number).expect("above 0");
    let quota = Quota::per_minute(most(60_000_000)).allow_burst(most(1_000_000));
    let plan = RateLimiter::direct(quota).with_middleware::<StateInformationMiddleware>();
    group.bench_function("plan_alone", |bencher| bencher.iter(|| black_box(plan.check().is_ok())));
    group.bench_function("admit", |bencher| {
        bencher.iter(|| served.gateway.admit(black_box(Some(&served.key)), CALLER).map(drop));
    });
    group.finish();
}

/// The memory of idle connections that have made one request. Both ends are in this process.
fn idle(_: &mut Criterion) {
    let served = Served::start();
    let request = served.request(&json!({ "intent": intent() }));
    let most = if is_test() { 10 } else { 1_000 };
    let mut first = served.connect();
    (0..100).for_each(|_| first.ask(&request));
    let before = resident();
    let connections: Vec<TcpStream> = (0..most)
        .map(|_| {
            let mut connection = served.connect();
            connection.ask(&request);
            connection.stream
        })
        .collect();
    std::thread::sleep(Duration::from_millis(100)); // nothing is waited for: they stand idle
    let after = resident();
    if let (Some(before), Some(after)) = (before, after) {
        println!("{} idle connections: {before} KiB before, {after} KiB with them", connections.len());
    }
}

/// Resident memory in KiB, if there is `/proc`.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse().ok())
}

fn asked(intent: &Intent) -> Enforce {
    Enforce { form: DecisionForm::Intent(IntentForm { intent: black_box(intent).clone() }), task: None }
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(3));
    targets = enforce, limiter, idle
}
criterion_main!(benches);
