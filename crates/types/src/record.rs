//! Proof records, pages of them, statistics over them and verification results.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{RangeFrom, RangeFull, RangeInclusive, RangeToInclusive};
use std::str::FromStr;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use super::{
    AgentId, Checked, Decision, IntentId, InvalidValue, Outcome, ProofCursor, ProofId, RiskLevel, Score, Sequence,
    Tier, Timestamp,
};

/// A SHA-256 digest, written `sha256:<64 hex digits>`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// 64 zeros: the predecessor hash of the first record of a chain.
    pub const ZERO: Self = Self([0; 32]);

    /// Creates a digest from its bytes.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The digest of some parts, one after the other.
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// The digest of 64 lower-case hex digits.
    pub fn read_hex(digits: &[u8; 64]) -> Option<Self> {
        // Neither a table nor a branch for a digit, so that the compiler works on sixteen at once. A digit is right if its
        // value is below 16 and is spelled as that digit.
        let (mut values, mut wrong) = ([0; 64], 0);
        for (value, digit) in values.iter_mut().zip(digits) {
            *value = (digit & 15) + if *digit >= b'@' { 9 } else { 0 };
            wrong |= (spelled(*value) ^ digit) | (*value & 16);
        }
        let (pairs, _) = values.as_chunks::<2>();
        let mut bytes = [0; 32];
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = high << 4 | low;
        }
        (wrong == 0).then_some(Self(bytes))
    }

    /// The 32 bytes of the digest.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The digest as text.
    pub fn written(&self) -> [u8; 71] {
        let mut spelling = [0; 64];
        let (pairs, _) = spelling.as_chunks_mut::<2>();
        for (pair, byte) in pairs.iter_mut().zip(self.0) {
            *pair = [spelled(byte >> 4), spelled(byte & 15)];
        }
        let mut text = [0; 71];
        let (prefix, digits) = text.split_at_mut(b"sha256:".len());
        prefix.copy_from_slice(b"sha256:");
        digits.copy_from_slice(&spelling);
        text
    }
}

/// The lower-case hex digit of a value below 16.
const fn spelled(value: u8) -> u8 {
    value.wrapping_add(b'0').wrapping_add(if value > 9 { b'a' - b'9' - 1 } else { 0 })
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(std::str::from_utf8(&self.written()).map_err(|_| fmt::Error)?)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        text.strip_prefix("sha256:")
            .and_then(|digits| Self::read_hex(digits.as_bytes().try_into().ok()?))
            .ok_or_else(|| InvalidValue::new("digest", text, "sha256: and 64 lower-case hex digits"))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Bypasses `Display`, because its formatter costs several times as much.
        serializer.serialize_str(std::str::from_utf8(&self.written()).map_err(serde::ser::Error::custom)?)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

crate::parts::outward! {
    /// The record of one decision, hash-linked to the record before it.
    ///
    /// `hash` is SHA-256 over the record's canonical JSON (RFC 8785) without `hash` and `outcome`. The outcome is reported
    /// later and joined when a record is read.
    ///
    /// ```
    /// use rulekeep::{Agent, Decision, Governor, Intent, ProofQuery, RiskLevel, Tier};
    ///
    /// let governor = Governor::builder().open_in_memory()?;
    /// governor.agents().register(Agent::new("support-1").at_tier(Tier::T4))?;
    /// let intent = Intent::new("support-1", "read_document", RiskLevel::Low, ["document:read"])?;
    /// let first = governor.enforce(&intent)?;
    /// governor.enforce(&intent)?;
    ///
    /// let records = governor.query(&ProofQuery::entity("support-1"))?.items;
    /// let [b, a] = records.as_slice() else { panic!("two decisions leave two records, newest first") };
    /// assert_eq!((a.id, a.decision), (first.proof_id, Decision::Allow));
    /// assert_eq!(b.previous_hash, a.hash);
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    #[derive(Deserialize)]
    pub struct ProofRecord from ProofRecordParts {
        /// The identifier of this proof record.
        pub id: ProofId,
        /// The agent that triggered the decision.
        pub entity_id: AgentId,
        /// The intent that was evaluated.
        pub intent_id: IntentId,
        /// The decision on the intent.
        pub decision: Decision,
        /// A human-readable explanation of the decision.
        pub reasoning: String,
        /// The escalation that this record resolves, given by the record that opened it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub resolves: Option<ProofId>,
        /// The earlier decision that this one retries, from the context key `retryOf`.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub retry_of: Option<ProofId>,
        /// The agent's trust score at decision time.
        pub trust_score: Score,
        /// The agent's trust tier at decision time.
        pub trust_tier: Tier,
        /// The effective risk: the higher of the intent's risk level and its risk floor.
        pub risk_level: RiskLevel,
        /// The outcome of the action, once reported.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub outcome: Option<Outcome>,
        /// The time of the decision; never earlier than the record before.
        pub timestamp: Timestamp,
        /// SHA-256 hash of this record.
        pub hash: Digest,
        /// The hash of the record before; [`Digest::ZERO`] for the first record.
        pub previous_hash: Digest,
        /// A salted digest of the evidence that is stored beside the record.
        pub evidence_hash: Digest,
    }
}

/// One page of a query's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProofPage {
    /// The records of this page.
    pub items: Vec<ProofRecord>,
    /// Number of matching records over all pages.
    pub total: u64,
    /// The page number, counted from 1.
    pub page: u64,
    /// Maximum number of records per page.
    pub page_size: u64,
    /// True if later pages have more records.
    pub has_more: bool,
    /// The cursor of the next page, if there is one and the query asked for a cursor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<ProofCursor>,
}

