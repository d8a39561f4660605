//! Logs opened on the basis of their index and verified in the background.

use super::*;
use std::collections::BTreeSet;

use crate::store::RealFiles;
use rulekeep_types::{ArchiveReport, OpenVerification, VerificationState};

fn opened(folder: &Path, verifying: OpenVerification) -> (ProofLog, Startup) {
    let options = LogOptions { durability: Durability::Sync, journal: SMALL, verifying, ..LogOptions::default() };
    let files = Arc::new(RealFiles::open(folder).unwrap());
    ProofLog::open_files(files, None, Some(folder.join("view")), &options, Timestamp::from_millis(0), STORE).unwrap()
}

/// Waits until the background verification is over.
fn ended(log: &ProofLog) -> VerificationState {
    loop {
        match log.verification_state() {
            VerificationState::Running(_) => std::thread::yield_now(),
            state => return state,
        }
    }
}

fn set(log: &ProofLog, key: &str, value: &str) {
    let state = StateDraft::new(key.to_owned(), value.to_owned());
    let sequence = log.queue().set_state(Timestamp::from_millis(0), state, "a test".to_owned()).unwrap();
    log.settle(sequence).unwrap();
}

fn charged(at: i64) -> DecisionDraft {
    let charges = [(Box::from("r/agent/a"), at + 1)];
    let evidence = encode_evidence(9, &"intent", &"detail", &charges, None).unwrap();
    DecisionDraft { evidence, ..draft("a", Decision::Allow, RiskLevel::Low, 500) }
}

/// A closed store of some hundred segments, with states, uses of limits and outcomes.
fn store() -> (tempfile::TempDir, Vec<ProofId>) {
    let dir = tempfile::tempdir().unwrap();
    let (log, _) = opened(dir.path(), OpenVerification::Before);
    let mut ids = Vec::new();
    for at in 0..330 {
        ids.push(
            decide(&log, at, if at % 5 == 0 { charged(at) } else { draft("b", Decision::Allow, RiskLevel::Low, 7) })
                .unwrap(),
        );
        if at % 10 == 0 {
            report(&log, ids[ids.len() - 1], if at % 20 == 0 { Outcome::Failure } else { Outcome::Success }).unwrap();
            set(&log, &format!("agent/{}", at % 30), &format!("{{\"n\":{at}}}"));
        }
    }
    log.close().unwrap();
    (dir, ids)
}

fn replace(value: &mut Vec<u8>, from: &str, to: &str) {
    let text = String::from_utf8(value.clone()).unwrap();
    assert!(text.contains(from), "{text}");
    *value = text.replacen(from, to, 1).into_bytes();
}

fn is_broken(log: &ProofLog) -> bool {
    matches!(log.refusal(), Some(Error::ChainBroken { .. }))
}

#[test]
fn what_a_log_goes_on_with_is_what_the_whole_journal_says() {
    let (dir, ids) = store();
    let (log, whole) = opened(dir.path(), OpenVerification::Before);
    assert_eq!(log.verification_state(), VerificationState::Verified);
    let head = log.verify().unwrap();
    log.close().unwrap();
    for round in 0..3 {
        let (log, start) = opened(dir.path(), OpenVerification::Behind);
        assert!(
            matches!(log.verification_state(), VerificationState::Running(_))
                || round > 0
                || ended(&log) == VerificationState::Verified
        );
        assert_eq!((&start.states, &start.used), (&whole.states, &whole.used), "round {round}");
        // Records in segments that were not read by the open are found all the same.
        for id in ids.iter().step_by(37) {
            assert_eq!(log.record(id).unwrap().id, *id);
        }
        assert_eq!(log.verify().unwrap(), head);
        assert_eq!(ended(&log), VerificationState::Verified);
        log.close().unwrap();
    }
    let (log, _) = opened(dir.path(), OpenVerification::Behind);
    decide(&log, 1_000, charged(1)).unwrap();
    set(&log, "agent/0", "{\"n\":1000}");
    assert_eq!(ended(&log), VerificationState::Verified);
    assert_eq!(log.verify().unwrap().records, head.records + 1);
}

