//! Postings: what the index keeps of a record, in 16 bytes; blocks of them;
//! and the summary of a block, by which it need not be read.

use crate::model::{Decision, Outcome, RiskLevel, Score, Sequence};

/// What the index keeps of one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Posting {
    /// From the low end: sequence (48 bits), score (10), decision (2), risk (2), outcome (2).
    packed: u64,
    /// Milliseconds since 1970.
    pub(super) time: i64,
}

impl Posting {
    pub(super) fn new(sequence: Sequence, time: i64, decision: Decision, risk: RiskLevel, score: Score) -> Self {
        let packed = sequence.get()
            | u64::from(score.get()) << SCORE_AT
            | (decision as u64) << DECISION_AT
            | (risk as u64) << RISK_AT;
        Self { packed, time }
    }

    pub(super) fn sequence(self) -> Sequence {
        Sequence::new(self.packed)
    }

    pub(super) fn outcome(self) -> Option<Outcome> {
        // 0 stands for "not reported".
        self.outcome_code().checked_sub(1).and_then(|index| Outcome::ALL.get(index).copied())
    }

    fn score(self) -> u32 {
        (self.packed >> SCORE_AT) as u32 & 0x3ff
    }

    fn decision_code(self) -> usize {
        (self.packed >> DECISION_AT) as usize & 3
    }

    fn risk_code(self) -> usize {
        (self.packed >> RISK_AT) as usize & 3
    }

    fn outcome_code(self) -> usize {
        (self.packed >> OUTCOME_AT) as usize & 3
    }

    fn with_outcome(self, outcome: Outcome) -> Self {
        let cleared = self.packed & !(3 << OUTCOME_AT);
        Self { packed: cleared | (outcome as u64 + 1) << OUTCOME_AT, ..self }
    }

    pub(super) fn matches(self, filter: &Filter) -> bool {
        filter.covers(self.time)
            && filter.decision.is_none_or(|decision| decision as usize == self.decision_code())
            && filter.outcome.is_none_or(|outcome| outcome as usize + 1 == self.outcome_code())
    }
}

const SCORE_AT: u32 = 48;
const DECISION_AT: u32 = 58;
const RISK_AT: u32 = 60;
const OUTCOME_AT: u32 = 62;

/// Which records are meant. Times are inclusive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Filter {
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) decision: Option<Decision>,
    pub(crate) outcome: Option<Outcome>,
}

impl Filter {
    fn covers(&self, time: i64) -> bool {
        (self.from..=self.to).contains(&time)
    }
}

/// Up to [`Block::CAPACITY`] postings of one entity, in order.
#[derive(Debug, Clone, Default)]
pub(super) struct Block {
    postings: Vec<Posting>,
}

impl Block {
    pub(super) const CAPACITY: usize = 512;

    pub(super) fn push(&mut self, posting: Posting) {
        self.postings.push(posting);
    }

    pub(super) fn postings(&self) -> &[Posting] {
        &self.postings
    }

    /// Sets the outcome of a record; `None` when it is not here or has one.
    pub(super) fn set_outcome(&mut self, sequence: Sequence, outcome: Outcome) -> Option<()> {
        let place = self.postings.binary_search_by_key(&sequence, |posting| posting.sequence()).ok()?;
        let posting = self.postings.get_mut(place).filter(|posting| posting.outcome_code() == 0)?;
        *posting = posting.with_outcome(outcome);
        Some(())
    }

    pub(super) fn find(&self, sequence: Sequence) -> Option<Posting> {
        let place = self.postings.binary_search_by_key(&sequence, |posting| posting.sequence()).ok()?;
        self.postings.get(place).copied()
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        self.postings.iter().flat_map(|p| [p.packed.to_le_bytes(), p.time.to_le_bytes()]).flatten().collect()
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (words, rest) = bytes.as_chunks::<8>();
        let (pairs, odd) = words.as_chunks::<2>();
        let postings = pairs
            .iter()
            .map(|[packed, time]| Posting { packed: u64::from_le_bytes(*packed), time: i64::from_le_bytes(*time) })
            .collect();
        (rest.is_empty() && odd.is_empty()).then_some(Self { postings })
    }
}