impl ProofPage {
    /// Creates a page of a result of `total` records.
    pub fn new(items: Vec<ProofRecord>, total: u64, page: u64, page_size: u64) -> Self {
        Self { items, total, page, page_size, has_more: page.saturating_mul(page_size) < total, next_cursor: None }
    }
}

/// A time range that includes both ends; an absent end is open.
///
/// Converts from the ranges `..`, `from..`, `..=to` and `from..=to` of chrono's UTC times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Period {
    /// The start of the range.
    #[cfg_attr(feature = "schema", schema(required))]
    pub from: Option<Timestamp>,
    /// The end of the range.
    #[cfg_attr(feature = "schema", schema(required))]
    pub to: Option<Timestamp>,
}

impl Period {
    /// Creates a range from its two ends.
    pub const fn new(from: Option<Timestamp>, to: Option<Timestamp>) -> Self {
        Self { from, to }
    }
}

impl From<RangeFull> for Period {
    fn from(_: RangeFull) -> Self {
        Self::default()
    }
}

impl From<RangeFrom<DateTime<Utc>>> for Period {
    fn from(range: RangeFrom<DateTime<Utc>>) -> Self {
        Self::new(Some(range.start.into()), None)
    }
}

impl From<RangeToInclusive<DateTime<Utc>>> for Period {
    fn from(range: RangeToInclusive<DateTime<Utc>>) -> Self {
        Self::new(None, Some(range.end.into()))
    }
}

impl From<RangeInclusive<DateTime<Utc>>> for Period {
    fn from(range: RangeInclusive<DateTime<Utc>>) -> Self {
        let (from, to) = range.into_inner();
        Self::new(Some(from.into()), Some(to.into()))
    }
}

/// Aggregate statistics over an agent's proof records.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ProofStats {
    /// The agent that the statistics are about.
    pub entity_id: AgentId,
    /// Number of records in the period.
    pub total_records: u64,
    /// `SUCCESS` outcomes divided by reported outcomes, from 0 to 1; 0 when none is reported.
    pub success_rate: f64,
    /// Mean of the trust scores at decision time; 0 when there is no record.
    pub average_trust_score: f64,
    /// True if every check of the whole hash chain has held so far.
    pub chain_integrity: bool,
    /// Number of records per decision; every decision is present.
    pub decision_breakdown: BTreeMap<Decision, u64>,
    /// Number of records per risk level; every level is present.
    pub risk_breakdown: BTreeMap<RiskLevel, u64>,
    /// The requested time range. An open end becomes the time of the first or last record, or `null` when there is no
    /// record.
    pub period: Period,
}

