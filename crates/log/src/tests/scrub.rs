//! The scrub, which reads everything stored again and again.

use std::time::Duration;

use super::*;
use crate::store::RealFiles;
use rulekeep_types::{ScrubOptions, ScrubStatus};

/// A log in a folder, with about twenty sealed segments: each decision is written by itself.
fn log(folder: &Path) -> ProofLog {
    let options = LogOptions { durability: Durability::Sync, journal: SMALL, ..LogOptions::default() };
    let files = Arc::new(RealFiles::open(folder).unwrap());
    let at = Timestamp::from_millis(0);
    let (log, _) = ProofLog::open_files(files, None, Some(folder.join("view")), &options, at, STORE).unwrap();
    for at in 0..60 {
        decide(&log, at, draft("a", Decision::Allow, RiskLevel::Low, 500)).unwrap();
    }
    log.flush().unwrap();
    log
}

fn scrub(log: &ProofLog, options: ScrubOptions) {
    log.scrub(options, || Timestamp::from_millis(77)).unwrap();
}

/// Waits until the status fulfills a condition.
fn wait(log: &ProofLog, wanted: impl Fn(&ScrubStatus) -> bool) -> ScrubStatus {
    loop {
        let status = log.scrub_status().unwrap();
        if wanted(&status) {
            return status;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_byte_that_is_flipped_in_a_sealed_segment_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(dir.path());
    assert_eq!(log.scrub_status(), None);
    scrub(&log, ScrubOptions::default().bytes_per_second(u64::MAX).pause(Duration::ZERO));
    let status = wait(&log, |status| status.passes >= 2);
    let last = status.last.unwrap();
    assert!(last.found.valid);
    assert_eq!((last.finished.as_millis(), last.found.records), (77, 60));

    let segment = dir.path().join("journal/0000000002.rks");
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[200] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let status = wait(&log, |status| status.last.as_ref().is_some_and(|last| !last.found.valid));
    let broken = status.last.unwrap().found.first_broken.unwrap();
    assert_eq!(broken.file, "0000000002.rkj", "{broken}");
    assert!(matches!(log.refusal(), Some(Error::ChainBroken { .. })));
    log.close().unwrap();
}

#[test]
fn a_scrub_keeps_to_its_rate_and_stops_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(dir.path());
    // A byte a second: the second segment would be read in half an hour.
    scrub(&log, ScrubOptions::default().bytes_per_second(1));
    let status = wait(&log, |status| status.running.is_some_and(|running| running.done > 0));
    assert_eq!((status.passes, status.last), (0, None));
    let running = status.running.unwrap();
    assert!(running.done < running.of);
    log.close().unwrap();
    assert!(log.scrub(ScrubOptions::default(), || Timestamp::from_millis(0)).is_err());
}

#[test]
fn a_break_is_told_at_once_at_whatever_rate_it_was_looked_for() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(dir.path());
    let segment = dir.path().join("journal/0000000000.rks");
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[200] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    // At a byte a second the rest, or this one segment again, would be read in many minutes.
    scrub(&log, ScrubOptions::default().bytes_per_second(1));
    let status = wait(&log, |status| status.last.is_some());
    assert!(!status.last.unwrap().found.valid && log.refusal().is_some());
}
