//! What stands in the lines of an export. Each line has one spelling: that of
//! these types, written without blanks.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::model::{
    AgentId, Decision, Digest, IntentId, Outcome, ProofId, RiskLevel, Score, Sequence, Tier, Timestamp,
};
use crate::proof::evidence;
use crate::proof::record::CanonicalRecord;
use crate::store::Kind;

/// The form of export that this library writes and reads.
pub(super) const FORMAT: u32 = 1;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(in crate::proof) struct Start {
    pub(in crate::proof) manifest: Begins,
    pub(in crate::proof) format: u32,
    pub(in crate::proof) store: String,
    /// Only the records of this agent: the chain has gaps then.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(in crate::proof) agent_id: Option<AgentId>,
    /// No entry before this place is in the export.
    pub(in crate::proof) first: Sequence,
    /// The hash of the record before the first one; `null` where the chain has gaps.
    pub(in crate::proof) previous_hash: Option<Digest>,
    /// Whether records have their evidence beside them.
    pub(in crate::proof) evidence: bool,
    /// Whether the entries that are no decisions are there too.
    pub(in crate::proof) entries: bool,
    /// The version of the library that wrote it.
    pub(in crate::proof) made_by: String,
}

/// What the first line says that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::proof) enum Begins {
    #[serde(rename = "start")]
    Start,
}

/// The last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct End {
    pub(super) manifest: Ends,
    pub(super) records: u64,
    pub(super) entries: u64,
    /// The hash of the last record.
    pub(super) head_hash: Digest,
    /// Over all lines before this one, with the newline of each.
    pub(super) sha256: Digest,
}

/// What the last line says that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Ends {
    #[serde(rename = "end")]
    End,
}

/// A decision.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::proof) struct RecordLine<'a> {
    #[serde(borrow)]
    pub(super) record: Record<'a>,
    /// `null` where it is left out or erased.
    #[serde(borrow)]
    pub(super) evidence: Option<Evidence<'a>>,
    /// `null` where none was reported by then.
    pub(super) outcome: Option<Outcome>,
}

impl<'a> RecordLine<'a> {
    pub(in crate::proof) fn new(
        record: CanonicalRecord<'a>,
        hash: Digest,
        evidence: Option<Evidence<'a>>,
        outcome: Option<Outcome>,
    ) -> Self {
        Self { record: Record::new(record, hash), evidence, outcome }
    }
}

/// A record with its hash, without the outcome: what is hashed, and the hash.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Record<'a> {
    pub(super) id: ProofId,
    pub(super) entity_id: AgentId,
    pub(super) intent_id: IntentId,
    pub(super) decision: Decision,
    #[serde(borrow)]
    pub(super) reasoning: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) resolves: Option<ProofId>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(super) retry_of: Option<ProofId>,
    pub(super) trust_score: Score,
    pub(super) trust_tier: Tier,
    pub(super) risk_level: RiskLevel,
    pub(super) timestamp: Timestamp,
    pub(super) hash: Digest,
    pub(super) previous_hash: Digest,
    pub(super) evidence_hash: Digest,
}

impl<'a> Record<'a> {
    fn new(record: CanonicalRecord<'a>, hash: Digest) -> Self {
        Self {
            id: record.id,
            entity_id: record.entity_id,
            intent_id: record.intent_id,
            decision: record.decision,
            reasoning: record.reasoning,
            resolves: record.resolves,
            retry_of: record.retry_of,
            trust_score: record.trust_score,
            trust_tier: record.trust_tier,
            risk_level: record.risk_level,
            timestamp: record.timestamp,
            hash,
            previous_hash: record.previous_hash,
            evidence_hash: record.evidence_hash,
        }
    }

    /// What is hashed.
    pub(super) fn canonical(&self) -> CanonicalRecord<'_> {
        CanonicalRecord {
            decision: self.decision,
            entity_id: self.entity_id.clone(),
            evidence_hash: self.evidence_hash,
            id: self.id,
            intent_id: self.intent_id,
            previous_hash: self.previous_hash,
            reasoning: Cow::Borrowed(&self.reasoning),
            resolves: self.resolves,
            retry_of: self.retry_of,
            risk_level: self.risk_level,
            timestamp: self.timestamp,
            trust_score: self.trust_score,
            trust_tier: self.trust_tier,
        }
    }
}

/// The evidence beside a record, its parts as texts: as JSON values, numbers
/// beyond 2^53 would not come through every reader as they were stored.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::proof) struct Evidence<'a> {
    /// In hex.
    #[serde(borrow)]
    salt: Cow<'a, str>,
    #[serde(borrow)]
    parts: Vec<Cow<'a, str>>,
}

impl<'a> Evidence<'a> {
    /// Takes stored evidence apart; `None` where the bytes are none.
    pub(in crate::proof) fn of(stored: &'a [u8]) -> Option<Self> {
        let (salt, mut rest) = evidence::split_salt(stored)?;
        let mut parts = Vec::with_capacity(3);
        while !rest.is_empty() {
            let (part, behind) = evidence::split_part(rest)?;
            parts.push(Cow::Borrowed(std::str::from_utf8(part).ok()?));
            rest = behind;
        }
        Some(Self { salt: Cow::Owned(hex::encode(salt)), parts })
    }

    /// Puts the stored bytes together again; `None` where that cannot be done.
    pub(super) fn stored(&self, bytes: &mut Vec<u8>) -> Option<()> {
        bytes.clear();
        bytes.extend_from_slice(&hex::decode(self.salt.as_bytes()).ok()?);
        for part in &self.parts {
            bytes.extend_from_slice(&u32::try_from(part.len()).ok()?.to_le_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        Some(())
    }
}

/// An entry that is no decision.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::proof) struct EntryLine<'a> {
    #[serde(borrow)]
    pub(super) entry: Entry<'a>,
}

impl<'a> EntryLine<'a> {
    pub(in crate::proof) fn new(sequence: Sequence, kind: Kind, body: &'a str) -> Self {
        Self { entry: Entry { sequence, kind, body: Cow::Borrowed(body) } }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry<'a> {
    pub(super) sequence: Sequence,
    pub(super) kind: Kind,
    /// The exact bytes that are stored.
    #[serde(borrow)]
    pub(super) body: Cow<'a, str>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn evidence_comes_together_again_as_it_was_stored(
            salt in any::<[u8; 16]>(),
            parts in proptest::collection::vec("\\PC*|[\\x00-\\x1f\"\\\\/é€😀]*", 0..4),
        ) {
            let mut stored = salt.to_vec();
            for part in &parts {
                stored.extend_from_slice(&u32::try_from(part.len()).unwrap().to_le_bytes());
                stored.extend_from_slice(part.as_bytes());
            }
            let text = serde_json::to_string(&Evidence::of(&stored).unwrap()).unwrap();
            let mut again = Vec::new();
            serde_json::from_str::<Evidence<'_>>(&text).unwrap().stored(&mut again).unwrap();
            prop_assert_eq!(again, stored);
        }
    }
}
