//! The calls over lines: their parameters and responses.

use rulekeep::agent::{AgentState, Observability};
use rulekeep::checkpoint::{Checkpoint, CheckpointKey, verify_consistency, verify_inclusion};
use rulekeep::system::Timestamp;
use rulekeep::trust::Score;
use rulekeep::{Agent, PolicySet};
use serde_json::json;

use crate::common::{Hand, NOON, Served, builder, call, decide, in_memory, open_with, reading, refusal, result};

fn empty() -> Served {
    Served::new(&builder().open_in_memory().unwrap())
}

fn score(score: i64) -> Score {
    Score::saturating(score)
}

#[test]
fn agents_are_changed_retired_exported_and_imported_over_lines() {
    let governor = empty();
    let params = json!({ "agentId": "a", "owner": "ann", "ceiling": 500, "observability": "grey-box",
        "groups": ["g"], "attributes": { "n": 1 } });
    result(&governor, "agent/register", &params);
    let info = governor.agents().get("a").unwrap();
    assert_eq!((info.owner.as_deref(), info.ceiling), (Some("ann"), Some(score(500))));
    assert_eq!((info.observability, info.groups.len()), (Some(Observability::GreyBox), 1));
    let params = json!({ "agentId": "a", "labels": ["l"], "ceiling": 150, "clear": ["owner"], "note": "n" });
    let updated = result(&governor, "agent/update", &params);
    assert_eq!((&updated["score"], &updated["ceiling"], &updated["labels"]), (&json!(150), &json!(150), &json!(["l"])));
    assert_eq!((updated.get("owner"), &updated["observability"]), (None, &json!("grey-box")));
    for bad in [json!({ "clear": ["labels"] }), json!({ "ceiling": 1001 }), json!({ "observability": "glass" })] {
        let mut params = bad.clone();
        params["agentId"] = json!("a");
        assert_eq!(refusal(&governor, "agent/update", &params)["code"], "INVALID_INPUT", "{bad}");
    }
    assert_eq!(result(&governor, "agent/retire", &json!({ "agentId": "a" }))["state"], "retired");
    let export = result(&governor, "agent/export", &json!({}));
    assert_eq!((&export["agents"], export["lines"].as_array().unwrap().len()), (&json!(1), 2));
    let there = empty();
    let import = json!({ "lines": export["lines"] });
    assert_eq!(result(&there, "agent/import", &import), json!({ "registered": 1, "skipped": 0 }));
    assert_eq!(there.agents().get("a").unwrap().state, AgentState::Retired);
    assert_eq!(refusal(&there, "agent/import", &json!({}))["code"], "INVALID_INPUT");
}

#[test]
fn a_tier_above_its_observabilitys_ceiling_names_its_field() {
    let governor = in_memory();
    let boxed = json!({ "agentId": "t", "tier": "T4", "observability": "black-box" });
    let refused = refusal(&governor, "agent/register", &boxed);
    assert!(refused["details"]["field"] == "tier", "{refused}");
}

#[test]
fn tools_are_loaded_listed_overridden_and_pinned() {
    let governor = in_memory();
    let tools = json!([{ "name": "delete_page", "description": "Deletes a page." }]);
    for params in [
        json!({ "tools": tools, "server": "wiki" }),
        json!({ "jsonrpc": "2.0", "id": 1, "result": { "tools": tools }, "server": "wiki" }),
    ] {
        let report = result(&governor, "catalogue/load", &params);
        assert_eq!((&report["total"], &report["tools"][0]["server"]), (&json!(1), &json!("wiki")), "{report}");
        assert!(report["tools"][0]["because"].as_array().is_some_and(|because| !because.is_empty()));
    }
    let params = json!({ "name": "delete_page", "riskLevel": "LOW", "capabilities": ["document:write"], "reason": "kept for a year" });
    let tool = result(&governor, "catalogue/override", &params);
    assert_eq!((&tool["riskLevel"], &tool["overridden"]), (&json!("LOW"), &json!("kept for a year")));
    assert_eq!(result(&governor, "catalogue/pin", &json!({ "name": "delete_page" }))["pinned"], true);
    assert_eq!(result(&governor, "catalogue/pin", &json!({ "name": "delete_page", "pinned": false }))["pinned"], false);
    assert_eq!(result(&governor, "catalogue/list", &json!({}))["tools"].as_array().unwrap().len(), 1);
}

