//! A call to the file system fails, then the process is killed or the power fails.

use super::*;

/// A log that was written to, and the acknowledgments its callers got.
struct Written {
    disk: CrashFiles,
    acknowledged: Vec<Acknowledged>,
}

#[derive(Clone, Copy)]
struct Acknowledged {
    id: ProofId,
    reported: bool,
}

impl Written {
    fn nothing() -> Self {
        Self { disk: CrashFiles::new(), acknowledged: Vec::new() }
    }

    /// Sealed segments, and one that was being written.
    fn some(closed: bool) -> Self {
        let mut written = Self::nothing();
        let (log, _) = open_small(written.disk.clone(), Durability::Sync).unwrap();
        written.work(&log, 5);
        if closed {
            log.close().unwrap();
        }
        Self { disk: written.disk.kill(), ..written }
    }

    /// The power failed in the middle of a write, and the tail is torn.
    fn torn() -> Self {
        let written = Self::some(false);
        for seed in 0.. {
            let disk = written.disk.kill();
            let (log, _) = open_small(disk.clone(), Durability::Buffered).unwrap();
            // Some of these are between a write and its sync.
            disk.power_off_after(seed % 24);
            for at in 100..103 {
                decide(&log, at, draft("b", Decision::Allow, RiskLevel::Low, 700)).unwrap();
            }
            let _ = log.flush();
            let left = disk.crash(&mut Dice::new(seed));
            let (_, startup) = open_small(left.kill(), Durability::Sync).unwrap();
            if startup.recovered.is_some() {
                return Self { disk: left, acknowledged: written.acknowledged };
            }
        }
        unreachable!("some crash tears a tail");
    }

    /// Decides and reports, recording the acknowledgments.
    fn work(&mut self, log: &ProofLog, rounds: i64) {
        for round in 0..rounds {
            let decision = draft("a", Decision::Allow, RiskLevel::Low, 700);
            let Ok(id) = decide(log, round, decision) else { continue };
            let reported = report(log, id, Outcome::Success).is_ok();
            self.acknowledged.push(Acknowledged { id, reported });
        }
    }

    /// Opens the log through `files`, queries it, writes to it and closes it, as far as that is possible.
    fn work_through(&mut self, files: impl Files + 'static, what: &str) {
        let Ok((log, _)) = open_small(files, Durability::Sync) else { return };
        match log.query(&ProofQuery::entity("a")) {
            // Unreadable records must give an error, not a shorter result.
            Ok(page) => assert!(page.total >= self.acknowledged.len() as u64, "{what}: {} are shown", page.total),
            Err(error) => assert_eq!(error.code(), "STORAGE_UNAVAILABLE", "{what}: {error}"),
        }
        self.work(&log, 3);
        // The close may fail; the acknowledgments came before.
        let _ = log.close();
    }

    /// Opens the remains after a kill and after power failures.
    fn assert_all_there(&self, what: &str) {
        self.assert_there(&self.disk.kill(), &format!("{what}, killed"));
        for seed in 0..CRASHES {
            self.assert_there(&self.disk.crash(&mut Dice::new(seed)), &format!("{what}, power cut {seed}"));
        }
    }

    fn assert_there(&self, left: &CrashFiles, what: &str) {
        let (log, startup) =
            open_small(left.clone(), Durability::Sync).unwrap_or_else(|error| panic!("{what}: {error}"));
        let verification = log.verify().unwrap();
        assert!(verification.valid, "{what}: {:?}", verification.first_broken);
        for acknowledged in &self.acknowledged {
            let record = log.record(&acknowledged.id).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert!(!acknowledged.reported || record.outcome == Some(Outcome::Success), "{what}");
        }
        if let Some(recovered) = startup.recovered {
            let copy = left.content(Path::new(&recovered.copy)).unwrap_or_else(|| panic!("{what}: no copy"));
            assert_eq!(copy.len(), recovered.bytes, "{what}");
        }
        // The log can still be written to.
        let last = decide(&log, 99, draft("a", Decision::Deny, RiskLevel::High, 700)).unwrap();
        let (log, _) = open_small(left.crash(&mut Dice::new(1)), Durability::Sync).unwrap();
        assert!(log.verify().unwrap().valid && log.record(&last).is_ok(), "{what}, and again");
    }
}

