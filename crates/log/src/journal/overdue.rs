//! Files beside the entries that could not be written: each with its error, the time of the first failure, and a
//! retry.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::store::Files;

/// The overdue files, by name. The log keeps working for a while without them.
pub(crate) struct Overdue {
    lateness: Lateness,
    // Held to look or to change.
    writes: Mutex<BTreeMap<&'static str, Late>>,
    // Held over each retried write, so that older content never replaces newer; taken before `writes`.
    turn: Mutex<()>,
}

struct Late {
    error: String,
    since: Instant,
    again: Option<Again>,
}

/// A retry of writing a file.
pub(crate) type Again = Arc<dyn Fn(&dyn Files) -> io::Result<()> + Send + Sync>;

/// The times for which a file may be overdue.
#[derive(Debug, Clone, Copy)]
pub struct Lateness {
    /// The time after which the log counts as degraded. Default: 2 seconds.
    pub(crate) degrades: Duration,
    /// The time after which entries are refused. Default: 10 seconds.
    pub(crate) refuses: Duration,
}

impl Lateness {
    pub(crate) const DEFAULT: Self = Self { degrades: Duration::from_secs(2), refuses: Duration::from_secs(10) };
}

impl Overdue {
    pub(crate) fn new(lateness: Lateness) -> Self {
        Self { lateness, writes: Mutex::default(), turn: Mutex::default() }
    }

    /// Records the result of writing a file.
    pub(crate) fn note(&self, file: &'static str, error: Option<String>, again: Option<Again>) {
        let mut writes = self.lock();
        match (error, writes.get_mut(file)) {
            (None, _) => drop(writes.remove(file)),
            (Some(error), Some(late)) => (late.error, late.again) = (error, again),
            (Some(error), None) => drop(writes.insert(file, Late { error, since: Instant::now(), again })),
        }
    }

    /// Writes a file; if that fails, it is retried until it succeeds.
    #[cfg(feature = "checkpoints")]
    pub(crate) fn write(&self, file: &'static str, files: &dyn Files, write: Again) -> io::Result<()> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let written = write(files);
        self.note(file, written.as_ref().err().map(ToString::to_string), Some(write));
        written
    }

    /// Retries all overdue files that can be retried.
    pub(crate) fn retry(&self, files: &dyn Files) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let late = |(file, late): (&&'static str, &Late)| Some((*file, Arc::clone(late.again.as_ref()?)));
        let due: Vec<(&'static str, Again)> = self.lock().iter().filter_map(late).collect();
        for (file, again) in due {
            self.note(file, again(files).err().map(|error| error.to_string()), Some(again));
        }
    }

    /// Describes each file because of which the log counts as degraded.
    pub(crate) fn degrading(&self) -> Vec<String> {
        self.since(self.lateness.degrades)
    }

    /// Describes the first file because of which entries are refused.
    pub(crate) fn refusing(&self) -> Option<String> {
        self.since(self.lateness.refuses).into_iter().next()
    }

    fn since(&self, least: Duration) -> Vec<String> {
        let writes = self.lock();
        let told = |(file, late): (&&str, &Late)| {
            let age = late.since.elapsed();
            (age >= least).then(|| format!("{file} could not be written for {} s: {}", age.as_secs(), late.error))
        };
        writes.iter().filter_map(told).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<&'static str, Late>> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
