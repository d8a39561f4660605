//! A log that is frozen, and one whose first entries move to an archive.

use crate::common;

use std::fs;
use std::path::Path;

use common::{Hand, NOON, builder, code, error, files_below, heavy, reading, wait_until_sealed};
use rulekeep::agent::AgentState;
use rulekeep::catalogue::ToolChange;
use rulekeep::kill_switch::KillSwitchScope;
use rulekeep::maintenance::verify_archive;
use rulekeep::proof::{ExportRange, ProofId, verify_export};
use rulekeep::system::Timestamp;
use rulekeep::task::{TaskId, TaskRequest, TaskState};
use rulekeep::{Agent, Durability, Error, Governor, Outcome, PolicySet, ProofQuery, Tier};
use serde_json::{Value, json};

const DAY: i64 = 86_400_000;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// What the journal has written, without the zeros ahead of it. Those, and sled's files beside it, grow in large steps.
fn bytes_of_journal(store: &Path) -> usize {
    let written = |content: Vec<u8>| content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    files_below(&store.join("journal")).iter().map(|file| written(fs::read(file).unwrap())).sum()
}

/// A store of which the first half is forty days older than the second.
struct Aged {
    dir: tempfile::TempDir,
    clock: Hand,
    old: Vec<ProofId>,
    new: Vec<ProofId>,
    /// A task of the older half.
    task: TaskId,
}

impl Aged {
    fn new() -> (Self, Governor) {
        let dir = tempfile::tempdir().unwrap();
        let clock = Hand::at(NOON);
        let governor = opened(&dir.path().join("store"), &clock);
        for (agent, tier) in [("a", Tier::T4), ("b", Tier::T3)] {
            governor.agents().register(Agent::new(agent).at_tier(tier)).unwrap();
        }
        governor.agents().suspend("b", "before all of it").unwrap();
        let lifted = governor.kill_switch().set(KillSwitchScope::All, "ann", "before all of it").unwrap().id;
        governor.kill_switch().set(KillSwitchScope::agent("c").unwrap(), "ann", "before all of it").unwrap();
        governor.kill_switch().lift(&lifted, "ann", "").unwrap();
        governor.tools().load(&tools("Reads a page."), None).unwrap();
        governor.tools().change(&["pinned", "unpinned"].map(ToolChange::pin)).unwrap();
        governor.tools().unpin("unpinned", None).unwrap();
        let task = governor.tasks().open(TaskRequest::new("a", "Read the minutes")).unwrap().id();
        let old = heavy(&governor, 400, 1);
        clock.set(NOON + 40 * DAY);
        // An outcome that comes when its record is about to leave.
        governor.report(&old[5], Outcome::Success).unwrap();
        let new = heavy(&governor, 380, 2);
        wait_until_sealed(&governor);
        (Self { dir, clock, old, new, task }, governor)
    }

    fn store(&self) -> std::path::PathBuf {
        self.dir.path().join("store")
    }

    fn reopened(&self) -> Governor {
        opened(&self.store(), &self.clock)
    }
}

fn tools(description: &str) -> Value {
    json!([{ "name": "pinned", "description": description }, { "name": "unpinned", "description": description }])
}

fn opened(store: &Path, clock: &Hand) -> Governor {
    let governor = builder().clock(clock.clone()).durability(Durability::Buffered);
    #[cfg(feature = "checkpoints")]
    let governor = governor.checkpoints(key());
    governor.open(store).unwrap()
}

#[cfg(feature = "checkpoints")]
fn key() -> rulekeep::checkpoint::CheckpointKey {
    rulekeep::checkpoint::CheckpointKey::from_seed("example.com/agents", &[3; 32]).unwrap()
}