#[test]
fn several_tools_are_overridden_or_pinned_all_or_none() {
    let governor = in_memory();
    let tools = json!([{ "name": "delete_page" }, { "name": "read_page" }]);
    result(&governor, "catalogue/load", &json!({ "tools": tools, "server": "wiki" }));
    let low = json!({ "name": "delete_page", "riskLevel": "LOW", "reason": "kept for a year" });
    let set = result(&governor, "catalogue/override", &json!({ "tools": [low] }));
    assert_eq!((&set["tools"][0]["riskLevel"], set["tools"].as_array().unwrap().len()), (&json!("LOW"), 1), "{set}");
    let pins = json!({ "tools": [{ "name": "read_page", "server": "wiki" }, { "name": "delete_page" }] });
    let pinned = result(&governor, "catalogue/pin", &pins);
    assert_eq!(
        (&pinned["tools"][0]["name"], &pinned["tools"][1]["pinned"]),
        (&json!("read_page"), &json!(true)),
        "{pinned}"
    );
    for (method, params, field) in [
        ("catalogue/pin", json!({ "tools": 7 }), "tools"),
        ("catalogue/pin", json!({ "tools": [{ "name": "read_page", "pinned": false }, 7] }), "tools"),
        ("catalogue/pin", json!({ "tools": [{ "name": "read_page", "pinned": false }, { "name": "x" }] }), "name"),
        ("catalogue/pin", json!({ "tools": [{ "name": "read_page", "pined": false }] }), "params"),
        ("catalogue/pin", json!({ "tools": [], "name": "read_page" }), "params"),
        ("catalogue/override", json!({ "tools": [low, { "name": "read_page", "riskLevel": "HIGH" }] }), "reason"),
        (
            "catalogue/override",
            json!({ "tools": [{ "name": "read_page", "riskLevel": "MILD", "reason": "x" }] }),
            "riskLevel",
        ),
    ] {
        let data = refusal(&governor, method, &params);
        assert_eq!((&data["code"], &data["details"]["field"]), (&json!("INVALID_INPUT"), &json!(field)), "{params}");
    }
    let list = result(&governor, "catalogue/list", &json!({}));
    assert!(list["tools"].as_array().unwrap().iter().all(|tool| tool["pinned"] == true), "{list}");
}

#[test]
fn a_request_that_is_none_names_its_field() {
    let governor = in_memory();
    for (method, params, field) in [
        ("catalogue/load", json!({}), "tools"),
        ("catalogue/load", json!({ "tools": 7 }), "tools"),
        ("catalogue/load", json!({ "tools": [], "server": 7 }), "server"),
        ("catalogue/override", json!({ "reason": "x" }), "name"),
        ("catalogue/override", json!({ "name": "x" }), "reason"),
        ("catalogue/override", json!({ "name": "x", "reason": "x", "riskLevel": "MILD" }), "riskLevel"),
        ("catalogue/override", json!({ "name": "x", "reason": "x", "capabilities": ["X"] }), "capabilities"),
        ("catalogue/pin", json!({ "name": "x" }), "name"),
    ] {
        let data = refusal(&governor, method, &params);
        assert_eq!((&data["code"], &data["details"]["field"]), (&json!("INVALID_INPUT"), &json!(field)), "{params}");
    }
}

