//! The tools that calls are held against by name.

use std::collections::HashMap;
use std::sync::Arc;

use crate::parse::reading::Act;

use super::tools::{Known, Through};

/// What a call needs to know of a tool.
#[derive(Debug)]
pub(crate) struct Tool {
    pub acts: Vec<Act>,
    pub through: Option<Through>,
    pub known: Option<&'static Known>,
    /// The arguments of its schema that ask for a trial.
    pub trials: Vec<Box<str>>,
}

/// The tools by each form of their name. Several servers can have one of the same name: all count.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolIndex(HashMap<Box<str>, Vec<Arc<Tool>>>);

impl ToolIndex {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tools of that name: as handed over, or behind their server's name.
    pub(crate) fn find(&self, name: &str) -> Option<&[Arc<Tool>]> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(name).map(Vec::as_slice)
    }
}

impl FromIterator<(Box<str>, Arc<Tool>)> for ToolIndex {
    fn from_iter<I: IntoIterator<Item = (Box<str>, Arc<Tool>)>>(named: I) -> Self {
        let mut index: HashMap<Box<str>, Vec<Arc<Tool>>> = HashMap::new();
        for (name, tool) in named {
            index.entry(name).or_default().push(tool);
        }
        Self(index)
    }
}
