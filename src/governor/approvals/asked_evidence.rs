//! The evidence of an escalated request, and the reasons why it may be unavailable.

use crate::governor::Approvals;
use crate::model::{Error, EscalationRecord, EscalationState};
use crate::proof::{Evidence, Kept};

/// The evidence of an escalated request.
pub(super) enum AskedEvidence {
    Whole(Box<Evidence>),
    /// The evidence is in an archive or in the log before a repair; the text names the place.
    Elsewhere(String),
    /// The evidence cannot be read anywhere; the text says why.
    Lost(String),
}

impl Approvals {
    /// Reads the evidence without waiting for other entries.
    pub(super) fn asked_evidence(&self, record: &EscalationRecord) -> Result<AskedEvidence, Error> {
        let lost = |why: &str| Ok(AskedEvidence::Lost(why.to_owned()));
        match self.base.log.kept_so_far(&record.proof_id) {
            Ok(Kept::Evidence(evidence)) => Ok(AskedEvidence::Whole(evidence)),
            Ok(Kept::Erased) => lost("its evidence was erased"),
            Ok(Kept::Unreadable) => lost("its evidence cannot be read, or is not what was kept; verify the log"),
            Err(error @ Error::ProofElsewhere { .. }) => Ok(AskedEvidence::Elsewhere(error.to_string())),
            // A crash can leave an escalation whose record was never written.
            Err(Error::ProofNotFound { .. }) => {
                lost("the record of the escalation is not in the log or cannot be read")
            }
            Err(error) => Err(error),
        }
    }
}

/// The error for a request whose evidence cannot be read, so nothing is granted.
pub(super) fn evidence_conflict(record: &EscalationRecord, what: &str, why: &str) -> Error {
    let next = if record.state == EscalationState::Pending { "reject it, or let it expire" } else { "ask again" };
    Error::Conflict { message: format!("{} cannot be {what}: {why}; {next}", record.id()) }
}
