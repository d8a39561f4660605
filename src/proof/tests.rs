//! The log through the I/O seam, and the index against a plain list.

#![allow(clippy::cast_precision_loss, clippy::cast_possible_wrap)] // small numbers

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::model::{
    AgentId, Decision, Error, IntentId, Outcome, Period, ProofId, RiskLevel, Score, Tier, Timestamp, TrustSnapshot,
};
use crate::store::faulty::{Fault, FaultyFiles};
use crate::store::{Files, MemoryFiles, StoreId};

const STORE: StoreId = StoreId([7; 16]);

fn open(files: impl Files + 'static, durability: Durability) -> Result<(ProofLog, Startup), OpenLogError> {
    let options = LogOptions { durability, patience: std::time::Duration::from_millis(200), ..LogOptions::default() };
    ProofLog::open_files(Arc::new(files), None, None, &options, Timestamp::from_millis(0), STORE)
}

fn draft(entity: &str, decision: Decision, risk: RiskLevel, score: i64) -> DecisionDraft {
    let entity: AgentId = entity.parse().unwrap();
    let trust = TrustSnapshot::new(Score::saturating(score), Tier::T4);
    DecisionDraft {
        entity,
        intent: IntentId::new(Timestamp::from_millis(0), 1),
        decision,
        reasoning: "because".to_owned(),
        trust,
        risk,
        evidence: encode_evidence(9, &"intent", &"detail", &[]).unwrap(),
        random: 5,
    }
}

fn decide(log: &ProofLog, at: i64, draft: DecisionDraft) -> Result<ProofId, Error> {
    let committed = log.decide(Timestamp::from_millis(at), draft)?;
    log.settle(committed.sequence)?;
    Ok(committed.proof_id)
}

