//! The five endpoints of the specification, with methods, parameters, defaults, statuses and bodies.

use rulekeep::PolicySet;
use serde_json::{Value, json};

use super::live::{Ask, Live, NOON, mailing, reading};

fn names(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn intent_parses_and_answers_the_parse_result() {
    let live = Live::new();
    let body =
        json!({ "agentId": "a", "input": "Read the file notes.txt", "context": { "environment": "production" } });
    let answer = live.post("/v1/intent", &live.agent, &body).ok();
    assert_eq!(names(&answer), ["alternatives", "confidence", "intent"]);
    let intent = &answer["intent"];
    for field in ["id", "agentId", "parsedAction", "riskLevel", "requiredCapabilities", "context", "timestamp"] {
        assert!(intent.get(field).is_some(), "{field}: {intent}");
    }
    assert!(intent["id"].as_str().unwrap().starts_with("int_"));
    assert_eq!((&intent["agentId"], &intent["context"]["environment"]), (&json!("a"), &json!("production")));
    assert!(answer["confidence"].as_f64().is_some_and(|confidence| (0.0..=1.0).contains(&confidence)));
    // A parse result can be decided unchanged.
    let verdict = live.post("/v1/enforce", &live.agent, &json!({ "intent": intent })).ok();
    assert_eq!(
        live.get(&format!("/v1/proof/records/{}", verdict["proofId"].as_str().unwrap()), &live.agent).ok()["intentId"],
        intent["id"]
    );
}

#[test]
fn intent_has_the_errors_of_its_table() {
    let live = Live::new();
    let code = |body: &Value| live.post("/v1/intent", &live.agent, body).refusal();
    for wrong in [
        json!({}),
        json!({ "agentId": "a" }),
        json!({ "input": "read" }),
        json!({ "agentId": "a", "input": "" }),
        json!({ "agentId": "a", "input": "  " }),
        json!({ "agentId": 1, "input": "read" }),
        json!({ "agentId": "a", "input": "read", "context": [] }),
        json!({ "agentId": "a\nb", "input": "read" }),
        json!([]),
        json!("read"),
        json!(null),
    ] {
        assert_eq!(code(&wrong), (400, "INVALID_INPUT".into()), "{wrong}");
    }
    let missing = live.ask(&Ask::new("POST", "/v1/intent").key(&live.agent));
    assert_eq!(missing.refusal(), (400, "INVALID_INPUT".into()));
    assert_eq!(code(&json!({ "agentId": "nobody", "input": "read" })), (404, "AGENT_NOT_FOUND".into()));
    assert_eq!(live.post("/v1/intent", "x", &json!({})).refusal(), (401, "UNAUTHORIZED".into()));
}

#[test]
fn enforce_decides_on_both_forms_and_records_each_decision() {
    let live = Live::new();
    let decided = [
        (reading("a"), "ALLOW"),
        (mailing("a"), "ESCALATE"),
        (
            json!({ "intent": { "agentId": "a", "parsedAction": "delete_file", "riskLevel": "LOW", "requiredCapabilities": ["file:delete"] } }),
            "DENY",
        ),
        (
            json!({ "intent": { "agentId": "a", "parsedAction": "change_rows", "riskLevel": "LOW", "requiredCapabilities": ["database:read", "database:write"] } }),
            "DEGRADE",
        ),
    ];
    for (place, (body, decision)) in decided.iter().enumerate() {
        let answer = live.post("/v1/enforce", &live.agent, body).ok();
        assert_eq!(&answer["decision"], decision);
        let mut fields = vec![
            "constraints",
            "decision",
            "deniedCapabilities",
            "grantedCapabilities",
            "proofId",
            "reasoning",
            "trustSnapshot",
        ];
        if *decision == "DENY" {
            fields.extend(["denialClass", "retryable"]);
            fields.sort_unstable();
            assert_eq!((&answer["denialClass"], &answer["retryable"]), (&json!("policy"), &json!(false)));
        }
        assert_eq!(names(&answer), fields);
        assert_eq!(names(&answer["trustSnapshot"]), ["score", "tier", "tierName"]);
        assert_eq!(
            (&answer["trustSnapshot"]["tier"], &answer["trustSnapshot"]["tierName"]),
            (&json!("T4"), &json!("Standard"))
        );
        assert!(answer["proofId"].as_str().unwrap().starts_with("prf_"));
        assert_eq!(live.records("a"), place as u64 + 1);
    }
    let call = json!({ "tool": "read_file", "server": "desk", "arguments": { "path": "notes.txt" } });
    let asked = live.post("/v1/enforce", &live.agent, &json!({ "agentId": "a", "input": call })).ok();
    let act = &asked["intent"]["context"]["facts"]["acts"][0];
    assert_eq!((&act["tool"], &act["server"]), (&json!("read_file"), &json!("desk")));
    let wrong = json!({ "agentId": "a", "input": { "tool": "read_file", "arguments": {}, "sever": "desk" } });
    assert_eq!(live.post("/v1/enforce", &live.agent, &wrong).refusal().0, 400);
    let body = json!({ "agentId": "a", "input": "Read the file notes.txt", "context": { "environment": "test" } });
    let answer = live.post("/v1/enforce", &live.agent, &body).ok();
    for field in ["decision", "proofId", "trustSnapshot", "intent", "confidence", "alternatives"] {
        assert!(answer.get(field).is_some(), "{field}: {answer}");
    }
    assert_eq!(live.records("a"), 6);
}

#[test]
fn enforce_has_the_errors_of_its_table() {
    let live = Live::new();
    let code = |body: &Value| live.post("/v1/enforce", &live.agent, body).refusal();
    let with = |field: &str, value: Value| {
        let mut body = reading("a");
        body["intent"][field] = value;
        body
    };
    for wrong in [
        json!({}),
        json!([]),
        json!({ "intent": {} }),
        json!({ "intent": "read" }),
        json!({ "intent": [] }),
        json!({ "intent": null }),
        with("riskLevel", json!("low")),
        with("riskLevel", json!(null)),
        with("requiredCapabilities", json!(["no capability"])),
        with("requiredCapabilities", json!("document:read")),
        with("parsedAction", json!("")),
        with("agentId", json!(7)),
        with("context", json!(3)),
        with("id", json!("prf_1")),
        json!({ "intent": reading("a")["intent"], "agentId": "a", "input": "read" }),
        json!({ "agentId": "a" }),
    ] {
        assert_eq!(code(&wrong), (400, "INVALID_INTENT".into()), "{wrong}");
    }
    let missing = live.ask(&Ask::new("POST", "/v1/enforce").key(&live.agent));
    assert_eq!(missing.refusal(), (400, "INVALID_INTENT".into()));
    assert_eq!(code(&reading("nobody")), (404, "AGENT_NOT_FOUND".into()));
    assert_eq!(code(&json!({ "agentId": "nobody", "input": "read" })), (404, "AGENT_NOT_FOUND".into()));
    assert_eq!(live.post("/v1/enforce", "x", &reading("a")).refusal(), (401, "UNAUTHORIZED".into()));
    assert_eq!(live.records("a"), 0, "something was decided");
}

#[test]
fn what_would_be_kept_as_something_else_is_refused() {
    let live = Live::new();
    let reserved = json!({ "$serde_json::private::RawValue": "}{" });
    for context in [json!({ "x": reserved }), json!({ "x": [{ "y": reserved }] }), reserved] {
        let mut body = reading("a");
        body["intent"]["context"] = context.clone();
        assert_eq!(live.post("/v1/enforce", &live.agent, &body).refusal(), (400, "INVALID_INTENT".into()));
        let input = json!({ "agentId": "a", "input": "Read the file notes.txt", "context": context });
        assert_eq!(live.post("/v1/intent", &live.agent, &input).refusal(), (400, "INVALID_INPUT".into()));
        let attributes = json!({ "agentId": "x", "attributes": { "t": context } });
        assert_eq!(live.post("/v1/admin/agents", &live.admin, &attributes).refusal().0, 400);
    }
    let text = reading("a").to_string().replacen(
        r#"{"agentId""#,
        r#"{"context":{"account":12345678901234567890123},"agentId""#,
        1,
    );
    assert!(text.contains("12345678901234567890123"), "{text}");
    let rounded = Ask::new("POST", "/v1/enforce").key(&live.agent).raw("application/json", text);
    assert_eq!(live.ask(&rounded).refusal(), (400, "INVALID_INTENT".into()));
    assert_eq!(live.records("a"), 0);
}

#[test]
fn a_failed_condition_is_a_policy_error_with_a_denials_record() {
    let live = Live::new();
    let small_amounts = "name = \"m\"\n[[rule]]\nid = \"send\"\neffect = \"allow\"\n\
                         match.capabilities = [\"email:send\"]\nwhen = \"context.amount < 50\"\n";
    live.governor.policies().load(PolicySet::from_toml(small_amounts).unwrap()).unwrap();
    let ask = |context: Value| {
        let mut body = mailing("a");
        body["intent"]["context"] = context;
        live.post("/v1/enforce", &live.agent, &body)
    };
    let refused = ask(json!({}));
    assert_eq!(refused.refusal(), (422, "POLICY_ERROR".into()));
    let body: Value = serde_json::from_slice(&refused.body).unwrap();
    let details = &body["error"]["details"];
    assert_eq!((&details["denialClass"], &details["retryable"]), (&json!("error"), &json!(false)));
    let record = live.get(&format!("/v1/proof/records/{}", details["proofId"].as_str().unwrap()), &live.agent).ok();
    assert_eq!(record["decision"], "DENY");
    assert!(record["reasoning"].as_str().unwrap().contains("POLICY_ERROR"), "{record}");
    assert_eq!(live.records("a"), 1);
    assert_eq!(ask(json!({ "amount": 20 })).ok()["decision"], "ALLOW");
}

#[test]
fn a_query_pages_as_the_contract_says() {
    let live = Live::new();
    for _ in 0..203 {
        live.governor.enforce(&crate::common::reading("a")).unwrap();
    }
    let page = |query: &str| live.get(&format!("/v1/proof/query?entityId=a{query}"), &live.agent);
    let first = page("").ok();
    assert_eq!(names(&first), ["hasMore", "items", "page", "pageSize", "total"]);
    let numbers = |page: &Value| {
        let number = |field: &str| page[field].as_u64().unwrap();
        (
            page["items"].as_array().unwrap().len(),
            number("total"),
            number("page"),
            number("pageSize"),
            page["hasMore"] == true,
        )
    };
    assert_eq!(numbers(&first), (50, 203, 1, 50, true));
    assert_eq!(numbers(&page("&page=5").ok()), (3, 203, 5, 50, false));
    assert_eq!(numbers(&page("&pageSize=200").ok()), (200, 203, 1, 200, true));
    assert_eq!(numbers(&page("&pageSize=200&page=2").ok()), (3, 203, 2, 200, false));
    assert_eq!(numbers(&page("&page=900").ok()), (0, 203, 900, 50, false));
    for field in [
        "id",
        "entityId",
        "intentId",
        "decision",
        "reasoning",
        "trustScore",
        "trustTier",
        "riskLevel",
        "timestamp",
        "hash",
        "previousHash",
    ] {
        assert!(first["items"][0].get(field).is_some(), "{field}");
    }
    assert!(first["items"][0].get("outcome").is_none(), "an outcome that nobody reported");
    for (query, total) in [
        ("&decision=ALLOW", 203),
        ("&decision=DENY", 0),
        ("&outcome=SUCCESS", 0),
        ("&from=2027-01-15T12:00:00.000Z&to=2027-01-15T12:00:00.000Z", 203),
        ("&from=2027-01-15T13:00:00%2B01:00", 203),
        ("&to=2027-01-15T11:59:59.999Z", 0),
        ("&from=2027-01-15T12:00:00.001Z", 0),
    ] {
        assert_eq!(page(query).ok()["total"], total, "{query}");
    }
    for wrong in [
        "&pageSize=201",
        "&pageSize=0",
        "&page=0",
        "&page=-1",
        "&page=1.0",
        "&page=x",
        "&page=",
        "&pageSize=18446744073709551616",
        "&from=2027-01-15T12:00:00Z&to=2027-01-15T11:00:00Z",
        "&from=today",
        "&to=2027-01-15",
        "&decision=allow",
        "&decison=ALLOW",
        "&unknown=1",
        "&decision=MAYBE",
        "&outcome=success",
        "&outcome=",
        "&order=up",
        "&risk=NONE",
        "&entityId=b",
        "&page=1&page=1",
        "&cursor=x",
    ] {
        assert_eq!(page(wrong).refusal(), (400, "INVALID_QUERY".into()), "{wrong}");
    }
    for none in ["/v1/proof/query", "/v1/proof/query?entityId", "/v1/proof/query?EntityId=a", "/v1/proof/stats"] {
        assert_eq!(live.get(none, &live.agent).refusal(), (400, "INVALID_QUERY".into()), "{none}");
    }
}

#[test]
fn statistics_are_those_of_the_entity() {
    let live = Live::new();
    for body in [reading("a"), reading("a"), mailing("a"), reading("b")] {
        live.post("/v1/enforce", &live.agent, &body).ok();
    }
    let stats =
        live.get("/v1/proof/stats?entityId=a&from=2027-01-01T00:00:00Z&to=2027-02-01T00:00:00Z", &live.agent).ok();
    for field in [
        "entityId",
        "totalRecords",
        "successRate",
        "averageTrustScore",
        "chainIntegrity",
        "decisionBreakdown",
        "riskBreakdown",
        "period",
    ] {
        assert!(stats.get(field).is_some(), "{field}: {stats}");
    }
    assert_eq!(stats["decisionBreakdown"], json!({ "ALLOW": 2, "DENY": 0, "ESCALATE": 1, "DEGRADE": 0 }));
    assert_eq!(names(&stats["riskBreakdown"]).len(), 4);
    assert_eq!(
        (&stats["entityId"], &stats["totalRecords"], &stats["chainIntegrity"]),
        (&json!("a"), &json!(3), &json!(true))
    );
    assert_eq!(names(&stats["period"]), ["from", "to"]);
    for wrong in [
        "&from=x",
        "&from=2027-02-01T00:00:00Z&to=2027-01-01T00:00:00Z",
        "&from=2027-01-01T00:00:00Z&from=2027-01-01T00:00:00Z",
    ] {
        let answer = live.get(&format!("/v1/proof/stats?entityId=a{wrong}"), &live.agent);
        assert_eq!(answer.refusal(), (400, "INVALID_QUERY".into()), "{wrong}");
    }
}

#[test]
fn the_status_is_for_administrators() {
    let live = Live::new();
    let status = live.get("/v1/admin/status", &live.admin).ok();
    assert_eq!(names(&status), ["components", "metrics", "status", "timestamp", "uptime", "version"]);
    for component in ["gateway", "trustEngine", "proofChain", "intentParser", "database"] {
        assert!(status["components"][component].is_string(), "{component}");
    }
    for metric in ["activeAgents", "decisionsToday", "averageLatencyMs", "proofChainLength", "escalationsToday"] {
        assert!(status["metrics"][metric].is_number(), "{metric}");
    }
    assert_eq!((&status["status"], &status["version"]), (&json!("healthy"), &json!(env!("CARGO_PKG_VERSION"))));
    assert_eq!(status["timestamp"], rulekeep::system::Timestamp::from_millis(NOON).to_string());
    assert_eq!(live.get("/v1/admin/status", &live.agent).refusal(), (403, "FORBIDDEN".into()));
    let anybody = live.ask(&Ask::new("GET", "/v1/admin/status"));
    assert_eq!(anybody.refusal(), (401, "UNAUTHORIZED".into()));
    assert_eq!(anybody.header("www-authenticate"), Some("Bearer"));
}

#[test]
fn the_paths_that_are_named_do_what_they_say() {
    let live = Live::new();
    let made =
        live.post("/v1/admin/agents", &live.admin, &json!({ "agentId": "c", "tier": "T3", "labels": ["x"] })).ok();
    assert_eq!((&made["agentId"], &made["tier"]), (&json!("c"), &json!("T3")));
    let made = live.post("/v1/admin/agents", &live.admin, &json!({ "agentId": "d", "score": 500 })).ok();
    assert_eq!(made["score"], 500);
    assert_eq!(
        live.post("/v1/admin/agents", &live.admin, &json!({ "agentId": "d" })).refusal(),
        (409, "CONFLICT".into())
    );

    let body = json!({ "scope": "agent", "plan": "pro", "agents": ["c"], "builtIntents": true, "expiresAt": "2027-01-16T00:00:00Z" });
    let made = live.post("/v1/admin/keys", &live.admin, &body).ok();
    assert!(made["id"].is_string() && made["key"].as_str().unwrap().starts_with("rkp_agent_"), "{made}");
    let key = made["key"].as_str().unwrap();
    let listed = live.get("/v1/admin/keys", &live.admin);
    assert!(!String::from_utf8(listed.body.clone()).unwrap().contains(key), "a key is shown again");
    assert!(listed.ok()["keys"].as_array().unwrap().iter().any(|known| known["id"] == made["id"]));

    let decided = live.post("/v1/enforce", key, &reading("c")).ok();
    let report = json!({ "proofId": decided["proofId"], "outcome": "SUCCESS" });
    let record = live.post("/v1/proof/outcome", key, &report).ok();
    assert_eq!((&record["id"], &record["outcome"]), (&decided["proofId"], &json!("SUCCESS")));
    assert_eq!(live.post("/v1/proof/outcome", key, &report).ok(), record, "the same again is fine");
    let other = json!({ "proofId": decided["proofId"], "outcome": "FAILURE" });
    assert_eq!(live.post("/v1/proof/outcome", key, &other).refusal(), (409, "CONFLICT".into()));
    let unknown = json!({ "proofId": "prf_x", "outcome": "SUCCESS" });
    assert_eq!(live.post("/v1/proof/outcome", &live.agent, &unknown).refusal(), (404, "PROOF_NOT_FOUND".into()));
    for wrong in [
        json!({}),
        json!({ "proofId": decided["proofId"] }),
        json!({ "proofId": decided["proofId"], "outcome": "DONE" }),
    ] {
        assert_eq!(live.post("/v1/proof/outcome", key, &wrong).refusal(), (400, "INVALID_INPUT".into()), "{wrong}");
    }
}
