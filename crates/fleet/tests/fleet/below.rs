//! Attacks from below: hostile members, repeated messages, restarted databases, stepped clocks, hubs that hang.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rulekeep::system::{Clock as _, SystemClock};
use rulekeep::{Agent, Decision, Durability, Governor, Intent, RiskLevel, Tier};
use rulekeep_fleet::budget::{Grant, Report, Share, Want};
use rulekeep_fleet::log::Leaf;
use rulekeep_fleet::order::Command;
use rulekeep_fleet::wire::{Answer, Beat, Reserve, Reserved};

use crate::support::cluster::{Cluster, Database, sql};
use crate::support::governor::real_record;
use crate::support::hub::{HubOptions, RunningHub, post};
use crate::support::member::Member;
use crate::support::organisation::{Organisation, limited, stop};
use crate::support::proxy::{Link, Proxy};
use crate::support::{Fleet, found, give, leaves, until, until_leaf};

macro_rules! fleet {
    () => {
        match Fleet::start().await {
            Some(fleet) => fleet,
            None => return,
        }
    };
}

/// An organisation on a cluster of its own, whose database can be restarted.
struct Grounded {
    cluster: Cluster,
    hub: RunningHub,
    organisation: Organisation,
}

impl Grounded {
    async fn start(permit_seconds: u64) -> Option<Self> {
        let cluster = Cluster::start(&["--fast"])?;
        let hub = RunningHub::start(&HubOptions::new(&cluster.url())).await;
        let organisation = found(hub.api, permit_seconds).await;
        Some(Self { cluster, hub, organisation })
    }

    async fn member(&self, name: &str) -> Member {
        Member::admitted(name, &["payments"], &self.organisation, &[self.hub.address()]).await
    }

    fn restart(&self) {
        self.cluster.run("stop-node", &["primary"]);
        self.cluster.run("start-node", &["primary"]);
    }
}

async fn send(member: &Member, beat: &Beat) -> Result<Answer, (u16, String)> {
    post(member.hubs[0], &member.key, "/fleet/v1/beat", beat).await
}

