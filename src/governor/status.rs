//! Health and metrics of the governor, measured on request.

use std::cmp::Ordering;
use std::time::Duration;

use serde_json::Map;

use crate::governor::{Governor, Log};
use crate::model::{
    Components, Decision, Error, Health, IntentId, JournalStatus, KillSwitchEntry, LogProgress, Metrics, SystemStatus,
    Timestamp, VerificationState,
};
use crate::parse::ParseRequest;
use crate::proof::{LogState, Probe, ProofQuery};
use crate::trust::AgentRecord;

impl Log<'_> {
    /// Returns the state of the journal: entries on disk, and the progress of sealing full segments.
    pub fn journal(self) -> JournalStatus {
        self.governor.inner.base.log.journal()
    }
}

impl Governor {
    /// Returns the governor's health and metrics. Days are UTC.
    ///
    /// Each component is tested by using it; `docs/reference/status.md` says how. If the disk hangs, the call returns
    /// after about two seconds and reports it.
    pub fn status(&self) -> SystemStatus {
        let inner = &*self.inner;
        if let Err(error) = inner.here() {
            let no = Health::Unhealthy;
            let (average, latency) = inner.decider.latency.over_window(inner.decider.opened.elapsed());
            let metrics = Metrics::new(0, 0, average, 0, 0, latency);
            let mut status = SystemStatus::new(0, Components::new(no, no, no, no, no), metrics, inner.base.clock.now());
            status.warnings.push(error.to_string());
            return status;
        }
        // Earlier decisions are counted; a log that cannot keep up shows in the health.
        let probe = inner.base.log.probe(PATIENCE);
        let log = inner.base.log.state();
        let now = inner.base.clock.now();
        self.inner.approvals.publish_pending();
        let mut warnings = Vec::new();
        let components = Components::new(
            self.gateway(&probe, &log, &mut warnings),
            self.trust_engine(now, &mut warnings),
            self.proof_chain(&log, &mut warnings),
            if self.parser_works() { Health::Healthy } else { Health::Unhealthy },
            self.database(&probe, &log, &mut warnings),
        );
        self.tell_stops(&mut warnings);
        let (decisions_today, escalations_today) = self.today(&log, now);
        let (average, latency) = inner.decider.latency.over_window(inner.decider.opened.elapsed());
        let active = inner.roster.ledger.active();
        let metrics = Metrics::new(active, decisions_today, average, log.totals.records, escalations_today, latency);
        let mut status = SystemStatus::new(inner.decider.opened.elapsed().as_secs(), components, metrics, now);
        status.warnings = warnings;
        status
    }

    /// Health of the decision path: the queue accepts decisions, at least one rule can grant, and outcomes are
    /// processed.
    fn gateway(&self, probe: &Result<Probe, Error>, log: &LogState, warnings: &mut Vec<String>) -> Health {
        let said = warnings.len();
        let policies = self.inner.rules.policies.load();
        if !policies.grants_something() {
            let name = policies.name();
            warnings.push(format!("the policy set {name:?} grants nothing: everything is denied or escalated"));
        }
        if self.inner.approvals.is_unwatched() {
            warnings.push(
                "escalations expire only when they are read: the thread that expires them does not run".to_owned(),
            );
        }
        if let Some(why) = self.inner.alerting.following.failure() {
            warnings.push(format!("alert rules on denials, attempts and lost tiers are not evaluated: {why}"));
        }
        warnings.extend(self.inner.extensions.running().iter().flat_map(|follower| follower.problems()));
        let refusing = log.refusing.clone().or_else(|| probe.as_ref().err().map(Error::message));
        let refusing = refusing.or_else(|| self.inner.base.clock.check().err().map(|error| error.message()));
        match (refusing, probe) {
            (Some(refusing), _) => {
                warnings.push(format!("no decision can be made: {refusing}"));
                return Health::Unhealthy;
            }
            (None, Ok(Probe::Stuck)) => {
                warnings.push(format!("the disk does not respond: nothing was written for {} s", PATIENCE.as_secs()));
                return Health::Unhealthy;
            }
            (None, Ok(Probe::Crowded)) => {
                warnings.push("decisions wait: the disk is slower than the callers".to_owned());
            }
            (None, _) => {}
        }
        degraded_if(warnings.len() > said)
    }

