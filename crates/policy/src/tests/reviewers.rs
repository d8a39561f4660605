//! Reviewers of escalations: lists of people, approvals, expiries, and how layers may change them.

use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::subsequence;
use serde_json::{Value, json};

use super::*;
use crate::Need;
use rulekeep_types::{Decision, Error};

const HOUR: Duration = Duration::from_secs(3600);

/// An escalating rule on mail.
fn asks(id: &str, reviewer: &str, more: &str) -> String {
    format!(
        "[[rule]]\nid = \"{id}\"\neffect = \"escalate\"\nreviewer = \"{reviewer}\"\nmatch.capabilities = [\"email:send\"]\n{more}\n"
    )
}

fn set(name: &str, rest: &str) -> PolicySet {
    PolicySet::from_toml(&format!("name = \"{name}\"\n{rest}")).unwrap()
}

fn mail(policies: &PolicySet) -> PolicyVerdict {
    decide(policies, &intent("send_mail", &["email:send"]))
}

fn told(needs: &[Need]) -> Vec<(String, u8, Vec<String>, String)> {
    needs
        .iter()
        .map(|need| (need.reviewer.to_string(), need.approvals, words(&need.people), need.rule.to_string()))
        .collect()
}

fn need(reviewer: &str, approvals: u8, people: &[&str], rule: &str) -> (String, u8, Vec<String>, String) {
    (reviewer.to_owned(), approvals, words(people), rule.to_owned())
}

#[test]
fn of_thousands_of_rules_each_reviewer_is_asked_once_for_most() {
    // Three rules for each reviewer, asking for 1, 2 and 1 approvals.
    let rule = |number: usize| {
        let (reviewer, approvals) = (number % 1000, if number / 1000 == 1 { 2 } else { 1 });
        json!({
            "id": format!("r{number}"), "effect": "escalate", "reviewer": format!("p{reviewer}"), "approvals": approvals,
            "match": { "capabilities": ["email:send"] },
        })
    };
    let rules: Vec<Value> = (0..3000).map(rule).collect();
    let policies = PolicySet::from_json(&json!({ "name": "t", "rule": rules }).to_string()).unwrap();
    let verdict = mail(&policies);
    let expected: Vec<_> =
        (0..1000).map(|reviewer| need(&format!("p{reviewer}"), 2, &[], &format!("r{}", 1000 + reviewer))).collect();
    assert_eq!(told(&verdict.needs), expected);
    assert!(verdict.reasoning.contains("p0 (2 people), p1 (2 people), p2 (2 people) and 997 more"));
}

#[test]
fn all_who_are_asked_have_to_agree_within_the_least_time() {
    let policies = set(
        "t",
        &[
            "[reviewers]\nfinance = [\"Ann\", \"bob\"]\n",
            &asks("a", "finance", "expires = \"2h\""),
            &asks("b", "owner", "expires = \"1h\""),
            &asks("c", "finance", "approvals = 2\nreason = \"Twice.\""),
        ]
        .concat(),
    );
    let verdict = mail(&policies);
    assert_eq!(verdict.decision, Decision::Escalate);
    assert_eq!(verdict.reviewer.as_deref(), Some("finance"));
    assert_eq!(told(&verdict.needs), [need("finance", 2, &["Ann", "bob"], "c"), need("owner", 1, &[], "b")]);
    assert_eq!(verdict.expires, HOUR);
    assert!(
        verdict.reasoning.ends_with("Nothing is granted until finance (2 people) and owner approve."),
        "{}",
        verdict.reasoning
    );
    let told = serde_json::to_value(&verdict).unwrap();
    assert_eq!(told["needs"][1], json!({ "reviewer": "owner", "approvals": 1, "rule": "b" }));
    assert_eq!(told["expiresMs"], 3_600_000);
}

#[test]
fn a_verdict_that_asks_nobody_names_nobody() {
    let policies = set("t", "[[rule]]\nid = \"r\"\neffect = \"allow\"\n");
    let verdict = mail(&policies);
    assert_eq!((verdict.needs.len(), verdict.needs.capacity(), verdict.expires), (0, 0, Duration::ZERO));
    assert_eq!(serde_json::to_value(&verdict).unwrap().get("expiresMs"), None);
}

