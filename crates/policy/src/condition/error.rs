//! Errors: of compilation, with their place in the source, and of evaluation, without any value that was evaluated.

use std::fmt;
use std::sync::Arc;

/// The reason a source does not compile: the byte offset, what was found and what was expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConditionError {
    pub(crate) at: usize,
    pub(crate) message: String,
}

impl ConditionError {
    pub(super) fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }
}

impl fmt::Display for ConditionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}: {}", self.at, self.message)
    }
}

impl std::error::Error for ConditionError {}

/// The reason a condition has no result. The message names source text and types, never a value, because a context
/// may contain secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EvaluationError {
    problem: Problem,
    at: usize,
    source: Arc<str>,
    binding: Option<Box<str>>,
}

impl EvaluationError {
    pub(super) fn new(problem: Problem, at: u32, source: Arc<str>, binding: Option<Box<str>>) -> Self {
        Self { problem, at: usize::try_from(at).unwrap_or(usize::MAX), source, binding }
    }
}

impl fmt::Display for EvaluationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rest = self.source.get(self.at..).unwrap_or_default();
        let excerpt: String = rest.chars().take_while(|c| *c != '\n').take(EXCERPT_CHARACTERS).collect();
        write!(f, "{} at byte {}, {:?}", self.problem, self.at, excerpt.trim_end())?;
        match &self.binding {
            Some(name) => write!(f, " of {name:?}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for EvaluationError {}

/// The kind of a failure during evaluation. `Copy` and without text, because most failures are absorbed by `&&`,
/// `||`, `all` and `exists` and never reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Problem {
    Overflow,
    DivisionByZero,
    MissingKey,
    MissingIndex,
    WrongType { expected: &'static str, found: &'static str },
    NoOperator { operator: &'static str, left: &'static str, right: &'static str },
    LargeInteger,
    NotANumber,
    LongList,
    LongText,
    LongPatternText,
    Unreadable(&'static str),
    MuchWork,
    DeepValue,
    Internal,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overflow => f.write_str("the result is out of range"),
            Self::DivisionByZero => f.write_str("division by zero"),
            Self::MissingKey => f.write_str("no such key (test it with has(...) first)"),
            Self::MissingIndex => f.write_str("no such index in the list"),
            Self::WrongType { expected, found } => write!(f, "expected {expected}, found {found}"),
            Self::NoOperator { operator, left, right } => {
                write!(f, "{operator} does not take {left} and {right}")?;
                let mixed = matches!((*left, *right), ("int", "double") | ("double", "int"));
                f.write_str(if mixed { " (convert with int(...) or double(...))" } else { "" })
            }
            Self::LargeInteger => f.write_str("an integer does not fit 64 bits"),
            Self::NotANumber => f.write_str("NaN cannot be compared"),
            Self::LongList => write!(f, "more than {} items", super::MAX_LIST_ITEMS),
            Self::LongText => write!(f, "the text grows past {} bytes", super::MAX_TEXT_BYTES),
            Self::LongPatternText => write!(f, "matches reads at most {} bytes", super::MAX_MATCHED_BYTES),
            Self::Unreadable(what) => write!(f, "the text is not a valid {what}"),
            Self::MuchWork => f.write_str("too much text or too many items to process"),
            Self::DeepValue => f.write_str("the values are nested too deep to compare"),
            Self::Internal => f.write_str("not a value"),
        }
    }
}

/// A problem and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault {
    pub(super) problem: Problem,
    /// Byte offset in the source that the node was compiled from.
    pub(super) at: u32,
    /// The binding that this source belongs to; `None` for the condition itself.
    pub(super) binding: Option<u16>,
}

impl Problem {
    pub(super) fn at(self, at: u32) -> Fault {
        Fault { problem: self, at, binding: None }
    }
}

const EXCERPT_CHARACTERS: usize = 40;
