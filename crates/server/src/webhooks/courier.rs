//! The delivery thread of an endpoint: takes events from the journal, sends them as the outbox decides, and records
//! its progress in the journal.

use rulekeep::extension::Extension;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::endpoint::{Endpoint, EndpointRecord, EndpointState};
use super::links::Links;
use super::log::{DeliveryLog, DeliveryPage};
use super::outbox::{Answer, Note, Outbox, Refusal, Step, Told};
use super::payload::body_of;
use super::secrets::LiveSecret;
use super::sender::{Parcel, Sender};
use crate::telemetry::Delivery;
use rulekeep::event::Subscription;
use rulekeep::extension::WebhookId;
use rulekeep::extension::{ENDPOINT_PLACE as CURSOR, Wait, WeakGovernor};
use rulekeep::signature::Secret;
use rulekeep::system::Timestamp;
use rulekeep::system::{Clock, Entropy};
use rulekeep::{Error, Event, Governor};

/// A running endpoint.
pub(super) struct Courier {
    /// Held for decisions; never while sending, reading or writing.
    backlog: Mutex<Backlog>,
    told: Condvar,
    /// Makes the approval links of the endpoint's reviewer.
    links: Option<Links>,
    interrupt: Box<dyn Fn() + Send + Sync>,
}

struct Backlog {
    record: EndpointRecord,
    outbox: Outbox,
    log: DeliveryLog,
    secrets: Vec<LiveSecret>,
    /// Whether the thread has been told to stop.
    is_stopped: bool,
    /// Whether the thread has ended.
    has_ended: bool,
    /// The reason it cannot continue.
    failure: Option<String>,
}

/// The resources of the thread.
pub(super) struct Tools {
    pub(super) governor: WeakGovernor,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) entropy: Arc<dyn Entropy>,
    pub(super) sender: Sender,
    pub(super) source: Subscription,
}

impl Courier {
    /// Creates an endpoint that is not running yet; `failure` is the reason it will not run.
    pub(super) fn new(
        record: EndpointRecord,
        outbox: Outbox,
        secrets: Vec<LiveSecret>,
        links: Option<Links>,
        sender: &Sender,
        failure: Option<String>,
    ) -> Self {
        let log = DeliveryLog::of_parked(outbox.parked());
        let backlog = Backlog { record, outbox, log, secrets, is_stopped: false, has_ended: true, failure };
        Self { backlog: Mutex::new(backlog), told: Condvar::new(), links, interrupt: Box::new(sender.interrupt()) }
    }

    /// Starts the thread. An error is also recorded as the endpoint's failure.
    pub(super) fn start(self: &Arc<Self>, tools: Tools) -> Result<(), Error> {
        self.backlog().has_ended = false;
        let courier = Arc::clone(self);
        let started = thread::Builder::new().name("rulekeep-webhook".to_owned()).spawn(move || {
            let _end = Ending(&courier);
            courier.work(tools);
        });
        started.map(drop).map_err(|error| {
            let why = format!("cannot start a thread: {error}");
            let mut backlog = self.backlog();
            (backlog.has_ended, backlog.failure) = (true, Some(why.clone()));
            Error::storage(why)
        })
    }

    /// Tells the thread to stop, and aborts its current delivery.
    pub(super) fn stop(&self) {
        self.backlog().is_stopped = true;
        self.told.notify_all();
        (self.interrupt)();
    }

