//! Access tokens of an OAuth 2.0 authorization server or an OpenID provider: JWTs, checked with the keys in a local
//! file. Nothing here uses the network.
//!
//! [`Verifier`] accepts signatures of asymmetric algorithms only. It finds the key by the token's `kid`, and takes
//! the algorithm from the key, never from the token alone.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error as JwtError, ErrorKind};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, Validation, decode, decode_header};
use ring::signature::{self as ring_signature, RsaPublicKeyComponents, UnparsedPublicKey};
use rulekeep::system::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

/// Checks access tokens of one issuer for one audience. Can be shared between threads.
#[derive(Debug)]
pub struct Verifier {
    path: PathBuf,
    issuer: String,
    audience: String,
    /// The key file as last read, and its keys. Locked while the file is read.
    keys: Mutex<(Vec<u8>, Arc<Keys>)>,
}

/// The claims of a token that was accepted.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Claims {
    /// The claim `sub`, not empty.
    pub subject: String,
    /// The scopes that were granted: the words of `scope`, or of `scp`, which some servers write as a list.
    pub scopes: Vec<String>,
    /// The time from which the token is refused, in seconds since 1970, with the tolerance.
    pub expires: i64,
    /// All other claims as they stand in the token.
    pub other: Map<String, Value>,
}

impl Claims {
    /// The text of a claim that names a person or a program; `email` counts only with `email_verified`.
    ///
    /// # Errors
    ///
    /// Says what is missing. The token is accepted all the same.
    pub fn name(&self, claim: &str) -> Result<&str, String> {
        let name = match claim {
            "sub" => Some(&*self.subject),
            claim => self.other.get(claim).and_then(Value::as_str).filter(|name| !name.is_empty()),
        };
        let name = name.ok_or_else(|| format!("the token has no text as its claim {claim}"))?;
        if claim == "email" && self.other.get("email_verified") != Some(&Value::Bool(true)) {
            return Err("the token's e-mail address is not verified: expected email_verified".to_owned());
        }
        Ok(name)
    }
}

/// The reason why a token is refused. No message repeats the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The key file cannot be used. While that lasts, every token is refused.
    #[error("the key file {}: {why}", path.display())]
    Keys {
        /// The file.
        path: PathBuf,
        /// The problem, and what was expected.
        why: String,
    },
    /// The text is not a JWT with a signature.
    #[error("the token is not a signed JWT: {0}")]
    Malformed(String),
    /// The token's algorithm is symmetric, unknown, or another than the key's.
    #[error("the token's alg is not permitted: expected an asymmetric algorithm that fits the key")]
    Algorithm,
    /// The token names no key, or one that is not in the key file.
    #[error("the token's kid names no usable key of the key file")]
    UnknownKey,
    /// The signature is wrong.
    #[error("the token's signature is wrong")]
    Signature,
    /// The token is from another issuer, or names none.
    #[error("the token's iss is not {expected:?}")]
    Issuer {
        /// The issuer of this verifier.
        expected: String,
    },
    /// The token was made for another audience, or names none.
    #[error("the token's aud does not include {expected:?}")]
    Audience {
        /// The audience of this verifier.
        expected: String,
    },
    /// The token has expired.
    #[error("the token has expired")]
    Expired,
    /// The token is not valid yet.
    #[error("the token is not valid yet")]
    NotYet,
    /// A claim is missing or has the wrong form.
    #[error("the token's claim {0} is missing, or has the wrong form")]
    Claim(&'static str),
}

impl Verifier {
    /// Creates a verifier with the keys of a JWK Set (RFC 7517) in a file. The file is read again at each check, so a
    /// key that is added or removed counts at once. Keys without `kid`, symmetric keys and keys for other uses are
    /// ignored.
    ///
    /// # Errors
    ///
    /// [`Error::Keys`] if the file cannot be read or has no usable key.
    pub fn load(path: impl AsRef<Path>, issuer: &str, audience: &str) -> Result<Self, Error> {
        // The program may have chosen a provider, which then applies to the whole process.
        if CryptoProvider::try_get_default().is_none() {
            let _ = PROVIDER.install_default();
        }
        let path = path.as_ref().to_owned();
        let (issuer, audience) = (issuer.to_owned(), audience.to_owned());
        let verifier = Self { path, issuer, audience, keys: Mutex::default() };
        verifier.keys().map(|_| verifier)
    }

