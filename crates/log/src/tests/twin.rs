//! Queries and statistics compared with a plain list.

use super::*;
use rulekeep_types::{Order, ProofCursor};

/// The plain list's data about a record.
#[derive(Debug, Clone)]
struct Plain {
    entity: usize,
    intent: u128,
    time: i64,
    decision: Decision,
    risk: RiskLevel,
    score: i64,
    outcome: Option<Outcome>,
    id: Option<ProofId>,
}

prop_compose! {
    fn plain()(
        // A few long lists and many short ones.
        entity in prop_oneof![4 => 0_usize..3, 1 => 3_usize..60],
        intent in 0_u128..300,
        time in 0_i64..50,
        decision in proptest::sample::select(Decision::ALL),
        risk in proptest::sample::select(RiskLevel::ALL),
        score in 0_i64..=1000,
        outcome in proptest::option::of(proptest::sample::select(Outcome::ALL)),
    ) -> Plain {
        Plain { entity, intent, time, decision, risk, score, outcome, id: None }
    }
}

/// A query for both implementations.
#[derive(Debug, Clone)]
struct Question {
    entity: Option<usize>,
    from: Option<i64>,
    to: Option<i64>,
    decision: Option<Decision>,
    risk: Option<RiskLevel>,
    outcome: Option<Outcome>,
    intent: Option<u128>,
    order: Order,
    page: u64,
    page_size: u64,
}

prop_compose! {
    fn question()(
        entity in prop_oneof![1 => Just(None), 3 => (0_usize..4).prop_map(Some), 1 => (3_usize..62).prop_map(Some)],
        from in proptest::option::weighted(0.3, 0_i64..60),
        to in proptest::option::weighted(0.3, 0_i64..60),
        decision in proptest::option::weighted(0.3, proptest::sample::select(Decision::ALL)),
        risk in proptest::option::weighted(0.3, proptest::sample::select(RiskLevel::ALL)),
        outcome in proptest::option::weighted(0.3, proptest::sample::select(Outcome::ALL)),
        intent in proptest::option::weighted(0.2, 0_u128..301),
        order in proptest::sample::select(Order::ALL),
        page in 1_u64..5,
        page_size in 1_u64..=200,
    ) -> Question {
        Question { entity, from, to: to.max(from), decision, risk, outcome, intent, order, page, page_size }
    }
}

impl Question {
    fn query(&self) -> ProofQuery {
        let mut query = self.entity.map_or_else(ProofQuery::all, |entity| ProofQuery::entity(name(entity)));
        if let Some(from) = self.from {
            query = query.from(Timestamp::from_millis(from));
        }
        if let Some(to) = self.to {
            query = query.to(Timestamp::from_millis(to));
        }
        if let Some(decision) = self.decision {
            query = query.decision(decision);
        }
        if let Some(risk) = self.risk {
            query = query.risk(risk);
        }
        if let Some(outcome) = self.outcome {
            query = query.outcome(outcome);
        }
        if let Some(intent) = self.intent {
            query = query.intent(intent_id(intent));
        }
        query.order(self.order)
    }

    fn is_in_period(&self, record: &Plain) -> bool {
        self.entity.is_none_or(|entity| record.entity == entity)
            && self.from.is_none_or(|from| record.time >= from)
            && self.to.is_none_or(|to| record.time <= to)
    }

    /// The records that match, in the requested order.
    fn matching(&self, records: &[Plain]) -> Vec<ProofId> {
        let matching = records
            .iter()
            .filter(|record| self.is_in_period(record))
            .filter(|record| self.decision.is_none_or(|decision| record.decision == decision))
            .filter(|record| self.risk.is_none_or(|risk| record.risk == risk))
            .filter(|record| self.outcome.is_none_or(|outcome| record.outcome == Some(outcome)))
            .filter(|record| self.intent.is_none_or(|intent| record.intent == intent));
        let mut matching: Vec<ProofId> = matching.map(|record| record.id.unwrap()).collect();
        if self.order == Order::NewestFirst {
            matching.reverse();
        }
        matching
    }
}

/// Size of the clock's step back in milliseconds: more than all times of an era.
const STEP: i64 = 200_000;

fn name(entity: usize) -> String {
    format!("agent-{entity}")
}

fn intent_id(intent: u128) -> IntentId {
    IntentId::new(Timestamp::from_millis(0), intent)
}

fn add(log: &ProofLog, record: &mut Plain) {
    let mut draft = draft(&name(record.entity), record.decision, record.risk, record.score);
    draft.intent = intent_id(record.intent);
    record.id = Some(decide(log, record.time, draft).unwrap());
}

fn tell(log: &ProofLog, record: &Plain) {
    if let Some(outcome) = record.outcome {
        report(log, record.id.unwrap(), outcome).unwrap();
    }
}

