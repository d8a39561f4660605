//! The bodies of the entries that are not decisions, as JSON objects.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::erase::{Erasure, EvidenceSelection};
use crate::store::{FORMAT, Frame, Kind, StoreId};
use rulekeep_types::{AgentId, Alert, Breakage, Digest, Outcome, ProofId, Sequence, Timestamp, TrustCause};

use crate::queue::{OutcomeBasis, TrustMove};

/// The content of an entry that is not a decision.
pub(crate) enum Entry<'a> {
    Store(StoreEntry),
    Outcome(OutcomeEntry<'a>),
    State(StateEntry<'a>),
    Recovery(RecoveryEntry),
    Alert(AlertEntry),
    Erasure(Erasure, Timestamp),
    Freeze(FreezeEntry),
    Archive(ArchiveEntry),
    Repair(Box<RepairEntry>),
    Clock(ClockEntry),
    UnknownOutcome(UnknownOutcomeEntry<'a>),
}

impl<'a> Entry<'a> {
    /// Reads the body of an entry; `None` if it is malformed or that of a decision.
    pub(crate) fn read(kind: Kind, body: &'a [u8]) -> Option<Self> {
        fn json<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Option<T> {
            serde_json::from_slice(body).ok()
        }
        Some(match kind {
            Kind::Decision => return None,
            Kind::Store => Self::Store(json(body)?),
            Kind::Outcome => Self::Outcome(json(body)?),
            Kind::State => Self::State(json(body)?),
            Kind::Recovery => Self::Recovery(json(body)?),
            Kind::Alert => Self::Alert(json(body)?),
            Kind::Erasure => {
                let entry: ErasureEntry<'_> = json(body)?;
                let timestamp = entry.timestamp;
                Self::Erasure(Erasure::of(entry)?, timestamp)
            }
            Kind::Freeze => Self::Freeze(json(body)?),
            Kind::Archive => Self::Archive(json(body)?),
            Kind::Repair => Self::Repair(json(body)?),
            Kind::Clock => Self::Clock(json(body)?),
            Kind::UnknownOutcome => Self::UnknownOutcome(json(body)?),
        })
    }

    /// The time at which the entry was enqueued.
    pub(crate) fn time(&self) -> Timestamp {
        match self {
            Self::Store(entry) => entry.timestamp,
            Self::Outcome(entry) => entry.timestamp,
            Self::State(entry) => entry.timestamp,
            Self::Recovery(entry) => entry.timestamp,
            Self::Alert(entry) => entry.timestamp,
            Self::Erasure(_, timestamp) => *timestamp,
            Self::Freeze(entry) => entry.timestamp,
            Self::Archive(entry) => entry.timestamp,
            Self::Repair(entry) => entry.timestamp,
            Self::Clock(entry) => entry.timestamp,
            Self::UnknownOutcome(entry) => entry.timestamp,
        }
    }

    /// The states that the entry sets.
    pub(crate) fn states(&self) -> impl Iterator<Item = &NewState<'a>> {
        let [first, second] = match self {
            Self::State(entry) => [Some(&entry.state), None],
            Self::Outcome(entry) => [entry.state.as_ref(), entry.asked.as_ref()],
            _ => [None, None],
        };
        first.into_iter().chain(second)
    }
}

/// The time at which an entry of any kind was enqueued; `None` if the body is malformed.
pub(crate) fn time_of(frame: &Frame<'_>) -> Option<Timestamp> {
    #[derive(Deserialize)]
    struct Timed {
        timestamp: Timestamp,
    }
    serde_json::from_slice::<Timed>(frame.body).ok().map(|timed| timed.timestamp)
}

/// The key among the states under which an entry about the log's own past is kept, so that it is known before the
/// whole journal is read. `None` for other kinds. The keys sort in the order of the entries.
pub(crate) fn kept_key(kind: Kind, sequence: Sequence) -> Option<String> {
    let place = sequence.get();
    match kind {
        Kind::Erasure => Some(format!("{ERASURES}{place:020}")),
        Kind::Freeze | Kind::Archive | Kind::Repair | Kind::Clock => Some(format!("{PAST}{place:020}/{kind}")),
        _ => None,
    }
}

/// Returns the sequence and kind of the entry kept under a key among the states; `None` if the key is that of a
/// state.
pub(crate) fn kept_under(key: &str) -> Option<(Sequence, Kind)> {
    let (place, kind) = match key.strip_prefix(ERASURES) {
        Some(place) => (place, Kind::Erasure),
        None => key.strip_prefix(PAST)?.split_once('/').and_then(|(place, kind)| Some((place, kind.parse().ok()?)))?,
    };
    Some((Sequence::new(place.parse().ok()?), kind))
}

/// Returns the entry at which the log's time stepped back, and the time it stepped to, if that is kept under the key.
pub(crate) fn step_back(key: &str, body: &[u8]) -> Option<(Sequence, Timestamp)> {
    let (sequence, _) = kept_under(key).filter(|(_, kind)| *kind == Kind::Clock)?;
    let entry: ClockEntry = serde_json::from_slice(body).ok()?;
    entry.steps_back().then_some((sequence, entry.timestamp))
}

/// Returns whether a key among the states is one under which entries are kept.
pub(crate) fn is_kept(key: &str) -> bool {
    key.starts_with(ERASURES) || key.starts_with(PAST)
}

/// Prefix of the keys under which erasures are kept.
pub(crate) const ERASURES: &str = "erasure/";
/// Prefix of the keys under which other entries about the log's past are kept.
pub(crate) const PAST: &str = "log/";

/// The first entry of a log, which describes the store.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoreEntry {
    pub(crate) format: u32,
    pub(crate) store: String,
    pub(crate) timestamp: Timestamp,
    /// The version of the library that created the store.
    pub(crate) made_by: String,
}

