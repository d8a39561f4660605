//! Everything that the index says, compared with the journal.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::store::{OpenMode, StoreFile};
use rulekeep_types::OpenVerification;

/// The difference that a comparison of the index finds.
fn compared(log: &ProofLog) -> Option<String> {
    let found = log.verify().unwrap();
    assert!(found.valid && found.checked.is_index_compared);
    found.index_differed
}

/// A closed store with records of three entities, of which every third has an outcome. The entity `c` has three, and the
/// second denies.
fn store() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let log = open_folder(dir.path());
    for at in 0..24 {
        let entity = if at >= 21 {
            "c"
        } else if at % 2 == 0 {
            "a"
        } else {
            "b"
        };
        let decision = if at == 22 { Decision::Deny } else { Decision::Allow };
        let id = decide(&log, at, draft(entity, decision, RiskLevel::Low, 500)).unwrap();
        if at % 3 == 0 {
            report(&log, id, Outcome::Success).unwrap();
        }
    }
    assert_eq!(compared(&log), None);
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

/// Opens a store whose index was changed, in both ways: its answers are the journal's again, and the difference is told.
fn assert_mended(change: impl Fn(&Path), told: &str) {
    for verifying in [OpenVerification::Before, OpenVerification::Behind] {
        let dir = store();
        let expected = answers(&open_folder(dir.path()));
        change(dir.path());
        let options = LogOptions { verifying, ..LogOptions::default() };
        let place = Place::Folder(dir.path().to_owned());
        let log = ProofLog::open(&place, &options, Timestamp::from_millis(0), STORE).unwrap().0;
        log.wait_verified().unwrap();
        let said = log.state().view_mended.unwrap_or_else(|| panic!("{verifying:?}: nothing was found"));
        assert!(said.contains(told), "{verifying:?}: {said}");
        assert_eq!(answers(&log), expected, "{verifying:?}");
        assert_eq!(compared(&log), None);
        decide(&log, 30, draft("a", Decision::Allow, RiskLevel::Low, 500)).unwrap();
        log.close().unwrap();
        let log = open_folder(dir.path());
        assert_eq!((log.state().view_mended, compared(&log)), (None, None));
    }
}

/// The records of each decision and of an intent, as the index tells them.
fn answers(log: &ProofLog) -> Vec<Vec<(u64, Decision, Option<Outcome>)>> {
    let queries = Decision::ALL.iter().map(|decision| ProofQuery::entity("c").decision(*decision));
    let intent = ProofQuery::all().intent(IntentId::new(Timestamp::from_millis(0), 1));
    let of = |query: ProofQuery| {
        let found = log.records(&query).map(Result::unwrap);
        found.map(|record| (record.id.sequence().get(), record.decision, record.outcome)).collect()
    };
    queries.chain([intent, ProofQuery::all()]).map(of).collect()
}

#[test]
fn outcomes_exchanged_in_the_view_are_found_and_mended() {
    for (list, told) in [(0_u32, "\"a\""), (u32::MAX, "all entities")] {
        let key = [b"p".as_slice(), &list.to_be_bytes()].concat();
        // No sum shows the change.
        assert_mended(|folder| forge_view(folder, &key, |block| exchange_outcomes(block, 0, 1)), told);
    }
}

/// The postings of the entity `c` in the page of entities.
fn short_list(page: &mut [u8]) -> &mut [u8] {
    let start = page.windows(4).position(|entity| entity == [1, 0, b'c', 3]).unwrap() + 4;
    &mut page[start..start + 3 * 16]
}

/// Lets the first two postings of `c` exchange what they say of their records.
fn exchange_decisions(page: &mut [u8]) {
    let (first, second) = short_list(page).split_at_mut(16);
    first[6..8].swap_with_slice(&mut second[6..8]);
}

#[test]
fn a_denial_hidden_by_an_exchange_is_found_and_mended() {
    assert_mended(|folder| forge_view(folder, b"e", |page| exchange_decisions(page)), "\"c\"");
}

#[test]
fn an_order_exchanged_in_a_list_is_found_and_mended() {
    let exchange = |page: &mut Vec<u8>| {
        let (first, second) = short_list(page).split_at_mut(16);
        first.swap_with_slice(&mut second[..16]);
    };
    assert_mended(|folder| forge_view(folder, b"e", exchange), "not in order");
}

#[test]
fn an_intent_that_was_given_another_record_is_found() {
    // The record's sequence follows the mention's mark.
    assert_mended(|folder| forge_view(folder, b"o", |mentions| mentions[4] ^= 1), "intents");
}

#[test]
fn an_index_that_differs_in_an_open_log_is_told_by_verify() {
    let (dir, forged) = (store(), store());
    forge_view(forged.path(), b"e", |page| exchange_decisions(page));
    let log = open_folder(dir.path());
    let expected = answers(&log);
    *log.parts().index.write() = crate::index::load_view(Some(&forged.path().join("view")), 1 << 20).0;
    assert_ne!(answers(&log), expected);
    let said = compared(&log).unwrap();
    assert!(said.contains("\"c\""), "{said}");
    assert_eq!((answers(&log), compared(&log)), (expected, None));
    assert_eq!(log.state().view_mended, Some(said));
}

#[test]
fn a_reader_compares_the_index_in_the_folder_and_leaves_it() {
    let dir = store();
    let reading = || {
        let place = Place::ReadOnly(dir.path().to_owned());
        let log = ProofLog::open(&place, &LogOptions::default(), Timestamp::from_millis(0), STORE).unwrap().0;
        log.verify().unwrap()
    };
    let found = reading();
    assert!(found.valid && found.checked.is_index_compared && found.index_differed.is_none());
    forge_view(dir.path(), b"e", |page| exchange_decisions(page));
    for _ in 0..2 {
        let said = reading().index_differed.unwrap();
        assert!(said.contains("\"c\""), "{said}");
    }
    let writer = open_folder(dir.path());
    assert!(!reading().checked.is_index_compared, "of a log that is in use");
    drop(writer);
    assert_eq!(reading().index_differed, None, "it was rebuilt");
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
            assert_eq!(compared(&log), None, "round {rounds}");
            rounds += 1;
        }
    });
    assert_eq!(compared(&log), None);
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
    assert_eq!(compared(&log), None);
    assert!(!log.state().view_lost);
}
