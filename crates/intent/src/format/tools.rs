//! Knowledge of tool calls from `data/tools.toml`: message shapes, argument roles and values.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use rulekeep_types::Operation;
use serde::Deserialize;

use crate::table::{Table, WordSet, Words};

/// The meaning of a message key for the shape of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Name,
    /// Names the tool if nothing else does.
    WeakName,
    Arguments,
    Beside,
}

/// The role of an argument, by its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // engines exchange it; the names say it
pub enum Role {
    Recipient,
    /// Text that is written, sent or searched for: content, not a request.
    Content,
    Query,
    Command,
    Script,
    Sql,
    Code,
    Url,
    Method,
    Path,
    Amount,
    Currency,
    Count,
    Force,
    Bulk,
    DryRun,
    Environment,
    Access,
    Visibility,
    Public,
    Doing,
    Secret,
    Nested,
    Request,
    /// Without meaning for the risk: ids, pages, formats.
    Idle,
}

/// The meaning of a key besides its role; a key can have several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Key {
    /// A receiver of the result: an address or a call.
    Callback,
    /// A header that overrides the method.
    Override,
    /// The person who is given access.
    Shares,
    /// The mode in which a file is opened.
    Mode,
    Program,
    Argument,
    Folder,
    /// A name within a folder.
    Name,
    Account,
    Bcc,
    Cc,
    Table,
    Host,
    Source,
    Destination,
}

/// All the meanings of a key.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Keys(u16);

impl Keys {
    pub(super) const fn has(self, key: Key) -> bool {
        self.0 & 1 << key as u16 != 0
    }
}

/// The data file, indexed for lookup.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    parts: Table<Part>,
    wrappers: Vec<Box<str>>,
    nested: Vec<Box<str>>,
    types: Vec<Box<str>>,
    marks: Vec<Box<str>>,
    roles: Table<Role>,
    keys: Table<Keys>,
    /// In lower case, each at most `LONGEST_KEY` bytes long.
    values: Words<WordSet>,
    words: Words<WordSet>,
    /// The operation that a word of a key, a value or a name states, in its base form.
    effects: Table<Operation>,
    /// The programs that get the commands of tools named after a database.
    pub(super) clients: Words<String>,
    /// Phrases in descriptions that address the agent.
    pub(crate) poison: Vec<Box<str>>,
    pub(crate) openings: Vec<Box<str>>,
    /// Verbs that make a secret's path an instruction.
    pub(crate) takes: Vec<Box<str>>,
    http: Vec<Box<str>>,
}

/// Returns the built-in knowledge. A test ensures that it parses.
pub(crate) fn tools() -> &'static Tools {
    static TOOLS: LazyLock<Tools> =
        LazyLock::new(|| Tools::read(include_str!("../data/tools.toml")).unwrap_or_default());
    &TOOLS
}

impl Tools {
    pub(super) fn part(&self, key: &str) -> Option<Part> {
        self.parts.get(key).copied()
    }

    pub(super) fn wraps(&self, key: &str) -> bool {
        holds(&self.wrappers, key)
    }

    pub(super) fn nests(&self, key: &str) -> bool {
        holds(&self.nested, key)
    }

    pub(super) fn is_call_type(&self, word: &str) -> bool {
        holds(&self.types, word)
    }

    pub(super) fn is_http_method(&self, word: &str) -> bool {
        self.http.iter().any(|known| known.eq_ignore_ascii_case(word))
    }

    /// Returns whether a text that is not JSON contains a key of a call.
    pub(super) fn marks_call(&self, text: &str) -> bool {
        self.marks.iter().any(|mark| {
            text.match_indices(&**mark).any(|(at, _)| {
                let before = text.get(..at).and_then(|before| before.chars().next_back());
                let after = text.get(at + mark.len()..).unwrap_or("");
                let after = after.strip_prefix(['"', '\'']).unwrap_or(after).trim_start();
                before.is_none_or(|c| !c.is_alphanumeric() && c != '_') && after.starts_with(':')
            })
        })
    }

