//! What the evidence still tells of what was asked, and why it does not where it does not.

use super::super::Governor;
use crate::model::{Error, EscalationRecord, EscalationState};
use crate::proof::{Evidence, Kept};

/// What is kept of what was asked.
pub(super) enum AskedEvidence {
    Whole(Box<Evidence>),
    /// It stands in an archive, or in the log before a repair, and why it is not here.
    Elsewhere(String),
    /// It can be read nowhere, and why.
    Lost(String),
}

impl Governor {
    /// What is kept of what was asked, without waiting for more than that.
    pub(super) fn asked_evidence(&self, record: &EscalationRecord) -> Result<AskedEvidence, Error> {
        let lost = |why: &str| Ok(AskedEvidence::Lost(why.to_owned()));
        match self.inner.log.kept_so_far(&record.proof_id) {
            Ok(Kept::Evidence(evidence)) => Ok(AskedEvidence::Whole(evidence)),
            Ok(Kept::Erased) => lost("its evidence was erased"),
            Ok(Kept::Unreadable) => lost("its evidence cannot be read, or is not what was kept; verify the log"),
            Err(error @ Error::ProofElsewhere { .. }) => Ok(AskedEvidence::Elsewhere(error.to_string())),
            // A crash can leave one that was never asked.
            Err(Error::ProofNotFound { .. }) => lost("the record that asks is not in the log, or cannot be read"),
            Err(error) => Err(error),
        }
    }
}

/// Why nothing is granted of what cannot be read.
pub(super) fn evidence_conflict(record: &EscalationRecord, what: &str, why: &str) -> Error {
    let next = if record.state == EscalationState::Pending { "reject it, or let it expire" } else { "ask again" };
    Error::Conflict { message: format!("{} cannot be {what}: {why}; {next}", record.id()) }
}
