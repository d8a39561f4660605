//! Checkpoints that a governor makes and keeps: what whoever kept an earlier one
//! finds, whatever was done to the folder, and what is found when it is opened.
#![cfg(feature = "checkpoints")]

use crate::common;

use std::fs;
use std::path::Path;

use common::{code, copy_folder, decide, error, journal, open_with};
use rulekeep::checkpoint::{
    Checkpoint, CheckpointKey, InclusionProof, VerifierKey, verify_consistency, verify_inclusion,
};
use rulekeep::extension::Extension;
use rulekeep::maintenance::import_against;
use rulekeep::proof::{BrokenKind, ExportRange, VerifyOptions, verify_export, verify_export_against};
use rulekeep::{Durability, Error, Governor, GovernorBuilder, Outcome, ProofRecord};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

const ORIGIN: &str = "example.com/agents";

fn key() -> CheckpointKey {
    CheckpointKey::from_seed(ORIGIN, &[3; 32]).unwrap()
}

fn public() -> VerifierKey {
    key().verifier()
}

fn builder() -> GovernorBuilder {
    common::builder().checkpoints(key())
}

fn size_of(note: &str) -> u64 {
    Checkpoint::open(note, &public()).unwrap().size()
}

fn decide_often(governor: &Governor, count: usize) {
    for _ in 0..count {
        decide(governor, "a");
    }
}

/// What the log contradicts a checkpoint in.
fn contradiction(governor: &Governor, note: &str) -> BrokenKind {
    match error(governor.log().verify_checkpoint(note, &public())) {
        Error::Contradicted { kind, .. } => kind,
        other => panic!("{other}"),
    }
}

/// How a folder breaks that a governor with the key opens.
fn breakage(folder: &Path) -> (BrokenKind, String) {
    let governor = builder().open(folder).unwrap();
    let broken = governor.verify().unwrap().first_broken.expect("a break is found");
    assert_eq!(code(governor.enforce(&common::reading("a"))), "CHAIN_BROKEN");
    assert_eq!(code(governor.log().checkpoint()), "CHAIN_BROKEN", "a broken log vouches for nothing");
    (broken.kind, broken.to_string())
}

/// A log with a checkpoint, a copy of its folder, and a later checkpoint.
struct Sample {
    dir: tempfile::TempDir,
    earlier: String,
    later: String,
}

impl Sample {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = dir.path().join("store");
        let mut notes = Vec::new();
        for round in ["old", "new"] {
            let governor = open_with(builder(), &store);
            decide_often(&governor, 5);
            notes.push(governor.log().checkpoint().unwrap());
            governor.close().unwrap();
            copy_folder(&store, &dir.path().join(round));
        }
        let (later, earlier) = (notes.pop().unwrap(), notes.pop().unwrap());
        assert!(size_of(&earlier) < size_of(&later));
        Self { dir, earlier, later }
    }

    /// A copy of the folder as it was after so many rounds.
    fn copy(&self, round: &str) -> tempfile::TempDir {
        let copy = tempfile::tempdir().unwrap();
        copy_folder(&self.dir.path().join(round), copy.path());
        copy
    }
}

#[test]
fn a_record_is_proven_to_a_stranger_by_texts_alone() {
    let dir = tempfile::tempdir().unwrap();
    let governor = open_with(builder(), dir.path());
    let ids: Vec<_> = (0..4).map(|_| decide(&governor, "a")).collect();
    governor.report(&ids[0], Outcome::Success).unwrap();
    let mut notes = Vec::new();
    for id in &ids {
        let record = serde_json::to_string(&governor.log().record(id).unwrap()).unwrap();
        let proof = governor.log().prove(id).unwrap();

        let record: ProofRecord = serde_json::from_str(&record).unwrap();
        let checkpoint = verify_inclusion(&record, &proof, &public().to_string().parse().unwrap()).unwrap();
        assert_eq!(checkpoint.origin(), ORIGIN);
        notes.push(checkpoint);
    }
    assert!(notes.windows(2).all(|pair| pair[0] == pair[1]), "one checkpoint serves all that it covers");
    let later = decide(&governor, "a");
    let proof = governor.log().prove(&later).unwrap();
    let record = governor.log().record(&later).unwrap();
    assert!(verify_inclusion(&record, &proof, &public()).unwrap().size() > notes[0].size());
}

#[test]
fn a_checkpoint_covers_earlier_decisions_at_any_durability() {
    for durability in [Durability::Sync, Durability::Buffered] {
        let dir = tempfile::tempdir().unwrap();
        let governor = open_with(builder().durability(durability), dir.path());
        for _ in 0..3 {
            let id = decide(&governor, "a");
            let note = governor.log().checkpoint().unwrap();
            assert_eq!(size_of(&note), id.sequence().get() + 1);
            assert_eq!(fs::read_to_string(dir.path().join("CHECKPOINT")).unwrap(), note);
            assert_eq!(governor.log().checkpoint().unwrap(), note, "nothing was added");
        }
    }
}

