//! Confined runs: from a hook's event to a process that can do no more than was decided. They need Linux with
//! Landlock and user namespaces; elsewhere commands run as before, and these tests print SKIPPED.
#![allow(clippy::unwrap_used)] // a test fails where it cannot go on

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rulekeep::grant::{AgentCommand, Confiner, GuardError};
use rulekeep::{Agent, Governor, PolicySet, Tier};
use rulekeep_server::Access;
use rulekeep_server::gateway::Gateway;
use serde_json::{Value, json};

use crate::setup::{Answer, Setup};

/// A daemon's home and a folder to work in.
struct Work {
    setup: Setup,
    folder: tempfile::TempDir,
}

impl Work {
    /// `None`, with a line for people, if this system supports no confined runs.
    fn new() -> Option<Self> {
        let work = Self { setup: Setup::new(), folder: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap() };
        let attempt = work.setup.run(&["exec", "--attempt"]);
        if attempt.code != 0 {
            assert!(std::env::var_os("RULEKEEP_REQUIRE_CONFINE").is_none(), "{attempt:?}");
            println!("SKIPPED: {}", attempt.stderr);
            return None;
        }
        // A repository of its own: that around the folder would belong to the work.
        std::fs::create_dir(work.folder.path().join(".git")).unwrap();
        std::fs::write(work.folder.path().join("Makefile"), "all:\n\techo made > out\n\techo a > $(OUT)\n").unwrap();
        Some(work)
    }

    fn event(&self, name: &str, tool: &str, input: &Value) -> Value {
        json!({
            "hook_event_name": name, "session_id": "s1", "cwd": self.folder.path(), "tool_name": tool,
            "tool_input": input, "tool_use_id": "t1",
        })
    }

    fn decide(&self, input: &Value) -> Answer {
        self.setup.hook("claude", &self.event("PreToolUse", "Bash", input))
    }

    /// The command to which a hook rewrites another one.
    fn rewritten(&self, line: &str) -> String {
        let answer = self.decide(&json!({ "command": line, "description": "d" }));
        let output: Value = serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error}: {answer:?}"));
        let output = &output["hookSpecificOutput"];
        assert_eq!(
            (output["permissionDecision"].as_str(), output["updatedInput"]["description"].as_str()),
            (Some("allow"), Some("d"))
        );
        output["updatedInput"]["command"].as_str().unwrap().to_owned()
    }

    fn run(&self, line: &str) -> Output {
        let mut command = Command::new("sh");
        command.args(["-c", line]).env("RULEKEEP_HOME", self.setup.home()).env("OUT", self.outside());
        command.env("RULEKEEP_OPERATOR_KEY", self.setup.key()).current_dir(self.folder.path()).output().unwrap()
    }

    /// A file outside, that a run cannot see as one of its own: the folder may be below `/tmp`.
    fn outside(&self) -> PathBuf {
        let name = self.folder.path().file_name().unwrap().to_str().unwrap();
        PathBuf::from("/opt").join(format!("rulekeep{name}"))
    }

    /// Reports what a command printed. Returns what its host is told to say.
    fn said(&self, line: &str, output: &str) -> Value {
        let mut event = self.event("PostToolUse", "Bash", &json!({ "command": line, "description": "d" }));
        event["tool_response"] = json!({ "stdout": output, "stderr": "" });
        let answer = self.setup.hook("claude", &event);
        serde_json::from_str::<Value>(&answer.stdout).map(|told| told["systemMessage"].clone()).unwrap_or_default()
    }
}

#[test]
fn a_command_that_runs_code_runs_in_its_folder_and_once() {
    let Some(work) = Work::new() else { return };
    let _up = work.setup.up();
    let line = work.rewritten("make; cat out; echo \"${RULEKEEP_OPERATOR_KEY:-none}\"; exit 7");
    assert!(line.contains(" exec --decision prf_") && line.contains("-- "), "{line}");
    let other = line.replace("exit 7", "exit 8");
    let refused = work.run(&other);
    assert!(refused.status.code() == Some(126) && !work.folder.path().join("out").exists(), "{refused:?}");
    let ran = work.run(&line);
    assert_eq!(ran.status.code(), Some(7), "{ran:?}");
    assert!(String::from_utf8_lossy(&ran.stdout).ends_with("made\nnone\n"), "{ran:?}");
    assert!(!work.outside().exists(), "make wrote outside: {ran:?}");
    let again = work.run(&line);
    let why = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(again.status.code() == Some(126) && why.contains("one run"), "{again:?}");
    // The folder for temporary files ends with the conversation.
    let made = work.run(&work.rewritten("make -k; mktemp"));
    let temporary = String::from_utf8_lossy(&made.stdout).lines().last().unwrap().to_owned();
    assert!(temporary.contains("/rulekeep-") && std::path::Path::new(&temporary).exists(), "{made:?}");
    work.setup.hook("claude", &json!({ "hook_event_name": "SessionEnd", "session_id": "s1", "reason": "other" }));
    assert!(!std::path::Path::new(&temporary).exists());
    let invented = line.replace(line.split_whitespace().nth(3).unwrap(), "prf_01jq8zj3v1f4s6kqg2m5x7n9pw");
    assert_eq!(work.run(&invented).status.code(), Some(126));
}

