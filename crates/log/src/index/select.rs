//! Answering from the index: which records match, and their sums. A query costs a few blocks and a walk down a tree
//! of sums, however many records there are.

use std::borrow::Cow;
use std::ops::Range;

use super::intents::Intents;
use super::posting::{Block, Filter};
use super::sums::{SumTree, Summary, Sums};
use super::{ALL, Index, List};
use crate::store::ViewError;
use rulekeep_types::{AgentId, IntentId, Order, Outcome, Sequence};

/// The records of one page, in the requested order, and the number of all matches.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) total: u64,
    pub(crate) records: Vec<(Sequence, Option<Outcome>)>,
}

/// The part of the matching records to return.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paging {
    pub(crate) order: Order,
    pub(crate) skip: u64,
    pub(crate) take: u64,
}

impl Index {
    /// Returns the matching records of one entity, or of all entities.
    pub(crate) fn select(
        &self,
        entity: Option<&AgentId>,
        filter: &Filter,
        paging: Paging,
    ) -> Result<Selection, ViewError> {
        let Some(list) = self.listed(entity) else { return Ok(Selection::default()) };
        let mut runs = Vec::new();
        for era in self.eras() {
            let low = list.start(filter, &era)?.before.count(filter.cells);
            let high = list.end(filter, &era)?.before.count(filter.cells).max(low);
            runs.push((low, high));
        }
        let total = runs.iter().map(|(low, high)| high - low).sum();
        let Paging { order, mut skip, mut take } = paging;
        if order == Order::NewestFirst {
            runs.reverse();
        }
        let mut records = Vec::new();
        for (low, high) in runs {
            let skipped = skip.min(high - low);
            let taken = take.min(high - low - skipped);
            (skip, take) = (skip - skipped, take - taken);
            if order == Order::NewestFirst {
                let found = list.ranked(filter, high - skipped - taken, high - skipped)?;
                records.extend(found.into_iter().rev());
            } else {
                records.extend(list.ranked(filter, low + skipped, low + skipped + taken)?);
            }
        }
        Ok(Selection { total, records })
    }

    /// The ranges of the journal within which time only rises.
    fn eras(&self) -> impl Iterator<Item = Range<u64>> {
        let starts = std::iter::once(0).chain(self.eras.iter().map(|entry| entry.get()));
        let ends = self.eras.iter().map(|entry| entry.get()).chain([u64::MAX]);
        starts.zip(ends).map(|(start, end)| start..end)
    }

    /// Returns the sums over the records of an entity in a period, ignoring the rest of the filter, and the times of
    /// the first and the last of them.
    pub(crate) fn tally(&self, entity: &AgentId, filter: &Filter) -> Result<(Sums, Option<(i64, i64)>), ViewError> {
        let Some(list) = self.listed(Some(entity)) else { return Ok((Sums::default(), None)) };
        let (mut sums, mut ends) = (Sums::default(), None);
        for era in self.eras() {
            let (start, end) = (list.start(filter, &era)?, list.end(filter, &era)?);
            let found = end.before.without(&start.before);
            if let Some((first, last)) = start.next_time.zip(end.last_time).filter(|_| found.total() > 0) {
                sums.add(&found);
                ends = Some(ends.map_or((first, last), |(from, to): (i64, i64)| (from.min(first), to.max(last))));
            }
        }
        Ok((sums, ends))
    }

    /// Returns the outcome of an entity's record; `None` if none is reported, or the index has no such record.
    pub(crate) fn outcome_of(&self, entity: &AgentId, sequence: Sequence) -> Result<Option<Outcome>, ViewError> {
        let Some(list) = self.listed(Some(entity)) else { return Ok(None) };
        Ok(list.find(sequence)?.and_then(super::Posting::outcome))
    }

    /// Returns the runs that may hold matching records.
    pub(crate) fn runs(&self, filter: &Filter) -> Result<Range<u32>, ViewError> {
        let Some(list) = self.listed(None) else { return Ok(0..0) };
        let (mut first, mut last) = (u64::MAX, 0);
        for era in self.eras() {
            let (start, end) = (list.start(filter, &era)?.ordinal(), list.end(filter, &era)?.ordinal());
            if start < end {
                (first, last) = (first.min(start), last.max(end));
            }
        }
        Ok(Intents::runs(first.min(last), last))
    }

    /// Returns the records of a run that match the filter and may belong to an intent, in order. Callers must check
    /// the intent itself. With an entity, only its own records are searched: callers choose the IDs of intents, so
    /// that one agent's use of an ID must not slow down another's.
    pub(crate) fn mentions(
        &self,
        run: u32,
        intent: IntentId,
        entity: Option<&AgentId>,
        filter: &Filter,
    ) -> Result<Selection, ViewError> {
        let mut selection = Selection::default();
        let Some(list) = self.listed(entity) else { return Ok(selection) };
        for sequence in self.intents.find(self.blocks.as_deref(), run, intent)? {
            let Some(posting) = list.find(sequence)? else { continue };
            let meant = !filter.is_before(sequence, posting.time) && filter.is_not_behind(sequence, posting.time);
            if meant && filter.cells.has(posting.cell()) {
                selection.records.push((sequence, posting.outcome()));
            }
        }
        selection.total = selection.records.len() as u64;
        Ok(selection)
    }

