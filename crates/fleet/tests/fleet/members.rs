//! Governors as members of an organisation, against a hub on a real PostgreSQL.

use std::path::Path;
use std::process::Command as Process;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rulekeep::checkpoint::CheckpointKey;
use rulekeep::extension::Extension;
use rulekeep::kill_switch::KillSwitchScope;
use rulekeep::system::{SystemEntropy, Timestamp};
use rulekeep::{Agent, Decision, Durability, Governor, Intent, RiskLevel, Tier};
use rulekeep_fleet::bundle::Bundle;
use rulekeep_fleet::enrolment::Invitation;
use rulekeep_fleet::hub::{Found, Hub, Members, Settings};
use rulekeep_fleet::order::{Chain, Command, Order, Organisation, SignedOrder};
use rulekeep_fleet::wire::Standing;
use rulekeep_fleet::{CopyRule, Member, MemberBuilder, MemberError, Offline};

use crate::support::cluster::Database;
use crate::support::organisation::limited;

struct Fleet {
    _database: Database,
    hub: tokio::runtime::Runtime,
    log: CheckpointKey,
    url: String,
    ann: CheckpointKey,
    bob: CheckpointKey,
    chain: Mutex<Chain>,
    anchor: String,
    folder: tempfile::TempDir,
}

fn key(name: &str) -> CheckpointKey {
    CheckpointKey::generate(name, &SystemEntropy).unwrap()
}

impl Fleet {
    fn start() -> Option<Self> {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let database = runtime.block_on(Database::new())?;
        let log = key("fleet.example.com");
        let settings = Settings {
            database: database.url.clone(),
            database_ca: None,
            key: log.clone(),
            witnesses: Vec::new(),
            publish: None,
            read_token: Some("secret".to_owned()),
        };
        let url = runtime.block_on(async {
            let hub = Hub::start(settings).await.unwrap();
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}", listener.local_addr().unwrap());
            tokio::spawn(async move { axum::serve(listener, hub.router()).await });
            url
        });
        let (ann, bob) = (key("ann"), key("bob"));
        let founding = Command::Organisation(Organisation {
            name: "fleet.example.com".to_owned(),
            log: log.verifier().to_string(),
            operators: [&ann, &bob].map(|key| key.verifier().to_string()).to_vec(),
            needed: 1,
            needed_to_loosen: 2,
            permit_seconds: 3,
        });
        let mut fleet = Self {
            _database: database,
            hub: runtime,
            log,
            url,
            ann,
            bob,
            chain: Mutex::new(Chain::new(None)),
            anchor: String::new(),
            folder: tempfile::tempdir().unwrap(),
        };
        fleet.anchor = fleet.order(founding).digest().to_string();
        Some(fleet)
    }

    fn order(&self, command: Command) -> SignedOrder {
        let mut chain = self.chain.lock().unwrap();
        let signed = Order::next(&chain, Timestamp::from_millis(0), command)
            .sign(&[self.ann.clone(), self.bob.clone()])
            .unwrap();
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let body = serde_json::to_string(&signed).unwrap();
        let since = Instant::now();
        loop {
            let mut answer = agent
                .post(format!("{}/fleet/v1/orders", self.url))
                .header("content-type", "application/json")
                .send(&body)
                .unwrap();
            let text = answer.body_mut().read_to_string().unwrap();
            if answer.status() == 200 {
                let _: Standing = serde_json::from_str(&text).unwrap();
                break;
            }
            // Until the log is verified, a database takes no orders.
            assert!(since.elapsed() < Duration::from_secs(10), "{text}");
            std::thread::sleep(Duration::from_millis(50));
        }
        chain.add(&signed).unwrap();
        signed
    }

    fn invitation(&self) -> String {
        let own = key("invitation");
        let invitation = Invitation {
            organisation: "fleet.example.com".to_owned(),
            key: own.verifier().to_string(),
            groups: vec!["payments".to_owned()],
            uses: 10,
            expires_at: Timestamp::from_millis(i64::MAX),
        };
        invitation.sign(&own, &self.ann)
    }

    fn member(&self, name: &str) -> MemberBuilder {
        Member::builder(&self.url, &self.anchor, self.folder.path().join(name))
            .name(name)
            .enrol_with(self.invitation())
            .anchor_every(Duration::from_millis(200))
            .copy(CopyRule::Notable)
            .wait(Duration::from_secs(1))
    }

    fn get<A: serde::de::DeserializeOwned>(&self, path: &str) -> A {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut answer =
            agent.get(format!("{}{path}", self.url)).header("authorization", "Bearer secret").call().unwrap();
        let text = answer.body_mut().read_to_string().unwrap();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error} in {text}"))
    }

    fn trouble_of(&self, governor: &str) -> String {
        let members: Members = self.get("/fleet/v1/members");
        members.members.into_iter().find(|member| member.id == governor).unwrap().trouble
    }
}

