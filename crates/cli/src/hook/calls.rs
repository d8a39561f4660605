//! Calls that were decided, until their outcome is told: a retry finds its question here, a result its record.

use std::collections::{HashMap, VecDeque};

use rulekeep::Intent;
use rulekeep::proof::ProofId;

/// Calls that were decided and have no outcome yet, the oldest first; at most [`MOST_CALLS`].
#[derive(Default)]
pub(super) struct Calls {
    by_key: HashMap<Key, Made>,
    order: VecDeque<Key>,
}

/// A call by keyed hashes of all that tells it from others: arguments can hold whole files.
pub(super) type Key = [u64; 2];

/// A call that was decided.
#[derive(Clone)]
pub(super) struct Made {
    pub(super) conversation: String,
    pub(super) proof_id: ProofId,
    /// The intent to claim an approval with, where a person was asked and has not agreed yet.
    pub(super) asked: Option<Intent>,
    /// The folder that the host worked in.
    pub(super) cwd: Option<String>,
}

impl Calls {
    /// A call that was decided.
    pub(super) fn get(&self, key: &Key) -> Option<Made> {
        self.by_key.get(key).cloned()
    }

    /// Keeps a call, in place of one that is the same.
    pub(super) fn put(&mut self, key: Key, made: Made) {
        if self.by_key.insert(key, made).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > MOST_CALLS {
            let oldest = self.order.pop_front();
            oldest.map(|key| self.by_key.remove(&key));
        }
    }

    /// Takes out a call.
    pub(super) fn take(&mut self, key: &Key) -> Option<Made> {
        let made = self.by_key.remove(key)?;
        self.order.retain(|other| other != key);
        Some(made)
    }

    /// Takes out what was asked in a conversation.
    pub(super) fn take_asked(&mut self, conversation: &str) -> Vec<Made> {
        let is_asked = |made: &Made| made.conversation == conversation && made.asked.is_some();
        let keys: Vec<Key> = self.by_key.iter().filter(|(_, made)| is_asked(made)).map(|(key, _)| *key).collect();
        keys.iter().filter_map(|key| self.take(key)).collect()
    }
}

/// The most calls without an outcome that are kept.
const MOST_CALLS: usize = 10_000;
