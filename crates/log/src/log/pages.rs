//! Records that match a query: in pages, by cursors, and one after another.

use super::ProofLog;
use crate::index::{Filter, Paging, Selection};
use crate::query::{CheckedQuery, ProofQuery};
use rulekeep_types::{Error, IntentId, Order, Outcome, ProofCursor, ProofPage, ProofRecord, Sequence};

impl ProofLog {
    /// Answers a query.
    pub fn query(&self, query: &ProofQuery) -> Result<ProofPage, Error> {
        let query = query.checked()?;
        self.parts.catch_up()?;
        if let Some(cursor) = query.cursor {
            return self.page_behind(&query, cursor);
        }
        let skip = (query.page - 1).saturating_mul(query.page_size);
        let paging = Paging { order: query.order, skip, take: query.page_size };
        let found = self.find(&query, &query.filter, paging, Total::Counted)?;
        Ok(ProofPage::new(self.read_all(&found.records)?, found.total, query.page, query.page_size))
    }

    /// Iterates over the matching records in bounded memory.
    pub fn records(&self, query: &ProofQuery) -> Records<'_> {
        let start = || {
            let query = query.checked()?;
            self.parts.catch_up()?;
            let walk = self.walk(&query, query.cursor.unwrap_or(ProofCursor::START));
            Ok((query, walk.rest))
        };
        match start() {
            Ok((query, rest)) => Records { log: self, ahead: Some((query, rest)), batch: Vec::new(), failed: None },
            Err(error) => Records { log: self, ahead: None, batch: Vec::new(), failed: Some(error) },
        }
    }

    /// Returns the newest records selected by any of the queries, after skipping `skip`, and the number of all of
    /// them. No record may be selected by two queries; the queries' own pages are ignored.
    pub fn newest(&self, queries: &[ProofQuery], skip: u64, take: u64) -> Result<(Vec<ProofRecord>, u64), Error> {
        self.parts.catch_up()?;
        let most = skip.saturating_add(take);
        let paging = Paging { order: Order::NewestFirst, skip: 0, take: most };
        let whole = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let (mut found, mut total) = (Vec::new(), 0);
        for query in queries {
            let query = query.checked()?;
            let selection = self.find(&query, &query.filter, paging, Total::Counted)?;
            total += selection.total;
            found.extend(selection.records);
            found.sort_unstable_by_key(|(sequence, _)| std::cmp::Reverse(*sequence));
            found.truncate(whole(most));
        }
        let page = found.get(whole(skip)..).unwrap_or_default();
        Ok((self.read_all(page)?, total))
    }

    /// Returns the records of a query's page, newest first, without waiting for pending writes.
    pub fn page_so_far(&self, query: &ProofQuery) -> Result<Vec<ProofRecord>, Error> {
        let query = query.checked()?;
        let paging = Paging { order: Order::NewestFirst, skip: 0, take: query.page_size };
        self.read_all(&self.find(&query, &query.filter, paging, Total::Unasked)?.records)
    }

    fn page_behind(&self, query: &CheckedQuery, cursor: ProofCursor) -> Result<ProofPage, Error> {
        let walk = self.walk(query, cursor);
        let paging = Paging { order: query.order, skip: 0, take: query.page_size };
        let found = self.find(query, &walk.rest, paging, Total::Counted)?;
        let total = if walk.rest == walk.whole {
            found.total
        } else {
            self.find(query, &walk.whole, Paging { take: 0, ..paging }, Total::Counted)?.total
        };
        let mut page = ProofPage::new(self.read_all(&found.records)?, total, walk.page, query.page_size);
        page.has_more = found.total > found.records.len() as u64;
        let last = found.records.last().filter(|_| page.has_more);
        page.next_cursor = last.map(|(last, _)| query.cursor_behind(walk.entries, last.get(), walk.page));
        Ok(page)
    }

    /// Decodes the position that a cursor stands for.
    fn walk(&self, query: &CheckedQuery, cursor: ProofCursor) -> Walk {
        let entries = cursor.0.map_or_else(|| self.parts.index.applied().entries, |place| place.entries);
        let whole = Filter { last: entries.saturating_sub(1), ..query.filter };
        let rest = cursor.0.map_or(whole, |place| behind(&whole, query.order, place.last));
        Walk { entries, page: cursor.0.map_or(1, |place| place.page.saturating_add(1)), whole, rest }
    }

    /// Returns the matching records, and the number of all matches if `total` asks for it.
    fn find(&self, query: &CheckedQuery, filter: &Filter, paging: Paging, total: Total) -> Result<Selection, Error> {
        match query.intent {
            Some(intent) => self.find_of_intent(query, intent, filter, paging, total),
            None => {
                self.parts.index.ask(&self.parts.journal, |index| index.select(query.entity.as_ref(), filter, paging))
            }
        }
    }

    /// Reads every record that may belong to an intent, run by run. An intent has few records.
    fn find_of_intent(
        &self,
        query: &CheckedQuery,
        intent: IntentId,
        filter: &Filter,
        paging: Paging,
        total: Total,
    ) -> Result<Selection, Error> {
        let mut runs: Vec<u32> = self.parts.index.ask(&self.parts.journal, |index| index.runs(filter))?.collect();
        if paging.order == Order::NewestFirst {
            runs.reverse();
        }
        let mut found = Selection::default();
        for run in runs {
            let mut mentions = self
                .parts
                .index
                .ask(&self.parts.journal, |index| index.mentions(run, intent, query.entity.as_ref(), filter))?
                .records;
            if paging.order == Order::NewestFirst {
                mentions.reverse();
            }
            for (sequence, outcome) in mentions {
                let is_full = found.records.len() as u64 >= paging.take;
                if is_full && total == Total::Unasked {
                    return Ok(found);
                }
                let record = match self.record_at(sequence, outcome) {
                    // A broken log answers with what can still be read; its state reports the break.
                    Err(_) if !self.integrity() => continue,
                    record => record?,
                };
                if record.intent_id != intent || query.entity.as_ref().is_some_and(|entity| *entity != record.entity_id)
                {
                    continue;
                }
                if found.total >= paging.skip && !is_full {
                    found.records.push((sequence, outcome));
                }
                found.total += 1;
            }
        }
        Ok(found)
    }

    fn read_all(&self, found: &[(Sequence, Option<Outcome>)]) -> Result<Vec<ProofRecord>, Error> {
        found
            .iter()
            .map(|(sequence, outcome)| self.record_at(*sequence, *outcome))
            // A broken log answers with what can still be read; its state reports the break.
            .filter(|record| record.is_ok() || self.integrity())
            .collect()
    }
}