    /// Warns about kill switches in force, newest first. They are intended, so they do not degrade the health.
    fn tell_stops(&self, warnings: &mut Vec<String>) {
        let stops = self.kill_switch().list();
        let told = stops.iter().rev().take(MOST_STOPS);
        warnings.extend(
            told.map(|KillSwitchEntry { id, scope, by, .. }| {
                format!("the kill switch {id} for {scope} was set by {by}")
            }),
        );
        let rest = stops.len().saturating_sub(MOST_STOPS);
        if rest > 0 {
            warnings.push(format!("{rest} more kill switches are set"));
        }
    }

    /// Health of the trust ledger: checks the stored trust of a random sample of agents.
    fn trust_engine(&self, now: Timestamp, warnings: &mut Vec<String>) -> Health {
        let harmed = |agent: &AgentRecord| {
            let trust = self.inner.roster.trust_of(agent, now);
            let over = self.inner.roster.ceiling_of(agent.profile()).is_some_and(|ceiling| trust.score > ceiling);
            agent.trust.is_unsound() || over || trust.tier > agent.trust.tier || trust.score > agent.trust.score
        };
        for cell in self.inner.roster.ledger.sample(self.inner.base.entropy.bits()) {
            let agent = cell.read();
            if harmed(&agent) {
                warnings.push(format!("the stored trust of agent {} is invalid", agent.agent_id));
                return Health::Unhealthy;
            }
        }
        Health::Healthy
    }

    fn proof_chain(&self, log: &LogState, warnings: &mut Vec<String>) -> Health {
        let verification = self.inner.base.log.verification_state();
        warnings.extend(told_verification(&verification));
        warnings.extend(log.overdue.iter().cloned());
        let clock = self.inner.base.clock.warnings();
        let is_degraded = !log.overdue.is_empty() || clock.iter().any(|(_, degrades)| *degrades);
        warnings.extend(clock.into_iter().map(|(warning, _)| warning));
        if log.erased_evidence > 0 {
            warnings.push(format!(
                "erased evidence of {} records was found in files, as after restoring a backup; it was erased again",
                log.erased_evidence
            ));
        }
        match verification {
            VerificationState::Broken(_) | VerificationState::Failed(_) => Health::Unhealthy,
            _ => degraded_if(is_degraded),
        }
    }

    fn database(&self, probe: &Result<Probe, Error>, log: &LogState, warnings: &mut Vec<String>) -> Health {
        // A failed write is reported by the gateway.
        if log.has_failed {
            return Health::Unhealthy;
        }
        // A closed log cannot be queried.
        let is_lost = log.view_lost || (probe.is_ok() && !self.inner.base.log.view_answers());
        if is_lost {
            warnings.push(
                "the index cannot be stored on disk: it is kept in memory and rebuilt each time the store is opened"
                    .to_owned(),
            );
        }
        warnings.extend(log.view_mended.iter().map(|found| {
            format!("the index differed from the journal and was rebuilt ({found}): somebody or a fault changed the store's folder")
        }));
        degraded_if(is_lost)
    }

    /// The number of decisions today, and of ESCALATE decisions among them.
    fn today(&self, log: &LogState, now: Timestamp) -> (u64, u64) {
        let totals = &log.totals;
        match totals.day.cmp(&now.day()) {
            Ordering::Equal => (totals.decisions_that_day, totals.escalations_that_day),
            Ordering::Less => (0, 0),
            // The clock stepped back over midnight. Records are ordered by time, so some of today may precede those of
            // tomorrow.
            Ordering::Greater => {
                let start = now.day().saturating_mul(MILLIS_PER_DAY);
                let [from, to] = [start, start.saturating_add(MILLIS_PER_DAY - 1)].map(Timestamp::from_millis);
                let day = ProofQuery::all().from(from).to(to).page_size(1);
                let count = |query: &ProofQuery| self.query(query).map_or(0, |page| page.total);
                (count(&day), count(&day.clone().decision(Decision::Escalate)))
            }
        }
    }

    /// Returns whether the parser still recognizes a plain request.
    fn parser_works(&self) -> bool {
        let Ok(agent_id) = "status".parse() else { return false };
        let at = self.inner.base.clock.now();
        let request = ParseRequest {
            agent_id: &agent_id,
            input: "Read the file",
            context: &Map::new(),
            id: IntentId::new(at, 0),
            at,
        };
        let parsed = self.inner.intake.parser.parse(&request, &self.inner.intake.tools.load());
        parsed.is_ok_and(|parsed| {
            parsed.result.intent.required_capabilities.iter().all(|capability| !capability.is_unknown())
        })
    }
}

