//! What a governor shows to a hub: a log that grows, with signed checkpoints, and records in it.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU32, Ordering};

use rulekeep::checkpoint::{Checkpoint, CheckpointKey, ConsistencyProof};
use rulekeep::proof::{Digest, ProofId, Sequence};
use rulekeep::system::{Clock as _, SystemClock};
use rulekeep::{Agent, Governor, Intent, ProofQuery, ProofRecord, RiskLevel, Tier};
use rulekeep_fleet::log::{self, Head, TileId};
use rulekeep_fleet::wire::{Anchor, Copy};
use serde_json::Value;
use serde_json::value::to_raw_value;
use sha2::{Digest as _, Sha256};

/// The part of the next record's id in which a governor has a random number.
static NEXT_ID: AtomicU32 = AtomicU32::new(0);

/// A log in memory. A clone of it is a copy of its folder.
#[derive(Clone)]
pub(crate) struct Log {
    key: CheckpointKey,
    head: Head,
    tiles: HashMap<TileId, Vec<u8>>,
    records: Vec<ProofRecord>,
}

impl Log {
    pub(crate) fn new(key: CheckpointKey) -> Self {
        Self { key, head: Head::EMPTY, tiles: HashMap::new(), records: Vec::new() }
    }

    pub(crate) fn size(&self) -> u64 {
        self.head.size
    }

    pub(crate) fn records(&self) -> &[ProofRecord] {
        &self.records
    }

    /// The same log, signed with another key.
    pub(crate) fn signed_by(&self, key: CheckpointKey) -> Self {
        Self { key, ..self.clone() }
    }

    /// Adds entries that hold a text.
    pub(crate) fn grow(&mut self, count: usize, text: &str) {
        let leaves: Vec<_> = (0..count).map(|n| format!("{text} {n}").into_bytes()).collect();
        self.append(&leaves);
    }

    /// Adds entries that are records, each a variation of a real one.
    pub(crate) fn record(&mut self, template: &ProofRecord, count: usize, change: impl Fn(usize, &mut ProofRecord)) {
        for n in 0..count {
            let mut record = template.clone();
            change(n, &mut record);
            // In two logs of one millisecond, records of one number have different ids, as those of governors do.
            let distinct = NEXT_ID.fetch_add(1, Ordering::Relaxed);
            record.id = ProofId::new(SystemClock.now(), distinct, Sequence::new(self.size() + n as u64));
            record.hash = hash_of(&record);
            self.records.push(record);
        }
        let new = &self.records[self.records.len() - count..];
        let leaves: Vec<_> = new.iter().map(|record| record.hash.as_bytes().to_vec()).collect();
        self.append(&leaves);
    }

    /// Adds an entry that is this record, with its hash.
    pub(crate) fn keep(&mut self, mut record: ProofRecord) {
        record.hash = hash_of(&record);
        self.append(&[record.hash.as_bytes().to_vec()]);
        self.records.push(record);
    }

    fn append(&mut self, leaves: &[Vec<u8>]) {
        let appended = log::append(&self.head, &self.tiles, leaves).expect("the tiles are in memory");
        self.tiles.extend(appended.tiles);
        self.head = appended.head;
    }

    pub(crate) fn head(&self) -> Head {
        self.head
    }

    /// A checkpoint, with the proofs that the log continues those of `since` and `last` entries.
    pub(crate) fn anchor(&self, since: u64, last: Option<u64>) -> Anchor {
        let checkpoint = Checkpoint::new(self.key.name(), self.head.size, self.head.root);
        let note = checkpoint.and_then(|checkpoint| checkpoint.sign(&self.key)).expect("a checkpoint can be signed");
        let proof = |since: u64| {
            let path = (0 < since && since <= self.head.size)
                .then(|| log::consistency(since, &self.head, &self.tiles).expect("the tiles are in memory"));
            path.map(|path| ConsistencyProof::new(since, self.head.size, path).to_string())
        };
        Anchor { note, proof: proof(since), continues: last.and_then(proof) }
    }

    /// Some of the records with their paths in the log of `size` entries.
    pub(crate) fn copies(&self, range: std::ops::Range<usize>, size: u64) -> Vec<Copy> {
        let root = log::root(size, &self.head, &self.tiles).expect("the tiles are in memory");
        let copy = |record: &ProofRecord| {
            let path = log::inclusion(record.id.sequence().get(), &Head { size, root }, &self.tiles);
            let path = path.expect("the tiles are in memory").iter().map(base64).collect();
            Copy { record: to_raw_value(record).expect("a record has a JSON form"), path }
        };
        self.records[range].iter().map(copy).collect()
    }
}

/// A record as a governor makes it.
pub(crate) fn real_record() -> ProofRecord {
    let governor = Governor::builder().open_in_memory().expect("a governor starts in memory");
    governor.agents().register(Agent::new("support-1").at_tier(Tier::T4)).expect("a new agent");
    let intent = Intent::new("support-1", "read_document", RiskLevel::Low, ["document:read"]).expect("a good intent");
    governor.enforce(&intent).expect("it decides");
    governor.query(&ProofQuery::entity("support-1")).expect("it has a log").items.remove(0)
}

/// SHA-256 of the canonical JSON without `hash` and `outcome`.
fn hash_of(record: &ProofRecord) -> Digest {
    let Ok(Value::Object(fields)) = serde_json::to_value(record) else { unreachable!("a record is an object") };
    let fields: BTreeMap<_, _> = fields.into_iter().filter(|(name, _)| name != "hash" && name != "outcome").collect();
    Digest::new(Sha256::digest(serde_json::to_vec(&fields).expect("JSON")).into())
}

fn base64(hash: &Digest) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(hash.as_bytes())
}