impl StoreEntry {
    pub(crate) fn new(store: StoreId, timestamp: Timestamp) -> Self {
        let made_by = format!("rulekeep {}", env!("CARGO_PKG_VERSION"));
        Self { format: FORMAT, store: store.to_string(), timestamp, made_by }
    }
}

/// The outcome of an action. A change of state that follows from it is part of the same entry, so that neither can
/// exist without the other.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OutcomeEntry<'a> {
    pub(crate) proof_id: ProofId,
    pub(crate) entity_id: AgentId,
    pub(crate) outcome: Outcome,
    #[serde(borrow, skip_serializing_if = "Option::is_none", default)]
    pub(crate) note: Option<Cow<'a, str>>,
    pub(crate) timestamp: Timestamp,
    #[serde(borrow, skip_serializing_if = "Option::is_none", default)]
    pub(crate) state: Option<NewState<'a>>,
    /// The new state of the escalation that the record opened.
    #[serde(borrow, skip_serializing_if = "Option::is_none", default)]
    pub(crate) asked: Option<NewState<'a>>,
    /// The change of the agent's trust.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) trust: Option<TrustMove>,
    /// The inputs from which the change of trust was computed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) basis: Option<OutcomeBasis>,
}

/// A report that the outcome of an action is not known. It changes nothing: the record has no outcome until one is
/// reported.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UnknownOutcomeEntry<'a> {
    pub(crate) proof_id: ProofId,
    pub(crate) entity_id: AgentId,
    #[serde(borrow, skip_serializing_if = "Option::is_none", default)]
    pub(crate) note: Option<Cow<'a, str>>,
    pub(crate) timestamp: Timestamp,
}

/// The new value of a state, and its key.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NewState<'a> {
    #[serde(borrow)]
    pub(crate) key: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) value: &'a RawValue,
}

/// A change of state that does not follow from an outcome, and its cause.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StateEntry<'a> {
    #[serde(borrow)]
    pub(crate) state: NewState<'a>,
    #[serde(borrow)]
    pub(crate) cause: Cow<'a, str>,
    /// The agent whose trust changed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) agent_id: Option<AgentId>,
    /// The change of trust.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) trust: Option<TrustMove>,
    pub(crate) timestamp: Timestamp,
}

impl StateEntry<'_> {
    /// The record that the change belongs to. The cause of a correction begins with the ID of the record it corrects.
    pub(crate) fn proof_id(&self) -> Option<ProofId> {
        let trust = self.trust.as_ref().filter(|trust| trust.cause == TrustCause::Correction);
        let (record, _) = trust.and_then(|_| self.cause.split_once(": "))?;
        record.parse().ok()
    }
}

