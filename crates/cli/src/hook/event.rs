//! An event of any host, the ruling on it, and the answer to the host.

use rulekeep::Outcome;
use rulekeep::extension::visible;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A program that runs an agent and runs hooks before its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Host {
    /// Claude Code, the agent by Anthropic.
    Claude,
    /// Codex CLI, the agent in the terminal.
    Codex,
    /// Gemini CLI, the agent by Google.
    Gemini,
    /// Cursor, the editor and `cursor-agent`.
    Cursor,
    /// Copilot CLI, the agent by GitHub.
    Copilot,
    /// Agent mode of Visual Studio Code.
    Vscode,
    /// goose, an open-source agent.
    Goose,
    /// opencode, through a plugin.
    Opencode,
}

impl Host {
    /// The host's name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
            Self::Copilot => "copilot",
            Self::Vscode => "vscode",
            Self::Goose => "goose",
            Self::Opencode => "opencode",
        }
    }
}

/// A request to rule on an event: the parameters of `hook/event`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookRequest {
    /// The host that runs the hook.
    pub host: Host,
    /// The ID under which the agent is governed, instead of the host's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The event, as the host sent it.
    pub event: Value,
}

/// An event of a host, in terms shared by all hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct HookEvent {
    /// The host's name for the conversation; empty if it sends none.
    pub session: String,
    /// The folder in which the agent works, if the host sends it.
    pub cwd: Option<String>,
    /// The sub-agent that acts, if it is not the agent of the conversation.
    pub subagent: Option<String>,
    /// The host's own name of the event, which some answers repeat.
    pub name: String,
    /// The kind of event, with its content.
    pub kind: EventKind,
}

/// The kind of an event, with its content.
#[derive(Debug, Clone, PartialEq)]
pub enum EventKind {
    /// The user's words. A prompt that an agent wrote is [`EventKind::Other`], because no agent speaks for the user.
    Prompt(String),
    /// A tool is about to run.
    Call(HostCall),
    /// A tool has run.
    Result {
        /// The call, as it was before it ran.
        call: HostCall,
        /// The tool's result; `None` if the host does not send it.
        result: Option<Value>,
        /// The outcome; `None`, reported as UNKNOWN, if the host does not send it or the tool failed. Failing commands
        /// are a part of honest work.
        outcome: Option<Outcome>,
    },
    /// The conversation is over.
    End,
    /// An event that needs no ruling.
    Other,
}

/// A call of a tool, as sent by the host.
#[derive(Debug, Clone, PartialEq)]
pub struct HostCall {
    /// The host's ID of the call, if it has one.
    pub id: Option<String>,
    /// The tool's name, without its server.
    pub tool: String,
    /// The MCP server of the tool, if it has one.
    pub server: Option<String>,
    /// The arguments of the call.
    pub arguments: Value,
}

/// The ruling on an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Ruling {
    /// The host continues as without the hook.
    Allow,
    /// The call must not run; the reason is for the model.
    Deny(String),
    /// The host's user must agree first; only for hosts whose `ask` works.
    Ask(String),
    /// The host continues, and its user and model are told this; only after a call.
    Tell(String),
    /// The call runs with these arguments instead of its own; only for hosts that can do so.
    Rewrite {
        /// All arguments of the call.
        arguments: Value,
        /// The changes, for the user and the model.
        reason: String,
    },
}

/// The answer of a hook process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookAnswer {
    /// The exit code of the process.
    pub exit: u8,
    /// All of its standard output.
    pub stdout: String,
    /// All of its standard error.
    pub stderr: String,
}

impl HookAnswer {
    /// Builds the refusal that blocks on every host: exit code 2, the reason on standard error, nothing on standard
    /// output.
    #[must_use]
    pub fn refusal(reason: &str) -> Self {
        let reason = if reason.trim().is_empty() { "Rulekeep refused the call" } else { reason };
        Self { exit: 2, stdout: String::new(), stderr: format!("{}\n", visible(reason)) }
    }

    /// Builds the silent consent: exit code 0 and no output.
    #[must_use]
    pub const fn silent() -> Self {
        Self { exit: 0, stdout: String::new(), stderr: String::new() }
    }
}
