//! Erasing evidence: nothing of it is left and everything else is, whatever call fails and whenever the power fails.

use super::*;
use crate::store::{GONE, OpenMode};

/// A log in small segments, some of them sealed, in which agent "a" has every second record.
fn written(disk: impl Files + 'static) -> (ProofLog, Vec<ProofId>) {
    let (log, _) = open_small(disk, Durability::Sync).unwrap();
    let ids = (0..10).map(|at| decide(&log, at, marked(agent_of(at), at)).unwrap()).collect();
    (log, ids)
}

fn agent_of(place: i64) -> &'static str {
    if place % 2 == 0 { "a" } else { "b" }
}

/// The evidence of a decision, with a text to search for.
fn marked(entity: &str, place: i64) -> DecisionDraft {
    let evidence = encode_evidence(9, &marker(entity, place), &"detail", &[], None).unwrap();
    DecisionDraft { evidence, ..draft(entity, Decision::Allow, RiskLevel::Low, 700) }
}

/// A text to search for. No two have eight bytes in common, so that none is compressed to a reference to another.
fn marker(entity: &str, place: i64) -> String {
    let mut dice = Dice::new(place.unsigned_abs());
    let text: String = (0..64).map(|_| char::from(b"abcdefghijklmnopqrstuvwxyz"[dice.below(26)])).collect();
    format!("{entity}-{text}")
}

fn erase(log: &ProofLog, selection: &EvidenceSelection) -> Result<u64, Error> {
    log.erase(Timestamp::from_millis(1000), selection, "because", &|_| None)
}

fn agent(name: &str) -> EvidenceSelection {
    EvidenceSelection::Agent(name.parse().unwrap())
}

/// Returns whether any file holds a marker, complete or with its first or last part cut off.
fn has_marker(disk: &dyn Files, entity: &str, place: i64) -> bool {
    let marker = marker(entity, place);
    let parts: Vec<&[u8]> = marker.as_bytes().chunks_exact(12).collect();
    ["", "journal", "recovered"].into_iter().any(|folder| {
        disk.list(Path::new(folder)).unwrap().iter().any(|name| {
            let Ok(file) = disk.open(&Path::new(folder).join(name), OpenMode::Read) else { return false };
            let content = file.read_all().unwrap();
            parts.iter().any(|part| content.windows(part.len()).any(|window| window == *part))
        })
    })
}

fn assert_erased(log: &ProofLog, disk: &dyn Files, ids: &[ProofId], is_erased: impl Fn(i64) -> bool, what: &str) {
    let verification = log.verify().unwrap();
    assert!(verification.valid, "{what}: {:?}", verification.first_broken);
    for (place, id) in (0..).zip(ids) {
        let entity = agent_of(place);
        assert!(log.record(id).is_ok(), "{what}");
        if is_erased(place) {
            let answer = log.evidence(id).unwrap_err();
            assert!(matches!(answer, Error::EvidenceErased { .. }), "{what}: {place} answers {answer}");
            assert!(!has_marker(disk, entity, place), "{what}: bytes of {place} are left");
        } else {
            assert_eq!(log.evidence(id).unwrap().intent, marker(entity, place), "{what}");
        }
    }
}

#[test]
fn earnings_of_an_outcome_are_forgotten_with_its_evidence() {
    let (log, _) = open_small(MemoryFiles::new(), Durability::Sync).unwrap();
    let earning = || DecisionDraft { earns: RiskLevel::High, ..marked("a", 0) };
    let id = decide(&log, 0, earning()).unwrap();
    log.flush().unwrap();
    assert_eq!(log.facts(&id).unwrap().earns, RiskLevel::High);
    assert_eq!(erase(&log, &agent("a")).unwrap(), 1);
    // As after a restart, from the journal alone: an unknown value earns the least.
    assert_eq!(log.facts(&id).unwrap().earns, RiskLevel::Low);
}

