//! Bundles: a good one verifies, one with any byte changed does not, in Rust and in Python.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ed25519_dalek::{Signer as _, SigningKey};
use rulekeep::checkpoint::{Checkpoint, CheckpointKey, InclusionProof, VerifierKey};
use rulekeep::proof::Digest;
use rulekeep::system::Timestamp;
use rulekeep::{Agent, Governor, Intent, RiskLevel, Tier};
use rulekeep_fleet::bundle::{Bundle, BundleError, IncludedLeaf};
use rulekeep_fleet::cosignature::{CosignatureError, WitnessKey, cosign};
use rulekeep_fleet::enrolment::{Enrol, EnrolmentProof, Invitation};
use rulekeep_fleet::log::{self, Head, Leaf};
use serde_json::{Value, json};

use crate::{Organisation, programs};

/// The content of a bundle before it is signed, hashed and appended to logs.
struct Plan {
    /// The key that signs the governor's checkpoints.
    key: CheckpointKey,
    enrol: Enrol,
    /// A change of the governor's record.
    record: Box<dyn Fn(&mut Value)>,
    /// A change of the texts of the enrolment and the anchor.
    leaves: Box<ChangeLeaves>,
}

type ChangeLeaves = dyn Fn(&mut String, &mut String);
type ChangeText = fn(&str) -> String;

impl Default for Plan {
    fn default() -> Self {
        let key = key("g1", 1);
        let enrol = Enrol::accept(&invitation(ORIGIN, &ann()), &key, Some("payments")).unwrap();
        Self { key, enrol, record: Box::new(|_| {}), leaves: Box::new(|_, _| {}) }
    }
}

fn key(name: &str, seed: u8) -> CheckpointKey {
    CheckpointKey::from_seed(name, &[seed; 32]).unwrap()
}

fn ann() -> CheckpointKey {
    key("ann", 3)
}

fn invitation(organisation: &str, operator: &CheckpointKey) -> String {
    let own = key("invitation", 4);
    let invitation = Invitation {
        organisation: organisation.to_owned(),
        key: own.verifier().to_string(),
        groups: ["payments", "refunds"].map(str::to_owned).to_vec(),
        uses: 1,
        expires_at: Timestamp::from_millis(1_769_850_000_000),
    };
    invitation.sign(&own, operator)
}

/// An invitation in another spelling, which its operator signed all the same.
fn respelled(change: impl Fn(&str) -> String) -> String {
    let text = URL_SAFE_NO_PAD.decode(invitation(ORIGIN, &ann())).unwrap();
    let text = String::from_utf8(text).unwrap();
    let [name, _, secret, body] = text.splitn(4, '\n').collect::<Vec<_>>().try_into().unwrap();
    let changed = change(body);
    assert_ne!(changed, body);
    let operator = SigningKey::from_bytes(&ann().seed());
    let signature = operator.sign(format!("rulekeep fleet invitation\n{changed}").as_bytes());
    let signature = STANDARD.encode(signature.to_bytes());
    URL_SAFE_NO_PAD.encode(format!("{name}\n{signature}\n{secret}\n{changed}"))
}

/// A bundle, and the keys to verify it with.
struct Made {
    bundle: Bundle,
    organisation: VerifierKey,
    operators: [VerifierKey; 2],
    witness: WitnessKey,
}

impl Made {
    fn new() -> Self {
        Self::of(&Plan::default())
    }

