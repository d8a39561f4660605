//! The sidecar protocol, used as a runtime in another language would: every method, every JSON-RPC error, batches and
//! notifications, and lines malformed in many ways. No line ever ends the session.

use crate::common::{self, Served, call, in_memory, intent, reading, refusal, result, serve};
use proptest::prelude::*;
use proptest::test_runner::Config;
use rulekeep::proof::EvidenceSelection;
use rulekeep_server::sidecar::{MAX_LINE_BYTES, MAX_REQUEST_BYTES};
use serde_json::{Value, json};

const PING: &str = r#"{"jsonrpc":"2.0","id":"ping","method":"agent/get","params":{"agentId":"a"}}"#;

/// Asserts that the response is an error of JSON-RPC itself.
fn assert_fault(answer: &Value, code: i64, id: &Value) {
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), id), "{answer}");
    assert!(answer["error"]["message"].is_string() && answer.get("result").is_none(), "{answer}");
    assert_eq!(answer["jsonrpc"], "2.0");
}

fn assert_still_answers(governor: &Served) {
    let answers = serve(governor, PING);
    assert_eq!(answers[0]["result"]["agentId"], "a", "{answers:?}");
}

mod methods {
    use super::*;

    #[test]
    fn an_agent_is_registered_by_score_by_tier_or_as_a_newcomer() {
        let governor = in_memory();
        for (params, expected) in [
            (
                json!({ "agentId": "x1" }),
                json!({ "agentId": "x1", "score": 200, "tier": "T1", "tierName": "Observed" }),
            ),
            (
                json!({ "agentId": "x2", "score": 1000, "labels": ["finance"] }),
                json!({ "agentId": "x2", "score": 1000, "tier": "T5", "tierName": "Trusted" }),
            ),
            (
                json!({ "agentId": "x3", "tier": "T0" }),
                json!({ "agentId": "x3", "score": 99, "tier": "T0", "tierName": "Sandbox" }),
            ),
        ] {
            assert_eq!(result(&governor, "agent/register", &params), expected);
            let agent = json!({ "agentId": params["agentId"] });
            assert_eq!(result(&governor, "agent/get", &agent), expected);
        }
    }

    #[test]
    fn an_agent_is_not_registered_by_fields_that_do_not_fit() {
        let governor = in_memory();
        for (params, code, field) in [
            (json!({}), "INVALID_INPUT", Some("agentId")),
            (json!({ "agentId": null }), "INVALID_INPUT", Some("agentId")),
            (json!({ "agentId": 7 }), "INVALID_INPUT", Some("agentId")),
            (json!({ "agentId": "" }), "INVALID_INPUT", Some("agentId")),
            (json!({ "agentId": "line\nbreak" }), "INVALID_INPUT", Some("agentId")),
            (json!({ "agentId": "x".repeat(257) }), "INVALID_INPUT", Some("agentId")),
            (json!({ "agentId": "x", "score": 10, "tier": "T1" }), "INVALID_INPUT", Some("tier")),
            (json!({ "agentId": "x", "score": 1001 }), "INVALID_INPUT", Some("score")),
            (json!({ "agentId": "x", "score": -1 }), "INVALID_INPUT", Some("score")),
            (json!({ "agentId": "x", "score": 1.5 }), "INVALID_INPUT", Some("score")),
            (json!({ "agentId": "x", "score": "10" }), "INVALID_INPUT", Some("score")),
            (json!({ "agentId": "x", "tier": "T6" }), "INVALID_INPUT", Some("tier")),
            (json!({ "agentId": "x", "labels": "finance" }), "INVALID_INPUT", Some("labels")),
            (json!({ "agentId": "x", "labels": [1] }), "INVALID_INPUT", Some("labels")),
            (json!({ "agentId": "x", "labels": ["two words"] }), "INVALID_INPUT", Some("labels")),
            (json!({ "agentId": "a" }), "CONFLICT", None),
        ] {
            let data = refusal(&governor, "agent/register", &params);
            assert_eq!((&data["code"], &data["details"]["field"]), (&json!(code), &json!(field)), "{params}");
        }
        assert_eq!(code_of(&governor, "agent/get", &json!({ "agentId": "x" })), "AGENT_NOT_FOUND");
    }

    #[test]
    fn suspending_and_resuming_show_the_agents_state() {
        let governor = in_memory();
        let shown = result(&governor, "agent/get", &json!({ "agentId": "a" }));
        for (method, state) in [("agent/suspend", "suspended"), ("agent/resume", "active")] {
            let mut expected = shown.clone();
            expected["state"] = json!(state);
            assert_eq!(result(&governor, method, &json!({ "agentId": "a", "note": "why" })), expected);
            assert_eq!(result(&governor, method, &json!({ "agentId": "a" })), expected);
            assert_eq!(code_of(&governor, method, &json!({ "agentId": "nobody" })), "AGENT_NOT_FOUND");
            let too_long = json!({ "agentId": "a", "note": "x".repeat(4097) });
            assert_eq!(refusal(&governor, method, &too_long)["details"]["field"], "note");
        }
    }