#[test]
fn what_is_erased_is_gone_and_everything_else_is_there() {
    for selection in 0..4 {
        let disk = MemoryFiles::new();
        let (log, ids) = written(disk.clone());
        assert!(has_marker(&disk, "a", 0) && has_marker(&disk, "b", 9));
        let (selection, is_erased): (_, fn(i64) -> bool) = match selection {
            0 => (agent("a"), |place| place % 2 == 0),
            1 => (EvidenceSelection::Records(vec![ids[1], ids[9]]), |place| place == 1 || place == 9),
            2 => (EvidenceSelection::Before(Timestamp::from_millis(7)), |place| place < 7),
            _ => (EvidenceSelection::AgentBefore("b".parse().unwrap(), Timestamp::from_millis(4)), |place| {
                place == 1 || place == 3
            }),
        };
        let before = (log.query(&ProofQuery::all()).unwrap(), log.shared_head());
        let count = (0..10).filter(|place| is_erased(*place)).count() as u64;
        let what = format!("{selection:?}");
        assert_eq!(erase(&log, &selection).unwrap(), count, "{what}");
        assert_erased(&log, &disk, &ids, is_erased, &what);
        assert_eq!(erase(&log, &selection).unwrap(), 0, "{what} once more");
        let after = log.query(&ProofQuery::all()).unwrap();
        assert_eq!((after.items, log.shared_head()), (before.0.items, before.1), "{what}");
        // Later decisions are not covered, and cause the erased evidence to be sealed.
        let later: Vec<ProofId> = (10..20).map(|at| decide(&log, at, marked(agent_of(at), at)).unwrap()).collect();
        let all: Vec<ProofId> = ids.iter().chain(&later).copied().collect();
        assert_erased(&log, &disk, &all, |place| place < 10 && is_erased(place), &what);
        log.close().unwrap();
        let (log, _) = open_small(disk.clone(), Durability::Sync).unwrap();
        assert_erased(&log, &disk, &all, |place| place < 10 && is_erased(place), &format!("{what}, opened again"));
    }
}

/// Puts all evidence back into the files of a running log, as it was in a copy of the disk. Returns the places of "a"
/// that are back.
fn put_back(disk: &MemoryFiles, copy: &MemoryFiles) -> Vec<i64> {
    for name in disk.list(Path::new("journal")).unwrap() {
        let path = Path::new("journal").join(name);
        if let Some(content) = copy.content_if_there(&path) {
            disk.change(&path, |bytes| bytes[..content.len()].copy_from_slice(&content));
        }
    }
    (0..10).step_by(2).filter(|place| has_marker(disk, "a", *place)).collect()
}

#[test]
fn evidence_left_after_erasure_is_hidden_and_erased_at_verify() {
    let disk = MemoryFiles::new();
    let never = JournalOptions { sealing: Sealing::Never, ..SMALL };
    let options = LogOptions { journal: never, room: HURRIED, ..LogOptions::default() };
    let files: Arc<dyn Files> = Arc::new(disk.clone());
    let (log, _) = ProofLog::open_files(files, None, None, &options, Timestamp::from_millis(0), STORE).unwrap();
    let ids: Vec<ProofId> = (0..10).map(|at| decide(&log, at, marked(agent_of(at), at)).unwrap()).collect();
    let copy = disk.fork();
    let all = EvidenceSelection::Records(ids.iter().step_by(2).copied().collect());
    erase(&log, &all).unwrap();
    // The entry of the erasure stays; a copy that ends before it is written over the front.
    let last = disk.list(Path::new("journal")).unwrap().pop().unwrap();
    copy.remove(&Path::new("journal").join(last)).unwrap();
    let again = put_back(&disk, &copy);
    assert!(again.len() >= 3, "{again:?}");

    assert!(matches!(log.evidence(&ids[0]), Err(Error::EvidenceErased { .. })));
    let mut export = Vec::new();
    log.export(&ExportRange::all(), &mut export, &mut |_, _| {}).unwrap();
    let text = String::from_utf8(export).unwrap();
    assert_eq!(text.matches("\"evidence\":null").count(), 5);
    assert!((0..10).step_by(2).all(|place| !text.contains(&marker("a", place))));

    let found = log.verify().unwrap();
    assert_eq!((found.valid, found.erased_evidence_found), (true, again.len() as u64));
    assert_erased(&log, &disk, &ids, |place| place % 2 == 0, "verified");
    assert_eq!(log.verify().unwrap().erased_evidence_found, 0);
    assert_eq!(log.state().erased_evidence, again.len() as u64);
    assert!(log.evidence(&decide(&log, 20, marked("b", 11)).unwrap()).is_ok());
}