/// An erasure of evidence: that of given records, of an agent, from before a time, or of an agent from before a time.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ErasureEntry<'a> {
    #[serde(borrow)]
    pub(crate) cause: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) proof_ids: Option<Vec<ProofId>>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) agent_id: Option<AgentId>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) before: Option<Timestamp>,
    /// Number of entries the erasure covers, from the first on: decisions enqueued later are not covered.
    pub(crate) entries: u64,
    pub(crate) timestamp: Timestamp,
}

impl<'a> ErasureEntry<'a> {
    pub(crate) fn new(erasure: &Erasure, cause: &'a str, timestamp: Timestamp) -> Self {
        let (mut proof_ids, mut agent_id, mut before) = (None, None, None);
        match &erasure.selection {
            EvidenceSelection::Records(ids) => proof_ids = Some(ids.clone()),
            EvidenceSelection::Agent(agent) => agent_id = Some(agent.clone()),
            EvidenceSelection::AgentBefore(agent, moment) => {
                (agent_id, before) = (Some(agent.clone()), Some(*moment));
            }
            EvidenceSelection::Before(moment) => before = Some(*moment),
        }
        Self { cause: Cow::Borrowed(cause), proof_ids, agent_id, before, entries: erasure.entries, timestamp }
    }
}

/// A condition that an operator should look at.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AlertEntry {
    #[serde(flatten)]
    pub(crate) alert: Alert,
    /// The entry that made the follower of the log raise the alert.
    #[serde(rename = "upTo", skip_serializing_if = "Option::is_none", default)]
    pub(crate) up_to: Option<Sequence>,
    pub(crate) timestamp: Timestamp,
}

/// A description of what was set aside when the store was opened.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RecoveryEntry {
    pub(crate) copy: String,
    pub(crate) bytes: usize,
    pub(crate) segment: String,
    pub(crate) offset: u64,
    pub(crate) timestamp: Timestamp,
}

/// The last entry of a frozen log, which accepts no more entries.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FreezeEntry {
    pub(crate) cause: String,
    pub(crate) timestamp: Timestamp,
}

/// The move of the first entries to an archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ArchiveEntry {
    /// Name of the archive file.
    pub(crate) file: String,
    /// The first entry in the archive.
    pub(crate) from: u64,
    /// Number of entries in the log up to the end of the archive.
    pub(crate) entries: u64,
    /// The link of the last archived entry.
    pub(crate) link: Digest,
    /// The root of the Merkle tree over all entries up to there, including those in earlier archives.
    pub(crate) root: Digest,
    /// The hash of the last archived proof record.
    pub(crate) head_hash: Digest,
    /// SHA-256 of the file.
    pub(crate) sha256: Digest,
    pub(crate) timestamp: Timestamp,
}

/// An operator's confirmation of the clock.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ClockEntry {
    /// The time of the log before.
    pub(crate) from: Timestamp,
    /// The operator who confirmed it.
    pub(crate) by: String,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub(crate) note: String,
    /// The time the clock showed. Later entries have times from here on.
    pub(crate) timestamp: Timestamp,
}

impl ClockEntry {
    /// Returns whether the log's time steps back.
    pub(crate) fn steps_back(&self) -> bool {
        self.timestamp < self.from
    }
}

/// A reference to the broken log that this one replaces.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RepairEntry {
    /// The ID of the broken store; `None` if it could not be read.
    pub(crate) of: Option<String>,
    /// Number of sound entries of the broken log, from the first on.
    pub(crate) entries: u64,
    /// The first sound entry that no witness confirmed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) first_unconfirmed: Option<Sequence>,
    /// Number of proof records among the sound entries.
    pub(crate) records: u64,
    /// The link of the last sound entry.
    pub(crate) link: Digest,
    /// The root of the Merkle tree over the sound entries.
    pub(crate) root: Digest,
    /// The hash of the last proof record among the sound entries.
    pub(crate) head_hash: Digest,
    /// The break.
    pub(crate) broken: Breakage,
    /// The folder in the store in which the broken log is kept unchanged.
    pub(crate) kept: String,
    pub(crate) timestamp: Timestamp,
}
