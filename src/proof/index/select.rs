//! Answering from the index: which records match, and what they add up to.

use std::borrow::Cow;

use super::posting::{Block, Filter, Tally};
use super::{Entity, Index};
use crate::model::{AgentId, Outcome, Sequence};
use crate::store::ViewError;

/// The records of one page, newest first, and how many match in all.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) total: u64,
    pub(crate) records: Vec<(Sequence, Option<Outcome>)>,
}

impl Index {
    /// The records of an entity that match, newest first, `skip` of them passed
    /// over. Blocks that lie wholly in or out of the period are told by their
    /// summaries alone.
    pub(crate) fn select(
        &self,
        entity: &AgentId,
        filter: &Filter,
        skip: u64,
        take: usize,
    ) -> Result<Selection, ViewError> {
        let mut selection = Selection::default();
        let mut skip = skip;
        let Some((number, entity)) = self.entity(entity) else { return Ok(selection) };
        for (place, summary) in entity.summaries.iter().enumerate().rev() {
            if summary.is_outside(filter) {
                continue;
            }
            let counted = summary.is_within(filter).then(|| summary.tally.count(filter));
            match counted {
                Some(count) if count <= skip || selection.records.len() >= take => {
                    selection.total += count;
                    skip = skip.saturating_sub(count);
                }
                _ => {
                    let block = self.block(number, super::block_number(place)?)?;
                    for posting in block.postings().iter().rev().filter(|posting| posting.matches(filter)) {
                        selection.total += 1;
                        if skip > 0 {
                            skip -= 1;
                        } else if selection.records.len() < take {
                            selection.records.push((posting.sequence(), posting.outcome()));
                        }
                    }
                }
            }
        }
        Ok(selection)
    }

    /// The counts over the records of an entity in a period, and the times of
    /// the first and the last of them.
    pub(crate) fn tally(&self, entity: &AgentId, filter: &Filter) -> Result<(Tally, Option<(i64, i64)>), ViewError> {
        let mut tally = Tally::default();
        let mut ends: Option<(i64, i64)> = None;
        let mut see = |first: i64, last: i64| ends = Some((ends.map_or(first, |(first, _)| first), last));
        let Some((number, entity)) = self.entity(entity) else { return Ok((tally, None)) };
        for (block_number, summary) in (0_u32..).zip(&entity.summaries) {
            if summary.is_outside(filter) {
                continue;
            }
            if summary.is_within(filter) {
                tally.add(&summary.tally);
                see(summary.first_time, summary.last_time);
                continue;
            }
            let block = self.block(number, block_number)?;
            for posting in block.postings().iter().filter(|posting| posting.matches(filter)) {
                tally.add_posting(*posting);
                see(posting.time, posting.time);
            }
        }
        Ok((tally, ends))
    }

    /// The outcome of an entity's record; `None` when none is reported, or the
    /// index has no such record.
    pub(crate) fn outcome_of(&self, entity: &AgentId, sequence: Sequence) -> Result<Option<Outcome>, ViewError> {
        let Some((number, block_number)) = self.place_of(entity, sequence)? else { return Ok(None) };
        let block = self.block(number, block_number)?;
        Ok(block.find(sequence).and_then(super::posting::Posting::outcome))
    }

    fn entity(&self, id: &AgentId) -> Option<(u32, &Entity)> {
        let number = *self.numbers.get(id)?;
        Some((number, self.entities.get(number as usize)?))
    }

    fn block(&self, entity: u32, number: u32) -> Result<Cow<'_, Block>, ViewError> {
        match self.dirty.get(&(entity, number)) {
            Some(block) => Ok(Cow::Borrowed(block)),
            None => self.fetch(entity, number).map(Cow::Owned),
        }
    }
}
