//! The counts of a report, from one pass over the lines of an export.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};

use rulekeep::escalation::EscalationState;
use rulekeep::intent::DenialClass;
use rulekeep::proof::ProofId;
use rulekeep::system::Timestamp;
use rulekeep::{Decision, Outcome, RiskLevel, Tier};
use serde::Deserialize;

use super::span::Span;
use rulekeep_server::calls::request::{StoredIntent, decided};

/// Number of decisions of each kind, in the order of [`Decision::ALL`].
pub(super) type Decisions = [u64; Decision::ALL.len()];

/// The counts of a period. The lines of an export are written to it.
#[derive(Default)]
pub(super) struct Tally {
    /// The period; `None` without records.
    pub(super) span: Option<Span>,
    pub(super) records: u64,
    /// Number of records whose evidence was erased, so that their capabilities and reasons are unknown.
    pub(super) without_evidence: u64,
    pub(super) decisions: Decisions,
    /// The decisions in each interval of the period.
    pub(super) by_interval: Vec<Decisions>,
    /// The decisions at each risk, in the order of [`RiskLevel::ALL`].
    pub(super) by_risk: [Decisions; RiskLevel::ALL.len()],
    pub(super) by_capability: Table<Decisions>,
    /// Denials by what denied, and by rule.
    pub(super) refusals: Table<u64>,
    /// The decisions other than ALLOW, by decision, by what decided, and by the command, or the tool and its target.
    pub(super) stopped: Table<Stopped>,
    pub(super) agents: HashMap<String, AgentTally>,
    pub(super) escalations: Escalations,
    /// The part of a line that was written so far.
    part: Vec<u8>,
}

/// Counts by a name that comes from the log. Names past [`MOST_NAMES`] are counted together.
pub(super) struct Table<T> {
    pub(super) rows: HashMap<String, T>,
    /// The count of all names that have no row.
    pub(super) others: T,
}

impl<T: Default> Default for Table<T> {
    fn default() -> Self {
        Self { rows: HashMap::new(), others: T::default() }
    }
}

impl<T: Default> Table<T> {
    fn of(&mut self, name: &str) -> &mut T {
        if !self.rows.contains_key(name) {
            if self.rows.len() >= MOST_NAMES {
                return &mut self.others;
            }
            self.rows.insert(name.to_owned(), T::default());
        }
        self.rows.entry(name.to_owned()).or_default()
    }
}

/// Equal requests that were decided alike.
#[derive(Default)]
pub(super) struct Stopped {
    pub(super) times: u64,
    /// The time of the last one; the log is in the order of time.
    pub(super) last: Option<Timestamp>,
}

/// The counts of one agent.
pub(super) struct AgentTally {
    pub(super) decisions: Decisions,
    pub(super) successes: u64,
    pub(super) failures: u64,
    /// The score at the last record of each interval that has records.
    pub(super) scores: Vec<(u32, u16)>,
    pub(super) tier: Tier,
}

impl AgentTally {
    pub(super) fn records(&self) -> u64 {
        self.decisions.iter().sum()
    }
}

/// Escalations opened in the period, in their state at the end of the log.
#[derive(Default)]
pub(super) struct Escalations {
    /// Unanswered escalations: the time of each, and whether it is over all the same.
    unanswered: HashMap<ProofId, (Timestamp, bool)>,
    pub(super) approved: u64,
    pub(super) rejected: u64,
    pub(super) expired: u64,
    /// Answered by a record whose evidence was erased.
    pub(super) unknown: u64,
    /// Milliseconds until a reviewer answered.
    pub(super) response_millis: Vec<u64>,
}

impl Escalations {
    /// The times of escalations that wait for a reviewer, or have expired without being closed.
    pub(super) fn pending(&self) -> impl Iterator<Item = Timestamp> {
        self.unanswered.values().filter(|(_, is_over)| !is_over).map(|(asked, _)| *asked)
    }

    /// Number of withdrawn escalations: an outcome was reported before anybody answered.
    pub(super) fn withdrawn(&self) -> usize {
        self.unanswered.values().filter(|(_, is_over)| *is_over).count()
    }
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    record: Record<'a>,
    #[serde(borrow)]
    evidence: Option<Evidence<'a>>,
    outcome: Option<Outcome>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    id: ProofId,
    #[serde(borrow)]
    entity_id: Cow<'a, str>,
    decision: Decision,
    #[serde(borrow)]
    reasoning: Cow<'a, str>,
    resolves: Option<ProofId>,
    trust_score: u16,
    trust_tier: Tier,
    risk_level: RiskLevel,
    timestamp: Timestamp,
}

/// The intent, the detail of the decision, and unused parts, each as the text of a JSON object.
#[derive(Deserialize)]
struct Evidence<'a> {
    #[serde(borrow)]
    parts: Vec<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked<'a> {
    #[serde(borrow, default)]
    required_capabilities: Vec<Cow<'a, str>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Detail<'a> {
    #[serde(borrow, default)]
    rules: Vec<Cow<'a, str>>,
    denial_class: Option<DenialClass>,
    resolution: Option<Resolution>,
}

#[derive(Deserialize)]
struct Resolution {
    state: EscalationState,
}