#[test]
fn evidence_that_nobody_erased_is_missed() {
    let disk = MemoryFiles::new();
    let (log, ids) = written(disk.clone());
    erase(&log, &agent("a")).unwrap();
    log.close().unwrap();
    let (log, _) = open_small(disk.clone(), Durability::Sync).unwrap();
    let path = Path::new("journal").join(disk.list(Path::new("journal")).unwrap().pop().unwrap());
    let text = marker("b", 9);
    let overwrite = |bytes: &mut Vec<u8>| {
        let at = bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap();
        bytes[at..at + text.len()].fill(GONE);
    };
    disk.change(&path, overwrite);
    let found = log.verify().unwrap().first_broken.unwrap();
    assert_eq!(found.proof_id, Some(ids[9]));
    assert_eq!(log.evidence(&ids[9]).unwrap_err().code(), "CHAIN_BROKEN");
    drop(log);
    let (log, _) = open_small(disk, Durability::Sync).unwrap();
    assert_eq!(log.verify().unwrap().first_broken.unwrap().proof_id, Some(ids[9]));
    assert_eq!(erase(&log, &agent("b")).unwrap_err().code(), "CHAIN_BROKEN");
}

#[test]
fn without_its_entry_an_erasure_covers_nothing() {
    let disk = MemoryFiles::new();
    let (log, _) = written(disk.clone());
    log.close().unwrap();
    let before = disk.fork();
    let (log, _) = open_small(disk.clone(), Durability::Sync).unwrap();
    erase(&log, &agent("a")).unwrap();
    log.close().unwrap();
    // The evidence from after the erasure, in the journal from before it.
    let names = before.list(Path::new("journal")).unwrap();
    for name in names.iter().filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "rke")) {
        let path = Path::new("journal").join(name);
        before.change(&path, |content| *content = disk.content(&path));
    }
    let (log, _) = open_small(before, Durability::Sync).unwrap();
    assert!(!log.verify().unwrap().valid);
}

#[test]
fn copies_of_torn_tails_are_gone_through() {
    let disk = MemoryFiles::new();
    let (log, ids) = written(disk.clone());
    let journal = disk.list(Path::new("journal")).unwrap();
    let plain = journal.iter().find(|name| Path::new(name).extension().is_some_and(|extension| extension == "rkj"));
    let content = disk.content(&Path::new("journal").join(plain.unwrap()));
    let (first, last) = (i64::try_from(ids.len()).unwrap() - 2, i64::try_from(ids.len()).unwrap() - 1);
    let copy = Path::new("recovered/tail-0000000009-128-0.bin");
    disk.open(copy, OpenMode::Create).unwrap().write_at(&content[128..], 0).unwrap();
    let torn = Path::new("recovered/tail-0000000009-999-0.bin");
    disk.open(torn, OpenMode::Create).unwrap().write_at(format!("x{}", marker("a", 77)).as_bytes(), 0).unwrap();
    assert!(has_marker(&disk, "a", 77) && first % 2 == 0);
    erase(&log, &agent("a")).unwrap();
    assert!(!has_marker(&disk, "a", first) && !has_marker(&disk, "a", 77));
    let kept = disk.content(copy);
    let text = marker("b", last);
    assert!(kept.windows(text.len()).any(|window| window == text.as_bytes()));
    assert_eq!(kept.len(), content.len() - 128);
}

