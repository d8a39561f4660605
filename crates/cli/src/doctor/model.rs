//! The models of hosts in `hosts.toml`: how each treats a hook before a tool.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::hook::event::Host;

/// The model of a host's behavior with a hook before a tool. `hosts.toml` explains the fields.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Model {
    pub(super) files: Vec<String>,
    pub(super) here: Vec<String>,
    pub(super) gate: String,
    pub(super) shell: String,
    pub(super) unit: u32,
    pub(super) limit: u32,
    pub(super) matcher: Matcher,
    #[serde(default)]
    pub(super) needs: Map<String, Value>,
    #[serde(default)]
    pub(super) knows: Vec<String>,
    #[serde(default)]
    pub(super) off: Vec<String>,
    #[serde(default)]
    pub(super) off_files: BTreeMap<String, String>,
    pub(super) disabled: Option<String>,
    #[serde(default)]
    pub(super) dead: Vec<String>,
    pub(super) closes: Option<String>,
    pub(super) project: ProjectHooks,
    #[serde(default)]
    pub(super) queue: bool,
    pub(super) event: Map<String, Value>,
    #[serde(default)]
    pub(super) subagents: Vec<String>,
    #[serde(default)]
    pub(super) asks: bool,
    pub(super) program: Option<(String, String)>,
    pub(super) denies: Option<String>,
    #[serde(default)]
    pub(super) sub: Map<String, Value>,
    #[serde(default)]
    pub(super) headless: Map<String, Value>,
    pub(super) cells: BTreeMap<Fault, Behavior>,
}

/// The way in which the matcher of an entry selects tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Matcher {
    Names,
    Pattern,
    Ignored,
}

/// The condition under which hooks in the settings of a project run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum ProjectHooks {
    #[serde(rename = "always")]
    Always,
    #[serde(rename = "trusted")]
    Trusted,
    #[serde(rename = "?")]
    Unknown,
}

/// A fault between a host and the hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Fault {
    /// The hook ends with another exit code, or by a signal of its own.
    Crash,
    /// The hook does not answer.
    Hang,
    /// The hook is killed.
    Kill,
    /// The program is missing or cannot be started.
    Missing,
    /// The settings name another program.
    Typo,
    /// The event, or the hook's output, is not JSON that the other side knows.
    Json,
    /// The hook refuses without a reason.
    Stderr,
    /// The event begins with a byte order mark.
    Bom,
    /// The host's review does not cover the current entry.
    Trust,
    /// The host does not trust the folder.
    Folder,
    /// The entry was changed or removed.
    Edited,
    /// The host makes 64 calls at once.
    Parallel,
    /// A sub-agent makes the call.
    Subagent,
    /// The host runs without a user.
    Headless,
    /// Another hook gives another answer.
    Other,
}

/// The host's treatment of a call under a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Behavior {
    Blocked,
    Runs,
    None,
    Scope,
    Closes,
    Seen,
    Fired,
}

impl Fault {
    /// The name of the fault for people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Crash => "crash",
            Self::Hang => "hang",
            Self::Kill => "kill",
            Self::Missing => "missing binary",
            Self::Typo => "typo in the path",
            Self::Json => "bad JSON",
            Self::Stderr => "empty stderr",
            Self::Bom => "byte order mark",
            Self::Trust => "stale trust",
            Self::Folder => "untrusted folder",
            Self::Edited => "edited settings",
            Self::Parallel => "64 in parallel",
            Self::Subagent => "sub-agent",
            Self::Headless => "headless",
            Self::Other => "other hook",
        }
    }

    /// The remedy if a host runs the call.
    pub(super) fn remedy(self) -> &'static str {
        MODELS.remedies.get(&self).map_or("", String::as_str)
    }
}

impl Model {
    /// Returns the model of `host`.
    pub(super) fn of(host: Host) -> &'static Self {
        let models = &MODELS;
        match host {
            Host::Claude => &models.claude,
            Host::Codex => &models.codex,
            Host::Gemini => &models.gemini,
            Host::Cursor => &models.cursor,
            Host::Copilot => &models.copilot,
            Host::Vscode => &models.vscode,
            Host::Goose => &models.goose,
            Host::Opencode => &models.opencode,
        }
    }
}

#[derive(Deserialize)]
struct Models {
    claude: Model,
    codex: Model,
    gemini: Model,
    cursor: Model,
    copilot: Model,
    vscode: Model,
    goose: Model,
    opencode: Model,
    remedies: BTreeMap<Fault, String>,
}

// INVARIANT: the file is part of the program, and a test parses it.
#[expect(clippy::expect_used)]
static MODELS: LazyLock<Models> =
    LazyLock::new(|| toml::from_str(include_str!("hosts.toml")).expect("the models of hosts read"));

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn every_host_has_a_cell_and_a_remedy_for_every_fault() {
        assert_eq!(MODELS.remedies.len(), 15);
        for host in Host::value_variants() {
            let model = Model::of(*host);
            assert_eq!(model.cells.len(), 15, "{host:?}");
            let closes = model.cells.values().any(|behavior| *behavior == Behavior::Closes);
            assert_eq!(closes, model.closes.is_some(), "{host:?}");
        }
    }
}