#[test]
fn what_a_rule_leaves_out_is_one_person_within_a_day() {
    let verdict = mail(&set("t", &asks("a", "boss", "")));
    assert_eq!(told(&verdict.needs), [need("boss", 1, &[], "a")]);
    assert_eq!(verdict.expires, 24 * HOUR);
    let explicit = set("t", &asks("a", "boss", "approvals = 1\nexpires = \"1440m\""));
    assert_eq!(explicit.digest(), set("t", &asks("a", "boss", "")).digest(), "the same is meant");
}

#[test]
fn many_more_rules_than_are_named_all_ask() {
    let rules: String = (0..20).map(|n| asks(&format!("r{n}"), &format!("p{n}"), "")).collect();
    let verdict = mail(&set("t", &rules));
    assert_eq!(verdict.needs.len(), 20);
    assert!(verdict.reasoning.ends_with("until p0, p1, p2 and 17 more approve."), "{}", verdict.reasoning);
}

#[test]
fn an_approved_use_charges_the_limits_that_it_passes() {
    struct Full;
    impl crate::Meter for Full {
        fn used(&mut self, charge: &crate::Charge) -> crate::Used {
            crate::Used { amount: charge.most, frees_at: None, is_full: false }
        }
    }
    let sum = "limit = { sum = \"amount\", max = 100, per = \"1d\", over = \"escalate\", reviewer = \"finance\" }";
    let counted = format!(
        "[[rule]]\nid = \"pay\"\neffect = \"allow\"\nmatch.capabilities = [\"email:send\"]\n{sum}\n[[rule]]\nid = \"other\"\neffect = \"allow\"\nmatch.capabilities = [\"email:read\"]\nlimit = {{ count = 1, per = \"1h\" }}\n"
    );
    let asked = intent("send_mail", &["email:send"]).with_context("amount", 30);
    let charged = |policies: &PolicySet, asked: &Intent| {
        let verdict = policies.evaluate_with(&request(asked, Tier::T3, RiskLevel::Medium), &mut Full).unwrap();
        assert_eq!((verdict.decision, verdict.charges.len()), (Decision::Escalate, 0));
        assert_eq!((verdict.needs.len(), verdict.needs[0].approvals, verdict.expires), (1, 1, 24 * HOUR));
        let charges = verdict.on_approval.unwrap().charges;
        charges.into_iter().map(|charge| (charge.counter.to_string(), charge.amount)).collect::<Vec<_>>()
    };
    let expected = [("pay/sum of amount/agent/bot-1".to_owned(), 30_000_000)];
    assert_eq!(charged(&set("t", &counted), &asked), expected, "a limit that is used up");
    let escalated = format!("{counted}{}", asks("e", "boss", ""));
    assert_eq!(charged(&set("t", &escalated), &asked), expected, "a limit of what a person is asked for anyway");
    let silent = intent("send_mail", &["email:send"]);
    assert_eq!(charged(&set("t", &counted), &silent), [], "no amount is named");
}

#[test]
fn each_problem_of_reviewers_has_its_place() {
    let rule = asks("a", "x", "");
    let long = "x".repeat(257);
    for (document, expected) in [
        ("reviewers = []".to_owned(), "2:13 error expected a table of lists of people, found a list"),
        ("reviewers = { x = [] }".to_owned(), "2:19 error expected from 1 to 100 people, found 0"),
        ("reviewers = { x = \"ann\" }".to_owned(), "2:19 error expected a list, found a string"),
        ("reviewers = { x = [7] }".to_owned(), "2:20 error expected a string, found a number"),
        (
            "reviewers = { x = [\"ann\", \"ＡＮＮ\"] }".to_owned(),
            "2:27 error \"ＡＮＮ\" is the same person as \"ann\", which is listed already",
        ),
        ("reviewers = { x = [\" ann\"] }".to_owned(), "2:20 error \" ann\" has spaces around it"),
        ("reviewers = { x = [\"a\\u0007\"] }".to_owned(), "2:20 error expected a text without control characters"),
        (format!("reviewers = {{ x = [\"{long}\"] }}"), "2:20 error expected at most 256 characters"),
        ("reviwers = {}".to_owned(), "2:1 error unknown field \"reviwers\"; did you mean \"reviewers\"?"),
    ] {
        assert_eq!(problems(&format!("name = \"t\"\n{document}\n{rule}")), [expected], "{document}");
    }
    let many: Vec<String> = (0..101).map(|n| format!("p{n}")).collect();
    let text = json!({ "name": "t", "reviewers": { "x": many } }).to_string();
    let Err(Error::InvalidPolicy { message, .. }) = PolicySet::from_json(&text) else { panic!("it loads") };
    assert!(message.contains("expected from 1 to 100 people, found 101"), "{message}");
    let text = "{\"name\": \"t\", \"reviewers\": {\"x\": [\"a\"], \"x\": [\"b\"]}}";
    let Err(Error::InvalidPolicy { message, .. }) = PolicySet::from_json(text) else { panic!("it loads") };
    assert!(message.contains("occurs twice"), "{message}");
}

