//! Whether the user's words name an effect that leaves the work area.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::purpose::{Asked, is_same_kind};
use super::words::Words;
use crate::model::facts::Act;
use crate::model::{Capability, Operation};

/// The call as a person says it: its command, or else its tool or action.
pub(super) fn said(act: &Act) -> String {
    let tool = act.tool.as_deref().or_else(|| act.does.first().map(|doing| doing.action.as_str()));
    act.commands.first().map_or_else(|| tool.unwrap_or("call").to_owned(), Clone::clone)
}

/// Returns whether the words ask for effects that leave: they name one by its verb, its object or the program, or ask
/// for the same operation on things of the same kind.
pub(super) fn asks_for(words: &Words, asked: &Asked, act: &Act, effects: &[&Capability]) -> bool {
    let is_of_acts = |effect: &&Capability| {
        let grave = matches!(effect.operation(), Some(Operation::Send | Operation::Transfer | Operation::Admin));
        grave && asked.acts.iter().any(|one| one.operation() == effect.operation() && is_same_kind(one, effect))
    };
    effects.iter().all(is_of_acts) && !act.leaves && !effects.is_empty()
        || names(act).iter().any(|name| words.wants(name))
}

/// Returns whether the words ask to remove something.
pub(super) fn asks_to_remove(words: &Words, asked: &Asked) -> bool {
    let is_asked = asked.acts.iter().any(|one| one.operation() == Some(Operation::Delete));
    is_asked && !REMOVING.iter().any(|name| words.tell_of(name))
        || REMOVING.iter().any(|name| words.wants_in(name, &["", "d", "ed", "ing"]))
}

/// The words that name an act, with those that mean the same.
fn names(act: &Act) -> Vec<&str> {
    let actions = act.does.iter().filter(|doing| doing.capability.operation() != Some(Operation::Read));
    let parts = actions.flat_map(|doing| doing.action.as_str().split('_'));
    let command = act.command.as_deref().or_else(|| act.commands.last().map(String::as_str)).unwrap_or_default();
    let plain = command
        .split_whitespace()
        .take_while(|word| word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'));
    let plain = plain.take(MOST_WORDS);
    let own: Vec<&str> =
        parts.chain(plain).filter(|word| !GENERIC.contains(word) && (word.len() > 2 || SHORT.contains(word))).collect();
    let others = own.iter().filter_map(|word| SYNONYMS.get(*word)).flatten().map(String::as_str);
    own.iter().copied().chain(others).collect()
}

/// Words of actions and commands that do not tell one effect from another.
const GENERIC: &[&str] = &[
    "git",
    "gh",
    "issue",
    "comment",
    "glab",
    "hub",
    "create",
    "add",
    "set",
    "get",
    "new",
    "update",
    "edit",
    "change",
    "changes",
    "delete",
    "remove",
    "run",
    "start",
    "stop",
    "up",
    "list",
    "show",
    "open",
    "close",
    "send",
    "data",
    "file",
    "files",
    "program",
    "app",
    "origin",
    "main",
    "master",
    "code",
    "package",
    "image",
    "repository",
    "system",
    "host",
    "service",
    "call",
    "install",
    "config",
    "command",
    "use",
    "make",
    "sudo",
    "text",
    "project",
    "branch",
    "write",
    "read",
    "mode",
    "url",
    "api",
    "project",
];
/// Names of two letters.
const SHORT: &[&str] = &["pr", "mr", "ci"];
/// Words that ask to remove something.
const REMOVING: &[&str] = &[
    "delete", "remove", "clean", "cleanup", "rm", "drop", "purge", "discard", "erase", "wipe", "prune", "revert",
    "undo", "rename", "move", "refactor", "replace", "migrate", "reset", "rid",
];
/// Number of words of a command that name it.
const MOST_WORDS: usize = 3;

static SYNONYMS: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    // A test ensures that the file parses.
    let table: BTreeMap<String, String> = toml::from_str(include_str!("data/names.toml")).unwrap_or_default();
    let words = |names: String| names.split_whitespace().map(|name| name.replace('_', " ")).collect();
    table.into_iter().map(|(key, names)| (key, words(names))).collect()
});
