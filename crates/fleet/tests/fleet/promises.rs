//! Promises that once did not hold.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rulekeep::checkpoint::CheckpointKey;
use rulekeep::proof::Digest;
use rulekeep::system::{Clock as _, SystemClock, Timestamp};
use rulekeep_fleet::budget::{Return, Share, Want};
use rulekeep_fleet::log::Leaf;
use rulekeep_fleet::order::{Chain, Command, Mode, Order, Policies, Stage};
use rulekeep_fleet::permit::Moment;
use rulekeep_fleet::session::{Session, Task};
use rulekeep_fleet::wire::{Answer, Beat, Reserve, Reserved, Term};

use crate::support::cluster::{Cluster, Database, sql};
use crate::support::hub::{HubOptions, RunningHub, post};
use crate::support::member::{Member, now};
use crate::support::organisation::{Organisation, limited, stop};
use crate::support::{Fleet, found, give, until};

macro_rules! fleet {
    () => {
        match Fleet::start().await {
            Some(fleet) => fleet,
            None => return,
        }
    };
}

const COUNTER: &str = "pay/sum of amount/organisation";
const ONE: i64 = 1_000_000;

fn want(number: u64, share: Share, amount: i64) -> Want {
    Want { counter: COUNTER.to_owned(), number, share, amount, rate: 0 }
}

async fn reserve(member: &Member, wants: Vec<Want>) -> Result<Reserved, (u16, String)> {
    let request = Reserve { governor: member.key.name().to_owned(), boot: member.boot.clone(), wants };
    post(member.hubs[0], &member.key, "/fleet/v1/reserve", &request).await
}

async fn send(member: &Member, beat: &Beat) -> Result<Answer, (u16, String)> {
    post(member.hubs[0], &member.key, "/fleet/v1/beat", beat).await
}

