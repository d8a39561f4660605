//! The prompts that agents wrote, which are not the user's words.
//!
//! Claude Code submits the prompt of a scheduled turn as if the user had written it. The agent schedules turns with
//! calls that contain the prompt. If such a prompt counted as the user's, an agent could extend its own task.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::event::HostCall;

/// The prompts in the calls of all agents since the daemon started, as hashes.
#[derive(Default)]
pub(super) struct Written {
    hashes: Mutex<HashSet<u64>>,
    hasher: RandomState,
}

impl Written {
    /// Adds the prompt in the arguments of a call.
    pub(super) fn add(&self, agent: &str, call: &HostCall) {
        if let Some(prompt) = call.arguments.get("prompt").and_then(Value::as_str) {
            self.hashes().insert(self.hash(agent, prompt));
        }
    }

    /// Returns whether the agent wrote this prompt.
    pub(super) fn holds(&self, agent: &str, prompt: &str) -> bool {
        self.hashes().contains(&self.hash(agent, prompt))
    }

    fn hash(&self, agent: &str, prompt: &str) -> u64 {
        self.hasher.hash_one((agent, prompt.trim()))
    }

    fn hashes(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.hashes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
