//! Alerts derived from the log: denials, requests at CRITICAL risk, and losses of trust.
//!
//! A thread reads the log, so no decision waits for it. After a restart it rereads the entries that still count, and
//! takes the alerts already raised from the log. If the log cannot be read, it retries from its position shortly
//! afterwards; only a broken chain ends it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::governor::keys::{Alerts, Keyed as _, Rerecording};
use crate::governor::rules::watch::{How, Watch};
use crate::governor::{Alerting, Hold as _, states};
use crate::model::{AgentId, Alert, AlertKind, Decision, Error, ProofId, RiskLevel, Sequence};
use crate::policy::{AlertOn, AlertRule, PolicySet};
use crate::proof::{Fed, Feed, Happened, Seen, StateDraft};

/// The position up to which the log has been followed.
#[derive(Default)]
pub(crate) struct Following {
    // Held to check, start or end the thread, and to enqueue the position.
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    works: bool,
    /// Why no alerts are derived although rules ask for them.
    failure: Option<String>,
    /// The first unprocessed entry, as recorded in the journal; `None` if nothing is followed.
    from: Option<Sequence>,
}

/// The position as the journal stores it.
#[derive(Serialize, Deserialize)]
struct Place {
    /// `None` if no rule asks to follow the log.
    from: Option<Sequence>,
}

impl Following {
    pub(crate) fn restore(&self, key: &str, value: &[u8]) -> Result<(), Error> {
        self.state.hold().from = states::read::<Place>(key, value)?.from;
        Ok(())
    }

    /// Enqueues the position again, before an archive. It is the recorded position, not the thread's current one:
    /// earlier counts are only known as far back as the rules' time spans reach.
    pub(crate) fn rerecord(&self, again: &mut Rerecording<'_>) -> Result<(), Error> {
        let state = self.state.hold();
        let Some(from) = state.from else { return Ok(()) };
        again.record(place_of(Some(from))?).map(drop)
    }

    /// Why no alerts are derived although rules ask for them, if so.
    pub(crate) fn failure(&self) -> Option<String> {
        self.state.hold().failure.clone()
    }
}

impl Alerting {
    /// Starts following the log if an alert rule asks for it, and stops if none does.
    pub(crate) fn follow_alerts(self: &Arc<Self>) -> Result<(), Error> {
        let mut state = self.following.state.hold();
        if !self.rules.policies.load().alerts().iter().any(follows) {
            // The thread ends by itself. Entries until rules return are not examined.
            if state.from.is_some() && !state.works {
                self.note_place(&mut state, None)?;
                state.failure = None;
            }
            return Ok(());
        }
        if state.works {
            return Ok(());
        }
        let resumes = state.from.is_some();
        // Archived entries cannot raise alerts any more.
        let first = Sequence::new(self.base.log.begins().entries);
        let feed = self.base.log.feed(state.from.map(|from| from.max(first)));
        if !resumes {
            self.note_place(&mut state, Some(Sequence::new(feed.place())))?;
        }
        (state.works, state.failure) = (true, None);
        drop(state);
        let follower = Follower {
            alerting: Arc::downgrade(self),
            until: self.base.log.feed(None).place(),
            noted: feed.place(),
            resumes,
            is_held_up: false,
            feed,
            watch: Watch::default(),
            told: HashSet::new(),
        };
        let started = thread::Builder::new().name("rulekeep-alerts".to_owned()).spawn(move || follower.run());
        started.map(drop).map_err(|error| {
            let mut state = self.following.state.hold();
            (state.works, state.failure) = (false, Some(error.to_string()));
            Error::storage("alert rules cannot be evaluated").caused_by(error)
        })
    }

    fn note_place(&self, state: &mut State, from: Option<Sequence>) -> Result<(), Error> {
        self.base.log.queue().note(self.base.clock.now(), place_of(from)?, "alert rules were evaluated")?;
        state.from = from;
        Ok(())
    }
}

fn place_of(from: Option<Sequence>) -> Result<StateDraft, Error> {
    states::draft(Alerts::PREFIX, &Place { from })
}

/// Returns whether a rule's condition can be derived from the log.
const fn follows(rule: &AlertRule) -> bool {
    matches!(rule.on, AlertOn::Denials | AlertOn::Critical | AlertOn::Tier)
}

/// The thread's state.
struct Follower {
    /// A weak reference, so the thread does not keep the governor open.
    alerting: Weak<Alerting>,
    feed: Feed,
    /// The end of the log at the start of the thread.
    until: u64,
    watch: Watch,
    /// Alerts that earlier runs raised: by entry, rule and agent.
    told: HashSet<(Sequence, Arc<str>, AgentId)>,
    /// The position recorded last.
    noted: u64,
    /// Whether an earlier run followed the log up to this position, so entries that still count must be reread.
    resumes: bool,
    /// Whether the last read failed, as reported by the status.
    is_held_up: bool,
}

