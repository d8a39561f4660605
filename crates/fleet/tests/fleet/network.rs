//! Bad networks and bad disks: links that lose packets or drop, slow commits, no room for files or for the database.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rulekeep::checkpoint::Checkpoint;
use rulekeep::kill_switch::KillSwitchScope;
use rulekeep::proof::Digest;
use rulekeep::{Agent, Decision, Durability, Governor, Intent, RiskLevel, Tier};
use rulekeep_fleet::log::{Head, Resource, leaves_of};
use rulekeep_fleet::order::{Command, SignedOrder};
use rulekeep_fleet::{CopyRule, Member, MemberBuilder, MemberError};
use tempfile::TempDir;

use crate::support::cluster::{Cluster, Database, host, sql};
use crate::support::disk::{Disk, files_below};
use crate::support::hub::{HubOptions, HubProcess, RunningHub, refusal};
use crate::support::member::{self, PATIENCE, Rule};
use crate::support::namespace::Namespace;
use crate::support::organisation::{Organisation, log_key, stop};
use crate::support::proxy::{Link, Proxy};
use crate::support::{found, give, until};

/// A governor that is a member, and a thread that lets it decide all the time. Both end with the value.
struct Deciding {
    member: Member,
    governor: Governor,
    seen: Arc<Mutex<Seen>>,
    ends: Arc<AtomicBool>,
    agent: Option<JoinHandle<()>>,
}

/// The decisions of a governor.
#[derive(Debug, Clone, Default)]
struct Seen {
    decisions: usize,
    last_allowed: Option<Instant>,
    /// The times at which it had no permit.
    unpermitted: Vec<Instant>,
}

impl Deciding {
    async fn join(settings: MemberBuilder) -> Self {
        let governor = governor();
        let (member, _) = join(settings, &governor).await;
        let member = member.expect("it joins");
        let (seen, ends) = (Arc::new(Mutex::new(Seen::default())), Arc::new(AtomicBool::new(false)));
        let agent = std::thread::spawn({
            let (governor, seen, ends) = (governor.clone(), Arc::clone(&seen), Arc::clone(&ends));
            move || {
                while !ends.load(Ordering::Relaxed) {
                    // Before the decision: a busy machine must not make it later than it was.
                    let at = Instant::now();
                    let verdict = governor.enforce(&read()).expect("it decides");
                    let mut seen = seen.lock().expect("no panic");
                    seen.decisions += 1;
                    if verdict.decision == Decision::Allow {
                        seen.last_allowed = Some(at);
                    } else if verdict.denial_class.is_some_and(|class| class.to_string() == "no_permit") {
                        seen.unpermitted.push(at);
                    }
                    drop(seen);
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        });
        Self { member, governor, seen, ends, agent: Some(agent) }
    }

    fn seen(&self) -> Seen {
        self.seen.lock().expect("no panic").clone()
    }

    fn allows(&self) -> bool {
        self.governor.enforce(&read()).expect("it decides").decision == Decision::Allow
    }

    /// Waits until it has had a permit for a beat after now.
    async fn until_renewed(&self) {
        let (since, left) = (Instant::now(), self.member.status().permit_left.unwrap_or_default());
        until("a new permit", async || {
            let now = self.member.status().permit_left.unwrap_or_default();
            now > left.saturating_sub(since.elapsed()) + Duration::from_millis(1)
        })
        .await;
    }
}

impl Drop for Deciding {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        // A panic has been reported already.
        let _ = self.agent.take().map(JoinHandle::join);
    }
}

fn governor() -> Governor {
    let governor = Governor::builder().durability(Durability::Buffered).require_permit().open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    governor
}

fn read() -> Intent {
    Intent::new("a", "read_document", RiskLevel::Low, ["document:read"]).expect("an intent")
}

/// Joins, and says how long it took.
async fn join(settings: MemberBuilder, governor: &Governor) -> (Result<Member, MemberError>, Duration) {
    let (governor, since) = (governor.clone(), Instant::now());
    let joined = tokio::task::spawn_blocking(move || settings.join(&governor)).await.expect("no panic");
    (joined, since.elapsed())
}

/// The settings of a member that is invited.
fn invited(name: &str, url: &str, organisation: &Organisation, folder: &TempDir) -> MemberBuilder {
    let anchor = organisation.trust_anchor().to_string();
    let invitation = organisation.invitation(&["payments"], 1);
    let settings = Member::builder(url, &anchor, folder.path().join(name)).name(name).enrol_with(invitation);
    // So that a problem is one of its beats.
    settings.copy(CopyRule::Nothing)
}

/// A certificate for a name or an address, and its key.
fn certificate(name: &str) -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).expect("a certificate");
    (made.cert.pem(), made.signing_key.serialize_pem())
}

