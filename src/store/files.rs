//! The seam through which all file access of the journal goes.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Whether opening may create the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenMode {
    /// The file must exist; it is only read.
    Read,
    /// The file must exist.
    Write,
    /// The file must not exist.
    Create,
    /// Likewise; nobody but its owner may read it.
    CreateSecret,
}

impl OpenMode {
    /// Whether the file must not exist.
    pub(crate) fn creates(self) -> bool {
        !matches!(self, Self::Read | Self::Write)
    }
}

/// A folder tree. Paths are relative to the store's folder.
pub(crate) trait Files: Send + Sync {
    /// Makes a folder and what is missing above it.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Opens a file.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn StoreFile>>;
    /// The names in a folder, sorted; a missing folder has none.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
    /// Puts a file in another's place, atomically.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Takes a file away.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes names in a folder last.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Fails where the store's path no longer leads to the folder that was opened.
    fn check_place(&self) -> io::Result<()> {
        Ok(())
    }
}

/// One open file, read and written at offsets.
pub(crate) trait StoreFile: Send + Sync {
    /// Reads up to `buffer.len()` bytes; fewer only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes all bytes.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Makes what was written last, with the size where it changed.
    fn sync_data(&self) -> io::Result<()>;
    /// The size in bytes.
    fn len(&self) -> io::Result<u64>;
    /// Cuts or extends the file.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// What tells the file from every other one, where the system says it.
    fn identity(&self) -> io::Result<Option<(u64, u64)>> {
        Ok(None)
    }
    /// Keeps other governors from writing to the file until [`StoreFile::unlock`]; fails where one does.
    fn lock(&self) -> io::Result<()> {
        Ok(())
    }
    /// Gives the lock back.
    fn unlock(&self) {}
    /// Hands a segment on, frame by frame, by what is stored now, if it is sealed. False where it is not, where
    /// anything does not hold, or `sink` wants no more; then the whole content tells more.
    fn each_stored(&self, _sink: &mut dyn FrameSink) -> io::Result<bool> {
        Ok(false)
    }
    /// The whole content by what is stored now, whatever is known of it from before.
    fn read_stored(&self) -> io::Result<Vec<u8>> {
        read_all(self)
    }
}

/// Takes in a segment, frame by frame.
pub(crate) trait FrameSink {
    /// The segment's header, first. False to take in nothing more.
    fn header(&mut self, header: &[u8]) -> bool;
    /// A frame without its evidence, and this. False to take in nothing more.
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

/// Whether what failed may well succeed later, for all that was wrong was a want of descriptors, memory or space, or an
/// interruption.
pub(super) fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, OutOfMemory, QuotaExceeded, StorageFull};
    matches!(error.kind(), Interrupted | OutOfMemory | QuotaExceeded | StorageFull)
        || error.raw_os_error().is_some_and(|code| NO_DESCRIPTORS.contains(&code))
}

/// The system's codes for too many open files, in all or of the process, for which the standard library has no kind.
// SOURCE: errno.h (ENFILE, EMFILE) of Linux, macOS and the BSDs; winerror.h (ERROR_TOO_MANY_OPEN_FILES).
pub(super) const NO_DESCRIPTORS: &[i32] = if cfg!(unix) {
    &[23, 24]
} else if cfg!(windows) {
    &[4]
} else {
    &[]
};

/// The whole content of a file; `None` where there is none.
pub(super) fn read_if_there(files: &dyn Files, path: &Path) -> io::Result<Option<Vec<u8>>> {
    match files.open(path, OpenMode::Read) {
        Ok(file) => file.read_all().map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Opens a file to write to; `made` says how it is made where it is not there.
pub(super) fn open_or_make(files: &dyn Files, path: &Path, made: OpenMode) -> io::Result<Arc<dyn StoreFile>> {
    match files.open(path, OpenMode::Write) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => files.open(path, made),
        opened => opened,
    }
}

/// Writes a file whole, whatever stood there, and syncs it.
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

/// Puts a file of this content in the place of the one called `name`, by way of one called `name.next`, and makes it last.
pub(super) fn replace(files: &dyn Files, name: &str, content: &[u8], made: OpenMode) -> io::Result<()> {
    let next = PathBuf::from(format!("{name}.next"));
    write_whole(files, &next, content, made)?;
    files.rename(&next, Path::new(name))?;
    files.sync_dir(Path::new(""))
}

/// Likewise, with a text and a line of its checksum.
pub(super) fn replace_text(files: &dyn Files, name: &str, text: &str) -> io::Result<()> {
    replace(files, name, format!("{text}\n{}\n", checksum(text)).as_bytes(), OpenMode::Create)
}

/// A file as [`replace_text`] writes it.
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
