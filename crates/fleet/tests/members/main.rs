//! Governors as members of an organisation, against a hub on a real PostgreSQL.

use std::sync::Arc;
use std::time::Duration;

use rulekeep::checkpoint::CheckpointKey;
use rulekeep::kill_switch::KillSwitchScope;
use rulekeep::system::{SystemEntropy, Timestamp};
use rulekeep::{Agent, Decision, Durability, Governor, Intent, PolicySet, RiskLevel, Tier};
use rulekeep_fleet::hub::{Hub, Settings};
use rulekeep_fleet::order::{Chain, Command, Order, Organisation, Policies, SignedOrder};
use rulekeep_fleet::wire::{Invitation, Standing};
use rulekeep_fleet::{CopyRule, Member, MemberBuilder};

struct Fleet {
    runtime: tokio::runtime::Runtime,
    url: String,
    ann: CheckpointKey,
    bob: CheckpointKey,
    chain: std::sync::Mutex<Chain>,
    anchor: String,
    folder: tempfile::TempDir,
}

fn key(name: &str) -> CheckpointKey {
    CheckpointKey::generate(name, &SystemEntropy).unwrap()
}

impl Fleet {
    fn start() -> Option<Self> {
        let database = std::env::var("RULEKEEP_FLEET_DATABASE").ok()?;
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let log = key("fleet.example.com");
        let settings = Settings {
            database,
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
            runtime,
            url,
            ann,
            bob,
            chain: std::sync::Mutex::new(Chain::new(None)),
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
        let since = std::time::Instant::now();
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
            // The first seconds of a database are spent on verifying it.
            assert!(since.elapsed() < Duration::from_secs(5), "{text}");
            std::thread::sleep(Duration::from_millis(50));
        }
        chain.add(&signed).unwrap();
        signed
    }

    fn invitation(&self) -> String {
        Invitation {
            organisation: "fleet.example.com".to_owned(),
            id: "i".to_owned(),
            groups: vec!["payments".to_owned()],
            uses: 10,
            expires_at: Timestamp::from_millis(i64::MAX),
        }
        .sign(&self.ann)
    }

    fn member(&self, name: &str) -> MemberBuilder {
        Member::builder(&self.url, &self.anchor, self.folder.path().join(name))
            .name(name)
            .enrol_with(self.invitation())
            .anchor_every(Duration::from_millis(200))
            .copy(CopyRule::Notable)
            .wait(Duration::from_secs(1))
    }
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

#[test]
fn a_member_decides_while_it_is_permitted_and_follows_orders() {
    let Some(fleet) = Fleet::start() else { return };
    let governor = governor();
    assert_eq!(read(&governor), Decision::Deny, "there is no permit yet");
    let member = fleet.member("g1").join(&governor).unwrap();
    assert_eq!(read(&governor), Decision::Allow);
    println!("{:?}", member.status());
    fleet.order(Command::Stop { scope: KillSwitchScope::All, groups: Vec::new(), note: "wrong payees".to_owned() });
    assert!(member.wait_for_order(2, Duration::from_secs(2)));
    assert_eq!(read(&governor), Decision::Deny);
    fleet.order(Command::Lift { order: 2, note: String::new() });
    assert!(member.wait_for_order(3, Duration::from_secs(2)));
    assert_eq!(read(&governor), Decision::Allow);
    let document = r#"
        name = "limits"
        [[rule]]
        id = "refunds"
        effect = "allow"
        match.capabilities = ["payment:transfer"]
        limit = { sum = "amount", max = 100, per = "1d", by = "organisation" }
    "#;
    fleet.order(Command::Policies(Policies { groups: Vec::new(), document: document.to_owned(), plan: Vec::new() }));
    assert!(member.wait_for_order(4, Duration::from_secs(2)));
    std::thread::sleep(Duration::from_millis(100));
    let pay = |amount: i64| {
        let mut intent = Intent::new("a", "pay_invoice", RiskLevel::Low, ["payment:transfer"]).unwrap();
        intent.context.insert("amount".to_owned(), amount.into());
        let since = std::time::Instant::now();
        let verdict = governor.enforce(&intent).unwrap();
        println!("{amount}: {:?} {} {:?}", verdict.decision, verdict.reasoning, since.elapsed());
        verdict.decision
    };
    assert_eq!(pay(60), Decision::Allow);
    assert_eq!(pay(41), Decision::Deny);
    assert_eq!(pay(40), Decision::Allow);
    std::thread::sleep(Duration::from_secs(1));
    println!("{:?}", member.status());
    member.leave().unwrap();
    assert_eq!(read(&governor), Decision::Deny);
}
