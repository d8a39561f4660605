//! A record's canonical form: the bytes that are hashed and stored.
//!
//! The journal keeps a record as its 32-byte hash and its canonical JSON
//! (RFC 8785) without `hash` and `outcome`. The fields stand in the order that
//! RFC 8785 asks for, every number is a small integer, and `serde_json` escapes
//! strings as the RFC does, so that plain serialising is canonical; a test
//! holds this against another implementation.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::model::{
    AgentId, Decision, Digest, IntentId, Outcome, ProofId, ProofRecord, RiskLevel, Score, Tier, Timestamp,
};

/// A record without its hash and outcome, the fields in canonical order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CanonicalRecord<'a> {
    pub(super) decision: Decision,
    pub(super) entity_id: AgentId,
    pub(super) evidence_hash: Digest,
    pub(super) id: ProofId,
    pub(super) intent_id: IntentId,
    pub(super) previous_hash: Digest,
    #[serde(borrow)]
    pub(super) reasoning: Cow<'a, str>,
    pub(super) risk_level: RiskLevel,
    pub(super) timestamp: Timestamp,
    pub(super) trust_score: Score,
    pub(super) trust_tier: Tier,
}

impl CanonicalRecord<'_> {
    /// Writes the body of a decision's entry into `out`, and returns the hash.
    pub(super) fn encode(&self, out: &mut Vec<u8>) -> serde_json::Result<Digest> {
        out.clear();
        out.extend_from_slice(&[0; HASH_BYTES]);
        serde_json::to_writer(&mut *out, self)?;
        let (place, json) = out.split_at_mut(HASH_BYTES);
        let hash = Sha256::digest(json);
        place.copy_from_slice(&hash);
        Ok(Digest::new(hash.into()))
    }
}

/// A decision's body taken apart, nothing checked yet.
pub(super) struct StoredRecord<'a> {
    pub(super) hash: Digest,
    json: &'a [u8],
}

impl<'a> StoredRecord<'a> {
    /// Splits a body; `None` when it is too short to be one.
    pub(super) fn split(body: &'a [u8]) -> Option<Self> {
        let (hash, json) = body.split_first_chunk::<HASH_BYTES>()?;
        Some(Self { hash: Digest::new(*hash), json })
    }

    /// The hash that the stored bytes have.
    pub(super) fn computed_hash(&self) -> Digest {
        Digest::new(Sha256::digest(self.json).into())
    }

    /// The fields.
    pub(super) fn fields(&self) -> serde_json::Result<CanonicalRecord<'a>> {
        serde_json::from_slice(self.json)
    }

    /// The record as the contract shows it.
    pub(super) fn record(&self, outcome: Option<Outcome>) -> serde_json::Result<ProofRecord> {
        let fields = self.fields()?;
        Ok(ProofRecord {
            id: fields.id,
            entity_id: fields.entity_id,
            intent_id: fields.intent_id,
            decision: fields.decision,
            reasoning: fields.reasoning.into_owned(),
            trust_score: fields.trust_score,
            trust_tier: fields.trust_tier,
            risk_level: fields.risk_level,
            outcome,
            timestamp: fields.timestamp,
            hash: self.hash,
            previous_hash: fields.previous_hash,
            evidence_hash: fields.evidence_hash,
        })
    }
}

const HASH_BYTES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Sequence;
    use proptest::prelude::*;

    fn record(entity: &str, reasoning: &str) -> CanonicalRecord<'static> {
        let at = Timestamp::from_millis(1_800_000_000_000);
        CanonicalRecord {
            decision: Decision::Escalate,
            entity_id: entity.parse().unwrap(),
            evidence_hash: Digest::new([7; 32]),
            id: ProofId::new(at, 1, Sequence::new(2)),
            intent_id: IntentId::new(at, 3),
            previous_hash: Digest::ZERO,
            reasoning: Cow::Owned(reasoning.to_owned()),
            risk_level: RiskLevel::High,
            timestamp: at,
            trust_score: Score::MAX,
            trust_tier: Tier::T5,
        }
    }

    proptest! {
        #[test]
        fn the_stored_form_is_rfc_8785_by_another_hand(entity in "[^\\p{C}]{1,40}", reasoning in "\\PC*|[\\x00-\\x1f\"\\\\/é€😀]*") {
            prop_assume!(entity.parse::<AgentId>().is_ok());
            let mut body = Vec::new();
            let hash = record(&entity, &reasoning).encode(&mut body).unwrap();
            let stored = StoredRecord::split(&body).unwrap();
            prop_assert_eq!(stored.computed_hash(), hash);

            let mut value = serde_json::to_value(stored.record(Some(Outcome::Success)).unwrap()).unwrap();
            let fields = value.as_object_mut().unwrap();
            fields.remove("hash");
            fields.remove("outcome");
            prop_assert_eq!(serde_json_canonicalizer::to_vec(&value).unwrap(), stored.json);
        }
    }
}