#[test]
fn each_problem_of_approvals_and_expiries_has_its_place() {
    let document =
        |lines: &str| format!("name = \"t\"\nreviewers = {{ x = [\"a\", \"b\"] }}\n[[rule]]\nid = \"a\"\n{lines}");
    let escalate = |lines: &str| document(&format!("effect = \"escalate\"\nreviewer = \"x\"\n{lines}"));
    let no_duration = |text: &str| {
        format!(
            "7:11 error {text:?} is not a valid duration: expected one whole number from 1 and s, m, h or d, such as \"90m\", at most 31d (rule \"a\", expires)"
        )
    };
    for (document, expected) in [
        (
            escalate("approvals = 0"),
            "7:13 error expected a whole number from 1 to 5, found 0 (rule \"a\", approvals)".to_owned(),
        ),
        (
            escalate("approvals = 6"),
            "7:13 error expected a whole number from 1 to 5, found 6 (rule \"a\", approvals)".to_owned(),
        ),
        (
            escalate("approvals = \"two\""),
            "7:13 error expected a whole number from 1 to 5, found a string (rule \"a\", approvals)".to_owned(),
        ),
        (
            escalate("approvals = 3"),
            "7:13 error 3 approvals are required of \"x\", but its list under reviewers has only 2 (rule \"a\", approvals)"
                .to_owned(),
        ),
        (escalate("expires = \"32d\""), no_duration("32d")),
        (escalate("expires = \"0s\""), no_duration("0s")),
        (escalate("expires = 60"), "7:11 error expected a string, found a number (rule \"a\", expires)".to_owned()),
        (
            escalate("expire = \"1h\""),
            "7:1 error unknown field \"expire\"; did you mean \"expires\"? (rule \"a\", expire)".to_owned(),
        ),
        (
            document("effect = \"deny\"\napprovals = 2"),
            "6:13 error a rule with effect deny cannot have approvals; it belongs to escalate (rule \"a\", approvals)"
                .to_owned(),
        ),
        (
            document("effect = \"allow\"\nexpires = \"1h\""),
            "6:11 error a rule with effect allow cannot have expires; it belongs to escalate (rule \"a\", expires)".to_owned(),
        ),
    ] {
        assert_eq!(problems(&document), [expected], "{document}");
    }
}

#[test]
fn an_unused_list_and_a_pair_of_one_person_are_warned_of() {
    let warnings = |text: &str| set("t", text).warnings().iter().map(|one| one.message.clone()).collect::<Vec<_>>();
    let list = "[reviewers]\nfinance-lead = [\"ann\"]\n";
    let mistyped = warnings(&format!("{list}{}", asks("a", "finance-laed", "")));
    let expected = "no rule asks \"finance-lead\", which has a list under reviewers; did you mean \"finance-laed\"?";
    assert!(mistyped.iter().any(|one| one == expected), "{mistyped:?}");
    let alone = warnings(&asks("a", "boss", "approvals = 2"));
    let expected = "rule \"a\" asks for 2 approvals, and without a list under reviewers \"boss\" is one person";
    assert!(alone.iter().any(|one| one == expected), "{alone:?}");
    let said = problems(&format!("name = \"t\"\n{}", asks("a", "boss", "approvals = 2")));
    assert!(said.iter().any(|one| one == &format!("2:1 warning {expected}")), "{said:?}");
}