    fn of(plan: &Plan) -> Self {
        let governor = Governor::builder().checkpoints(plan.key.clone()).open_in_memory().unwrap();
        governor.agents().register(Agent::new("zahlung-ü\"1\"").at_tier(Tier::T4)).unwrap();
        let intent = Intent::new("zahlung-ü\"1\"", "read_document", RiskLevel::Low, ["document:read"]).unwrap();
        let verdicts: Vec<_> = (0..5).map(|_| governor.enforce(&intent).unwrap()).collect();
        let mut proof = governor.log().prove(&verdicts[2].proof_id).unwrap();
        let real = serde_json::to_value(governor.log().record(&verdicts[2].proof_id).unwrap()).unwrap();
        let mut record = real.clone();
        (plan.record)(&mut record);
        if record != real {
            proof = proof_of(&mut record, verdicts[2].proof_id.sequence().get(), &plan.key);
        }

        let at = "2026-01-31T09:30:00.000Z".parse().unwrap();
        let note = proof.parse::<InclusionProof>().unwrap().checkpoint;
        let operators = [key("bob", 5).verifier(), ann().verifier()];
        let Enrol { key, groups, proof: enrolment } = plan.enrol.clone();
        let enrol = Leaf::Enrol { governor: "g1".to_owned(), key, groups, at, proof: Some(enrolment) };
        let anchor = Leaf::Anchor { governor: "g1".to_owned(), note, at };
        let [mut enrol, mut anchor] = [enrol, anchor].map(|leaf| String::from_utf8(leaf.to_bytes().unwrap()).unwrap());
        (plan.leaves)(&mut enrol, &mut anchor);
        let mut organisation = Organisation::new(ORIGIN);
        organisation.grow(300);
        let enrol = appended(&mut organisation, enrol);
        organisation.grow(400);
        let anchor = appended(&mut organisation, anchor);
        organisation.grow(50);
        let included = |(index, leaf): (u64, String)| {
            IncludedLeaf::new(index, leaf, &log::inclusion(index, &organisation.head, &organisation.tiles).unwrap())
        };
        let checkpoint = organisation.note();
        let checkpoint =
            checkpoint.clone() + &cosign(&checkpoint, "witness.example/w1", &[9; 32], 1_769_900_000).unwrap();
        let bundle = Bundle {
            record,
            proof,
            governor_key: plan.key.verifier().to_string(),
            anchor: included(anchor),
            enrol: included(enrol),
            checkpoint,
        };
        let witness = WitnessKey::from_seed("witness.example/w1", &[9; 32]).unwrap();
        Self { bundle, organisation: organisation.key.verifier(), operators, witness }
    }

    fn text(&self) -> String {
        serde_json::to_string(&self.bundle).unwrap()
    }

    /// The line of a good bundle.
    fn verify(&self, text: &str) -> Result<String, BundleError> {
        let witnesses = std::slice::from_ref(&self.witness);
        let verified = Bundle::parse(text)?.verify(&self.organisation, &self.operators, witnesses, 1)?;
        Ok(verified.to_string())
    }

    fn error(&self, change: impl FnOnce(&mut Bundle)) -> BundleError {
        let mut changed = self.bundle.clone();
        change(&mut changed);
        self.verify(&serde_json::to_string(&changed).unwrap()).expect_err("the bundle is refused")
    }
}

/// Hashes a changed record anew, and proves it in a log of the governor's key that has it at `index`.
fn proof_of(record: &mut Value, index: u64, key: &CheckpointKey) -> String {
    let fields: BTreeMap<_, _> = record.as_object().unwrap().iter().filter(|(name, _)| *name != "hash").collect();
    let hash = Digest::of(&serde_json::to_vec(&fields).unwrap());
    let mut leaves = vec![b"other".to_vec(); usize::try_from(index).unwrap()];
    leaves.push(hash.as_bytes().to_vec());
    if record.get("hash").is_some() {
        record["hash"] = json!(hash);
    }
    let appended = log::append(&Head::EMPTY, &HashMap::new(), &leaves).unwrap();
    let tiles: HashMap<_, _> = appended.tiles.into_iter().collect();
    let note = Checkpoint::new(key.name(), appended.head.size, appended.head.root).unwrap().sign(key).unwrap();
    InclusionProof::new(index, log::inclusion(index, &appended.head, &tiles).unwrap(), note).to_string()
}

fn appended(organisation: &mut Organisation, leaf: String) -> (u64, String) {
    let index = organisation.head.size;
    organisation.append(&[leaf.clone().into_bytes()]);
    (index, leaf)
}

/// Bundles that somebody with the keys of the log and of a governor could make, each with what is wrong.
fn hostile() -> impl Iterator<Item = (String, Made)> {
    let plans = forged_enrolments().into_iter().chain(odd_leaves()).chain(odd_records());
    plans.map(|(what, plan)| (what, Made::of(&plan)))
}

