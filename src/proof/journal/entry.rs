//! The bodies of the entries that are not decisions: JSON objects.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::erase::{Erasure, EvidenceSelection};
use crate::model::{AgentId, Alert, Breakage, Digest, Outcome, ProofId, Sequence, Timestamp, TrustCause};
use crate::store::{FORMAT, Frame, Kind, StoreId};

use crate::proof::queue::{OutcomeBasis, TrustMove};

/// What an entry that is no decision says.
pub(in crate::proof) enum Entry<'a> {
    Store(StoreEntry),
    Outcome(OutcomeEntry<'a>),
    State(StateEntry<'a>),
    Recovery(RecoveryEntry),
    Alert(AlertEntry),
    Erasure(Erasure, Timestamp),
    Freeze(FreezeEntry),
    Archive(ArchiveEntry),
    Repair(Box<RepairEntry>),
}

impl<'a> Entry<'a> {
    /// Reads the body of an entry; `None` where it cannot be read, or is a decision's.
    pub(in crate::proof) fn read(kind: Kind, body: &'a [u8]) -> Option<Self> {
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
        })
    }

    /// When it was enqueued.
    pub(in crate::proof) fn time(&self) -> Timestamp {
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
        }
    }

    /// The states that it sets.
    pub(in crate::proof) fn states(&self) -> impl Iterator<Item = &NewState<'a>> {
        let [first, second] = match self {
            Self::State(entry) => [Some(&entry.state), None],
            Self::Outcome(entry) => [entry.state.as_ref(), entry.asked.as_ref()],
            _ => [None, None],
        };
        first.into_iter().chain(second)
    }
}

/// When an entry of any kind was enqueued; `None` where it cannot be read.
pub(in crate::proof) fn time_of(frame: &Frame<'_>) -> Option<Timestamp> {
    #[derive(Deserialize)]
    struct Timed {
        timestamp: Timestamp,
    }
    serde_json::from_slice::<Timed>(frame.body).ok().map(|timed| timed.timestamp)
}

/// The key among the states under which an entry of the log's own past is kept, so that it is known before all of the
/// journal is read; `None` for other kinds. The order of the keys is that of the entries.
pub(in crate::proof) fn kept_key(kind: Kind, sequence: Sequence) -> Option<String> {
    let place = sequence.get();
    match kind {
        Kind::Erasure => Some(format!("{ERASURES}{place:020}")),
        Kind::Freeze | Kind::Archive | Kind::Repair => Some(format!("{PAST}{place:020}/{kind}")),
        _ => None,
    }
}

/// The place and the kind of the entry that is kept under a key among the states; `None` where it is a state.
pub(in crate::proof) fn kept_under(key: &str) -> Option<(Sequence, Kind)> {
    let (place, kind) = match key.strip_prefix(ERASURES) {
        Some(place) => (place, Kind::Erasure),
        None => key.strip_prefix(PAST)?.split_once('/').and_then(|(place, kind)| Some((place, kind.parse().ok()?)))?,
    };
    Some((Sequence::new(place.parse().ok()?), kind))
}

/// Whether a key among the states is one of those under which entries are kept.
pub(in crate::proof) fn is_kept(key: &str) -> bool {
    key.starts_with(ERASURES) || key.starts_with(PAST)
}

const ERASURES: &str = "erasure/";
const PAST: &str = "log/";

/// The first entry: the store itself.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::proof) struct StoreEntry {
    pub(in crate::proof) format: u32,
    pub(in crate::proof) store: String,
    pub(in crate::proof) timestamp: Timestamp,
    /// The version of the library that made it.
    pub(in crate::proof) made_by: String,
}

impl StoreEntry {
    pub(in crate::proof) fn new(store: StoreId, timestamp: Timestamp) -> Self {
        let made_by = format!("rulekeep {}", env!("CARGO_PKG_VERSION"));
        Self { format: FORMAT, store: store.to_string(), timestamp, made_by }
    }
}

/// What became of an action. A change of state that follows from it stands in
/// the same entry, so that neither can be there without the other.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::proof) struct OutcomeEntry<'a> {
    pub(in crate::proof) proof_id: ProofId,
    pub(in crate::proof) entity_id: AgentId,
    pub(in crate::proof) outcome: Outcome,
    #[serde(borrow, skip_serializing_if = "Option::is_none", default)]
    pub(in crate::proof) note: Option<Cow<'a, str>>,
    pub(in crate::proof) timestamp: Timestamp,
    #[serde(borrow, skip_serializing_if = "Option::is_none", default)]
    pub(in crate::proof) state: Option<NewState<'a>>,
    /// What became of the escalation that the record opened.
    #[serde(borrow, skip_serializing_if = "Option::is_none", default)]
    pub(in crate::proof) asked: Option<NewState<'a>>,
    /// How the agent's trust moved.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(in crate::proof) trust: Option<TrustMove>,
    /// What it moved by.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(in crate::proof) basis: Option<OutcomeBasis>,
}

