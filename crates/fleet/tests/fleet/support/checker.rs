//! What must hold in every run: no ALLOW after a kill switch and the term of a permit, no order that goes back or is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rulekeep_fleet::order::SignedOrder;

use super::member::{Gate, Running, now};

/// What a governor has decided and followed. Times are of the clock since boot.
#[derive(Debug, Clone, Default)]
pub(crate) struct Journal {
    /// The times at which an action was allowed.
    all: Vec<Duration>,
    /// The times at which a read of LOW risk was allowed.
    low: Vec<Duration>,
    decisions: u64,
    orders: Vec<u64>,
}

impl Journal {
    pub(crate) fn decided(&mut self, at: Duration, all: bool, low: bool) {
        self.decisions += 1;
        self.all.extend(all.then_some(at));
        self.low.extend(low.then_some(at));
    }

    pub(crate) fn follows(&mut self, order: u64) {
        if self.orders.last() != Some(&order) {
            self.orders.push(order);
        }
    }

    /// The last time at which an action was allowed.
    pub(crate) fn last_allowed(&self) -> Option<Duration> {
        self.all.last().copied()
    }

    /// Whether an action was allowed between two times.
    pub(crate) fn allowed_between(&self, from: Duration, until: Duration) -> bool {
        self.all.iter().any(|at| (from..until).contains(at))
    }

    /// Whether a read of LOW risk was allowed between two times.
    pub(crate) fn allowed_low_between(&self, from: Duration, until: Duration) -> bool {
        self.low.iter().any(|at| (from..until).contains(at))
    }
}

/// A thread that lets governors decide all the time. It ends with the value.
pub(crate) struct Agents {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Agents {
    pub(crate) fn of(members: &[Running]) -> Self {
        let gates: Vec<Arc<Gate>> = members.iter().map(|member| Arc::clone(&member.gate)).collect();
        let ends = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let ends = Arc::clone(&ends);
            move || {
                while !ends.load(Ordering::Relaxed) {
                    for gate in &gates {
                        gate.decide();
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        });
        Self { ends, thread: Some(thread) }
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        // A panic has been reported already.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// A kill switch for everybody: the time by which it was stored, and the end of the check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stopped {
    pub(crate) order: u64,
    /// The time at which the hub had answered that it is stored.
    pub(crate) at: Duration,
    /// The time at which it was lifted.
    pub(crate) lifted: Option<Duration>,
}

impl Stopped {
    /// One that was stored just now.
    pub(crate) fn now(order: u64) -> Self {
        Self { order, at: now().boot, lifted: None }
    }
}

/// Checks the journals of members. Returns what is wrong.
pub(crate) fn check(members: &[Running], stops: &[Stopped], term: Duration, offline: Duration) -> Vec<String> {
    let mut wrong = Vec::new();
    for member in members {
        let journal = member.gate.journal();
        assert!(
            journal.decisions > 0 && !journal.all.is_empty(),
            "{} never decided: the check would say nothing",
            member.id
        );
        for stop in stops {
            let end = stop.lifted.unwrap_or(Duration::MAX);
            let late = |times: &[Duration], bound: Duration| {
                times.iter().filter(|at| **at > bound && **at < end).max().copied()
            };
            for (what, times, bound) in
                [("action", &journal.all, stop.at + term), ("LOW read", &journal.low, stop.at + term + offline)]
            {
                if let Some(at) = late(times, bound) {
                    let (id, order) = (&member.id, stop.order);
                    wrong.push(format!(
                        "{id} allowed a {what} {:?} after the bound of order {order}",
                        at.saturating_sub(bound)
                    ));
                }
            }
        }
        if !journal.orders.is_sorted() {
            wrong.push(format!("the order in force at {} went back: {:?}", member.id, journal.orders));
        }
    }
    wrong
}

/// Checks that orders which were acknowledged are still there, as they were.
pub(crate) fn check_orders(given: &[SignedOrder], found: &[SignedOrder]) -> Vec<String> {
    let lost = (1..).zip(given).filter(|(seq, order)| found.get(seq - 1) != Some(order));
    lost.map(|(seq, _)| format!("order {seq} was acknowledged, and is lost or another one")).collect()
}
