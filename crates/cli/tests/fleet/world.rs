//! The files of an organisation's operators, and a stand-in for its hub that keeps orders in memory.

#![allow(dead_code)] // tests of two programs share it

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use rulekeep::checkpoint::{Checkpoint, CheckpointKey, InclusionProof};
use rulekeep::kill_switch::KillSwitchScope;
use rulekeep::system::Timestamp;
use rulekeep::{Agent, Governor, Intent, RiskLevel, Tier};
use rulekeep_fleet::bundle::{Bundle, IncludedLeaf};
use rulekeep_fleet::cosignature::{WitnessKey, cosign};
use rulekeep_fleet::enrolment::{Enrol, Invitation};
use rulekeep_fleet::hub::{MemberInfo, Members};
use rulekeep_fleet::log::{self, Head, Leaf};
use rulekeep_fleet::order::{Chain, Command, Mode, Order, Organisation, Policies, SignedOrder, Stage};
use rulekeep_fleet::wire::Standing;
use rulekeep_fleet::write_key;
use serde_json::{Value, json};

pub(crate) const NAME: &str = "fleet.example.com";
pub(crate) const TOKEN: &str = "secret";
pub(crate) const POLICY: &str = "name = \"none\"\n";

pub(crate) fn key(name: &str) -> CheckpointKey {
    let first = name.bytes().next().unwrap();
    CheckpointKey::from_seed(name, &[first; 32]).unwrap()
}

/// Writes the keys of operators, log and witness, a bundle, and an order that one operator has signed.
pub(crate) fn write(folder: &Path) {
    for (name, file) in [("ann", "ann"), ("bob", "bob"), (NAME, "log"), ("witness.example.net", "witness")] {
        write_key(&folder.join(format!("{file}.key")), &key(name)).unwrap();
        let public = match file {
            "witness" => WitnessKey::from_seed(name, &key(name).seed()).unwrap().to_string(),
            _ => key(name).verifier().to_string(),
        };
        fs::write(folder.join(format!("{file}.pub")), public).unwrap();
    }
    fs::write(folder.join("bundle.json"), serde_json::to_string(&bundle()).unwrap()).unwrap();
    let order = next(&orders(), Command::Readmit { governor: "desk-1".to_owned() }, &["ann"]);
    fs::write(folder.join("order.json"), serde_json::to_string(&order).unwrap()).unwrap();
}

/// Three orders: the founding, a rollout and a kill switch.
pub(crate) fn orders() -> Vec<SignedOrder> {
    let organisation = Organisation {
        name: NAME.to_owned(),
        log: key(NAME).verifier().to_string(),
        operators: ["ann", "bob"].map(|name| key(name).verifier().to_string()).to_vec(),
        needed: 1,
        needed_to_loosen: 2,
        permit_seconds: 30,
    };
    let stage = |mode, percent| Stage { mode, percent, soak_seconds: 3600 };
    let plan = vec![stage(Mode::Shadow, 5), stage(Mode::Enforce, 5), stage(Mode::Enforce, 100)];
    let policies = Policies { groups: Vec::new(), document: POLICY.to_owned(), plan };
    let stop = Command::Stop { scope: KillSwitchScope::All, groups: Vec::new(), note: "wrong payees".to_owned() };
    let mut orders = Vec::new();
    for command in [Command::Organisation(organisation), Command::Policies(policies), stop] {
        let order = next(&orders, command, &["ann", "bob"]);
        orders.push(order);
    }
    orders
}

fn next(orders: &[SignedOrder], command: Command, by: &[&str]) -> SignedOrder {
    let keys: Vec<_> = by.iter().map(|name| key(name)).collect();
    Order::next(&chain(orders), Timestamp::from_millis(0), command).sign(&keys).unwrap()
}

fn chain(orders: &[SignedOrder]) -> Chain {
    let mut chain = Chain::new(None);
    for order in orders {
        chain.add(order).unwrap();
    }
    chain
}

/// A bundle of a log with three leaves.
pub(crate) fn bundle() -> Bundle {
    let governor_key = key("desk-1");
    let governor = Governor::builder().checkpoints(governor_key.clone()).open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    let intent = Intent::new("a", "read_document", RiskLevel::Low, ["document:read"]).unwrap();
    let id = governor.enforce(&intent).unwrap().proof_id;
    let proof = governor.log().prove(&id).unwrap();
    let record = serde_json::to_value(governor.log().record(&id).unwrap()).unwrap();
    let (governor, at) = ("desk-1".to_owned(), Timestamp::from_millis(0));
    let own = key("invitation");
    let (organisation, key_of_invitation) = (NAME.to_owned(), own.verifier().to_string());
    let invitation = Invitation { organisation, key: key_of_invitation, groups: Vec::new(), uses: 1, expires_at: at };
    let enrol = Enrol::accept(&invitation.sign(&own, &key("ann")), &governor_key, None).unwrap();
    let Enrol { key: governor_key, groups, proof: enrolment } = enrol;
    let enrol =
        Leaf::Enrol { governor: governor.clone(), key: governor_key.clone(), groups, at, proof: Some(enrolment) };
    let note = proof.parse::<InclusionProof>().unwrap().checkpoint;
    let leaves = [enrol, Leaf::Anchor { governor, note, at }].map(|leaf| leaf.to_bytes().unwrap());
    let appended = log::append(&Head::EMPTY, &HashMap::new(), &leaves).unwrap();
    let (head, tiles) = (appended.head, appended.tiles.into_iter().collect::<HashMap<_, _>>());
    let [enrol, anchor] = [0, 1].map(|index| {
        let leaf = String::from_utf8(leaves[usize::try_from(index).unwrap()].clone()).unwrap();
        IncludedLeaf::new(index, leaf, &log::inclusion(index, &head, &tiles).unwrap())
    });
    let note = Checkpoint::new(NAME, head.size, head.root).unwrap().sign(&key(NAME)).unwrap();
    let witness = key("witness.example.net");
    let line = cosign(&note, witness.name(), &witness.seed(), 0).unwrap();
    Bundle { record, proof, governor_key, anchor, enrol, checkpoint: note + &line }
}

