//! Evidence: everything that a decision depended on, stored beside its record.
//!
//! The record contains `evidenceHash`, SHA-256 over the exact stored bytes: 16 random bytes of salt, then each part
//! preceded by its length in four little-endian bytes. The salt prevents guessing the evidence from its digest. The
//! evidence is not brought into a canonical form first: RFC 8785 rounds integers beyond 2^53, so two account numbers
//! could have the same hash.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use rulekeep_types::Digest;

/// The evidence of one decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub struct Evidence {
    /// The intent as it was evaluated.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub intent: Value,
    /// Granted and denied capabilities, constraints, the policy set's digest,
    /// the rules that decided, the trust snapshot, the agent's labels, groups and attributes,
    /// the time, and how the limits stood.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub detail: Value,
    /// The text of the request, if it is kept.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub input: Option<InputEvidence>,
    #[serde(skip)]
    salt: [u8; SALT_BYTES],
}

/// The kept form of the request text, with secrets redacted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum InputEvidence {
    /// The text itself.
    Text(String),
    /// SHA-256 over the evidence's salt and the text.
    Sha256(Digest),
}

impl InputEvidence {
    /// Returns the text, if it is kept in full.
    pub fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text),
            Self::Sha256(_) => None,
        }
    }
}

/// The form in which to keep the request text.
#[derive(Debug)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub enum KeptInput {
    Text(String),
    /// Keeps only a digest of the text.
    ToDigest(String),
}

impl Evidence {
    /// Returns whether the kept text equals `text`, a request text with secrets redacted; `None` if no text is kept.
    pub fn has_input(&self, text: &str) -> Option<bool> {
        self.input.as_ref().map(|input| match input {
            InputEvidence::Text(kept) => kept == text,
            InputEvidence::Sha256(digest) => *digest == salted(self.salt, text.as_bytes()),
        })
    }

    /// Returns whether this is the evidence of the request with this digest.
    pub fn is_of_call(&self, call: Digest) -> bool {
        let kept = self.detail.get("call").and_then(Value::as_str);
        kept.is_some_and(|kept| *kept == salted(self.salt, call.as_bytes()).to_string())
    }

    /// The salted form of a request's digest, so that a request that can be guessed is not revealed by it.
    pub fn salted_call(salt: u128, call: Digest) -> Digest {
        salted(salt.to_le_bytes(), call.as_bytes())
    }
}

fn salted(salt: [u8; SALT_BYTES], text: &[u8]) -> Digest {
    Digest::of_parts(&[&salt, text])
}

/// The use of a limit by a decision: the counter, and the amount in millionths.
pub(crate) type Charged = (Box<str>, i64);

/// Encodes evidence from two parts of JSON. A third part follows if the decision used limits or a text is kept, and a
/// fourth if a text is kept.
pub fn encode(
    mut bytes: Vec<u8>,
    salt: u128,
    intent: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
    detail: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
    charges: &[Charged],
    input: Option<&KeptInput>,
) -> serde_json::Result<Vec<u8>> {
    bytes.extend_from_slice(&salt.to_le_bytes());
    push_part(&mut bytes, intent)?;
    push_part(&mut bytes, detail)?;
    if !charges.is_empty() || input.is_some() {
        push_part(&mut bytes, |bytes| serde_json::to_writer(bytes, &charges))?;
    }
    match input {
        Some(KeptInput::Text(text)) => {
            let text = InputEvidence::Text(text.clone());
            push_part(&mut bytes, |bytes| serde_json::to_writer(bytes, &text))?;
        }
        Some(KeptInput::ToDigest(text)) => {
            let digest = InputEvidence::Sha256(salted(salt.to_le_bytes(), text.as_bytes()));
            push_part(&mut bytes, |bytes| serde_json::to_writer(bytes, &digest))?;
        }
        None => {}
    }
    Ok(bytes)
}

/// Returns the digest that goes into the record.
pub(crate) fn digest(bytes: &[u8]) -> Digest {
    Digest::of(bytes)
}

/// Decodes stored evidence; `None` if the bytes are malformed.
pub(crate) fn decode(bytes: &[u8]) -> Option<Evidence> {
    let (salt, intent, detail, rest) = split(bytes)?;
    let (_, input) = read_rest(rest)?;
    let (intent, detail) = (serde_json::from_slice(intent).ok()?, serde_json::from_slice(detail).ok()?);
    Some(Evidence { intent, detail, input, salt: *salt })
}

/// Reads the decision's detail as a type; `None` if the bytes are malformed.
pub(crate) fn detail<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    serde_json::from_slice(detail_bytes(bytes)?).ok()
}

