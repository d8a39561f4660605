//! The catalogue: the tools that a runtime registered, each classified once, so that a call resolves by name.
//!
//! Its input is tool definitions (MCP, `OpenAI`, Anthropic, Gemini or a plain list) and an operator's overrides and
//! pins; its output is the acts of a tool by name. A catalogue is immutable: each load creates a new one, so that a
//! parse in flight finishes on the one it started with. It guarantees that a definition, including its hints, can
//! raise but never lower what the tool's name implies, and that a changed definition under a known name is noticed,
//! also against an operator's ruling of an earlier run.
//!
//! | file | subject |
//! |---|---|
//! | `load.rs` | the formats of definitions, and their limits |
//! | `classify.rs` | from a definition to acts |
//! | `description.rs` | the acts that a description states |
//! | `poison.rs` | descriptions that address the agent |
//! | `entry.rs` | the state of a tool: accepted, changed, pinned, overridden |
//! | `resemble.rs` | tools that resemble an accepted one |
//! | `ruling.rs` | an operator's pin or override, as stored in the log |

use rulekeep_types::parts::CatalogueReportParts;
mod classify;
mod description;
mod entry;
mod load;
pub(super) mod poison;
mod resemble;
mod ruling;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use rulekeep_types::{Capability, CatalogueReport, Error, ToolAct, ToolChange, ToolClassification};

use super::format::ToolIndex;
use super::learned::relevance::Relevance;
use super::lexicon::Lexicon;
use entry::Entry;
pub use ruling::ToolRuling;
use ruling::{ToolKey, key_text};

/// The tools by name.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    entries: Vec<Arc<Entry>>,
    /// INVARIANT: places in the index are places in `entries`.
    index: ToolIndex,
    /// Rulings on tools that have not been loaded since the store was opened.
    waiting: Arc<HashMap<ToolKey, ToolRuling>>,
    /// Data for relevance, built at the first request after a change.
    relevance: OnceLock<Arc<Relevance>>,
}

/// A tool of the catalogue with its relevance to a request.
#[derive(Debug, Clone)]
pub struct RatedTool {
    /// The relevance of the tool to the request.
    pub score: f64,
    /// The capabilities that a call needs if its arguments add nothing.
    pub capabilities: Vec<Capability>,
    /// The tool only reads.
    pub is_read: bool,
    /// The definition addresses the agent.
    pub is_poisoned: bool,
}

/// A new catalogue, and the changes to the operator's rulings.
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct Ruled<T> {
    pub catalogue: Catalogue,
    pub answer: T,
    /// The changed rulings by key; `None` if a tool no longer has one.
    pub rulings: Vec<(String, Option<ToolRuling>)>,
}

impl Catalogue {
    /// Creates a catalogue without tools, with rulings for tools that may be loaded later.
    pub fn of_rulings(rulings: impl IntoIterator<Item = ToolRuling>) -> Self {
        let waiting = rulings.into_iter().map(|ruling| (ruling.tool_key(), ruling)).collect();
        Self { waiting: Arc::new(waiting), ..Self::default() }
    }

    /// The tools by name, for calls.
    pub(super) fn index(&self) -> &ToolIndex {
        &self.index
    }

    /// Rates the relevance of every tool to a request, in catalogue order.
    pub(crate) fn rated(&self, request: &str, lexicon: &Lexicon) -> Vec<RatedTool> {
        let make = || Arc::new(Relevance::of(self.entries.iter().map(|entry| entry.text()), lexicon));
        let scores = self.relevance.get_or_init(make).scores(request, lexicon);
        let rated = |(entry, score): (&Arc<Entry>, f64)| RatedTool {
            score,
            capabilities: entry.classification().capabilities.clone(),
            is_read: entry.is_read(),
            is_poisoned: entry.is_poisoned(),
        };
        self.entries.iter().zip(scores).map(rated).collect()
    }

    /// Returns whether a tool's schema lists a value for an argument.
    pub fn offers(&self, tool: &str, argument: &str, value: &str) -> bool {
        let mut entries = self.places(tool).iter().filter_map(|place| self.entries.get(*place));
        entries.any(|entry| entry.offers(argument, value))
    }