/// The new state of something, by its key.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::proof) struct NewState<'a> {
    #[serde(borrow)]
    pub(in crate::proof) key: Cow<'a, str>,
    #[serde(borrow)]
    pub(in crate::proof) value: &'a RawValue,
}

/// A change of state that no outcome made, and why.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::proof) struct StateEntry<'a> {
    #[serde(borrow)]
    pub(in crate::proof) state: NewState<'a>,
    #[serde(borrow)]
    pub(in crate::proof) cause: Cow<'a, str>,
    /// Whose trust moved.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(in crate::proof) agent_id: Option<AgentId>,
    /// How it moved.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(in crate::proof) trust: Option<TrustMove>,
    pub(in crate::proof) timestamp: Timestamp,
}

impl StateEntry<'_> {
    /// The record that it belongs to: a correction begins its cause with the one that it corrects.
    pub(in crate::proof) fn proof_id(&self) -> Option<ProofId> {
        let trust = self.trust.as_ref().filter(|trust| trust.cause == TrustCause::Correction);
        let (record, _) = trust.and_then(|_| self.cause.split_once(": "))?;
        record.parse().ok()
    }
}

/// Evidence that is taken away for good: that of some records, of an agent, from before a moment, or of an agent
/// from before a moment.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::proof) struct ErasureEntry<'a> {
    #[serde(borrow)]
    pub(in crate::proof) cause: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(in crate::proof) proof_ids: Option<Vec<ProofId>>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(in crate::proof) agent_id: Option<AgentId>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(in crate::proof) before: Option<Timestamp>,
    /// Of the first so many entries: decisions that were put in order meanwhile are none of these.
    pub(in crate::proof) entries: u64,
    pub(in crate::proof) timestamp: Timestamp,
}

impl<'a> ErasureEntry<'a> {
    pub(in crate::proof) fn new(erasure: &Erasure, cause: &'a str, timestamp: Timestamp) -> Self {
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

/// Something that somebody should look at.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::proof) struct AlertEntry {
    #[serde(flatten)]
    pub(in crate::proof) alert: Alert,
    /// The entry that made whoever follows the log raise it.
    #[serde(rename = "upTo", skip_serializing_if = "Option::is_none", default)]
    pub(in crate::proof) up_to: Option<Sequence>,
    pub(in crate::proof) timestamp: Timestamp,
}

/// What was set aside when the store was opened.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::proof) struct RecoveryEntry {
    pub(in crate::proof) copy: String,
    pub(in crate::proof) bytes: usize,
    pub(in crate::proof) segment: String,
    pub(in crate::proof) offset: u64,
    pub(in crate::proof) timestamp: Timestamp,
}

/// The last entry of a log that takes nothing in any more.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::proof) struct FreezeEntry {
    pub(in crate::proof) cause: String,
    pub(in crate::proof) timestamp: Timestamp,
}

/// The first entries were moved to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::proof) struct ArchiveEntry {
    /// The file's name.
    pub(in crate::proof) file: String,
    /// The first entry that it has.
    pub(in crate::proof) from: u64,
    /// How many entries the log had where it ends.
    pub(in crate::proof) entries: u64,
    /// The link of the last of them.
    pub(in crate::proof) link: Digest,
    /// The root of the Merkle tree over them, those that are in earlier archives included.
    pub(in crate::proof) root: Digest,
    /// The hash of the last proof record among them.
    pub(in crate::proof) head_hash: Digest,
    /// SHA-256 of the file.
    pub(in crate::proof) sha256: Digest,
    pub(in crate::proof) timestamp: Timestamp,
}

/// Which log this one was begun in place of.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::proof) struct RepairEntry {
    /// The store's id; none where nothing could be read of it.
    pub(in crate::proof) of: Option<String>,
    /// How many of its entries held, from the first on.
    pub(in crate::proof) entries: u64,
    /// How many of them are proof records.
    pub(in crate::proof) records: u64,
    /// The link of the last of them.
    pub(in crate::proof) link: Digest,
    /// The root of the Merkle tree over them.
    pub(in crate::proof) root: Digest,
    /// The hash of the last proof record among them.
    pub(in crate::proof) head_hash: Digest,
    /// Where it breaks.
    pub(in crate::proof) broken: Breakage,
    /// The folder in the store where all of it is kept as it was.
    pub(in crate::proof) kept: String,
    pub(in crate::proof) timestamp: Timestamp,
}
