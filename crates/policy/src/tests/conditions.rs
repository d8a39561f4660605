//! Rules with conditions, examples and limits, and layered sets.

use serde_json::json;

use super::*;
use rulekeep_types::{Decision, Operation, Resource};

const READS: &str = "id = \"reads\"\neffect = \"allow\"\nmatch.capabilities = [\"email:read\"]";

fn amount(value: serde_json::Value) -> Intent {
    intent("pay", &["email:read"]).with_context("amount", value)
}

fn decision(policies: &PolicySet, intent: &Intent) -> Decision {
    decide(policies, intent).decision
}

#[test]
fn a_condition_must_hold_and_an_exception_must_not() {
    let policies = toml(&[
        "id = \"small\"\neffect = \"allow\"\nmatch.capabilities = [\"email:read\"]\nwhen = \"context.amount < limit\"\nunless = \"has(context.frozen) && context.frozen\"\n[rule.let]\nlimit = \"100\"",
    ]);
    assert_eq!(decision(&policies, &amount(json!(99))), Decision::Allow);
    assert_eq!(decision(&policies, &amount(json!(100))), Decision::Deny);
    assert_eq!(decision(&policies, &amount(json!(1)).with_context("frozen", true)), Decision::Deny);
    let asked = amount(json!(1)).with_context("frozen", true);
    let trace = &policies.traces(&request(&asked, Tier::T3, RiskLevel::Medium))[0];
    assert_eq!(trace.failed.as_deref(), Some("unless"));
}

#[test]
fn conditions_see_agent_trust_and_time() {
    let policies = toml(&[
        "id = \"r\"\neffect = \"allow\"\nmatch.capabilities = [\"email:read\"]\nwhen = 'trust.score >= 500 && \"eu\" in agent.groups && agent.attributes.region == \"de\" && now.getHours() < 18'",
    ]);
    let mut traits = AgentTraits::default();
    traits.groups = vec![label("eu")];
    traits.attributes = json!({ "region": "de" }).as_object().unwrap().clone();
    let asked = intent("read", &["email:read"]);
    let at = |hour: i64| PolicyRequest {
        traits: &traits,
        now: Timestamp::from_millis(hour * 3_600_000),
        ..request(&asked, Tier::T3, RiskLevel::Low)
    };
    assert_eq!(policies.decide(&at(17)).decision, Decision::Allow);
    assert_eq!(policies.decide(&at(18)).decision, Decision::Deny);
    assert_eq!(decision(&policies, &asked), Decision::Deny);
}

#[test]
fn a_failed_condition_is_an_error_only_where_it_decides() {
    let deny = "id = \"d\"\neffect = \"deny\"\nmatch.capabilities = [\"email:read\"]\nwhen = \"context.amount > 10\"";
    let hangs = toml(&[READS, deny]);
    let asked = intent("read", &["email:read"]);
    let error = hangs.evaluate(&request(&asked, Tier::T3, RiskLevel::Low)).unwrap_err();
    assert_eq!((error.code(), error.http_status()), ("POLICY_ERROR", 422));
    assert!(error.to_string().contains("rule \"d\" at line 6, when: "), "{error}");

    // Without a grant it is denied either way; another deny decides by itself too.
    let alone = decide(&toml(&[deny]), &asked);
    // In one case the rule decides, in the other no rule does: the verdict is the same.
    assert_eq!((alone.decision, alone.failures.len()), (Decision::Deny, 1));
    assert!(alone.reasoning.contains("does not affect this decision"), "{}", alone.reasoning);
    let other = "id = \"other\"\neffect = \"deny\"\nmatch.capabilities = [\"email:read\"]";
    assert_eq!(decision(&toml(&[READS, deny, other]), &asked), Decision::Deny);
}

#[test]
fn failed_conditions_are_tried_in_every_combination() {
    let rule = |id: &str, effect: &str| {
        format!("id = \"{id}\"\neffect = \"{effect}\"\nmatch.capabilities = [\"email:read\"]\nwhen = \"context.x > 1\"")
    };
    let asked = intent("read", &["email:read"]);
    let both = toml(&[&rule("a", "allow"), &rule("d", "deny")]);
    // All match: deny. None match: deny. Only the allow matches: allow. So the verdict depends on them.
    assert!(both.evaluate(&request(&asked, Tier::T3, RiskLevel::Low)).is_err());
    let denies = toml(&[&rule("d1", "deny"), &rule("d2", "deny")]);
    assert_eq!(decision(&denies, &asked), Decision::Deny);
    let many: Vec<String> = (0..9)
        .map(|number| rule(&format!("a{number}"), "allow").replace("context.x", &format!("context.x{number}")))
        .collect();
    let mut many: Vec<&str> = many.iter().map(String::as_str).collect();
    many.push(READS);
    let verdict = decide(&toml(&many), &asked);
    assert_eq!((verdict.decision, verdict.failures.len()), (Decision::Allow, 9), "the verdict hangs on none of them");
}

