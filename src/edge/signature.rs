//! Signatures of webhook payloads: HMAC-SHA256 in the header
//! `X-Service-Signature: t=<unix seconds>,v1=<hex>[,v1=<hex>]` over
//! `<t>.<id>.<body>`, one `v1` for each live secret, so that secrets rotate
//! without a gap.
//!
//! ```
//! use rulekeep::signature::{Secret, sign, verify};
//!
//! let secret = Secret::new("a secret of at least 24 bytes")?;
//! let header = sign(&[&secret], 1_800_000_000, "evt_1", b"{}");
//! verify(&[&secret], &header, "evt_1", b"{}", 1_800_000_030, 300)?;
//! # Ok::<(), rulekeep::signature::SignatureError>(())
//! ```

use std::fmt::{self, Write as _};

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// A secret shared with the receiver of a webhook; never shown.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// The shortest secret, in bytes.
    pub const MIN_BYTES: usize = 24;

    /// A secret of the given bytes.
    ///
    /// # Errors
    ///
    /// [`SignatureError::ShortSecret`].
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, SignatureError> {
        let bytes = bytes.into();
        if bytes.len() < Self::MIN_BYTES { Err(SignatureError::ShortSecret) } else { Ok(Self(bytes)) }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Why a signature is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// The secret is too short to be safe.
    #[error("a secret of fewer than 24 bytes")]
    ShortSecret,
    /// The header has another form.
    #[error("expected t=<unix seconds>,v1=<hex>[,v1=<hex>]")]
    Malformed,
    /// The payload was signed too long ago, or in the future.
    #[error("signed outside the time window")]
    Expired,
    /// No signature is by a known secret over this payload.
    #[error("no signature matches")]
    Mismatch,
}

/// The header's value for a payload, one signature for each secret.
pub fn sign(secrets: &[&Secret], at: i64, id: &str, body: &[u8]) -> String {
    let mut header = format!("t={at}");
    for secret in secrets {
        // Writing to a String cannot fail.
        let _ = write!(header, ",v1={}", hex::encode(digest(secret, at, id, body)));
    }
    header
}

/// Checks a header against the secrets that may have signed it. `now` and the
/// window are in seconds. Takes the same time whether a signature matches or not.
///
/// # Errors
///
/// [`SignatureError`].
pub fn verify(
    secrets: &[&Secret],
    header: &str,
    id: &str,
    body: &[u8],
    now: i64,
    window: u32,
) -> Result<(), SignatureError> {
    let mut at = None;
    let mut signatures = Vec::new();
    for part in header.split(',') {
        match part.trim().split_once('=') {
            Some(("t", time)) if at.is_none() => at = Some(time.parse::<i64>().map_err(|_| SignatureError::Malformed)?),
            Some(("v1", signature)) if signatures.len() < MOST_SIGNATURES => {
                let mut bytes = [0; 32];
                hex::decode_to_slice(signature, &mut bytes).map_err(|_| SignatureError::Malformed)?;
                signatures.push(bytes);
            }
            _ => return Err(SignatureError::Malformed),
        }
    }
    let at = at.filter(|_| !signatures.is_empty()).ok_or(SignatureError::Malformed)?;
    if at.abs_diff(now) > u64::from(window) {
        return Err(SignatureError::Expired);
    }
    let mut matches = subtle::Choice::from(0);
    for secret in secrets {
        let expected = digest(secret, at, id, body);
        for signature in &signatures {
            matches |= expected.ct_eq(signature);
        }
    }
    if bool::from(matches) { Ok(()) } else { Err(SignatureError::Mismatch) }
}

/// More signatures than secrets anybody rotates at once: such a header only costs time.
const MOST_SIGNATURES: usize = 16;

fn digest(secret: &Secret, at: i64, id: &str, body: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new(&block_of(&secret.0).into());
    mac.update(at.to_string().as_bytes());
    mac.update(b".");
    mac.update(id.as_bytes());
    mac.update(b".");
    mac.update(body);
    mac.finalize().into_bytes().into()
}

/// A key brought to the block size of SHA-256, as RFC 2104 section 2 says: a
/// longer one hashed, a shorter one followed by zeros.
fn block_of(key: &[u8]) -> [u8; BLOCK_BYTES] {
    let mut block = [0; BLOCK_BYTES];
    match block.get_mut(..key.len()) {
        Some(place) => place.copy_from_slice(key),
        None => block[..32].copy_from_slice(&Sha256::digest(key)),
    }
    block
}

const BLOCK_BYTES: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(name: &str) -> Secret {
        Secret::new(format!("{name} secret of enough bytes")).unwrap()
    }

    #[test]
    fn either_secret_of_a_rotation_verifies() {
        let (old, new) = (secret("old"), secret("new"));
        let header = sign(&[&old, &new], 100, "evt_1", b"{}");
        for known in [&old, &new] {
            assert_eq!(verify(&[known], &header, "evt_1", b"{}", 100, 300), Ok(()));
        }
        assert_eq!(verify(&[&secret("other")], &header, "evt_1", b"{}", 100, 300), Err(SignatureError::Mismatch));
    }

    #[test]
    fn the_id_the_body_and_the_time_are_all_signed() {
        let key = secret("the");
        let header = sign(&[&key], 100, "evt_1", b"{}");
        assert!(verify(&[&key], &header, "evt_2", b"{}", 100, 300).is_err());
        assert!(verify(&[&key], &header, "evt_1", b"{ }", 100, 300).is_err());
        assert!(verify(&[&key], &header.replace("t=100", "t=101"), "evt_1", b"{}", 100, 300).is_err());
        assert_eq!(verify(&[&key], &header, "evt_1", b"{}", 401, 300), Err(SignatureError::Expired));
        assert_eq!(verify(&[&key], &header, "evt_1", b"{}", -201, 300), Err(SignatureError::Expired));
    }

    #[test]
    fn a_malformed_header_is_refused() {
        let key = secret("the");
        for header in ["", "t=1", "v1=00", "t=x,v1=00", "t=1,v1=zz", "t=1,v2=00", "t=1,t=1,v1=00"] {
            assert_eq!(verify(&[&key], header, "e", b"", 1, 300), Err(SignatureError::Malformed), "{header:?}");
        }
    }

    #[test]
    fn a_known_answer_by_another_implementation() {
        // SOURCE: Python's hmac, and with b"k"*100 for the long key: python3 -c 'import hmac,hashlib; print(hmac.new(b"k"*24, b"7.evt.body", hashlib.sha256).hexdigest())'
        let key = Secret::new(vec![b'k'; 24]).unwrap();
        let header = sign(&[&key], 7, "evt", b"body");
        assert_eq!(header, "t=7,v1=d01d37e45824dde9486a3eac600fc6faa704b7773266310e3f7a878e2ed3d675");
        assert_eq!(format!("{key:?}"), "Secret(..)");
        let long = Secret::new(vec![b'k'; 100]).unwrap();
        assert_eq!(
            sign(&[&long], 7, "evt", b"body"),
            "t=7,v1=00dc8f40a6863253d3f0844efefa86dccbc8a40031d735d37290c58f5f864b7d"
        );
    }
}
