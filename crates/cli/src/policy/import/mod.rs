//! `rulekeep policy import`: the permissions of an agent's host as a policy document.
//!
//! A rule never allows more than the permission that it comes from, and never denies less. An allow that rules cannot
//! express is left out; an ask or a deny becomes a wider rule. Both are reported in comments and on standard error,
//! with file and position. `hosts` and `codex` read the files, `starlark` the rules of Codex, `express` and `command`
//! write the rules.

mod codex;
mod command;
mod express;
mod hosts;
mod starlark;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use rulekeep::PolicySet;
use serde_json::json;

use super::toml_text;

/// The arguments of `rulekeep policy import`.
#[derive(Args)]
pub struct Arguments {
    /// The host that the files belong to
    #[arg(long, value_enum)]
    host: Host,
    /// Files with permissions: settings of the host, or `.rules` of Codex
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The folder of relative paths (default: the one that contains the host's folder, such as `.claude`)
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// The reviewer of requests about which the host asks its user
    #[arg(long, value_name = "NAME", default_value = "agent-owner")]
    reviewer: String,
    /// Prints the document and what could not be expressed as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// A host with permissions of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Host {
    Claude,
    Codex,
    Cursor,
    Gemini,
    Opencode,
}

/// The effect of a permission, strictest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effect {
    Deny,
    Ask,
    Allow,
}

/// The calls that a permission is about.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Subject {
    /// Commands that one of some tools runs: those that a text in the host's own form names, or all.
    Shell { tools: &'static [&'static str], command: Option<String> },
    /// Files that match a pattern, read or changed; `None` for all.
    Files { changed: bool, pattern: Option<String> },
    /// Pages of a host; `None` for all.
    Fetch(Option<String>),
    /// Tools, by name or glob.
    Tools(Vec<String>),
    /// All tools of a server except these.
    ServerBut(String, Vec<String>),
    /// Tools of a server, by name or glob.
    Server(String, String),
    /// Something that rules cannot express; the tool that it belongs to, if there is one.
    Other(Option<String>),
}

/// A permission, and its position.
pub(super) struct Permission {
    pub(super) effect: Effect,
    pub(super) subject: Subject,
    /// Patterns of files or commands on which another permission of the host decides differently.
    pub(super) except: Vec<String>,
    /// File and position: `settings.json permissions.allow[3]`.
    pub(super) place: String,
    /// The original text.
    pub(super) said: String,
}

/// An import in progress: the rules and notes of all files so far.
pub(super) struct Import<'a> {
    host: Host,
    /// The folder of relative paths, without a trailing slash.
    root: Option<String>,
    reviewer: &'a str,
    rules: Vec<String>,
    /// The commands that each list of tools may run.
    allowed: Vec<Allowed>,
    /// Permissions that could not be expressed, or not exactly.
    notes: Vec<String>,
}

/// Commands that some tools may run.
struct Allowed {
    tools: &'static [&'static str],
    globs: Vec<String>,
    /// The permissions that they come from.
    from: Vec<String>,
}

/// Imports files. Returns whether everything could be expressed exactly.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    let mut import = Import {
        host: arguments.host,
        root: None,
        reviewer: &arguments.reviewer,
        rules: Vec::new(),
        allowed: Vec::new(),
        notes: Vec::new(),
    };
    for file in &arguments.files {
        let told = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        let size = fs::metadata(file).map_err(|error| told(&error))?.len();
        if size > PolicySet::MAX_BYTES as u64 {
            return Err(told(&super::too_large(size)).into());
        }
        let text = fs::read_to_string(file).map_err(|error| told(&error))?;
        import.root = root_of(arguments.root.as_deref(), file);
        import.read(file, text.trim_start_matches('\u{feff}')).map_err(|error| told(&error))?;
    }
    let text = import.document();
    let set = PolicySet::from_toml(&text).map_err(|error| format!("the import does not load: {error}"))?;
    let notes = &import.notes;
    if arguments.json {
        super::print_json(&json!({ "policy": text, "rules": set.len(), "notExpressed": notes }))?;
    } else {
        super::print(&text)?;
    }
    for note in notes {
        eprintln!("{note}");
    }
    Ok(notes.is_empty())
}

/// Returns the folder that a host's settings are about: the parent of its own folder, but not a home folder.
fn root_of(given: Option<&Path>, file: &Path) -> Option<String> {
    let found = if let Some(root) = given {
        root.canonicalize().ok()?
    } else {
        let file = file.canonicalize().ok()?;
        let is_own =
            |folder: &&Path| folder.file_name().is_some_and(|name| HOST_FOLDERS.iter().any(|own| name == *own));
        let root = file.ancestors().find(is_own)?.parent()?.to_owned();
        if std::env::home_dir().is_some_and(|home| home == root) {
            return None;
        }
        root
    };
    Some(found.to_str()?.trim_end_matches('/').to_owned())
}

const HOST_FOLDERS: [&str; 5] = [".claude", ".codex", ".cursor", ".gemini", ".opencode"];

impl Import<'_> {
    /// Adds a permission, as far as rules can express it.
    pub(super) fn add(&mut self, permission: &Permission) {
        let Permission { place, said, .. } = permission;
        match express::rules(self, permission) {
            Ok(expressed) => {
                if let Some(note) = expressed.note {
                    self.note(place, said, &note);
                }
                if let (Some(glob), Subject::Shell { tools, .. }) = (expressed.command, &permission.subject) {
                    self.allow(tools, glob, format!("{place}: {said}"));
                }
                for clauses in expressed.rules {
                    self.push(permission.effect, &[format!("{place}: {said}")], &clauses);
                }
            }
            Err(why) => self.note(place, said, &why),
        }
    }

    fn allow(&mut self, tools: &'static [&'static str], glob: String, from: String) {
        match self.allowed.iter_mut().find(|allowed| allowed.tools == tools) {
            Some(allowed) => {
                allowed.globs.push(glob);
                allowed.from.push(from);
            }
            None => self.allowed.push(Allowed { tools, globs: vec![glob], from: vec![from] }),
        }
    }

    /// Reports what could not be expressed.
    pub(super) fn note(&mut self, place: &str, said: &str, why: &str) {
        self.notes.push(super::shown(&format!("{place}: {said}: {why}")));
    }

    fn push(&mut self, effect: Effect, from: &[String], clauses: &str) {
        let number = self.rules.len() + 1;
        let (word, more) = match effect {
            Effect::Allow => ("allow", String::new()),
            Effect::Ask => ("escalate", format!("reviewer = {}\n", toml_text(self.reviewer))),
            Effect::Deny => ("deny", String::new()),
        };
        let from: Vec<String> = from.iter().map(|line| format!("# {}", super::shown(line))).collect();
        let (from, clauses) = (from.join("\n"), clauses.trim_end());
        self.rules.push(format!("{from}\n[[rule]]\nid = \"imported-{number}\"\neffect = \"{word}\"\n{more}{clauses}"));
    }

    fn document(&mut self) -> String {
        for Allowed { tools, globs, from } in std::mem::take(&mut self.allowed) {
            let clauses = express::tools(tools) + "match.commands = " + &express::list(&globs) + "\n";
            self.push(Effect::Allow, &from, &clauses);
        }
        let mut text =
            String::from("# Imported permissions. What no rule names is denied, also where the host would ask.\n");
        if !self.notes.is_empty() {
            text.push_str("# Not expressed, or not exactly:\n");
            text.extend(self.notes.iter().map(|note| format!("#   {note}\n")));
        }
        let name = self.host.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        format!("{text}\nname = \"imported-from-{name}\"\n\n{}\n", self.rules.join("\n\n"))
    }
}
