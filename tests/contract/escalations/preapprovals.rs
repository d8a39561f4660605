//! What people agree to beforehand covers exactly that, so often and for so much, and no longer than they let it.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, thread};

use rulekeep::escalation::{PreApproval, PreApprovalId, PreApprovalStanding, PreApprovalState};
use rulekeep::kill_switch::KillSwitchScope;
use rulekeep::preview::ReplayRange;
use rulekeep::proof::OpenVerification;
use rulekeep::{Durability, Outcome};
use serde_json::{Value, json};

use super::*;

const DAY: i64 = 86_400_000;

fn at(millis: i64) -> String {
    rulekeep::system::Timestamp::from_millis(millis).to_string()
}

/// A pre-approval of the clerk's payments, with some of its terms changed or, with null, left out.
fn terms(changes: &Value) -> Value {
    let mut terms = json!({
        "agentId": "clerk", "capabilities": ["payment:transfer"], "rules": ["money"], "targets": ["INV-*"],
        "maxRisk": "HIGH", "until": at(NOON + DAY), "count": 5, "sum": { "key": "amount", "most": 500 },
    });
    for (key, value) in changes.as_object().unwrap() {
        terms[key] = value.clone();
    }
    terms.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    terms
}

fn pre_approval(changes: &Value) -> PreApproval {
    serde_json::from_value(terms(changes)).unwrap()
}

fn given(governor: &Governor, changes: &Value) -> PreApprovalId {
    governor.escalations().pre_approve(pre_approval(changes), by("ann").note("agreed for the week")).unwrap()
}

fn pay(amount: u64) -> Intent {
    payment(amount).with_context("target", "INV-7")
}

fn decision(governor: &Governor, intent: &Intent) -> Decision {
    governor.enforce(intent).unwrap().decision
}

fn only(governor: &Governor) -> PreApprovalStanding {
    let mut given = governor.escalations().pre_approvals();
    assert_eq!(given.len(), 1);
    given.remove(0)
}

#[test]
fn a_covered_request_is_granted_and_each_use_recorded() {
    let (governor, _) = governor();
    let id = given(&governor, &json!({}));
    let preview = governor.policies().preview(&pay(120)).unwrap();
    assert_eq!((preview.decision, only(&governor).used_count), (Decision::Allow, 0), "a look ahead uses nothing");
    for (uses, amount) in [(1, 120.0), (2, 240.0)] {
        let verdict = governor.enforce(&pay(120)).unwrap();
        assert_eq!(verdict.decision, Decision::Allow, "{}", verdict.reasoning);
        assert_eq!(json!(verdict.constraints), json!({ "expiresAt": at(NOON + DAY), "maxAmount": 100 }));
        for part in ["ann", "agreed for the week", &id.to_string()] {
            assert!(verdict.reasoning.contains(part), "{} lacks {part:?}", verdict.reasoning);
        }
        assert_eq!(governor.log().evidence(&verdict.proof_id).unwrap().detail["grant"], json!(id));
        let standing = only(&governor);
        assert_eq!((standing.id, standing.used_count, standing.used_sum), (id, uses, Some(amount)));
        assert_eq!((standing.reviewer.as_str(), standing.state), ("ann", PreApprovalState::Active));
    }
    assert_eq!(governor.escalations().pending().unwrap(), []);
    assert!(governor.verify().unwrap().valid);
}

