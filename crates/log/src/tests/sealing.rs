//! Full and sealed segments: callers notice no difference, and damage to them is found.

use super::*;

/// Segments of some eight entries, sealed as soon as they are full.
fn small() -> LogOptions {
    let journal = JournalOptions { segment_bytes: 6 << 10, sealing: Sealing::AtOnce, nonce: [0; 16] };
    LogOptions { journal, room: HURRIED, ..LogOptions::default() }
}

fn open_sealing(files: impl Files + 'static) -> Result<(ProofLog, Startup), OpenLogError> {
    ProofLog::open_files(Arc::new(files), None, None, &small(), Timestamp::from_millis(0), STORE)
}

fn open_sealing_in(folder: &Path) -> (ProofLog, Startup) {
    let files = Arc::new(crate::store::RealFiles::open(folder).unwrap());
    ProofLog::open_files(files, None, Some(folder.join("view")), &small(), Timestamp::from_millis(0), STORE).unwrap()
}

fn fill(log: &ProofLog, count: i64) -> Vec<ProofId> {
    (0..count)
        .map(|at| {
            let id = decide(log, at, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
            if at % 3 == 0 {
                report(log, id, Outcome::Success).unwrap();
            }
            id
        })
        .collect()
}

/// The names in the journal's folder with this ending.
fn names(files: &MemoryFiles, ending: &str) -> Vec<String> {
    files.list(Path::new("journal")).unwrap().into_iter().filter(|name| name.ends_with(ending)).collect()
}

fn assert_holds(log: &ProofLog, ids: &[ProofId]) {
    let verification = log.verify().unwrap();
    assert!(verification.valid, "{:?}", verification.first_broken);
    assert_eq!(verification.records, ids.len() as u64);
    for id in ids {
        assert_eq!(log.record(id).unwrap().id, *id);
        assert_eq!(log.evidence(id).unwrap().intent, serde_json::json!("intent"));
    }
}

#[test]
fn what_is_sealed_is_answered_as_before_and_after_a_restart() {
    let disk = MemoryFiles::new();
    let (log, _) = open_sealing(disk.clone()).unwrap();
    let mut feed = log.feed(Some(Sequence::FIRST));
    let ids = fill(&log, 60);
    let (frames, evidence, plain) = (names(&disk, ".rks"), names(&disk, ".rke"), names(&disk, ".rkj"));
    assert!(frames.len() >= 5 && frames.len() == evidence.len(), "{frames:?} {evidence:?}");
    assert_eq!(plain.len(), 1, "{plain:?}");
    assert_eq!(names(&disk, ".next"), Vec::<String>::new());
    assert_holds(&log, &ids);
    let mut fed = 0_u64;
    while let Fed::Entry(sequence) = feed.next(Some(std::time::Instant::now()), |frame| frame.sequence).unwrap() {
        assert_eq!(sequence.get(), fed);
        fed += 1;
    }
    assert_eq!(fed, 1 + 60 + 20);
    log.close().unwrap();
    let (log, _) = open_sealing(disk).unwrap();
    assert_holds(&log, &ids);
    assert_eq!(log.query(&ProofQuery::entity("a").outcome(Outcome::Success)).unwrap().total, 20);
}

#[test]
fn a_full_unsealed_segment_is_sealed_at_the_next_start() {
    let disk = MemoryFiles::new();
    let never = LogOptions {
        journal: JournalOptions { segment_bytes: 6 << 10, sealing: Sealing::Never, nonce: [0; 16] },
        ..LogOptions::default()
    };
    let (log, _) =
        ProofLog::open_files(Arc::new(disk.clone()), None, None, &never, Timestamp::from_millis(0), STORE).unwrap();
    let ids = fill(&log, 30);
    log.close().unwrap();
    assert_eq!(names(&disk, ".rks").len(), 0);
    assert!(names(&disk, ".rkj").len() >= 3);
    // Half of a sealed segment, as a crash leaves it.
    disk.open(Path::new("journal/0000000000.rks"), crate::store::OpenMode::Create)
        .unwrap()
        .write_at(b"half", 0)
        .unwrap();
    let (log, _) = open_sealing(disk.clone()).unwrap();
    assert_holds(&log, &ids);
    assert_eq!(names(&disk, ".rkj").len(), 1);
    log.close().unwrap();
    assert_holds(&open_sealing(disk).unwrap().0, &ids);
}

#[test]
fn a_log_whose_last_segment_is_sealed_goes_on_in_another() {
    let disk = MemoryFiles::new();
    let (log, _) = open_sealing(disk.clone()).unwrap();
    let mut ids = Vec::new();
    while names(&disk, ".rks").len() < 2 {
        ids.push(decide(&log, 0, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap());
    }
    // The header of the third segment was not on disk yet, nor was the file's name.
    let cut = disk.fork();
    cut.remove(Path::new("journal/0000000002.rkj")).unwrap();
    ids.pop();
    let (log, _) = open_sealing(cut.clone()).unwrap();
    assert_holds(&log, &ids);
    ids.extend(fill(&log, 20));
    assert_holds(&log, &ids);
    log.close().unwrap();
    assert_holds(&open_sealing(cut).unwrap().0, &ids);
}

#[test]
fn every_byte_of_sealed_segments_is_watched() {
    let disk = MemoryFiles::new();
    let (log, _) = open_sealing(disk.clone()).unwrap();
    fill(&log, 14);
    log.close().unwrap();
    for (path, bytes) in watched(&disk) {
        for at in bytes.into_iter().filter(|_| path.extension().is_some_and(|ending| ending != "rkj")) {
            let copy = disk.fork();
            copy.change(&path, |content| content[at] ^= 0x10);
            let (log, _) = open_sealing(copy).unwrap();
            assert!(!log.verify().unwrap().valid, "byte {at} of {}", path.display());
        }
    }
}

/// The journal's files, with the positions of the bytes that carry meaning.
fn watched(disk: &MemoryFiles) -> Vec<(std::path::PathBuf, Vec<usize>)> {
    let names = [names(disk, ".rks"), names(disk, ".rke"), names(disk, ".rkj")].concat();
    let of = |name: String| {
        let path = Path::new("journal").join(name);
        let is_plain = path.extension().is_some_and(|ending| ending == "rkj");
        let content = disk.content(&path);
        let end = if is_plain {
            content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
        } else {
            content.len()
        };
        // The header of a segment ends in zeros that mean nothing.
        let silent = if is_plain { 72..128 } else { 80..136 };
        let is_evidence = path.extension().is_some_and(|ending| ending == "rke");
        let bytes = (0..end).filter(|at| is_evidence || !silent.contains(at)).collect();
        (path, bytes)
    };
    names.into_iter().map(of).collect()
}

#[test]
fn a_running_log_finds_any_changed_byte_when_it_verifies() {
    let disk = MemoryFiles::new();
    let (log, _) = open_sealing(disk.clone()).unwrap();
    let ids = fill(&log, 30);
    log.close().unwrap();
    let mut looked = 0;
    for (path, bytes) in watched(&disk) {
        for at in bytes.into_iter().step_by(61) {
            let copy = disk.fork();
            let (log, _) = open_sealing(copy.clone()).unwrap();
            // Content read earlier must not hide what is stored now.
            assert!(log.record(&ids[0]).is_ok() && log.verify().unwrap().valid);
            copy.change(&path, |content| content[at] ^= 0x10);
            assert!(!log.verify().unwrap().valid, "byte {at} of {}", path.display());
            looked += 1;
        }
    }
    assert!(looked > 100, "only {looked} places");
}

#[test]
fn a_log_in_a_folder_opens_by_its_parts_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let open = || open_sealing_in(folder.path());
    let (log, _) = open();
    let mut ids = fill(&log, 60);
    let state = StateDraft::new("agent/a".to_owned(), "1".to_owned());
    log.queue().set_state(Timestamp::from_millis(0), state, "a cause".to_owned()).unwrap();
    ids.extend(fill(&log, 20));
    log.close().unwrap();
    for _ in 0..3 {
        let (log, startup) = open();
        assert_eq!(startup.states, [("agent/a".to_owned(), b"1".to_vec())]);
        assert_holds(&log, &ids);
        assert_eq!(log.stats("a", Period::default()).unwrap().total_records, ids.len() as u64);
        ids.extend(fill(&log, 5));
        log.close().unwrap();
    }
    // A whole sealed segment from another place of the same log.
    let name = |number: u32, ending: &str| folder.path().join(format!("journal/{number:010}.{ending}"));
    for ending in ["rks", "rke"] {
        std::fs::copy(name(1, ending), name(2, ending)).unwrap();
    }
    let (log, _) = open();
    assert!(!log.verify().unwrap().valid);
}

#[test]
fn what_is_given_back_in_a_later_segment_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let open = || open_sealing_in(folder.path());
    let (log, _) = open();
    let charged = |log: &ProofLog| {
        let mut draft = draft("a", Decision::Allow, RiskLevel::Low, 700);
        draft.evidence = encode_evidence(9, &"intent", &"detail", &[(Box::from("r/a"), 1)], None).unwrap();
        decide(log, 0, draft).unwrap()
    };
    let (kept, given_back) = (charged(&log), charged(&log));
    fill(&log, 40);
    report(&log, given_back, Outcome::Failure).unwrap();
    fill(&log, 40);
    log.close().unwrap();
    let (_, startup) = open();
    assert_eq!(startup.used.iter().map(|used| used.record).collect::<Vec<_>>(), [kept.sequence()]);
}

