//! Evidence: everything that a decision depended on, kept beside its record.
//!
//! The record carries `evidenceHash`, SHA-256 over the exact bytes that are
//! stored: 16 random bytes of salt, then each part behind its length in four
//! little-endian bytes. The salt keeps a digest from being guessed back into
//! what it covers. Nothing is brought into a canonical form first: RFC 8785
//! folds integers beyond 2^53, so two account numbers could hash the same.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::model::Digest;

/// The evidence of one decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Evidence {
    /// The intent as it was evaluated.
    pub intent: Value,
    /// Granted and denied capabilities, constraints, the policy set's digest,
    /// the rules that decided, the trust snapshot, the agent's labels, groups and attributes,
    /// the time, and how the limits stood.
    pub detail: Value,
}

/// What a decision used of a limit: the counter, and how much in millionths.
pub(crate) type Charged = (Box<str>, i64);

/// The bytes that are stored for two parts, each written as JSON, and a third where the decision used limits.
pub(crate) fn encode(
    salt: u128,
    intent: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
    detail: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
    charges: &[Charged],
) -> serde_json::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(1024);
    bytes.extend_from_slice(&salt.to_le_bytes());
    push_part(&mut bytes, intent)?;
    push_part(&mut bytes, detail)?;
    if !charges.is_empty() {
        push_part(&mut bytes, |bytes| serde_json::to_writer(bytes, &charges))?;
    }
    Ok(bytes)
}

/// The digest that goes into the record.
pub(super) fn digest(bytes: &[u8]) -> Digest {
    Digest::new(Sha256::digest(bytes).into())
}

/// Reads stored evidence back; `None` when the bytes are none.
pub(super) fn decode(bytes: &[u8]) -> Option<Evidence> {
    let (_salt, rest) = bytes.split_first_chunk::<SALT_BYTES>()?;
    let (intent, rest) = split_part(rest)?;
    let (detail, rest) = split_part(rest)?;
    let intent = serde_json::from_slice(intent).ok()?;
    let detail = serde_json::from_slice(detail).ok()?;
    (rest.is_empty() || read_charges(rest).is_some()).then_some(Evidence { intent, detail })
}

/// The part that holds the decision's detail, read as a type; `None` when the bytes are no evidence.
pub(super) fn detail<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (_salt, rest) = bytes.split_first_chunk::<SALT_BYTES>()?;
    let (_, rest) = split_part(rest)?;
    let (detail, _) = split_part(rest)?;
    serde_json::from_slice(detail).ok()
}

/// What the decision used of limits, without reading the rest; `None` when the bytes are no evidence.
pub(super) fn charges(bytes: &[u8]) -> Option<Vec<Charged>> {
    let (_salt, rest) = bytes.split_first_chunk::<SALT_BYTES>()?;
    let (_, rest) = split_part(rest)?;
    let (_, rest) = split_part(rest)?;
    if rest.is_empty() { Some(Vec::new()) } else { read_charges(rest) }
}

fn read_charges(bytes: &[u8]) -> Option<Vec<Charged>> {
    let (part, rest) = split_part(bytes)?;
    rest.is_empty().then(|| serde_json::from_slice(part).ok()).flatten()
}

const SALT_BYTES: usize = 16;

fn push_part(
    bytes: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
) -> serde_json::Result<()> {
    let length_at = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    let start = bytes.len();
    write(bytes)?;
    let length = u32::try_from(bytes.len() - start).unwrap_or(u32::MAX);
    if let Some(place) = bytes.get_mut(length_at..start) {
        place.copy_from_slice(&length.to_le_bytes());
    }
    Ok(())
}

/// The salt, and what follows it.
pub(super) fn split_salt(bytes: &[u8]) -> Option<(&[u8; SALT_BYTES], &[u8])> {
    bytes.split_first_chunk()
}

/// The part at the front, and what follows it.
pub(super) fn split_part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn encode(salt: u128, intent: &Value, detail: &Value, charges: &[Charged]) -> serde_json::Result<Vec<u8>> {
        super::encode(salt, |out| serde_json::to_writer(out, intent), |out| serde_json::to_writer(out, detail), charges)
    }

    #[test]
    fn evidence_reads_back_and_the_salt_changes_its_digest() {
        let (intent, detail) = (json!({"account": 9_007_199_254_740_993_u64}), json!({"rules": []}));
        let bytes = encode(1, &intent, &detail, &[]).unwrap();
        assert_eq!(decode(&bytes), Some(Evidence { intent: intent.clone(), detail: detail.clone() }));
        assert_ne!(digest(&bytes), digest(&encode(2, &intent, &detail, &[]).unwrap()));
        let neighbour = json!({"account": 9_007_199_254_740_992_u64});
        assert_ne!(digest(&bytes), digest(&encode(1, &neighbour, &detail, &[]).unwrap()));
    }

    #[test]
    fn what_was_used_of_limits_reads_back_beside_the_rest() {
        let used = [(Box::from("r/agent/a"), 1_000_000)];
        let bytes = encode(1, &json!("intent"), &json!("detail"), &used).unwrap();
        assert_eq!(charges(&bytes), Some(used.to_vec()));
        assert!(decode(&bytes).is_some());
        let none = encode(1, &json!("intent"), &json!("detail"), &[]).unwrap();
        assert_eq!(charges(&none), Some(Vec::new()));
        assert!(bytes.starts_with(&none));
        assert_eq!(decode(&bytes[..bytes.len() - 1]), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_decoding_panic(bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
            let _ = decode(&bytes);
            let _ = charges(&bytes);
        }
    }
}
