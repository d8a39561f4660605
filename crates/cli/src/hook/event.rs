//! One event of any host, the ruling on it, and the answer to the host.

use rulekeep::Outcome;
use serde_json::Value;

/// A program that runs an agent and asks hooks before it runs a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, clap::ValueEnum)]
pub enum Host {
    /// Claude Code.
    Claude,
    /// Codex CLI.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// Cursor, the editor and `cursor-agent`.
    Cursor,
    /// Copilot CLI.
    Copilot,
    /// Agent mode of Visual Studio Code.
    Vscode,
    /// goose.
    Goose,
    /// opencode.
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

/// An event of a host, in words that all hosts share.
#[derive(Debug, Clone, PartialEq)]
pub struct HookEvent {
    /// The host's name for the conversation; empty where it tells none.
    pub session: String,
    /// The folder the agent works in, where the host tells it.
    pub cwd: Option<String>,
    /// The sub-agent that acts, where it is not the agent of the conversation.
    pub subagent: Option<String>,
    /// The host's own name of the event, which some answers repeat.
    pub name: String,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Debug, Clone, PartialEq)]
pub enum EventKind {
    /// The user's words. A prompt that an agent wrote is [`EventKind::Other`]: no agent speaks for the user.
    Prompt(String),
    /// A tool is about to run.
    Call(HostCall),
    /// A tool has run.
    Result {
        /// The call, as it was before it ran.
        call: HostCall,
        /// What the tool returned; absent where the host hides it.
        result: Option<Value>,
        /// How it ended; absent where the host hides it, which is reported as UNKNOWN.
        outcome: Option<Outcome>,
    },
    /// The conversation is over.
    End,
    /// An event that needs no ruling.
    Other,
}

/// A call of a tool, as the host tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct HostCall {
    /// The host's id of the call, where it has one.
    pub id: Option<String>,
    /// The tool's name, without its server.
    pub tool: String,
    /// The MCP server of the tool.
    pub server: Option<String>,
    /// The arguments.
    pub arguments: Value,
}

/// The ruling on an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Ruling {
    /// The host goes on as it would without the hook.
    Allow,
    /// The call must not run; the reason is for the model.
    Deny(String),
    /// The host's user must agree first; only for hosts whose `ask` works.
    Ask(String),
}

/// The answer of a hook process.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct HookAnswer {
    /// The exit code of the process.
    pub exit: u8,
    /// All of its standard output.
    pub stdout: String,
    /// All of its standard error.
    pub stderr: String,
}

impl HookAnswer {
    /// The refusal that blocks on every host: exit code 2, the reason on standard error, nothing on standard output.
    #[must_use]
    pub fn refusal(reason: &str) -> Self {
        let reason = if reason.trim().is_empty() { "Rulekeep refused the call" } else { reason };
        Self { exit: 2, stdout: String::new(), stderr: format!("{reason}\n") }
    }

    /// The silent assent: exit code 0 and nothing on either stream.
    #[must_use]
    pub const fn silent() -> Self {
        Self { exit: 0, stdout: String::new(), stderr: String::new() }
    }
}
