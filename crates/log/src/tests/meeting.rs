//! Interactions of parts that do not know each other: closing, erasing, opening with an index, and wakers.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use super::*;
use crate::journal::entry::ErasureEntry;
use crate::journal::erase::{Erasure, EvidenceSelection};
use crate::store::{Kind, OpenMode, StoreFile};

fn erase(log: &ProofLog, selection: &EvidenceSelection) -> Result<u64, Error> {
    log.erase(Timestamp::from_millis(1000), selection, "asked for", &|_| None)
}

fn of_agent(agent: &str) -> EvidenceSelection {
    EvidenceSelection::Agent(agent.parse().unwrap())
}

/// Files whose list of segments is delayed while the gate is shut.
#[derive(Clone)]
struct Gated {
    disk: MemoryFiles,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    is_shut: Mutex<bool>,
    opened: Condvar,
    somebody_waits: AtomicBool,
}

impl Files for Gated {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir(path)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn StoreFile>> {
        self.disk.open(path, mode)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let shut = self.gate.is_shut.lock().unwrap();
        if *shut && path == Path::new("journal") {
            self.gate.somebody_waits.store(true, Ordering::SeqCst);
            drop(self.gate.opened.wait_while(shut, |shut| *shut).unwrap());
        }
        self.disk.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_dir(path)
    }
}

#[test]
fn a_log_is_not_let_go_while_evidence_is_erased_in_it() {
    let gated = Gated { disk: MemoryFiles::new(), gate: Arc::default() };
    let (log, _) = open_small(gated.clone(), Durability::Sync).unwrap();
    for at in 0..10 {
        decide(&log, at, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
    }
    let (log, gate) = (&log, &gated.gate);
    std::thread::scope(|scope| {
        *gate.is_shut.lock().unwrap() = true;
        let erasing = scope.spawn(move || erase(log, &of_agent("a")));
        while !gate.somebody_waits.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let closing = scope.spawn(|| log.close());
        for _ in 0..100 {
            std::thread::yield_now();
            assert!(!closing.is_finished(), "the log was let go while files were taken away in it");
        }
        *gate.is_shut.lock().unwrap() = false;
        gate.opened.notify_all();
        assert_eq!(erasing.join().unwrap().unwrap(), 10);
        closing.join().unwrap().unwrap();
    });
    assert!(erase(log, &of_agent("a")).is_err(), "it is closed");
}

#[test]
fn erasures_are_carried_out_whatever_a_note_from_elsewhere_says() {
    let disk = MemoryFiles::new();
    let (log, _) = open_small(disk.clone(), Durability::Sync).unwrap();
    let id = decide(&log, 0, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
    let erasure = Erasure { selection: of_agent("a"), entries: 2 };
    let body = |at| ErasureEntry::new(&erasure, "asked for", at);
    let (entry, _) = log.queue().entry(Timestamp::from_millis(9), Kind::Erasure, None, body).unwrap();
    log.parts().queue.hurry();
    assert!(log.parts().journal.progress.wait_durable(entry));
    // Killed between the entry and the bytes, with the record of a longer log beside it.
    let left = disk.fork();
    crate::store::note_carried_out(&left, 1000).unwrap();
    let before = left.content(Path::new("journal/0000000000.rkj"));
    let (log, _) = open_small(left.clone(), Durability::Sync).unwrap();
    assert!(matches!(log.evidence(&id), Err(Error::EvidenceErased { .. })));
    assert_ne!(left.content(Path::new("journal/0000000000.rkj")), before, "the bytes are gone");
}

#[test]
fn evidence_put_back_after_its_erasure_is_not_returned() {
    let disk = MemoryFiles::new();
    let (log, _) = open_small(disk.clone(), Durability::Sync).unwrap();
    let id = decide(&log, 0, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap();
    let path = Path::new("journal/0000000000.rkj");
    let with_evidence = disk.content(path);
    assert_eq!(erase(&log, &of_agent("a")).unwrap(), 1);
    disk.change(path, |bytes| bytes[..with_evidence.len()].copy_from_slice(&with_evidence));
    assert!(matches!(log.evidence(&id), Err(Error::EvidenceErased { .. })));
}

#[test]
fn a_record_with_unfitting_evidence_does_not_hold() {
    let disk = MemoryFiles::new();
    let (log, _) = open(disk.clone(), Durability::Sync).unwrap();
    let ids: Vec<_> =
        (0..3).map(|at| decide(&log, at, draft("a", Decision::Allow, RiskLevel::Low, 700)).unwrap()).collect();
    let first = log.record(&ids[0]).unwrap();
    disk.change(Path::new("journal/0000000000.rkj"), |bytes| {
        let place = bytes.windows(8).enumerate().filter(|(_, window)| window == b"\"intent\"").nth(1).unwrap().0;
        bytes[place + 2] ^= 1;
    });
    let found = log.verify().unwrap();
    assert_eq!(found.first_broken.unwrap().proof_id, Some(ids[1]));
    assert_eq!((found.records, found.head_hash), (1, first.hash));
}

/// A task that is dropped with its waker, and owns another task's ticket.
struct OwnsTicket {
    _ticket: Mutex<crate::Ticket>,
}

impl Wake for OwnsTicket {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_waker_that_owns_a_ticket_is_dropped_outside_the_lock() {
    let (log, _) = open(MemoryFiles::new(), Durability::Sync).unwrap();
    // These entries never come.
    let ticket = |sequence| crate::Ticket::new(Arc::clone(log.parts()), rulekeep_types::Sequence::new(sequence), true);
    let mut inner = ticket(1000);
    assert!(matches!(inner.poll(&Context::from_waker(Waker::noop())), Poll::Pending));
    let mut outer = ticket(1001);
    let waker = Waker::from(Arc::new(OwnsTicket { _ticket: Mutex::new(inner) }));
    assert!(matches!(outer.poll(&Context::from_waker(&waker)), Poll::Pending));
    drop(waker);
    // The waiting list is the last owner of the waker.
    drop(outer);
}