/// Returns a warning if the verification is running or failed; a break shows as the refusal of decisions.
fn told_verification(state: &VerificationState) -> Option<String> {
    match state {
        VerificationState::Running(LogProgress { done, of, .. }) => Some(format!(
            "the log is being verified, {done} of {of} entries so far: outcomes, approvals and changes wait for it"
        )),
        VerificationState::Failed(why) => Some(format!("the log could not be verified: {why}")),
        _ => None,
    }
}

const fn degraded_if(something: bool) -> Health {
    if something { Health::Degraded } else { Health::Healthy }
}

/// How long the writer may take before it counts as hanging.
const PATIENCE: Duration = Duration::from_secs(2);
const MILLIS_PER_DAY: i64 = 86_400_000;
/// Maximum number of kill switches with a warning of their own.
const MOST_STOPS: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governor::background::Background;
    use crate::model::{Agent, Intent, KillSwitchScope, RiskLevel, Score, Tier};
    use crate::policy::PolicySet;

    fn governor() -> Governor {
        let asks = "name = \"p\"\n[[rule]]\nid = \"all\"\neffect = \"escalate\"\nmatch.capabilities = [\"*:*\"]\n\
                    reviewer = \"ann\"\n[[rule]]\nid = \"r\"\neffect = \"allow\"\nmatch.capabilities = [\"web:read\"]";
        let governor = Governor::builder().policies(PolicySet::from_toml(asks).unwrap()).open_in_memory().unwrap();
        governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
        governor
    }

    #[test]
    fn trust_that_cannot_be_is_told() {
        let governor = governor();
        assert_eq!(governor.status().components.trust_engine, Health::Healthy);
        let cell = governor.inner.roster.ledger.get(&"a".parse().unwrap()).unwrap();
        let whole = cell.read().clone();
        // A score that fell without its tier, as a flipped bit causes.
        cell.write().trust.score = Score::saturating(10);
        let status = governor.status();
        assert_eq!((status.status, status.components.trust_engine), (Health::Unhealthy, Health::Unhealthy));
        assert!(status.warnings.iter().any(|warning| warning.contains("agent a ")), "{:?}", status.warnings);
        *cell.write() = whole;
        cell.write().trust.last = None;
        assert_eq!(governor.status().components.trust_engine, Health::Unhealthy, "a change that no entry has");
    }

    #[test]
    fn a_verification_is_told_while_it_runs_and_when_it_fails() {
        let told = |state: VerificationState| told_verification(&state).unwrap_or_default();
        assert!(told(VerificationState::Running(LogProgress::new(3, 9))).contains("3 of 9 entries"));
        assert!(told(VerificationState::Failed("no disk".to_owned())).ends_with("no disk"));
        assert_eq!(told(VerificationState::Verified), "");
    }

    #[test]
    fn a_thread_that_has_ended_is_told() {
        let governor = governor();
        let (told, ended) = std::sync::mpsc::channel::<()>();
        let work = move || {
            let _told_when_over = &told;
            false
        };
        let background = Background::start("test", Duration::from_millis(1), work).unwrap();
        assert!(ended.recv().is_err());
        while background.is_alive() {
            std::thread::yield_now();
        }
        assert!(governor.inner.approvals.watch.set(Some(background)).is_ok(), "nothing was asked yet");
        let status = governor.status();
        assert_eq!((status.status, status.components.gateway), (Health::Degraded, Health::Degraded));
        assert!(status.warnings[0].contains("the thread that expires them"), "{:?}", status.warnings);
    }

    #[test]
    fn stops_in_force_are_told_and_degrade_nothing() {
        let governor = governor();
        let ids: Vec<_> = (0..7)
            .map(|number| {
                governor
                    .kill_switch()
                    .set(KillSwitchScope::agent(&format!("a{number}")).unwrap(), "ann", "")
                    .unwrap()
                    .id
            })
            .collect();
        let status = governor.status();
        assert_eq!((status.status, status.warnings.len()), (Health::Healthy, 6), "{:?}", status.warnings);
        assert_eq!(status.warnings[0], format!("the kill switch {} for agent a6 was set by ann", ids[6]));
        assert_eq!(status.warnings[5], "2 more kill switches are set");
        for id in &ids {
            governor.kill_switch().lift(id, "ann", "").unwrap();
        }
        assert!(governor.status().warnings.is_empty());
    }

    #[test]
    fn a_thread_that_works_is_not() {
        let governor = governor();
        let intent = Intent::new("a", "send_email", RiskLevel::Low, ["email:send"]).unwrap();
        assert_eq!(governor.enforce(&intent).unwrap().decision, Decision::Escalate);
        let status = governor.status();
        assert_eq!((status.status, status.warnings.len()), (Health::Healthy, 0), "{:?}", status.warnings);
    }
}
