//! Alert rules: which load, which are refused, and what they say.

use std::time::Duration;

use serde_json::json;

use super::*;
use crate::{AlertOn, AlertRule};
use rulekeep_types::AgentId;

fn set(rest: &str) -> PolicySet {
    PolicySet::from_toml(&format!("name = \"t\"\n{rest}")).unwrap()
}

fn alert(lines: &str) -> AlertRule {
    set(&format!("[[alert]]\nid = \"a\"\n{lines}")).alerts()[0].clone()
}

#[test]
fn what_an_alert_leaves_out_is_the_usual() {
    let denials = alert("on = \"denials\"\nper = \"10m\"");
    assert_eq!((denials.on, denials.count, denials.per), (AlertOn::Denials, 5, Some(Duration::from_secs(600))));
    assert_eq!((denials.severity, denials.cooldown), (RiskLevel::Medium, Duration::from_secs(60)));
    let critical = alert("on = \"critical\"");
    assert_eq!((critical.count, critical.per, critical.below), (1, None, None));
    let tier = alert("on = \"tier\"\nbelow = \"T3\"\nseverity = \"CRITICAL\"\ncooldown = \"1h\"");
    assert_eq!((tier.below, tier.severity), (Some(Tier::T3), RiskLevel::Critical));
    assert_eq!(tier.cooldown, Duration::from_secs(3600));
}

#[test]
fn an_alert_is_about_whom_its_match_names() {
    let rule = alert(
        "on = \"critical\"\nmatch = { agents = [\"bot-*\"], labels = [\"beta\"], groups = [\"desk\", \"till\"] }",
    );
    let traits = |labels: &[&str], groups: &[&str]| {
        let all = |words: &[&str]| words.iter().map(|word| label(word)).collect();
        let mut traits = AgentTraits::default();
        (traits.labels, traits.groups) = (all(labels), all(groups));
        traits
    };
    let bot: AgentId = "bot-1".parse().unwrap();
    assert!(rule.is_about(&bot, &traits(&["x", "beta"], &["till"])));
    for (agent, traits) in [
        ("other", traits(&["beta"], &["till"])),
        ("bot-1", traits(&["x"], &["till"])),
        ("bot-1", traits(&["beta"], &["x"])),
        ("bot-1", traits(&[], &[])),
    ] {
        assert!(!rule.is_about(&agent.parse().unwrap(), &traits), "{agent} {traits:?}");
    }
    assert!(alert("on = \"critical\"").is_about(&bot, &traits(&[], &[])));
}

