//! Bundles: a good one verifies, one with any byte changed does not, in Rust and in Python.

use std::path::Path;
use std::process::Command;

use rulekeep::checkpoint::{CheckpointKey, InclusionProof, VerifierKey};
use rulekeep::{Agent, Governor, Intent, RiskLevel, Tier};
use rulekeep_fleet::bundle::{Bundle, BundleError, IncludedLeaf};
use rulekeep_fleet::cosignature::{CosignatureError, WitnessKey, cosign};
use rulekeep_fleet::log::{self, Leaf};
use serde_json::json;

use crate::{Organisation, programs};

/// A bundle, and how it was made.
struct Made {
    bundle: Bundle,
    organisation: VerifierKey,
    witness: WitnessKey,
}

impl Made {
    fn new() -> Self {
        Self::with(&mut |_, _| {})
    }

    /// Makes a bundle of a log with enrolment and anchor leaves that were changed before they were appended.
    fn with(change: &mut dyn FnMut(&mut Leaf, &mut Leaf)) -> Self {
        let key = CheckpointKey::from_seed("example.com/governors/g1", &[1; 32]).unwrap();
        let governor_key = key.verifier().to_string();
        let governor = Governor::builder().checkpoints(key).open_in_memory().unwrap();
        governor.agents().register(Agent::new("zahlung-ü\"1\"").at_tier(Tier::T4)).unwrap();
        let intent = Intent::new("zahlung-ü\"1\"", "read_document", RiskLevel::Low, ["document:read"]).unwrap();
        let verdicts: Vec<_> = (0..5).map(|_| governor.enforce(&intent).unwrap()).collect();
        let proof = governor.log().prove(&verdicts[2].proof_id).unwrap();
        let record = governor.log().record(&verdicts[2].proof_id).unwrap();
        let note = proof.parse::<InclusionProof>().unwrap().checkpoint;

        let at = "2026-01-31T09:30:00.000Z".parse().unwrap();
        let name = || "g1".to_owned();
        let mut enrol =
            Leaf::Enrol { governor: name(), key: governor_key.clone(), groups: vec!["payments".to_owned()], at };
        let mut anchor = Leaf::Anchor { governor: name(), note, at };
        change(&mut enrol, &mut anchor);
        let mut organisation = Organisation::new("example.com/org");
        organisation.grow(300);
        let enrol = appended(&mut organisation, &enrol);
        organisation.grow(400);
        let anchor = appended(&mut organisation, &anchor);
        organisation.grow(50);
        let included = |(index, leaf): (u64, String)| {
            IncludedLeaf::new(index, leaf, &log::inclusion(index, &organisation.head, &organisation.tiles).unwrap())
        };
        let checkpoint = organisation.note();
        let checkpoint =
            checkpoint.clone() + &cosign(&checkpoint, "witness.example/w1", &[9; 32], 1_769_900_000).unwrap();
        let bundle = Bundle {
            record: serde_json::to_value(&record).unwrap(),
            proof,
            governor_key,
            anchor: included(anchor),
            enrol: included(enrol),
            checkpoint,
        };
        let witness = WitnessKey::from_seed("witness.example/w1", &[9; 32]).unwrap();
        Self { bundle, organisation: organisation.key.verifier(), witness }
    }

    fn text(&self) -> String {
        serde_json::to_string(&self.bundle).unwrap()
    }

    /// The line of a good bundle.
    fn verify(&self, text: &str) -> Result<String, BundleError> {
        let verified = Bundle::parse(text)?.verify(&self.organisation, std::slice::from_ref(&self.witness), 1)?;
        Ok(verified.to_string())
    }

    fn error(&self, change: impl FnOnce(&mut Bundle)) -> BundleError {
        let mut changed = self.bundle.clone();
        change(&mut changed);
        self.verify(&serde_json::to_string(&changed).unwrap()).expect_err("the bundle is refused")
    }
}