#[test]
fn archived_entries_leave_the_disk_and_both_parts_verify() {
    let (aged, governor) = Aged::new();
    let whole = governor.verify().unwrap();
    #[cfg(feature = "checkpoints")]
    let kept = governor.log().checkpoint().unwrap();
    let before = bytes_of_journal(&aged.store());
    let file = aged.dir.path().join("2027.rka");
    let archive = governor.log().archive(at(NOON + DAY), &file).unwrap().expect("whole segments are that old");
    assert!(archive.records >= 250 && archive.until <= at(NOON + DAY), "{archive:?}");
    assert_eq!((archive.from, archive.store.len(), archive.file.as_str()), (0, 32, "2027.rka"));
    assert_eq!(verify_archive(&file).unwrap(), archive);

    // The disk has what it had, less what left, but for some states.
    let (left, gone) = (bytes_of_journal(&aged.store()), fs::read(&file).unwrap().len());
    assert!(left < before - gone * 9 / 10, "{before} bytes before, {left} left, {gone} in the archive");

    // Twice the same chain: archive and log, and the export of what is left.
    let both = governor.log().verify_with_archives(&[&file]).unwrap();
    assert_eq!((both.valid, both.records, both.head_hash), (true, whole.records, whole.head_hash));
    let mut export = Vec::new();
    governor.log().export(&ExportRange::all(), &mut export, &mut |_, _| {}).unwrap();
    let exported = verify_export(&mut export.as_slice(), &mut |_, _| {}).unwrap();
    assert_eq!((exported.records + archive.records, exported.head_hash), (whole.records, whole.head_hash));

    let mut running = Some(governor);
    for look in ["running", "reopened"] {
        let governor = running.take().unwrap_or_else(|| aged.reopened());
        assert_eq!(governor.agents().get("b").unwrap().state, AgentState::Suspended);
        assert_eq!(governor.kill_switch().list().len(), 1, "one stop was lifted, one was not");
        assert_eq!(governor.policies().current().digest(), common::policies().digest());
        let settled = if look == "running" { vec!["pinned", "unpinned"] } else { vec!["pinned"] };
        assert_eq!(governor.tools().load(&tools("Deletes it."), None).unwrap().changed, settled, "{look}");
        let stats = governor.stats("a", ..).unwrap();
        let more = u64::from(look == "reopened");
        assert_eq!(stats.total_records, whole.records - archive.records + more, "{look}");
        let records: Vec<_> = governor.log().records(&ProofQuery::entity("a")).collect::<Result<_, _>>().unwrap();
        assert_eq!(records.len() as u64, stats.total_records);
        assert_eq!(stats.period.from.unwrap(), records.last().unwrap().timestamp, "statistics say from when");
        for id in [&aged.old[0], &aged.old[5]] {
            for refused in [error(governor.log().record(id)), error(governor.report(id, Outcome::Failure))] {
                assert_eq!(refused.code(), "PROOF_NOT_FOUND");
                assert!(
                    matches!(&refused, Error::ProofElsewhere { place, .. } if place.contains("2027.rka")),
                    "{refused}"
                );
            }
        }
        assert!(governor.report(aged.new.last().unwrap(), Outcome::Success).is_ok());
        #[cfg(feature = "checkpoints")]
        proofs_span_the_point(&governor, &kept, &archive, aged.new.last().unwrap());
        assert!(governor.log().verify_with_archives(&[&file]).unwrap().valid);
        governor.enforce(&reading("a")).unwrap();
        governor.close().unwrap();
    }
}

