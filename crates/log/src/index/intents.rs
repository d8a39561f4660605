//! The records of each intent: one mention of its intent for every record, in runs of 65,536 records. The last run is
//! in memory; a full one is sorted and persisted in 256 chunks, of which a lookup reads one.
//!
//! A mention holds 32 bits of the intent's ID, so a match may belong to another intent. Callers must read the record
//! to be sure.

use std::collections::HashMap;

use super::persist;
use crate::store::{BlockBatch, Blocks, ViewError};
use rulekeep_types::{IntentId, Sequence};

/// The mentions of all records.
#[derive(Debug, Default)]
pub(super) struct Intents {
    /// Number of full runs, persisted or not.
    full: u32,
    /// Full runs that are not persisted yet, sorted.
    fresh: HashMap<u32, Vec<Mention>>,
    /// The run that is not full, in the order of the records.
    open: Vec<Mention>,
    /// Number of persisted mentions of the open run.
    persisted: usize,
}

/// A link from an intent to one of its records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Mention {
    mark: u32,
    sequence: u64,
}

impl Intents {
    pub(super) fn push(&mut self, intent: IntentId, sequence: Sequence) {
        self.open.push(Mention { mark: mark(intent), sequence: sequence.get() });
        if self.open.len() >= RUN {
            let mut run = std::mem::take(&mut self.open);
            run.sort_unstable();
            self.fresh.insert(self.full, run);
            self.full = self.full.saturating_add(1);
            self.persisted = 0;
        }
    }

    /// The runs that mention the records `first..behind`, counted over all records.
    pub(super) fn runs(first: u64, behind: u64) -> std::ops::Range<u32> {
        let run = |record: u64| u32::try_from(record).unwrap_or(u32::MAX);
        run(first / RUN as u64)..run(behind.div_ceil(RUN as u64))
    }

    /// Returns the records of a run that may belong to an intent, in order.
    pub(super) fn find(&self, blocks: Option<&Blocks>, run: u32, intent: IntentId) -> Result<Vec<Sequence>, ViewError> {
        let mark = mark(intent);
        let found = |mentions: &[Mention]| {
            let found = mentions.iter().filter(|mention| mention.mark == mark);
            found.map(|mention| Sequence::new(mention.sequence)).collect()
        };
        if run >= self.full {
            return Ok(found(if run == self.full { &self.open } else { &[] }));
        }
        let sorted = |mentions: &[Mention]| {
            let start = mentions.partition_point(|mention| mention.mark < mark);
            let end = mentions.partition_point(|mention| mention.mark <= mark);
            found(mentions.get(start..end).unwrap_or_default())
        };
        if let Some(mentions) = self.fresh.get(&run) {
            return Ok(sorted(mentions));
        }
        let missing = ViewError::Disagrees("a run of intents is missing");
        let key = persist::key(persist::INTENTS, run, Some(chunk(mark)));
        let bytes = blocks.ok_or_else(|| missing.clone())?.get(&key)?.ok_or(missing)?;
        Ok(sorted(&decode(&bytes)?))
    }

    /// Calls `each` with the mark and the record of every mention.
    pub(super) fn each(&self, blocks: Option<&Blocks>, each: &mut dyn FnMut(u32, u64)) -> Result<(), ViewError> {
        let mut take = |mentions: &[Mention]| mentions.iter().for_each(|mention| each(mention.mark, mention.sequence));
        for run in 0..self.full {
            if let Some(mentions) = self.fresh.get(&run) {
                take(mentions);
                continue;
            }
            let missing = ViewError::Disagrees("a run of intents is missing");
            let blocks = blocks.ok_or_else(|| missing.clone())?;
            for number in 0..CHUNKS {
                let bytes = blocks.get(&persist::key(persist::INTENTS, run, Some(number)))?;
                let mentions = decode(&bytes.ok_or_else(|| missing.clone())?)?;
                if mentions.iter().any(|mention| chunk(mention.mark) != number) || !mentions.is_sorted() {
                    return Err(ViewError::Disagrees("a run of intents is not in order"));
                }
                take(&mentions);
            }
        }
        take(&self.open);
        Ok(())
    }

    /// Number of bytes that are not persisted yet.
    pub(super) fn unpersisted_bytes(&self) -> usize {
        (self.fresh.len() * RUN + self.open.len() - self.persisted.min(self.open.len())) * MENTION
    }

    /// Adds everything that is not persisted yet to a batch.
    pub(super) fn put(&self, batch: &mut BlockBatch) {
        self.put_full(batch);
        if self.persisted < self.open.len() {
            let first = self.persisted / PIECE;
            for (number, mentions) in (0_u32..).zip(self.open.chunks(PIECE)).skip(first) {
                batch.put(&persist::key(persist::OPEN_INTENTS, number, None), &encode(mentions));
            }
        }
    }

    /// Returns whether there is a full run that is not persisted.
    pub(super) fn has_fresh(&self) -> bool {
        !self.fresh.is_empty()
    }

