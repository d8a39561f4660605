//! Postings, the 16 bytes that the index keeps for each record; filters over them; and blocks of them.

use rulekeep_types::{Decision, Outcome, RiskLevel, Score, Sequence};

/// The data that the index keeps for one record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Posting {
    /// The packed fields, from the low end: sequence (48 bits), score (10), decision (2), risk (2), outcome (2).
    packed: u64,
    /// The record's time in milliseconds since 1970.
    pub(super) time: i64,
}

impl Posting {
    /// Size of a stored posting in bytes.
    pub(super) const BYTES: usize = 16;

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
        let code = (self.packed >> OUTCOME_AT) as usize;
        code.checked_sub(1).and_then(|index| Outcome::ALL.get(index).copied())
    }

    pub(super) fn score(self) -> u32 {
        (self.packed >> SCORE_AT) as u32 & 0x3ff
    }

    /// The combination of decision, risk and outcome, as a number below 64.
    pub(super) fn cell(self) -> usize {
        (self.packed >> DECISION_AT) as usize
    }

    /// Everything except the time.
    pub(super) fn packed(self) -> u64 {
        self.packed
    }

    pub(super) fn without_outcome(self) -> Self {
        Self { packed: self.packed & !(3 << OUTCOME_AT), ..self }
    }

    fn with_outcome(self, outcome: Outcome) -> Self {
        let cleared = self.packed & !(3 << OUTCOME_AT);
        Self { packed: cleared | (outcome as u64 + 1) << OUTCOME_AT, ..self }
    }
}

const SCORE_AT: u32 = 48;
const DECISION_AT: u32 = 58;
const RISK_AT: u32 = 60;
const OUTCOME_AT: u32 = 62;

/// Number of combinations of decision, risk and outcome.
pub(super) const CELLS: usize = 64;

/// A set of combinations of decision, risk and outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cells(u64);

impl Cells {
    /// The combinations with the given decision, risk and outcome, as far as given.
    pub(crate) fn of(decision: Option<Decision>, risk: Option<RiskLevel>, outcome: Option<Outcome>) -> Self {
        let has = |cell: usize| {
            decision.is_none_or(|decision| decision as usize == cell & 3)
                && risk.is_none_or(|risk| risk as usize == cell >> 2 & 3)
                && outcome.is_none_or(|outcome| outcome as usize + 1 == cell >> 4)
        };
        Self((0..CELLS).filter(|cell| has(*cell)).fold(0, |cells, cell| cells | 1 << cell))
    }

    /// The combinations that are not denied and have no outcome.
    pub(crate) fn open() -> Self {
        let denied = Self::of(Some(Decision::Deny), None, None);
        Self((0..CELLS).filter(|cell| cell >> 4 == 0 && !denied.has(*cell)).fold(0, |cells, cell| cells | 1 << cell))
    }

    /// The combinations in both sets.
    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) fn to_bytes(self) -> [u8; 8] {
        self.0.to_be_bytes()
    }

    pub(super) fn has(self, cell: usize) -> bool {
        self.0 >> cell & 1 == 1
    }

    /// Iterates over the combinations in the set.
    pub(super) fn iter(self) -> impl Iterator<Item = usize> {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            let cell = rest.trailing_zeros();
            rest &= rest.checked_sub(1)?;
            Some(cell as usize)
        })
    }
}

/// A filter on records. All bounds are inclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Filter {
    /// The earliest time in milliseconds since 1970.
    pub(crate) from: i64,
    pub(crate) to: i64,
    /// The lowest sequence.
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) cells: Cells,
}

impl Filter {
    /// Selects every record of a period.
    pub(crate) fn period(from: i64, to: i64) -> Self {
        Self { from, to, first: 0, last: u64::MAX, cells: Cells::of(None, None, None) }
    }

    /// Returns whether a record with this sequence and time lies before all selected ones.
    pub(super) fn is_before(&self, sequence: Sequence, time: i64) -> bool {
        sequence.get() < self.first || time < self.from
    }

    /// Returns whether a record with this sequence and time does not lie after all selected ones.
    pub(super) fn is_not_behind(&self, sequence: Sequence, time: i64) -> bool {
        sequence.get() <= self.last && time <= self.to
    }
}

/// Up to [`Block::CAPACITY`] postings of one list, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Block {
    postings: Vec<Posting>,
}

impl Block {
    pub(super) const CAPACITY: usize = 512;

    pub(super) fn push(&mut self, posting: Posting) {
        if self.postings.len() == self.postings.capacity() {
            // Most lists stay short. Longer ones grow in two steps, for many sizes would leave holes in the heap.
            self.postings.reserve_exact(match self.postings.len() {
                0..FEW => 2,
                FEW..MIDDLE => MIDDLE - self.postings.len(),
                len => Self::CAPACITY.saturating_sub(len).max(1),
            });
        }
        self.postings.push(posting);
    }

