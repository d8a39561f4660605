//! The lock that lets only one process use a folder.

use std::fs::File;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

use fs4::{FileExt, TryLockError};

use super::real::RealFiles;

/// A lock on a folder, released when dropped or when the process ends.
pub struct FolderLock {
    _file: File,
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

    /// Locks the folder through its handle, so that deleting a file cannot remove the lock. Waits up to a second for
    /// a holder that is about to release it.
    pub(crate) fn acquire(folder: &RealFiles) -> Result<Self, LockError> {
        let file = folder.lockable().map_err(|error| match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => LockError::ReadOnly(error),
            _ => LockError::Io(error),
        })?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match FileExt::try_lock(&file) {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => return Err(LockError::Held),
                Err(TryLockError::Error(error)) => return Err(error.into()),
            }
        }
    }
}

/// The lock file, used where handles of folders cannot be locked.
pub(crate) const NAME: &str = "LOCK";
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);
