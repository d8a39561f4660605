//! A live `serve`, used by programs that are not ours: the commands of curl in
//! `docs/reference/http.md`, and the clients of `clients/http` in Python
//! and in Node, also over a connection that loses an answer.
//!
//! And what `serve` does where the process may open few files, and when it is asked to end twice.
//!
//! What is not there on a machine is said on standard error, and the test is
//! passed over; with `RULEKEEP_REQUIRE_PEERS` set it fails instead.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::flaky_line::{self, FlakyLine, Passed};
use crate::process::Serve;
use crate::programs::{self, SOON, is_there};
use serde_json::Value;

#[test]
fn the_first_session_does_what_the_page_says() {
    if !["bash", "curl", "jq"].into_iter().all(is_there) {
        return;
    }
    let serve = Serve::start();
    let mut bash = Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", commands("First session")]).env("URL", &serve.url).env("ADMIN", &serve.admin);
    let said = programs::succeeded(&mut bash, &[], SOON);
    let answers: Vec<Value> = serde_json::Deserializer::from_str(&said).into_iter().collect::<Result<_, _>>().unwrap();
    let [registered, verdict, recorded, page, status] = answers.as_slice() else { panic!("{said}") };
    assert_eq!(registered["tier"], "T3");
    assert_eq!(verdict["decision"], "ALLOW");
    assert_eq!((&recorded["id"], &recorded["outcome"]), (&verdict["proofId"], &"SUCCESS".into()));
    assert_eq!((&page["total"], &page["items"][0]), (&1.into(), recorded));
    assert_eq!(status["status"], "healthy");
    serve.end();
}

/// The commands of a section of the page on HTTP.
fn commands(section: &str) -> &'static str {
    let page = include_str!("../../../../docs/reference/http.md");
    let section = page.split(&format!("\n## {section}\n")).nth(1).unwrap();
    let mut blocks = section.split("\n```sh\n").skip(1).map(|block| block.split("\n```").next().unwrap());
    blocks.find(|block| block.contains("curl ")).expect("the section has commands of curl")
}

/// What the commands of a section of the page print.
fn said_by(section: &str) -> String {
    let before = r#"
        admin="Authorization: Bearer $ADMIN"
        curl -sS -H "$admin" "$URL/admin/agents" --json '{"agentId": "support-7", "tier": "T4"}' >/dev/null
        key=$(curl -sS -H "$admin" "$URL/admin/keys" --json '{"scope": "agent", "plan": "pro"}' | jq -r .key)
        agent="Authorization: Bearer $key"
    "#;
    let serve = Serve::start();
    let mut bash = Command::new("bash");
    bash.args(["-euo", "pipefail", "-c", &format!("{before}\n{}", commands(section))]);
    let said = programs::succeeded(bash.env("URL", &serve.url).env("ADMIN", &serve.admin), &[], SOON);
    serve.end();
    said
}

#[test]
fn the_way_from_a_question_to_its_claim_is_as_the_page_says() {
    if !["bash", "curl", "jq"].into_iter().all(is_there) {
        return;
    }
    let said = said_by("Escalation");
    let mut answers = serde_json::Deserializer::from_str(&said).into_iter::<Value>();
    assert_eq!(answers.next().unwrap().unwrap()["rules"], 1, "{said}");
    let states = &said[answers.byte_offset()..];
    assert_eq!(states.split_whitespace().collect::<Vec<_>>(), ["pending", "approved", "ALLOW"], "{said}");
}

#[test]
fn the_way_of_a_task_is_as_the_page_says() {
    if !["bash", "curl", "jq"].into_iter().all(is_there) {
        return;
    }
    let said = said_by("Task");
    assert_eq!(said.split_whitespace().collect::<String>(), "ALLOW{}ESCALATEclosed");
}

#[test]
fn the_python_client_survives_a_line_that_loses_and_doubles() {
    match python() {
        Ok(python) => check(Command::new(python).arg(client("python_client.py"))),
        Err(why) => programs::pass_over(&why),
    }
}

#[test]
fn the_node_client_survives_a_line_that_loses_and_doubles() {
    if is_there("node") {
        check(Command::new("node").arg(client("node_client.mjs")));
    }
}

#[test]
fn a_client_that_is_refused_says_so_at_once_and_fails() {
    let Ok(python) = python() else { return }; // said above
    if !is_there("node") {
        return;
    }
    let serve = Serve::start();
    for (program, script) in [(python.as_path(), "python_client.py"), (Path::new("node"), "node_client.mjs")] {
        let line = FlakyLine::to(&serve.address(), &[]);
        // By arguments, this time.
        let mut command = Command::new(program);
        command.arg(client(script)).args([&line.url, "rkp_admin_wrong"]);
        let output = programs::ended(&mut command, &[], SOON);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("401 UNAUTHORIZED"), "{said}");
        assert_eq!(line.passed().len(), 1, "{script} tried again");
    }
}

#[test]
fn a_program_that_does_not_end_is_cut_off() {
    let refused = programs::run(Command::new("sh").args(["-c", "sleep 3600 & wait"]), &[], Duration::ZERO).unwrap_err();
    assert!(refused.starts_with("sh did not end"), "{refused}");
}

