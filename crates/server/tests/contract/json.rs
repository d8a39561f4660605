//! The JSON of the specification: every resource has exactly the named fields with the right types and formats, and
//! the four decisions arise as described.

use std::collections::BTreeSet;

use crate::common::{
    self, Served, builder, call, chain, decide, in_memory, intent, policies, reading, refusal, result,
};
use regex::Regex;
use rulekeep::{Agent, Decision, Governor, Outcome, ProofQuery, RiskLevel, Tier};
use serde_json::{Value, json};

/// The expected type or value of a field.
enum Is {
    Text,
    Number,
    Whole,
    Flag,
    Texts,
    Object,
    List,
    /// A text that matches the expression completely.
    Form(&'static str),
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Any value that is present.
    There,
}

const INTENT_ID: Is = Is::Form("int_[0-9a-hjkmnp-tv-z]{26}");
const PROOF_ID: Is = Is::Form("prf_[0-9a-hjkmnp-tv-z]{26}");
const TIME: Is = Is::Form(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z");
const HASH: Is = Is::Form("sha256:[0-9a-f]{64}");
const DECISIONS: &[&str] = &["ALLOW", "DENY", "ESCALATE", "DEGRADE"];
const RISKS: &[&str] = &["LOW", "MEDIUM", "HIGH", "CRITICAL"];
const TIERS: &[&str] = &["T0", "T1", "T2", "T3", "T4", "T5"];
const HEALTHS: &[&str] = &["healthy", "degraded", "unhealthy"];

/// Asserts that an object has exactly these fields, each as expected.
fn assert_fields(object: &Value, fields: &[(&str, Is)]) {
    let found: BTreeSet<&str> = object.as_object().expect("an object").keys().map(String::as_str).collect();
    let expected: BTreeSet<&str> = fields.iter().map(|(name, _)| *name).collect();
    assert_eq!(found, expected, "the fields of {object}");
    for (name, is) in fields {
        let value = &object[*name];
        let holds = match is {
            Is::Text => value.is_string(),
            Is::Number => value.is_number(),
            Is::Whole => value.is_u64(),
            Is::Flag => value.is_boolean(),
            Is::Texts => value.as_array().is_some_and(|items| items.iter().all(Value::is_string)),
            Is::Object => value.is_object(),
            Is::List => value.is_array(),
            Is::Form(form) => {
                let form = Regex::new(&format!("^(?:{form})$")).unwrap();
                value.as_str().is_some_and(|text| form.is_match(text))
            }
            Is::OneOf(words) => value.as_str().is_some_and(|text| words.contains(&text)),
            Is::There => true,
        };
        assert!(holds, "{name} is {value}");
    }
}

fn assert_is_intent(value: &Value) {
    assert_fields(
        value,
        &[
            ("id", INTENT_ID),
            ("agentId", Is::Text),
            ("parsedAction", Is::Form("[a-z][a-z0-9_]*")),
            ("riskLevel", Is::OneOf(RISKS)),
            ("requiredCapabilities", Is::Texts),
            ("context", Is::Object),
            ("timestamp", TIME),
        ],
    );
}

fn assert_is_trust_snapshot(value: &Value) {
    assert_fields(value, &[("score", Is::Whole), ("tier", Is::OneOf(TIERS)), ("tierName", Is::Text)]);
}

fn assert_is_record(value: &Value, with_outcome: bool) {
    let mut fields = vec![
        ("id", PROOF_ID),
        ("entityId", Is::Text),
        ("intentId", INTENT_ID),
        ("decision", Is::OneOf(DECISIONS)),
        ("reasoning", Is::Text),
        ("trustScore", Is::Whole),
        ("trustTier", Is::OneOf(TIERS)),
        ("riskLevel", Is::OneOf(RISKS)),
        ("timestamp", TIME),
        ("hash", HASH),
        ("previousHash", HASH),
        ("evidenceHash", HASH),
    ];
    if with_outcome {
        fields.push(("outcome", Is::OneOf(&["SUCCESS", "FAILURE", "ESCALATED"])));
    }
    assert_fields(value, &fields);
}

const ENFORCEMENT: [(&str, Is); 7] = [
    ("decision", Is::OneOf(DECISIONS)),
    ("reasoning", Is::Text),
    ("grantedCapabilities", Is::Texts),
    ("deniedCapabilities", Is::Texts),
    ("constraints", Is::Object),
    ("proofId", PROOF_ID),
    ("trustSnapshot", Is::Object),
];

#[test]
fn a_parse_result_has_the_contracts_fields() {
    let governor = in_memory();
    let parsed = result(&governor, "intent", &json!({ "agentId": "a", "input": "Read the meeting notes" }));
    assert_fields(&parsed, &[("intent", Is::Object), ("confidence", Is::Number), ("alternatives", Is::List)]);
    assert_is_intent(&parsed["intent"]);
    assert_eq!(parsed["intent"]["agentId"], "a");
    assert!((0.0..=1.0).contains(&parsed["confidence"].as_f64().unwrap()));
    for alternative in parsed["alternatives"].as_array().unwrap() {
        assert_fields(alternative, &[("parsedAction", Is::Text), ("confidence", Is::Number)]);
    }
}

#[test]
fn a_callers_context_comes_back_in_the_parsed_intent() {
    let governor = in_memory();
    let context = json!({ "environment": "staging", "requestSource": { "kind": "chat" } });
    let params = json!({ "agentId": "a", "input": "Read the meeting notes", "context": context });
    let parsed = result(&governor, "intent", &params);
    assert_eq!(parsed["intent"]["context"]["environment"], "staging");
    assert_eq!(parsed["intent"]["context"]["requestSource"], json!({ "kind": "chat" }));
}

#[test]
fn parsing_records_nothing() {
    let governor = in_memory();
    governor.parse("a", "Read the meeting notes").unwrap();
    assert_eq!(governor.query(&ProofQuery::entity("a")).unwrap().total, 0);
}

#[test]
fn an_enforcement_of_an_intent_has_the_contracts_fields() {
    let governor = in_memory();
    let params = json!({ "intent": reading("a") });
    let enforced = result(&governor, "enforce", &params);
    assert_fields(&enforced, &ENFORCEMENT);
    assert_is_trust_snapshot(&enforced["trustSnapshot"]);
    assert_eq!(enforced["trustSnapshot"], json!({ "score": 724, "tier": "T4", "tierName": "Standard" }));
}

#[test]
fn an_enforcement_of_an_input_has_its_parse_beside_the_verdict() {
    let governor = in_memory();
    let params = json!({ "agentId": "a", "input": "Read the meeting notes", "context": { "environment": "test" } });
    let enforced = result(&governor, "enforce", &params);
    let parse = [("intent", Is::Object), ("confidence", Is::Number), ("alternatives", Is::List)];
    let fields: Vec<(&str, Is)> = ENFORCEMENT.into_iter().chain(parse).collect();
    assert_fields(&enforced, &fields);
    assert_is_intent(&enforced["intent"]);
    assert_eq!(enforced["intent"]["context"]["environment"], "test");
    let record = result(&governor, "proof/get", &json!({ "proofId": enforced["proofId"] }));
    assert_eq!(record["intentId"], enforced["intent"]["id"]);
}

#[test]
fn a_parsed_intent_can_be_handed_back_for_enforcement() {
    let governor = in_memory();
    let parsed = result(&governor, "intent", &json!({ "agentId": "a", "input": "Read the meeting notes" }));
    let enforced = result(&governor, "enforce", &json!({ "intent": parsed["intent"] }));
    let record = result(&governor, "proof/get", &json!({ "proofId": enforced["proofId"] }));
    assert_eq!(record["intentId"], parsed["intent"]["id"]);
}

#[test]
fn a_proof_record_has_an_outcome_only_once_one_is_reported() {
    let governor = in_memory();
    let enforced = result(&governor, "enforce", &json!({ "intent": reading("a") }));
    let proof_id = &enforced["proofId"];
    let before = result(&governor, "proof/get", &json!({ "proofId": proof_id }));
    assert_is_record(&before, false);
    assert_eq!(before["entityId"], "a");
    assert_eq!(before["decision"], enforced["decision"]);
    assert_eq!(before["reasoning"], enforced["reasoning"]);
    assert_eq!(before["trustScore"], enforced["trustSnapshot"]["score"]);
    assert_eq!(before["trustTier"], enforced["trustSnapshot"]["tier"]);

    let reported = result(&governor, "outcome/report", &json!({ "proofId": proof_id, "outcome": "SUCCESS" }));
    assert_is_record(&reported, true);
    let mut without_outcome = reported.clone();
    without_outcome.as_object_mut().unwrap().remove("outcome");
    assert_eq!(without_outcome, before, "an outcome changes nothing of its record");
    assert_eq!(result(&governor, "proof/get", &json!({ "proofId": proof_id })), reported);
}

#[test]
fn evidence_comes_with_a_record_only_when_asked_for() {
    let governor = in_memory();
    let proof_id = governor.enforce(&reading("a")).unwrap().proof_id;
    let with = result(&governor, "proof/get", &json!({ "proofId": proof_id, "evidence": true }));
    assert_is_intent(&with["evidence"]["intent"]);
    assert_eq!(with["evidence"]["detail"]["grantedCapabilities"], json!(["document:read"]));
    assert_eq!(with["evidence"]["detail"]["rules"], json!(["reading-is-fine"]));
    assert_eq!(with["evidence"]["detail"]["policyDigest"], json!(policies().digest()));
    let without = result(&governor, "proof/get", &json!({ "proofId": proof_id, "evidence": false }));
    assert_is_record(&without, false);
}

#[test]
fn a_proof_page_has_the_contracts_fields_and_is_newest_first() {
    let governor = in_memory();
    let ids: Vec<Value> = (0..5).map(|_| json!(common::decide(&governor, "a"))).collect();
    let page = result(&governor, "proof/query", &json!({ "entityId": "a", "page": 2, "pageSize": 2 }));
    assert_fields(
        &page,
        &[
            ("items", Is::List),
            ("total", Is::Whole),
            ("page", Is::Whole),
            ("pageSize", Is::Whole),
            ("hasMore", Is::Flag),
        ],
    );
    for item in page["items"].as_array().unwrap() {
        assert_is_record(item, false);
    }
    assert_eq!((&page["items"][0]["id"], &page["items"][1]["id"]), (&ids[2], &ids[1]));
    assert_eq!((&page["total"], &page["page"], &page["pageSize"]), (&json!(5), &json!(2), &json!(2)));
    assert_eq!(page["hasMore"], true);
    let last = result(&governor, "proof/query", &json!({ "entityId": "a", "page": 3, "pageSize": 2 }));
    assert_eq!((last["items"].as_array().unwrap().len(), &last["hasMore"]), (1, &json!(false)));
}

#[test]
fn a_page_defaults_to_the_first_of_fifty() {
    let governor = in_memory();
    let page = result(&governor, "proof/query", &json!({ "entityId": "a" }));
    assert_eq!(page, json!({ "items": [], "total": 0, "page": 1, "pageSize": 50, "hasMore": false }));
}

#[test]
fn a_page_past_the_end_is_empty_and_still_counts_all() {
    let governor = in_memory();
    common::decide(&governor, "a");
    for page in [2, u64::MAX] {
        let found = governor.query(&ProofQuery::entity("a").page(page)).unwrap();
        assert_eq!((found.items.len(), found.total, found.has_more), (0, 1, false), "page {page}");
    }
}

#[test]
fn a_page_behind_a_cursor_names_the_next_one_until_the_last() {
    let governor = in_memory();
    let ids: Vec<Value> = (0..5).map(|_| json!(common::decide(&governor, "a"))).collect();
    let mut params = json!({ "entityId": "a", "pageSize": 2, "cursor": "start", "order": "oldest" });
    let mut found = Vec::new();
    for (number, size) in [(1, 2), (2, 2), (3, 1)] {
        let page = result(&governor, "proof/query", &params);
        assert_eq!((&page["page"], &page["total"], &page["pageSize"]), (&json!(number), &json!(5), &json!(2)));
        assert_eq!(page["items"].as_array().unwrap().len(), size);
        assert_eq!((page["hasMore"].as_bool().unwrap(), page["nextCursor"].is_string()), (number < 3, number < 3));
        assert_eq!(page.as_object().unwrap().len(), if number < 3 { 6 } else { 5 }, "{page}");
        found.extend(page["items"].as_array().unwrap().iter().map(|item| item["id"].clone()));
        params["cursor"] = page["nextCursor"].clone();
        // Records written meanwhile are not part of it.
        common::decide(&governor, "a");
    }
    assert_eq!(found, ids);
}

#[test]
fn records_can_be_asked_for_by_intent_risk_and_order() {
    let governor = in_memory();
    let ids: [rulekeep::intent::IntentId; 2] =
        ["1", "2"].map(|end| format!("int_{}{end}", "0".repeat(25)).parse().unwrap());
    for (capability, id) in [("document:read", ids[0]), ("file:delete", ids[1]), ("document:read", ids[0])] {
        let mut intent = intent("a", &[capability]);
        intent.id = Some(id);
        governor.enforce(&intent).unwrap();
    }
    let [low, high] = ids;
    let high_risk = governor.query(&ProofQuery::entity("a").intent(high)).unwrap().items[0].risk_level;
    for (filter, expected) in [
        (json!({ "intentId": low }), 2),
        (json!({ "intentId": high }), 1),
        (json!({ "intentId": high, "decision": "ALLOW" }), 0),
        (json!({ "intentId": format!("int_{}", "0".repeat(26)) }), 0),
        (json!({ "risk": high_risk }), 1),
        (json!({ "order": "newest" }), 3),
        (json!({ "order": "oldest", "cursor": null }), 3),
    ] {
        let mut params = filter.clone();
        params["entityId"] = json!("a");
        assert_eq!(result(&governor, "proof/query", &params)["total"], expected, "{filter}");
    }
    let of_intent: Vec<_> = governor.log().of_intent(low).map(|record| record.unwrap().decision).collect();
    assert_eq!(of_intent, [Decision::Allow, Decision::Allow]);
    let all = governor.log().records(&ProofQuery::all().order(rulekeep::proof::Order::OldestFirst));
    let intents: Vec<_> = all.map(|record| record.unwrap().intent_id).collect();
    assert_eq!(intents, [low, high, low]);
}

#[test]
fn both_ends_of_a_time_range_are_inclusive() {
    let clock = common::Hand::at(common::NOON);
    let governor = Served::new(&builder().clock(clock.clone()).open_in_memory().unwrap());
    governor.agents().register(Agent::new("a")).unwrap();
    for second in 0..5 {
        clock.set(common::NOON + second * 1000);
        common::decide(&governor, "a");
    }
    let range = json!({ "entityId": "a", "from": "2027-01-15T08:00:01Z", "to": "2027-01-15T09:00:03.000+01:00" });
    assert_eq!(result(&governor, "proof/query", &range)["total"], 3);
    let stats = result(&governor, "proof/stats", &range);
    assert_eq!(stats["totalRecords"], 3);
    assert_eq!(stats["period"], json!({ "from": "2027-01-15T08:00:01.000Z", "to": "2027-01-15T08:00:03.000Z" }));
}

#[test]
fn filters_of_a_query_are_all_applied() {
    let governor = in_memory();
    let allowed = governor.enforce(&reading("a")).unwrap().proof_id;
    let denied = governor.enforce(&intent("a", &["file:delete"])).unwrap().proof_id;
    governor.report(&allowed, Outcome::Success).unwrap();
    governor.report(&denied, Outcome::Failure).unwrap();
    common::decide(&governor, "a");
    for (filter, expected) in [
        (json!({ "decision": "ALLOW" }), 2),
        (json!({ "decision": "DENY" }), 1),
        (json!({ "decision": "ESCALATE" }), 0),
        (json!({ "outcome": "SUCCESS" }), 1),
        (json!({ "outcome": "FAILURE", "decision": "DENY" }), 1),
        (json!({ "outcome": "FAILURE", "decision": "ALLOW" }), 0),
    ] {
        let mut params = filter.clone();
        params["entityId"] = json!("a");
        assert_eq!(result(&governor, "proof/query", &params)["total"], expected, "{filter}");
    }
}

#[test]
fn statistics_have_the_contracts_fields_and_add_up() {
    let governor = in_memory();
    let first = governor.enforce(&reading("a")).unwrap().proof_id;
    for capabilities in [&["file:delete"], &["email:send"], &["code:write"]] {
        governor.enforce(&intent("a", capabilities)).unwrap();
    }
    let degraded = governor.enforce(&intent("a", &["document:read", "code:write"])).unwrap().proof_id;
    governor.report(&first, Outcome::Success).unwrap();
    governor.report(&degraded, Outcome::Failure).unwrap();

    let stats = result(&governor, "proof/stats", &json!({ "entityId": "a" }));
    assert_fields(
        &stats,
        &[
            ("entityId", Is::Text),
            ("totalRecords", Is::Whole),
            ("successRate", Is::Number),
            ("averageTrustScore", Is::Number),
            ("chainIntegrity", Is::Flag),
            ("decisionBreakdown", Is::Object),
            ("riskBreakdown", Is::Object),
            ("period", Is::Object),
        ],
    );
    assert_eq!(stats["totalRecords"], 5);
    assert_eq!(stats["successRate"], 0.5);
    assert_eq!(stats["averageTrustScore"], 724.0);
    assert_eq!(stats["chainIntegrity"], true);
    assert_eq!(stats["decisionBreakdown"], json!({ "ALLOW": 1, "DENY": 2, "ESCALATE": 1, "DEGRADE": 1 }));
    let by_risk: u64 = RISKS.iter().map(|risk| stats["riskBreakdown"][risk].as_u64().unwrap()).sum();
    assert_eq!((by_risk, stats["riskBreakdown"].as_object().unwrap().len()), (5, 4));
    assert_fields(&stats["period"], &[("from", TIME), ("to", TIME)]);
}

#[test]
fn statistics_without_records_are_zeros_and_null_ends() {
    let governor = in_memory();
    let stats = result(&governor, "proof/stats", &json!({ "entityId": "nobody" }));
    assert_eq!(
        stats,
        json!({
            "entityId": "nobody",
            "totalRecords": 0,
            "successRate": 0.0,
            "averageTrustScore": 0.0,
            "chainIntegrity": true,
            "decisionBreakdown": { "ALLOW": 0, "DENY": 0, "ESCALATE": 0, "DEGRADE": 0 },
            "riskBreakdown": { "LOW": 0, "MEDIUM": 0, "HIGH": 0, "CRITICAL": 0 },
            "period": { "from": null, "to": null },
        })
    );
}

#[test]
fn the_status_has_the_contracts_fields_and_counts_what_was_done() {
    // A day must not end between two of these calls.
    let clock = common::Still::at(common::NOON);
    let governor = Served::new(&builder().clock(clock).open_in_memory().unwrap());
    for agent in ["a", "b", "c"] {
        governor.agents().register(Agent::new(agent)).unwrap();
    }
    governor.agents().suspend("c", "").unwrap();
    governor.enforce(&reading("a")).unwrap();
    governor.enforce(&intent("b", &["email:send"])).unwrap();

    let status = result(&governor, "admin/status", &json!({}));
    assert_fields(
        &status,
        &[
            ("status", Is::OneOf(HEALTHS)),
            ("version", Is::Form("[0-9]+[.][0-9]+[.][0-9]+")),
            ("uptime", Is::Whole),
            ("components", Is::Object),
            ("metrics", Is::Object),
            ("timestamp", TIME),
        ],
    );
    let components = ["gateway", "trustEngine", "proofChain", "intentParser", "database"];
    assert_fields(&status["components"], &components.map(|name| (name, Is::OneOf(HEALTHS))));
    assert_eq!(status["status"], "healthy");
    assert_eq!(status["version"], env!("CARGO_PKG_VERSION"));
    assert_fields(
        &status["metrics"],
        &[
            ("activeAgents", Is::Whole),
            ("decisionsToday", Is::Whole),
            ("averageLatencyMs", Is::Number),
            ("proofChainLength", Is::Whole),
            ("escalationsToday", Is::Whole),
            // In addition to the specification.
            ("latency", Is::Object),
        ],
    );
    let metrics = &status["metrics"];
    assert_eq!((&metrics["activeAgents"], &metrics["proofChainLength"]), (&json!(2), &json!(2)));
    assert_eq!((&metrics["decisionsToday"], &metrics["escalationsToday"]), (&json!(2), &json!(1)));
    assert!(metrics["averageLatencyMs"].as_f64().unwrap() > 0.0);
}

#[test]
fn what_was_decided_yesterday_is_not_counted_for_today() {
    let clock = common::Hand::at(common::NOON);
    let governor = Served::new(&builder().clock(clock.clone()).open_in_memory().unwrap());
    governor.agents().register(Agent::new("a")).unwrap();
    governor.enforce(&intent("a", &["email:send"])).unwrap();
    clock.set(common::NOON + 24 * 3_600_000);
    let metrics = governor.status().metrics;
    assert_eq!((metrics.decisions_today, metrics.escalations_today, metrics.proof_chain_length), (0, 0, 1));
}

#[test]
fn each_decision_comes_about_by_the_rules_that_it_names() {
    let governor = in_memory();
    for (capabilities, decision, granted, rule) in [
        (&["document:read"][..], Decision::Allow, &["document:read"][..], "reading-is-fine"),
        (&["file:delete"], Decision::Deny, &[], "nobody-deletes-files"),
        (&["email:send"], Decision::Escalate, &[], "mail-needs-a-person"),
        (&["database:read", "database:write"], Decision::Degrade, &["database:read"], "databases-are-only-read"),
    ] {
        let enforced = governor.enforce(&intent("a", capabilities)).unwrap();
        assert_eq!(enforced.decision, decision, "{capabilities:?}");
        let found: Vec<&str> = enforced.granted_capabilities.iter().map(rulekeep::intent::Capability::as_str).collect();
        assert_eq!(found, granted, "{capabilities:?}");
        assert!(enforced.reasoning.contains(rule), "{:?} does not name {rule}", enforced.reasoning);
    }
}

#[test]
fn capabilities_are_resolved_one_by_one() {
    let governor = in_memory();
    for (capabilities, decision, granted) in [
        (&["document:read", "file:read"][..], Decision::Allow, &["document:read", "file:read"][..]),
        (&["document:read", "file:delete"], Decision::Degrade, &["document:read"]),
        (&["code:write", "document:read"], Decision::Degrade, &["document:read"]),
        (&["email:send", "document:read"], Decision::Escalate, &[]),
        (&["code:write"], Decision::Deny, &[]),
        (&["file:delete", "code:write"], Decision::Deny, &[]),
    ] {
        let enforced = governor.enforce(&intent("a", capabilities)).unwrap();
        assert_eq!(enforced.decision, decision, "{capabilities:?}");
        let found: Vec<&str> = enforced.granted_capabilities.iter().map(rulekeep::intent::Capability::as_str).collect();
        assert_eq!(found, granted, "{capabilities:?}");
    }
}

#[test]
fn a_person_is_not_asked_where_a_part_is_denied_outright() {
    let governor = in_memory();
    let enforced = governor.enforce(&intent("a", &["email:send", "file:delete"])).unwrap();
    assert_eq!(enforced.decision, Decision::Deny);
    assert!(enforced.granted_capabilities.is_empty());
}

#[test]
fn granted_and_denied_part_the_required_capabilities() {
    let governor = in_memory();
    let all = ["document:read", "file:read", "file:delete", "email:send", "database:read", "code:write"];
    for chosen in 1_usize..1 << all.len() {
        let required: Vec<&str> =
            all.iter().enumerate().filter(|(place, _)| chosen >> place & 1 == 1).map(|(_, name)| *name).collect();
        let enforced = governor.enforce(&intent("a", &required)).unwrap();
        let mut parted: Vec<&str> = enforced
            .granted_capabilities
            .iter()
            .chain(&enforced.denied_capabilities)
            .map(rulekeep::intent::Capability::as_str)
            .collect();
        parted.sort_unstable();
        let mut expected = required.clone();
        expected.sort_unstable();
        assert_eq!(parted, expected, "{required:?}");
        let grants = matches!(enforced.decision, Decision::Allow | Decision::Degrade);
        assert_eq!(grants, !enforced.granted_capabilities.is_empty(), "{required:?}: {:?}", enforced.decision);
        assert_eq!(enforced.decision == Decision::Allow, enforced.denied_capabilities.is_empty(), "{required:?}");
    }
}

#[test]
fn constraints_of_several_rules_merge_to_the_tightest() {
    let governor = in_memory();
    let enforced = governor.enforce(&intent("a", &["document:read", "document:write"])).unwrap();
    assert_eq!(
        json!(enforced.constraints),
        json!({ "maxRecords": 10, "timeoutMs": 30000, "allowedHosts": ["a.example", "b.example"] })
    );
}

#[test]
fn what_is_not_granted_carries_no_constraints() {
    let governor = in_memory();
    for capabilities in [["file:delete"], ["email:send"], ["code:write"]] {
        assert!(governor.enforce(&intent("a", &capabilities)).unwrap().constraints.is_empty(), "{capabilities:?}");
    }
}

#[test]
fn nothing_matched_means_deny() {
    let nothing = rulekeep::PolicySet::from_toml("name = \"nothing\"\nrule = []").unwrap();
    let governor = Governor::builder().policies(nothing).open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T5)).unwrap();
    assert_eq!(governor.enforce(&reading("a")).unwrap().decision, Decision::Deny);
}

