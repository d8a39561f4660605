//! Freezing and archiving interrupted at any point, by a failed call, a kill or a power failure.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::store::{Below, OpenMode};
use rulekeep_types::{ArchiveReport, ChainPosition, VerifyOptions, VerifySince};

/// The folder for archives, on the same disk, so that faults hit it too.
const OUT: &str = "out";
const NAME: &str = "first.rka";

const DECISIONS: i64 = 12;

fn decision() -> DecisionDraft {
    draft("a", Decision::Allow, RiskLevel::Low, 700)
}

/// A log of many small segments, the first entry of which is a state.
fn written(disk: &(impl Files + Clone + 'static)) -> (ProofLog, Vec<ProofId>) {
    let (log, _) = open_small(disk.clone(), Durability::Sync).unwrap();
    disk.create_dir(Path::new(OUT)).unwrap();
    disk.sync_dir(Path::new("")).unwrap();
    state(&log, 0).unwrap();
    let ids: Vec<ProofId> = (0..DECISIONS).map(|at| decide(&log, at, decision()).unwrap()).collect();
    report(&log, ids[1], Outcome::Success).unwrap();
    report(&log, ids[10], Outcome::Failure).unwrap();
    (log, ids)
}

fn state(log: &ProofLog, at: i64) -> Result<(), Error> {
    let state = StateDraft::new("agent/a".to_owned(), "{\"kept\":1}".to_owned());
    log.settle(log.queue().set_state(Timestamp::from_millis(at), state, "test".to_owned())?)
}

fn archive(log: &ProofLog, files: &Arc<dyn Files>, before: i64, name: &str) -> Result<ArchiveReport, Error> {
    let count = log.archivable(Timestamp::from_millis(before))?;
    assert!(count > 0);
    state(log, 50)?;
    let to: Arc<dyn Files> = Arc::new(Below::new(Arc::clone(files), OUT));
    let keys = BTreeSet::from(["agent/a".to_owned()]);
    log.archive(Timestamp::from_millis(50), count, &|key| keys.contains(key), &to, name, &|_, _| Ok(None))
}

fn checked(files: impl Files + 'static, name: &str) -> Result<ArchiveReport, Error> {
    verify_archive(&Below::new(Arc::new(files), OUT), Path::new(name))
}

#[test]
fn what_was_archived_leaves_the_log_and_the_rest_goes_on() {
    let disk = MemoryFiles::new();
    let (log, ids) = written(&disk);
    let files: Arc<dyn Files> = Arc::new(disk.clone());
    let before = log.verify().unwrap();
    let root = log.shared_root();
    let first = archive(&log, &files, 8, NAME).unwrap();
    assert_eq!((first.from, first.checkpoint.as_deref()), (0, None));
    assert!(first.records > 3 && first.until < Timestamp::from_millis(8), "{first:?}");
    let gone = |id: &ProofId| id.sequence().get() < first.entries;
    let look = |log: &ProofLog| {
        assert!(log.verify().unwrap().valid);
        assert_eq!(log.verify().unwrap().records + first.records, before.records);
        assert_eq!(log.verify().unwrap().head_hash, before.head_hash);
        assert_eq!(log.query(&ProofQuery::entity("a")).unwrap().total, before.records - first.records);
        assert_eq!(log.stats("a", Period::default()).unwrap().total_records, before.records - first.records);
        for id in &ids {
            match log.record(id) {
                Ok(record) => {
                    assert!(!gone(id));
                    assert_eq!(record.outcome, (*id == ids[10]).then_some(Outcome::Failure));
                }
                Err(error) => {
                    assert!(gone(id), "{error}");
                    assert!(matches!(&error, Error::ProofElsewhere { place, .. } if place.contains(NAME)), "{error}");
                    assert_eq!(log.facts(id).unwrap_err().code(), "PROOF_NOT_FOUND");
                    assert_eq!(log.evidence(id).unwrap_err().to_string(), error.to_string());
                }
            }
        }
        let mut feed = log.feed(Some(Sequence::new(0)));
        assert_eq!(feed.next(None, |_| ()).err().unwrap().code(), "CONFLICT");
    };
    look(&log);
    // The tree still covers all entries, and earlier roots are unchanged.
    assert_eq!(log.root_of(root.0), root.1);
    assert_eq!(log.root_of(first.entries), first.root);
    assert!(log.root_of(3) != log.root_of(4));
    log.close().unwrap();
    let names = disk.list(Path::new("journal")).unwrap();
    assert!(!names.iter().any(|name| name.starts_with("0000000000.")), "{names:?}");

    let (log, startup) = open_small(disk.clone(), Durability::Sync).unwrap();
    assert_eq!(startup.states, [("agent/a".to_owned(), b"{\"kept\":1}".to_vec())]);
    look(&log);
    assert_eq!(log.root_of(root.0), root.1);

    // Archives once more, after the first archive.
    let ids: Vec<ProofId> = (60..70).map(|at| decide(&log, at, decision()).unwrap()).collect();
    let second = archive(&log, &files, 64, "second.rka").unwrap();
    assert_eq!(
        (second.from, second.previous_link, second.previous_root, second.previous_hash),
        (first.entries, first.link, first.root, first.head_hash)
    );
    assert!(checked(disk.clone(), "second.rka").is_ok());
    assert_eq!(log.root_of(root.0), root.1);
    log.close().unwrap();
    let (log, _) = open_small(disk, Durability::Sync).unwrap();
    assert!(log.verify().unwrap().valid && log.record(ids.last().unwrap()).is_ok());
    assert_eq!(log.root_of(first.entries), first.root);
    let error = log.record(&ids[0]).unwrap_err();
    assert!(error.to_string().contains("second.rka"), "{error}");
}

#[test]
fn erased_evidence_leaves_with_an_archive_and_lost_does_not() {
    let disk = MemoryFiles::new();
    let (log, ids) = written(&disk);
    let files: Arc<dyn Files> = Arc::new(disk.clone());
    let erase = |ids: &[ProofId]| {
        let selection = EvidenceSelection::Records(ids.to_vec());
        log.erase(Timestamp::from_millis(49), &selection, "because", &|_| None)
    };
    assert_eq!(erase(&[ids[0], ids[2], ids[11]]).unwrap(), 3);
    let first = archive(&log, &files, 8, NAME).unwrap();
    assert_eq!((first.erased, checked(disk.clone(), NAME).unwrap().erased), (2, 2));
    assert_eq!(erase(&[ids[1]]).unwrap_err().code(), "PROOF_NOT_FOUND");
    assert_eq!(erase(&[ids[9]]).unwrap(), 1);
    let look = |log: &ProofLog| {
        let found = log.verify().unwrap();
        assert!(found.valid, "{:?}", found.first_broken);
        assert_eq!((found.records, found.checked.from), (DECISIONS as u64 - first.records, first.entries));
        for erased in [9, 11] {
            assert!(matches!(log.evidence(&ids[erased]).unwrap_err(), Error::EvidenceErased { .. }), "{erased}");
        }
        assert!(log.evidence(&ids[10]).is_ok());
    };
    look(&log);
    log.close().unwrap();
    let (log, _) = open_small(disk.clone(), Durability::Sync).unwrap();
    look(&log);
    // The erasures are archived too, after everything they cover.
    for at in 60..80 {
        decide(&log, at, decision()).unwrap();
    }
    let second = archive(&log, &files, 70, "second.rka").unwrap();
    assert_eq!((second.from, second.erased), (first.entries, 2));
    assert!(log.verify().unwrap().valid);
    log.close().unwrap();
    let (log, _) = open_small(disk.clone(), Durability::Sync).unwrap();
    assert!(log.verify().unwrap().valid && decide(&log, 90, decision()).is_ok());
    log.close().unwrap();
}

#[test]
fn evidence_that_is_gone_without_an_erasure_is_not_archived() {
    let disk = MemoryFiles::new();
    let (log, _) = written(&disk);
    let files: Arc<dyn Files> = Arc::new(disk.clone());
    // The bytes look like after an erasure, but no entry records one.
    log.parts().journal.reader.erase(&*files, &|_| true, &|frame| frame.sequence.get() == 3).unwrap();
    assert_eq!(archive(&log, &files, 8, NAME).unwrap_err().code(), "CHAIN_BROKEN");
    assert!(checked(disk, NAME).is_err());
}

#[test]
fn a_place_before_the_logs_beginning_does_not_contradict_it() {
    let disk = MemoryFiles::new();
    let (log, _) = written(&disk);
    let files: Arc<dyn Files> = Arc::new(disk.clone());
    let since = |position| VerifyOptions::new().since(VerifySince::Position(position));
    let kept = log.verify().unwrap().checked.until.unwrap();
    let mut early = kept;
    early.entries = 4;
    let archived = archive(&log, &files, 8, NAME).unwrap();
    let found = log.verify_with(&since(early)).unwrap();
    let broken = found.first_broken.unwrap();
    assert!(broken.found.contains(&format!("first {} entries were archived", archived.entries)), "{broken}");
    decide(&log, 51, decision()).unwrap();
    // A verification from a later position works as before, and so does one from exactly there.
    let found = log.verify_with(&since(kept)).unwrap();
    assert!(found.valid, "{:?}", found.first_broken);
    assert_eq!(found.records, kept.records + 1);
    let there = ChainPosition::new(archived.entries, archived.link, archived.records, kept.head_hash);
    let found = log.verify_with(&since(there)).unwrap();
    assert!(found.valid, "{:?}", found.first_broken);
    assert_eq!((found.records, found.checked.from), (kept.records + 1, archived.entries));
    // The last verification counted archived records.
    let found = log.verify_with(&VerifyOptions::new().since(VerifySince::LastVerified)).unwrap();
    assert!(found.valid);
    let compared = log.verify().unwrap();
    assert!(compared.checked.is_index_compared && compared.index_differed.is_none());
}

/// Signals that the test is over, even if it fails.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn verifying_erasing_and_deciding_together_leaves_a_valid_log() {
    let disk = MemoryFiles::new();
    let (log, _) = written(&disk);
    let files: Arc<dyn Files> = Arc::new(disk.clone());
    let ids: Vec<ProofId> = (12..200).map(|at| decide(&log, at, decision()).unwrap()).collect();
    let is_over = AtomicBool::new(false);
    let goes_on = || !is_over.load(Ordering::Relaxed);
    std::thread::scope(|scope| {
        let mut others = Vec::new();
        for options in [VerifyOptions::new(), VerifyOptions::new().since(VerifySince::LastVerified)] {
            let (log, goes_on) = (&log, &goes_on);
            others.push(scope.spawn(move || {
                while goes_on() {
                    let found = log.verify_with(&options).unwrap();
                    assert!(found.valid, "{:?}", found.first_broken);
                    assert_eq!(found.index_differed, None);
                    // A lock that is taken again at once is never free for the others.
                    std::thread::sleep(std::time::Duration::from_millis(1));
                }
            }));
        }
        let (log, ids, goes_on) = (&log, &ids, &goes_on);
        others.push(scope.spawn(move || {
            for id in ids.iter().rev().step_by(3) {
                if goes_on() {
                    let selection = EvidenceSelection::Records(vec![*id]);
                    let erased = log.erase(Timestamp::from_millis(300), &selection, "because", &|_| None);
                    assert!(matches!(erased, Ok(_) | Err(Error::ProofElsewhere { .. })), "{erased:?}");
                }
            }
        }));
        others.push(scope.spawn(move || {
            while goes_on() {
                decide(log, 400, decision()).unwrap();
            }
        }));
        let over = Over(&is_over);
        for (number, before) in (20..200).step_by(20).enumerate() {
            archive(log, &files, before, &format!("{number}.rka")).unwrap();
        }
        drop(over);
        for other in others {
            other.join().unwrap();
        }
    });
    log.close().unwrap();
    let (log, _) = open_small(disk, Durability::Sync).unwrap();
    assert!(log.verify().unwrap().valid);
}

