//! Tools known by name, from `data/hosts.toml`: the built-in tools of agent hosts, with the role of each argument, and
//! tools that many servers share.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::reading::Act;
use crate::table::Table;
use rulekeep_types::{Operation, Resource, RiskLevel};

use super::tools::{LONGEST_KEY, own_part, squeeze, squeezed};

/// The kind of argument that determines what a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Through {
    Command,
    Code,
    Sql,
    Http,
    Request,
    Verb,
}

/// The role of an argument in the row of its tool. `data/hosts.toml` explains each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Use {
    Read,
    Write,
    Remove,
    Patch,
    Command,
    Code,
    Content,
    Pattern,
    Query,
    Url,
    Request,
    Words,
    Choice,
    Verb,
}

/// A tool that is known by name.
#[derive(Debug)]
pub(crate) struct Known {
    pub act: Act,
    pub through: Option<Through>,
    verbs: Vec<(Box<str>, Resource, Operation)>,
    arguments: Table<Use>,
    needs: Vec<Box<str>>,
    is_host: bool,
}

impl Known {
    /// The effect of the tool with this verb.
    pub(super) fn under(&self, verb: &str) -> Option<(Resource, Operation)> {
        self.verbs.iter().find(|(known, ..)| **known == *verb).map(|&(_, resource, operation)| (resource, operation))
    }

    /// The role of an argument, by its key.
    pub(super) fn argument(&self, key: &str) -> Option<Use> {
        let mut buffer = [0_u8; LONGEST_KEY];
        squeezed(key, &mut buffer).and_then(|key| self.arguments.get(key)).copied()
    }

    /// Returns whether a call with these arguments can be meant.
    pub(super) fn fits(&self, keys: impl Fn() -> Vec<String>) -> bool {
        let is_needed = |key: &String| self.needs.iter().any(|needed| **needed == *squeeze(key));
        self.needs.is_empty() || keys().iter().any(is_needed)
    }
}

/// The rows, indexed by name.
#[derive(Debug, Default)]
struct Rows {
    rows: Vec<Known>,
    names: Table<Entry>,
}

/// A name in the table.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// The place of its row.
    place: usize,
    /// The name is a single word, and so is known only if it stands alone.
    is_word: bool,
    /// The name is that of a server and its tool.
    has_server: bool,
}

/// Returns the tool with this name, in any spelling. A tool of a server is never a host's own tool, except for the
/// servers that a row names.
pub(crate) fn known(name: &str, server: Option<&str>) -> Option<&'static Known> {
    let find = |name: &str| {
        let mut buffer = [0_u8; LONGEST_KEY];
        let entry = squeezed(name, &mut buffer).and_then(|name| ROWS.names.get(name))?;
        ROWS.rows.get(entry.place).map(|known| (known, *entry))
    };
    let server = server.filter(|server| !server.is_empty());
    if let Some(server) = server
        && let Some((known, _)) = find(&format!("{server}__{name}")).filter(|(_, entry)| entry.has_server)
    {
        return Some(known);
    }
    if let Some((known, _)) = find(name).filter(|(known, _)| server.is_none() || !known.is_host) {
        return Some(known);
    }
    // "users.read" is not "read"; "functions.read" and "x.bash" are "read" and "bash".
    let own = own_part(name)?;
    let is_bare = name.len() > own.len() && BARE_SERVERS.iter().any(|server| name.starts_with(server));
    let is_meant = |(known, entry): &(&Known, Entry)| {
        let is_told = known.through.is_some_and(|through| through != Through::Request);
        is_bare || !known.is_host && (!entry.is_word || is_told)
    };
    find(own).filter(is_meant).map(|(known, _)| known)
}

// A test ensures that the file parses.
static ROWS: LazyLock<Rows> = LazyLock::new(|| Rows::read(include_str!("../data/hosts.toml")).unwrap_or_default());

