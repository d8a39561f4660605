//! The headers and content of the console's page, without a browser. `tests/peers/console.rs` uses a browser.

use rulekeep_server::http::{Server, console, router};

use super::live::{Ask, Live, NOON, builder};
use crate::common::Hand;

/// The exact headers of its responses besides the content type.
const HEADERS: &[(&str, &str)] = &[
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors 'none'",
    ),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("cache-control", "no-store"),
];

#[test]
fn the_page_and_its_parts_hold_a_browser_to_the_strict_policy() {
    let governor = builder(&Hand::at(NOON)).open_in_memory().unwrap();
    let live = Live::mounted(governor, Server::new(), |gateway| router(gateway).merge(console(gateway)));
    for (path, content_type) in [
        ("/", "text/html; charset=utf-8"),
        ("/console.css", "text/css; charset=utf-8"),
        ("/console.js", "text/javascript; charset=utf-8"),
        ("/console/api.js", "text/javascript; charset=utf-8"),
    ] {
        let answer = live.ask(&Ask::new("GET", path));
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(content_type)), "{path}");
        assert!(!answer.body.is_empty(), "{path}");
        for (name, value) in HEADERS {
            assert_eq!(answer.header(name), Some(*value), "{path}: {name}");
        }
        assert_eq!(answer.header("set-cookie"), None, "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), None, "{path}");
    }
}

#[test]
fn the_manual_has_the_headers_that_are_sent() {
    let manual: Vec<&str> = include_str!("../../../../../docs/reference/console.md").split_whitespace().collect();
    let manual = manual.join(" ").to_lowercase();
    for (name, value) in HEADERS {
        assert!(manual.contains(&format!("`{name}: {}`", value.to_lowercase())), "{name}");
    }
}
