//! Random histories with kills and power failures, compared with a list.

use std::collections::BTreeMap;

use super::*;
use rulekeep_types::{Alert, AlertKind};

/// The next operation on the log.
#[derive(Debug, Clone)]
enum Step {
    Decide { entity: usize, decision: Decision, risk: RiskLevel, score: i64, pause: i64 },
    Report { which: prop::sample::Index, outcome: Outcome },
    State { key: usize, value: u32 },
    Alert,
    Query { entity: usize, decision: Option<Decision>, outcome: Option<Outcome>, page_size: u64 },
    Stats { entity: usize },
    Verify,
    Flush,
    Close(Mode),
    Kill(Mode),
    PowerCut { seed: u64, in_the_middle: Option<u64>, then: Mode },
}

/// The mode in which the log is opened next.
#[derive(Debug, Clone, Copy)]
enum Mode {
    Sync,
    Buffered,
}

fn step() -> impl Strategy<Value = Step> {
    let mode = || prop_oneof![Just(Mode::Sync), Just(Mode::Buffered)];
    let decisions = || proptest::sample::select(Decision::ALL);
    let outcomes = || proptest::sample::select(Outcome::ALL);
    prop_oneof![
        12 => (0_usize..3, decisions(), proptest::sample::select(RiskLevel::ALL), 0_i64..=1000, -2_i64..5)
            .prop_map(|(entity, decision, risk, score, pause)| Step::Decide { entity, decision, risk, score, pause }),
        6 => (any::<prop::sample::Index>(), outcomes()).prop_map(|(which, outcome)| Step::Report { which, outcome }),
        3 => (0_usize..4, any::<u32>()).prop_map(|(key, value)| Step::State { key, value }),
        1 => Just(Step::Alert),
        2 => (0_usize..4, proptest::option::of(decisions()), proptest::option::of(outcomes()), 1_u64..=200)
            .prop_map(|(entity, decision, outcome, page_size)| Step::Query { entity, decision, outcome, page_size }),
        1 => (0_usize..4).prop_map(|entity| Step::Stats { entity }),
        1 => Just(Step::Verify),
        1 => Just(Step::Flush),
        1 => mode().prop_map(Step::Close),
        1 => mode().prop_map(Step::Kill),
        2 => (any::<u64>(), proptest::option::of(0_u64..12), mode())
            .prop_map(|(seed, in_the_middle, then)| Step::PowerCut { seed, in_the_middle, then }),
    ]
}

/// An entry that was enqueued.
#[derive(Debug, Clone)]
struct Entry {
    sequence: u64,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    Decision { id: ProofId, at: Timestamp, entity: usize, decision: Decision, risk: RiskLevel, score: i64 },
    Outcome { of: ProofId, outcome: Outcome },
    State { key: String, value: String },
    Alert,
}

/// The log and the list that models it.
struct Twin {
    disk: CrashFiles,
    log: ProofLog,
    mode: Mode,
    now: i64,
    random: u32,
    entries: Vec<Entry>,
    /// Number of entries that must survive a power failure.
    certain: usize,
    /// Entries that were lost and must not come back.
    lost: Vec<ProofId>,
    /// Copies of torn tails, and their sizes.
    copies: Vec<(String, usize)>,
}

impl Twin {
    fn new(mode: Mode) -> Self {
        let disk = CrashFiles::new();
        let (log, startup) = open_small(disk.clone(), mode.durability()).unwrap();
        assert!(startup.created);
        Self { disk, log, mode, now: 0, random: 0, entries: vec![], certain: 0, lost: vec![], copies: vec![] }
    }

