//! Reviewers who prove who they are by tokens of an OpenID provider, instead of API keys.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use rulekeep::extension::checked_person;
use rulekeep::system::Timestamp;

use super::keys::Entry;
use super::limit::Time;
use crate::tokens::Verifier;

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
        let named = claims.name(&self.claim)?;
        let reviewer = checked_person("reviewer", named).map_err(|error| error.message())?;
        if reviewer != named {
            return Err(format!("the token's claim {} has blanks around the reviewer's name", self.claim));
        }
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

/// Largest number of people whose rate limits are kept.
const MOST_KNOWN: usize = 10_000;
