//! How far the writer has come, and waiting for it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::model::Sequence;

/// How far the writer has come.
pub(super) struct Progress {
    // Held to set or read two numbers.
    state: Mutex<ProgressState>,
    changed: Condvar,
}

#[derive(Clone, Copy)]
struct ProgressState {
    /// Entries on disk.
    durable: u64,
    /// Entries in the index.
    applied: u64,
    /// Nothing more will come: the log is closed, or a write failed.
    over: bool,
}

impl Progress {
    pub(super) fn new(entries: u64) -> Self {
        let state = ProgressState { durable: entries, applied: entries, over: false };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(super) fn durable(&self, entries: u64) {
        self.change(|state| state.durable = entries);
    }

    pub(super) fn applied(&self, entries: u64) {
        self.change(|state| state.applied = entries);
    }

    /// Tells who waits that nothing more will come.
    pub(super) fn over(&self) {
        self.change(|state| state.over = true);
    }

    pub(super) fn is_over(&self) -> bool {
        self.lock().over
    }

    pub(super) fn durable_entries(&self) -> u64 {
        self.lock().durable
    }

    pub(super) fn has_applied(&self, entries: u64) -> bool {
        self.lock().applied >= entries
    }

    /// Whether the entry came to be on disk.
    pub(super) fn wait_durable(&self, sequence: Sequence) -> bool {
        self.wait(|state| state.durable > sequence.get()).durable > sequence.get()
    }

    pub(super) fn wait_applied(&self, entries: u64) {
        self.wait(|state| state.applied >= entries);
    }

    pub(super) fn wait_over(&self) {
        self.wait(|_| false);
    }

    /// Whether so many entries came to be on disk before `deadline`, or ever without one.
    pub(super) fn wait_durable_until(&self, entries: u64, deadline: Option<Instant>) -> bool {
        let Some(deadline) = deadline else {
            return self.wait(|state| state.durable >= entries).durable >= entries;
        };
        let mut state = self.lock();
        while state.durable < entries && !state.over {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.durable >= entries
    }

    fn wait(&self, done: impl Fn(&ProgressState) -> bool) -> ProgressState {
        let state = self.lock();
        let waited = self.changed.wait_while(state, |state| !done(state) && !state.over);
        *waited.unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut ProgressState)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
