//! Orders to the agent that stand in observed results, and the calls that would carry them out.

use std::collections::HashSet;

use super::purpose::is_effect;
use super::text::{self, Shape};
use super::words::pieces;
use crate::model::Capability;

/// An order to the agent in an observed result. Calls that would carry it out are marked, other calls are not.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    /// The words that a reviewer sees.
    pub(crate) words: String,
    /// The effects that it asks for; any effect if none is known.
    effects: Vec<Capability>,
    /// The addresses, paths, numbers and tokens in it.
    values: HashSet<Box<str>>,
}

impl Order {
    pub(crate) fn new(words: String, text: &str, effects: Vec<Capability>) -> Self {
        let is_value = |piece: &&str| text::shape(piece) != Shape::Phrase && piece.len() > 1;
        let values = pieces(text).filter(is_value).take(MOST_VALUES).map(|piece| text::normal_value(piece).into());
        Self { words, effects, values: values.collect() }
    }

    /// An order of which only its words are known, as after a restart.
    pub(crate) fn of_words(words: String) -> Self {
        Self { words, effects: Vec::new(), values: HashSet::new() }
    }

    /// Returns whether a call would carry out the order: it has an effect of the same operation, and uses a value of the
    /// order if that names any.
    pub(crate) fn concerns<'v>(&self, capabilities: &[Capability], mut values: impl Iterator<Item = &'v str>) -> bool {
        let is_ordered = |one: &Capability| {
            self.effects.is_empty() || self.effects.iter().any(|effect| effect.operation() == one.operation())
        };
        capabilities.iter().filter(|one| is_effect(one)).any(is_ordered)
            && (self.values.is_empty() || values.any(|value| self.names(value)))
    }

    fn names(&self, value: &str) -> bool {
        let has = |piece: &str| self.values.contains(&*text::normal_value(piece));
        has(value) || pieces(value).take(MOST_VALUES).any(has)
    }
}

/// Number of values of an order, and of a call's value, that are compared.
const MOST_VALUES: usize = 256;