#[cfg(feature = "checkpoints")]
fn proofs_span_the_point(
    governor: &Governor,
    kept: &str,
    archive: &rulekeep::maintenance::ArchiveReport,
    id: &ProofId,
) {
    use rulekeep::checkpoint::{Checkpoint, verify_consistency, verify_inclusion};
    let public = key().verifier();
    // Signed, by this key and no other.
    let note = archive.checkpoint.as_deref().unwrap();
    assert_eq!(Checkpoint::open(note, &public).unwrap().size(), archive.entries);
    // From a size within the archive, from its end, and from one behind it.
    let now = governor.log().checkpoint().unwrap();
    let size = |note: &str| Checkpoint::open(note, &public).unwrap().size();
    for old in [kept, note] {
        let proof = governor.log().prove_consistency(size(old), size(&now)).unwrap();
        assert_eq!(verify_consistency(old, &now, &proof, &public).unwrap().size(), size(&now));
        governor.log().verify_checkpoint(old, &public).unwrap();
    }
    for old in [1, 77, archive.entries - 1] {
        governor.log().prove_consistency(old, size(&now)).unwrap();
    }
    let proof = governor.log().prove(id).unwrap();
    verify_inclusion(&governor.log().record(id).unwrap(), &proof, &public).unwrap();
    assert!(matches!(
        governor.log().prove(&ProofId::new(at(NOON), 1, rulekeep::proof::Sequence::new(3))),
        Err(Error::ProofElsewhere { .. })
    ));
}

#[cfg(feature = "checkpoints")]
#[test]
fn an_archive_is_signed_by_the_key_or_said_not_to_be() {
    use rulekeep::checkpoint::CheckpointKey;
    use rulekeep::maintenance::verify_signed_archive;
    let (aged, governor) = Aged::new();
    let file = aged.dir.path().join("signed.rka");
    governor.log().archive(at(NOON + DAY), &file).unwrap().unwrap();
    assert!(verify_signed_archive(&file, &key().verifier()).is_ok());
    let other = CheckpointKey::from_seed("example.com/agents", &[4; 32]).unwrap();
    assert_eq!(code(verify_signed_archive(&file, &other.verifier())), "INVALID_INPUT");

    // Without its note, and made to fit, it is an archive, and not the one that the log wrote.
    assert!(governor.log().verify_with_archives(&[&file]).unwrap().valid);
    let mut bytes = fs::read(&file).unwrap();
    let note = bytes.len() - 44;
    let length = u32::from_le_bytes(bytes[note..note + 4].try_into().unwrap()) as usize;
    bytes[note..note + 4].fill(0);
    bytes.drain(note - 12 - length..note - 12);
    let end = bytes.len() - 40;
    let digest = <sha2::Sha256 as sha2::Digest>::digest(&bytes[..end]);
    bytes[end..end + 32].copy_from_slice(&digest);
    fs::write(&file, bytes).unwrap();
    assert_eq!(verify_archive(&file).unwrap().checkpoint, None);
    let refused = error(governor.log().verify_with_archives(&[&file]));
    assert!(refused.to_string().contains("SHA-256"), "{refused}");
}

#[test]
fn nothing_too_new_or_over_a_file_is_archived() {
    let (aged, governor) = Aged::new();
    let file = aged.dir.path().join("none.rka");
    assert_eq!(governor.log().archive(at(NOON - 1), &file).unwrap(), None);
    assert!(!file.exists());
    fs::write(&file, "mine").unwrap();
    assert_eq!(code(governor.log().archive(at(NOON + DAY), &file)), "CONFLICT");
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    let total = governor.verify().unwrap().records;
    assert_eq!(total, (1 + aged.old.len() + aged.new.len()) as u64, "the task has a record too");

    // Others than those that belong together are not one chain.
    let archive = aged.dir.path().join("one.rka");
    governor.log().archive(at(NOON + DAY), &archive).unwrap().unwrap();
    assert_eq!(code(governor.log().verify_with_archives(&[&archive, &archive])), "INVALID_INPUT");
    assert_eq!(code(common::in_memory().log().verify_with_archives(&[&archive])), "INVALID_INPUT");
    // What limits may still count stays, whatever is asked for.
    let newer = aged.dir.path().join("newer.rka");
    assert_eq!(governor.log().archive(at(NOON + 100 * DAY), newer).unwrap(), None);
    // A frozen log moves nothing.
    governor.log().freeze("closed").unwrap();
    aged.clock.set(NOON + 100 * DAY);
    assert_eq!(code(governor.log().archive(at(NOON + 60 * DAY), aged.dir.path().join("two.rka"))), "CONFLICT");
}

