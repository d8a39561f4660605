//! Guarded work: decide, run under the grant's limits, report the outcome.

use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use crate::governor::decider::pending::PendingEnforcement;
use crate::governor::intake::risk::RiskSource;
use crate::governor::{Decider, Governor};
use crate::model::parts::InputEnforcementParts;
use crate::model::{
    Decision, Enforcement, Error, EscalationId, Grant, GrantError, GrantTerms, Input, InputEnforcement, Intent,
    Outcome, OutcomeReport, ParseResult, ProofId,
};
use crate::proof::Ticket;
use crate::telemetry::Work;

impl Governor {
    /// Decides on a request, runs `work` under the grant, and reports the outcome.
    ///
    /// The outcome is SUCCESS if `work` returns `Ok` in time, and FAILURE if it returns `Err`, panics, or ends after
    /// `timeoutMs` or `expiresAt`. A panic continues after the FAILURE is reported. Without a grant `work` does not
    /// run. DEGRADE grants a part of the request: work that cannot do less calls [`Grant::check_capability`].
    ///
    /// A FAILURE by a panic or a deadline returns nothing to rate limits, because the work may have had an effect.
    ///
    /// ```
    /// use rulekeep::grant::{GrantError, GuardError};
    /// use rulekeep::{Agent, Governor, Outcome, Tier};
    ///
    /// let governor = Governor::builder().open_in_memory()?;
    /// governor.agents().register(Agent::new("support-1").at_tier(Tier::T4))?;
    /// let done = governor.guard("support-1", "Read the file /srv/notes.txt", |grant| {
    ///     grant.check_target("/srv/notes.txt")?;
    ///     grant.take_records(1)?;
    ///     Ok::<_, GrantError>("the notes")
    /// })?;
    /// assert_eq!(done.value, "the notes");
    /// let record = governor.log().record(&done.decided.enforcement.proof_id)?;
    /// assert_eq!(record.outcome, Some(Outcome::Success));
    ///
    /// let refused = governor.guard("support-1", "Delete all customer records", |_| Ok::<_, GrantError>(()));
    /// assert!(matches!(refused, Err(GuardError::Refused { .. })));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`GuardError::Undecided`] and [`GuardError::Refused`] before the work runs, [`GuardError::Failed`] and
    /// [`GuardError::Late`] after it.
    pub fn guard<'a, T, E>(
        &self,
        agent_id: &str,
        input: impl Into<Input<'a>>,
        work: impl FnOnce(Grant) -> Result<T, E>,
    ) -> Result<Guarded<T>, GuardError<E>> {
        let decided = self.enforce_input(agent_id, input).map_err(GuardError::Undecided)?;
        self.inner.decider.guard_decided(decided, work)
    }

    /// [`Governor::guard`] for a request that a reviewer may have to agree to: after ESCALATE, waits up to `timeout` for
    /// the answer, and claims an approval. Blocks the thread.
    ///
    /// ```
    /// use std::{thread, time::Duration};
    ///
    /// use rulekeep::escalation::{EscalationQuery, Review};
    /// use rulekeep::grant::{GrantError, GuardRequest};
    /// use rulekeep::{Governor, PolicySet};
    ///
    /// let rules = "name = \"p\"\n[[rule]]\nid = \"asks\"\neffect = \"escalate\"\nreviewer = \"ann\"";
    /// let builder = Governor::builder().policies(PolicySet::from_toml(rules)?).auto_register();
    /// let governor = builder.open_in_memory()?;
    /// let reviewer = governor.clone();
    /// let answered = thread::spawn(move || {
    ///     while reviewer.escalations().list(&EscalationQuery::all())?.items.is_empty() {
    ///         thread::sleep(Duration::from_millis(5));
    ///     }
    ///     let asked = reviewer.escalations().list(&EscalationQuery::all())?.items[0].id;
    ///     reviewer.escalations().approve(asked, Review::by("ann"))
    /// });
    /// let payment = GuardRequest::input("clerk", "Pay 40 EUR to Bob");
    /// let paid = governor.guard_wait(payment, Duration::from_secs(30), |grant| {
    ///     grant.check()?;
    ///     Ok::<_, GrantError>("paid")
    /// })?;
    /// assert_eq!(paid.value, "paid");
    /// # answered.join().unwrap()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Governor::guard`]; [`GuardError::Refused`] also for an answer that is not there in time.
    pub fn guard_wait<T, E>(
        &self,
        request: GuardRequest<'_>,
        timeout: Duration,
        work: impl FnOnce(Grant) -> Result<T, E>,
    ) -> Result<Guarded<T>, GuardError<E>> {
        let here = self.inner.here().map_err(GuardError::Undecided)?;
        let decided = here.decider.decided(request).map_err(GuardError::Undecided)?;
        let answer = match pending(&decided) {
            Some(id) => self.escalations().wait(id, &decided.parse.intent, timeout).map_err(GuardError::Undecided)?,
            None => None,
        };
        self.inner.decider.guard_decided(answer_to(decided, answer), work)
    }

    /// [`Governor::guard_wait`] for async work. It has no timeout other than the escalation's expiry: wrap the future in
    /// your runtime's.
    ///
    /// # Errors
    ///
    /// The errors of [`Governor::guard`].
    pub async fn guard_wait_async<T, E, F>(
        &self,
        request: GuardRequest<'_>,
        work: impl FnOnce(Grant) -> F,
    ) -> Result<Guarded<T>, GuardError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let here = self.inner.here().map_err(GuardError::Undecided)?;
        let decided = here.decider.decided(request).map_err(GuardError::Undecided)?;
        let answer = match pending(&decided) {
            Some(id) => {
                let claim = self.escalations().claim_async(id, &decided.parse.intent).map_err(GuardError::Undecided)?;
                Some(claim.await.map_err(GuardError::Undecided)?)
            }
            None => None,
        };
        self.inner.decider.guard_decided_async(answer_to(decided, answer), work).await
    }

    /// [`Governor::guard`] for async work, on any runtime.
    ///
    /// Nothing is decided before the first poll, and a thread is blocked only as by [`Governor::enforce_pending`]. The
    /// deadline is checked at each poll, and late work is dropped; to be woken at the deadline, wrap the future in your
    /// runtime's timeout. If the future is dropped while the work runs, FAILURE is reported without waiting for the
    /// disk.
    ///
    /// ```
    /// # fn block_on<T>(future: impl Future<Output = T>) -> T {
    /// #     let mut future = std::pin::pin!(future);
    /// #     loop {
    /// #         let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    /// #         if let std::task::Poll::Ready(done) = future.as_mut().poll(&mut context) {
    /// #             return done;
    /// #         }
    /// #     }
    /// # }
    /// use rulekeep::Governor;
    /// use rulekeep::grant::GrantError;
    ///
    /// let governor = Governor::builder().auto_register().open_in_memory()?;
    /// let done = block_on(governor.guard_async("support-1", "Summarize the meeting notes", async |grant| {
    ///     grant.check()?;
    ///     Ok::<_, GrantError>("a summary")
    /// }))?;
    /// assert_eq!(done.value, "a summary");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Governor::guard`].
    pub async fn guard_async<'a, T, E, F>(
        &self,
        agent_id: &str,
        input: impl Into<Input<'a>>,
        work: impl FnOnce(Grant) -> F,
    ) -> Result<Guarded<T>, GuardError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let (parse, pending) = self
            .inner
            .here()
            .and_then(|here| here.decider.enforce_input_pending(agent_id, input.into()))
            .map_err(GuardError::Undecided)?;
        let enforcement = pending.await.map_err(GuardError::Undecided)?;
        let decided = InputEnforcement::from(InputEnforcementParts { enforcement, parse });
        self.inner.decider.guard_decided_async(decided, work).await
    }
}

