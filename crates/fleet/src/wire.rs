//! Messages between members and hubs: JSON over HTTP, signed with the governor's key.
//!
//! | call | request | response |
//! |---|---|---|
//! | `POST /fleet/v1/enrol` | [`Enrol`](crate::enrolment::Enrol) | null |
//! | `POST /fleet/v1/beat` | [`Beat`] | [`Answer`] |
//! | `POST /fleet/v1/reserve` | [`Reserve`] | [`Reserved`] |
//! | `POST /fleet/v1/records` | [`Records`] | [`Copied`] |
//! | `POST /fleet/v1/orders` | [`SignedOrder`] | [`Standing`] |
//! | `GET /fleet/v1/orders?after=N` | | a list of [`SignedOrder`] |
//!
//! A member's signature stands in the header [`SIGNATURE`], over the path and the SHA-256 of the body: its name, this
//! digest and the signature, separated by spaces. So the hub knows who sends a body before it reads it. An enrolment has
//! its signatures in the body.

use std::collections::BTreeMap;

use rulekeep::checkpoint::{CheckpointKey, VerifierKey};
use rulekeep::proof::Digest;
use rulekeep::system::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::budget::{Grant, Report, Return, Want};
use crate::keys;
use crate::log::Head;
use crate::order::SignedOrder;

/// Header of a request's signature: the name of the key, the digest of the body, and the signature in base 64.
pub const SIGNATURE: &str = "x-fleet-signature";
/// Largest body of a request whose sender is not known yet, in bytes.
pub const MAX_STRANGERS_BYTES: usize = 64 << 10;
/// Largest body of a request, in bytes.
pub const MAX_BODY_BYTES: usize = 4 << 20;
/// Largest sum of the orders in one answer, in bytes, unless one alone is larger.
pub const MAX_ORDERS_BYTES: usize = MAX_BODY_BYTES / 2;
/// Largest answer, in bytes: one order of the largest size has room.
pub const MAX_ANSWER_BYTES: usize = 3 * MAX_BODY_BYTES;
/// Most returns in one beat.
pub const MAX_RETURNED: usize = 1000;
/// Most wants in one request.
pub const MAX_WANTS: usize = 100;
/// Most orders in one answer.
pub const MAX_ORDERS: usize = 10_000;

/// The message that a governor sends again and again, to get a permit and what is new.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Beat {
    /// The governor's id.
    pub governor: String,
    /// The id of the run of its process.
    pub boot: String,
    /// The number of the beat within the run: each that is sent has a larger one.
    pub number: u64,
    /// The nonce of the last answer; `None` in the first beat of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    /// The number of the order in force at the governor.
    pub order: u64,
    /// The digest of that order.
    pub head: Digest,
    /// Orders in force that it could not carry out, with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<u64, String>,
    /// Number of open actions of stopped agents.
    #[serde(default)]
    pub open: u64,
    /// The head of its log, which is on disk; `None` in the first beat of a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<Head>,
    /// A new checkpoint of its log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<Anchor>,
    /// The time for which the hub may wait for news, in milliseconds.
    pub wait_ms: u64,
    /// Parts of shared limits that it gives back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub returned: Vec<Return>,
    /// All parts of shared limits that it holds or has spent; sent when a hub asks for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
    /// Whether the run ends with this beat: it decides nothing more, and what `returned` does not name is spent.
    #[serde(default)]
    pub is_leaving: bool,
    /// The governor's time.
    pub at: Timestamp,
}

/// A signed checkpoint of a governor's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Anchor {
    /// The checkpoint as a signed note.
    pub note: String,
    /// The proof that the log only grew since the last anchored size; `None` for the first.
    pub proof: Option<String>,
    /// The proof that the log only grew since the last beat of the run before, where that beat named a larger size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<String>,
}

