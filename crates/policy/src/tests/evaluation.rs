//! Decisions by example, with their reasoning.

use serde_json::json;

use super::*;
use rulekeep_types::Decision;

const READ: &str = "id = \"reads\"\neffect = \"allow\"\nreason = \"Reading is harmless.\"\nmatch.capabilities = [\"*:read\"]\nconstraints.maxRecords = 100";
const MONEY: &str = "id = \"money\"\neffect = \"escalate\"\nreviewer = \"finance-lead\"\nreason = \"Refunds move money.\"\nmatch.capabilities = [\"payment:transfer\"]";
const NO_MAIL: &str = "id = \"no-mail\"\neffect = \"deny\"\nmatch.capabilities = [\"email:send\"]";

#[test]
fn nothing_matched_means_deny() {
    let verdict = decide(&toml(&[]), &intent("read_email", &["email:read"]));
    assert_eq!(verdict.decision, Decision::Deny);
    assert_eq!(
        verdict.reasoning,
        "Denied: no rule grants email:read at tier T3 and risk MEDIUM. If the agent needs this, ask the policy owner."
    );
    assert!(verdict.rules.is_empty() && verdict.constraints.is_empty());
}

#[test]
fn each_decision_names_its_rules_and_the_way_on() {
    let policies = toml(&[READ, MONEY, NO_MAIL]);
    for (capabilities, decision, reasoning) in [
        (
            &["email:read", "file:read"][..],
            Decision::Allow,
            "Allowed: email:read and file:read granted by rule \"reads\" at line 2 (Reading is harmless).",
        ),
        (
            &["payment:transfer", "payment:read"],
            Decision::Escalate,
            "Escalated: payment:transfer subject to approval by finance-lead under rule \"money\" at line 8 (Refunds move money). Nothing is granted until finance-lead approves.",
        ),
        (
            &["email:read", "email:send"],
            Decision::Degrade,
            "Degraded: email:read granted by rule \"reads\" at line 2 (Reading is harmless); email:send denied by rule \"no-mail\" at line 14. Continue with email:read only.",
        ),
        (
            &["email:send"],
            Decision::Deny,
            "Denied: email:send denied by rule \"no-mail\" at line 14. Rephrasing the request will not change this; ask the policy owner.",
        ),
        (
            &["payment:transfer", "email:send"],
            Decision::Deny,
            "Denied: email:send denied by rule \"no-mail\" at line 14; payment:transfer subject to approval by finance-lead under rule \"money\" at line 8 (Refunds move money). Request payment:transfer separately to have finance-lead decide.",
        ),
    ] {
        let verdict = decide(&policies, &intent("do_it", capabilities));
        assert_eq!((verdict.decision, verdict.reasoning.as_str()), (decision, reasoning));
    }
}

#[test]
fn a_degrading_rule_leaves_what_it_names_and_withholds_the_rest() {
    let only_reads = "id = \"only-reads\"\neffect = \"degrade\"\nto = [\"payment:read\"]\nmatch.capabilities = [\"payment:*\"]\nconstraints.maxRecords = 5";
    let all = "id = \"all\"\neffect = \"allow\"\nconstraints.timeoutMs = 10";
    let verdict = decide(&toml(&[only_reads, all]), &intent("do_it", &["payment:write", "payment:read", "email:read"]));
    assert_eq!(verdict.decision, Decision::Degrade);
    assert_eq!(words(&verdict.granted), ["payment:read", "email:read"]);
    assert_eq!(serde_json::to_value(&verdict.constraints).unwrap(), json!({ "maxRecords": 5, "timeoutMs": 10 }));
}

#[test]
fn an_approval_grants_no_more_than_the_rules_leave() {
    let withheld = "id = \"none\"\neffect = \"degrade\"\nto = [\"email:read\"]\nmatch.capabilities = [\"email:*\"]";
    let verdict =
        decide(&toml(&[READ, MONEY, withheld]), &intent("do_it", &["payment:transfer", "file:read", "email:send"]));
    assert_eq!(verdict.decision, Decision::Escalate);
    let approval = verdict.on_approval.unwrap();
    assert_eq!(words(&approval.granted), ["payment:transfer", "file:read"]);
    assert_eq!(words(&approval.denied), ["email:send"]);
    assert_eq!(serde_json::to_value(&approval.constraints).unwrap(), json!({ "maxRecords": 100 }));
}