    /// The issuer whose tokens are accepted.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Checks a token: its signature, `iss`, `aud`, and with 60 seconds of tolerance `exp` and `nbf`.
    ///
    /// # Errors
    ///
    /// See [`Error`].
    pub fn check(&self, token: &str, now: Timestamp) -> Result<Claims, Error> {
        let keys = self.keys()?;
        let header = decode_header(token).map_err(|error| self.reason(&error))?;
        if header.alg.family() == AlgorithmFamily::Hmac {
            return Err(Error::Algorithm);
        }
        let key = header.kid.and_then(|kid| keys.get(&kid)).ok_or(Error::UnknownKey)?;
        if !key.algorithms.contains(&header.alg) {
            return Err(Error::Algorithm);
        }
        let mut rules = Validation::new(header.alg);
        rules.set_audience(&[&self.audience]);
        rules.set_required_spec_claims(&["aud"]);
        rules.validate_exp = false; // below, against `now`
        let claims = decode::<Map<String, Value>>(token, &key.key, &rules).map_err(|error| self.reason(&error))?.claims;
        self.accept(claims, now)
    }

    fn accept(&self, mut claims: Map<String, Value>, now: Timestamp) -> Result<Claims, Error> {
        if claims.get("iss").and_then(Value::as_str) != Some(&self.issuer) {
            return Err(Error::Issuer { expected: self.issuer.clone() });
        }
        let seconds = now.as_millis().div_euclid(1000);
        let expires = time(&claims, "exp")?.ok_or(Error::Claim("exp"))?.saturating_add(TOLERANCE);
        if seconds >= expires {
            return Err(Error::Expired);
        }
        if time(&claims, "nbf")?.is_some_and(|start| seconds < start.saturating_sub(TOLERANCE)) {
            return Err(Error::NotYet);
        }
        let subject = claims.remove("sub").and_then(|sub| sub.as_str().map(str::to_owned));
        let subject = subject.filter(|subject| !subject.is_empty()).ok_or(Error::Claim("sub"))?;
        let scopes = ["scope", "scp"].into_iter().find_map(|name| claims.remove(name));
        Ok(Claims { subject, scopes: scopes.as_ref().map(words).unwrap_or_default(), expires, other: claims })
    }

    /// The keys in the file as it is now.
    fn keys(&self) -> Result<Arc<Keys>, Error> {
        let mut known = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |why: String| Error::Keys { path: self.path.clone(), why };
        let mut text = Vec::new();
        let read = File::open(&self.path).and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut text));
        read.map_err(|error| failed(error.to_string()))?;
        if text.len() as u64 > MOST_BYTES {
            return Err(failed(format!("it is longer than {MOST_BYTES} bytes")));
        }
        if known.0 != text {
            *known = (Vec::new(), Arc::default()); // no key of an earlier file counts beside a broken one
            *known = (text.clone(), Arc::new(Key::all(&text).map_err(failed)?));
        }
        if known.1.is_empty() {
            return Err(failed("it has no key for signatures with a kid: expected a JWK Set (RFC 7517)".to_owned()));
        }
        Ok(Arc::clone(&known.1))
    }

    fn reason(&self, error: &JwtError) -> Error {
        match error.kind() {
            ErrorKind::InvalidAlgorithm | ErrorKind::UnsupportedAlgorithm => Error::Algorithm,
            ErrorKind::Json(error) if error.to_string().starts_with("unknown variant") => Error::Algorithm,
            ErrorKind::InvalidSignature => Error::Signature,
            ErrorKind::InvalidAudience | ErrorKind::InvalidClaimFormat(_) | ErrorKind::MissingRequiredClaim(_) => {
                Error::Audience { expected: self.audience.clone() }
            }
            ErrorKind::Json(_) => Error::Malformed("its header or its claims are not the expected JSON".to_owned()),
            other => Error::Malformed(format!("{other:?}")),
        }
    }
}

/// The usable keys of a file, by `kid`.
type Keys = HashMap<String, Key>;

/// A public key, and the algorithms it may be used with.
#[derive(Debug)]
struct Key {
    key: DecodingKey,
    algorithms: Vec<Algorithm>,
}