    /// Adds the full runs that are not persisted to a batch.
    pub(super) fn put_full(&self, batch: &mut BlockBatch) {
        for (run, mentions) in &self.fresh {
            let mut rest = mentions.as_slice();
            // All chunks are written, even empty ones, because a missing chunk counts as lost.
            for number in 0..CHUNKS {
                let (these, others) = rest.split_at(rest.partition_point(|mention| chunk(mention.mark) <= number));
                batch.put(&persist::key(persist::INTENTS, *run, Some(number)), &encode(these));
                rest = others;
            }
        }
    }

    /// Marks the full runs as persisted.
    pub(super) fn forget_full(&mut self) {
        self.fresh.clear();
    }

    /// Marks everything as persisted.
    pub(super) fn forget(&mut self) {
        self.fresh.clear();
        self.persisted = self.open.len();
    }

    /// Loads the mentions of the first `records` records.
    pub(super) fn load(blocks: &Blocks, records: u64) -> Result<Self, ViewError> {
        let wrong = || ViewError::Disagrees("its intents are not those of its records");
        let full = u32::try_from(records / RUN as u64).map_err(|_| wrong())?;
        let wanted = usize::try_from(records % RUN as u64).map_err(|_| wrong())?;
        let mut open = Vec::new();
        for number in 0_u32.. {
            if open.len() >= wanted {
                break;
            }
            let bytes = blocks.get(&persist::key(persist::OPEN_INTENTS, number, None))?.ok_or_else(wrong)?;
            let mentions = decode(&bytes)?;
            if mentions.is_empty() {
                return Err(wrong());
            }
            open.extend(mentions);
        }
        if open.len() == wanted {
            Ok(Self { full, fresh: HashMap::new(), persisted: wanted, open })
        } else {
            Err(wrong())
        }
    }
}

/// The 32 bits of an intent's ID that are kept. They depend on all of the ID, because IDs made at the same time
/// differ in their random half only, and callers may supply IDs of their own.
pub(super) fn mark(intent: IntentId) -> u32 {
    crc32fast::hash(&intent.to_bytes())
}

/// The chunk of a run that holds a mark.
fn chunk(mark: u32) -> u32 {
    mark >> (u32::BITS - CHUNKS.trailing_zeros())
}

fn encode(mentions: &[Mention]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(mentions.len() * MENTION);
    for mention in mentions {
        bytes.extend_from_slice(&mention.mark.to_le_bytes());
        bytes.extend_from_slice(&mention.sequence.to_le_bytes());
    }
    bytes
}

fn decode(bytes: &[u8]) -> Result<Vec<Mention>, ViewError> {
    let (mentions, rest) = bytes.as_chunks::<MENTION>();
    if !rest.is_empty() {
        return Err(ViewError::Disagrees("a run of intents cannot be read"));
    }
    let mentions = mentions.iter().map(|[a, b, c, d, sequence @ ..]| Mention {
        mark: u32::from_le_bytes([*a, *b, *c, *d]),
        sequence: u64::from_le_bytes(*sequence),
    });
    Ok(mentions.collect())
}

/// Number of records in a run: 128 blocks of the list of all records.
const RUN: usize = 1 << 16;
const CHUNKS: u32 = 256;
/// Number of mentions of the open run persisted under one key.
const PIECE: usize = 256;
/// Size of a stored mention in bytes.
const MENTION: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use rulekeep_types::Timestamp;

    /// Compares with a plain search of every record.
    #[test]
    fn every_record_of_an_intent_is_found_across_a_reload() {
        let blocks = Blocks::open(None, 1 << 20).unwrap();
        let id = |record: u64| IntentId::new(Timestamp::from_millis(1), u128::from(record * record % 50_021));
        let mut intents = Intents::default();
        let mut records = 0;
        for until in [1, 1_023, 1_024, 3_000, 65_536, 65_537, 70_000, 140_000] {
            while records < until {
                intents.push(id(records), Sequence::new(records * 2));
                records += 1;
            }
            let mut batch = BlockBatch::default();
            intents.put(&mut batch);
            blocks.apply_and_flush(batch).unwrap();
            // The index in memory gives the same answers as the one that was loaded.
            let loaded = Intents::load(&blocks, records).unwrap();
            for wanted in [0, 7, until / 2, until - 1] {
                let expected: Vec<u64> =
                    (0..until).filter(|record| id(*record) == id(wanted)).map(|at| at * 2).collect();
                for intents in [&intents, &loaded] {
                    let runs = Intents::runs(0, records);
                    let found = runs.flat_map(|run| intents.find(Some(&blocks), run, id(wanted)).unwrap());
                    assert_eq!(found.map(Sequence::get).collect::<Vec<_>>(), expected, "{wanted} of {until}");
                }
            }
            intents.forget();
            assert_eq!(intents.unpersisted_bytes(), 0);
        }
        assert!(Intents::load(&blocks, 140_001).is_err());
    }
}
