//! The file system below one folder. The folder is opened once and held open, so that moving, removing or replacing
//! it is noticed, and nothing is ever written into another folder.
//!
//! On Unix every call goes through the folder's handle. Elsewhere calls use the folder's absolute path, and a
//! replaced folder is not noticed.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::files::{Files, OpenMode, StoreFile};
use super::lock::owner;

/// The files below a folder that is held open.
pub struct RealFiles {
    folder: place::Folder,
    /// The absolute path, so that changing the working directory has no effect.
    path: PathBuf,
    /// The file that names this process as the folder's holder, and whether forked processes of an earlier holder have the
    /// locks of its files.
    held: OnceLock<(Option<Arc<File>>, bool)>,
}

impl RealFiles {
    /// Opens the folder at `path`, which must exist.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        Ok(Self { folder: place::Folder::open(&path)?, path, held: OnceLock::new() })
    }

    /// Returns a separate handle for locking. Fails if the folder is not writable.
    pub(super) fn lockable(&self) -> io::Result<File> {
        self.folder.lockable()
    }

    /// Returns a separate handle, which can be locked.
    pub(super) fn handle(&self) -> io::Result<File> {
        self.folder.handle()
    }

    pub(super) fn open_file(&self, path: &Path, mode: OpenMode) -> io::Result<File> {
        self.folder.open_file(path, mode)
    }

    /// Notes that this process holds the folder.
    pub(super) fn own(&self, owner: Option<Arc<File>>, is_inherited: bool) {
        let _ = self.held.set((owner, is_inherited));
    }

    /// Returns a path to a name in the folder, for a library that opens files by path. Valid as long as this value.
    pub(crate) fn path_to(&self, name: &str) -> PathBuf {
        self.folder.path().unwrap_or_else(|| self.path.clone()).join(name)
    }
}

impl Files for RealFiles {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut folders: Vec<&Path> = path.ancestors().filter(|folder| !folder.as_os_str().is_empty()).collect();
        folders.reverse();
        folders.into_iter().try_for_each(|folder| match self.folder.create_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        })
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn StoreFile>> {
        let is_inherited = self.held.get().is_some_and(|(_, is_inherited)| *is_inherited);
        Ok(Arc::new(RealFile { file: self.open_file(path, mode)?, is_inherited }))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names = match self.folder.list(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            names => names?,
        };
        names.sort();
        Ok(names)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.folder.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.folder.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.folder.sync_dir(path)
    }

    fn check_place(&self) -> io::Result<()> {
        if let Some((Some(owner), _)) = self.held.get() {
            owner::renew(owner);
        }
        // An error says nothing about the folder.
        if self.folder.is_at(&self.path).unwrap_or(true) {
            return Ok(());
        }
        let path = self.path.display();
        Err(io::Error::other(format!(
            "{path} is no longer the folder that was opened: it was moved, removed or replaced"
        )))
    }
}

struct RealFile {
    file: File,
    /// Forked processes of an earlier holder may have its lock.
    is_inherited: bool,
}

