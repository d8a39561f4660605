//! Secrets stored beside the journal, because they must not be in it.

use super::ProofLog;
use crate::store;
use rulekeep_types::Error;

impl ProofLog {
    /// Returns the stored secrets.
    pub fn kept_secrets(&self) -> Result<Option<Vec<u8>>, Error> {
        store::read_secrets(&*self.parts.journal.files)
            .map_err(|error| Error::storage("cannot read SECRETS").caused_by(error))
    }

    /// Replaces the stored secrets; they are on disk when this returns.
    pub fn keep_secrets(&self, content: &[u8]) -> Result<(), Error> {
        self.keep_beside("SECRETS", |journal| store::write_secrets(&*journal.files, content))
    }
}