#[test]
fn checkpoints_made_while_others_decide_follow_one_another() {
    let dir = tempfile::tempdir().unwrap();
    let governor = open_with(builder(), dir.path());
    let mut notes = std::thread::scope(|scope| {
        let deciding = (0..3).map(|_| scope.spawn(|| decide_often(&governor, 60))).collect::<Vec<_>>();
        let asking: Vec<_> = (0..2)
            .map(|_| scope.spawn(|| (0..20).map(|_| governor.log().checkpoint().unwrap()).collect::<Vec<_>>()))
            .collect();
        for thread in deciding {
            thread.join().unwrap();
        }
        asking.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    notes.push(governor.log().checkpoint().unwrap());
    notes.sort_by_key(|note| size_of(note));
    notes.dedup();
    for pair in notes.windows(2) {
        let proof = governor.log().prove_consistency(size_of(&pair[0]), size_of(&pair[1])).unwrap();
        verify_consistency(&pair[0], &pair[1], &proof, &public()).unwrap();
    }
    assert_eq!(fs::read_to_string(dir.path().join("CHECKPOINT")).unwrap(), notes[notes.len() - 1]);
}

#[test]
fn the_log_is_consistent_with_each_earlier_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let mut notes: Vec<String> = Vec::new();
    for round in 0..4 {
        let governor = open_with(builder().durability(Durability::Buffered), dir.path());
        if let Some(last) = notes.last() {
            assert_eq!(&governor.log().checkpoint().unwrap(), last, "a restart adds nothing");
        }
        decide_often(&governor, 100 + 60 * round);
        notes.push(governor.log().checkpoint().unwrap());
        let new = notes.last().unwrap();
        for old in &notes {
            let proof = governor.log().prove_consistency(size_of(old), size_of(new)).unwrap();
            verify_consistency(old, new, &proof, &public()).unwrap();
            governor.log().verify_checkpoint(old, &public()).unwrap();
        }
        governor.close().unwrap();
    }
}

#[test]
fn a_cut_log_is_found_by_a_kept_checkpoint() {
    let sample = Sample::new();
    // All of the folder is put back to an older day: nothing in it contradicts anything.
    let cut = sample.copy("old");
    let governor = builder().open(cut.path()).unwrap();
    assert!(governor.verify().unwrap().valid);
    governor.log().verify_checkpoint(&sample.earlier, &public()).unwrap();
    assert_eq!(contradiction(&governor, &sample.later), BrokenKind::Missing);
    assert!(governor.log().prove_consistency(size_of(&sample.earlier), size_of(&sample.later)).is_err());

    // It grows past what was cut off: entries are others than they were.
    decide_often(&governor, 10);
    assert_eq!(contradiction(&governor, &sample.later), BrokenKind::Tampering);
}

#[test]
fn a_deleted_or_rewritten_log_is_found_by_a_kept_checkpoint() {
    let sample = Sample::new();
    let dir = tempfile::tempdir().unwrap();
    let governor = builder().open(dir.path()).unwrap();
    assert_eq!(contradiction(&governor, &sample.later), BrokenKind::Missing);
    governor.close().unwrap();

    let governor = open_with(builder(), dir.path());
    decide_often(&governor, 20);
    let note = governor.log().checkpoint().unwrap();
    assert!(governor.verify().unwrap().valid && size_of(&note) > size_of(&sample.later));
    assert_eq!(contradiction(&governor, &sample.later), BrokenKind::Tampering);
    let proof = governor.log().prove_consistency(size_of(&sample.later), size_of(&note)).unwrap();
    assert!(verify_consistency(&sample.later, &note, &proof, &public()).unwrap_err().is_contradiction());
}

#[test]
fn an_entry_changed_under_a_running_log_cannot_be_proven() {
    let sample = Sample::new();
    let store = sample.copy("new");
    let governor = builder().open(store.path()).unwrap();
    let id = decide(&governor, "a");
    governor.log().prove(&id).unwrap();
    let mut bytes = fs::read(journal(store.path())).unwrap();
    let last = common::frames(&bytes).pop().unwrap();
    bytes[last.start + 100] ^= 1;
    fs::write(journal(store.path()), bytes).unwrap();
    assert!(["CHAIN_BROKEN", "PROOF_NOT_FOUND"].contains(&code(governor.log().prove(&id))));
    assert!(!governor.verify().unwrap().valid);
    assert_eq!(code(governor.log().verify_checkpoint(&sample.later, &public())), "CHAIN_BROKEN");
}

#[test]
fn a_checkpoint_newer_than_the_log_is_found_at_opening() {
    let sample = Sample::new();
    let cut = sample.copy("old");
    fs::write(cut.path().join("CHECKPOINT"), &sample.later).unwrap();
    let (kind, message) = breakage(cut.path());
    assert_eq!(kind, BrokenKind::Missing, "{message}");
    assert!(message.contains("CHECKPOINT"), "{message}");
    // Nothing was done about it: it is found again, with or without the key.
    assert_eq!(breakage(cut.path()).0, BrokenKind::Missing);
    assert!(!common::builder().open(cut.path()).unwrap().verify().unwrap().valid);
}

#[test]
fn a_torn_tail_below_the_checkpoint_is_no_torn_tail() {
    let sample = Sample::new();
    let store = sample.copy("new");
    // Without HEAD's and the view's word for it, zeros at the end would pass for a write that was cut short.
    for name in ["HEAD", "view"] {
        let from = sample.dir.path().join("old").join(name);
        let to = store.path().join(name);
        if to.is_dir() {
            fs::remove_dir_all(&to).unwrap();
            copy_folder(&from, &to);
        } else {
            fs::copy(from, to).unwrap();
        }
    }
    let mut bytes = fs::read(journal(store.path())).unwrap();
    let end = bytes.len();
    bytes[end - 100..].fill(0);
    fs::write(journal(store.path()), bytes).unwrap();
    let (kind, message) = breakage(store.path());
    assert_eq!(kind, BrokenKind::Damage, "{message}");
    assert!(message.contains("0000000000.rkj"), "{message}");
    assert!(!store.path().join("recovered").exists());
}

#[test]
fn a_checkpoint_of_another_log_is_found_when_it_is_opened() {
    let (sample, other) = (Sample::new(), Sample::new());
    let store = other.copy("new");
    fs::write(store.path().join("CHECKPOINT"), &sample.earlier).unwrap();
    let (kind, message) = breakage(store.path());
    assert_eq!(kind, BrokenKind::Tampering, "{message}");
    assert!(message.contains("CHECKPOINT"), "{message}");
}

#[test]
fn a_folder_with_a_checkpoint_and_no_log_never_opens_empty() {
    let sample = Sample::new();
    let store = sample.copy("new");
    for name in ["journal", "view"] {
        fs::remove_dir_all(store.path().join(name)).unwrap();
    }
    fs::remove_file(store.path().join("HEAD")).unwrap();
    assert_eq!(code(builder().open(store.path())), "STORAGE_UNAVAILABLE");
}

#[test]
fn a_change_of_any_byte_that_a_kept_checkpoint_signs_is_found() {
    let sample = Sample::new();
    let signed = sample.later.find("\n\n").unwrap();
    for at in (0..signed).step_by(3) {
        let store = sample.copy("new");
        let mut note = sample.later.clone().into_bytes();
        note[at] ^= 1;
        fs::write(store.path().join("CHECKPOINT"), &note).unwrap();
        breakage(store.path());
    }
}

#[test]
fn verification_by_a_kept_checkpoint_finds_a_restored_log() {
    let (sample, other) = (Sample::new(), Sample::new());
    for (round, note, kind) in [
        ("new", &sample.earlier, None),
        ("new", &sample.later, None),
        ("old", &sample.later, Some(BrokenKind::Missing)),
        ("new", &other.earlier, Some(BrokenKind::Tampering)),
    ] {
        let store = sample.copy(round);
        let governor = builder().open(store.path()).unwrap();
        let found = governor.log().verify_with_checkpoint(&VerifyOptions::new(), note, &public()).unwrap();
        assert_eq!((found.valid, found.first_broken.as_ref().map(|broken| broken.kind)), (kind.is_none(), kind));
        // Whoever has the checkpoint says so; the log does not contradict itself.
        decide(&governor, "a");
    }
    let governor = builder().open(sample.copy("new").path()).unwrap();
    let stranger = CheckpointKey::from_seed(ORIGIN, &[4; 32]).unwrap().verifier();
    let refused = governor.log().verify_with_checkpoint(&VerifyOptions::new(), &sample.later, &stranger);
    assert_eq!(code(refused), "INVALID_INPUT");
}

#[test]
fn a_log_goes_on_under_another_key() {
    let sample = Sample::new();
    let store = sample.copy("new");
    let other = CheckpointKey::from_seed("example.com/second", &[4; 32]).unwrap();
    let governor = open_with(common::builder().checkpoints(other.clone()), store.path());
    let note = governor.log().checkpoint().unwrap();
    assert_eq!(Checkpoint::open(&note, &other.verifier()).unwrap().size(), size_of(&sample.later));
    governor.log().verify_checkpoint(&sample.later, &public()).unwrap();
    assert_eq!(error(governor.log().verify_checkpoint(&note, &public())).code(), "INVALID_INPUT");
    assert_eq!(fs::read_to_string(store.path().join("CHECKPOINT")).unwrap(), note);
}

#[test]
fn a_checkpoint_without_a_key_is_unsigned_and_still_holds() {
    let sample = Sample::new();
    let store = sample.copy("new");
    let governor = common::builder().open(store.path()).unwrap();
    let id = decide(&governor, "a");
    assert_eq!((code(governor.log().checkpoint()), code(governor.log().prove(&id))), ("CONFLICT", "CONFLICT"));
    governor.log().verify_checkpoint(&sample.later, &public()).unwrap();
}

#[test]
fn a_member_proves_records_by_notes_of_its_own_key() {
    let folder = tempfile::tempdir().unwrap();
    let governor = common::in_folder(folder.path());
    decide_often(&governor, 5);
    let proof_id = decide(&governor, "a");
    let extension = Extension::of(&governor);
    let (size, root) = extension.tree_head().unwrap();
    let note = Checkpoint::new(ORIGIN, size, root).unwrap().sign(&key()).unwrap();
    let index = proof_id.sequence().get();
    let path = extension.inclusion(index, size).unwrap();
    let proof = InclusionProof::new(index, path, note).to_string();
    let record = governor.log().record(&proof_id).unwrap();
    assert_eq!(verify_inclusion(&record, &proof, &public()).unwrap().size(), size);
    assert_eq!(code(extension.inclusion(size, size)), "INTERNAL");
    assert!(!folder.path().join("CHECKPOINT").exists(), "the member keeps its notes itself");
}

/// The entries beside the records are linked by no hash that an export has, so only the checkpoint tells.
#[test]
fn a_forged_entry_of_an_export_is_found_by_the_checkpoint() {
    let governor = builder().open_in_memory().unwrap();
    for agent in ["a", "b"] {
        governor.agents().register(rulekeep::Agent::new(agent).at_tier(rulekeep::Tier::T4)).unwrap();
    }
    decide_often(&governor, 3);
    let early = governor.log().checkpoint().unwrap();
    governor.agents().suspend("b", "a drill").unwrap();
    let late = governor.log().checkpoint().unwrap();
    decide_often(&governor, 1);
    let [early, late] = [early, late].map(|note| Checkpoint::open(&note, &public()).unwrap());
    let export = |range: &ExportRange| {
        let mut lines = Vec::new();
        let report = governor.log().export(range, &mut lines, &mut |_, _| {}).unwrap();
        (String::from_utf8(lines).unwrap(), report)
    };
    let (whole, report) = export(&ExportRange::all().with_entries());
    assert!(
        report.root.is_some()
            && whole.lines().last().unwrap().contains(&format!(r#""root":"{}""#, report.root.unwrap()))
    );
    let check = |lines: &str, known: &Checkpoint| {
        let folder = tempfile::tempdir().unwrap();
        let checked = verify_export_against(&mut lines.as_bytes(), known, &mut |_, _| {});
        let imported = import_against(folder.path(), &mut lines.as_bytes(), known, &mut |_, _| {});
        assert_eq!(checked.is_ok(), imported.is_ok());
        assert_eq!(imported.is_ok(), std::fs::read_dir(folder.path()).unwrap().next().is_some());
        checked.map_err(|error| error.to_string())
    };
    for known in [&early, &late] {
        assert_eq!(check(&whole, known).unwrap(), report);
    }

    // The agent stays active, and everything that the file says of itself fits.
    let active = whole.replace(r#"\"suspended\""#, r#"\"active\""#);
    assert_ne!(active, whole);
    let lines: Vec<&str> = active.lines().collect();
    let forged = ended(&lines[..lines.len() - 1]);
    assert!(verify_export(&mut forged.as_bytes(), &mut |_, _| {}).is_ok());
    assert!(check(&forged, &early).is_ok(), "it covers entries before the change");
    assert!(check(&forged, &late).unwrap_err().contains("checkpoint"));

    let lines: Vec<&str> = whole.lines().collect();
    let cut = ended(&lines[..usize::try_from(late.size()).unwrap()]);
    assert!(check(&cut, &late).unwrap_err().contains("entries of the checkpoint"), "{cut}");
    assert!(check(&export(&ExportRange::all()).0, &early).unwrap_err().contains("all entries"));
}

/// An export of these lines, with a last line that fits them.
fn ended(lines: &[&str]) -> String {
    let records: Vec<Value> = lines
        .iter()
        .filter(|line| line.starts_with(r#"{"record""#))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (body, head) = (lines.join("\n") + "\n", &records.last().unwrap()["record"]["hash"]);
    let (entries, sha256) = (lines.len() - 1 - records.len(), hex::encode(Sha256::digest(&body)));
    let end = format!(
        r#"{{"manifest":"end","records":{},"entries":{entries},"headHash":{head},"sha256":"sha256:{sha256}"}}"#,
        records.len()
    );
    format!("{body}{end}\n")
}
