//! Documents in TOML or JSON, read strictly and with the place of every value.
//!
//! Policy documents are read with it, and the policy cases of the `rulekeep` tool. Both formats become one tree of
//! [`Node`]s. [`Fields`] takes a table apart field by field and refuses fields that the schema does not have, with
//! the nearest known name. A [`Report`] collects every problem with its line and column; [`read`] puts these together.
//!
//! `tree` holds the tree and the readers of both formats, `place` turns bytes into lines and columns, `file` reads
//! files of a bounded size, and `nearest` finds the name that was probably meant.

mod fields;
mod file;
mod nearest;
mod place;
mod report;
mod tree;

use crate::model::{Error, Problem, Severity, closed_words};

pub use fields::Fields;
pub use file::File;
pub use nearest::did_you_mean;
pub use report::Report;
pub use tree::{Field, Node, Value};

closed_words! {
    /// The format that a document is written in.
    pub enum PolicyFormat("policy format") {
        /// TOML.
        Toml = "toml",
        /// JSON.
        Json = "json",
    }
}

/// Reads a document of at most `limit` bytes: `reader` makes a value of its tree and reports problems on the way.
///
/// Returns the value, absent where the text has no tree, and all problems in the order of their places. `too_large`
/// composes the message for a text beyond the limit.
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

/// The error that refuses a document of some kind, such as `policy`, for its problems.
///
/// Its message tells the first problem; an unknown field comes before all others, because a missing field is often
/// a mistyped one.
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
    Error::Policy { message, problems, proof_id: None }
}
