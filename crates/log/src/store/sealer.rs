//! Sealing full segments in the background: the content is compressed into two files and read back, and only then is
//! the segment's own file deleted.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::files::{self, Files, OpenMode, StoreFile};
use super::journal::Reader;
use super::sealed::{self, SealWriter, Sealed, SealedFile};
use super::segment::{self, Segment};

/// The time at which full segments are sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sealing {
    /// On a background thread.
    Behind,
    /// By the writer that fills one, before anything else is written.
    #[cfg(test)]
    AtOnce,
    /// Never.
    #[cfg(test)]
    Never,
}

/// Seals the segments queued to it.
pub(crate) struct Sealer {
    files: Arc<dyn Files>,
    reader: Reader,
    sealing: Sealing,
    // Started with the first segment. Held to queue a segment or to end the thread.
    thread: Mutex<Option<SealingThread>>,
    stopped: Arc<AtomicBool>,
}

struct SealingThread {
    full: Sender<Arc<Segment>>,
    handle: JoinHandle<()>,
}

impl Sealer {
    pub(crate) fn new(files: Arc<dyn Files>, reader: Reader, sealing: Sealing) -> Self {
        Self { files, reader, sealing, thread: Mutex::new(None), stopped: Arc::default() }
    }

    /// Queues a full segment for sealing. If sealing fails, the segment stays as it is and is sealed when the journal
    /// is opened again; nothing is lost.
    pub(crate) fn take(&self, full: Arc<Segment>) {
        match self.sealing {
            Sealing::Behind => self.hand_over(full),
            #[cfg(test)]
            Sealing::AtOnce => drop(seal(&*self.files, &self.reader, &full)),
            #[cfg(test)]
            Sealing::Never => {}
        }
    }

    fn hand_over(&self, full: Arc<Segment>) {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            *thread = self.start().ok();
        }
        if let Some(thread) = &*thread {
            let _ = thread.full.send(full);
        }
    }

    /// Stops the thread after the segment it is working on.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Release);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(SealingThread { full, handle }) = thread {
            drop(full);
            // A panic in the thread leaves the segment as it was.
            let _ = handle.join();
        }
    }

    fn start(&self) -> io::Result<SealingThread> {
        let (full, segments): (Sender<Arc<Segment>>, Receiver<Arc<Segment>>) = mpsc::channel();
        let (files, reader, stopped) = (Arc::clone(&self.files), self.reader.clone(), Arc::clone(&self.stopped));
        let work = move || {
            while let Some(segment) = segments.recv().ok().filter(|_| !stopped.load(Ordering::Acquire)) {
                let _ = seal(&*files, &reader, &segment);
            }
        };
        let handle = thread::Builder::new().name("rulekeep-sealer".to_owned()).spawn(work)?;
        Ok(SealingThread { full, handle })
    }
}

impl Drop for Sealer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Seals one segment. At every moment the folder holds it at least once, complete.
fn seal(files: &dyn Files, reader: &Reader, full: &Segment) -> io::Result<()> {
    // Otherwise evidence erased in the meantime would come back from what was read before.
    let _turn = reader.rewriting();
    let number = full.header.number;
    let is_there =
        || Ok::<_, io::Error>(files.open(&Segment::path(number), OpenMode::Read)?.identity()? == full.file.identity()?);
    let elsewhere = || io::Error::other("another file has the segment's name");
    if !is_there()? {
        return Err(elsewhere());
    }
    let Sealed { frames, evidence } = sealed_content(number, &*full.file)?;
    // The file of frames marks the segment as sealed, so it is written last.
    put(files, &sealed::evidence_path(number), &evidence)?;
    drop(evidence);
    put(files, &sealed::frames_path(number), &frames)?;
    drop(frames);
    files.sync_dir(Path::new(segment::FOLDER))?;
    let read = SealedFile::open(files, number)?.ok_or_else(|| io::Error::other("the sealed segment is invalid"))?;
    let file: Arc<dyn StoreFile> = Arc::new(read);
    if !holds_the_same(&*file, &*full.file)? {
        return Err(io::Error::other("the sealed segment differs from the original"));
    }
    if !is_there()? {
        return Err(elsewhere());
    }
    reader.replace(full.sealed_in(file));
    files.remove(&Segment::path(number))?;
    files.sync_dir(Path::new(segment::FOLDER))
}

/// Compresses a segment's content. Returns `InvalidData` if it is not a sequence of frames.
fn sealed_content(number: u32, file: &dyn StoreFile) -> io::Result<Sealed> {
    let not_entries = || io::Error::new(io::ErrorKind::InvalidData, "a segment that holds other than entries");
    let mut header = [0; segment::HEADER_BYTES];
    if file.read_at(&mut header, 0)? != header.len() {
        return Err(not_entries());
    }
    let mut writer = SealWriter::new(number, &header);
    let (len, mut at) = (file.len()?, header.len() as u64);
    let mut part = vec![0; PART_BYTES];
    while at < len {
        let read = file.read_at(&mut part, at)?;
        let taken = writer.push(part.get(..read).unwrap_or_default()).ok_or_else(not_entries)?;
        if taken == 0 {
            // A frame may be larger than the buffer, but not larger than the file.
            if read < part.len() {
                return Err(not_entries());
            }
            part.resize(part.len() * 2, 0);
        }
        at += taken as u64;
    }
    writer.finish().ok_or_else(not_entries)
}

/// Returns whether two files have the same content. Reads them in pieces, because segments are large.
fn holds_the_same(file: &dyn StoreFile, other: &dyn StoreFile) -> io::Result<bool> {
    let (mut part, mut other_part) = (vec![0; PART_BYTES], vec![0; PART_BYTES]);
    let mut at = 0;
    loop {
        let (read, other_read) = (file.read_at(&mut part, at)?, other.read_at(&mut other_part, at)?);
        if part.get(..read) != other_part.get(..other_read) {
            return Ok(false);
        }
        if read == 0 {
            return Ok(true);
        }
        at += read as u64;
    }
}

/// Number of bytes of a segment held in memory at once.
const PART_BYTES: usize = 1 << 20;

/// Writes a whole file, replacing what was there.
fn put(files: &dyn Files, path: &Path, content: &[u8]) -> io::Result<()> {
    let next = path.with_extension("next");
    files::write_whole(files, &next, content, OpenMode::Create)?;
    files.rename(&next, path)
}
