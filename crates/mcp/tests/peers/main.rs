//! The gateway between clients and servers of the official Python SDK, in both generations of the protocol, over
//! stdio and streamable HTTP.
//!
//! The clients start this program itself as the gateway, see `gateway.rs`. Without Python or `PyPI`, the test prints
//! that on standard error and does nothing; with `RULEKEEP_REQUIRE_PEERS` set it fails instead. All combinations are
//! tried with `RULEKEEP_NIGHTLY`, or those that an argument names.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

mod gateway;
#[path = "../../../server/tests/common/programs.rs"]
mod programs;

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The SDK of revision 2026-07-28, and the last one of the session-based revisions.
const VERSIONS: [&str; 2] = ["mcp==2.3.0", "mcp==1.30.0"];

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Ok(role) = std::env::var(gateway::ROLE) {
        return gateway::run(&role, &arguments);
    }
    if arguments.iter().any(|argument| argument == "--list") {
        println!("clients_and_servers_of_the_official_sdk_work_through_the_gateway: test");
        return;
    }
    arguments.retain(|argument| !argument.starts_with('-'));
    let mut pythons = Vec::new();
    for version in VERSIONS {
        match programs::python(version) {
            Ok(python) => pythons.push(python),
            Err(why) => return programs::pass_over(&why),
        }
    }
    let started = Instant::now();
    let mut tried = 0;
    let all = std::env::var_os("RULEKEEP_NIGHTLY").is_some() || !arguments.is_empty();
    for case in cases(&pythons, all) {
        if arguments.iter().all(|wanted| case.name.contains(wanted.as_str())) {
            println!("test {} ...", case.name);
            case.run();
            tried += 1;
        }
    }
    println!("test result: ok. {tried} combinations in {:.0?}", started.elapsed());
}

/// One client and one server, and the connection between them.
struct Case {
    name: String,
    client: PathBuf,
    mode: &'static str,
    server: PathBuf,
    way: Way,
    /// The server's SDK knows revision 2026-07-28.
    new_server: bool,
    /// The client speaks revision 2026-07-28.
    stateless: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The client starts the gateway, which starts the server.
    Wrap,
    /// The client starts the gateway, which connects to a server over HTTP.
    Proxy,
    /// Client and server over HTTP.
    Listen,
}

/// All combinations, or with `all` unset only those with the same generation on both sides, which start fewer
/// processes.
fn cases(pythons: &[PathBuf], all: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    let clients = [(0, "auto"), (0, "legacy"), (0, "auto-silent"), (1, "legacy"), (1, "legacy-silent")];
    for (client, mode) in clients {
        for server in [0, 1] {
            for way in [Way::Wrap, Way::Proxy, Way::Listen] {
                let is_plain = client == server && !mode.ends_with("-silent") && (client == 1 || mode == "auto");
                if !all && (!is_plain || way == Way::Proxy) {
                    continue;
                }
                cases.push(Case {
                    name: format!("client {} {mode}, server {}, {way:?}", VERSIONS[client], VERSIONS[server]),
                    client: pythons[client].clone(),
                    mode,
                    server: pythons[server].clone(),
                    way,
                    new_server: server == 0,
                    stateless: mode.starts_with("auto"),
                });
            }
        }
    }
    cases
}

impl Case {
    fn run(&self) {
        let folder = tempfile::tempdir().unwrap();
        let called = folder.path().join("called");
        let seen = self.seen(&called);
        self.check(&seen, &std::fs::read_to_string(&called).unwrap());
    }

