//! What hubs and members agree on, where nothing fails.

use std::time::{Duration, Instant};

use rulekeep::checkpoint::CheckpointKey;
use rulekeep::proof::{ProofId, Sequence};
use rulekeep::system::{Clock as _, SystemClock, SystemEntropy, Timestamp};
use rulekeep::{Decision, RiskLevel};
use rulekeep_fleet::bundle::Bundle;
use rulekeep_fleet::enrolment::Enrol;
use rulekeep_fleet::log::{Leaf, Resource, TileId};
use rulekeep_fleet::order::{Command, Order};
use rulekeep_fleet::session::Task;
use rulekeep_fleet::wire::{Beat, MAX_STRANGERS_BYTES};

use crate::support::cluster::Database;
use crate::support::governor::real_record;
use crate::support::http::request;
use crate::support::hub::{HubOptions, RunningHub, post, refusal};
use crate::support::member::Member;
use crate::support::organisation::{self, log_key, stop};
use crate::support::witness::RunningWitness;
use crate::support::{self, Fleet, leaves, until, until_leaf};

/// The longest that what happens at once may take on a busy machine; far below what a beat may wait.
const AT_ONCE: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_secs(30);

/// Runs a test with an organisation, or says that PostgreSQL is missing.
macro_rules! fleet {
    () => {
        match Fleet::start().await {
            Some(fleet) => fleet,
            None => return,
        }
    };
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_admits_as_many_as_it_says_until_it_expires() {
    let fleet = fleet!();
    let hubs = [fleet.hub.address()];
    let new = |name: &str| Member::new(name, &fleet.organisation, &hubs);
    let invitation = fleet.organisation.invitation(&["payments"], 1);
    let mut first = new("first");
    first.enrol(&invitation).await.unwrap();
    first.enrol(&invitation).await.expect("the first answer may have been lost");
    assert_eq!(fleet.hub.api.members().await.unwrap().members[0].groups, ["payments"]);
    assert!(refusal(first.enrol(&fleet.organisation.invitation(&[], 1)).await, 403).contains("other groups"));
    assert!(refusal(new("second").enrol(&invitation).await, 403).contains("was for 1 governors"));
    assert!(
        refusal(new("first").enrol(&fleet.organisation.invitation(&["payments"], 2)).await, 403)
            .contains("another key")
    );

    let past = fleet.organisation.invitation_until(&["payments"], 9, Timestamp::from_millis(1));
    assert!(refusal(new("late").enrol(&past).await, 403).contains("expired"));
    let mut stranger = fleet.organisation.clone();
    stranger.operators[0] = organisation::key("ann", 77);
    assert!(
        refusal(new("guest").enrol(&stranger.invitation(&["payments"], 9)).await, 403)
            .contains("signed by an operator")
    );
    assert!(Enrol::accept("an invitation", &new("guest").key, None).is_none());

    let other = new("other");
    let invitation = fleet.organisation.invitation(&["payments", "refunds"], 9);
    let enrol = async |group| {
        let request = Enrol::accept(&invitation, &other.key, Some(group)).unwrap();
        post::<()>(hubs[0], &other.key, "/fleet/v1/enrol", &request).await
    };
    assert!(refusal(enrol("treasury").await, 403).contains("the groups of the invitation"));
    enrol("refunds").await.unwrap();
    until_leaf(
        "its enrolment",
        fleet.hub.api,
        |leaf| matches!(leaf, Leaf::Enrol { governor, groups, .. } if governor == "other" && *groups == ["refunds"]),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_is_good_at_each_hub_with_the_founding_order() {
    let Some(database) = Database::new().await else { return };
    let options = HubOptions::new(&database.url);
    let (one, other) = (RunningHub::start(&options).await, RunningHub::start(&options).await);
    let organisation = support::found(one.api, 30).await;
    Member::admitted("first", &[], &organisation, &[other.address()]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_permit_needs_a_log_that_continues_the_anchored_one() {
    let fleet = fleet!();
    let mut member = Member::new("first", &fleet.organisation, &[fleet.hub.address()]);
    member.enrol(&fleet.organisation.invitation(&[], 1)).await.unwrap();
    for _ in 0..2 {
        member.beat(Duration::ZERO).await.unwrap();
        assert!(member.answer.show && member.answer.permit.is_none() && member.answer.refused.is_none());
        member.restart();
    }
    member.admit().await;
    assert_eq!(member.answer.permit.unwrap().term_ms, 30_000);
    assert_eq!(member.answer.anchored, member.log.size());
    until_leaf(
        "its anchor",
        fleet.hub.api,
        |leaf| matches!(leaf, Leaf::Anchor { governor, .. } if governor == "first"),
    )
    .await;
    member.log.grow(7, "more");
    member.restart();
    member.admit().await;
    assert_eq!(member.answer.anchored, member.log.size());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_ends_waiting_beats_and_the_next_acknowledge_it() {
    let mut fleet = fleet!();
    let other = RunningHub::start(&HubOptions::new(&fleet.database.url)).await;
    let mut near = fleet.member("near").await;
    let mut far = Member::admitted("far", &[], &fleet.organisation, &[other.address()]).await;
    let began = Instant::now();
    let waiting = tokio::spawn(async move {
        let (a, b) = tokio::join!(near.beat(LONG), far.beat(LONG));
        (near, far, [a.unwrap(), b.unwrap()])
    });
    // Both beats are held once the hub has seen both members.
    let seen = "SELECT count(*) FROM governors WHERE order_seq = 1 AND is_shown";
    until("both wait", async || support::cluster::sql(&fleet.database.url, seen).await.unwrap() == "2").await;
    let given = fleet.give(stop(&[]), 1).await;
    assert_eq!((given.seq, given.acknowledged, given.open, given.leaf), (2, 0, 2, None));
    let (mut near, mut far, tasks) = waiting.await.unwrap();
    assert!(began.elapsed() < AT_ONCE, "{:?}", began.elapsed());
    for tasks in tasks {
        assert!(matches!(tasks.first(), Some(Task::Stop(2, stop)) if stop.by == "ann"), "{tasks:?}");
        assert!(matches!(tasks.last(), Some(Task::Permit(_))), "{tasks:?}");
    }
    near.beat(Duration::ZERO).await.unwrap();
    assert_eq!(other.api.standing(2).await.unwrap().acknowledged, 1);
    far.beat(Duration::ZERO).await.unwrap();
    let standing = fleet.hub.api.standing(2).await.unwrap();
    assert_eq!((standing.acknowledged, standing.open, standing.ended), (2, 0, 0));
    until("it is a published leaf", async || other.api.standing(2).await.unwrap().leaf.is_some()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hub_says_when_the_last_permit_without_an_order_ends() {
    let mut fleet = fleet!();
    let mut member = fleet.member("first").await;
    member.beat(Duration::ZERO).await.unwrap();
    let given = fleet.give(stop(&[]), 1).await;
    let (_, beat) = member.next_beat(Duration::ZERO);
    let left = given.bound.as_millis() - beat.at.as_millis();
    assert!((1..=30_000).contains(&left), "{left} ms");
    assert_eq!((given.acknowledged, given.open), (0, 1));
    support::cluster::sql(&fleet.database.url, "UPDATE governors SET permit_until = 1").await;
    let standing = fleet.hub.api.standing(2).await.unwrap();
    assert_eq!((standing.acknowledged, standing.open, standing.ended), (0, 0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_loosening_order_needs_two_operators_and_no_forgery() {
    let mut fleet = fleet!();
    let api = fleet.hub.api;
    fleet.give(stop(&[]), 1).await;
    let lift = Command::Lift { order: 2, note: "over".to_owned() };
    assert!(refusal(api.give(&fleet.organisation.sign(lift.clone(), 1)).await, 409).contains("signed by 1"));
    let mut changed = fleet.organisation.sign(lift.clone(), 2);
    changed.body = changed.body.replace("over", "OVER");
    assert!(refusal(api.give(&changed).await, 409).contains("not valid"));
    let strangers = [organisation::key("ann", 77), organisation::key("bob", 78)];
    let forged = Order::next(&fleet.organisation.chain, rulekeep::system::Timestamp::from_millis(1), lift.clone());
    assert!(refusal(api.give(&forged.sign(&strangers).unwrap()).await, 409).contains("not valid"));
    let unknown = Command::Lift { order: 7, note: String::new() };
    assert!(refusal(api.give(&fleet.organisation.sign(unknown, 2)).await, 409).contains("order 7"));
    assert_eq!(api.orders().await.unwrap().len(), 2);
    let mut member = fleet.member("first").await;
    fleet.give(lift, 2).await;
    let tasks = member.beat(Duration::ZERO).await.unwrap();
    assert!(matches!(tasks.first(), Some(Task::Lift(2))), "{tasks:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_orders_with_one_number_given_to_two_hubs_one_is_taken() {
    let fleet = fleet!();
    let other = RunningHub::start(&HubOptions::new(&fleet.database.url)).await;
    let mut organisation = fleet.organisation.clone();
    for round in 0..20 {
        let orders = ["a", "b"].map(|group| organisation.sign(stop(&[group]), 1));
        let (one, two) = tokio::join!(fleet.hub.api.give(&orders[0]), other.api.give(&orders[1]));
        let taken = match (one, two) {
            (Ok(_), Err((400 | 409, _))) => &orders[0],
            (Err((400 | 409, _)), Ok(_)) => &orders[1],
            both => panic!("round {round}: {both:?}"),
        };
        organisation.keep(taken);
        assert_eq!(fleet.hub.api.orders().await.unwrap(), organisation.orders);
        assert_eq!(other.api.orders().await.unwrap(), organisation.orders);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orders_standing_names_members_that_could_not_apply_it() {
    let mut fleet = fleet!();
    let mut member = fleet.member("first").await;
    fleet.give(stop(&[]), 1).await;
    let tasks = member.beat(Duration::ZERO).await.unwrap();
    member.session.done(&tasks[0], Err("no such agent".to_owned()), support::member::now());
    member.beat(Duration::ZERO).await.unwrap();
    let standing = fleet.hub.api.standing(2).await.unwrap();
    assert_eq!(standing.refused, ["first"]);
    let members = fleet.hub.api.members().await.unwrap();
    assert_eq!(members.members[0].refused[&2], "no such agent");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retired_governor_gets_no_permit_an_unknown_one_no_answer() {
    let mut fleet = fleet!();
    let mut member = fleet.member("first").await;
    fleet.give(Command::Retire { governor: "first".to_owned() }, 1).await;
    let tasks = member.beat(Duration::ZERO).await.unwrap();
    assert!(matches!(tasks.as_slice(), [.., Task::Refused(why)] if why.contains("has ended")), "{tasks:?}");
    assert!(fleet.hub.api.members().await.unwrap().members[0].is_retired);
    let mut stranger = Member::new("stranger", &fleet.organisation, &[fleet.hub.address()]);
    let refused = stranger.beat(Duration::ZERO).await.unwrap_err();
    assert!(refused.starts_with("403 no governor stranger"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_its_governor_has_not_signed_is_refused() {
    let fleet = fleet!();
    let mut member = fleet.member("first").await;
    let (_, beat) = member.next_beat(Duration::ZERO);
    let other = CheckpointKey::generate("first", &SystemEntropy).unwrap();
    let answer = post::<rulekeep_fleet::wire::Answer>(fleet.hub.address(), &other, "/fleet/v1/beat", &beat).await;
    assert!(refusal(answer, 403).contains("not signed by first"));
    let answer =
        post::<rulekeep_fleet::wire::Answer>(fleet.hub.address(), &member.key, "/fleet/v1/beat", &"no beat").await;
    refusal(answer, 400);
    member.beat(Duration::ZERO).await.unwrap();
}

/// A long body is read only for a member or a reader; a kill switch is short enough for anybody.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_body_of_a_stranger_is_not_read() {
    let fleet = fleet!();
    let member = fleet.member("first").await;
    let other = CheckpointKey::generate("first", &SystemEntropy).unwrap();
    let long = "x".repeat(MAX_STRANGERS_BYTES + 1);
    for (key, status, says) in [(&other, 403, "not signed by first"), (&member.key, 400, "invalid type")] {
        let answer = post::<rulekeep_fleet::wire::Answer>(fleet.hub.address(), key, "/fleet/v1/beat", &long).await;
        let why = refusal(answer, status);
        assert!(why.contains(says), "{why}");
    }
    for (token, says) in [("", "at most 65536 bytes"), ("authorization: Bearer readers\r\n", "expected value")] {
        let request = request("POST", "/fleet/v1/orders", token, &long);
        let why = refusal(fleet.hub.api.call(&request).await.unwrap().read::<serde_json::Value>(), 400);
        assert!(why.contains(says), "{token}: {why}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_reads_without_the_token() {
    let fleet = fleet!();
    for path in ["orders", "orders/1", "members", "records", "bundles/x"] {
        let answer = fleet.hub.api.call(&request("GET", &format!("/fleet/v1/{path}"), "", "")).await.unwrap();
        assert_eq!(answer.status, 403, "{path}");
        let wrong = request("GET", &format!("/fleet/v1/{path}"), "authorization: Bearer reader\r\n", "");
        assert_eq!(fleet.hub.api.call(&wrong).await.unwrap().status, 403, "{path}");
    }
    let entries = fleet.hub.api.call(&request("GET", "/tile/entries/000.p/1", "", "")).await.unwrap();
    assert_eq!(entries.status, 403);
}

/// Asserts that a member is refused from now on, and what the published log says about it.
async fn is_refused(fleet: &Fleet, member: &mut Member, why: &str) {
    let mut tasks = member.beat(Duration::ZERO).await.unwrap();
    if !member.answer.is_taken && member.answer.refused.is_none() {
        // It shows that it is there now.
        tasks = member.beat(Duration::ZERO).await.unwrap();
    }
    assert!(matches!(tasks.as_slice(), [.., Task::Refused(found)] if found.contains(why)), "{tasks:?}");
    let id = member.key.name().to_owned();
    let is_it =
        |leaf: &Leaf| matches!(leaf, Leaf::Fork { governor, why: found, .. } if *governor == id && found.contains(why));
    until_leaf("the fork", fleet.hub.api, is_it).await;
    let again = member.beat(Duration::ZERO).await.unwrap();
    assert!(matches!(again.as_slice(), [.., Task::Refused(_)]), "{again:?}");
    assert!(fleet.hub.api.members().await.unwrap().members[0].trouble.contains(why));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cloned_process_is_found_when_the_second_of_both_beats() {
    let fleet = fleet!();
    let mut member = fleet.member("first").await;
    let (number, copy) = member.next_beat(Duration::ZERO);
    member.beat(Duration::ZERO).await.unwrap();
    let late = post::<rulekeep_fleet::wire::Answer>(fleet.hub.address(), &member.key, "/fleet/v1/beat", &copy).await;
    assert!(refusal(late, 503).contains("a later beat"), "it may be a beat whose sender has given it up");
    let copy = Beat { number: number + 2, ..copy };
    let answer: rulekeep_fleet::wire::Answer =
        post(fleet.hub.address(), &member.key, "/fleet/v1/beat", &copy).await.unwrap();
    assert!(answer.refused.is_none(), "it may be the same process, whose last answer was lost");
    // Its next beat has the number of the copy's; the one after it is found.
    member.next_beat(Duration::ZERO);
    is_refused(&fleet, &mut member, "cloned").await;
    let copy = Beat { nonce: Some(answer.nonce), number: number + 100, ..copy };
    let answer: rulekeep_fleet::wire::Answer =
        post(fleet.hub.address(), &member.key, "/fleet/v1/beat", &copy).await.unwrap();
    assert!(answer.permit.is_none() && answer.refused.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_no_clone() {
    let fleet = fleet!();
    let mut member = fleet.member("first").await;
    for _ in 0..3 {
        for _ in 0..3 {
            let (_, lost) = member.next_beat(Duration::ZERO);
            let answer: rulekeep_fleet::wire::Answer =
                post(fleet.hub.address(), &member.key, "/fleet/v1/beat", &lost).await.unwrap();
            assert!(answer.permit.is_some(), "{answer:?}");
        }
        member.beat(Duration::ZERO).await.unwrap();
        assert!(member.answer.permit.is_some(), "{:?}", member.answer);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_anchored_in_a_lost_answer_is_no_fork() {
    let fleet = fleet!();
    let mut member = Member::new("first", &fleet.organisation, &[fleet.hub.address()]);
    member.enrol(&fleet.organisation.invitation(&[], 1)).await.unwrap();
    member.anchors = true;
    for grown in ["before the first permit", "later"] {
        let (_, lost) = member.next_beat(Duration::ZERO);
        let _: rulekeep_fleet::wire::Answer =
            post(fleet.hub.address(), &member.key, "/fleet/v1/beat", &lost).await.unwrap();
        member.log.grow(4, grown);
        member.beat(Duration::ZERO).await.unwrap();
        assert!(member.answer.show && member.answer.refused.is_none() && member.answer.permit.is_none());
        member.beat(Duration::ZERO).await.unwrap();
        assert!(member.answer.permit.is_some(), "{:?}", member.answer);
        assert_eq!(member.answer.anchored, member.log.size());
        member.log.grow(2, grown);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_returned_earlier_run_is_told_from_a_delayed_beat() {
    let fleet = fleet!();
    let mut member = fleet.member("first").await;
    let (_, earlier) = member.next_beat(Duration::ZERO);
    member.restart();
    member.admit().await;
    for at in [earlier.at, SystemClock.now()] {
        let late = Beat { at, ..earlier.clone() };
        let answer: rulekeep_fleet::wire::Answer =
            post(fleet.hub.address(), &member.key, "/fleet/v1/beat", &late).await.unwrap();
        assert!(!answer.is_taken && answer.permit.is_none() && answer.refused.is_none(), "{answer:?}");
        member.beat(Duration::ZERO).await.unwrap();
        assert!(member.answer.permit.is_some());
        let nonce = Some(answer.nonce);
        if at != earlier.at {
            let back = Beat { nonce, number: earlier.number + 1, ..earlier.clone() };
            let answer: rulekeep_fleet::wire::Answer =
                post(fleet.hub.address(), &member.key, "/fleet/v1/beat", &back).await.unwrap();
            assert!(answer.refused.is_some_and(|why| why.contains("an earlier run came back")));
        }
    }
    is_refused(&fleet, &mut member, "an earlier run came back").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_folder_is_found_by_its_shorter_log() {
    let fleet = fleet!();
    let mut member = fleet.member("first").await;
    let mut restored = member.copied();
    member.log.grow(5, "later");
    member.anchors = true;
    member.beat(Duration::ZERO).await.unwrap();
    restored.restart();
    restored.beat(Duration::ZERO).await.unwrap();
    assert!(restored.answer.permit.is_none() && restored.answer.show);
    is_refused(&fleet, &mut restored, "an earlier copy was restored").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forked_log_is_found_at_the_same_size_and_at_a_larger_one() {
    for more in [5, 9] {
        let fleet = fleet!();
        let mut member = fleet.member("first").await;
        let mut fork = member.copied();
        member.log.grow(5, "one");
        member.anchors = true;
        member.beat(Duration::ZERO).await.unwrap();
        fork.restart();
        fork.log.grow(more, "other");
        fork.beat(Duration::ZERO).await.unwrap();
        is_refused(&fleet, &mut fork, "forked").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_governor_takes_part_again_once_two_operators_readmit_it() {
    let mut fleet = fleet!();
    let mut member = fleet.member("first").await;
    let mut restored = member.copied();
    member.log.grow(5, "later");
    member.anchors = true;
    member.beat(Duration::ZERO).await.unwrap();
    restored.restart();
    restored.beat(Duration::ZERO).await.unwrap();
    is_refused(&fleet, &mut restored, "an earlier copy was restored").await;
    let readmit = Command::Readmit { governor: "first".to_owned() };
    refusal(fleet.hub.api.give(&fleet.organisation.sign(readmit.clone(), 1)).await, 409);
    fleet.give(readmit, 2).await;
    restored.restart();
    restored.admit().await;
    assert_eq!(restored.answer.anchored, restored.log.size());
    restored.log.grow(1, "goes on");
    restored.anchors = true;
    restored.beat(Duration::ZERO).await.unwrap();
    assert!(restored.answer.permit.is_some());
    // The log from before is not the one that was readmitted.
    is_refused(&fleet, &mut member, "forked").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn copied_records_are_proven_found_and_handed_to_strangers() {
    let Some(database) = Database::new().await else { return };
    let witness = RunningWitness::start().await;
    let hub = RunningHub::start(&HubOptions::new(&database.url).witness(&witness.key, &witness.url)).await;
    let organisation = support::found(hub.api, 30).await;
    let mut member = Member::new("first", &organisation, &[hub.address()]);
    member.log = support::governor::Log::new(member.key.clone());
    let template = real_record();
    member.log.record(&template, 300, |n, record| {
        record.entity_id = format!("agent-{}", n % 3).parse().unwrap();
        record.decision = if n % 2 == 0 { Decision::Deny } else { Decision::Allow };
        record.risk_level = if n % 5 == 0 { RiskLevel::High } else { RiskLevel::Low };
        record.timestamp = Timestamp::from_millis(1_000 + i64::try_from(n).unwrap());
    });
    member.enrol(&organisation.invitation(&[], 1)).await.unwrap();
    member.admit().await;
    assert_eq!(member.answer.anchored, 300);

    let mut copies = member.log.copies(0..100, 300);
    assert_eq!(member.copy(copies.clone(), 100).await.unwrap().copied, 100);
    assert_eq!(member.copy(copies.clone(), 100).await.unwrap().copied, 100, "the first answer may have been lost");
    let wrong = copies[7].path.clone();
    copies[8].path = wrong;
    assert!(refusal(member.copy(copies.clone(), 100).await, 400).contains("not"));
    let mut changed = member.log.copies(100..101, 300);
    let text = changed[0].record.get().replace("agent-1", "agent-2");
    changed[0].record = serde_json::value::RawValue::from_string(text).unwrap();
    refusal(member.copy(changed, 101).await, 400);
    assert!(refusal(member.copy(member.log.copies(0..1, 200), 301).await, 400).contains("300 entries"));
    member.copy(member.log.copies(100..300, 300), 300).await.unwrap();

    let count = async |query: &str| hub.api.find(query).await.unwrap().len();
    assert_eq!(count("limit=1000").await, 300);
    assert_eq!(count("").await, 100);
    assert_eq!(count("limit=1000&agent=agent-1").await, 100);
    assert_eq!(count("limit=1000&decision=DENY").await, 150);
    assert_eq!(count("limit=1000&decision=DENY&risk=HIGH").await, 30);
    assert_eq!(count("limit=1000&since=1250&until=1259").await, 10);
    assert_eq!(count("limit=1000&governor=second").await, 0);
    assert_eq!(hub.api.get("/fleet/v1/records?colour=red").await.unwrap().status, 400);

    let id = member.log.records()[123].id.to_string();
    until("the bundle can be made", async || hub.api.bundle(&id).await.is_ok()).await;
    let bundle = hub.api.bundle(&id).await.unwrap();
    let operators = [organisation.operators[0].verifier()];
    let verify =
        |bundle: &Bundle| bundle.verify(&log_key().verifier(), &operators, std::slice::from_ref(&witness.key), 1);
    let verified = verify(&bundle).unwrap();
    assert_eq!((verified.governor.as_str(), verified.record.to_string()), ("first", id));
    let mut other = bundle.clone();
    other.record["decision"] = "DENY".into();
    assert!(verify(&other).is_err());
    assert_eq!(refusal(hub.api.bundle("proof_0").await, 404), "no record proof_0 is copied");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_members_record_of_one_id_hides_no_bundle() {
    let fleet = fleet!();
    let mut ids = Vec::new();
    for (name, decision) in [("first", Decision::Deny), ("second", Decision::Allow)] {
        let mut member = Member::new(name, &fleet.organisation, &[fleet.hub.address()]);
        let mut record = real_record();
        record.id = ProofId::new(Timestamp::from_millis(1_000), 7, Sequence::new(3));
        record.decision = decision;
        member.log.keep(record);
        member.enrol(&fleet.organisation.invitation(&[], 1)).await.unwrap();
        member.admit().await;
        member.copy(member.log.copies(0..1, 4), 4).await.unwrap();
        ids.push(member.log.records()[0].id.to_string());
    }
    assert_eq!(ids[0], ids[1]);
    let said = refusal(fleet.hub.api.bundle(&ids[0]).await, 400);
    assert!(said.ends_with("name one of first, second"), "{said}");
    for (name, decision) in [("first", "DENY"), ("second", "ALLOW")] {
        let path = format!("{}?governor={name}", ids[0]);
        until("the bundle can be made", async || fleet.hub.api.bundle(&path).await.is_ok()).await;
        let bundle = fleet.hub.api.bundle(&path).await.unwrap();
        let operators = [fleet.organisation.operators[0].verifier()];
        let verified = bundle.verify(&log_key().verifier(), &operators, &[], 0).unwrap();
        assert_eq!((verified.governor.as_str(), verified.decision.to_string().as_str()), (name, decision));
    }
    assert_eq!(fleet.hub.api.find("").await.unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn served_tiles_have_the_root_of_the_checkpoint() {
    let fleet = fleet!();
    let hubs = [fleet.hub.address()];
    let invitation = fleet.organisation.invitation(&[], 1000);
    for n in 0..300 {
        Member::new(&format!("governor-{n}"), &fleet.organisation, &hubs).enrol(&invitation).await.unwrap();
    }
    let enrolled = |leaves: &[Leaf]| leaves.iter().filter(|leaf| matches!(leaf, Leaf::Enrol { .. })).count();
    until("all are in the log", async || enrolled(&leaves(fleet.hub.api).await) == 300).await;
    let all: Vec<Vec<u8>> = leaves(fleet.hub.api).await.iter().map(|leaf| leaf.to_bytes().unwrap()).collect();
    let none = std::collections::HashMap::new();
    let appended = rulekeep_fleet::log::append(&rulekeep_fleet::log::Head::EMPTY, &none, &all).unwrap();
    for (TileId { level, index }, hashes) in appended.tiles {
        let width = u32::try_from(hashes.len() / 32).unwrap();
        let path = format!("/{}", Resource::Hashes(TileId { level, index }, width));
        let answer = fleet.hub.api.call(&request("GET", &path, "", "")).await.unwrap();
        assert_eq!((answer.status, answer.body), (200, hashes), "{path}");
    }
    for path in ["/tile/0/007", "/tile/9/000", "/tile/0/xyz"] {
        assert_ne!(fleet.hub.api.get(path).await.unwrap().status, 200, "{path}");
    }
}
