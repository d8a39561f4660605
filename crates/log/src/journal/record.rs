//! The canonical form of a record: the bytes that are hashed and stored.
//!
//! The journal stores a record as canonical JSON (RFC 8785) without `hash` and `outcome`; the hash is always computed
//! from these bytes. The fields are in the order RFC 8785 requires, every number is a small integer, and `serde_json`
//! escapes strings as the RFC does, so that plain serialization is canonical. A test checks this, and the
//! hand-written encoder, against another implementation.

use rulekeep_types::parts::ProofRecordParts;
use std::borrow::Cow;

use super::fields;
use rulekeep_types::json::push_text;
use rulekeep_types::{
    AgentId, Decision, Digest, IntentId, Outcome, ProofId, ProofRecord, RiskLevel, Score, Tier, Timestamp,
};
use serde::{Deserialize, Serialize};

/// A record without its hash and outcome, with the fields in canonical order.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct CanonicalRecord<'a> {
    pub(crate) decision: Decision,
    pub(crate) entity_id: AgentId,
    pub(crate) evidence_hash: Digest,
    pub(crate) id: ProofId,
    pub(crate) intent_id: IntentId,
    pub(crate) previous_hash: Digest,
    #[serde(borrow)]
    pub(crate) reasoning: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) resolves: Option<ProofId>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) retry_of: Option<ProofId>,
    pub(crate) risk_level: RiskLevel,
    pub(crate) timestamp: Timestamp,
    pub(crate) trust_score: Score,
    pub(crate) trust_tier: Tier,
}

impl CanonicalRecord<'_> {
    /// Writes the body of a decision's entry.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        // Written by hand for speed, because it runs for every decision: most fields need no escaping.
        put(out, b"{\"decision\":\"", self.decision.as_str().as_bytes());
        out.extend_from_slice(b"\",\"entityId\":");
        push_text(out, self.entity_id.as_str())?;
        put(out, b",\"evidenceHash\":\"", &self.evidence_hash.written());
        put(out, b"\",\"id\":\"", &self.id.written());
        put(out, b"\",\"intentId\":\"", &self.intent_id.written());
        put(out, b"\",\"previousHash\":\"", &self.previous_hash.written());
        out.extend_from_slice(b"\",\"reasoning\":");
        push_text(out, &self.reasoning)?;
        if let Some(resolved) = &self.resolves {
            put(out, b",\"resolves\":\"", &resolved.written());
            out.push(b'"');
        }
        if let Some(earlier) = &self.retry_of {
            put(out, b",\"retryOf\":\"", &earlier.written());
            out.push(b'"');
        }
        put(out, b",\"riskLevel\":\"", self.risk_level.as_str().as_bytes());
        put(out, b"\",\"timestamp\":\"", &self.timestamp.written());
        out.extend_from_slice(b"\",\"trustScore\":");
        serde_json::to_writer(&mut *out, &self.trust_score)?;
        out.extend_from_slice(b",\"trustTier\":\"");
        out.extend_from_slice(self.trust_tier.as_str().as_bytes());
        out.extend_from_slice(b"\"}");
        Ok(())
    }

    /// Reads the body of a decision's entry, without verifying anything.
    pub(crate) fn read(body: &[u8]) -> serde_json::Result<CanonicalRecord<'_>> {
        fields::read(body, |_| None, true).map_or_else(|| serde_json::from_slice(body), Ok)
    }

    /// Like [`CanonicalRecord::read`], but without the reasoning. `known` may supply the entity's ID without parsing
    /// it.
    pub(crate) fn read_facts(
        body: &[u8],
        known: impl FnOnce(&str) -> Option<AgentId>,
    ) -> serde_json::Result<CanonicalRecord<'_>> {
        fields::read(body, known, false).map_or_else(|| serde_json::from_slice(body), Ok)
    }

    /// Returns the hashed part of a record.
    pub(crate) fn of(record: &ProofRecord) -> CanonicalRecord<'_> {
        CanonicalRecord {
            decision: record.decision,
            entity_id: record.entity_id.clone(),
            evidence_hash: record.evidence_hash,
            id: record.id,
            intent_id: record.intent_id,
            previous_hash: record.previous_hash,
            reasoning: Cow::Borrowed(&record.reasoning),
            resolves: record.resolves,
            retry_of: record.retry_of,
            risk_level: record.risk_level,
            timestamp: record.timestamp,
            trust_score: record.trust_score,
            trust_tier: record.trust_tier,
        }
    }

    /// Returns the complete record; `hash` is the hash of its stored bytes.
    pub(crate) fn into_record(self, hash: Digest, outcome: Option<Outcome>) -> ProofRecord {
        let fields = self;
        ProofRecord::from(ProofRecordParts {
            id: fields.id,
            entity_id: fields.entity_id,
            intent_id: fields.intent_id,
            decision: fields.decision,
            reasoning: fields.reasoning.into_owned(),
            resolves: fields.resolves,
            retry_of: fields.retry_of,
            trust_score: fields.trust_score,
            trust_tier: fields.trust_tier,
            risk_level: fields.risk_level,
            outcome,
            timestamp: fields.timestamp,
            hash,
            previous_hash: fields.previous_hash,
            evidence_hash: fields.evidence_hash,
        })
    }
}

fn put(out: &mut Vec<u8>, before: &[u8], text: &[u8]) {
    out.extend_from_slice(before);
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rulekeep_types::Sequence;

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
            resolves: None,
            retry_of: None,
            risk_level: RiskLevel::High,
            timestamp: at,
            trust_score: Score::MAX,
            trust_tier: Tier::T5,
        }
    }

    proptest! {
        #[test]
        fn the_stored_form_is_rfc_8785_by_another_hand(entity in "[^\\p{C}]{1,40}", reasoning in "\\PC*|[\\x00-\\x1f\"\\\\/é€😀]*", linked in any::<[bool; 2]>()) {
            prop_assume!(entity.parse::<AgentId>().is_ok());
            let mut body = Vec::new();
            let mut record = record(&entity, &reasoning);
            let linked = linked.map(|is_linked| is_linked.then(|| ProofId::new(record.timestamp, 9, Sequence::new(1))));
            [record.resolves, record.retry_of] = linked;
            record.write(&mut body).unwrap();
            prop_assert_eq!(&body, &serde_json::to_vec(&record).unwrap());
            let stored = CanonicalRecord::read(&body).unwrap().into_record(Digest::ZERO, Some(Outcome::Success));

            let mut value = serde_json::to_value(stored).unwrap();
            let fields = value.as_object_mut().unwrap();
            fields.remove("hash");
            fields.remove("outcome");
            prop_assert_eq!(serde_json_canonicalizer::to_vec(&value).unwrap(), body);
        }
    }
}
