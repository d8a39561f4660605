//! Signatures of webhook payloads: HMAC-SHA256 in the header `X-Service-Signature: t=<unix
//! seconds>,v1=<hex>[,v1=<hex>]` over `<t>.<id>.<body>`. The header has one `v1` for each live secret, so secrets can
//! be rotated without a gap.
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

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// A secret shared with the receiver of a webhook; `Debug` does not show it.
#[derive(Clone)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Minimum length of a secret in bytes.
    pub const MIN_BYTES: usize = 24;

    /// Creates a secret from bytes.
    ///
    /// # Errors
    ///
    /// [`SignatureError::ShortSecret`] for fewer than 24 bytes.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, SignatureError> {
        let bytes = bytes.into();
        if bytes.len() < Self::MIN_BYTES { Err(SignatureError::ShortSecret) } else { Ok(Self(bytes)) }
    }
}

impl Secret {
    /// Generates a secret of 32 random bytes.
    pub fn generate(entropy: &dyn crate::system::Entropy) -> Self {
        Self([entropy.bits(), entropy.bits()].into_iter().flat_map(u128::to_le_bytes).collect())
    }

    /// Parses the text form: `whsec_` and the bytes in base64. Any other text is itself the secret, as UTF-8.
    ///
    /// # Errors
    ///
    /// [`SignatureError::ShortSecret`]; [`SignatureError::MalformedSecret`] when the text after `whsec_` is not base64.
    pub fn from_text(text: &str) -> Result<Self, SignatureError> {
        match text.strip_prefix(TEXT_PREFIX) {
            Some(encoded) => Self::new(BASE64.decode(encoded).map_err(|_| SignatureError::MalformedSecret)?),
            None => Self::new(text),
        }
    }

    /// Returns the text form, which Standard Webhooks libraries accept: `whsec_` and the bytes in base64. Anyone who
    /// has it can sign.
    pub fn reveal(&self) -> String {
        format!("{TEXT_PREFIX}{}", BASE64.encode(&self.0))
    }