/// Whether the number of all matches is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Total {
    Counted,
    Unasked,
}

/// A walk through the records that existed when it began.
struct Walk {
    /// Number of entries in the journal at that time.
    entries: u64,
    /// The number of the next page.
    page: u64,
    whole: Filter,
    /// The part still to come.
    rest: Filter,
}

/// Narrows a filter to the records after a given one, in this order.
fn behind(filter: &Filter, order: Order, last: u64) -> Filter {
    match order {
        Order::OldestFirst => Filter { first: filter.first.max(last.saturating_add(1)), ..*filter },
        Order::NewestFirst => match last.checked_sub(1) {
            Some(last) => Filter { last: filter.last.min(last), ..*filter },
            // No record is older than the first entry.
            None => Filter { first: u64::MAX, ..*filter },
        },
    }
}

/// An iterator over records.
pub struct Records<'a> {
    log: &'a ProofLog,
    /// The part still to be searched.
    ahead: Option<(CheckedQuery, Filter)>,
    /// Records found and not returned yet, in reverse order.
    batch: Vec<(Sequence, Option<Outcome>)>,
    failed: Option<Error>,
}

impl Records<'_> {
    fn refill(&mut self) -> Result<(), Error> {
        let Some((query, rest)) = self.ahead.take() else { return Ok(()) };
        self.log.parts.index.check_open()?;
        let paging = Paging { order: query.order, skip: 0, take: BATCH };
        self.batch = self.log.find(&query, &rest, paging, Total::Unasked)?.records;
        if let Some((last, _)) = self.batch.last().filter(|_| self.batch.len() as u64 >= BATCH) {
            let rest = behind(&rest, query.order, last.get());
            self.ahead = Some((query, rest));
        }
        self.batch.reverse();
        Ok(())
    }
}

impl Iterator for Records<'_> {
    type Item = Result<ProofRecord, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.batch.is_empty() && self.failed.is_none() {
            self.failed = self.refill().err();
        }
        if let Some(error) = self.failed.take() {
            self.ahead = None;
            return Some(Err(error));
        }
        let (sequence, outcome) = self.batch.pop()?;
        Some(self.log.record_at(sequence, outcome))
    }
}

/// Number of records searched for at once.
const BATCH: u64 = 256;