    /// Waits until the thread has ended, at most for `time`. Returns whether it has ended.
    pub(super) fn wait_ended(&self, time: Duration) -> bool {
        let waited = self.told.wait_timeout_while(self.backlog(), time, |backlog| !backlog.has_ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.has_ended
    }

    /// The stored record of the endpoint.
    pub(super) fn record(&self) -> EndpointRecord {
        self.backlog().record.clone()
    }

    /// Replaces the record and the secrets.
    pub(super) fn change(&self, record: EndpointRecord, secrets: Vec<LiveSecret>) {
        let mut backlog = self.backlog();
        (backlog.record, backlog.secrets) = (record, secrets);
    }

    /// The next entry, and the outbox's state to be stored in the journal.
    pub(super) fn position(&self) -> (super::outbox::Cursor, Vec<super::outbox::Parked>) {
        let backlog = self.backlog();
        (backlog.outbox.cursor().clone(), backlog.outbox.parked().to_vec())
    }

    /// The reason the endpoint does not receive everything; `None` if it does.
    pub(super) fn failure(&self) -> Option<String> {
        let backlog = self.backlog();
        let (id, cursor) = (backlog.record.id, backlog.outbox.cursor());
        let ended = || (backlog.has_ended && !backlog.is_stopped).then_some("its thread has ended");
        if let Some(why) = backlog.failure.as_deref().or_else(ended) {
            return Some(format!("webhook {id} receives nothing: {why}"));
        }
        if let Some(why) = &cursor.off {
            return Some(format!("webhook {id} is off: {why}"));
        }
        let parked = backlog.outbox.parked().len();
        cursor
            .failing
            .then(|| format!("webhook {id} is failing: {parked} events were parked, and none was delivered since"))
    }

    pub(super) fn is_broken(&self) -> bool {
        self.backlog().failure.is_some()
    }

    /// Records the reason it does not continue.
    pub(super) fn give_up(&self, why: &str) {
        self.backlog().failure = Some(why.to_owned());
    }

    /// Resumes sending after the endpoint was off. Returns false if it was not off.
    pub(super) fn resume(&self) -> bool {
        let resumed = self.backlog().outbox.resume();
        self.told.notify_all();
        resumed
    }

    /// Makes the approval links of the endpoint's reviewer.
    pub(super) fn links(&self) -> Option<&Links> {
        self.links.as_ref()
    }

    /// Sends an event once more.
    pub(super) fn redeliver(&self, governor: &Governor, event: &Event) -> Result<Result<(), Refusal>, Error> {
        let told = self.told_of(governor, event)?;
        let mut backlog = self.backlog();
        if !backlog.record.wants(event) {
            return Ok(Err(Refusal::Unwanted));
        }
        if let Some(why) = &backlog.failure {
            return Ok(Err(Refusal::Broken(why.clone())));
        }
        let redelivered = backlog.outbox.redeliver(told);
        drop(backlog);
        self.told.notify_all();
        Ok(redelivered)
    }

    fn told_of(&self, governor: &Governor, event: &Event) -> Result<Told, Error> {
        let format = self.backlog().record.format;
        let body = body_of(governor, event, format, self.links.as_ref())?;
        let place = (event.id.sequence().get(), event.event_type as u8);
        Ok(Told { event: event.id, event_type: event.event_type, place, body })
    }

    pub(super) fn deliveries(&self, page: u64) -> DeliveryPage {
        self.backlog().log.page(page)
    }

    pub(super) fn parked(&self, page: u64) -> DeliveryPage {
        DeliveryPage::of_parked(self.backlog().outbox.parked(), page)
    }

    /// The endpoint's description at `now`.
    pub(super) fn shown(&self, now: Timestamp) -> Endpoint {
        let backlog = self.backlog();
        let (mut record, cursor) = (backlog.record.clone(), backlog.outbox.cursor());
        record.secrets.retain(|print| print.until.is_none_or(|until| until > now));
        let state = match (&backlog.failure, &cursor.off) {
            (Some(_), _) => EndpointState::Broken,
            (None, Some(_)) => EndpointState::Off,
            (None, None) if cursor.failing => EndpointState::Failing,
            (None, None) => EndpointState::Active,
        };
        Endpoint {
            id: record.id,
            url: record.url,
            events: record.events,
            agent_id: record.agent_id,
            format: record.format,
            reviewer: record.reviewer,
            state,
            reason: backlog.failure.clone().or_else(|| cursor.off.clone()),
            created: record.created,
            schedule: record.schedule.waits().iter().map(|wait| Duration::from_millis(*wait)).collect(),
            secrets: record.secrets,
            next_entry: cursor.next,
            attempts: cursor.attempts,
            next_attempt: cursor.retry_at,
            parked: backlog.outbox.parked().len() as u64,
        }
    }

    fn work(&self, mut tools: Tools) {
        let verified = match tools.governor.upgrade() {
            Some(governor) => Extension::of(&governor).wait_until_verified(),
            None => return,
        };
        if let Err(error) = verified.and_then(|()| self.deliver(&mut tools)) {
            self.backlog().failure = Some(error.message());
        }
        let last = self.backlog().outbox.last_note();
        if let Some(note) = last {
            self.keep(&tools, &note);
        }
    }

    /// Delivers until told to stop.
    fn deliver(&self, tools: &mut Tools) -> Result<(), Error> {
        loop {
            let now = tools.clock.now();
            let mut backlog = self.backlog();
            if backlog.is_stopped {
                return Ok(());
            }
            if let Some(note) = backlog.outbox.note(now) {
                drop(backlog);
                self.keep(tools, &note);
                continue;
            }
            match backlog.outbox.step(now) {
                Step::Send(told) => {
                    let told = told.clone();
                    if !self.send(backlog, tools, &told, now)? {
                        return Ok(());
                    }
                }
                Step::Until(at) => {
                    let left = u64::try_from(at.as_millis() - now.as_millis()).unwrap_or(0);
                    // Meanwhile, due progress records are written.
                    let time = Duration::from_millis(left).min(LONGEST_REST);
                    drop(self.told.wait_timeout(backlog, time));
                }
                // The record of this state may have been refused, so it is tried again.
                Step::Off => drop(self.told.wait_timeout(backlog, LONGEST_REST)),
                Step::Idle => {
                    drop(backlog);
                    self.read_on(tools)?;
                }
            }
        }
    }

    /// Sends an event. Returns false if the delivery was aborted.
    ///
    /// Clock and entropy are the user's and may be slow, so neither is called while the backlog is locked.
    fn send(
        &self,
        backlog: MutexGuard<'_, Backlog>,
        tools: &mut Tools,
        told: &Told,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let live = backlog.secrets.iter().filter(|live| live.until.is_none_or(|until| until > now));
        let secrets: Vec<Secret> = live.map(|live| live.secret.clone()).collect();
        let id = backlog.record.id;
        drop(backlog);
        if secrets.is_empty() {
            // Nothing is sent unsigned.
            return Err(Error::Conflict { message: "it has no valid secret: rotate it".to_owned() });
        }
        let (secrets, event): (Vec<&Secret>, _) = (secrets.iter().collect(), told.event.to_string());
        let began = Instant::now();
        let work = Delivery::start();
        let answer =
            work.around(|| tools.sender.send(&Parcel { event: &event, body: &told.body, secrets: &secrets, now }));
        note_delivery(&work, id, &event, &answer);
        let millis = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (answered_at, chance) = (tools.clock.now(), chance(&*tools.entropy));
        let mut backlog = self.backlog();
        // An aborted delivery has not failed: it is sent again after the store is opened next.
        if backlog.is_stopped && !matches!(answer, Answer::Delivered(_) | Answer::Gone) {
            return Ok(false);
        }
        if let Some(done) = backlog.outbox.done(&answer, answered_at, chance) {
            backlog.log.add(&done, &answer, now, millis);
        }
        Ok(true)
    }

    /// Takes the next event from the journal, waiting for it for a while.
    fn read_on(&self, tools: &mut Tools) -> Result<(), Error> {
        let began = Instant::now();
        let event = tools.source.wait_for(LOOK_UP)?;
        let Some(event) = event else {
            let mut backlog = self.backlog();
            backlog.outbox.passed(tools.source.place());
            // A closed log returns at once.
            if began.elapsed() < LOOK_UP / 2 && !backlog.is_stopped {
                drop(self.told.wait_timeout(backlog, LOOK_UP));
            }
            return Ok(());
        };
        // Without a governor there is nothing left to deliver, and the next round notices.
        if let Some(governor) = tools.governor.upgrade().filter(|_| self.backlog().record.wants(&event)) {
            let told = self.told_of(&governor, &event)?;
            self.backlog().outbox.offer(told);
        }
        Ok(())
    }

    /// Stores the endpoint's progress in the journal.
    fn keep(&self, tools: &Tools, note: &Note) {
        let Some(governor) = tools.governor.upgrade() else {
            // The governor is gone, so there is nothing left to deliver.
            self.backlog().is_stopped = true;
            return;
        };
        let id = self.backlog().record.id;
        let kept = notes(note).and_then(|states| {
            states.into_iter().try_for_each(|(part, value)| {
                Extension::of(&governor).keep(format!("{CURSOR}{id}{part}"), value, "told", Wait::Enqueued)
            })
        });
        drop(governor);
        if kept.is_err() {
            let now = tools.clock.now();
            self.backlog().outbox.not_noted(note, now);
        }
    }

    fn backlog(&self) -> MutexGuard<'_, Backlog> {
        // Each change of it is complete.
        self.backlog.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn note_delivery(work: &Delivery, id: WebhookId, event: &str, answer: &Answer) {
    work.note("rulekeep.webhook.id", &id).note("rulekeep.event.id", &event);
    let (status, failure) = match answer {
        Answer::Delivered(status) => (Some(*status), None),
        Answer::Gone => (Some(410), Some("GONE")),
        Answer::Failed { status, .. } => (*status, Some("NOT_DELIVERED")),
    };
    if let Some(status) = status {
        work.note("http.response.status_code", &status);
    }
    if let Some(failure) = failure {
        work.note("error.type", &failure);
    }
}

/// Records that the thread has ended, for whatever reason.
struct Ending<'a>(&'a Courier);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        let mut backlog = self.0.backlog();
        backlog.has_ended = true;
        if thread::panicking() {
            backlog.failure = Some("it failed within; resume it".to_owned());
        }
        drop(backlog);
        self.0.told.notify_all();
    }
}

/// The state entries of a progress record: key suffixes and values. The parked events come first, so that a crash in
/// between loses no event.
pub(super) fn notes(note: &Note) -> Result<Vec<(&'static str, String)>, Error> {
    let unwritable = |error| Error::internal("a place cannot be serialized").caused_by(error);
    let parked = note.parked.as_ref().map(serde_json::to_string).transpose().map_err(unwritable)?;
    let cursor = serde_json::to_string(&note.cursor).map_err(unwritable)?;
    Ok(parked.map(|parked| (PARKED, parked)).into_iter().chain([("", cursor)]).collect())
}

/// Key suffix of the list of parked events.
pub(super) const PARKED: &str = "/parked";

#[expect(clippy::cast_possible_truncation, reason = "any of the bits are as random")]
fn chance(entropy: &dyn Entropy) -> u16 {
    entropy.bits() as u16
}

/// Interval at which an idle thread checks whether it should end.
const LOOK_UP: Duration = Duration::from_millis(50);
/// Interval at which a waiting thread checks the clock.
const LONGEST_REST: Duration = Duration::from_millis(250);