#[test]
fn copies_are_gone_through_for_whom_no_record_tells_of() {
    let disk = MemoryFiles::new();
    let (log, _) = written(disk.clone());
    let torn = Path::new("recovered/tail-0000000009-999-0.bin");
    disk.open(torn, OpenMode::Create).unwrap().write_at(format!("x{}", marker("c", 77)).as_bytes(), 0).unwrap();
    assert_eq!(erase(&log, &agent("c")).unwrap(), 0);
    assert!(!has_marker(&disk, "c", 77));
    assert!(log.verify().unwrap().valid);
}

#[test]
fn whatever_call_fails_evidence_is_there_or_gone_for_good() {
    for fault in [Fault::Once, Fault::Forever, Fault::Torn] {
        let (mut erased, mut kept) = (0, 0);
        let start = CrashFiles::new();
        let (log, ids) = written(start.clone());
        log.close().unwrap();
        for call in 0.. {
            let disk = start.kill();
            let faulty = Arc::new(FaultyFiles::new(disk.clone(), fault, Counted::All, call));
            let mut answer = None;
            if let Ok((log, _)) = open_small(Arc::clone(&faulty), Durability::Sync) {
                answer = Some(erase(&log, &agent("a")));
                let _ = log.close();
            }
            for (seed, left) in [(0, disk.crash(&mut Dice::new(call.unsigned_abs()))), (1, disk.kill())] {
                let what = format!("{fault:?} at call {call}, image {seed}");
                let (log, _) = open_small(left.clone(), Durability::Sync).unwrap();
                let is_erased = log.evidence(&ids[0]).is_err();
                assert_erased(&log, &left, &ids, |place| is_erased && place % 2 == 0, &what);
                match &answer {
                    Some(Ok(_)) => assert!(is_erased, "{what}: it was acknowledged"),
                    _ if is_erased => erased += 1,
                    _ => kept += 1,
                }
                if is_erased {
                    // Erased evidence stays erased when the power fails now.
                    let after = left.crash(&mut Dice::new(seed));
                    assert!((0..10).step_by(2).all(|place| !has_marker(&after, "a", place)), "{what}, and again");
                }
            }
            if !faulty.struck() {
                break;
            }
        }
        assert!(erased > 10 && kept > 10, "{fault:?}: {erased} and {kept}");
    }
}

#[test]
fn a_failed_sync_of_an_erasure_acknowledges_nothing() {
    for sync in 0.. {
        let disk = CrashFiles::new();
        let (log, mut ids) = written(disk.clone());
        disk.lose_a_sync_after(sync);
        let done = erase(&log, &agent("a"));
        if let Ok(id) = decide(&log, 10, marked("b", 11)) {
            // This record takes the place of agent "b"'s next one.
            ids.push(ids[9]);
            ids.push(id);
        }
        let struck = disk.has_lost_a_sync();
        for seed in 0..4 {
            let left = disk.crash(&mut Dice::new(seed));
            let what = format!("lost sync {sync}, power cut {seed}");
            let (log, _) = open_small(left.clone(), Durability::Sync).unwrap();
            let is_erased = log.evidence(&ids[0]).is_err();
            assert!(is_erased || done.is_err(), "{what}");
            assert_erased(&log, &left, &ids[..10], |place| is_erased && place % 2 == 0, &what);
            assert!(ids.get(11).is_none_or(|id| log.record(id).is_ok()), "{what}: an acknowledged record is gone");
        }
        if !struck {
            assert!(sync > 3);
            break;
        }
    }
}

