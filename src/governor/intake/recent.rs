//! A bounded table of the most recent intents.

use std::collections::{HashMap, VecDeque};

use crate::model::IntentId;

/// A value for each of the most recent intents. The owner removes the oldest beyond its bound.
#[derive(Debug)]
pub(crate) struct Recent<V> {
    by_id: HashMap<IntentId, V>,
    /// In the order of insertion.
    order: VecDeque<IntentId>,
}

impl<V> Default for Recent<V> {
    fn default() -> Self {
        Self { by_id: HashMap::new(), order: VecDeque::new() }
    }
}

impl<V> Recent<V> {
    pub(crate) fn get(&self, id: &IntentId) -> Option<&V> {
        self.by_id.get(id)
    }

    /// Inserts a value and returns the previous one of the same intent.
    pub(crate) fn insert(&mut self, id: IntentId, value: V) -> Option<V> {
        let before = self.by_id.insert(id, value);
        if before.is_none() {
            self.order.push_back(id);
        }
        before
    }

    /// Removes and returns the oldest value.
    pub(crate) fn pop_oldest(&mut self) -> Option<V> {
        let id = self.order.pop_front()?;
        self.by_id.remove(&id)
    }

    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }
}
