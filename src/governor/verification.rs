//! Verification of the log.

use std::sync::Arc;

use super::Governor;
use super::log::Log;
use crate::model::{Error, ScrubOptions, ScrubStatus, Verification, VerificationState, VerifyOptions};

impl Log<'_> {
    /// Returns the progress of the verification that started when the log was opened, of interest with
    /// [`OpenVerification::Behind`](crate::proof::OpenVerification::Behind).
    pub fn verification(self) -> VerificationState {
        self.governor.inner.log.verification_state()
    }

    /// Starts the scrub: a thread that slowly rereads and verifies the whole store, over and over, until the governor
    /// is closed. It finds decayed data while a backup still exists. A scrub that is running already is replaced.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when the log is closed or the thread cannot be started.
    pub fn scrub(self, options: ScrubOptions) -> Result<(), Error> {
        let clock = Arc::clone(&self.governor.inner.clock);
        self.governor.inner.log.scrub(options, move || clock.now())
    }

    /// Returns the state of the scrub; `None` if none was started.
    pub fn scrub_status(self) -> Option<ScrubStatus> {
        self.governor.inner.log.scrub_status()
    }

    /// Verifies the log like [`Governor::verify`], with options: a starting position, progress reports, the number of
    /// threads, and a comparison of the index.
    ///
    /// Entries appended meanwhile are left to the next verification. A starting position that does not belong to this
    /// log is reported as broken, but the log stays writable.
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
    /// Verifies the whole log by recomputing every hash in it. If it finds a break, the log becomes read-only.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when the log cannot be read.
    pub fn verify(&self) -> Result<Verification, Error> {
        self.log().verify(&VerifyOptions::new())
    }
}