fn forged_enrolments() -> Vec<(String, Plan)> {
    let mut forged = Vec::new();
    let mut add = |what: &str, plan: Plan| forged.push((what.to_owned(), plan));
    let good = || Plan::default().enrol;
    let with = |enrol: Enrol| Plan { enrol, ..Plan::default() };

    // A hub that has seen the enrolment makes another one, for a key of its own.
    let (thief, plan) = (key("g1", 2), Plan::default());
    let stolen = Enrol { key: thief.verifier().to_string(), ..good() };
    add("a stolen proof", Plan { key: thief.clone(), enrol: stolen.clone(), ..Plan::default() });
    let mut signed = Enrol::accept(&invitation(ORIGIN, &thief), &thief, Some("payments")).unwrap();
    add("an invitation of its own", Plan { key: thief.clone(), enrol: signed.clone(), ..Plan::default() });
    "ann".clone_into(&mut signed.proof.operator);
    add("an invitation in an operator's name", Plan { key: thief.clone(), enrol: signed.clone(), ..Plan::default() });
    signed.proof = EnrolmentProof { governor_signature: signed.proof.governor_signature, ..good().proof };
    add("an invitation without its secret", Plan { key: thief.clone(), enrol: signed, ..Plan::default() });
    add("another key than the enrolled one", Plan { key: thief, ..Plan::default() });
    let other = Enrol::accept(&invitation(ORIGIN, &ann()), &key("g2", 2), None).unwrap();
    add("an enrolment of another governor", Plan { key: key("g2", 2), enrol: other, ..Plan::default() });
    let other = Enrol::accept(&invitation("example.com/other", &ann()), &plan.key, None).unwrap();
    add("an invitation of another organisation", with(other));
    add("another group", with(Enrol::accept(&invitation(ORIGIN, &ann()), &plan.key, Some("treasury")).unwrap()));
    for groups in [&["refunds"][..], &[], &["payments", "refunds"]] {
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        add("groups that nobody signed", with(Enrol { groups, ..good() }));
    }
    let spellings: [(&str, ChangeText); 4] = [
        ("a time without milliseconds", |body| body.replace(".000Z", "Z")),
        ("a time of another zone", |body| body.replace(".000Z", ".000+00:00")),
        ("spaces", |body| body.replace(",\"", ", \"")),
        ("a list", |body| {
            let fields: Value = serde_json::from_str(body).unwrap();
            let of = |name: &str| fields[name].clone();
            json!(["organisation", "key", "groups", "uses", "expiresAt"].map(of)).to_string()
        }),
    ];
    for (what, change) in spellings {
        let enrol = Enrol::accept(&respelled(change), &plan.key, Some("payments"));
        let enrol = enrol.unwrap_or_else(|| panic!("{what} reads"));
        add(&format!("an invitation with {what}"), with(enrol));
    }
    let proofs: [fn(&mut EnrolmentProof); 5] = [
        |proof| proof.invitation = proof.invitation.replace("\"uses\":1", "\"uses\":2"),
        |proof| "bob".clone_into(&mut proof.operator),
        |proof| proof.operator_signature.clone_from(&proof.governor_signature),
        |proof| proof.invitation_signature.clone_from(&proof.governor_signature),
        |proof| proof.governor_signature.clone_from(&proof.invitation_signature),
    ];
    for (place, change) in proofs.iter().enumerate() {
        let mut enrol = good();
        change(&mut enrol.proof);
        add(&format!("proof {place}"), with(enrol));
    }
    forged
}