#[test]
fn a_changed_byte_anywhere_in_an_archive_is_found() {
    let disk = MemoryFiles::new();
    let (log, _) = written(&disk);
    archive(&log, &(Arc::new(disk.clone()) as Arc<dyn Files>), 4, NAME).unwrap();
    let path = Path::new(OUT).join(NAME);
    let whole = disk.content(&path);
    for at in 0..whole.len() {
        disk.change(&path, |bytes| bytes[at] ^= 1 << (at % 8));
        assert_eq!(checked(disk.clone(), NAME).unwrap_err().code(), "INVALID_INPUT", "byte {at}");
        disk.change(&path, |bytes| bytes.clone_from(&whole));
    }
    for keep in (0..whole.len()).step_by(7) {
        disk.change(&path, |bytes| bytes.truncate(keep));
        assert_eq!(checked(disk.clone(), NAME).unwrap_err().code(), "INVALID_INPUT", "{keep} bytes");
        disk.change(&path, |bytes| bytes.clone_from(&whole));
    }
    // Also if the digest over the whole file is made to match.
    for at in (8..whole.len() - 56).step_by(5) {
        disk.change(&path, |bytes| {
            bytes[at] ^= 1 << (at % 8);
            let end = bytes.len() - 40;
            let digest = <sha2::Sha256 as sha2::Digest>::digest(&bytes[..end]);
            bytes[end..end + 32].copy_from_slice(&digest);
        });
        assert!(checked(disk.clone(), NAME).is_err(), "byte {at}, and the digest");
        disk.change(&path, |bytes| bytes.clone_from(&whole));
    }
    assert!(checked(disk, NAME).is_ok());
}

