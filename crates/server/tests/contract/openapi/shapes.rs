//! The shapes of the specification, written out in full: they can be read, are written back unchanged, and match the
//! document.

use rulekeep::intent::ParseResult;
use rulekeep::{Enforcement, Intent, ProofRecord};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::live::Live;
use crate::common;

fn intent() -> Value {
    json!({
        "id": "int_01kx0000000000000000000001", "agentId": "support-1", "parsedAction": "send_email",
        "riskLevel": "MEDIUM", "requiredCapabilities": ["email:send", "customer:read"],
        "context": { "environment": "production", "requestSource": "chat", "dataClassification": "CONFIDENTIAL" },
        "timestamp": "2026-11-22T05:26:00.000Z",
    })
}

fn parsed() -> Value {
    json!({
        "intent": intent(), "confidence": 0.92,
        "alternatives": [{ "parsedAction": "read_customer", "confidence": 0.31 }],
    })
}

fn enforced() -> Value {
    json!({
        "decision": "DEGRADE", "reasoning": "customers are only read", "grantedCapabilities": ["customer:read"],
        "deniedCapabilities": ["email:send"], "constraints": { "maxRecords": 100, "timeoutMs": 30000 },
        "proofId": "prf_01kx0000000000000000000002",
        "trustSnapshot": { "score": 700, "tier": "T4", "tierName": "Standard" },
    })
}

fn record() -> Value {
    json!({
        "id": "prf_01kx0000000000000000000002", "entityId": "support-1", "intentId": "int_01kx0000000000000000000001",
        "decision": "DEGRADE", "reasoning": "customers are only read", "trustScore": 700, "trustTier": "T4",
        "riskLevel": "MEDIUM", "outcome": "SUCCESS", "timestamp": "2026-11-22T05:26:00.000Z",
        "hash": format!("sha256:{}", "ab".repeat(32)), "previousHash": format!("sha256:{}", "0".repeat(64)),
        "evidenceHash": format!("sha256:{}", "cd".repeat(32)),
    })
}

fn page() -> Value {
    json!({ "items": [record()], "total": 1, "page": 1, "pageSize": 50, "hasMore": false })
}

fn stats() -> Value {
    json!({
        "entityId": "support-1", "totalRecords": 12, "successRate": 0.75, "averageTrustScore": 701.5,
        "chainIntegrity": true, "decisionBreakdown": { "ALLOW": 9, "DENY": 1, "ESCALATE": 1, "DEGRADE": 1 },
        "riskBreakdown": { "LOW": 9, "MEDIUM": 2, "HIGH": 1, "CRITICAL": 0 },
        "period": { "from": "2026-11-01T00:00:00.000Z", "to": "2026-11-22T05:26:00.000Z" },
    })
}

fn status() -> Value {
    json!({
        "status": "healthy", "version": "0.1.0", "uptime": 86400,
        "components": {
            "gateway": "healthy", "trustEngine": "healthy", "proofChain": "healthy", "intentParser": "healthy",
            "database": "healthy",
        },
        "metrics": {
            "activeAgents": 3, "decisionsToday": 12, "averageLatencyMs": 0.08, "proofChainLength": 1200,
            "escalationsToday": 1,
            "latency": { "windowSeconds": 60, "count": 12, "p50Ms": 0.05, "p90Ms": 0.1, "p99Ms": 0.2, "maxMs": 0.4 },
        },
        "timestamp": "2026-11-22T05:26:00.000Z",
    })
}

fn refused() -> Value {
    json!({ "error": {
        "code": "AGENT_NOT_FOUND", "message": "no agent \"support-9\" is registered", "requestId": "req_1",
        "details": { "agentId": "support-9" },
    } })
}

fn both_ways<T: DeserializeOwned + Serialize>(shape: &Value) {
    let read: T = serde_json::from_value(shape.clone()).unwrap();
    assert_eq!(&serde_json::to_value(&read).unwrap(), shape);
}

#[test]
fn what_can_be_read_comes_back_as_it_was() {
    both_ways::<Intent>(&intent());
    both_ways::<ParseResult>(&parsed());
    both_ways::<Enforcement>(&enforced());
    both_ways::<ProofRecord>(&record());
    assert_eq!(serde_json::to_value(Intent::from_json(&intent()).unwrap()).unwrap(), intent());
    let mut unreported = record();
    unreported.as_object_mut().unwrap().remove("outcome");
    both_ways::<ProofRecord>(&unreported);
}

#[test]
fn the_document_takes_every_shape_and_no_lesser_one() {
    let mut live = Live::new(&common::in_memory());
    let mut decided = enforced();
    decided.as_object_mut().unwrap().extend(parsed().as_object().unwrap().clone());
    for (name, shape, may_be_absent) in [
        ("Intent", intent(), &["id", "context", "timestamp"][..]),
        ("ParseResult", parsed(), &[]),
        ("Parsed", parsed(), &[]),
        ("Enforcement", enforced(), &[]),
        ("Enforced", enforced(), &[]),
        ("Enforced", decided, &["intent", "confidence", "alternatives"]),
        ("ProofRecord", record(), &["outcome"]),
        ("ProofPage", page(), &[]),
        ("ProofStats", stats(), &[]),
        ("SystemStatus", status(), &[]),
        ("ErrorBody", refused(), &[]),
    ] {
        let schema = json!({ "$ref": format!("#/components/schemas/{name}") });
        let faults = live.faults(&schema, &shape);
        assert!(faults.is_empty(), "{name}: {faults:#?}");
        let besides = live.undescribed(&schema, &shape, "");
        assert!(besides.is_empty(), "{name}: {besides:?}");
        for field in shape.as_object().unwrap().keys() {
            let (mut without, mut wrong) = (shape.clone(), shape.clone());
            without.as_object_mut().unwrap().remove(field);
            let is_taken = live.faults(&schema, &without).is_empty();
            assert_eq!(is_taken, may_be_absent.contains(&field.as_str()), "{name} without {field}");
            wrong[field] = json!([[3]]);
            assert!(!live.faults(&schema, &wrong).is_empty(), "{name} with another {field}");
        }
    }
}
