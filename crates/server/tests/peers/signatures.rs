//! Deliveries verified by independent code: the library `standardwebhooks` from `PyPI`, and the code in the README in
//! Python and in Node.
//!
//! If one of these is missing on a machine, the test prints this to standard error and is skipped; with
//! `RULEKEEP_REQUIRE_PEERS` set it fails instead.

use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::common::programs::{self, is_there};
use crate::common::receiver::{Receiver, Request};
use crate::common::{Served, builder, decide};
use rulekeep::event::EventType;
use rulekeep::signature::{self, Secret, WINDOW, sign_standard, verify_signature};
use rulekeep::{Agent, Tier};
use rulekeep_server::webhooks::{EndpointDraft, Settings};
use serde_json::{Value, json};

/// The expected result of each delivery: `[what, secret, headers, body, seconds that have gone by, is good]`.
struct Cases(Vec<Value>);

impl Cases {
    fn new() -> Self {
        let receiver = Receiver::taking();
        let settings = Settings { allow_private: true, ..Settings::default() };
        let governor = Served::with(&builder().open_in_memory().unwrap(), settings);
        governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
        let webhooks = governor.webhooks();
        let draft = EndpointDraft::to(&receiver.url).of_type(EventType::Decision);
        let added = webhooks.add(&draft).unwrap();
        decide(&governor, "a");
        let alone = receiver.next();
        let rotated = webhooks.rotate(added.id, Duration::from_secs(3600)).unwrap();
        decide(&governor, "a");
        let meanwhile = receiver.next();
        let last = webhooks.rotate(added.id, Duration::ZERO).unwrap();
        decide(&governor, "a");
        let afterwards = receiver.next();
        // A secret of the caller's own, not in base64, is returned in a form that every library reads alike.
        let own_receiver = Receiver::taking();
        let draft = EndpointDraft::to(&own_receiver.url).of_type(EventType::Decision).secret(OWN);
        let own = webhooks.add(&draft).unwrap().secret;
        decide(&governor, "a");
        let with_own = own_receiver.next();

        let mut changed = alone.clone();
        changed.body.push(b' ');
        let mut cases = Self(Vec::new());
        cases.add("as it came", &added.secret, &alone, 0, true);
        cases.add("by another secret", &rotated, &alone, 0, false);
        cases.add("with another body", &added.secret, &changed, 0, false);
        cases.add("sent once more", &added.secret, &alone, 299 - 60, true);
        cases.add("sent once more, late", &added.secret, &alone, 302, false);
        cases.add("rotating, by the old secret", &added.secret, &meanwhile, 0, true);
        cases.add("rotating, by the new secret", &rotated, &meanwhile, 0, true);
        cases.add("rotated, by the old secret", &rotated, &afterwards, 0, false);
        cases.add("rotated, by the new secret", &last, &afterwards, 0, true);
        cases.add("by a secret of the caller's own", &own, &with_own, 0, true);
        cases.add("of another event", &added.secret, &with(&alone, "webhook-id", "evt_1"), 0, false);
        cases.add(
            "of another second",
            &added.secret,
            &with(&alone, "webhook-timestamp", &second_after(&alone)),
            0,
            false,
        );
        let signature = alone.header("webhook-signature").unwrap();
        let truncated = with(&alone, "webhook-signature", &signature[..signature.len() - 4]);
        cases.add("with half a signature", &added.secret, &truncated, 0, false);
        for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
            let mut without = alone.clone();
            without.headers.retain(|(known, _)| known != name);
            cases.add(&format!("without {name}"), &added.secret, &without, 0, false);
        }
        let nonsense = with(&alone, "webhook-timestamp", &"9".repeat(400));
        cases.add("at no time", &added.secret, &nonsense, 0, false);
        cases
    }

    /// Deliveries with correct signatures by secrets of 23 and of 24 bytes, which the library accepts alike, and by
    /// secrets of the caller's own, of which it knows none that is no base64.
    fn with_secrets_of_all_forms(mut self) -> Self {
        let receiver = Receiver::taking();
        let settings = Settings { allow_private: true, ..Settings::default() };
        let governor = Served::with(&builder().open_in_memory().unwrap(), settings);
        governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
        governor.webhooks().add(&EndpointDraft::to(&receiver.url).of_type(EventType::Decision)).unwrap();
        decide(&governor, "a");
        let request = receiver.next();
        // HMAC pads a short key with zeros, so a key with an appended zero signs alike.
        let mut padded = vec![b'k'; 23];
        padded.push(0);
        for (what, text, key, is_good) in [
            ("by a secret of 23 bytes", "whsec_a2tra2tra2tra2tra2tra2tra2tra2s=", padded, false),
            ("by a secret of 24 bytes", "whsec_a2tra2tra2tra2tra2tra2tra2tra2tr", vec![b'k'; 24], true),
            ("by a text of one's own", OWN, OWN.as_bytes().to_vec(), true),
            (
                "by a text that is base64 too",
                "a2tra2tra2tra2tra2tra2tra2tra2tr",
                b"a2tra2tra2tra2tra2tra2tra2tra2tr".to_vec(),
                true,
            ),
        ] {
            let [id, at] = ["webhook-id", "webhook-timestamp"].map(|name| request.header(name).unwrap());
            let signed = sign_standard(&[&Secret::new(key).unwrap()], at.parse().unwrap(), id, &request.body);
            let signed = with(&request, "webhook-signature", &signed);
            self.add(what, text, &signed, 0, is_good);
            let told = Secret::from_text(text).and_then(|secret| {
                let header = |name: &str| signed.header(name).filter(|_| name != signature::HEADER);
                verify_signature(&[&secret], header, &signed.body, at.parse().unwrap(), WINDOW).map(drop)
            });
            assert_eq!(told.is_ok(), is_good, "{what}, in Rust");
        }
        self
    }

    fn add(&mut self, what: &str, secret: &str, request: &Request, gone_by: i64, is_good: bool) {
        let headers: serde_json::Map<_, _> =
            request.headers.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let body = String::from_utf8(request.body.clone()).unwrap();
        self.0.push(json!([what, secret, headers, body, gone_by, is_good]));
    }

    /// Runs a program on the cases, and expects it to find no difference.
    fn check(&self, program: &mut Command) {
        let said = programs::succeeded(program, &serde_json::to_vec(&self.0).unwrap(), programs::SOON);
        assert_eq!(said.trim(), format!("{} as expected", self.0.len()));
    }
}