/// The reason the thread ended.
enum Over {
    /// No rule asks for it; this is recorded.
    Noted,
    /// The log ended or accepts no entries, which the log itself reports.
    Log,
    /// An error that nothing else reports.
    Failed(String),
}

/// Records the end of the thread, also after a panic.
struct Ending {
    alerting: Weak<Alerting>,
    over: Over,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let Some(alerting) = self.alerting.upgrade() else { return };
        let mut state = alerting.following.state.hold();
        match &self.over {
            // Rules loaded since then may have started another thread.
            Over::Noted => {}
            Over::Log => state.works = false,
            Over::Failed(why) => (state.works, state.failure) = (false, Some(why.clone())),
        }
    }
}

/// The part of an entry that matches an alert rule.
struct Sight<'a> {
    on: AlertOn,
    agent_id: &'a AgentId,
    proof_id: Option<ProofId>,
    seen: &'a Seen,
}

impl Follower {
    fn run(mut self) {
        // The default result, also if the thread panics.
        let over = Over::Failed("the alert thread has failed".to_owned());
        let mut ending = Ending { alerting: Weak::clone(&self.alerting), over };
        ending.over = self.follow();
    }

    /// Follows the log. If it cannot be read, retries from its position shortly afterwards.
    fn follow(&mut self) -> Over {
        // INVARIANT: ends at the latest when the log ends, because no entries follow.
        loop {
            let error = match self.read_on() {
                Ok(over) => return over,
                Err(error @ Error::ChainBroken { .. }) => return Over::Failed(error.message()),
                Err(error) => error,
            };
            let Some(alerting) = self.alerting.upgrade() else { return Over::Log };
            if is_over(&alerting, &alerting.rules.policies.load()) {
                return Over::Noted;
            }
            alerting.following.state.hold().failure = Some(error.message());
            self.is_held_up = true;
            // Entries archived meanwhile cannot raise alerts any more.
            let place = self.feed.place().max(alerting.base.log.begins().entries);
            self.feed = alerting.base.log.feed(Some(Sequence::new(place)));
            drop(alerting);
            if !self.feed.pause(BEFORE_READING_AGAIN) {
                return Over::Log;
            }
        }
    }

    /// Examines entry after entry until no rule asks for it or an entry cannot be read.
    fn read_on(&mut self) -> Result<Over, Error> {
        if self.resumes {
            self.resume()?;
            self.noted = self.feed.place();
            self.resumes = false;
        }
        loop {
            let Fed::Entry(seen) = self.feed.next(None, Seen::of)? else { return Ok(Over::Log) };
            let Some(alerting) = self.alerting.upgrade() else { return Ok(Over::Log) };
            if std::mem::take(&mut self.is_held_up) {
                alerting.following.state.hold().failure = None;
            }
            let policies = alerting.rules.policies.load_full();
            if is_over(&alerting, &policies) {
                return Ok(Over::Noted);
            }
            if let Some(seen) = seen
                && !self.look(&alerting, &policies, &seen, |_| How::Now)
            {
                return Ok(Over::Log);
            }
            self.note(&alerting);
        }
    }

    /// Rereads the entries that still count, and collects the alerts already raised.
    fn resume(&mut self) -> Result<(), Error> {
        let Some(alerting) = self.alerting.upgrade() else { return Ok(()) };
        (self.watch, self.told) = (Watch::default(), HashSet::new());
        let policies = alerting.rules.policies.load_full();
        let longest = policies
            .alerts()
            .iter()
            .filter(|rule| follows(rule))
            .map(|rule| rule.cooldown.max(rule.per.unwrap_or_default()))
            .max();
        let mut from = self.feed.place();
        let mut again = alerting.base.log.feed(Some(Sequence::new(from)));
        again.go_back_by(longest.unwrap_or_default())?;
        let first = Sequence::new(again.place());
        while again.place() < self.until
            && let Fed::Entry(seen) = again.next(None, Seen::of)?
        {
            if let Some(Seen { what: Happened::Alert { rule, agent_id, up_to }, .. }) = seen {
                // Entries before the one that raised the alert are processed; the entry itself perhaps by only some of
                // the rules.
                from = from.max(up_to.get());
                self.told.insert((up_to, rule, agent_id));
            }
        }
        let mut again = alerting.base.log.feed(Some(first));
        while again.place() < from
            && let Fed::Entry(seen) = again.next(None, Seen::of)?
        {
            if let Some(seen) = seen {
                self.look(&alerting, &policies, &seen, |was_told| How::Past { was_told });
            }
        }
        self.feed = alerting.base.log.feed(Some(Sequence::new(from)));
        Ok(())
    }

