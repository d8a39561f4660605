//! The key that signs a log's checkpoints, and its public half.

use std::fmt;
use std::str::FromStr;

use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use sha2::{Digest as _, Sha256};
use zeroize::Zeroizing;

use super::{CheckpointError, text};
use rulekeep_types::system::Entropy;

/// The Ed25519 key that signs a log's checkpoints, with the log's name.
///
/// Use a key and name for one log only: two logs that sign under one name look like one log that was rewritten.
/// `Debug` does not show the secret, and its memory is overwritten when the key is dropped.
#[derive(Clone)]
pub struct CheckpointKey {
    name: Box<str>,
    secret: SigningKey,
}

impl CheckpointKey {
    /// Generates a key for the log `name`. Store its [`seed`](Self::seed).
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Malformed`] for an invalid name, as in [`from_seed`](Self::from_seed).
    pub fn generate(name: &str, entropy: &dyn Entropy) -> Result<Self, CheckpointError> {
        let mut seed = Zeroizing::new([0; 32]);
        for half in seed.chunks_exact_mut(16) {
            half.copy_from_slice(Zeroizing::new(entropy.bits().to_be_bytes()).as_slice());
        }
        Self::from_seed(name, &seed)
    }

    /// Creates the key from a seed, the 32 secret bytes of RFC 8032, for the log `name`. A good name is a URL without
    /// scheme, such as `example.com/agents`.
    ///
    /// # Errors
    ///
    /// [`CheckpointError::Malformed`] if the name is empty, longer than 256 bytes, or contains white space, a control
    /// character or a `+`.
    pub fn from_seed(name: &str, seed: &[u8; 32]) -> Result<Self, CheckpointError> {
        if text::is_name(name) {
            Ok(Self { name: name.into(), secret: SigningKey::from_bytes(seed) })
        } else {
            Err(CheckpointError::Malformed { what: "key name", line: 1, expected: NAME })
        }
    }

    /// The name of the log.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The secret seed of the key. Whoever has it can sign in the log's name.
    pub fn seed(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.secret.to_bytes())
    }

    /// Returns the public half, to be given to verifiers.
    pub fn verifier(&self) -> VerifierKey {
        VerifierKey { name: self.name.clone(), public: self.secret.verifying_key() }
    }

    /// Signs a text.
    pub(super) fn sign(&self, text: &str) -> [u8; 64] {
        self.secret.sign(text.as_bytes()).to_bytes()
    }
}

impl fmt::Debug for CheckpointKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CheckpointKey({}, ..)", self.verifier())
    }
}

/// The public half of a [`CheckpointKey`], written `<name>+<id in 8 hex digits>+<base 64 of 0x01 and the key>`.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifierKey {
    name: Box<str>,
    public: VerifyingKey,
}

impl VerifierKey {
    /// The name of the log.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The four bytes by which a signature names this key.
    pub(super) fn id(&self) -> [u8; 4] {
        let hasher = Sha256::new().chain_update(self.name.as_bytes()).chain_update([b'\n', ED25519]);
        let [a, b, c, d, ..] = <[u8; 32]>::from(hasher.chain_update(self.public.as_bytes()).finalize());
        [a, b, c, d]
    }

    /// Name and ID of the key, for messages.
    pub(super) fn label(&self) -> String {
        format!("{}+{}", self.name, hex::encode(self.id()))
    }

    /// Returns whether the signature over the text is by this key.
    pub(super) fn verifies(&self, text: &str, signature: &[u8]) -> bool {
        let signature = signature.try_into().map(|bytes| Signature::from_bytes(&bytes));
        signature.is_ok_and(|signature| self.public.verify_strict(text.as_bytes(), &signature).is_ok())
    }
}

impl fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut key = [ED25519; 33];
        key[1..].copy_from_slice(self.public.as_bytes());
        write!(f, "{}+{}", self.label(), text::base64(key))
    }
}

impl fmt::Debug for VerifierKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifierKey({self})")
    }
}

impl FromStr for VerifierKey {
    type Err = CheckpointError;

    fn from_str(text: &str) -> Result<Self, CheckpointError> {
        text::check_size(WHAT, text, MAX_BYTES)?;
        let malformed = |expected| CheckpointError::Malformed { what: WHAT, line: 1, expected };
        // The base 64 part may contain a `+`.
        let mut parts = text.splitn(3, '+');
        let name = parts.next().filter(|name| text::is_name(name)).ok_or(malformed(NAME))?;
        let id = parts.next().ok_or(malformed(PARTS))?;
        let key = parts.next().and_then(text::bytes).ok_or(malformed(PARTS))?;
        let Some((&ED25519, public)) = key.split_first() else { return Err(malformed("an Ed25519 key")) };
        let public = public.try_into().ok().and_then(|bytes| VerifyingKey::from_bytes(bytes).ok());
        // A weak key would accept forged signatures.
        let public = public.filter(|public| !public.is_weak()).ok_or(malformed("an Ed25519 key"))?;
        let key = Self { name: name.into(), public };
        if hex::encode(key.id()) == id { Ok(key) } else { Err(malformed("the id that name and key have together")) }
    }
}

/// The byte that identifies the kind of a key and its signatures.
const ED25519: u8 = 1;
const WHAT: &str = "verifier key";
const NAME: &str = "a name of 1 to 256 bytes without spaces, control characters and +";
const PARTS: &str = "<name>+<id>+<base 64 of the key>";
const MAX_BYTES: usize = 1024;