impl Decider {
    /// Runs async work under the grant of a decision and reports the outcome.
    async fn guard_decided_async<T, E, F>(
        self: &Arc<Self>,
        decided: InputEnforcement,
        work: impl FnOnce(Grant) -> F,
    ) -> Result<Guarded<T>, GuardError<E>>
    where
        F: Future<Output = Result<T, E>>,
    {
        let (grant, decided) = granted(decided)?;
        let mut running = Running::of(self, &grant, AtDrop::Enqueue);
        let result = {
            // Dropped at the end of the block, so that late work has ended before it is reported.
            let mut work = pin!(work(grant));
            poll_fn(|context| match running.terms.check_work() {
                Ok(()) => work.as_mut().poll(context).map(Ok),
                Err(late) => Poll::Ready(Err(late)),
            })
            .await
        };
        let ended = match result {
            Ok(result) => running.end(result),
            Err(late) => Ended::Late(late),
        };
        let reported = match running.report(&ended) {
            Ok(Some(mut ticket)) => poll_fn(|context| ticket.poll(context)).await,
            reported => reported.map(drop),
        };
        running.conclude(ended, decided, reported.err())
    }

    /// Decides on a request in either form.
    fn decided(&self, request: GuardRequest<'_>) -> Result<InputEnforcement, Error> {
        match request {
            GuardRequest::Input { agent_id, input } => self.enforce_input(agent_id, input),
            GuardRequest::Intent(intent) => {
                // The decision is made on the parser's result, so that is what an approval covers.
                let intent = self.intake.inputs.bound(Cow::Borrowed(intent))?.into_owned();
                let enforcement = self.enforce(&intent, RiskSource::Caller)?;
                let parse = ParseResult::new(intent, 1.0, Vec::new());
                Ok(InputEnforcement::from(InputEnforcementParts { enforcement, parse }))
            }
        }
    }

