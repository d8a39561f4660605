//! `rulekeep policy import`: the permissions of an agent's host as a policy document.
//!
//! A rule never allows more than the permission that it comes from, and never refuses less. A permission to allow that rules
//! cannot express is left out; one to ask or deny becomes a wider rule. Both are said in comments and on standard error, with
//! file and place. `hosts` reads the files, `starlark` the rules of Codex, `express` writes the rules.

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
    from: Host,
    /// Files with permissions: settings of the host, or `.rules` of Codex
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The folder that relative paths belong to; without, the one that holds the host's folder, such as `.claude`
    #[arg(long, value_name = "DIR")]
    root: Option<PathBuf>,
    /// The reviewer of what the host asks its user about
    #[arg(long, value_name = "NAME", default_value = "agent-owner")]
    reviewer: String,
    /// Print the document and what could not be expressed as JSON
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

/// What a permission does, the strictest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Effect {
    Deny,
    Ask,
    Allow,
}

/// What a permission is about.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Subject {
    /// Command lines that begin so; all of them without.
    Shell(Option<String>),
    /// Files by a pattern, read or changed; all without.
    Files { changed: bool, pattern: Option<String> },
    /// Pages of a host; all without.
    Fetch(Option<String>),
    /// Tools by name or glob.
    Tools(Vec<String>),
    /// All tools of a server but these.
    ServerBut(String, Vec<String>),
    /// A server's tools by name or glob.
    Server(String, String),
    /// Something that rules have no word for; the tool that it belongs to, where there is one.
    Other(Option<String>),
}

/// One permission, and where it stands.
pub(super) struct Permission {
    pub(super) effect: Effect,
    pub(super) subject: Subject,
    /// Patterns of files that a later permission of the host decides on otherwise.
    pub(super) except: Vec<String>,
    /// File and place: `settings.json permissions.allow[3]`.
    pub(super) place: String,
    /// As it was written.
    pub(super) said: String,
}

/// What is collected from files.
pub(super) struct Import<'a> {
    host: Host,
    /// The folder that relative paths belong to, without a slash at its end.
    root: Option<String>,
    reviewer: &'a str,
    rules: Vec<String>,
    /// What could not be expressed, or not exactly.
    notes: Vec<String>,
    /// Whether all command lines have to be asked about.
    asks_about_shell: bool,
}

/// Imports files. Returns whether all could be expressed as it was meant.
pub(super) fn run(arguments: &Arguments) -> Result<bool, Box<dyn Error>> {
    let mut import = Import {
        host: arguments.from,
        root: None,
        reviewer: &arguments.reviewer,
        rules: Vec::new(),
        notes: Vec::new(),
        asks_about_shell: false,
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
    notes.iter().for_each(|note| eprintln!("{note}"));
    Ok(notes.is_empty())
}

/// The folder that a host's settings are about: the parent of its own folder, but no home folder.
fn root_of(given: Option<&Path>, file: &Path) -> Option<String> {
    let found = match given {
        Some(root) => root.canonicalize().ok()?,
        None => {
            let file = file.canonicalize().ok()?;
            let is_own =
                |folder: &&Path| folder.file_name().is_some_and(|name| HOST_FOLDERS.iter().any(|own| name == *own));
            let root = file.ancestors().find(is_own)?.parent()?.to_owned();
            if std::env::home_dir().is_some_and(|home| home == root) {
                return None;
            }
            root
        }
    };
    Some(found.to_str()?.trim_end_matches('/').to_owned())
}

const HOST_FOLDERS: [&str; 5] = [".claude", ".codex", ".cursor", ".gemini", ".opencode"];

impl Import<'_> {
    /// Takes a permission over as far as rules can express it.
    pub(super) fn add(&mut self, permission: &Permission) {
        let Permission { place, said, .. } = permission;
        match express::rules(self, permission) {
            Ok(expressed) => {
                if let Some(note) = expressed.note {
                    self.note(place, said, &note);
                }
                self.asks_about_shell |= expressed.asks_about_shell;
                for clauses in expressed.rules {
                    self.push(permission.effect, &format!("{place}: {said}"), &clauses);
                }
            }
            Err(why) => self.note(place, said, &why),
        }
    }

    /// Says what could not be expressed.
    pub(super) fn note(&mut self, place: &str, said: &str, why: &str) {
        self.notes.push(super::shown(&format!("{place}: {said}: {why}")));
    }

    fn push(&mut self, effect: Effect, from: &str, clauses: &str) {
        let number = self.rules.len() + 1;
        let (word, more) = match effect {
            Effect::Allow => ("allow", String::new()),
            Effect::Ask => ("escalate", format!("reviewer = {}\n", toml_text(self.reviewer))),
            Effect::Deny => ("deny", String::new()),
        };
        let (from, clauses) = (super::shown(from), clauses.trim_end());
        self.rules
            .push(format!("# {from}\n[[rule]]\nid = \"imported-{number}\"\neffect = \"{word}\"\n{more}{clauses}"));
    }

    fn document(&mut self) -> String {
        if self.asks_about_shell {
            let clauses = express::tools(self.host.tools().shell);
            self.push(Effect::Ask, "rules do not see command lines, so all of them are asked about", &clauses);
        }
        let mut text =
            String::from("# Imported permissions. What no rule names is denied, also where the host would ask.\n");
        if !self.notes.is_empty() {
            text.push_str("# Not expressed, or not exactly:\n");
            text.extend(self.notes.iter().map(|note| format!("#   {note}\n")));
        }
        let name = self.host.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let rules: String = self.rules.iter().map(|rule| format!("\n{rule}\n")).collect();
        format!("{text}\nname = \"imported-from-{name}\"\n{rules}")
    }
}
