//! `rulekeep fleet`: keys, orders with the signatures of several people, reading calls and bundles.

#![allow(clippy::unwrap_used)] // helpers of tests

mod world;

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rulekeep_fleet::cosignature::{WitnessKey, cosigned_by};
use rulekeep_fleet::enrolment::Enrol;
use rulekeep_fleet::order::{Chain, SignedOrder};
use serde_json::Value;
use tempfile::TempDir;
use world::Hub;

const PROGRAM: &str = env!("CARGO_BIN_EXE_rulekeep");

/// A folder with the files of the operators.
struct Desk(TempDir);

impl Desk {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        world::write(folder.path());
        fs::write(folder.path().join("policy.toml"), world::POLICY).unwrap();
        Self(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn run(&self, hub: Option<&Hub>, arguments: &[&str]) -> Output {
        let mut command = Command::new(PROGRAM);
        command.arg("fleet").args(arguments).current_dir(self.path()).env("HOME", self.path());
        for name in ["RULEKEEP_FLEET_HUB", "RULEKEEP_FLEET_ANCHOR", "RULEKEEP_FLEET_TOKEN"] {
            command.env_remove(name);
        }
        if let Some(hub) = hub {
            command.env("RULEKEEP_FLEET_HUB", &hub.url).env("RULEKEEP_FLEET_TOKEN", world::TOKEN);
            command.env("RULEKEEP_FLEET_ANCHOR", &hub.anchor);
        }
        command.output().unwrap()
    }

    fn ok(&self, hub: Option<&Hub>, arguments: &[&str]) -> String {
        let output = self.run(hub, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    fn fails(&self, code: i32, hub: Option<&Hub>, arguments: &[&str]) -> String {
        let output = self.run(hub, arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        said
    }

    fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path().join(file)).unwrap()
    }
}

#[test]
fn a_key_is_private_and_its_public_half_is_printed() {
    use std::os::unix::fs::PermissionsExt as _;
    let desk = Desk::new();
    let public = desk.ok(None, &["key", "dana", "--out", "dana.key"]);
    let key = rulekeep_fleet::read_key(&desk.path().join("dana.key")).unwrap();
    assert_eq!(public, key.verifier().to_string());
    let mode = fs::metadata(desk.path().join("dana.key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(desk.fails(1, None, &["key", "dana", "--out", "dana.key"]).contains("dana.key: File exists"));
    assert!(desk.fails(1, None, &["key", "da na", "--out", "x.key"]).contains("without spaces"));
    assert!(!desk.path().join("x.key").exists());
    let witness = desk.ok(None, &["key", "w1", "--witness", "--out", "w1.key"]);
    witness.parse::<rulekeep_fleet::cosignature::WitnessKey>().unwrap();
}

#[test]
fn two_people_at_different_machines_found_an_organisation() {
    let desk = Desk::new();
    let [log, ann, bob] = ["log.pub", "ann.pub", "bob.pub"].map(|file| desk.read(file));
    let found = ["found", "--name", world::NAME, "--log", &log, "--operator", &ann, "--operator", &bob];
    let found = [&found[..], &["--needed", "1", "--needed-to-loosen", "2", "--sign", "ann.key"]].concat();
    let alone = desk.fails(1, None, &found);
    assert!(alone.contains("signed by 1 of the operators; it needs 2") && alone.contains("fleet sign"), "{alone}");

    let anchor = desk.ok(None, &[&found[..], &["--out", "first.json"]].concat());
    let shown = desk.run(None, &["sign", "first.json", "--sign", "bob.key"]);
    assert!(shown.status.success());
    assert!(String::from_utf8(shown.stderr).unwrap().contains("neededToLoosen"), "what is signed is shown");
    let order: SignedOrder = serde_json::from_str(&desk.read("first.json")).unwrap();
    Chain::new(Some(anchor.parse().unwrap())).add(&order).unwrap();

    let hub = Hub::start(Vec::new(), true);
    let given = ["sign", "first.json", "--sign", "bob.key", "--post", "--hub", &hub.url];
    assert_eq!(desk.ok(None, &given), anchor, "the trust anchor is printed");
    assert!(desk.fails(1, None, &given).contains("the hub refuses: the order has number 1"));
}

#[test]
fn an_order_is_verified_signed_given_and_waited_for() {
    let (desk, hub) = (Desk::new(), Hub::start(world::orders(), true));
    let hub = Some(&hub);
    let kill = ["kill", "--agent", "support-1", "--note", "wrong payees", "--sign", "ann.key"];
    let said = desk.ok(hub, &kill);
    assert_eq!(said, "order 4: 9,712 acknowledged, 3 ended, 285 open until 14:02:31Z at the latest");
    let said = desk.ok(hub, &[&kill[..], &["--wait"]].concat());
    assert_eq!(said, "order 5: 9,712 acknowledged, 3 ended, 0 open");
    let said: Value = serde_json::from_str(&desk.ok(hub, &[&kill[..], &["--json"]].concat())).unwrap();
    assert_eq!((&said["seq"], &said["open"]), (&Value::from(6), &Value::from(285)));

    let lift = ["lift", "4", "--sign", "ann.key"];
    assert!(desk.fails(1, hub, &lift).contains("it needs 2"));
    desk.ok(hub, &[&lift[..], &["--sign", "bob.key"]].concat());
    let roll = ["roll", "policy.toml", "--plan", "shadow:5%:1h,canary:5%:4h,all", "--sign", "ann.key"];
    desk.ok(hub, &[&roll[..], &["--out", "roll.json"]].concat());
    let order: SignedOrder = serde_json::from_str(&desk.read("roll.json")).unwrap();
    let order: Value = serde_json::from_str(&order.body).unwrap();
    let plan = &order["command"]["policies"]["plan"];
    assert_eq!(plan[0], serde_json::json!({ "mode": "shadow", "percent": 5, "soakSeconds": 3600 }));
    assert_eq!(plan[2], serde_json::json!({ "mode": "enforce", "percent": 100, "soakSeconds": 0 }));
    desk.ok(hub, &["sign", "roll.json", "--sign", "bob.key", "--post"]);
    desk.ok(hub, &["skip", "8", "3", "--sign", "ann.key", "--sign", "bob.key"]);
    let limit = ["limit", "refunds/sum of amount/organisation", "0.25", "--sign", "ann.key", "--sign", "bob.key"];
    desk.ok(hub, &[&limit[..], &["--out", "limit.json"]].concat());
    assert!(desk.read("limit.json").contains(r#"\"max\":250000"#));
    for order in [&["revoke", "key_1", "key_2"][..], &["retire", "desk-1"], &["offline", "support", "0"]] {
        desk.ok(hub, &[order, &["--sign", "ann.key"]].concat());
    }
    desk.ok(hub, &["reopen", "--sign", "ann.key", "--sign", "bob.key"]);
}

#[test]
fn what_cannot_be_meant_is_refused_before_it_is_given() {
    let (desk, hub) = (Desk::new(), Hub::start(world::orders(), true));
    let hub = Some(&hub);
    let both = ["--sign", "ann.key", "--sign", "bob.key"];
    let refused = |code, order: &[&str]| desk.fails(code, hub, &[order, &both[..]].concat());
    assert!(refused(2, &["kill", "--note", "x"]).contains("required"));
    assert!(refused(2, &["roll", "policy.toml", "--plan", "shadow:5%"]).contains("shadow:5%:1h,canary"));
    assert!(refused(1, &["roll", "policy.toml", "--plan", "shadow:5%:1h"]).contains("its last stage enforces"));
    assert!(refused(1, &["lift", "2"]).contains("order 2 is not a kill switch in force"));
    assert!(refused(2, &["skip", "2", "0"]).contains("not in 1.."));
    assert!(refused(1, &["skip", "2", "4"]).contains("order 2 is no rollout with a stage 4"));
    assert!(refused(2, &["limit", "a/count/organisation", "1e3"]).contains("such as 5000 or 0.25"));
    fs::write(desk.path().join("bad.toml"), "[[rule]]\n").unwrap();
    assert!(refused(1, &["roll", "bad.toml"]).contains("does not load"));

    let who = desk.fails(2, None, &["who"]);
    assert!(who.contains("RULEKEEP_FLEET_TOKEN"), "{who}");
    let plain = desk.fails(2, hub, &["who", "--hub", "http://localhost.example.com"]);
    assert!(plain.contains("expected an https URL"), "{plain}");
    let anchor = format!("sha256:{}", "0".repeat(64));
    let other = ["retire", "desk-1", "--sign", "ann.key", "--trust-anchor", &anchor];
    assert!(desk.fails(1, hub, &other).contains("the hub sent a false order: the first order is"));
}

#[test]
fn an_invitation_is_signed_by_an_operator_only() {
    let (desk, hub) = (Desk::new(), Hub::start(world::orders(), true));
    let enrol = ["enrol", "--group", "payments", "--uses", "100", "--for", "1d", "--sign"];
    let invitation = desk.ok(Some(&hub), &[&enrol[..], &["ann.key"]].concat());
    let mut chain = Chain::new(None);
    for order in world::orders() {
        chain.add(&order).unwrap();
    }
    let request = Enrol::accept(&invitation, &world::key("desk-1"), None).unwrap();
    let (_, opened) = request.verify(world::NAME, chain.operators().values()).unwrap();
    assert_eq!((opened.uses, opened.groups.as_slice()), (100, &["payments".to_owned()][..]));
    let said = desk.fails(1, Some(&hub), &[&enrol[..], &["log.key"]].concat());
    assert!(said.contains("is not an operator of fleet.example.com"), "{said}");
}

#[test]
fn members_and_records_are_shown_without_control_characters() {
    let (desk, hub) = (Desk::new(), Hub::start(world::orders(), true));
    let who = desk.ok(Some(&hub), &["who"]);
    let lines: Vec<&str> = who.lines().collect();
    assert!(lines[0].starts_with("governor  groups    order  permit until"), "{who}");
    assert!(lines[1].contains("2026-01-31T09:01:30.000Z") && lines[2].contains("forked\\u{1b}[31m"), "{who}");
    let coverage = desk.ok(Some(&hub), &["coverage", "desk-1"]);
    assert!(coverage.lines().nth(1).unwrap().split_whitespace().any(|word| word == "20"), "{coverage}");
    desk.fails(1, Some(&hub), &["coverage"]);
    assert!(desk.fails(1, Some(&hub), &["coverage", "desk-3"]).contains("no governor desk-3"));

    let found = desk.ok(Some(&hub), &["query", "agent=support-1 decision=deny from=2026-01-01"]);
    let line: Value = serde_json::from_str(&found).unwrap();
    assert!(line["record"]["reasoning"] == "\u{9b}2J" && !found.contains('\u{9b}'), "{found}");
    let asked = hub.queries.lock().unwrap().pop().unwrap();
    assert_eq!(asked, "agent=support-1&decision=DENY&since=1767225600000");
    for wrong in ["decision=denied", "agents=a", "from=someday", "deny"] {
        desk.fails(2, Some(&hub), &["query", wrong]);
    }
}

#[test]
fn a_bundle_is_verified_offline_and_a_changed_one_refused() {
    let (desk, hub) = (Desk::new(), Hub::start(world::orders(), true));
    desk.ok(Some(&hub), &["bundle", "prf_1", "--governor", "desk-1"]);
    assert_eq!(hub.queries.lock().unwrap().pop().unwrap(), "governor=desk-1");
    let bundle = desk.ok(Some(&hub), &["bundle", "prf_1"]);
    fs::write(desk.path().join("fetched.json"), &bundle).unwrap();
    let [log, ann, bob, witness] = ["log.pub", "ann.pub", "bob.pub", "witness.pub"].map(|file| desk.read(file));
    let keys = ["--organisation", &log, "--witness", &witness];
    let verify = [&["verify", "fetched.json", "--operator", &bob, "--operator", &ann], &keys[..]].concat();
    let said = desk.ok(None, &verify);
    assert!(said.contains("ALLOW by desk-1") && said.ends_with("cosigned by witness.example.net"), "{said}");
    fs::write(desk.path().join("fetched.json"), bundle.replace("ALLOW", "DENY")).unwrap();
    assert!(desk.fails(1, None, &verify).starts_with("fleet: fetched.json: "));
    let other = desk.ok(None, &["key", "w1", "--witness", "--out", "w1.key"]);
    assert!(desk.fails(2, None, &[&["verify", "bundle.json"], &keys[..]].concat()).contains("--operator"));
    let uninvited = desk.fails(1, None, &[&["verify", "bundle.json", "--operator", &bob], &keys[..]].concat());
    assert!(uninvited.contains("signed by an operator"), "{uninvited}");
    let verify = ["verify", "bundle.json", "--organisation", &log, "--operator", &ann, "--witness", &other];
    assert!(desk.fails(1, None, &verify).contains("cosigned by 0 of the witnesses, expected at least 1"));
    desk.ok(None, &[&verify[..], &["--needed", "0"]].concat());
}

#[test]
fn a_hub_and_a_witness_listen_beyond_loopback_only_with_tls() {
    let desk = Desk::new();
    let log = desk.read("log.pub");
    let witness = ["witness", "--key", "witness.key", "--log", &log, "--folder", "w", "--listen", "0.0.0.0:0"];
    assert!(desk.fails(2, None, &witness).contains("--behind-proxy"));
    let hub = ["hub", "--database", "postgres://127.0.0.1:1/fleet", "--key", "log.key", "--listen"];
    assert!(desk.fails(2, None, &[&hub[..], &["0.0.0.0:0"]].concat()).contains("--behind-proxy"));
    assert!(desk.fails(1, None, &[&hub[..], &["127.0.0.1:0"]].concat()).contains("the database"));
}

#[test]
fn a_witness_cosigns_and_remembers_what_it_has_cosigned() {
    let desk = Desk::new();
    let mut witness = Command::new(PROGRAM);
    witness.args(["fleet", "witness", "--key", "witness.key", "--folder", "w", "--listen", "127.0.0.1:0", "--log"]);
    witness.arg(desk.read("log.pub")).current_dir(desk.path()).stdout(Stdio::piped());
    let mut witness = witness.spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(witness.stdout.as_mut().unwrap()).read_line(&mut ready).unwrap();
    let ready: Value = serde_json::from_str(&ready).unwrap();
    let ask = |body: &str| {
        let agent: ureq::Agent = ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let mut answer = agent.post(format!("{}/add-checkpoint", ready["url"].as_str().unwrap())).send(body).unwrap();
        let kind = answer.headers().get("content-type").unwrap().to_str().unwrap().to_owned();
        (answer.status().as_u16(), kind, answer.body_mut().read_to_string().unwrap())
    };
    let note = world::bundle().checkpoint;
    let request = rulekeep_fleet::witness::request(0, &[], &note);
    let (status, _, line) = ask(&request);
    assert_eq!(status, 200, "{line}");
    let by: WitnessKey = desk.read("witness.pub").parse().unwrap();
    assert!(cosigned_by(&(note + &line), &[by], 1).unwrap()[0].at.as_millis() == 0, "the earliest of two");
    assert_eq!(ask(&request), (409, "text/x.tlog.size".to_owned(), "2\n".to_owned()));
    assert_eq!(ask("old").0, 400);
    let asked = Command::new("kill").args(["-TERM", &witness.id().to_string()]).status().unwrap();
    assert!(asked.success() && witness.wait().unwrap().success());
}
