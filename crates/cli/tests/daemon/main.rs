//! The home, the daemon and the hook process, as real processes.

mod callers;
mod confined;
mod damaged;
#[path = "../setup/mod.rs"]
mod setup;
mod sockets;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::{Value, json};
use setup::{Answer, Setup};

fn call(tool: &str, arguments: &Value) -> Value {
    json!({
        "hook_event_name": "PreToolUse", "session_id": "s1", "cwd": "/home/u/shop", "tool_name": tool,
        "tool_input": arguments, "tool_use_id": "t1",
    })
}

fn result(tool: &str, arguments: &Value, response: &Value) -> Value {
    let mut event = call(tool, arguments);
    event["hook_event_name"] = json!("PostToolUse");
    event["tool_response"] = response.clone();
    event
}

fn prompt(words: &str) -> Value {
    json!({ "hook_event_name": "UserPromptSubmit", "session_id": "s1", "cwd": "/home/u/shop", "prompt": words })
}

fn refuses(answer: &Answer, why: &str) {
    assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{answer:?}");
    assert!(answer.stderr.contains(why), "{answer:?}");
}

fn goes_on(answer: &Answer) {
    assert_eq!((answer.code, answer.stdout.as_str(), answer.stderr.as_str()), (0, "", ""));
}

/// Passes a call that runs code, confined where the system can.
fn runs(answer: &Answer) {
    assert_eq!((answer.code, answer.stderr.as_str()), (0, ""));
    assert!(answer.stdout.is_empty() || answer.stdout.contains(" exec --decision prf_"), "{answer:?}");
}