#[test]
fn a_tool_is_removed_by_name_and_server() {
    let governor = in_memory();
    let definitions = json!({ "tools": [{ "name": "get_user", "description": "" }], "server": "wiki" });
    result(&governor, "catalogue/load", &definitions);
    let removed = result(&governor, "catalogue/remove", &json!({ "name": "get_user", "server": "wiki" }));
    assert_eq!(removed["name"], "get_user");
    assert_eq!(refusal(&governor, "catalogue/remove", &json!({ "name": "x" }))["details"]["field"], "name");
}

#[test]
fn the_sidecar_makes_checkpoints_and_proofs() {
    let dir = tempfile::tempdir().unwrap();
    let key = CheckpointKey::from_seed("example.com/agents", &[3; 32]).unwrap();
    let public = key.verifier();
    let governor = Served::new(&open_with(builder().checkpoints(key), dir.path()));
    let size_of = |note: &str| Checkpoint::open(note, &public).unwrap().size();
    let id = decide(&governor, "a");
    let note = result(&governor, "checkpoint/create", &json!({}))["note"].as_str().unwrap().to_owned();
    let size = size_of(&note);
    let proof = result(&governor, "checkpoint/prove", &json!({ "proofId": id }));
    verify_inclusion(&governor.log().record(&id).unwrap(), proof["proof"].as_str().unwrap(), &public).unwrap();

    decide(&governor, "a");
    let later = governor.log().checkpoint().unwrap();
    let sizes = json!({ "fromSize": size, "toSize": size_of(&later) });
    let proof = result(&governor, "checkpoint/prove", &sizes);
    verify_consistency(&note, &later, proof["proof"].as_str().unwrap(), &public).unwrap();

    for (params, code) in [
        (json!({}), "INVALID_INPUT"),
        (json!({ "fromSize": 1 }), "INVALID_INPUT"),
        (json!({ "proofId": "prf_x" }), "PROOF_NOT_FOUND"),
        (json!({ "fromSize": 3, "toSize": 1 }), "INVALID_QUERY"),
        (json!({ "fromSize": 3, "toSize": 1_000_000_000_u64 }), "INVALID_QUERY"),
    ] {
        let refusal = refusal(&governor, "checkpoint/prove", &params);
        assert_eq!(refusal["code"], code, "{params}: {refusal}");
    }
    let keyless = in_memory();
    assert_eq!(refusal(&keyless, "checkpoint/create", &json!({}))["code"], "CONFLICT");
}

#[test]
fn the_log_is_verified_against_a_checkpoint_that_was_kept() {
    let dir = tempfile::tempdir().unwrap();
    let key = CheckpointKey::from_seed("example.com/agents", &[3; 32]).unwrap();
    let public = key.verifier().to_string();
    let governor = Served::new(&open_with(builder().checkpoints(key.clone()), dir.path()));
    decide(&governor, "a");
    let note = governor.log().checkpoint().unwrap();
    decide(&governor, "a");
    for params in [json!({ "checkpoint": note }), json!({ "checkpoint": note, "checkpointKey": public })] {
        let found = result(&governor, "proof/verify", &params);
        assert_eq!((&found["valid"], &found["records"]), (&json!(true), &json!(2)), "{found}");
    }
    // A checkpoint of more entries, and one of other entries.
    let root = governor.verify().unwrap().head_hash;
    for (size, kind) in [(1000, "missing"), (2, "tampering")] {
        let other = Checkpoint::new("example.com/agents", size, root).unwrap().sign(&key).unwrap();
        let found = result(&governor, "proof/verify", &json!({ "checkpoint": other }));
        assert_eq!((&found["valid"], &found["firstBroken"]["kind"]), (&json!(false), &json!(kind)), "{found}");
        assert_eq!(found["firstBroken"]["file"], "checkpoint");
    }
    decide(&governor, "a");
    let other = CheckpointKey::from_seed("example.com/agents", &[4; 32]).unwrap().verifier().to_string();
    for (params, field) in [
        (json!({ "checkpoint": "no note" }), "checkpoint"),
        (json!({ "checkpoint": note, "checkpointKey": other }), "checkpoint"),
        (json!({ "checkpoint": note, "checkpointKey": "no key" }), "checkpointKey"),
        (json!({ "checkpointKey": public }), "checkpointKey"),
    ] {
        let data = refusal(&governor, "proof/verify", &params);
        assert_eq!((&data["code"], &data["details"]["field"]), (&json!("INVALID_INPUT"), &json!(field)), "{params}");
    }
    assert_eq!(refusal(&in_memory(), "proof/verify", &json!({ "checkpoint": note }))["code"], "CONFLICT");
}

