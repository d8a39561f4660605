//! What is kept beside the journal because it must not stand in it.

use super::ProofLog;
use crate::model::Error;
use crate::store;

impl ProofLog {
    /// The secrets as they were kept last.
    pub(crate) fn kept_secrets(&self) -> Result<Option<Vec<u8>>, Error> {
        store::read_secrets(&*self.parts.journal.files)
            .map_err(|error| Error::storage(format!("cannot read SECRETS: {error}")))
    }

    /// Keeps secrets in the place of the last ones; they are on disk then.
    pub(crate) fn keep_secrets(&self, content: &[u8]) -> Result<(), Error> {
        self.keep_beside("SECRETS", |journal| store::write_secrets(&*journal.files, content))
    }
}