fn odd_leaves() -> Vec<(String, Plan)> {
    let leaves: [fn(&mut String, &mut String); 14] = [
        |enrol, _| {
            enrol.truncate(enrol.find(",\"proof\"").unwrap());
            enrol.push('}');
        },
        |enrol, _| *enrol = enrol.replace("\"g1\"", "\"g2\""),
        |_, anchor| *anchor = anchor.replace("\"g1\"", "\"g2\""),
        std::mem::swap,
        |_, anchor| *anchor = anchor.replace('}', ",\"remark\":1}"),
        |enrol, _| *enrol = enrol.replace("\"at\"", "\"remark\":1,\"at\""),
        |enrol, _| *enrol = enrol.replace("\"operator\"", "\"remark\":1,\"operator\""),
        |_, anchor| *anchor = anchor.replace("\"kind\"", "\"at\":\"2025-01-31T09:30:00.000Z\",\"kind\""),
        |_, anchor| *anchor = anchor.replace(':', ": "),
        |_, anchor| *anchor = anchor.replace("{\"kind\":\"anchor\",", "{").replace('}', ",\"kind\":\"anchor\"}"),
        |_, anchor| *anchor = anchor.replace("00.000Z", "00Z"),
        |_, anchor| *anchor = anchor.replace("01-31T", "02-30T"),
        |_, anchor| *anchor = anchor.replace("2026-01-31T09:30:00.000Z", "2026, and not forged\u{1b}[8m"),
        |_, anchor| *anchor = anchor.replace("\\n8\\n", "\\n08\\n"),
    ];
    let plan = |(place, change): (usize, fn(&mut String, &mut String))| {
        let change = move |enrol: &mut String, anchor: &mut String| {
            let before = (enrol.clone(), anchor.clone());
            change(enrol, anchor);
            assert_ne!(before, (enrol.clone(), anchor.clone()), "leaves {place}");
        };
        (format!("leaves {place}"), Plan { leaves: Box::new(change), ..Plan::default() })
    };
    leaves.into_iter().enumerate().map(plan).collect()
}

fn odd_records() -> Vec<(String, Plan)> {
    let mut odd = Vec::new();
    let mut add = |what: &str, plan: Plan| odd.push((what.to_owned(), plan));
    let id = |record: &Value| record["id"].as_str().unwrap().to_owned();
    let other_place = |id: String| id[..29].to_owned() + if id.ends_with('2') { "3" } else { "2" };
    add(
        "the id of another place",
        Plan { record: Box::new(move |record| record["id"] = json!(other_place(id(record)))), ..Plan::default() },
    );
    add(
        "an id in capitals",
        Plan {
            record: Box::new(move |record| record["id"] = json!(id(record).replace("prf_0", "prf_O"))),
            ..Plan::default()
        },
    );
    let decision = "ALLOW by g1, anchored at 2026-01-31T09:30:00.000Z, one of 752 entries of example.com/org\u{1b}[8m";
    let fields = [
        ("decision", json!(decision)),
        ("decision", json!("allow")),
        ("decision", json!(["ALLOW"])),
        ("entityId", json!(" ")),
        ("entityId", json!("a\u{9b}2J")),
        ("entityId", json!("a".repeat(257))),
        ("intentId", json!("int_8zzzzzzzzzzzzzzzzzzzzzzzzz")),
        ("intentId", json!("prf_01m8dj0nbhw995w8fs3paq6p6x")),
        ("reasoning", json!(1)),
        ("resolves", json!(null)),
        ("retryOf", json!("prf_1")),
        ("trustScore", json!(1001)),
        ("trustScore", json!(-1)),
        ("trustScore", json!(1.0)),
        ("trustScore", json!(true)),
        ("trustTier", json!("T6")),
        ("riskLevel", json!("NONE")),
        ("timestamp", json!("2026-01-31T09:30:00Z")),
        ("timestamp", json!("2026-02-30T09:30:00.000Z")),
        ("timestamp", json!(1)),
        ("previousHash", json!(format!("sha256:{}", "F".repeat(64)))),
        ("evidenceHash", json!("sha256:0")),
        ("outcome", json!("SUCCESS")),
        ("remark", json!("paid")),
    ];
    for (name, value) in fields {
        let what = format!("{name} {value}");
        add(&what, Plan { record: Box::new(move |record| record[name] = value.clone()), ..Plan::default() });
    }
    for name in
        "id entityId intentId decision reasoning trustScore trustTier riskLevel timestamp previousHash evidenceHash"
            .split(' ')
    {
        let remove = move |record: &mut Value| _ = record.as_object_mut().unwrap().remove(name);
        add(&format!("no {name}"), Plan { record: Box::new(remove), ..Plan::default() });
    }
    odd
}

