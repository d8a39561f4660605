//! Everything that the index says, compared with the journal.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::store::{OpenMode, StoreFile};
use rulekeep_types::{VerifyOptions, VerifyView, ViewFinding};

fn compared(log: &ProofLog) -> ViewFinding {
    let found = log.verify_with(&VerifyOptions::new().view(VerifyView::Compare)).unwrap();
    assert!(found.valid);
    found.checked.view
}

/// A closed store with twelve records each of two entities, of which every third has an outcome.
fn store() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let log = open_folder(dir.path());
    for at in 0..24 {
        let entity = if at % 2 == 0 { "a" } else { "b" };
        let id = decide(&log, at, draft(entity, Decision::Allow, RiskLevel::Low, 500)).unwrap();
        if at % 3 == 0 {
            report(&log, id, Outcome::Success).unwrap();
        }
    }
    assert_eq!(compared(&log), ViewFinding::Agrees);
    log.close().unwrap();
    dir
}

/// Swaps the outcomes of two postings with the same decision, risk and score, so that no sum changes.
fn exchange_outcomes(block: &mut [u8], first: usize, second: usize) {
    // A posting is two numbers in groups of seven bits and two bytes; the outcome is in the highest bits of the last one.
    let (mut ends, mut at) = (Vec::new(), 0);
    while at < block.len() {
        for _ in 0..2 {
            at += block[at..].iter().position(|byte| *byte < 0x80).unwrap() + 1;
        }
        at += 2;
        ends.push(at - 1);
    }
    let (first, second) = (ends[first], ends[second]);
    let (one, other) = (block[first] & 0xc0, block[second] & 0xc0);
    assert_ne!(one, other);
    block[first] = block[first] & 0x3f | other;
    block[second] = block[second] & 0x3f | one;
}

#[test]
fn outcomes_exchanged_in_the_view_are_found_and_mended() {
    for list in [0_u32, u32::MAX] {
        let dir = store();
        let key = [b"p".as_slice(), &list.to_be_bytes()].concat();
        forge_view(dir.path(), &key, |block| exchange_outcomes(block, 0, 1));
        // No sum shows the change: the log opens normally.
        let log = open_folder(dir.path());
        assert!(log.verify().unwrap().valid);
        let ViewFinding::Differed(said) = compared(&log) else { panic!("nothing was found") };
        assert!(said.contains(if list == 0 { "\"a\"" } else { "all entities" }), "{said}");
        assert_eq!(compared(&log), ViewFinding::Agrees);
        log.close().unwrap();
        assert_eq!(compared(&open_folder(dir.path())), ViewFinding::Agrees);
    }
}

#[test]
fn an_intent_that_was_given_another_record_is_found() {
    let dir = store();
    // The record's sequence follows the mention's mark.
    forge_view(dir.path(), b"o", |mentions| mentions[4] ^= 1);
    let log = open_folder(dir.path());
    let ViewFinding::Differed(said) = compared(&log) else { panic!("nothing was found") };
    assert!(said.contains("intents"), "{said}");
    assert_eq!(compared(&log), ViewFinding::Agrees);
}

#[test]
fn the_view_agrees_while_the_log_grows() {
    let dir = tempfile::tempdir().unwrap();
    let log = open_folder(dir.path());
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut ids = Vec::new();
            for at in 0..6_000 {
                let entity = format!("e{}", at % 7 * (at % 11));
                ids.push(decide(&log, at, draft(&entity, Decision::Allow, RiskLevel::Low, 500)).unwrap());
                if at % 4 == 0 {
                    let late = ids[ids.len() / 3];
                    let _ = report(&log, late, Outcome::Success);
                }
            }
        });
        let mut rounds = 0;
        while !writer.is_finished() || rounds < 3 {
            assert_eq!(compared(&log), ViewFinding::Agrees, "round {rounds}");
            rounds += 1;
        }
    });
    assert_eq!(compared(&log), ViewFinding::Agrees);
}

/// Files that count how much is read.
struct Counting(MemoryFiles, Arc<AtomicU64>);

struct CountingFile(Arc<dyn StoreFile>, Arc<AtomicU64>);

impl Files for Counting {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.0.create_dir(path)
    }
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn StoreFile>> {
        Ok(Arc::new(CountingFile(self.0.open(path, mode)?, Arc::clone(&self.1))))
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.0.list(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.remove(path)
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.0.sync_dir(path)
    }
}

impl StoreFile for CountingFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.0.read_at(buffer, offset)?;
        self.1.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.0.write_at(bytes, offset)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0.set_len(len)
    }
}

#[test]
fn a_view_that_is_gone_is_made_while_the_journal_is_read_once() {
    let files = MemoryFiles::new();
    let options = LogOptions { durability: Durability::Buffered, ..LogOptions::default() };
    let opened = |view: &Path| {
        let read = Arc::new(AtomicU64::new(0));
        let counting = Arc::new(Counting(files.clone(), Arc::clone(&read)));
        let view = Some(view.join("view"));
        let (log, _) = ProofLog::open_files(counting, None, view, &options, Timestamp::from_millis(0), STORE).unwrap();
        (log, read.load(Ordering::Relaxed))
    };
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (log, _) = opened(first.path());
    for at in 0..500 {
        decide(&log, at, draft("a", Decision::Allow, RiskLevel::Low, 500)).unwrap();
    }
    log.close().unwrap();
    drop(log);
    let stored = files.content(Path::new("journal/0000000000.rkj")).len() as u64;
    let (log, read) = opened(second.path());
    assert!(read > stored && read < stored + stored / 2, "{read} bytes were read of {stored}");
    assert_eq!(compared(&log), ViewFinding::Agrees);
    assert!(!log.state().view_lost);
}