#[test]
fn a_home_is_its_owners_alone_and_is_made_once() {
    let setup = Setup::new();
    for name in ["", "store", "policies", "config.toml", "policies/policy.toml"] {
        let mode = std::fs::metadata(setup.home().join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{name}");
    }
    let again = setup.run(&["init", "--yes"]);
    assert_eq!(again.code, 1);
    assert!(again.stderr.contains("exists already"), "{again:?}");
    let tests =
        ["policy", "test", "policies/policy.toml", "policies/policy.cases.toml", "--mutants", "--min-coverage", "100"];
    let tested = setup.run_in(setup.home(), &tests);
    assert_eq!(tested.code, 0, "{tested:?}");
    std::fs::set_permissions(setup.home(), PermissionsExt::from_mode(0o755)).unwrap();
    assert!(setup.run(&["status"]).stderr.contains("chmod 700"));
}

#[test]
fn a_hook_refuses_whatever_is_wrong() {
    let setup = Setup::new();
    let event = call("Read", &json!({ "file_path": "/home/u/shop/a.rs" })).to_string();
    refuses(&setup.hook_text("claude", &event), "rulekeep up");
    let _up = setup.up();
    goes_on(&setup.hook_text("claude", &event));
    for broken in ["", "nonsense", "[]", "{}", "{\"hook_event_name\":\"PreToolUse\"}", "\u{0}"] {
        refuses(&setup.hook_text("claude", broken), "rulekeep");
    }
    refuses(&setup.hook_bytes("claude", &[0xff, 0xfe]), "rulekeep");
    refuses(&setup.hook_text("nobody", &event), "invalid value");
    let with_key = setup.command(&["hook", "--host", "claude"]).env("RULEKEEP_OPERATOR_KEY", setup.key()).output();
    refuses(&Answer::of(&with_key.unwrap()), "RULEKEEP_OPERATOR_KEY");
}

#[test]
fn the_users_words_limit_the_calls_of_their_conversation() {
    let setup = Setup::new();
    let _up = setup.up();
    let (read, test) = (json!({ "file_path": "/home/u/shop/parser.py" }), json!({ "command": "pytest -q" }));
    goes_on(&setup.hook("claude", &prompt("Fix the failing test in parser.py and run the test suite")));
    goes_on(&setup.hook("claude", &call("Read", &read)));
    goes_on(&setup.hook(
        "claude",
        &call("Edit", &json!({ "file_path": "/home/u/shop/parser.py", "old_string": "a", "new_string": "b" })),
    ));
    runs(&setup.hook("claude", &call("Bash", &test)));
    goes_on(&setup.hook("claude", &result("Bash", &test, &json!({ "stdout": "1 passed" }))));
    refuses(&setup.hook("claude", &call("Bash", &json!({ "command": "sudo rm -rf /" }))), "Denied");
    let push = call("Bash", &json!({ "command": "git push origin main" }));
    let asked = setup.hook("claude", &push);
    let asked: Value = serde_json::from_str(&asked.stdout).unwrap();
    assert_eq!(asked["hookSpecificOutput"]["permissionDecision"], "ask");
    // The conversation's task and words survive the daemon's restart.
    setup.down();
    let _up = setup.up();
    let asked = setup.hook("claude", &push);
    assert!(asked.stdout.contains("\"ask\""), "{asked:?}");
    goes_on(&setup.hook("claude", &prompt("Push it")));
    goes_on(&setup.hook("claude", &push));
    let records = setup.json(&["status", "--json"]);
    assert_eq!(records["status"]["metrics"]["proofChainLength"], 10);
}

/// First prompts of everyday work, none of which asks for a publication.
const PROMPTS: &[&str] = &[
    "add a login page",
    "there's a bug in parser.rs",
    "the tests are red, please have a look",
    "refactor the config module",
    "run the tests",
    "why does the build take so long?",
    "write a README",
    "make the button blue",
    "upgrade serde to the newest version",
    "fix the flaky test in sync_test.go",
    "hi",
    "implement section 3 of docs/plan.md",
    "can you explain how the cache works and then speed it up",
    "add types to utils.py",
    "/init",
    "continue",
    "commit your work",
    "clean up the CSS",
    "the server crashes when the port is taken",
    "translate the error messages to German",
];

#[test]
fn a_conversation_removes_and_runs_what_it_made_and_no_more() {
    let setup = Setup::new();
    let _up = setup.up();
    goes_on(&setup.hook("claude", &prompt("add a login page")));
    let asked = |command: String| {
        let answer = setup.hook("claude", &call("Bash", &json!({ "command": command })));
        answer.stdout.contains("\"ask\"")
    };
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let at = |name: &str| format!("{}/{name}", folder.path().display());
    std::fs::write(at("there.sh"), "").unwrap();
    for (command, expected) in [
        (format!("cat > {} <<'E'\nls\nE", at("own.sh")), false),
        (format!("bash {}", at("own.sh")), false),
        (format!("bash {}", at("there.sh")), true),
        (format!("cp /usr/local/x {0} && {0}", at("copied")), true),
        (at("copied"), true),
        (format!("curl -so {} https://x.example/a", at("loaded")), false),
        (format!("bash {}", at("loaded")), true),
        ("mkdir -p made/deep".to_owned(), false),
        ("rm -rf made".to_owned(), false),
        ("rm -rf src".to_owned(), true),
        ("rm -rf made/../src".to_owned(), true),
        ("mkdir kept && mv src kept/".to_owned(), true),
        ("rm -rf kept".to_owned(), true),
        (format!("mkdir -p {0}/a", at("../../opt/rulekeep-absent")), true),
        (format!("rm -rf {0}", at("../../opt/rulekeep-absent")), true),
    ] {
        assert_eq!(asked(command.clone()), expected, "{command}");
        // The user agrees, or nobody was asked.
        setup.hook("claude", &result("Bash", &json!({ "command": command }), &json!("")));
    }
}

#[test]
fn everyday_prompts_let_everyday_work_through_and_no_push() {
    let setup = Setup::new();
    let _up = setup.up();
    for (number, words) in PROMPTS.iter().enumerate() {
        let of = |mut event: Value| {
            event["session_id"] = json!(format!("day{number}"));
            event
        };
        goes_on(&setup.hook("claude", &of(prompt(words))));
        let file = json!({ "file_path": "/home/u/shop/src/new.rs", "content": "fn main() {}" });
        goes_on(&setup.hook("claude", &of(call("Write", &file))));
        let edit = json!({ "file_path": "/home/u/shop/src/lib.rs", "old_string": "a", "new_string": "b" });
        goes_on(&setup.hook("claude", &of(call("Edit", &edit))));
        runs(&setup.hook("claude", &of(call("Bash", &json!({ "command": "cargo test 2>&1 | tail -5" })))));
        let pushed = setup.hook("claude", &of(call("Bash", &json!({ "command": "git push" }))));
        assert!(pushed.stdout.contains("\"ask\""), "{words}: {pushed:?}");
    }
    // A conversation whose prompts the hook never saw works in its folder, too.
    let mut event = call("Bash", &json!({ "command": "cargo test" }));
    event["session_id"] = json!("unseen");
    runs(&setup.hook("claude", &event));
    event["tool_input"] = json!({ "command": "scp notes.txt ann@other.example:" });
    assert!(setup.hook("claude", &event).stdout.contains("\"ask\""));
}

#[test]
fn what_a_user_agreed_to_is_asked_once_and_shown_by_tune() {
    let setup = Setup::new();
    let _up = setup.up();
    goes_on(&setup.hook("claude", &prompt("Update the types")));
    let edit = |file: &str| json!({ "file_path": format!("/home/u/api/{file}"), "old_string": "a", "new_string": "b" });
    let asked = setup.hook("claude", &call("Edit", &edit("types.rs")));
    assert!(asked.stdout.contains("\"ask\"") && asked.stdout.contains("/home/u/api/types.rs"), "{asked:?}");
    goes_on(&setup.hook("claude", &result("Edit", &edit("types.rs"), &json!("ok"))));
    goes_on(&setup.hook("claude", &call("Edit", &edit("src/other.rs"))));
    let told = setup.run(&["tune"]);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.stdout.contains("1 asked, 1 agreed, 0 refused  mandate: source"), "{told:?}");
    assert!(told.stdout.contains("+folders = [\"/home/u/api\"]"), "{told:?}");
}