    /// The places in the catalogue of the tools with this name.
    pub fn places(&self, name: &str) -> &[usize] {
        self.index.places(name)
    }

    /// Returns the catalogue with the definitions of a load added, all or none of them.
    pub(super) fn load(
        &self,
        definitions: &Value,
        server: Option<&str>,
        lexicon: &Lexicon,
    ) -> Result<(Self, CatalogueReport), Error> {
        let definitions = load::definitions(definitions, server)?;
        let mut next = self.clone();
        let mut report = CatalogueReport::from(CatalogueReportParts {
            tools: Vec::new(),
            added: 0,
            unchanged: 0,
            changed: Vec::new(),
            total: 0,
            resembling: Vec::new(),
        });
        for definition in &definitions {
            let known = next.place_of(definition.name, server);
            let entry = match known.and_then(|place| Some((place, next.entries.get(place)?))) {
                Some((_, known)) if known.is_of(definition.digest) => {
                    report.unchanged += 1;
                    Arc::clone(known)
                }
                Some((place, known)) => {
                    let entry = Arc::new(known.redefined(definition, lexicon));
                    next.replace(place, Arc::clone(&entry));
                    entry
                }
                None => {
                    report.added += 1;
                    let ruling = next.take_waiting(&(server.map(Into::into), definition.name.into()));
                    let entry = Arc::new(Entry::new(definition, ruling, lexicon));
                    next.push(Arc::clone(&entry));
                    entry
                }
            };
            if entry.is_changed() {
                report.changed.push(definition.name.to_owned());
            }
            report.tools.push(entry.classification().clone());
        }
        if next.entries.len() > load::MOST_TOOLS {
            return Err(load::too_many(next.entries.len()));
        }
        report.total = next.entries.len();
        report.resembling = resemble::find(&definitions, &next.accepted());
        Ok((next, report))
    }