#[test]
fn the_sidecar_previews_replays_and_shadows() {
    let governor = in_memory();
    let asked = json!({ "intent": reading("a") });
    let preview = result(&governor, "policy/preview", &asked);
    assert_eq!((&preview["decision"], preview.get("proofId")), (&json!("ALLOW"), None));
    result(&governor, "enforce", &asked);
    let closed = json!({ "text": "name = \"closed\"", "format": "toml" });
    let replay = result(&governor, "policy/replay", &closed);
    assert_eq!(replay["changed"], 1);
    assert_eq!(replay["changes"][0]["now"], "DENY");
    assert_eq!(result(&governor, "policy/shadow", &closed)["shadow"]["decided"], 0);
    result(&governor, "enforce", &asked);
    assert_eq!(result(&governor, "policy/shadow", &json!({}))["shadow"]["differed"], 1);
    assert_eq!(result(&governor, "policy/shadow", &json!({ "clear": true }))["shadow"], json!(null));
    let layers = json!({ "layers": [
        { "text": "name = \"b\"\n[[rule]]\nid = \"b\"\neffect = \"allow\"", "format": "toml" },
        { "text": "name = \"t\"\n[[rule]]\nid = \"t\"\neffect = \"deny\"\nmatch.capabilities = [\"file:*\"]", "format": "toml" },
    ] });
    assert_eq!(result(&governor, "policy/load", &layers)["rules"], 2);
    for wrong in [json!({ "layers": [] }), json!({ "layers": [{ "text": "x" }] }), json!({ "layers": "x" })] {
        assert_eq!(call(&governor, "policy/load", &wrong)["error"]["data"]["code"], "INVALID_INPUT", "{wrong}");
    }
    let range = json!({ "text": "name = \"x\"", "format": "toml", "from": "2030-01-01T00:00:00Z", "to": "2020-01-01T00:00:00Z" });
    assert_eq!(call(&governor, "policy/replay", &range)["error"]["data"]["code"], "INVALID_QUERY");
}

#[test]
fn a_preview_shows_limits_in_the_numbers_of_the_document() {
    let governor = in_memory();
    let text = "name = \"l\"\n[[rule]]\nid = \"l\"\neffect = \"allow\"\nlimit = { sum = \"amount\", max = 99.5, per = \"1h\" }";
    governor.policies().load(PolicySet::from_toml(text).unwrap()).unwrap();
    let mut asked = reading("a");
    asked.context.insert("amount".to_owned(), json!(2.25));
    let limit = &result(&governor, "policy/preview", &json!({ "intent": asked }))["limits"][0];
    assert_eq!((&limit["used"], &limit["amount"], &limit["most"]), (&json!(0.0), &json!(2.25), &json!(99.5)));
}