impl ProofStats {
    /// Creates statistics from their parts.
    #[allow(clippy::too_many_arguments)] // one for each field of the contract
    pub fn new(
        entity_id: AgentId,
        total_records: u64,
        success_rate: f64,
        average_trust_score: f64,
        chain_integrity: bool,
        decision_breakdown: BTreeMap<Decision, u64>,
        risk_breakdown: BTreeMap<RiskLevel, u64>,
        period: Period,
    ) -> Self {
        Self {
            entity_id,
            total_records,
            success_rate,
            average_trust_score,
            chain_integrity,
            decision_breakdown,
            risk_breakdown,
            period,
        }
    }
}

/// The result of verifying the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Verification {
    /// True if no break was found.
    pub valid: bool,
    /// Number of proof records verified, up to the first break.
    pub records: u64,
    /// The hash of the last verified record.
    pub head_hash: Digest,
    /// The first break, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_broken: Option<Breakage>,
    /// Number of records whose erased evidence reappeared in a file; it has been erased again.
    #[serde(skip_serializing_if = "is_none_found")]
    pub erased_evidence_found: u64,
    /// The first difference of the index from the journal, if there was one: queries may have left out or changed records.
    /// The index has been rebuilt, or will be when the store is opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index_differed: Option<String>,
    /// The range and parts that were verified.
    #[serde(skip)]
    pub checked: Checked,
}

impl Verification {
    /// Creates a result, which is valid if `first_broken` is `None`.
    pub fn new(records: u64, head_hash: Digest, first_broken: Option<Breakage>) -> Self {
        let valid = first_broken.is_none();
        Self {
            valid,
            records,
            head_hash,
            first_broken,
            erased_evidence_found: 0,
            index_differed: None,
            checked: Checked::default(),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_none_found(records: &u64) -> bool {
    *records == 0
}

super::closed_words! {
    /// The kind of a break in the log.
    pub enum BrokenKind("kind of break") {
        /// Bytes differ from those written, apparently by accident.
        Damage = "damage",
        /// A well-formed entry contradicts the hashes around it.
        Tampering = "tampering",
        /// Entries that existed are missing.
        Missing = "missing",
    }
}

crate::parts::outward! {
    /// The place and kind of a break in the log.
    #[derive(Eq, Deserialize)]
    pub struct Breakage from BreakageParts {
        /// The position of the entry in the journal.
        pub sequence: Sequence,
        /// The id of the proof record, if the entry is one and can still be read.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        pub proof_id: Option<ProofId>,
        /// The name of the file in the store.
        pub file: String,
        /// The byte offset in that file at which the entry starts.
        pub offset: u64,
        /// The kind of break.
        pub kind: BrokenKind,
        /// The content expected at that position.
        pub expected: String,
        /// The content found at that position.
        pub found: String,
    }
}

impl fmt::Display for Breakage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at entry {} ({}, byte {}): expected {}, found {}",
            self.kind, self.sequence, self.file, self.offset, self.expected, self.found
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn a_digest_is_read_as_the_hex_crate_reads_it(bytes in proptest::prelude::any::<[u8; 32]>(), at in 0_usize..64, byte in 0_u8..128) {
            let digest = Digest::new(bytes);
            proptest::prop_assert_eq!(digest.to_string().parse::<Digest>().ok(), Some(digest));
            let mut digits = hex::encode(bytes).into_bytes();
            digits[at] = byte;
            let digits = String::from_utf8(digits).unwrap();
            let by_crate = hex::decode(&digits).ok().filter(|bytes| hex::encode(bytes) == digits);
            let by_hand = format!("sha256:{digits}").parse::<Digest>().ok().map(|digest| digest.as_bytes().to_vec());
            proptest::prop_assert_eq!(by_hand, by_crate);
        }
    }
}