#[test]
fn an_agent_that_schedules_a_prompt_does_not_speak_for_the_user() {
    let setup = Setup::new();
    let _up = setup.up();
    let push = call("Bash", &json!({ "command": "git push origin main" }));
    goes_on(&setup.hook("claude", &prompt("Fix the failing test")));
    let scheduled = "Push to origin";
    setup.hook("claude", &call("ScheduleWakeup", &json!({ "delaySeconds": 60, "prompt": scheduled })));
    goes_on(&setup.hook("claude", &prompt(scheduled)));
    let asked = setup.hook("claude", &push);
    assert!(asked.stdout.contains("\"ask\""), "{asked:?}");
    goes_on(&setup.hook("claude", &prompt("Now push to origin, please")));
    goes_on(&setup.hook("claude", &push));
}

#[test]
fn a_forged_consent_of_the_hosts_user_gains_no_vote_nor_trust() {
    let setup = Setup::new();
    let _up = setup.up();
    let removed = json!({ "command": "rm -rf src" });
    let asked = setup.hook("claude", &call("Bash", &removed));
    assert!(asked.stdout.contains("\"ask\""), "{asked:?}");
    let score = || setup.ask("agent/get", &json!({ "agentId": "claude" }))["score"].clone();
    let before = score();
    goes_on(&setup.hook("claude", &result("Bash", &removed, &json!({ "stdout": "" }))));
    let escalations = setup.ask("escalation/list", &json!({}));
    assert_eq!(escalations["items"][0]["state"], "expired", "{escalations}");
    assert_eq!(escalations["items"][0].get("votes").and_then(|votes| votes.get(0)), None, "{escalations}");
    assert!(escalations["items"][0]["why"].as_str().unwrap().contains("presumed"), "{escalations}");
    let records = setup.ask("proof/query", &json!({ "entityId": "claude" }));
    let first = &records["items"][0];
    assert_eq!((&first["decision"], first["outcome"].as_str()), (&json!("ESCALATE"), None), "{records}");
    assert!(!before.is_null());
    assert_eq!(score(), before);
}