#[test]
fn an_escalation_that_asks_for_more_than_another_is_not_idle() {
    let idle = |first: &str, second: &str| {
        let text = format!("name = \"t\"\n{}{}", asks("a", "x", first), asks("b", "x", second));
        problems(&text).iter().any(|problem| problem.contains("is redundant"))
    };
    assert!(idle("", ""));
    assert!(idle("expires = \"1h\"", ""));
    assert!(!idle("", "expires = \"1h\""), "it shortens");
    assert!(!idle("", "approvals = 2"), "it asks for more");
}

#[test]
fn the_digest_depends_on_reviewers_and_expiries_not_their_order() {
    let digest = |text: &str| set("t", text).digest();
    let base = format!("[reviewers]\nx = [\"a\", \"b\"]\ny = [\"c\"]\n{}", asks("r", "x", ""));
    let same = format!("[reviewers]\ny = [\"c\"]\nx = [\"b\", \"a\"]\n{}", asks("r", "x", ""));
    assert_eq!(digest(&base), digest(&same));
    for other in [
        base.replace("\"b\"", "\"d\""),
        base.replace("y = [\"c\"]\n", ""),
        format!("{base}approvals = 2"),
        format!("{base}expires = \"1h\""),
    ] {
        assert_ne!(digest(&base), digest(&other), "{other}");
    }
}

#[test]
fn the_digest_of_a_rule_is_of_the_rule_and_its_people_alone() {
    let base = format!("[reviewers]\nx = [\"a\", \"b\"]\ny = [\"c\"]\n{}{}", asks("r", "x", ""), asks("s", "y", ""));
    let digest = |text: &str| set("t", text).rule_digest("r").unwrap();
    assert_eq!(set("t", &base).rule_digest("q"), None);
    for same in [
        base.replace("[\"a\", \"b\"]", "[\"b\", \"a\"]"),
        base.replace("[\"c\"]", "[\"d\"]"),
        format!("{base}approvals = 1\nexpires = \"1h\"\n"),
    ] {
        assert_eq!(digest(&same), digest(&base), "{same}");
    }
    for other in [base.replace("\"b\"", "\"d\""), base.replacen("email:send", "email:read", 1)] {
        assert_ne!(digest(&other), digest(&base), "{other}");
    }
}

#[test]
fn an_explanation_says_how_many_have_to_agree() {
    let traces = set("t", &asks("a", "boss", "approvals = 2")).traces(&request(
        &intent("send_mail", &["email:send"]),
        Tier::T3,
        RiskLevel::Low,
    ));
    assert_eq!(traces[0].why, "every clause holds: has boss (2 people) decide on email:send");
}

#[test]
fn a_later_layer_leaves_people_out_and_adds_none() {
    let base = set("base", &format!("[reviewers]\nx = [\"Ann\", \"bob\"]\n{}", asks("a", "x", "")));
    let team = |rest: &str| set("team", rest);
    let both = PolicySet::layered(&[base.clone(), team("[reviewers]\nx = [\"ann\", \"eve\"]\n")]).unwrap();
    assert_eq!(told(&mail(&both).needs), [need("x", 1, &["Ann"], "a")]);
    assert_ne!(both.digest(), base.digest());

    let refused = |sets: &[PolicySet]| PolicySet::layered(sets).unwrap_err().to_string();
    let nobody = refused(&[base.clone(), team("[reviewers]\nx = [\"eve\"]\n")]);
    assert_eq!(
        nobody,
        "policy \"toml\" line 3 column 1: no reviewer is left for \"x\": a later document can only remove some of Ann, bob, not all"
    );
    let too_few = refused(&[
        base,
        team(&format!("[reviewers]\nx = [\"bob\"]\n{}", asks("b", "x", ""))),
        team(
            "[[rule]]\nid = \"c\"\neffect = \"escalate\"\nreviewer = \"x\"\napprovals = 2\nmatch.capabilities = [\"email:send\"]\n",
        ),
    ]);
    assert!(
        too_few.contains("2 approvals are required of \"x\", but its list under reviewers has only 1"),
        "{too_few}"
    );
}

