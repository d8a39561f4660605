//! The organisation's log, its witness and bundles of records, compared with independent implementations.
#![allow(clippy::unwrap_used, clippy::expect_used)] // a test fails where it cannot go on

#[path = "../../../server/tests/common/programs.rs"]
mod programs;

mod bundle;
mod tree;
mod witness;

use std::collections::HashMap;

use rulekeep::checkpoint::{Checkpoint, CheckpointKey};
use rulekeep_fleet::log::{self, Head, TileId};

/// The organisation's log with its tiles in memory.
struct Organisation {
    key: CheckpointKey,
    head: Head,
    tiles: HashMap<TileId, Vec<u8>>,
}

impl Organisation {
    fn new(name: &str) -> Self {
        let key = CheckpointKey::from_seed(name, &[7; 32]).unwrap();
        Self { key, head: Head::EMPTY, tiles: HashMap::new() }
    }

    fn append(&mut self, leaves: &[Vec<u8>]) {
        let appended = log::append(&self.head, &self.tiles, leaves).unwrap();
        self.head = appended.head;
        for (tile, bytes) in appended.tiles {
            let narrower = self.tiles.insert(tile, bytes.clone()).unwrap_or_default();
            assert!(bytes.starts_with(&narrower) && bytes.len() > narrower.len() && bytes.len() <= 8192, "{tile:?}");
        }
    }

    /// Appends leaves that nobody reads.
    fn grow(&mut self, count: u64) {
        let size = self.head.size;
        self.append(&(size..size + count).map(|index| format!("leaf {index}").into_bytes()).collect::<Vec<_>>());
    }

    fn note(&self) -> String {
        Checkpoint::new(self.key.name(), self.head.size, self.head.root).unwrap().sign(&self.key).unwrap()
    }
}

/// Numbers that are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}