impl Rows {
    fn read(text: &str) -> Result<Self, String> {
        let text: Text = toml::from_str(text).map_err(|error| error.to_string())?;
        let mut rows = Self::default();
        for row in &text.tools {
            let place = rows.rows.len();
            rows.rows.push(row.known()?);
            for name in row.names.split_whitespace() {
                let is_word = name.bytes().all(|byte| byte.is_ascii_lowercase());
                let entry = Entry { place, is_word, has_server: name.contains("__") };
                if rows.names.insert(squeeze(name).into(), entry).is_some() {
                    return Err(format!("two rows name {name:?}"));
                }
            }
        }
        Ok(rows)
    }
}

/// The layout of the TOML file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    tools: Vec<RowText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RowText {
    names: String,
    does: String,
    verb: String,
    noun: String,
    risk: Option<RiskLevel>,
    through: Option<Through>,
    #[serde(default)]
    verbs: String,
    #[serde(default)]
    arguments: BTreeMap<Use, String>,
    #[serde(default)]
    needs: String,
    #[serde(default)]
    host: bool,
}

impl RowText {
    fn known(&self) -> Result<Known, String> {
        let (resource, operation) = capability(&self.does)?;
        let verbs = self.verbs.split_whitespace().map(|pair| {
            let (verb, does) =
                pair.split_once('=').ok_or_else(|| format!("{pair:?} is not of the form verb=capability"))?;
            capability(does).map(|(resource, operation)| (verb.into(), resource, operation))
        });
        let mut arguments = Table::default();
        for (role, keys) in &self.arguments {
            for key in keys.split_whitespace() {
                if arguments.insert(squeeze(key).into(), *role).is_some() {
                    return Err(format!("{key:?} has two roles in the row of {:?}", self.names));
                }
            }
        }
        let act = Act::new(&self.verb, &self.noun, resource, operation, 0.9);
        Ok(Known {
            act: Act { risk: self.risk, ..act },
            through: self.through,
            verbs: verbs.collect::<Result<_, String>>()?,
            arguments,
            needs: self.needs.split_whitespace().map(|key| squeeze(key).into()).collect(),
            is_host: self.host,
        })
    }
}

fn capability(text: &str) -> Result<(Resource, Operation), String> {
    let (resource, operation) = text.split_once(':').ok_or_else(|| format!("{text:?} is not a capability"))?;
    let wrong = |error: rulekeep_types::InvalidValue| error.to_string();
    Ok((resource.parse().map_err(wrong)?, operation.parse().map_err(wrong)?))
}

/// Prefixes that do not name a server.
const BARE_SERVERS: &[&str] = &["functions.", "default_api", "tools."];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_read() {
        Rows::read(include_str!("../data/hosts.toml")).unwrap();
    }

    #[test]
    fn common_tools_are_known_behind_a_server() {
        for name in ["bash", "Bash", "mcp__desktop__execute_command", "functions.run_terminal_cmd", "runTerminalCmd"] {
            assert_eq!(known(name, None).and_then(|known| known.through), Some(Through::Command), "{name}");
        }
        assert_eq!(known("shell", Some("developer")).and_then(|known| known.through), Some(Through::Command));
        assert!(known("send_email", None).is_none());
    }

    #[test]
    fn a_servers_tool_is_not_a_hosts_own() {
        assert!(known("AskUserQuestion", None).is_some());
        for (name, server) in [("mcp__x__AskUserQuestion", None), ("AskUserQuestion", Some("x")), ("users.tree", None)]
        {
            assert!(known(name, server).is_none(), "{name}");
        }
    }

    #[test]
    fn an_argument_is_known_by_its_key_in_every_spelling() {
        for (tool, key, role) in [
            ("Read", "file_path", Some(Use::Read)),
            ("read", "filePath", Some(Use::Read)),
            ("NotebookEdit", "new_source", Some(Use::Content)),
            ("apply_patch", "patchText", Some(Use::Patch)),
            ("Grep", "pattern", Some(Use::Query)),
            ("Read", "other", None),
        ] {
            assert_eq!(known(tool, None).unwrap().argument(key), role, "{tool} {key}");
        }
    }
}
