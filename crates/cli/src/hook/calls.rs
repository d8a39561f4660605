//! Decided calls without an outcome: a retry finds its escalation here, a result its record.

use std::collections::{HashMap, VecDeque};

use rulekeep::Intent;
use rulekeep::proof::ProofId;

/// Decided calls that have no outcome yet, oldest first; at most [`MOST_CALLS`].
#[derive(Default)]
pub(super) struct Calls {
    by_key: HashMap<Key, Made>,
    order: VecDeque<Key>,
    /// The last call of each conversation, if it was refused for a part that could not be read.
    unread: HashMap<String, ProofId>,
}

/// The key of a call: keyed hashes of everything that distinguishes it, because arguments can contain whole files.
pub(super) type Key = [u64; 2];

/// A decided call.
#[derive(Clone)]
pub(super) struct Made {
    pub(super) conversation: String,
    pub(super) proof_id: ProofId,
    /// The intent with which to claim an approval, if a reviewer was asked and has not agreed yet.
    pub(super) asked: Option<Intent>,
    /// The paths that the call creates if the user agrees to it.
    pub(super) fresh: Vec<String>,
    /// The paths that are no longer the conversation's own then.
    pub(super) removed: Vec<String>,
    /// The folder in which the host worked.
    pub(super) cwd: Option<String>,
}

impl Calls {
    /// Returns a decided call.
    pub(super) fn get(&self, key: &Key) -> Option<Made> {
        self.by_key.get(key).cloned()
    }

    /// Stores a call, replacing one with the same key.
    pub(super) fn put(&mut self, key: Key, made: Made) {
        if self.by_key.insert(key, made).is_none() {
            self.order.push_back(key);
        }
        while self.order.len() > MOST_CALLS {
            let oldest = self.order.pop_front();
            oldest.map(|key| self.by_key.remove(&key));
        }
    }

    /// The last call of a conversation, if it was refused for a part that could not be read.
    pub(super) fn unread(&self, conversation: &str) -> Option<ProofId> {
        self.unread.get(conversation).copied()
    }

    /// Notes that the last call of a conversation was refused for a part that could not be read, or was not.
    pub(super) fn note_unread(&mut self, conversation: String, refused: Option<ProofId>) {
        if self.unread.len() >= MOST_CALLS {
            self.unread.clear();
        }
        match refused {
            Some(proof_id) => drop(self.unread.insert(conversation, proof_id)),
            None => drop(self.unread.remove(&conversation)),
        }
    }

    /// Removes and returns a call.
    pub(super) fn take(&mut self, key: &Key) -> Option<Made> {
        let made = self.by_key.remove(key)?;
        self.order.retain(|other| other != key);
        Some(made)
    }

    /// Removes and returns the pending calls of a conversation.
    pub(super) fn take_asked(&mut self, conversation: &str) -> Vec<Made> {
        let is_asked = |made: &Made| made.conversation == conversation && made.asked.is_some();
        let keys: Vec<Key> = self.by_key.iter().filter(|(_, made)| is_asked(made)).map(|(key, _)| *key).collect();
        keys.iter().filter_map(|key| self.take(key)).collect()
    }
}

/// Largest number of calls without an outcome that are kept.
const MOST_CALLS: usize = 10_000;
