//! Verification of the log.

use crate::governor::{Governor, Log};
use crate::model::{Error, Verification, VerificationState, VerifyOptions};

impl Log<'_> {
    /// Returns the progress of the verification that started when the log was opened, of interest with
    /// [`OpenVerification::Behind`](crate::proof::OpenVerification::Behind).
    pub fn verification(self) -> VerificationState {
        self.governor.inner.base.log.verification_state()
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
        let mut found = self.governor.inner.base.log.verify_with(options)?;
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
