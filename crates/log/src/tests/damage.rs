//! Changed bytes, and writes that were cut short.

use super::*;

#[test]
fn every_byte_of_a_closed_journal_is_watched() {
    let disk = MemoryFiles::new();
    let (log, _) = open(disk.clone(), Durability::Sync).unwrap();
    for (at, decision) in [Decision::Allow, Decision::Deny].into_iter().enumerate() {
        let id = decide(&log, at as i64, draft("a", decision, RiskLevel::Low, 700)).unwrap();
        report(&log, id, Outcome::Failure).unwrap();
    }
    log.close().unwrap();
    let path = std::path::Path::new("journal/0000000000.rkj");
    let size = disk.content(path).len();
    for at in 0..size {
        // The segment header ends in zeros that mean nothing.
        if (72..128).contains(&at) {
            continue;
        }
        let copy = disk.fork();
        copy.change(path, |content| content[at] ^= 0x10);
        let Ok((log, _)) = open(copy, Durability::Sync) else { continue };
        let verification = log.verify().unwrap();
        assert!(!verification.valid, "byte {at} of {size}");
        assert_eq!(decide(&log, 9, draft("a", Decision::Allow, RiskLevel::Low, 1)).unwrap_err().code(), "CHAIN_BROKEN");
    }
}

#[test]
fn a_tail_that_was_cut_short_is_kept_aside_and_the_log_goes_on() {
    let disk = MemoryFiles::new();
    let (log, _) = open(disk.clone(), Durability::Sync).unwrap();
    let path = std::path::Path::new("journal/0000000000.rkj");
    let first = decide(&log, 0, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
    let before = disk.fork();
    decide(&log, 1, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
    let after = disk.content(path);
    let start = before.content(path).iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let end = after.iter().rposition(|byte| *byte != 0).unwrap() + 1;

    for written in 1..end - start {
        let torn = before.fork();
        torn.change(path, |content| content[start..start + written].copy_from_slice(&after[start..start + written]));
        let (log, startup) = open(torn.clone(), Durability::Sync).unwrap();
        let verification = log.verify().unwrap();
        assert!(verification.valid, "{written} bytes: {:?}", verification.first_broken);
        assert_eq!(verification.records, 1, "{written} bytes");
        let recovered = startup.recovered.expect("something was set aside");
        assert_eq!(torn.content(std::path::Path::new(&recovered.copy)).len(), recovered.bytes);
        assert!(log.record(&first).is_ok());
        decide(&log, 2, draft("a", Decision::Deny, RiskLevel::Low, 700)).unwrap();
        log.close().unwrap();
        let (log, startup) = open(torn, Durability::Sync).unwrap();
        assert!(startup.recovered.is_none() && log.verify().unwrap().records == 2);
    }
}

#[test]
fn a_last_entry_without_its_first_bytes_is_a_torn_tail() {
    let disk = MemoryFiles::new();
    let (log, _) = open(disk.clone(), Durability::Sync).unwrap();
    let path = Path::new("journal/0000000000.rkj");
    decide(&log, 0, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
    let before = disk.fork();
    decide(&log, 1, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
    let after = disk.content(path);
    let start = before.content(path).iter().rposition(|byte| *byte != 0).unwrap() + 1;
    // An entry can begin in the last bytes of a sector that was not written, while the next one was.
    for lost in 1..512.min(after.len() - start) {
        let torn = before.fork();
        torn.change(path, |content| {
            let end = content.len();
            content[start + lost..end].copy_from_slice(&after[start + lost..end]);
        });
        let (log, startup) = open(torn, Durability::Sync).unwrap();
        let verification = log.verify().unwrap();
        assert!(verification.valid && verification.records == 1, "{lost} bytes: {:?}", verification.first_broken);
        assert!(startup.recovered.is_some(), "{lost} bytes");
    }
}

#[test]
fn a_lost_page_in_the_last_write_is_a_torn_tail() {
    let disk = MemoryFiles::new();
    let (log, _) = open(disk.clone(), Durability::Sync).unwrap();
    let path = std::path::Path::new("journal/0000000000.rkj");
    decide(&log, 0, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
    let large = DecisionDraft {
        evidence: encode_evidence(9, &"x".repeat(30_000), &"detail", &[], None).unwrap(),
        ..draft("a", Decision::Allow, RiskLevel::Low, 700)
    };
    decide(&log, 1, large).unwrap();
    // The image that a power failure could leave: nobody has recorded the second decision as on disk.
    let torn = disk.fork();
    torn.change(path, |content| content[16_384..20_480].fill(0));
    let (log, startup) = open(torn, Durability::Sync).unwrap();
    let verification = log.verify().unwrap();
    assert!(verification.valid && startup.recovered.is_some(), "{:?}", verification.first_broken);
    assert_eq!(verification.records, 1);
}

#[test]
fn head_follows_a_log_that_is_never_idle() {
    let disk = MemoryFiles::new();
    let (log, _) = open(disk.clone(), Durability::Sync).unwrap();
    let first = disk.content(std::path::Path::new("HEAD"));
    let moved = (0..5_000_000).any(|at| {
        decide(&log, at, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
        disk.content_if_there(std::path::Path::new("HEAD")).is_some_and(|head| head != first)
    });
    assert!(moved, "HEAD still names what it named at first");
}

#[test]
fn a_running_log_notices_a_changed_byte_when_it_verifies() {
    let disk = MemoryFiles::new();
    let (log, _) = open(disk.clone(), Durability::Sync).unwrap();
    for at in 0..3 {
        decide(&log, at, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
    }
    assert!(log.stats("a", Period::default()).unwrap().chain_integrity);
    disk.change(std::path::Path::new("journal/0000000000.rkj"), |content| {
        let at = content.windows(7).position(|window| window == b"because").unwrap();
        content[at] = b'B';
    });
    let verification = log.verify().unwrap();
    assert!(!verification.valid && verification.records == 0);
    assert!(!log.stats("a", Period::default()).unwrap().chain_integrity);
    assert_eq!(decide(&log, 9, draft("a", Decision::Allow, RiskLevel::Low, 1)).unwrap_err().code(), "CHAIN_BROKEN");
}