/// Beats until it has a permit again.
async fn until_permitted(member: &mut Member) {
    let since = Instant::now();
    loop {
        let is_answered = member.beat(Duration::ZERO).await.is_ok();
        if is_answered && member.answer.permit.is_some() {
            return;
        }
        assert!(since.elapsed() < Duration::from_secs(60), "no permit: {:?}", member.answer);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_a_repeated_beat_bars_nobody() {
    let Some(ground) = Grounded::start(30).await else { return };
    let mut member = ground.member("first").await;
    let mut kept = Vec::new();
    for _ in 0..4 {
        kept.push(member.next_beat(Duration::ZERO).1);
        member.beat(Duration::ZERO).await.unwrap();
    }
    ground.restart();
    for beat in &kept {
        until("the hub answers", async || {
            // 503 for a late beat, as for a hub that has not found its database again.
            send(&member, beat).await.is_ok_and(|answer| answer.permit.is_none())
                || ground.hub.api.members().await.is_ok()
        })
        .await;
    }
    until_permitted(&mut member).await;
    assert_eq!(ground.hub.api.members().await.unwrap().members[0].trouble, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_those_that_have_left_close_no_limits() {
    let Some(mut ground) = Grounded::start(3).await else { return };
    give(&mut ground.organisation, ground.hub.api, limited("pay", "reserve", 10, "30d"), 2).await;
    let (mut stays, mut left, retired) =
        (ground.member("stays").await, ground.member("left").await, ground.member("retired").await);
    let mut enrolled = Member::new("enrolled", &ground.organisation, &[ground.hub.address()]);
    enrolled.enrol(&ground.organisation.invitation(&["payments"], 1)).await.unwrap();
    let (_, goodbye) = left.next_beat(Duration::ZERO);
    let answer = send(&left, &Beat { is_leaving: true, ..goodbye }).await.unwrap();
    assert!(answer.is_taken && answer.permit.is_none());
    let retire = Command::Retire { governor: retired.key.name().to_owned() };
    give(&mut ground.organisation, ground.hub.api, retire, 1).await;
    ground.restart();
    let mut number = 0;
    let since = Instant::now();
    loop {
        until_permitted(&mut stays).await;
        number += 1;
        let answer = reserve(&stays, 1, number).await;
        if answer.is_ok_and(|answer| answer.grants.len() == 1) {
            break;
        }
        assert!(since.elapsed() < Duration::from_secs(60), "the limit stays closed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_governor_that_came_back_closes_limits_of_a_copy() {
    let Some(cluster) = Cluster::start(&["--fast"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let options = HubOptions::new(&cluster.url()).publish(folder.path());
    let hub = RunningHub::start(&options).await;
    let mut organisation = found(hub.api, 3).await;
    give(&mut organisation, hub.api, limited("pay", "reserve", 10, "30d"), 2).await;
    let mut stays = Member::admitted("stays", &[], &organisation, &[hub.address()]).await;
    let mut back = Member::admitted("back", &[], &organisation, &[hub.address()]).await;
    let (_, goodbye) = back.next_beat(Duration::ZERO);
    send(&back, &Beat { is_leaving: true, ..goodbye }).await.unwrap();
    let is_settled = "SELECT (count(*) = 0 AND (SELECT size = published_size FROM head))::text FROM pending";
    let settled = async || sql(&cluster.url(), is_settled).await.unwrap() == "true";
    until("all is published", settled).await;
    cluster.run("backup", &[]);
    // Its log is the anchored one: only its return is new.
    back.restart();
    back.admit().await;
    until("its return is published", settled).await;
    assert_eq!(reserve(&back, 10, 1).await.unwrap().grants.len(), 1);
    drop(hub);
    cluster.run("restore", &["--snapshot"]);
    let hub = RunningHub::start(&options).await;
    stays.go_to(&[hub.address()]);
    until_permitted(&mut stays).await;
    for number in 1..20 {
        stays.beat(Duration::ZERO).await.unwrap();
        assert_eq!(reserve(&stays, 1, number).await.unwrap().grants.len(), 0, "11 of 10");
    }
}

async fn reserve(member: &Member, amount: i64, number: u64) -> Result<Reserved, (u16, String)> {
    let counter = "pay/sum of amount/organisation".to_owned();
    let want = Want { counter, number, share: Share::Reserve, amount: amount * 1_000_000, rate: 0 };
    let request = Reserve { governor: member.key.name().to_owned(), boot: member.boot.clone(), wants: vec![want] };
    post(member.hubs[0], &member.key, "/fleet/v1/reserve", &request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_time_zone_of_sessions_begins_no_epoch() {
    let fleet = fleet!();
    let mut member = fleet.member("first").await;
    let name = fleet.database.url.rsplit('/').next().unwrap().to_owned();
    let epochs = async || sql(&fleet.database.url, "SELECT count(*)::text FROM epochs").await;
    let before = epochs().await;
    let change =
        format!("ALTER DATABASE {name} SET timezone = 'Asia/Tokyo'; ALTER DATABASE {name} SET datestyle = 'German'");
    sql(&fleet.database.url, &change).await;
    let half = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
                AND pid <> pg_backend_pid() AND pid % 2 = 0";
    for _ in 0..5 {
        sql(&fleet.database.url, half).await;
        until_permitted(&mut member).await;
    }
    assert_eq!(epochs().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stepped_clock_of_the_database_ends_no_permit() {
    let Some(database) = Database::new().await else { return };
    let name = database.url.rsplit('/').next().unwrap();
    let stepped = format!(
        "CREATE SCHEMA stepped; CREATE TABLE stepped.step (by interval); INSERT INTO stepped.step VALUES ('0'); \
         CREATE FUNCTION stepped.clock_timestamp() RETURNS timestamptz LANGUAGE sql AS \
         'SELECT pg_catalog.clock_timestamp() + by FROM stepped.step'; \
         ALTER DATABASE {name} SET search_path = stepped, pg_catalog, public"
    );
    sql(&database.url, &stepped).await;
    let hubs = [
        RunningHub::start(&HubOptions::new(&database.url)).await,
        RunningHub::start(&HubOptions::new(&database.url)).await,
    ];
    let mut organisation = found(hubs[0].api, 30).await;
    let _members = [
        Member::admitted("one", &[], &organisation, &[hubs[0].address()]).await,
        Member::admitted("other", &[], &organisation, &[hubs[1].address()]).await,
    ];
    for step in ["2 minutes", "-1 day", "2 days"] {
        sql(&database.url, &format!("UPDATE stepped.step SET by = '{step}'")).await;
        let given = give(&mut organisation, hubs[0].api, stop(&[]), 1).await;
        assert_eq!((given.open, given.ended), (2, 0), "{step}");
        assert_eq!(hubs[1].api.standing(given.seq).await.unwrap().open, 2, "{step}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_older_than_the_last_beat_is_refused() {
    let fleet = fleet!();
    let mut member = fleet.member("first").await;
    let anchored = member.log.size();
    let mut restored = member.copied();
    // No anchor is due, so only beats tell of it.
    member.log.grow(5, "later");
    member.beat(Duration::ZERO).await.unwrap();
    assert_eq!(fleet.hub.api.members().await.unwrap().members[0].anchored, anchored);
    restored.restart();
    for _ in 0..2 {
        restored.beat(Duration::ZERO).await.unwrap();
    }
    assert!(restored.answer.refused.as_ref().is_some_and(|why| why.contains("an earlier copy was restored")));
    until_leaf("the fork", fleet.hub.api, |leaf| matches!(leaf, Leaf::Fork { governor, .. } if governor == "first"))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_continues_the_last_beat_of_the_run_before() {
    let fleet = fleet!();
    let mut member = fleet.member("first").await;
    for grown in 1..4 {
        member.log.grow(grown, "beaten");
        member.beat(Duration::ZERO).await.unwrap();
        member.log.grow(grown, "after the last beat");
        member.restart();
        member.admit().await;
        assert_eq!(member.answer.anchored, member.log.size());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retired_governor_anchors_and_copies_nothing() {
    let mut fleet = fleet!();
    let mut member = fleet.member("first").await;
    fleet.give(Command::Retire { governor: "first".to_owned() }, 1).await;
    member.log.record(&real_record(), 2, |_, _| {});
    member.anchors = true;
    member.beat(Duration::ZERO).await.unwrap();
    assert!(member.answer.refused.as_ref().is_some_and(|why| why.contains("its membership has ended")));
    let (status, why) = member.copy(member.log.copies(0..2, member.log.size()), member.log.size()).await.unwrap_err();
    assert!(status == 403 && why.contains("its membership has ended"), "{status} {why}");
    until_leaf("the end", fleet.hub.api, |leaf| matches!(leaf, Leaf::Retire { .. })).await;
    let anchors = leaves(fleet.hub.api).await;
    let anchors = anchors.iter().filter(|leaf| matches!(leaf, Leaf::Anchor { .. })).count();
    assert_eq!(anchors, 1, "that of before");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_nobody_asked_for_takes_nothing_of_a_limit() {
    let mut fleet = fleet!();
    fleet.give(limited("pay", "reserve", 10, "1d"), 2).await;
    let (mut bad, good) = (fleet.member("bad").await, fleet.member("good").await);
    bad.beat(Duration::ZERO).await.unwrap();
    let (_, beat) = bad.next_beat(Duration::ZERO);
    let epoch = bad.answer.nonce.split('.').next().unwrap().parse().unwrap();
    let made_up = Grant {
        counter: "pay/sum of amount/organisation".to_owned(),
        boot: bad.boot.clone(),
        number: 1,
        share: Share::Charge,
        amount: i64::MAX,
        returned: 0,
        epoch,
        granted: 0,
        ends: i64::MAX,
        counts_until: i64::MAX,
    };
    let report = Some(Report { epoch, boot: bad.boot.clone(), grants: vec![made_up] });
    assert!(send(&bad, &Beat { report, ..beat }).await.unwrap().is_taken);
    assert_eq!(reserve(&good, 10, 1).await.unwrap().grants.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_in_place_of_the_database_bars_nobody() {
    let fleet = fleet!();
    let mut member = fleet.member("first").await;
    let (server, name) = fleet.database.url.rsplit_once('/').unwrap();
    let admin = format!("{server}/postgres");
    let alone = |database: &str| {
        format!(
            "ALTER DATABASE {database} ALLOW_CONNECTIONS false; \
             SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'"
        )
    };
    sql(&admin, &alone(name)).await;
    until("it can be copied", async || {
        sql(&admin, &format!("SELECT count(*)::text FROM pg_stat_activity WHERE datname = '{name}'")).await.unwrap()
            == "0"
    })
    .await;
    sql(&admin, &format!("CREATE DATABASE {name}_copy TEMPLATE {name}")).await;
    sql(&admin, &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true")).await;
    for _ in 0..3 {
        until_permitted(&mut member).await;
    }
    sql(&admin, &alone(name)).await;
    until("it can be renamed", async || {
        sql(&admin, &format!("SELECT count(*)::text FROM pg_stat_activity WHERE datname = '{name}'")).await.unwrap()
            == "0"
    })
    .await;
    sql(&admin, &format!("ALTER DATABASE {name} RENAME TO {name}_old")).await;
    sql(&admin, &format!("ALTER DATABASE {name}_copy RENAME TO {name}")).await;
    for _ in 0..3 {
        until_permitted(&mut member).await;
    }
    assert_eq!(fleet.hub.api.members().await.unwrap().members[0].trouble, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_retired_governor_refused_stops_no_rollout() {
    let mut fleet = fleet!();
    let mut bad = fleet.member("bad").await;
    let refused: BTreeMap<u64, String> = (1..40).map(|order| (order, "no".to_owned())).collect();
    let (_, beat) = bad.next_beat(Duration::ZERO);
    assert!(send(&bad, &Beat { refused, ..beat }).await.unwrap().is_taken);
    assert_eq!(fleet.hub.api.standing(1).await.unwrap().refused, ["bad"]);
    let given = fleet.give(Command::Retire { governor: "bad".to_owned() }, 1).await;
    assert!(given.refused.is_empty(), "it cannot refuse what was not given");
    assert!(fleet.hub.api.standing(1).await.unwrap().refused.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_fits_into_no_header_is_not_enrolled() {
    let fleet = fleet!();
    let mut member = Member::new("büro-7", &fleet.organisation, &[fleet.hub.address()]);
    let invitation = fleet.organisation.invitation(&[], 1);
    let (status, why) = member.enrol(&invitation).await.unwrap_err();
    assert!(status == 403 && why.contains("ASCII"), "{status} {why}");
    Member::new("buero-7", &fleet.organisation, &[fleet.hub.address()]).enrol(&invitation).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_beat_that_cannot_be_stored_fails_alone() {
    let fleet = fleet!();
    let (bad, mut good) = (fleet.member("bad").await, fleet.member("good").await);
    let refuses = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
        $$ BEGIN RAISE EXCEPTION 'odd' USING ERRCODE = '22000'; END $$; \
        CREATE TRIGGER refuse BEFORE UPDATE ON governors FOR EACH ROW WHEN (NEW.id = 'bad') EXECUTE FUNCTION refuse()";
    sql(&fleet.database.url, refuses).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let storms: Vec<_> = (0..4)
        .map(|storm| {
            let (mut odd, key, address) = (bad.copied(), bad.key.clone(), bad.hubs[0]);
            let is_over = Arc::clone(&is_over);
            odd.boot = format!("odd-{storm}");
            let (_, beat) = odd.next_beat(Duration::ZERO);
            tokio::spawn(async move {
                let mut failed = 0;
                while !is_over.load(Ordering::Relaxed) {
                    failed += usize::from(post::<Answer>(address, &key, "/fleet/v1/beat", &beat).await.is_err());
                }
                failed
            })
        })
        .collect();
    for beat in 0..50 {
        let answered = good.beat(Duration::ZERO).await;
        assert!(answered.is_ok() && good.answer.permit.is_some(), "beat {beat}: {answered:?}");
    }
    is_over.store(true, Ordering::Relaxed);
    for storm in storms {
        assert!(storm.await.unwrap() > 0, "nothing was refused");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_hangs_costs_no_permit() {
    let Some(database) = Database::new().await else { return };
    let hubs = [
        RunningHub::start(&HubOptions::new(&database.url)).await,
        RunningHub::start(&HubOptions::new(&database.url)).await,
    ];
    let organisation = found(hubs[0].api, 6).await;
    let link = Proxy::to(hubs[0].address()).await;
    let urls = format!("http://{},http://{}", link.address, hubs[1].address());
    let (anchor, invitation) = (organisation.trust_anchor().to_string(), organisation.invitation(&["payments"], 1));
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    let (said, ready) = tokio::sync::oneshot::channel();
    let governor = Governor::builder().durability(Durability::Buffered).require_permit().open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    let watched = tokio::task::spawn_blocking(move || {
        let member =
            rulekeep_fleet::Member::builder(&urls, &anchor, key).enrol_with(invitation).join(&governor).unwrap();
        said.send(()).unwrap();
        let intent = Intent::new("a", "read_document", RiskLevel::Low, ["document:read"]).unwrap();
        let since = Instant::now();
        // Two terms: the permit from before the hub hung has ended long since.
        while since.elapsed() < Duration::from_secs(12) {
            if governor.enforce(&intent).unwrap().decision != Decision::Allow {
                return Some((since.elapsed(), member.status()));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    });
    ready.await.unwrap();
    link.set(Link::Silent);
    assert_eq!(watched.await.unwrap(), None, "without a permit");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_governor_joins_behind_many_orders_in_few_beats() {
    let mut fleet = fleet!();
    let mut rows = Vec::new();
    let many = if std::env::var_os("RULEKEEP_NIGHTLY").is_some() { 10_000 } else { 3000 };
    for max in 0..many {
        let command = Command::Limit { counter: "pay/count/organisation".to_owned(), max: many - max };
        let order = fleet.organisation.sign(command, 2);
        fleet.organisation.keep(&order);
        let signatures = serde_json::to_string(&order.signatures).unwrap();
        let now = SystemClock.now().as_millis();
        rows.push(format!("({}, $x${}$x$, $x${signatures}$x$, {now})", max + 2, order.body));
    }
    sql(&fleet.database.url, &format!("INSERT INTO orders VALUES {}", rows.join(", "))).await;
    let api = fleet.hub.api;
    until("the hub knows the orders", async || {
        api.members().await.is_ok_and(|members| members.order == many.unsigned_abs() + 1)
    })
    .await;
    let mut member = Member::new("first", &fleet.organisation, &[fleet.hub.address()]);
    member.enrol(&fleet.organisation.invitation(&[], 1)).await.unwrap();
    let (since, mut beats) = (Instant::now(), 0);
    while member.answer.permit.is_none() {
        member.beat(Duration::ZERO).await.unwrap();
        beats += 1;
    }
    eprintln!("joined behind {many} orders in {:?}, with {beats} beats", since.elapsed());
    assert!(beats <= 6, "{beats} beats");
    assert_eq!(member.session.chain().seq(), many.unsigned_abs() + 1);
}