/// A process that is killed, or whose sync fails, leaves bytes that read as erased but are still on disk.
#[test]
fn an_erasure_that_was_never_synced_is_done_once_more() {
    let never = LogOptions {
        journal: JournalOptions { sealing: Sealing::Never, ..SMALL },
        room: HURRIED,
        ..LogOptions::default()
    };
    let open_plain = |disk: &CrashFiles| {
        ProofLog::open_files(Arc::new(disk.clone()), None, None, &never, Timestamp::from_millis(0), STORE).unwrap().0
    };
    for sync in 0.. {
        let disk = CrashFiles::new();
        let log = open_plain(&disk);
        let ids: Vec<ProofId> = (0..10).map(|at| decide(&log, at, marked(agent_of(at), at)).unwrap()).collect();
        let copy = Path::new("recovered/tail-0000000009-128-0.bin");
        disk.create_dir(Path::new("recovered")).unwrap();
        let file = disk.open(copy, OpenMode::Create).unwrap();
        file.write_at(marker("a", 77).as_bytes(), 0).unwrap();
        file.sync_data().unwrap();
        disk.sync_dir(Path::new("recovered")).unwrap();
        disk.sync_dir(Path::new("")).unwrap();
        disk.lose_a_sync_after(sync);
        let done = erase(&log, &agent("a"));
        let struck = disk.has_lost_a_sync();
        let killed = disk.kill();
        let log = open_plain(&killed);
        let is_erased = log.evidence(&ids[0]).is_err();
        assert!(is_erased || done.is_err());
        for seed in 0..4 {
            let left = killed.crash(&mut Dice::new(seed));
            let any = (0..10).step_by(2).chain([77]).find(|place| has_marker(&left, "a", *place));
            assert!(!is_erased || any.is_none(), "lost sync {sync}, power cut {seed}: {any:?} is left");
        }
        if !struck {
            assert!(sync > 4, "only {sync} syncs");
            break;
        }
    }
}

#[test]
fn a_reader_during_an_erasure_sees_evidence_or_that_it_is_gone() {
    let disk = MemoryFiles::new();
    let (log, _) = open_small(disk, Durability::Sync).unwrap();
    let ids: Vec<ProofId> = (0..60).map(|at| decide(&log, at, marked(agent_of(at), at)).unwrap()).collect();
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut rounds = 0;
                while !done.load(std::sync::atomic::Ordering::Relaxed) || rounds == 0 {
                    for (place, id) in (0..).zip(&ids) {
                        match log.evidence(id) {
                            Ok(evidence) => assert_eq!(evidence.intent, marker(agent_of(place), place)),
                            Err(error) => assert!(matches!(error, Error::EvidenceErased { .. }), "{error}"),
                        }
                    }
                    let verification = log.verify().unwrap();
                    assert!(verification.valid, "{:?}", verification.first_broken);
                    rounds += 1;
                }
            });
        }
        for id in &ids[..30] {
            assert_eq!(erase(&log, &EvidenceSelection::Records(vec![*id])).unwrap(), 1);
            decide(&log, 100, draft("c", Decision::Allow, RiskLevel::Low, 700)).unwrap();
        }
        erase(&log, &EvidenceSelection::Before(Timestamp::from_millis(1000))).unwrap();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn what_counts_in_a_limit_is_not_erased_until_it_counts_no_more() {
    let disk = MemoryFiles::new();
    let (log, _) = open_small(disk.clone(), Durability::Sync).unwrap();
    let used = [(Box::from("r/agent/a"), 1_000_000)];
    let evidence = encode_evidence(9, &"intent", &"detail", &used, None).unwrap();
    let id = decide(&log, 5, DecisionDraft { evidence, ..draft("a", Decision::Allow, RiskLevel::Low, 700) }).unwrap();
    decide(&log, 6, marked("a", 0)).unwrap();
    let month = 31 * 24 * 60 * 60 * 1000;
    let at = |at| log.erase(Timestamp::from_millis(at), &agent("a"), "because", &|_| None);
    let refused = at(month).unwrap_err();
    assert_eq!(refused.code(), "CONFLICT");
    assert!(refused.to_string().contains("1 of the selected records") && refused.to_string().contains("1970-02-01"));
    assert!(log.evidence(&id).is_ok() && has_marker(&disk, "a", 0));
    assert_eq!(at(month + 5).unwrap(), 2);
}
