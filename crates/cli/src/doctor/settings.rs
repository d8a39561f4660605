//! The hooks before a tool in the settings of a host, as the host sees them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::model::{Matcher, Model, ProjectHooks};
use crate::hook::event::Host;
use crate::hook::install::{Scope, registered};

/// The settings of a host.
#[derive(Debug, Default)]
pub(super) struct Settings {
    /// The effective entries of Rulekeep.
    pub(super) ours: Vec<Entry>,
    /// The files with other hooks on the same event.
    pub(super) others: Vec<PathBuf>,
    /// The reasons why entries of Rulekeep have no effect.
    pub(super) problems: Vec<String>,
}

/// An entry of Rulekeep.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) file: PathBuf,
    pub(super) scope: Scope,
    pub(super) command: String,
    pub(super) matcher: Option<String>,
    pub(super) limit: Duration,
    /// A failed hook blocks the call.
    pub(super) closes: bool,
}

impl Settings {
    pub(super) fn read(host: Host, model: &Model, home: &Path, project: &Path) -> Self {
        let mut settings = Self::default();
        let known = match registered(host, home, project) {
            Ok(known) => known,
            Err(message) => {
                settings.problems.push(message);
                Vec::new()
            }
        };
        for pattern in &model.files {
            for (file, scope) in files(pattern, home, project) {
                let ours = known.iter().filter(|hook| hook.file == file && hook.event == model.gate);
                let text = match fs::read_to_string(&file) {
                    Ok(text) => text,
                    Err(error) => {
                        settings.problems.push(format!("{}: {error}", file.display()));
                        continue;
                    }
                };
                if host == Host::Opencode {
                    settings.plugin(&file, scope, &text, ours.map(|hook| hook.command.as_str()).next());
                } else {
                    let commands: Vec<&str> = ours.map(|hook| hook.command.as_str()).collect();
                    if let Err(problem) = settings.file(model, &file, scope, &text, &commands) {
                        settings.problems.push(format!("{}: {problem}", file.display()));
                    }
                }
            }
        }
        settings.switches(model, home, project);
        settings
    }

    /// Reads a settings file in JSON.
    fn file(&mut self, model: &Model, file: &Path, scope: Scope, text: &str, ours: &[&str]) -> Result<(), String> {
        let settings: Value = serde_json::from_str(text).map_err(|error| {
            format!("not every version of the host can read it: {error}; expected JSON without comments")
        })?;
        let fields = settings.as_object().ok_or("expected a JSON object")?;
        for (field, value) in &model.needs {
            if fields.get(field) != Some(value) {
                return Err(format!("the host ignores the file: {field:?} must be {value}"));
            }
        }
        if let Some(field) = fields.keys().find(|field| !model.knows.is_empty() && !model.knows.contains(field)) {
            return Err(format!("the host ignores the file: it does not know the field {field:?}"));
        }
        for switch in &model.off {
            let (pointer, value) = switch.split_once('=').unwrap_or((switch, "true"));
            if settings.pointer(pointer).and_then(Value::as_bool) == Some(value == "true") {
                self.problems.push(format!("{}: {switch} switches hooks off", file.display()));
            }
        }
        for name in settings["env"].as_object().into_iter().flat_map(serde_json::Map::keys) {
            if DECIDING.contains(&name.as_str()) {
                self.problems.push(format!("{}: `env` sets {name} for the hook", file.display()));
            }
        }
        let disabled: Vec<&str> = model.disabled.iter().flat_map(|at| texts(&settings, at)).collect();
        for group in settings["hooks"][&*model.gate].as_array().into_iter().flatten() {
            let actions = group["hooks"].as_array().map_or(std::slice::from_ref(group), Vec::as_slice);
            for action in actions {
                let command = ["command", "bash"].iter().find_map(|field| action[*field].as_str());
                let Some(command) = command.filter(|command| ours.contains(command)) else {
                    self.others.push(file.to_owned());
                    continue;
                };
                let name = action["name"].as_str().unwrap_or(command);
                let dead = model.dead.iter().find(|field| action[field.as_str()] == true);
                if let Some(field) = dead {
                    self.problems.push(format!("{}: the entry decides nothing: {field:?} is true", file.display()));
                } else if disabled.contains(&name) {
                    self.problems.push(format!("{}: {name:?} is among the hooks switched off", file.display()));
                } else {
                    let limit = ["timeout", "timeoutSec"].iter().find_map(|field| action[*field].as_f64());
                    let limit = limit.unwrap_or_else(|| model.limit.into()) * f64::from(model.unit) / 1000.0;
                    self.ours.push(Entry {
                        file: file.to_owned(),
                        scope,
                        command: command.to_owned(),
                        matcher: group["matcher"].as_str().map(ToOwned::to_owned),
                        limit: Duration::try_from_secs_f64(limit).unwrap_or(Duration::ZERO),
                        closes: model
                            .closes
                            .as_ref()
                            .is_some_and(|field| action[field] == true || action[field] == "block"),
                    });
                }
            }
        }
        Ok(())
    }

