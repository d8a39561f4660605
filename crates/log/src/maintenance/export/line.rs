//! The lines of an export. Each line has exactly one encoding: these types, serialized without blanks.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::journal::evidence;
use crate::store::Kind;
use rulekeep_types::{AgentId, Digest, Outcome, ProofRecord, Sequence};

/// The format of export that this library writes and reads.
pub(crate) const FORMAT: u32 = 1;

/// The first line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Start {
    pub(crate) manifest: Begins,
    pub(crate) format: u32,
    pub(crate) store: String,
    /// The only agent whose records are included; the chain has gaps then.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) agent_id: Option<AgentId>,
    /// The lowest sequence in the export.
    pub(crate) first: Sequence,
    /// The hash of the record before the first one; `null` if the chain has gaps.
    pub(crate) previous_hash: Option<Digest>,
    /// Records include their evidence.
    pub(crate) evidence: bool,
    /// Entries that are not decisions are included.
    pub entries: bool,
    /// The version of the library that wrote the export.
    pub(crate) made_by: String,
}

/// The marker of the first line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Begins {
    #[serde(rename = "start")]
    Start,
}

/// The last line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct End {
    pub(crate) manifest: Ends,
    pub(crate) records: u64,
    pub(crate) entries: u64,
    /// The hash of the last record.
    pub(crate) head_hash: Digest,
    /// The root of the tree over all entries. Absent from an export that lacks some, and from older exports.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) root: Option<Digest>,
    /// SHA-256 over all lines before this one, including their newlines.
    pub(crate) sha256: Digest,
}

/// The marker of the last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Ends {
    #[serde(rename = "end")]
    End,
}

/// A decision.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordLine<'a> {
    /// The record without its outcome, which is not hashed.
    pub(crate) record: ProofRecord,
    /// The evidence; `null` if it is left out or erased.
    #[serde(borrow)]
    pub(crate) evidence: Option<Evidence<'a>>,
    /// The outcome; `null` if none was reported yet.
    pub(crate) outcome: Option<Outcome>,
}

/// The evidence of a record, with its parts as text. As JSON values, numbers beyond 2^53 would not survive every
/// reader.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Evidence<'a> {
    /// The salt in hex.
    #[serde(borrow)]
    salt: Cow<'a, str>,
    #[serde(borrow)]
    parts: Vec<Cow<'a, str>>,
}

impl<'a> Evidence<'a> {
    /// Splits stored evidence; `None` if the bytes are malformed.
    pub(crate) fn of(stored: &'a [u8]) -> Option<Self> {
        let (salt, mut rest) = evidence::split_salt(stored)?;
        let mut parts = Vec::with_capacity(3);
        while !rest.is_empty() {
            let (part, behind) = evidence::split_part(rest)?;
            parts.push(Cow::Borrowed(std::str::from_utf8(part).ok()?));
            rest = behind;
        }
        Some(Self { salt: Cow::Owned(hex::encode(salt)), parts })
    }

    /// Rebuilds the stored bytes; `None` if that is not possible.
    pub(crate) fn stored(&self, bytes: &mut Vec<u8>) -> Option<()> {
        bytes.clear();
        bytes.extend_from_slice(&hex::decode(self.salt.as_bytes()).ok()?);
        for part in &self.parts {
            bytes.extend_from_slice(&u32::try_from(part.len()).ok()?.to_le_bytes());
            bytes.extend_from_slice(part.as_bytes());
        }
        Some(())
    }
}

/// An entry that is not a decision.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EntryLine<'a> {
    #[serde(borrow)]
    pub(crate) entry: Entry<'a>,
}

impl<'a> EntryLine<'a> {
    pub(crate) fn new(sequence: Sequence, kind: Kind, body: &'a str) -> Self {
        Self { entry: Entry { sequence, kind, body: Cow::Borrowed(body) } }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry<'a> {
    pub(crate) sequence: Sequence,
    pub(crate) kind: Kind,
    /// The exact bytes that are stored.
    #[serde(borrow)]
    pub(crate) body: Cow<'a, str>,
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
