//! The problems of a document with their positions, and checks of its values.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::str::FromStr;

use serde_json::{Map, Value as Json};

use super::nearest::did_you_mean;
use super::place::Lines;
use super::tree::{Field, Node, Value};
use crate::{Problem, Severity, excerpt, hides_or_breaks};

/// Collects the problems of a document while it is read.
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct Report<'a> {
    #[doc(hidden)]
    pub lines: Lines<'a>,
    pub problems: Vec<Problem>,
    /// The rule or other item being read, as named in messages.
    pub rule: Option<String>,
}

impl<'a> Report<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        Self { lines: Lines::of(text), problems: Vec::new(), rule: None }
    }

    /// Sets the item that the next problems belong to, such as `rule "a"`; `None` for the document itself.
    pub fn reading(&mut self, item: Option<String>) {
        self.rule = item;
    }

    /// Returns the number of problems so far.
    pub fn count(&self) -> usize {
        self.problems.len()
    }

    /// Returns the line of a byte offset, counted from 1.
    pub fn line_of(&self, at: usize) -> usize {
        self.lines.place(at).0
    }

    /// Returns whether an error was found, ignoring warnings.
    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// Returns whether further errors would be dropped.
    pub fn is_full(&self) -> bool {
        self.problems.iter().filter(|problem| problem.severity == Severity::Error).count() >= MAX_PROBLEMS
    }

    /// Adds an error at a byte offset, about a field such as `match.risk`.
    pub fn error(&mut self, at: usize, field: &str, message: impl Display) {
        self.add(at, field, Severity::Error, &message);
    }

    /// Adds a warning at a byte offset, about a field such as `match.risk`.
    pub fn warn(&mut self, at: usize, field: &str, message: impl Display) {
        self.add(at, field, Severity::Warning, &message);
    }

    /// Adds a problem, up to a limit per severity: nobody reads hundreds of messages.
    fn add(&mut self, at: usize, field: &str, severity: Severity, message: &dyn Display) {
        if self.problems.iter().filter(|problem| problem.severity == severity).count() >= MAX_PROBLEMS {
            return;
        }
        let (line, column) = self.lines.place(at);
        let context = match (&self.rule, field.is_empty()) {
            (Some(rule), true) => format!(" ({rule})"),
            (Some(rule), false) => format!(" ({rule}, {field})"),
            (None, _) => String::new(),
        };
        self.problems.push(Problem::new(line, column, severity, format!("{message}{context}")));
    }

    /// Returns the items of a list; if the node is not a list, reports an error and returns none.
    pub fn list(&mut self, node: Node, field: &str) -> Vec<Node> {
        let (at, kind) = (node.at, node.kind());
        let Value::List(items) = node.value else {
            self.error(at, field, format!("expected a list, found {kind}"));
            return Vec::new();
        };
        items
    }

    /// Returns the fields of a table with freely chosen names; `expected` describes its content in the message.
    pub fn table(&mut self, node: Node, field: &str, expected: &str) -> Vec<Field> {
        let (at, kind) = (node.at, node.kind());
        let Value::Table(fields) = node.value else {
            self.error(at, field, format!("expected {expected}, found {kind}"));
            return Vec::new();
        };
        fields
    }

    /// Returns the items of a list; reports an error if it is empty.
    pub fn filled_list(&mut self, node: Node, field: &str) -> Vec<Node> {
        let at = node.at;
        let before = self.problems.len();
        let items = self.list(node, field);
        if items.is_empty() && self.problems.len() == before {
            self.error(at, field, "an empty list matches nothing; omit the field to match anything");
        }
        items
    }

    /// Reads a non-empty list as a set: sorted, without duplicates.
    pub fn set<T: Ord>(
        &mut self,
        node: Node,
        field: &str,
        mut read: impl FnMut(Node, &str, &mut Self) -> Option<T>,
    ) -> Vec<T> {
        let items = self.filled_list(node, field).into_iter();
        let set: BTreeSet<T> = items.filter_map(|item| read(item, field, self)).collect();
        set.into_iter().collect()
    }

    /// Reads a whole number from 1 to `most`.
    pub fn whole(&mut self, node: &Node, field: &str, most: i64) -> Option<i64> {
        match node.value {
            Value::Integer(number) if (1..=most).contains(&number) => Some(number),
            _ => {
                self.error(node.at, field, format!("expected a whole number from 1 to {most}, found {}", node.told()));
                None
            }
        }
    }

    /// Reads a string; reports an error for any other value.
    pub fn text(&mut self, node: Node, field: &str) -> Option<String> {
        let (at, kind) = (node.at, node.kind());
        let Value::Text(text) = node.value else {
            self.error(at, field, format!("expected a string, found {kind}"));
            return None;
        };
        Some(text)
    }

    /// Reads a string and parses it.
    pub fn parsed<T: FromStr<Err: Display>>(&mut self, node: Node, field: &str) -> Option<T> {
        let at = node.at;
        let text = self.text(node, field)?;
        text.parse().map_err(|error| self.error(at, field, error)).ok()
    }

    /// Reads a line of text: not blank, no control characters, at most `longest` characters.
    pub fn line(&mut self, node: Node, field: &str, longest: usize) -> Option<String> {
        let at = node.at;
        let text = self.text(node, field)?;
        let wrong = if text.trim().is_empty() {
            "expected a text that is not blank".to_owned()
        } else if text.chars().any(hides_or_breaks) {
            "expected a text without control characters".to_owned()
        } else if text.chars().count() > longest {
            format!("expected at most {longest} characters")
        } else {
            return Some(text);
        };
        self.error(at, field, wrong);
        None
    }

    /// Reads a table as a JSON object.
    pub fn object(&mut self, node: Node, field: &str) -> Option<Map<String, Json>> {
        let (at, kind) = (node.at, node.kind());
        let Json::Object(map) = node.into_json() else {
            self.error(at, field, format!("expected a table, found {kind}"));
            return None;
        };
        Some(map)
    }

    /// Reads a word of a fixed set; `what` names its meaning in the message.
    pub fn word<T: FromStr + Display>(&mut self, node: Node, field: &str, what: &str, all: &[T]) -> Option<T> {
        let at = node.at;
        let text = self.text(node, field)?;
        if let Ok(word) = text.parse() {
            return Some(word);
        }
        let words: Vec<String> = all.iter().map(ToString::to_string).collect();
        // Among words as short as T0 to T5, each is as near as any other.
        let is_telling = words.iter().any(|word| word.len() > SHORT_WORD);
        let meant = if is_telling { did_you_mean(&text, words.iter().map(String::as_str)) } else { String::new() };
        let meant = if meant.is_empty() { format!("; expected one of {}", words.join(", ")) } else { meant };
        self.error(at, field, format!("unknown {what} {:?}{meant}", excerpt(&text)));
        None
    }
}

const SHORT_WORD: usize = 2;
const MAX_PROBLEMS: usize = 100;
