//! Planning the changes of files for an installation or its removal.

use std::path::{Path, PathBuf};

use super::Scope;
use super::edit::{located, parse, plugin, plugin_command, with_entries, without_entries};
use super::files::{FileChange, read};
use super::layout::{Entries, Form, Layout};
use super::registered::settings_entries;
use crate::hook::event::Host;

/// Returns the changes that register `program` as the hook of `host`; empty if it is already registered.
///
/// # Errors
///
/// Names the file that cannot be read or is malformed, and the position in it.
pub fn plan_install(
    host: Host,
    scope: Scope,
    home: &Path,
    project: &Path,
    program: &str,
) -> Result<Vec<FileChange>, String> {
    let layout = Layout::of(host);
    let path = layout.file(scope, home, project);
    let before = read(&path)?;
    let form = match &layout.form {
        Form::Plugin if before.as_deref().is_some_and(|text| plugin_command(text).is_none()) => {
            return Err(format!("{}: rulekeep did not write this plugin; move it away first", path.display()));
        }
        Form::Plugin => return Ok(changed(&path, before, Some(plugin(program)), None).into_iter().collect()),
        Form::Settings(form) => form,
    };
    let command = layout.command(program)?;
    let at = |error: String| located(&path, &error);
    let installed = |text: Option<&str>| with_entries(layout, form, text.unwrap_or_default(), &command).map_err(at);
    let mut changes = Vec::new();
    if before.as_ref() != Some(&installed(before.as_deref())?) {
        let original = original(layout, form, &path, before.as_deref())?;
        let after = installed(original.as_deref())?;
        // If removing the entries would not restore every byte, a copy of the file is kept.
        if without_entries(layout, form, &after).map_err(at)? != original {
            let copy = copy_path(&path);
            let kept = read(&copy)?;
            changes.extend(changed(&copy, kept, original, Some(&path)));
        }
        changes.extend(changed(&path, before, Some(after), None));
    }
    if let Some((manifest, text)) = manifest(layout, &path)
        && read(&manifest)?.is_none()
    {
        changes.extend(changed(&manifest, None, Some(text.to_owned()), None));
    }
    Ok(changes)
}

/// Returns the changes that remove the hook of `host`; empty if it is not registered.
///
/// A file that nobody else has changed since the installation is restored byte by byte.
///
/// # Errors
///
/// Names the file that cannot be read or is malformed, and the position in it.
pub fn plan_uninstall(host: Host, scope: Scope, home: &Path, project: &Path) -> Result<Vec<FileChange>, String> {
    let layout = Layout::of(host);
    let path = layout.file(scope, home, project);
    let Some(before) = read(&path)? else { return Ok(Vec::new()) };
    let form = match &layout.form {
        Form::Plugin if plugin_command(&before).is_none() => return Ok(Vec::new()),
        Form::Plugin => return Ok(changed(&path, Some(before), None, None).into_iter().collect()),
        Form::Settings(form) => form,
    };
    let after = original(layout, form, &path, Some(&before))?;
    let mut changes: Vec<_> = changed(&path, Some(before), after, None).into_iter().collect();
    if changes.is_empty() {
        return Ok(changes);
    }
    let copy = copy_path(&path);
    let kept = read(&copy)?;
    changes.extend(changed(&copy, kept, None, Some(&path)));
    if let Some((manifest, text)) = manifest(layout, &path)
        && read(&manifest)?.as_deref() == Some(text)
    {
        changes.extend(changed(&manifest, Some(text.to_owned()), None, None));
    }
    Ok(changes)
}

/// Returns the settings without the hook: the kept copy if installing on it gives the current text, otherwise the
/// current text without the entries.
fn original(layout: &Layout, form: &Entries, path: &Path, now: Option<&str>) -> Result<Option<String>, String> {
    let Some(now) = now else { return Ok(None) };
    let at = |error: String| located(path, &error);
    let settings = parse(now).map_err(at)?.to_serde_value().unwrap_or_default();
    let Some(entry) = settings_entries(layout, form, &settings).into_iter().next() else {
        return Ok(Some(now.to_owned()));
    };
    if let Some(copy) = read(&copy_path(path))?
        && with_entries(layout, form, &copy, &entry.command).is_ok_and(|installed| installed == now)
    {
        return Ok(Some(copy));
    }
    without_entries(layout, form, now).map_err(at)
}

/// Returns the change of a file, if there is one.
fn changed(path: &Path, before: Option<String>, after: Option<String>, copy_of: Option<&Path>) -> Option<FileChange> {
    let change = || FileChange { path: path.to_owned(), before, after, copy_of: copy_of.map(ToOwned::to_owned) };
    Some(change()).filter(|change| change.before != change.after)
}

/// Returns the manifest file that a host requires, with its text.
fn manifest(layout: &Layout, path: &Path) -> Option<(PathBuf, &'static str)> {
    let (name, text) = layout.manifest?;
    Some((path.parent()?.parent()?.join(name), text))
}

/// The copy of a settings file from before the installation.
fn copy_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".before-rulekeep");
    PathBuf::from(name)
}