#[test]
fn a_log_without_the_entry_that_names_its_beginning_is_broken() {
    let disk = MemoryFiles::new();
    let (log, _) = written(&disk);
    archive(&log, &(Arc::new(disk.clone()) as Arc<dyn Files>), 8, NAME).unwrap();
    log.close().unwrap();
    let reopened = |disk: &MemoryFiles| open_small(disk.fork(), Durability::Sync).unwrap().0;
    assert!(reopened(&disk).verify().unwrap().valid);

    // Digests of archived entries: changed, truncated, missing.
    let leaves = Path::new("LEAVES");
    let changes: [fn(&mut Vec<u8>); 3] = [|bytes| bytes[40] ^= 1, |bytes| bytes.truncate(64), Vec::clear];
    for change in changes {
        let disk = disk.fork();
        disk.change(leaves, change);
        assert!(!reopened(&disk).state().breakage.unwrap().file.is_empty());
    }
    let without = disk.fork();
    without.remove(leaves).unwrap();
    assert_eq!(reopened(&without).state().breakage.unwrap().file, "LEAVES");

    // A beginning that no entry names: the first remaining segment is removed, and `HEAD` adapted.
    let head = String::from_utf8(disk.content(Path::new("HEAD"))).unwrap();
    let json = head.lines().next().unwrap();
    let mut value: serde_json::Value = serde_json::from_str(json).unwrap();
    let hash = value["start"]["headHash"].as_str().unwrap().to_owned();
    value["start"]["headHash"] = hash.chars().rev().take(64).collect::<String>().into();
    let forged = disk.fork();
    let text = json.replace(&hash, &format!("sha256:{}", "0".repeat(64)));
    let line = format!("{text}\ncrc32:{:08x}\n", crc32fast::hash(text.as_bytes()));
    forged.change(Path::new("HEAD"), |bytes| *bytes = line.clone().into_bytes());
    assert!(reopened(&forged).state().breakage.is_some());
}

