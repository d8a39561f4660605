//! The location and format of hook entries for each host.

use std::path::{Path, PathBuf};
use std::time::Duration;

use jsonc_parser::cst::CstInputValue;
use serde_json::Value;

use super::Scope;
use crate::hook::event::Host;

/// The settings format of a host.
pub(super) struct Layout {
    /// The host's name in the command of an entry. VS Code reads the files of Copilot CLI, so both share one.
    pub(super) host: &'static str,
    /// The settings file, relative to the user's home folder.
    user: &'static str,
    /// The settings file, relative to the folder of the project.
    project: &'static str,
    /// The format of the file.
    pub(super) form: Form,
    /// The events that the hook is registered for.
    pub(super) events: &'static [Event],
    /// A second file that the host requires, in the folder above that of the settings file, and its text.
    pub(super) manifest: Option<(&'static str, &'static str)>,
    /// A top-level field that makes the host ignore the whole file.
    pub(super) voids: Option<&'static str>,
    /// The variables that move the user's settings elsewhere.
    pub(super) moved_by: &'static [&'static str],
    /// The sentence that the file is also that of another host.
    pub(super) shared: Option<&'static str>,
    /// Sentences that a user of the host should read after the installation.
    pub(super) note: &'static str,
}

/// The format of a settings file.
pub(super) enum Form {
    /// JSON with the entries of each event under `hooks`.
    Settings(Entries),
    /// A plugin in JavaScript, which contains nothing else.
    Plugin,
}

/// The format of the entries of an event.
pub(super) struct Entries {
    /// An entry is a matcher and a list of actions, the form of Claude Code; otherwise it is one action.
    nested: bool,
    /// The file contains `"version": 1`. Codex rejects a file that does.
    pub(super) versioned: bool,
    /// An action contains `"type": "command"`.
    typed: bool,
    /// The fields for the command line, one for each shell.
    commands: &'static [&'static str],
    /// The field for the time limit, and its units per second.
    timeout: (&'static str, u32),
    /// The field that makes a failed hook block, and its value.
    failure: Option<(&'static str, Switch)>,
}

/// The value that makes a failed hook block.
#[derive(Clone, Copy)]
enum Switch {
    /// The word `"block"`.
    Block,
    /// The value `true`.
    True,
}

/// An event that the hook is registered for.
pub(super) struct Event {
    /// The host's name of the event.
    pub(super) name: &'static str,
    /// The tools that it is registered for; `None` for events without tools, and where a missing matcher means all.
    pub(super) matcher: Option<&'static str>,
    /// The host's time limit in seconds.
    pub(super) seconds: u64,
    /// A failure of the hook blocks, if the host supports that.
    pub(super) blocks: bool,
}

impl Layout {
    /// Returns the format of `host`.
    pub(super) const fn of(host: Host) -> &'static Self {
        match host {
            Host::Claude => &CLAUDE,
            Host::Codex => &CODEX,
            Host::Gemini => &GEMINI,
            Host::Cursor => &CURSOR,
            Host::Copilot | Host::Vscode => &COPILOT,
            Host::Goose => &GOOSE,
            Host::Opencode => &OPENCODE,
        }
    }

    /// The settings file of `scope`.
    pub(super) fn file(&self, scope: Scope, home: &Path, project: &Path) -> PathBuf {
        match scope {
            Scope::User => home.join(self.user),
            Scope::Project => project.join(self.project),
        }
    }

    /// Builds the command line of an entry, for the shells with which hosts run it.
    ///
    /// # Errors
    ///
    /// Names a program whose path cannot be quoted safely for all of those shells.
    pub(super) fn command(&self, program: &str) -> Result<String, String> {
        let program = if cfg!(windows) { program.replace('\\', "/") } else { program.to_owned() };
        let plain = |c: char| c.is_alphanumeric() || "/._-+:@,".contains(c);
        let quotable = |c: char| !c.is_control() && !"\"'$`\\!%^&|<>".contains(c);
        if program.is_empty() || !program.chars().all(quotable) {
            return Err(format!(
                "{program:?} cannot be quoted for the shells of hosts; install rulekeep under another path, or pass --command"
            ));
        }
        let program = if program.chars().all(plain) { program } else { format!("\"{program}\"") };
        Ok(format!("{program} hook --host {}", self.host))
    }

    /// Returns whether a command line runs the hook for this host: any program, with `hook --host` and the host's
    /// name.
    pub(super) fn is_ours(&self, command: &str) -> bool {
        let mut rest = command.split(" hook --host ").skip(1);
        rest.any(|rest| rest.split_whitespace().next() == Some(self.host))
    }
}

