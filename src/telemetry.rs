//! What is told to `tracing` and to `metrics`, each by the feature of its name;
//! without them nothing of it is compiled in.
//!
//! `docs/reference/status.md` lists the names. No text that a caller or an agent wrote is
//! told but ids and names of actions: no input, context, reasoning or note.
//!
//! Subscribers and recorders are others' code. They are called where no lock is
//! held, but for those of the writer, which are kept from ending it by a panic.

use std::time::Duration;

use crate::model::{Decision, Enforcement, Error, Intent, ParseResult, RiskLevel};

/// A call that is at work: a span, from here to where it ends.
pub(crate) struct Work {
    #[cfg(feature = "tracing")]
    span: tracing::Span,
}

/// A span with what is told of every call, and what becomes known while it is at work.
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

    /// Notes something of it.
    pub(crate) fn note(&self, field: &'static str, value: &dyn std::fmt::Display) -> &Self {
        #[cfg(feature = "tracing")]
        self.span.record(field, tracing::field::display(value));
        self
    }

    /// Notes what an agent asks for.
    pub(crate) fn note_intent(&self, intent: &Intent) -> &Self {
        self.note("gen_ai.agent.id", &intent.agent_id).note("gen_ai.tool.name", &intent.parsed_action)
    }

    /// Notes what a request was parsed to.
    pub(crate) fn note_parsed(&self, parsed: &ParseResult) {
        self.note_intent(&parsed.intent).note("rulekeep.risk", &parsed.intent.risk_level);
    }

    /// Notes a verdict; that a person is asked is an event.
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
                "a person is asked"
            );
        }
    }

    /// Does the work, and notes where it fails.
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

/// An enforcement came to a verdict in this time.
#[cfg_attr(not(feature = "metrics"), allow(unused_variables))]
pub(crate) fn enforced(took: Duration) {
    #[cfg(feature = "metrics")]
    metrics::histogram!("rulekeep.enforce.duration").record(took.as_secs_f64());
}

/// So many escalations wait for people.
#[cfg_attr(not(feature = "metrics"), allow(unused_variables))]
pub(crate) fn pending(count: impl FnOnce() -> usize) {
    #[cfg(feature = "metrics")]
    #[allow(clippy::cast_precision_loss)] // at most some thousands
    metrics::gauge!("rulekeep.escalations.pending").set(count() as f64);
}

/// These decisions are in the log.
#[cfg_attr(not(feature = "metrics"), allow(unused_variables, clippy::needless_pass_by_value))]
pub(crate) fn recorded(decisions: impl Iterator<Item = (Decision, RiskLevel)>) {
    #[cfg(feature = "metrics")]
    {
        let count = || {
            for (decision, risk) in decisions {
                let labels = [("decision", decision.as_str()), ("risk", risk.as_str())];
                metrics::counter!("rulekeep.decisions", &labels).increment(1);
                metrics::counter!("rulekeep.proof.records").increment(1);
            }
        };
        // What goes wrong there must not end the writer.
        drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(count)));
    }
}

/// Names units and meanings to the recorder that is there.
pub(crate) fn describe() {
    #[cfg(feature = "metrics")]
    {
        use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};
        describe_counter!("rulekeep.decisions", "Decisions in the log, by verdict and effective risk.");
        describe_counter!("rulekeep.proof.records", "Proof records that were added to the log.");
        describe_gauge!("rulekeep.escalations.pending", "Escalations that wait for people.");
        describe_histogram!("rulekeep.enforce.duration", Unit::Seconds, "How long enforcements took.");
    }
}