#[test]
fn a_suspended_agent_is_denied_everything_until_it_is_resumed() {
    let governor = in_memory();
    governor.agents().suspend("a", "under review").unwrap();
    let denied = governor.enforce(&reading("a")).unwrap();
    assert_eq!((denied.decision, denied.granted_capabilities.len()), (Decision::Deny, 0));
    assert_eq!(json!(denied.denied_capabilities), json!(["document:read"]));
    governor.agents().resume("a", "cleared").unwrap();
    assert_eq!(governor.enforce(&reading("a")).unwrap().decision, Decision::Allow);
}

#[test]
fn an_intent_built_by_hand_is_given_what_it_lacks() {
    let governor = in_memory();
    let bare = json!({
        "agentId": "a", "parsedAction": "read_notes", "riskLevel": "LOW", "requiredCapabilities": ["document:read"],
    });
    let enforced = result(&governor, "enforce", &json!({ "intent": bare }));
    let with_evidence = json!({ "proofId": enforced["proofId"], "evidence": true });
    let seen = result(&governor, "proof/get", &with_evidence)["evidence"]["intent"].clone();
    assert_is_intent(&seen);
    assert_eq!(seen["context"], json!({}));
}

#[test]
fn an_unknown_field_of_a_request_is_refused_with_what_was_meant() {
    let governor = in_memory();
    let mut given = serde_json::to_value(reading("a")).unwrap();
    for (method, params, says) in [
        (
            "enforce",
            json!({ "agentId": "a", "input": "x", "contxt": {} }),
            "unknown field \"contxt\"; did you mean \"context\"?",
        ),
        ("proof/query", json!({ "decison": "DENY" }), "did you mean \"decision\"?"),
        ("enforce", json!({ "intent": given, "another": true }), "unknown field \"another\""),
        ("agent/get", json!({ "agentId": "a", "verbose": true }), "unknown field \"verbose\""),
    ] {
        let refused = call(&governor, method, &params);
        assert!(refused["error"]["message"].as_str().unwrap().contains(says), "{method}: {refused}");
    }
    given["surprise"] = json!(1);
    let refused = call(&governor, "enforce", &json!({ "intent": given }));
    assert!(refused["error"]["message"].as_str().unwrap().contains("unknown field \"surprise\""), "{refused}");
    // A complete parse result can be sent back.
    let parsed = result(&governor, "intent", &json!({ "agentId": "a", "input": "Read the file notes.txt" }));
    assert_eq!(result(&governor, "enforce", &parsed)["decision"], "ALLOW");
}