    /// The role of an argument: by its whole key, or by the key's last word.
    pub(crate) fn role(&self, key: &str) -> Option<Role> {
        let mut whole = [0_u8; LONGEST_KEY];
        if let Some(role) = squeezed(key, &mut whole).and_then(|key| self.roles.get(key)) {
            return Some(*role);
        }
        // "file_content" is content and "recipient_email" a recipient; a first word says too little.
        let mut word = [0_u8; LONGEST_KEY];
        key_words(key).last().and_then(|last| squeezed(last, &mut word)).and_then(|last| self.roles.get(last)).copied()
    }

    /// The meanings of a key besides its role.
    pub(super) fn keys(&self, key: &str) -> Keys {
        let mut whole = [0_u8; LONGEST_KEY];
        squeezed(key, &mut whole).and_then(|key| self.keys.get(key)).copied().unwrap_or_default()
    }

    /// Returns whether a list of values contains this one, ignoring case.
    pub(super) fn value(&self, list: &str, text: &str) -> bool {
        let mut buffer = [0_u8; LONGEST_KEY];
        let trimmed = text.trim();
        let Some(lower) = buffer.get_mut(..trimmed.len()) else { return false };
        lower.copy_from_slice(trimmed.as_bytes());
        lower.make_ascii_lowercase();
        let Ok(lower) = std::str::from_utf8(lower) else { return false };
        self.values.get(list).is_some_and(|values| values.contains(lower))
    }

    /// Returns whether a list of name words contains this one.
    pub(crate) fn name_word(&self, list: &str, word: &str) -> bool {
        self.words.get(list).is_some_and(|words| words.contains(word))
    }

    /// The operation that a word of a key, a value or a name states: "archived" archives, "cancelled" cancels.
    pub(super) fn effect(&self, word: &str) -> Option<Operation> {
        let past = word.strip_suffix("ed");
        let doubled = past.and_then(|stem| {
            let (last, before) = (stem.chars().next_back()?, stem.get(..stem.len().checked_sub(1)?)?);
            before.ends_with(last).then_some(before)
        });
        let stems =
            [Some(word), word.strip_suffix('d'), past, doubled, word.strip_suffix("ing"), word.strip_suffix('s')];
        stems.into_iter().flatten().find_map(|stem| self.effects.get(stem)).copied()
    }

    fn read(text: &str) -> Result<Self, String> {
        let text: ToolsText = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut tools = Self {
            wrappers: listed(text.shape.get("wrapper")),
            nested: listed(text.shape.get("nested")),
            types: listed(text.shape.get("types")),
            marks: listed(text.shape.get("marks")),
            http: listed(text.shape.get("http")),
            clients: text.clients.clone(),
            poison: phrases(text.poison.get("phrases")),
            takes: listed(text.poison.get("takes")),
            openings: phrases(text.poison.get("openings")),
            values: text.values.iter().map(|(name, words)| (name.clone(), set(&words.to_ascii_lowercase()))).collect(),
            words: text.names.iter().map(|(name, words)| (name.clone(), set(words))).collect(),
            ..Self::default()
        };
        for (list, part) in [
            ("beside", Part::Beside),
            ("arguments", Part::Arguments),
            ("weak_name", Part::WeakName),
            ("name", Part::Name),
        ] {
            for key in listed(text.shape.get(list)) {
                tools.parts.insert(key, part);
            }
        }
        for (role, keys) in &text.roles {
            tools.roles.extend(keys.split_whitespace().map(|key| (squeeze(key).into(), *role)));
        }
        for (key, names) in &text.keys {
            for name in names.split_whitespace() {
                tools.keys.entry(squeeze(name).into()).or_default().0 |= 1 << *key as u16;
            }
        }
        for (operation, words) in &text.effects {
            let operation = operation.parse().map_err(|error: rulekeep_types::InvalidValue| error.to_string())?;
            tools.effects.extend(words.split_whitespace().map(|word| (word.into(), operation)));
        }
        Ok(tools)
    }
}

