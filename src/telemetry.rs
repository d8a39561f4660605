//! Spans for `tracing` and metrics for `metrics`, each behind the feature of its name and otherwise compiled out.
//!
//! `docs/reference/status.md` lists the names. Of the texts that callers and agents write, only ids and action names
//! are exported: no input, context, reasoning or note.
//!
//! Subscribers and recorders are external code. They are called while no lock is held, except on the writer thread,
//! where a panic of theirs is caught.

use std::time::Duration;

#[cfg(feature = "tracing")]
use crate::model::Decision;
use crate::model::{Enforcement, Error, Intent, ParseResult};

/// A call in progress: a span that ends with it.
pub(crate) struct Work {
    #[cfg(feature = "tracing")]
    span: tracing::Span,
}

/// A span with the fields of every call; some are filled in during the call.
#[cfg(feature = "tracing")]
macro_rules! span {
    ($name:literal, $operation:literal) => {
        tracing::info_span!(
            $name,
            "gen_ai.operation.name" = $operation,
            "gen_ai.agent.id" = tracing::field::Empty,
            "gen_ai.tool.name" = tracing::field::Empty,
            "error.type" = tracing::field::Empty,
            "http.response.status_code" = tracing::field::Empty,
            "rulekeep.proof.id" = tracing::field::Empty,
            "rulekeep.decision" = tracing::field::Empty,
            "rulekeep.risk" = tracing::field::Empty,
            "rulekeep.outcome" = tracing::field::Empty,
            "rulekeep.escalation.id" = tracing::field::Empty,
            "rulekeep.escalation.state" = tracing::field::Empty,
        )
    };
}

#[cfg_attr(not(feature = "tracing"), allow(unused_variables, clippy::unused_self))]
impl Work {
    pub(crate) fn enforce() -> Self {
        Self {
            #[cfg(feature = "tracing")]
            span: span!("rulekeep.enforce", "enforce"),
        }
    }

    pub(crate) fn parse() -> Self {
        Self {
            #[cfg(feature = "tracing")]
            span: span!("rulekeep.parse", "parse"),
        }
    }

    pub(crate) fn report() -> Self {
        Self {
            #[cfg(feature = "tracing")]
            span: span!("rulekeep.report", "report"),
        }
    }

    pub(crate) fn approve() -> Self {
        Self {
            #[cfg(feature = "tracing")]
            span: span!("rulekeep.approve", "approve"),
        }
    }

    pub(crate) fn reject() -> Self {
        Self {
            #[cfg(feature = "tracing")]
            span: span!("rulekeep.reject", "reject"),
        }
    }

    /// Sets a field of the span.
    pub(crate) fn note(&self, field: &'static str, value: &dyn std::fmt::Display) -> &Self {
        #[cfg(feature = "tracing")]
        self.span.record(field, tracing::field::display(value));
        self
    }

    /// Sets the fields of an intent.
    pub(crate) fn note_intent(&self, intent: &Intent) -> &Self {
        self.note("gen_ai.agent.id", &intent.agent_id).note("gen_ai.tool.name", &intent.parsed_action)
    }

    /// Sets the fields of a parsed request.
    pub(crate) fn note_parsed(&self, parsed: &ParseResult) {
        self.note_intent(&parsed.intent).note("rulekeep.risk", &parsed.intent.risk_level);
    }

    /// Sets the fields of a verdict; an escalation is an event of its own.
    pub(crate) fn note_verdict(&self, enforcement: &Enforcement) {
        self.note("rulekeep.decision", &enforcement.decision).note("rulekeep.proof.id", &enforcement.proof_id);
        #[cfg(feature = "tracing")]
        if enforcement.decision == Decision::Escalate {
            let escalation_id = crate::model::EscalationId::of(enforcement.proof_id);
            let proof_id = enforcement.proof_id;
            tracing::event!(
                name: "rulekeep.escalate",
                parent: &self.span,
                tracing::Level::INFO,
                { rulekeep.escalation.id = %escalation_id, rulekeep.proof.id = %proof_id },
                "a request is escalated"
            );
        }
    }

    /// Runs the call and records its error.
    pub(crate) fn done_by<T>(self, work: impl FnOnce(&Self) -> Result<T, Error>) -> Result<T, Error> {
        #[cfg(feature = "tracing")]
        let _entered = self.span.enter();
        let done = work(&self);
        if let Err(error) = &done {
            self.note("error.type", &error.code());
        }
        done
    }
}

/// Records the duration of an enforcement that reached a decision.
#[cfg_attr(not(feature = "metrics"), allow(unused_variables))]
pub(crate) fn enforced(took: Duration) {
    #[cfg(feature = "metrics")]
    metrics::histogram!("rulekeep.enforce.duration").record(took.as_secs_f64());
}

/// Records the number of pending escalations.
#[cfg_attr(not(feature = "metrics"), allow(unused_variables))]
pub(crate) fn pending(count: impl FnOnce() -> usize) {
    #[cfg(feature = "metrics")]
    #[allow(clippy::cast_precision_loss)] // at most some thousands
    metrics::gauge!("rulekeep.escalations.pending").set(count() as f64);
}

/// Registers units and descriptions with the recorder.
pub(crate) fn describe() {
    #[cfg(feature = "metrics")]
    {
        use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
        describe_counter!("rulekeep.decisions", "Decisions in the log, by verdict and effective risk.");
        describe_counter!("rulekeep.proof.records", "Proof records that were added to the log.");
        describe_gauge!("rulekeep.escalations.pending", "Pending escalations.");
        describe_histogram!("rulekeep.enforce.duration", Unit::Seconds, "Duration of enforcement.");
    }
}
