//! The dialects of hosts: how each writes its events on standard input, and reads answers from the hook process.
//!
//! | file | subject |
//! |---|---|
//! | `input.rs` | standard input as a JSON object |
//! | `fields.rs` | the names of an event's fields, and reading them |
//! | one file per host | its events, its way to ask its user, its tools |
//!
//! A refusal is [`HookAnswer::refusal`]: exit code 2, the reason on standard error, nothing on standard output. It is
//! the only form that blocks on every host. Copilot CLI does not show it to the model, so its refusal gives the
//! reason twice.

mod claude;
mod codex;
mod copilot;
mod cursor;
mod fields;
mod gemini;
mod goose;
mod input;
mod opencode;
mod vscode;

use std::time::Duration;

use serde_json::{Value, json};

use self::fields::Fields;
pub use self::input::{MAX_INPUT, read_input};
use super::event::{EventKind, HookAnswer, HookEvent, Host, Ruling};

/// Parses the event that the hook of `host` got on standard input, and finds the dialect in which to answer it.
///
/// # Errors
///
/// Returns the refusal for anything that is not an event documented by the host.
pub fn read_event(host: Host, input: &[u8]) -> Result<(&'static Dialect, HookEvent), HookAnswer> {
    let refused = |dialect: &Dialect, reason: String| dialect.refusal(&format!("Rulekeep refused: {reason}"));
    let event = read_input(input).map_err(|reason| refused(Dialect::of(host), reason))?;
    let dialect = Dialect::of_event(host, &event);
    let read = dialect.read(&event).map_err(|reason| refused(dialect, reason))?;
    Ok((dialect, read))
}

/// The dialect of a host: the format of its events, and the answers that it understands.
#[derive(Debug)]
pub struct Dialect {
    host: Host,
    fields: &'static Fields,
    read: fn(&Fields, &Value) -> Result<HookEvent, String>,
    ask: Option<fn(&HookEvent, &str) -> Value>,
    rewrite: Option<fn(&HookEvent, &Value, &str) -> Value>,
    tell: Option<fn(&HookEvent, &str) -> Value>,
    refuse: fn(&str) -> HookAnswer,
    seconds: u64,
    probes: &'static [Probe],
}

/// A call that the doctor sends through the registered hook, to check that the host's tool is covered. It would
/// change nothing if it ran, and contains the text [`Probe::MARK`], which a policy can deny.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// The host's name of the tool.
    pub tool: &'static str,
    /// The arguments, as a JSON object.
    pub arguments: &'static str,
}

impl Probe {
    /// The text in the arguments of each probe.
    pub const MARK: &str = "rulekeep-doctor-probe";
}

impl Dialect {
    /// Returns the dialect of `host`.
    #[must_use]
    pub const fn of(host: Host) -> &'static Self {
        match host {
            Host::Claude => &claude::DIALECT,
            Host::Codex => &codex::DIALECT,
            Host::Gemini => &gemini::DIALECT,
            Host::Cursor => &cursor::DIALECT,
            Host::Copilot => &copilot::DIALECT,
            Host::Vscode => &vscode::DIALECT,
            Host::Goose => &goose::DIALECT,
            Host::Opencode => &opencode::DIALECT,
        }
    }

    /// Returns the dialect of an event that came to the hook of `host`. Settings files are shared: VS Code reads
    /// those of Claude Code and Copilot CLI, and Cursor those of Claude Code, so the sender is told from the fields
    /// of the event.
    #[must_use]
    pub fn of_event(host: Host, event: &Value) -> &'static Self {
        let has = |field| event.get(field).is_some();
        Self::of(match host {
            Host::Claude | Host::Copilot | Host::Vscode if has("hookEventName") => Host::Vscode,
            Host::Claude if has("cursor_version") || has("conversation_id") => Host::Cursor,
            Host::Vscode => Host::Copilot,
            host => host,
        })
    }

    /// The host of this dialect.
    #[must_use]
    pub const fn host(&self) -> Host {
        self.host
    }

    /// Reads an event.
    ///
    /// # Errors
    ///
    /// Returns a description of what is missing or unknown. The caller must refuse such an event.
    pub fn read(&self, event: &Value) -> Result<HookEvent, String> {
        (self.read)(self.fields, event)
    }

    /// Builds the answer to an event.
    ///
    /// An answer without output lets the host continue as without the hook, so its own rules and questions still
    /// apply. Events that only report are never blocked, whatever the ruling.
    #[must_use]
    pub fn answer(&self, event: &HookEvent, ruling: &Ruling) -> HookAnswer {
        match (&event.kind, ruling) {
            (EventKind::Result { .. }, Ruling::Tell(line)) => {
                let stdout = self.tell.map(|tell| tell(event, line).to_string()).unwrap_or_default();
                HookAnswer { stdout, ..HookAnswer::silent() }
            }
            (_, Ruling::Allow | Ruling::Tell(_))
            | (EventKind::Result { .. } | EventKind::End | EventKind::Other, _) => HookAnswer::silent(),
            (EventKind::Call(_), Ruling::Ask(reason)) => match self.ask {
                Some(ask) => HookAnswer { exit: 0, stdout: ask(event, reason).to_string(), stderr: String::new() },
                None => self.refusal(reason),
            },
            (EventKind::Call(_), Ruling::Rewrite { arguments, reason }) => match self.rewrite {
                Some(rewrite) => {
                    let stdout = rewrite(event, arguments, reason).to_string();
                    HookAnswer { exit: 0, stdout, stderr: String::new() }
                }
                None => self.refusal(reason),
            },
            (
                EventKind::Call(_) | EventKind::Prompt(_),
                Ruling::Deny(reason) | Ruling::Ask(reason) | Ruling::Rewrite { reason, .. },
            ) => self.refusal(reason),
        }
    }

    /// Builds the refusal of any event.
    #[must_use]
    pub fn refusal(&self, reason: &str) -> HookAnswer {
        (self.refuse)(reason)
    }

    /// Returns whether the host asks its user when the hook says so. On other hosts [`Ruling::Ask`] becomes a
    /// refusal.
    #[must_use]
    pub const fn asks(&self) -> bool {
        self.ask.is_some()
    }

    /// Returns whether the host runs a call with other arguments if the hook says so. On other hosts
    /// [`Ruling::Rewrite`] becomes a refusal.
    #[must_use]
    pub const fn rewrites(&self) -> bool {
        self.rewrite.is_some()
    }

    /// The time that the host gives a hook before a tool runs, by default and in the entries that `hook install`
    /// writes. Hosts that cannot block on a failed hook run the call once it has passed.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        Duration::from_secs(self.seconds)
    }

    /// Returns a probe for each tool of the host that acts or reads.
    #[must_use]
    pub const fn probes(&self) -> &'static [Probe] {
        self.probes
    }

    /// Builds the event that the host would send before the call of a probe.
    #[must_use]
    pub fn probe_event(&self, probe: &Probe) -> Value {
        let arguments: Value = serde_json::from_str(probe.arguments).unwrap_or_default();
        let mut event = serde_json::Map::new();
        for (field, value) in [
            (self.fields.event, json!(self.fields.before)),
            (self.fields.session, json!(Probe::MARK)),
            (self.fields.tool, json!(probe.tool)),
            (self.fields.arguments, arguments),
            (self.fields.call, json!(Probe::MARK)),
        ] {
            if !field.is_empty() {
                event.insert(field.to_owned(), value);
            }
        }
        Value::Object(event)
    }
}