/// Archives everything before a moment, including the states that the store has.
fn archive(log: &ProofLog, start: &Startup, before: i64, folder: &Path) -> ArchiveReport {
    let count = log.archivable(Timestamp::from_millis(before)).unwrap();
    for (key, value) in &start.states {
        set(log, key, std::str::from_utf8(value).unwrap());
    }
    let keys: BTreeSet<String> = start.states.iter().map(|(key, _)| key.clone()).collect();
    let to: Arc<dyn Files> = Arc::new(RealFiles::open(folder).unwrap());
    log.archive(Timestamp::from_millis(400), count, &|key| keys.contains(key), &to, "a.rka", &|_, _| Ok(None)).unwrap()
}

#[test]
fn a_frozen_log_is_known_to_be_before_all_of_it_is_read() {
    let (dir, ids) = store();
    let (log, _) = opened(dir.path(), OpenVerification::Before);
    log.freeze(Timestamp::from_millis(400), "enough".to_owned()).unwrap();
    let head = log.verify().unwrap();
    log.close().unwrap();
    for round in 0..2 {
        let (log, _) = opened(dir.path(), OpenVerification::Behind);
        let refused = decide(&log, 500, charged(1)).unwrap_err();
        assert!(refused.code() == "CONFLICT" && refused.to_string().contains("enough"), "round {round}: {refused}");
        assert!(log.record(&ids[3]).is_ok());
        assert_eq!(ended(&log), VerificationState::Verified, "round {round}");
        assert_eq!(log.verify().unwrap(), head);
        log.close().unwrap();
    }
    // An index that does not say so is not trusted.
    forge_view(dir.path(), b"tlog/", |value| replace(value, "enough", "too much"));
    let (log, _) = opened(dir.path(), OpenVerification::Behind);
    assert!(matches!(ended(&log), VerificationState::Broken(_)));
    assert!(decide(&log, 500, charged(1)).is_err());
}

#[test]
fn a_log_that_was_opened_behind_is_archived_and_opens_so_again() {
    let (dir, ids) = store();
    let out = tempfile::tempdir().unwrap();
    let (log, start) = opened(dir.path(), OpenVerification::Behind);
    let all = log.verify().unwrap();
    let archived = archive(&log, &start, 200, out.path());
    // Up to the last segment without later entries.
    assert!(archived.records > 190 && archived.until < Timestamp::from_millis(200), "{archived:?}");
    assert_eq!(log.verification_state(), VerificationState::Verified);
    let left = log.verify().unwrap();
    assert_eq!((left.records + archived.records, left.head_hash), (all.records, all.head_hash));
    assert_eq!(left.checked.from, archived.entries);
    log.close().unwrap();
    for round in 0..2 {
        let (log, again) = opened(dir.path(), OpenVerification::Behind);
        assert_eq!(again.states, start.states, "round {round}");
        assert_eq!(log.begins().entries, archived.entries);
        assert_eq!(ended(&log), VerificationState::Verified, "round {round}");
        let found = log.verify().unwrap();
        assert!(found.valid && found.checked.from == archived.entries, "{found:?}");
        assert!(log.record(&ids[0]).is_err() && log.record(&ids[329]).is_ok());
        decide(&log, 500, charged(round)).unwrap();
        log.close().unwrap();
    }
}

#[test]
fn entries_behind_the_mark_are_read_before_opening_returns() {
    let (dir, _) = store();
    let (log, _) = opened(dir.path(), OpenVerification::Behind);
    // The process is killed before the index is persisted.
    let killed = tempfile::tempdir().unwrap();
    for at in 0..40 {
        decide(&log, 1_000, charged(at)).unwrap();
    }
    set(&log, "agent/0", "{\"n\":1000}");
    copy(dir.path(), killed.path());
    log.close().unwrap();
    let (log, start) = opened(killed.path(), OpenVerification::Behind);
    assert!(start.states.iter().any(|(key, value)| key == "agent/0" && value == b"{\"n\":1000}"));
    assert_eq!(ended(&log), VerificationState::Verified);
    log.close().unwrap();
    let (_log, whole) = opened(killed.path(), OpenVerification::Before);
    assert_eq!((start.states, start.used), (whole.states, whole.used));
}