impl Entries {
    /// Builds the entry of an event.
    pub(super) fn entry(&self, event: &Event, command: &str) -> CstInputValue {
        let mut action = Vec::new();
        if self.typed {
            action.push(("type".to_owned(), "command".into()));
        }
        for field in self.commands {
            // PowerShell runs a program with a quoted path only after `&`.
            let call = if *field == "powershell" && command.starts_with('"') { "& " } else { "" };
            action.push(((*field).to_owned(), format!("{call}{command}").into()));
        }
        let (timeout, units) = self.timeout;
        action.push((timeout.to_owned(), CstInputValue::Number((event.seconds * u64::from(units)).to_string())));
        if let Some((field, switch)) = self.failure.filter(|_| event.blocks) {
            let value = match switch {
                Switch::Block => "block".into(),
                Switch::True => true.into(),
            };
            action.push((field.to_owned(), value));
        }
        let action = CstInputValue::Object(action);
        if !self.nested {
            return action;
        }
        let matcher = event.matcher.map(|matcher| ("matcher".to_owned(), matcher.into()));
        let actions = ("hooks".to_owned(), CstInputValue::Array(vec![action]));
        CstInputValue::Object(matcher.into_iter().chain([actions]).collect())
    }

    /// Returns the command line of an action.
    pub(super) fn command<'a>(&self, action: &'a Value) -> Option<&'a str> {
        self.commands.iter().find_map(|field| action.get(field)?.as_str())
    }

    /// Returns the time limit of an action.
    pub(super) fn timeout(&self, action: &Value) -> Option<Duration> {
        let (field, units) = self.timeout;
        let seconds = action.get(field)?.as_f64()? / f64::from(units);
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// Returns whether a failure of an action blocks.
    pub(super) fn blocks_on_failure(&self, action: &Value) -> bool {
        self.failure.is_some_and(|(field, switch)| match switch {
            Switch::Block => action.get(field).is_some_and(|value| value == "block"),
            Switch::True => action.get(field) == Some(&Value::Bool(true)),
        })
    }
}

/// An event that decides or opens a task: a failure of the hook blocks it.
const fn gate(name: &'static str, matcher: Option<&'static str>, seconds: u64) -> Event {
    Event { name, matcher, seconds, blocks: true }
}

/// An event that only reports: a failure of the hook has no effect.
const fn report(name: &'static str, matcher: Option<&'static str>, seconds: u64) -> Event {
    Event { name, matcher, seconds, blocks: false }
}

/// Matches every tool, as a regular expression. Claude Code reads a matcher of letters, digits and `_ - , |` as exact
/// names.
const ALL: Option<&str> = Some(".*");

/// The form of Claude Code, which cannot block on a failed hook.
const NESTED: Entries = Entries {
    nested: true,
    versioned: false,
    typed: true,
    commands: &["command"],
    timeout: ("timeout", 1),
    failure: None,
};

static CLAUDE: Layout = Layout {
    host: "claude",
    user: ".claude/settings.json",
    project: ".claude/settings.json",
    form: Form::Settings(Entries { failure: Some(("onFailure", Switch::Block)), ..NESTED }),
    events: &[
        gate("UserPromptSubmit", None, 30),
        gate("PreToolUse", ALL, 600),
        report("PostToolUse", ALL, 30),
        report("PostToolUseFailure", ALL, 30),
        report("SessionEnd", None, 5),
    ],
    manifest: None,
    voids: None,
    moved_by: &["CLAUDE_CONFIG_DIR"],
    shared: None,
    note: "Claude Code reads the entries when a session starts. VS Code and Cursor can read this file too, and are then governed by it; do not register the hook for them as well. `disableAllHooks` in the settings of a project switches these hooks off, too.",
};

/// Older versions of Codex reject a whole file for one unknown name, so only events that all versions have are used.
static CODEX: Layout = Layout {
    host: "codex",
    user: ".codex/hooks.json",
    project: ".codex/hooks.json",
    form: Form::Settings(NESTED),
    events: &[gate("UserPromptSubmit", None, 30), gate("PreToolUse", ALL, 600), report("PostToolUse", ALL, 30)],
    manifest: None,
    voids: Some("version"),
    moved_by: &["CODEX_HOME"],
    shared: None,
    note: "Codex skips a new or changed hook until you have reviewed it: start `codex`, open `/hooks` and trust the entries. Until then nothing is governed, and each change by this command needs a new review. Codex writes `-` in the name of an MCP server as `_`: policies name the server `my-srv` as `my_srv`.",
};