/// The hub's answer to a beat.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The nonce for the next beat.
    pub nonce: String,
    /// Whether the beat was taken. Otherwise its sender must show first, by the nonce, that it is there now.
    #[serde(default)]
    pub is_taken: bool,
    /// The permit, counted from the sending of the beat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permit: Option<Term>,
    /// The reason there is no permit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// The orders after the governor's.
    #[serde(default)]
    pub orders: Vec<SignedOrder>,
    /// The stages that rollouts have reached, by the number of the order.
    #[serde(default)]
    pub stages: BTreeMap<u64, usize>,
    /// The number of entries that the newest anchored checkpoint covers.
    #[serde(default)]
    pub anchored: u64,
    /// The number of entries whose records are copied where they are wanted.
    #[serde(default)]
    pub copied: u64,
    /// The number of entries that the last beat named.
    #[serde(default)]
    pub head: u64,
    /// The numbers of leases to give back.
    #[serde(default)]
    pub recall: Vec<u64>,
    /// The epoch of the database for which the next beat must report all parts of shared limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<u64>,
    /// Whether the next beat must carry a checkpoint: this run has not shown yet that its log continues the known one.
    #[serde(default)]
    pub show: bool,
}

/// The times of a permit, from the sending of the beat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Term {
    /// The time for which the governor may decide, in milliseconds.
    pub term_ms: u64,
    /// The further time for which it may decide on LOW-risk reads, in milliseconds.
    pub offline_ms: u64,
}

/// A governor's request for parts of shared limits, which decisions wait for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reserve {
    /// The governor's id.
    pub governor: String,
    /// The id of the run of its process.
    pub boot: String,
    /// The parts that it wants.
    pub wants: Vec<Want>,
}

/// The answer to a request for parts of shared limits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reserved {
    /// The parts that are granted.
    pub grants: Vec<Grant>,
    /// The numbers of the wants that are not.
    pub refused: Vec<u64>,
}

/// A batch of records, copied to the organisation.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Records {
    /// The governor's id.
    pub governor: String,
    /// The anchored number of entries that the proofs are for.
    pub size: u64,
    /// The entries that the batch covers: those before this one. Records that are not wanted are left out.
    pub until: u64,
    /// The records.
    pub records: Vec<Copy>,
}

/// A copied record with its inclusion proof.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Copy {
    /// The record's JSON.
    pub record: Box<RawValue>,
    /// The inclusion path, hashes in base 64 from the leaf up.
    pub path: Vec<String>,
}

/// The answer to copied records.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Copied {
    /// The number of entries that are copied where they are wanted.
    pub copied: u64,
}

/// The progress of an order over all members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Standing {
    /// The order's number.
    pub seq: u64,
    /// The order's index in the organisation's log, once it is there under a published checkpoint.
    pub leaf: Option<u64>,
    /// Number of members that have it in force.
    pub acknowledged: u64,
    /// Number of members without it whose permit has ended.
    pub ended: u64,
    /// Number of members without it that hold a permit.
    pub open: u64,
    /// Members that could not carry it out.
    pub refused: Vec<String>,
    /// The latest time at which the last permit without it ends.
    pub bound: Timestamp,
}

/// The error of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// A sentence for the log of the caller.
    pub error: String,
}

/// Signs a request. Returns the value of the header [`SIGNATURE`].
pub fn sign(key: &CheckpointKey, path: &str, body: &str) -> String {
    let digest = Digest::of(body.as_bytes());
    format!("{} {digest} {}", key.name(), keys::sign(key, &signed_text(path, digest)))
}

/// The value of the header [`SIGNATURE`]. Nothing in it is verified yet.
#[derive(Debug, Clone, Copy)]
pub struct Signature<'a> {
    /// The name of the sender's key.
    pub name: &'a str,
    digest: Digest,
    bytes: &'a str,
}

impl<'a> Signature<'a> {
    /// Reads the value of a header; `None` if it has another form.
    pub fn read(value: &'a str) -> Option<Self> {
        let mut parts = value.split(' ');
        let (name, digest, bytes) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
        parts.next().is_none().then_some(Self { name, digest, bytes })
    }

    /// Returns whether this key signed the path and the digest of a body.
    pub fn is_by(&self, key: &VerifierKey, path: &str) -> bool {
        keys::verify(key, &signed_text(path, self.digest), self.bytes)
    }

    /// Returns whether the digest is that of this body.
    pub fn is_of(&self, body: &str) -> bool {
        self.digest == Digest::of(body.as_bytes())
    }
}

fn signed_text(path: &str, digest: Digest) -> String {
    // Of the body its hash is signed: Ed25519 would hash long bodies slower, and twice.
    format!("rulekeep fleet {path}\n{digest}")
}
