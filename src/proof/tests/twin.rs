//! Queries and statistics beside a plain list.

use super::*;

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