    /// Carries out a step. Returns an error only if the disk has lost its power.
    fn take(&mut self, step: &Step) -> Result<(), Error> {
        match step {
            Step::Decide { entity, decision, risk, score, pause } => {
                self.now += pause;
                self.random += 1;
                let draft = DecisionDraft { random: self.random, ..draft(&name(*entity), *decision, *risk, *score) };
                let made = self.log.queue().decide(Timestamp::from_millis(self.now), draft, 0)?.unwrap();
                let what = What::Decision {
                    id: made.proof_id,
                    at: made.at,
                    entity: *entity,
                    decision: *decision,
                    risk: *risk,
                    score: *score,
                };
                self.ordered(made.sequence.get(), what)?;
            }
            Step::Report { which, outcome } => self.report(*which, *outcome)?,
            Step::State { key, value } => {
                let (key, value) = (format!("agent/{key}"), format!("{{\"value\":{value}}}"));
                let state = StateDraft::new(key.clone(), value.clone());
                let sequence =
                    self.log.queue().set_state(Timestamp::from_millis(self.now), state, "model".to_owned())?;
                self.ordered(sequence.get(), What::State { key, value })?;
            }
            Step::Alert => {
                let alert = Alert::new(AlertKind::ALL[0], RiskLevel::High, name(0).parse().ok(), "look".to_owned());
                let sequence = self.log.alert(Timestamp::from_millis(self.now), alert, None)?;
                self.ordered(sequence.get(), What::Alert)?;
            }
            Step::Query { entity, decision, outcome, page_size } => {
                self.query(*entity, *decision, *outcome, *page_size)?;
            }
            Step::Stats { entity } => self.stats(*entity)?,
            Step::Verify => {
                let verification = self.log.verify()?;
                assert!(verification.valid, "{:?}", verification.first_broken);
                assert_eq!(verification.records, self.decisions().count() as u64);
                self.shown();
            }
            Step::Flush => {
                self.log.flush()?;
                self.shown();
            }
            Step::Close(then) => {
                self.log.close()?;
                self.shown();
                self.open(self.disk.kill(), *then);
            }
            Step::Kill(then) => self.open(self.disk.kill(), *then),
            Step::PowerCut { seed, in_the_middle, then } => {
                if let Some(calls) = in_the_middle {
                    self.disk.power_off_after(*calls);
                    self.work_without_power();
                }
                self.open(self.disk.crash(&mut Dice::new(*seed)), *then);
            }
        }
        Ok(())
    }

    fn ordered(&mut self, sequence: u64, what: What) -> Result<(), Error> {
        // From now on the entry may be on disk, acknowledged or not.
        self.entries.push(Entry { sequence, what });
        self.log.settle(rulekeep_types::Sequence::new(sequence))?;
        if let Mode::Sync = self.mode {
            self.shown();
        }
        Ok(())
    }

    fn report(&mut self, which: prop::sample::Index, outcome: Outcome) -> Result<(), Error> {
        let Some(of) = Some(self.decisions().count()).filter(|count| *count > 0).map(|count| which.index(count)) else {
            return Ok(());
        };
        let (id, entity) = self.decisions().map(|(id, entity, ..)| (id, entity)).nth(of).unwrap();
        let draft = OutcomeDraft {
            proof_id: id,
            entity: name(entity).parse().unwrap(),
            outcome,
            note: None,
            state: None,
            asked: None,
            trust: None,
            basis: None,
        };
        let facts = self.log.facts(&id)?;
        assert_eq!(facts.entity.as_str(), name(entity));
        let reserved = self.log.reserve_for(&draft.entity, &id, outcome);
        let taken = reserved
            .and_then(|reserved| reserved.map(|it| it.report(Timestamp::from_millis(self.now), draft)).transpose());
        match (self.outcome_of(&id), taken) {
            (None, Ok(Some(sequence))) => self.ordered(sequence.get(), What::Outcome { of: id, outcome }),
            (Some(standing), Ok(None)) if standing == outcome => Ok(()),
            (Some(standing), Err(error)) if error.code() == "CONFLICT" => {
                assert_ne!(standing, outcome);
                Ok(())
            }
            (_, Err(error)) => Err(error),
            (standing, Ok(taken)) => panic!("{standing:?} stood, {outcome} was taken as {taken:?}"),
        }
    }

    fn query(
        &mut self,
        entity: usize,
        decision: Option<Decision>,
        outcome: Option<Outcome>,
        page_size: u64,
    ) -> Result<(), Error> {
        let mut query = ProofQuery::entity(name(entity)).page_size(page_size);
        if let Some(decision) = decision {
            query = query.decision(decision);
        }
        if let Some(outcome) = outcome {
            query = query.outcome(outcome);
        }
        let answer = self.log.query(&query)?;
        let mut matching: Vec<ProofId> = self
            .decisions()
            .filter(|(_, of, made)| *of == entity && decision.is_none_or(|decision| *made == decision))
            .map(|(id, ..)| id)
            .filter(|id| outcome.is_none_or(|outcome| self.outcome_of(id) == Some(outcome)))
            .collect();
        matching.reverse();
        assert_eq!(answer.total, matching.len() as u64);
        matching.truncate(usize::try_from(page_size).unwrap());
        assert_eq!(answer.items.iter().map(|record| record.id).collect::<Vec<_>>(), matching);
        self.shown();
        Ok(())
    }