/// Runs a client where the first verdict is lost on its way, then the server is busy, then the client is too fast.
fn check(command: &mut Command) {
    let serve = Serve::start();
    let faults = [
        flaky_line::Fault::LoseTheAnswer,
        flaky_line::Fault::Answer("503 Service Unavailable", "", r#"{"error":{"code":"BUSY","message":"busy"}}"#),
        flaky_line::Fault::Answer(
            "429 Too Many Requests",
            "Retry-After: 1\r\n",
            r#"{"error":{"code":"RATE_LIMITED"}}"#,
        ),
    ];
    let line = FlakyLine::to(&serve.address(), &[("POST /v1/enforce", &faults)]);
    command.env("RULEKEEP_URL", &line.url).env("RULEKEEP_ADMIN_KEY", &serve.admin);
    let said = programs::succeeded(command, &[], SOON);

    // What the client checks itself: the answers, and that there are three records.
    let again: Vec<&str> = said.lines().filter(|line| line.contains("; again in ")).collect();
    let [lost, busy, fast] = again.as_slice() else { panic!("{said}") };
    assert!(lost.contains("no answer") && busy.contains("503"), "{said}");
    assert!(fast.contains("429") && fast.ends_with("again in 1.0 s"), "Retry-After is not what it waits: {fast}");
    assert!(!said.contains("rkp_"), "a key is printed: {said}");

    let passed = line.passed();
    let of = |what: &str| passed.iter().filter(|passed| passed.asked == what).collect::<Vec<&Passed>>();
    let verdicts = of("POST /v1/enforce");
    let [tries @ .., next] = verdicts.as_slice() else { panic!("{passed:?}") };
    assert_eq!(tries.len(), 4, "{passed:?}");
    assert!(tries[0].idempotency_key.is_some() && tries[0].idempotency_key != next.idempotency_key, "{passed:?}");
    assert!(tries.iter().all(|tried| tried.idempotency_key == tries[0].idempotency_key), "{passed:?}");
    assert!(tries[3].is_replayed && !tries[0].is_replayed, "{passed:?}");
    // With the agent's key, once; with the administrator's.
    let statuses: Vec<u16> = of("GET /v1/admin/status").iter().map(|passed| passed.status).collect();
    assert_eq!(statuses, [403, 200], "{passed:?}");
    serve.end();
}

/// Connections that ask nothing need no key, and the journal's next segment needs a descriptor.
#[cfg(target_os = "linux")]
#[test]
fn idle_connections_leave_the_descriptors_the_store_needs() {
    let serve = Serve::with_descriptors(128);
    let post = |path: &str, key: &str, body: &Value| {
        // Between two requests, new connections may take the place of this one.
        let mut client = BufReader::new(TcpStream::connect(serve.address()).unwrap());
        let body = body.to_string();
        let head = format!(
            "POST /v1{path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        client.get_mut().write_all((head + &body).as_bytes()).unwrap();
        answer(&mut client)
    };
    let wide = serde_json::json!({ "scope": "agent", "plan": { "perMinute": 60_000_000, "burst": 1_000_000 } });
    let made: Value = serde_json::from_slice(&post("/admin/keys", &serve.admin, &wide).1).unwrap();
    let key = made["key"].as_str().unwrap();
    let note = "n ".repeat(30_000);
    let body = serde_json::json!({ "intent": {
        "agentId": "a", "parsedAction": "read_document", "riskLevel": "LOW", "requiredCapabilities": ["document:read"],
        "context": { "note": note },
    } });
    let ask = || post("/enforce", key, &body).0;
    assert_eq!(ask(), 200);
    let idle: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(serve.address()).unwrap()).collect();
    let journal = serve.store.path().join("journal");
    let files = || std::fs::read_dir(&journal).unwrap().count();
    let mut asked = 0;
    while files() < 2 {
        assert_eq!(ask(), 200, "after {asked} more");
        asked += 1;
        assert!(asked < 2_000, "no second segment was begun");
    }
    let open = std::fs::read_dir(format!("/proc/{}/fd", serve.child.id())).unwrap().count();
    assert!(open <= 128 - 20, "{open} files are open");
    drop(idle);
    serve.end();
}

#[test]
fn asked_twice_to_end_it_does_so_at_once() {
    let mut serve = Serve::start();
    let mut client = BufReader::new(TcpStream::connect(serve.address()).unwrap());
    // What it is at takes longer than anybody has patience for.
    let head = format!(
        "POST /v1/enforce HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n",
        serve.admin
    );
    client.get_mut().write_all(head.as_bytes()).unwrap();
    assert_eq!(answer(&mut client).0, 100, "it is asked for the body");
    serve.terminate();
    while TcpStream::connect(serve.address()).is_ok() {
        std::thread::yield_now();
    }
    serve.terminate();
    assert_eq!(serve.child.wait().unwrap().code(), Some(130));
}

/// The status and the body of the next answer.
fn answer(client: &mut BufReader<TcpStream>) -> (u16, Vec<u8>) {
    let mut line = String::new();
    client.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).expect("a line of status").parse().unwrap();
    let mut length = 0;
    loop {
        line.clear();
        client.read_line(&mut line).unwrap();
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().unwrap();
            }
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    client.read_exact(&mut body).unwrap();
    (status, body)
}

fn client(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../clients/http", name].iter().collect()
}

/// A Python that has `requests`: the machine's, or one made for it. Or why there is none.
fn python() -> Result<PathBuf, String> {
    let machines = PathBuf::from("python3");
    if programs::imports(&machines, "requests") { Ok(machines) } else { programs::python("requests==2.34.2") }
}