#[test]
fn a_preview_of_an_overridden_tool_is_what_enforcement_says() {
    let governor = in_memory();
    let text = "name = \"p\"\n[[rule]]\nid = \"low\"\neffect = \"allow\"\nmatch.risk = { max = \"LOW\" }";
    governor.policies().load(PolicySet::from_toml(text).unwrap()).unwrap();
    let tools = json!({ "tools": [{ "name": "pay_test", "description": "Pays a test invoice.", "inputSchema": { "type": "object" } }] });
    result(&governor, "catalogue/load", &tools);
    let low =
        json!({ "name": "pay_test", "capabilities": ["payment:transfer"], "riskLevel": "LOW", "reason": "a sandbox" });
    result(&governor, "catalogue/override", &low);
    let asked = json!({ "agentId": "a", "input": r#"{"name":"pay_test","arguments":{}}"# });
    let enforced = result(&governor, "enforce", &asked);
    assert_eq!(enforced["decision"], "ALLOW", "{enforced}");
    for method in ["policy/preview", "policy/explain"] {
        assert_eq!(result(&governor, method, &asked)["decision"], enforced["decision"], "{method}");
    }
}

#[test]
fn an_explanation_has_the_error_of_a_condition() {
    let governor = in_memory();
    let failing = "name = \"f\"\n[[rule]]\nid = \"f\"\neffect = \"allow\"\nwhen = \"context.missing > 1\"";
    governor.policies().load(PolicySet::from_toml(failing).unwrap()).unwrap();
    let explained = governor.policies().explain(&reading("a")).unwrap();
    let wire = result(&governor, "policy/explain", &json!({ "intent": reading("a") }));
    assert_eq!((&wire["decision"], &wire["error"]["code"]), (&json!("DENY"), &json!("POLICY_ERROR")));
    assert_eq!(wire["error"]["message"], json!(explained.preview.error.unwrap().message));
}

#[test]
fn stops_are_set_listed_and_lifted_over_lines() {
    let governor = in_memory();
    let open = decide(&governor, "a");
    let set = result(&governor, "stop/set", &json!({ "agentId": "a", "by": "ann", "note": "why" }));
    assert_eq!((&set["openTotal"], &set["died"]), (&json!(1), &json!(0)));
    assert_eq!(set["open"][0]["id"], open.to_string());
    let list = result(&governor, "stop/list", &json!({}));
    assert_eq!(list["stops"][0]["scope"], json!({ "agentId": "a" }));
    assert_eq!((&list["stops"][0]["by"], &list["stops"][0]["note"]), (&json!("ann"), &json!("why")));
    for (scope, params) in [
        (json!({ "group": "g" }), json!({ "group": "g", "by": "ann" })),
        (json!({ "all": true }), json!({ "all": true, "by": "ann" })),
    ] {
        let id = result(&governor, "stop/set", &params)["id"].clone();
        let stops = result(&governor, "stop/list", &json!({}))["stops"].clone();
        assert_eq!(stops[1]["scope"], scope);
        result(&governor, "stop/lift", &json!({ "id": id, "by": "bob" }));
    }
    result(&governor, "stop/lift", &json!({ "id": set["id"], "by": "bob" }));
    assert_eq!(result(&governor, "stop/list", &json!({}))["stops"], json!([]));
    for bad in [
        json!({ "by": "ann" }),
        json!({ "agentId": "a" }),
        json!({ "agentId": "a", "all": true, "by": "ann" }),
        json!({ "all": false, "by": "ann" }),
    ] {
        assert_eq!(refusal(&governor, "stop/set", &bad)["code"], "INVALID_INPUT");
    }
    assert_eq!(refusal(&governor, "stop/lift", &json!({ "id": set["id"], "by": "bob" }))["code"], "CONFLICT");
}

#[test]
fn history_and_adjustments_go_over_lines() {
    let hand = Hand::at(NOON);
    let governor = Served::new(&builder().clock(hand).open_in_memory().unwrap());
    governor.agents().register(Agent::new("a").at_score(score(400))).unwrap();
    let adjusted = result(&governor, "trust/adjust", &json!({ "agentId": "a", "score": 700, "note": "why" }));
    assert_eq!((&adjusted["score"], &adjusted["tier"]), (&json!(700), &json!("T4")));
    let history = result(&governor, "trust/history", &json!({ "agentId": "a", "pageSize": 1 }));
    assert_eq!((&history["total"], &history["hasMore"]), (&json!(2), &json!(true)));
    let expected = json!({
        "timestamp": Timestamp::from_millis(NOON), "from": 400, "to": 700, "fromTier": "T2", "toTier": "T4",
        "cause": "adjusted", "note": "why",
    });
    assert_eq!(history["items"][0], expected);
    assert_eq!(
        call(&governor, "trust/history", &json!({ "agentId": "a", "page": 0 }))["error"]["data"]["code"],
        "INVALID_QUERY"
    );
}

/// A hook that sees the end of a tool call runs in another process than the one that asked.
#[test]
fn a_tool_call_is_found_and_reported_by_its_callers_id() {
    let governor = Served::new(&builder().auto_register().open_in_memory().unwrap());
    let asked = |call_id: &str, path: &str| {
        let tool_call = json!({ "tool": "read_file", "arguments": { "path": path }, "callId": call_id });
        call(&governor, "enforce", &json!({ "agentId": "a", "input": tool_call }))
    };
    let decided = asked("toolu_1", "notes.txt")["result"].clone();
    assert_eq!((&decided["decision"], &decided["intent"]["context"]["callId"]), (&json!("ALLOW"), &json!("toolu_1")));
    assert_eq!(asked("toolu_1", "other.txt")["error"]["data"]["code"], "CONFLICT");
    let page = result(&governor, "proof/query", &json!({ "entityId": "a", "callId": "toolu_1" }));
    assert_eq!((&page["total"], &page["items"][0]["id"]), (&json!(1), &decided["proofId"]));
    let report = json!({ "agentId": "a", "callId": "toolu_1", "outcome": "SUCCESS" });
    let record = result(&governor, "outcome/report", &report);
    assert_eq!((&record["id"], &record["outcome"]), (&decided["proofId"], &json!("SUCCESS")));
    for (report, code) in [
        (json!({ "agentId": "a", "callId": "toolu_2", "outcome": "SUCCESS" }), "PROOF_NOT_FOUND"),
        (json!({ "agentId": "a", "outcome": "SUCCESS" }), "INVALID_INPUT"),
        (json!({ "callId": "toolu_1", "outcome": "SUCCESS" }), "INVALID_INPUT"),
        (json!({ "proofId": decided["proofId"], "callId": "toolu_1", "outcome": "SUCCESS" }), "INVALID_INPUT"),
    ] {
        let refused = call(&governor, "outcome/report", &report);
        assert_eq!(refused["error"]["data"]["code"], code, "{report}: {refused}");
    }
    let both = json!({
        "agentId": "a", "context": { "callId": "x" },
        "input": { "tool": "read_file", "arguments": {}, "callId": "y" },
    });
    let refused = call(&governor, "enforce", &both);
    assert_eq!(refused["error"]["data"]["code"], "INVALID_INPUT", "{refused}");
}

#[test]
fn unknown_over_lines_leaves_the_outcome_open_for_a_real_one() {
    let governor = in_memory();
    let proof_id = decide(&governor, "a");
    let report = |outcome: &str| json!({ "proofId": proof_id, "outcome": outcome, "note": "no result came back" });
    for _ in 0..2 {
        let record = result(&governor, "outcome/report", &report("UNKNOWN"));
        assert_eq!((&record["id"], record.get("outcome")), (&json!(proof_id), None));
    }
    assert_eq!(result(&governor, "proof/stats", &json!({ "entityId": "a" }))["successRate"], 0.0);
    assert_eq!(result(&governor, "outcome/report", &report("SUCCESS"))["outcome"], "SUCCESS");
    assert_eq!(refusal(&governor, "outcome/report", &report("UNKNOWN"))["code"], "CONFLICT");
    assert_eq!(refusal(&governor, "outcome/report", &report("unknown"))["code"], "INVALID_INPUT");
    assert_eq!(
        refusal(&governor, "proof/query", &json!({ "entityId": "a", "outcome": "UNKNOWN" }))["code"],
        "INVALID_QUERY"
    );
}
