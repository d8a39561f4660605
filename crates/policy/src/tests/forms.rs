//! No way of writing a rule or a value evades a rule.

use serde_json::{Value, json};

use super::*;
use rulekeep_types::Decision;

const ALLOWS: &str = "id = \"allows\"\neffect = \"allow\"\nmatch.capabilities = [\"web:read\"]";

fn reads(context: &[(&str, Value)]) -> Intent {
    context.iter().fold(intent("do_it", &["web:read"]), |intent, (key, value)| intent.with_context(*key, value.clone()))
}

fn error(rules: &[&str]) -> String {
    let tables: Vec<String> = rules.iter().map(|rule| format!("[[rule]]\n{rule}\n")).collect();
    PolicySet::from_toml(&format!("name = \"test\"\n{}", tables.concat())).unwrap_err().to_string()
}

#[test]
fn a_name_that_reads_like_a_condition_is_none() {
    let deny =
        |id: &str, more: &str| format!("id = \"{id}\"\neffect = \"deny\"\nmatch.capabilities = [\"web:read\"]\n{more}");
    for (condition, named) in [
        ("when = 'context.x == 1'", "let = { when = 'context.x == 1' }"),
        ("when = 'true'\nunless = 'context.x == 2'", "when = 'true'\nlet = { unless = 'context.x == 2' }"),
    ] {
        let policies = toml(&[ALLOWS, &deny("d1", condition), &deny("d2", named)]);
        assert_eq!(decide(&policies, &reads(&[("x", json!(2))])).decision, Decision::Deny, "{named}");
        assert_ne!(toml(&[&deny("d", condition)]).digest(), toml(&[&deny("d", named)]).digest());
    }
}

#[test]
fn a_number_is_the_same_in_every_form() {
    let policies =
        toml(&[ALLOWS, "id = \"d\"\neffect = \"deny\"\nmatch.context = [{ key = \"n\", matches = \"^[0-9]{6,}$\" }]"]);
    for text in [
        "100000",
        "1e5",
        "100000.0",
        "1e15",
        "1000000000000000.0",
        "18446744073709551615",
        "18446744073709551616",
        "100000000000000000000",
        "1e300",
    ] {
        let number: Value = serde_json::from_str(text).unwrap();
        assert_eq!(decide(&policies, &reads(&[("n", number)])).decision, Decision::Deny, "{text}");
    }
    for text in ["99999", "99999.0", "100000.5", "1e-7"] {
        let number: Value = serde_json::from_str(text).unwrap();
        assert_eq!(decide(&policies, &reads(&[("n", number)])).decision, Decision::Allow, "{text}");
    }
}

#[test]
fn an_environment_is_read_alike_in_rules_and_requests() {
    let policies = toml(&[ALLOWS, "id = \"d\"\neffect = \"deny\"\nmatch.environment = [\" Production \"]"]);
    for name in ["production", " production ", "PRODUCTION"] {
        assert_eq!(decide(&policies, &reads(&[("environment", json!(name))])).decision, Decision::Deny, "{name:?}");
    }
    let message = error(&["id = \"d\"\neffect = \"deny\"\nmatch.environment = [\"prod*\"]"]);
    assert!(message.contains("environment's name") && message.contains("prod*"), "{message}");
}

#[test]
fn words_of_risk_and_tier_are_checked_after_names_and_in_lists() {
    let rule = |more: &str| format!("id = \"r\"\neffect = \"deny\"\n{more}");
    for (more, said) in [
        ("let = { risk = 'intent.risk' }\nwhen = \"risk < 'HIGH'\"", "without an order"),
        ("let = { tier = 'trust.tier' }\nwhen = \"tier == 'T04'\"", "T04"),
        ("let = { wanted = \"'HIHG'\" }\nwhen = 'intent.risk == wanted'", "HIHG"),
        ("when = \"'HGIH' in [intent.risk]\"", "HGIH"),
    ] {
        let message = error(&[&rule(more)]);
        assert!(message.contains(said), "{more}: {message}");
    }
    toml(&[&rule("let = { risk = 'intent.risk' }\nwhen = \"risk == 'HIGH' || 'LOW' in [intent.risk]\"")]);
}

#[test]
fn a_surely_true_exception_makes_a_failed_condition_harmless() {
    let policies =
        toml(&[ALLOWS, "id = \"d\"\neffect = \"deny\"\nwhen = 'context.q == 1'\nunless = \"agent.id == 'bot-1'\""]);
    let verdict = decide(&policies, &reads(&[]));
    assert_eq!((verdict.decision, verdict.failures.len()), (Decision::Allow, 0));
}

mod failures {
    use super::*;

    fn undecided(policies: &PolicySet, context: &[(&str, Value)]) -> bool {
        policies.evaluate(&request(&reads(context), Tier::T3, RiskLevel::Medium)).is_err()
    }