/// Number of power failures after each fault.
const CRASHES: u64 = 1;

fn strike_every_call(start: &Written) {
    for fault in [Fault::Once, Fault::Forever, Fault::Torn, Fault::Full, Fault::NoDescriptors] {
        strike_every_call_with(fault, start);
    }
}

fn strike_every_call_with(fault: Fault, start: &Written) {
    for call in 0..500 {
        let what = format!("{fault:?} at call {call}");
        let mut written = Written { disk: start.disk.kill(), acknowledged: start.acknowledged.clone() };
        let faulty = Arc::new(FaultyFiles::new(written.disk.clone(), fault, Counted::All, call));
        written.work_through(Arc::clone(&faulty), &what);
        written.assert_all_there(&what);
        if !faulty.struck() {
            return;
        }
    }
    panic!("{fault:?}: there are more calls than were tried");
}

#[test]
fn a_fault_while_making_a_log_loses_nothing_acknowledged() {
    strike_every_call(&Written::nothing());
}

#[test]
fn a_fault_in_a_closed_log_loses_nothing_acknowledged() {
    strike_every_call(&Written::some(true));
}

#[test]
fn a_fault_in_a_killed_log_loses_nothing_acknowledged() {
    strike_every_call(&Written::some(false));
}

#[test]
fn a_fault_while_a_tail_is_set_aside_loses_nothing_acknowledged() {
    strike_every_call(&Written::torn());
}

/// After a failed sync the system considers the pages clean: they are read back, but no later sync writes them.
#[test]
fn no_later_entry_stands_on_what_a_failed_sync_lost() {
    for start in [Written::nothing(), Written::some(true), Written::some(false), Written::torn()] {
        for sync in 0..100 {
            let what = format!("lost sync {sync}");
            let mut written = Written { disk: start.disk.kill(), acknowledged: start.acknowledged.clone() };
            written.disk.lose_a_sync_after(sync);
            written.work_through(written.disk.clone(), &what);
            let struck = written.disk.has_lost_a_sync();
            written.assert_all_there(&what);
            if !struck {
                break;
            }
            assert!(sync < 99, "there are more syncs than were tried");
        }
    }
}

#[test]
fn after_a_failed_write_nothing_more_is_acknowledged() {
    let faulty = FaultyFiles::new(MemoryFiles::new(), Fault::Once, Counted::Changes, 30);
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
    // Earlier entries are still answered.
    assert!(log.query(&ProofQuery::entity("a")).unwrap().total > 0);
}

/// Open connections use up the descriptors that the next segment needs, and then release them.
#[test]
fn without_descriptors_all_is_recorded_and_later_segmented() {
    let segments = |disk: &CrashFiles| disk.list(Path::new("journal")).unwrap().len();
    for call in 0..60 {
        let what = format!("no descriptors from call {call} on");
        let mut written = Written::nothing();
        let faulty = Arc::new(FaultyFiles::new(written.disk.clone(), Fault::NoDescriptors, Counted::Changes, i64::MAX));
        let never = JournalOptions { segment_bytes: 2048, sealing: Sealing::Never, nonce: [0; 16] };
        let options = LogOptions { durability: Durability::Sync, journal: never, ..LogOptions::default() };
        let files = Arc::clone(&faulty) as Arc<dyn Files>;
        let (log, _) = ProofLog::open_files(files, None, None, &options, Timestamp::from_millis(0), STORE).unwrap();
        faulty.strike_after(call);
        written.work(&log, 20);
        let (told, short) = (written.acknowledged.len(), segments(&written.disk));
        assert!(written.acknowledged.iter().all(|acknowledged| acknowledged.reported), "{what}");
        assert_eq!(told, 20, "{what}: the log ended");
        written.assert_all_there(&what);
        faulty.relieve();
        written.work(&log, 20);
        assert_eq!(written.acknowledged.len(), told + 20, "{what}, and there are some again");
        assert!(segments(&written.disk) >= short + 4, "{what}: one segment went on for ever");
        written.assert_all_there(&format!("{what}, and there are some again"));
        log.close().unwrap();
    }
}

