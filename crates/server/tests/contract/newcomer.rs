//! The rules that everybody writes first bind alike over lines and over HTTP. The cases are those of the library.

use rulekeep::{Agent, Governor, PolicySet, Tier};
use rulekeep_server::http::Server;
use serde_json::{Value, json};

use crate::common::{Served, result};
use crate::http::live::Live;

#[test]
fn a_first_rule_binds_alike_over_lines_and_over_http() {
    let file: Value = serde_json::from_str(include_str!("../../../../tests/data/newcomer.json")).unwrap();
    let open = || {
        let policies = PolicySet::from_toml(file["policies"].as_str().unwrap()).unwrap();
        Governor::builder().policies(policies).open_in_memory().unwrap()
    };
    let lines = Served::new(&open());
    let live = Live::of(open(), Server::new());
    for (number, case) in file["cases"].as_array().unwrap().iter().enumerate() {
        let name = &case["name"];
        let tier: Tier = case["tier"].as_str().unwrap_or("T4").parse().unwrap();
        let agent = format!("agent-{number}");
        for governor in [&live.governor, &*lines] {
            governor.agents().register(Agent::new(&agent).at_tier(tier)).unwrap();
        }
        let text = case["input"].as_str().map_or_else(|| case["input"].to_string(), str::to_owned);
        let mut asked = json!({ "agentId": agent, "input": text });
        if let Some(context) = case.get("context") {
            asked["context"] = context.clone();
        }
        for method in ["policy/preview", "policy/explain", "enforce"] {
            let found = result(&lines, method, &asked);
            assert_eq!(found["decision"], case["decision"], "{name} by {method}: {found}");
        }
        let explained = live.post("/v1/admin/policies/explain", &live.admin, &asked);
        assert_eq!(explained.json()["decision"], case["decision"], "{name}: {explained:?}");
        let found = live.post("/v1/enforce", &live.agent, &asked);
        assert_eq!(found.json()["decision"], case["decision"], "{name}: {found:?}");
    }
}