#[test]
fn a_name_asked_in_an_earlier_layer_stays_one_person() {
    let base = set("base", &asks("a", "boss", ""));
    let named = set("team", "[reviewers]\nboss = [\"boss\", \"eve\"]\n");
    let both = PolicySet::layered(&[base.clone(), named]).unwrap();
    assert_eq!(told(&mail(&both).needs), [need("boss", 1, &["boss"], "a")]);
    let other = set("team", "[reviewers]\nboss = [\"eve\"]\n");
    assert!(PolicySet::layered(&[base, other]).unwrap_err().to_string().contains("no reviewer is left"));
}

const PEOPLE: &[&str] = &["ann", "bob", "cid", "dan"];

/// A document that asks some of three names on mail, and lists people for some of them.
fn document(layer: usize) -> impl Strategy<Value = Value> {
    let list = || prop::option::of(subsequence(PEOPLE, 1..=4));
    let asked = prop::option::of((1..=3_u8, 1..48_u8));
    let rules = prop::collection::vec(asked, 3);
    (list(), list(), list(), rules).prop_map(move |(x, y, z, rules)| {
        let lists = [("x", x), ("y", y), ("z", z)];
        let size = |name: &str| {
            let (_, list) = lists.iter().find(|(known, _)| *known == name).unwrap();
            list.as_ref().map_or(5, Vec::len)
        };
        let rules = rules.into_iter().zip(["x", "y", "z"]).filter_map(|(asked, name)| {
            let (approvals, hours) = asked?;
            let approvals = usize::from(approvals).min(size(name));
            Some(json!({ "id": format!("{name}{layer}"), "effect": "escalate", "reviewer": name, "approvals": approvals, "expires": format!("{hours}h") }))
        });
        let rules: Vec<Value> = rules.collect();
        let reviewers: serde_json::Map<String, Value> =
            lists.iter().filter_map(|(name, list)| Some(((*name).to_owned(), json!(list.as_ref()?)))).collect();
        json!({ "name": format!("l{layer}"), "reviewers": reviewers, "rule": rules })
    })
}

/// The people who may answer for a need.
fn people(need: &Need) -> Vec<String> {
    if need.people.is_empty() { vec![need.reviewer.to_string()] } else { words(&need.people) }
}

proptest! {
    #[test]
    fn a_later_layer_never_widens_reviewers_nor_lowers_approvals(first in document(0), second in document(1), third in document(2)) {
        let sets = [first, second, third].map(|document| PolicySet::from_json(&document.to_string()).unwrap());
        for layers in 1..3 {
            let Ok(before) = PolicySet::layered(&sets[..layers]) else { break };
            // A set that leaves nobody, or too few people, does not load.
            let Ok(after) = PolicySet::layered(&sets[..=layers]) else { break };
            let (before, after) = (mail(&before), mail(&after));
            if before.decision == Decision::Escalate {
                prop_assert_eq!(after.decision, Decision::Escalate);
                prop_assert!(after.expires <= before.expires);
            }
            for need in &before.needs {
                let now = after.needs.iter().find(|now| now.reviewer == need.reviewer);
                let Some(now) = now else { return Err(TestCaseError::fail(format!("{need:?} is gone"))) };
                prop_assert!(now.approvals >= need.approvals);
                let before = people(need);
                prop_assert!(people(now).iter().all(|person| before.contains(person)), "{need:?} {now:?}");
                prop_assert!(people(now).len() >= usize::from(now.approvals) || now.people.is_empty());
            }
        }
    }

    #[test]
    fn reviewers_mean_the_same_in_both_formats(document in document(0)) {
        let json = PolicySet::from_json(&document.to_string()).unwrap();
        let toml = PolicySet::from_toml(&toml::to_string(&document).unwrap()).unwrap();
        prop_assert_eq!(json.digest(), toml.digest());
        prop_assert_eq!(mail(&json).needs, mail(&toml).needs);
    }
}