    /// Reads a plugin in JavaScript. Ours counts only unchanged: the effect of any change cannot be told without
    /// running it.
    fn plugin(&mut self, file: &Path, scope: Scope, text: &str, command: Option<&str>) {
        let bare = |text: &str| -> Vec<String> {
            text.lines().filter(|line| !line.starts_with("const command = ")).map(ToOwned::to_owned).collect()
        };
        match command {
            None => self.others.push(file.to_owned()),
            Some(_) if bare(text) != bare(include_str!("../hook/install/plugin.js")) => {
                let problem = "it is not the plugin of this version; run `rulekeep hook install --host opencode`";
                self.problems.push(format!("{}: {problem}", file.display()));
            }
            Some(command) => self.ours.push(Entry {
                file: file.to_owned(),
                scope,
                command: command.to_owned(),
                matcher: None,
                limit: Duration::from_secs(600),
                closes: true,
            }),
        }
    }

    /// Reads switches that have files of their own.
    fn switches(&mut self, model: &Model, home: &Path, project: &Path) {
        for (file, at) in &model.off_files {
            let (file, _) = place(file, home, project);
            let settings: Value =
                fs::read_to_string(&file).ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
            let is_ours = |name: &&str| self.ours.iter().any(|entry| entry.file.iter().any(|part| part == *name));
            if let Some(name) = texts(&settings, at).find(is_ours) {
                self.problems.push(format!("{}: {name:?} is switched off", file.display()));
            }
        }
    }
}

impl Entry {
    /// Returns whether the host runs this entry before a tool.
    pub(super) fn covers(&self, matcher: Matcher, tool: &str) -> bool {
        let Some(pattern) = self.matcher.as_deref().map(str::trim) else { return true };
        let is_names = |pattern: &str| pattern.chars().all(|c| c.is_ascii_alphanumeric() || "_- ,|".contains(c));
        match matcher {
            Matcher::Ignored => true,
            _ if matches!(pattern, "" | "*") => true,
            Matcher::Names if is_names(pattern) => pattern.split([',', '|']).any(|name| name.trim() == tool),
            _ => regex::Regex::new(pattern).is_ok_and(|pattern| pattern.is_match(tool)),
        }
    }

    /// Returns whether the host runs hooks of this scope in every folder.
    pub(super) fn runs_anywhere(&self, model: &Model) -> bool {
        self.scope == Scope::User || model.project == ProjectHooks::Always
    }
}

/// Resolves a path of the models: `~` is the user's home and `.` the project.
pub(super) fn place(path: &str, home: &Path, project: &Path) -> (PathBuf, Scope) {
    match path.strip_prefix("~/") {
        Some(rest) => (home.join(rest), Scope::User),
        None => (project.join(path.trim_start_matches("./")), Scope::Project),
    }
}

/// Returns the existing files of a pattern, by name. One part of it may contain a `*`.
fn files(pattern: &str, home: &Path, project: &Path) -> Vec<(PathBuf, Scope)> {
    let (path, scope) = place(pattern, home, project);
    let text = path.to_string_lossy();
    let Some((before, after)) = text.split_once('*') else {
        return if path.exists() { vec![(path, scope)] } else { Vec::new() };
    };
    let mut found: Vec<PathBuf> = fs::read_dir(before)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| match after.strip_prefix('/') {
            Some(rest) => entry.path().join(rest),
            None => entry.path(),
        })
        .filter(|file| file.to_string_lossy().ends_with(after) && file.exists())
        .collect();
    found.sort();
    found.into_iter().map(|file| (file, scope)).collect()
}

fn texts<'v>(settings: &'v Value, pointer: &str) -> impl Iterator<Item = &'v str> + use<'v> {
    settings.pointer(pointer).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// Variables with which settings decide which daemon a hook asks, or what runs in its place.
const DECIDING: &[&str] = &["BASH_ENV", "ENV", "HOME", "LD_PRELOAD", "PATH", "RULEKEEP_HOME"];