#[test]
fn what_is_not_covered_asks_a_person_and_uses_nothing() {
    let (governor, _) = governor();
    governor.agents().register(Agent::new("other").at_tier(Tier::T4)).unwrap();
    given(&governor, &json!({ "capabilities": ["payment:*", "permission:write"] }));
    let mut risky = pay(1);
    risky.risk_level = RiskLevel::Critical;
    let mut others = pay(1);
    others.agent_id = "other".parse().unwrap();
    let mut beside = pay(1);
    beside.required_capabilities.push("document:read".parse().unwrap());
    let mut with_rights = pay(1);
    with_rights.required_capabilities.push("permission:write".parse().unwrap());
    for (what, intent) in [
        ("another target", pay(1).with_context("target", "XINV-7")),
        ("no target", payment(1)),
        ("no amount", pay(1).with_context("amount", "1")),
        ("more risk", risky),
        ("another agent", others),
        ("another capability beside", beside),
        ("another rule asks too", with_rights),
        ("asked for by who approved", pay(1).with_context("requestedBy", "ＡNN")),
    ] {
        assert_eq!(decision(&governor, &intent), Decision::Escalate, "{what}");
    }
    assert_eq!((only(&governor).used_count, only(&governor).used_sum), (0, Some(0.0)));
    assert_eq!(decision(&governor, &pay(1)), Decision::Allow);
}

#[test]
fn what_a_person_could_not_approve_is_denied_or_withheld() {
    let (governor, _) = governor();
    let more = "[[rule]]\nid = \"d\"\neffect = \"degrade\"\nto = [\"document:read\"]\nmatch.capabilities = [\"document:*\"]\n\
                [[rule]]\nid = \"no\"\neffect = \"deny\"\nmatch.capabilities = [\"file:delete\"]\n";
    governor.policies().load(policies(&format!("{POLICIES}{more}"))).unwrap();
    given(&governor, &json!({}));
    let mut both = pay(1);
    both.required_capabilities.push("document:write".parse().unwrap());
    let verdict = governor.enforce(&both).unwrap();
    assert_eq!((verdict.decision, verdict.granted_capabilities.len()), (Decision::Degrade, 1), "{}", verdict.reasoning);
    both.required_capabilities.push("file:delete".parse().unwrap());
    assert_eq!(decision(&governor, &both), Decision::Deny);
    assert_eq!(only(&governor).used_count, 1);
}

#[test]
fn a_failure_gives_nothing_back_and_neither_does_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let hand = Hand::at(NOON);
    let open = || with_clock(&hand).open(folder.path()).unwrap();
    let mut governor = open();
    governor.agents().register(Agent::new("clerk").at_tier(Tier::T4)).unwrap();
    given(&governor, &json!({ "count": 5, "sum": { "key": "amount", "most": 50.5 } }));
    for with_view in [true, true, false] {
        let verdict = governor.enforce(&pay(10)).unwrap();
        assert_eq!(verdict.decision, Decision::Allow);
        governor.report(&verdict.proof_id, Outcome::Failure).unwrap();
        let before = only(&governor);
        governor.close().unwrap();
        if !with_view {
            fs::remove_dir_all(folder.path().join("view")).unwrap();
        }
        governor = open();
        assert_eq!(only(&governor), before, "view {with_view}");
    }
    governor.close().unwrap();
    let governor = with_clock(&hand).verification(OpenVerification::Behind).open(folder.path()).unwrap();
    assert_eq!((only(&governor).used_count, only(&governor).used_sum), (3, Some(30.0)));
    assert_eq!(decision(&governor, &pay(21)), Decision::Escalate, "past the sum");
    assert_eq!(decision(&governor, &pay(20)), Decision::Allow);
    assert_eq!(decision(&governor, &pay(1)), Decision::Escalate, "past the sum by half");
    assert_eq!(decision(&governor, &pay(0)), Decision::Allow);
    assert_eq!(decision(&governor, &pay(0)), Decision::Escalate, "past the count");
    assert_eq!(only(&governor).state, PreApprovalState::Spent);
}

