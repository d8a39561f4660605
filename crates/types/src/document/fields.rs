//! Tables read field by field; unknown fields are reported when a table is opened.

use std::fmt::Display;
use std::str::FromStr;

use serde_json::{Map, Value as Json};

use super::Report;
use super::nearest::did_you_mean;
use super::tree::{Field, Node, Value};
use crate::excerpt;

/// The fields of a table, taken one by one. Unknown fields were reported when the table was opened.
pub struct Fields {
    /// The byte offset at which the table starts.
    pub at: usize,
    path: &'static str,
    open: Vec<Field>,
    /// Whether the table was empty, rejected fields included.
    pub was_empty: bool,
}

impl Fields {
    /// Opens a table; `path` is its path within its item, for example `match.`.
    pub fn of(node: Node, path: &'static str, known: &[&str], report: &mut Report<'_>) -> Option<Self> {
        let (at, kind) = (node.at, node.kind());
        let Value::Table(all) = node.value else {
            report.error(at, path.trim_end_matches('.'), format!("expected a table, found {kind}"));
            return None;
        };
        let was_empty = all.is_empty();
        let mut fields: Vec<Field> = Vec::with_capacity(all.len());
        for field in all {
            let name = field.name.as_str();
            let path = format!("{path}{}", excerpt(name));
            if !known.contains(&name) {
                let meant = did_you_mean(name, known.iter().copied());
                let meant = if meant.is_empty() { format!("; expected one of {}", known.join(", ")) } else { meant };
                report.error(field.at, &path, format!("unknown field {:?}{meant}", excerpt(name)));
            } else if fields.iter().any(|earlier| earlier.name == name) {
                report.error(field.at, &path, format!("the field {name:?} occurs twice"));
            } else {
                fields.push(field);
            }
        }
        Some(Self { at, path, open: fields, was_empty })
    }

    /// Opens a whole document; `$schema`, which editors use, is skipped.
    pub fn of_document(root: Node, known: &[&str], report: &mut Report<'_>) -> Option<Self> {
        let Node { at, mut value } = root;
        if let Value::Table(all) = &mut value {
            all.retain(|field| !(field.name == "$schema" && matches!(field.node.value, Value::Text(_))));
        }
        Self::of(Node { at, value }, "", known, report)
    }

    /// Takes the value of a field.
    pub fn take(&mut self, name: &str) -> Option<Node> {
        let index = self.open.iter().position(|field| field.name == name)?;
        Some(self.open.swap_remove(index).node)
    }

    /// Takes a field and reads its value with `read`, which receives the field's path for messages.
    pub fn read<'a, T>(
        &mut self,
        name: &str,
        report: &mut Report<'a>,
        read: impl FnOnce(Node, &str, &mut Report<'a>) -> Option<T>,
    ) -> Option<T> {
        self.read_with(name, report, read).flatten()
    }

    /// Takes a field and reads its value with `read`, which accepts any value.
    pub fn read_with<'a, T>(
        &mut self,
        name: &str,
        report: &mut Report<'a>,
        read: impl FnOnce(Node, &str, &mut Report<'a>) -> T,
    ) -> Option<T> {
        let node = self.take(name)?;
        Some(read(node, &format!("{}{name}", self.path), report))
    }

    /// Takes a table as a JSON object.
    pub fn object(&mut self, name: &str, report: &mut Report<'_>) -> Option<Map<String, Json>> {
        self.read(name, report, |node, path, report| report.object(node, path))
    }

    /// Takes a string and parses it, for example a timestamp.
    pub fn parsed<T: FromStr<Err: Display>>(&mut self, name: &str, report: &mut Report<'_>) -> Option<T> {
        self.read(name, report, |node, path, report| report.parsed(node, path))
    }

    /// Takes a list of strings and parses each, for example labels.
    pub fn all_parsed<T: FromStr<Err: Display>>(&mut self, name: &str, report: &mut Report<'_>) -> Option<Vec<T>> {
        self.read_with(name, report, |node, path, report| {
            let items = report.list(node, path).into_iter();
            items.filter_map(|item| report.parsed(item, path)).collect()
        })
    }

    /// Returns the byte offset of a field's value, until the field is taken.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.open.iter().find(|field| field.name == name).map(|field| field.node.at)
    }

    /// Takes a line of text; see [`Report::line`].
    pub fn line(&mut self, name: &str, longest: usize, report: &mut Report<'_>) -> Option<String> {
        self.read(name, report, |node, path, report| report.line(node, path, longest))
    }

    /// Takes a required line of text.
    pub fn required_line(&mut self, name: &str, longest: usize, report: &mut Report<'_>) -> Option<String> {
        self.must_have(name, report);
        self.line(name, longest, report)
    }

    /// Takes a word of a fixed set.
    pub fn word<T: FromStr + Display>(&mut self, name: &str, all: &[T], report: &mut Report<'_>) -> Option<T> {
        self.read(name, report, |node, path, report| report.word(node, path, name, all))
    }

    /// Takes a required word of a fixed set.
    pub fn required_word<T: FromStr + Display>(&mut self, name: &str, all: &[T], report: &mut Report<'_>) -> Option<T> {
        self.must_have(name, report);
        self.word(name, all, report)
    }

    /// Takes a boolean; `false` if it is absent.
    pub fn flag(&mut self, name: &str, report: &mut Report<'_>) -> bool {
        let flag = self.read_with(name, report, |node, path, report| {
            let Value::Bool(flag) = node.value else {
                report.error(node.at, path, format!("expected true or false, found {}", node.kind()));
                return false;
            };
            flag
        });
        flag.unwrap_or_default()
    }

    /// Reports a field if it is missing.
    pub fn must_have(&self, name: &str, report: &mut Report<'_>) {
        if self.place(name).is_none() {
            report.error(self.at, &format!("{}{name}", self.path), format!("the field {name:?} is missing"));
        }
    }
}