static GEMINI: Layout = Layout {
    host: "gemini",
    user: ".gemini/settings.json",
    project: ".gemini/settings.json",
    form: Form::Settings(Entries { timeout: ("timeout", 1000), ..NESTED }),
    events: &[
        gate("BeforeAgent", None, 30),
        gate("BeforeTool", ALL, 60),
        report("AfterTool", ALL, 30),
        report("SessionEnd", None, 5),
    ],
    manifest: None,
    voids: None,
    moved_by: &["GEMINI_CLI_HOME"],
    shared: None,
    note: "Gemini CLI skips the hooks of a project in a folder that it does not trust, and runs the tool when the hook crashes or is late: it has no switch for that. The calls of its sub-agents count as the agent's own.",
};

/// `preToolUse` sees every tool. Registering the narrower events too would decide each call twice.
static CURSOR: Layout = Layout {
    host: "cursor",
    user: ".cursor/hooks.json",
    project: ".cursor/hooks.json",
    form: Form::Settings(Entries {
        nested: false,
        typed: false,
        versioned: true,
        failure: Some(("failClosed", Switch::True)),
        ..NESTED
    }),
    events: &[
        gate("beforeSubmitPrompt", None, 30),
        gate("preToolUse", None, 60),
        report("postToolUse", None, 30),
        report("postToolUseFailure", None, 30),
        report("sessionEnd", None, 5),
    ],
    manifest: None,
    voids: None,
    moved_by: &[],
    shared: None,
    note: "Cursor does not tell the server of an MCP tool before the tool runs. Open Cursor Settings, Hooks, to see that the entries are active.",
};

static COPILOT: Layout = Layout {
    host: "copilot",
    user: ".copilot/hooks/rulekeep.json",
    project: ".github/hooks/rulekeep.json",
    form: Form::Settings(Entries {
        nested: false,
        versioned: true,
        commands: &["bash", "powershell"],
        timeout: ("timeoutSec", 1),
        ..NESTED
    }),
    events: &[
        gate("userPromptSubmitted", None, 30),
        gate("preToolUse", None, 30),
        report("postToolUse", None, 30),
        report("postToolUseFailure", None, 30),
        report("sessionEnd", None, 5),
    ],
    manifest: None,
    voids: None,
    moved_by: &["COPILOT_HOME"],
    shared: Some("Copilot CLI and VS Code both read this file: one entry governs both."),
    note: "Both hosts run the tool when the hook is late. Copilot CLI skips the file of a project that it does not trust, and names an MCP tool `SERVER-TOOL`: policies name the whole as the tool.",
};

static GOOSE: Layout = Layout {
    host: "goose",
    user: ".agents/plugins/rulekeep/hooks/hooks.json",
    project: ".agents/plugins/rulekeep/hooks/hooks.json",
    form: Form::Settings(Entries { failure: Some(("on_failure", Switch::Block)), ..NESTED }),
    events: &[
        report("UserPromptSubmit", None, 30),
        gate("PreToolUse", None, 30),
        report("PostToolUse", None, 30),
        report("PostToolUseFailure", None, 30),
        report("SessionEnd", None, 5),
    ],
    manifest: Some(("plugin.json", PLUGIN_MANIFEST)),
    voids: None,
    moved_by: &[],
    shared: None,
    note: "goose reads the plugin when it starts. A plugin named in `disabledPlugins` is off. goose asks no hook about the calls of a sub-agent: let the policy deny or escalate the tool `delegate`, which starts one.",
};

static OPENCODE: Layout = Layout {
    host: "opencode",
    user: ".config/opencode/plugins/rulekeep.js",
    project: ".opencode/plugins/rulekeep.js",
    form: Form::Plugin,
    events: &[
        gate("chat.message", None, 30),
        gate("tool.execute.before", None, 600),
        report("tool.execute.after", None, 30),
        report("session.deleted", None, 5),
    ],
    manifest: None,
    voids: None,
    moved_by: &["XDG_CONFIG_HOME"],
    shared: None,
    note: "opencode loads the plugin when it starts, with version 1 of its plugin interface; version 2 does not load \
           it and reports no error. Where it cannot reach npm, its first turn waits for a minute or more.",
};

/// The manifest of the plugin for goose, in the folder above that of its hooks.
const PLUGIN_MANIFEST: &str = r#"{
  "name": "rulekeep",
  "version": "1.0.0",
  "description": "Asks Rulekeep before each tool runs"
}
"#;
