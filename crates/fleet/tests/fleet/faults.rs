//! Faults of hubs, links and the database. Permits last for 3 seconds here, and hubs hold beats for 1.
//!
//! Each test ends with the checker: no ALLOW later than the bound of a kill switch, no order that goes back or is lost.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use rulekeep_fleet::order::Command;
use rulekeep_fleet::wire::{Beat, SIGNATURE};
use tokio::net::TcpListener;

use crate::support::checker::{Agents, Stopped, check, check_orders};
use crate::support::cluster::{Cluster, Database, host};
use crate::support::http::{once, request};
use crate::support::hub::{Api, HubOptions, HubProcess, RunningHub, refusal};
use crate::support::member::{Member, Rule, Running, now};
use crate::support::organisation::{Organisation, stop};
use crate::support::proxy::{Link, Proxy};
use crate::support::witness::RunningWitness;
use crate::support::{found, give, until};

const TERM: Duration = Duration::from_secs(3);
const SECONDS: u64 = 3;
const WAIT: Duration = Duration::from_secs(1);
const NONE: Duration = Duration::ZERO;

/// Members that beat by themselves, each at the hubs that a function names.
async fn members(count: usize, organisation: &Organisation, hubs: impl Fn(usize) -> Vec<SocketAddr>) -> Vec<Running> {
    let mut members = Vec::new();
    for n in 0..count {
        let member = Member::admitted(&format!("governor-{n}"), &["payments"], organisation, &hubs(n)).await;
        members.push(member.start(WAIT, Rule::Sent));
    }
    members
}

/// Waits until each member follows an order.
async fn until_all_follow(members: &[Running], order: u64) {
    for member in members {
        member.until(|view| view.order >= order && view.is_permitted).await;
    }
}

/// Waits until each member has had a new permit.
async fn until_all_are_permitted_again(members: &[Running]) {
    let before: Vec<u64> = members.iter().map(Running::permits).collect();
    for (member, before) in members.iter().zip(before) {
        member.until(|view| view.permits > before && view.is_permitted).await;
    }
}

/// Waits until no member would allow anything.
async fn until_all_permits_have_ended(members: &[Running]) {
    until("all permits have ended", async || members.iter().all(|member| !member.gate.would_allow())).await;
}