fn ids(items: &[rulekeep_types::ProofRecord]) -> Vec<ProofId> {
    items.iter().map(|record| record.id).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    /// Compares with a list that is filtered and folded.
    #[test]
    fn queries_and_statistics_agree_with_a_plain_list(
        records in proptest::collection::vec(plain(), 1..2500),
        reopen_at in proptest::collection::vec(0_usize..5000, 0..4),
        confirm_at in proptest::collection::btree_set(1_usize..2500, 0..3),
        questions in proptest::collection::vec(question(), 30),
    ) {
        let mut records = records;
        // At each of these places, the clock was confirmed to be far behind.
        let confirm_at: Vec<usize> = confirm_at.into_iter().filter(|place| *place < records.len()).collect();
        for (era, start) in [0].iter().chain(&confirm_at).copied().enumerate() {
            let end = confirm_at.get(era).copied().unwrap_or(records.len());
            let back = i64::try_from(era).unwrap() * STEP;
            records[start..end].iter_mut().for_each(|record| record.time -= back);
            records[start..end].sort_by_key(|record| record.time);
        }
        let folder = tempfile::tempdir().unwrap();
        let mut log = open_folder(folder.path());
        for (place, record) in records.iter_mut().enumerate() {
            if reopen_at.contains(&place) {
                log.close().unwrap();
                log = open_folder(folder.path());
            }
            if confirm_at.contains(&place) {
                log.accept_clock(Timestamp::from_millis(record.time), "ann".to_owned(), String::new()).unwrap();
            }
            add(&log, record);
        }
        // Outcomes come in another order than the decisions.
        for (place, record) in records.iter().rev().enumerate() {
            if reopen_at.contains(&(place + 2500)) {
                log.close().unwrap();
                log = open_folder(folder.path());
            }
            tell(&log, record);
        }
        for asked in questions {
            let matching = asked.matching(&records);
            let answer = log.query(&asked.query().page(asked.page).page_size(asked.page_size)).unwrap();
            let skip = usize::try_from((asked.page - 1) * asked.page_size).unwrap();
            let expected: Vec<ProofId> =
                matching.iter().skip(skip).take(usize::try_from(asked.page_size).unwrap()).copied().collect();
            prop_assert_eq!(answer.total, matching.len() as u64);
            prop_assert_eq!(ids(&answer.items), expected);
            prop_assert_eq!(answer.has_more, skip + answer.items.len() < matching.len() && !answer.items.is_empty());
            prop_assert_eq!(answer.next_cursor, None);

            let all: Vec<_> = log.records(&asked.query()).collect::<Result<_, _>>().unwrap();
            prop_assert_eq!(ids(&all), matching);
            for record in &all {
                let plain = records.iter().find(|plain| plain.id == Some(record.id)).unwrap();
                prop_assert_eq!((record.outcome, record.risk_level), (plain.outcome, plain.risk));
            }

            let Some(entity) = asked.entity else { continue };
            let in_period: Vec<&Plain> = records.iter().filter(|record| asked.is_in_period(record)).collect();
            let period = Period::new(asked.from.map(Timestamp::from_millis), asked.to.map(Timestamp::from_millis));
            let stats = log.stats(&name(entity), period).unwrap();
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
            let times = || in_period.iter().map(|record| record.time);
            let ends = times().min().zip(times().max());
            let shown = ends.map(|(first, last)| (asked.from.unwrap_or(first), asked.to.unwrap_or(last)));
            prop_assert_eq!(stats.period.from.map(Timestamp::as_millis), shown.map(|(from, _)| from));
            prop_assert_eq!(stats.period.to.map(Timestamp::as_millis), shown.map(|(_, to)| to));
        }
        prop_assert!(log.verify().unwrap().valid);
        log.close().unwrap();
        // The index was never rebuilt.
        prop_assert!(folder.path().join("view").exists() && !folder.path().join("view.damaged").exists());
    }

    /// Between the pages new records are written and the log is reopened. The pages together hold the records that
    /// existed at the first page.
    #[test]
    fn pages_by_cursor_are_those_of_the_beginning(
        records in proptest::collection::vec(plain(), 1..1200),
        new in proptest::collection::vec(plain(), 60),
        asked in question(),
        page_size in 1_u64..=60,
        reopen_at in 0_u64..6,
    ) {
        let mut records = records;
        records.sort_by_key(|record| record.time);
        let mut new = new;
        let folder = tempfile::tempdir().unwrap();
        let mut log = open_folder(folder.path());
        for record in &mut records {
            add(&log, record);
            tell(&log, record);
        }
        let matching = asked.matching(&records);
        let query = asked.query().page_size(page_size);
        let mut cursor = ProofCursor::START;
        let mut found = Vec::new();
        let mut new = new.iter_mut();
        for number in 1.. {
            let page = log.query(&query.clone().after(cursor)).unwrap();
            prop_assert_eq!((page.page, page.total), (number, matching.len() as u64));
            found.extend(ids(&page.items));
            prop_assert_eq!(page.has_more, found.len() < matching.len());
            prop_assert_eq!(page.next_cursor.is_some(), page.has_more);
            let Some(next) = page.next_cursor else { break };
            // The cursor survives being written as text.
            cursor = next.to_string().parse().unwrap();
            for record in new.by_ref().take(3) {
                record.time = 50;
                add(&log, record);
                tell(&log, record);
            }
            if number == reopen_at {
                log.close().unwrap();
                log = open_folder(folder.path());
            }
            let rest: Vec<_> = log.records(&query.clone().after(cursor)).map(|record| record.unwrap().id).collect();
            prop_assert_eq!(&rest[..], &matching[found.len()..]);
        }
        prop_assert_eq!(found, matching);
    }
}

