//! Verifying the log while it is in use.

use super::ProofLog;
use crate::index::held_in;
use crate::journal::read_error;
use crate::maintenance::verify::{self, Verifying};
use crate::store::{Manner, ViewError};
use rulekeep_types::{Error, LogProgress, Verification, VerifyOptions, VerifySince};

impl ProofLog {
    /// Verifies the journal as the options ask. If that is all of it, also compares the index, and rebuilds one that
    /// differs.
    pub fn verify_with(&self, options: &VerifyOptions) -> Result<Verification, Error> {
        self.parts.catch_up()?;
        // The beginning of the log must not move meanwhile.
        let is_bound = !matches!(options.since, VerifySince::Position(_));
        let _turn = is_bound.then(|| self.parts.maintenance.archiving());
        let since = options.since.position(*self.parts.maintenance.verified());
        let compares = since.is_none() && self.parts.journal.breakage.get().is_none();
        let held = match &self.beside {
            _ if !compares => None,
            Some(folder) => held_in(folder, self.parts.journal.store, self.parts.index.applied()),
            None => Some(verify::held(&self.parts)),
        };
        let of = self.parts.index.applied().entries;
        let tell =
            options.progress.as_ref().map(|progress| move |done: u64| (progress.0)(LogProgress::new(done.min(of), of)));
        let progress = tell.as_ref().map(|tell| tell as &dyn Fn(u64));
        let verifying = Verifying {
            since: since.as_ref(),
            held: held.as_ref().and_then(|held| held.as_ref().ok()),
            manner: Manner { threads: options.threads, progress, stop: None },
        };
        let (mut found, differs) = verify::verify(&self.parts, &verifying).map_err(read_error)?;
        if found.valid {
            found.checked.is_index_compared = held.is_some();
            let differs = held.and_then(Result::err).or(differs.map(ViewError::Differs));
            if let Some(differs) = differs.as_ref().filter(|_| self.beside.is_none()) {
                self.parts.index.mend(&self.parts.journal, differs);
                if self.parts.index.is_incomplete() {
                    return Err(Error::storage("the index differs from the journal and cannot be rebuilt"));
                }
            }
            found.index_differed = differs.map(|differs| differs.to_string());
        }
        Ok(found)
    }

    #[cfg(test)]
    pub(crate) fn verify(&self) -> Result<Verification, Error> {
        self.verify_with(&VerifyOptions::new())
    }
}
