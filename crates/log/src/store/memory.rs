//! A file system in memory that leaves nothing behind.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use super::files::{Files, OpenMode, StoreFile};

/// Files that live as long as the last clone of this value.
#[derive(Clone, Default)]
pub struct MemoryFiles {
    // Guards the table of names only; each file has its own lock, taken after.
    files: Arc<Mutex<BTreeMap<PathBuf, Arc<MemoryFile>>>>,
}

impl MemoryFiles {
    /// Creates an empty file system.
    pub fn new() -> Self {
        Self::default()
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Arc<MemoryFile>>> {
        // Each operation leaves the table consistent, so a poisoned lock is safe to use.
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Files for MemoryFiles {
    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn StoreFile>> {
        let mut table = self.table();
        match (table.get(path), mode.creates()) {
            (Some(_), true) => Err(io::ErrorKind::AlreadyExists.into()),
            (Some(file), _) => Ok(Arc::clone(file) as Arc<dyn StoreFile>),
            (None, true) => {
                let file = Arc::new(MemoryFile::default());
                table.insert(path.to_owned(), Arc::clone(&file));
                Ok(file)
            }
            (None, _) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let mut names: Vec<String> = self
            .table()
            .keys()
            .filter_map(|file| file.strip_prefix(path).ok()?.components().next())
            .map(|name| name.as_os_str().to_string_lossy().into_owned())
            .collect();
        names.dedup();
        Ok(names)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut table = self.table();
        let file = table.remove(from).ok_or(io::ErrorKind::NotFound)?;
        table.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.table().remove(path).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Default)]
struct MemoryFile {
    content: RwLock<Vec<u8>>,
}

impl StoreFile for MemoryFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let content = self.content.read().unwrap_or_else(PoisonError::into_inner);
        let rest = usize::try_from(offset).ok().and_then(|start| content.get(start..)).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        for (to, from) in buffer.iter_mut().zip(rest) {
            *to = *from;
        }
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let end = start.checked_add(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        let mut content = self.content.write().unwrap_or_else(PoisonError::into_inner);
        if content.len() < end {
            content.resize(end, 0);
        }
        if let Some(place) = content.get_mut(start..end) {
            place.copy_from_slice(bytes);
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.content.read().unwrap_or_else(PoisonError::into_inner).len() as u64)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(io::Error::other)?;
        self.content.write().unwrap_or_else(PoisonError::into_inner).resize(len, 0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl MemoryFiles {
        /// Creates another file system with the same content.
        pub(crate) fn fork(&self) -> Self {
            let copy = Self::new();
            for (path, file) in self.table().iter() {
                let content = RwLock::new(file.content.read().unwrap().clone());
                copy.table().insert(path.clone(), Arc::new(MemoryFile { content }));
            }
            copy
        }

        /// Returns the content of a file; `None` if it does not exist at the moment.
        pub(crate) fn content_if_there(&self, path: &Path) -> Option<Vec<u8>> {
            self.table().get(path).map(|file| file.content.read().unwrap().clone())
        }

        /// Returns the content of a file.
        pub(crate) fn content(&self, path: &Path) -> Vec<u8> {
            self.table()[path].content.read().unwrap().clone()
        }

        /// Changes a file without its users noticing, to simulate damage or tampering.
        pub(crate) fn change(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
            change(&mut self.table()[path].content.write().unwrap());
        }
    }
}
