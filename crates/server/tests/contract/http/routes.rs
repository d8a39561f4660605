//! Every other path once, with a valid response.

use rulekeep::PolicySet;
use serde_json::{Value, json};

use super::live::{Ask, Live, mailing, reading};
use crate::common::POLICIES;

/// Makes requests with an admin key and expects success.
struct Admin(Live);

impl Admin {
    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut asked = Ask::new(method, path).key(&self.0.admin);
        if !body.is_null() {
            asked = asked.json(body);
        }
        let answer = self.0.ask(&asked);
        assert_eq!(answer.status, 200, "{method} {path}: {}", String::from_utf8_lossy(&answer.body));
        answer.ok()
    }

    fn get(&self, path: &str) -> Value {
        self.ask("GET", path, &Value::Null)
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.ask("POST", path, body)
    }

    fn decide(&self, body: &Value) -> String {
        self.post("/v1/enforce", body)["proofId"].as_str().unwrap().to_owned()
    }
}

#[test]
fn agents() {
    let admin = Admin(Live::new());
    assert_eq!(admin.get("/v1/agents/a")["tier"], "T4");
    assert_eq!(admin.get("/v1/admin/agents?pageSize=1")["total"], 2);
    let changed = admin.ask("PATCH", "/v1/admin/agents/a", &json!({ "labels": ["x"], "owner": "ann" }));
    assert_eq!((&changed["labels"], &changed["owner"]), (&json!(["x"]), &json!("ann")));
    assert_eq!(admin.post("/v1/admin/agents/a/suspend", &json!({ "note": "why" }))["state"], "suspended");
    assert_eq!(admin.post("/v1/admin/agents/a/resume", &Value::Null)["state"], "active");
    assert_eq!(admin.post("/v1/admin/agents/a/trust", &json!({ "score": 300, "note": "why" }))["score"], 300);
    assert!(admin.get("/v1/agents/a/trust?pageSize=1")["total"].as_u64().unwrap() > 0);
    assert_eq!(admin.post("/v1/admin/agents/b/retire", &json!({}))["state"], "retired");
    let exported = admin.get("/v1/admin/agents/export");
    assert_eq!(exported["agents"], 2);
    let other = Admin(Live::new());
    assert_eq!(other.post("/v1/admin/agents/import", &json!({ "lines": exported["lines"] }))["skipped"], 2);
    assert!(admin.get("/v1/admin/trust/verification")["agents"].as_u64().unwrap() > 0);
}

#[test]
fn records() {
    let admin = Admin(Live::new());
    let id = admin.decide(&reading("a"));
    let record = admin.get(&format!("/v1/proof/records/{id}?evidence=true"));
    assert_eq!((record["id"].as_str().unwrap(), record["evidence"].is_object()), (id.as_str(), true));
    assert_eq!(admin.get("/v1/admin/records?pageSize=10")["total"], 1);
    assert_eq!(admin.get("/v1/admin/records/open?entityId=a")["total"], 1);
    assert_eq!(admin.get("/v1/admin/verification")["valid"], true);
    admin.post("/v1/proof/outcome", &json!({ "proofId": id, "outcome": "SUCCESS" }));
    let corrected = admin.post("/v1/admin/trust/correct", &json!({ "proofId": id, "note": "it was none" }));
    assert!(corrected["score"].is_number(), "{corrected}");
}

/// Without a signing key, checkpoints are refused as in the sidecar.
#[test]
fn checkpoints() {
    let admin = Admin(Live::new());
    let id = admin.decide(&reading("a"));
    for (path, body) in
        [("/v1/admin/checkpoints", json!({})), ("/v1/admin/checkpoints/proof", json!({ "proofId": id }))]
    {
        assert_eq!(admin.0.post(path, &admin.0.admin, &body).refusal(), (409, "CONFLICT".into()), "{path}");
    }
}

#[test]
fn stops() {
    let admin = Admin(Live::new());
    let set = admin.post("/v1/admin/stops", &json!({ "agentId": "a", "by": "ann", "note": "why" }));
    assert_eq!(admin.get("/v1/admin/stops")["stops"][0]["id"], set["id"]);
    assert_eq!(admin.post("/v1/enforce", &reading("a"))["decision"], "DENY");
    let id = set["id"].as_str().unwrap();
    assert_eq!(admin.post(&format!("/v1/admin/stops/{id}/lift"), &json!({ "by": "ann" }))["id"], id);
    assert_eq!(admin.post("/v1/enforce", &reading("a"))["decision"], "ALLOW");
}