fn report(log: &ProofLog, proof_id: ProofId, outcome: Outcome) -> Result<(), Error> {
    let entity = log.facts(&proof_id)?.entity;
    let ordered = log.report(Timestamp::from_millis(0), || {
        Ok(OutcomeDraft { proof_id, entity: entity.clone(), outcome, note: None, state: None, trust: None })
    })?;
    ordered.map_or(Ok(()), |sequence| log.settle(sequence))
}

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
fn a_page_that_was_lost_in_the_middle_of_the_last_write_is_a_torn_tail() {
    let disk = MemoryFiles::new();
    let (log, _) = open(disk.clone(), Durability::Sync).unwrap();
    let path = std::path::Path::new("journal/0000000000.rkj");
    decide(&log, 0, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
    let large = DecisionDraft {
        evidence: encode_evidence(9, &"x".repeat(30_000), &"detail", &[]).unwrap(),
        ..draft("a", Decision::Allow, RiskLevel::Low, 700)
    };
    decide(&log, 1, large).unwrap();
    // The image that a power cut could leave: nobody has noted the second decision as on disk.
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

/// What the twin keeps of a record.
#[derive(Debug, Clone)]
struct Plain {
    entity: usize,
    time: i64,
    decision: Decision,
    risk: RiskLevel,
    score: i64,
    outcome: Option<Outcome>,
    id: Option<ProofId>,
}

prop_compose! {
    fn plain()(
        entity in 0_usize..3,
        time in 0_i64..50,
        decision in proptest::sample::select(Decision::ALL),
        risk in proptest::sample::select(RiskLevel::ALL),
        score in 0_i64..=1000,
        outcome in proptest::option::of(proptest::sample::select(Outcome::ALL)),
    ) -> Plain {
        Plain { entity, time, decision, risk, score, outcome, id: None }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The twin is a list that is filtered and folded.
    #[test]
    fn queries_and_statistics_agree_with_a_plain_list(
        records in proptest::collection::vec(plain(), 1..1500),
        reopen_at in 0_usize..1500,
        questions in proptest::collection::vec(
            (
                0_usize..4,
                proptest::option::of(0_i64..60),
                proptest::option::of(0_i64..60),
                proptest::option::of(proptest::sample::select(Decision::ALL)),
                proptest::option::of(proptest::sample::select(Outcome::ALL)),
                1_u64..5,
                1_u64..=200,
            ),
            20,
        ),
    ) {
        let mut records = records;
        records.sort_by_key(|record| record.time);
        let disk = MemoryFiles::new();
        let mut log = open(disk.clone(), Durability::Buffered).unwrap().0;
        for (place, record) in records.iter_mut().enumerate() {
            if place == reopen_at {
                log.close().unwrap();
                log = open(disk.clone(), Durability::Buffered).unwrap().0;
            }
            let entity = format!("agent-{}", record.entity);
            let id = decide(&log, record.time, draft(&entity, record.decision, record.risk, record.score)).unwrap();
            record.id = Some(id);
        }
        // Outcomes come in another order than the decisions.
        for record in records.iter().rev() {
            if let Some(outcome) = record.outcome {
                report(&log, record.id.unwrap(), outcome).unwrap();
            }
        }
        for (entity, from, to, decision, outcome, page, page_size) in questions {
            let name = format!("agent-{entity}");
            if let (Some(from), Some(to)) = (from, to) && from > to {
                continue;
            }
            let in_period: Vec<&Plain> = records
                .iter()
                .filter(|record| record.entity == entity)
                .filter(|record| from.is_none_or(|from| record.time >= from) && to.is_none_or(|to| record.time <= to))
                .collect();
            let matching: Vec<ProofId> = in_period
                .iter()
                .rev()
                .filter(|record| decision.is_none_or(|decision| record.decision == decision))
                .filter(|record| outcome.is_none_or(|outcome| record.outcome == Some(outcome)))
                .map(|record| record.id.unwrap())
                .collect();
            let mut query = ProofQuery::entity(&name).page(page).page_size(page_size);
            if let Some(from) = from { query = query.from(Timestamp::from_millis(from)); }
            if let Some(to) = to { query = query.to(Timestamp::from_millis(to)); }
            if let Some(decision) = decision { query = query.decision(decision); }
            if let Some(outcome) = outcome { query = query.outcome(outcome); }
            let answer = log.query(&query).unwrap();
            let skip = usize::try_from((page - 1) * page_size).unwrap();
            let expected: Vec<ProofId> =
                matching.iter().skip(skip).take(usize::try_from(page_size).unwrap()).copied().collect();
            prop_assert_eq!(answer.total, matching.len() as u64);
            prop_assert_eq!(answer.items.iter().map(|record| record.id).collect::<Vec<_>>(), expected);
            prop_assert_eq!(answer.has_more, skip + answer.items.len() < matching.len() && !answer.items.is_empty());

            let period = Period::new(from.map(Timestamp::from_millis), to.map(Timestamp::from_millis));
            let stats = log.stats(&name, period).unwrap();
            prop_assert_eq!(stats.total_records, in_period.len() as u64);
            for word in Decision::ALL {
                let count = in_period.iter().filter(|record| record.decision == *word).count() as u64;
                prop_assert_eq!(stats.decision_breakdown[word], count);
            }
            for word in RiskLevel::ALL {
                let count = in_period.iter().filter(|record| record.risk == *word).count() as u64;
                prop_assert_eq!(stats.risk_breakdown[word], count);
            }
            let reported = in_period.iter().filter(|record| record.outcome.is_some()).count();
            let successes = in_period.iter().filter(|record| record.outcome == Some(Outcome::Success)).count();
            let rate = if reported == 0 { 0.0 } else { successes as f64 / reported as f64 };
            prop_assert!((stats.success_rate - rate).abs() < 1e-12);
            let sum: i64 = in_period.iter().map(|record| record.score).sum();
            let mean = if in_period.is_empty() { 0.0 } else { sum as f64 / in_period.len() as f64 };
            prop_assert!((stats.average_trust_score - mean).abs() < 1e-9);
        }
        prop_assert!(log.verify().unwrap().valid);
    }
}
