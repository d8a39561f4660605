//! Reviewers answer escalations over lines.

use rulekeep::escalation::{EscalationId, PreApproval};
use rulekeep::{Agent, Decision, Enforcement, Intent, PolicySet, RiskLevel, Tier};
use serde_json::{Value, json};

use crate::common::{Hand, NOON, Served, builder, call, refusal, result};

const POLICIES: &str = r#"
name = "payments"

[reviewers]
finance = ["ann", "bob", "Cleo"]

[[rule]]
id = "money"
effect = "escalate"
match.capabilities = ["payment:transfer"]
reviewer = "finance"
expires = "1h"

[[rule]]
id = "payments"
effect = "allow"
match.capabilities = ["payment:transfer"]
constraints = { maxAmount = 100 }

[[rule]]
id = "rights"
effect = "escalate"
match.capabilities = ["permission:write"]
reviewer = "finance"
approvals = 2
expires = "30m"
"#;

/// A governor with the agent `clerk` and a clock that stands still.
fn governor() -> Served {
    let policies = PolicySet::from_toml(POLICIES).unwrap();
    let governor = builder().policies(policies).clock(Hand::at(NOON)).open_in_memory().unwrap();
    governor.agents().register(Agent::new("clerk").at_tier(Tier::T4)).unwrap();
    Served::new(&governor)
}

fn payment(amount: u64) -> Intent {
    Intent::new("clerk", "pay_invoice", RiskLevel::High, ["payment:transfer"])
        .unwrap()
        .with_context("amount", amount)
        .with_context("requestedBy", "Dora")
}

/// Makes a request that is escalated.
fn ask(governor: &Served, intent: &Intent) -> (EscalationId, Enforcement) {
    let verdict = governor.enforce(intent).unwrap();
    assert_eq!(verdict.decision, Decision::Escalate, "{}", verdict.reasoning);
    (EscalationId::of(verdict.proof_id), verdict)
}

fn pay(governor: &Served, amount: u64) -> Decision {
    governor.enforce(&payment(amount).with_context("target", "INV-7")).unwrap().decision
}

/// The terms of a pre-approval for the clerk's payments.
fn terms() -> Value {
    json!({
        "agentId": "clerk", "capabilities": ["payment:transfer"], "rules": ["money"], "targets": ["INV-*"],
        "maxRisk": "HIGH", "until": rulekeep::system::Timestamp::from_millis(NOON + 86_400_000), "count": 5,
        "sum": { "key": "amount", "most": 500 },
    })
}

#[test]
fn people_answer_through_the_sidecar() {
    let governor = governor();
    let (id, verdict) = ask(&governor, &payment(40));
    let listed = result(&governor, "escalation/list", &json!({ "state": "pending" }));
    assert_eq!((&listed["total"], &listed["items"][0]["id"]), (&json!(1), &json!(id)));
    for field in ["proofId", "agentId", "intent", "reviewer", "reason", "state", "createdAt", "expiresAt"] {
        assert!(!listed["items"][0][field].is_null(), "{field}");
    }
    let refused = call(&governor, "escalation/approve", &json!({ "id": id, "reviewer": "mallory" }));
    assert_eq!(refused["error"]["data"]["code"], "FORBIDDEN");
    for call in ["escalation/approve", "escalation/reject"] {
        let misspelt = json!({ "id": id, "reviewer": "ann", "Digest": "sha256:.." });
        let refused = refusal(&governor, call, &misspelt);
        assert_eq!(refused["code"], "INVALID_INPUT");
    }
    // The record's id works as well.
    let approved =
        result(&governor, "escalation/approve", &json!({ "id": verdict.proof_id, "reviewer": "ann", "note": "ok" }));
    assert_eq!(approved["state"], "approved");
    let claimed = result(
        &governor,
        "escalation/claim",
        &json!({ "id": id, "intent": governor.log().evidence(&verdict.proof_id).unwrap().intent }),
    );
    assert_eq!((&claimed["decision"], &claimed["proofId"]), (&json!("ALLOW"), &approved["proofId"]));
    let (id, _) = ask(&governor, &payment(41));
    let rejected = result(&governor, "escalation/reject", &json!({ "id": id, "reviewer": "ann" }));
    assert_eq!(rejected["state"], "rejected");
}

#[test]
fn the_sidecar_gives_lists_and_takes_back() {
    let governor = governor();
    let with = |more: Value| {
        let mut params = terms();
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let wrong = refusal(&governor, "escalation/grant", &with(json!({ "reviewer": "mallory" })));
    assert_eq!(wrong["code"], "FORBIDDEN");
    let wrong = refusal(&governor, "escalation/grant", &with(json!({ "reviewer": "ann", "until": 7 })));
    assert_eq!(wrong["code"], "INVALID_INPUT");
    for misspelt in ["maxrisk", "Targets", "limit"] {
        let wrong = refusal(&governor, "escalation/grant", &with(json!({ "reviewer": "ann", misspelt: "LOW" })));
        assert_eq!(wrong["code"], "INVALID_INPUT");
    }
    let given = result(&governor, "escalation/grant", &with(json!({ "reviewer": "ann", "note": "for today" })));
    assert_eq!(given["state"], "active");
    assert_eq!(pay(&governor, 3), Decision::Allow);
    let listed = &result(&governor, "escalation/grants", &json!({}))["grants"][0];
    let class: PreApproval = serde_json::from_value(terms()).unwrap();
    assert_eq!(listed["class"], json!(class));
    let told = [&listed["id"], &listed["reviewer"], &listed["note"], &listed["usedCount"], &listed["usedSum"]];
    assert_eq!(json!(told), json!([given["id"], "ann", "for today", 1, 3.0]));
    let revoke = json!({ "id": given["id"], "reviewer": "ann" });
    result(&governor, "escalation/revoke", &revoke);
    assert_eq!(refusal(&governor, "escalation/revoke", &revoke)["code"], "CONFLICT");
    assert_eq!(pay(&governor, 3), Decision::Escalate);

    let two = with(json!({
        "reviewer": "ann", "capabilities": ["permission:write"], "rules": ["rights"], "sum": null, "count": null,
    }));
    let pending = result(&governor, "escalation/grant", &two);
    assert_eq!(pending["state"], "pending");
    let widened = json!({ "id": pending["id"], "reviewer": "bob", "count": 100 });
    assert_eq!(refusal(&governor, "escalation/grant", &widened)["code"], "INVALID_INPUT");
    let agreed = result(&governor, "escalation/grant", &json!({ "id": pending["id"], "reviewer": "bob" }));
    assert_eq!(agreed, json!({ "id": pending["id"], "state": "active" }));
}