    /// The client's results.
    fn seen(&self, called: &Path) -> Value {
        let own = std::env::current_exe().unwrap();
        let (own, server) = (own.to_str().unwrap(), script("server.py"));
        let mut client = Command::new(&self.client);
        client.arg(script("client.py")).arg(self.mode).env("CALLED", called).env("PYTHONDONTWRITEBYTECODE", "1");
        let mut running = Vec::new();
        if self.way == Way::Wrap {
            client.env(gateway::ROLE, "wrap").arg(own).arg(&self.server).arg(server);
        } else {
            let (url, process) = self.serve(&server, called);
            running.push(process);
            if self.way == Way::Proxy {
                client.env(gateway::ROLE, "proxy").args([own, &url]);
            } else {
                let mut command = Command::new(own);
                let mut process =
                    Process(command.arg(url).env(gateway::ROLE, "listen").stdout(Stdio::piped()).spawn().unwrap());
                let mut address = String::new();
                BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut address).unwrap();
                running.push(process);
                client.arg(address.trim());
            }
        }
        let output = programs::ended(&mut client, &[], programs::SOON);
        let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}: {said}\n{errors}", self.name);
        serde_json::from_str(said.lines().last().unwrap_or("")).unwrap_or_else(|_| panic!("{said}\n{errors}"))
    }

    /// Starts the server over HTTP, and waits until it listens.
    fn serve(&self, script: &Path, called: &Path) -> (String, Process) {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(&self.server);
        command.arg(script).arg(port.to_string()).env("CALLED", called).stdout(Stdio::null()).stderr(Stdio::null());
        let process = Process(command.spawn().unwrap());
        let end = Instant::now() + programs::SOON;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "{}: the server does not listen", self.name);
            std::thread::sleep(Duration::from_millis(20));
        }
        (format!("http://127.0.0.1:{port}/mcp"), process)
    }

    fn check(&self, seen: &Value, called: &str) {
        let name = &self.name;
        let is = |what: &str, found: &Value, expected: Value| assert_eq!(*found, expected, "{name}: {what}: {seen}");
        let text = |result: &Value| result["content"][0]["text"].clone();
        let has_forms = !self.mode.ends_with("-silent");

        let version = if self.stateless { "2026-07-28" } else { "2025-11-25" };
        is("version", &seen["version"], json!(version));
        is("server", &seen["server"], json!("wiki"));
        is("instructions", &seen["instructions"], json!("Ask for pages."));
        let tools = ["read_page", "delete_page", "send_email", "read_broken", "read_slowly", "read_asking"];
        is("tools", &seen["tools"], json!(tools));
        if self.stateless {
            is("scope", &seen["scope"], json!("private"));
        }

        is("a granted call", &text(&seen["read_page"]), json!("page 7"));
        is("a failing call", &seen["read_broken"]["isError"], json!(true));
        is("a call with progress", &text(&seen["read_slowly"]), json!("page 7"));
        is("progress", &seen["progress"], json!([1.0, 2.0]));
        assert!(seen["no_tool"]["error"].is_string() || seen["no_tool"]["isError"] == true, "{name}: {seen}");
        is("a resource", &seen["resource"]["contents"][0]["text"], json!("page 7"));
        is("a prompt", &seen["prompt"]["messages"][0]["content"]["text"], json!("Hello Ann"));

        let denied = &seen["delete_page"];
        is("a denied call", &denied["isError"], json!(true));
        is("its decision", &denied["_meta"]["rulekeep/refusal"]["decision"], json!("DENY"));
        is("its class", &denied["_meta"]["rulekeep/refusal"]["denialClass"], json!("policy"));

        let mail = &seen["send_email"];
        if has_forms {
            is("an approved call", &text(mail), json!("sent"));
            let questions = seen["questions"].as_array().unwrap();
            let own = questions.iter().filter(|one| one.as_str().unwrap().starts_with("Rulekeep holds back a call"));
            assert_eq!(own.count(), 1, "{name}: {seen}");
        } else {
            is("a call with a ticket", &mail["_meta"]["rulekeep/refusal"]["decision"], json!("ESCALATE"));
        }

        // A question of the server reaches only a client of the same generation.
        if has_forms && (self.new_server || !self.stateless) {
            is("a question of the server", &text(&seen["read_asking"]), json!("accept True"));
        }
        let mut reached: Vec<&str> = called.lines().collect();
        reached.sort_unstable();
        reached.dedup();
        let mut expected = vec!["read_asking", "read_broken", "read_page", "read_slowly"];
        expected.extend(has_forms.then_some("send_email"));
        assert_eq!(reached, expected, "{name}");
        assert_eq!(called.lines().filter(|line| *line == "send_email").count(), usize::from(has_forms), "{name}");
    }
}

/// A process that ends with the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        let _ = std::io::stderr().flush();
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(name)
}
