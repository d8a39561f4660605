//! Sums over postings: those of a block, which make it unnecessary to read it, and those of any range of blocks, from
//! a tree of sums.

use super::posting::{Block, CELLS, Cells, Posting};
use rulekeep_types::{Decision, Outcome, RiskLevel, Sequence};

/// Counts over postings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sums {
    /// Counts by combination of decision, risk and outcome.
    cells: [u64; CELLS],
    score_sum: u64,
}

impl Default for Sums {
    fn default() -> Self {
        Self { cells: [0; CELLS], score_sum: 0 }
    }
}

impl Sums {
    pub(crate) fn total(&self) -> u64 {
        self.cells.iter().sum()
    }

    pub(crate) fn score_sum(&self) -> u64 {
        self.score_sum
    }

    pub(crate) fn with_decision(&self, decision: Decision) -> u64 {
        self.count(Cells::of(Some(decision), None, None))
    }

    pub(crate) fn with_risk(&self, risk: RiskLevel) -> u64 {
        self.count(Cells::of(None, Some(risk), None))
    }

    pub(crate) fn with_outcome(&self, outcome: Outcome) -> u64 {
        self.count(Cells::of(None, None, Some(outcome)))
    }

    pub(super) fn add_posting(&mut self, posting: Posting) {
        // A cell is a number of six bits, for which there is always a count.
        if let Some(count) = self.cells.get_mut(posting.cell()) {
            *count += 1;
        }
        self.score_sum += u64::from(posting.score());
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (ours, theirs) in self.cells.iter_mut().zip(other.cells) {
            *ours += theirs;
        }
        self.score_sum += other.score_sum;
    }

    /// Subtracts sums that are part of these.
    pub(super) fn without(mut self, part: &Self) -> Self {
        for (ours, theirs) in self.cells.iter_mut().zip(part.cells) {
            *ours = ours.saturating_sub(theirs);
        }
        self.score_sum = self.score_sum.saturating_sub(part.score_sum);
        self
    }

    pub(super) fn count(&self, cells: Cells) -> u64 {
        cells.iter().filter_map(|cell| self.cells.get(cell)).sum()
    }

    fn add_summary(&mut self, summary: &Summary) {
        for (ours, theirs) in self.cells.iter_mut().zip(summary.cells) {
            *ours += u64::from(theirs);
        }
        self.score_sum += u64::from(summary.score_sum);
    }

    fn move_cell(&mut self, from: usize, to: usize) {
        if let Some(count) = self.cells.get_mut(from) {
            *count = count.saturating_sub(1);
        }
        if let Some(count) = self.cells.get_mut(to) {
            *count += 1;
        }
    }
}

/// The sums and bounds of a block, known without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) first: Sequence,
    pub(super) last: Sequence,
    pub(super) first_time: i64,
    pub(super) last_time: i64,
    /// The number under which the view has the full block; [`OPEN`] while it grows.
    pub(super) id: u32,
    // A block has at most 512 postings, and 512 scores of 1000 fit into 32 bits.
    cells: [u16; CELLS],
    score_sum: u32,
}

/// Stands for the number of a block that is not full.
pub(super) const OPEN: u32 = u32::MAX;

impl Summary {
    /// Size of a stored summary in bytes: four numbers of 8, two of 4 and 64 of 2.
    pub(super) const BYTES: usize = 4 * 8 + 2 * 4 + 2 * CELLS;

    pub(super) fn new(posting: Posting) -> Self {
        let mut summary = Self {
            first: posting.sequence(),
            last: posting.sequence(),
            first_time: posting.time,
            last_time: posting.time,
            id: OPEN,
            cells: [0; CELLS],
            score_sum: 0,
        };
        summary.add(posting);
        summary
    }

    /// Returns the summary of a block; `None` if it has no postings.
    pub(super) fn of(block: &Block) -> Option<Self> {
        let (first, rest) = block.postings().split_first()?;
        let mut summary = Self::new(*first);
        for posting in rest {
            summary.add(*posting);
        }
        Some(summary)
    }

    /// The summary of a block that has the number.
    pub(super) fn numbered(self, id: u32) -> Self {
        Self { id, ..self }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        for word in [self.first.get(), self.last.get(), self.first_time.cast_unsigned(), self.last_time.cast_unsigned()]
        {
            out.extend_from_slice(&word.to_le_bytes());
        }
        for number in [self.score_sum, self.id] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend(self.cells.iter().flat_map(|count| count.to_le_bytes()));
    }

