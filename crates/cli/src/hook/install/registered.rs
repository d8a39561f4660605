//! Finding the hook's entries in the settings of a host.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::Scope;
use super::edit::{located, parse, plugin, plugin_command, value};
use super::files::read;
use super::layout::{Entries, Event, Form, Layout};
use crate::hook::event::Host;

/// An entry that makes a host run `rulekeep hook` on an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredHook {
    /// The host's name of the event.
    pub event: String,
    /// The tools that it is registered for; `None` if the host runs it for all.
    pub matcher: Option<String>,
    /// The command line, as the host runs it.
    pub command: String,
    /// The host's time limit; `None` for its default.
    pub timeout: Option<Duration>,
    /// A hook that cannot start, fails or is late blocks the call. Only entries of Claude Code, Cursor and goose can
    /// say so; the plugin for opencode always does.
    pub blocks_on_failure: bool,
    /// The entry is exactly what `hook install` writes for its command. An additional field, such as `async` or `if`,
    /// can make an entry ineffective.
    pub unchanged: bool,
    /// Path of the settings file.
    pub file: PathBuf,
    /// The owner of the settings.
    pub scope: Scope,
}

/// Returns the hook's entries in the settings of `host`, those of the user first.
///
/// # Errors
///
/// Names the file that cannot be read or is malformed, and the position in it.
pub fn registered(host: Host, home: &Path, project: &Path) -> Result<Vec<RegisteredHook>, String> {
    let layout = Layout::of(host);
    let mut found = Vec::new();
    for scope in [Scope::User, Scope::Project] {
        let file = layout.file(scope, home, project);
        if scope == Scope::Project && file == layout.file(Scope::User, home, project) {
            continue;
        }
        let Some(text) = read(&file)? else { continue };
        let mut entries = match &layout.form {
            Form::Plugin => plugin_entries(layout, &text),
            Form::Settings(form) => {
                let settings = parse(&text).map_err(|error| located(&file, &error))?;
                settings_entries(layout, form, &settings.to_serde_value().unwrap_or_default())
            }
        };
        for entry in &mut entries {
            entry.file.clone_from(&file);
            entry.scope = scope;
        }
        found.append(&mut entries);
    }
    Ok(found)
}

/// Returns the entries in parsed settings.
pub(super) fn settings_entries(layout: &Layout, form: &Entries, settings: &Value) -> Vec<RegisteredHook> {
    let mut entries = Vec::new();
    for (event, groups) in settings.get("hooks").and_then(Value::as_object).into_iter().flatten() {
        for group in groups.as_array().into_iter().flatten() {
            let matcher = group.get("matcher").and_then(Value::as_str);
            let nested = group.get("hooks").and_then(Value::as_array);
            for action in nested.map_or(std::slice::from_ref(group), Vec::as_slice) {
                let Some(command) = form.command(action).filter(|command| layout.is_ours(command)) else { continue };
                entries.push(RegisteredHook {
                    event: event.clone(),
                    matcher: matcher.map(ToOwned::to_owned),
                    command: command.to_owned(),
                    timeout: form.timeout(action),
                    blocks_on_failure: form.blocks_on_failure(action),
                    unchanged: layout
                        .events
                        .iter()
                        .any(|known| known.name == event && value(&form.entry(known, command)) == *group),
                    file: PathBuf::new(),
                    scope: Scope::User,
                });
            }
        }
    }
    entries
}

/// Returns the hooks of a plugin that this crate wrote; none for any other text.
fn plugin_entries(layout: &Layout, text: &str) -> Vec<RegisteredHook> {
    let Some(command) = plugin_command(text) else { return Vec::new() };
    let entry = |event: &Event| RegisteredHook {
        event: event.name.to_owned(),
        matcher: None,
        command: format!("{command} hook --host {}", layout.host),
        timeout: Some(Duration::from_secs(event.seconds)),
        blocks_on_failure: event.blocks,
        unchanged: text == plugin(&command),
        file: PathBuf::new(),
        scope: Scope::User,
    };
    layout.events.iter().map(entry).collect()
}