/// The tool's own part of a name: `mcp__server__tool`, `server.tool`, `functions.tool`, `Service_1_Tool`.
pub(crate) fn own_part(name: &str) -> Option<&str> {
    // The last `__` takes precedence over the other marks: `mcp__server__x.y` is x.y.
    let (mut double, mut slash, mut colon, mut dot, mut number) = (None, None, None, None, None);
    let mut before = b' ';
    let mut is_number = false;
    for (at, byte) in name.bytes().enumerate() {
        match byte {
            b'_' if before == b'_' => double = Some(at + 1),
            b'_' if is_number && before.is_ascii_digit() => number = Some(at + 1),
            b'/' => slash = Some(at + 1),
            b':' => colon = Some(at + 1),
            b'.' => dot = Some(at + 1),
            _ => {}
        }
        is_number = byte == b'_' || is_number && byte.is_ascii_digit();
        before = byte;
    }
    name.get(double.or(slash).or(colon).or(dot).or(number)?..).filter(|part| !part.is_empty())
}

/// The words of a key: `recipientEmail`, `recipient_email`.
pub(super) fn key_words(key: &str) -> impl Iterator<Item = &str> {
    let mut rest = key;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
        let mut was_lower = false;
        let end = rest
            .char_indices()
            .find(|&(_, c)| {
                let ends = !c.is_alphanumeric() || c.is_uppercase() && was_lower;
                was_lower = c.is_lowercase();
                ends
            })
            .map_or(rest.len(), |(place, _)| place);
        let (word, after) = rest.split_at_checked(end)?;
        rest = after;
        Some(word).filter(|word| !word.is_empty())
    })
}

/// A key without case, `_`, `-` and similar marks; `None` if it is too long to be known.
pub(super) fn squeezed<'b>(key: &str, buffer: &'b mut [u8; LONGEST_KEY]) -> Option<&'b str> {
    let mut length = 0;
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() {
            *buffer.get_mut(length)? = byte.to_ascii_lowercase();
            length += 1;
        } else if !byte.is_ascii() {
            return None;
        }
    }
    std::str::from_utf8(buffer.get(..length)?).ok().filter(|key| !key.is_empty())
}

pub(super) fn squeeze(key: &str) -> String {
    key.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn listed(words: Option<&String>) -> Vec<Box<str>> {
    words.map_or_else(Vec::new, |words| words.split_whitespace().map(Into::into).collect())
}

fn set(words: &str) -> WordSet {
    words.split_whitespace().map(str::to_owned).collect()
}

fn phrases(text: Option<&String>) -> Vec<Box<str>> {
    text.map_or_else(Vec::new, |text| {
        text.split(';').map(str::trim).filter(|phrase| !phrase.is_empty()).map(Into::into).collect()
    })
}

fn holds(list: &[Box<str>], word: &str) -> bool {
    list.iter().any(|known| **known == *word)
}

/// The layout of the TOML file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolsText {
    shape: BTreeMap<String, String>,
    roles: BTreeMap<Role, String>,
    keys: BTreeMap<Key, String>,
    values: BTreeMap<String, String>,
    names: BTreeMap<String, String>,
    effects: BTreeMap<String, String>,
    poison: BTreeMap<String, String>,
    clients: Words<String>,
}

/// Maximum length of a known key or name, in bytes without its marks.
pub(super) const LONGEST_KEY: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_reads() {
        Tools::read(include_str!("../data/tools.toml")).unwrap();
    }

    #[test]
    fn an_argument_is_known_in_every_spelling_and_by_its_last_word() {
        for (key, role) in [
            ("file_path", Some(Role::Path)),
            ("filePath", Some(Role::Path)),
            ("recipientEmail", Some(Role::Recipient)),
            ("to_iban", Some(Role::Recipient)),
            ("commit-message", Some(Role::Content)),
            ("shellCommand", Some(Role::Command)),
            ("draft_body", Some(Role::Content)),
            ("zzz", None),
        ] {
            assert_eq!(tools().role(key), role, "{key}");
        }
    }
}
