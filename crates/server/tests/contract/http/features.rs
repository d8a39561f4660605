//! Paths that need a feature of their own. They are there in every build; one that lacks the feature says which it is.

use serde_json::json;

use crate::live::{Ask, Live};

const WEBHOOKS: (&str, bool) = ("webhooks", cfg!(feature = "webhooks"));
const CHECKPOINTS: (&str, bool) = ("checkpoints", cfg!(feature = "checkpoints"));

const PATHS: &[((&str, bool), &str, &str)] = &[
    (WEBHOOKS, "GET", "/v1/admin/webhooks"),
    (WEBHOOKS, "POST", "/v1/admin/webhooks"),
    (WEBHOOKS, "DELETE", "/v1/admin/webhooks/x"),
    (WEBHOOKS, "POST", "/v1/admin/webhooks/x/rotate"),
    (WEBHOOKS, "POST", "/v1/admin/webhooks/x/readdress"),
    (WEBHOOKS, "POST", "/v1/admin/webhooks/x/resume"),
    (WEBHOOKS, "GET", "/v1/admin/webhooks/x/deliveries"),
    (WEBHOOKS, "POST", "/v1/admin/webhooks/redeliver"),
    (CHECKPOINTS, "POST", "/v1/admin/checkpoints"),
    (CHECKPOINTS, "POST", "/v1/admin/checkpoints/proof"),
];

#[test]
fn a_build_without_a_feature_names_it() {
    let live = Live::new();
    for &((feature, is_built), method, path) in PATHS {
        let answer = live.ask(&Ask::new(method, path).key(&live.admin));
        if is_built {
            assert_ne!(answer.status, 501, "{method} {path}");
            continue;
        }
        assert_eq!(answer.refusal(), (501, "NOT_IMPLEMENTED".into()), "{method} {path}");
        let error = &answer.json()["error"];
        assert_eq!(error["details"], json!({ "feature": feature }), "{method} {path}");
        assert!(error["message"].as_str().unwrap().contains(&format!("`{feature}`")), "{error}");
    }
}

#[test]
fn only_administrators_learn_what_a_build_lacks() {
    let live = Live::new();
    for (_, method, path) in PATHS {
        let answer = live.ask(&Ask::new(method, path).key(&live.agent));
        assert_eq!(answer.refusal(), (403, "FORBIDDEN".into()), "{method} {path}");
        assert_eq!(live.ask(&Ask::new(method, path)).refusal().0, 401, "{method} {path}");
    }
}