/// Texts that are like that of a good bundle, and not it.
fn changed(made: &Made) -> Vec<String> {
    let text = made.text();
    let mut changed = vec![
        text.replacen('{', "{\"remark\":1,", 1),
        text.replacen("\"decision\"", "\"decision\":\"DENY\",\"decision\"", 1),
        text.replacen("\"proof\"", "\"proof\":\"\",\"proof\"", 1),
        text.replacen("\"trustScore\":", "\"trustScore\":0", 1),
        text.replacen("\"index\":", "\"index\":-", 1),
        text.replacen("\"index\":300", "\"index\":300.0", 1),
        text.replacen("\"index\":300", "\"index\":3e2", 1),
        text.replacen("\"path\":[", "\"path\":[null,", 1),
        text.replacen("index 5", "index +5", 1),
        text.replacen("index 5", "index 05", 1),
        text.replacen("\\nindex", "\\nextra AAAA\\nindex", 1),
        text.replacen("c2sp.org", "c2sp-org", 1),
        text.replacen("\"governorKey\":\"", "\"governorKey\":\"\\u001b[8m", 1),
        text.replacen("752", "٧٥٢", 1),
        {
            let mut value = serde_json::to_value(&made.bundle).unwrap();
            let of = |name: &str| value["anchor"][name].clone();
            value["anchor"] = json!(["index", "leaf", "path"].map(of));
            value.to_string()
        },
        text.clone() + "x",
        text[..text.len() - 1].to_owned(),
        format!("\u{feff}{text}"),
        format!("[{text}]"),
        String::new(),
    ];
    assert!(!changed.contains(&text), "each is a change");
    for place in 0..text.len() {
        // One bit, upper for lower case and back, and the neighbouring digit or letter.
        for change in [1 << (place % 7), 0x20, 1] {
            let mut bytes = text.clone().into_bytes();
            bytes[place] ^= change;
            changed.extend(String::from_utf8(bytes));
        }
    }
    changed
}

#[test]
fn a_good_bundle_says_what_it_proves_in_one_line() {
    let made = Made::new();
    let id = made.bundle.record["id"].as_str().unwrap();
    let expected = format!(
        "{id}: ALLOW by g1, anchored at 2026-01-31T09:30:00.000Z, one of 752 entries of example.com/org, \
         cosigned by witness.example/w1"
    );
    assert_eq!(made.verify(&made.text()).unwrap(), expected);
    let pretty = serde_json::to_string_pretty(&made.bundle).unwrap();
    assert_eq!(made.verify(&pretty).unwrap(), expected);
    assert!(made.text().len() < 8 * 1024, "{} bytes", made.text().len());
}

#[test]
fn a_change_of_any_byte_is_refused() {
    let made = Made::new();
    for text in changed(&made) {
        assert!(made.verify(&text).is_err(), "{text}");
    }
}

#[test]
fn the_keys_of_log_and_governor_forge_no_enrolment_or_record() {
    for (what, made) in hostile() {
        let verified = made.verify(&made.text());
        assert!(verified.is_err(), "{what}: {}", verified.unwrap());
    }
}

