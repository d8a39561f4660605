//! Reads a call's parameters from the parts of an HTTP request: path, query, headers and body.

use axum::http::request::Parts;
use axum::http::{HeaderMap, Version, header};
use serde_json::{Map, Value};

use super::answer::Refusal;
use super::handle::Asked;
use crate::calls::{Params, Spec};
use rulekeep::Error;
use rulekeep::extension::excerpt;

/// Checks that a request head states its host and the end of its body unambiguously.
// SOURCE: RFC 9112, 3.2 (no host, or several) and 6.1 (codings; chunks are taken apart by now).
pub(super) fn check_head(parts: &Parts) -> Result<(), Error> {
    let mut hosts = parts.headers.get_all(header::HOST).iter();
    let is_named = hosts.next().is_some() || parts.version != Version::HTTP_11;
    if !is_named || hosts.next().is_some() {
        return Err(Error::input("Host", "expected the header once"));
    }
    let mut codings = parts.headers.get_all(header::TRANSFER_ENCODING).iter();
    let is_chunked = codings.next().is_none_or(|coding| coding.as_bytes().eq_ignore_ascii_case(b"chunked"));
    if !is_chunked || codings.next().is_some() {
        return Err(Error::input("Transfer-Encoding", "expected chunked alone, or none"));
    }
    Ok(())
}

/// The bearer token, if there is exactly one.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let value = values.next()?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    let is_one = values.next().is_none() && scheme.eq_ignore_ascii_case("bearer");
    is_one.then(|| token.trim_matches(' '))
}

/// Checks that a body is declared as JSON without encoding.
pub(super) fn check_content_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
    if codings.any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(Refusal::Coding);
    }
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let value = values.next().and_then(|value| value.to_str().ok()).unwrap_or_default();
    let essence = value.split(';').next().unwrap_or_default().trim();
    let is_utf8 = value.split(';').skip(1).all(|parameter| {
        let (name, set) = parameter.split_once('=').unwrap_or((parameter, ""));
        !name.trim().eq_ignore_ascii_case("charset") || set.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
    });
    if values.next().is_none() && essence.eq_ignore_ascii_case("application/json") && is_utf8 {
        return Ok(());
    }
    Err(Refusal::MediaType)
}

/// The named parameters of a call.
pub(super) fn params(Asked { spec, path, query, body }: Asked<'_>) -> Result<Params, Error> {
    let mut params = if spec.verb.has_body() { read_body(spec, body)? } else { read_query(query.unwrap_or_default())? };
    for (name, value) in path {
        params.fix(&name, value)?;
    }
    Ok(params)
}

/// Reads the body. A body that is not an object is reported as invalid input or as an invalid intent, depending on
/// the call.
fn read_body(spec: &Spec, body: &[u8]) -> Result<Params, Error> {
    let decides = spec.method == "enforce" || spec.method.starts_with("access/");
    let faulty = |message: String| if decides { Error::intent("body", message) } else { Error::input("body", message) };
    if body.is_empty() && !decides && spec.method != "intent" {
        return Ok(Params::default());
    }
    let text = std::str::from_utf8(body).map_err(|_| faulty("expected UTF-8".to_owned()))?;
    Params::read(text).map_err(|error| match error {
        Error::InvalidInput { field: "params", message } => faulty(message),
        other => other,
    })
}

/// Query parameters that are integers, and those that are booleans; all others are strings.
const NUMBERS: &[&str] = &["page", "pageSize"];
const FLAGS: &[&str] = &["evidence", "open", "request"];

fn read_query(query: &str) -> Result<Params, Error> {
    if !is_utf8_within(query) {
        return Err(Error::query("query", "expected UTF-8 in what is percent-encoded"));
    }
    let mut fields = Map::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let parameter = known(&name);
        if fields.contains_key(&*name) {
            return Err(Error::query(parameter, format!("{:?} occurs twice", excerpt(&name))));
        }
        let value = if NUMBERS.contains(&&*name) {
            let number = value.parse::<u64>().ok().filter(|_| value.bytes().all(|byte| byte.is_ascii_digit()));
            Value::from(number.ok_or_else(|| Error::query(parameter, "expected a whole number of 0 or more"))?)
        } else if FLAGS.contains(&&*name) {
            Value::from(value.parse::<bool>().map_err(|_| Error::query(parameter, "expected true or false"))?)
        } else {
            Value::from(value.into_owned())
        };
        fields.insert(name.into_owned(), value);
    }
    Ok(Params::of(fields))
}