    /// Every tool that an operator pinned or overrode, loaded or not.
    fn accepted(&self) -> Vec<resemble::Known<'_>> {
        let waiting = self.waiting.values().map(ToolRuling::as_accepted);
        self.entries.iter().filter_map(|entry| entry.as_accepted()).chain(waiting).collect()
    }

    /// Returns the catalogue with an operator's changes applied, all or none of them.
    pub fn changed(&self, changes: &[ToolChange]) -> Result<Ruled<Vec<ToolClassification>>, Error> {
        let mut next = self.clone();
        let mut touched = BTreeSet::new();
        let mut answer = Vec::with_capacity(changes.len());
        for (number, change) in (1..).zip(changes) {
            let changed =
                next.change(change).map_err(|error| if changes.len() > 1 { nth(number, error) } else { error });
            let (place, classification) = changed?;
            touched.insert(place);
            answer.push(classification);
        }
        let ruling = |catalogue: &Self, place: usize| catalogue.entries.get(place).and_then(|entry| entry.ruling());
        let rulings = touched.into_iter().filter_map(|place| {
            let (before, after) = (ruling(self, place), ruling(&next, place));
            let entry = next.entries.get(place).filter(|_| before != after)?;
            Some((key_text(entry.server(), entry.name()), after))
        });
        let rulings = rulings.collect();
        Ok(Ruled { catalogue: next, answer, rulings })
    }

    /// Returns the catalogue without one tool and its ruling. The tool need not be loaded.
    pub fn removed(&self, name: &str, server: Option<&str>) -> Result<Ruled<ToolClassification>, Error> {
        let mut next = Self { waiting: Arc::clone(&self.waiting), ..Self::default() };
        let (entry, ruling) = match self.place(name, server) {
            Ok(place) => {
                let others = self.entries.iter().enumerate().filter(|(other, _)| *other != place);
                others.for_each(|(_, entry)| next.push(Arc::clone(entry)));
                let entry = self.entries.get(place).cloned().ok_or_else(|| unknown(name))?;
                let ruling = entry.ruling();
                (entry, ruling)
            }
            Err(error) => {
                let ruling = next.take_waiting(&(server.map(Into::into), name.into())).ok_or(error)?;
                next.entries.clone_from(&self.entries);
                next.index.clone_from(&self.index);
                (Arc::new(Entry::of_ruling(ruling.clone())), Some(ruling))
            }
        };
        let rulings = ruling.map(|ruling| (ruling.key(), None)).into_iter().collect();
        Ok(Ruled { catalogue: next, answer: entry.classification().clone(), rulings })
    }

    /// Every tool, in the order of its first load.
    pub fn list(&self) -> Vec<ToolClassification> {
        self.entries.iter().map(|entry| entry.classification().clone()).collect()
    }

    /// Every ruling in force.
    pub fn rulings(&self) -> impl Iterator<Item = ToolRuling> {
        self.entries.iter().filter_map(|entry| entry.ruling()).chain(self.waiting.values().cloned())
    }

    fn change(&mut self, change: &ToolChange) -> Result<(usize, ToolClassification), Error> {
        let place = self.place(&change.name, change.server.as_deref())?;
        let entry = self.entries.get(place).ok_or_else(|| unknown(&change.name))?;
        let entry = Arc::new(match &change.act {
            ToolAct::Pin => entry.pinned(true),
            ToolAct::Unpin => entry.pinned(false),
            ToolAct::Override(given) => entry.overridden(given)?,
        });
        let classification = entry.classification().clone();
        self.replace(place, entry);
        Ok((place, classification))
    }

    fn push(&mut self, entry: Arc<Entry>) {
        self.relevance = OnceLock::new();
        self.index.push(entry.names(), entry.tool());
        self.entries.push(entry);
    }

    fn replace(&mut self, place: usize, entry: Arc<Entry>) {
        if let Some(known) = self.entries.get_mut(place) {
            self.relevance = OnceLock::new();
            self.index.replace(place, entry.tool());
            *known = entry;
        }
    }

    fn take_waiting(&mut self, key: &ToolKey) -> Option<ToolRuling> {
        if self.waiting.contains_key(key) { Arc::make_mut(&mut self.waiting).remove(key) } else { None }
    }

    /// The tool with exactly this name and server.
    fn place_of(&self, name: &str, server: Option<&str>) -> Option<usize> {
        let is_it = |entry: &Arc<Entry>| entry.name() == name && entry.server() == server;
        self.index.places(name).iter().copied().find(|place| self.entries.get(*place).is_some_and(is_it))
    }

    /// The single tool with this name, in any form that a call may use.
    fn place(&self, name: &str, server: Option<&str>) -> Result<usize, Error> {
        let known = || self.index.places(name).iter().filter_map(|place| Some((*place, self.entries.get(*place)?)));
        let of_server = |(_, entry): &(usize, &Arc<Entry>)| server.is_none() || entry.server() == server;
        let mut named: Vec<usize> = known()
            .filter(of_server)
            .filter(|(_, entry)| entry.name() == name)
            .map(|(place, _)| place)
            .take(2)
            .collect();
        if named.is_empty() {
            named = known().filter(of_server).map(|(place, _)| place).take(2).collect();
        }
        match (named.as_slice(), server) {
            ([place], _) => Ok(*place),
            ([_, ..], _) => {
                let message = format!("several servers have a tool {}; name the server", load::shown(name));
                Err(Error::input("server", message))
            }
            ([], Some(given)) => Err(known().next().map_or_else(
                || unknown(name),
                |(_, entry)| {
                    let known = entry.server().map_or_else(
                        || "was loaded without a server".to_owned(),
                        |known| format!("is one of the server {}", load::shown(known)),
                    );
                    let message = format!("the tool {} {known}, not of {}", load::shown(name), load::shown(given));
                    Error::input("server", message)
                },
            )),
            ([], None) => Err(unknown(name)),
        }
    }
}

fn unknown(name: &str) -> Error {
    Error::input("name", format!("there is no tool {} in the catalogue", load::shown(name)))
}

/// Adds the position to the error of one of several changes.
fn nth(number: usize, error: Error) -> Error {
    match error {
        Error::InvalidInput { field, message } => Error::input(field, format!("tool {number}: {message}")),
        error => error,
    }
}
