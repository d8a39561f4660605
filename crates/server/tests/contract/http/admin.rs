//! Paths that require an admin key.

use super::live::{Ask, Live};

const PATHS: &[(&str, &str)] = &[
    ("GET", "/v1/admin/webhooks"),
    ("POST", "/v1/admin/webhooks"),
    ("DELETE", "/v1/admin/webhooks/x"),
    ("POST", "/v1/admin/webhooks/x/rotate"),
    ("POST", "/v1/admin/webhooks/x/readdress"),
    ("POST", "/v1/admin/webhooks/x/resume"),
    ("GET", "/v1/admin/webhooks/x/deliveries"),
    ("POST", "/v1/admin/webhooks/redeliver"),
    ("POST", "/v1/admin/checkpoints"),
    ("POST", "/v1/admin/checkpoints/proof"),
];

#[test]
fn only_administrators_change_webhooks_and_make_checkpoints() {
    let live = Live::new();
    for (method, path) in PATHS {
        let answer = live.ask(&Ask::new(method, path).key(&live.agent));
        assert_eq!(answer.refusal(), (403, "FORBIDDEN".into()), "{method} {path}");
        assert_eq!(live.ask(&Ask::new(method, path)).refusal().0, 401, "{method} {path}");
    }
}