#[test]
fn many_rules_are_named_by_the_first_three() {
    let rules: Vec<String> = (0..7)
        .map(|n| format!("id = \"r{n}\"\neffect = \"deny\"\nmatch.actions = [\"do_*\", \"do_it{n}\", \"do_it\"]"))
        .collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let verdict = decide(&toml(&rules), &intent("do_it", &["email:read"]));
    assert_eq!(verdict.rules_total, 7);
    assert!(
        verdict.reasoning.contains("denied by rules \"r0\" at line 2, \"r1\" at line 6, \"r2\" at line 10 and 4 more."),
        "{}",
        verdict.reasoning
    );
}

#[test]
fn a_word_that_no_document_names_is_granted_by_no_wildcard() {
    let wide = "id = \"all\"\neffect = \"allow\"";
    let verdict = decide(&toml(&[wide]), &intent("export", &["crm:export", "email:read"]));
    assert_eq!((verdict.decision, words(&verdict.granted)), (Decision::Degrade, vec!["email:read".to_owned()]));

    let named =
        PolicySet::from_toml(&format!("name = \"t\"\nvocabulary = [\"crm:export\"]\n[[rule]]\n{wide}")).unwrap();
    assert_eq!(decide(&named, &intent("export", &["crm:export"])).decision, Decision::Allow);
}

#[test]
fn the_effective_risk_counts_and_not_the_claimed_one() {
    let policies = toml(&["id = \"low\"\neffect = \"allow\"\nmatch.risk = { max = \"LOW\" }"]);
    let claimed_low = intent("do_it", &["email:read"]);
    assert_eq!(policies.decide(&request(&claimed_low, Tier::T5, RiskLevel::High)).decision, Decision::Deny);
}

#[test]
fn the_tier_in_force_counts_and_not_that_of_the_score() {
    let policies = toml(&["id = \"t4\"\neffect = \"allow\"\nmatch.tiers = { min = \"T4\" }"]);
    let intent = intent("do_it", &["email:read"]);
    let held = PolicyRequest {
        trust: TrustSnapshot::new(Tier::T3.highest(), Tier::T4),
        ..request(&intent, Tier::T0, RiskLevel::Low)
    };
    assert_eq!(policies.decide(&held).decision, Decision::Allow);
}

#[test]
fn what_a_context_clause_cannot_compare_never_loosens() {
    let clause = "match.context = [{ key = \"n\", matches = '^4[0-9]$' }]";
    let allowing = toml(&[&format!("id = \"a\"\neffect = \"allow\"\n{clause}")]);
    let denying = toml(&[READ, &format!("id = \"d\"\neffect = \"deny\"\n{clause}")]);
    // The value, whether an allow matches it, and whether a deny matches it.
    for (value, allows, denies) in [
        (json!("42"), true, true),
        (json!(42), true, true),
        (json!(42.0), true, true),
        (json!(4.2e1), true, true),
        (json!(420), false, false),
        (json!([42]), true, true),
        (json!([42, 7]), false, true),
        (json!([]), false, true),
        (json!(null), false, true),
        (json!({ "n": 42 }), false, true),
    ] {
        let intent = intent("read_email", &["email:read"]).with_context("n", value.clone());
        assert_eq!(decide(&allowing, &intent).decision == Decision::Allow, allows, "allow: {value}");
        assert_eq!(decide(&denying, &intent).decision == Decision::Deny, denies, "deny: {value}");
    }
}

#[test]
fn a_caller_cannot_call_its_data_less_sensitive_than_it_is() {
    let policies =
        toml(&[READ, "id = \"d\"\neffect = \"deny\"\nmatch.classification = [\"CONFIDENTIAL\", \"RESTRICTED\"]"]);
    for word in [json!("PUBLIC"), json!("SECRET"), json!("RESTRICTED "), json!(["RESTRICTED"])] {
        let asked = intent("read_email", &["email:read"]).with_context("dataClassification", word.clone());
        assert_eq!(decide(&policies, &asked).decision, Decision::Deny, "{word}");
    }
}

