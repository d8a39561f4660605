//! The writer's progress, and waiting for it.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread::{self, Thread};
use std::time::Instant;

use rulekeep_types::Sequence;

/// The writer's progress.
pub(crate) struct Progress {
    /// Copy of the state's `durable`, which woken threads read first, without the lock.
    durable: AtomicU64,
    // Held to set or read some numbers and to enter or leave the waiting list.
    state: Mutex<ProgressState>,
    changed: Condvar,
}

struct ProgressState {
    /// Number of entries on disk.
    durable: u64,
    /// Number of entries in the index.
    applied: u64,
    /// No more entries will come: the log is closed, or a write failed.
    over: bool,
    /// The waiters, one for each place, so that only those are woken whose entry is on disk.
    waiting: BTreeMap<Waiting, Waiter>,
    next_place: u64,
}

/// A place in the waiting list: an entry, and a number.
pub(crate) type Waiting = (u64, u64);

enum Waiter {
    Thread(Thread),
    Task(Waker),
}

impl Waiter {
    fn wake(self) {
        match self {
            Self::Thread(thread) => thread.unpark(),
            // A waker runs code of the async runtime; a panic in it must not end the writer.
            Self::Task(waker) => drop(catch_unwind(AssertUnwindSafe(|| waker.wake()))),
        }
    }
}

impl Progress {
    pub(crate) fn new(entries: u64) -> Self {
        let state =
            ProgressState { durable: entries, applied: entries, over: false, waiting: BTreeMap::new(), next_place: 0 };
        Self { durable: AtomicU64::new(entries), state: Mutex::new(state), changed: Condvar::new() }
    }

    pub(crate) fn durable(&self, entries: u64) {
        self.change(|state| {
            state.durable = entries;
            self.durable.store(entries, Ordering::Release);
            let still_waiting = state.waiting.split_off(&(entries, 0));
            std::mem::replace(&mut state.waiting, still_waiting)
        });
    }

    pub(crate) fn applied(&self, entries: u64) {
        self.change(|state| {
            state.applied = entries;
            BTreeMap::new()
        });
    }

    /// Tells all waiters that no more entries will come.
    pub(crate) fn over(&self) {
        self.change(|state| {
            state.over = true;
            std::mem::take(&mut state.waiting)
        });
    }

    pub(crate) fn is_over(&self) -> bool {
        self.lock().over
    }

