//! The traits through which the journal does all of its file access.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The access to a file, and whether opening creates it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenMode {
    /// Opens an existing file for reading only.
    Read,
    /// Opens an existing file for reading and writing.
    Write,
    /// Creates a file that must not exist.
    Create,
    /// Creates a file that must not exist and that only its owner can read.
    CreateSecret,
}

impl OpenMode {
    /// Returns whether this mode creates the file.
    pub(crate) fn creates(self) -> bool {
        !matches!(self, Self::Read | Self::Write)
    }
}

/// A folder tree. Paths are relative to the store's folder.
pub trait Files: Send + Sync {
    /// Creates a folder and its missing parents.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn StoreFile>>;
    /// Returns the names in a folder, sorted; empty for a missing folder.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
    /// Renames a file, atomically replacing any file at `to`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Deletes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Fails if the store's path no longer leads to the folder that was opened.
    fn check_place(&self) -> io::Result<()> {
        Ok(())
    }
}

/// One open file, read and written at offsets.
#[allow(clippy::len_without_is_empty)] // the length of a file is not a collection's
pub trait StoreFile: Send + Sync {
    /// Reads up to `buffer.len()` bytes; fewer only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all bytes.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes written data durable, and the size if it changed.
    fn sync_data(&self) -> io::Result<()>;
    /// The size in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Truncates or extends the file.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// A device and inode number that identify the file, if the system has them.
    fn identity(&self) -> io::Result<Option<(u64, u64)>> {
        Ok(None)
    }
    /// Locks the file against other governors until [`StoreFile::unlock`]. Fails if another one holds the lock.
    fn lock(&self) -> io::Result<()> {
        Ok(())
    }
    /// Releases the lock.
    fn unlock(&self) {}
    /// Passes a sealed segment to `sink` frame by frame, as stored now. Returns false if the file is not a sealed
    /// segment, if anything in it is damaged, or if `sink` stops; read the whole content then to find out more.
    fn each_stored(&self, _sink: &mut dyn FrameSink) -> io::Result<bool> {
        Ok(false)
    }
    /// Reads the whole content as stored now, bypassing anything cached.
    fn read_stored(&self) -> io::Result<Vec<u8>> {
        read_all(self)
    }
}

/// A receiver of a segment's frames.
pub trait FrameSink {
    /// Receives the segment's header, before any frame. Returns false to stop.
    fn header(&mut self, header: &[u8]) -> bool;
    /// Receives a frame without its evidence, and the evidence. Returns false to stop.
    fn frame(&mut self, without_evidence: &[u8], evidence: &[u8]) -> bool;
}

impl dyn StoreFile {
    /// The whole content.
    pub(crate) fn read_all(&self) -> io::Result<Vec<u8>> {
        read_all(self)
    }
}

fn read_all(file: &(impl StoreFile + ?Sized)) -> io::Result<Vec<u8>> {
    let len = usize::try_from(file.len()?).map_err(io::Error::other)?;
    let mut content = vec![0; len];
    let read = file.read_at(&mut content, 0)?;
    content.truncate(read);
    Ok(content)
}

/// Returns whether an operation may succeed later: the error is a lack of descriptors, memory or space, or an
/// interruption.
pub(super) fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, OutOfMemory, QuotaExceeded, StorageFull};
    matches!(error.kind(), Interrupted | OutOfMemory | QuotaExceeded | StorageFull)
        || error.raw_os_error().is_some_and(|code| NO_DESCRIPTORS.contains(&code))
}

/// Returns whether the error says that a name leads to no file. Other errors say nothing about the file.
pub(super) fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound, StaleNetworkFileHandle};
    matches!(error.kind(), NotFound | NotADirectory | IsADirectory | StaleNetworkFileHandle)
}

/// The system's error codes for too many open files, in the system or the process. The standard library has no kind
/// for them.
// SOURCE: errno.h (ENFILE, EMFILE) of Linux, macOS and the BSDs; winerror.h (ERROR_TOO_MANY_OPEN_FILES).
pub(super) const NO_DESCRIPTORS: &[i32] = if cfg!(unix) {
    &[23, 24]
} else if cfg!(windows) {
    &[4]
} else {
    &[]
};

/// Reads the whole content of a file; `None` if it does not exist.
pub(super) fn read_if_there(files: &dyn Files, path: &Path) -> io::Result<Option<Vec<u8>>> {
    match files.open(path, OpenMode::Read) {
        Ok(file) => file.read_all().map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens a file for writing, or creates it with mode `made` if it does not exist.
pub(super) fn open_or_make(files: &dyn Files, path: &Path, made: OpenMode) -> io::Result<Arc<dyn StoreFile>> {
    match files.open(path, OpenMode::Write) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => files.open(path, made),
        opened => opened,
    }
}

/// Writes the whole content of a file, replacing any old content, and syncs it.
pub(super) fn write_whole(
    files: &dyn Files,
    path: &Path,
    content: &[u8],
    made: OpenMode,
) -> io::Result<Arc<dyn StoreFile>> {
    let file = open_or_make(files, path, made)?;
    file.set_len(0)?;
    file.write_at(content, 0)?;
    file.sync_data()?;
    Ok(file)
}

/// Replaces the file `name` atomically and durably, by writing `name.next` and renaming it.
pub(super) fn replace(files: &dyn Files, name: &str, content: &[u8], made: OpenMode) -> io::Result<()> {
    let next = PathBuf::from(format!("{name}.next"));
    write_whole(files, &next, content, made)?;
    files.rename(&next, Path::new(name))?;
    files.sync_dir(Path::new(""))
}

/// Like [`replace`], for a text followed by a line with its checksum.
pub(super) fn replace_text(files: &dyn Files, name: &str, text: &str) -> io::Result<()> {
    replace(files, name, format!("{text}\n{}\n", checksum(text)).as_bytes(), OpenMode::Create)
}

/// The result of reading a file written by [`replace_text`].
pub(super) enum TextFile {
    Missing,
    Malformed,
    Whole(String),
}

pub(super) fn read_text(files: &dyn Files, name: &str) -> io::Result<TextFile> {
    let Some(content) = read_if_there(files, Path::new(name))? else { return Ok(TextFile::Missing) };
    let text = std::str::from_utf8(&content).ok().and_then(|text| text.strip_suffix('\n')?.rsplit_once('\n'));
    let text = text.filter(|(text, crc)| *crc == checksum(text));
    Ok(text.map_or(TextFile::Malformed, |(text, _)| TextFile::Whole(text.to_owned())))
}

fn checksum(text: &str) -> String {
    format!("crc32:{:08x}", crc32fast::hash(text.as_bytes()))
}
