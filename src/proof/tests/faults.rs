//! A call to the file system fails, or a page is lost.

use super::*;

#[test]
fn a_fault_at_any_call_loses_nothing_that_was_acknowledged() {
    for fault in [Fault::Once, Fault::Forever, Fault::Torn] {
        let mut struck_all = false;
        for call in 0..200 {
            let disk = MemoryFiles::new();
            let faulty = Arc::new(FaultyFiles::new(disk.clone(), fault, call));
            let mut acknowledged = Vec::new();
            if let Ok((log, _)) = open(Arc::clone(&faulty), Durability::Sync) {
                for round in 0..6 {
                    let decision = draft("a", Decision::Allow, RiskLevel::Low, 700);
                    let Ok(id) = decide(&log, round, decision) else { continue };
                    let reported = report(&log, id, Outcome::Success).is_ok();
                    acknowledged.push((id, reported));
                }
                let closed = log.close();
                assert!(closed.is_ok() || faulty.struck(), "{closed:?}");
            }
            let (log, _) =
                open(disk, Durability::Sync).unwrap_or_else(|error| panic!("{fault:?} at call {call}: {error}"));
            assert!(log.verify().unwrap().valid, "{fault:?} at call {call}");
            for (id, reported) in acknowledged {
                let record = log.record(&id).unwrap_or_else(|error| panic!("{fault:?} at call {call}: {error}"));
                assert!(!reported || record.outcome == Some(Outcome::Success), "{fault:?} at call {call}");
            }
            // And it goes on.
            decide(&log, 99, draft("a", Decision::Deny, RiskLevel::High, 700)).unwrap();
            if !faulty.struck() {
                struck_all = true;
                break;
            }
        }
        assert!(struck_all, "{fault:?}: the workload makes more calls than were tried");
    }
}

#[test]
fn after_a_failed_write_nothing_more_is_acknowledged() {
    let faulty = FaultyFiles::new(MemoryFiles::new(), Fault::Once, 30);
    let (log, _) = open(faulty, Durability::Sync).unwrap();
    let mut failed = false;
    for round in 0..50 {
        match decide(&log, round, draft("a", Decision::Allow, RiskLevel::Low, 700)) {
            Ok(_) => assert!(!failed, "acknowledged after a failure"),
            Err(error) => {
                assert_eq!(error.code(), "STORAGE_UNAVAILABLE");
                failed = true;
            }
        }
    }
    assert!(failed);
    // What had been written is still answered.
    assert!(log.query(&ProofQuery::entity("a")).unwrap().total > 0);
}

#[test]
fn buffered_records_are_all_there_after_a_close() {
    let disk = MemoryFiles::new();
    let (log, _) = open(disk.clone(), Durability::Buffered).unwrap();
    for round in 0..1000 {
        decide(&log, round, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
    }
    log.close().unwrap();
    assert_eq!(
        decide(&log, 0, draft("a", Decision::Allow, RiskLevel::Low, 1)).unwrap_err().code(),
        "STORAGE_UNAVAILABLE"
    );
    let (log, _) = open(disk, Durability::Buffered).unwrap();
    assert_eq!(log.verify().unwrap().records, 1000);
}
