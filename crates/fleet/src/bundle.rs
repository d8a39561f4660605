//! A bundle: one record of one governor, with everything that a stranger needs to verify it offline.
//!
//! [`Bundle::verify`] follows the chain from the organisation's checkpoint to the record. It proves that a governor that
//! an operator invited recorded the decision before the anchor was cosigned, and that the organisation cannot show
//! anybody a history without it. It does not prove that the agent's process told its governor the truth.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rulekeep::checkpoint::{self, Checkpoint, CheckpointError, InclusionProof, VerifierKey};
use rulekeep::proof::{Digest, ProofId};
use rulekeep::system::Timestamp;
use rulekeep::{Decision, ProofRecord};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cosignature::{CosignatureError, Cosigned, WitnessKey, cosigned_by};
use crate::enrolment::Enrol;
use crate::log::{self, Head, Leaf};

/// A record with the proofs that lead from it to the organisation's checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(clippy::exhaustive_structs)] // the format
pub struct Bundle {
    /// The record as JSON, without its outcome, which is not part of its hash.
    pub record: Value,
    /// The `tlog-proof` of the record in the governor's anchored checkpoint.
    pub proof: String,
    /// The verifier key of the governor's checkpoints.
    pub governor_key: String,
    /// The [`Leaf::Anchor`] with the checkpoint of `proof`.
    pub anchor: IncludedLeaf,
    /// The [`Leaf::Enrol`] that binds `governor_key` to the governor's name.
    pub enrol: IncludedLeaf,
    /// The organisation's checkpoint with cosignatures.
    pub checkpoint: String,
}

/// A leaf of the organisation's log with its inclusion proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::exhaustive_structs)] // the format
pub struct IncludedLeaf {
    /// Position of the leaf in the log.
    pub index: u64,
    /// The text of the leaf.
    pub leaf: String,
    /// The inclusion proof, each hash in base 64.
    pub path: Vec<String>,
}

/// The content of a verified bundle. `Display` writes it as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// The governor that decided.
    pub governor: String,
    /// The ID of the record.
    pub record: ProofId,
    /// The decision.
    pub decision: Decision,
    /// The time at which a hub received the governor's checkpoint.
    pub anchored_at: Timestamp,
    /// The organisation's checkpoint that everything was verified against.
    pub checkpoint: Checkpoint,
    /// The witnesses that have cosigned that checkpoint.
    pub cosigned: Vec<Cosigned>,
}

