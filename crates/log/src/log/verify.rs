//! Verifying the log while it is in use.

use super::ProofLog;
use crate::journal::read_error;
use crate::maintenance::verify::{self, Verifying};
use crate::store::Manner;
use rulekeep_types::{Error, LogProgress, Verification, VerifyOptions, VerifySince, VerifyView, ViewFinding};

impl ProofLog {
    /// Verifies the journal as the options ask.
    pub fn verify_with(&self, options: &VerifyOptions) -> Result<Verification, Error> {
        self.parts.catch_up()?;
        let compares = options.view == VerifyView::Compare && self.parts.journal.breakage.get().cloned().is_none();
        // The beginning of the log must not move meanwhile.
        let is_bound = compares || matches!(options.since, VerifySince::LastVerified);
        let _turn = is_bound.then(|| self.parts.maintenance.archiving());
        let since = if compares { None } else { options.since.position(*self.parts.maintenance.verified()) };
        let held = if compares { Some(verify::held(&self.parts).map_err(|error| error.to_string())) } else { None };
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
            found.checked.view = match (held, differs) {
                (None, _) => ViewFinding::NotCompared,
                (Some(Ok(_)), None) => ViewFinding::Agrees,
                (Some(Err(said)), _) | (Some(Ok(_)), Some(said)) => {
                    self.make_view_anew()?;
                    ViewFinding::Differed(said)
                }
            };
        }
        Ok(found)
    }

    fn make_view_anew(&self) -> Result<(), Error> {
        let mut index = self.parts.index.write();
        self.parts.index.rebuild(&mut index, &self.parts.journal);
        if self.parts.index.is_incomplete() {
            return Err(Error::storage("the index differs from the journal and cannot be rebuilt"));
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn verify(&self) -> Result<Verification, Error> {
        self.verify_with(&VerifyOptions::new())
    }
}
