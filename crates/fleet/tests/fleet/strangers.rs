//! Callers without a key: whatever they hold open or ask for, orders get through and members keep their permits.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rulekeep::Governor;
use rulekeep::checkpoint::CheckpointKey;
use rulekeep::kill_switch::KillSwitchScope;
use rulekeep::system::SystemEntropy;
use rulekeep_fleet::order::Command;
use rulekeep_fleet::wire::{self, MAX_BODY_BYTES, MAX_STRANGERS_BYTES, SIGNATURE};
use rulekeep_server::http::Server;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio_postgres::NoTls;

use crate::support::cluster::{Database, sql};
use crate::support::http::{once, request, signed};
use crate::support::hub::{HubOptions, HubProcess, RunningHub};
use crate::support::member::{Member, Rule};
use crate::support::{Fleet, found, give, until};

const BEAT: &str = "/fleet/v1/beat";
const ORDERS: &str = "/fleet/v1/orders";

#[tokio::test(flavor = "multi_thread")]
async fn an_order_and_a_new_member_get_past_hanging_connections() {
    let Some(database) = Database::new().await else { return };
    let hub = HubProcess::with_files(256, &HubOptions::new(&database.url));
    let mut organisation = found(hub.api, 30).await;
    let member = Member::admitted("first", &["payments"], &organisation, &[hub.address()]).await;
    let member = member.start(Duration::from_secs(2), Rule::Sent);
    let mut waiting = Member::admitted("waiting", &["payments"], &organisation, &[hub.address()]).await;
    let number = "SELECT number FROM governors WHERE id = 'waiting'";
    let known = sql(&database.url, number).await;
    let waiting =
        tokio::spawn(async move { waiting.beat(Duration::from_secs(60)).await.map(|_| waiting.answer.orders) });
    until("its beat is held", async || sql(&database.url, number).await != known).await;
    let before = resident(hub.id());
    let half = request("POST", "/fleet/v1/enrol", &enrolling("guest"), &"x".repeat(MAX_STRANGERS_BYTES));
    let kinds = [
        Vec::new(),
        b"POST /fleet/v1/orders HTTP/1.1\r\nhost: hub\r\nx-slow:".to_vec(),
        half[..half.len() - 1].to_vec(),
        head(ORDERS, "", MAX_STRANGERS_BYTES),
        request("GET", "/", "", ""),
    ];
    let hanging = hang(hub.address(), 400, &kinds).await;
    let permits = member.permits();

    let since = Instant::now();
    give(&mut organisation, hub.api, stop(), 1).await;
    assert!(since.elapsed() < Duration::from_secs(5), "an order took {:?}", since.elapsed());
    assert_eq!(waiting.await.expect("no panic").expect("its beat is not cut").len(), 1);
    Member::admitted("second", &["payments"], &organisation, &[hub.address()]).await;
    member.until(|view| view.order == 2 && view.permits >= permits + 2).await;
    member.until(|view| view.problem.is_none() && view.is_permitted).await;
    let (grown, files) = (resident(hub.id()).saturating_sub(before), open_files(hub.id()));
    assert!(grown < 64 << 10, "{grown} KiB for 400 strangers");
    assert!(files < 230, "{files} open files of 256");
    drop(hanging);
}