/// Makes every call of `act` fail in turn, and checks the remains after a kill and after a power failure.
fn strike(
    start: &CrashFiles,
    faults: &[Fault],
    act: impl Fn(&ProofLog, &Arc<dyn Files>) -> bool,
    look: impl Fn(&CrashFiles, bool, &str),
) {
    for fault in faults {
        for call in 0.. {
            let disk = start.kill();
            let faulty = Arc::new(FaultyFiles::new(disk.clone(), *fault, Counted::All, call));
            let files: Arc<dyn Files> = Arc::new(Arc::clone(&faulty));
            let done = match open_small(Arc::clone(&faulty), Durability::Sync) {
                Ok((log, _)) => {
                    let done = act(&log, &files);
                    // The process counts as killed, but its thread has to end.
                    let _ = log.close();
                    done
                }
                Err(_) => false,
            };
            for (left, how) in [(disk.kill(), "killed"), (disk.crash(&mut Dice::new(call.unsigned_abs())), "power cut")]
            {
                look(&left, done, &format!("{fault:?} at call {call}, {how}"));
            }
            if !faulty.struck() {
                assert!(done, "without a fault it is done");
                break;
            }
            assert!(call < 800, "there are more calls than were tried");
        }
    }
}

#[test]
fn an_archive_that_is_cut_short_anywhere_loses_nothing() {
    let start = CrashFiles::new();
    let (log, ids) = written(&start);
    log.close().unwrap();
    let act = |log: &ProofLog, files: &Arc<dyn Files>| match log.archivable(Timestamp::from_millis(5)) {
        Ok(_) => archive(log, files, 5, NAME).is_ok(),
        Err(_) => false,
    };
    let look = |left: &CrashFiles, done: bool, what: &str| {
        let (log, startup) =
            open_small(left.clone(), Durability::Sync).unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = log.verify().unwrap();
        assert!(found.valid, "{what}: {:?}", found.first_broken);
        assert_eq!(startup.states.len(), 1, "{what}");
        let gone = log.begins().entries;
        assert!(gone > 0 || !done, "{what}: an archive that was made is not in force");
        if gone > 0 {
            let archived = checked(left.clone(), NAME).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!((archived.entries, archived.records + found.records), (gone, DECISIONS as u64), "{what}");
            let names = left.list(Path::new("journal")).unwrap();
            assert!(!names.iter().any(|name| name.starts_with("0000000000.")), "{what}: {names:?}");
        }
        for id in &ids {
            assert_eq!(log.record(id).is_err(), id.sequence().get() < gone, "{what}");
        }
        // The log can still be written to, and unfinished work can be done now.
        let last = decide(&log, 99, decision()).unwrap();
        if gone == 0 {
            let files: Arc<dyn Files> = Arc::new(left.clone());
            archive(&log, &files, 5, "again.rka").unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        let _ = log.close();
        let (log, _) = open_small(left.kill(), Durability::Sync).unwrap();
        assert!(log.verify().unwrap().valid && log.record(&last).is_ok(), "{what}, and again");
    };
    strike(&start, &[Fault::Once, Fault::Forever, Fault::Torn], act, look);
}

#[test]
fn an_acknowledged_freeze_holds_and_others_are_all_or_nothing() {
    let start = CrashFiles::new();
    let (log, _) = open_small(start.clone(), Durability::Buffered).unwrap();
    for at in 0..4 {
        decide(&log, at, decision()).unwrap();
    }
    log.close().unwrap();
    let act = |log: &ProofLog, _: &Arc<dyn Files>| {
        // Earlier entries come before the freeze.
        let _ = decide(log, 5, decision());
        log.freeze(Timestamp::from_millis(9), "the end".to_owned()).is_ok()
    };
    let look = |left: &CrashFiles, done: bool, what: &str| {
        for look in ["first", "second"] {
            let (log, _) =
                open_small(left.clone(), Durability::Sync).unwrap_or_else(|error| panic!("{what}, {look}: {error}"));
            assert!(log.verify().unwrap().valid, "{what}, {look}: {:?}", log.verify().unwrap().first_broken);
            match decide(&log, 99, decision()) {
                Ok(_) => assert!(!done, "{what}, {look}: it is not frozen"),
                Err(error) => {
                    assert_eq!(error.code(), "CONFLICT", "{what}, {look}: {error}");
                    assert!(error.to_string().contains("the end"), "{error}");
                    let head = String::from_utf8(left.content(Path::new("HEAD")).unwrap()).unwrap();
                    assert!(head.contains("\"frozen\":true"), "{what}, {look}: {head}");
                }
            }
            assert!(log.query(&ProofQuery::entity("a")).unwrap().total >= 4, "{what}, {look}");
            log.close().unwrap();
        }
    };
    strike(&start, &[Fault::Once, Fault::Forever, Fault::Torn], act, look);
}

#[test]
fn an_entry_after_a_freeze_or_a_missing_freeze_is_tampering() {
    let disk = MemoryFiles::new();
    let (log, _) = open(disk.clone(), Durability::Sync).unwrap();
    decide(&log, 0, decision()).unwrap();
    log.close().unwrap();
    let before = disk.fork();
    let (log, _) = open(disk.clone(), Durability::Sync).unwrap();
    log.freeze(Timestamp::from_millis(1), "enough".to_owned()).unwrap();
    assert_eq!(log.freeze(Timestamp::from_millis(1), "again".to_owned()).unwrap_err().code(), "CONFLICT");
    log.close().unwrap();

    let head = |text: &str, disk: &MemoryFiles| {
        let line = format!("{text}\ncrc32:{:08x}\n", crc32fast::hash(text.as_bytes()));
        disk.change(Path::new("HEAD"), |bytes| *bytes = line.into_bytes());
    };
    let text = |disk: &MemoryFiles| {
        String::from_utf8(disk.content(Path::new("HEAD"))).unwrap().lines().next().unwrap().to_owned()
    };
    let claimed = text(&before).replace('}', ",\"frozen\":true}");
    head(&claimed, &before);
    assert!(open(before, Durability::Sync).unwrap().0.state().breakage.is_some());

    // The frozen journal with an entry after its end, correctly linked.
    let path = Path::new("journal/0000000000.rkj");
    let bytes = disk.content(path);
    let file = disk.open(path, OpenMode::Write).unwrap();
    let (mut at, mut last) = (128, 0);
    while at < bytes.len() {
        last = at;
        at += crate::store::Frame::decode(&bytes[at..]).unwrap().size();
    }
    let link = crate::store::Frame::decode(&bytes[last..]).unwrap().link;
    let sequence = crate::store::Frame::decode(&bytes[last..]).unwrap().sequence.get() + 1;
    let body =
        b"{\"state\":{\"key\":\"agent/a\",\"value\":1},\"cause\":\"x\",\"timestamp\":\"2027-01-01T00:00:00.000Z\"}";
    let mut frame = Vec::new();
    let draft = crate::store::FrameDraft { kind: crate::store::Kind::State, body, evidence: &[] };
    draft.encode(Sequence::new(sequence), 0, &link, &crate::store::digest(body), &mut frame).unwrap();
    file.write_at(&frame, bytes.len() as u64).unwrap();
    let breakage = open(disk, Durability::Sync).unwrap().0.state().breakage.unwrap();
    assert_eq!(breakage.kind, rulekeep_types::BrokenKind::Tampering);
}