/// Gives a kill switch, waits until it is in force at all members, and checks that it was in time; then lifts it.
async fn stop_binds(organisation: &mut Organisation, hub: &RunningHub, members: &[Deciding], term: Duration) {
    let given = give(organisation, hub.api, stop(&[]), 1).await.seq;
    let bound = Instant::now() + term;
    until("all follow the kill switch", async || members.iter().all(|each| each.member.order() >= given)).await;
    until("all are stopped", async || members.iter().all(|each| !each.allows())).await;
    for (number, each) in members.iter().enumerate() {
        let last = each.seen().last_allowed.expect("it decided before");
        assert!(last <= bound, "member {number} allowed an action {:?} after the bound", last - bound);
    }
    let lift = Command::Lift { order: given, note: String::new() };
    let lifted = give(organisation, hub.api, lift, 2).await.seq;
    for each in members {
        until("it decides again", async || each.member.order() >= lifted && each.allows()).await;
    }
}

/// Checks that the hub has no complaint about any member.
async fn none_is_in_trouble(hub: &RunningHub) {
    let known = hub.api.members().await.expect("the hub answers").members;
    let troubles: Vec<_> = known.iter().map(|member| (&*member.id, &*member.trouble)).collect();
    assert!(!troubles.is_empty() && troubles.iter().all(|(_, trouble)| trouble.is_empty()), "{troubles:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn members_behind_a_link_that_loses_packets_stop_in_time() {
    if std::env::var_os("RULEKEEP_NIGHTLY").is_none() {
        return;
    }
    let term = Duration::from_secs(12);
    let Some(namespace) = Namespace::start() else { return };
    if namespace.degrade().is_none() {
        return;
    }
    let Some(database) = Database::new().await else { return };
    let near = RunningHub::start(&HubOptions::new(&database.url)).await;
    let mut organisation = found(near.api, term.as_secs()).await;
    let link = Proxy::between(namespace.good.near, host(&database.url).parse().unwrap()).await;
    let behind = database.url.replace(host(&database.url), &link.address.to_string());
    let (pem, key) = certificate(&namespace.bad.far.to_string());
    let options = HubOptions::new(&behind).listens(namespace.bad.far).tls(&pem, &key);
    let far = HubProcess::within(&namespace, &options);
    let (url, folder) = (format!("https://{}", far.address()), tempfile::tempdir().unwrap());
    let mut members = Vec::new();
    for name in ["a", "b", "c", "d"] {
        members.push(Deciding::join(invited(name, &url, &organisation, &folder).authorities(&*pem)).await);
    }
    let joined = Instant::now();
    for _ in 0..4 {
        stop_binds(&mut organisation, &near, &members, term).await;
        for each in &members {
            each.until_renewed().await;
        }
    }
    until("three terms have passed", async || joined.elapsed() > 3 * term).await;
    for (number, each) in members.iter().enumerate() {
        // Beats may fail until the permit has ended, which is rare.
        let Seen { decisions, unpermitted, .. } = each.seen();
        let without = unpermitted.len();
        assert!(without < decisions / 10, "member {number} had no permit in {without} of {decisions} decisions");
    }
    let lost = namespace.repair();
    assert!(lost.iter().all(|lost| *lost > 0), "packets lost in each direction: {lost:?}");
    until("no member has a problem", async || members.iter().all(|each| each.member.status().problem.is_none())).await;
    none_is_in_trouble(&near).await;
}

/// Lets every later transaction of a database take a second to commit, while it holds its locks.
async fn slow_commits(database: &Database) {
    let function = "CREATE FUNCTION slow_commit() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
        IF current_setting('test.slow', true) IS DISTINCT FROM txid_current()::text THEN \
        PERFORM set_config('test.slow', txid_current()::text, true); PERFORM pg_sleep(1); END IF; RETURN NULL; END $$";
    sql(&database.url, function).await;
    let tables = "SELECT string_agg(tablename, ',') FROM pg_tables WHERE schemaname = 'public'";
    // One by one, because a hub that locks several of them works meanwhile.
    for table in sql(&database.url, tables).await.expect("the hub's tables").split(',') {
        let trigger = "CONSTRAINT TRIGGER slow AFTER INSERT OR UPDATE OR DELETE";
        let deferred = "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow_commit()";
        sql(&database.url, &format!("CREATE {trigger} ON {table} {deferred}")).await;
    }
}

/// An organisation of four members on a database whose commits take a second.
struct Slow {
    organisation: Organisation,
    members: Vec<Deciding>,
    hub: RunningHub,
    _database: Database,
    _folder: TempDir,
}

impl Slow {
    async fn start(term: Duration) -> Option<Self> {
        let database = Database::new().await?;
        let hub = RunningHub::start(&HubOptions::new(&database.url)).await;
        let mut organisation = found(hub.api, term.as_secs()).await;
        slow_commits(&database).await;
        let since = Instant::now();
        give(&mut organisation, hub.api, stop(&["others"]), 1).await;
        assert!(since.elapsed() >= Duration::from_secs(1), "the commits are not slow");
        let (url, folder) = (format!("http://{}", hub.address()), tempfile::tempdir().unwrap());
        let joining = ["a", "b", "c", "d"].map(|name| {
            // Some beats of the join may time out beside those of the others.
            let settings = invited(name, &url, &organisation, &folder).patience(PATIENCE);
            tokio::spawn(Deciding::join(settings))
        });
        let mut members = Vec::new();
        for joined in joining {
            members.push(joined.await.expect("no panic"));
        }
        Some(Self { organisation, members, hub, _database: database, _folder: folder })
    }

    /// Checks that no member is without a permit for some time.
    async fn keeps_permits(&self, time: Duration) {
        let joined = Instant::now();
        until("the time has passed", async || joined.elapsed() > time).await;
        for (number, each) in self.members.iter().enumerate() {
            let mut without = each.seen().unpermitted;
            without.retain(|at| *at > joined);
            let times = without.first().zip(without.last()).map(|(first, last)| (*first - joined, *last - joined));
            assert!(times.is_none(), "member {number} had no permit: {} times, {times:?}", without.len());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_that_take_a_second_cost_no_permit() {
    let term = Duration::from_secs(6);
    let Some(slow) = Slow::start(term).await else { return };
    slow.keeps_permits(3 * term).await;
    none_is_in_trouble(&slow.hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_of_a_second_cost_no_permit_of_usual_terms() {
    if std::env::var_os("RULEKEEP_NIGHTLY").is_none() {
        return;
    }
    let term = Duration::from_secs(30);
    let Some(slow) = Slow::start(term).await else { return };
    slow.keeps_permits(term + term / 3).await;
    none_is_in_trouble(&slow.hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_switch_binds_in_time_over_slow_commits() {
    let term = Duration::from_secs(6);
    let Some(mut slow) = Slow::start(term).await else { return };
    for _ in 0..2 {
        stop_binds(&mut slow.organisation, &slow.hub, &slow.members, term).await;
    }
    none_is_in_trouble(&slow.hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_for_published_files_stops_nothing_else() {
    let Some(disk) = Disk::small("size=4m,mode=0777") else { return };
    publish_without_room(&disk, "No space left on device").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn published_files_that_cannot_be_written_stop_nothing_else() {
    publish_without_room(&Disk::replaced(), "directory").await;
}

async fn publish_without_room(disk: &Disk, why: &str) {
    let Some(database) = Database::new().await else { return };
    let options = HubOptions::new(&database.url).publish(&disk.files());
    let hub = RunningHub::start(&options).await;
    let mut organisation = found(hub.api, 3).await;
    let joined = member::Member::admitted("first", &["payments"], &organisation, &[hub.address()]).await;
    let joined = joined.start(Duration::from_secs(1), Rule::Sent);
    let settled = async |hub: &RunningHub| {
        let is_settled = "SELECT (count(*) = 0 AND (SELECT size = published_size FROM head))::text FROM pending";
        hub.problem().is_none() && sql(&database.url, is_settled).await.unwrap() == "true"
    };
    until("all is published", async || settled(&hub).await).await;
    let before = verified_files(&disk.files(), &organisation.orders);

    disk.fill();
    let permits = joined.permits();
    // Enough that a tile becomes full meanwhile.
    for max in (0..260).rev() {
        let command = Command::Limit { counter: "pay/count/organisation".to_owned(), max };
        give(&mut organisation, hub.api, command, 2).await;
    }
    let given = give(&mut organisation, hub.api, stop(&[]), 1).await;
    joined.until(|view| view.order == given.seq && view.permits >= permits + 3).await;
    member::Member::admitted("second", &["payments"], &organisation, &[hub.address()]).await;
    let file = disk.files().display().to_string();
    until("the hub names the problem", async || {
        hub.problem().is_some_and(|told| told.contains(&file) && told.contains(why))
    })
    .await;
    assert_eq!(hub.api.standing(given.seq).await.unwrap().leaf, None, "it is not published");
    // A hub that starts cannot compare its log with the files.
    let late = RunningHub::start(&options).await;
    let problem = late.problem().expect("it has one");
    assert!(problem.contains(&file) && problem.contains(why), "{problem}");
    let mut third = member::Member::admitted("third", &["payments"], &organisation, &[hub.address()]).await;
    third.go_to(&[late.address()]);
    third.beat(Duration::ZERO).await.expect("it answers");
    assert!(third.answer.permit.is_none() && third.answer.refused.is_some(), "{:?}", third.answer);

    disk.relieve();
    until("both hubs publish again", async || settled(&hub).await && settled(&late).await).await;
    let after = verified_files(&disk.files(), &organisation.orders);
    assert!(after.size > before.size + 260, "{before:?} {after:?}");
    third.admit().await;
    assert!(hub.api.standing(given.seq).await.unwrap().leaf.is_some());
    none_is_in_trouble(&hub).await;
}

/// Reads the published files as a stranger would, and checks that they are complete. Returns the head that they have.
fn verified_files(folder: &Path, orders: &[SignedOrder]) -> Head {
    let read = |path: String| fs::read(folder.join(&path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let note = String::from_utf8(read("checkpoint".to_owned())).unwrap();
    let head = Head::from(&Checkpoint::open(&note, &log_key().verifier()).expect("the organisation's signature"));
    let mut texts = Vec::new();
    for index in 0..head.size.div_ceil(256) {
        let width = u32::try_from((head.size - index * 256).min(256)).unwrap();
        texts.extend(leaves_of(&read(Resource::Entries(index, width).to_string())).expect("a bundle of entries"));
    }
    let leaves: Vec<_> = texts.into_iter().map(String::into_bytes).collect();
    let again = rulekeep_fleet::log::append(&Head::EMPTY, &HashMap::new(), &leaves).expect("leaves");
    assert_eq!(again.head, head, "the entries are not those of the checkpoint");
    for (tile, hashes) in again.tiles {
        let width = u32::try_from(hashes.len() / 32).unwrap();
        assert!(read(Resource::Hashes(tile, width).to_string()) == hashes, "{tile:?}");
    }
    for (seq, order) in (1..).zip(orders) {
        let file: SignedOrder = serde_json::from_slice(&read(format!("orders/{seq}.json"))).unwrap();
        assert!(file == *order, "order {seq}");
    }
    head
}

#[tokio::test(flavor = "multi_thread")]
async fn no_half_written_files_are_left_by_a_full_disk() {
    let Some(disk) = Disk::small("size=1m,mode=0777") else { return };
    let Some(database) = Database::new().await else { return };
    let hub = RunningHub::start(&HubOptions::new(&database.url).publish(&disk.files())).await;
    let mut organisation = found(hub.api, 3).await;
    let published = async |order: u64| hub.api.standing(order).await.is_ok_and(|standing| standing.leaf.is_some());
    until("the first order is published", async || published(1).await).await;
    for _ in 0..3 {
        disk.fill();
        let order = give(&mut organisation, hub.api, stop(&["others"]), 1).await.seq;
        until("the hub names the problem", async || hub.problem().is_some()).await;
        // Further leaves: the partial tile of now is never written.
        give(&mut organisation, hub.api, stop(&["others"]), 1).await;
        disk.relieve();
        until("it is published", async || published(order + 1).await).await;
    }
    let left: Vec<_> = files_below(&disk.files())
        .into_iter()
        .filter(|path| path.extension().is_some_and(|end| end == "new"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_without_room_loses_no_order_and_recovers() {
    let Some(disk) = Disk::small("size=24m,mode=0777") else { return };
    let Some(cluster) = Cluster::start(&["--fast"]) else { return };
    let place = disk.files();
    let chowned = std::process::Command::new("chown").arg("postgres:").arg(&place).status();
    assert!(chowned.is_ok_and(|status| status.success()), "as root there is a user postgres");
    sql(&cluster.url(), &format!("CREATE TABLESPACE small LOCATION '{}'", place.display())).await;
    sql(&cluster.url(), "CREATE DATABASE small TABLESPACE small").await;
    let url = cluster.url().replace("/fleet", "/small");
    let hub = RunningHub::start(&HubOptions::new(&url)).await;
    let mut organisation = found(hub.api, 3).await;
    let joined = member::Member::admitted("first", &["payments"], &organisation, &[hub.address()]).await;
    let joined = joined.start(Duration::from_secs(1), Rule::Sent);

    disk.fill();
    let long = |n: u64| {
        // Nothing that is smaller after compression.
        let note = (0..50).map(|place| Digest::of(format!("{n} {place}").as_bytes()).to_string()).collect();
        Command::Stop { scope: KillSwitchScope::All, groups: vec!["others".to_owned()], note }
    };
    let mut refused = None;
    for n in 0..10_000 {
        let order = organisation.sign(long(n), 1);
        match hub.api.give(&order).await {
            Ok(_) => organisation.keep(&order),
            why => {
                refused = Some((order, refusal(why, 503)));
                break;
            }
        }
    }
    let (order, why) = refused.expect("the disk is full");
    assert!(why.contains("No space left on device"), "{why}");
    // It is refused, not half in force.
    let next = organisation.chain.seq() + 1;
    refusal(hub.api.standing(next).await, 404);

    disk.relieve();
    until("the order is taken", async || {
        // An answer may be late on a busy machine.
        hub.api.give(&order).await.is_ok() || hub.api.standing(next).await.is_ok()
    })
    .await;
    organisation.keep(&order);
    let given = give(&mut organisation, hub.api, stop(&[]), 1).await.seq;
    let permits = joined.permits();
    joined.until(|view| view.order == given && view.is_permitted && view.permits > permits).await;
    until("the hub has no problem", async || hub.problem().is_none()).await;
    until("all is published", async || hub.api.standing(given).await.is_ok_and(|standing| standing.leaf.is_some()))
        .await;
    crate::support::leaves(hub.api).await;
    none_is_in_trouble(&hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_joins_over_tls_though_its_link_drops_and_returns() {
    let term = Duration::from_secs(6);
    let Some(database) = Database::new().await else { return };
    let (pem, key) = certificate("localhost");
    let hub = RunningHub::start(&HubOptions::new(&database.url)).await;
    let over_tls = RunningHub::start(&HubOptions::new(&database.url).tls(&pem, &key)).await;
    let mut organisation = found(hub.api, term.as_secs()).await;
    let link = Proxy::to(over_tls.address()).await;
    let (url, folder) = (format!("https://localhost:{}", link.address.port()), tempfile::tempdir().unwrap());
    let settings = invited("first", &url, &organisation, &folder).authorities(&*pem);

    // The link is down; then the answer to the enrolment is lost, which the hub has carried out.
    let governor = governor();
    link.set(Link::Cut);
    let (down, _) = join(settings.clone(), &governor).await;
    assert!(matches!(down, Err(MemberError::Unreachable(_))), "{down:?}");
    link.set(Link::Late(Duration::from_secs(2)));
    let enrolled = "SELECT count(*)::text FROM governors";
    let (lost, ()) = tokio::join!(join(settings.clone(), &governor), async {
        until("it is enrolled", async || sql(&database.url, enrolled).await.unwrap() == "1").await;
        link.set(Link::Cut);
    });
    assert!(matches!(lost.0, Err(MemberError::Unreachable(_))), "{lost:?}");
    assert!(!governor.enforce(&read()).unwrap().is_allowed(), "it has no permit");

    link.set(Link::Open);
    // With another governor, as a restarted program has; the key file is the same.
    let members = [Deciding::join(settings).await];
    assert_eq!(sql(&database.url, enrolled).await.unwrap(), "1", "the invitation was used once");
    for drop in 0..4 {
        // At once, and in the middle of a handshake, which then hangs.
        link.set(if drop % 2 == 0 { Link::Cut } else { Link::Silent });
        until("the member sees it", async || members[0].member.status().problem.is_some()).await;
        link.set(Link::Open);
        until("it is over", async || members[0].member.status().problem.is_none()).await;
        members[0].until_renewed().await;
    }
    stop_binds(&mut organisation, &hub, &members, term).await;
    none_is_in_trouble(&hub).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_join_that_ran_out_of_patience_can_be_repeated() {
    let Some(database) = Database::new().await else { return };
    let hub = RunningHub::start(&HubOptions::new(&database.url)).await;
    let organisation = found(hub.api, 6).await;
    let link = Proxy::to(hub.address()).await;
    let (url, folder) = (format!("http://{}", link.address), tempfile::tempdir().unwrap());
    let settings = invited("first", &url, &organisation, &folder);
    let governor = governor();
    // The answer to the enrolment arrives; that to the first beat comes too late.
    link.set(Link::Late(Duration::from_secs(1)));
    let (late, _) = join(settings.clone().patience(Duration::from_millis(10)), &governor).await;
    late.expect_err("no permit in time");
    link.set(Link::Open);
    join(settings, &governor).await.0.expect("it joins");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_governor_that_has_left_can_join_again() {
    let Some(database) = Database::new().await else { return };
    let hub = RunningHub::start(&HubOptions::new(&database.url)).await;
    let organisation = found(hub.api, 6).await;
    let (url, folder) = (format!("http://{}", hub.address()), tempfile::tempdir().unwrap());
    let (settings, governor) = (invited("first", &url, &organisation, &folder), governor());
    join(settings.clone(), &governor).await.0.expect("it joins").leave().expect("it leaves");
    join(settings, &governor).await.0.expect("it joins again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_copied_records_is_no_lasting_problem() {
    let Some(database) = Database::new().await else { return };
    let hub = RunningHub::start(&HubOptions::new(&database.url)).await;
    let organisation = found(hub.api, 30).await;
    let link = Proxy::to(hub.address()).await;
    link.set(Link::Late(Duration::from_secs(2)));
    let (url, folder) = (format!("http://{}", link.address), tempfile::tempdir().unwrap());
    let settings = invited("first", &url, &organisation, &folder).copy(CopyRule::Notable);
    let copied = "SELECT coalesce(max(copied), 0)::text FROM governors";
    let governor = governor();
    let (member, ()) = tokio::join!(join(settings, &governor), async {
        until("the hub has the records", async || sql(&database.url, copied).await.unwrap() != "0").await;
        link.set(Link::Cut);
    });
    let member = member.0.expect("it joins");
    until("the member sees that the link is down", async || member.status().problem.is_some()).await;
    link.set(Link::Open);
    until("it knows that the records are copied", async || {
        let status = member.status();
        status.copied > 0 && status.copied == status.anchored
    })
    .await;
    until("it has no problem", async || member.status().problem.is_none()).await;
}