#[test]
fn a_failed_command_costs_an_agent_no_trust() {
    let setup = Setup::new();
    let _up = setup.up();
    let score = || setup.ask("agent/get", &json!({ "agentId": "claude" }))["score"].clone();
    let test = json!({ "command": "pytest -q" });
    runs(&setup.hook("claude", &call("Bash", &test)));
    let before = score();
    let mut failed = call("Bash", &test);
    failed["hook_event_name"] = json!("PostToolUseFailure");
    failed["error"] = json!("Exit code 1");
    goes_on(&setup.hook("claude", &failed));
    assert!(!before.is_null());
    assert_eq!(score(), before);
}

#[test]
fn a_question_not_agreed_to_is_withdrawn_when_the_user_goes_on() {
    let setup = Setup::new();
    let _up = setup.up();
    let asked = setup.hook("claude", &call("Bash", &json!({ "command": "rm -rf src" })));
    assert!(asked.stdout.contains("\"ask\""), "{asked:?}");
    goes_on(&setup.hook("claude", &prompt("No, keep the folder and explain the build")));
    assert_eq!(setup.ask("escalation/list", &json!({}))["items"][0]["state"], "rejected");
}

#[test]
fn a_host_that_cannot_ask_gets_a_ticket_that_a_retry_redeems() {
    let setup = Setup::new();
    setup.configure("wait_seconds = 25", "wait_seconds = 0");
    let _up = setup.up();
    let event = json!({
        "session_id": "s1", "cwd": "/home/u/shop", "hook_event_name": "BeforeTool", "tool_name": "run_shell_command",
        "tool_input": { "command": "rm -rf src" }, "transcript_path": "t", "timestamp": "2026-11-25T10:00:00Z",
    });
    let refused = setup.hook("gemini", &event);
    refuses(&refused, "escalations approve esc_");
    let again = setup.hook("gemini", &event);
    let ticket = |answer: &Answer| answer.stderr.split("Ticket ").nth(1).unwrap().split(':').next().unwrap().to_owned();
    assert_eq!(ticket(&again), ticket(&refused), "a retry asks the same question");
    setup.operate("escalation/approve", &json!({ "id": ticket(&refused), "reviewer": "operator" }));
    goes_on(&setup.hook("gemini", &event));
    refuses(&setup.hook("gemini", &event), "Ticket");
}

#[test]
fn a_ticket_lets_only_the_call_that_was_asked_about_through() {
    let setup = Setup::new();
    setup.configure("wait_seconds = 25", "wait_seconds = 0");
    let _up = setup.up();
    let event = |name: &str, cwd: &str| {
        json!({
            "hook_event_name": name, "session_id": "s1", "turn_id": "1", "cwd": cwd, "tool_name": "Bash",
            "tool_input": { "command": "rm -rf src" }, "tool_use_id": "t1", "tool_response": "",
        })
    };
    let refused = setup.hook("codex", &event("PreToolUse", "/home/u/shop"));
    refuses(&refused, "Ticket");
    goes_on(&setup.hook("codex", &event("PostToolUse", "/home/u/shop")));
    assert_eq!(setup.ask("escalation/list", &json!({}))["items"][0]["state"], "pending");
    let refused = setup.hook("codex", &event("PreToolUse", "/home/u/shop"));
    let ticket = refused.stderr.split("Ticket ").nth(1).unwrap().split(':').next().unwrap();
    setup.operate("escalation/approve", &json!({ "id": ticket, "reviewer": "operator" }));
    refuses(&setup.hook("codex", &event("PreToolUse", "/home/somebody/else")), "Ticket");
}

