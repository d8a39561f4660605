//! Waiting for entries: by risk, with tickets, and several callers sharing one sync.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use super::*;
use crate::store::{OpenMode, StoreFile};

/// A disk in memory whose syncs wait while its gate is shut.
#[derive(Clone)]
struct Gated {
    disk: CrashFiles,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    is_shut: Mutex<bool>,
    changed: Condvar,
    held_up: AtomicUsize,
}

impl Gate {
    fn shut(&self) {
        *self.is_shut.lock().unwrap() = true;
    }

    fn open(&self) {
        *self.is_shut.lock().unwrap() = false;
        self.changed.notify_all();
    }

    fn pass(&self) {
        let shut = self.is_shut.lock().unwrap();
        if *shut {
            self.held_up.fetch_add(1, Ordering::SeqCst);
            drop(self.changed.wait_while(shut, |shut| *shut).unwrap());
        }
    }

    /// Waits until `held_up` syncs are blocked.
    fn wait_for_sync(&self, held_up: usize) {
        while self.held_up.load(Ordering::SeqCst) < held_up {
            thread::yield_now();
        }
    }
}

struct GatedFile {
    file: Arc<dyn StoreFile>,
    gate: Arc<Gate>,
}

impl Files for Gated {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.disk.create_dir(path)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn StoreFile>> {
        let file = self.disk.open(path, mode)?;
        // `HEAD` is written now and then; only syncs of the journal matter here.
        if path.starts_with("journal") {
            Ok(Arc::new(GatedFile { file, gate: Arc::clone(&self.gate) }))
        } else {
            Ok(file)
        }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
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

impl StoreFile for GatedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.gate.pass();
        self.file.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }
}

fn gated(durability: Durability) -> (ProofLog, Gated) {
    let files = Gated { disk: CrashFiles::new(), gate: Arc::default() };
    let (log, _) = open(files.clone(), durability).unwrap();
    // Preallocates the space now, not while the gate is shut.
    decide_at(&log, RiskLevel::Critical).unwrap();
    log.flush().unwrap();
    (log, files)
}

fn decide_at(log: &ProofLog, risk: RiskLevel) -> Result<ProofId, Error> {
    let made = log.queue().decide(Timestamp::from_millis(0), draft("a", Decision::Allow, risk, 700), 0)?.unwrap();
    log.settle_decision(made.sequence, made.risk)?;
    Ok(made.proof_id)
}

fn ticket(log: &ProofLog, risk: RiskLevel) -> Ticket {
    let made =
        log.queue().decide(Timestamp::from_millis(0), draft("a", Decision::Allow, risk, 700), 0).unwrap().unwrap();
    log.ticket(made.sequence, made.risk)
}