#[test]
fn what_a_run_was_refused_is_asked_about_when_it_is_repeated() {
    let Some(work) = Work::new() else { return };
    let _up = work.setup.up();
    let asks = |line: &str| {
        let answer = work.decide(&json!({ "command": line, "description": "d" }));
        answer.stdout.contains("\"permissionDecision\":\"ask\"")
    };
    let ran = work.run(&work.rewritten("make"));
    assert!(!ran.status.success());
    let told = work.said("make", &String::from_utf8_lossy(&ran.stderr));
    let why = format!("this run may not write {:?}; ", work.outside());
    assert!(told.as_str().is_some_and(|told| told.contains(&why)), "{told}");
    assert!(asks("make"), "a person may agree to a run without confinement");
    // What is not visible does not exist for the run.
    let hidden = work.setup.home().join("config.toml");
    let line = "make -k; echo read";
    work.rewritten(line);
    let told = work.said(line, &format!("cat: {}: No such file or directory", hidden.display()));
    assert!(told.as_str().is_some_and(|told| told.contains("this run may not read")) && asks(line), "{told}");
    assert_eq!(work.said("make", ""), Value::Null, "it has ended");
    work.rewritten("make -k");
    // A test that fails for another reason is repeated as often as the agent likes.
    work.said("make -k", "1 test failed");
    work.rewritten("make -k");
}

#[test]
fn what_others_need_and_what_reads_is_not_confined() {
    let Some(work) = Work::new() else { return };
    let _up = work.setup.up();
    let silent = |input: Value| {
        let answer = work.decide(&input);
        assert_eq!((answer.code, answer.stdout.as_str()), (0, ""), "{input}: {answer:?}");
    };
    for line in ["cat Makefile", "git commit -m x", "docker compose build && make"] {
        silent(json!({ "command": line }));
    }
    for line in
        ["make dev; git status", "./x.sh dev", "curl https://a.example/ && make", "git commit -m x && make", "make; ps"]
    {
        work.rewritten(line);
    }
    // A server for others has the network of the machine, and writes its folder only.
    std::fs::write(work.folder.path().join("Makefile"), "dev:\n\tcat /proc/net/route > out; echo a > $(OUT)\n")
        .unwrap();
    work.run(&work.rewritten("make dev"));
    let routes = |path: &str| std::fs::read_to_string(path).unwrap();
    assert_eq!(routes(work.folder.path().join("out").to_str().unwrap()), routes("/proc/net/route"));
    assert!(!work.outside().exists());
    let background = work.decide(&json!({ "command": "make", "run_in_background": true }));
    assert!(background.stdout.contains(" exec --decision "), "{background:?}");
    // A host that cannot rewrite goes on as before.
    let mut event = work.event("beforeShellExecution", "Shell", &json!({}));
    event["command"] = json!("make");
    event["conversation_id"] = json!("c1");
    assert!(!work.setup.hook("cursor", &event).stdout.contains("exec --decision"));
}

#[test]
fn a_rule_that_denies_a_path_binds_what_runs() {
    let Some(work) = Work::new() else { return };
    let policy = work.setup.home().join("policies/policy.toml");
    let rules = std::fs::read_to_string(&policy).unwrap();
    let rule = "\n[[rule]]\nid = \"no-workflows\"\neffect = \"deny\"\nmatch = { paths = [\".github/*\"], capabilities = [\"file:write\"] }\n";
    std::fs::write(&policy, rules + rule).unwrap();
    std::fs::write(
        work.folder.path().join("Makefile"),
        "all:\n\tmkdir -p .github; echo a > .github/a.yml; echo done > out\n",
    )
    .unwrap();
    let _up = work.setup.up();
    work.run(&work.rewritten("make"));
    assert!(work.folder.path().join("out").exists() && !work.folder.path().join(".github").exists());
}