impl Key {
    /// Reads the usable keys of a JWK Set.
    fn all(text: &[u8]) -> Result<Keys, String> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Value>,
        }
        let set: Set =
            serde_json::from_slice(text).map_err(|error| format!("expected a JWK Set (RFC 7517): {error}"))?;
        let mut keys = HashMap::new();
        // A set may have keys that only others understand.
        for jwk in set.keys.into_iter().filter_map(|key| serde_json::from_value::<Jwk>(key).ok()) {
            let (Some(kid), Some(key)) = (&jwk.common.key_id, Key::of(&jwk)) else { continue };
            if keys.insert(kid.clone(), key).is_some() {
                return Err(format!("two keys have the kid {kid:?}"));
            }
        }
        Ok(keys)
    }

    /// The key, if it is one for signatures of a supported asymmetric algorithm.
    fn of(jwk: &Jwk) -> Option<Self> {
        if jwk.common.public_key_use.as_ref().is_some_and(|purpose| *purpose != PublicKeyUse::Signature) {
            return None;
        }
        let fitting = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => AlgorithmFamily::Rsa.algorithms(),
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => &[Algorithm::ES256],
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P384 => &[Algorithm::ES384],
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => &[Algorithm::EdDSA],
            _ => return None,
        };
        let is_named = |one: &Algorithm| jwk.common.key_algorithm.is_none_or(|named| KeyAlgorithm::from(*one) == named);
        let algorithms = fitting.iter().copied().filter(is_named).collect();
        Some(Self { key: DecodingKey::from_jwk(jwk).ok()?, algorithms })
    }
}

/// A time in seconds since 1970, if the claim is there.
fn time(claims: &Map<String, Value>, name: &'static str) -> Result<Option<i64>, Error> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    // The fraction that RFC 7519 permits does not matter. A conversion to an integer saturates.
    #[allow(clippy::cast_possible_truncation)]
    let seconds = value.as_i64().or_else(|| value.as_f64().map(|seconds| seconds as i64));
    seconds.filter(|seconds| *seconds >= 0).map(Some).ok_or(Error::Claim(name))
}

/// The words of a text, or the texts in a list.
fn words(value: &Value) -> Vec<String> {
    let texts = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    texts.iter().filter_map(Value::as_str).flat_map(str::split_whitespace).map(str::to_owned).collect()
}

/// Signatures by `ring`, which TLS uses as well, so that the program carries no second implementation.
static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: |algorithm, key| Ok(Box::new(Ring { algorithm: *algorithm, key: key.clone() })),
    key_utils: KeyUtils::new_unimplemented(),
};

struct Ring {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for Ring {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl signature::Verifier<Vec<u8>> for Ring {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        use ring_signature as by;
        let rsa = |parameters| match self.key.kind() {
            DecodingKeyKind::RsaModulusExponent { n, e } => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            DecodingKeyKind::SecretOrDer(_) => Err(ring::error::Unspecified),
        };
        let other = |algorithm: &'static dyn by::VerificationAlgorithm| match self.key.kind() {
            DecodingKeyKind::SecretOrDer(bytes) => UnparsedPublicKey::new(algorithm, bytes).verify(message, signature),
            DecodingKeyKind::RsaModulusExponent { .. } => Err(ring::error::Unspecified),
        };
        let verified = match self.algorithm {
            Algorithm::RS256 => rsa(&by::RSA_PKCS1_2048_8192_SHA256),
            Algorithm::RS384 => rsa(&by::RSA_PKCS1_2048_8192_SHA384),
            Algorithm::RS512 => rsa(&by::RSA_PKCS1_2048_8192_SHA512),
            Algorithm::PS256 => rsa(&by::RSA_PSS_2048_8192_SHA256),
            Algorithm::PS384 => rsa(&by::RSA_PSS_2048_8192_SHA384),
            Algorithm::PS512 => rsa(&by::RSA_PSS_2048_8192_SHA512),
            Algorithm::ES256 => other(&by::ECDSA_P256_SHA256_FIXED),
            Algorithm::ES384 => other(&by::ECDSA_P384_SHA384_FIXED),
            Algorithm::EdDSA => other(&by::ED25519),
            _ => Err(ring::error::Unspecified),
        };
        verified.map_err(|_| signature::Error::new())
    }
}

