//! The registered tools that calls are matched with by name.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use crate::reading::Act;

use super::hosts::{Known, Through};

/// The data about a tool that reading a call needs.
#[derive(Debug)]
pub(crate) struct Tool {
    pub acts: Vec<Act>,
    pub through: Option<Through>,
    pub known: Option<&'static Known>,
    /// The arguments of its schema that ask for a trial run.
    pub trials: Vec<Box<str>>,
}

/// Tools by each form of their names. Several servers can have a tool with the same name.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolIndex {
    tools: Vec<Arc<Tool>>,
    /// Shared by all indexes of the same tools, however these are classified.
    places: Arc<HashMap<Box<str>, Vec<usize>>>,
}

impl ToolIndex {
    /// Adds a tool under all forms of its name.
    pub(crate) fn push(&mut self, names: impl IntoIterator<Item = Box<str>>, tool: Arc<Tool>) {
        let places = Arc::make_mut(&mut self.places);
        for name in names {
            places.entry(name).or_default().push(self.tools.len());
        }
        self.tools.push(tool);
    }

    /// Replaces a tool by one with the same names.
    pub(crate) fn replace(&mut self, place: usize, tool: Arc<Tool>) {
        if let Some(known) = self.tools.get_mut(place) {
            *known = tool;
        }
    }

    /// The places of the tools with this name, with or without the server's name before it.
    pub(crate) fn places(&self, name: &str) -> &[usize] {
        self.places.get(name).map_or(&[], Vec::as_slice)
    }

    /// The view of the tools in one of several readings.
    pub(crate) fn turn(&self, turn: usize) -> ToolTurn<'_> {
        ToolTurn { index: self, turn, turns: Cell::new(1) }
    }
}

/// The view of the tools in one reading. A name that several tools have stands for a different one in each turn, so
/// that the readings of all turns together cover every tool that may be meant.
#[derive(Debug)]
pub(crate) struct ToolTurn<'i> {
    index: &'i ToolIndex,
    turn: usize,
    turns: Cell<usize>,
}

impl<'i> ToolTurn<'i> {
    pub(crate) fn is_empty(&self) -> bool {
        self.index.tools.is_empty()
    }

    /// The tool that the name stands for in this turn.
    pub(crate) fn find(&self, name: &str) -> Option<&'i Tool> {
        let places = self.index.places(name);
        self.turns.set(self.turns.get().max(places.len()));
        let place = *places.get(self.turn).or(places.last())?;
        self.index.tools.get(place).map(|tool| &**tool)
    }

    /// The number of turns that the requested names need.
    pub(crate) fn turns(&self) -> usize {
        self.turns.get()
    }
}