impl StoreFile for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match positioned::read(&self.file, rest, offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut written = 0;
        while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
            match positioned::write(&self.file, rest, offset + written as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        self.file.metadata().map(|metadata| metadata.len())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    #[cfg(unix)]
    fn identity(&self) -> io::Result<Option<(u64, u64)>> {
        use std::os::unix::fs::MetadataExt;
        self.file.metadata().map(|metadata| Some((metadata.dev(), metadata.ino())))
    }

    #[cfg(unix)]
    fn lock(&self) -> io::Result<()> {
        match fs4::FileExt::try_lock(&self.file) {
            Err(fs4::TryLockError::WouldBlock) if !self.is_inherited => {
                Err(io::Error::other("another governor writes to the newest segment"))
            }
            Err(fs4::TryLockError::Error(error)) => Err(error),
            Ok(()) | Err(fs4::TryLockError::WouldBlock) => Ok(()),
        }
    }

    #[cfg(unix)]
    fn unlock(&self) {
        // If it fails, closing the file releases the lock.
        let _ = fs4::FileExt::unlock(&self.file);
    }
}

#[cfg(unix)]
mod place {
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsRawFd, OwnedFd};
    use std::path::{Path, PathBuf};

    use rustix::fs::{self, Access, AtFlags, Dir, Mode, OFlags};
    use rustix::io::{Errno, retry_on_intr};

    use super::super::files::OpenMode;

    /// The folder's handle.
    pub(super) struct Folder(OwnedFd);

    const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

    impl Folder {
        pub(crate) fn open(path: &Path) -> io::Result<Self> {
            Ok(Self(retry_on_intr(|| fs::open(path, FOLDER, Mode::empty()))?))
        }

        /// Returns whether the path leads to this folder, and the folder still exists.
        pub(super) fn is_at(&self, path: &Path) -> io::Result<bool> {
            let held = fs::fstat(&self.0)?;
            match fs::stat(path) {
                Ok(found) => Ok((found.st_dev, found.st_ino) == (held.st_dev, held.st_ino) && held.st_nlink > 0),
                Err(Errno::NOENT | Errno::NOTDIR | Errno::STALE | Errno::LOOP) => Ok(false),
                // A process that dropped privileges after opening the folder may not be able to look up its path.
                Err(Errno::ACCESS) => Ok(held.st_nlink > 0),
                Err(error) => Err(error.into()),
            }
        }

        pub(super) fn lockable(&self) -> io::Result<File> {
            fs::accessat(&self.0, ".", Access::WRITE_OK, AtFlags::empty())?;
            self.handle()
        }

        pub(super) fn handle(&self) -> io::Result<File> {
            self.open_dir(Path::new("")).map(File::from)
        }

        /// Returns a path through the handle, if the system offers one.
        pub(super) fn path(&self) -> Option<PathBuf> {
            let path = PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()));
            self.is_at(&path).is_ok_and(|is_at| is_at).then_some(path)
        }

        pub(super) fn create_dir(&self, path: &Path) -> io::Result<()> {
            Ok(fs::mkdirat(&self.0, path, Mode::RWXU | Mode::RWXG | Mode::RWXO)?)
        }

        pub(super) fn open_file(&self, path: &Path, mode: OpenMode) -> io::Result<File> {
            let access = if mode == OpenMode::Read { OFlags::RDONLY } else { OFlags::RDWR };
            let create = if mode.creates() { OFlags::CREATE | OFlags::EXCL } else { OFlags::empty() };
            let others = match mode {
                OpenMode::CreateSecret => Mode::empty(),
                _ => Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH,
            };
            let flags = access | create | OFlags::CLOEXEC;
            let permissions = Mode::RUSR | Mode::WUSR | others;
            Ok(retry_on_intr(|| fs::openat(&self.0, path, flags, permissions))?.into())
        }

        pub(super) fn list(&self, path: &Path) -> io::Result<Vec<String>> {
            let mut names = Vec::new();
            for entry in Dir::new(self.open_dir(path)?)? {
                let name = entry?.file_name().to_string_lossy().into_owned();
                if name != "." && name != ".." {
                    names.push(name);
                }
            }
            Ok(names)
        }

        pub(super) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            Ok(fs::renameat(&self.0, from, &self.0, to)?)
        }

        pub(super) fn remove(&self, path: &Path) -> io::Result<()> {
            Ok(fs::unlinkat(&self.0, path, AtFlags::empty())?)
        }

        pub(super) fn sync_dir(&self, path: &Path) -> io::Result<()> {
            File::from(self.open_dir(path)?).sync_all()
        }

        fn open_dir(&self, path: &Path) -> io::Result<OwnedFd> {
            let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            Ok(retry_on_intr(|| fs::openat(&self.0, path, FOLDER, Mode::empty()))?)
        }
    }
}

#[cfg(not(unix))]
mod place {
    use std::fs::{self, File, OpenOptions};
    use std::io;
    use std::path::{Path, PathBuf};

    use super::super::files::OpenMode;
    use super::super::lock;

    /// The folder's path, because handles are not available.
    pub(super) struct Folder(PathBuf);

    impl Folder {
        pub fn open(path: &Path) -> io::Result<Self> {
            fs::metadata(path).map(|_| Self(path.to_owned()))
        }

        pub(super) fn is_at(&self, path: &Path) -> io::Result<bool> {
            Ok(path.is_dir())
        }

        pub(super) fn lockable(&self) -> io::Result<File> {
            OpenOptions::new().create(true).truncate(false).write(true).open(self.0.join(lock::NAME))
        }

        pub(super) fn handle(&self) -> io::Result<File> {
            File::open(self.0.join(lock::NAME))
        }

        pub(super) fn path(&self) -> Option<PathBuf> {
            None
        }

        pub(super) fn create_dir(&self, path: &Path) -> io::Result<()> {
            fs::create_dir(self.0.join(path))
        }

        pub(super) fn open_file(&self, path: &Path, mode: OpenMode) -> io::Result<File> {
            let mut options = OpenOptions::new();
            options.read(true).write(mode != OpenMode::Read).create_new(mode.creates());
            options.open(self.0.join(path))
        }

        pub(super) fn list(&self, path: &Path) -> io::Result<Vec<String>> {
            let entries = fs::read_dir(self.0.join(path))?;
            entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned())).collect()
        }

        pub(super) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
            fs::rename(self.0.join(from), self.0.join(to))
        }

        pub(super) fn remove(&self, path: &Path) -> io::Result<()> {
            fs::remove_file(self.0.join(path))
        }

        pub(super) fn sync_dir(&self, _: &Path) -> io::Result<()> {
            // The folder cannot be opened for syncing; the file system's own ordering must suffice.
            Ok(())
        }
    }
}

#[cfg(unix)]
mod positioned {
    use std::fs::File;
    use std::io;
    use std::os::unix::fs::FileExt;

    pub(crate) fn read(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        file.read_at(buffer, offset)
    }

    pub(crate) fn write(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
        file.write_at(bytes, offset)
    }
}

#[cfg(windows)]
mod positioned {
    use std::fs::File;
    use std::io;
    use std::os::windows::fs::FileExt;

    pub fn read(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        file.seek_read(buffer, offset)
    }

    pub fn write(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
        file.seek_write(bytes, offset)
    }
}