#[test]
fn environments_and_classes_are_compared_without_case() {
    let policies =
        toml(&["id = \"a\"\neffect = \"allow\"\nmatch = { environment = [\"Küche\"], classification = [\"PUBLIC\"] }"]);
    let asked = intent("do_it", &["document:read"])
        .with_context("environment", " KÜCHE ")
        .with_context("dataClassification", "public");
    assert_eq!(decide(&policies, &asked).decision, Decision::Allow);
}

#[test]
fn explain_names_the_clause_that_failed() {
    let policies = toml(&[
        READ,
        "id = \"t5\"\neffect = \"allow\"\nmatch.tiers = { min = \"T5\" }",
        "id = \"other\"\neffect = \"deny\"\nmatch.actions = [\"send_*\"]",
        "id = \"to\"\neffect = \"deny\"\nmatch.context = [{ key = \"target\", matches = \"x\" }]",
    ]);
    let asked = intent("read_email", &["email:read", "email:send"]).with_context("target", "a\u{7}b");
    let traces = policies.traces(&request(&asked, Tier::T3, RiskLevel::Medium));
    assert_eq!(serde_json::to_string_pretty(&traces).unwrap(), include_str!("explained.json").trim_end());
}

#[test]
fn a_rule_with_more_names_than_keys_still_matches() {
    let names = |prefix: &str| (0..300).map(|n| format!("\"{prefix}{n}\"")).collect::<Vec<_>>().join(", ");
    let rule = format!(
        "id = \"many\"\neffect = \"allow\"\nmatch = {{ agents = [{}, \"bot-1\"], actions = [{}, \"do_it\"], environment = [{}] }}",
        names("a-"),
        names("do_"),
        names("env-")
    );
    let policies = toml(&[&rule]);
    for (action, environment, expected) in [
        ("do_it", "ENV-299", Decision::Allow),
        ("do_7", "env-0", Decision::Allow),
        ("do_it", "env", Decision::Deny),
        ("do", "env-0", Decision::Deny),
    ] {
        let asked = intent(action, &["email:read"]).with_context("environment", environment);
        assert_eq!(decide(&policies, &asked).decision, expected, "{action} in {environment}");
    }
}

#[test]
fn globs_are_found_by_starts_and_ends_of_more_than_one_byte() {
    let policies = toml(&[
        "id = \"start\"\neffect = \"deny\"\nmatch.agents = [\"ü*\", \"a?\"]",
        "id = \"end\"\neffect = \"deny\"\nmatch.agents = [\"*ö\"]",
        "id = \"rest\"\neffect = \"allow\"",
    ]);
    for (agent, expected) in [
        ("übot", Decision::Deny),
        ("botö", Decision::Deny),
        ("aü", Decision::Deny),
        ("ö-bot", Decision::Allow),
        ("€", Decision::Allow),
    ] {
        let asked = Intent::new(agent, "do_it", RiskLevel::Low, ["email:read"]).unwrap();
        assert_eq!(decide(&policies, &asked).decision, expected, "{agent}");
    }
}

#[test]
fn what_cannot_be_compared_does_not_shake_off_constraints() {
    let only_few = "id = \"few\"\neffect = \"degrade\"\nto = [\"email:read\"]\nmatch.context = [{ key = \"target\", matches = \"x\" }]\nconstraints.maxRecords = 5";
    let policies = toml(&[READ, only_few]);
    for target in [json!("x"), json!({ "to": "x" }), json!(["y", "x"]), json!(null)] {
        let asked = intent("read_email", &["email:read"]).with_context("target", target.clone());
        assert_eq!(decide(&policies, &asked).constraints.get("maxRecords"), Some(&json!(5)), "{target}");
    }
    let alone = intent("read_email", &["email:read"]).with_context("target", json!({ "to": "x" }));
    assert_eq!(decide(&toml(&[only_few]), &alone).decision, Decision::Deny, "it grants nothing by itself");
}

