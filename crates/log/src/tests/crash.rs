//! Power failures while several threads decide, and after a kill.

use std::sync::Mutex;
use std::thread;

use super::*;

#[test]
fn what_several_threads_were_told_is_there_after_a_power_cut() {
    let disk = CrashFiles::new();
    // A queue that is full most of the time.
    let options = LogOptions { room: Room { drafts: 2, ..Room::DEFAULT }, journal: SMALL, ..LogOptions::default() };
    let files = Arc::new(disk.clone());
    let (log, _) = ProofLog::open_files(files, None, None, &options, Timestamp::from_millis(0), STORE).unwrap();
    let told = Mutex::new(Vec::new());
    for seed in 0..12 {
        let before = told.lock().unwrap().len();
        let decide_some = &|entity| {
            for at in 0..8 {
                let id = decide(&log, at, draft(entity, Decision::Allow, RiskLevel::Low, 700)).unwrap();
                told.lock().unwrap().push(id);
            }
        };
        let (acknowledged, left) = thread::scope(|scope| {
            for entity in ["a", "b", "c", "d"] {
                scope.spawn(move || decide_some(entity));
            }
            while told.lock().unwrap().len() < before + 5 {
                thread::yield_now();
            }
            // An acknowledgment during the copy of the image may or may not be in it.
            let acknowledged = told.lock().unwrap().clone();
            (acknowledged, disk.crash(&mut Dice::new(seed)))
        });
        let (after, _) = open_small(left, Durability::Sync).unwrap();
        let verification = after.verify().unwrap();
        assert!(verification.valid, "power cut {seed}: {:?}", verification.first_broken);
        for id in &acknowledged {
            assert!(after.record(id).is_ok(), "power cut {seed}: {id} was acknowledged and is gone");
        }
    }
}

/// A killed process leaves entries that are read back but are not on disk. The next open shows them and appends
/// others.
#[test]
fn a_power_cut_after_a_kill_leaves_a_log_that_verifies() {
    for seed in 0..30 {
        let disk = CrashFiles::new();
        let (log, _) = open(disk.clone(), Durability::Buffered).unwrap();
        let first = decide(&log, 0, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
        log.flush().unwrap();
        // The next write succeeds, and the power fails before its sync.
        disk.power_off_after(1);
        for at in 1..5 {
            decide(&log, at, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
        }
        assert!(log.flush().is_err());
        let killed = disk.kill();
        let (log, _) = open(killed.clone(), Durability::Buffered).unwrap();
        let shown = log.verify().unwrap().records;
        assert_eq!(shown, 5);
        // The same again, after the entries that were found.
        killed.power_off_after(1);
        for at in 5..9 {
            decide(&log, at, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
        }
        assert!(log.flush().is_err());
        let (log, _) = open(killed.crash(&mut Dice::new(seed)), Durability::Sync).unwrap();
        let verification = log.verify().unwrap();
        assert!(verification.valid, "power cut {seed}: {:?}", verification.first_broken);
        assert!(verification.records >= shown, "power cut {seed}: what was shown is gone");
        assert!(log.record(&first).is_ok());
        decide(&log, 99, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
    }
}