#[test]
fn a_state_forged_in_the_view_is_found_and_ends_decisions() {
    let (dir, _) = store();
    forge_view(dir.path(), b"tagent/0", |value| replace(value, "300", "301"));
    let (log, _) = opened(dir.path(), OpenVerification::Behind);
    let VerificationState::Broken(found) = ended(&log) else { panic!("it was believed") };
    assert!(found.expected.contains("agent/0") && found.file == "view", "{found}");
    assert!(is_broken(&log));
    log.close().unwrap();
    // After opening with full verification, the journal's content is used and the index is rebuilt.
    let (log, start) = opened(dir.path(), OpenVerification::Before);
    assert!(start.states.iter().any(|(key, value)| key == "agent/0" && value == b"{\"n\":300}"));
    decide(&log, 1_000, charged(1)).unwrap();
    log.close().unwrap();
    let (log, _) = opened(dir.path(), OpenVerification::Behind);
    assert_eq!(ended(&log), VerificationState::Verified);
}

#[test]
fn uses_of_limits_that_were_forged_in_the_view_are_found_behind() {
    let (dir, _) = store();
    forge_view(dir.path(), b"u", |value| replace(value, "\"r/agent/a\",6]", "\"r/agent/a\",5]"));
    let (log, _) = opened(dir.path(), OpenVerification::Behind);
    let VerificationState::Broken(found) = ended(&log) else { panic!("it was believed") };
    assert!(found.expected.contains("limits"), "{found}");
    assert!(is_broken(&log));
}

#[test]
fn tree_nodes_that_do_not_lead_to_heads_root_are_not_believed() {
    let (dir, _) = store();
    forge_view(dir.path(), b"n", |nodes| nodes[5] ^= 1);
    let (log, _) = opened(dir.path(), OpenVerification::Behind);
    // The log was verified before opening returned.
    assert_eq!(log.verification_state(), VerificationState::Verified);
    decide(&log, 1_000, charged(1)).unwrap();
    log.close().unwrap();
    let (log, _) = opened(dir.path(), OpenVerification::Behind);
    assert_eq!(ended(&log), VerificationState::Verified);
}

#[test]
fn damage_that_was_not_looked_at_is_found_behind() {
    let (dir, _) = store();
    let segment = dir.path().join("journal/0000000003.rks");
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[200] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let (log, _) = opened(dir.path(), OpenVerification::Behind);
    let VerificationState::Broken(found) = ended(&log) else { panic!("it was believed") };
    assert_eq!(found.file, "0000000003.rkj", "{found}");
    assert!(is_broken(&log));
    assert!(!log.verify().unwrap().valid);
    log.close().unwrap();
    // Damage in what the open reads is found at once.
    let (dir, _) = store();
    let last = std::fs::read_dir(dir.path().join("journal")).unwrap().map(|entry| entry.unwrap().path());
    let last = last.filter(|path| path.extension().is_some_and(|kind| kind == "rks" || kind == "rkj")).max().unwrap();
    let mut bytes = std::fs::read(&last).unwrap();
    bytes[190] ^= 1;
    std::fs::write(&last, bytes).unwrap();
    let (log, _) = opened(dir.path(), OpenVerification::Behind);
    assert!(is_broken(&log));
}

#[test]
fn without_a_view_all_is_verified_before() {
    let (dir, _) = store();
    std::fs::remove_dir_all(dir.path().join("view")).unwrap();
    let (log, _) = opened(dir.path(), OpenVerification::Behind);
    assert_eq!(log.verification_state(), VerificationState::Verified);
    log.close().unwrap();
    let (log, _) = opened(dir.path(), OpenVerification::Behind);
    log.close().unwrap();
    assert!(matches!(log.verification_state(), VerificationState::Stopped | VerificationState::Verified));
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let path = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &path);
        } else {
            std::fs::copy(entry.path(), path).unwrap();
        }
    }
}
