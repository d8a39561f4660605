//! Codex's review of hooks: it skips a hook whose content nobody has reviewed since it changed.
//!
//! SOURCE: `codex app-server generate-json-schema` of Codex 0.169.0, and its answers to `hooks/list`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use serde_json::{Value, json};

use super::fire::Machine;
use super::report::Verdict;
use super::settings::Entry;

/// Asks Codex whether it runs the entries.
pub(super) fn trusts(machine: &Machine, entries: &[Entry]) -> Result<(), (Verdict, String)> {
    let listed = list(machine).map_err(|message| {
        let text =
            format!("it is unknown whether Codex trusts the hook: {message}; open /hooks in Codex and review the hook");
        (Verdict::NotProven, text)
    })?;
    let hooks = listed.pointer("/data/0/hooks").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut status = "not listed";
    for hook in hooks.iter().filter(|hook| hook["eventName"] == "preToolUse") {
        if !entries.iter().any(|entry| hook["command"] == *entry.command) {
            continue;
        }
        let is_on = hook["enabled"] == true && hook["async"] != true;
        status = hook["trustStatus"].as_str().unwrap_or("unknown");
        if is_on && matches!(status, "trusted" | "managed") {
            return Ok(());
        }
        if !is_on {
            status = "switched off";
        }
    }
    Err((Verdict::Red, format!("Codex skips the hook: it is {status}")))
}

/// Lists the hooks that Codex knows for the project.
fn list(machine: &Machine) -> Result<Value, String> {
    let mut command = Command::new(machine.program("codex").ok_or("there is no `codex` on the path")?);
    command.arg("app-server").current_dir(&machine.project);
    if let Some(environment) = &machine.environment {
        command.env_clear().envs(environment.iter().cloned());
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| format!("`codex app-server` does not start: {error}"))?;
    let answer = ask(&mut child, machine);
    let _ = child.kill();
    let _ = child.wait();
    answer
}

fn ask(child: &mut Child, machine: &Machine) -> Result<Value, String> {
    let (Some(mut stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err("`codex app-server` has no standard streams".to_owned());
    };
    let client = json!({"name": "rulekeep", "version": env!("CARGO_PKG_VERSION")});
    for message in [
        json!({"id": 1, "method": "initialize", "params": {"clientInfo": client}}),
        json!({"method": "initialized"}),
        json!({"id": 2, "method": "hooks/list", "params": {"cwds": [machine.project]}}),
    ] {
        writeln!(stdin, "{message}").map_err(|error| format!("`codex app-server`: {error}"))?;
    }
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let answers = BufReader::new(stdout).lines().map_while(Result::ok);
        let mut answers = answers.filter_map(|line| serde_json::from_str::<Value>(&line).ok());
        let _ = sender.send(answers.find(|answer| answer["id"] == 2));
    });
    // This program starts more slowly than a hook.
    let answer = receiver.recv_timeout(machine.patience.max(START)).ok().flatten();
    let answer = answer.ok_or("`codex app-server` does not answer `hooks/list`")?;
    answer.get("result").cloned().ok_or_else(|| format!("`codex app-server`: {}", answer["error"]))
}

/// Least time given to `codex app-server`.
const START: std::time::Duration = std::time::Duration::from_secs(15);
