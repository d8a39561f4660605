//! The console: a web page for people, which uses the same paths as programs.
//!
//! The page and its parts are in `console/`, one file for each subject, and are embedded unchanged: there is no build
//! step, and nothing is loaded from elsewhere. They contain no data, so they are served without a key. The page
//! fetches its data with an admin key, which stays in the page's memory. See `docs/reference/console.md`.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::Request as HttpRequest;
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::Response;
use axum::routing::get;

use super::answer::Refusal;
use super::handle::App;

/// A part of the page: its path, its content type and its text.
struct Part {
    path: &'static str,
    content_type: &'static str,
    text: &'static str,
}

const fn script(path: &'static str, text: &'static str) -> Part {
    Part { path, content_type: "text/javascript; charset=utf-8", text }
}

/// All parts of the page.
const PARTS: &[Part] = &[
    Part { path: "/", content_type: "text/html; charset=utf-8", text: include_str!("console/index.html") },
    Part { path: "/console.css", content_type: "text/css; charset=utf-8", text: include_str!("console/console.css") },
    script("/console.js", include_str!("console/console.js")),
    script("/console/api.js", include_str!("console/api.js")),
    script("/console/dom.js", include_str!("console/dom.js")),
    script("/console/exact.js", include_str!("console/exact.js")),
    script("/console/overview.js", include_str!("console/overview.js")),
    script("/console/decisions.js", include_str!("console/decisions.js")),
    script("/console/escalations.js", include_str!("console/escalations.js")),
    script("/console/agent.js", include_str!("console/agent.js")),
    script("/console/chain.js", include_str!("console/chain.js")),
];

/// The security headers of the page, in addition to those that prevent caching.
const HEADERS: &[(HeaderName, &str)] = &[
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::CACHE_CONTROL, "no-store"),
];

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

pub(super) fn routes(app: &Arc<App>) -> Router {
    PARTS.iter().fold(Router::new(), |router, part| {
        let (app, refusing) = (Arc::clone(app), Arc::clone(app));
        let show = move |request: HttpRequest| async move { app.show(|| shown(part), request) };
        let refuse = move |request: HttpRequest| async move { refusing.refuse(&Refusal::Method, request) };
        router.route(part.path, get(show).fallback(refuse))
    })
}

fn shown(part: &'static Part) -> Response {
    let mut response = Response::new(Body::from(part.text));
    put_headers(response.headers_mut(), part.content_type);
    response
}

pub(super) fn put_headers(headers: &mut HeaderMap, content_type: &'static str) {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(ending: &str) -> impl Iterator<Item = &'static Part> {
        PARTS.iter().filter(move |part| part.content_type.contains(ending))
    }

    #[test]
    fn nothing_is_shown_as_html_or_run_as_script() {
        const DANGEROUS: &[&str] = &[
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval",
            "Function(",
            "DOMParser",
            "createContextualFragment",
            "setHTML",
            "srcdoc",
            "javascript:",
            ".href",
            "setTimeout(\"",
            "localStorage",
            "sessionStorage",
            "indexedDB",
            "document.cookie",
        ];
        for part in texts("javascript") {
            let found: Vec<_> = DANGEROUS.iter().filter(|word| part.text.contains(**word)).collect();
            assert!(found.is_empty(), "{}: {found:?}", part.path);
        }
    }

    #[test]
    fn the_page_has_nothing_inline_and_nothing_from_elsewhere() {
        for part in PARTS {
            let text = part.text.replace("http://www.w3.org/2000/svg", "");
            assert!(!text.contains("http:") && !text.contains("https:"), "{}", part.path);
        }
        for page in texts("html") {
            assert!(!page.text.contains(" style=") && !page.text.contains("<style"), "an inline style");
            for attribute in [" onclick=", " onload=", " onerror=", " onsubmit=", " onkeydown="] {
                assert!(!page.text.contains(attribute), "{attribute}");
            }
            for script in page.text.split("<script").skip(1) {
                assert!(script.starts_with(" type=\"module\" src=\"") && script.contains("></script>"), "{script}");
            }
        }
    }

    #[test]
    fn every_script_that_is_imported_is_served() {
        for part in texts("javascript") {
            for imported in part.text.lines().filter(|line| line.starts_with("import ")) {
                let name = imported.rsplit('/').next().unwrap_or_default().trim_end_matches("\";");
                let path = format!("/console/{name}");
                assert!(PARTS.iter().any(|part| part.path == path), "{}: {imported}", part.path);
            }
        }
    }
}
