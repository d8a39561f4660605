//! Verifying the log.

use super::Governor;
use crate::model::{Error, Verification, VerificationState, VerifyOptions};

impl Governor {
    /// Reads the whole log and recomputes every hash in it. When something does
    /// not hold, the log is read-only from then on.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when the log cannot be read.
    pub fn verify(&self) -> Result<Verification, Error> {
        self.verify_with(&VerifyOptions::new())
    }

    /// How far the log was verified that was opened: of interest where that is done behind, with
    /// [`OpenVerification::Behind`](crate::OpenVerification::Behind).
    pub fn verification_state(&self) -> VerificationState {
        self.inner.log.verification_state()
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
    pub fn verify_with(&self, options: &VerifyOptions) -> Result<Verification, Error> {
        let mut found = self.inner.log.verify_with(options)?;
        found.checked.torn.clone_from(&self.inner.opening.recovered);
        Ok(found)
    }
}