fn is_fine(members: &[Running], stops: &[Stopped], offline: Duration) {
    let wrong = check(members, stops, TERM, offline);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Gives a kill switch for everybody, waits until all follow it, and checks that it was in time.
async fn stop_binds(
    organisation: &mut Organisation,
    api: Api,
    members: &[Running],
    stops: &mut Vec<Stopped>,
    offline: Duration,
) {
    let given = give(organisation, api, stop(&[]), 1).await;
    stops.push(Stopped::now(given.seq));
    until_all_follow(members, given.seq).await;
    is_fine(members, stops, offline);
    // A hub may have found an earlier primary once more, which it refuses.
    let mut stored = api.orders().await;
    while stored.is_err() {
        tokio::task::yield_now().await;
        stored = api.orders().await;
    }
    assert!(check_orders(&organisation.orders, &stored.unwrap()).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_hub_is_killed_its_members_follow_the_other_one() {
    let Some(database) = Database::new().await else { return };
    let options = HubOptions::new(&database.url);
    let (mut first, second) = (HubProcess::start(&options), HubProcess::start(&options));
    let mut organisation = found(first.api, SECONDS).await;
    let hubs = [first.address(), second.address()];
    let members = members(20, &organisation, |n| vec![hubs[n % 2], hubs[(n + 1) % 2]]).await;
    let _agents = Agents::of(&members);
    give(&mut organisation, first.api, stop(&["others"]), 1).await;
    until_all_follow(&members, 2).await;
    first.kill();
    until_all_are_permitted_again(&members).await;
    stop_binds(&mut organisation, second.api, &members, &mut Vec::new(), NONE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_third_of_the_members_behind_a_broken_link_stop_in_time() {
    let Some(database) = Database::new().await else { return };
    let hub = RunningHub::start(&HubOptions::new(&database.url)).await;
    let mut organisation = found(hub.api, SECONDS).await;
    let late = Link::Late(Duration::from_millis(1500));
    let mut proxies = Vec::new();
    for link in [Link::Cut, Link::Silent, Link::Deaf, late] {
        proxies.push((link, Proxy::to(hub.address()).await));
    }
    let through = |n: usize| if n.is_multiple_of(3) { proxies[n / 3 % 4].1.address } else { hub.address() };
    let members = members(24, &organisation, |n| vec![through(n)]).await;
    let _agents = Agents::of(&members);
    until_all_are_permitted_again(&members).await;
    let mut stops = Vec::new();
    for _ in 0..3 {
        for (link, proxy) in &proxies {
            proxy.set(*link);
        }
        let given = give(&mut organisation, hub.api, stop(&[]), 1).await;
        stops.push(Stopped::now(given.seq));
        let healthy: Vec<&Running> = (0..24).filter(|n| n % 3 != 0).map(|n| &members[n]).collect();
        for member in healthy {
            member.until(|view| view.order == given.seq).await;
        }
        until_all_permits_have_ended(&members).await;
        // Permits in answers that do not arrive bring the order with them, so they do not count.
        until("the hub sees the permits of the others end", async || {
            hub.api.standing(given.seq).await.unwrap().open == 0
        })
        .await;
        is_fine(&members, &stops, NONE);
        for (_, proxy) in &proxies {
            proxy.set(Link::Open);
        }
        until_all_follow(&members, given.seq).await;
        stops.last_mut().unwrap().lifted = Some(now().boot);
        let order =
            give(&mut organisation, hub.api, Command::Lift { order: given.seq, note: String::new() }, 2).await.seq;
        until_all_follow(&members, order).await;
        until("all decide again", async || members.iter().all(|member| member.gate.would_allow())).await;
    }
    is_fine(&members, &stops, NONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_is_cut_off_from_the_database_renews_no_permit() {
    let Some(database) = Database::new().await else { return };
    let link = Proxy::to(host(&database.url).parse().unwrap()).await;
    let behind = database.url.replace(host(&database.url), &link.address.to_string());
    let (cut_off, healthy) =
        (RunningHub::start(&HubOptions::new(&behind)).await, RunningHub::start(&HubOptions::new(&database.url)).await);
    let mut organisation = found(healthy.api, SECONDS).await;
    let hubs = [cut_off.address(), healthy.address()];
    let members = members(12, &organisation, |n| if n < 6 { vec![hubs[0]] } else { vec![hubs[0], hubs[1]] }).await;
    let _agents = Agents::of(&members);
    until_all_are_permitted_again(&members).await;
    let mut stops = Vec::new();
    for broken in [Link::Silent, Link::Cut] {
        link.set(broken);
        let given = give(&mut organisation, healthy.api, stop(&[]), 1).await;
        stops.push(Stopped::now(given.seq));
        until_all_follow(&members[6..], given.seq).await;
        until_all_permits_have_ended(&members).await;
        link.set(Link::Open);
        until_all_follow(&members, given.seq).await;
        stops.last_mut().unwrap().lifted = Some(now().boot);
        let lift =
            give(&mut organisation, cut_off.api, Command::Lift { order: given.seq, note: String::new() }, 2).await;
        until_all_follow(&members, lift.seq).await;
    }
    is_fine(&members, &stops, NONE);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_database_permits_end_offline_and_return_with_it() {
    let Some(cluster) = Cluster::start(&["--fast"]) else { return };
    let offline = Duration::from_secs(4);
    let hub = RunningHub::start(&HubOptions::new(&cluster.url())).await;
    let mut organisation = found(hub.api, SECONDS).await;
    give(&mut organisation, hub.api, Command::Offline { group: "payments".to_owned(), seconds: 4 }, 2).await;
    let members = members(12, &organisation, |_| vec![hub.address()]).await;
    let _agents = Agents::of(&members);
    until_all_are_permitted_again(&members).await;
    let mut outages = Vec::new();
    for away in ["kill", "stop-node"] {
        cluster.run(away, if away == "stop-node" { &["primary"] } else { &[] });
        let gone = now().boot;
        until_all_permits_have_ended(&members).await;
        refusal(hub.api.give(&organisation.sign(stop(&[]), 1)).await, 503);
        let back = now().boot;
        for member in &members {
            let journal = member.gate.journal();
            assert!(journal.last_allowed().unwrap() <= gone + TERM);
            assert!(
                journal.allowed_low_between(gone + TERM, gone + TERM + offline),
                "{} did not use the offline rule",
                member.id
            );
            assert!(!journal.allowed_low_between(gone + TERM + offline, back));
        }
        outages.push(Stopped { order: 0, at: gone, lifted: Some(back) });
        cluster.run("start-node", &["primary"]);
        until_all_are_permitted_again(&members).await;
    }
    is_fine(&members, &outages, offline);
    stop_binds(&mut organisation, hub.api, &members, &mut outages, offline).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promoted_standby_has_every_acknowledged_order() {
    let Some(cluster) = Cluster::start(&["--standby"]) else { return };
    let options = HubOptions::new(&cluster.url());
    let hubs = [HubProcess::start(&options), HubProcess::start(&options)];
    let mut organisation = found(hubs[0].api, SECONDS).await;
    let addresses = [hubs[0].address(), hubs[1].address()];
    let members = members(12, &organisation, |n| vec![addresses[n % 2], addresses[(n + 1) % 2]]).await;
    let _agents = Agents::of(&members);
    // Orders are given until the primary dies under them.
    let giving = tokio::spawn({
        let (mut organisation, api) = (organisation.clone(), hubs[0].api);
        async move {
            loop {
                let order = organisation.sign(stop(&["others"]), 1);
                if api.give(&order).await.is_err() {
                    return organisation;
                }
                organisation.keep(&order);
            }
        }
    });
    until_all_follow(&members, 5).await;
    tokio::task::block_in_place(|| cluster.run("kill", &[]));
    organisation = giving.await.unwrap();
    assert!(organisation.orders.len() > 5);
    tokio::task::block_in_place(|| cluster.run("promote", &[]));
    until("the hubs serve again", async || hubs[0].api.orders().await.is_ok() && hubs[1].api.orders().await.is_ok())
        .await;
    let found = hubs[1].api.orders().await.unwrap();
    assert!(check_orders(&organisation.orders, &found).is_empty());
    // The last one may have been stored without an answer.
    found[organisation.orders.len()..].iter().for_each(|order| organisation.keep(order));
    until_all_are_permitted_again(&members).await;
    stop_binds(&mut organisation, hubs[1].api, &members, &mut Vec::new(), NONE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_primary_renews_no_permit_and_goes_on_afterwards() {
    let Some(cluster) = Cluster::start(&["--fast"]) else { return };
    let hub = RunningHub::start(&HubOptions::new(&cluster.url())).await;
    let mut organisation = found(hub.api, SECONDS).await;
    let members = members(12, &organisation, |_| vec![hub.address()]).await;
    let _agents = Agents::of(&members);
    until_all_are_permitted_again(&members).await;
    cluster.run("pause", &[]);
    let paused = now().boot;
    until_all_permits_have_ended(&members).await;
    let mut stops = vec![Stopped { order: 0, at: paused, lifted: Some(now().boot) }];
    cluster.run("resume", &[]);
    until_all_are_permitted_again(&members).await;
    stop_binds(&mut organisation, hub.api, &members, &mut stops, NONE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hubs_move_to_the_promoted_standby_and_stay_there() {
    let Some(cluster) = Cluster::start(&["--standby", "--fast"]) else { return };
    let options = HubOptions::new(&cluster.url());
    let hubs = [RunningHub::start(&options).await, RunningHub::start(&options).await];
    let mut organisation = found(hubs[0].api, SECONDS).await;
    let members = members(12, &organisation, |n| vec![hubs[n % 2].address()]).await;
    let _agents = Agents::of(&members);
    until_all_are_permitted_again(&members).await;
    let primary = cluster.pause_primary();
    until_all_permits_have_ended(&members).await;
    cluster.run("promote", &[]);
    until_all_are_permitted_again(&members).await;
    let given = give(&mut organisation, hubs[0].api, stop(&[]), 1).await;
    let mut stops = vec![Stopped::now(given.seq)];
    primary.resume();
    until_all_follow(&members, given.seq).await;
    stop_binds(&mut organisation, hubs[1].api, &members, &mut stops, NONE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_database_gets_back_what_the_published_files_have() {
    for options in [&[] as &[&str], &["--snapshot"]] {
        let Some(cluster) = Cluster::start(&["--fast"]) else { return };
        let folder = tempfile::tempdir().unwrap();
        let options_of_hub = HubOptions::new(&cluster.url()).publish(folder.path());
        let hub = RunningHub::start(&options_of_hub).await;
        let mut organisation = found(hub.api, SECONDS).await;
        let hubs = [hub.address()];
        let mut early = Member::admitted("early", &[], &organisation, &hubs).await;
        let forked = Member::admitted("forked", &[], &organisation, &hubs).await;
        cluster.run("backup", &[]);

        // All of this is lost with the restore, and is in the published files.
        give(&mut organisation, hub.api, stop(&[]), 1).await;
        let mut late = Member::admitted("late", &["payments"], &organisation, &hubs).await;
        early.log.grow(10, "later");
        early.anchors = true;
        early.beat(NONE).await.unwrap();
        let mut fork = forked.copied();
        fork.log = crate::support::governor::Log::new(fork.key.clone());
        fork.log.grow(3, "another history");
        fork.restart();
        fork.beat(NONE).await.unwrap();
        fork.beat(NONE).await.unwrap();
        assert!(fork.answer.refused.is_some());
        let before = hub.api.members().await.unwrap();
        crate::support::until_leaf("the fork", hub.api, |leaf| matches!(leaf, rulekeep_fleet::log::Leaf::Fork { .. }))
            .await;
        let leaves = crate::support::leaves(hub.api).await;
        drop(hub);
        cluster.run("restore", options);

        let hub = RunningHub::start(&options_of_hub).await;
        for member in [&mut early, &mut late, &mut fork] {
            member.hubs = vec![hub.address()];
            member.restart();
        }
        // The first answers may come before the log is verified: they have no permit.
        until("the order is back", async || hub.api.orders().await.is_ok_and(|orders| orders.len() == 2)).await;
        assert!(check_orders(&organisation.orders, &hub.api.orders().await.unwrap()).is_empty());
        until("the leaves are published again", async || crate::support::leaves(hub.api).await.len() > leaves.len())
            .await;
        let again = crate::support::leaves(hub.api).await;
        assert_eq!(again[..leaves.len()], leaves, "{options:?}");
        let after = hub.api.members().await.unwrap();
        let known = |members: &rulekeep_fleet::hub::Members| -> Vec<_> {
            members
                .members
                .iter()
                .map(|member| (member.id.clone(), member.groups.clone(), member.anchored, member.trouble.clone()))
                .collect()
        };
        assert_eq!(known(&after), known(&before), "{options:?}");
        for member in [&mut early, &mut late] {
            until_admitted(member).await;
            assert_eq!(member.session.chain().seq(), 2, "no permit without the order that was lost");
        }
        fork.beat(NONE).await.unwrap();
        assert!(fork.answer.permit.is_none() && fork.answer.refused.is_some());
    }
}

/// Beats until it has a permit, as often as it takes.
async fn until_admitted(member: &mut Member) {
    let member = tokio::sync::Mutex::new(member);
    until("a permit", async || {
        let mut member = member.lock().await;
        member.beat(NONE).await.is_ok() && member.answer.permit.is_some()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_database_without_published_files_gives_no_permit() {
    for options in [&[] as &[&str], &["--snapshot"]] {
        let Some(cluster) = Cluster::start(&["--fast"]) else { return };
        let witness = RunningWitness::start().await;
        let options_of_hub = HubOptions::new(&cluster.url()).witness(&witness.key, &witness.url);
        let hub = RunningHub::start(&options_of_hub).await;
        let mut organisation = found(hub.api, SECONDS).await;
        let mut member = Member::admitted("first", &[], &organisation, &[hub.address()]).await;
        cluster.run("backup", &[]);
        let given = give(&mut organisation, hub.api, stop(&[]), 1).await;
        until("the order is cosigned", async || hub.api.standing(given.seq).await.unwrap().leaf.is_some()).await;
        drop(hub);
        cluster.run("restore", options);

        let hub = RunningHub::start(&options_of_hub).await;
        member.hubs = vec![hub.address()];
        member.restart();
        let began = now().boot;
        // Some rounds of the sequencer, in which the witness refuses the shorter log.
        while now().boot < began + TERM {
            member.beat(NONE).await.unwrap();
            assert!(member.answer.permit.is_none(), "{options:?}: {:?}", member.answer);
        }
        assert!(member.answer.refused.as_ref().is_some_and(|why| why.contains("not verified")), "{:?}", member.answer);
        refusal(hub.api.give(&organisation.sign(stop(&[]), 1)).await, 409);
        refusal(hub.api.give(&Organisation::founded(SECONDS).orders[0]).await, 409);
    }
}

/// Answers are late, and the hub is killed right after a kill switch is stored.
async fn stop_and_kill_behind_a_late_link(rule: Rule) -> Option<Vec<String>> {
    let database = Database::new().await?;
    let hub = RunningHub::start(&HubOptions::new(&database.url)).await;
    let mut organisation = found(hub.api, SECONDS).await;
    let link = Proxy::to(hub.address()).await;
    let mut members = Vec::new();
    for n in 0..12 {
        let member = Member::admitted(&format!("governor-{n}"), &[], &organisation, &[link.address]).await;
        // They beat at different times, so that some answers are under way at any moment.
        members.push(member.start(Duration::from_millis(n * 110), rule));
    }
    let _agents = Agents::of(&members);
    link.set(Link::Late(Duration::from_millis(1500)));
    until_all_are_permitted_again(&members).await;
    until_all_are_permitted_again(&members).await;
    let given = give(&mut organisation, hub.api, stop(&[]), 1).await;
    let stops = [Stopped::now(given.seq)];
    drop(hub);
    until_all_permits_have_ended(&members).await;
    Some(check(&members, &stops, TERM, NONE))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permit_counted_from_sending_ends_in_time_on_a_late_link() {
    let Some(wrong) = stop_and_kill_behind_a_late_link(Rule::Sent).await else { return };
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_checker_finds_permits_that_count_from_the_receipt() {
    let Some(wrong) = stop_and_kill_behind_a_late_link(Rule::Received).await else { return };
    assert!(wrong.iter().any(|wrong| wrong.contains("after the bound of order 2")), "{wrong:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_checker_finds_a_hub_that_answers_from_old_reads() {
    let Some(database) = Database::new().await else { return };
    let hub = RunningHub::start(&HubOptions::new(&database.url)).await;
    let link = Proxy::to(host(&database.url).parse().unwrap()).await;
    let behind = database.url.replace(host(&database.url), &link.address.to_string());
    let cut_off = RunningHub::start(&HubOptions::new(&behind)).await;
    let mut organisation = found(hub.api, SECONDS).await;
    let remembering = remembering_hub(cut_off.address()).await;
    let mut members = Vec::new();
    for n in 0..4 {
        let mut member = Member::admitted(&format!("governor-{n}"), &[], &organisation, &[cut_off.address()]).await;
        member.go_to(&[remembering]);
        members.push(member.start(WAIT, Rule::Sent));
    }
    let _agents = Agents::of(&members);
    until_all_are_permitted_again(&members).await;
    link.set(Link::Cut);
    let given = give(&mut organisation, hub.api, stop(&[]), 1).await;
    let stops = [Stopped::now(given.seq)];
    until("the checker finds it", async || !check(&members, &stops, TERM, NONE).is_empty()).await;
}

/// A hub that answers a beat with the last answer if it cannot do better. This is wrong.
async fn remembering_hub(real: SocketAddr) -> SocketAddr {
    type Answers = Arc<Mutex<std::collections::HashMap<String, Vec<u8>>>>;
    async fn beat(
        State((real, answers)): State<(SocketAddr, Answers)>,
        headers: HeaderMap,
        body: Bytes,
    ) -> (StatusCode, Vec<u8>) {
        let body = String::from_utf8(body.to_vec()).unwrap();
        let beat: Beat = serde_json::from_str(&body).unwrap();
        let signature = format!("{SIGNATURE}: {}\r\n", headers[SIGNATURE].to_str().unwrap());
        let request = request("POST", "/fleet/v1/beat", &signature, &body);
        let answer = tokio::time::timeout(WAIT + Duration::from_millis(500), once(real, &request)).await;
        let mut answers = answers.lock().unwrap();
        match answer {
            Ok(Ok(answer)) if answer.status == 200 => {
                answers.insert(beat.governor, answer.body.clone());
                (StatusCode::OK, answer.body)
            }
            _ => answers
                .get(&beat.governor)
                .map_or((StatusCode::SERVICE_UNAVAILABLE, Vec::new()), |known| (StatusCode::OK, known.clone())),
        }
    }
    let router = Router::new().route("/fleet/v1/beat", post(beat)).with_state((real, Answers::default()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}