#[test]
fn no_number_of_threads_gets_more_than_the_count_and_the_sum() {
    let by_sum = json!({ "count": 100, "sum": { "key": "amount", "most": 39.5 } });
    // Again and again: two have to meet just where it is used up.
    for (changes, granted) in [(json!({ "count": 7 }), 7), (by_sum, 13)].iter().cycle().take(16) {
        let granted = *granted;
        let (governor, _) = governor();
        given(&governor, changes);
        let start = Barrier::new(64);
        let (allowed, escalated) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..64 {
                scope.spawn(|| {
                    start.wait();
                    match decision(&governor, &pay(3)) {
                        Decision::Allow => allowed.fetch_add(1, Ordering::Relaxed),
                        _ => escalated.fetch_add(1, Ordering::Relaxed),
                    }
                });
            }
        });
        assert_eq!((allowed.into_inner(), escalated.into_inner()), (granted, 64 - granted));
        assert_eq!(only(&governor).used_count, granted as u64);
    }
}

#[test]
fn of_agent_and_group_approvals_the_oldest_with_room_is_used() {
    let (governor, hand) = governor();
    governor.agents().register(Agent::new("other").at_tier(Tier::T4)).unwrap();
    governor.agents().update("clerk", rulekeep::agent::AgentChange::new().groups(["payers"]), "").unwrap();
    let one = |whose: Value| {
        hand.set(rulekeep::system::Clock::now(&hand).as_millis() + 1);
        given(&governor, &whose)
    };
    let ended = one(json!({ "until": at(NOON + 1000), "count": 1 }));
    hand.set(NOON + 1000);
    let theirs = one(json!({ "agentId": "other", "count": 1 }));
    let first = one(json!({ "agentId": null, "group": "payers", "count": 1 }));
    let second = one(json!({ "count": 1 }));
    let third = one(json!({ "agentId": null, "group": "payers", "count": 1 }));
    let used = |_| {
        let id = governor.enforce(&pay(1)).unwrap().proof_id;
        governor.log().evidence(&id).unwrap().detail["grant"].as_str().unwrap_or_default().to_owned()
    };
    let expected = [first.to_string(), second.to_string(), third.to_string(), String::new()];
    assert_eq!((0..4).map(used).collect::<Vec<_>>(), expected);
    let states: Vec<_> =
        governor.escalations().pre_approvals().iter().map(|given| (given.id, given.used_count)).collect();
    assert_eq!(states, [(ended, 0), (theirs, 0), (first, 1), (second, 1), (third, 1)]);
}

#[test]
fn it_ends_with_its_time_and_when_it_is_taken_back() {
    let (governor, hand) = governor();
    hand.set(NOON + DAY - 1);
    given(&governor, &json!({}));
    assert_eq!(decision(&governor, &pay(1)), Decision::Allow);
    hand.set(NOON + DAY);
    assert_eq!(decision(&governor, &pay(1)), Decision::Escalate);
    assert_eq!(only(&governor).state, PreApprovalState::Expired);
    assert_eq!(code(governor.escalations().revoke(&only(&governor).id, by("ann"))), "CONFLICT");

    let id = given(&governor, &json!({ "until": at(NOON + 2 * DAY) }));
    assert_eq!(decision(&governor, &pay(1)), Decision::Allow);
    governor.escalations().revoke(&id, by("Dora").note("no more")).unwrap();
    assert_eq!(decision(&governor, &pay(1)), Decision::Escalate);
    let standing = governor.escalations().pre_approvals().into_iter().find(|given| given.id == id).unwrap();
    assert_eq!(
        (standing.state, standing.why.as_deref()),
        (PreApprovalState::Revoked, Some("revoked by Dora: no more"))
    );
    assert_eq!(code(governor.escalations().revoke(&id, by("ann"))), "CONFLICT");
}

#[test]
fn an_approval_lasts_31_days_at_the_most_by_the_governors_clock() {
    let (governor, hand) = governor();
    let long = pre_approval(&json!({ "until": at(NOON + 31 * DAY + 1) }));
    assert_eq!(code(governor.escalations().pre_approve(long.clone(), by("ann"))), "INVALID_INPUT");
    hand.set(NOON + 1);
    assert!(governor.escalations().pre_approve(long, by("ann")).is_ok());
}