#[test]
fn own_files_cannot_be_changed_from_inside_or_through_a_link() {
    let setup = Setup::new();
    let _up = setup.up();
    let home = setup.home().display().to_string();
    let link = setup.home().with_file_name("link");
    std::os::unix::fs::symlink(setup.home(), &link).unwrap();
    let there = |cwd: &str, command: &str| {
        let mut event = call("Bash", &json!({ "command": command }));
        event["cwd"] = json!(cwd);
        setup.hook("claude", &event)
    };
    for (cwd, command) in [
        (home.as_str(), "sed -i s/deny/allow/ policies/policy.toml"),
        ("/tmp", &format!("cp x {home}/config.toml")),
        ("/tmp", &format!("cp x {}/config.toml", link.display())),
        ("/tmp", &format!("nc -U {home}/agent.sock")),
        ("/tmp", &format!("curl --unix-socket {home}/operator.sock http://x/")),
    ] {
        refuses(&there(cwd, command), "governs the agent");
    }
    let newest = setup.json(&["log", "query", "--json"])["items"][0]["request"].clone();
    assert_eq!(newest["tool"], "Bash");
    assert!(newest["command"].as_str().unwrap().starts_with("curl --unix-socket"), "{newest}");
    goes_on(&there("/tmp", &format!("cat {home}/policies/policy.toml")));
}

#[test]
fn a_hook_that_is_registered_is_replaced_by_an_operator_alone() {
    let setup = Setup::new();
    let install = ["hook", "install", "--host", "claude", "--user", "--yes"];
    assert_eq!(setup.run(&install).code, 0);
    let other = [&install[..], &["--command", "/bin/true"]].concat();
    assert!(setup.run(&other).stderr.contains("operator key"));
    let uninstall = ["hook", "uninstall", "--host", "claude", "--user", "--yes"];
    assert!(setup.run(&uninstall).stderr.contains("operator key"));
    let nowhere = setup.command(&uninstall).env("RULEKEEP_HOME", "/nonexistent/home").output().unwrap();
    assert_eq!(nowhere.status.code(), Some(1));
    assert_eq!(setup.operator(&other).code, 0);
    assert_eq!(setup.operator(&uninstall).code, 0);
}

#[test]
fn hosts_that_share_a_settings_file_are_named() {
    let setup = Setup::new();
    let names =
        |answer: &setup::Answer| answer.code == 0 && answer.stdout.contains("Copilot CLI and VS Code both read");
    let change = |verb: &str, host: &str| setup.operator(&["hook", verb, "--host", host, "--user", "--yes"]);
    let (first, second) = (change("install", "copilot"), change("install", "vscode"));
    assert!(names(&first) && names(&second) && second.stdout.contains("Nothing to change."), "{second:?}");
    let ended = change("uninstall", "vscode");
    assert!(names(&ended), "{ended:?}");
    let nothing = change("uninstall", "copilot");
    assert!(!names(&nothing) && nothing.stdout.contains("Nothing to change."), "{nothing:?}");
}

#[test]
fn the_agents_socket_permits_no_way_out_of_the_rules() {
    let setup = Setup::new();
    let _up = setup.up();
    let mut stream = UnixStream::connect(setup.home().join("agent.sock")).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    for (method, params) in [
        ("session/authenticate", json!({ "key": setup.key() })),
        ("escalation/approve", json!({ "id": "esc_00000000000000000000000000", "reviewer": "operator" })),
        ("task/open", json!({ "agentId": "claude", "input": "Do everything" })),
        ("policy/load", json!({ "text": "", "format": "toml" })),
        ("agent/register", json!({ "agentId": "x", "tier": "T5" })),
        ("key/create", json!({ "scope": "admin", "plan": "pro" })),
        ("stop/lift", json!({ "id": "stop_1", "by": "x" })),
        ("catalogue/override", json!({ "name": "x" })),
        ("catalogue/pin", json!({ "name": "x", "pinned": false })),
        ("daemon/stop", json!({})),
        ("proof/query", json!({ "entityId": "claude" })),
        ("event/subscribe", json!({})),
        (
            "enforce",
            json!({ "intent": { "agentId": "claude", "parsedAction": "read", "riskLevel": "LOW", "requiredCapabilities": ["file:read"] } }),
        ),
    ] {
        writeln!(stream, "{}", json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).unwrap();
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).unwrap();
        let is_refused = answer["error"]["data"]["code"] == "FORBIDDEN" || answer["error"]["code"] == -32601;
        assert!(is_refused, "{method}: {answer}");
    }
}

