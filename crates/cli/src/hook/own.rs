//! Detecting calls that access what governs the agent: the home of the tool, the program, and the hook settings of
//! hosts.
//!
//! The parser knows these by their usual names. The daemon also knows their locations on this machine and the folder
//! in which the host works, and follows links.

use std::path::{Path, PathBuf};

use rulekeep::intent::{Facts, Kind, Operand, Role};
use rulekeep_confine::real;
use serde_json::Value;

use super::event::{HookEvent, Host, HostCall};
use super::install::{Scope, settings_file};

/// The places that only an operator may change.
pub(super) struct Own {
    /// The home of the tool.
    root: PathBuf,
    /// The user's home folder.
    user: Option<PathBuf>,
    /// The path of this program.
    program: Option<PathBuf>,
}

impl Own {
    pub(super) fn new(root: &Path) -> Self {
        let user = std::env::home_dir().filter(|user| user.is_absolute());
        Self { root: real(root), user, program: std::env::current_exe().ok().map(|program| real(&program)) }
    }

    /// Returns the first of these places that a call names in any argument, relative to the folder in which the host
    /// works, alone or joined to an option.
    pub(super) fn named(&self, event: &HookEvent, call: &HostCall) -> Option<PathBuf> {
        let cwd = event.cwd.as_deref().map(Path::new).filter(|cwd| cwd.is_absolute());
        let settings = self.settings(cwd);
        if let Some(cwd) = cwd.filter(|cwd| self.holds(&real(cwd), &settings)) {
            return Some(cwd.to_owned());
        }
        let mut texts = Vec::new();
        // A prompt for one of the host's own agents does nothing itself: their calls come to the hook.
        collect(&call.arguments, call.server.is_none(), &mut texts);
        let words = texts.iter().flat_map(|text| text.split(is_between)).filter(|word| !word.is_empty());
        // A command line may change the folder first, so each word that is a folder is tried as a base for the
        // others.
        let mut folders: Vec<PathBuf> = cwd.map(Path::to_owned).into_iter().collect();
        for word in words {
            let from: Vec<PathBuf> = joined(word).flat_map(|word| self.paths(word, &folders)).collect();
            if let Some(path) = from.iter().find(|path| self.holds(&real(path), &settings)) {
                return Some(path.clone());
            }
            if folders.len() < MOST_FOLDERS {
                folders.extend(from.into_iter().filter(|path| path.is_dir()).take(1));
            }
        }
        None
    }

    /// Returns the first folder that a call removes and that contains the home of the tool.
    pub(super) fn removed(&self, facts: &Facts) -> Option<PathBuf> {
        let operands = facts.acts.iter().flat_map(|act| &act.operands);
        let removed = operands.filter(|operand| operand.kind == Kind::Path && operand.role == Role::Remove);
        removed
            .map(|operand| self.path_of(operand))
            .find(|path| path.is_absolute() && self.root.starts_with(path) && self.root != *path)
    }

    /// The resolved path of an operand; of `folder/*`, the folder.
    fn path_of(&self, operand: &Operand) -> PathBuf {
        let path = operand.value.strip_suffix('*').filter(|path| path.ends_with('/')).unwrap_or(&operand.value);
        let below = path.strip_prefix('~').zip(self.user.as_deref());
        real(&below.map_or_else(|| PathBuf::from(path), |(rest, user)| user.join(rest.trim_start_matches('/'))))
    }

    /// Returns whether the path is a socket of the daemon.
    pub(super) fn is_socket(&self, path: &Path) -> bool {
        let path = real(path);
        path.starts_with(&self.root) && path.extension().is_some_and(|extension| extension == "sock")
    }

    /// Returns the paths that a word may mean.
    fn paths(&self, word: &str, folders: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
        let word = word.strip_prefix("file://").unwrap_or(word);
        let homes = [("~", &self.user), ("$HOME", &self.user), ("${HOME}", &self.user)];
        let below = |name: &str, base: &Path| {
            let rest = word.strip_prefix(name)?;
            (rest.is_empty() || rest.starts_with('/')).then(|| base.join(rest.trim_start_matches('/')))
        };
        let named = homes.iter().find_map(|(name, base)| below(name, base.as_deref()?));
        let named =
            named.or_else(|| below("$RULEKEEP_HOME", &self.root)).or_else(|| below("${RULEKEEP_HOME}", &self.root));
        let relative = named.is_none() && !word.starts_with(['-', '$']) && word.len() < 4096;
        let joined = if relative { folders.iter().map(|folder| folder.join(word)).collect() } else { Vec::new() };
        let absolute = (relative && word.starts_with('/')).then(|| PathBuf::from(word));
        named.into_iter().chain(absolute).chain(joined)
    }

    /// The settings files of all hosts, of the user and of the project, each with its base folder.
    fn settings(&self, project: Option<&Path>) -> Vec<(PathBuf, PathBuf)> {
        let Some(user) = self.user.as_deref() else { return Vec::new() };
        let bases = [(Scope::User, Some(user)), (Scope::Project, project)];
        let hosts = <Host as clap::ValueEnum>::value_variants();
        let each = bases.iter().filter_map(|(scope, base)| Some((scope, (*base)?)));
        each.flat_map(|(scope, base)| {
            hosts.iter().map(move |host| (real(&settings_file(*host, *scope, user, base)), real(base)))
        })
        .collect()
    }

    /// Returns whether a resolved path is one of the places, is inside one, or is the folder of a settings file.
    fn holds(&self, path: &Path, settings: &[(PathBuf, PathBuf)]) -> bool {
        path.starts_with(&self.root)
            || self.program.as_deref() == Some(path)
            // Moving a parent folder moves the file too. The base itself is exempt, because it contains everything
            // else.
            || settings.iter().any(|(file, base)| file.starts_with(path) && path.starts_with(base) && path != base)
    }
}