#[test]
fn a_wrong_condition_is_refused_at_its_place() {
    let text = "name = \"t\"\n[[rule]]\nid = \"r\"\neffect = \"deny\"\nwhen = \"intent.acton == 'x'\"";
    let found = problems(text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("5:16 error ") && found[0].contains("did you mean"), "{found:?}");
    let always = problems("name = \"t\"\n[[rule]]\nid = \"r\"\neffect = \"deny\"\nwhen = \"1 < 2\"");
    assert!(always.iter().any(|problem| problem.contains("always true")), "{always:?}");
}

#[test]
fn the_digest_covers_conditions_and_limits_and_not_examples() {
    let with = |more: &str| toml(&[&format!("{READS}\n{more}")]).digest();
    let plain = with("");
    assert_ne!(plain, with("when = \"trust.score > 1\""));
    assert_ne!(with("when = \"trust.score > 1\""), with("unless = \"trust.score > 1\""));
    assert_ne!(plain, with("limit = { count = 1, per = \"1h\" }"));
    assert_eq!(with("limit = { count = 1, per = \"60m\" }"), with("limit = { count = 1, per = \"1h\" }"));
    assert_eq!(plain, with("examples.match = [{ capabilities = [\"email:read\"] }]"));
}

#[test]
fn examples_are_held_against_their_rule_at_load() {
    let rule = "name = \"t\"\n[[rule]]\nid = \"r\"\neffect = \"allow\"\nmatch = { actions = [\"refund_*\"], risk = { max = \"MEDIUM\" } }\nwhen = \"context.amount < 10\"\n";
    let good = "examples.match = [{ context = { amount = 5 } }, { action = \"refund_order\", risk = \"LOW\", context = { amount = 1 } }]\nexamples.not_match = [{ action = \"pay\", context = { amount = 5 } }, { context = { amount = 50 } }, { risk = \"HIGH\", context = { amount = 5 } }]";
    assert!(problems(&format!("{rule}{good}")).iter().all(|problem| problem.contains(" warning ")));
    let wrong = problems(&format!("{rule}examples.match = [{{ action = \"pay\", context = {{ amount = 5 }} }}]"));
    assert!(wrong[1].contains("does not match this example: the action is pay, not refund_*"), "{wrong:?}");
    let wrong = problems(&format!("{rule}examples.not_match = [{{ context = {{ amount = 5 }} }}]"));
    assert!(wrong[1].contains("matches this example, but must not"), "{wrong:?}");
    let fails = problems(&format!("{rule}examples.match = [{{ action = \"refund_x\" }}]"));
    assert!(fails[1].contains("when: "), "a condition that fails is no match: {fails:?}");
}

#[test]
fn later_sets_narrow_and_grant_only_what_is_left_to_them() {
    let set = |name: &str, more: &str, rules: &str| {
        PolicySet::from_toml(&format!("name = \"{name}\"\n{more}\n{rules}")).unwrap()
    };
    let rule = |id: &str, effect: &str, capability: &str, more: &str| {
        format!("[[rule]]\nid = \"{id}\"\neffect = \"{effect}\"\nmatch.capabilities = [\"{capability}\"]\n{more}\n")
    };
    let base = set(
        "base",
        "delegates = [\"web:*\"]",
        &[rule("mail", "allow", "email:*", "constraints.maxRecords = 100"), rule("no-money", "deny", "payment:*", "")]
            .concat(),
    );
    let team = set(
        "team",
        "",
        &[
            rule("no-sending", "deny", "email:send", ""),
            rule("fewer", "allow", "email:read", "constraints.maxRecords = 5"),
            rule("web", "allow", "web:read", ""),
            rule("files", "allow", "file:read", ""),
            rule("money", "allow", "payment:read", ""),
        ]
        .concat(),
    );
    let both = PolicySet::layered(&[base.clone(), team.clone()]).unwrap();
    for (capability, wanted) in [
        ("email:read", Decision::Allow),
        ("email:send", Decision::Deny),
        ("web:read", Decision::Allow),
        ("file:read", Decision::Deny),
        ("payment:read", Decision::Deny),
    ] {
        assert_eq!(decision(&both, &intent("do_it", &[capability])), wanted, "{capability}");
    }
    let narrowed = decide(&both, &intent("do_it", &["email:read"]));
    assert_eq!(narrowed.constraints.get("maxRecords"), Some(&json!(5)));
    assert!(both.warnings().iter().any(|warning| warning.message.contains("\"files\"")), "{:?}", both.warnings());
    let denies = set("team", "", &rule("d", "deny", "web:read", ""));
    let narrowed = PolicySet::layered(&[base.clone(), denies]).unwrap();
    assert!(narrowed.warnings().is_empty(), "a set that only narrows need not grant: {:?}", narrowed.warnings());
    assert!(PolicySet::layered(&[base.clone(), base.clone()]).is_err(), "two rules have one id");
    assert!(PolicySet::layered(&[]).is_err());
    assert_ne!(both.digest(), PolicySet::layered(&[team, base]).unwrap().digest());
}

