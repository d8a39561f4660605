//! Repairs interrupted at any point, by a failed call, a kill or a power failure.

use super::*;
use crate::maintenance::{FoundStates, Outside, RepairStates, repair_files};

const SECRETS: &[u8] = b"{}";
const NEW: StoreId = StoreId([8; 16]);

#[allow(clippy::unnecessary_wraps)] // what is asked for can fail
fn all(found: &FoundStates) -> Result<RepairStates, Error> {
    let state = |(key, value): (&String, &Vec<u8>)| {
        let value = String::from_utf8(value.clone()).unwrap();
        (StateDraft::new(key.clone(), value), "kept".to_owned())
    };
    Ok(RepairStates { states: found.good.iter().map(state).collect(), with_secrets: true, ..RepairStates::default() })
}

fn run(files: impl Files + 'static) -> Result<rulekeep_types::RepairReport, Error> {
    repair_files(&(Arc::new(files) as Arc<dyn Files>), &Outside::default(), Timestamp::from_millis(500), NEW, &all)
}

/// A log of several segments, sealed and not, with a flipped bit in one of them; and its files.
fn broken() -> (CrashFiles, Vec<(std::path::PathBuf, Vec<u8>)>) {
    let disk = CrashFiles::new();
    let (log, _) = open_small(disk.clone(), Durability::Sync).unwrap();
    let state = StateDraft::new("agent/a".to_owned(), "{\"kept\":1}".to_owned());
    log.settle(log.queue().set_state(Timestamp::from_millis(0), state, "test".to_owned()).unwrap()).unwrap();
    for at in 0..8 {
        decide(&log, at, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
    }
    log.close().unwrap();
    crate::store::write_secrets(&disk, SECRETS).unwrap();
    let last = disk.list(Path::new("journal")).unwrap().into_iter().rfind(|name| name.contains(".rkj")).unwrap();
    let path = Path::new("journal").join(last);
    let file = disk.open(&path, crate::store::OpenMode::Write).unwrap();
    let mut byte = [0];
    file.read_at(&mut byte, 240).unwrap();
    file.write_at(&[byte[0] ^ 1], 240).unwrap();
    file.sync_data().unwrap();
    let mut files = Vec::new();
    for name in disk.list(Path::new("journal")).unwrap() {
        files.push(Path::new("journal").join(name));
    }
    files.extend(["HEAD".into(), "SECRETS".into()]);
    let content = |path: std::path::PathBuf| (path.clone(), disk.content(&path).unwrap());
    (disk.clone(), files.into_iter().map(content).collect())
}

/// Checks that another call completes the repair, and that nothing of the broken log is lost.
fn assert_comes_to_an_end(left: &CrashFiles, before: &[(std::path::PathBuf, Vec<u8>)], what: &str) {
    let mut is_certain = true;
    match open_small(left.kill(), Durability::Sync) {
        Ok((log, _)) if !log.verify().unwrap().valid => {
            for (path, bytes) in before {
                assert_eq!(left.content(path).as_ref(), Some(bytes), "{what}: {}", path.display());
            }
            run(left.clone()).unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        // The repair was complete. The removal of its mark may not be durable, because the last sync failed.
        Ok(_) => is_certain = false,
        Err(error) => {
            assert!(error.to_string().contains("repair"), "{what}: {error}");
            run(left.clone()).unwrap_or_else(|error| panic!("{what}: {error}"));
        }
    }
    let kept = left.list(Path::new("")).unwrap().into_iter().rfind(|name| name.starts_with("damaged-")).unwrap();
    for (path, bytes) in before {
        assert_eq!(left.content(&Path::new(&kept).join(path)).as_ref(), Some(bytes), "{what}: {}", path.display());
    }
    // A completed repair lasts.
    for left in [left.kill(), left.crash(&mut Dice::new(3))] {
        if !is_certain && left.content(Path::new("REPAIR")).is_some() {
            run(left.clone()).unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        assert_eq!(left.content(Path::new("SECRETS")).as_deref(), Some(SECRETS), "{what}: they go on as well");
        let (log, startup) = open_small(left, Durability::Sync).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(log.verify().unwrap().valid, "{what}");
        assert_eq!(startup.states, [("agent/a".to_owned(), b"{\"kept\":1}".to_vec())], "{what}");
        decide(&log, 600, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
    }
}

#[test]
fn a_repair_that_is_cut_short_anywhere_is_finished_by_the_next() {
    let (disk, before) = broken();
    for fault in [Fault::Once, Fault::Forever, Fault::Torn] {
        for call in 0.. {
            let what = format!("{fault:?} at call {call}");
            let struck_disk = disk.kill();
            let faulty = Arc::new(FaultyFiles::new(struck_disk.clone(), fault, Counted::All, call));
            let done = run(Arc::clone(&faulty)).is_ok();
            assert!(done != faulty.struck() || fault == Fault::Once, "{what}");
            let lefts =
                [struck_disk.kill(), struck_disk.crash(&mut Dice::new(1)), struck_disk.crash(&mut Dice::new(2))];
            for (left, how) in lefts.iter().zip(["killed", "power cut", "power cut again"]) {
                assert_comes_to_an_end(left, &before, &format!("{what}, {how}"));
            }
            if !faulty.struck() {
                break;
            }
            assert!(call < 500, "{what}: there are more calls than were tried");
        }
    }
}

#[test]
fn evidence_lost_without_an_erasure_is_repaired_as_at_opening() {
    let disk = MemoryFiles::new();
    let (log, _) = open_small(disk.clone(), Durability::Sync).unwrap();
    let ids: Vec<ProofId> =
        (0..8).map(|at| decide(&log, at, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap()).collect();
    let erased = EvidenceSelection::Records(vec![ids[1]]);
    log.erase(Timestamp::from_millis(20), &erased, "because", &|_| None).unwrap();
    log.close().unwrap();
    assert_eq!(run(disk.fork()).unwrap_err().code(), "CONFLICT", "what was erased is in order");
    let (log, _) = open_small(disk.clone(), Durability::Sync).unwrap();
    log.parts().journal.reader.erase(&disk, &|_| true, &|frame| frame.sequence == ids[4].sequence()).unwrap();
    log.close().unwrap();
    let broken = open_small(disk.fork(), Durability::Sync).unwrap().0.state().breakage.unwrap();
    let report = run(disk.fork()).unwrap();
    assert_eq!((report.broken.sequence, report.broken.kind), (broken.sequence, broken.kind));
    assert_eq!((report.broken.sequence, report.records), (ids[4].sequence(), 4));
}