#[test]
fn an_archived_log_that_breaks_is_repaired_like_any() {
    let (aged, governor) = Aged::new();
    governor.log().archive(at(NOON + DAY), aged.dir.path().join("one.rka")).unwrap().unwrap();
    governor.close().unwrap();
    assert_eq!(
        code(rulekeep::maintenance::repair(aged.store(), &rulekeep::maintenance::RepairOptions::default())),
        "CONFLICT"
    );
    damage_the_last_entry(&aged.store());
    let report = rulekeep::maintenance::repair(aged.store(), &rulekeep::maintenance::RepairOptions::default()).unwrap();
    assert!(report.entries > 700 && report.agents == 2, "{report:?}");
    assert!(aged.store().join(&report.kept).join("LEAVES").exists());
    let governor = aged.reopened();
    assert!(governor.verify().unwrap().valid);
    assert_eq!(governor.agents().get("b").unwrap().state, AgentState::Suspended);
}

fn damage_the_last_entry(store: &Path) {
    let last = fs::read_dir(store.join("journal"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|file| file.extension().is_some_and(|extension| extension == "rkj"));
    let last = last.max().unwrap();
    let mut bytes = fs::read(&last).unwrap();
    let frames = common::frames(&bytes);
    bytes[frames.last().unwrap().start + 70] ^= 1;
    fs::write(&last, bytes).unwrap();
}

#[cfg(feature = "checkpoints")]
#[test]
fn a_checkpoint_before_an_archive_is_checked_in_a_repair() {
    use rulekeep::maintenance::{RepairOptions, repair};
    let dir = tempfile::tempdir().unwrap();
    let (store, clock) = (dir.path().join("store"), Hand::at(NOON));
    let governor = opened(&store, &clock);
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    heavy(&governor, 100, 1);
    let kept = governor.log().checkpoint().unwrap();
    heavy(&governor, 300, 1);
    clock.set(NOON + 40 * DAY);
    heavy(&governor, 380, 2);
    wait_until_sealed(&governor);
    governor.log().archive(at(NOON + DAY), dir.path().join("one.rka")).unwrap().unwrap();
    governor.close().unwrap();
    assert_eq!(fs::read_to_string(store.join("CHECKPOINT")).unwrap(), kept);
    damage_the_last_entry(&store);
    let options = RepairOptions::default().checkpoint(&kept, &key().verifier()).unwrap();
    let report = repair(&store, &options).unwrap();
    assert_eq!((report.first_unconfirmed, report.notes.len()), (None, 0), "{report:?}");
}

#[test]
fn a_frozen_log_answers_everything_and_accepts_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let clock = Hand::at(NOON);
    let governor = opened(&store, &clock);
    governor.agents().register(Agent::new("a").at_tier(Tier::T4)).unwrap();
    let ids: Vec<ProofId> = (0..5).map(|_| common::decide(&governor, "a")).collect();
    governor.report(&ids[0], Outcome::Success).unwrap();
    assert_eq!(code(governor.log().freeze(&"x".repeat(5000))), "INVALID_INPUT");
    governor.log().freeze("the contract ended").unwrap();
    for look in ["running", "reopened", "reopened with other policies"] {
        let governor = match look {
            "running" => governor.clone(),
            "reopened" => {
                governor.close().unwrap();
                opened(&store, &clock)
            }
            _ => {
                let other = PolicySet::from_toml(
                    "name = \"other\"\n[[rule]]\nid = \"r\"\neffect = \"deny\"\nmatch.capabilities = [\"file:read\"]\n",
                );
                Governor::builder().policies(other.unwrap()).clock(clock.clone()).open(&store).unwrap()
            }
        };
        let refused = error(governor.enforce(&reading("a")));
        assert_eq!((refused.code(), refused.http_status()), ("CONFLICT", 409), "{look}");
        assert!(refused.to_string().contains("the contract ended"), "{look}: {refused}");
        assert_eq!(code(governor.report(&ids[1], Outcome::Failure)), "CONFLICT", "{look}");
        assert_eq!(code(governor.agents().register(Agent::new("new"))), "CONFLICT", "{look}");
        assert_eq!(code(governor.agents().suspend("a", "no")), "CONFLICT", "{look}");
        assert_eq!(code(governor.policies().load(common::policies())), "CONFLICT", "{look}");
        assert_eq!(code(governor.log().freeze("again")), "CONFLICT", "{look}");
        let mut export = Vec::new();
        governor.log().export(&ExportRange::all().with_entries(), &mut export, &mut |_, _| {}).unwrap();
        assert_eq!(verify_export(&mut export.as_slice(), &mut |_, _| {}).unwrap().records, 5, "{look}");
        assert_eq!(governor.query(&ProofQuery::entity("a")).unwrap().total, 5, "{look}");
        assert_eq!(governor.stats("a", ..).unwrap().total_records, 5, "{look}");
        assert!(governor.log().record(&ids[0]).unwrap().outcome == Some(Outcome::Success), "{look}");
        assert!(governor.verify().unwrap().valid, "{look}");
        assert!(governor.log().evidence(&ids[4]).is_ok(), "{look}");
        #[cfg(feature = "checkpoints")]
        if look != "reopened with other policies" {
            // The last one covers all of it.
            let note = governor.log().checkpoint().unwrap();
            let size = rulekeep::checkpoint::Checkpoint::open(&note, &key().verifier()).unwrap().size();
            assert_eq!(size, governor.log().journal().entries, "{look}");
            assert_eq!(fs::read_to_string(store.join("CHECKPOINT")).unwrap(), note, "{look}");
            governor.log().prove(&ids[2]).unwrap();
        }
        governor.close().unwrap();
    }
}

