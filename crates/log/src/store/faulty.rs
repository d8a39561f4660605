//! Files that fail at a chosen call, for tests of error handling.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use super::files::{Files, NO_DESCRIPTORS, OpenMode, StoreFile};

/// The failure to inject when the countdown of calls reaches zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// One call fails.
    Once,
    /// One call and every later one fail.
    Forever,
    /// One write stores half of its bytes; it and every later call fail.
    Torn,
    /// One call fails because the disk is full.
    Full,
    /// From that call on, no file descriptor is left: opening fails, and open files keep working.
    NoDescriptors,
}

/// The calls that the countdown counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Calls that change something.
    Changes,
    /// Calls that change something and calls that only read.
    All,
    /// Calls that only read.
    Looks,
}

/// Passes every call on, except the one chosen to fail.
pub struct FaultyFiles<F> {
    inner: F,
    plan: Arc<Plan>,
}

struct Plan {
    fault: Fault,
    counted: Counted,
    /// Number of counted calls that still succeed.
    left: AtomicI64,
    // Held while syncs must wait, and shortly by each sync.
    stall: RwLock<()>,
}

impl Plan {
    /// Like [`Plan::step`], for a call that only reads.
    fn look(&self) -> io::Result<()> {
        if self.counted == Counted::Changes { Ok(()) } else { self.step() }
    }

    /// Like [`Plan::step`], for a call that changes something.
    fn change(&self) -> io::Result<()> {
        if self.counted == Counted::Looks { Ok(()) } else { self.step() }
    }

    /// Counts a call; returns the injected error when it is due.
    fn step(&self) -> io::Result<()> {
        let left = self.left.fetch_sub(1, Ordering::SeqCst);
        match self.fault {
            Fault::Once if left == 0 => Err(io::Error::other("injected fault")),
            Fault::Forever | Fault::Torn if left <= 0 => Err(io::Error::other("injected fault")),
            Fault::Full if left == 0 => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }

    /// Fails if no descriptor is left. Called by operations that need one.
    fn take_descriptor(&self) -> io::Result<()> {
        if self.fault == Fault::NoDescriptors && self.left.load(Ordering::SeqCst) < 0 {
            return Err(io::Error::from_raw_os_error(NO_DESCRIPTORS[NO_DESCRIPTORS.len() - 1]));
        }
        Ok(())
    }
}

impl<F: Files> FaultyFiles<F> {
    /// Makes the counted call after `after` successful ones fail.
    pub fn new(inner: F, fault: Fault, counted: Counted, after: i64) -> Self {
        let plan = Plan { fault, counted, left: AtomicI64::new(after), stall: RwLock::default() };
        Self { inner, plan: Arc::new(plan) }
    }

    /// Makes the counted call after `calls` more successful ones fail.
    pub fn strike_after(&self, calls: i64) {
        self.plan.left.store(calls, Ordering::SeqCst);
    }

    /// Makes every sync of a file wait until the returned value is dropped.
    pub fn stall(&self) -> impl Sized + '_ {
        self.plan.stall.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops injecting failures.
    pub fn relieve(&self) {
        self.strike_after(i64::MAX);
    }

    /// Returns whether the chosen call was reached.
    #[cfg(test)]
    pub(crate) fn struck(&self) -> bool {
        self.plan.left.load(Ordering::SeqCst) < 0
    }
}

impl<F: Files + ?Sized> Files for Arc<F> {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        (**self).create_dir(path)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn StoreFile>> {
        (**self).open(path, mode)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        (**self).list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        (**self).rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        (**self).remove(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        (**self).sync_dir(path)
    }

    fn check_place(&self) -> io::Result<()> {
        (**self).check_place()
    }
}

impl<F: Files> Files for FaultyFiles<F> {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.plan.change()?;
        self.inner.create_dir(path)
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn StoreFile>> {
        if mode.creates() {
            self.plan.change()?;
        } else {
            self.plan.look()?;
        }
        self.plan.take_descriptor()?;
        let file = self.inner.open(path, mode)?;
        Ok(Arc::new(FaultyFile { inner: file, plan: Arc::clone(&self.plan) }))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.plan.look()?;
        self.plan.take_descriptor()?;
        self.inner.list(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.plan.change()?;
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.plan.change()?;
        self.inner.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.plan.change()?;
        self.plan.take_descriptor()?;
        self.inner.sync_dir(path)
    }

    fn check_place(&self) -> io::Result<()> {
        self.inner.check_place()
    }
}

struct FaultyFile {
    inner: Arc<dyn StoreFile>,
    plan: Arc<Plan>,
}

impl StoreFile for FaultyFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.plan.look()?;
        self.inner.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let step = self.plan.change();
        if step.is_err() && self.plan.fault == Fault::Torn && self.plan.left.load(Ordering::SeqCst) == -1 {
            self.inner.write_at(&bytes[..bytes.len() / 2], offset)?;
        }
        step?;
        self.inner.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.plan.change()?;
        drop(self.plan.stall.read().unwrap_or_else(PoisonError::into_inner));
        self.inner.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        self.plan.look()?;
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.plan.change()?;
        self.inner.set_len(len)
    }
}