#[test]
fn it_stands_with_the_rules_that_it_answers() {
    let folder = tempfile::tempdir().unwrap();
    let hand = Hand::at(NOON);
    let governor = with_clock(&hand).open(folder.path()).unwrap();
    governor.agents().register(Agent::new("clerk").at_tier(Tier::T4)).unwrap();
    given(&governor, &json!({}));
    let beside =
        format!("{POLICIES}[[rule]]\nid = \"more\"\neffect = \"allow\"\nmatch.capabilities = [\"file:read\"]\n");
    governor.policies().load(policies(&beside)).unwrap();
    assert_eq!(decision(&governor, &pay(1)), Decision::Allow, "the rules that it answers are the same");
    governor.close().unwrap();

    let governor = with_clock(&hand).open(folder.path()).unwrap();
    assert_eq!(decision(&governor, &pay(1)), Decision::Allow);
    governor.policies().load(policies(&POLICIES.replace("\"bob\", \"Cleo\"]", "\"bob\"]"))).unwrap();
    assert_eq!(decision(&governor, &pay(1)), Decision::Escalate, "other people are asked");
    governor.policies().load(policies(POLICIES)).unwrap();
    assert_eq!(decision(&governor, &pay(1)), Decision::Escalate, "what has ended does not come back");
    assert!(only(&governor).why.unwrap().contains("\"money\""));

    given(&governor, &json!({}));
    governor.close().unwrap();
    let other = POLICIES.replace("expires = \"1h\"", "expires = \"2h\"");
    let governor = builder().policies(policies(&other)).clock(hand.clone()).open(folder.path()).unwrap();
    assert_eq!(decision(&governor, &pay(1)), Decision::Escalate, "a rule changed while nobody looked");
}

#[test]
fn stopping_or_suspending_ends_it_for_good() {
    let folder = tempfile::tempdir().unwrap();
    let hand = Hand::at(NOON);
    let governor = with_clock(&hand).open(folder.path()).unwrap();
    governor.agents().register(Agent::new("clerk").at_tier(Tier::T4).in_group("desk")).unwrap();
    governor.agents().register(Agent::new("temp").at_tier(Tier::T4).in_group("desk")).unwrap();
    let of_group = json!({ "agentId": null, "group": "desk" });
    let stop = |scope: KillSwitchScope| {
        let id = governor.kill_switch().set(scope, "ann", "").unwrap().id;
        assert_eq!(code(governor.escalations().pre_approve(pre_approval(&json!({})), by("ann"))), "CONFLICT");
        governor.kill_switch().lift(&id, "ann", "").unwrap();
    };
    let suspend = |agent: &str| {
        governor.agents().suspend(agent, "").unwrap();
        governor.agents().resume(agent, "").unwrap();
    };
    let ways: [(&str, &dyn Fn()); 5] = [
        ("the agent is stopped", &|| stop(KillSwitchScope::agent("clerk").unwrap())),
        ("its group is stopped", &|| stop(KillSwitchScope::group("desk").unwrap())),
        ("all are stopped", &|| stop(KillSwitchScope::All)),
        ("the agent is suspended", &|| suspend("clerk")),
        ("another of the group is suspended", &|| suspend("temp")),
    ];
    for (what, way) in ways {
        for changes in [&json!({}), &of_group] {
            given(&governor, changes);
            let is_concerned = *changes == of_group || !what.starts_with("another");
            assert_eq!(decision(&governor, &pay(1)), Decision::Allow, "{what}");
            way();
            let expected = if is_concerned { Decision::Escalate } else { Decision::Allow };
            assert_eq!(decision(&governor, &pay(1)), expected, "{what}: {changes}");
            for given in governor.escalations().pre_approvals() {
                let _ = governor.escalations().revoke(&given.id, by("ann"));
            }
        }
    }
    let before = governor.escalations().pre_approvals();
    governor.close().unwrap();
    let governor = with_clock(&hand).open(folder.path()).unwrap();
    assert_eq!(governor.escalations().pre_approvals(), before);
}