    /// Runs work under the grant of a decision and reports the outcome.
    pub(crate) fn guard_decided<T, E>(
        self: &Arc<Self>,
        decided: InputEnforcement,
        work: impl FnOnce(Grant) -> Result<T, E>,
    ) -> Result<Guarded<T>, GuardError<E>> {
        let (grant, decided) = granted(decided)?;
        let mut running = Running::of(self, &grant, AtDrop::Settle);
        let result = work(grant);
        let ended = running.end(result);
        let reported = running.report(&ended).and_then(|ticket| ticket.map_or(Ok(()), |ticket| ticket.wait()));
        running.conclude(ended, decided, reported.err())
    }

    /// [`Governor::enforce_input`] without waiting for the disk.
    fn enforce_input_pending(
        &self,
        agent_id: &str,
        input: Input<'_>,
    ) -> Result<(ParseResult, PendingEnforcement), Error> {
        let started = Instant::now();
        Work::enforce().done_by(|work| {
            let parsed = self.intake.parsed(agent_id, input)?;
            work.note_intent(&parsed.result.intent);
            let pending = self.decide_pending(started, &parsed.result.intent, RiskSource::of(&parsed))?;
            Ok((parsed.result, pending))
        })
    }
}

/// A request for guarded work: a text or tool call of an agent, or an intent.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum GuardRequest<'a> {
    /// A request that is parsed first.
    #[non_exhaustive]
    Input {
        /// The agent that asks.
        agent_id: &'a str,
        /// The text, with its context.
        input: Input<'a>,
    },
    /// An intent.
    Intent(&'a Intent),
}

impl<'a> GuardRequest<'a> {
    /// The request of an agent, to be parsed first.
    pub fn input(agent_id: &'a str, input: impl Into<Input<'a>>) -> Self {
        Self::Input { agent_id, input: input.into() }
    }
}

impl<'a> From<&'a Intent> for GuardRequest<'a> {
    fn from(intent: &'a Intent) -> Self {
        Self::Intent(intent)
    }
}

/// The escalation that a decision waits for.
fn pending(decided: &InputEnforcement) -> Option<EscalationId> {
    let is_asked = decided.enforcement.decision == Decision::Escalate;
    is_asked.then(|| EscalationId::of(decided.enforcement.proof_id))
}

/// The decision with the answer in its place, if there is one.
fn answer_to(decided: InputEnforcement, answer: Option<Enforcement>) -> InputEnforcement {
    match answer {
        Some(enforcement) => InputEnforcement::from(InputEnforcementParts { enforcement, parse: decided.parse }),
        None => decided,
    }
}

/// The result of guarded work that succeeded, and the decision it rests on.
#[derive(Debug)]
#[must_use = "it tells whether the outcome was reported"]
#[non_exhaustive]
pub struct Guarded<T> {
    /// The value that the work returned.
    pub value: T,
    /// The decision and the parse.
    pub decided: InputEnforcement,
    /// The error if the SUCCESS could not be reported.
    pub unreported: Option<Box<Error>>,
}

/// Reasons why guarded work gave no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuardError<E> {
    /// The decision failed, and the work did not run.
    #[error("the request was not decided: {0}")]
    Undecided(Error),
    /// The decision gives no grant, and the work did not run. After an ALLOW or DEGRADE no outcome is reported.
    #[error("the request was refused: {}", reason(decided, why))]
    Refused {
        /// The decision and the parse.
        decided: Box<InputEnforcement>,
        /// The reason it gives no grant.
        why: GrantError,
    },
    /// The work returned an error; FAILURE is reported.
    #[error("the work failed: {error}")]
    Failed {
        /// The error that the work returned.
        error: E,
        /// The record of the decision.
        proof_id: ProofId,
        /// The error if the FAILURE could not be reported.
        unreported: Option<Box<Error>>,
    },
    /// The work did not end in time; FAILURE is reported and its result is dropped.
    #[error("the work did not end in time: {why}")]
    Late {
        /// The limit that was exceeded.
        why: GrantError,
        /// The record of the decision.
        proof_id: ProofId,
        /// The error if the FAILURE could not be reported.
        unreported: Option<Box<Error>>,
    },
}