#[test]
fn two_degrading_rules_that_failed_are_never_taken_for_decided() {
    let leaves = |id: &str, left: &str| {
        format!(
            "id = \"{id}\"\neffect = \"degrade\"\nto = [\"{left}\"]\nmatch.capabilities = [\"file:*\"]\nwhen = \"context.{id} > 1\""
        )
    };
    let (one, other) = (leaves("a", "file:read"), leaves("b", "file:write"));
    let asked = intent("do_it", &["file:read", "file:write"]);
    let request = request(&asked, Tier::T3, RiskLevel::Low);
    // Neither or both: DENY. One of them alone: DEGRADE.
    assert!(toml(&[&one, &other]).evaluate(&request).is_err());
    assert!(toml(&[&one]).evaluate(&request).is_err());
}

#[test]
fn the_verdicts_words_leave_out_the_rules_that_failed() {
    let listed = "id = \"maybe\"\neffect = \"deny\"\nreason = \"You are on a list.\"\nwhen = \"context.listed\"";
    let verdict = decide(&toml(&[listed, "id = \"d\"\neffect = \"deny\""]), &intent("read", &["email:read"]));
    assert_eq!(words(&verdict.rules), ["d"]);
    assert!(!verdict.reasoning.contains("on a list"), "{}", verdict.reasoning);
}

#[test]
fn a_condition_is_run_once_however_much_is_asked_for() {
    // 64 capabilities and a condition near its bound: running it for each capability would take minutes in a debug
    // build.
    let chain = vec!["context.l.all(x, x > -1)"; 60].join(" && ");
    let rules: Vec<String> = (0..8)
        .map(|number| format!("id = \"r{number}\"\neffect = \"deny\"\nwhen = \"{chain} && context.n == {number}\""))
        .collect();
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let capabilities: Vec<String> = Resource::ALL
        .iter()
        .flat_map(|resource| Operation::ALL.iter().map(move |operation| format!("{resource}:{operation}")))
        .take(64)
        .collect();
    let capabilities: Vec<&str> = capabilities.iter().map(String::as_str).collect();
    let asked = intent("do_it", &capabilities).with_context("l", vec![1; 256]);
    let request = request(&asked, Tier::T3, RiskLevel::Low);
    let evaluations = std::cell::Cell::new(0);
    let cache = crate::assumptions::ConditionCache::default();
    for _ in 0..64 {
        cache.ask(1, || {
            evaluations.set(evaluations.get() + 1);
            Ok(true)
        });
    }
    assert_eq!(evaluations.get(), 1);
    // Every condition fails at the missing key; without a grant the verdict is the same.
    assert_eq!(toml(&rules).evaluate(&request).unwrap().decision, Decision::Deny);
}

#[test]
fn a_degrade_is_not_loosened_by_what_cannot_be_compared() {
    let rule = "id = \"safe\"\neffect = \"degrade\"\nto = [\"file:read\"]\nmatch = { capabilities = [\"file:*\"], context = [{ key = \"kind\", matches = '^safe$' }] }";
    let policies = toml(&[rule]);
    let asked =
        |kind: serde_json::Value| decision(&policies, &intent("do_it", &["file:read"]).with_context("kind", kind));
    assert_eq!(asked(json!("safe")), Decision::Allow);
    for wrong in [json!("evil"), json!(null), json!({}), json!([]), json!(["safe", "evil"])] {
        assert_eq!(asked(wrong.clone()), Decision::Deny, "{wrong}");
    }
    let withholds = toml(&["id = \"all\"\neffect = \"allow\"", rule]);
    let write = intent("do_it", &["file:write"]).with_context("kind", json!(["safe", "evil"]));
    assert_eq!(decision(&withholds, &write), Decision::Deny, "what withholds is matched by one item");
}