    /// Counts an entry and raises the alerts that are due; `false` if the log accepts no more entries.
    fn look(&mut self, alerting: &Alerting, policies: &PolicySet, seen: &Seen, how: impl Fn(bool) -> How) -> bool {
        for rule in policies.alerts() {
            let Some(sight) = Sight::of(seen, rule) else { continue };
            if !alerting.rules.is_about(rule, sight.agent_id) {
                continue;
            }
            let was_told = !self.told.is_empty()
                && self.told.contains(&(seen.sequence, Arc::clone(&rule.id), sight.agent_id.clone()));
            let how = if was_told { How::Past { was_told } } else { how(was_told) };
            let due = self.watch.note(rule, sight.agent_id.as_str(), seen.at, sight.proof_id, how);
            if let Some(due) = due.filter(|_| how == How::Now)
                && !raise(alerting, &due.told_by(sight.alert(rule)), seen.sequence)
            {
                return false;
            }
        }
        true
    }

    /// Records the position from time to time, so that a later run has less to reread.
    fn note(&mut self, alerting: &Alerting) {
        if self.feed.place() - self.noted < NOTED_EVERY {
            return;
        }
        let mut state = alerting.following.state.hold();
        // INVARIANT: enqueued after every alert about entries before this position.
        if alerting.note_place(&mut state, Some(Sequence::new(self.feed.place()))).is_ok() {
            self.noted = self.feed.place();
        }
    }
}

/// Returns whether no rule asks to follow the log any more, and records it if so.
fn is_over(alerting: &Alerting, policies: &PolicySet) -> bool {
    if policies.alerts().iter().any(follows) {
        return false;
    }
    let mut state = alerting.following.state.hold();
    // Rules may have been loaded since; whoever loaded them saw that the thread is running.
    if alerting.rules.policies.load().alerts().iter().any(follows) {
        return false;
    }
    (state.works, state.failure) = (false, None);
    // If it cannot be recorded, the next run examines entries that nobody asked about.
    let _ = alerting.note_place(&mut state, None);
    true
}

impl<'a> Sight<'a> {
    /// The part of an entry that matches a rule.
    fn of(seen: &'a Seen, rule: &AlertRule) -> Option<Self> {
        let on = rule.on;
        match &seen.what {
            Happened::Decision { agent_id, proof_id, decision, risk, answers, is_barred } => {
                let is_it = match on {
                    // The operator who stopped an agent knows that its requests are denied.
                    AlertOn::Denials => *decision == Decision::Deny && !is_barred,
                    // The answer to an escalation belongs to the same request.
                    AlertOn::Critical => *risk == RiskLevel::Critical && !answers,
                    _ => false,
                };
                is_it.then_some(Self { on, agent_id, proof_id: Some(*proof_id), seen })
            }
            Happened::Trust { agent_id, change, proof_id } => {
                let below = rule.below.filter(|_| on == AlertOn::Tier)?;
                let dropped = change.from_tier >= below && change.to_tier < below;
                dropped.then_some(Self { on, agent_id, proof_id: *proof_id, seen })
            }
            Happened::Alert { .. } => None,
        }
    }

    fn alert(&self, rule: &AlertRule) -> Alert {
        let agent = self.agent_id;
        let (kind, mut message) = match (&self.seen.what, rule.below) {
            (Happened::Trust { change, .. }, Some(below)) => {
                let fell = format!("agent {agent} fell below {below}: from {} to {}", change.from_tier, change.to_tier);
                (AlertKind::Tier, fell)
            }
            (Happened::Decision { decision, .. }, _) if self.on == AlertOn::Critical => {
                (AlertKind::Critical, format!("agent {agent} attempted something at CRITICAL risk: {decision}"))
            }
            _ => (AlertKind::Denials, format!("agent {agent} was denied")),
        };
        if let Some(per) = rule.per {
            message = format!("{message}; {} times or more within {} s", rule.count, per.as_secs());
        }
        let mut alert = Alert::new(kind, rule.severity, Some(agent.clone()), message);
        alert.rule = Some(Arc::clone(&rule.id));
        alert
    }
}

/// Enqueues an alert, waiting for room in the queue; `false` if the log accepts no entries.
fn raise(alerting: &Alerting, alert: &Alert, up_to: Sequence) -> bool {
    while alerting.base.log.alert(alerting.base.clock.now(), alert.clone(), Some(up_to)).is_err() {
        if alerting.base.log.refusal().is_some() {
            return false;
        }
    }
    true
}