    pub(super) fn decode(bytes: &[u8; Self::BYTES]) -> Self {
        let word =
            |at: usize| bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes);
        let number =
            |at: usize| bytes.get(at..at + 4).and_then(|word| word.try_into().ok()).map_or(0, u32::from_le_bytes);
        let (counts, _) = bytes.get(40..).unwrap_or_default().as_chunks::<2>();
        Self {
            first: Sequence::new(word(0)),
            last: Sequence::new(word(8)),
            first_time: word(16).cast_signed(),
            last_time: word(24).cast_signed(),
            cells: std::array::from_fn(|cell| counts.get(cell).copied().map_or(0, u16::from_le_bytes)),
            score_sum: number(32),
            id: number(36),
        }
    }

    fn add(&mut self, posting: Posting) {
        self.last = posting.sequence();
        self.last_time = posting.time;
        if let Some(count) = self.cells.get_mut(posting.cell()) {
            *count = count.saturating_add(1);
        }
        self.score_sum = self.score_sum.saturating_add(posting.score());
    }

    fn move_cell(&mut self, from: usize, to: usize) {
        if let Some(count) = self.cells.get_mut(from) {
            *count = count.saturating_sub(1);
        }
        if let Some(count) = self.cells.get_mut(to) {
            *count = count.saturating_add(1);
        }
    }

    fn count(&self, cells: Cells) -> u64 {
        cells.iter().filter_map(|cell| self.cells.get(cell)).map(|count| u64::from(*count)).sum()
    }
}

/// The summaries of a list's blocks, with sums over 16 of them, over 16 of these, and so on. So summing a range and
/// finding a position by its rank take time logarithmic in the length of the list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SumTree {
    leaves: Vec<Summary>,
    /// The levels of sums, from the bottom up; the highest has at most 16.
    levels: Vec<Vec<Sums>>,
}

impl SumTree {
    pub(super) fn new(leaves: Vec<Summary>) -> Self {
        let mut tree = Self { leaves, levels: Vec::new() };
        if tree.leaves.len() > FAN {
            let sums = tree.leaves.chunks(FAN).map(|leaves| {
                let mut sums = Sums::default();
                for leaf in leaves {
                    sums.add_summary(leaf);
                }
                sums
            });
            tree.levels.push(sums.collect());
            tree.grow();
        }
        tree
    }

    pub(super) fn leaves(&self) -> &[Summary] {
        &self.leaves
    }

    /// Adds a block that begins with the posting.
    pub(super) fn push_block(&mut self, posting: Posting) {
        // Most lists have one block and will not get many.
        if self.leaves.is_empty() {
            self.leaves.reserve_exact(1);
        }
        self.leaves.push(Summary::new(posting));
        if self.levels.is_empty() && self.leaves.len() > FAN {
            *self = Self::new(std::mem::take(&mut self.leaves));
        } else {
            self.add_above(posting);
        }
    }

    /// Adds a posting to the last block.
    pub(super) fn push(&mut self, posting: Posting) {
        if let Some(leaf) = self.leaves.last_mut() {
            leaf.add(posting);
            self.add_above(posting);
        }
    }

    /// Notes the number under which the view has the last block, which is full now.
    pub(super) fn fill(&mut self, id: u32) {
        if let Some(leaf) = self.leaves.last_mut() {
            leaf.id = id;
        }
    }

    /// Replaces a posting of a block.
    pub(super) fn change(&mut self, block: usize, before: Posting, after: Posting) {
        let (from, to) = (before.cell(), after.cell());
        if let Some(leaf) = self.leaves.get_mut(block) {
            leaf.move_cell(from, to);
        }
        let mut place = block;
        for level in &mut self.levels {
            place /= FAN;
            if let Some(sums) = level.get_mut(place) {
                sums.move_cell(from, to);
            }
        }
    }

    /// Returns the sums over the first `blocks` blocks.
    pub(super) fn before(&self, blocks: usize) -> Sums {
        let mut sums = Sums::default();
        let mut done = 0;
        for (level, width) in self.top_down() {
            while done + width <= blocks {
                let Some(node) = level.get(done / width) else { break };
                sums.add(node);
                done += width;
            }
        }
        for leaf in self.leaves.get(done..blocks).unwrap_or_default() {
            sums.add_summary(leaf);
        }
        sums
    }

