//! Strict readers for documents in TOML or JSON, which keep the position of every value.
//!
//! Policy documents and the policy cases of the `rulekeep` tool are read with this module. Both formats become one tree
//! of [`Node`]s. [`Fields`] takes a table apart field by field and rejects unknown fields, with the nearest known name.
//! A [`Report`] collects every problem with its line and column. [`read`] combines these.
//!
//! `tree` contains the tree and the readers of both formats, `place` converts byte offsets to lines and columns, `file`
//! reads files of a limited size, and `nearest` finds the name that was probably meant.

mod fields;
mod file;
mod nearest;
mod place;
mod report;
mod tree;

use crate::{Error, Problem, Severity, closed_words};

pub use fields::Fields;
pub use file::File;
pub use nearest::did_you_mean;
pub use report::Report;
pub use tree::{Field, Node, Value};

closed_words! {
    /// The format of a document: TOML or JSON.
    pub enum PolicyFormat("policy format") {
        /// The TOML format.
        Toml = "toml",
        /// The JSON format.
        Json = "json",
    }
}

/// Reads a document of at most `limit` bytes: `reader` converts its tree to a value and reports problems.
///
/// Returns the value, `None` if the text is not valid TOML or JSON, and all problems ordered by position. `too_large`
/// composes the message for a text over the limit.
pub fn read<T>(
    text: &str,
    format: PolicyFormat,
    limit: usize,
    too_large: impl FnOnce(u64) -> String,
    reader: impl FnOnce(Node, &mut Report<'_>) -> T,
) -> (Option<T>, Vec<Problem>) {
    let mut report = Report::of(text);
    let mut value = None;
    if text.len() > limit {
        report.error(0, "", too_large(text.len() as u64));
    } else {
        match Node::read(text, format) {
            Ok(root) => value = Some(reader(root, &mut report)),
            Err(errors) => errors.into_iter().for_each(|error| report.error(error.at, "", error.message)),
        }
    }
    let mut problems = report.problems;
    problems.sort_by_key(|problem| (problem.line, problem.column));
    (value, problems)
}

/// Creates the error for a rejected document of a kind such as `policy`.
///
/// Its message names the first problem; unknown fields come first, because a missing field is often a misspelled one.
pub fn refusal(kind: &str, name: &str, mut problems: Vec<Problem>) -> Error {
    problems.sort_by_key(|problem| (problem.line, problem.column));
    let errors = || problems.iter().filter(|problem| problem.severity == Severity::Error);
    let mistyped = errors().find(|problem| problem.message.starts_with("unknown field"));
    let mut message = match mistyped.or_else(|| errors().next()) {
        Some(first) => format!("{kind} {name:?} line {} column {}: {}", first.line, first.column, first.message),
        None => format!("{kind} {name:?} does not load"),
    };
    let more = errors().count().saturating_sub(1);
    if more > 0 {
        message = format!("{message}; and {more} more");
    }
    Error::InvalidPolicy { message, problems, cause: None }
}