    fn listed(&self, entity: Option<&AgentId>) -> Option<Listed<'_>> {
        let number = match entity {
            Some(entity) => *self.numbers.get(entity)?,
            None => ALL,
        };
        let (few, tree) = match self.list(number)? {
            List::Few(few) => (Some(few), Cow::Owned(SumTree::new(Summary::of(few).into_iter().collect()))),
            List::Many(tree) => (None, Cow::Borrowed(&**tree)),
        };
        Some(Listed { index: self, number, few, tree })
    }
}

/// A list for reading; a short one counts as one block.
struct Listed<'a> {
    index: &'a Index,
    number: u32,
    few: Option<&'a Block>,
    tree: Cow<'a, SumTree>,
}

/// A position between two records of a list.
struct Edge {
    /// Number of whole blocks before it.
    block: usize,
    within: usize,
    /// The sums over all records before it.
    before: Sums,
    /// The time of the record before it.
    last_time: Option<i64>,
    /// The time of the record after it.
    next_time: Option<i64>,
}

impl Edge {
    /// Number of records before it, in a list whose blocks are full.
    fn ordinal(&self) -> u64 {
        (self.block * Block::CAPACITY + self.within) as u64
    }
}

impl Listed<'_> {
    /// The position before the first record of an era that the filter selects.
    fn start(&self, filter: &Filter, era: &Range<u64>) -> Result<Edge, ViewError> {
        self.edge_in(era, |sequence, time| filter.is_before(sequence, time))
    }

    /// The position after the last record of an era that the filter selects.
    fn end(&self, filter: &Filter, era: &Range<u64>) -> Result<Edge, ViewError> {
        self.edge_in(era, |sequence, time| filter.is_not_behind(sequence, time))
    }

    fn edge_in(&self, era: &Range<u64>, is_before: impl Fn(Sequence, i64) -> bool) -> Result<Edge, ViewError> {
        self.edge(|sequence, time| {
            sequence.get() < era.start || (sequence.get() < era.end && is_before(sequence, time))
        })
    }

    /// The position after all records for which `is_before` holds. Sequences rise along a list, times within an era.
    fn edge(&self, is_before: impl Fn(Sequence, i64) -> bool) -> Result<Edge, ViewError> {
        let leaves = self.tree.leaves();
        let block = leaves.partition_point(|leaf| is_before(leaf.last, leaf.last_time));
        let mut edge = Edge {
            block,
            within: 0,
            before: self.tree.before(block),
            last_time: block.checked_sub(1).and_then(|last| leaves.get(last)).map(|leaf| leaf.last_time),
            next_time: leaves.get(block).map(|leaf| leaf.first_time),
        };
        if leaves.get(block).is_some_and(|leaf| is_before(leaf.first, leaf.first_time)) {
            let block = self.block(block)?;
            let within = block.postings().partition_point(|posting| is_before(posting.sequence(), posting.time));
            let (before, behind) = block.postings().split_at_checked(within).unwrap_or_default();
            for posting in before {
                edge.before.add_posting(*posting);
            }
            edge.within = within;
            edge.last_time = before.last().map(|posting| posting.time);
            edge.next_time = behind.first().map(|posting| posting.time);
        }
        Ok(edge)
    }

    /// Returns the records in the filter's cells whose rank among them in the list is in `from..to`.
    fn ranked(&self, filter: &Filter, from: u64, to: u64) -> Result<Vec<(Sequence, Option<Outcome>)>, ViewError> {
        let mut records = Vec::new();
        let mut rank = from;
        while rank < to {
            let wrong = ViewError::Disagrees("a sum counts records that are not there");
            let (number, before) = self.tree.find(rank, filter.cells).ok_or_else(|| wrong.clone())?;
            let block = self.block(number)?;
            let matching = block.postings().iter().filter(|posting| filter.cells.has(posting.cell()));
            let skip = usize::try_from(rank - before).unwrap_or(usize::MAX);
            let take = usize::try_from(to - rank).unwrap_or(usize::MAX);
            let found = records.len();
            records.extend(matching.skip(skip).take(take).map(|posting| (posting.sequence(), posting.outcome())));
            rank += (records.len() - found) as u64;
            if records.len() == found {
                return Err(wrong);
            }
        }
        Ok(records)
    }

    fn find(&self, sequence: Sequence) -> Result<Option<super::Posting>, ViewError> {
        let leaves = self.tree.leaves();
        let Some(block) = leaves.partition_point(|leaf| leaf.first <= sequence).checked_sub(1) else { return Ok(None) };
        Ok(self.block(block)?.find(sequence))
    }

    fn block(&self, number: usize) -> Result<Cow<'_, Block>, ViewError> {
        if let Some(few) = self.few {
            return Ok(Cow::Borrowed(few));
        }
        let number = super::block_number(number)?;
        match self.index.dirty.block((self.number, number)) {
            Some(block) => Ok(Cow::Borrowed(block)),
            None => self.index.fetch(self.number, number).map(Cow::Owned),
        }
    }
}
