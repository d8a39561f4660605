//! Inserting entries into a settings text and removing them. Order, comments and unknown fields are preserved.

use std::path::Path;

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstNode, CstObject, CstRootNode};
use serde_json::Value;

use super::layout::{Entries, Layout};

/// Parses settings: JSON, with the comments and trailing commas that several hosts allow.
///
/// # Errors
///
/// Returns `LINE:COLUMN: ` and a description of what is malformed there.
pub(super) fn parse(text: &str) -> Result<CstRootNode, String> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    // Some editors begin a file with a byte order mark, which JSON does not have; it is not written again.
    CstRootNode::parse(text.strip_prefix('\u{feff}').unwrap_or(text), &options)
        .map_err(|error| format!("{}:{}: {}", error.line_display(), error.column_display(), error.kind()))
}

/// Puts the path of the file before an error of this module.
pub(super) fn located(path: &Path, error: &str) -> String {
    let space = if error.starts_with(|c: char| c.is_ascii_digit()) { "" } else { " " };
    format!("{}:{space}{error}", path.display())
}

/// Returns the settings with exactly the entries of this version. A text that already has them is returned unchanged.
pub(super) fn with_entries(layout: &Layout, form: &Entries, text: &str, command: &str) -> Result<String, String> {
    let root = parse(text)?;
    let object = root.object_value_or_create().ok_or("1:1: the settings are not a JSON object")?;
    if let Some(field) = layout.voids.filter(|field| object.get(field).is_some()) {
        return Err(format!("the field {field:?} makes the host ignore the whole file; remove it first"));
    }
    if form.versioned && object.get("version").is_none() {
        object.append("version", 1usize.into());
    }
    refuse_twice(&object, "hooks")?;
    let hooks = object.object_value_or_create("hooks").ok_or("the field \"hooks\" is not a JSON object")?;
    // Removes entries of another version, or for events that this version does not use.
    for (name, list) in lists(&hooks)? {
        let event = layout.events.iter().find(|event| event.name == name);
        let wanted = event.map(|event| value(&form.entry(event, command)));
        let mut removed = false;
        for entry in list.elements() {
            if entry.to_serde_value() != wanted {
                removed |= remove_ours(layout, form, &entry);
            }
        }
        if removed && event.is_none() {
            remove_if_empty(&hooks, &name, &list);
        }
    }
    for event in layout.events {
        let list = hooks.array_value_or_create(event.name).ok_or_else(|| no_list(event.name))?;
        let entry = form.entry(event, command);
        let wanted = Some(value(&entry));
        if !list.elements().iter().any(|element| element.to_serde_value() == wanted) {
            list.append(entry);
        }
    }
    Ok(root.to_string())
}

/// Returns the settings without entries of the hook; `None` if they contained nothing else.
pub(super) fn without_entries(layout: &Layout, form: &Entries, text: &str) -> Result<Option<String>, String> {
    let root = parse(text)?;
    let Some(object) = root.object_value() else { return Ok(Some(text.to_owned())) };
    refuse_twice(&object, "hooks")?;
    let Some(hooks) = object.object_value("hooks") else { return Ok(Some(text.to_owned())) };
    let mut removed = false;
    for (name, list) in lists(&hooks)? {
        let mut here = false;
        for entry in list.elements() {
            here |= remove_ours(layout, form, &entry);
        }
        if here {
            remove_if_empty(&hooks, &name, &list);
        }
        removed |= here;
    }
    if !removed {
        return Ok(Some(text.to_owned()));
    }
    if hooks.properties().is_empty() {
        if let Some(property) = object.get("hooks") {
            property.remove();
        }
        let rest = object.to_serde_value().unwrap_or_default();
        if rest == serde_json::json!({}) || (form.versioned && rest == serde_json::json!({"version": 1})) {
            return Ok(None);
        }
    }
    Ok(Some(root.to_string()))
}

/// Returns the program that our plugin runs; `None` for any other text.
pub(super) fn plugin_command(text: &str) -> Option<String> {
    let line =
        text.starts_with(PLUGIN_MARK).then(|| text.lines().find_map(|line| line.strip_prefix(PLUGIN_COMMAND)))?;
    serde_json::from_str(line?).ok()
}

/// Returns the plugin for opencode.
pub(super) fn plugin(program: &str) -> String {
    let command = format!("{PLUGIN_COMMAND}{}", Value::from(program));
    include_str!("plugin.js").replacen("const command = \"rulekeep\"", &command, 1)
}

/// The first words of the plugin, by which it is recognized.
const PLUGIN_MARK: &str = "// Written by `rulekeep hook install --host opencode`";
const PLUGIN_COMMAND: &str = "const command = ";

/// Refuses a duplicate name: some parsers use the first value, others the last.
fn refuse_twice(object: &CstObject, name: &str) -> Result<(), String> {
    match object.properties().iter().filter(|property| property.decoded_name().as_deref() == Some(name)).count() {
        0 | 1 => Ok(()),
        _ => Err(format!("the field {name:?} occurs twice; remove one")),
    }
}

/// Returns the entries of each event.
fn lists(hooks: &CstObject) -> Result<Vec<(String, CstArray)>, String> {
    let mut lists = Vec::new();
    for property in hooks.properties() {
        let name = property.decoded_name().unwrap_or_default();
        refuse_twice(hooks, &name)?;
        if let Some(list) = property.array_value() {
            lists.push((name, list));
        }
    }
    Ok(lists)
}

/// Removes our part of an entry, and the entry if nothing else is in it. Returns whether there was any.
fn remove_ours(layout: &Layout, form: &Entries, entry: &CstNode) -> bool {
    let is_ours = |action: &CstNode| {
        let action = action.to_serde_value().unwrap_or_default();
        form.command(&action).is_some_and(|command| layout.is_ours(command))
    };
    let actions = entry.as_object().and_then(|entry| entry.array_value("hooks"));
    let Some(actions) = actions else {
        let ours = is_ours(entry);
        if ours {
            entry.clone().remove();
        }
        return ours;
    };
    let ours: Vec<_> = actions.elements().into_iter().filter(is_ours).collect();
    let any = !ours.is_empty();
    if any && ours.len() == actions.elements().len() {
        entry.clone().remove();
    } else {
        ours.into_iter().for_each(CstNode::remove);
    }
    any
}

fn remove_if_empty(hooks: &CstObject, name: &str, list: &CstArray) {
    if list.elements().is_empty()
        && let Some(property) = hooks.get(name)
    {
        property.remove();
    }
}

fn no_list(name: &str) -> String {
    format!("the hooks of the event {name:?} are not a list")
}

/// Returns an entry as JSON.
pub(super) fn value(entry: &jsonc_parser::cst::CstInputValue) -> Value {
    let root = CstRootNode::parse("", &ParseOptions::default()).ok();
    root.and_then(|root| {
        root.set_value(entry.clone());
        root.to_serde_value()
    })
    .unwrap_or_default()
}