#[test]
fn an_approval_keeps_constraints_of_rules_that_grant_nothing() {
    let base = PolicySet::from_toml(&format!("name = \"base\"\n[[rule]]\n{MONEY}")).unwrap();
    let team = "name = \"team\"\n[[rule]]\nid = \"small\"\neffect = \"allow\"\nmatch.capabilities = [\"payment:*\"]\nconstraints.maxAmount = 50";
    let both = PolicySet::layered(&[base, PolicySet::from_toml(team).unwrap()]).unwrap();
    let verdict = decide(&both, &intent("do_it", &["payment:transfer"]));
    assert_eq!(verdict.on_approval.unwrap().constraints.get("maxAmount"), Some(&json!(50)));
}

#[test]
fn an_environment_that_is_no_word_slips_past_no_rule() {
    let policies = toml(&[READ, "id = \"prod\"\neffect = \"deny\"\nmatch.environment = [\"production\"]"]);
    for environment in [json!(["production"]), json!({ "name": "production" }), json!(true), json!(1)] {
        let asked = intent("read_email", &["email:read"]).with_context("environment", environment.clone());
        let error = policies.evaluate(&request(&asked, Tier::T3, RiskLevel::Low)).unwrap_err();
        assert_eq!(error.code(), "INVALID_INTENT", "{environment}");
        assert!(error.to_string().contains("environment: expected a string, for example production"), "{error}");
    }
    let absent = intent("read_email", &["email:read"]).with_context("environment", json!(null));
    assert_eq!(decide(&policies, &absent).decision, Decision::Allow, "null is absent");
}

#[test]
fn an_allow_that_nothing_is_left_to_says_so() {
    let base = "name = \"base\"\ndelegates = [\"web:read\"]\n[[rule]]\nid = \"files\"\neffect = \"allow\"\nmatch.capabilities = [\"file:*\"]";
    let team = "name = \"team\"\n[[rule]]\nid = \"mail\"\neffect = \"allow\"\nmatch.capabilities = [\"email:*\"]\n[[rule]]\nid = \"all\"\neffect = \"allow\"\nconstraints.maxRecords = 5\n[[rule]]\nid = \"few\"\neffect = \"degrade\"\nto = [\"file:read\"]\nmatch.capabilities = [\"file:read\"]";
    let set = |text: &str| PolicySet::from_toml(text).unwrap();
    let both = PolicySet::layered(&[set(base), set(team)]).unwrap();
    let asked = intent("do_it", &["email:read", "file:read", "web:read"]);
    let traces = both.traces(&request(&asked, Tier::T3, RiskLevel::Low));
    let why: Vec<&str> = traces.iter().map(|trace| trace.why.as_str()).collect();
    assert_eq!(
        why,
        [
            "every clause holds: allows file:read",
            "every clause holds: grants nothing: an earlier document does not leave email:read to this one",
            "every clause holds: allows web:read: an earlier document does not leave email:read, file:read to this one; its constraints count",
            "every clause holds: leaves file:read of file:read, but does not grant all of it by itself: an earlier document does not leave file:read to this one",
        ]
    );
}