    /// Finds the block with the posting that has `rank` others of these cells before it. Returns its number, and how
    /// many of these others are in earlier blocks.
    pub(super) fn find(&self, rank: u64, cells: Cells) -> Option<(usize, u64)> {
        let (mut done, mut before) = (0, 0);
        for (level, width) in self.top_down() {
            while let Some(node) = level.get(done / width) {
                let count = node.count(cells);
                if before + count > rank {
                    break;
                }
                before += count;
                done += width;
            }
        }
        for (block, leaf) in self.leaves.iter().enumerate().skip(done) {
            let count = leaf.count(cells);
            if before + count > rank {
                return Some((block, before));
            }
            before += count;
        }
        None
    }

    /// The sums over all blocks.
    pub(super) fn all(&self) -> Sums {
        self.before(self.leaves.len())
    }

    /// The levels from the top down, with the number of blocks that a sum of each covers.
    fn top_down(&self) -> impl Iterator<Item = (&[Sums], usize)> {
        let widths = (1..).map(|level| FAN.saturating_pow(level));
        let levels: Vec<_> = self.levels.iter().map(Vec::as_slice).zip(widths).collect();
        levels.into_iter().rev()
    }

    fn add_above(&mut self, posting: Posting) {
        let mut place = self.leaves.len().saturating_sub(1);
        for level in &mut self.levels {
            place /= FAN;
            if place >= level.len() {
                level.push(Sums::default());
            }
            if let Some(sums) = level.get_mut(place) {
                sums.add_posting(posting);
            }
        }
        self.grow();
    }

    /// Adds levels until the highest is short.
    fn grow(&mut self) {
        while let Some(top) = self.levels.last().filter(|top| top.len() > FAN) {
            let above = top.chunks(FAN).map(|nodes| {
                let mut sums = Sums::default();
                for node in nodes {
                    sums.add(node);
                }
                sums
            });
            let above = above.collect();
            self.levels.push(above);
        }
    }
}

const FAN: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rulekeep_types::Score;

    fn posting(place: u64) -> Posting {
        let decision = Decision::ALL[(place * 7 % 4) as usize];
        let risk = RiskLevel::ALL[(place / 3 % 4) as usize];
        Posting::new(Sequence::new(place), place.cast_signed(), decision, risk, Score::saturating(place.cast_signed()))
    }

    #[test]
    fn a_summary_reads_back() {
        let mut block = Block::default();
        (5..300).for_each(|place| block.push(posting(place)));
        let summary = Summary { id: 7, ..Summary::of(&block).unwrap() };
        let mut bytes = Vec::new();
        summary.encode(&mut bytes);
        assert_eq!(Summary::decode(bytes.as_slice().try_into().unwrap()), summary);
        assert_eq!((summary.cells.iter().sum::<u16>(), summary.first.get(), summary.last_time), (295, 5, 299));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// Compares with a plain list of postings in blocks of one to three.
        #[test]
        fn a_tree_sums_and_finds_as_a_plain_list_does(
            sizes in proptest::collection::vec(1_usize..4, 1..5000),
            reported in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..50),
            asked in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 20),
        ) {
            let mut tree = SumTree::default();
            let mut blocks: Vec<Block> = Vec::new();
            let mut place = 0;
            for size in &sizes {
                let mut block = Block::default();
                for at in 0..*size {
                    if at == 0 { tree.push_block(posting(place)) } else { tree.push(posting(place)) }
                    block.push(posting(place));
                    place += 1;
                }
                blocks.push(block);
            }
            for (block, outcome) in reported {
                let block = block.index(blocks.len());
                let first = blocks[block].postings()[0].sequence();
                if let Some((before, after)) = blocks[block].set_outcome(first, *outcome.get(Outcome::ALL)) {
                    tree.change(block, before, after);
                }
            }
            prop_assert_eq!(&SumTree::new(tree.leaves().to_vec()), &tree);
            for (many, filter) in asked {
                let many = many.index(blocks.len() + 1);
                let mut sums = Sums::default();
                blocks[..many].iter().flat_map(Block::postings).for_each(|posting| sums.add_posting(*posting));
                prop_assert_eq!(&tree.before(many), &sums);

                let cells = Cells::of(Some(*filter.get(Decision::ALL)), None, [None, Some(Outcome::Failure)][many % 2]);
                let rank = sums.count(cells);
                let place = blocks.iter().enumerate().flat_map(|(at, block)| block.postings().iter().map(move |p| (at, p)));
                let found = place.filter(|(_, posting)| cells.has(posting.cell())).nth(usize::try_from(rank).unwrap());
                let before = found.map(|(at, _)| {
                    let all = blocks[..at].iter().flat_map(Block::postings);
                    (at, all.filter(|posting| cells.has(posting.cell())).count() as u64)
                });
                prop_assert_eq!(tree.find(rank, cells), before);
            }
        }
    }
}
