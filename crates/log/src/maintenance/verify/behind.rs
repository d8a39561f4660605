//! Background verification of a log that was opened on the basis of its index.
//!
//! Until it is done, the states, the use of limits, the index and the nodes of the tree are used unverified, except for
//! the last entries, which the open has read. Then they are compared with the whole journal. A difference makes the log
//! read-only, like any break; a difference of the records in the index, which no decision rests on, has it rebuilt.

use rulekeep_types::parts::BreakageParts;
use std::collections::BTreeMap;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::held;
use crate::index::Held;
use crate::index::reading::Reading;
use crate::journal::used::UsedLimit;
use crate::maintenance::erase::carry_out_again;
use crate::parts::Parts;
use crate::queue::Refusal;
use crate::store::{Manner, Position, VIEW_FOLDER, ViewError, digest};
use rulekeep_types::{Breakage, BrokenKind, ChainPosition, Digest, LogProgress, Sequence, VerificationState};

/// Unverified data that a log uses until its journal is read.
pub(crate) struct Believed {
    /// The position up to which the data is unverified.
    pub(crate) until: Position,
    /// The digest of each state.
    states: BTreeMap<String, Digest>,
    used: Vec<UsedLimit>,
    /// The root of the tree over these entries.
    root: Digest,
}

impl Believed {
    pub(crate) fn new(until: Position, states: &[(String, Vec<u8>)], used: Vec<UsedLimit>, root: Digest) -> Self {
        let states = states.iter().map(|(key, value)| (key.clone(), digest(value))).collect();
        Self { until, states, used, root }
    }

    /// Describes the first difference from the journal; `None` if there is none.
    fn differs_from(&self, reading: Reading<'_>, root: Digest) -> Option<String> {
        let Reading { states, used, .. } = reading;
        let states: BTreeMap<String, Digest> = states.into_iter().map(|(key, value)| (key, digest(&value))).collect();
        let differs = |key: &&String| self.states.get(*key) != states.get(*key);
        if let Some(key) = self.states.keys().chain(states.keys()).find(differs) {
            return Some(format!("state {key:?}"));
        }
        if self.used != used.into_list() {
            return Some("uses of limits".to_owned());
        }
        (self.root != root).then(|| "nodes of the tree".to_owned())
    }
}

/// The thread that verifies the log in the background.
pub(crate) struct Behind {
    stop: Arc<AtomicBool>,
    state: Arc<Mutex<VerificationState>>,
    // Taken by the first caller that stops it.
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Behind {
    /// Creates a verification that has nothing to do.
    pub(crate) fn nothing() -> Self {
        Self {
            stop: Arc::default(),
            state: Arc::new(Mutex::new(VerificationState::Verified)),
            thread: Mutex::new(None),
        }
    }

    pub(crate) fn start(parts: &Arc<Parts>, believed: Believed) -> io::Result<Self> {
        let of = believed.until.entries;
        let state = Arc::new(Mutex::new(VerificationState::Running(LogProgress::new(0, of))));
        let stop = Arc::new(AtomicBool::new(false));
        let work = {
            let (parts, stop, state) = (Arc::clone(parts), Arc::clone(&stop), Arc::clone(&state));
            move || {
                // A panic must not look like a verification that never ends.
                let ended = panic::catch_unwind(AssertUnwindSafe(|| run(&parts, &believed, &stop, &state)));
                let ended = ended.unwrap_or_else(|_| refused(&parts, "it ended unexpectedly".to_owned()));
                *state.lock().unwrap_or_else(PoisonError::into_inner) = ended;
            }
        };
        let thread = thread::Builder::new().name("rulekeep-verifier".to_owned()).spawn(work)?;
        Ok(Self { stop, state, thread: Mutex::new(Some(thread)) })
    }

    pub(crate) fn state(&self) -> VerificationState {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until the verification is done.
    pub(crate) fn wait(&self) {
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }

    /// Forgets the thread, which does not exist in a forked process.
    pub(crate) fn abandon(&self) {
        std::mem::forget(self.thread.try_lock().map(|mut thread| thread.take()));
    }

    /// Stops it after the segments it is working on.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.wait();
    }
}

fn run(parts: &Parts, believed: &Believed, stop: &AtomicBool, state: &Mutex<VerificationState>) -> VerificationState {
    let of = believed.until.entries;
    let progress = |done: u64| {
        let running = VerificationState::Running(LogProgress::new(done.min(of), of));
        *state.lock().unwrap_or_else(PoisonError::into_inner) = running;
    };
    let manner = Manner { threads: 0, progress: Some(&progress), stop: Some(stop) };
    // Read first, so that every statement in it is in the journal when that is read.
    let held = held(parts);
    let rule = held.as_ref().ok().map(Held::rule);
    let erasures = || Arc::clone(&parts.journal.erasures);
    let mut reading = Reading::checking_range(erasures(), None, believed.until, rule.clone());
    let (found, root) = match parts.journal.reader.verify_tree(&mut reading, believed.until, manner) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::Interrupted && manner.is_stopped() => {
            return VerificationState::Stopped;
        }
        Err(error) => return refused(parts, format!("the journal cannot be read: {error}")),
    };
    let (chain, finds_erased, mut sums) = (reading.verified(), reading.finds_erased, std::mem::take(&mut reading.held));
    let breakage = found.breakage.or_else(|| {
        let what = believed.differs_from(reading, root)?;
        Some(Breakage::from(BreakageParts {
            sequence: Sequence::new(of),
            proof_id: None,
            file: VIEW_FOLDER.to_owned(),
            offset: 0,
            kind: BrokenKind::Tampering,
            expected: format!("the {what} that the journal has"),
            found: "others, by which was decided since the log was opened".to_owned(),
        }))
    });
    if breakage.is_some()
        && let Some(broken) = parts.note_breakage(breakage)
    {
        return VerificationState::Broken(broken);
    }
    parts.maintenance.set_believes(false);
    if finds_erased && let Err(error) = carry_out_again(parts) {
        return refused(parts, error.to_string());
    }
    let position = ChainPosition::new(of, believed.until.link, chain.records, chain.head_hash);
    parts.maintenance.note_verified(position);
    // The index may have been read with entries that were added since the log was opened.
    let now = parts.index.applied();
    let mut more = Reading::checking_range(erasures(), Some(&position), now, rule);
    if now.entries > of {
        let manner = Manner { progress: None, ..manner };
        match parts.journal.reader.verify_parts(&mut more, Some(believed.until), now, manner) {
            Ok(found) if found.breakage.is_none() => sums.join(more.held),
            // The next verification finds it again.
            _ => return VerificationState::Verified,
        }
    }
    let differs = held.map_or_else(Some, |held| held.differs_from(&sums).map(ViewError::Differs));
    if let Some(differs) = differs {
        parts.index.mend(&parts.journal, &differs);
    }
    VerificationState::Verified
}

/// Refuses new entries, because data that cannot be verified must not be used any longer.
fn refused(parts: &Parts, why: String) -> VerificationState {
    parts.queue.refuse(Refusal::Broken(why.clone()));
    VerificationState::Failed(why)
}
