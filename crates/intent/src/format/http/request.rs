//! The forms in which a request is written: a request line with headers and a body, or a library call.

use super::known;
use crate::format::tables;

/// A request, as far as it is written out.
#[derive(Debug, Clone)]
pub(super) struct Request<'t> {
    pub method: String,
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, &'t str)>,
    pub body: Option<&'t str>,
}

impl<'t> Request<'t> {
    /// Parses `POST /v1/payments HTTP/1.1`, headers and a body.
    pub(super) fn from_text(text: &'t str) -> Option<Self> {
        let (line, mut rest) = text.split_once('\n').unwrap_or((text, ""));
        let mut words = line.split_whitespace();
        let (method, target) = (words.next()?, words.next()?);
        known::method(method)?;
        let is_url = target.split_once("://").is_some_and(|(scheme, _)| {
            !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        });
        let third = words.next();
        let versioned = third.is_some_and(|third| third.starts_with("HTTP/")) && words.next().is_none();
        if !is_url && !(target.starts_with('/') && (versioned || tables::http().core_methods.has(method))) {
            return None;
        }
        let inline = third.filter(|third| third.starts_with(['{', '['])).and_then(|third| line.find(third));
        if third.is_some() && !versioned && inline.is_none() {
            return None;
        }
        let mut request =
            Self { method: method.to_owned(), target: target.to_owned(), headers: Vec::new(), body: None };
        if let Some(at) = inline {
            request.body = text.get(at..);
            return Some(request);
        }
        while !rest.is_empty() {
            let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
            let line = line.trim();
            if line.is_empty() || line.starts_with(['{', '[']) {
                let body = if line.is_empty() { after } else { rest };
                request.body = Some(body.trim()).filter(|body| !body.is_empty());
                return Some(request);
            }
            let header = line.split_once(':').filter(|(name, _)| {
                !name.is_empty()
                    && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
            });
            // Words that are not a header: the text continues in prose.
            let (name, value) = header?;
            if request.headers.len() < MOST_HEADERS {
                request.headers.push((name.to_ascii_lowercase(), value.trim()));
            }
            rest = after;
        }
        Some(request)
    }

    /// Parses `requests.delete("https://...")` or `fetch('https://...', { method: 'DELETE' })`.
    pub(super) fn from_call(text: &'t str) -> Option<Self> {
        let text = text.strip_prefix("await ").unwrap_or(text);
        let (callee, arguments) = text.split_once('(').filter(|(callee, _)| callee.len() <= LONGEST_CALLEE)?;
        let mut names = callee.split('.');
        let caller = names.next().unwrap_or("");
        let function = names.next_back().unwrap_or("").to_ascii_uppercase();
        if !tables::http().callers.has(caller) {
            return None;
        }
        let mut strings = strings(arguments);
        let (mut target, mut end) = strings.next()?;
        let mut method = known::method(&function).map(|_| function);
        if known::method(&target.to_ascii_uppercase()).is_some() {
            method = Some(target.to_ascii_uppercase());
            (target, end) = strings.next()?;
        }
        if !target.contains("://") && !target.starts_with('/') {
            return None;
        }
        let rest = arguments.get(end..).unwrap_or("");
        let said = super::body::pairs(rest)
            .into_iter()
            .find(|(key, _)| key == "method")
            .map(|(_, value)| value.to_ascii_uppercase());
        let method = said.filter(|said| known::method(said).is_some()).or(method).unwrap_or_else(|| "GET".to_owned());
        Some(Self { method, target: target.to_owned(), headers: Vec::new(), body: Some(rest) })
    }

    pub(super) fn header(&self, name: &str) -> Option<&'t str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }
}

/// The quoted strings among a call's first arguments, each with the place after it.
fn strings(text: &str) -> impl Iterator<Item = (&str, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = text.get(at..)?;
        let open = rest.find(['"', '\'', '`'])?;
        let quote = rest.get(open..)?.chars().next()?;
        let inside = rest.get(open + 1..)?;
        let length = inside.find(quote)?;
        at += open + length + 2;
        Some((inside.get(..length)?, at))
    })
    .take(2)
}

/// Maximum number of headers read.
const MOST_HEADERS: usize = 128;
/// Maximum length of a library function's name, in bytes.
const LONGEST_CALLEE: usize = 40;