#[tokio::test(flavor = "multi_thread")]
async fn members_that_wait_leave_a_place_for_orders() {
    let Some(database) = Database::new().await else { return };
    let server = Server::new().max_connections(8);
    let hub = RunningHub::served_by(server, &HubOptions::new(&database.url)).await.expect("the hub starts");
    let mut organisation = found(hub.api, 30).await;
    let (mut waiting, since) = (Vec::new(), Instant::now());
    for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"] {
        let mut member = Member::admitted(name, &["payments"], &organisation, &[hub.address()]).await;
        waiting.push(tokio::spawn(
            async move { member.beat(Duration::from_secs(30)).await.map(|_| member.answer.orders) },
        ));
    }
    give(&mut organisation, hub.api, stop(), 1).await;
    assert!(since.elapsed() < Duration::from_secs(20), "it waited for a member");
    let mut told = 0;
    for member in waiting {
        told += usize::from(member.await.expect("no panic").is_ok_and(|orders| orders.len() == 1));
    }
    assert!((6..10).contains(&told), "{told} of 10 members in 8 places got the order");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_governor_that_hangs_leaves_places_to_others() {
    let Some(fleet) = Fleet::start().await else { return };
    let server = Server::new().max_connections(40).body_timeout(Duration::from_secs(3_600));
    let hub = RunningHub::served_by(server, &HubOptions::new(&fleet.database.url)).await.expect("the hub starts");
    let bad = fleet.member("bad").await;
    let half = head("/fleet/v1/beat", &signature(&bad.key, "/fleet/v1/beat"), 10);
    let hanging = hang(hub.address(), 40, std::slice::from_ref(&half)).await;
    let mut good = fleet.member("good").await;
    good.go_to(&[hub.address()]);
    let flood = tokio::spawn(async move {
        loop {
            drop(hang(hub.address(), 30, std::slice::from_ref(&half)).await);
        }
    });
    // Held open for longer than the flood takes to fill all places; its connection may be closed before its head is read.
    let mut answered = 0;
    for _ in 0..20 {
        answered += usize::from(good.beat(Duration::from_millis(500)).await.is_ok() && good.answer.permit.is_some());
    }
    flood.abort();
    assert!(answered >= 10, "{answered} of 20 beats were answered");
    drop(hanging);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_head_of_a_request_is_enough_to_refuse_it() {
    let Some(mut fleet) = Fleet::start().await else { return };
    let (member, retired) = (fleet.member("first").await, fleet.member("old").await);
    fleet.give(Command::Retire { governor: "old".to_owned() }, 1).await;
    let other = CheckpointKey::generate("first", &SystemEntropy).expect("a good name");
    let too_long = MAX_STRANGERS_BYTES + 1;
    for (path, headers, length, status) in [
        (BEAT, String::new(), 10, 403),
        (BEAT, signature(&other, BEAT), 10, 403),
        (BEAT, enrolling("nobody"), 10, 403),
        (BEAT, signature(&retired.key, BEAT), too_long, 400),
        (BEAT, signature(&member.key, BEAT), MAX_BODY_BYTES + 1, 400),
        ("/fleet/v1/enrol", signature(&member.key, "/fleet/v1/enrol"), too_long, 400),
        (ORDERS, String::new(), too_long, 400),
    ] {
        let head = head(path, &headers, length);
        // Before the time for a body is over.
        let answer = tokio::time::timeout(Duration::from_secs(8), once(fleet.hub.address(), &head)).await;
        let answer = answer.expect("it does not wait for the body").expect("an answer");
        assert_eq!(answer.status, status, "{path} {headers} {length}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_leave_database_connections_to_members() {
    let Some(mut fleet) = Fleet::start().await else { return };
    let (mut member, mut retired) = (fleet.member("first").await, fleet.member("old").await);
    fleet.give(Command::Retire { governor: "old".to_owned() }, 1).await;
    member.beat(Duration::ZERO).await.expect("the hub answers");
    let lock = Lock::take(&fleet.database, "tiles").await;
    let replayed = serde_json::to_string(&fleet.organisation.orders[0]).expect("JSON");
    let (_, late) = retired.next_beat(Duration::ZERO);
    let kinds = [
        request("GET", "/tile/0/000.p/1", "", ""),
        request("GET", "/checkpoint", "", ""),
        request("POST", ORDERS, "", &replayed),
        signed(&retired.key, BEAT, &late),
    ];
    let asking = hang(fleet.hub.address(), 64, &kinds).await;
    until("tiles are asked for", async || lock.waiting("SELECT hashes%").await > 1).await;
    member.beat(Duration::ZERO).await.expect("the hub answers");
    fleet.give(stop(), 1).await;
    assert!(lock.waiting("SELECT hashes%").await <= 2);
    drop(asking);
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_names_share_one_reading_of_the_keys() {
    let Some(fleet) = Fleet::start().await else { return };
    let lock = Lock::take(&fleet.database, "governors").await;
    let asking = (0..64).map(|number| {
        let key = CheckpointKey::generate(&format!("nobody-{number}"), &SystemEntropy).expect("a good name");
        let asked = request("POST", BEAT, &signature(&key, BEAT), "{}");
        let address = fleet.hub.address();
        tokio::spawn(async move { once(address, &asked).await.map(|answer| answer.status) })
    });
    let asking: Vec<_> = asking.collect();
    until("a key is asked for", async || lock.waiting("SELECT id, key%").await > 0).await;
    // A call on each of as many connections, after which the others have arrived too.
    for _ in 0..64 {
        fleet.hub.api.get("/").await.expect("the hub answers");
    }
    assert_eq!(lock.waiting("SELECT %key%").await, 1);
    drop(lock);
    for asked in asking {
        assert_eq!(asked.await.expect("no panic").expect("an answer"), 403);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_joins_over_tls_past_hanging_handshakes() {
    let Some(fleet) = Fleet::start().await else { return };
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let server = Server::new().tls(certificate.as_bytes(), key.as_bytes()).expect("its key");
    let server = server.max_connections(64).handshake_timeout(Duration::from_secs(3_600));
    let hub = RunningHub::served_by(server, &HubOptions::new(&fleet.database.url)).await.expect("the hub starts");
    // Nothing, and the beginning of a client's first message.
    let hanging = hang(hub.address(), 200, &[Vec::new(), vec![0x16, 3, 1, 2, 0, 1]]).await;
    let (url, folder) = (format!("https://localhost:{}", hub.address().port()), tempfile::tempdir().expect("a folder"));
    let (anchor, file) = (fleet.organisation.trust_anchor().to_string(), folder.path().join("key"));
    let invitation = fleet.organisation.invitation(&["payments"], 1);
    let joined = tokio::task::spawn_blocking(move || {
        let governor = Governor::builder().require_permit().open_in_memory().expect("in memory");
        let member = rulekeep_fleet::Member::builder(&url, &anchor, file).name("first").enrol_with(invitation);
        member.authorities(certificate).join(&governor).map(|member| member.order())
    });
    assert_eq!(joined.await.expect("no panic").expect("it joins"), 1);
    drop(hanging);
}

fn stop() -> Command {
    Command::Stop { scope: KillSwitchScope::All, groups: Vec::new(), note: "test".to_owned() }
}

/// The head of a request whose body does not follow.
fn head(path: &str, headers: &str, length: usize) -> Vec<u8> {
    format!("POST {path} HTTP/1.1\r\nhost: hub\r\ncontent-length: {length}\r\n{headers}\r\n").into_bytes()
}

/// The header with a signature, of an empty body.
fn signature(key: &CheckpointKey, path: &str) -> String {
    format!("{SIGNATURE}: {}\r\n", wire::sign(key, path, ""))
}

/// The header of a governor that enrols under a name.
fn enrolling(name: &str) -> String {
    signature(&CheckpointKey::generate(name, &SystemEntropy).expect("a good name"), "/fleet/v1/enrol")
}

/// Opens connections, sends a text on each and leaves them open.
async fn hang(address: SocketAddr, connections: usize, kinds: &[Vec<u8>]) -> Vec<TcpStream> {
    let mut open = Vec::new();
    for kind in kinds.iter().cycle().take(connections) {
        let mut stream = TcpStream::connect(address).await.expect("the hub listens");
        // It may have lost its place already.
        let _ = stream.write_all(kind).await;
        open.push(stream);
    }
    open
}

/// The resident memory of a process, in KiB.
fn resident(process: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("Linux");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn open_files(process: u32) -> usize {
    std::fs::read_dir(format!("/proc/{process}/fd")).expect("it runs").count()
}

/// A table of the database that nobody can read until the value ends.
struct Lock {
    _client: tokio_postgres::Client,
    url: String,
}

impl Lock {
    async fn take(database: &Database, table: &str) -> Self {
        let (client, connection) = tokio_postgres::connect(&database.url, NoTls).await.expect("the database answers");
        tokio::spawn(connection);
        client.batch_execute(&format!("BEGIN; LOCK TABLE {table}")).await.expect("a table of the hub");
        Self { _client: client, url: database.url.clone() }
    }

    /// The number of statements like this that wait for a lock.
    async fn waiting(&self, like: &str) -> u32 {
        let count =
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
        let found = sql(&self.url, &format!("{count} AND query LIKE '{like}'")).await;
        found.expect("a row").parse().expect("a number")
    }
}