/// A stand-in for a hub: it verifies orders, and its answers are fixed otherwise. It serves until the process ends.
pub(crate) struct Hub {
    pub(crate) url: String,
    /// The digest of the first of [`orders`].
    pub(crate) anchor: String,
    /// The queries of requests for records and bundles, as they came.
    pub(crate) queries: Arc<Mutex<Vec<String>>>,
}

impl Hub {
    /// Starts a hub that has these orders. If it does not keep new ones, it accepts each that follows them.
    pub(crate) fn start(orders: Vec<SignedOrder>, keeps: bool) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let anchor = orders.first().map(|first| first.digest().to_string()).unwrap_or_default();
        let (orders, queries) = (Mutex::new(orders), Arc::<Mutex<Vec<String>>>::default());
        let seen = Arc::clone(&queries);
        thread::spawn(move || {
            for stream in listener.incoming() {
                answer(&stream.unwrap(), &orders, keeps, &seen);
            }
        });
        Self { url, anchor, queries }
    }
}

/// Answers the one request of a connection.
fn answer(mut stream: &TcpStream, orders: &Mutex<Vec<SignedOrder>>, keeps: bool, queries: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream);
    let (mut first, mut length, mut is_reader) = (String::new(), 0, false);
    reader.read_line(&mut first).unwrap();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        length = line.strip_prefix("content-length: ").map_or(length, |length| length.parse().unwrap());
        is_reader |= line == format!("authorization: bearer {TOKEN}");
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let mut words = first.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut orders = orders.lock().unwrap();
    let (status, answer) = match (method, path) {
        ("POST", "/fleet/v1/orders") => {
            let order: SignedOrder = serde_json::from_slice(&body).unwrap();
            match chain(&orders).add(&order) {
                Ok(added) => {
                    if keeps {
                        orders.push(order);
                    }
                    (200, json!(standing(added.seq, 285)))
                }
                Err(error) => (409, json!({ "error": error.to_string() })),
            }
        }
        ("GET", _) if !is_reader => (403, json!({ "error": "reading needs the hub's token" })),
        (_, "/fleet/v1/orders") => {
            let after: usize = query.strip_prefix("after=").unwrap().parse().unwrap();
            (200, json!(orders.iter().skip(after).take(2).collect::<Vec<_>>()))
        }
        (_, "/fleet/v1/members") => (200, members()),
        (_, "/fleet/v1/records") => {
            queries.lock().unwrap().push(query.to_owned());
            (200, json!([{ "governor": "desk-1", "record": { "decision": "DENY", "reasoning": "\u{9b}2J" } }]))
        }
        (_, path) if path.starts_with("/fleet/v1/bundles/") => {
            queries.lock().unwrap().push(query.to_owned());
            (200, json!(bundle()))
        }
        (_, path) => match path.strip_prefix("/fleet/v1/orders/").map(str::parse) {
            Some(Ok(seq)) => (200, json!(standing(seq, 0))),
            _ => (404, json!({ "error": "no such call" })),
        },
    };
    let answer = answer.to_string();
    let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", answer.len());
    stream.write_all((head + &answer).as_bytes()).unwrap();
}

fn standing(seq: u64, open: u64) -> Standing {
    let bound = "2026-01-31T14:02:31.250Z".parse().unwrap();
    Standing { seq, leaf: None, acknowledged: 9712, ended: 3, open, refused: Vec::new(), bound }
}

fn members() -> Value {
    let member = |id: &str, trouble: &str| MemberInfo {
        id: id.to_owned(),
        groups: vec!["payments".to_owned()],
        is_retired: false,
        order: 3,
        refused: BTreeMap::new(),
        open_actions: 0,
        anchored: 120,
        anchored_at: 1_769_850_000_000,
        copied: 100,
        seen_at: 1_769_850_060_000,
        skew_ms: 3,
        permit_until: 1_769_850_090_000,
        trouble: trouble.to_owned(),
    };
    let members = vec![member("desk-1", ""), member("desk-2", "its log was forked\u{1b}[31m")];
    let (organisation, now) = (Some(NAME.to_owned()), 1_769_850_061_000);
    json!(Members { organisation, now, order: 3, stops: json!({}), stages: BTreeMap::from([(2, 1)]), members })
}