/// Returns the word, or for an option each part of it that may be a joined path: `-C/x`, `-xfC~/x`, `-tx`.
fn joined(word: &str) -> impl Iterator<Item = &str> {
    let option = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    let start = option.and_then(|rest| rest.find(['/', '~', '$', '.'])).and_then(|at| word.get(at + 1..));
    let letter = option.and_then(|_| word.get(2..)).filter(|rest| !rest.is_empty());
    std::iter::once(word).chain(start).chain(letter)
}

/// Collects the texts of a call's arguments that can name a path. For a patch, only the header lines are collected.
fn collect<'a>(value: &'a Value, prompts: bool, texts: &mut Vec<&'a str>) {
    match value {
        Value::String(text) if text.trim_start().starts_with("*** Begin Patch") => {
            texts.extend(text.lines().filter(|line| HEADERS.iter().any(|header| line.starts_with(header))));
        }
        Value::String(text) => texts.push(text),
        Value::Array(values) => values.iter().for_each(|value| collect(value, prompts, texts)),
        Value::Object(fields) => {
            let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
            let is_edit = fields.keys().any(|name| matches!(&*plain(name), "path" | "filepath" | "targetfile"));
            for (name, value) in fields {
                let name = plain(name);
                let is_content = CONTENT.contains(&&*name) || is_edit && EDITED.contains(&&*name);
                if !(is_content || prompts && name == "prompt") {
                    collect(value, prompts, texts);
                }
            }
        }
        _ => {}
    }
}

fn is_between(c: char) -> bool {
    c.is_whitespace() || "\"'`();|&<>=,:".contains(c)
}

/// Arguments that are written to files and do not name any.
const CONTENT: &[&str] =
    &["content", "filetext", "newsource", "newstring", "oldstring", "newstr", "oldstr", "inserttext", "todos", "plan"];
/// Arguments that are written to the file that another argument names.
const EDITED: &[&str] = &["code", "newcode", "codeedit", "text", "before", "after", "explanation", "instructions"];
/// Lines of a patch that name files.
const HEADERS: &[&str] = &["*** ", "+++ ", "--- "];
/// Largest number of folders to which a command line may change.
const MOST_FOLDERS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hook::event::EventKind;
    use serde_json::json;

    #[test]
    fn own_settings_are_recognized_from_any_folder_and_link() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("moved");
        let work = folder.path().join("work");
        std::fs::create_dir_all(root.join("policies")).unwrap();
        std::fs::create_dir(&work).unwrap();
        std::os::unix::fs::symlink(&root, work.join("link")).unwrap();
        let own = Own::new(&root);
        let names = |cwd: &Path, arguments: Value| {
            let call = HostCall { id: None, tool: "Bash".to_owned(), server: None, arguments };
            let event = HookEvent {
                session: String::new(),
                cwd: Some(cwd.display().to_string()),
                subagent: None,
                name: String::new(),
                kind: EventKind::Call(call.clone()),
            };
            own.named(&event, &call).is_some()
        };
        let command = |line: String| json!({ "command": line });
        let shown = root.display();
        for (cwd, arguments) in [
            (&work, command(format!("sed -i s/a/b/ {shown}/policies/policy.toml"))),
            (&work, command("cp x link/config.toml".to_owned())),
            (&work, command("cd ../moved && cp x config.toml".to_owned())),
            (&work, command("cd link; sed -i s/a/b/ policies/policy.toml".to_owned())),
            (&work, command(format!("nc -U {shown}/agent.sock"))),
            (&root, command("sed -i s/a/b/ policies/policy.toml".to_owned())),
            (&root, json!({ "file_path": "config.toml", "content": "" })),
            (&work, json!({ "file_path": ".claude/settings.json", "content": "" })),
            (&work, command("mv x .claude".to_owned())),
            (&work, command("echo x >$RULEKEEP_HOME/policies/policy.toml".to_owned())),
            (&work, command(format!("7z x a.7z -o{shown}/policies"))),
            (&work, command(format!("bsdtar -C{shown}/policies -xf a.tar"))),
            (&work, command("tool -tlink/policies".to_owned())),
            (&work, command("unknown --into=link/policies".to_owned())),
        ] {
            assert!(names(cwd, arguments.clone()), "{arguments}");
        }
        for arguments in [
            command("cargo test --workspace".to_owned()),
            command("cp a b && cd src && ls ..".to_owned()),
            command(format!("gfind {} -name policy.toml", folder.path().display())),
            json!({ "file_path": ".claude/agents/review.md", "content": "see ~ and /" }),
            json!({ "filePath": "docs/a.md", "code": "rm -rf / in .claude/settings.json" }),
            command("*** Begin Patch\n*** Update File: a.md\n@@\n+Never edit .claude/settings.json\n".to_owned()),
        ] {
            assert!(!names(&work, arguments.clone()), "{arguments}");
        }
        for (server, is_named) in [(None, false), (Some("agents".to_owned()), true)] {
            let arguments = json!({ "prompt": "Read link/config.toml" });
            let call = HostCall { id: None, tool: "Task".to_owned(), server, arguments };
            let event = HookEvent {
                session: String::new(),
                cwd: Some(work.display().to_string()),
                subagent: None,
                name: String::new(),
                kind: EventKind::Call(call.clone()),
            };
            assert_eq!(own.named(&event, &call).is_some(), is_named);
        }
    }
}