#[test]
fn runs_without_a_decision_and_mcp_servers_stay_in_their_folder() {
    let Some(work) = Work::new() else { return };
    let _up = work.setup.up();
    let script = "echo a > inside; echo a > $OUT; echo ended; exit 3";
    let run = |arguments: &[&str]| {
        let mut command = work.setup.command(arguments);
        command.env("OUT", work.outside()).current_dir(work.folder.path());
        Answer::of(&command.output().unwrap())
    };
    let ran = run(&["exec", "--confine", "offline", "--", "sh", "-c", script]);
    assert_eq!((ran.code, ran.stdout.as_str()), (3, "ended\n"), "{ran:?}");
    let inside = work.folder.path().join("inside");
    assert!(std::fs::remove_file(&inside).is_ok() && !work.outside().exists(), "{ran:?}");
    assert_eq!(run(&["exec", "--confine", "offline", "--", "no-such-program"]).code, 127);
    let wrap =
        ["mcp", "wrap", "--server", "s", "--confine", "workspace", "--host", "a.example", "--", "sh", "-c", script];
    let mut command = work.setup.command(&wrap);
    command.env("OUT", work.outside()).current_dir(work.folder.path()).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut gateway = command.spawn().unwrap();
    let first = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
    } });
    writeln!(gateway.stdin.as_mut().unwrap(), "{first}").unwrap();
    let began = std::time::Instant::now();
    while !inside.exists() && began.elapsed().as_secs() < 30 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    gateway.wait().unwrap(); // closes its input
    assert!(inside.exists() && !work.outside().exists());
}

#[test]
fn a_command_that_an_embedder_starts_is_confined() {
    let Some(work) = Work::new() else { return };
    let rule = "name = \"p\"\n[[rule]]\nid = \"code\"\neffect = \"allow\"\nwhen = \"has(context.confinable)\"\n\
                constraints = { confine = \"workspace\" }";
    let confiner = Confiner::attempt(env!("CARGO_BIN_EXE_rulekeep")).unwrap();
    let builder = Governor::builder().policies(PolicySet::from_toml(rule).unwrap()).confiner(confiner);
    let governor = builder.open(work.folder.path().join("store")).unwrap();
    governor.agents().register(Agent::new("desk-1").at_tier(Tier::T4)).unwrap();
    let line = "make -k; ls -A store; exit 7";
    let command = AgentCommand::new(work.folder.path(), ["bash", "-c", line]).unwrap();
    let outside = work.outside();
    let run = |command: &mut Command| command.env("OUT", &outside).output();
    let done = governor.guard_command("desk-1", &command, run).unwrap();
    assert_eq!(done.value.status.code(), Some(7), "{done:?}");
    assert_eq!(std::fs::read(work.folder.path().join("out")).unwrap(), b"made\n");
    assert!(!outside.exists(), "make wrote outside: {done:?}");
    assert!(!String::from_utf8_lossy(&done.value.stdout).contains("journal"), "it saw the store: {done:?}");

    // The same, a call at a time: what starts is what was decided on, where it was.
    let gateway = Gateway::new(&governor).unwrap();
    let call = |method: &str, params: Value| -> Result<Value, rulekeep::Error> {
        let answer = Access::Everything.call(&gateway, method, &params.to_string())?;
        Ok(serde_json::from_str(answer.get()).unwrap())
    };
    let asked = json!({ "agentId": "desk-1", "command": ["make", "-k"], "folder": work.folder.path() });
    let mut request = call("command/request", asked).unwrap();
    assert_eq!(request["context"]["confinable"], true);
    request["agentId"] = json!("desk-1");
    let verdict = call("enforce", request).unwrap();
    let start = |command: &[&str], folder: &Path| {
        call("command/start", json!({ "proofId": verdict["proofId"], "command": command, "folder": folder }))
    };
    let words = start(&["make", "-k"], work.folder.path()).unwrap();
    assert_eq!((&words["command"][1], &words["command"][2]), (&json!("exec"), &json!("--profile")));
    let elsewhere = tempfile::tempdir().unwrap();
    for (command, folder) in [(&["make"][..], work.folder.path()), (&["make", "-k"], elsewhere.path())] {
        assert_eq!(start(command, folder).unwrap_err().code(), "CONFLICT");
    }
    assert_eq!(start(&["make", "-k"], Path::new(".")).unwrap_err().code(), "INVALID_INPUT");
    let denied = json!({ "agentId": "desk-1", "input": { "tool": "exec", "arguments": { "command": ["ls"] } } });
    let denied = call("enforce", denied).unwrap();
    let start = json!({ "proofId": denied["proofId"], "command": ["ls"], "folder": work.folder.path() });
    assert_eq!((&denied["decision"], call("command/start", start).unwrap_err().code()), (&json!("DENY"), "CONFLICT"));

    // What only the governor can see counts for nothing in a caller's context.
    let claims = json!({ "confinable": true, "servable": true, "links": ["a"], "unconfined": true, "ticket": "A-1" });
    let push =
        json!({ "agentId": "desk-1", "command": ["git", "push"], "folder": work.folder.path(), "context": claims });
    let context = call("command/request", push).unwrap()["context"].clone();
    let keys: Vec<&String> = context.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["cwd", "home", "ticket"], "{context}");
}

