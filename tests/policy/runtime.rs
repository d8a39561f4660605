//! Policy sets while decisions run: swapped, held in the shadow, replayed, and laid over each other.

use crate::common;

use std::sync::atomic::{AtomicBool, Ordering};

use common::{in_memory, intent, reading};
use rulekeep::kill_switch::KillSwitchScope;
use rulekeep::preview::ReplayRange;
use rulekeep::{Agent, Decision, Governor, PolicySet, Tier};
use serde_json::json;

fn allow(capability: &str, name: &str) -> PolicySet {
    PolicySet::from_toml(&format!(
        "name = \"{name}\"\n[[rule]]\nid = \"{name}\"\neffect = \"allow\"\nmatch.capabilities = [\"{capability}\"]"
    ))
    .unwrap()
}

#[test]
fn each_decision_is_made_by_the_set_that_it_records() {
    let governor = in_memory();
    let sets = [allow("document:read", "one"), allow("document:read", "two")];
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut turn = 0;
            while !stop.load(Ordering::Relaxed) {
                governor.policies().load(sets[turn % 2].clone()).unwrap();
                turn += 1;
            }
        });
        for _ in 0..200 {
            let verdict = governor.enforce(&reading("a")).unwrap();
            let detail = governor.log().evidence(&verdict.proof_id).unwrap().detail;
            let set = sets.iter().find(|set| detail["policyDigest"] == json!(set.digest()));
            // The very first may have been made by the set that the governor began with.
            if let Some(set) = set {
                assert!(verdict.reasoning.contains(&format!("rule {:?}", set.name())), "{}", verdict.reasoning);
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_set_in_the_shadow_enforces_nothing_and_tells_what_it_would() {
    let governor = in_memory();
    assert!(governor.policies().shadow_report().is_none());
    governor.policies().shadow(Some(PolicySet::from_toml("name = \"closed\"").unwrap()));
    let verdict = governor.enforce(&reading("a")).unwrap();
    assert_eq!(verdict.decision, Decision::Allow);
    governor.enforce(&intent("a", &["file:delete"])).unwrap();
    let report = governor.policies().shadow_report().unwrap();
    assert_eq!((report.decided, report.differed, report.failed), (2, 1, 0));
    let difference = &report.differences[0];
    assert_eq!(
        (difference.proof_id, difference.was, difference.shadow),
        (verdict.proof_id, Decision::Allow, Decision::Deny)
    );
    governor.policies().shadow(None);
    governor.enforce(&reading("a")).unwrap();
    assert!(governor.policies().shadow_report().is_none());
}

#[test]
fn an_error_in_the_shadow_is_its_own() {
    let governor = in_memory();
    let failing = "name = \"f\"\n[[rule]]\nid = \"f\"\neffect = \"allow\"\nwhen = \"context.missing > 1\"";
    governor.policies().shadow(Some(PolicySet::from_toml(failing).unwrap()));
    assert_eq!(governor.enforce(&reading("a")).unwrap().decision, Decision::Allow);
    assert_eq!(governor.policies().shadow_report().unwrap().failed, 1);
    // What would be decided can be explained all the same.
    governor.policies().load(PolicySet::from_toml(failing).unwrap()).unwrap();
    let explained = governor.policies().explain(&reading("a")).unwrap();
    assert!(explained.preview.reasoning.starts_with("No decision: "), "{}", explained.preview.reasoning);
    assert_eq!(explained.preview.error.as_ref().map(|error| error.code), Some("POLICY_ERROR"));
    assert!(explained.to_string().starts_with("No decision: POLICY_ERROR: "), "{explained}");
    assert_eq!(explained.rules[0].failed.as_deref(), Some("when"));
    // In force the same set lets nothing through, and the refusal is on record.
    governor.policies().load(PolicySet::from_toml(failing).unwrap()).unwrap();
    let before = governor.status().metrics.proof_chain_length;
    let error = governor.enforce(&reading("a")).unwrap_err();
    assert_eq!((error.code(), error.http_status()), ("POLICY_ERROR", 422));
    assert_eq!(governor.status().metrics.proof_chain_length, before + 1);
}

#[test]
fn the_past_is_decided_again_with_what_loosens_most_first() {
    let governor = in_memory();
    governor.agents().register(Agent::new("b").at_tier(Tier::T4)).unwrap();
    for capability in ["document:read", "file:delete", "database:read"] {
        governor.enforce(&intent("a", &[capability])).unwrap();
        governor.enforce(&intent("b", &[capability])).unwrap();
    }
    governor.agents().suspend("b", "test").unwrap();
    governor.enforce(&intent("b", &["file:delete"])).unwrap();
    governor.agents().resume("b", "over").unwrap();
    for scope in [KillSwitchScope::All, KillSwitchScope::agent("b").unwrap()] {
        let stop = governor.kill_switch().set(scope, "ann", "drill").unwrap();
        let denied = governor.enforce(&intent("b", &["file:delete"])).unwrap();
        assert_eq!(governor.log().evidence(&denied.proof_id).unwrap().detail["stop"], stop.id.to_string());
        governor.kill_switch().lift(&stop.id, "ann", "over").unwrap();
    }
    let candidate = allow("file:*", "files");
    let mut told = 0;
    let replay = governor.policies().replay(&candidate, &ReplayRange::all(), |_| told += 1).unwrap();
    assert_eq!((replay.records, replay.changed, replay.not_replayable, told), (6, 6, 0, 0));
    assert_eq!(replay.barred, 3, "no policies made these");
    let changes: Vec<_> = replay.changes.iter().map(|change| (change.was, change.now)).collect();
    assert_eq!(changes[..2], [(Decision::Deny, Decision::Allow); 2]);
    assert!(changes[2..].iter().all(|change| *change == (Decision::Allow, Decision::Deny)), "{changes:?}");
    assert_eq!(replay.by_rule.get("files"), Some(&2));
    // What a rule no longer grants is put down to that rule.
    let closing = replay.changes.last().unwrap();
    assert!(closing.rules.is_empty() && !closing.was_rules.is_empty(), "{closing:?}");
    assert!(replay.by_rule.contains_key(&closing.was_rules[0]), "{:?}", replay.by_rule);
    assert_eq!(closing.differs, ["decision", "granted"]);

    let only_a = ReplayRange::all().of_agent("a".parse().unwrap());
    assert_eq!(governor.policies().replay(&candidate, &only_a, |_| {}).unwrap().records, 3);
    assert_eq!(
        governor.policies().replay(&governor.policies().current(), &ReplayRange::all(), |_| {}).unwrap().changed,
        0
    );
    let records = governor.status().metrics.proof_chain_length;
    assert_eq!(records, 9, "a replay records nothing");
}

#[test]
fn an_allow_that_stays_one_says_what_differs() {
    let governor = in_memory();
    let tight = "name = \"t\"\n[[rule]]\nid = \"t\"\neffect = \"allow\"\nconstraints = { maxRecords = 7 }";
    let tight = PolicySet::from_toml(tight).unwrap();
    governor.policies().shadow(Some(tight.clone()));
    governor.enforce(&reading("a")).unwrap();
    let replay = governor.policies().replay(&tight, &ReplayRange::all(), |_| {}).unwrap();
    assert_eq!((replay.changed, &replay.changes[0].differs[..]), (1, &["constraints"][..]));
    assert_eq!(governor.policies().shadow_report().unwrap().differences[0].differs, ["constraints"]);
}

#[test]
fn layers_come_back_with_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let base = allow("document:*", "base");
    let team = PolicySet::from_toml(
        "name = \"team\"\n[[rule]]\nid = \"no-writing\"\neffect = \"deny\"\nmatch.capabilities = [\"document:write\"]",
    )
    .unwrap();
    let both = PolicySet::layered(&[base, team]).unwrap();
    let governor = Governor::open(folder.path()).unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    governor.policies().load(both.clone()).unwrap();
    governor.close().unwrap();
    let governor = Governor::open(folder.path()).unwrap();
    assert_eq!(governor.policies().current().digest(), both.digest());
    assert_eq!(governor.enforce(&intent("a", &["document:write"])).unwrap().decision, Decision::Deny);
    assert_eq!(governor.enforce(&intent("a", &["document:read"])).unwrap().decision, Decision::Allow);
}

#[test]
fn changed_alerts_come_back_with_the_store_and_unchanged_rules() {
    let folder = tempfile::tempdir().unwrap();
    let set = |alert: &str| {
        let alert = format!("name = \"watched\"\n[[alert]]\nid = \"a\"\non = \"{alert}\"");
        PolicySet::from_toml(&alert).unwrap()
    };
    let (first, second) = (set("critical"), set("shadow"));
    assert_eq!(first.digest(), second.digest());
    for set in [first, second.clone()] {
        Governor::builder().policies(set).open(folder.path()).unwrap().close().unwrap();
    }
    let governor = Governor::open(folder.path()).unwrap();
    assert_eq!(governor.policies().current().alerts(), second.alerts());
}

#[test]
fn recommended_rules_with_own_alerts_keep_them_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let recommended = PolicySet::recommended().unwrap();
    let (text, _) = recommended.sources().next().unwrap();
    let own = PolicySet::from_toml(&format!("{text}\n[[alert]]\nid = \"a\"\non = \"critical\"\n")).unwrap();
    assert_eq!(own.digest(), recommended.digest());
    let governor = Governor::open(folder.path()).unwrap();
    governor.policies().load(own.clone()).unwrap();
    governor.close().unwrap();
    assert_eq!(Governor::open(folder.path()).unwrap().policies().current().alerts(), own.alerts());
}

