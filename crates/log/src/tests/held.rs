//! The store's folder below an open log: moved, removed, replaced, overwritten by a backup.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::*;
use crate::journal::overdue::Lateness;
use crate::store::{Journal, LockError, OpenMode, StoreFile};

struct Store {
    dir: tempfile::TempDir,
    log: ProofLog,
}

impl Store {
    fn open() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let log = Self::at(&dir.path().join("store"), StoreId([1; 16])).unwrap();
        for number in 0..20 {
            decide(&log, number).unwrap();
        }
        Self { dir, log }
    }

    fn at(folder: &Path, nonce: StoreId) -> Result<ProofLog, OpenLogError> {
        let options = LogOptions { durability: Durability::Sync, ..LogOptions::default() };
        Ok(ProofLog::open(&Place::Folder(folder.to_owned()), &options, Timestamp::from_millis(0), nonce)?.0)
    }

    fn folder(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    /// Decides until that is refused, for little more than a second. Returns the reason.
    fn decide_until_refused(&self) -> String {
        let started = Instant::now();
        loop {
            match decide(&self.log, 1) {
                Err(error) => break error.to_string(),
                Ok(_) => assert!(started.elapsed() < Duration::from_secs(1), "acknowledged for more than a second"),
            }
        }
    }
}

fn decide(log: &ProofLog, at: i64) -> Result<ProofId, Error> {
    let committed =
        log.queue().decide(Timestamp::from_millis(at), draft("a", Decision::Allow, RiskLevel::Low, 1), 0)?;
    let committed = committed.unwrap();
    log.settle_in_any_case(committed.sequence)?;
    Ok(committed.proof_id)
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_dir() {
            found.extend(contents(&entry.path()));
        } else {
            found.push((entry.path(), fs::read(entry.path()).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn a_folder_that_is_moved_is_noticed_within_a_second() {
    let store = Store::open();
    fs::rename(store.folder(), store.dir.path().join("elsewhere")).unwrap();
    let why = store.decide_until_refused();
    assert!(why.contains("moved, removed or replaced"), "{why}");
    assert!(store.log.state().has_failed);
}

#[test]
fn a_folder_that_is_removed_is_noticed_within_a_second() {
    let store = Store::open();
    fs::remove_dir_all(store.folder()).unwrap();
    store.decide_until_refused();
    assert!(!store.folder().exists(), "nothing makes it anew");
    drop(store.log);
}

#[test]
fn not_a_byte_is_written_into_a_folder_that_replaced_the_store() {
    let store = Store::open();
    let backup = store.dir.path().join("backup");
    copy(&store.folder(), &backup);
    fs::rename(store.folder(), store.dir.path().join("elsewhere")).unwrap();
    fs::rename(&backup, store.folder()).unwrap();
    let before = contents(&store.folder());
    store.decide_until_refused();
    let _ = store.log.close();
    drop(store.log);
    assert!(contents(&store.dir.path().join("store")) == before);
}

#[test]
fn a_copy_restored_over_the_files_is_noticed_within_a_second() {
    let store = Store::open();
    let backup = store.dir.path().join("backup");
    copy(&store.folder(), &backup);
    for number in 0..20 {
        decide(&store.log, number).unwrap();
    }
    for name in fs::read_dir(store.folder()).unwrap().map(|entry| entry.unwrap().path()) {
        if name.is_dir() { fs::remove_dir_all(name).unwrap() } else { fs::remove_file(name).unwrap() }
    }
    copy(&backup, &store.folder());
    let why = store.decide_until_refused();
    assert!(why.contains("was removed") || why.contains("HEAD"), "{why}");
}

#[test]
fn a_copy_written_into_the_files_is_noticed_within_a_second() {
    let store = Store::open();
    let backup = store.dir.path().join("backup");
    copy(&store.folder(), &backup);
    // Waits until `HEAD` differs from the copied one.
    let written = || fs::read(store.folder().join("HEAD")).unwrap();
    while written() == fs::read(backup.join("HEAD")).unwrap() {
        decide(&store.log, 1).unwrap();
    }
    // Writes into the existing files, as `cp -r` does: their names and links stay.
    for name in ["HEAD", "journal/0000000000.rkj"] {
        let content = fs::read(backup.join(name)).unwrap();
        fs::write(store.folder().join(name), content).unwrap();
    }
    store.decide_until_refused();
}

#[test]
fn a_head_of_another_opening_is_noticed_within_a_second() {
    let store = Store::open();
    let head = store.folder().join("HEAD");
    let written = fs::read_to_string(&head).unwrap();
    let (json, _) = written.trim_end().rsplit_once('\n').unwrap();
    let other = json.replace(&"01".repeat(16), &"02".repeat(16));
    assert_ne!(json, other);
    let next = store.folder().join("other");
    fs::write(&next, format!("{other}\ncrc32:{:08x}\n", crc32fast::hash(other.as_bytes()))).unwrap();
    // Replaced as another governor would do it; this one may write its own again before it checks.
    let started = Instant::now();
    while decide(&store.log, 1).is_ok() {
        fs::copy(&next, &head).unwrap();
        assert!(started.elapsed() < Duration::from_secs(2), "a HEAD that is not ours goes unnoticed");
    }
}

#[test]
fn a_quiet_log_notices_too() {
    let store = Store::open();
    fs::rename(store.folder(), store.dir.path().join("elsewhere")).unwrap();
    while !store.log.state().has_failed {
        std::thread::yield_now();
    }
}

#[test]
fn no_file_can_be_taken_away_to_let_a_second_writer_in() {
    let store = Store::open();
    for name in fs::read_dir(store.folder()).unwrap().map(|entry| entry.unwrap().path()) {
        if name.file_name().is_some_and(|name| name != "journal" && name != "HEAD" && name != "view") {
            fs::remove_file(name).unwrap();
        }
    }
    let second = Store::at(&store.folder(), StoreId([2; 16]));
    assert!(matches!(second, Err(OpenLogError::Lock(LockError::Held))));
    decide(&store.log, 1).unwrap();
}

#[test]
fn a_folder_of_links_to_the_same_files_lets_no_second_writer_in() {
    let store = Store::open();
    let linked = store.dir.path().join("linked");
    fs::create_dir_all(linked.join("journal")).unwrap();
    for name in fs::read_dir(store.folder().join("journal")).unwrap().map(|entry| entry.unwrap().file_name()) {
        fs::hard_link(store.folder().join("journal").join(&name), linked.join("journal").join(&name)).unwrap();
    }
    fs::copy(store.folder().join("HEAD"), linked.join("HEAD")).unwrap();
    let second = Store::at(&linked, StoreId([2; 16])).map(drop).unwrap_err();
    let why = std::error::Error::source(&second).unwrap().to_string();
    assert!(why.contains("another governor writes"), "{why}");
    drop(store.log);
    Store::at(&linked, StoreId([2; 16])).unwrap();
}

#[test]
fn a_store_that_cannot_be_looked_at_is_not_a_replaced_one() {
    for fault in [Fault::Once, Fault::Forever] {
        let disk = MemoryFiles::new();
        let faulty = Arc::new(FaultyFiles::new(disk.clone(), fault, Counted::Looks, i64::MAX));
        let files = Arc::clone(&faulty);
        let mut journal = Journal::create(files, StoreId([1; 16]), JournalOptions::default()).unwrap();
        journal.note_head().unwrap();
        for call in 0.. {
            faulty.strike_after(call);
            journal.check_held().unwrap();
            if !faulty.struck() {
                assert!(call > 1, "the check did not look");
                break;
            }
        }
        faulty.relieve();
        disk.remove(Path::new("HEAD")).unwrap();
        assert!(journal.check_held().unwrap_err().to_string().contains("the store was replaced"));
    }
}

/// Files of which those with one name cannot be opened for a while.
struct Failing {
    inner: MemoryFiles,
    name: &'static str,
    fails: Arc<AtomicBool>,
}

impl Files for Failing {
    fn create_dir(&self, path: &Path) -> std::io::Result<()> {
        self.inner.create_dir(path)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> std::io::Result<Arc<dyn StoreFile>> {
        if self.fails.load(Ordering::SeqCst) && path.to_string_lossy().contains(self.name) && mode != OpenMode::Read {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.inner.open(path, mode)
    }

    fn list(&self, path: &Path) -> std::io::Result<Vec<String>> {
        self.inner.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> std::io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> std::io::Result<()> {
        self.inner.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> std::io::Result<()> {
        self.inner.sync_dir(path)
    }
}

/// Opens a log in which files with `name` in their path cannot be created while the flag is set.
fn failing(name: &'static str, lateness: Lateness) -> (ProofLog, Arc<AtomicBool>) {
    let fails = Arc::new(AtomicBool::new(false));
    let files = Failing { inner: MemoryFiles::new(), name, fails: Arc::clone(&fails) };
    let options = LogOptions { durability: Durability::Sync, journal: SMALL, lateness, ..LogOptions::default() };
    let opened = ProofLog::open_files(Arc::new(files), None, None, &options, Timestamp::from_millis(0), STORE);
    (opened.unwrap().0, fails)
}

const AT_ONCE: Lateness = Lateness { degrades: Duration::ZERO, refuses: Duration::ZERO };
const NEVER: Lateness = Lateness { degrades: Duration::ZERO, refuses: Duration::MAX };

#[test]
fn overdue_files_beside_the_entries_refuse_in_the_end_and_pass() {
    // A segment holds about three decisions, so the next one is due soon.
    for (name, told) in [("HEAD", "HEAD could not be written"), ("journal/", "the next segment could not be")] {
        let (log, fails) = failing(name, AT_ONCE);
        decide(&log, 1).unwrap();
        fails.store(true, Ordering::SeqCst);
        for _ in 0..5 {
            decide(&log, 2).unwrap();
        }
        while log.state().refusing.is_none() {
            std::thread::yield_now();
        }
        let why = decide(&log, 2).unwrap_err().to_string();
        assert!(why.contains(told) && why.contains("until it is written"), "{name}: {why}");
        assert!(log.state().overdue.iter().any(|overdue| overdue.contains(told)), "{name}: {:?}", log.state().overdue);
        assert!(!log.state().has_failed);
        fails.store(false, Ordering::SeqCst);
        while decide(&log, 3).is_err() {
            std::thread::yield_now();
        }
        assert!(log.state().overdue.is_empty(), "{name}: {:?}", log.state().overdue);
        log.close().unwrap();
    }
}

#[test]
fn what_is_overdue_refuses_nothing_for_a_while() {
    let (log, fails) = failing("HEAD", NEVER);
    fails.store(true, Ordering::SeqCst);
    decide(&log, 1).unwrap();
    while log.state().overdue.is_empty() {
        std::thread::yield_now();
    }
    decide(&log, 2).unwrap();
    assert!(log.state().refusing.is_none());
}

#[cfg(feature = "checkpoints")]
#[test]
fn a_checkpoint_that_could_not_be_kept_is_kept_later() {
    let (log, fails) = failing("CHECKPOINT", NEVER);
    decide(&log, 1).unwrap();
    fails.store(true, Ordering::SeqCst);
    assert!(log.keep_checkpoint("a\n1\nroot\n").is_err());
    assert!(log.state().overdue[0].starts_with("CHECKPOINT could not be written"), "{:?}", log.state().overdue);
    fails.store(false, Ordering::SeqCst);
    while !log.state().overdue.is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(log.kept_checkpoint().unwrap().unwrap(), "a\n1\nroot\n");
}

#[test]
fn another_journal_is_noticed_within_a_second_and_left_alone() {
    let (store, other) = (Store::open(), Store::open());
    let foreign = store.folder().join("journal");
    other.log.close().unwrap();
    fs::rename(&foreign, store.dir.path().join("own")).unwrap();
    fs::rename(other.folder().join("journal"), &foreign).unwrap();
    let before = contents(&foreign);
    let why = store.decide_until_refused();
    assert!(why.contains("replaced"), "{why}");
    assert!(contents(&foreign) == before);
}
