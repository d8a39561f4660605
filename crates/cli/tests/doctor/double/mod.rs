//! Test doubles of the hosts. Each reads its settings, starts the hooks that they register for a call, and reports
//! whether the tool then ran, according to the sources of the host.
//!
//! The doubles check the results of `rulekeep doctor`, so they share no code with it. If sources differ by version or
//! say nothing, the double runs the call.

mod claude;
mod codex;
mod copilot;
mod cursor;
mod gemini;
mod goose;
mod opencode;
mod start;
mod vscode;

use rulekeep_cli::hook::event::Host;
use serde_json::{Value, json};

use crate::world::World;
pub(crate) use codex::list_hooks;

/// A call that the agent of a host attempts.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    /// A text in the call's argument that identifies the probe.
    probe: String,
    way: Way,
}

/// The special condition of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// No special condition.
    Plain,
    /// A sub-agent makes the call.
    Subagent,
    /// The host runs without a user.
    Headless,
    /// The host writes a byte order mark before the event.
    Bom,
    /// The host writes half of the event.
    Cut,
    /// Many calls are made at the same time.
    Parallel,
}

impl Call {
    pub(crate) fn made(way: Way) -> Self {
        Self { probe: "rulekeep-doctor-probe-00d0".to_owned(), way }
    }

    fn is(&self, way: Way) -> bool {
        self.way == way
    }

    /// The event as sent to the hook.
    fn text(&self, event: &Value) -> String {
        let mut text = event.to_string();
        if self.is(Way::Cut) {
            text.truncate(text.len() / 2);
        }
        if self.is(Way::Bom) { format!("\u{feff}{text}") } else { text }
    }

    fn command(&self) -> Value {
        json!({"command": format!("echo {}", self.probe)})
    }
}

/// Returns whether the tool of a call runs on this host.
pub(crate) fn runs(host: Host, world: &World, call: &Call) -> bool {
    if call.is(Way::Subagent) && !asks_for_subagents(host) {
        // The sub-agent's own calls run no hook; only the start of the sub-agent can be refused.
        return ask(host, world, call, &starts_subagent(host));
    }
    let tool = Tool { name: shell_tool(host), input: call.command() };
    if !call.is(Way::Parallel) {
        return ask(host, world, call, &tool);
    }
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..64).map(|_| scope.spawn(|| ask(host, world, call, &tool))).collect();
        asked.into_iter().any(|asked| asked.join().unwrap())
    })
}

/// A tool and its arguments.
struct Tool {
    name: &'static str,
    input: Value,
}

fn ask(host: Host, world: &World, call: &Call, tool: &Tool) -> bool {
    match host {
        Host::Claude => claude::runs(world, call, tool),
        Host::Codex => codex::runs(world, call, tool),
        Host::Gemini => gemini::runs(world, call, tool),
        Host::Cursor => cursor::runs(world, call, tool),
        Host::Copilot => copilot::runs(world, call, tool),
        Host::Vscode => vscode::runs(world, call, tool),
        Host::Goose => goose::runs(world, call, tool),
        Host::Opencode => opencode::runs(world, call, tool),
    }
}

/// Returns whether the host's sub-agents were observed to run the hooks too.
const fn asks_for_subagents(host: Host) -> bool {
    matches!(host, Host::Claude | Host::Codex | Host::Gemini | Host::Copilot | Host::Opencode)
}

const fn shell_tool(host: Host) -> &'static str {
    match host {
        Host::Claude | Host::Codex => "Bash",
        Host::Gemini => "run_shell_command",
        Host::Cursor => "Shell",
        Host::Copilot | Host::Opencode => "bash",
        Host::Vscode => "runTerminalCommand",
        Host::Goose => "shell",
    }
}

fn starts_subagent(host: Host) -> Tool {
    let name = match host {
        Host::Cursor => "Task",
        Host::Copilot | Host::Opencode => "task",
        Host::Vscode => "runSubagent",
        _ => "delegate",
    };
    Tool { name, input: json!({"description": "look", "prompt": "look around", "subagent_type": "general"}) }
}

/// Returns whether a regular expression, unanchored as in JavaScript, matches a tool; a missing, empty or `*` one
/// matches all.
fn matches(matcher: Option<&str>, tool: &str) -> bool {
    match matcher {
        None | Some("" | "*") => true,
        Some(pattern) => regex::Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(tool)),
    }
}