/// The reason for a refusal: that of the decision, unless the grant was refused for another.
fn reason(decided: &InputEnforcement, why: &GrantError) -> String {
    match why {
        GrantError::NotGranted { decision } => format!("{decision}: {}", decided.enforcement.reasoning),
        why => why.to_string(),
    }
}

/// The grant of a decision, or the refusal.
fn granted<E>(decided: InputEnforcement) -> Result<(Grant, InputEnforcement), GuardError<E>> {
    match decided.enforcement.grant() {
        Ok(grant) => Ok((grant, decided)),
        Err(why) => Err(GuardError::Refused { decided: Box::new(decided), why }),
    }
}

/// Work that is running under a grant. Dropped before its end is reported, it reports FAILURE.
struct Running {
    decider: Arc<Decider>,
    terms: GrantTerms,
    proof_id: ProofId,
    at_drop: AtDrop,
    is_reported: bool,
}

/// How long a drop before the end of the work waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AtDrop {
    /// Until the report is durable.
    Settle,
    /// Until the report is enqueued, because an async task's thread must not wait for the disk.
    Enqueue,
}

/// The end of guarded work.
enum Ended<T, E> {
    Done(T),
    Failed(E),
    Late(GrantError),
}

impl Running {
    fn of(decider: &Arc<Decider>, grant: &Grant, at_drop: AtDrop) -> Self {
        let (decider, terms, proof_id) = (Arc::clone(decider), grant.terms(), grant.proof_id());
        Self { decider, terms, proof_id, at_drop, is_reported: false }
    }

    /// The end of work that just returned `result`.
    fn end<T, E>(&self, result: Result<T, E>) -> Ended<T, E> {
        match (result, self.terms.check_work()) {
            (Err(error), _) => Ended::Failed(error),
            (Ok(_), Err(late)) => Ended::Late(late),
            (Ok(value), Ok(())) => Ended::Done(value),
        }
    }

    /// Ends the grant and enqueues the outcome.
    fn report<T, E>(&mut self, ended: &Ended<T, E>) -> Result<Option<Ticket>, Error> {
        let report: OutcomeReport<'_> = match ended {
            Ended::Done(_) => Outcome::Success.into(),
            Ended::Failed(_) => Outcome::Failure.into(),
            Ended::Late(_) => Outcome::Failure.note(LATE).keeping_limits(),
        };
        self.enqueue(report)
    }

    fn enqueue(&mut self, report: OutcomeReport<'_>) -> Result<Option<Ticket>, Error> {
        self.is_reported = true;
        self.terms.end();
        let reported = Work::report().done_by(|work| {
            work.note("rulekeep.proof.id", &self.proof_id).note("rulekeep.outcome", &report.outcome);
            self.decider.enqueue_outcome(&self.proof_id, report, report.note)
        })?;
        Ok(reported.entry.map(|(sequence, risk)| self.decider.base.log.ticket(sequence, risk)))
    }

    /// The result for the caller.
    fn conclude<T, E>(
        &self,
        ended: Ended<T, E>,
        decided: InputEnforcement,
        unreported: Option<Error>,
    ) -> Result<Guarded<T>, GuardError<E>> {
        let (proof_id, unreported) = (self.proof_id, unreported.map(Box::new));
        match ended {
            Ended::Done(value) => Ok(Guarded { value, decided, unreported }),
            Ended::Failed(error) => Err(GuardError::Failed { error, proof_id, unreported }),
            Ended::Late(why) => Err(GuardError::Late { why, proof_id, unreported }),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_reported {
            return;
        }
        let why = if thread::panicking() { PANICKED } else { DROPPED };
        // No caller is left to receive an error. If the report fails, the record stays without an outcome.
        if let Ok(Some(ticket)) = self.enqueue(Outcome::Failure.note(why).keeping_limits())
            && self.at_drop == AtDrop::Settle
        {
            let _ = ticket.wait();
        }
    }
}

/// Notes of a FAILURE.
const LATE: &str = "the guarded work did not end in time";
const PANICKED: &str = "the guarded work panicked";
const DROPPED: &str = "the guarded work was dropped unfinished";