#[test]
fn a_caller_can_raise_its_risk_and_not_talk_it_down() {
    let governor = in_memory();
    let claim = |risk: RiskLevel, capability: &str| {
        let claimed = rulekeep::Intent::new("a", "read_document", risk, [capability]).unwrap();
        let proof_id = governor.enforce(&claimed).unwrap().proof_id;
        governor.log().record(&proof_id).unwrap().risk_level
    };
    assert_eq!(claim(RiskLevel::Critical, "document:read"), RiskLevel::Critical);
    assert_eq!(claim(RiskLevel::Low, "document:read"), RiskLevel::Low);
    assert_eq!(claim(RiskLevel::Low, "credential:read"), RiskLevel::High);
}

#[test]
fn an_error_carries_its_code_and_its_http_status() {
    let governor = in_memory();
    for (method, params, code, status) in [
        ("intent", json!({ "agentId": "nobody", "input": "x" }), "AGENT_NOT_FOUND", 404),
        ("intent", json!({ "agentId": "a" }), "INVALID_INPUT", 400),
        ("enforce", json!({ "intent": {} }), "INVALID_INTENT", 400),
        ("enforce", json!({ "intent": reading("nobody") }), "AGENT_NOT_FOUND", 404),
        ("proof/query", json!({ "entityId": "a", "page": 0 }), "INVALID_QUERY", 400),
        ("proof/get", json!({ "proofId": "prf_x" }), "PROOF_NOT_FOUND", 404),
        ("agent/register", json!({ "agentId": "a" }), "CONFLICT", 409),
        ("policy/load", json!({ "text": "", "format": "toml" }), "POLICY_ERROR", 422),
    ] {
        let data = refusal(&governor, method, &params);
        assert_eq!((&data["code"], &data["httpStatus"]), (&json!(code), &json!(status)), "{method} {params}");
    }
    let answer = call(&governor, "proof/get", &json!({ "proofId": "prf_x" }));
    assert_fields(&answer, &[("jsonrpc", Is::Form("2[.]0")), ("id", Is::There), ("error", Is::Object)]);
    assert_fields(&answer["error"], &[("code", Is::There), ("message", Is::Text), ("data", Is::Object)]);
}

/// Agents whose ids are difficult to write or read in JSON.
const HARD_TO_WRITE: [&str; 13] = [
    "plain",
    "with \"quotes\" and 'others'",
    "back\\slash \\n \\u0041 \\",
    "sla/sh </script>",
    "ünïcödé é e\u{301}",
    "日本語",
    "😀 beyond the first plane 𝒳",
    "line\u{2028}and\u{2029}separators",
    "zero\u{200d}width\u{feff}and\u{200b}more",
    "\u{fffd}\u{fffe}\u{ffff}\u{10ffff}",
    "no\u{a0}break\u{ad}soft",
    "{\"outcome\":\"SUCCESS\",\"hash\":\"x\"}",
    "1e999",
];

#[test]
fn a_record_read_over_the_wire_is_the_one_that_the_chain_has() {
    let governor = Served::new(&builder().auto_register().open_in_memory().unwrap());
    for agent in HARD_TO_WRITE {
        governor.report(&decide(&governor, agent), Outcome::Failure).unwrap();
        let page = result(&governor, "proof/query", &json!({ "entityId": agent }));
        assert_eq!(page["items"], json!(chain(&governor, &[agent])));
        assert_eq!(page["items"][0]["entityId"], agent);
    }
}
