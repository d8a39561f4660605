//! Signatures over texts other than checkpoints, by the same keys.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use rulekeep::checkpoint::{CheckpointKey, VerifierKey};

/// Signs a text; the signature is in base 64.
pub(crate) fn sign(key: &CheckpointKey, text: &str) -> String {
    STANDARD.encode(SigningKey::from_bytes(&key.seed()).sign(text.as_bytes()).to_bytes())
}

/// Returns whether a signature over a text is by a key.
pub(crate) fn verify(key: &VerifierKey, text: &str, signature: &str) -> bool {
    let signature = STANDARD.decode(signature).ok().and_then(|bytes| Signature::from_slice(&bytes).ok());
    public(key).zip(signature).is_some_and(|(key, signature)| key.verify_strict(text.as_bytes(), &signature).is_ok())
}

fn public(key: &VerifierKey) -> Option<VerifyingKey> {
    // The third part of the key's text: a byte for the algorithm, and the key.
    let bytes = STANDARD.decode(key.to_string().splitn(3, '+').nth(2)?).ok()?;
    VerifyingKey::from_bytes(bytes.get(1..)?.try_into().ok()?).ok()
}

/// A text in the base 64 of URLs.
pub(crate) fn encode(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

/// The text behind [`encode`].
pub(crate) fn decode(text: &str) -> Option<String> {
    URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok())
}
