//! `SECRETS`: data that must be kept but must not be in the journal, which is exported and cannot forget. Only the
//! owner of the file can read it.

use std::io;
use std::path::Path;

use super::files::{self, Files, OpenMode};

/// Reads the whole file; `None` if it does not exist.
pub fn read(files: &dyn Files) -> io::Result<Option<Vec<u8>>> {
    files::read_if_there(files, Path::new(NAME))
}

/// Replaces the file, atomically and durably.
pub fn write(files: &dyn Files, content: &[u8]) -> io::Result<()> {
    files::replace(files, NAME, content, OpenMode::CreateSecret)
}

/// The file's name in the store.
pub(crate) const NAME: &str = "SECRETS";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{MemoryFiles, RealFiles};

    #[test]
    fn what_was_put_there_last_is_read() {
        let files = MemoryFiles::new();
        assert!(read(&files).unwrap().is_none());
        write(&files, b"one, and longer").unwrap();
        write(&files, b"two").unwrap();
        assert_eq!(read(&files).unwrap().unwrap(), b"two");
    }

    #[cfg(unix)]
    #[test]
    fn nobody_but_its_owner_may_read_it() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let files = RealFiles::open(folder.path()).unwrap();
        for content in [b"one", b"two"] {
            write(&files, content).unwrap();
            let mode = std::fs::metadata(folder.path().join(NAME)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
}