    #[test]
    fn an_input_is_parsed_into_an_intent() {
        let governor = in_memory();
        let parsed = result(&governor, "intent", &json!({ "agentId": "a", "input": "Read the notes" }));
        assert_eq!(parsed["intent"]["agentId"], "a");
        for field in ["agentId", "input"] {
            let mut params = json!({ "agentId": "a", "input": "Read the notes" });
            params.as_object_mut().unwrap().remove(field);
            let data = refusal(&governor, "intent", &params);
            assert_eq!((&data["code"], &data["details"]["field"]), (&json!("INVALID_INPUT"), &json!(field)));
        }
        let bad_context = json!({ "agentId": "a", "input": "Read the notes", "context": [] });
        assert_eq!(refusal(&governor, "intent", &bad_context)["details"]["field"], "context");
    }

    #[test]
    fn both_forms_of_a_request_are_enforced_and_recorded() {
        let governor = in_memory();
        let by_intent = result(&governor, "enforce", &json!({ "intent": reading("a") }));
        let by_input = result(&governor, "enforce", &json!({ "agentId": "a", "input": "Read the notes" }));
        assert!(by_intent.get("intent").is_none() && by_input["intent"].is_object());
        let ids = result(&governor, "proof/query", &json!({ "entityId": "a" }));
        let ids: Vec<&Value> = ids["items"].as_array().unwrap().iter().map(|item| &item["id"]).collect();
        assert_eq!(ids, [&by_input["proofId"], &by_intent["proofId"]]);
    }

    #[test]
    fn a_request_that_is_neither_form_or_both_is_an_invalid_intent() {
        let governor = in_memory();
        for (params, field) in [
            (json!({}), "intent"),
            (json!({ "intent": null }), "intent"),
            (json!({ "intent": "read" }), "intent"),
            (json!({ "intent": reading("a"), "input": "Read the notes" }), "intent"),
            (json!({ "agentId": "a" }), "input"),
            (json!({ "input": "Read the notes" }), "agentId"),
            (json!({ "agentId": 7, "input": "Read the notes" }), "agentId"),
            (json!({ "agentId": "a", "input": ["Read", "the", "notes"] }), "input"),
        ] {
            for method in ["enforce", "policy/explain"] {
                let data = refusal(&governor, method, &params);
                let (code, at) = (&data["code"], &data["details"]["field"]);
                assert_eq!((code, at), (&json!("INVALID_INTENT"), &json!(field)), "{method} {params}");
            }
        }
        assert_eq!(result(&governor, "proof/query", &json!({ "entityId": "a" }))["total"], 0);
    }

    #[test]
    fn an_outcome_is_reported_once() {
        let governor = in_memory();
        let proof_id = json!(common::decide(&governor, "a"));
        let report = |outcome: &str| json!({ "proofId": proof_id, "outcome": outcome, "note": "seen" });
        let record = result(&governor, "outcome/report", &report("FAILURE"));
        assert_eq!((&record["id"], &record["outcome"]), (&proof_id, &json!("FAILURE")));
        assert_eq!(result(&governor, "outcome/report", &report("FAILURE")), record);
        assert_eq!(code_of(&governor, "outcome/report", &report("SUCCESS")), "CONFLICT");
        assert_eq!(result(&governor, "proof/get", &json!({ "proofId": proof_id })), record);
    }

    #[test]
    fn an_outcome_report_names_what_is_wrong_with_it() {
        let governor = in_memory();
        let proof_id = json!(common::decide(&governor, "a"));
        for (params, code, field) in [
            (json!({ "outcome": "SUCCESS" }), "INVALID_INPUT", Some("proofId")),
            (json!({ "proofId": proof_id }), "INVALID_INPUT", Some("outcome")),
            (json!({ "proofId": proof_id, "outcome": "success" }), "INVALID_INPUT", Some("outcome")),
            (json!({ "proofId": proof_id, "outcome": "SUCCESS", "note": 1 }), "INVALID_INPUT", Some("note")),
            (json!({ "proofId": "prf_1", "outcome": "SUCCESS" }), "PROOF_NOT_FOUND", None),
        ] {
            let data = refusal(&governor, "outcome/report", &params);
            assert_eq!((&data["code"], &data["details"]["field"]), (&json!(code), &json!(field)), "{params}");
        }
        assert!(result(&governor, "proof/get", &json!({ "proofId": proof_id })).get("outcome").is_none());
    }

