//! State that a client returns with a retry: sealed, bound to one call, and valid once.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, Generate, Key, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};

/// SHA-256 of a call: its client, server, tool and arguments.
pub(crate) type CallDigest = [u8; 32];

/// The purpose of a sealed state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum State {
    /// The call waits for the approval of this escalation.
    Approval { escalation: String },
    /// The call was granted and forwarded, and the server asks for input.
    Input {
        server_state: Option<String>,
        proof_id: String,
        arguments: Option<serde_json::Map<String, serde_json::Value>>,
    },
}

/// Seals and opens states with a key that only this process has.
pub(crate) struct Sealer {
    cipher: XChaCha20Poly1305,
    started: Instant,
    /// Nonces of opened states until they expire. Nothing else is locked while this is.
    opened: Mutex<HashMap<Vec<u8>, u64>>,
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    state: State,
    call: CallDigest,
    /// The expiry in milliseconds since the sealer was created.
    expires: u64,
}

impl Sealer {
    /// Creates a sealer with a new key. States sealed before a restart cannot be opened after it.
    ///
    /// # Errors
    ///
    /// Returns a message if the system supplies no random bytes.
    pub(crate) fn new() -> Result<Self, String> {
        let key = Key::<XChaCha20Poly1305>::try_generate().map_err(|error| format!("no random key: {error}"))?;
        let cipher = XChaCha20Poly1305::new(&key);
        Ok(Self { cipher, started: Instant::now(), opened: Mutex::default() })
    }

    /// Seals a state for the retry of `call`.
    pub(crate) fn seal(&self, state: State, call: CallDigest) -> Result<String, String> {
        let expires = self.now() + u64::try_from(LIFETIME.as_millis()).unwrap_or(0);
        let message = serde_json::to_vec(&Sealed { state, call, expires }).map_err(|error| error.to_string())?;
        let nonce = XNonce::try_generate().map_err(|error| format!("no random nonce: {error}"))?;
        let payload = Payload { msg: &message, aad: PURPOSE };
        let sealed = self.cipher.encrypt(&nonce, payload).map_err(|error| error.to_string())?;
        Ok(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode([nonce.as_slice(), &sealed].concat())))
    }

    /// Opens a state that came with `call`, once. Returns `None` if it was not sealed here, belongs to another call,
    /// has expired, or was opened before.
    pub(crate) fn open(&self, text: &str, call: &CallDigest) -> Option<State> {
        let bytes = URL_SAFE_NO_PAD.decode(text.strip_prefix(PREFIX)?).ok()?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_BYTES)?;
        let payload = Payload { msg: sealed, aad: PURPOSE };
        let message = self.cipher.decrypt(&XNonce::try_from(nonce).ok()?, payload).ok()?;
        let Sealed { state, call: of, expires } = serde_json::from_slice(&message).ok()?;
        let now = self.now();
        if of != *call || expires <= now {
            return None;
        }
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.retain(|_, expires| *expires > now);
        opened.insert(nonce.to_vec(), expires).is_none().then_some(state)
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealer").finish_non_exhaustive()
    }
}

/// The time that a client has for the retry.
const LIFETIME: Duration = Duration::from_secs(60 * 60);
const PREFIX: &str = "rulekeep1.";
const PURPOSE: &[u8] = b"rulekeep mcp requestState 1";
const NONCE_BYTES: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: CallDigest = [7; 32];

    fn state() -> State {
        State::Approval { escalation: "esc_1".to_owned() }
    }

    #[test]
    fn a_sealed_state_opens_once_and_for_its_call_alone() {
        let sealer = Sealer::new().unwrap();
        let text = sealer.seal(state(), CALL).unwrap();
        assert!(!text.contains("esc_1"));
        assert_eq!(sealer.open(&text, &[8; 32]), None, "another call");
        assert_eq!(sealer.open(&text, &CALL), Some(state()));
        assert_eq!(sealer.open(&text, &CALL), None, "a second time");
    }

    #[test]
    fn a_changed_foreign_or_malformed_state_does_not_open() {
        let (sealer, other) = (Sealer::new().unwrap(), Sealer::new().unwrap());
        let text = sealer.seal(state(), CALL).unwrap();
        assert_eq!(other.open(&text, &CALL), None, "the key of another process");
        for place in PREFIX.len()..text.len() - 1 {
            let mut bytes = text.clone().into_bytes();
            bytes[place] = if bytes[place] == b'A' { b'B' } else { b'A' };
            assert_eq!(sealer.open(&String::from_utf8(bytes).unwrap(), &CALL), None, "byte {place}");
        }
        for text in ["", "rulekeep1.", "rulekeep1.AAAA", "rulekeep1.!", "state of a server"] {
            assert_eq!(sealer.open(text, &CALL), None, "{text:?}");
        }
        assert_eq!(sealer.open(&text, &CALL), Some(state()), "none of these used it up");
    }
}