    #[test]
    fn of_two_failed_escalations_the_reviewer_hangs_on_which_holds() {
        let asks = |id: &str, reviewer: &str, when: &str| {
            format!(
                "id = \"{id}\"\neffect = \"escalate\"\nreviewer = \"{reviewer}\"\nmatch.capabilities = [\"web:read\"]\n{when}"
            )
        };
        let policies = toml(&[
            ALLOWS,
            &asks("e1", "x", "when = 'context.q == 1'"),
            &asks("e2", "y", "when = 'context.z == 1'"),
            &asks("e0", "x", ""),
        ]);
        assert!(undecided(&policies, &[]));
        // Whichever of them holds, x is asked.
        let same = toml(&[
            ALLOWS,
            &asks("e1", "x", "when = 'context.q == 1'"),
            &asks("e2", "x", "when = 'context.z == 1'"),
            &asks("e0", "x", ""),
        ]);
        assert!(!undecided(&same, &[]));
    }

    #[test]
    fn of_two_failed_allows_one_may_be_used_up() {
        let policies = toml(&[
            "id = \"a1\"\neffect = \"allow\"\nmatch.capabilities = [\"web:read\"]\nwhen = 'context.q == 1'\nlimit = { count = 1, per = \"1h\" }",
            "id = \"a2\"\neffect = \"allow\"\nmatch.capabilities = [\"web:read\"]\nwhen = 'context.z == 1'",
        ]);
        assert!(undecided(&policies, &[]));
    }

    #[test]
    fn many_failed_denies_beside_one_that_holds_still_deny() {
        let denies: Vec<String> = (0..9)
            .map(|number| format!("id = \"d{number}\"\neffect = \"deny\"\nwhen = 'context.q{number} == 1'"))
            .chain(["id = \"d\"\neffect = \"deny\"".to_owned()])
            .collect();
        let rules: Vec<&str> = std::iter::once(ALLOWS).chain(denies.iter().map(String::as_str)).collect();
        assert_eq!(decide(&toml(&rules), &reads(&[])).decision, Decision::Deny);
        assert!(undecided(&toml(&rules[..rules.len() - 1]), &[]));
    }
}

mod layers {
    use super::*;

    fn set(name: &str, rule: &str) -> PolicySet {
        PolicySet::from_toml(&format!("name = \"{name}\"\n[[rule]]\n{rule}\n")).unwrap()
    }

    #[test]
    fn to_withhold_what_nobody_grants_opens_no_approval() {
        let base =
            set("base", "id = \"e\"\neffect = \"escalate\"\nreviewer = \"x\"\nmatch.capabilities = [\"web:send\"]");
        let team =
            set("team", "id = \"d\"\neffect = \"degrade\"\nto = [\"file:read\"]\nmatch.capabilities = [\"file:*\"]");
        let asked = intent("do_it", &["file:write", "web:send"]);
        assert_eq!(decide(&base, &asked).decision, Decision::Deny);
        let both = PolicySet::layered(&[base, team]).unwrap();
        let verdict = decide(&both, &asked);
        assert_eq!((verdict.decision, verdict.on_approval), (Decision::Deny, None));
    }

    #[test]
    fn to_withhold_what_the_base_grants_withholds_it() {
        let base = set("base", "id = \"a\"\neffect = \"allow\"\nmatch.capabilities = [\"file:*\"]");
        let team =
            set("team", "id = \"d\"\neffect = \"degrade\"\nto = [\"file:read\"]\nmatch.capabilities = [\"file:*\"]");
        let both = PolicySet::layered(&[base, team]).unwrap();
        let verdict = decide(&both, &intent("do_it", &["file:read", "file:write"]));
        assert_eq!(verdict.decision, Decision::Degrade);
        assert_eq!(
            (words(&verdict.granted), words(&verdict.denied)),
            (vec!["file:read".to_owned()], vec!["file:write".to_owned()])
        );
    }

    #[test]
    fn a_tier_opened_only_by_an_empty_document_is_told_as_closed() {
        let base = set("base", "id = \"a\"\neffect = \"allow\"\nmatch.tiers = { min = \"T4\" }");
        let team = set("team", "id = \"b\"\neffect = \"allow\"\nmatch.tiers = { max = \"T3\" }");
        let both = PolicySet::layered(&[base, team]).unwrap();
        let told: Vec<&str> = both.warnings().iter().map(|warning| warning.message.as_str()).collect();
        assert!(told.iter().any(|message| message.contains("T0, T1, T2, T3")), "{told:#?}");
    }

    const EU: &str = "id = \"a\"\neffect = \"allow\"\nmatch.capabilities = [\"web:*\"]\nconstraints = { region = \"eu\", maxRecords = 9 }";

    fn later(rule: &str) -> PolicySet {
        let base = PolicySet::from_toml(&format!("name = \"base\"\ndelegates = [\"*:*\"]\n[[rule]]\n{EU}\n")).unwrap();
        PolicySet::layered(&[base, set("team", rule)]).unwrap()
    }

