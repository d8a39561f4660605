//! The lock that lets only one process use a folder.
//!
//! The folder itself is locked with `flock`, so that deleting a file cannot remove the lock. A forked process inherits
//! that lock with the handle and would keep it after its parent has ended. So the holder also has a POSIX lock on the
//! file `LOCK`, which `fork` does not pass on, and names itself in it. A folder that is locked, but whose named holder
//! has lost the POSIX lock for longer than a holder takes to renew it, was left to forked processes and can be taken.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fs4::{FileExt, TryLockError};

use super::real::RealFiles;

/// A lock on a folder, released when dropped or when the process ends.
pub struct FolderLock {
    folder: File,
    /// The file `LOCK`; `None` if it cannot be written.
    owner: Option<Arc<File>>,
    process: u32,
}

/// The reason a folder could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("another governor holds this folder; close it first, or use another folder")]
    Held,
    #[error("the folder cannot be written to ({0}); open it to read it, or open a copy elsewhere")]
    ReadOnly(io::Error),
    #[error("cannot lock the folder")]
    Io(#[from] io::Error),
}

impl FolderLock {
    /// Locks the folder for a moment in which nothing is written to it; `None` if it is locked.
    pub(crate) fn peek(folder: &RealFiles) -> Option<File> {
        let file = folder.handle().ok()?;
        FileExt::try_lock(&file).ok().map(|()| file)
    }

    /// Locks the folder through its handle. Waits up to a second for a holder that is about to release it, and longer to
    /// find out whether only forked processes of the holder are left.
    pub(crate) fn acquire(folder: &RealFiles) -> Result<Self, LockError> {
        let file = folder.lockable().map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => LockError::ReadOnly(error),
            _ => LockError::Io(error),
        })?;
        let deadline = Instant::now() + PATIENCE;
        let mut left_since = None;
        loop {
            let is_inherited = match FileExt::try_lock(&file) {
                Ok(()) => false,
                Err(TryLockError::WouldBlock) => true,
                Err(TryLockError::Error(error)) => return Err(error.into()),
            };
            let is_left = is_inherited && owner::has_ended(folder);
            left_since = left_since.filter(|_| is_left).or_else(|| is_left.then(Instant::now));
            if (!is_inherited || left_since.is_some_and(|since| since.elapsed() >= LEFT))
                && let Ok(owner) = owner::claim(folder)
            {
                folder.own(owner.clone(), is_inherited);
                return Ok(Self { folder: file, owner, process: std::process::id() });
            }
            if !is_inherited {
                // A governor took the folder from forked processes that have ended since.
                FileExt::unlock(&file)?;
            }
            if !is_left && Instant::now() >= deadline {
                return Err(LockError::Held);
            }
            thread::sleep(PAUSE);
        }
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // The copy in a forked process must not release what its parent holds.
        if self.process != std::process::id() {
            return;
        }
        if let Some(owner) = &self.owner {
            owner::release(&self.folder, owner);
        }
        // Closing the handle does not release a lock that a forked process has too.
        let _ = FileExt::unlock(&self.folder);
    }
}

/// The POSIX lock on `LOCK`. The process loses it whenever it closes any handle of that file, so it is renewed.
#[cfg(unix)]
pub(super) mod owner {
    use std::fs::File;
    use std::hash::{BuildHasher, RandomState};
    use std::io;
    use std::os::unix::fs::{FileExt, MetadataExt};
    use std::path::Path;
    use std::sync::{Arc, LazyLock};

    use rustix::fs::{AtFlags, FlockOperation, fcntl_lock, unlinkat};
    use rustix::io::Errno;
    use rustix::process::{Flock, FlockType, fcntl_getlk};

    use super::super::files::OpenMode;
    use super::super::real::RealFiles;

    /// Locks `LOCK` for this process and names it there; `None` if there cannot be such a file. Fails if a process has it.
    pub(super) fn claim(folder: &RealFiles) -> io::Result<Option<Arc<File>>> {
        let open = |mode| folder.open_file(Path::new(super::NAME), mode);
        let Ok(file) = open(OpenMode::Write).or_else(|_| open(OpenMode::Create)) else { return Ok(None) };
        // The POSIX lock does not keep this process itself out.
        if named(&file).as_deref() == Some(name(&file)?.as_bytes()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(held @ (Errno::AGAIN | Errno::ACCESS)) => return Err(held.into()),
            // The file system has no such locks.
            Err(_) => return Ok(None),
            Ok(()) => {}
        }
        let named = file.set_len(0).and_then(|()| file.write_all_at(name(&file)?.as_bytes(), 0));
        Ok(named.is_ok().then(|| Arc::new(file)))
    }

    /// Returns whether `LOCK` names another process that does not hold it.
    pub(super) fn has_ended(folder: &RealFiles) -> bool {
        let Ok(file) = folder.open_file(Path::new(super::NAME), OpenMode::Read) else { return false };
        named(&file).is_some_and(|named| name(&file).is_ok_and(|own| named != own.as_bytes()))
            && matches!(fcntl_getlk(&file, &Flock::from(FlockType::WriteLock)), Ok(None))
    }

    /// The name of the process that holds or held the folder; `None` if it was released.
    fn named(file: &File) -> Option<Vec<u8>> {
        let mut named = vec![0; 64];
        let len = file.read_at(&mut named, 0).ok()?;
        named.truncate(len);
        (len > 0).then_some(named)
    }

    pub(crate) fn renew(file: &File) {
        // If another process has it, `HEAD` shows that.
        let _ = fcntl_lock(file, FlockOperation::NonBlockingLockExclusive);
    }

    pub(super) fn release(folder: &File, file: &File) {
        // An empty file names nobody, if it cannot be deleted.
        let _ = file.set_len(0);
        let _ = unlinkat(folder, super::NAME, AtFlags::empty());
        let _ = fcntl_lock(file, FlockOperation::NonBlockingUnlock);
    }

    /// The name of this process as the holder of a file: its ID, a number that no other process on any machine has, and
    /// the file's own number, because the copy of a folder is another one.
    fn name(file: &File) -> io::Result<String> {
        static NUMBER: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));
        Ok(format!("{} {:016x} {}", std::process::id(), *NUMBER, file.metadata()?.ino()))
    }
}

#[cfg(not(unix))]
pub(super) mod owner {
    use std::fs::File;
    use std::io;
    use std::sync::Arc;

    use super::super::real::RealFiles;

    pub(super) fn claim(_: &RealFiles) -> io::Result<Option<Arc<File>>> {
        Ok(None)
    }

    pub(super) fn has_ended(_: &RealFiles) -> bool {
        false
    }

    pub(crate) fn renew(_: &File) {}

    pub(super) fn release(_: &File, _: &File) {}
}

/// The file that names the holder; where handles of folders cannot be locked, it is locked itself.
pub(crate) const NAME: &str = "LOCK";
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);
/// Time without the POSIX lock after which a folder counts as left. A holder renews it at least every second.
const LEFT: Duration = Duration::from_millis(2500);
