//! A store that is read: nothing of it changes, also while somebody else decides in it.

use crate::common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use common::{builder, code, decide, in_folder, intent, reading};
use rulekeep::proof::{ExportRange, verify_export};
use rulekeep::{Agent, Decision, Durability, Governor, Outcome, PolicySet, ProofQuery, Tier};

/// Every file and folder below, with its content and the time of its last change.
fn state(folder: &Path) -> BTreeMap<PathBuf, (Option<Vec<u8>>, SystemTime)> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        let metadata = fs::metadata(&path).unwrap();
        let content = metadata.is_file().then(|| fs::read(&path).unwrap());
        if metadata.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        found.insert(path, (content, metadata.modified().unwrap()));
    }
    found
}

fn export(governor: &Governor) -> Vec<u8> {
    let mut lines = Vec::new();
    governor.log().export(&ExportRange::all(), &mut lines, &mut |_, _| {}).unwrap();
    lines
}

#[test]
fn what_is_read_stays_as_it_is_to_the_byte_and_the_second() {
    let folder = tempfile::tempdir().unwrap();
    let governor = in_folder(folder.path());
    let proof_id = decide(&governor, "a");
    governor.report(&proof_id, Outcome::Success).unwrap();
    decide(&governor, "a");
    let (page, lines) = (governor.query(&ProofQuery::entity("a")).unwrap(), export(&governor));
    // As a crash leaves it: a last write is cut short, which is not mended either.
    decide(&governor, "a");
    let crashed = tempfile::tempdir().unwrap();
    common::copy_folder(folder.path(), crashed.path());
    let segment = crashed.path().join("journal").join("0000000000.rkj");
    let mut content = fs::read(&segment).unwrap();
    let end = content.iter().rposition(|byte| *byte != 0).unwrap();
    content[end - 20..].fill(0);
    fs::write(&segment, content).unwrap();
    governor.close().unwrap();
    drop(governor);
    let before = state(crashed.path());
    {
        let auditor = Governor::open_read_only(crashed.path()).unwrap();
        let found = auditor.verify().unwrap();
        assert!(found.valid, "{found:?}");
        assert_eq!(auditor.query(&ProofQuery::entity("a")).unwrap(), page);
        assert_eq!(auditor.stats("a", ..).unwrap().total_records, 2);
        assert_eq!(auditor.log().evidence(&proof_id).unwrap().intent["agentId"], "a");
        assert_eq!(export(&auditor), lines);
        assert!(verify_export(&mut lines.as_slice(), &mut |_, _| {}).is_ok());
        let closed = PolicySet::from_toml("name = \"closed\"").unwrap();
        let replay = auditor.policies().replay(&closed, &rulekeep::preview::ReplayRange::all(), |_| {}).unwrap();
        assert_eq!(replay.changed, 2);
        for refused in [
            code(auditor.enforce(&reading("a"))),
            code(auditor.report(&proof_id, Outcome::Success).and(auditor.report(&proof_id, Outcome::Failure))),
            code(auditor.agents().register(Agent::new("new"))),
            code(auditor.policies().load(closed)),
        ] {
            assert_eq!(refused, "CONFLICT");
        }
        auditor.close().unwrap();
    }
    assert_eq!(state(crashed.path()), before);
}

#[test]
fn what_is_no_store_is_refused_and_not_made_one() {
    let folder = tempfile::tempdir().unwrap();
    for path in [folder.path().to_owned(), folder.path().join("nowhere")] {
        let refused = common::error(Governor::open_read_only(&path)).message();
        assert!(refused.contains("there is no store"), "{refused}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_store_whose_head_cannot_be_read_tells_its_damage() {
    let folder = tempfile::tempdir().unwrap();
    let governor = Governor::builder().auto_register().open(folder.path()).unwrap();
    let _ = governor.enforce(&reading("a")).unwrap();
    governor.close().unwrap();
    let head = folder.path().join("HEAD");
    for content in ["", "no head"] {
        fs::write(&head, content).unwrap();
        let auditor = Governor::open_read_only(folder.path()).unwrap();
        let broken = auditor.verify().unwrap().first_broken.unwrap();
        assert_eq!(broken.kind, rulekeep::proof::BrokenKind::Damage, "{broken:?}");
        assert_eq!(auditor.query(&ProofQuery::entity("a")).unwrap().total, 1);
    }
    fs::remove_file(&head).unwrap();
    fs::create_dir(&head).unwrap();
    let refused = common::error(Governor::open_read_only(folder.path())).message();
    assert!(refused.contains("read HEAD"), "{refused}");
}

/// Ends the thread that decides at any rate, also where a check fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Whoever reads sees all that was on disk when it began, and what it sees holds.
#[test]
fn a_store_is_read_while_another_decides_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let governor = builder().durability(Durability::Buffered).open(folder.path()).unwrap();
    governor.agents().ensure(Agent::new("busy").at_tier(Tier::T4)).unwrap();
    let (is_over, mut seen) = (AtomicBool::new(false), 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let asked = intent("busy", &["document:read"]).with_context("note", "x".repeat(4000));
                assert_eq!(governor.enforce(&asked).unwrap().decision, Decision::Allow);
            }
        });
        let _over = Over(&is_over);
        for _ in 0..4 {
            governor.log().flush().unwrap();
            let least = governor.status().metrics.proof_chain_length;
            let auditor = Governor::open_read_only(folder.path()).unwrap();
            let found = auditor.verify().unwrap();
            assert!(found.valid && found.records >= least.max(seen), "{found:?} of {least}");
            seen = found.records;
        }
    });
    assert!(governor.verify().unwrap().valid);
}