#[test]
fn a_corrected_outcome_outlasts_the_archive_of_its_past() {
    let (aged, governor) = Aged::new();
    governor.report(&aged.new[0], Outcome::Success).unwrap();
    governor.trust().correct(&aged.new[0], "not so").unwrap();
    governor
        .log()
        .archive(at(NOON + DAY), aged.dir.path().join("2027.rka"))
        .unwrap()
        .expect("whole segments are that old");
    let mut running = Some(governor);
    for look in ["running", "reopened"] {
        let governor = running.take().unwrap_or_else(|| aged.reopened());
        let before = governor.agents().get("a").unwrap().trust;
        assert_eq!(governor.trust().correct(&aged.new[0], "not so").unwrap(), before, "{look}");
        assert_eq!(code(governor.trust().correct(&aged.new[0], "otherwise")), "CONFLICT", "{look}");
        assert_eq!(code(governor.trust().correct(&aged.old[5], "too late")), "PROOF_NOT_FOUND", "{look}");
        governor.close().unwrap();
    }
}

#[test]
fn a_log_with_open_and_ended_tasks_is_archived() {
    let (aged, governor) = Aged::new();
    let opened = |words| governor.tasks().open(TaskRequest::new("a", words)).unwrap();
    let (open, closed) = (opened("Send the agenda to ann@example.com").id(), opened("Read the minutes"));
    closed.close(None).unwrap();
    let file = aged.dir.path().join("2027.rka");
    let archive = governor.log().archive(at(NOON + DAY), &file).unwrap().expect("whole segments are that old");
    assert!(archive.records > 0);
    governor.close().unwrap();
    drop(governor);

    let governor = aged.reopened();
    assert_eq!(governor.tasks().get(open).unwrap().info().unwrap().state, TaskState::Open);
    assert_eq!(code(governor.tasks().get(aged.task)), "TASK_NOT_FOUND", "its entries are in the archive");
    governor.log().verify_with_archives(&[&file]).unwrap();
}