// 2: a snapshot on the same timeline. No leaf is lost.
#[tokio::test(flavor = "multi_thread")]
async fn after_a_snapshot_healthy_governors_are_not_called_clones() {
    let Some(cluster) = Cluster::start(&["--fast"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let options = HubOptions::new(&cluster.url()).publish(folder.path());
    let hub = RunningHub::start(&options).await;
    let organisation = found(hub.api, 3).await;
    let mut member = Member::admitted("first", &[], &organisation, &[hub.address()]).await;
    let before = crate::support::leaves(hub.api).await.len();
    until("all is published", async || crate::support::leaves(hub.api).await.len() > before.max(3)).await;
    cluster.run("backup", &[]);
    for _ in 0..3 {
        member.beat(Duration::ZERO).await.unwrap();
    }
    cluster.run("restore", &["--snapshot"]);
    // The same process of the same healthy governor, at the same hub.
    for _ in 0..40 {
        let _ = member.beat(Duration::ZERO).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(hub.api.members().await.unwrap().members[0].trouble, "", "{:?}", member.answer);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_snapshot_a_limit_is_not_overshot() {
    let Some(cluster) = Cluster::start(&["--fast"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let options = HubOptions::new(&cluster.url()).publish(folder.path());
    let hub = RunningHub::start(&options).await;
    let mut organisation = found(hub.api, 30).await;
    give(&mut organisation, hub.api, limited("pay", "reserve", 10, "1d"), 2).await;
    let mut member = Member::admitted("first", &[], &organisation, &[hub.address()]).await;
    let is_settled = "SELECT (count(*) = 0 AND (SELECT size = published_size FROM head))::text FROM pending";
    until("all is published", async || sql(&cluster.url(), is_settled).await.unwrap() == "true").await;
    cluster.run("backup", &[]);
    assert_eq!(reserve(&member, vec![want(1, Share::Reserve, 10 * ONE)]).await.unwrap().grants.len(), 1);
    drop(hub);
    cluster.run("restore", &["--snapshot"]);
    let hub = RunningHub::start(&options).await;
    member.go_to(&[hub.address()]);
    // Another process of the same governor, which knows nothing of the grant.
    member.restart();
    let mut granted = 10;
    for n in 1..60 {
        let _ = member.beat(Duration::ZERO).await;
        if let Ok(answer) = reserve(&member, vec![want(n, Share::Reserve, 10 * ONE)]).await {
            granted += 10 * answer.grants.len();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(granted <= 10, "{granted} of 10 were granted within a day");
}

// 13: a logical copy, restored in the same server, with a hub started anew.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_hub_gives_no_permit_before_it_has_compared_the_log() {
    let Some(cluster) = Cluster::start(&["--fast"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let options = HubOptions::new(&cluster.url()).publish(folder.path());
    let hub = RunningHub::start(&options).await;
    let mut organisation = found(hub.api, 3).await;
    let mut member = Member::admitted("first", &[], &organisation, &[hub.address()]).await;
    let is_settled = "SELECT (count(*) = 0 AND (SELECT size = published_size FROM head))::text FROM pending";
    until("all is published", async || sql(&cluster.url(), is_settled).await.unwrap() == "true").await;
    let server = cluster.url().replace("/fleet", "/postgres");
    // As pg_dump would.
    drop(hub);
    tokio::time::sleep(Duration::from_millis(500)).await;
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'fleet'";
    sql(&server, cut).await;
    sql(&server, "CREATE DATABASE copy TEMPLATE fleet").await;
    let hub = RunningHub::start(&options).await;
    until("it takes orders", async || hub.api.orders().await.is_ok()).await;
    let given = give(&mut organisation, hub.api, stop(&[]), 1).await;
    until("it is published", async || hub.api.standing(given.seq).await.unwrap().leaf.is_some()).await;
    drop(hub);
    tokio::time::sleep(Duration::from_millis(500)).await;
    sql(&server, cut).await;
    sql(&server, "DROP DATABASE fleet").await;
    sql(&server, "ALTER DATABASE copy RENAME TO fleet").await;
    let hub = RunningHub::start(&options).await;
    // It has never heard of the kill switch.
    member.go_to(&[hub.address()]);
    let mut allowed = Vec::new();
    for _ in 0..60 {
        if let Ok(tasks) = member.beat(Duration::ZERO).await
            && tasks.iter().any(|task| matches!(task, Task::Permit(_)))
            && member.session.chain().stops().is_empty()
        {
            allowed.push(member.session.chain().seq());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(allowed.is_empty(), "{} permits without order {}", allowed.len(), given.seq);
}

fn moment(seconds: u64) -> Moment {
    Moment { boot: Duration::from_secs(seconds), wall_ms: i64::try_from(seconds).unwrap() * 1000 }
}

fn session(organisation: &Organisation, least: (u64, Digest)) -> Session {
    Session::new(
        "g",
        "b",
        vec!["payments".to_owned()],
        Chain::new(Some(organisation.trust_anchor())),
        least,
        BTreeSet::new(),
        Duration::ZERO,
    )
}

const TERM: Term = Term { term_ms: 3_000, offline_ms: 0 };

fn answer(orders: &[rulekeep_fleet::order::SignedOrder]) -> Answer {
    Answer { nonce: "n".to_owned(), permit: Some(TERM), orders: orders.to_vec(), ..Answer::default() }
}

fn permits(tasks: &[Task]) -> bool {
    tasks.iter().any(|task| matches!(task, Task::Permit(_)))
}

#[test]
fn another_order_with_the_last_number_is_always_refused() {
    let mut organisation = Organisation::founded(3);
    // Two orders with number 2 were signed; the governor has followed the kill switch.
    let (stopped, other) = (organisation.sign(stop(&[]), 1), organisation.sign(stop(&["nobody"]), 1));
    let founding = organisation.orders[0].clone();
    organisation.keep(&stopped);
    let mut session = session(&organisation, (2, stopped.digest()));
    let (number, _) = session.beat(moment(1), Duration::ZERO);
    assert!(!permits(&session.answered(number, &answer(&[founding, other]), SystemClock.now())));
    let (number, beat) = session.beat(moment(2), Duration::ZERO);
    let tasks = session.answered(number, &answer(&[]), SystemClock.now());
    assert!(!permits(&tasks), "at order {}: {tasks:?}", beat.order);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_governor_with_other_orders_than_the_hub_gets_no_permit() {
    let mut fleet = fleet!();
    let mut member = fleet.member("first").await;
    let stop_nobody = fleet.organisation.sign(stop(&["nobody"]), 1);
    // The database was restored without order 2, by a way that lost the published files too, and operators gave another.
    fleet.give(stop(&[]), 1).await;
    let (number, _) = member.session.beat(moment(1), Duration::ZERO);
    let told = Answer { nonce: String::new(), ..answer(&[stop_nobody]) };
    let tasks = member.session.answered(number, &told, SystemClock.now());
    for task in &tasks {
        member.session.done(task, Ok(()), now());
    }
    let tasks = member.beat(Duration::ZERO).await.unwrap();
    let standing = fleet.hub.api.standing(2).await.unwrap();
    assert!(!permits(&tasks), "a permit without the kill switch, and it counts as acknowledged: {standing:?}");
}

#[test]
fn a_stage_does_not_go_back_with_the_clock() {
    let mut organisation = Organisation::founded(3);
    let document =
        "name = \"p\"\n[[rule]]\nid = \"a\"\neffect = \"deny\"\nmatch.capabilities = [\"payment:transfer\"]\n";
    let plan = [1, 100].map(|percent| Stage { mode: Mode::Enforce, percent, soak_seconds: 3600 }).to_vec();
    let policies = |plan| Command::Policies(Policies { groups: Vec::new(), document: document.to_owned(), plan });
    for command in [policies(Vec::new()), policies(plan)] {
        let order = organisation.sign(command, 2);
        organisation.keep(&order);
    }
    let mut session = session(&organisation, (0, Digest::ZERO));
    let later = |seconds: i64| Timestamp::from_millis(SystemClock.now().as_millis() + seconds * 1000);
    let answer = Answer { stages: BTreeMap::from([(3, 1)]), ..answer(&organisation.orders) };
    let (number, _) = session.beat(moment(1), Duration::ZERO);
    for task in session.answered(number, &answer, later(4000)) {
        session.done(&task, Ok(()), moment(1));
    }
    assert_eq!(session.policies().0, Some(3));
    let (number, _) = session.beat(moment(2), Duration::ZERO);
    for task in session.answered(number, &answer, later(10)) {
        session.done(&task, Ok(()), moment(1));
    }
    assert_eq!(session.policies().0, Some(3), "the clock was set back by an hour");
}

#[test]
fn a_hub_gives_no_longer_permit_than_the_operators_have_signed() {
    let organisation = Organisation::founded(3);
    let mut session = session(&organisation, (0, Digest::ZERO));
    let (number, _) = session.beat(moment(1), Duration::ZERO);
    let forged = Term { term_ms: 1_000_000_000, offline_ms: 0 };
    let tasks =
        session.answered(number, &Answer { permit: Some(forged), ..answer(&organisation.orders) }, SystemClock.now());
    let Some(Task::Permit(deadlines)) = tasks.last() else { panic!("{tasks:?}") };
    assert!(deadlines.until <= Duration::from_secs(4), "a permit until {:?}", deadlines.until);
}

#[test]
fn a_kill_switch_binds_whatever_groups_a_hub_names() {
    let mut organisation = Organisation::founded(3);
    let order = organisation.sign(stop(&["payments"]), 1);
    organisation.keep(&order);
    let mut session = session(&organisation, (0, Digest::ZERO));
    let mut naming = |groups: &[&str], orders| {
        let mut named = serde_json::to_value(answer(orders)).unwrap();
        named["groups"] = groups.into();
        let (number, _) = session.beat(moment(1), Duration::ZERO);
        let tasks = session.answered(number, &serde_json::from_value(named).unwrap(), SystemClock.now());
        for task in &tasks {
            session.done(task, Ok(()), moment(1));
        }
        tasks
    };
    let tasks = naming(&["other"], &organisation.orders);
    assert!(matches!(tasks[0], Task::Stop(2, _)), "{tasks:?}");
    let tasks = naming(&["another"], &[]);
    assert!(!tasks.iter().any(|task| matches!(task, Task::Lift(_))), "{tasks:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_decisions_asking_for_one_lease_are_both_answered() {
    let mut fleet = fleet!();
    fleet.give(limited("pay", "lease", 1000, "1d"), 2).await;
    let (member, other) = (fleet.member("first").await, fleet.member("second").await);
    let mut failed = Vec::new();
    for n in 1..20 {
        let wants = || vec![want(n, Share::Lease, ONE)];
        let (a, b, c) = tokio::join!(reserve(&member, wants()), reserve(&member, wants()), reserve(&other, wants()));
        failed.extend([a, b, c].into_iter().filter_map(Result::err));
    }
    assert!(failed.is_empty(), "{} of 57: {:?}", failed.len(), failed[0]);
    let taken = sql(&fleet.database.url, "SELECT taken FROM budgets").await.unwrap();
    let counted = sql(&fleet.database.url, "SELECT sum(counted) FROM grants").await.unwrap();
    assert_eq!(taken, counted);
}

#[tokio::test(flavor = "multi_thread")]
async fn huge_amounts_of_one_governor_leave_other_reservations() {
    let mut fleet = fleet!();
    fleet.give(limited("pay", "reserve", 1000, "1d"), 2).await;
    let (bad, good) = (fleet.member("bad").await, fleet.member("good").await);
    let huge = vec![want(1, Share::Reserve, i64::MAX), want(2, Share::Reserve, i64::MAX)];
    let _ = reserve(&bad, huge).await;
    let answer = reserve(&good, vec![want(1, Share::Reserve, ONE)]).await;
    assert_eq!(answer.map(|answer| answer.grants.len()), Ok(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn odd_requests_of_one_governor_fail_nobody_elses() {
    let mut fleet = fleet!();
    fleet.give(limited("pay", "reserve", 1000, "1d"), 2).await;
    let (bad, good) = (fleet.member("bad").await, fleet.member("good").await);
    let mut failed = Vec::new();
    for n in 1..10 {
        let (_, answer) = tokio::join!(
            reserve(&bad, vec![want(u64::MAX - n, Share::Reserve, 1)]),
            reserve(&good, vec![want(n, Share::Reserve, 1)])
        );
        failed.extend(answer.err());
    }
    assert!(failed.is_empty(), "{} of 9: {:?}", failed.len(), failed[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_governor_with_odd_beats_keeps_nobody_else_from_permits() {
    let fleet = fleet!();
    let (mut bad, mut good) = (fleet.member("bad").await, fleet.member("good").await);
    let (_, beat) = bad.next_beat(Duration::ZERO);
    let returned = |counter: &str| vec![Return { counter: counter.to_owned(), number: 1, total: 1 }];
    let anchor = |note: String| Some(rulekeep_fleet::wire::Anchor { note, proof: None, continues: None });
    for (what, odd) in [
        ("a boot id with a NUL", Beat { boot: "\0".to_owned(), nonce: None, ..beat.clone() }),
        ("a counter with a NUL", Beat { returned: returned("\0"), ..beat.clone() }),
        ("a note of 100 KB", Beat { anchor: anchor("x".repeat(100_000)), ..beat.clone() }),
        ("a note of control characters", Beat { anchor: anchor("\u{1}".repeat(8000)), ..beat.clone() }),
        ("a counter without end", Beat { returned: returned(&"x".repeat(12_000)), ..beat.clone() }),
    ] {
        // Whoever falls into one batch with it.
        let mut failed = 0;
        let (stream, address) = (bad.key.clone(), bad.hubs[0]);
        let storm = tokio::spawn(async move {
            for n in 0..40 {
                let odd = Beat { number: 1000 + n, ..odd.clone() };
                let _ = post::<Answer>(address, &stream, "/fleet/v1/beat", &odd).await;
            }
        });
        for _ in 0..20 {
            failed += usize::from(good.beat(Duration::ZERO).await.is_err());
        }
        storm.abort();
        assert_eq!(failed, 0, "{what}: beats of another governor failed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_with_a_nul_does_not_end_the_standing_of_orders() {
    let mut fleet = fleet!();
    let mut bad = fleet.member("bad").await;
    let (_, beat) = bad.next_beat(Duration::ZERO);
    for (number, text) in (beat.number..).zip(["\0", "x\\u0000y", "\\", "\u{fffd}\"}"]) {
        let refused = BTreeMap::from([(1, text.to_owned())]);
        let answer = send(&bad, &Beat { refused, number, ..beat.clone() }).await;
        assert!(answer.is_ok_and(|answer| answer.is_taken), "{text:?}");
        fleet.give(stop(&[]), 1).await;
        assert_eq!(fleet.hub.api.standing(1).await.unwrap().refused, ["bad"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_governor_that_starts_gets_many_large_orders() {
    let mut fleet = fleet!();
    // 12 documents of 400 KB.
    for n in 0..12 {
        let document = format!("name = \"p{n}\"\n{}", format!("# {}\n", "x".repeat(1000)).repeat(400));
        let policies = Command::Policies(Policies { groups: Vec::new(), document, plan: Vec::new() });
        fleet.give(policies, 2).await;
    }
    let governor = rulekeep::Governor::builder()
        .durability(rulekeep::Durability::Buffered)
        .require_permit()
        .open_in_memory()
        .unwrap();
    let (address, anchor) = (fleet.hub.address(), fleet.organisation.trust_anchor().to_string());
    let invitation = fleet.organisation.invitation(&["payments"], 5);
    let folder = tempfile::tempdir().unwrap();
    let joined = tokio::task::block_in_place(|| {
        rulekeep_fleet::Member::builder(&format!("http://{address}"), &anchor, folder.path().join("key"))
            .enrol_with(invitation)
            .patience(Duration::from_secs(20))
            .join(&governor)
    });
    assert!(joined.is_ok(), "{joined:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_longer_window_counts_what_was_granted_before() {
    let mut fleet = fleet!();
    fleet.give(limited("pay", "reserve", 10, "1s"), 2).await;
    let mut member = fleet.member("first").await;
    assert_eq!(reserve(&member, vec![want(1, Share::Reserve, 10 * ONE)]).await.unwrap().grants.len(), 1);
    fleet.give(limited("pay", "reserve", 10, "1d"), 2).await;
    // A reservation counts for 10 s and its window.
    tokio::time::sleep(Duration::from_secs(12)).await;
    member.beat(Duration::ZERO).await.unwrap();
    let answer = reserve(&member, vec![want(2, Share::Reserve, 10 * ONE)]).await.unwrap();
    assert_eq!(answer.grants.len(), 0, "20 of 10 within 12 seconds, and the window is a day");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_beat_of_the_run_before_the_last_is_no_clone() {
    for is_first in [false, true] {
        let fleet = fleet!();
        let mut member = Member::new("first", &fleet.organisation, &[fleet.hub.address()]);
        member.enrol(&fleet.organisation.invitation(&[], 1)).await.unwrap();
        if !is_first {
            member.admit().await;
        }
        // It lies in a hub that hangs; the governor is started twice meanwhile, with another hub.
        let (_, late) = member.next_beat(Duration::ZERO);
        for _ in 0..2 {
            member.restart();
            member.admit().await;
        }
        let _ = send(&member, &late).await;
        member.beat(Duration::ZERO).await.unwrap();
        member.beat(Duration::ZERO).await.unwrap();
        let trouble = fleet.hub.api.members().await.unwrap().members[0].trouble.clone();
        assert_eq!(trouble, "", "{:?}", member.answer);
    }
}

#[test]
fn settings_show_no_secrets() {
    let key = crate::support::organisation::log_key();
    let settings = rulekeep_fleet::hub::Settings {
        database: "postgres://fleet:sesame@db/fleet".to_owned(),
        database_ca: None,
        key,
        witnesses: Vec::new(),
        publish: None,
        read_token: Some("opensesame".to_owned()),
    };
    assert!(!format!("{settings:?}").contains("sesame"), "{settings:?}");
    let builder = rulekeep_fleet::Member::builder("", "", "").enrol_with("sesame".to_owned());
    assert!(!format!("{builder:?}").contains("sesame"), "{builder:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_operators_are_named_and_junk_is_not_kept() {
    let mut fleet = fleet!();
    fleet.member("first").await;
    let mut order = fleet.organisation.sign(Command::Retire { governor: "first".to_owned() }, 1);
    order.signatures.insert("carol".to_owned(), "x".repeat(1000));
    fleet.hub.api.give(&order).await.unwrap();
    let kept = &fleet.hub.api.orders().await.unwrap()[1];
    let named = |leaf: &Leaf| matches!(leaf, Leaf::Retire { by, .. } if by.contains("carol"));
    until("it is a leaf", async || {
        crate::support::leaves(fleet.hub.api).await.iter().any(|leaf| matches!(leaf, Leaf::Retire { .. }))
    })
    .await;
    let leaves = crate::support::leaves(fleet.hub.api).await;
    assert!(!leaves.iter().any(named), "the log says that carol signed: {leaves:?}");
    assert!(!kept.signatures.contains_key("carol"));
    fleet.organisation.keep(&order);
}

#[tokio::test(flavor = "multi_thread")]
async fn records_after_a_readmission_are_copied_and_old_ones_provable() {
    let Some(database) = Database::new().await else { return };
    let hub = RunningHub::start(&HubOptions::new(&database.url)).await;
    let mut organisation = found(hub.api, 30).await;
    let mut member = Member::new("first", &organisation, &[hub.address()]);
    let template = crate::support::governor::real_record();
    let log = |note: &str| {
        let mut log = crate::support::governor::Log::new(member.key.clone());
        log.record(&template, 20, |n, record| record.reasoning = format!("{note} {n}"));
        log
    };
    let (first, second) = (log("first"), log("second"));
    member.log = first;
    member.enrol(&organisation.invitation(&[], 1)).await.unwrap();
    member.admit().await;
    member.copy(member.log.copies(0..20, 20), 20).await.unwrap();
    let old = member.log.records()[7].id.to_string();
    until("the bundle can be made", async || hub.api.bundle(&old).await.is_ok()).await;
    let key = crate::support::organisation::log_key().verifier();
    let operators = organisation.operators.iter().map(CheckpointKey::verifier).collect::<Vec<_>>();
    hub.api.bundle(&old).await.unwrap().verify(&key, &operators, &[], 0).unwrap();
    // The folder is restored and goes on differently.
    member.log = second;
    member.restart();
    let _ = member.beat(Duration::ZERO).await;
    let _ = member.beat(Duration::ZERO).await;
    give(&mut organisation, hub.api, Command::Readmit { governor: "first".to_owned() }, 2).await;
    member.restart();
    member.admit().await;
    until("its anchor is published", async || {
        let anchors = |leaf: &Leaf| matches!(leaf, Leaf::Anchor { .. });
        crate::support::leaves(hub.api).await.into_iter().filter(anchors).count() == 2
    })
    .await;
    let again = hub.api.bundle(&old).await.unwrap().verify(&key, &operators, &[], 0);
    assert!(again.is_ok(), "the earlier log stays provable by its anchors: {again:?}");
    assert_eq!(member.answer.copied, 0, "nothing of the new log is copied");
    member.copy(member.log.copies(0..20, 20), 20).await.unwrap();
    let new = member.log.records()[7].id.to_string();
    hub.api.bundle(&new).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn one_key_under_two_names_is_not_two_operators() {
    let organisation = Organisation::founded(3);
    let ann = crate::support::organisation::key("ann", 1);
    let twin = crate::support::organisation::key("ann2", 1);
    let mut founding = organisation.itself();
    founding.operators = vec![ann.verifier().to_string(), twin.verifier().to_string()];
    let order = Order::next(&Chain::new(None), SystemClock.now(), Command::Organisation(founding));
    let signed = order.sign(&[ann, twin]).unwrap();
    assert!(Chain::new(None).add(&signed).is_err());
}

#[test]
fn a_failed_kill_switch_is_tried_again_an_untaken_one_is_none() {
    let mut organisation = Organisation::founded(3);
    let note = "wrong payees ".repeat(400);
    let order = organisation
        .sign(Command::Stop { scope: rulekeep::kill_switch::KillSwitchScope::All, groups: Vec::new(), note }, 1);
    assert!(organisation.chain.clone().add(&order).is_err());
    let order = organisation.sign(stop(&[]), 1);
    organisation.keep(&order);
    let mut session = session(&organisation, (0, Digest::ZERO));
    for round in 0..2 {
        let (number, _) = session.beat(moment(1), Duration::ZERO);
        let tasks = session.answered(number, &answer(&organisation.orders), SystemClock.now());
        assert!(matches!(tasks[0], Task::Stop(2, _)), "round {round}: {tasks:?}");
        session.done(&tasks[0], Err("the disk is full".to_owned()), moment(1));
    }
}

#[test]
fn a_failed_document_is_tried_again_and_ends_the_permit_in_time() {
    let mut organisation = Organisation::founded(10);
    organisation.keep(&organisation.sign(limited("pay", "reserve", 10, "1d"), 2));
    let mut session = session(&organisation, (0, Digest::ZERO));
    let permit = Some(Term { term_ms: 10_000, offline_ms: 0 });
    let mut step = |second, result: Result<(), String>| {
        let (number, beat) = session.beat(moment(second), Duration::ZERO);
        let told = Answer { permit, ..answer(&organisation.orders) };
        let tasks = session.answered(number, &told, SystemClock.now());
        let enforce = tasks.iter().find(|task| matches!(task, Task::Enforce(2))).cloned();
        if let Some(task) = &enforce {
            session.done(task, result, moment(second));
        }
        (enforce.is_some(), beat.refused.contains_key(&2), session.withheld(moment(second)))
    };
    let failed = || Err("the disk is full".to_owned());
    assert_eq!(step(1, failed()), (true, false, None));
    assert_eq!(step(5, failed()), (true, true, None), "it is tried again, and the hub hears of it");
    let (_, _, withheld) = step(11, failed());
    assert!(withheld.is_some_and(|why| why.contains("order 2 is not in force") && why.contains("the disk is full")));
    assert_eq!(step(12, Ok(())), (true, true, None));
    assert_eq!(step(13, Ok(())), (false, false, None), "it is in force");
}

#[test]
fn a_lift_that_fails_is_tried_again() {
    let mut organisation = Organisation::founded(10);
    organisation.keep(&organisation.sign(stop(&[]), 1));
    organisation.keep(&organisation.sign(Command::Lift { order: 2, note: String::new() }, 2));
    let chain = Chain::new(Some(organisation.trust_anchor()));
    let stops = BTreeSet::from([2]);
    let mut session = Session::new("g", "b", Vec::new(), chain, (0, Digest::ZERO), stops, Duration::ZERO);
    for (second, result) in [(1, Err("the disk is full".to_owned())), (2, Ok(()))] {
        let (number, _) = session.beat(moment(second), Duration::ZERO);
        let tasks = session.answered(number, &answer(&organisation.orders), SystemClock.now());
        assert_eq!(tasks[0], Task::Lift(2), "at {second} s");
        session.done(&tasks[0], result, moment(second));
    }
    let (number, _) = session.beat(moment(3), Duration::ZERO);
    let tasks = session.answered(number, &answer(&[]), SystemClock.now());
    assert!(!tasks.iter().any(|task| matches!(task, Task::Lift(_))), "{tasks:?}");
}