/// A segment is read whole to be verified.
#[test]
fn without_descriptors_a_segment_does_not_grow_for_ever() {
    let disk = MemoryFiles::new();
    let faulty = Arc::new(FaultyFiles::new(disk.clone(), Fault::NoDescriptors, Counted::Changes, i64::MAX));
    let (log, _) = open_small(Arc::clone(&faulty), Durability::Sync).unwrap();
    faulty.strike_after(0);
    let ended = (0..1000).any(|at| decide(&log, at, draft("a", Decision::Allow, RiskLevel::Low, 700)).is_err());
    assert!(ended);
    assert!(disk.content(Path::new("journal/0000000000.rkj")).len() < 256 << 10);
}

/// A file of the next segment that was created but not begun.
#[test]
fn a_next_segment_that_was_never_begun_does_not_outlive_a_close() {
    let disk = CrashFiles::new();
    let faulty = Arc::new(FaultyFiles::new(disk.clone(), Fault::NoDescriptors, Counted::Changes, i64::MAX));
    let (log, _) = open_small(Arc::clone(&faulty), Durability::Sync).unwrap();
    let made = Path::new("journal/0000000001.rkj");
    let mut acknowledged = 0;
    for call in 0.. {
        decide(&log, call, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
        acknowledged += 1;
        if disk.content(made).is_some() {
            break;
        }
        faulty.strike_after(call);
    }
    assert_eq!(disk.content(made), Some(Vec::new()));
    faulty.relieve();
    log.close().unwrap();
    assert_eq!(disk.content(made), None);
    let (log, startup) = open_small(disk, Durability::Sync).unwrap();
    assert!(startup.recovered.is_none());
    assert_eq!(log.verify().unwrap().records, acknowledged);
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

/// The tail is in its place or in a copy, at whatever point setting it aside is interrupted.
#[test]
fn no_torn_tail_is_gone_before_its_copy_lasts() {
    let start = Written::torn();
    let (tail, segment) = {
        let disk = start.disk.kill();
        let (_, startup) = open_small(disk.clone(), Durability::Sync).unwrap();
        let recovered = startup.recovered.unwrap();
        (disk.content(Path::new(&recovered.copy)).unwrap(), Path::new("journal").join(recovered.segment))
    };
    let holds = |content: Vec<u8>| content.windows(tail.len()).any(|window| window == tail);
    for call in 0..500 {
        let disk = start.disk.kill();
        let faulty = Arc::new(FaultyFiles::new(disk.clone(), Fault::Forever, Counted::All, call));
        let _ = open_small(Arc::clone(&faulty), Durability::Sync);
        for seed in 0..10 {
            let left = disk.crash(&mut Dice::new(seed));
            let copies = left.list(Path::new("recovered")).unwrap_or_default();
            let mut copies = copies.iter().filter_map(|name| left.content(&Path::new("recovered").join(name)));
            let is_there = left.content(&segment).is_some_and(holds) || copies.any(holds);
            assert!(is_there, "call {call}, power cut {seed}");
        }
        if !faulty.struck() {
            return;
        }
    }
    panic!("there are more calls than were tried");
}

#[test]
fn a_feed_tells_what_is_on_disk_and_ends_after_a_failed_write() {
    use std::time::Instant;

    use crate::Fed;

    let disk = CrashFiles::new();
    let (log, _) = open_small(disk.clone(), Durability::Sync).unwrap();
    let mut feed = log.feed(None);
    let written = decide(&log, 0, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
    let next = |feed: &mut crate::Feed| feed.next(None, |frame| frame.sequence).unwrap();
    assert!(matches!(next(&mut feed), Fed::Entry(sequence) if sequence == written.sequence()));
    assert!(matches!(feed.next(Some(Instant::now()), |_| ()).unwrap(), Fed::Nothing));
    disk.power_off_after(0);
    decide(&log, 1, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap_err();
    assert!(matches!(next(&mut feed), Fed::Ended), "the log is still open, and writes nothing more");
}
