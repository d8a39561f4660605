//! Checks that the changes which the recommended set's cases declare to have no effect really have none: every
//! capability alone, at every tier and risk, in and out of production.

use rulekeep::Tier;
use rulekeep::agent::AgentTraits;
use rulekeep::intent::{Operation, Resource};
use rulekeep::system::Timestamp;
use rulekeep::trust::TrustSnapshot;
use serde_json::json;

use super::mutants::{mutations, part_that_differs};
use super::run::CaseRequest;
use super::written::Written;
use super::*;

fn requests() -> Vec<CaseRequest> {
    let contexts = [json!({}), json!({ "environment": "production", "dataClassification": "RESTRICTED" })];
    let resources =
        ["task", "email", "credential", "health", "payment", "permission", "database", "information", "unknown"];
    let mut requests = Vec::new();
    for (resource, operation) in resources.iter().flat_map(|one| Operation::ALL.iter().map(move |other| (one, other))) {
        assert!(resource.parse::<Resource>().is_ok());
        for context in &contexts {
            for (tier, risk) in Tier::ALL.iter().flat_map(|tier| RiskLevel::ALL.iter().map(move |risk| (*tier, *risk)))
            {
                let mut intent = Intent::new("a", "do_it", risk, [format!("{resource}:{operation}")]).unwrap();
                intent.context = context.as_object().unwrap().clone();
                requests.push(CaseRequest {
                    intent,
                    risk,
                    trust: TrustSnapshot::new(tier.middle(), tier),
                    traits: AgentTraits::default(),
                    now: Timestamp::from_millis(0),
                    used: std::collections::BTreeMap::new(),
                });
            }
        }
    }
    requests
}

#[test]
fn changes_that_are_declared_to_change_nothing_change_nothing() {
    let policies = PolicySet::recommended().unwrap();
    let text = include_str!("../../../../../policies/recommended.cases.toml");
    let cases = PolicyCases::parse(text, PolicyFormat::Toml, "recommended.cases.toml").unwrap();
    let written = Written::of(&policies);
    let requests = requests();
    let before: Vec<_> = requests.iter().map(|request| request.evaluate(&policies).unwrap()).collect();
    for declared in &cases.equivalents {
        let rule = written.rules.iter().find(|rule| rule.id == declared.rule).unwrap();
        let mutation = mutations(rule).into_iter().find(|one| one.text == declared.mutation).unwrap();
        let changed = written.with(rule, mutation.changed.as_ref()).unwrap();
        for (request, before) in requests.iter().zip(&before) {
            let after = request.evaluate(&changed).unwrap();
            assert_eq!(part_that_differs(before, &after), None, "{} {}: {request:?}", declared.rule, declared.mutation);
        }
    }
}

#[test]
fn a_set_written_back_unchanged_is_the_same_set() {
    let policies = PolicySet::recommended().unwrap();
    let written = Written::of(&policies);
    let rule = &written.rules[3];
    assert_eq!(written.with(rule, Some(&rule.fields)).unwrap().digest(), policies.digest());
    assert_eq!(written.with(rule, None).unwrap().len(), policies.len() - 1);
}