fn appended(organisation: &mut Organisation, leaf: &Leaf) -> (u64, String) {
    let (index, bytes) = (organisation.head.size, leaf.to_bytes().unwrap());
    organisation.append(std::slice::from_ref(&bytes));
    (index, String::from_utf8(bytes).unwrap())
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
    let text = made.text().into_bytes();
    for place in 0..text.len() {
        // One bit, upper for lower case and back, and the neighbouring digit or letter.
        for change in [1 << (place % 7), 0x20, 1] {
            let mut changed = text.clone();
            changed[place] ^= change;
            let Ok(changed) = String::from_utf8(changed) else { continue };
            let verified = made.verify(&changed);
            assert!(verified.is_err(), "byte {place} changed by {change}: {changed}");
        }
    }
}

#[test]
fn each_broken_link_has_its_error() {
    let made = Made::new();
    let other = Made::with(&mut |_, anchor| {
        if let Leaf::Anchor { governor, .. } = anchor {
            *governor = "g2".to_owned();
        }
    });
    assert!(matches!(other.error(|_| {}), BundleError::Leaf { leaf: "enrol", .. }), "a governor of another name");
    let other = Made::with(&mut |enrol, _| {
        if let Leaf::Enrol { key, .. } = enrol {
            *key = CheckpointKey::from_seed("example.com/governors/g1", &[2; 32]).unwrap().verifier().to_string();
        }
    });
    assert!(matches!(other.error(|_| {}), BundleError::Leaf { leaf: "enrol", .. }), "another key");
    let other = Made::with(&mut std::mem::swap);
    assert!(matches!(other.error(|_| {}), BundleError::Leaf { leaf: "anchor", .. }), "leaves of each other's kind");
    let swapped = other.error(|bundle| std::mem::swap(&mut bundle.anchor, &mut bundle.enrol));
    assert!(matches!(swapped, BundleError::Leaf { leaf: "enrol", .. }), "an anchor before its enrolment");
    let other = Made::with(&mut |_, anchor| {
        if let Leaf::Anchor { note, .. } = anchor {
            note.push('\n');
        }
    });
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
    let (made, folder) = (Made::new(), tempfile::tempdir().unwrap());
    let file = folder.path().join("bundle.json");
    let run = |text: &[u8]| {
        std::fs::write(&file, text).unwrap();
        let mut command = Command::new(&python);
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("verify_bundle.py")).arg(&file);
        command.args([made.organisation.to_string(), made.witness.to_string()]);
        let output = programs::ended(&mut command, &[], programs::SOON);
        let said = String::from_utf8(output.stdout).unwrap();
        if output.status.success() { Ok(said) } else { Err(said + &String::from_utf8_lossy(&output.stderr)) }
    };
    assert_eq!(run(made.text().as_bytes()).unwrap(), made.verify(&made.text()).unwrap() + "\n");

    let tampered: [&dyn Fn(&mut Bundle); 7] = [
        &|bundle| bundle.record["decision"] = json!("DENY"),
        &|bundle| bundle.record["outcome"] = json!("SUCCESS"),
        &|bundle| bundle.anchor.leaf = bundle.anchor.leaf.replace("2026-01", "2025-01"),
        &|bundle| bundle.enrol.index += 1,
        &|bundle| bundle.checkpoint = bundle.checkpoint.replace("witness.example/w1", "witness.example/w2"),
        &|bundle| bundle.checkpoint = bundle.checkpoint.replace("\n752\n", "\n753\n"),
        &|bundle| bundle.proof = bundle.proof.replacen("index ", "index 1", 1),
    ];
    for (place, change) in tampered.iter().enumerate() {
        let mut changed = made.bundle.clone();
        change(&mut changed);
        let refused = run(&serde_json::to_vec(&changed).unwrap()).unwrap_err();
        assert!(refused.starts_with("refused: "), "{place}: {refused}");
    }
}
