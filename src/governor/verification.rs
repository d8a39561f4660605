//! Verifying the log.

use std::sync::Arc;

use super::Governor;
use super::log::Log;
use crate::model::{Error, ScrubOptions, ScrubStatus, Verification, VerificationState, VerifyOptions};

impl Log<'_> {
    /// How far the log was verified that was opened: of interest where that is done behind, with
    /// [`OpenVerification::Behind`](crate::proof::OpenVerification::Behind).
    pub fn verification(self) -> VerificationState {
        self.governor.inner.log.verification_state()
    }

    /// Starts a thread that reads all that is stored again and again, slowly, until the governor is closed: what
    /// decays is found while there is still a copy of it. One that runs already is replaced.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when the log is closed or the thread cannot be started.
    pub fn scrub(self, options: ScrubOptions) -> Result<(), Error> {
        let clock = Arc::clone(&self.governor.inner.clock);
        self.governor.inner.log.scrub(options, move || clock.now())
    }

    /// How the scrub stands; `None` where none was started.
    pub fn scrub_status(self) -> Option<ScrubStatus> {
        self.governor.inner.log.scrub_status()
    }

    /// Like [`Governor::verify`], and as it is asked for: only what has come since
    /// some place, with progress, with so many threads, the view compared too.
    ///
    /// What is appended meanwhile is left to the next time. A place to begin at
    /// that is none of this log is what then is broken, and nothing else: the log goes on.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when the log cannot be read.
    pub fn verify(self, options: &VerifyOptions) -> Result<Verification, Error> {
        let mut found = self.governor.inner.log.verify_with(options)?;
        found.checked.torn.clone_from(&self.governor.inner.opening.recovered);
        Ok(found)
    }
}

impl Governor {
    /// Reads the whole log and recomputes every hash in it. When something does
    /// not hold, the log is read-only from then on.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when the log cannot be read.
    pub fn verify(&self) -> Result<Verification, Error> {
        self.log().verify(&VerifyOptions::new())
    }
}
