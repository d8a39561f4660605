//! No log output contains an API key, at any level.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex};

use rulekeep_server::gateway::{KeyDraft, Plan, Scope};
use serde_json::json;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::live::{Ask, Live, reading};

/// Collects all log output of any crate at any level.
#[derive(Clone, Default)]
struct All(Arc<Mutex<String>>);

struct Text<'a>(&'a mut String);

impl Visit for Text<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}

impl All {
    fn told(&self, metadata: &Metadata<'_>, record: impl FnOnce(&mut Text<'_>)) {
        let mut told = self.0.lock().unwrap();
        let _ = write!(told, "\n{} {}", metadata.target(), metadata.name());
        record(&mut Text(&mut told));
    }
}

impl Subscriber for All {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.told(span.metadata(), |text| span.record(text));
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        values.record(&mut Text(&mut self.0.lock().unwrap()));
    }

    fn event(&self, event: &Event<'_>) {
        self.told(event.metadata(), |text| event.record(text));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn no_key_is_in_any_log_at_any_level() {
    let all = All::default();
    // For every thread of this process, because the server has its own threads.
    tracing::subscriber::set_global_default(all.clone()).unwrap();
    let live = Live::new();
    let idempotency_key = "idempotency-9f2b7c51";
    let asked = Ask::new("POST", "/v1/enforce").key(&live.agent).json(&reading("a"));
    live.ask(&asked.header("Idempotency-Key", idempotency_key)).ok();
    let over_http = live.post("/v1/admin/keys", &live.admin, &json!({ "scope": "agent", "plan": "free" })).ok();
    let over_http = over_http["key"].as_str().unwrap().to_owned();
    let revoked = live.key(KeyDraft::new(Scope::Agent, Plan::Pro));
    live.gateway.keys().revoke(revoked.info.id).unwrap();
    let nearly = format!("{}0", &live.admin[..live.admin.len() - 1]);
    for key in [over_http.as_str(), revoked.key.expose(), &nearly, "hunter2-as-a-key"] {
        live.get("/v1/agents/a", key);
        live.get("/v1/admin/status", key);
        live.post("/v1/enforce", key, &json!({ "intent": {} }));
    }
    live.governor.log().flush().unwrap();

    let told = all.0.lock().unwrap().clone();
    assert!(told.contains("rulekeep.enforce"), "nothing was told");
    for secret in [&live.agent, &live.admin, &over_http, revoked.key.expose(), &nearly] {
        let random = secret.rsplit('_').next().unwrap();
        assert!(!told.contains(&random[..16]), "a key is in a log");
    }
    for secret in [idempotency_key, "hunter2-as-a-key", "rkp_agent_", "rkp_admin_"] {
        assert!(!told.contains(secret), "{secret} is in a log");
    }
}