    #[test]
    fn a_query_names_the_parameter_that_is_out_of_range() {
        let governor = in_memory();
        for (params, parameter) in [
            (json!({}), "entityId"),
            (json!({ "entityId": "" }), "entityId"),
            (json!({ "entityId": "a", "page": 0 }), "page"),
            (json!({ "entityId": "a", "page": -1 }), "page"),
            (json!({ "entityId": "a", "page": "1" }), "page"),
            (json!({ "entityId": "a", "pageSize": 0 }), "pageSize"),
            (json!({ "entityId": "a", "pageSize": 201 }), "pageSize"),
            (json!({ "entityId": "a", "from": "yesterday" }), "from"),
            (json!({ "entityId": "a", "to": "2026-01-31" }), "to"),
            (json!({ "entityId": "a", "from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z" }), "from"),
            (json!({ "entityId": "a", "decision": "allow" }), "decision"),
            (json!({ "entityId": "a", "outcome": "DONE" }), "outcome"),
            (json!({ "entityId": "a", "risk": "NONE" }), "risk"),
            (json!({ "entityId": "a", "intentId": "1" }), "intentId"),
            (json!({ "entityId": "a", "order": "sideways" }), "order"),
            (json!({ "entityId": "a", "cursor": "" }), "cursor"),
            (json!({ "entityId": "a", "cursor": 1 }), "cursor"),
            (json!({ "entityId": "a", "cursor": format!("c1{}", "0".repeat(64)) }), "cursor"),
            (json!({ "entityId": "a", "cursor": "start", "page": 2 }), "page"),
        ] {
            let data = refusal(&governor, "proof/query", &params);
            let (code, at) = (&data["code"], &data["details"]["parameter"]);
            assert_eq!((code, at), (&json!("INVALID_QUERY"), &json!(parameter)), "{params}");
        }
        assert_eq!(result(&governor, "proof/query", &json!({ "entityId": "a", "pageSize": 200 }))["pageSize"], 200);
    }

    #[test]
    fn statistics_name_the_parameter_that_is_out_of_range() {
        let governor = in_memory();
        for (params, parameter) in [
            (json!({}), "entityId"),
            (json!({ "entityId": 1 }), "entityId"),
            (json!({ "entityId": "a", "from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z" }), "from"),
            (json!({ "entityId": "a", "to": 7 }), "to"),
        ] {
            let data = refusal(&governor, "proof/stats", &params);
            assert_eq!(data["details"]["parameter"], parameter, "{params}");
        }
    }

    #[test]
    fn a_verification_counts_the_records_and_names_the_last_hash() {
        let governor = in_memory();
        let zeros = format!("sha256:{}", "0".repeat(64));
        let empty = json!({ "valid": true, "records": 0, "headHash": zeros });
        assert_eq!(result(&governor, "proof/verify", &json!({})), empty);
        common::decide(&governor, "a");
        let proof_id = json!(common::decide(&governor, "a"));
        let last = result(&governor, "proof/get", &json!({ "proofId": proof_id }));
        let found = result(&governor, "proof/verify", &json!({}));
        assert_eq!(found, json!({ "valid": true, "records": 2, "headHash": last["hash"] }));
    }

    #[test]
    fn a_record_is_had_by_its_id_and_evidence_only_by_a_flag() {
        let governor = in_memory();
        let proof_id = json!(common::decide(&governor, "a"));
        let record = result(&governor, "proof/get", &json!({ "proofId": proof_id }));
        let mut with = result(&governor, "proof/get", &json!({ "proofId": proof_id, "evidence": true }));
        let evidence = with.as_object_mut().unwrap().remove("evidence").unwrap();
        assert_eq!(with, record);
        assert_eq!(evidence["intent"]["requiredCapabilities"], json!(["document:read"]));
        let wrong = json!({ "proofId": proof_id, "evidence": "yes" });
        assert_eq!(refusal(&governor, "proof/get", &wrong)["details"]["field"], "evidence");
        assert_eq!(refusal(&governor, "proof/get", &json!({}))["details"]["field"], "proofId");
    }

    #[test]
    fn a_record_is_had_without_its_evidence_where_that_was_erased() {
        let governor = in_memory();
        let proof_id = common::decide(&governor, "a");
        governor.log().erase_evidence(&EvidenceSelection::Records(vec![proof_id]), "asked for").unwrap();
        let found = result(&governor, "proof/get", &json!({ "proofId": json!(proof_id), "evidence": true }));
        assert_eq!((&found["evidence"], &found["evidenceErased"]), (&Value::Null, &json!(true)));
        assert_eq!(found["id"], json!(proof_id));
    }

    #[test]
    fn a_list_tells_requests_and_the_rules_that_decided() {
        let governor = in_memory();
        let listed = |params: Value| result(&governor, "proof/list", &params)["items"].clone();
        let proof_id = common::decide(&governor, "a");
        let call = r#"{"tool":"Bash","arguments":{"command":"rm -rf /srv/reports"}}"#;
        result(&governor, "enforce", &json!({ "agentId": "a", "input": call }));
        let items = listed(json!({ "request": true }));
        let [denied, allowed] = [&items[0]["request"], &items[1]["request"]];
        assert_eq!((&denied["tool"], &denied["command"]), (&json!("Bash"), &json!("rm -rf /srv/reports")), "{denied}");
        assert_eq!(denied["rules"], json!(["nobody-deletes-files"]));
        assert!(allowed["action"].is_string() && allowed["command"].is_null(), "{allowed}");
        governor.log().erase_evidence(&EvidenceSelection::Records(vec![proof_id]), "asked for").unwrap();
        assert_eq!(listed(json!({ "request": true }))[1].get("request"), None);
        assert_eq!(listed(json!({}))[0].get("request"), None);
    }