#[test]
fn a_set_that_says_the_same_is_not_recorded_again() {
    let folder = tempfile::tempdir().unwrap();
    let text = "name = \"t\"\n[[alert]]\nid = \"a\"\non = \"shadow\"";
    let entries = |text: &str| {
        let set = PolicySet::from_toml(text).unwrap();
        let governor = Governor::builder().policies(set).open(folder.path()).unwrap();
        let entries = governor.log().journal().entries;
        governor.close().unwrap();
        entries
    };
    let first = entries(text);
    assert_eq!(entries(text), first);
    assert_eq!(entries(&format!("# a comment\n{text}")), first);
    assert_eq!(entries(&text.replace("shadow", "policy-error")), first + 1);
}

#[test]
fn groups_and_attributes_come_back_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let governor = Governor::open(folder.path()).unwrap();
    governor.agents().register(Agent::new("a").in_group("eu").with_attribute("senior", true)).unwrap();
    governor.close().unwrap();
    let agent = Governor::open(folder.path()).unwrap().agents().get("a").unwrap();
    assert_eq!((agent.groups[0].as_str(), &agent.attributes["senior"]), ("eu", &json!(true)));
}

#[test]
fn an_explanation_in_words_shows_the_severity_of_a_rule() {
    let governor = in_memory();
    let text = "name = \"s\"\n[[rule]]\nid = \"s\"\neffect = \"deny\"\nseverity = \"HIGH\"";
    governor.policies().load(PolicySet::from_toml(text).unwrap()).unwrap();
    let told = governor.policies().explain(&reading("a")).unwrap().to_string();
    assert!(told.ends_with(" [severity HIGH]\n"), "{told}");
}

#[test]
fn a_suspended_agents_explanation_rests_on_no_rule() {
    let governor = in_memory();
    governor.agents().suspend("a", "test").unwrap();
    let explained = governor.policies().explain(&reading("a")).unwrap();
    assert_eq!(explained.preview.decision, Decision::Deny);
    assert!(explained.rules.iter().all(|rule| !rule.decided));
}

#[test]
fn no_rule_decides_where_a_condition_failed() {
    let policies = PolicySet::from_toml(
        r#"
        name = "failing"
        [[rule]]
        id = "allows"
        effect = "allow"
        constraints = { maxRecords = 1 }
        [[rule]]
        id = "denies"
        effect = "deny"
        when = "context.amount > 10"
        "#,
    )
    .unwrap();
    let governor = Governor::builder().policies(policies).auto_register().open_in_memory().unwrap();
    let explanation = governor.policies().explain(&reading("a")).unwrap();
    assert_eq!(explanation.preview.error.as_ref().unwrap().code, "POLICY_ERROR");
    assert!(explanation.rules.iter().all(|rule| !rule.decided && rule.constraints.is_empty()), "{explanation:?}");
}