    /// Memory that the block takes, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.postings.capacity() * Posting::BYTES
    }

    pub(super) fn postings(&self) -> &[Posting] {
        &self.postings
    }

    /// Sets the outcome of a record. Returns the posting before and after; `None` if it is not here or already has an
    /// outcome.
    pub(super) fn set_outcome(&mut self, sequence: Sequence, outcome: Outcome) -> Option<(Posting, Posting)> {
        let place = self.postings.binary_search_by_key(&sequence, |posting| posting.sequence()).ok()?;
        let posting = self.postings.get_mut(place).filter(|posting| posting.outcome().is_none())?;
        let before = *posting;
        *posting = posting.with_outcome(outcome);
        Some((before, *posting))
    }

    pub(super) fn find(&self, sequence: Sequence) -> Option<Posting> {
        let place = self.postings.binary_search_by_key(&sequence, |posting| posting.sequence()).ok()?;
        self.postings.get(place).copied()
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.reserve(self.postings.len() * Posting::BYTES);
        for posting in &self.postings {
            out.extend_from_slice(&posting.packed.to_le_bytes());
            out.extend_from_slice(&posting.time.to_le_bytes());
        }
    }

    /// Encodes a block in the view: each posting as the distance of its sequence and of its time to those of the one
    /// before, in groups of seven bits, and 16 bits for the rest.
    pub(super) fn pack(&self, out: &mut Vec<u8>) {
        let (mut sequence, mut time) = (0, 0);
        for posting in &self.postings {
            push_number(out, posting.sequence().get().wrapping_sub(sequence));
            let step = posting.time.wrapping_sub(time);
            push_number(out, (step << 1 ^ step >> (i64::BITS - 1)).cast_unsigned());
            out.extend_from_slice(&((posting.packed >> SCORE_AT) as u16).to_le_bytes());
            (sequence, time) = (posting.sequence().get(), posting.time);
        }
    }

    pub(super) fn unpack(mut bytes: &[u8]) -> Option<Self> {
        let mut postings = Vec::with_capacity(Self::CAPACITY.min(bytes.len() / 4));
        let (mut sequence, mut time) = (0_u64, 0_i64);
        while !bytes.is_empty() {
            sequence = sequence.wrapping_add(take_number(&mut bytes)?);
            let step = take_number(&mut bytes)?;
            time = time.wrapping_add((step >> 1).cast_signed() ^ -(step & 1).cast_signed());
            let (rest, behind) = bytes.split_first_chunk::<2>()?;
            bytes = behind;
            let packed = Sequence::new(sequence).get() | u64::from(u16::from_le_bytes(*rest)) << SCORE_AT;
            postings.push(Posting { packed, time });
        }
        Some(Self { postings })
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

#[allow(clippy::cast_possible_truncation)] // seven bits at a time
fn push_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0..10 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << (7 * place);
        if *byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Number of postings for which a block that is no short list any more has room at first.
const MIDDLE: usize = 64;
/// Number of postings above which a list gets blocks of its own.
pub(super) const FEW: usize = 8;

#[cfg(test)]
mod tests {
    use super::super::sums::Sums;
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
                    let mut sums = Sums::default();
                    sums.add_posting(posting);
                    assert_eq!((sums.with_decision(decision), sums.with_risk(risk), sums.total()), (1, 1, 1));
                    let reported: u64 = Outcome::ALL.iter().map(|outcome| sums.with_outcome(*outcome)).sum();
                    assert_eq!(reported, u64::from(outcome.is_some()));
                }
            }
        }
    }

    #[test]
    fn cells_are_those_that_have_what_is_given() {
        let all = Cells::of(None, None, None);
        assert_eq!(all.iter().count(), CELLS);
        for &decision in Decision::ALL {
            for &risk in RiskLevel::ALL {
                let posting = Posting::new(Sequence::new(1), 0, decision, risk, Score::MAX);
                for outcome in [None, Some(Outcome::Success), Some(Outcome::Failure), Some(Outcome::Escalated)] {
                    let posting = outcome.map_or(posting, |outcome| posting.with_outcome(outcome));
                    for (asked, expected) in [
                        (Cells::of(Some(decision), Some(risk), None), true),
                        (Cells::of(None, None, outcome), true),
                        (Cells::of(Some(Decision::Deny), None, None), decision == Decision::Deny),
                        (Cells::of(None, Some(RiskLevel::High), None), risk == RiskLevel::High),
                        (Cells::of(None, None, Some(Outcome::Failure)), outcome == Some(Outcome::Failure)),
                    ] {
                        assert_eq!(asked.has(posting.cell()), expected);
                        assert_eq!(asked.iter().any(|cell| cell == posting.cell()), expected);
                    }
                }
            }
        }
    }

    #[test]
    fn blocks_read_back() {
        let mut block = Block::default();
        block.push(Posting::new(Sequence::new(3), -5, Decision::Deny, RiskLevel::High, Score::saturating(700)));
        block.push(Posting::new(Sequence::new(9), 7, Decision::Allow, RiskLevel::Low, Score::MAX));
        block.set_outcome(Sequence::new(9), Outcome::Failure).unwrap();
        let mut bytes = Vec::new();
        block.encode(&mut bytes);
        assert_eq!(Block::decode(&bytes).unwrap(), block);
        assert!(Block::decode(&bytes[1..]).is_none());
        let mut packed = Vec::new();
        block.pack(&mut packed);
        assert_eq!((Block::unpack(&packed).unwrap(), packed.len()), (block, 8));
        assert!(Block::unpack(&packed[..7]).is_none());
    }

    proptest::proptest! {
        #[test]
        fn a_packed_block_reads_back(postings in proptest::collection::vec((0_u64..1 << 48, proptest::num::i64::ANY, proptest::num::u16::ANY), 0..40)) {
            let postings = postings.into_iter().map(|(sequence, time, rest)| Posting {
                packed: sequence | u64::from(rest) << SCORE_AT,
                time,
            });
            let block = Block { postings: postings.collect() };
            let mut packed = Vec::new();
            block.pack(&mut packed);
            proptest::prop_assert_eq!(Block::unpack(&packed), Some(block));
        }
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