#[test]
fn people() {
    let admin = Admin(Live::new());
    let (first, second) = (admin.decide(&mailing("a")), admin.decide(&mailing("b")));
    let pending = admin.get("/v1/admin/escalations?state=pending");
    assert_eq!(pending["total"], 2);
    assert_eq!(admin.get(&format!("/v1/escalations/{first}"))["state"], "pending");
    let waited = admin.post(&format!("/v1/escalations/{first}/wait"), &json!({ "timeoutMs": 1 }));
    assert_eq!(waited["state"], "pending");
    let answer = json!({ "reviewer": "mail-lead", "note": "fine" });
    assert_eq!(admin.post(&format!("/v1/admin/escalations/{first}/approve"), &answer)["state"], "approved");
    let claimed = admin.post(&format!("/v1/escalations/{first}/claim"), &mailing("a"));
    assert_eq!(claimed["decision"], "ALLOW");
    let again = admin.0.post(&format!("/v1/escalations/{first}/claim"), &admin.0.admin, &mailing("a"));
    assert_ne!(again.status, 200, "an approval was used twice");
    assert_eq!(admin.post(&format!("/v1/admin/escalations/{second}/reject"), &answer)["state"], "rejected");
    let class = json!({
        "reviewer": "mail-lead", "agentId": "a", "capabilities": ["email:send"], "rules": ["mail-needs-a-person"], "until": "2027-01-16T00:00:00Z", "count": 2,
    });
    let granted = admin.post("/v1/admin/grants", &class);
    let id = granted["id"].as_str().unwrap();
    assert_eq!(admin.get("/v1/admin/grants")["grants"][0]["id"], id);
    assert_eq!(admin.post(&format!("/v1/admin/grants/{id}/revoke"), &json!({ "reviewer": "mail-lead" }))["id"], id);
}

#[test]
fn keys() {
    let admin = Admin(Live::new());
    let made =
        admin.post("/v1/admin/keys", &json!({ "scope": "agent", "plan": { "perMinute": 6, "burst": 2 }, "name": "n" }));
    let id = made["id"].as_str().unwrap();
    assert_eq!(admin.ask("DELETE", &format!("/v1/admin/keys/{id}"), &Value::Null)["state"], "revoked");
    let unknown = Ask::new("DELETE", "/v1/admin/keys/key_01kf7xqzzz0000000000000000").key(&admin.0.admin);
    assert_eq!(admin.0.ask(&unknown).refusal(), (404, "NOT_FOUND".into()));
    assert_eq!(admin.0.get("/v1/agents/a", made["key"].as_str().unwrap()).refusal().0, 401);
}

#[test]
fn policies() {
    let admin = Admin(Live::new());
    let document = json!({ "format": "toml", "text": POLICIES });
    assert_eq!(admin.get("/v1/admin/policies")["name"], "small");
    assert_eq!(admin.post("/v1/admin/policies/validate", &document)["valid"], true);
    let loaded = admin.ask("PUT", "/v1/admin/policies", &document);
    assert_eq!(loaded["digest"], json!(PolicySet::from_toml(POLICIES).unwrap().digest()));
    let faulty =
        Ask::new("PUT", "/v1/admin/policies").key(&admin.0.admin).json(&json!({ "format": "toml", "text": "" }));
    assert_eq!(admin.0.ask(&faulty).refusal(), (422, "POLICY_ERROR".into()));
    admin.decide(&reading("a"));
    assert_eq!(admin.post("/v1/admin/policies/replay", &document)["records"], 1);
    assert!(admin.post("/v1/admin/policies/shadow", &document)["shadow"].is_object());
    assert_eq!(admin.post("/v1/admin/policies/explain", &reading("a"))["decision"], "ALLOW");
    assert_eq!(admin.post("/v1/admin/policies/preview", &reading("a"))["decision"], "ALLOW");
    assert_eq!(admin.0.records("a"), 1, "asking recorded something");
}

#[test]
fn tools() {
    let admin = Admin(Live::new());
    let tools = json!({ "tools": [{ "name": "send_mail", "description": "Sends a mail", "inputSchema": { "type": "object" } }] });
    assert_eq!(admin.post("/v1/admin/catalogue", &tools)["added"], 1);
    assert_eq!(admin.get("/v1/admin/catalogue")["tools"][0]["name"], "send_mail");
    let given = json!({ "name": "send_mail", "riskLevel": "HIGH", "reason": "why" });
    assert_eq!(admin.post("/v1/admin/catalogue/override", &given)["riskLevel"], "HIGH");
    assert_eq!(admin.post("/v1/admin/catalogue/pin", &json!({ "name": "send_mail" }))["pinned"], true);
    assert_eq!(admin.post("/v1/admin/catalogue/remove", &json!({ "name": "send_mail" }))["name"], "send_mail");
}

#[test]
fn webhooks() {
    let admin = Admin(Live::new());
    let made = admin.post("/v1/admin/webhooks", &json!({ "url": "https://hooks.example/x" }));
    let id = made["id"].as_str().unwrap();
    assert_eq!(admin.get("/v1/admin/webhooks")["endpoints"][0]["id"], id);
    assert_eq!(admin.get(&format!("/v1/admin/webhooks/{id}/deliveries?page=1"))["page"], 1);
    assert!(admin.post(&format!("/v1/admin/webhooks/{id}/rotate"), &json!({}))["secret"].is_string());
    let moved = json!({ "url": "https://hooks.example/y" });
    assert_eq!(admin.post(&format!("/v1/admin/webhooks/{id}/readdress"), &moved)["id"], id);
    assert_eq!(admin.ask("DELETE", &format!("/v1/admin/webhooks/{id}"), &Value::Null)["id"], id);
}