/// Returns the bytes of the decision's detail; `None` if the bytes are malformed.
pub(crate) fn detail_bytes(bytes: &[u8]) -> Option<&[u8]> {
    split(bytes).map(|(_, _, detail, _)| detail)
}

/// Returns the decision's use of limits, without reading the rest; `None` if the bytes are malformed.
pub(crate) fn charges(bytes: &[u8]) -> Option<Vec<Charged>> {
    let (.., rest) = split(bytes)?;
    read_rest(rest).map(|(charges, _)| charges)
}

/// The salt, the intent, the detail, and the parts after them.
type Parts<'a> = (&'a [u8; SALT_BYTES], &'a [u8], &'a [u8], &'a [u8]);

fn split(bytes: &[u8]) -> Option<Parts<'_>> {
    let (salt, rest) = split_salt(bytes)?;
    let (intent, rest) = split_part(rest)?;
    let (detail, rest) = split_part(rest)?;
    Some((salt, intent, detail, rest))
}

/// Reads the parts after the second, if present.
fn read_rest(bytes: &[u8]) -> Option<(Vec<Charged>, Option<InputEvidence>)> {
    if bytes.is_empty() {
        return Some((Vec::new(), None));
    }
    let (charges, rest) = split_part(bytes)?;
    let charges = serde_json::from_slice(charges).ok()?;
    if rest.is_empty() {
        return Some((charges, None));
    }
    let (input, rest) = split_part(rest)?;
    rest.is_empty().then_some((charges, Some(serde_json::from_slice(input).ok()?)))
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

/// Splits off the salt.
pub(crate) fn split_salt(bytes: &[u8]) -> Option<(&[u8; SALT_BYTES], &[u8])> {
    bytes.split_first_chunk()
}

/// Splits off the first part.
pub(crate) fn split_part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn encode(
        salt: u128,
        intent: &Value,
        detail: &Value,
        charges: &[Charged],
        input: Option<&KeptInput>,
    ) -> serde_json::Result<Vec<u8>> {
        let part = |value: &Value, out: &mut Vec<u8>| serde_json::to_writer(out, value);
        super::encode(Vec::new(), salt, |out| part(intent, out), |out| part(detail, out), charges, input)
    }

    #[test]
    fn evidence_reads_back_and_the_salt_changes_its_digest() {
        let (intent, detail) = (json!({"account": 9_007_199_254_740_993_u64}), json!({"rules": []}));
        let bytes = encode(1, &intent, &detail, &[], None).unwrap();
        let read = decode(&bytes).unwrap();
        assert_eq!((read.intent, read.detail, read.input), (intent.clone(), detail.clone(), None));
        assert_ne!(digest(&bytes), digest(&encode(2, &intent, &detail, &[], None).unwrap()));
        let neighbour = json!({"account": 9_007_199_254_740_992_u64});
        assert_ne!(digest(&bytes), digest(&encode(1, &neighbour, &detail, &[], None).unwrap()));
    }

    #[test]
    fn what_was_used_of_limits_reads_back_beside_the_rest() {
        let used = [(Box::from("r/agent/a"), 1_000_000)];
        let bytes = encode(1, &json!("intent"), &json!("detail"), &used, None).unwrap();
        assert_eq!(charges(&bytes), Some(used.to_vec()));
        assert!(decode(&bytes).is_some());
        let none = encode(1, &json!("intent"), &json!("detail"), &[], None).unwrap();
        assert_eq!(charges(&none), Some(Vec::new()));
        assert!(bytes.starts_with(&none));
        assert_eq!(decode(&bytes[..bytes.len() - 1]), None);
    }

    #[test]
    fn a_text_reads_back_whole_or_as_its_digest() {
        for input in [KeptInput::Text("asked".to_owned()), KeptInput::ToDigest("asked".to_owned())] {
            let bytes = encode(1, &json!("intent"), &json!("detail"), &[], Some(&input)).unwrap();
            let read = decode(&bytes).unwrap();
            assert_eq!((read.has_input("asked"), read.has_input("other")), (Some(true), Some(false)));
            assert_eq!(charges(&bytes), Some(Vec::new()));
            assert_eq!(String::from_utf8_lossy(&bytes).contains("asked"), matches!(input, KeptInput::Text(_)));
            assert_eq!(decode(&bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(decode(&encode(1, &json!(1), &json!(2), &[], None).unwrap()).unwrap().has_input("asked"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_decoding_panic(bytes in proptest::collection::vec(any::<u8>(), 0..128)) {
            let _ = decode(&bytes);
            let _ = charges(&bytes);
        }
    }
}
