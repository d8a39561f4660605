//! Salted digests: of the content that an approval is bound to, and of the requesters' names.

use sha2::{Digest as _, Sha256};
use unicode_normalization::UnicodeNormalization;

use crate::governor::intake::plain;
use crate::model::{ApprovalOffer, Digest, Error, Intent, RiskLevel, Timestamp};
use crate::parse::seen_as;

/// The content of an approval: exactly this intent, under this policy set, until this time.
pub(super) struct Bound<'a> {
    pub(super) intent: &'a Intent,
    pub(super) risk: RiskLevel,
    pub(super) policy_digest: Digest,
    pub(super) offer: &'a ApprovalOffer,
    pub(super) expires_at: Timestamp,
}

impl Bound<'_> {
    /// SHA-256 over a name of this form, the salt, and each part preceded by its length as eight little-endian bytes.
    ///
    /// The context is hashed unredacted, which is why there is a salt. It is not canonicalized (RFC 8785), because that
    /// rounds integers beyond 2^53, so two account numbers could share a digest. But 80.0 equals 80, because clients in
    /// other languages may send back the other form. The intent's id and time are excluded, because a runtime may build
    /// the same intent twice.
    pub(super) fn digest(&self, salt: Digest) -> Result<Digest, Error> {
        let json = |part: serde_json::Result<Vec<u8>>| {
            part.map_err(|error| Error::internal("an intent cannot be serialized").caused_by(error))
        };
        let parts = [
            self.intent.agent_id.as_str().as_bytes().to_vec(),
            self.intent.parsed_action.as_str().as_bytes().to_vec(),
            self.intent.risk_level.as_str().as_bytes().to_vec(),
            self.risk.as_str().as_bytes().to_vec(),
            json(serde_json::to_vec(&self.intent.required_capabilities))?,
            json(serde_json::to_vec(&plain(&self.intent.members().to_json())))?,
            self.policy_digest.as_bytes().to_vec(),
            json(serde_json::to_vec(self.offer))?,
            self.expires_at.as_millis().to_le_bytes().to_vec(),
        ];
        let mut hash = Sha256::new().chain_update(FORM).chain_update(salt.as_bytes());
        for part in &parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Ok(Digest::new(hash.finalize().into()))
    }
}

/// The salted digest of the request text, given its SHA-256.
pub(super) fn asked_text(salt: Digest, text: Digest) -> Digest {
    let hash = Sha256::new().chain_update(TEXT).chain_update(salt.as_bytes()).chain_update(text.as_bytes());
    Digest::new(hash.finalize().into())
}

/// The salted digest of a requester's name, normalized as by [`seen_as`].
pub(super) fn asker(salt: Digest, name: &str) -> Digest {
    let hash = Sha256::new().chain_update(ASKER).chain_update(salt.as_bytes()).chain_update(seen_as(name));
    Digest::new(hash.finalize().into())
}

/// Normalizes a name for admitting a person: only case and compatibility forms make no difference.
pub(super) fn folded(name: &str) -> String {
    name.trim().nfkc().flat_map(char::to_lowercase).nfkc().collect()
}

const FORM: &[u8] = b"rulekeep approval 1";
const TEXT: &[u8] = b"rulekeep asked text 1";
const ASKER: &[u8] = b"rulekeep asker 1";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn digest(change: impl FnOnce(&mut Intent)) -> Digest {
        let mut intent = Intent::new("a", "pay", RiskLevel::High, ["payment:transfer", "payment:read"])
            .unwrap()
            .with_context("amount", 10)
            .with_context("account", 9_007_199_254_740_993_u64);
        change(&mut intent);
        let (offer, expires_at) = (ApprovalOffer::default(), Timestamp::from_millis(7));
        let policy_digest = Digest::ZERO;
        let bound = Bound { intent: &intent, risk: RiskLevel::High, policy_digest, offer: &offer, expires_at };
        bound.digest(Digest::new([1; 32])).unwrap()
    }

    fn set(key: &str, value: Value) -> impl FnOnce(&mut Intent) + use<'_> {
        move |intent| drop(intent.context.insert(key.to_owned(), value))
    }

    #[test]
    fn whatever_differs_in_what_is_asked_differs_in_its_digest() {
        let same = digest(|intent| intent.timestamp = Some(Timestamp::from_millis(99)));
        assert_eq!(digest(|_| {}), same);
        let others = [
            digest(set("amount", json!(11))),
            digest(set("amount", json!(10.5))),
            digest(set("amount", json!("10"))),
            digest(set("account", json!(9_007_199_254_740_992_u64))),
            digest(set("note", json!(null))),
            digest(|intent| drop(intent.context.remove("amount"))),
            digest(|intent| intent.required_capabilities.reverse()),
            digest(|intent| drop(intent.required_capabilities.pop())),
            digest(|intent| intent.agent_id = "b".parse().unwrap()),
            digest(|intent| intent.parsed_action = "repay".parse().unwrap()),
            digest(|intent| intent.risk_level = RiskLevel::Low),
        ];
        for (place, other) in others.iter().enumerate() {
            assert_ne!(*other, same, "{place}");
            assert!(!others[..place].contains(other), "{place}");
        }
    }

    #[test]
    fn a_whole_number_is_the_same_however_it_is_written() {
        assert_eq!(digest(set("amount", json!(10.0))), digest(|_| {}));
        let deep = |number: Value| digest(set("deep", json!([{ "a": number }])));
        assert_eq!(deep(json!(-0.0)), deep(json!(0)));
        assert_eq!(deep(json!(-7.0)), deep(json!(-7)));
        // Values that a double cannot distinguish must not count as equal.
        assert_ne!(deep(json!(9_007_199_254_740_992.0)), deep(json!(9_007_199_254_740_992_u64)));
    }

    #[test]
    fn a_name_is_the_same_however_it_is_written() {
        let salt = Digest::new([1; 32]);
        assert_eq!(asker(salt, "Ann"), asker(salt, " ａｎｎ "));
        for forged in ["\u{410}nn", "An\u{200b}n", "a\u{ad}nn ", "ANN"] {
            assert_eq!(asker(salt, "Ann"), asker(salt, forged), "{forged:?}");
        }
        assert_ne!(asker(salt, "Ann"), asker(salt, "Anna"));
        assert_ne!(asker(salt, "Ann"), asker(Digest::ZERO, "Ann"));
    }
}