/// Seconds by which the clocks of the issuer and of this machine may differ.
const TOLERANCE: i64 = 60;
/// The largest key file.
const MOST_BYTES: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::json;

    use super::*;

    #[test]
    fn an_address_is_a_name_only_if_it_is_verified() {
        let name = |other: Value, claim: &str| {
            let Value::Object(other) = other else { panic!("claims are an object") };
            Claims { subject: "u-7".to_owned(), scopes: Vec::new(), expires: 0, other }.name(claim).map(str::to_owned)
        };
        assert_eq!(name(json!({}), "sub").unwrap(), "u-7");
        assert_eq!(name(json!({ "email": "ann@x", "email_verified": true }), "email").unwrap(), "ann@x");
        assert_eq!(name(json!({ "name": "ann" }), "name").unwrap(), "ann");
        for (other, claim) in [
            (json!({ "email": "ann@x" }), "email"),
            (json!({ "email": "ann@x", "email_verified": "true" }), "email"),
            (json!({ "name": ["ann"] }), "name"),
            (json!({ "name": "" }), "name"),
            (json!({}), "name"),
        ] {
            assert!(name(other.clone(), claim).is_err(), "{other}");
        }
    }

    /// Tokens that another implementation signed; see `tokens.mjs`.
    #[derive(Deserialize)]
    struct Samples {
        issuer: String,
        audience: String,
        now: i64,
        jwks: Value,
        accepted: BTreeMap<String, String>,
        refused: BTreeMap<String, (String, String)>,
    }

    fn samples() -> Samples {
        serde_json::from_str(include_str!("../tests/data/tokens.json")).unwrap()
    }

    fn verifier(samples: &Samples) -> (tempfile::TempDir, Verifier) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.json");
        std::fs::write(&path, samples.jwks.to_string()).unwrap();
        let verifier = Verifier::load(&path, &samples.issuer, &samples.audience).unwrap();
        (dir, verifier)
    }

    #[test]
    fn tokens_of_another_implementation_are_judged_rightly() {
        let samples = samples();
        let (_dir, verifier) = verifier(&samples);
        let now = Timestamp::from_millis(samples.now * 1000);
        for (name, token) in &samples.accepted {
            let checked = verifier.check(token, now);
            assert!(checked.is_ok(), "{name}: {checked:?}");
        }
        for (name, (why, token)) in &samples.refused {
            let checked = verifier.check(token, now);
            assert!(checked.as_ref().is_err_and(|error| format!("{error:?}").starts_with(why)), "{name}: {checked:?}");
        }
        let claims = verifier.check(&samples.accepted["ES256"], now).unwrap();
        assert_eq!(
            (claims.subject.as_str(), claims.scopes),
            ("ann", vec!["mcp:call".to_owned(), "mcp:read".to_owned()])
        );
        assert_eq!(claims.other["iss"], samples.issuer);
    }

    #[test]
    fn a_token_is_valid_from_its_start_to_its_end() {
        let samples = samples();
        let (_dir, verifier) = verifier(&samples);
        let (start, end) = (4_000_000_000, 4_000_003_600);
        for (second, is_valid) in [(start - 61, false), (start - 60, true), (end + 59, true), (end + 60, false)] {
            let checked = verifier.check(&samples.accepted["EdDSA"], Timestamp::from_millis(second * 1000));
            assert_eq!(checked.is_ok(), is_valid, "{second}: {checked:?}");
        }
    }

    #[test]
    fn a_changed_key_file_counts_at_once() {
        let samples = samples();
        let (dir, verifier) = verifier(&samples);
        let path = dir.path().join("keys.json");
        let check = |alg: &str| verifier.check(&samples.accepted[alg], Timestamp::from_millis(samples.now * 1000));
        assert!(check("RS256").is_ok() && check("EdDSA").is_ok());
        let keys = samples.jwks["keys"].as_array().unwrap();
        let without: Vec<&Value> = keys.iter().filter(|key| key["kid"] != "EdDSA").collect();
        std::fs::write(&path, serde_json::json!({ "keys": without }).to_string()).unwrap();
        assert_eq!((check("RS256").is_ok(), check("EdDSA")), (true, Err(Error::UnknownKey)));
        for (text, why) in [
            (r#"{"keys":["#.to_owned(), "JWK Set"),
            (r#"{"keys":[]}"#.to_owned(), "no key"),
            (serde_json::json!({ "keys": [keys[0], keys[0]] }).to_string(), "two keys"),
            (" ".repeat(1 << 21), "longer"),
        ] {
            std::fs::write(&path, text).unwrap();
            for _ in 0..2 {
                let error = check("RS256").unwrap_err();
                assert!(matches!(error, Error::Keys { .. }) && error.to_string().contains(why), "{error}");
            }
        }
        std::fs::remove_file(&path).unwrap();
        assert!(matches!(check("RS256"), Err(Error::Keys { .. })));
        std::fs::write(&path, samples.jwks.to_string()).unwrap();
        assert!(check("EdDSA").is_ok());
    }

    #[test]
    fn scopes_are_words_or_a_list() {
        for (value, expected) in [
            (serde_json::json!("a  b"), vec!["a", "b"]),
            (serde_json::json!(["a", "b c", 1]), vec!["a", "b", "c"]),
            (serde_json::json!(1), vec![]),
        ] {
            assert_eq!(words(&value), expected);
        }
    }
}
