//! Entries that belong together, and decisions overtaken by the kill switch.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use super::*;
use crate::ChangeDraft;
use crate::journal::entry::{OutcomeEntry, StateEntry};
use crate::journal::record::CanonicalRecord;
use crate::store::{Frame, Kind};

fn change(key: &str, value: &str) -> ChangeDraft {
    ChangeDraft { state: StateDraft::new(key.to_owned(), value.to_owned()), cause: "test".to_owned(), trust: None }
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn ask(log: &ProofLog, epoch: u64) -> Option<ProofId> {
    let draft = draft("a", Decision::Escalate, RiskLevel::High, 500);
    let asked = |id: ProofId| change("asked", &format!("\"{id}\""));
    let committed = log.queue().ask(at(0), draft, epoch, asked).unwrap()?;
    assert_eq!(committed.sequence, committed.proof_id.sequence());
    log.settle(committed.sequence).unwrap();
    Some(committed.proof_id)
}

fn answer(log: &ProofLog, asked: ProofId, decision: Decision, epoch: u64) -> Result<Option<ProofId>, Error> {
    let draft = DecisionDraft { resolves: Some(asked), ..draft("a", decision, RiskLevel::High, 500) };
    let reserved = log
        .reserve_outcome(&"a".parse().unwrap(), &asked)?
        .map_err(|standing| Error::Conflict { message: format!("it has the outcome {standing} already") })?;
    let committed = reserved.answer(at(0), draft, epoch, |id| {
        let state = Some(StateDraft::new("asked".to_owned(), format!("\"{id}\"")));
        let entity = "a".parse().unwrap();
        OutcomeDraft {
            proof_id: asked,
            entity,
            outcome: Outcome::Escalated,
            note: None,
            state,
            asked: None,
            trust: None,
            basis: None,
        }
    })?;
    let Some(committed) = committed else { return Ok(None) };
    log.settle(committed.sequence)?;
    Ok(Some(committed.proof_id))
}

/// The kind and body of every entry.
fn entries(log: &ProofLog) -> Vec<(Kind, Vec<u8>)> {
    log.flush().unwrap();
    let read = |sequence| log.parts().journal.reader.read(Sequence::new(sequence)).unwrap().unwrap();
    (0..log.parts().queue.ordered())
        .map(|sequence| {
            let bytes = read(sequence);
            let frame = Frame::decode(&bytes).unwrap();
            (frame.kind, frame.body.to_vec())
        })
        .collect()
}

#[test]
fn nothing_comes_between_two_entries_that_belong_together() {
    let log = open(MemoryFiles::new(), Durability::Buffered).unwrap().0;
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..40 {
                    let asked = ask(&log, 0).unwrap();
                    decide(&log, 0, draft("b", Decision::Allow, RiskLevel::Low, 500)).unwrap();
                    answer(&log, asked, Decision::Allow, 0).unwrap().unwrap();
                }
            });
        }
    });
    let entries = entries(&log);
    let (mut questions, mut answers) = (0, 0);
    for (place, (kind, body)) in entries.iter().enumerate() {
        if *kind != Kind::Decision {
            continue;
        }
        let record = CanonicalRecord::read(body).unwrap();
        if record.decision == Decision::Escalate {
            let state: StateEntry<'_> = serde_json::from_slice(&entries[place - 1].1).unwrap();
            assert_eq!(state.state.value.get(), format!("\"{}\"", record.id));
            questions += 1;
        }
        if let Some(asked) = record.resolves {
            let outcome: OutcomeEntry<'_> = serde_json::from_slice(&entries[place + 1].1).unwrap();
            assert_eq!((outcome.proof_id, outcome.outcome), (asked, Outcome::Escalated));
            assert_eq!(outcome.state.unwrap().value.get(), format!("\"{}\"", record.id));
            answers += 1;
        }
    }
    assert_eq!((questions, answers), (160, 160));
    assert!(log.verify().unwrap().valid);
}