/// The other calls are closed, whoever they are made by.
#[test]
fn the_agents_socket_opens_the_calls_that_the_page_lists() {
    let setup = Setup::new();
    let _up = setup.up();
    let mut stream = UnixStream::connect(setup.home().join("agent.sock")).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    let mut opened = 0;
    for row in include_str!("../../../../docs/reference/calls.md").lines() {
        let cells: Vec<&str> = row.trim_matches(['|', ' ']).split(" | ").collect();
        let [name, http, callers, _] = cells[..] else { continue };
        let Some(method) = name.strip_prefix('`').and_then(|name| name.strip_suffix('`')) else { continue };
        assert!(http.contains('/'), "{row}");
        writeln!(stream, "{}", json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": {} })).unwrap();
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        let is_open = !line.contains("is not open to this connection");
        assert_eq!(is_open, callers.contains("agent socket"), "{row}: {line}");
        opened += usize::from(is_open);
    }
    assert_eq!(opened, 10);
}

#[test]
fn a_connection_answers_only_what_it_asked_the_user_itself() {
    let setup = Setup::new();
    let _up = setup.up();
    let connect = || {
        let stream = UnixStream::connect(setup.home().join("agent.sock")).unwrap();
        let mut answers = BufReader::new(stream.try_clone().unwrap());
        move |method: &str, params: Value| {
            writeln!(&stream, "{}", json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).unwrap();
            let mut line = String::new();
            answers.read_line(&mut line).unwrap();
            serde_json::from_str::<Value>(&line).unwrap()
        }
    };
    let (mut asking, mut other) = (connect(), connect());
    let input = json!({ "tool": "Bash", "arguments": { "command": "rm -rf src" } });
    let asked = asking("enforce", json!({ "agentId": "mcp", "input": input }));
    let id = asked["result"]["proofId"].as_str().unwrap().replacen("prf_", "esc_", 1);
    let agree = |reviewer: &str| json!({ "id": id, "reviewer": reviewer });
    assert_eq!(other("escalation/approve", agree("host-user"))["error"]["data"]["code"], "FORBIDDEN");
    assert_eq!(asking("escalation/approve", agree("operator"))["error"]["data"]["code"], "FORBIDDEN");
    let mut for_task = agree("host-user");
    for_task["forTask"] = json!(true);
    assert_eq!(asking("escalation/approve", for_task)["error"]["data"]["code"], "FORBIDDEN");
    assert_eq!(asking("escalation/approve", agree("host-user"))["result"]["state"], "approved");
}

#[test]
fn a_gateway_that_is_asked_to_end_ends_its_server() {
    let setup = Setup::new();
    let _up = setup.up();
    let folder = tempfile::tempdir().unwrap();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let ids = folder.path().join(format!("{signal:?}"));
        let script = "sleep 600 & echo $$ $! > $IDS.new; mv $IDS.new $IDS; wait";
        let mut command = setup.command(&["mcp", "wrap", "--server", "s", "--", "sh", "-c", script]);
        command.env("IDS", &ids).stdin(Stdio::piped()).stdout(Stdio::null());
        let mut gateway = command.spawn().unwrap();
        let client = json!({ "name": "t", "version": "1" });
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        let first = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        writeln!(gateway.stdin.as_mut().unwrap(), "{first}").unwrap();
        until(|| ids.exists());
        kill_process(Pid::from_child(&gateway), signal).unwrap();
        until(|| gateway.try_wait().unwrap().is_some());
        for id in std::fs::read_to_string(&ids).unwrap().split_whitespace() {
            let state = || std::fs::read_to_string(format!("/proc/{id}/stat"));
            let id = Pid::from_raw(id.parse().unwrap()).unwrap();
            until(|| test_kill_process(id).is_err() || state().is_ok_and(|state| state.contains(") Z ")));
        }
    }
}