impl Detail<'_> {
    /// The reviewer's answer, the rules, or what denied without a rule; nothing for an escalation without a rule.
    fn decided_by(&self) -> String {
        match self.denial_class {
            _ if self.resolution.is_some() => self.refused_by().to_owned(),
            _ if !self.rules.is_empty() => self.rules.join(", "),
            Some(DenialClass::Policy) => "no rule grants it".to_owned(),
            class => class.map_or("", DenialClass::as_str).to_owned(),
        }
    }

    fn refused_by(&self) -> &'static str {
        match self.resolution.as_ref().map(|resolution| resolution.state) {
            Some(EscalationState::Rejected) => "rejected by a reviewer",
            Some(_) => "escalation expired",
            None => self.denial_class.map_or("unknown: no evidence", DenialClass::as_str),
        }
    }
}

impl Tally {
    pub(super) fn new(span: Option<Span>) -> Self {
        let by_interval = vec![Decisions::default(); span.map_or(0, |span| span.count)];
        Self { span, by_interval, ..Self::default() }
    }

    fn line(&mut self, line: &[u8]) -> serde_json::Result<()> {
        // The first key identifies the kind of line; the first and the last line have no record.
        if !line.starts_with(b"{\"record\":") {
            return Ok(());
        }
        let Line { record, evidence, outcome } = serde_json::from_slice(line)?;
        let place = self.span.and_then(|span| span.place(record.timestamp));
        if place.is_none() && record.resolves.is_none() {
            return Ok(());
        }
        let parts = evidence.as_ref().map(|evidence| evidence.parts.as_slice());
        let part = |number: usize| parts.and_then(|parts| parts.get(number));
        let detail: Option<Detail<'_>> = part(1).map(|text| serde_json::from_str(text)).transpose()?;
        self.escalation(&record, detail.as_ref(), outcome, place.is_some());
        let Some(place) = place else { return Ok(()) };
        // An answer to an escalation that cannot be read any more has no intent.
        let asked: Option<Option<Asked<'_>>> = part(0).map(|text| serde_json::from_str(text)).transpose()?;
        let decision = record.decision as usize;
        self.records += 1;
        self.decisions[decision] += 1;
        self.by_risk[record.risk_level as usize][decision] += 1;
        if let Some(interval) = self.by_interval.get_mut(place) {
            interval[decision] += 1;
        }
        self.without_evidence += u64::from(asked.is_none());
        for capability in asked.flatten().unwrap_or_default().required_capabilities {
            self.by_capability.of(&capability)[decision] += 1;
        }
        let (mut detail, is_refused) = (detail.unwrap_or_default(), record.decision == Decision::Deny);
        detail.rules.retain(|rule| decided(rule, &record.reasoning));
        let said = part(0).filter(|_| record.decision != Decision::Allow);
        let said = said.and_then(|text| serde_json::from_str(text).ok()).and_then(|intent: StoredIntent| intent.said());
        if let Some(said) = said {
            let stopped = self.stopped.of(&format!("{}\n{}\n{said}", record.decision, detail.decided_by()));
            (stopped.times, stopped.last) = (stopped.times + 1, Some(record.timestamp));
        }
        if is_refused {
            self.refusal(&detail);
        }
        self.agent(&record, outcome, place);
        Ok(())
    }

    fn refusal(&mut self, detail: &Detail<'_>) {
        let (what, rules) = (detail.refused_by(), &detail.rules);
        if rules.is_empty() {
            *self.refusals.of(&format!("{what}\n")) += 1;
        }
        for rule in rules {
            *self.refusals.of(&format!("{what}\n{rule}")) += 1;
        }
    }

    fn escalation(&mut self, record: &Record<'_>, detail: Option<&Detail<'_>>, outcome: Option<Outcome>, asked: bool) {
        let escalations = &mut self.escalations;
        if let Some((created, _)) = record.resolves.and_then(|id| escalations.unanswered.remove(&id)) {
            let state = detail.and_then(|detail| detail.resolution.as_ref()).map(|resolution| resolution.state);
            *match state {
                Some(EscalationState::Approved) => &mut escalations.approved,
                Some(EscalationState::Rejected) => &mut escalations.rejected,
                Some(EscalationState::Expired) => &mut escalations.expired,
                _ => &mut escalations.unknown,
            } += 1;
            if matches!(state, Some(EscalationState::Approved | EscalationState::Rejected)) {
                let millis = record.timestamp.as_millis().saturating_sub(created.as_millis());
                escalations.response_millis.push(u64::try_from(millis).unwrap_or(0));
            }
        }
        if asked && record.decision == Decision::Escalate {
            escalations.unanswered.insert(record.id, (record.timestamp, outcome.is_some()));
        }
    }

    fn agent(&mut self, record: &Record<'_>, outcome: Option<Outcome>, place: usize) {
        if !self.agents.contains_key(&*record.entity_id) {
            let (decisions, tier) = (Decisions::default(), record.trust_tier);
            let new = AgentTally { decisions, successes: 0, failures: 0, scores: Vec::new(), tier };
            self.agents.insert(record.entity_id.clone().into_owned(), new);
        }
        let Some(agent) = self.agents.get_mut(&*record.entity_id) else { return };
        agent.decisions[record.decision as usize] += 1;
        agent.tier = record.trust_tier;
        agent.successes += u64::from(outcome == Some(Outcome::Success));
        agent.failures += u64::from(outcome == Some(Outcome::Failure));
        let place = u32::try_from(place).unwrap_or(u32::MAX);
        match agent.scores.last_mut().filter(|(last, _)| *last == place) {
            Some((_, score)) => *score = record.trust_score,
            None => agent.scores.push((place, record.trust_score)),
        }
    }
}

impl Write for Tally {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.part.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.part);
                self.line(&line).map_err(|error| io::Error::other(format!("a record has another form: {error}")))?;
                self.part = line;
                self.part.clear();
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Largest number of different names counted; nobody reads more.
const MOST_NAMES: usize = 10_000;
