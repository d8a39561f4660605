//! Events: the content of a journal entry in terms of the API. An entry always yields the same events with the same
//! IDs.

use rulekeep_types::parts::DecisionRenderedParts;
use rulekeep_types::parts::TrustChangedParts;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::store::{Frame, Kind, StoreId};
use rulekeep_types::{
    Alert, AlertKind, Breakage, Decision, DecisionRendered, EscalationId, Event, EventData, EventId, EventType,
    RiskLevel, Timestamp, TrustChanged, TrustSnapshot,
};

use super::details::Details;
use super::moves::MovedTrust;
use crate::journal::entry::AlertEntry;
use crate::journal::record::CanonicalRecord;

/// Returns the events of an entry that `wanted` selects, in order. An entry whose body is malformed yields none;
/// verifying the log reports it. `details` is a cache that lasts from entry to entry and only affects speed.
pub fn of_entry(frame: &Frame<'_>, wanted: &dyn Fn(EventType) -> bool, details: &mut Details) -> Vec<Event> {
    match frame.kind {
        Kind::Decision => of_decision(frame, wanted, details),
        Kind::Alert => of_alert(frame, wanted),
        Kind::Outcome | Kind::State => of_trust(frame, wanted),
        Kind::Store
        | Kind::Recovery
        | Kind::Erasure
        | Kind::Freeze
        | Kind::Archive
        | Kind::Repair
        | Kind::Clock
        | Kind::UnknownOutcome => None,
    }
    .unwrap_or_default()
}

fn of_decision(frame: &Frame<'_>, wanted: &dyn Fn(EventType) -> bool, details: &mut Details) -> Option<Vec<Event>> {
    let (wants_decision, wants_record) = (wanted(EventType::Decision), wanted(EventType::Recorded));
    if !wants_decision && !wants_record {
        return None;
    }
    let record = CanonicalRecord::read(frame.body).ok()?;
    let at = record.timestamp;
    let mut events = Vec::with_capacity(2);
    if wants_decision {
        let rendered = DecisionRendered::from(DecisionRenderedParts {
            proof_id: record.id,
            intent_id: record.intent_id,
            agent_id: record.entity_id.clone(),
            decision: record.decision,
            reasoning: record.reasoning.clone().into_owned(),
            risk_level: record.risk_level,
            trust_snapshot: TrustSnapshot::new(record.trust_score, record.trust_tier),
            escalation_id: (record.decision == Decision::Escalate).then(|| EscalationId::of(record.id)),
            detail: details.told(frame.evidence, record.decision == Decision::Escalate),
        });
        events.push(event(frame, EventType::Decision, at, EventData::Decision(Box::new(rendered))));
    }
    if wants_record {
        // Computing the hash is most of the cost of a record event, so it is skipped for decision events.
        let record = record.into_record(frame.digest(), None);
        events.push(event(frame, EventType::Recorded, at, EventData::Recorded(Box::new(record))));
    }
    Some(events)
}

fn of_trust(frame: &Frame<'_>, wanted: &dyn Fn(EventType) -> bool) -> Option<Vec<Event>> {
    if !wanted(EventType::ScoreChanged) && !wanted(EventType::TierChanged) {
        return None;
    }
    let MovedTrust { agent_id, timestamp, trust, proof_id, outcome, note } = MovedTrust::read(frame)?;
    let cause = match outcome {
        Some(outcome) => format!("the outcome {outcome} was reported"),
        None => note.unwrap_or_default(),
    };
    let change = trust.change;
    let changed = TrustChanged::from(TrustChangedParts { agent_id, change, cause, proof_id });
    let happened = [
        (EventType::ScoreChanged, change.from != change.to),
        (EventType::TierChanged, change.from_tier != change.to_tier),
    ];
    let told = happened.into_iter().filter(|(event_type, happened)| *happened && wanted(*event_type));
    let tell = |(event_type, _)| event(frame, event_type, timestamp, EventData::Trust(Box::new(changed.clone())));
    Some(told.map(tell).collect())
}

fn of_alert(frame: &Frame<'_>, wanted: &dyn Fn(EventType) -> bool) -> Option<Vec<Event>> {
    if !wanted(EventType::Alert) {
        return None;
    }
    let entry: AlertEntry = serde_json::from_slice(frame.body).ok()?;
    let data = EventData::Alert(Box::new(entry.alert.with_records()));
    Some(vec![event(frame, EventType::Alert, entry.timestamp, data)])
}

/// Returns the alert on a broken log, which no entry can report. It is the same in every run. `at` is the time of the
/// entry before the break, `rule` the rule that asks for the alert.
pub(super) fn of_breakage(
    store: StoreId,
    breakage: &Breakage,
    at: Timestamp,
    rule: Option<(Arc<str>, RiskLevel)>,
) -> Event {
    let marked = Sha256::new()
        .chain_update(store.0)
        .chain_update(breakage.sequence.get().to_le_bytes())
        .chain_update(breakage.kind.as_str());
    let [a, b, c, ..]: [u8; 32] = marked.finalize().into();
    let id = EventId::new(at, [a, b, c], EventType::Alert as u8, breakage.sequence);
    let (rule, severity) = rule.unzip();
    let message = format!("the chain does not verify: {breakage}");
    let mut alert = Alert::new(AlertKind::Chain, severity.unwrap_or(RiskLevel::Critical), None, message)
        .about(breakage.proof_id.into_iter().collect());
    alert.rule = rule;
    Event::new(id, EventType::Alert, at, EventData::Alert(Box::new(alert)))
}

fn event(frame: &Frame<'_>, event_type: EventType, at: Timestamp, data: EventData) -> Event {
    let [a, b, c, ..] = *frame.link.as_bytes();
    // The position in the list of types is part of the ID, because an entry yields at most one event of each type.
    let id = EventId::new(at, [a, b, c], event_type as u8, frame.sequence);
    Event::new(id, event_type, at, data)
}