    #[test]
    fn the_status_needs_no_params() {
        let governor = in_memory();
        let answers = serve(&governor, r#"{"jsonrpc":"2.0","id":1,"method":"admin/status"}"#);
        assert_eq!(answers[0]["result"]["status"], "healthy");
    }

    #[test]
    fn validating_a_policy_changes_nothing_and_places_each_problem() {
        let governor = in_memory();
        let before = governor.policies().current().digest();
        let good = json!({ "text": common::POLICIES, "format": "toml" });
        assert_eq!(result(&governor, "policy/validate", &good), json!({ "valid": true, "problems": [] }));
        let bad = json!({ "text": "name = \"x\"\n[[rule]]\nid = \"r\"\neffekt = \"allow\"\n", "format": "toml" });
        let found = result(&governor, "policy/validate", &bad);
        assert_eq!(found["valid"], false);
        let problems = found["problems"].as_array().unwrap();
        let misspelt = problems.iter().find(|problem| problem["line"] == 4).expect("the unknown field's line");
        assert_eq!((&misspelt["column"], &misspelt["severity"]), (&json!(1), &json!("error")));
        assert!(misspelt["message"].as_str().unwrap().contains("effekt"), "{misspelt}");
        assert_eq!(governor.policies().current().digest(), before);
    }

    #[test]
    fn a_loaded_policy_is_in_force_at_once() {
        let governor = in_memory();
        let text = r#"{"name":"none","rule":[{"id":"nothing","effect":"deny","match":{"capabilities":["*:*"]}}]}"#;
        let loaded = result(&governor, "policy/load", &json!({ "text": text, "format": "json" }));
        assert_eq!((&loaded["digest"], &loaded["rules"]), (&json!(governor.policies().current().digest()), &json!(1)));
        assert_eq!(loaded["warnings"][0]["message"], "the policy has no allow or degrade rule: it grants nothing");
        assert_eq!(result(&governor, "enforce", &json!({ "intent": reading("a") }))["decision"], "DENY");
    }

    #[test]
    fn a_loaded_policy_says_what_it_leaves_behind() {
        let governor = in_memory();
        let asks = |id: &str| {
            let rule =
                format!("id = \"{id}\"\neffect = \"escalate\"\nmatch.capabilities = [\"*:*\"]\nreviewer = \"ann\"");
            json!({ "text": format!("name = \"p\"\n[[rule]]\n{rule}\n"), "format": "toml" })
        };
        assert!(result(&governor, "policy/load", &asks("first")).get("leftBehind").is_none());
        assert_eq!(result(&governor, "enforce", &json!({ "intent": reading("a") }))["decision"], "ESCALATE");
        assert_eq!(result(&governor, "policy/load", &asks("second"))["leftBehind"], 1);
        assert!(result(&governor, "policy/load", &asks("first")).get("leftBehind").is_none());
    }

    #[test]
    fn a_policy_that_does_not_load_leaves_the_old_one_in_force() {
        let governor = in_memory();
        let before = governor.policies().current().digest();
        for (params, code) in [
            (json!({ "text": "name = ", "format": "toml" }), "POLICY_ERROR"),
            (json!({ "text": "{", "format": "json" }), "POLICY_ERROR"),
            (json!({ "text": common::POLICIES, "format": "json" }), "POLICY_ERROR"),
            (json!({ "text": common::POLICIES, "format": "yaml" }), "INVALID_INPUT"),
            (json!({ "text": common::POLICIES }), "INVALID_INPUT"),
            (json!({ "format": "toml" }), "INVALID_INPUT"),
        ] {
            assert_eq!(code_of(&governor, "policy/load", &params), code, "{params}");
        }
        assert_eq!(governor.policies().current().digest(), before);
        assert_eq!(result(&governor, "enforce", &json!({ "intent": reading("a") }))["decision"], "ALLOW");
    }

    #[test]
    fn an_explanation_has_verdict_and_every_rule_and_no_record() {
        let governor = in_memory();
        let asked = json!({ "intent": intent("a", &["database:read", "database:write"]) });
        let explained = result(&governor, "policy/explain", &asked);
        assert_eq!(result(&governor, "proof/query", &json!({ "entityId": "a" }))["total"], 0);
        let rules = explained["rules"].as_array().unwrap();
        assert_eq!(rules.len(), governor.policies().current().len());
        let deciding: Vec<&Value> =
            rules.iter().filter(|rule| rule["decided"] == true).map(|rule| &rule["rule"]).collect();
        assert_eq!(deciding, [&json!("databases-are-only-read")]);
        assert!(rules.iter().all(|rule| rule["why"].as_str().is_some_and(|why| !why.is_empty())));
        let enforced = result(&governor, "enforce", &asked);
        for field in ["decision", "reasoning", "grantedCapabilities", "deniedCapabilities", "constraints"] {
            assert_eq!(explained[field], enforced[field], "{field}");
        }
    }

    #[test]
    fn an_input_is_explained_with_its_parse() {
        let governor = in_memory();
        let explained = result(&governor, "policy/explain", &json!({ "agentId": "a", "input": "Read the notes" }));
        assert_eq!(explained["intent"]["agentId"], "a");
        assert!(explained["rules"].is_array());
    }

    fn code_of(governor: &Served, method: &str, params: &Value) -> Value {
        refusal(governor, method, params)["code"].clone()
    }
}

mod framing {
    use super::*;

