//! Decisions, the work under them, and their outcomes.

pub(crate) mod calls;
pub(crate) mod decide;
pub(crate) mod guard;
pub(crate) mod latency;
pub(crate) mod outcome;
pub(crate) mod pending;

use std::sync::Arc;
use std::time::Instant;

use crate::governor::{Approvals, Base, Intake, Roster, Rules};
use crate::model::{Decision, Enforcement};
use crate::telemetry::{self, Work};

use calls::Calls;
use latency::Latency;

/// Decides, and records decisions and outcomes.
///
/// Lock order: the agent, the counters of the limits, the pre-approvals, then the log. No lock is acquired under that of
/// the idempotency keys.
pub(crate) struct Decider {
    pub(crate) base: Arc<Base>,
    pub(crate) roster: Arc<Roster>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) intake: Arc<Intake>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) calls: Calls,
    pub(crate) latency: Latency,
    pub(crate) opened: Instant,
}

impl Decider {
    /// Counts an enforcement that reached a decision.
    pub(crate) fn record_latency(&self, started: Instant) {
        let ended = Instant::now();
        let took = ended.duration_since(started);
        self.latency.add(ended.duration_since(self.opened), took);
        telemetry::enforced(took);
    }

    /// Records metrics of a verdict that is durable.
    pub(crate) fn record_verdict(&self, work: &Work, started: Instant, enforcement: &Enforcement) {
        self.record_latency(started);
        work.note_verdict(enforcement);
        if enforcement.decision == Decision::Escalate {
            self.approvals.publish_pending();
        }
    }
}