#[test]
fn a_sealed_segment_that_is_gone_or_cut_is_missed() {
    let disk = MemoryFiles::new();
    let (log, _) = open_sealing(disk.clone()).unwrap();
    fill(&log, 30);
    log.close().unwrap();
    for name in ["0000000001.rks", "0000000001.rke"] {
        let path = Path::new("journal").join(name);
        let gone = disk.fork();
        gone.remove(&path).unwrap();
        assert!(!open_sealing(gone).unwrap().0.verify().unwrap().valid, "{name} gone");
        for left in [0, 7, 100, disk.content(&path).len() - 1] {
            let cut = disk.fork();
            cut.change(&path, |content| content.truncate(left));
            assert!(!open_sealing(cut).unwrap().0.verify().unwrap().valid, "{name} cut to {left}");
        }
    }
}

#[test]
fn a_fault_at_any_call_while_segments_are_sealed_loses_nothing() {
    for fault in [Fault::Once, Fault::Forever, Fault::Torn] {
        for call in 0.. {
            let disk = MemoryFiles::new();
            let faulty = Arc::new(FaultyFiles::new(disk.clone(), fault, Counted::Changes, call));
            let mut acknowledged = Vec::new();
            if let Ok((log, _)) = open_sealing(Arc::clone(&faulty)) {
                for at in 0..16 {
                    if let Ok(id) = decide(&log, at, draft("a", Decision::Allow, RiskLevel::Low, 700)) {
                        acknowledged.push(id);
                    }
                }
                let _ = log.close();
            }
            let (log, _) = open_sealing(disk.clone()).unwrap();
            let verification = log.verify().unwrap();
            assert!(verification.valid, "{fault:?} at {call}: {:?}", verification.first_broken);
            for id in &acknowledged {
                assert!(log.record(id).is_ok(), "{fault:?} at {call}: {id} is lost");
            }
            decide(&log, 99, draft("a", Decision::Deny, RiskLevel::Low, 700)).unwrap();
            if !faulty.struck() {
                assert!(call > 60, "only {call} calls");
                break;
            }
        }
    }
}