/// Counts over postings: of a block, or of a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tally {
    /// By decision, then by outcome; outcome 0 is "not reported".
    by_decision_and_outcome: [[u64; 4]; 4],
    by_risk: [u64; 4],
    score_sum: u64,
}

impl Tally {
    pub(super) fn add_posting(&mut self, posting: Posting) {
        // The codes have two bits each and the arrays four places.
        if let Some(count) = self
            .by_decision_and_outcome
            .get_mut(posting.decision_code())
            .and_then(|outcomes| outcomes.get_mut(posting.outcome_code()))
        {
            *count += 1;
        }
        if let Some(count) = self.by_risk.get_mut(posting.risk_code()) {
            *count += 1;
        }
        self.score_sum += u64::from(posting.score());
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (ours, theirs) in
            self.by_decision_and_outcome.iter_mut().flatten().zip(other.by_decision_and_outcome.iter().flatten())
        {
            *ours += theirs;
        }
        for (ours, theirs) in self.by_risk.iter_mut().zip(other.by_risk) {
            *ours += theirs;
        }
        self.score_sum += other.score_sum;
    }

    pub(super) fn move_outcome(&mut self, decision: usize, outcome: Outcome) {
        if let Some([unreported, reported @ ..]) = self.by_decision_and_outcome.get_mut(decision) {
            *unreported = unreported.saturating_sub(1);
            if let Some(count) = reported.get_mut(outcome as usize) {
                *count += 1;
            }
        }
    }

    pub(crate) fn total(&self) -> u64 {
        self.by_risk.iter().sum()
    }

    pub(crate) fn score_sum(&self) -> u64 {
        self.score_sum
    }

    pub(crate) fn with_decision(&self, decision: Decision) -> u64 {
        self.by_decision_and_outcome.get(decision as usize).map_or(0, |outcomes| outcomes.iter().sum())
    }

    pub(crate) fn with_risk(&self, risk: RiskLevel) -> u64 {
        self.by_risk.get(risk as usize).copied().unwrap_or(0)
    }

    pub(crate) fn with_outcome(&self, outcome: Outcome) -> u64 {
        self.by_decision_and_outcome.iter().filter_map(|outcomes| outcomes.get(outcome as usize + 1)).sum()
    }

    /// How many match the filter's decision and outcome, whatever their time.
    pub(super) fn count(&self, filter: &Filter) -> u64 {
        let decisions = self.by_decision_and_outcome.iter().enumerate();
        let wanted = decisions.filter(|(code, _)| filter.decision.is_none_or(|decision| decision as usize == *code));
        wanted
            .map(|(_, outcomes)| match filter.outcome {
                Some(outcome) => outcomes.get(outcome as usize + 1).copied().unwrap_or(0),
                None => outcomes.iter().sum(),
            })
            .sum()
    }

    fn counts(&self) -> impl Iterator<Item = u64> + '_ {
        let counts = self.by_decision_and_outcome.iter().flatten().chain(&self.by_risk);
        counts.copied().chain([self.score_sum])
    }

    fn counts_mut(&mut self) -> impl Iterator<Item = &mut u64> {
        let counts = self.by_decision_and_outcome.iter_mut().flatten().chain(&mut self.by_risk);
        counts.chain([&mut self.score_sum])
    }
}

/// What is known of a block without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) first: Sequence,
    pub(super) first_time: i64,
    pub(super) last_time: i64,
    pub(super) tally: Tally,
}

impl Summary {
    /// Bytes of a summary as it is stored: three numbers of 8, and 21 of 4.
    pub(super) const BYTES: usize = 3 * 8 + 21 * 4;

