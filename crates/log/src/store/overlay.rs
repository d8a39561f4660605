//! A folder opened read-only: writes go to memory.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::files::{Files, OpenMode, StoreFile};
use super::memory::MemoryFiles;
use super::real::RealFiles;

/// The files of a folder, with changes that last as long as this value.
pub struct OverlayFiles {
    below: RealFiles,
    changed: MemoryFiles,
    // Held for one call. Files that exist below and were deleted here.
    gone: Mutex<BTreeSet<PathBuf>>,
}

impl OverlayFiles {
    /// Opens the files below `root`, which is not changed.
    pub fn open(root: impl AsRef<Path>) -> io::Result<Self> {
        Ok(Self { below: RealFiles::open(root)?, changed: MemoryFiles::new(), gone: Mutex::default() })
    }

    fn gone(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        // Each operation leaves the set consistent, so a poisoned lock is safe to use.
        self.gone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a file of the folder, unless it was deleted here.
    fn below(&self, path: &Path, gone: &BTreeSet<PathBuf>) -> io::Result<Arc<dyn StoreFile>> {
        if gone.contains(path) { Err(io::ErrorKind::NotFound.into()) } else { self.below.open(path, OpenMode::Read) }
    }

    /// Copies a file of the folder to memory so that it can be changed.
    fn copied(&self, path: &Path, gone: &BTreeSet<PathBuf>) -> io::Result<Arc<dyn StoreFile>> {
        let content = self.below(path, gone)?.read_all()?;
        let copy = self.changed.open(path, OpenMode::Create)?;
        copy.write_at(&content, 0)?;
        Ok(copy)
    }
}

impl Files for OverlayFiles {
    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn StoreFile>> {
        let mut gone = self.gone();
        match self.changed.open(path, mode) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened if !mode.creates() => return opened,
            Ok(_) if self.below(path, &gone).is_ok() => {
                self.changed.remove(path)?;
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            opened => {
                gone.remove(path);
                return opened;
            }
        }
        if mode == OpenMode::Read { self.below(path, &gone) } else { self.copied(path, &gone) }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let gone = self.gone();
        let mut names = self.below.list(path)?;
        names.retain(|name| !gone.contains(&path.join(name)));
        names.extend(self.changed.list(path)?);
        names.sort();
        names.dedup();
        Ok(names)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut gone = self.gone();
        if self.changed.open(from, OpenMode::Read).is_err() {
            self.copied(from, &gone)?;
        }
        self.changed.rename(from, to)?;
        gone.insert(from.to_owned());
        gone.remove(to);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut gone = self.gone();
        let was_changed = self.changed.remove(path).is_ok();
        if !was_changed {
            self.below(path, &gone)?;
        }
        gone.insert(path.to_owned());
        Ok(())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(files: &dyn Files, name: &str) -> Option<Vec<u8>> {
        files.open(Path::new(name), OpenMode::Read).ok().map(|file| file.read_all().unwrap())
    }

    #[test]
    fn what_is_changed_is_seen_here_and_not_in_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let files = OverlayFiles::open(folder.path()).unwrap();
        assert_eq!(content(&files, "a").as_deref(), Some(&b"a"[..]));
        files.open(Path::new("a"), OpenMode::Write).unwrap().write_at(b"xy", 0).unwrap();
        assert_eq!(content(&files, "a").as_deref(), Some(&b"xy"[..]));
        let error = files.open(Path::new("b"), OpenMode::Create).err().unwrap();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(content(&files, "b").as_deref(), Some(&b"b"[..]));
        files.rename(Path::new("b"), Path::new("c")).unwrap();
        files.open(Path::new("d"), OpenMode::Create).unwrap().write_at(b"d", 0).unwrap();
        assert_eq!((content(&files, "b"), content(&files, "c").as_deref()), (None, Some(&b"b"[..])));
        assert_eq!(files.list(Path::new("")).unwrap(), ["a", "c", "d"]);
        files.remove(Path::new("c")).unwrap();
        assert!(files.remove(Path::new("c")).is_err() && content(&files, "c").is_none());
        files.open(Path::new("c"), OpenMode::Create).unwrap().write_at(b"new", 0).unwrap();
        assert_eq!(content(&files, "c").as_deref(), Some(&b"new"[..]));
        for name in ["a", "b", "c"] {
            assert_eq!(std::fs::read_to_string(folder.path().join(name)).unwrap(), name);
        }
        assert!(!folder.path().join("d").exists());
    }
}
