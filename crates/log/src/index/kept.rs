//! The data with which a log starts before its whole journal is read: the states, the use of limits, and the nodes of
//! the tree. It is persisted with the index, and trusted only until the journal is verified.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::persist;
use crate::journal::entry::step_back;
use crate::journal::used::{UsedLimit, UsedLimits};
use crate::store::{BlockBatch, Blocks, ViewError};
use rulekeep_types::{Digest, LONGEST_LIMIT_WINDOW, Sequence};

/// The changes that are not persisted yet.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    states: HashMap<String, Vec<u8>>,
    used: Vec<UsedLimit>,
    given_back: HashSet<Sequence>,
    bytes: usize,
    /// The persisted batches of uses, with the time of the last use in each.
    batches: BTreeMap<u32, i64>,
    next_batch: u32,
    /// Number of persisted nodes.
    nodes: u64,
}

/// All of this data, as loaded.
#[derive(Debug)]
pub(crate) struct KeptStart {
    pub(crate) states: BTreeMap<String, Vec<u8>>,
    pub(crate) used: UsedLimits,
    pub(crate) nodes: Vec<Digest>,
}

impl Kept {
    pub(super) fn set_state(&mut self, key: &str, value: &[u8]) {
        self.bytes += key.len() + value.len() + OVERHEAD;
        self.states.insert(key.to_owned(), value.to_vec());
    }

    pub(super) fn used(&mut self, used: UsedLimit) {
        self.bytes += OVERHEAD;
        self.used.push(used);
    }

    pub(super) fn give_back(&mut self, record: Sequence) {
        self.bytes += 8;
        self.given_back.insert(record);
    }

    /// The first node to be put into the next batch.
    pub(super) fn first_node(&self) -> u64 {
        self.nodes - self.nodes % NODES
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the changes to a batch; `nodes` starts at [`Kept::first_node`].
    pub(super) fn put(&self, batch: &mut BlockBatch, nodes: &[Digest], last_time: i64) {
        for (key, value) in &self.states {
            batch.put(&[STATES, key.as_bytes()].concat(), value);
        }
        let first = u32::try_from(self.first_node() / NODES).unwrap_or(u32::MAX);
        for (number, nodes) in (first..).zip(nodes.chunks(NODES_AT_ONCE)) {
            let bytes: Vec<u8> = nodes.iter().flat_map(|node| *node.as_bytes()).collect();
            batch.put(&persist::key(NODES_KEY, number, None), &bytes);
        }
        if (!self.used.is_empty() || !self.given_back.is_empty())
            && let Ok(bytes) = serde_json::to_vec(&(&self.used, &self.given_back))
        {
            batch.put(&persist::key(USED, self.next_batch, None), &bytes);
        }
        for number in self.old_batches(last_time) {
            batch.remove(&persist::key(USED, number, None));
        }
    }

    /// Marks the changes as persisted.
    pub(super) fn forget(&mut self, nodes: u64, last_time: i64) {
        if !self.used.is_empty() || !self.given_back.is_empty() {
            self.batches.insert(self.next_batch, last_time);
            self.next_batch += 1;
        }
        for number in self.old_batches(last_time) {
            self.batches.remove(&number);
        }
        self.nodes = self.nodes.max(self.first_node() + nodes);
        (self.states, self.used, self.given_back) = Default::default();
        self.bytes = 0;
    }

    /// The batches of which no use counts any more. Later releases of these uses do not count either.
    fn old_batches(&self, last_time: i64) -> Vec<u32> {
        let oldest = last_time.saturating_sub(LONGEST_LIMIT_WINDOW);
        self.batches.iter().filter(|(_, last)| **last < oldest).map(|(number, _)| *number).collect()
    }

    /// Loads the numbers of batches and nodes, so that new ones follow them.
    pub(super) fn load(blocks: &Blocks, last_time: i64) -> Result<Self, ViewError> {
        // No use is later than the log's last time, so none is dropped too early.
        let batches: BTreeMap<u32, i64> =
            blocks.scan(USED)?.iter().filter_map(|(key, _)| Some((number(key)?, last_time))).collect();
        let next_batch = batches.last_key_value().map_or(0, |(number, _)| number + 1);
        let nodes = blocks.scan(NODES_KEY)?.iter().map(|(_, nodes)| nodes.len() as u64 / 32).sum();
        Ok(Self { batches, next_batch, nodes, ..Self::default() })
    }

    /// Returns whether any of these nodes is not persisted.
    pub(super) fn lacks(&self, nodes: &[Digest]) -> bool {
        self.first_node() + nodes.len() as u64 > self.nodes
    }

    /// Returns the persisted states whose keys start with `prefix`.
    pub(super) fn states(blocks: &Blocks, prefix: &str) -> Result<BTreeMap<String, Vec<u8>>, ViewError> {
        let read = |(key, value): (Vec<u8>, Vec<u8>)| {
            let key = key.get(STATES.len()..).and_then(|key| String::from_utf8(key.to_vec()).ok());
            Ok((key.ok_or(ViewError::Disagrees(UNREADABLE))?, value))
        };
        blocks.scan(&[STATES, prefix.as_bytes()].concat())?.into_iter().map(read).collect()
    }

    /// Returns everything persisted, with the changes since.
    pub(super) fn start(&self, blocks: &Blocks) -> Result<KeptStart, ViewError> {
        let unreadable = || ViewError::Disagrees(UNREADABLE);
        let states = Self::states(blocks, "")?;
        let mut start = KeptStart { states, used: UsedLimits::default(), nodes: Vec::new() };
        start.states.extend(self.states.clone());
        let restart = start.states.iter().filter_map(|(key, body)| step_back(key, body)).next_back();
        let counting = |used: UsedLimit| match restart {
            Some((sequence, at)) if used.record < sequence => used.restarted(at),
            _ => Some(used),
        };
        for (_, batch) in blocks.scan(USED)? {
            let (used, given_back): (Vec<UsedLimit>, HashSet<Sequence>) =
                serde_json::from_slice(&batch).map_err(|_| unreadable())?;
            for used in used.into_iter().filter_map(counting) {
                start.used.push(used);
            }
            for record in given_back {
                start.used.give_back(record);
            }
        }
        for used in self.used.iter().cloned().filter_map(counting) {
            start.used.push(used);
        }
        for record in &self.given_back {
            start.used.give_back(*record);
        }
        for (place, (key, nodes)) in blocks.scan(NODES_KEY)?.into_iter().enumerate() {
            let (nodes, rest) = nodes.as_chunks::<32>();
            let is_full = start.nodes.len() as u64 == place as u64 * NODES;
            if !rest.is_empty() || !is_full || number(&key).map(|number| number as usize) != Some(place) {
                return Err(unreadable());
            }
            start.nodes.extend(nodes.iter().map(|node| Digest::new(*node)));
        }
        Ok(start)
    }
}

fn number(key: &[u8]) -> Option<u32> {
    key.get(1..)?.try_into().ok().map(u32::from_be_bytes)
}

const UNREADABLE: &str = "what a log goes on with cannot be read";
const STATES: &[u8] = b"t";
const USED: &[u8] = b"u";
const NODES_KEY: &[u8] = b"n";
/// Number of nodes under one key.
const NODES_AT_ONCE: usize = 64;
const NODES: u64 = NODES_AT_ONCE as u64;
const OVERHEAD: usize = 128;