#[test]
fn a_later_set_opens_nothing_by_asking_a_person() {
    let set = |text: &str| PolicySet::from_toml(text).unwrap();
    let base = set(
        "name = \"b\"\n[[rule]]\nid = \"reads\"\neffect = \"allow\"\nmatch.capabilities = [\"*:read\"]\nconstraints.maxRecords = 10\n[[rule]]\nid = \"only-reads\"\neffect = \"degrade\"\nto = [\"file:read\"]\nmatch.capabilities = [\"file:*\"]",
    );
    let buddy = "effect = \"escalate\"\nreviewer = \"buddy\"";
    let asks = |capability: &str| {
        format!("name = \"t\"\n[[rule]]\nid = \"asks\"\n{buddy}\nmatch.capabilities = [\"{capability}\"]")
    };
    let both = |capability: &str| {
        let both = PolicySet::layered(&[base.clone(), set(&asks(capability))]).unwrap();
        decide(&both, &intent("do_it", &[capability]))
    };
    assert_eq!(both("payment:transfer").decision, Decision::Deny);
    assert_eq!(both("file:write").decision, Decision::Deny, "withheld stays withheld");
    let narrowed = both("web:read");
    assert_eq!((narrowed.decision, narrowed.reviewer.as_deref()), (Decision::Escalate, Some("buddy")));
    let approval = narrowed.on_approval.unwrap();
    assert_eq!(words(&approval.granted), ["web:read"]);
    assert_eq!(approval.constraints.get("maxRecords"), Some(&json!(10)), "the base's constraints hold after it");

    let limited = "name = \"t\"\n[[rule]]\nid = \"some\"\neffect = \"allow\"\nmatch.capabilities = [\"web:read\", \"payment:transfer\"]\nlimit = { sum = \"amount\", max = 1, per = \"1h\", over = \"escalate\", reviewer = \"buddy\" }";
    let both = PolicySet::layered(&[base.clone(), set(limited)]).unwrap();
    let spent = decide(&both, &intent("do_it", &["web:read", "payment:transfer"]));
    assert_ne!(spent.decision, Decision::Escalate);
    assert!(!words(&spent.granted).contains(&"payment:transfer".to_owned()));

    // In a single set, a reviewer decides on withheld capabilities too, and cannot grant them.
    let alone = toml(&[
        "id = \"r\"\neffect = \"degrade\"\nto = [\"file:read\"]\nmatch.capabilities = [\"file:*\"]",
        "id = \"e\"\neffect = \"escalate\"\nreviewer = \"x\"\nmatch.capabilities = [\"file:*\"]",
    ]);
    let approval = decide(&alone, &intent("do_it", &["file:write", "file:read"])).on_approval.unwrap();
    assert_eq!(
        (words(&approval.granted), words(&approval.denied)),
        (vec!["file:read".to_owned()], vec!["file:write".to_owned()])
    );
}

#[test]
fn a_later_sets_words_are_none_of_an_earlier_ones() {
    let base = PolicySet::from_toml("name = \"b\"\ndelegates = [\"*:read\"]\n[[rule]]\nid = \"r\"\neffect = \"allow\"\nmatch.capabilities = [\"*:read\"]").unwrap();
    let team = PolicySet::from_toml("name = \"t\"\nvocabulary = [\"crm:read\"]\n[[rule]]\nid = \"d\"\neffect = \"deny\"\nmatch.capabilities = [\"file:read\"]").unwrap();
    let both = PolicySet::layered(&[base.clone(), team]).unwrap();
    assert_eq!(decision(&both, &intent("do_it", &["crm:read"])), Decision::Deny);
    let own = PolicySet::from_toml("name = \"o\"\nvocabulary = [\"crm:read\"]\n[[rule]]\nid = \"a\"\neffect = \"allow\"\nmatch.capabilities = [\"crm:read\"]").unwrap();
    let granted = PolicySet::layered(&[base, own]).unwrap();
    assert_eq!(decision(&granted, &intent("do_it", &["crm:read"])), Decision::Allow, "it was left to them");
}
