//! Past decisions with their evidence, from the first on, for evaluating them again.

use crate::journal::erase::{Erasures, Kept};
use crate::journal::record::CanonicalRecord;
use crate::store::{Finding, Frame, Kind, Visitor};
use rulekeep_types::{AgentId, Decision, Digest, Error, ProofId, Timestamp};

/// A filter on past decisions.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct PastRange {
    pub entity: Option<AgentId>,
    /// The earliest time, inclusive.
    pub from: Option<Timestamp>,
    /// The latest time, inclusive.
    pub to: Option<Timestamp>,
}

/// A past decision and its evidence.
#[derive(Debug)]
pub struct PastDecision {
    pub proof_id: ProofId,
    pub decision: Decision,
    pub evidence: Kept,
}

/// Passes the decisions of a range to `each`.
pub(crate) struct Past<'a> {
    pub(crate) range: &'a PastRange,
    pub(crate) erasures: &'a Erasures,
    pub(crate) each: &'a mut dyn FnMut(PastDecision) -> Result<(), Error>,
    /// The error with which `each` stopped.
    pub(crate) stopped: Option<Error>,
}

impl PastRange {
    fn has(&self, entity: &AgentId, at: Timestamp) -> bool {
        self.entity.as_ref().is_none_or(|wanted| wanted == entity)
            && self.from.is_none_or(|from| at >= from)
            && self.to.is_none_or(|to| at <= to)
    }
}

impl Visitor for Past<'_> {
    fn visit(&mut self, frame: &Frame<'_>, _: &Digest) -> Option<Finding> {
        if self.stopped.is_some() || frame.kind != Kind::Decision {
            return None;
        }
        // Records that cannot be parsed are reported by verification.
        let fields = CanonicalRecord::read(frame.body).ok()?;
        if self.range.has(&fields.entity_id, fields.timestamp) {
            let past = PastDecision {
                proof_id: fields.id,
                decision: fields.decision,
                evidence: self.erasures.look(&fields, frame.evidence),
            };
            self.stopped = (self.each)(past).err();
        }
        None
    }
}
