//! The scrub: reads everything stored again and again, slowly, so that decay is found while a copy still exists.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::{Verifying, verify};
use crate::parts::Parts;
use crate::store::Manner;
use rulekeep_types::{Error, LogProgress, ScrubOptions, ScrubPass, ScrubStatus, Timestamp};

/// The scrub's thread.
pub(crate) struct Scrub {
    pace: Arc<Pace>,
    // Taken by the first caller that stops it.
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// State shared by the thread and its owner.
struct Pace {
    options: ScrubOptions,
    // Held to look or to change.
    state: Mutex<PaceState>,
    stopped: Condvar,
}

struct PaceState {
    status: ScrubStatus,
    is_stopped: bool,
    /// The earliest time of the next read.
    next: Instant,
}

impl Scrub {
    /// Starts the thread; `now` returns the time of a finished pass.
    pub(crate) fn start(
        parts: &Arc<Parts>,
        options: ScrubOptions,
        now: impl Fn() -> Timestamp + Send + 'static,
    ) -> Result<Self, Error> {
        let status = ScrubStatus::default();
        let state = Mutex::new(PaceState { status, is_stopped: false, next: Instant::now() });
        let pace = Arc::new(Pace { options, state, stopped: Condvar::new() });
        // The thread must not keep the log alive once nobody else uses it.
        let (parts, theirs) = (Arc::downgrade(parts), Arc::clone(&pace));
        let work = move || {
            while let Some(parts) = parts.upgrade() {
                if !theirs.pass(&parts, &now) {
                    break;
                }
                drop(parts);
                if !theirs.wait(theirs.options.pause) {
                    break;
                }
            }
        };
        let thread = thread::Builder::new().name("rulekeep-scrub".to_owned()).spawn(work);
        let thread = thread.map_err(|error| Error::storage(format!("the scrub cannot be started: {error}")))?;
        Ok(Self { pace, thread: Mutex::new(Some(thread)) })
    }

    pub(crate) fn status(&self) -> ScrubStatus {
        self.pace.lock().status.clone()
    }

    /// Stops it after the segment it is working on.
    pub(crate) fn stop(&self) {
        self.pace.lock().is_stopped = true;
        self.pace.stopped.notify_all();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }
}

impl Pace {
    /// Reads everything once. Returns false if there is no point in another pass.
    fn pass(&self, parts: &Parts, now: &impl Fn() -> Timestamp) -> bool {
        let of = parts.index.applied().entries;
        let tell = |done: u64| self.lock().status.running = Some(LogProgress::new(done.min(of), of));
        let pace = |bytes: u64| self.allow(bytes);
        let manner = Manner { threads: 1, progress: Some(&tell), pace: Some(&pace) };
        let verifying = Verifying { since: None, held: None, manner };
        tell(0);
        let found = verify(parts, &verifying);
        let mut state = self.lock();
        state.status.running = None;
        match found {
            Ok((found, _)) => {
                let is_valid = found.valid;
                state.status.passes += 1;
                state.status.last = Some(ScrubPass::new(now(), found));
                state.status.unreadable = None;
                is_valid && !state.is_stopped
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => !state.is_stopped,
            // An unreadable disk may become readable later.
            Err(error) => {
                state.status.unreadable = Some(error.to_string());
                !state.is_stopped
            }
        }
    }

    /// Waits until `bytes` more bytes may be read; does not wait for 0 bytes. Returns false if the scrub is stopped.
    fn allow(&self, bytes: u64) -> bool {
        let mut state = self.lock();
        if bytes == 0 {
            return !state.is_stopped;
        }
        let wait = state.next.saturating_duration_since(Instant::now());
        let rate = self.options.bytes_per_second.max(1);
        #[allow(clippy::cast_precision_loss)] // a rate needs no more than 53 bits
        let takes = Duration::try_from_secs_f64(bytes as f64 / rate as f64).unwrap_or(Duration::MAX);
        drop(state);
        if !self.wait(wait) {
            return false;
        }
        state = self.lock();
        state.next = Instant::now().checked_add(takes).unwrap_or_else(Instant::now);
        true
    }

    /// Waits for `time`. Returns false if the scrub is stopped.
    fn wait(&self, time: Duration) -> bool {
        let state = self.lock();
        let waited = self.stopped.wait_timeout_while(state, time, |state| !state.is_stopped);
        !waited.unwrap_or_else(PoisonError::into_inner).0.is_stopped
    }

    fn lock(&self) -> MutexGuard<'_, PaceState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
