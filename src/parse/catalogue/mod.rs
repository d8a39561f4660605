//! The catalogue: the tools that a runtime handed over, each classified once, so
//! that a call resolves by name at once.
//!
//! It takes in definitions (MCP, `OpenAI`, Anthropic, Gemini, or a plain list) and
//! an operator's overrides and pins, and hands out the acts of a tool by its name.
//! A catalogue is never changed: each load makes another one, so that a parse in
//! flight finishes on the one it began with. It promises that a definition, its
//! hints included, can raise what a tool's name says and never lower it, and that
//! another definition under a known name is noticed.
//!
//! | file | subject |
//! |---|---|
//! | `load.rs` | the forms of definitions, and their limits |
//! | `classify.rs` | from a definition to acts |
//! | `description.rs` | what a description says that the tool does |
//! | `beside.rs` | the further verbs of its sentences |
//! | `poison.rs` | descriptions that speak to the agent |
//! | `entry.rs` | one tool's state: accepted, changed, pinned, overridden |

mod beside;
mod classify;
mod description;
mod entry;
mod load;
mod poison;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use crate::model::{CatalogueReport, Error, ToolClassification, ToolOverride};

use super::format::ToolIndex;
use super::lexicon::Lexicon;
use entry::Entry;

fn unknown(name: &str) -> Error {
    Error::input("name", format!("there is no tool {} in the catalogue", load::shown(name)))
}

/// The tools that are known by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Catalogue {
    entries: Vec<Arc<Entry>>,
    index: ToolIndex,
}

impl Catalogue {
    /// The tools by name, for calls.
    pub(super) fn index(&self) -> &ToolIndex {
        &self.index
    }

    /// The catalogue with the definitions of one load in it, or nothing of them.
    pub(super) fn load(
        &self,
        definitions: &Value,
        server: Option<&str>,
        lexicon: &Lexicon,
    ) -> Result<(Self, CatalogueReport), Error> {
        let definitions = load::definitions(definitions, server)?;
        let mut entries = self.entries.clone();
        let mut places: HashMap<(Option<Box<str>>, Box<str>), usize> =
            entries.iter().enumerate().map(|(place, entry)| (entry.key(), place)).collect();
        let mut report = CatalogueReport { tools: Vec::new(), added: 0, unchanged: 0, changed: Vec::new(), total: 0 };
        for definition in &definitions {
            let key = (server.map(Into::into), definition.name.into());
            let entry = match places.get(&key).and_then(|&place| entries.get_mut(place)) {
                Some(known) if known.is_of(definition.digest) => {
                    report.unchanged += 1;
                    Arc::clone(known)
                }
                Some(known) => {
                    *known = Arc::new(known.redefined(definition, lexicon));
                    Arc::clone(known)
                }
                None => {
                    report.added += 1;
                    places.insert(key, entries.len());
                    let entry = Arc::new(Entry::new(definition, lexicon));
                    entries.push(Arc::clone(&entry));
                    entry
                }
            };
            if entry.is_changed() {
                report.changed.push(definition.name.to_owned());
            }
            report.tools.push(entry.classification().clone());
        }
        if entries.len() > load::MOST_TOOLS {
            return Err(load::too_many(entries.len()));
        }
        report.total = entries.len();
        Ok((Self::of(entries), report))
    }

    /// The catalogue in which one tool is what an operator says.
    pub(crate) fn overridden(&self, name: &str, given: ToolOverride) -> Result<(Self, ToolClassification), Error> {
        let server = given.server.clone();
        self.with_entry(name, server.as_deref(), |entry| entry.overridden(given))
    }

    /// The catalogue in which one tool's present classification is pinned, or no longer.
    pub(crate) fn pinned(
        &self,
        name: &str,
        server: Option<&str>,
        is_pinned: bool,
    ) -> Result<(Self, ToolClassification), Error> {
        self.with_entry(name, server, |entry| Ok(entry.pinned(is_pinned)))
    }

    /// Every tool, in the order of its first load.
    pub(crate) fn list(&self) -> Vec<ToolClassification> {
        self.entries.iter().map(|entry| entry.classification().clone()).collect()
    }

    fn with_entry(
        &self,
        name: &str,
        server: Option<&str>,
        change: impl FnOnce(&Entry) -> Result<Entry, Error>,
    ) -> Result<(Self, ToolClassification), Error> {
        let place = self.place(name, server)?;
        let mut entries = self.entries.clone();
        let Some(entry) = entries.get_mut(place) else { return Err(unknown(name)) };
        *entry = Arc::new(change(entry)?);
        let classification = entry.classification().clone();
        Ok((Self::of(entries), classification))
    }

    /// The one tool of that name, by any form in which a call may name it.
    fn place(&self, name: &str, server: Option<&str>) -> Result<usize, Error> {
        let places = |fits: &dyn Fn(&Entry) -> bool| -> Vec<usize> {
            self.entries.iter().enumerate().filter(|(_, entry)| fits(entry)).map(|(place, _)| place).take(2).collect()
        };
        let of_server = |entry: &Entry| server.is_none() || entry.server() == server;
        let mut named = places(&|entry| entry.name() == name && of_server(entry));
        if named.is_empty() {
            named = places(&|entry| entry.answers_to(name) && of_server(entry));
        }
        match (named.as_slice(), server) {
            ([place], _) => Ok(*place),
            ([_, ..], _) => {
                let message = format!("several servers have a tool {}; expected which", load::shown(name));
                Err(Error::input("server", message))
            }
            ([], Some(given)) => {
                let elsewhere = self.entries.iter().find(|entry| entry.name() == name || entry.answers_to(name));
                Err(elsewhere.map_or_else(
                    || unknown(name),
                    |entry| {
                        let known = entry.server().map_or_else(
                            || "was loaded without a server".to_owned(),
                            |known| format!("is one of the server {}", load::shown(known)),
                        );
                        let message = format!("the tool {} {known}, not of {}", load::shown(name), load::shown(given));
                        Error::input("server", message)
                    },
                ))
            }
            ([], None) => Err(unknown(name)),
        }
    }

    /// The catalogue without one tool.
    pub(crate) fn removed(&self, name: &str, server: Option<&str>) -> Result<(Self, ToolClassification), Error> {
        let place = self.place(name, server)?;
        let mut entries = self.entries.clone();
        let entry = entries.remove(place);
        Ok((Self::of(entries), entry.classification().clone()))
    }

    fn of(entries: Vec<Arc<Entry>>) -> Self {
        let mut index = ToolIndex::default();
        for entry in &entries {
            index.push(entry.names(), entry.tool());
        }
        Self { entries, index }
    }
}