/// A waker that counts.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Woken {
    fn times(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

fn poll(ticket: &mut Ticket, woken: &Arc<Woken>) -> Poll<Result<(), Error>> {
    ticket.poll(&Context::from_waker(&Waker::from(Arc::clone(woken))))
}

#[test]
fn only_decisions_at_or_above_the_level_wait_for_the_disk() {
    for (least, waiting) in [(RiskLevel::Low, 4), (RiskLevel::High, 2), (RiskLevel::Critical, 1)] {
        let (log, files) = gated(Durability::SyncFrom(least));
        files.gate.shut();
        for (place, risk) in RiskLevel::ALL.iter().enumerate() {
            let is_waiting = ticket(&log, *risk).look().is_none();
            assert_eq!(is_waiting, place >= 4 - waiting, "{risk} where {least} waits");
        }
        // A call that need not wait returns without any sync.
        if least > RiskLevel::Low {
            decide_at(&log, RiskLevel::Low).unwrap();
        }
        files.gate.open();
    }
}

#[test]
fn an_entry_awaited_for_its_risk_survives_a_power_cut() {
    for seed in 0..20 {
        let disk = CrashFiles::new();
        let (log, _) = open(disk.clone(), Durability::SyncFrom(RiskLevel::High)).unwrap();
        let mut all = Vec::new();
        for risk in [RiskLevel::Low, RiskLevel::Medium, RiskLevel::Low, RiskLevel::High] {
            all.push(decide_at(&log, risk).unwrap());
        }
        let (after, _) = open(disk.crash(&mut Dice::new(seed)), Durability::Sync).unwrap();
        assert!(all.iter().all(|id| after.record(id).is_ok()), "power cut {seed}");
    }
}

#[test]
fn an_outcome_waits_like_its_decision_and_a_state_always() {
    let (log, files) = gated(Durability::SyncFrom(RiskLevel::High));
    let low = decide_at(&log, RiskLevel::Low).unwrap();
    log.catch_up().unwrap();
    files.disk.power_off_after(0);
    let facts = log.facts(&low).unwrap();
    let (proof_id, entity, outcome) = (low, facts.entity.clone(), Outcome::Success);
    let reserved = log.reserve_for(&entity, &low, outcome).unwrap().unwrap();
    let draft =
        OutcomeDraft { proof_id, entity, outcome, note: None, state: None, asked: None, trust: None, basis: None };
    let sequence = reserved.report(Timestamp::from_millis(0), draft).unwrap();
    log.settle_decision(sequence, facts.risk).unwrap();
    let state = StateDraft::new("agent/a".to_owned(), "1".to_owned());
    let changed = log.queue().set_state(Timestamp::from_millis(0), state, "a cause".to_owned());
    assert!(changed.and_then(|sequence| log.settle(sequence)).is_err(), "nothing was put on disk");
}

#[test]
fn a_ticket_is_open_until_the_sync_and_its_waker_is_called_then() {
    let (log, files) = gated(Durability::Sync);
    files.gate.shut();
    let mut waiting = ticket(&log, RiskLevel::Low);
    let woken = Arc::new(Woken::default());
    assert!(poll(&mut waiting, &woken).is_pending());
    files.gate.wait_for_sync(1);
    assert!(waiting.look().is_none());
    assert_eq!(woken.times(), 0);
    // The last waker counts, as the contract of `Future` requires.
    let last = Arc::new(Woken::default());
    assert!(poll(&mut waiting, &last).is_pending());
    files.gate.open();
    waiting.wait().unwrap();
    log.flush().unwrap();
    assert_eq!((woken.times(), last.times()), (0, 1));
    assert!(matches!(poll(&mut waiting, &woken), Poll::Ready(Ok(()))));
    assert!(waiting.look().unwrap().is_ok());
}

#[test]
fn a_ticket_that_is_dropped_leaves_its_entry_and_no_waker() {
    let (log, files) = gated(Durability::Sync);
    files.gate.shut();
    let woken = Arc::new(Woken::default());
    let mut dropped = ticket(&log, RiskLevel::Low);
    assert!(poll(&mut dropped, &woken).is_pending());
    drop(dropped);
    files.gate.open();
    log.flush().unwrap();
    assert_eq!(woken.times(), 0);
    assert_eq!(log.verify().unwrap().records, 2);
    assert_eq!(Arc::strong_count(&woken), 1, "nobody keeps the waker");
}

#[test]
fn a_failed_sync_wakes_who_waits_with_an_error() {
    let (log, files) = gated(Durability::Sync);
    files.gate.shut();
    let woken = Arc::new(Woken::default());
    let mut waiting = ticket(&log, RiskLevel::Low);
    assert!(poll(&mut waiting, &woken).is_pending());
    files.gate.wait_for_sync(1);
    files.disk.power_off_after(0);
    files.gate.open();
    assert!(waiting.wait().is_err());
    assert!(matches!(poll(&mut waiting, &woken), Poll::Ready(Err(_))));
    assert!(waiting.look().unwrap().is_err());
    assert!(log.close().is_err());
    assert_eq!(woken.times(), 1);
}

#[test]
fn a_failed_sync_is_an_error_and_ends_all_writing() {
    let (log, files) = gated(Durability::Sync);
    files.disk.power_off_after(1);
    assert!(decide_at(&log, RiskLevel::Low).is_err());
    assert!(decide_at(&log, RiskLevel::Low).is_err());
    assert!(log.close().is_err());
}

#[test]
fn closing_settles_every_ticket() {
    let (log, files) = gated(Durability::Sync);
    files.gate.shut();
    let woken = Arc::new(Woken::default());
    let mut tickets: Vec<_> = (0..100).map(|_| ticket(&log, RiskLevel::Low)).collect();
    assert!(tickets.iter_mut().all(|waiting| poll(waiting, &woken).is_pending()));
    files.gate.open();
    log.close().unwrap();
    assert_eq!(woken.times(), 100);
    assert!(tickets.iter_mut().all(|waiting| matches!(poll(waiting, &woken), Poll::Ready(Ok(())))));
}

#[test]
fn all_who_come_during_a_sync_are_served_by_the_next() {
    let (log, files) = gated(Durability::Sync);
    files.gate.shut();
    let before = log.journal().syncs;
    thread::scope(|scope| {
        scope.spawn(|| decide_at(&log, RiskLevel::Low).unwrap());
        files.gate.wait_for_sync(1);
        for _ in 0..40 {
            scope.spawn(|| decide_at(&log, RiskLevel::Low).unwrap());
        }
        while log.parts().queue.awaited() < 40 {
            thread::yield_now();
        }
        files.gate.open();
    });
    assert_eq!(log.journal().syncs - before, 2);
    assert_eq!(log.verify().unwrap().records, 42);
}

#[test]
fn a_log_whose_disk_hangs_is_told_from_one_that_takes_decisions() {
    use crate::Probe;
    use std::time::Duration;
    let (log, files) = gated(Durability::Buffered);
    let soon = Duration::from_millis(1);
    files.gate.shut();
    decide_at(&log, RiskLevel::Low).unwrap();
    assert_eq!(log.probe(soon).unwrap(), Probe::Stuck);
    files.gate.open();
    log.catch_up().unwrap();
    assert_eq!(log.probe(soon).unwrap(), Probe::Takes);
    log.close().unwrap();
    assert!(log.probe(soon).is_err());
}