    #[test]
    fn a_later_constraint_that_differs_undirected_grants_nothing() {
        let asked = intent("do_it", &["web:read"]);
        for (value, rule) in [
            ("\"us\"", "effect = \"allow\""),
            ("\"a\"", "effect = \"allow\""),
            ("5", "effect = \"allow\""),
            ("[\"eu\"]", "effect = \"allow\"\nlimit = { count = 5, per = \"1h\" }"),
            ("{ is = \"eu\" }", "effect = \"degrade\"\nto = [\"web:read\"]"),
        ] {
            let both = later(&format!(
                "id = \"b\"\n{rule}\nmatch.capabilities = [\"web:read\"]\nconstraints.region = {value}"
            ));
            let verdict = decide(&both, &asked);
            assert_eq!((verdict.decision, verdict.granted.len()), (Decision::Deny, 0), "{value} {rule}");
            assert!(verdict.reasoning.contains("constraints.region differs"), "{}", verdict.reasoning);
            assert_eq!(
                decide(&both, &intent("do_it", &["web:write"])).decision,
                Decision::Allow,
                "what only the base is about"
            );
            let told: Vec<&str> = both.warnings().iter().map(|warning| warning.message.as_str()).collect();
            let names = |message: &&str| message.contains("\"b\" grants nothing") && message.contains("rule \"a\"");
            assert!(told.iter().any(names), "{told:#?}");
        }
    }

    #[test]
    fn a_refusing_rule_matches_what_cannot_be_compared_too() {
        let both = later(
            "id = \"b\"\neffect = \"allow\"\nconstraints.region = \"us\"\n[[rule.match.context]]\nkey = \"to\"\nmatches = \"x\"",
        );
        let asked = intent("do_it", &["web:read"]).with_context("to", json!({ "name": "y" }));
        assert_eq!(decide(&both, &asked).decision, Decision::Deny);
    }

    #[test]
    fn a_later_constraint_that_is_same_new_or_directed_counts() {
        let asked = intent("do_it", &["web:read"]);
        for (constraints, key, merged) in [
            ("region = \"eu\"", "region", json!("eu")),
            ("zone = \"b\"", "zone", json!("b")),
            ("maxRecords = 3", "maxRecords", json!(3)),
            ("maxRecords = 30", "maxRecords", json!(9)),
        ] {
            let both = later(&format!("id = \"b\"\neffect = \"allow\"\nconstraints = {{ {constraints} }}"));
            let verdict = decide(&both, &asked);
            assert_eq!(
                (verdict.decision, verdict.constraints.get(key)),
                (Decision::Allow, Some(&merged)),
                "{constraints}"
            );
            assert!(!both.warnings().iter().any(|warning| warning.message.contains("grants nothing")), "{constraints}");
        }
    }

    #[test]
    fn a_later_constraint_must_equal_that_of_all_earlier_documents() {
        let other = "id = \"c\"\neffect = \"allow\"\nmatch.capabilities = [\"file:*\"]\nconstraints.region = \"us\"";
        let base = PolicySet::from_toml(&format!("name = \"base\"\n[[rule]]\n{EU}\n[[rule]]\n{other}\n")).unwrap();
        let asked = intent("do_it", &["file:read", "web:read"]);
        assert_eq!(decide(&base, &asked).decision, Decision::Allow, "in one document values merge by their kinds");
        for region in ["eu", "us"] {
            let team = set("team", &format!("id = \"b\"\neffect = \"allow\"\nconstraints.region = \"{region}\""));
            let both = PolicySet::layered(&[base.clone(), team]).unwrap();
            assert_eq!(decide(&both, &asked).decision, Decision::Deny, "{region}");
        }
    }

    #[test]
    fn the_conditions_of_all_documents_are_bounded_together() {
        let clause = (0..100).map(|number| format!("a != {number}")).collect::<Vec<_>>().join(" && ");
        let document = |name: &str| {
            let rule = |number: usize| {
                format!("[[rule]]\nid = \"{name}{number}\"\neffect = \"deny\"\nwhen = 'context.l.all(a, {clause})'\n")
            };
            PolicySet::from_toml(&format!("name = \"{name}\"\n{}", (0..100).map(rule).collect::<String>())).unwrap()
        };
        let one = document("a");
        assert!(PolicySet::layered(std::slice::from_ref(&one)).is_ok());
        let error = PolicySet::layered(&[one, document("b"), document("c")]).unwrap_err();
        assert!(error.to_string().contains("steps together"), "{error}");
    }
}

#[test]
fn an_escalation_that_says_who_is_asked_is_not_idle() {
    let asks = |id: &str, reviewer: &str, capability: &str| {
        format!(
            "[[rule]]\nid = \"{id}\"\neffect = \"escalate\"\nreviewer = \"{reviewer}\"\nmatch.capabilities = [\"{capability}\"]\n"
        )
    };
    let text =
        ["name = \"test\"\n", &asks("r", "x", "web:send"), &asks("e", "y", "web:send"), &asks("k", "x", "*:send")];
    let idle = |text: String| problems(&text).iter().any(|problem| problem.contains("is redundant"));
    assert!(!idle(text.concat()));
    let text = ["name = \"test\"\n", &asks("k", "x", "*:send"), &asks("r", "x", "web:send")];
    assert!(idle(text.concat()));
}