    fn stats(&mut self, entity: usize) -> Result<(), Error> {
        let stats = self.log.stats(&name(entity), Period::default())?;
        let of_entity = || self.decisions().filter(|(_, of, _)| *of == entity);
        assert_eq!(stats.total_records, of_entity().count() as u64);
        for word in Decision::ALL {
            assert_eq!(stats.decision_breakdown[word], of_entity().filter(|(.., made)| made == word).count() as u64);
        }
        let reported = of_entity().filter_map(|(id, ..)| self.outcome_of(&id)).collect::<Vec<_>>();
        let successes = reported.iter().filter(|outcome| **outcome == Outcome::Success).count();
        let rate = if reported.is_empty() { 0.0 } else { successes as f64 / reported.len() as f64 };
        assert!((stats.success_rate - rate).abs() < 1e-12);
        assert!(stats.chain_integrity);
        self.shown();
        Ok(())
    }

    /// Marks all entries as durable: they were acknowledged in Sync mode, or returned by a query.
    fn shown(&mut self) {
        self.certain = self.entries.len();
    }

    /// Continues until the disk fails.
    fn work_without_power(&mut self) {
        for round in 0..3 {
            let decision =
                Step::Decide { entity: round, decision: Decision::Allow, risk: RiskLevel::Low, score: 1, pause: 1 };
            if self.take(&decision).and_then(|()| self.take(&Step::Alert)).is_err() {
                return;
            }
        }
        let _ = self.take(&Step::Flush);
    }

    /// Opens the remains of the disk and compares the log with the list.
    fn open(&mut self, disk: CrashFiles, mode: Mode) {
        let (log, startup) = open_small(disk.clone(), mode.durability()).unwrap();
        (self.disk, self.log, self.mode) = (disk, log, mode);
        assert!(!startup.created);
        let found = self.log.state();
        assert!(found.breakage.is_none() && found.refusing.is_none(), "{found:?}");
        let kept = found.totals.applied.entries - u64::from(startup.recovered.is_some());
        let count = self.entries.partition_point(|entry| entry.sequence < kept);
        assert!(count >= self.certain, "{} were certain, {count} are there", self.certain);
        let gone = self.entries.split_off(count);
        self.lost.extend(gone.iter().filter_map(|entry| match entry.what {
            What::Decision { id, .. } => Some(id),
            _ => None,
        }));
        // Entries found by an open may be built upon.
        self.shown();
        self.copies.extend(startup.recovered.map(|recovered| (recovered.copy, recovered.bytes)));
        for (copy, bytes) in &self.copies {
            assert_eq!(self.disk.content(Path::new(copy)).map(|copy| copy.len()), Some(*bytes), "{copy}");
        }
        let states: Vec<(String, Vec<u8>)> = self.states().into_iter().collect();
        assert_eq!(startup.states, states);
        self.compare_records();
    }

    fn compare_records(&self) {
        let verification = self.log.verify().unwrap();
        assert!(verification.valid, "{:?}", verification.first_broken);
        assert_eq!(verification.records, self.decisions().count() as u64);
        for entry in &self.entries {
            let What::Decision { id, at, entity, decision, risk, score } = &entry.what else { continue };
            let record = self.log.record(id).unwrap();
            assert_eq!((record.entity_id.as_str(), record.timestamp), (name(*entity).as_str(), *at));
            assert_eq!((record.decision, record.risk_level), (*decision, *risk));
            assert_eq!(record.trust_score, Score::saturating(*score));
            assert_eq!(record.outcome, self.outcome_of(id));
        }
        for id in &self.lost {
            assert_eq!(self.log.record(id).unwrap_err().code(), "PROOF_NOT_FOUND");
        }
    }

    fn decisions(&self) -> impl Iterator<Item = (ProofId, usize, Decision)> {
        self.entries.iter().filter_map(|entry| match entry.what {
            What::Decision { id, entity, decision, .. } => Some((id, entity, decision)),
            _ => None,
        })
    }

    fn outcome_of(&self, id: &ProofId) -> Option<Outcome> {
        self.entries.iter().find_map(|entry| match &entry.what {
            What::Outcome { of, outcome } if of == id => Some(*outcome),
            _ => None,
        })
    }

    fn states(&self) -> BTreeMap<String, Vec<u8>> {
        let states = self.entries.iter().filter_map(|entry| match &entry.what {
            What::State { key, value } => Some((key.clone(), value.clone().into_bytes())),
            _ => None,
        });
        states.collect()
    }
}

impl Mode {
    fn durability(self) -> Durability {
        match self {
            Self::Sync => Durability::Sync,
            Self::Buffered => Durability::Buffered,
        }
    }
}

fn name(entity: usize) -> String {
    format!("agent-{entity}")
}

fn cases() -> u32 {
    std::env::var("RULEKEEP_MODEL_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(24)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn a_log_is_a_list_whatever_happens_to_it(steps in proptest::collection::vec(step(), 1..120)) {
        let mut twin = Twin::new(Mode::Sync);
        for step in steps.iter().chain([&Step::Verify, &Step::Close(Mode::Sync)]) {
            twin.take(step).unwrap();
        }
    }
}