#[test]
fn a_question_is_answered_once_however_many_try() {
    let log = open(MemoryFiles::new(), Durability::Buffered).unwrap().0;
    let asked = ask(&log, 0).unwrap();
    let granted = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    match answer(&log, asked, Decision::Allow, 0) {
                        Ok(Some(_)) => {
                            granted.fetch_add(1, Ordering::Relaxed);
                            break;
                        }
                        // An outcome reached the index in the meantime.
                        Ok(None) => {}
                        Err(error) => break assert_eq!(error.code(), "CONFLICT"),
                    }
                }
            });
        }
    });
    assert_eq!(granted.into_inner(), 1);
    let record = log.record(&asked).unwrap();
    assert_eq!(record.outcome, Some(Outcome::Escalated));
}

#[test]
fn nothing_is_granted_behind_a_stop() {
    let log = open(MemoryFiles::new(), Durability::Buffered).unwrap().0;
    let epoch = AtomicU64::new(0);
    let mut stopped = None;
    thread::scope(|scope| {
        for place in 0..8 {
            let (log, epoch) = (&log, &epoch);
            scope.spawn(move || {
                for round in 0..200 {
                    loop {
                        // Like a governor: the kill switch is checked first.
                        let known = epoch.load(Ordering::SeqCst);
                        let decision = if known == 0 { Decision::Allow } else { Decision::Deny };
                        if (place + round) % 7 == 0 && known == 0 {
                            if ask(log, known).is_some() {
                                break;
                            }
                            continue;
                        }
                        let draft = draft("a", decision, RiskLevel::Low, 500);
                        if log.queue().decide(at(0), draft, known).unwrap().is_some() {
                            break;
                        }
                    }
                }
            });
        }
        thread::yield_now();
        epoch.store(1, Ordering::SeqCst);
        stopped = Some(log.queue().stop(at(0), 1, change("stop", "1")).unwrap());
    });
    let behind = usize::try_from(stopped.unwrap().get()).unwrap();
    let entries = entries(&log);
    let decisions = entries[behind..].iter().filter(|(kind, _)| *kind == Kind::Decision);
    for (_, body) in decisions {
        assert_eq!(CanonicalRecord::read(body).unwrap().decision, Decision::Deny);
    }
}

#[test]
fn a_stop_holds_also_where_it_cannot_be_written() {
    let log = open(MemoryFiles::new(), Durability::Buffered).unwrap().0;
    let asked = ask(&log, 0).unwrap();
    log.close().unwrap();
    assert!(log.queue().stop(at(0), 1, change("stop", "1")).is_err());
    let log = open(MemoryFiles::new(), Durability::Buffered).unwrap().0;
    log.queue().stop(at(0), 3, change("stop", "1")).unwrap();
    for known in [0, 2] {
        assert!(log.queue().decide(at(0), draft("a", Decision::Allow, RiskLevel::Low, 500), known).unwrap().is_none());
        assert!(ask(&log, known).is_none());
        assert!(answer(&log, asked, Decision::Allow, known).unwrap().is_none());
    }
    assert!(log.queue().decide(at(0), draft("a", Decision::Deny, RiskLevel::Low, 500), 0).unwrap().is_some());
    assert!(log.queue().decide(at(0), draft("a", Decision::Allow, RiskLevel::Low, 500), 3).unwrap().is_some());
}

#[test]
fn a_state_can_say_which_entry_it_stands_in() {
    let log = open(MemoryFiles::new(), Durability::Buffered).unwrap().0;
    for _ in 0..3 {
        decide(&log, 0, draft("b", Decision::Allow, RiskLevel::Low, 500)).unwrap();
        let value = format!("{{\"last\":{}}}", StateDraft::OWN_PLACE);
        let state = StateDraft::new("key".to_owned(), value).with_own_place();
        let sequence = log.queue().change(at(0), ChangeDraft { state, cause: String::new(), trust: None }).unwrap();
        log.settle(sequence).unwrap();
        let (_, body) = &entries(&log)[usize::try_from(sequence.get()).unwrap()];
        let entry: StateEntry<'_> = serde_json::from_slice(body).unwrap();
        let value: serde_json::Value = serde_json::from_str(entry.state.value.get()).unwrap();
        assert_eq!(value["last"], sequence.get());
    }
}