    /// Returns a short digest that identifies the secret without revealing it.
    pub fn print(&self) -> String {
        let digest = Sha256::digest(&self.0);
        hex::encode(digest.get(..8).unwrap_or_default())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Reasons why a secret or signature is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SignatureError {
    /// The secret has fewer than 24 bytes.
    #[error("a secret of fewer than 24 bytes")]
    ShortSecret,
    /// The text starts with `whsec_` but does not continue in base64.
    #[error("a secret of the form whsec_ that is not base 64")]
    MalformedSecret,
    /// A header is malformed.
    #[error("expected t=<unix seconds>,v1=<hex>[,v1=<hex>], or the headers of Standard Webhooks")]
    Malformed,
    /// A header with the signature, the id or the time is missing.
    #[error("not signed: a header is missing")]
    Missing,
    /// The payload was signed too long ago, or in the future.
    #[error("signed outside the time window")]
    Expired,
    /// No signature matches this payload with a known secret.
    #[error("no signature matches")]
    Mismatch,
}

/// Returns the value of `X-Service-Signature` for a payload signed at `at` (Unix seconds), with one signature per
/// secret.
pub fn sign(secrets: &[&Secret], at: i64, id: &str, body: &[u8]) -> String {
    let mut header = format!("t={at}");
    for secret in secrets {
        // Writing to a String cannot fail.
        let _ = write!(header, ",v1={}", hex::encode(digest(secret, [&at.to_string(), id], body)));
    }
    header
}

/// Verifies a value of `X-Service-Signature` against the secrets that may have signed it. `now` and `window` are in
/// seconds. The time taken does not depend on whether a signature matches.
///
/// # Errors
///
/// [`SignatureError::Malformed`], [`SignatureError::Expired`] outside the window, [`SignatureError::Mismatch`].
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
    check_time(at, now, window)?;
    check(secrets, [&at.to_string(), id], body, &signatures)
}

/// Verifies a webhook delivery by its headers: `X-Service-Signature`, or `webhook-signature` of Standard Webhooks. If
/// both are present, both must be valid. Returns the event's id. A repeated delivery has the same id, so process each
/// id once.
///
/// `header` returns a header by its lowercase name; `now` and `window` are in seconds, usually [`WINDOW`]. Pass the
/// body as received, and verify before parsing it. The time taken does not depend on whether a signature matches.
///
/// ```
/// use rulekeep::signature::{Secret, WINDOW, sign, verify_signature};
///
/// let secret = Secret::from_text("whsec_MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1ub3BxcnN0dXY=")?;
/// # let now = 1_800_000_000;
/// # let signature = sign(&[&secret], now, "evt_1", b"{}");
/// # let headers = std::collections::HashMap::from([("webhook-id", "evt_1"), ("x-service-signature", &*signature)]);
/// # let body = b"{}";
/// let id = verify_signature(&[&secret], |name| headers.get(name).copied(), body, now, WINDOW)?;
/// assert_eq!(id, "evt_1");
/// # Ok::<(), rulekeep::signature::SignatureError>(())
/// ```
///
/// # Errors
///
/// [`SignatureError::Missing`] without the required headers, [`SignatureError::Malformed`], [`SignatureError::Expired`]
/// outside the window, [`SignatureError::Mismatch`].
pub fn verify_signature<'a>(
    secrets: &[&Secret],
    header: impl Fn(&str) -> Option<&'a str>,
    body: &[u8],
    now: i64,
    window: u32,
) -> Result<&'a str, SignatureError> {
    let id = header(ID_HEADER).ok_or(SignatureError::Missing)?;
    // INVARIANT: an id contains no dot, so a signed text can be split in only one way.
    let is_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    if id.is_empty() || !id.bytes().all(is_id) {
        return Err(SignatureError::Malformed);
    }
    let (ours, standard) = (header(HEADER), header(STANDARD_HEADER));
    if ours.is_none() && standard.is_none() {
        return Err(SignatureError::Missing);
    }
    if let Some(ours) = ours {
        verify(secrets, ours, id, body, now, window)?;
    }
    if let Some(standard) = standard {
        let at = header(TIMESTAMP_HEADER).ok_or(SignatureError::Missing)?;
        let at: i64 = at.parse().map_err(|_| SignatureError::Malformed)?;
        check_time(at, now, window)?;
        check(secrets, [id, &at.to_string()], body, &standard_signatures(standard)?)?;
    }
    Ok(id)
}

/// Returns the value of `webhook-signature` for a payload signed at `at` (Unix seconds), with one signature per secret.
pub fn sign_standard(secrets: &[&Secret], at: i64, id: &str, body: &[u8]) -> String {
    let signature = |secret: &&Secret| format!("v1,{}", BASE64.encode(digest(secret, [id, &at.to_string()], body)));
    secrets.iter().map(signature).collect::<Vec<_>>().join(" ")
}

/// SOURCE: <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>: signatures of
/// other versions are ignored.
fn standard_signatures(header: &str) -> Result<Vec<[u8; 32]>, SignatureError> {
    let mut signatures = Vec::new();
    for (count, part) in header.split(' ').enumerate() {
        let (version, encoded) = part.split_once(',').ok_or(SignatureError::Malformed)?;
        if count >= MOST_SIGNATURES {
            return Err(SignatureError::Malformed);
        }
        if version == "v1" {
            let bytes = BASE64.decode(encoded).map_err(|_| SignatureError::Malformed)?;
            signatures.push(bytes.try_into().map_err(|_| SignatureError::Malformed)?);
        }
    }
    if signatures.is_empty() { Err(SignatureError::Malformed) } else { Ok(signatures) }
}

fn check_time(at: i64, now: i64, window: u32) -> Result<(), SignatureError> {
    if at.abs_diff(now) > u64::from(window) { Err(SignatureError::Expired) } else { Ok(()) }
}

/// `before` precedes the body in the signed text: time then id in `X-Service-Signature`, id then time in Standard
/// Webhooks.
fn check(secrets: &[&Secret], before: [&str; 2], body: &[u8], signatures: &[[u8; 32]]) -> Result<(), SignatureError> {
    let mut matches = subtle::Choice::from(0);
    for secret in secrets {
        let expected = digest(secret, before, body);
        for signature in signatures {
            matches |= expected.ct_eq(signature);
        }
    }
    if bool::from(matches) { Ok(()) } else { Err(SignatureError::Mismatch) }
}