#[test]
fn each_broken_link_has_its_error() {
    let made = Made::new();
    let of = |leaves: fn(&mut String, &mut String)| Made::of(&Plan { leaves: Box::new(leaves), ..Plan::default() });
    let other = of(|_, anchor| *anchor = anchor.replace("\"g1\"", "\"g2\""));
    assert!(matches!(other.error(|_| {}), BundleError::Leaf { leaf: "enrol", .. }), "a governor of another name");
    let other = of(std::mem::swap);
    assert!(matches!(other.error(|_| {}), BundleError::Leaf { leaf: "anchor", .. }), "leaves of each other's kind");
    let swapped = other.error(|bundle| std::mem::swap(&mut bundle.anchor, &mut bundle.enrol));
    assert!(matches!(swapped, BundleError::Leaf { leaf: "enrol", .. }), "an anchor before its enrolment");
    let other = of(|_, anchor| *anchor = anchor.replace("\",\"at\"", "\\n\",\"at\""));
    assert!(matches!(other.error(|_| {}), BundleError::Leaf { leaf: "anchor", .. }), "another note");

    let not_included = made.error(|bundle| bundle.anchor.index += 1);
    assert!(matches!(not_included, BundleError::NotIncluded { leaf: "anchor", .. }));
    let not_included = made.error(|bundle| bundle.enrol.path.swap(0, 1));
    assert!(matches!(not_included, BundleError::NotIncluded { leaf: "enrol", .. }));
    assert!(matches!(made.error(|bundle| bundle.record["outcome"] = json!("SUCCESS")), BundleError::Record));
    assert!(matches!(made.error(|bundle| bundle.record["remark"] = json!("paid")), BundleError::Record));
    assert!(matches!(made.error(|bundle| bundle.record["decision"] = json!("DENY")), BundleError::Governor(_)));
    let extra = made.error(|bundle| bundle.proof = bundle.proof.replacen('\n', "\nextra AAAA\n", 1));
    assert!(matches!(extra, BundleError::Leaf { leaf: "anchor", .. }));
    let without = made.error(|bundle| bundle.checkpoint = bundle.checkpoint.split_inclusive('\n').take(5).collect());
    assert!(matches!(without, BundleError::Witnesses(CosignatureError::TooFew { found: 0, needed: 1 })));
    let unsigned = made.error(|bundle| bundle.checkpoint = bundle.checkpoint.replacen("/org ", "/ogr ", 1));
    assert!(matches!(unsigned, BundleError::Organisation(_)));
    let text = made.text().replacen('{', "{\"remark\":1,", 1);
    assert!(matches!(made.verify(&text), Err(BundleError::Json(_))));
}

#[test]
fn the_python_program_verifies_the_same() {
    if std::env::var_os("RULEKEEP_NIGHTLY").is_none() || !programs::is_there("python3") {
        return;
    }
    let python = match programs::python("cryptography==48.0.0") {
        Ok(python) => python,
        Err(why) => return programs::pass_over(&why),
    };
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("verify_bundle.py");
    // One process for all texts: each is verified by the whole program.
    let run = |made: &Made, texts: &[String]| -> Vec<String> {
        let [list, driver] = ["texts.json", "driver.py"].map(|name| folder.path().join(name));
        std::fs::write(&list, serde_json::to_string(texts).unwrap()).unwrap();
        std::fs::write(&driver, DRIVER).unwrap();
        let mut command = Command::new(&python);
        command.args([&driver, &program, &list]).arg(folder.path().join("bundle.json"));
        command.arg(made.organisation.to_string()).args(made.operators.iter().map(ToString::to_string));
        let said = programs::succeeded(command.arg(made.witness.to_string()), &[], programs::LATER);
        said.lines().map(str::to_owned).collect()
    };
    let made = Made::new();
    let mut texts = vec![made.text(), serde_json::to_string_pretty(&made.bundle).unwrap()];
    let good = made.verify(&made.text()).unwrap();
    texts.extend(changed(&made));
    let said = run(&made, &texts);
    assert_eq!((said.len(), &said[0], &said[1]), (texts.len(), &good, &good));
    for (text, said) in texts.iter().zip(&said).skip(2) {
        assert!(said.starts_with("refused: ") && !said.contains('\u{1b}'), "{said}: {text}");
    }
    for (what, made) in hostile() {
        let said = run(&made, &[made.text()]).concat();
        assert!(said.starts_with("refused: "), "{what}: {said}");
    }
}

/// The organisation's name.
const ORIGIN: &str = "example.com/org";
/// Runs the program over each of many texts.
const DRIVER: &str = r#"
import contextlib, io, json, runpy, sys
program, texts, file = sys.argv[1:4]
sys.argv[:4] = [program, file]
for text in json.load(open(texts, encoding="utf-8")):
    open(file, "w", encoding="utf-8", newline="").write(text)
    try:
        with contextlib.redirect_stdout(io.StringIO()) as said: runpy.run_path(program)
        line = said.getvalue()
    except SystemExit as error: line = str(error.code)
    print(line.strip())
"#;
