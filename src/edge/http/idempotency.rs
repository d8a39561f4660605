//! Answers that are given again to who asks again: a client's retry decides and records nothing twice.

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use sha2::{Digest as _, Sha256};

use crate::model::{Error, KeyId, Timestamp};

/// What a request under an idempotency key is known by: whose key, which call, and the key itself.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Known {
    pub(super) key: KeyId,
    pub(super) call: String,
    pub(super) idempotency_key: String,
}

/// An answer that was given.
#[derive(Debug, Clone)]
pub(super) struct Given {
    /// The digest of the body that it answers.
    asked: [u8; 32],
    at: Timestamp,
    pub(super) answer: Arc<Result<Vec<u8>, Error>>,
}

/// The bytes that one takes, roughly.
#[derive(Clone)]
struct Bytes;

impl Weighter<Known, Given> for Bytes {
    fn weight(&self, known: &Known, given: &Given) -> u64 {
        let body = given.answer.as_ref().as_ref().map_or(0, Vec::len);
        (body + known.call.len() + known.idempotency_key.len() + BESIDE) as u64
    }
}

/// The last answers under idempotency keys.
pub(super) struct Answers {
    cache: Cache<Known, Given, Bytes>,
}

/// Bytes that are kept: of answers to `/enforce`, about 60,000.
const MOST: u64 = 64 << 20;
/// Answers that there is room for at once without a larger table.
const USUAL: usize = 16_384;
/// What an answer takes beside its text and its name.
const BESIDE: usize = 256;
/// How long they are kept, in milliseconds: a day.
const LASTS: i64 = 24 * 3_600_000;

impl Answers {
    pub(super) fn new() -> Self {
        Self { cache: Cache::with_weighter(USUAL, MOST, Bytes) }
    }

    /// The answer that was given, or that `make` gives now; true where it was given before. Who asks the same at the same
    /// time waits for the one who makes it.
    pub(super) async fn once(
        &self,
        known: &Known,
        body: &[u8],
        now: Timestamp,
        make: impl Future<Output = Result<Vec<u8>, Error>>,
    ) -> (Arc<Result<Vec<u8>, Error>>, bool) {
        let asked: [u8; 32] = Sha256::digest(body).into();
        let guard = loop {
            match self.cache.get_value_or_guard_async(known).await {
                Err(guard) => break guard,
                Ok(given) if is_over(&given, now) => drop(self.cache.remove_if(known, |given| is_over(given, now))),
                Ok(given) if given.asked == asked => return (given.answer, true),
                Ok(_) => {
                    let message = "this idempotency key came with another body before".to_owned();
                    return (Arc::new(Err(Error::Conflict { message })), false);
                }
            }
        };
        let answer = Arc::new(make.await);
        // Who is refused has done nothing: the key may come again, with what is right, or when it can be done.
        if answer.is_ok() {
            // It fails where the place was taken meanwhile, which nobody can.
            let _ = guard.insert(Given { asked, at: now, answer: Arc::clone(&answer) });
        }
        (answer, false)
    }
}

fn is_over(given: &Given, now: Timestamp) -> bool {
    now.as_millis().saturating_sub(given.at.as_millis()) >= LASTS
}

/// The key that a request came with.
pub(super) fn key_of(headers: &HeaderMap) -> Result<Option<String>, Error> {
    const NAME: HeaderName = HeaderName::from_static("idempotency-key");
    let mut values = headers.get_all(NAME).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let is_one = values.next().is_none() && (1..=255).contains(&text.len());
    if is_one && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
        return Ok(Some(text.to_owned()));
    }
    Err(Error::input("Idempotency-Key", "expected one, of 1 to 255 visible characters of ASCII"))
}
