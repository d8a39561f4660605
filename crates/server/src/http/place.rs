//! The places of connections. When all are taken, a new connection gets the place of the one that has been open for
//! longest without a known caller. So nobody can shut others out by holding connections open.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// The place of a connection. [`Server`](super::Server) adds it to the extensions of each request.
#[derive(Clone)]
pub struct Place(Arc<Taken>);

struct Taken {
    room: Arc<Room>,
    /// The key in [`Table::strangers`]; [`KEPT`] while the place is kept.
    since: AtomicU64,
    lost: Arc<Notify>,
    _permit: Option<OwnedSemaphorePermit>,
}

/// All places of a server.
pub(super) struct Room {
    free: Arc<Semaphore>,
    most_kept: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    last: u64,
    kept: usize,
    /// The connections whose places may be given to new ones, the next to lose its place first.
    strangers: BTreeMap<u64, Arc<Notify>>,
}

impl Place {
    /// Keeps the place for the connection until the current request is answered. To be called once the caller is known.
    ///
    /// At most three quarters of the places are kept. Beyond that, the connection counts as one that was just opened.
    pub fn keep(&self) {
        let mut table = self.0.room.table();
        // It is no longer there if the place is kept, or was given to another connection a moment ago.
        let Some(lost) = table.strangers.remove(&self.0.since.load(Ordering::Relaxed)) else { return };
        if table.kept < self.0.room.most_kept {
            table.kept += 1;
            self.0.since.store(KEPT, Ordering::Relaxed);
        } else {
            self.0.since.store(table.add(lost), Ordering::Relaxed);
        }
    }

    /// Ends the keeping after a response.
    pub(super) fn release(&self) {
        if self.0.since.load(Ordering::Relaxed) == KEPT {
            let mut table = self.0.room.table();
            table.kept -= 1;
            self.0.since.store(table.add(Arc::clone(&self.0.lost)), Ordering::Relaxed);
        }
    }

    /// Completes when the place is given to another connection.
    pub(super) async fn lost(&self) {
        self.0.lost.notified().await;
    }
}

impl Room {
    pub(super) fn new(most: usize) -> Arc<Self> {
        let free = Arc::new(Semaphore::new(most));
        Arc::new(Self { free, most_kept: most - most.div_ceil(4), table: Mutex::default() })
    }

    /// Takes a place for a new connection, and waits until the one that loses it has ended.
    pub(super) async fn enter(self: &Arc<Self>) -> Place {
        if self.free.available_permits() == 0
            && let Some((_, lost)) = self.table().strangers.pop_first()
        {
            lost.notify_one();
        }
        let permit = Arc::clone(&self.free).acquire_owned().await.ok();
        let lost = Arc::<Notify>::default();
        let since = AtomicU64::new(self.table().add(Arc::clone(&lost)));
        Place(Arc::new(Taken { room: Arc::clone(self), since, lost, _permit: permit }))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn add(&mut self, lost: Arc<Notify>) -> u64 {
        self.last += 1;
        self.strangers.insert(self.last, lost);
        self.last
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut table = self.room.table();
        match *self.since.get_mut() {
            KEPT => table.kept -= 1,
            since => drop(table.strangers.remove(&since)),
        }
    }
}

impl std::fmt::Debug for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Place").finish_non_exhaustive()
    }
}

const KEPT: u64 = 0;
