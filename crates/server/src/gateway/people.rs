//! Reviewers who prove who they are by tokens of an OpenID provider, instead of API keys.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rulekeep::extension::checked_person;
use rulekeep::system::Timestamp;
use serde_json::Value;

use super::keys::Entry;
use super::limit::Time;
use crate::tokens::{Claims, Verifier};

/// The people whom a provider knows.
pub(super) struct People {
    verifier: Verifier,
    /// The claim with the name of the reviewer.
    claim: String,
    /// The people who sent a token, with their rate limits, by name and subject.
    known: Mutex<HashMap<(String, String), Arc<Entry>>>,
}

impl People {
    pub(super) fn new(verifier: Verifier, claim: String) -> Self {
        Self { verifier, claim, known: Mutex::default() }
    }

    /// Checks a token. Returns the person and the token's end, or the reason why it is refused.
    pub(super) fn admit(&self, token: &str, now: Timestamp, time: &Time) -> Result<(Arc<Entry>, Timestamp), String> {
        let claims = self.verifier.check(token, now).map_err(|error| error.to_string())?;
        let reviewer = name_in(&claims, &self.claim)?;
        let until = Timestamp::from_millis(claims.expires.saturating_mul(1000));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_KNOWN {
            known.clear();
        }
        let entry = known.entry((reviewer.clone(), claims.subject.clone()));
        let issuer = self.verifier.issuer();
        let entry = entry.or_insert_with(|| Entry::of_person(reviewer, issuer, &claims.subject, now, time));
        Ok((Arc::clone(entry), until))
    }
}

/// The reviewer's name in a token.
fn name_in(claims: &Claims, claim: &str) -> Result<String, String> {
    let name = match claim {
        "sub" => Some(&*claims.subject),
        claim => claims.other.get(claim).and_then(Value::as_str),
    };
    let name = name.ok_or_else(|| format!("the token has no claim {claim:?} with the reviewer's name"))?;
    if claim == "email" && claims.other.get("email_verified") != Some(&Value::Bool(true)) {
        return Err("the token's e-mail address is not verified: expected email_verified".to_owned());
    }
    checked_person("reviewer", name).map_err(|error| error.message())
}

/// Largest number of people whose rate limits are kept.
const MOST_KNOWN: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_address_names_a_reviewer_only_if_it_is_verified() {
        let named = |other: Value, claim: &str| {
            let Value::Object(other) = other else { panic!("claims are an object") };
            name_in(&Claims { subject: "u-7".to_owned(), scopes: Vec::new(), expires: 0, other }, claim)
        };
        assert_eq!(named(json!({}), "sub").unwrap(), "u-7");
        assert_eq!(named(json!({ "email": "ann@x", "email_verified": true }), "email").unwrap(), "ann@x");
        assert_eq!(named(json!({ "name": "ann" }), "name").unwrap(), "ann");
        for (other, claim) in [
            (json!({ "email": "ann@x" }), "email"),
            (json!({ "email": "ann@x", "email_verified": "true" }), "email"),
            (json!({ "name": ["ann"] }), "name"),
            (json!({ "name": "a\nb" }), "name"),
            (json!({}), "name"),
        ] {
            assert!(named(other.clone(), claim).is_err(), "{other}");
        }
    }
}