/// Returns whether the percent-decoded query is UTF-8. Its separators are ASCII, so it is if and only if each part
/// is.
fn is_utf8_within(query: &str) -> bool {
    let mut decoded = Vec::with_capacity(query.len());
    let mut rest = query.as_bytes();
    while let [first, behind @ ..] = rest {
        let coded = if *first == b'%' { behind.first_chunk::<2>() } else { None };
        let byte = coded.and_then(|digits| hex::decode(digits).ok()?.pop());
        decoded.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { behind.get(2..).unwrap_or_default() } else { behind };
    }
    std::str::from_utf8(&decoded).is_ok()
}

/// The static name for the error's field.
fn known(name: &str) -> &'static str {
    NUMBERS.iter().chain(FLAGS).find(|known| **known == name).copied().unwrap_or("query")
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use proptest::prelude::*;

    use super::*;
    use crate::calls::CALLS;

    fn header(name: &header::HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn one_bearer_token_is_read_and_two_are_none() {
        let read = |values: &[&str]| bearer(&header(&header::AUTHORIZATION, values)).map(str::to_owned);
        assert_eq!(read(&["Bearer abc"]).as_deref(), Some("abc"));
        assert_eq!(read(&["bEARER  abc"]).as_deref(), Some("abc"));
        for none in [&["Basic abc"][..], &["abc"], &["Bearerabc"], &["Bearer a", "Bearer b"], &[]] {
            assert_eq!(read(none), None, "{none:?}");
        }
    }

    #[test]
    fn only_json_in_utf8_is_read() {
        let is_read = |value: &str| check_content_type(&header(&header::CONTENT_TYPE, &[value])).is_ok();
        assert!(is_read("application/json") && is_read("Application/JSON; charset=UTF-8"));
        for other in ["text/plain", "application/json; charset=latin1", "application/x-www-form-urlencoded", ""] {
            assert!(!is_read(other), "{other}");
        }
        assert!(check_content_type(&HeaderMap::new()).is_err());
    }

    #[test]
    fn what_is_coded_is_not_read() {
        let coded = |codings: &[&str]| {
            let mut headers = header(&header::CONTENT_ENCODING, codings);
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            matches!(check_content_type(&headers), Err(Refusal::Coding))
        };
        assert!(!coded(&[]) && !coded(&["identity"]) && !coded(&["Identity"]));
        assert!(coded(&["gzip"]) && coded(&["identity, gzip"]) && coded(&["identity", "br"]) && coded(&[""]));
    }

    #[test]
    fn a_query_is_read_with_its_types() {
        let params = read_query("entityId=a%20b&page=2&evidence=true&from=2026-01-01T00%3A00%3A00Z").unwrap();
        assert_eq!(params.get("entityId").unwrap(), "a b");
        assert_eq!(params.get("page").unwrap(), 2);
        assert_eq!(params.get("evidence").unwrap(), true);
        assert_eq!(
            read_query("entityId=%C3%BC%E2%82%AC%zz%4&from=%EF%BF%BD").unwrap().get("entityId").unwrap(),
            "\u{fc}\u{20ac}%zz%4"
        );
        for wrong in [
            "entityId=%ff",
            "entityId=a%C3&from=%A9",
            "%80=a",
            "page=-1",
            "page=1.5",
            "page=%2B2",
            "page=",
            "evidence=1",
            "entityId=a&entityId=b",
        ] {
            assert_eq!(read_query(wrong).unwrap_err().code(), "INVALID_QUERY", "{wrong}");
        }
    }

    /// Texts similar to valid bodies, and others.
    fn any_body() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..64),
            r#"\{("(agentId|input|intent|context|page|id)":("[^"]{0,8}"|-?[0-9]{1,22}|null|\{"a":1\}|\[{0,80}),?){0,4}\}?"#
                .prop_map(String::into_bytes),
        ]
    }

    proptest! {
        #[test]
        fn whatever_comes_is_read_or_a_fault_of_the_client(
            place in 0..CALLS.len(),
            query in proptest::option::of("((page|pageSize|entityId|from|evidence|open|%[0-9a-f]{0,2}|[ -~]{0,4})=?([ -~]{0,12}|[0-9]{1,22})&?){0,5}"),
            value in "\\PC{0,12}",
            body in any_body(),
        ) {
            let entry = &CALLS[place];
            let path = vec![("agentId".to_owned(), value)];
            let asked = Asked { spec: entry.spec, path, query: query.as_deref(), body: &body };
            match params(asked).and_then(entry.read) {
                Ok(_) => {}
                Err(error) => prop_assert!((400..500).contains(&error.http_status()), "{:?}", error),
            }
        }
    }
}