/// Waits until something holds.
fn eventually(what: &str, holds: impl Fn() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < Duration::from_secs(15), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn opened(folder: &Path) -> Governor {
    let governor = Governor::builder().durability(Durability::Buffered).require_permit().open(folder).unwrap();
    governor.agents().ensure(Agent::new("a").at_tier(Tier::T4)).unwrap();
    governor
}

fn governor() -> Governor {
    let governor = Governor::builder().durability(Durability::Buffered).require_permit().open_in_memory().unwrap();
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    governor
}

fn read(governor: &Governor) -> Decision {
    let intent = Intent::new("a", "read_document", RiskLevel::Low, ["document:read"]).unwrap();
    governor.enforce(&intent).unwrap().decision
}

fn pay(governor: &Governor, amount: i64) -> Decision {
    let mut intent = Intent::new("a", "pay_invoice", RiskLevel::Low, ["payment:transfer"]).unwrap();
    intent.context.insert("amount".to_owned(), amount.into());
    governor.enforce(&intent).unwrap().decision
}

fn stop_all() -> Command {
    Command::Stop { scope: KillSwitchScope::All, groups: Vec::new(), note: "wrong payees".to_owned() }
}

const SOON: Duration = Duration::from_secs(5);

#[test]
fn a_member_decides_while_it_is_permitted_and_follows_orders() {
    let Some(fleet) = Fleet::start() else { return };
    let governor = governor();
    assert_eq!(read(&governor), Decision::Deny, "there is no permit yet");
    let member = fleet.member("g1").join(&governor).unwrap();
    assert_eq!(read(&governor), Decision::Allow);
    fleet.order(stop_all());
    assert!(member.wait_for_order(2, SOON));
    eventually("it is stopped", || read(&governor) == Decision::Deny);
    let stop = governor.kill_switch().list().remove(0);
    assert_eq!((stop.by.as_str(), stop.note.as_str()), ("organisation/order 2 by ann, bob", "wrong payees"));
    governor.kill_switch().lift(&stop.id, "mallory", "").unwrap_err();
    fleet.order(Command::Lift { order: 2, note: String::new() });
    eventually("it is lifted", || read(&governor) == Decision::Allow);
    member.leave().unwrap();
    assert_eq!(read(&governor), Decision::Deny, "it has left");
}

#[test]
fn without_a_hub_permits_end_and_reads_last_the_offline_term() {
    let Some(mut fleet) = Fleet::start() else { return };
    let group = "payments".to_owned();
    fleet.order(Command::Offline { group, seconds: 3 });
    let (strict, lenient) = (governor(), governor());
    let _strict = fleet.member("strict").join(&strict).unwrap();
    let _lenient =
        fleet.member("lenient").offline(Offline::low_risk_for(Duration::from_secs(60))).join(&lenient).unwrap();
    let email = Intent::new("a", "send_email", RiskLevel::Medium, ["email:send"]).unwrap();
    let class = |governor: &Governor| governor.enforce(&email).unwrap().denial_class.map(|class| class.to_string());
    assert_eq!(class(&lenient), None);
    std::mem::replace(&mut fleet.hub, tokio::runtime::Runtime::new().unwrap()).shutdown_background();
    let since = Instant::now();
    eventually("the strict one denies", || read(&strict) == Decision::Deny);
    assert!(since.elapsed() <= Duration::from_secs(3), "{:?}", since.elapsed());
    eventually("the offline term begins", || class(&lenient).as_deref() == Some("no_permit"));
    assert_eq!(read(&lenient), Decision::Allow);
    eventually("the offline term ends", || read(&lenient) == Decision::Deny);
    assert!((Duration::from_secs(4)..=Duration::from_secs(6)).contains(&since.elapsed()), "{:?}", since.elapsed());
}

#[test]
fn a_restored_folder_is_refused_until_it_is_readmitted() {
    let Some(fleet) = Fleet::start() else { return };
    let folder = fleet.folder.path().join("store");
    let governor = opened(&folder);
    let member = fleet.member("g1").join(&governor).unwrap();
    fleet.order(stop_all());
    eventually("it is stopped", || read(&governor) == Decision::Deny);
    drop(member);
    governor.close().unwrap();
    drop(governor);
    let copy = fleet.folder.path().join("copy");
    assert!(Process::new("cp").arg("-a").args([&folder, &copy]).status().unwrap().success());

    let governor = opened(&folder);
    let member = fleet.member("g1").join(&governor).unwrap();
    assert_eq!(governor.kill_switch().list().len(), 1, "it is not set twice");
    fleet.order(Command::Lift { order: 2, note: String::new() });
    eventually("it is lifted", || read(&governor) == Decision::Allow);
    let (size, _) = Extension::of(&governor).tree_head().unwrap();
    eventually("it is anchored", || member.status().anchored >= size);
    drop(member);
    governor.close().unwrap();

    let restored = opened(&copy);
    let refused = fleet.member("g1").patience(Duration::from_secs(3)).join(&restored).unwrap_err();
    assert!(matches!(&refused, MemberError::Refused(why) if why.contains("an earlier copy was restored")), "{refused}");
    assert_eq!(read(&restored), Decision::Deny);
    fleet.order(Command::Readmit { governor: "g1".to_owned() });
    restored.close().unwrap();
    let restored = opened(&copy);
    let member = fleet.member("g1").join(&restored).unwrap();
    eventually("orders are in force again", || read(&restored) == Decision::Allow);
    assert_eq!(fleet.trouble_of("g1"), "");
    drop(member);
}

#[test]
fn a_governor_keeps_the_groups_that_it_enrolled_in() {
    let Some(fleet) = Fleet::start() else { return };
    let folder = fleet.folder.path().join("store");
    let governor = opened(&folder);
    fleet.member("g1").join(&governor).unwrap().leave().unwrap();
    governor.close().unwrap();
    drop(governor);
    let stop = Command::Stop { scope: KillSwitchScope::All, groups: vec!["payments".to_owned()], note: "x".to_owned() };
    fleet.order(stop);

    let governor = opened(&folder);
    let member = fleet.member("g1").enrol_with(None).join(&governor).unwrap();
    assert_eq!(member.status().groups, ["payments"]);
    assert_eq!(governor.kill_switch().list().len(), 1);
    member.leave().unwrap();
    // Groups are in the store, so without it the invitation is needed again.
    let lost = fleet.member("g1").enrol_with(None).join(&self::governor()).unwrap_err();
    assert!(lost.to_string().contains("the store does not have the groups of this key"), "{lost}");
}

#[test]
fn two_processes_with_one_key_are_both_stopped() {
    let Some(fleet) = Fleet::start() else { return };
    let (first, second) = (governor(), governor());
    let one = fleet.member("g1").join(&first).unwrap();
    // The second has another log under the same name.
    let other = fleet.member("g1").patience(Duration::from_secs(3)).join(&second);
    assert!(matches!(&other, Err(MemberError::Refused(why)) if why.contains("readmit")), "{other:?}");
    eventually("the first has no permit either", || read(&first) == Decision::Deny);
    assert_ne!(fleet.trouble_of("g1"), "");
    drop(one);
}

#[test]
fn a_limit_of_the_organisation_holds_over_all_governors() {
    let Some(fleet) = Fleet::start() else { return };
    for share in ["reserve", "lease"] {
        let order = fleet.order(limited(&format!("refunds-{share}"), share, 1_000, "1d")).read().unwrap().seq;
        let governors: Vec<Governor> = (0..4).map(|_| governor()).collect();
        let members: Vec<Member> = governors
            .iter()
            .enumerate()
            .map(|(place, governor)| fleet.member(&format!("{share}-{place}")).join(governor).unwrap())
            .collect();
        assert!(members.iter().all(|member| member.wait_for_order(order, SOON)));
        let spent: i64 = std::thread::scope(|scope| {
            let spend = |governor: &Governor| {
                let name = |set: rulekeep::PolicySet| set.shared_limits().len();
                eventually("the limits are in force", || name(governor.policies().current()) == 1);
                (0..60).map(|_| if pay(governor, 7) == Decision::Allow { 7 } else { 0 }).sum::<i64>()
            };
            let threads: Vec<_> = governors.iter().map(|governor| scope.spawn(move || spend(governor))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert!(spent <= 1_000, "{share}: {spent}");
        assert!(spent > if share == "reserve" { 986 } else { 700 }, "{share}: {spent}");
    }
}

#[test]
fn notable_records_are_copied_and_a_stranger_verifies_one() {
    let Some(fleet) = Fleet::start() else { return };
    let governor = governor();
    let member = fleet.member("g1").join(&governor).unwrap();
    let intent = Intent::new("a", "delete_database", RiskLevel::Critical, ["database:delete"]).unwrap();
    let verdict = governor.enforce(&intent).unwrap();
    read(&governor);
    eventually("it is copied", || member.status().copied > verdict.proof_id.sequence().get());
    let found: Vec<Found> = fleet.get("/fleet/v1/records?agent=a");
    assert!(found.iter().all(|found| !found.record.get().contains("ALLOW")), "an ordinary read is not copied");
    assert!(found.iter().any(|found| found.record.get().contains(&verdict.proof_id.to_string())));
    let bundle: Bundle = {
        let path = format!("/fleet/v1/bundles/{}", verdict.proof_id);
        let since = Instant::now();
        loop {
            let value: serde_json::Value = fleet.get(&path);
            match serde_json::from_value(value.clone()) {
                Ok(bundle) => break bundle,
                Err(error) => assert!(since.elapsed() < SOON, "{error}: {value}"),
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    let verified = bundle.verify(&fleet.log.verifier(), &[fleet.ann.verifier()], &[], 0).unwrap();
    assert_eq!((verified.governor.as_str(), verified.record), ("g1", verdict.proof_id));
}

#[test]
fn revoked_keys_are_told_and_a_false_anchor_joins_nobody() {
    let Some(fleet) = Fleet::start() else { return };
    let governor = governor();
    let told = Arc::new(Mutex::new(Vec::new()));
    let hears = Arc::clone(&told);
    let _member = fleet
        .member("g1")
        .on_revoked_keys(move |keys| hears.lock().unwrap().extend(keys.iter().cloned()))
        .join(&governor)
        .unwrap();
    fleet.order(Command::RevokeKeys { keys: ["key_1".to_owned()].into() });
    eventually("it is told", || *told.lock().unwrap() == ["key_1"]);
    let other = governor_with_other_anchor(&fleet);
    assert!(matches!(&other, Err(MemberError::Refused(why)) if why.contains("trust anchor")), "{other:?}");
}

fn governor_with_other_anchor(fleet: &Fleet) -> Result<Member, MemberError> {
    let anchor = rulekeep::proof::Digest::new([7; 32]).to_string();
    Member::builder(&fleet.url, &anchor, fleet.folder.path().join("g2"))
        .name("g2")
        .enrol_with(fleet.invitation())
        .patience(Duration::from_secs(2))
        .join(&governor())
}