#[test]
fn what_changed_never_takes_more_memory_than_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let log = open_folder(folder.path());
    let decide = |at: i64| {
        // A list of blocks, and many short ones.
        let entity = if at % 2 == 0 { "long".to_owned() } else { name(usize::try_from(at).unwrap()) };
        decide(&log, at, draft(&entity, Decision::Allow, RiskLevel::Low, 500)).unwrap()
    };
    let made: Vec<ProofId> = (0..3000).map(decide).collect();
    log.catch_up().unwrap();
    assert!(!log.is_index_heavy());
    // Late outcomes load blocks from all over the lists.
    for place in (0..3000).step_by(7).chain((1..3000).step_by(7)) {
        report(&log, made[place], Outcome::Success).unwrap();
    }
    log.catch_up().unwrap();
    assert!(!log.is_index_heavy());
    log.close().unwrap();

    // Nor while the index is rebuilt.
    std::fs::remove_dir_all(folder.path().join("view")).unwrap();
    let log = open_folder(folder.path());
    assert!(!log.is_index_heavy());
    assert_eq!(log.query(&ProofQuery::all()).unwrap().total, 3000);
    assert_eq!(log.stats("long", Period::default()).unwrap().total_records, 1500);
}

#[test]
fn a_late_outcome_moves_a_record_between_filters_under_a_cursor() {
    let log = open(MemoryFiles::new(), Durability::Buffered).unwrap().0;
    let draft = || draft("a", Decision::Allow, RiskLevel::Low, 500);
    let made: Vec<ProofId> = (0..6).map(|at| decide(&log, at, draft()).unwrap()).collect();
    for place in [1, 3, 5] {
        report(&log, made[place], Outcome::Success).unwrap();
    }
    let query = ProofQuery::all().outcome(Outcome::Success).page_size(1);
    let first = log.query(&query.clone().after(ProofCursor::START)).unwrap();
    assert_eq!((ids(&first.items), first.total), (vec![made[5]], 3));
    // One outcome for a record already returned, and one for a record still to come.
    decide(&log, 9, draft()).unwrap();
    report(&log, made[4], Outcome::Success).unwrap();
    report(&log, made[0], Outcome::Success).unwrap();
    let rest: Vec<_> = log.records(&query.clone().after(first.next_cursor.unwrap())).map(|r| r.unwrap().id).collect();
    assert_eq!(rest, [made[4], made[3], made[1], made[0]]);
    assert_eq!(log.query(&query.after(first.next_cursor.unwrap())).unwrap().total, 5);
}

#[test]
fn a_cursor_of_another_query_is_refused() {
    let log = open(MemoryFiles::new(), Durability::Buffered).unwrap().0;
    for at in 0..3 {
        decide(&log, at, draft("a", Decision::Allow, RiskLevel::Low, 500)).unwrap();
    }
    let query = ProofQuery::entity("a").page_size(1);
    let cursor = log.query(&query.clone().after(ProofCursor::START)).unwrap().next_cursor.unwrap();
    // The size of a page may change between pages.
    assert_eq!(log.query(&query.clone().page_size(2).after(cursor)).unwrap().items.len(), 2);
    for other in [
        ProofQuery::all(),
        ProofQuery::entity("b"),
        query.clone().order(Order::OldestFirst),
        query.clone().risk(RiskLevel::Low),
        query.clone().decision(Decision::Allow),
        query.clone().outcome(Outcome::Success),
        query.clone().intent(intent_id(1)),
        query.clone().from(Timestamp::from_millis(0)),
        query.clone().to(Timestamp::from_millis(9)),
    ] {
        let refused = log.query(&other.clone().after(cursor)).unwrap_err();
        assert!(matches!(refused, Error::InvalidQuery { parameter: "cursor", .. }), "{other:?}: {refused}");
        let refused = log.records(&other.after(cursor)).collect::<Vec<_>>();
        assert!(matches!(refused[..], [Err(Error::InvalidQuery { parameter: "cursor", .. })]));
    }
    let both = log.query(&query.after(cursor).page(2)).unwrap_err();
    assert!(matches!(both, Error::InvalidQuery { parameter: "page", .. }));
}

#[test]
fn records_of_a_closed_log_end_with_an_error() {
    let log = open(MemoryFiles::new(), Durability::Buffered).unwrap().0;
    for at in 0..600 {
        decide(&log, at, draft("a", Decision::Allow, RiskLevel::Low, 500)).unwrap();
    }
    let query = ProofQuery::all();
    let mut records = log.records(&query);
    assert!(records.next().unwrap().is_ok());
    log.close().unwrap();
    let rest: Vec<_> = records.collect();
    assert!(matches!(rest.last(), Some(Err(Error::StorageUnavailable { .. }))));
    assert!(rest.len() < 599, "the rest was found although the log is closed");
    assert_eq!(rest.iter().filter(|record| record.is_err()).count(), 1);
}