#[test]
fn only_who_all_its_rules_ask_gives_one_and_never_the_agent() {
    let (governor, _) = governor();
    let approve =
        |changes: Value, reviewer: &str| code(governor.escalations().pre_approve(pre_approval(&changes), by(reviewer)));
    let two = "[reviewers]\nfinance = [\"ann\", \"clerk\"]\nlaw = [\"bob\"]\n[[rule]]\nid = \"law\"\neffect = \"escalate\"\n\
               match.capabilities = [\"permission:write\"]\nreviewer = \"law\"\n";
    governor
        .policies()
        .load(policies(&POLICIES.replace("[reviewers]\nfinance = [\"ann\", \"bob\", \"Cleo\"]\n", two)))
        .unwrap();
    governor.agents().register(Agent::new("Ann").in_group("desk")).unwrap();
    for (changes, reviewer, expected) in [
        (json!({}), "mallory", "FORBIDDEN"),
        (json!({}), "finance", "FORBIDDEN"),
        (json!({}), "CLERK", "FORBIDDEN"),
        (json!({ "agentId": null, "group": "desk" }), "ann", "FORBIDDEN"),
        (json!({ "rules": ["money", "law"] }), "ann", "FORBIDDEN"),
        (json!({}), " \n", "INVALID_INPUT"),
        (json!({ "rules": ["nothing"] }), "ann", "INVALID_INPUT"),
        (json!({ "rules": ["payments"] }), "ann", "INVALID_INPUT"),
        (json!({ "agentId": "nobody" }), "ann", "AGENT_NOT_FOUND"),
    ] {
        assert_eq!(approve(changes.clone(), reviewer), expected, "{changes} {reviewer}");
    }
    assert_eq!(governor.escalations().pre_approvals(), []);
}

#[test]
fn where_two_have_to_agree_one_grants_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let hand = Hand::at(NOON);
    let governor = with_clock(&hand).open(folder.path()).unwrap();
    governor.agents().register(Agent::new("clerk").at_tier(Tier::T4)).unwrap();
    let changes = json!({
        "capabilities": ["permission:write"], "rules": ["rights"], "targets": null, "sum": null, "maxRisk": "CRITICAL"
    });
    let id = given(&governor, &changes);
    assert_eq!(
        (decision(&governor, &rights()), only(&governor).state),
        (Decision::Escalate, PreApprovalState::Pending)
    );
    governor.close().unwrap();

    let governor = with_clock(&hand).open(folder.path()).unwrap();
    let agree = |reviewer: &str| governor.escalations().agree_to_pre_approval(&id, by(reviewer));
    assert_eq!(decision(&governor, &rights()), Decision::Escalate);
    assert_eq!((code(agree("ANN")), code(agree("mallory"))), ("CONFLICT", "FORBIDDEN"));
    assert_eq!(decision(&governor, &rights()), Decision::Escalate);
    assert_eq!(agree("bob").unwrap(), PreApprovalState::Active);
    let verdict = governor.enforce(&rights()).unwrap();
    assert_eq!(verdict.decision, Decision::Allow);
    assert!(verdict.reasoning.contains("ann and bob"), "{}", verdict.reasoning);
    assert_eq!(code(agree("Cleo")), "CONFLICT");
}

#[test]
fn a_limit_that_asks_past_itself_is_answered_and_counted_on() {
    let (governor, _) = governor();
    let limited = "name = \"l\"\n[[rule]]\nid = \"few\"\neffect = \"allow\"\nmatch.capabilities = [\"payment:transfer\"]\n\
                   limit = { count = 1, per = \"1d\", over = \"escalate\", reviewer = \"ann\" }\n";
    governor.policies().load(policies(limited)).unwrap();
    given(&governor, &json!({ "rules": ["few"], "count": 1 }));
    assert_eq!(decision(&governor, &pay(1)), Decision::Allow);
    assert_eq!(only(&governor).used_count, 0, "nobody had to be asked");
    let past = governor.enforce(&pay(1)).unwrap();
    assert_eq!((past.decision, only(&governor).used_count), (Decision::Allow, 1), "{}", past.reasoning);
    let asked = governor.policies().preview(&pay(1)).unwrap();
    assert_eq!((asked.decision, asked.limits[0].used), (Decision::Escalate, 2_000_000));
}

