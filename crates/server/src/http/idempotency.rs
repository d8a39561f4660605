//! The idempotency key of a request.

use axum::http::{HeaderMap, HeaderName};

use rulekeep::Error;

/// The idempotency key that a request carries.
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