/// A governor that confines every command and denies `*.pem`, with the agent desk-1.
fn confining(open: impl FnOnce(rulekeep::GovernorBuilder) -> Governor) -> Governor {
    let rules = "name = \"p\"\n[[rule]]\nid = \"any\"\neffect = \"allow\"\nconstraints = { confine = \"workspace\" }\n\
                 [[rule]]\nid = \"keys\"\neffect = \"deny\"\nmatch.paths = [\"*.pem\"]\n";
    let confiner = Confiner::attempt(env!("CARGO_BIN_EXE_rulekeep")).unwrap();
    let governor = open(Governor::builder().policies(PolicySet::from_toml(rules).unwrap()).confiner(confiner));
    governor.agents().register(Agent::new("desk-1").at_tier(Tier::T4)).unwrap();
    governor
}

#[test]
fn a_store_behind_a_link_is_hidden() {
    let Some(work) = Work::new() else { return };
    let (store, links) = (work.folder.path().join("store"), tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
    std::fs::create_dir(&store).unwrap();
    let link = links.path().join("store");
    std::os::unix::fs::symlink(&store, &link).unwrap();
    let governor = confining(|builder| builder.open(&link).unwrap());
    std::fs::remove_file(&link).unwrap();
    let command = AgentCommand::new(work.folder.path(), ["ls", "-A", "store"]).unwrap();
    let listed = governor.guard_command("desk-1", &command, Command::output).unwrap().value;
    assert!(!String::from_utf8_lossy(&listed.stdout).contains("journal"), "{listed:?}");
}

#[test]
fn too_many_denied_files_stop_a_command() {
    let Some(work) = Work::new() else { return };
    let governor = confining(|builder| builder.open_in_memory().unwrap());
    for number in 0..2_000 {
        std::fs::write(work.folder.path().join(format!("{number}.pem")), "").unwrap();
    }
    let command = AgentCommand::new(work.folder.path(), ["true"]).unwrap();
    let refused = governor.guard_command("desk-1", &command, Command::output).unwrap_err().to_string();
    assert!(refused.contains("too many files match"), "{refused}");
}

#[test]
fn a_link_in_the_folder_opens_nothing_outside() {
    let Some(work) = Work::new() else { return };
    let rule = "name = \"p\"\n[[rule]]\nid = \"any\"\neffect = \"allow\"\nconstraints = { confine = \"workspace\" }\n\
                [[rule]]\nid = \"secret\"\neffect = \"deny\"\nmatch.paths = [\"*/secret/*\"]\n";
    let confiner = Confiner::attempt(env!("CARGO_BIN_EXE_rulekeep")).unwrap();
    let builder = Governor::builder().policies(PolicySet::from_toml(rule).unwrap()).confiner(confiner);
    let governor = builder.open_in_memory().unwrap();
    governor.agents().register(Agent::new("desk-1").at_tier(Tier::T4)).unwrap();
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    std::fs::create_dir(outside.path().join("secret")).unwrap();
    std::fs::write(outside.path().join("secret/key"), "hidden").unwrap();
    std::os::unix::fs::symlink(outside.path(), work.folder.path().join("out")).unwrap();
    let ran = |line: &str| {
        let command = AgentCommand::new(work.folder.path(), ["bash", "-c", line]).unwrap();
        governor.guard_command("desk-1", &command, Command::output)
    };
    assert!(matches!(ran("cat out/secret/key"), Err(GuardError::Refused { .. })), "rules bind what links lead to");
    let _ = ran("make > out/log; touch out/new");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1, "something was written through the link");
}