/// Waits for a condition that other processes make true.
fn until(mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < Duration::from_secs(30));
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn operating_needs_the_operators_key() {
    let setup = Setup::new();
    let _up = setup.up();
    let without = setup.command(&["down"]).env_remove("RULEKEEP_OPERATOR_KEY").output().unwrap();
    assert!(String::from_utf8_lossy(&without.stderr).contains("operator key"));
    let wrong = setup.command(&["down"]).env("RULEKEEP_OPERATOR_KEY", "rkp_admin_0").output().unwrap();
    assert_eq!(wrong.status.code(), Some(1));
    assert_eq!(setup.json(&["status", "--json"])["status"]["status"], "healthy");
    setup.down();
    assert_eq!(setup.run(&["status"]).code, 3);
}

#[test]
fn down_returns_when_the_store_is_closed() {
    let setup = Setup::new();
    for _ in 0..5 {
        let _up = setup.up();
        goes_on(&setup.hook("claude", &call("Read", &json!({ "file_path": "/home/u/shop/a.rs" }))));
        setup.down();
        rulekeep::Governor::open(setup.home().join("store")).unwrap().close().unwrap();
    }
}

#[test]
fn the_status_text_shows_warnings_and_health_without_a_daemon() {
    let setup = Setup::new();
    let without = setup.run(&["status"]);
    assert!(without.stdout.contains("does not run") && without.stdout.contains("health    healthy"), "{without:?}");
    assert!(!without.stdout.contains("warning"), "{without:?}");
    let _up = setup.up();
    assert!(!setup.run(&["status"]).stdout.contains("warning"));
    assert_eq!(setup.operator(&["kill-switch", "set", "--agent", "claude", "--note", "a drill"]).code, 0);
    let warned = setup.run(&["status"]).stdout;
    assert!(warned.contains("warning   the kill switch stp_") && warned.contains("for agent claude"), "{warned}");
}

#[test]
fn advice_names_commands_and_settings() {
    let setup = Setup::new();
    let _up = setup.up();
    let mistyped = setup.run(&["agents", "show", "clade"]);
    assert!(mistyped.stderr.contains("list the agents with: rulekeep agents list"), "{mistyped:?}");
    assert!(!mistyped.stderr.contains("governor"), "{mistyped:?}");
    goes_on(&setup.hook("claude", &call("Read", &json!({ "file_path": "/home/u/shop/a.rs" }))));
    let records = setup.ask("proof/query", &json!({ "entityId": "claude" }));
    let unproven = setup.run(&["log", "prove", records["items"][0]["id"].as_str().unwrap()]);
    assert!(unproven.stderr.contains("rulekeep log checkpoint"), "{unproven:?}");
    let unsigned = setup.operator(&["log", "checkpoint"]);
    assert!(unsigned.stderr.contains("[checkpoints] in the home's config.toml"), "{unsigned:?}");
}

#[test]
fn sixty_four_hooks_at_once_all_get_their_answer() {
    let setup = Setup::new();
    let _up = setup.up();
    let started = Instant::now();
    std::thread::scope(|scope| {
        for number in 0..64 {
            let setup = &setup;
            scope.spawn(move || {
                let mut event = call("Read", &json!({ "file_path": format!("/home/u/shop/{number}.rs") }));
                event["tool_use_id"] = json!(format!("t{number}"));
                goes_on(&setup.hook("claude", &event));
            });
        }
    });
    println!("64 hooks in parallel: {:?}", started.elapsed());
    // The 64 calls, and the opening of their conversation's task.
    assert_eq!(setup.ask("proof/query", &json!({ "entityId": "claude" }))["total"], 65);
}

#[test]
fn a_daemon_that_nobody_calls_ends() {
    let setup = Setup::new();
    let answer = setup.run(&["up", "--idle-exit", "0.005"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    let socket = setup.home().join("operator.sock");
    let deadline = Instant::now() + Duration::from_secs(60);
    while socket.exists() && Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert!(!socket.exists());
    refuses(&setup.hook("claude", &call("Read", &json!({ "file_path": "a.rs" }))), "rulekeep up");
}

#[test]
fn the_console_is_served_where_the_configuration_says() {
    let setup = Setup::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    setup.configure("# listen = \"127.0.0.1:8080\"", &format!("listen = \"{free}\""));
    let _up = setup.up();
    let mut stream = TcpStream::connect(free).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nHost: {free}\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("Rulekeep"), "{page:.300}");
}