#[test]
fn answers_of_people_are_counted_apart_in_a_replay() {
    let (governor, _) = governor();
    given(&governor, &json!({}));
    assert_eq!(decision(&governor, &pay(1)), Decision::Allow);
    let (id, _) = ask(&governor, &payment(1));
    governor.escalations().approve(id, by("bob")).unwrap();
    let replay = governor.policies().replay(&policies(POLICIES), &ReplayRange::all(), |_| {}).unwrap();
    assert_eq!((replay.records, replay.answered, replay.changed), (3, 2, 0), "{replay:?}");
    let stricter =
        format!("{POLICIES}[[rule]]\nid = \"no\"\neffect = \"deny\"\nmatch.capabilities = [\"payment:*\"]\n");
    let replay = governor.policies().replay(&policies(&stricter), &ReplayRange::all(), |_| {}).unwrap();
    assert_eq!((replay.answered, replay.changed), (2, 3));
}

#[test]
fn a_usable_pre_approval_outlives_its_entries_and_an_ended_goes() {
    /// Decisions with much beside each, so that few fill a segment.
    fn heavy(governor: &Governor) {
        for number in 0..390_u64 {
            let text: String = (0..2600_u64)
                .scan(number + 1, |state, _| {
                    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    Some(format!("{state:016x} "))
                })
                .collect();
            let read = Intent::new("clerk", "read_notes", RiskLevel::Low, ["document:read"]).unwrap();
            governor.enforce(&read.with_context("notes", text)).unwrap();
        }
    }

    let folder = tempfile::tempdir().unwrap();
    let hand = Hand::at(NOON);
    let open = || with_clock(&hand).durability(Durability::Buffered).open(folder.path().join("store")).unwrap();
    let mut governor = open();
    governor.agents().register(Agent::new("clerk").at_tier(Tier::T4)).unwrap();
    let expired = given(&governor, &json!({}));
    let revoked = given(&governor, &json!({}));
    governor.escalations().revoke(&revoked, by("bob")).unwrap();
    heavy(&governor);
    let now = NOON + 40 * DAY;
    hand.set(now);
    let live = given(&governor, &json!({ "until": at(now + DAY), "count": 3 }));
    assert_eq!(decision(&governor, &pay(1)), Decision::Allow);
    heavy(&governor);
    while governor.log().journal().unsealed > 0 {
        thread::yield_now();
    }
    // What they stood in last is known from the log alone then.
    governor.close().unwrap();
    governor = open();
    assert_eq!(governor.escalations().pre_approvals().len(), 3, "{expired}");
    let before = rulekeep::system::Timestamp::from_millis(now);
    governor.log().archive(before, folder.path().join("old.rka")).unwrap().expect("whole segments are that old");
    // That the time of the first was over stands behind what left.
    let kept = |governor: &Governor| {
        let kept = governor.escalations().pre_approvals();
        assert_eq!([kept[0].id, kept[1].id], [expired, live]);
        assert_eq!((kept.len(), kept[0].state), (2, PreApprovalState::Expired));
        kept[1].used_count
    };
    for uses in [2, 3] {
        kept(&governor);
        assert_eq!(decision(&governor, &pay(1)), Decision::Allow);
        governor.close().unwrap();
        governor = open();
        assert_eq!(kept(&governor), uses);
    }
    assert_eq!(decision(&governor, &pay(1)), Decision::Escalate);
}
