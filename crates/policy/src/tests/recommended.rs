//! The recommended set, cell by cell.

use super::*;
use rulekeep_types::{Capability, Decision, Operation, Resource, Severity};

fn recommended() -> PolicySet {
    PolicySet::recommended().unwrap()
}

#[test]
fn the_recommended_set_loads_without_a_warning() {
    let policies = recommended();
    assert_eq!(policies.name(), "recommended");
    assert_eq!(policies.warnings(), []);
    assert!(policies.len() > 15);
}

/// The cells of the documented table: operation, risk, tier and decision.
fn cells() -> Vec<(Operation, RiskLevel, Tier, Decision)> {
    let document = include_str!("../../../../docs/reference/recommended-policies.md");
    let mut cells = Vec::new();
    for line in document.lines().filter(|line| line.starts_with("| `")) {
        let columns: Vec<&str> = line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`')).collect();
        let (operation, risk): (Operation, RiskLevel) = (columns[0].parse().unwrap(), columns[1].parse().unwrap());
        assert_eq!(columns.len(), 2 + Tier::ALL.len(), "{line}");
        for (&tier, word) in Tier::ALL.iter().zip(&columns[2..]) {
            let decision = match *word {
                "allow" => Decision::Allow,
                "ask" => Decision::Escalate,
                "deny" => Decision::Deny,
                other => panic!("{other} in {line}"),
            };
            cells.push((operation, risk, tier, decision));
        }
    }
    cells
}

#[test]
fn every_tier_gets_what_the_table_says() {
    let policies = recommended();
    let mut seen = 0;
    for (operation, risk, tier, expected) in cells() {
        for resource in [Resource::Email, Resource::Task, Resource::Document, Resource::System] {
            let capability = Capability::new(resource, operation);
            let intent = intent("do_it", &[capability.as_str()]);
            let verdict = policies.decide(&request(&intent, tier, risk));
            assert_eq!(verdict.decision, expected, "{capability} at {tier} {risk}: {}", verdict.reasoning);
            seen += 1;
        }
    }
    assert_eq!(seen, 7 * 4 * 6 * 4);
}

#[test]
fn a_sandboxed_agent_reads_public_information_and_nothing_else() {
    let policies = recommended();
    let public = intent("get_weather", &["information:read"]);
    assert_eq!(policies.decide(&request(&public, Tier::T0, RiskLevel::Low)).decision, Decision::Allow);
    assert_eq!(policies.decide(&request(&public, Tier::T0, RiskLevel::Medium)).decision, Decision::Deny);
    for &resource in Resource::ALL {
        for &operation in Operation::ALL {
            let capability = Capability::new(resource, operation);
            if capability.as_str() != "information:read" {
                let intent = intent("do_it", &[capability.as_str()]);
                let verdict = policies.decide(&request(&intent, Tier::T0, RiskLevel::Low));
                assert_eq!(verdict.decision, Decision::Deny, "{capability}");
            }
        }
    }
}

#[test]
fn secrets_and_what_is_unknown_are_granted_to_nobody() {
    let policies = recommended();
    for capability in
        ["credential:send", "unknown:unknown", "unknown:read", "email:unknown", "crm:read", "email:archive"]
    {
        for &tier in Tier::ALL {
            for &risk in RiskLevel::ALL {
                let intent = intent("do_it", &[capability]);
                let verdict = policies.decide(&request(&intent, tier, risk));
                assert_eq!(verdict.granted, [], "{capability} at {tier} {risk}");
                if capability == "credential:send" || tier < Tier::T3 {
                    assert_eq!(verdict.decision, Decision::Deny, "{capability} at {tier} {risk}");
                }
            }
        }
    }
}

#[test]
fn grave_requests_need_a_person_even_of_a_trusted_agent() {
    let policies = recommended();
    for capability in [
        "credential:read",
        "credential:write",
        "credential:admin",
        "credential:execute",
        "payment:write",
        "permission:write",
        "health:read",
        "health:send",
    ] {
        let intent = intent("do_it", &[capability]);
        let verdict = policies.decide(&request(&intent, Tier::T5, RiskLevel::High));
        assert_eq!(verdict.decision, Decision::Escalate, "{capability}");
    }
}

#[test]
fn a_standard_assistant_can_do_its_work() {
    let policies = recommended();
    for (action, capabilities, risk, expected) in [
        ("read_email", &["email:read", "calendar:read"][..], RiskLevel::Medium, Decision::Allow),
        ("write_document", &["document:write"], RiskLevel::Low, Decision::Allow),
        ("send_email", &["email:send"], RiskLevel::Medium, Decision::Allow),
        ("remove_user", &["permission:admin"], RiskLevel::High, Decision::Escalate),
        ("send_secret", &["email:read", "credential:send"], RiskLevel::High, Decision::Deny),
        ("send_secret", &["email:read", "credential:send"], RiskLevel::Medium, Decision::Degrade),
    ] {
        let intent = intent(action, capabilities);
        let verdict = policies.decide(&request(&intent, Tier::T4, risk));
        assert_eq!(verdict.decision, expected, "{action}: {}", verdict.reasoning);
    }
}

#[test]
fn a_mixed_request_resolves_capability_by_capability() {
    let intent = intent("forward_report", &["email:send", "email:read"]);
    let verdict = recommended().decide(&request(&intent, Tier::T2, RiskLevel::Medium));
    assert_eq!(verdict.decision, Decision::Degrade);
    assert_eq!(words(&verdict.granted), ["email:read"]);
    assert_eq!(words(&verdict.denied), ["email:send"]);
    assert_eq!(verdict.constraints.get("maxRecords"), Some(&100.into()));
}

#[test]
fn no_context_loosens_anything() {
    let policies = recommended();
    // Every value that a rule of the set looks at, and some that no rule does.
    let contexts = [
        ("environment", "production"),
        ("environment", "LIVE"),
        ("environment", "sandbox"),
        ("dataClassification", "RESTRICTED"),
        ("dataClassification", "public"),
        ("tier", "T5"),
        ("approved", "yes"),
    ];
    let strictness = |decision| match decision {
        Decision::Allow => 0,
        Decision::Degrade => 1,
        Decision::Escalate => 2,
        Decision::Deny => 3,
    };
    for &resource in Resource::ALL {
        for &operation in Operation::ALL {
            let plain = intent("do_it", &[Capability::new(resource, operation).as_str()]);
            for (key, value) in contexts {
                let told = plain.clone().with_context(key, value);
                for &tier in Tier::ALL {
                    for &risk in RiskLevel::ALL {
                        let (before, after) = (
                            policies.decide(&request(&plain, tier, risk)),
                            policies.decide(&request(&told, tier, risk)),
                        );
                        assert!(
                            strictness(after.decision) >= strictness(before.decision),
                            "{key} {value} turned {} into {} for {resource}:{operation} at {tier} {risk}",
                            before.decision,
                            after.decision
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn the_context_tightens_what_leaves_and_what_runs() {
    let policies = recommended();
    let sent = intent("send_email", &["email:send"]).with_context("dataClassification", "restricted");
    assert_eq!(policies.decide(&request(&sent, Tier::T5, RiskLevel::Medium)).decision, Decision::Escalate);
    assert_eq!(policies.decide(&request(&sent, Tier::T2, RiskLevel::Low)).decision, Decision::Deny);
    let restarted = intent("restart_service", &["system:execute"]).with_context("environment", "Production");
    let verdict = policies.decide(&request(&restarted, Tier::T4, RiskLevel::Medium));
    assert_eq!((verdict.decision, verdict.reviewer.as_deref()), (Decision::Escalate, Some("operations")));
}

#[test]
fn the_recommended_set_has_no_error_or_warning_as_a_document() {
    let (text, format) = (include_str!("../../../../policies/recommended.toml"), PolicyFormat::Toml);
    let problems = PolicySet::validate(text, format);
    assert!(!problems.iter().any(|problem| problem.severity == Severity::Error), "{problems:?}");
}