/// Number of entries after which the position is recorded.
const NOTED_EVERY: u64 = 1 << 16;
/// Pause before a failed read is retried.
const BEFORE_READING_AGAIN: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governor::Governor;
    use crate::governor::alerting::events::EventFilter;
    use crate::model::{Agent, EventType, Health, Intent};
    use crate::store::MemoryFiles;
    use crate::store::faulty::{Counted, Fault, FaultyFiles};

    const RULES: &str = "name = \"p\"\n[[alert]]\nid = \"d\"\non = \"denials\"\ncount = 3\nper = \"1h\"";

    fn policies() -> PolicySet {
        PolicySet::from_toml(RULES).unwrap()
    }

    /// A governor whose journal can be made unreadable while writes still succeed.
    fn over_faulty_reads() -> (Governor, Arc<FaultyFiles<MemoryFiles>>) {
        let faulty = Arc::new(FaultyFiles::new(MemoryFiles::new(), Fault::Forever, Counted::Looks, i64::MAX));
        let files = Arc::clone(&faulty);
        let governor = Governor::builder().policies(policies()).open_files(files).unwrap();
        governor.agents().register(Agent::new("a")).unwrap();
        (governor, faulty)
    }

    fn denied(governor: &Governor) {
        let intent = Intent::new("a", "send_email", RiskLevel::Low, ["email:send"]).unwrap();
        assert_eq!(governor.enforce(&intent).unwrap().decision, Decision::Deny);
    }

    fn until(is_so: impl Fn() -> bool) {
        let started = std::time::Instant::now();
        while !is_so() {
            assert!(started.elapsed() < Duration::from_secs(20), "it does not come to it");
            thread::yield_now();
        }
    }

    #[test]
    fn alerts_wait_while_the_log_is_unreadable_and_are_raised_once() {
        let (governor, faulty) = over_faulty_reads();
        let mut alerts = governor.subscribe(&EventFilter::default().of_type(EventType::Alert)).unwrap();
        for _ in 0..3 {
            faulty.strike_after(0);
            denied(&governor);
            until(|| governor.inner.alerting.following.failure().is_some_and(|why| why.contains("injected fault")));
            let warnings = governor.status().warnings;
            assert!(warnings.iter().any(|warning| warning.contains("are not evaluated")), "{warnings:?}");
            faulty.relieve();
            until(|| governor.inner.alerting.following.failure().is_none());
        }
        let raised = alerts.wait_for(Duration::from_secs(20)).unwrap().expect("the third denial is told");
        assert!(matches!(raised.data, crate::model::EventData::Alert(_)));
        // A fourth denial falls within the rule's cooldown.
        denied(&governor);
        assert!(alerts.wait_for(Duration::from_millis(300)).unwrap().is_none(), "it was told once");
    }

    #[test]
    fn a_run_that_resumes_over_an_unreadable_log_forgets_nothing() {
        let (governor, faulty) = over_faulty_reads();
        let mut alerts = governor.subscribe(&EventFilter::default().of_type(EventType::Alert)).unwrap();
        (0..3).for_each(|_| denied(&governor));
        alerts.wait_for(Duration::from_secs(20)).unwrap().expect("the third denial is told");
        let mut follower = Follower {
            alerting: Arc::downgrade(&governor.inner.alerting),
            until: governor.inner.base.log.feed(None).place(),
            noted: 0,
            resumes: true,
            is_held_up: false,
            feed: governor.inner.base.log.feed(Some(Sequence::FIRST)),
            watch: Watch::default(),
            told: HashSet::new(),
        };
        for calls in 0..1000 {
            faulty.strike_after(calls);
            let resumed = follower.resume();
            faulty.relieve();
            if let Err(error) = resumed {
                assert!(matches!(error, Error::StorageUnavailable { .. }), "{error}");
                continue;
            }
            assert!(calls > 0, "nothing could be read");
            assert_eq!(follower.told.len(), 1);
            return;
        }
        panic!("it never resumes");
    }

    #[test]
    fn a_thread_that_fails_shows_in_the_status_until_another_works() {
        let governor = Governor::builder().policies(policies()).open_in_memory().unwrap();
        assert_eq!(governor.status().components.gateway, Health::Degraded, "the policies grant nothing");
        let said = || governor.status().warnings.into_iter().find(|warning| warning.contains("alert rules"));
        assert_eq!(said(), None);
        let over = Over::Failed("the journal cannot be read".to_owned());
        let failing = Ending { alerting: Arc::downgrade(&governor.inner.alerting), over };
        thread::spawn(move || {
            let _failing = failing;
            std::panic::resume_unwind(Box::new("as if something within were wrong"));
        })
        .join()
        .unwrap_err();
        let warning = said().unwrap();
        assert!(warning.contains("the journal cannot be read"), "{warning}");
        governor.policies().load(policies()).unwrap();
        assert_eq!(said(), None, "rules that come in start it again");
    }
}
