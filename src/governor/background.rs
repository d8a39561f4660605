//! Periodic work on a thread of its own.

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::governor::Hold as _;

/// A thread that works periodically until it is dropped.
pub(crate) struct Background {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Stop {
    // Held to set or read the flag.
    wanted: Mutex<bool>,
    told: Condvar,
}

impl Stop {
    /// Waits for `time`; returns whether the thread was told to stop.
    fn within(&self, time: Duration) -> bool {
        let wanted = self.wanted.hold();
        let (wanted, _) =
            self.told.wait_timeout_while(wanted, time, |wanted| !*wanted).unwrap_or_else(PoisonError::into_inner);
        *wanted
    }
}

impl Background {
    /// Starts a thread that calls `work` after each interval of `every`, until it returns `false`.
    pub(crate) fn start(
        name: &str,
        every: Duration,
        mut work: impl FnMut() -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let stop = Arc::new(Stop::default());
        let told = Arc::clone(&stop);
        let thread =
            thread::Builder::new().name(name.to_owned()).spawn(move || while !told.within(every) && work() {})?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Returns whether the thread is running; it is not after a panic, or when `work` has returned `false`.
    pub(crate) fn is_alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }
}

impl Drop for Background {
    /// Stops the thread and waits until its current work is done.
    fn drop(&mut self) {
        *self.stop.wanted.hold() = true;
        self.stop.told.notify_all();
        // The last owner of a governor may be this thread, which cannot join itself.
        if let Some(thread) = self.thread.take().filter(|thread| thread.thread().id() != thread::current().id()) {
            // The panic has been reported already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn it_works_until_it_is_stopped_or_has_enough() {
        let (told, heard) = mpsc::channel();
        let every = Duration::from_millis(1);
        let background = Background::start("test", every, move || told.send(()).is_ok()).unwrap();
        assert!(heard.recv().is_ok() && heard.recv().is_ok());
        drop(background);
        heard.iter().for_each(drop); // ends: nobody is left to tell
        let (told, heard) = mpsc::channel();
        let background = Background::start("test", every, move || told.send(()).is_err()).unwrap();
        assert_eq!(heard.iter().count(), 1);
        drop(background);
    }

    #[test]
    fn it_is_stopped_without_waiting_for_its_turn() {
        let (told, heard) = mpsc::channel();
        let background = Background::start("test", Duration::from_secs(3600), move || told.send(()).is_ok()).unwrap();
        drop(background);
        assert!(heard.recv().is_err(), "it never worked, and is gone");
    }

    #[test]
    fn work_may_hold_the_last_of_what_stops_it() {
        let held: Arc<Mutex<Option<Background>>> = Arc::default();
        let (told, heard) = mpsc::channel();
        let own = Arc::clone(&held);
        let work = move || {
            let own = own.lock().unwrap().take();
            told.send(own.is_some()).unwrap();
            own.is_none()
        };
        *held.lock().unwrap() = Some(Background::start("test", Duration::from_millis(1), work).unwrap());
        while !heard.recv().unwrap() {}
        assert!(heard.recv().is_err());
    }
}