    pub(crate) fn durable_entries(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    pub(crate) fn has_applied(&self, entries: u64) -> bool {
        self.lock().applied >= entries
    }

    /// Returns whether the entry is on disk; `None` while that is not decided.
    pub(crate) fn is_durable(&self, sequence: Sequence) -> Option<bool> {
        if self.durable_entries() > sequence.get() {
            return Some(true);
        }
        self.lock().fate(sequence)
    }

    /// Waits until the entry is on disk. Returns false if it never will be.
    pub(crate) fn wait_durable(&self, sequence: Sequence) -> bool {
        let mut state = self.lock();
        let mut place = None;
        loop {
            if let Some(fate) = state.fate(sequence) {
                return fate;
            }
            // An unrelated event may unpark the thread; then it is still in the list.
            let waiting = *place.get_or_insert_with(|| state.place(sequence));
            state.waiting.entry(waiting).or_insert_with(|| Waiter::Thread(thread::current()));
            drop(state);
            thread::park();
            // INVARIANT: nobody whose entry is on disk remains in the list.
            if self.durable_entries() > sequence.get() {
                return true;
            }
            state = self.lock();
        }
    }

    /// Like [`Progress::is_durable`]; while the answer is `None`, `waker` is woken when it changes. `place` is its
    /// place in the waiting list.
    pub(crate) fn poll_durable(&self, sequence: Sequence, place: &mut Option<Waiting>, waker: &Waker) -> Option<bool> {
        // Cloning and dropping a waker runs foreign code, which must not run while the list is locked.
        let waker = Waiter::Task(waker.clone());
        let mut state = self.lock();
        let fate = state.fate(sequence);
        let before = if fate.is_none() {
            let waiting = *place.get_or_insert_with(|| state.place(sequence));
            state.waiting.insert(waiting, waker)
        } else {
            Some(waker)
        };
        drop(state);
        drop(before);
        fate
    }

    /// Removes a waiter from the list.
    pub(crate) fn forget(&self, place: Waiting) {
        let forgotten = self.lock().waiting.remove(&place);
        drop(forgotten);
    }

    /// Waits until `entries` entries are in the index. Returns false at `deadline`, or if that will never be.
    pub(crate) fn wait_applied(&self, entries: u64, deadline: Option<Instant>) -> bool {
        self.wait(deadline, |state| state.applied >= entries)
    }

    pub(crate) fn wait_over(&self) {
        self.wait(None, |state| state.over);
    }

    /// Waits until `entries` entries are on disk. Returns false at `deadline`, or if that will never be.
    pub(crate) fn wait_durable_until(&self, entries: u64, deadline: Option<Instant>) -> bool {
        self.durable_entries() >= entries || self.wait(deadline, |state| state.durable >= entries)
    }

    fn wait(&self, deadline: Option<Instant>, is_done: impl Fn(&ProgressState) -> bool) -> bool {
        let mut state = self.lock();
        while !is_done(&state) && !state.over {
            state = match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
                Some(left) if left.is_zero() => break,
                Some(left) => self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0,
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
        is_done(&state)
    }

    /// Makes a change and wakes the waiters it returns.
    fn change(&self, change: impl FnOnce(&mut ProgressState) -> BTreeMap<Waiting, Waiter>) {
        let woken = change(&mut self.lock());
        woken.into_values().for_each(Waiter::wake);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProgressState {
    fn fate(&self, sequence: Sequence) -> Option<bool> {
        let is_durable = self.durable > sequence.get();
        (is_durable || self.over).then_some(is_durable)
    }

    fn place(&mut self, sequence: Sequence) -> Waiting {
        self.next_place += 1;
        (sequence.get(), self.next_place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    #[derive(Default)]
    struct Counting(AtomicUsize);

    impl Wake for Counting {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    struct Panicking;

    impl Wake for Panicking {
        fn wake(self: Arc<Self>) {
            panic!("a runtime that is gone");
        }
    }

    fn counting() -> (Arc<Counting>, Waker) {
        let counting = Arc::new(Counting::default());
        (Arc::clone(&counting), Waker::from(counting))
    }

    #[test]
    fn only_waiters_whose_entry_is_on_disk_are_woken() {
        let progress = Progress::new(0);
        let wakers: Vec<_> = (0..4_u64)
            .map(|sequence| {
                let ((counting, waker), mut place) = (counting(), None);
                for _ in 0..3 {
                    assert_eq!(progress.poll_durable(Sequence::new(sequence), &mut place, &waker), None);
                }
                (counting, place.unwrap())
            })
            .collect();
        let woken = || wakers.iter().map(|(counting, _)| counting.0.load(Ordering::SeqCst)).collect::<Vec<_>>();
        assert_eq!(progress.lock().waiting.len(), 4);
        progress.durable(2);
        assert_eq!(woken(), [1, 1, 0, 0]);
        progress.forget(wakers[2].1);
        assert_eq!(progress.lock().waiting.len(), 1);
        progress.over();
        assert_eq!(woken(), [1, 1, 0, 1]);
        assert!(progress.lock().waiting.is_empty());
        assert_eq!(progress.is_durable(Sequence::new(1)), Some(true));
        assert_eq!(progress.is_durable(Sequence::new(3)), Some(false));
    }

    #[test]
    fn a_waker_that_panics_keeps_nobody_from_being_woken() {
        let progress = Progress::new(0);
        let (counting, waker) = counting();
        progress.poll_durable(Sequence::new(0), &mut None, &Waker::from(Arc::new(Panicking)));
        progress.poll_durable(Sequence::new(1), &mut None, &waker);
        progress.durable(2);
        assert_eq!(counting.0.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn a_thread_that_is_unparked_by_something_else_goes_on_waiting() {
        let progress = Progress::new(0);
        thread::scope(|scope| {
            let waiting = scope.spawn(|| progress.wait_durable(Sequence::new(0)));
            while progress.lock().waiting.is_empty() {
                thread::yield_now();
            }
            for _ in 0..100 {
                waiting.thread().unpark();
                thread::yield_now();
            }
            assert!(!waiting.is_finished());
            progress.durable(1);
            assert!(waiting.join().unwrap());
        });
        assert!(progress.lock().waiting.is_empty());
    }
}
