//! The log, the clock and the source of randomness, which every part of a governor uses.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::governor::log::decision_clock::DecisionClock;
use crate::model::{Digest, Error, Sequence};
use crate::proof::{ProofLog, StateDraft};
use crate::system::Entropy;

/// The engines below the parts. The log's locks are acquired after those of any part.
pub(crate) struct Base {
    pub(crate) log: ProofLog,
    pub(crate) clock: Arc<DecisionClock>,
    pub(crate) entropy: Arc<dyn Entropy>,
}

impl Base {
    /// Enqueues a state, with the cause of the change.
    pub(crate) fn set_state(&self, state: StateDraft, cause: &str) -> Result<Sequence, Error> {
        self.log.queue().set_state(self.clock.now(), state, cause.to_owned())
    }

    /// Random bytes for a salted digest.
    pub(crate) fn salt(&self) -> Digest {
        let mut salt = [0; 32];
        for half in salt.chunks_exact_mut(16) {
            half.copy_from_slice(&self.entropy.bits().to_le_bytes());
        }
        Digest::new(salt)
    }
}

/// Locking a mutex whatever a thread that held it did: no code under a lock can panic between two related changes.
pub(crate) trait Hold<T> {
    fn hold(&self) -> MutexGuard<'_, T>;
}

impl<T> Hold<T> for Mutex<T> {
    fn hold(&self) -> MutexGuard<'_, T> {
        self.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The refusal of a call that does not fit the state of things.
pub(crate) fn conflict<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Error::Conflict { message: message.into() })
}