#[test]
fn each_problem_of_an_alert_has_its_place() {
    let document =
        |lines: &str| format!("name = \"t\"\n[[rule]]\nid = \"r\"\neffect = \"allow\"\n[[alert]]\nid = \"a\"\n{lines}");
    for (lines, expected) in [
        ("", "5:1 error the field \"on\" is missing (alert \"a\", on)"),
        ("on = \"denial\"", "7:6 error unknown on \"denial\"; did you mean \"denials\"? (alert \"a\", on)"),
        (
            "on = \"critical\"\ncounts = 2",
            "8:1 error unknown field \"counts\"; did you mean \"count\"? (alert \"a\", counts)",
        ),
        (
            "on = \"critical\"\ncount = 0",
            "8:9 error expected a whole number from 1 to 10000, found 0 (alert \"a\", count)",
        ),
        (
            "on = \"critical\"\ncount = 3",
            "8:9 error an alert on 3 occurrences needs a field \"per\", such as \"10m\" (alert \"a\", per)",
        ),
        (
            "on = \"denials\"",
            "5:1 error an alert on 5 occurrences needs a field \"per\", such as \"10m\" (alert \"a\", per)",
        ),
        ("on = \"critical\"\nper = \"1h\"", "8:7 error an alert with a count of 1 cannot have per (alert \"a\", per)"),
        ("on = \"tier\"", "5:1 error an alert on tier needs a field \"below\" (alert \"a\", below)"),
        (
            "on = \"tier\"\nbelow = \"T0\"",
            "8:9 error no tier is below T0; expected one of T1, T2, T3, T4, T5 (alert \"a\", below)",
        ),
        (
            "on = \"key\"\nbelow = \"T3\"",
            "8:9 error an alert on key cannot have below; it belongs to an alert on tier (alert \"a\", below)",
        ),
        (
            "on = \"chain\"\nmatch.agents = [\"b\"]",
            "8:1 error an alert on chain cannot have match: it is not about an agent (alert \"a\", match)",
        ),
        (
            "on = \"chain\"\ncount = 2\nper = \"1h\"",
            "8:9 error an alert on chain cannot have a count above 1: a chain breaks once (alert \"a\", count)",
        ),
        (
            "on = \"critical\"\nmatch = {}",
            "8:9 error an empty match limits nothing; omit the field to match any agent (alert \"a\", match)",
        ),
        (
            "on = \"critical\"\nmatch = { agent = [\"b\"] }",
            "8:11 error unknown field \"agent\"; did you mean \"agents\"? (alert \"a\", match.agent)",
        ),
        (
            "on = \"critical\"\ncooldown = \"0s\"",
            "8:12 error \"0s\" is not a valid duration: expected one whole number from 1 and s, m, h or d, such as \"90m\", at most 31d (alert \"a\", cooldown)",
        ),
        (
            "on = \"critical\"\nseverity = \"high\"",
            "8:12 error unknown severity \"high\"; did you mean \"HIGH\"? (alert \"a\", severity)",
        ),
        (
            "on = \"critical\"\n[[alert]]\nid = \"a\"\non = \"shadow\"",
            "8:1 error another alert has the id \"a\", on line 5 (alert \"a\", id)",
        ),
    ] {
        assert_eq!(problems(&document(lines)), [expected], "{lines}");
    }
    let bad = "name = \"t\"\n[[rule]]\nid = \"r\"\neffect = \"allow\"\n[[alert]]\nid = \"A\"\non = \"key\"";
    assert_eq!(
        problems(bad),
        [
            "6:6 error \"A\" is not a valid alert id: expected lower-case letters, digits and . _ - that start with a letter or digit (alert number 1, id)"
        ]
    );
    let many: Vec<_> = (0..101).map(|n| json!({ "id": format!("a{n}"), "on": "key" })).collect();
    let error = PolicySet::from_json(&json!({ "name": "t", "alert": many }).to_string()).unwrap_err();
    assert!(error.to_string().contains("expected at most 100 alerts, found 101"), "{error}");
}

#[test]
fn layers_lay_alerts_side_by_side_and_ids_are_unique() {
    let base = set("[[alert]]\nid = \"a\"\non = \"key\"");
    let both = PolicySet::layered(&[base.clone(), set("[[alert]]\nid = \"b\"\non = \"chain\"")]).unwrap();
    assert_eq!(both.alerts().iter().map(|alert| &*alert.id).collect::<Vec<_>>(), ["a", "b"]);
    let error = PolicySet::layered(&[base.clone(), base]).unwrap_err();
    assert!(
        error.to_string().contains("line 2 column 1: an alert of an earlier document has the id \"a\" too"),
        "{error}"
    );
}

#[test]
fn alerts_change_what_a_document_says_and_not_its_digest() {
    let base = "name = \"t\"\n[[rule]]\nid = \"r\"\neffect = \"allow\"\n[[alert]]\nid = \"a\"\non = \"key\"\nseverity = \"HIGH\"\n";
    let load = |text: &str| PolicySet::from_toml(text).unwrap();
    let (first, changed) = (load(base), load(&base.replace("HIGH", "LOW")));
    assert_eq!(first.digest(), changed.digest());
    assert_ne!(first.content(), changed.content());
    // Comments, format and the order of fields do not count.
    let json = json!({
        "rule": [{ "effect": "allow", "id": "r" }],
        "alert": [{ "severity": "HIGH", "on": "key", "id": "a" }],
        "name": "t",
    });
    assert_eq!(PolicySet::from_json(&json.to_string()).unwrap().content(), first.content());
    assert_eq!(load(&format!("# a comment\n{base}")).content(), first.content());
    assert_ne!(load(&format!("{base}[[rule]]\nid = \"s\"\neffect = \"deny\"")).content(), first.content());
}