    #[test]
    fn a_line_that_is_not_json_is_a_parse_error() {
        let governor = in_memory();
        let lines: [&[u8]; 9] = [
            b"",
            b"   ",
            b"nonsense",
            b"{",
            b"{\"jsonrpc\":\"2.0\",",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"admin/status\"} trailing",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"admin/status\"}{}",
            b"\xff\xfe{}",
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"admin/\xc3\"}",
        ];
        for line in lines {
            let mut input = line.to_vec();
            input.push(b'\n');
            input.extend_from_slice(PING.as_bytes());
            let answers = serve(&governor, &input);
            assert_eq!(answers.len(), 2, "{:?}", String::from_utf8_lossy(line));
            assert_fault(&answers[0], -32700, &Value::Null);
            assert_eq!(answers[1]["id"], "ping");
        }
    }

    #[test]
    fn a_message_that_is_no_request_is_an_invalid_request() {
        let governor = in_memory();
        for (line, id) in [
            ("null", Value::Null),
            ("7", Value::Null),
            ("\"admin/status\"", Value::Null),
            ("{}", Value::Null),
            (r#"{"id":5}"#, json!(5)),
            (r#"{"id":5,"method":"admin/status"}"#, json!(5)),
            (r#"{"jsonrpc":"1.0","id":5,"method":"admin/status"}"#, json!(5)),
            (r#"{"jsonrpc":2.0,"id":5,"method":"admin/status"}"#, json!(5)),
            (r#"{"jsonrpc":"2.0","id":5}"#, json!(5)),
            (r#"{"jsonrpc":"2.0","id":5,"method":7}"#, json!(5)),
            (r#"{"jsonrpc":"2.0","id":5,"method":null}"#, json!(5)),
            (r#"{"jsonrpc":"2.0","id":{},"method":"admin/status"}"#, Value::Null),
            (r#"{"jsonrpc":"2.0","id":[1],"method":"admin/status"}"#, Value::Null),
            (r#"{"jsonrpc":"2.0","id":true,"method":"admin/status"}"#, Value::Null),
            (r#"{"method":"admin/status"}"#, Value::Null),
            ("[]", Value::Null),
        ] {
            let answers = serve(&governor, line);
            assert_eq!(answers.len(), 1, "{line}");
            assert_fault(&answers[0], -32600, &id);
        }
    }

    #[test]
    fn a_method_that_is_not_there_is_named() {
        let governor = in_memory();
        for method in ["", "Enforce", "enforce ", "proof/delete", "rpc.discover", "\u{1F600}"] {
            let answer = call(&governor, method, &json!({}));
            assert_fault(&answer, -32601, &json!(1));
        }
        let answer = call(&governor, "proof/delete", &json!({}));
        assert!(answer["error"]["message"].as_str().unwrap().contains("proof/delete"), "{answer}");
    }

    #[test]
    fn params_that_are_no_object_are_invalid_params() {
        let governor = in_memory();
        for params in [json!([]), json!(["a"]), json!("a"), json!(1), json!(false)] {
            assert_fault(&call(&governor, "agent/get", &params), -32602, &json!(1));
        }
    }

    #[test]
    fn an_id_comes_back_exactly_as_it_was_sent() {
        let governor = in_memory();
        for id in ["0", "-1", "1.50", "123456789012345678901234567890", "null", r#""""#, r#""x\u0041\"é""#] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"agent/get","params":{{"agentId":"a"}}}}"#);
            let mut output = Vec::new();
            rulekeep_server::sidecar::serve(&governor.gateway, line.as_bytes(), &mut output).unwrap();
            let output = String::from_utf8(output).unwrap();
            assert!(output.contains(&format!("\"id\":{id}}}")), "{id}: {output}");
            assert!(output.contains("\"result\""), "{id}: {output}");
        }
    }

    #[test]
    fn a_notification_is_carried_out_and_not_answered() {
        let governor = in_memory();
        let line = json!({ "jsonrpc": "2.0", "method": "enforce", "params": { "intent": reading("a") } }).to_string();
        assert_eq!(serve(&governor, line), [Value::Null; 0]);
        assert_eq!(governor.status().metrics.proof_chain_length, 1);
    }

    #[test]
    fn a_notification_that_fails_is_not_answered_either() {
        let governor = in_memory();
        for line in [
            r#"{"jsonrpc":"2.0","method":"no/such"}"#,
            r#"{"jsonrpc":"2.0","method":"agent/get","params":[]}"#,
            r#"{"jsonrpc":"2.0","method":"agent/get","params":{"agentId":"nobody"}}"#,
        ] {
            assert_eq!(serve(&governor, line), [Value::Null; 0], "{line}");
        }
    }

    #[test]
    fn a_batch_is_answered_in_one_line_and_in_order() {
        let governor = in_memory();
        let batch = json!([
            { "jsonrpc": "2.0", "id": 1, "method": "agent/get", "params": { "agentId": "a" } },
            { "jsonrpc": "2.0", "method": "agent/suspend", "params": { "agentId": "a" } },
            { "jsonrpc": "2.0", "id": 2, "method": "enforce", "params": { "intent": reading("a") } },
            7,
            { "jsonrpc": "2.0", "id": 3, "method": "no/such" },
        ]);
        let answers = serve(&governor, batch.to_string());
        assert_eq!(answers.len(), 1);
        let answers = answers[0].as_array().unwrap();
        assert_eq!(answers.len(), 4);
        assert_eq!((&answers[0]["id"], &answers[0]["result"]["agentId"]), (&json!(1), &json!("a")));
        assert_eq!((&answers[1]["id"], &answers[1]["result"]["decision"]), (&json!(2), &json!("DENY")));
        assert_fault(&answers[2], -32600, &Value::Null);
        assert_fault(&answers[3], -32601, &json!(3));
    }

    #[test]
    fn a_batch_of_notifications_is_not_answered() {
        let governor = in_memory();
        let batch = json!([{ "jsonrpc": "2.0", "method": "admin/status" }, { "jsonrpc": "2.0", "method": "no/such" }]);
        assert_eq!(serve(&governor, batch.to_string()), [Value::Null; 0]);
    }

    #[test]
    fn a_list_inside_a_batch_is_no_request() {
        let governor = in_memory();
        for batch in [r#"[["2.0","admin/status",{},7]]"#, r#"[["2.0","agent/suspend",{"agentId":"a"}]]"#, "[[]]"] {
            let answers = serve(&governor, batch);
            assert_eq!(answers.len(), 1, "{batch}");
            assert_eq!(answers[0].as_array().map(Vec::len), Some(1), "{batch}: {answers:?}");
            assert_fault(&answers[0][0], -32600, &Value::Null);
        }
    }

    #[test]
    fn answers_come_in_the_order_of_the_requests() {
        let governor = in_memory();
        let mut input = String::new();
        for id in 0..200 {
            let method = ["enforce", "proof/verify", "no/such", "proof/stats"][id % 4];
            let params = json!({ "intent": reading("a"), "entityId": "a" });
            input += &json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string();
            input.push('\n');
        }
        let ids: Vec<u64> = serve(&governor, input).iter().map(|answer| answer["id"].as_u64().unwrap()).collect();
        assert_eq!(ids, (0..200).collect::<Vec<_>>());
    }

    #[test]
    fn lines_may_end_as_on_windows_and_the_last_one_not_at_all() {
        let governor = in_memory();
        assert_eq!(serve(&governor, format!("{PING}\r\n{PING}")).len(), 2);
        assert_eq!(serve(&governor, "").len(), 0);
    }

    #[test]
    fn blanks_around_a_message_do_not_matter() {
        let governor = in_memory();
        assert_eq!(serve(&governor, format!("  \t{PING}  "))[0]["id"], "ping");
        assert_eq!(serve(&governor, format!(" [ {PING} ] "))[0][0]["id"], "ping");
    }

    #[test]
    fn a_line_may_have_as_many_bytes_as_the_limit_says() {
        let governor = in_memory();
        let mut line = PING.to_owned();
        line += &" ".repeat(MAX_LINE_BYTES - line.len());
        for end in ["", "\n"] {
            assert_eq!(serve(&governor, format!("{line}{end}"))[0]["id"], "ping");
        }
    }

    #[test]
    fn a_longer_line_is_refused_and_passed_over() {
        let governor = in_memory();
        for more in [1, 2, 70_000] {
            let line = "[".repeat(MAX_LINE_BYTES + more);
            let answers = serve(&governor, format!("{line}\n{PING}\n{line}"));
            assert_eq!(answers.len(), 3);
            for answer in [&answers[0], &answers[2]] {
                assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32000), &Value::Null), "{answer}");
                let data = &answer["error"]["data"];
                assert_eq!((&data["code"], &data["httpStatus"]), (&json!("PAYLOAD_TOO_LARGE"), &json!(413)));
                assert_eq!(data["details"], json!({ "size": MAX_LINE_BYTES + more, "limit": MAX_LINE_BYTES }));
            }
            assert_eq!(answers[1]["id"], "ping");
        }
    }

    #[test]
    fn params_past_the_size_of_a_request_are_refused() {
        let governor = in_memory();
        let params = |padding: usize| json!({ "agentId": "a", "padding": "x".repeat(padding) });
        let most = MAX_REQUEST_BYTES - params(0).to_string().len();
        assert_eq!(refusal(&governor, "agent/get", &params(most))["code"], "INVALID_INPUT");
        assert_eq!(refusal(&governor, "agent/get", &params(most + 1))["code"], "PAYLOAD_TOO_LARGE");
    }

    #[test]
    fn nesting_of_any_depth_is_answered() {
        let governor = in_memory();
        for depth in [33, 65, 129, 10_000, 1_000_000] {
            for (open, close) in [("[", "]"), (r#"{"k":"#, "}")] {
                let inner = if open == "[" { "" } else { "1" };
                let nested = format!("{}{inner}{}", open.repeat(depth), close.repeat(depth));
                for line in [
                    nested.clone(),
                    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"agent/get","params":{nested}}}"#),
                    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"enforce","params":{{"intent":{nested}}}}}"#),
                    format!(r#"{{"jsonrpc":"2.0","id":{nested},"method":"agent/get"}}"#),
                    format!(r#"{{"jsonrpc":"2.0","id":1,"method":{nested}}}"#),
                ] {
                    let answers = serve(&governor, format!("{line}\n{PING}"));
                    assert_eq!(answers.len(), 2, "{depth} of {open}");
                    assert_eq!(answers[1]["id"], "ping");
                }
            }
        }
    }

    #[test]
    fn texts_and_numbers_that_cannot_be_read_are_answered() {
        let governor = in_memory();
        for params in [r#"{"agentId":"\ud800"}"#, r#"{"agentId":1e999}"#, r#"{"\ud800":1}"#, r#"{"agentId":-0.0e-999}"#]
        {
            let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"agent/get","params":{params}}}"#);
            let answers = serve(&governor, line);
            assert_eq!(answers[0]["error"]["data"]["code"], "INVALID_INPUT", "{params}: {answers:?}");
        }
        assert_still_answers(&governor);
    }
}

mod broken_lines {
    use super::*;

    /// One request of each kind, with the id first: a line that is damaged after its start is either JSON with an id
    /// or not JSON, and both get a response.
    fn requests() -> Vec<String> {
        let calls = [
            ("agent/register", json!({ "agentId": "x", "score": 500, "labels": ["l"] })),
            ("agent/get", json!({ "agentId": "a" })),
            ("agent/suspend", json!({ "agentId": "b", "note": "n" })),
            ("agent/resume", json!({ "agentId": "b" })),
            ("intent", json!({ "agentId": "a", "input": "Read the notes", "context": { "environment": "test" } })),
            ("enforce", json!({ "intent": reading("a") })),
            ("enforce", json!({ "agentId": "a", "input": "Read the notes" })),
            ("outcome/report", json!({ "proofId": "prf_01kf6vqz000000000000000003", "outcome": "SUCCESS" })),
            (
                "proof/query",
                json!({ "entityId": "a", "from": "2026-01-01T00:00:00Z", "pageSize": 3, "decision": "DENY" }),
            ),
            ("proof/stats", json!({ "entityId": "a", "to": "2026-01-01T00:00:00Z" })),
            ("proof/verify", json!({})),
            ("proof/get", json!({ "proofId": "prf_01kf6vqz000000000000000003", "evidence": true })),
            ("admin/status", json!({})),
            ("policy/validate", json!({ "text": common::POLICIES, "format": "toml" })),
            ("policy/load", json!({ "text": common::POLICIES, "format": "toml" })),
            ("policy/explain", json!({ "intent": intent("a", &["email:send"]) })),
        ];
        calls
            .iter()
            .map(|(method, params)| format!(r#"{START}7,"jsonrpc":"2.0","method":"{method}","params":{params}}}"#))
            .collect()
    }

    const START: &str = r#"{"id":"#;

    #[derive(Debug, Clone)]
    enum Change {
        Replace(prop::sample::Index, u8),
        Insert(prop::sample::Index, Vec<u8>),
        Remove(prop::sample::Index, usize),
        Repeat(prop::sample::Index, usize),
        Cut(prop::sample::Index),
    }

    impl Change {
        fn apply(&self, line: &mut Vec<u8>) {
            if line.is_empty() {
                return;
            }
            match self {
                Self::Replace(at, byte) => {
                    let at = at.index(line.len());
                    line[at] = *byte;
                }
                Self::Insert(at, bytes) => {
                    let at = at.index(line.len());
                    line.splice(at..at, bytes.iter().copied());
                }
                Self::Remove(at, count) => {
                    let at = at.index(line.len());
                    line.drain(at..(at + count).min(line.len()));
                }
                Self::Repeat(at, count) => {
                    let at = at.index(line.len());
                    let piece = line[at..(at + count).min(line.len())].to_vec();
                    line.splice(at..at, piece);
                }
                Self::Cut(at) => line.truncate(at.index(line.len())),
            }
        }
    }

    fn change() -> impl Strategy<Value = Change> {
        let place = any::<prop::sample::Index>;
        let telling = prop::sample::select(b"{}[]\",:0-\\ntf\x00\xff".to_vec());
        prop_oneof![
            (place(), prop_oneof![telling, any::<u8>()]).prop_map(|(at, byte)| Change::Replace(at, byte)),
            (place(), prop::collection::vec(any::<u8>(), 1..5)).prop_map(|(at, bytes)| Change::Insert(at, bytes)),
            (place(), 1..20_usize).prop_map(|(at, count)| Change::Remove(at, count)),
            (place(), 1..40_usize).prop_map(|(at, count)| Change::Repeat(at, count)),
            place().prop_map(Change::Cut),
        ]
    }

    fn config(cases: u32) -> Config {
        Config { cases, failure_persistence: None, ..Config::default() }
    }

    /// Serves the line followed by a valid request, and returns the responses to the line itself.
    fn answers_to(governor: &Served, mut line: Vec<u8>) -> Vec<Value> {
        line.retain(|byte| *byte != b'\n');
        line.push(b'\n');
        line.extend_from_slice(PING.as_bytes());
        let mut answers = serve(governor, line);
        let ping = answers.pop().expect("the valid request is answered");
        // A damaged line may have suspended the agent, but cannot make it unknown.
        assert_eq!((&ping["id"], &ping["result"]["agentId"]), (&json!("ping"), &json!("a")), "{ping}");
        answers
    }

    #[test]
    fn a_line_of_any_bytes_is_answered_once_and_ends_nothing() {
        let governor = in_memory();
        proptest!(config(400), |(line in prop::collection::vec(any::<u8>(), 0..200))| {
            // Without a brace it cannot be a notification, the only line without a response.
            let line: Vec<u8> = line.into_iter().filter(|byte| *byte != b'{').collect();
            prop_assert_eq!(answers_to(&governor, line).len(), 1);
        });
    }

    #[test]
    fn a_line_of_any_text_is_answered_once_and_ends_nothing() {
        let governor = in_memory();
        proptest!(config(400), |(line in "[\\[\\]\",:0-9a-z\\\\ \\PC-]{0,80}")| {
            prop_assert_eq!(answers_to(&governor, line.replace('{', "").into_bytes()).len(), 1);
        });
    }

    #[test]
    fn a_request_broken_anywhere_is_answered_once_and_ends_nothing() {
        let governor = in_memory();
        governor.agents().register(rulekeep::Agent::new("b")).unwrap();
        let requests = requests();
        let broken = (prop::sample::select(requests), prop::collection::vec(change(), 1..6));
        proptest!(config(600), |((request, changes) in broken)| {
            let mut line = request.into_bytes();
            for change in &changes {
                change.apply(&mut line);
            }
            line.retain(|byte| *byte != b'\n');
            let has_id = line.starts_with(START.as_bytes());
            let answers = answers_to(&governor, line);
            prop_assert!(answers.len() <= 1);
            prop_assert!(!has_id || answers.len() == 1);
        });
        assert!(governor.verify().unwrap().valid);
    }

    #[test]
    fn a_member_of_any_value_in_any_place_is_answered_once() {
        let governor = in_memory();
        let odd = prop::sample::select(vec![
            json!(null),
            json!(true),
            json!(0),
            json!(-1),
            json!(1.5),
            json!(u64::MAX),
            json!(""),
            json!("\u{0}"),
            json!("\u{202e}"),
            json!([]),
            json!([[]]),
            json!({}),
            json!({ "k": {} }),
            json!("x".repeat(5000)),
        ]);
        let fields = [
            "agentId", "input", "context", "intent", "proofId", "outcome", "entityId", "from", "to", "page",
            "pageSize", "decision", "text", "format", "evidence", "score", "tier", "labels", "note",
        ];
        let methods = [
            "agent/register",
            "agent/get",
            "agent/suspend",
            "agent/resume",
            "intent",
            "enforce",
            "outcome/report",
            "proof/query",
            "proof/stats",
            "proof/verify",
            "proof/get",
            "admin/status",
            "policy/validate",
            "policy/load",
            "policy/explain",
        ];
        let params = prop::collection::btree_map(prop::sample::select(fields.to_vec()), odd, 0..5);
        proptest!(config(400), |(method in prop::sample::select(methods.to_vec()), params in params)| {
            let line = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params }).to_string();
            let answers = answers_to(&governor, line.into_bytes());
            prop_assert_eq!(answers.len(), 1);
            prop_assert_eq!(&answers[0]["id"], &json!(7));
            let code = &answers[0]["error"]["data"]["code"];
            prop_assert!(code != "INTERNAL", "{:?}", answers);
        });
    }
}

/// In every build: the feature may be present, but no key is set.
#[test]
fn checkpoints_are_refused_by_a_governor_that_signs_none() {
    let refused = json!({ "code": "CONFLICT", "httpStatus": 409 });
    let governor = common::in_memory();
    let id = common::decide(&governor, "a");
    for (method, params) in [("checkpoint/create", json!({})), ("checkpoint/prove", json!({ "proofId": id }))] {
        assert_eq!(common::refusal(&governor, method, &params), refused, "{method}");
    }
}
