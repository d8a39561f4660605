//! The rules that everybody writes first bind alike in decisions, in previews and in explanations. The cases are those
//! of the tests of the server and of policy cases.

use rulekeep::escalation::EscalationId;
use rulekeep::intent::Input;
use rulekeep::preview::PreviewRequest;
use rulekeep::{Agent, Decision, Governor, PolicySet, Tier};
use serde_json::{Map, Value};

#[test]
fn a_first_rule_binds_alike_in_decision_and_explanation() {
    let file: Value = serde_json::from_str(include_str!("../data/newcomer.json")).unwrap();
    let policies = PolicySet::from_toml(file["policies"].as_str().unwrap()).unwrap();
    let governor = Governor::builder().policies(policies).open_in_memory().unwrap();
    for (number, case) in file["cases"].as_array().unwrap().iter().enumerate() {
        let name = &case["name"];
        let tier: Tier = case["tier"].as_str().unwrap_or("T4").parse().unwrap();
        let agent = format!("agent-{number}");
        governor.agents().register(Agent::new(&agent).at_tier(tier)).unwrap();
        let text = case["input"].as_str().map_or_else(|| case["input"].to_string(), str::to_owned);
        let none = Map::new();
        let input = Input::new(&text).context(case["context"].as_object().unwrap_or(&none));
        let expected: Decision = case["decision"].as_str().unwrap().parse().unwrap();

        let preview = governor.policies().preview(PreviewRequest::input(&agent, input)).unwrap();
        assert_eq!(preview.decision, expected, "{name}: {}", preview.reasoning);
        let explained = governor.policies().explain(PreviewRequest::input(&agent, input)).unwrap();
        assert_eq!(explained.preview.decision, expected, "{name}: {explained}");
        let enforced = governor.enforce_input(&agent, input).unwrap().enforcement;
        assert_eq!(enforced.decision, expected, "{name}: {}", enforced.reasoning);

        let rule = case["rule"].as_str();
        let decided: Vec<&str> =
            explained.rules.iter().filter(|rule| rule.decided).map(|rule| rule.rule.as_str()).collect();
        assert!(rule.is_none_or(|rule| decided.contains(&rule)), "{name}: {explained}");
        let matched = |rule: &&str| explained.rules.iter().any(|trace| trace.rule == **rule && trace.matched);
        let is_traced = decided.iter().all(matched);
        assert!(is_traced, "{name}: {explained}");
        if let Some(approvals) = case["approvals"].as_u64() {
            let asked = governor.escalations().get(EscalationId::of(enforced.proof_id)).unwrap();
            assert_eq!(asked.needs.iter().map(|need| u64::from(need.approvals)).sum::<u64>(), approvals, "{name}");
        }
    }
}