/// The usual window of a signature's time, in seconds.
pub const WINDOW: u32 = 300;

const TEXT_PREFIX: &str = "whsec_";
/// The header with signatures of this library's scheme.
pub const HEADER: &str = "x-service-signature";
/// The header of Standard Webhooks with the event's id.
pub const ID_HEADER: &str = "webhook-id";
/// The header of Standard Webhooks with the time of signing, in Unix seconds.
pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";
/// The header of Standard Webhooks with its signatures.
pub const STANDARD_HEADER: &str = "webhook-signature";

/// More signatures than secrets are ever rotated at once; a longer header only costs time.
const MOST_SIGNATURES: usize = 16;

fn digest(secret: &Secret, [first, second]: [&str; 2], body: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new(&block_of(&secret.0).into());
    mac.update(first.as_bytes());
    mac.update(b".");
    mac.update(second.as_bytes());
    mac.update(b".");
    mac.update(body);
    mac.finalize().into_bytes().into()
}

/// Pads a key to the block size of SHA-256 (RFC 2104, section 2): a longer key is hashed, a shorter one padded with
/// zeros.
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

    mod deliveries {
        use super::*;
        use crate::system::SystemEntropy;

        const BODY: &[u8] = br#"{"id":"evt_1"}"#;

        /// The headers of a delivery sent at second 1,000.
        fn headers(secrets: &[&Secret]) -> Vec<(&'static str, String)> {
            vec![
                (ID_HEADER, "evt_1".to_owned()),
                (TIMESTAMP_HEADER, "1000".to_owned()),
                (STANDARD_HEADER, sign_standard(secrets, 1000, "evt_1", BODY)),
                (HEADER, sign(secrets, 1000, "evt_1", BODY)),
            ]
        }

        fn verified<'a>(
            secrets: &[&Secret],
            headers: &'a [(&'static str, String)],
            body: &[u8],
            now: i64,
        ) -> Result<&'a str, SignatureError> {
            let find = |name: &str| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
            verify_signature(secrets, find, body, now, WINDOW)
        }

        fn without(name: &str, secrets: &[&Secret]) -> Vec<(&'static str, String)> {
            headers(secrets).into_iter().filter(|(known, _)| *known != name).collect()
        }

        fn with(name: &str, value: &str, secrets: &[&Secret]) -> Vec<(&'static str, String)> {
            let put =
                |(known, old): (&'static str, String)| (known, if known == name { value.to_owned() } else { old });
            headers(secrets).into_iter().map(put).collect()
        }

        #[test]
        fn either_scheme_alone_or_both_verify() {
            let key = secret("the");
            assert_eq!(verified(&[&key], &headers(&[&key]), BODY, 1000), Ok("evt_1"));
            assert_eq!(verified(&[&key], &without(HEADER, &[&key]), BODY, 1300), Ok("evt_1"));
            assert_eq!(verified(&[&key], &without(STANDARD_HEADER, &[&key]), BODY, 700), Ok("evt_1"));
        }

        #[test]
        fn a_delivery_without_a_signature_an_id_or_a_time_is_refused() {
            let key = secret("the");
            let bare = [(ID_HEADER, "evt_1".to_owned()), (TIMESTAMP_HEADER, "1000".to_owned())];
            for headers in [bare.to_vec(), without(ID_HEADER, &[&key]), without(TIMESTAMP_HEADER, &[&key])] {
                assert_eq!(verified(&[&key], &headers, BODY, 1000), Err(SignatureError::Missing), "{headers:?}");
            }
        }

        #[test]
        fn one_scheme_that_fails_is_not_made_good_by_the_other() {
            let (key, other) = (secret("the"), secret("other"));
            for (name, forged) in [
                (HEADER, sign(&[&other], 1000, "evt_1", BODY)),
                (STANDARD_HEADER, sign_standard(&[&other], 1000, "evt_1", BODY)),
            ] {
                let headers = with(name, &forged, &[&key]);
                assert_eq!(verified(&[&key], &headers, BODY, 1000), Err(SignatureError::Mismatch), "{name}");
            }
        }

        #[test]
        fn what_was_changed_truncated_or_replayed_is_refused() {
            let key = secret("the");
            for alone in [HEADER, STANDARD_HEADER] {
                let headers = without(alone, &[&key]);
                assert_eq!(verified(&[&key], &headers, &BODY[1..], 1000), Err(SignatureError::Mismatch));
                assert_eq!(verified(&[&key], &headers, BODY, 1301), Err(SignatureError::Expired));
                assert_eq!(verified(&[&key], &headers, BODY, 699), Err(SignatureError::Expired));
                // The `webhook-timestamp` header does not matter to this library's scheme, whose signature contains the
                // time.
                let is_signed = |name: &str| alone != STANDARD_HEADER || name != TIMESTAMP_HEADER;
                for (name, value) in headers.iter().filter(|(name, _)| is_signed(name)) {
                    for end in 0..value.len() {
                        let cut = with(name, &value[..end], &[&key]);
                        let cut: Vec<_> = cut.into_iter().filter(|(known, _)| *known != alone).collect();
                        assert!(verified(&[&key], &cut, BODY, 1000).is_err(), "{name} cut to {end}");
                    }
                }
            }
            // The time in one header is not the time that was signed.
            assert!(verified(&[&key], &with(TIMESTAMP_HEADER, "1001", &[&key]), BODY, 1000).is_err());
        }

        #[test]
        fn a_signed_text_is_not_cut_into_id_and_body_elsewhere() {
            let key = secret("the");
            let body = b"1.5 of it";
            let signature = sign(&[&key], 1000, "evt_1", body);
            let moved = [(ID_HEADER, "evt_1.1".to_owned()), (HEADER, signature)];
            assert_eq!(verified(&[&key], &moved, b"5 of it", 1000), Err(SignatureError::Malformed));
        }

        #[test]
        fn a_repeated_signature_is_refused_and_another_version_skipped() {
            let key = secret("the");
            let one = sign_standard(&[&key], 1000, "evt_1", BODY);
            let doubled = vec![one.clone(); 17].join(" ");
            let headers = with(STANDARD_HEADER, &doubled, &[&key]);
            assert_eq!(verified(&[&key], &headers, BODY, 1000), Err(SignatureError::Malformed));
            let newer = with(STANDARD_HEADER, &format!("v1a,xyz {one}"), &[&key]);
            assert_eq!(verified(&[&key], &newer, BODY, 1000), Ok("evt_1"));
        }

        #[test]
        fn either_secret_verifies_in_a_rotation_and_then_the_new_alone() {
            let (old, new) = (secret("old"), secret("new"));
            let meanwhile = headers(&[&new, &old]);
            assert_eq!(verified(&[&old], &meanwhile, BODY, 1000), Ok("evt_1"));
            assert_eq!(verified(&[&new], &meanwhile, BODY, 1000), Ok("evt_1"));
            assert_eq!(verified(&[&old], &headers(&[&new]), BODY, 1000), Err(SignatureError::Mismatch));
        }

        #[test]
        fn a_secret_reads_back_and_a_callers_own_is_its_bytes() {
            let made = Secret::generate(&SystemEntropy);
            assert_eq!(Secret::from_text(&made.reveal()).unwrap().0, made.0);
            assert_eq!(made.0.len(), 32);
            let own = Secret::from_text("a secret of at least 24 bytes").unwrap();
            assert_eq!(own.0, b"a secret of at least 24 bytes");
            assert_eq!(Secret::from_text(&own.reveal()).unwrap().0, own.0);
            assert_eq!(Secret::from_text("short").unwrap_err(), SignatureError::ShortSecret);
            assert_eq!(Secret::from_text("whsec_c2hvcnQ=").unwrap_err(), SignatureError::ShortSecret);
            assert_eq!(Secret::from_text("whsec_!").unwrap_err(), SignatureError::MalformedSecret);
            assert_ne!(made.print(), own.print());
        }

        #[test]
        fn a_known_answer_of_standard_webhooks() {
            // SOURCE: the specification's test vector, as in its libraries (id, time, body and secret).
            let key = Secret::from_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
            let body = br#"{"test": 2432232314}"#;
            let signed = sign_standard(&[&key], 1_614_265_330, "msg_p5jXN8AQM9LWM0D4loKWxJek", body);
            assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        }
    }
}