    pub(super) fn new(posting: Posting) -> Self {
        let mut summary = Self {
            first: posting.sequence(),
            first_time: posting.time,
            last_time: posting.time,
            tally: Tally::default(),
        };
        summary.add(posting);
        summary
    }

    pub(super) fn add(&mut self, posting: Posting) {
        self.last_time = posting.time;
        self.tally.add_posting(posting);
    }

    pub(super) fn set_outcome(&mut self, posting: Posting, outcome: Outcome) {
        self.tally.move_outcome(posting.decision_code(), outcome);
    }

    pub(super) fn is_within(&self, filter: &Filter) -> bool {
        filter.covers(self.first_time) && filter.covers(self.last_time)
    }

    pub(super) fn is_outside(&self, filter: &Filter) -> bool {
        self.last_time < filter.from || self.first_time > filter.to
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.first.get().to_le_bytes());
        out.extend_from_slice(&self.first_time.to_le_bytes());
        out.extend_from_slice(&self.last_time.to_le_bytes());
        for count in self.tally.counts() {
            // A block has 512 postings at most, and 512 scores of 1000 fit 32 bits.
            out.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
        }
    }

    pub(super) fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        let word =
            |at: usize| bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes);
        let mut tally = Tally::default();
        for (count, place) in tally.counts_mut().zip((24..).step_by(4)) {
            *count =
                bytes.get(place..place + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_le_bytes).into();
        }
        Self {
            first: Sequence::new(word(0)),
            first_time: word(8).cast_signed(),
            last_time: word(16).cast_signed(),
            tally,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_posting_keeps_everything_apart() {
        for &decision in Decision::ALL {
            for &risk in RiskLevel::ALL {
                for outcome in [None, Some(Outcome::Success), Some(Outcome::Failure), Some(Outcome::Escalated)] {
                    let sequence = Sequence::new((1 << 48) - 1);
                    let mut posting = Posting::new(sequence, 5, decision, risk, Score::MAX);
                    if let Some(outcome) = outcome {
                        posting = posting.with_outcome(outcome);
                    }
                    assert_eq!((posting.sequence(), posting.outcome(), posting.score()), (sequence, outcome, 1000));
                    let mut tally = Tally::default();
                    tally.add_posting(posting);
                    assert_eq!((tally.with_decision(decision), tally.with_risk(risk), tally.total()), (1, 1, 1));
                }
            }
        }
    }

    #[test]
    fn blocks_and_summaries_read_back() {
        let mut block = Block::default();
        let first = Posting::new(Sequence::new(3), -5, Decision::Deny, RiskLevel::High, Score::saturating(700));
        let mut summary = Summary::new(first);
        block.push(first);
        let second = Posting::new(Sequence::new(9), 7, Decision::Allow, RiskLevel::Low, Score::MAX);
        block.push(second);
        summary.add(second);
        block.set_outcome(Sequence::new(9), Outcome::Failure).unwrap();
        summary.set_outcome(second, Outcome::Failure);

        let read = Block::decode(&block.encode()).unwrap();
        assert_eq!(read.postings(), block.postings());
        let mut bytes = Vec::new();
        summary.encode(&mut bytes);
        assert_eq!(Summary::decode(bytes.as_slice().try_into().unwrap()), summary);
        assert_eq!(summary.tally.with_outcome(Outcome::Failure), 1);
    }

    #[test]
    fn a_second_outcome_is_not_taken() {
        let mut block = Block::default();
        block.push(Posting::new(Sequence::new(3), 0, Decision::Allow, RiskLevel::Low, Score::MAX));
        assert!(block.set_outcome(Sequence::new(3), Outcome::Success).is_some());
        assert!(block.set_outcome(Sequence::new(3), Outcome::Failure).is_none());
        assert!(block.set_outcome(Sequence::new(4), Outcome::Success).is_none());
    }
}
