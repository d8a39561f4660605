//! Test doubles of the hosts: each reads its settings, starts the hooks they register on a call, and says whether the
//! tool then ran, as the sources of the host say.
//!
//! A double judges what `rulekeep doctor` says, so it shares nothing with it. Where sources differ by version or say
//! nothing, the double runs the call.

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
    /// A text of the call's argument, which tells the probe.
    pub(crate) probe: String,
    /// The call is made by a sub-agent.
    pub(crate) subagent: bool,
    /// The host runs without a user.
    pub(crate) headless: bool,
    /// The host writes a byte order mark before the event.
    pub(crate) bom: bool,
    /// The host writes half of the event.
    pub(crate) cut: bool,
    /// Hooks of this many calls run at the same time.
    pub(crate) parallel: usize,
}

impl Call {
    pub(crate) fn plain() -> Self {
        Self {
            probe: "rulekeep-doctor-probe-00d0".to_owned(),
            subagent: false,
            headless: false,
            bom: false,
            cut: false,
            parallel: 1,
        }
    }

    /// The event as it goes to the hook.
    fn text(&self, event: &Value) -> String {
        let mut text = event.to_string();
        if self.cut {
            text.truncate(text.len() / 2);
        }
        if self.bom { format!("\u{feff}{text}") } else { text }
    }

    fn command(&self) -> Value {
        json!({"command": format!("echo {}", self.probe)})
    }
}

/// Whether the tool of a call runs on this host.
pub(crate) fn runs(host: Host, world: &World, call: &Call) -> bool {
    if call.subagent && !asks_for_subagents(host) {
        // The sub-agent's own calls reach no hook; only the start of the sub-agent can be refused.
        return ask(host, world, call, &starts_subagent(host));
    }
    let tool = Tool { name: shell_tool(host), input: call.command() };
    if call.parallel == 1 {
        return ask(host, world, call, &tool);
    }
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..call.parallel).map(|_| scope.spawn(|| ask(host, world, call, &tool))).collect();
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

/// Hosts whose sub-agents were seen to ask the hooks, too.
const fn asks_for_subagents(host: Host) -> bool {
    matches!(host, Host::Claude | Host::Codex | Host::Gemini | Host::Copilot)
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

/// Whether a regular expression, unanchored as in JavaScript, matches a tool; an absent, empty or `*` one matches all.
fn matches(matcher: Option<&str>, tool: &str) -> bool {
    match matcher {
        None | Some("" | "*") => true,
        Some(pattern) => regex::Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(tool)),
    }
}