fn with(request: &Request, name: &str, value: &str) -> Request {
    let mut request = request.clone();
    for (known, old) in &mut request.headers {
        if known == name {
            value.clone_into(old);
        }
    }
    request
}

fn second_after(request: &Request) -> String {
    let second: i64 = request.header("webhook-timestamp").unwrap().parse().unwrap();
    (second + 1).to_string()
}

/// The code for a language in the README's section on webhooks.
fn of_page(language: &str) -> String {
    let page = include_str!("../../../../docs/reference/webhooks.md");
    let code = page.split(&format!("\n```{language}\n")).nth(1).expect("the page has code in that language");
    code.split("\n```").next().unwrap().to_owned()
}

/// A secret of the caller's own.
const OWN: &str = "çelui-ci, of 24 bytes and more";

const PYTHON_CASES: &str = r#"
import json, sys
real = time.time
cases = json.load(sys.stdin)
for what, secret, headers, body, gone_by, is_good in cases:
    time.time = lambda: real() + gone_by
    try:
        accepted = verify(secret, headers, body.encode()) == headers["webhook-id"]
    except Exception as error:
        accepted = False
    if accepted != is_good:
        sys.exit(print(what, "was", "accepted" if accepted else "refused") or 1)
print(len(cases), "as expected")
"#;

#[test]
fn the_page_verifies_in_python() {
    if !is_there("python3") {
        return;
    }
    // Its errors are ValueErrors, as documented.
    let program = of_page("python") + &PYTHON_CASES.replace("except Exception", "except ValueError");
    Cases::new().with_secrets_of_all_forms().check(Command::new("python3").args(["-c", &program]));
}

#[test]
fn the_page_verifies_in_node() {
    if !is_there("node") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = of_page("js")
        + r#"
import { readFileSync } from "node:fs";
const [cases, real] = [JSON.parse(readFileSync(0)), Date.now];
for (const [what, secret, headers, body, goneBy, isGood] of cases) {
  Date.now = () => real() + goneBy * 1000;
  let accepted = false;
  try { accepted = verify(secret, headers, Buffer.from(body)) === headers["webhook-id"]; } catch {}
  if (accepted !== isGood) { console.log(what, "was", accepted ? "accepted" : "refused"); process.exit(1); }
}
console.log(cases.length, "as expected");
"#;
    let file = folder.path().join("verify.mjs");
    fs::write(&file, program).unwrap();
    Cases::new().with_secrets_of_all_forms().check(Command::new("node").arg(&file));
}

#[test]
fn the_library_of_standard_webhooks_verifies_what_is_delivered() {
    if !is_there("python3") {
        return;
    }
    let python = match programs::python("standardwebhooks==1.1.0") {
        Ok(python) => python,
        Err(why) => return programs::pass_over(&why),
    };
    let program = String::from(
        "import datetime, standardwebhooks.webhooks as library, time\n\
         class Now(datetime.datetime):\n\
        \x20   @classmethod\n\
        \x20   def now(cls, tz=None): return datetime.datetime.fromtimestamp(time.time(), tz)\n\
         library.datetime = Now\n\
         def verify(secret, headers, body):\n\
        \x20   return library.Webhook(secret).verify(body, headers)[\"id\"]\n",
    );
    Cases::new().check(Command::new(python).args(["-c", &(program + PYTHON_CASES)]));
}