#[test]
fn a_later_allow_that_limits_or_constrains_is_not_called_idle() {
    let base = "name = \"base\"\n[[rule]]\nid = \"mail\"\neffect = \"allow\"\nmatch.capabilities = [\"email:*\"]";
    let set = |text: &str| PolicySet::from_toml(text).unwrap();
    let layered = |more: &str| {
        let team = format!(
            "name = \"team\"\n[[rule]]\nid = \"few\"\neffect = \"allow\"\nmatch.capabilities = [\"email:send\"]\n{more}"
        );
        PolicySet::layered(&[set(base), set(&team)]).unwrap()
    };
    let is_warned =
        |more: &str| layered(more).warnings().iter().any(|one| one.message.contains("grants nothing by itself"));
    assert!(is_warned(""));
    for (more, told) in [
        ("limit = { count = 1, per = \"1h\" }", "; its limit counts"),
        ("constraints = { maxRecords = 1 }", "; its constraints count"),
    ] {
        assert!(!is_warned(more), "{more}");
        let asked = intent("do_it", &["email:send"]);
        let traces = layered(more).traces(&request(&asked, Tier::T3, RiskLevel::Low));
        assert!(traces[1].why.ends_with(told), "{}", traces[1].why);
    }
    // And it takes effect: used up, it refuses what the base allows.
    let (set, used) = (layered("limit = { count = 1, per = \"1h\" }"), [("few".to_owned(), 1.0)].into());
    let asked = intent("send_mail", &["email:send"]);
    let request = request(&asked, Tier::T1, RiskLevel::Low);
    let verdict = set.evaluate_with_usage(&request, &used).unwrap();
    assert_eq!((verdict.decision, verdict.limits[0].is_spent()), (Decision::Deny, true));
    let traces = set.explain_with_usage(&request, &used);
    assert!(traces.iter().any(|trace| trace.rule == "few" && trace.decided));
}

#[test]
fn a_rule_is_named_with_its_document_where_there_are_several() {
    let rule = |id: &str, effect: &str| format!("name = \"{id}\"\n[[rule]]\nid = \"{id}\"\neffect = \"{effect}\"");
    let named = |id, effect, name| PolicySet::parse(&rule(id, effect), PolicyFormat::Toml, name).unwrap();
    let base = named("a", "allow", "mine.toml");
    for (other, document, place) in [
        (named("b", "deny", "mine.toml"), "mine.toml (document 2)", "mine.toml (document 2) line 2"),
        (named("b", "deny", "toml"), "document 2", "document 2 line 2"),
        (named("b", "deny", "team.json"), "team.json", "team.json:2"),
    ] {
        let both = PolicySet::layered(&[base.clone(), other]).unwrap();
        let asked = intent("do_it", &["email:read"]);
        assert!(decide(&both, &asked).reasoning.contains(&format!("rule \"b\" at {place}.")), "{place}");
        let traces = both.traces(&request(&asked, Tier::T3, RiskLevel::Low));
        assert_eq!(traces[1].document.as_deref(), Some(document));
    }
}

#[test]
fn a_request_that_cannot_be_counted_is_not_past_its_limit() {
    let rule = "id = \"pay\"\neffect = \"allow\"\nlimit = { sum = \"amount\", max = 10, per = \"1h\" }";
    for (limited, amount, why) in [
        (rule.to_owned(), json!(null), "cannot be counted: the request names no amount: context.amount is absent"),
        (rule.to_owned(), json!(-5), "cannot be counted: context.amount is not an amount that can be counted"),
        (
            rule.replace("per =", "by = \"group\", per ="),
            json!(5),
            "cannot be counted: the agent is in no group that the limit counts",
        ),
        (rule.to_owned(), json!(50), "is used up"),
    ] {
        let asked = intent("do_it", &["payment:transfer"]).with_context("amount", amount.clone());
        let trace = &toml(&[&limited]).traces(&request(&asked, Tier::T3, RiskLevel::Low))[0];
        assert!(trace.decided && trace.why.contains(why), "{amount}: {}", trace.why);
        assert!(trace.why.ends_with(": denies payment:transfer"), "{}", trace.why);
    }
    // Without anybody to count for, the reasoning says so too.
    let by_group = toml(&[&rule.replace("per =", "by = \"group\", per =")]);
    let told = decide(&by_group, &intent("do_it", &["payment:transfer"]).with_context("amount", json!(5))).reasoning;
    assert!(told.contains("The limit of rule \"pay\" (10 of amount per 1h for each group) cannot be counted: the agent is in no group that the limit counts."), "{told}");
    let none = decide(&toml(&[rule]), &intent("do_it", &["payment:transfer"]));
    assert!(
        none.reasoning.contains("The limit of rule \"pay\" (10 of amount per 1h for each agent) cannot be counted: the request names no amount"),
        "{}",
        none.reasoning
    );
}
