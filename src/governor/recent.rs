//! What is known of the intents that came last.

use std::collections::{HashMap, VecDeque};

use crate::model::IntentId;

/// A value for each of the intents that came last; whoever adds one forgets the oldest beyond their bound.
#[derive(Debug)]
pub(super) struct Recent<V> {
    by_id: HashMap<IntentId, V>,
    /// In the order in which they came.
    order: VecDeque<IntentId>,
}

impl<V> Default for Recent<V> {
    fn default() -> Self {
        Self { by_id: HashMap::new(), order: VecDeque::new() }
    }
}

impl<V> Recent<V> {
    pub(super) fn get(&self, id: &IntentId) -> Option<&V> {
        self.by_id.get(id)
    }

    /// Adds a value; the one before it of the same intent comes back.
    pub(super) fn insert(&mut self, id: IntentId, value: V) -> Option<V> {
        let before = self.by_id.insert(id, value);
        if before.is_none() {
            self.order.push_back(id);
        }
        before
    }

    /// Takes out the oldest.
    pub(super) fn pop_oldest(&mut self) -> Option<V> {
        let id = self.order.pop_front()?;
        self.by_id.remove(&id)
    }

    pub(super) fn len(&self) -> usize {
        self.order.len()
    }
}
