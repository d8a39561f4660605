//! Importing an export into a new folder.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::ExportReport;
use crate::index::reading::Reading;
use crate::journal::entry::StoreEntry;
use crate::log::open::make_folder;
use crate::maintenance::export::{Item, Start, read_whole};
use crate::store::{self, Files, FrameDraft, Journal, JournalOptions, Kind, RealFiles, StoreId};
use rulekeep_types::{Digest, Error};

/// Creates a store from an export, with the same records, IDs and hashes, in a folder that is empty or does not
/// exist. Either the whole export is imported or nothing. `known` is a size and root of the log's tree.
pub fn import(
    folder: &Path,
    export: &mut dyn BufRead,
    known: Option<(u64, Digest)>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ExportReport, Error> {
    let failed = |error: io::Error| Error::storage(folder.display().to_string()).caused_by(error);
    if folder.exists() && fs::read_dir(folder).map_err(failed)?.next().is_some() {
        return Err(Error::Conflict {
            message: format!("{} is not empty; import into a new folder", folder.display()),
        });
    }
    let aside = aside(folder);
    if aside.exists() {
        let message = format!("{} exists: an import is running or was interrupted; remove it", aside.display());
        return Err(Error::Conflict { message });
    }
    make_folder(&aside).map_err(|error| Error::storage("cannot make the folder").caused_by(error))?;
    let imported = fill(&aside, export, known, progress).and_then(|report| {
        put_in_place(&aside, folder).map_err(failed)?;
        Ok(report)
    });
    if imported.is_err() {
        // If it cannot be removed, the next import reports it.
        let _ = fs::remove_dir_all(&aside);
    }
    imported
}

/// A folder beside the target, on the same file system.
fn aside(folder: &Path) -> PathBuf {
    let mut name = folder.file_name().map_or_else(|| OsString::from("store"), OsString::from);
    name.push(".importing");
    folder.with_file_name(name)
}

fn put_in_place(aside: &Path, folder: &Path) -> io::Result<()> {
    if folder.exists() {
        fs::remove_dir(folder)?;
    }
    fs::rename(aside, folder)?;
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    RealFiles::open(parent)?.sync_dir(Path::new(""))
}

fn fill(
    folder: &Path,
    export: &mut dyn BufRead,
    known: Option<(u64, Digest)>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ExportReport, Error> {
    let files = RealFiles::open(folder).map_err(unwritable)?;
    let files: Arc<dyn Files> = Arc::new(files);
    let mut journal: Option<Journal> = None;
    let report = read_whole(export, known, progress, &mut |item| match (item, &mut journal) {
        (Item::Start(start), journal) => {
            let made = Journal::create(Arc::clone(&files), store_of(start)?, JournalOptions::default());
            *journal = Some(made.map_err(unwritable)?);
            Ok(())
        }
        (Item::Entry { kind, body, evidence }, Some(journal)) => add(journal, kind, body, evidence),
        (Item::Entry { .. }, None) => Ok(()),
    })?;
    let Some(mut journal) = journal else { return Err(unimportable("it has no lines")) };
    journal.write().and_then(|()| journal.sync()).map_err(unwritable)?;
    // Verifies what is in the files, like opening a log does.
    let (reader, position) = (journal.reader(), journal.position());
    let mut reading = Reading::learning();
    let found = match reader.verify(&mut reading, position) {
        Ok(None) => reading.unexplained(&reader, position),
        found => found,
    };
    if let Some(breakage) = found.map_err(unwritable)? {
        return Err(unimportable(&breakage.to_string()));
    }
    journal.close().map_err(unwritable)?;
    Ok(report)
}

/// Returns the store's ID, if the export can be imported.
fn store_of(start: &Start) -> Result<StoreId, Error> {
    if !start.entries || !start.evidence || start.first.get() != 0 {
        return Err(unimportable(
            "it lacks entries or evidence; expected an export of all entries with evidence, from the first one on",
        ));
    }
    let mut id = [0; 16];
    hex::decode_to_slice(&start.store, &mut id).map_err(|_| unimportable("its store's id is invalid"))?;
    Ok(StoreId(id))
}

fn add(journal: &mut Journal, kind: Kind, body: &[u8], evidence: &[u8]) -> Result<(), Error> {
    let is_first = journal.position().entries == 0;
    if is_first != (kind == Kind::Store) {
        return Err(unimportable("its first entry, and no other, must be the store's"));
    }
    if is_first {
        let format = serde_json::from_slice::<StoreEntry>(body).map(|entry| entry.format).unwrap_or_default();
        if format != store::FORMAT {
            return Err(unimportable(&format!("its store has format {format}, expected {}", store::FORMAT)));
        }
    }
    // No frame may end in a zero byte, because its end could not be told from preallocated space.
    if kind == Kind::Decision && evidence.last() == Some(&0) {
        return Err(unimportable("a record's evidence ends in a zero byte"));
    }
    let staged = journal.stage(&FrameDraft { kind, body, evidence }).map(|_| journal.staged_bytes());
    let written = staged.and_then(|bytes| if bytes < MOST_STAGED { Ok(()) } else { journal.write() });
    written.map_err(unwritable)
}

const MOST_STAGED: usize = 4 << 20;

fn unimportable(why: &str) -> Error {
    Error::input("export", format!("it cannot be imported: {why}"))
}

fn unwritable(error: io::Error) -> Error {
    Error::storage("cannot write the import").caused_by(error)
}