/// The reason a bundle is rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BundleError {
    /// The text is not a bundle.
    #[error("bundle: {0}")]
    Json(#[from] serde_json::Error),
    /// The bundle is written in another form than that of a hub.
    #[error("the bundle: expected objects as a hub writes them")]
    Spelling,
    /// The record has fields or spellings that its hash does not cover, such as an outcome.
    #[error("the record has content that its hash does not cover: expected it as it was hashed, without the outcome")]
    Record,
    /// The organisation's checkpoint is invalid.
    #[error("the organisation's checkpoint: {0}")]
    Organisation(#[source] CheckpointError),
    /// The organisation's checkpoint lacks cosignatures, or one is forged.
    #[error("the organisation's checkpoint: {0}")]
    Witnesses(#[from] CosignatureError),
    /// A leaf is not in the organisation's log.
    #[error("the {leaf} leaf is not shown to be entry {index} of the organisation's log")]
    NotIncluded {
        /// Kind of the leaf.
        leaf: &'static str,
        /// The position in the bundle.
        index: u64,
    },
    /// A leaf does not say what the bundle needs it to say.
    #[error("the {leaf} leaf: expected {expected}")]
    Leaf {
        /// Kind of the leaf.
        leaf: &'static str,
        /// Description of what was expected.
        expected: &'static str,
    },
    /// The governor's key or checkpoint is invalid, or the record is not in its log.
    #[error("the governor's log: {0}")]
    Governor(#[source] CheckpointError),
}

impl IncludedLeaf {
    /// Creates it from the text of a leaf and its inclusion proof.
    pub fn new(index: u64, leaf: impl Into<String>, path: &[Digest]) -> Self {
        let path = path.iter().map(|hash| STANDARD.encode(hash.as_bytes())).collect();
        Self { index, leaf: leaf.into(), path }
    }

    /// Verifies the proof, and returns the leaf.
    fn open(&self, kind: &'static str, head: &Head) -> Result<Leaf, BundleError> {
        let path = log::read_path(self.path.iter().map(String::as_str));
        path.and_then(|path| log::verify_inclusion(self.leaf.as_bytes(), self.index, head, &path).ok())
            .ok_or(BundleError::NotIncluded { leaf: kind, index: self.index })?;
        // A leaf has one spelling, so that every verifier reads the same in it.
        Leaf::parse(&self.leaf)
            .ok()
            .filter(|leaf| leaf.to_bytes().is_ok_and(|bytes| bytes == self.leaf.as_bytes()))
            .ok_or(BundleError::Leaf { leaf: kind, expected: "a leaf of a known kind, as hubs write it" })
    }
}

impl Bundle {
    /// Parses the JSON text of a bundle. Nothing in it is verified yet.
    ///
    /// # Errors
    ///
    /// [`BundleError::Json`].
    pub fn parse(text: &str) -> Result<Self, BundleError> {
        #[derive(Deserialize)]
        struct Strict {
            #[serde(rename = "record")]
            _record: ProofRecord,
        }
        // A `Value` takes the last of two fields of one name; a record has each once.
        serde_json::from_str::<Strict>(text)?;
        let value: Value = serde_json::from_str(text)?;
        let bundle: Self = serde_json::from_str(text)?;
        // A list in place of an object reads the same.
        if serde_json::to_value(&bundle)? == value { Ok(bundle) } else { Err(BundleError::Spelling) }
    }

    /// Verifies the bundle with the organisation's key, the keys of its operators when the governor enrolled, and those
    /// of its witnesses, of which at least `needed` must have cosigned.
    ///
    /// # Errors
    ///
    /// [`BundleError`] with the first link that does not hold.
    pub fn verify(
        &self,
        organisation: &VerifierKey,
        operators: &[VerifierKey],
        witnesses: &[WitnessKey],
        needed: usize,
    ) -> Result<Verified, BundleError> {
        let checkpoint = Checkpoint::open(&self.checkpoint, organisation).map_err(BundleError::Organisation)?;
        let cosigned = cosigned_by(&self.checkpoint, witnesses, needed)?;
        let head = Head::from(&checkpoint);

        let Leaf::Anchor { governor, note, at: anchored_at } = self.anchor.open("anchor", &head)? else {
            return Err(BundleError::Leaf { leaf: "anchor", expected: "a leaf of the kind anchor" });
        };
        let wrong = |expected| BundleError::Leaf { leaf: "enrol", expected };
        let Leaf::Enrol { governor: enrolled, key, groups, proof, .. } = self.enrol.open("enrol", &head)? else {
            return Err(wrong("a leaf of the kind enrol"));
        };
        let proof = proof.ok_or(wrong("the signatures of the enrolment, which early logs lack"))?;
        let verified = Enrol { key, groups, proof }.verify(checkpoint.origin(), operators);
        let (key, _) = verified.map_err(wrong)?;
        let is_bound = enrolled == governor && key.name() == governor && key.to_string() == self.governor_key;
        if !is_bound || self.enrol.index >= self.anchor.index {
            return Err(wrong("the enrolment of the anchor's governor with the bundle's key, before the anchor"));
        }

        let proof: InclusionProof = self.proof.parse().map_err(BundleError::Governor)?;
        if proof.checkpoint != note || proof.to_string() != self.proof {
            return Err(BundleError::Leaf { leaf: "anchor", expected: "the checkpoint of the record's proof" });
        }
        let record: ProofRecord = serde_json::from_value(self.record.clone())?;
        if record.outcome.is_some() || serde_json::to_value(&record)? != self.record {
            return Err(BundleError::Record);
        }
        checkpoint::verify_inclusion(&record, &self.proof, &key).map_err(BundleError::Governor)?;
        let (record, decision) = (record.id, record.decision);
        Ok(Verified { governor, record, decision, anchored_at, checkpoint, cosigned })
    }
}

impl fmt::Display for Verified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { governor, record, decision, anchored_at, checkpoint, cosigned } = self;
        let (origin, size) = (checkpoint.origin(), checkpoint.size());
        write!(f, "{record}: {decision} by {governor}, anchored at {anchored_at}, one of {size} entries of {origin}")?;
        let names: Vec<_> = cosigned.iter().map(|cosigned| cosigned.witness.as_str()).collect();
        if names.is_empty() { Ok(()) } else { write!(f, ", cosigned by {}", names.join(", ")) }
    }
}
