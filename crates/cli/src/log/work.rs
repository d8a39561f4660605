//! Long work: progress, Ctrl-C, and files that are written completely or not at all.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tempfile::NamedTempFile;

use crate::operate::Failed;
use crate::signals;

/// A progress display on standard error, if that is a terminal.
#[derive(Clone)]
pub(super) struct Progress(ProgressBar);

impl Progress {
    pub(super) fn new(what: &'static str) -> Self {
        let bar = ProgressBar::new_spinner().with_message(what);
        bar.enable_steady_tick(Duration::from_millis(100));
        Self(bar)
    }

    /// Shows the number of entries done, and of all entries.
    pub(super) fn set(&self, done: u64, of: u64) {
        if self.0.length().is_none() {
            let style = ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len} entries, {eta} left");
            self.0.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        }
        self.0.set_length(of);
        self.0.set_position(done);
    }

    /// Shows the number of bytes done, without a total.
    pub(super) fn bytes(&self, done: u64) {
        if self.0.position() == 0 {
            let style = ProgressStyle::with_template("{spinner} {msg} {bytes}, {bytes_per_sec}");
            self.0.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        }
        self.0.set_position(done);
    }

    pub(super) fn end(&self) {
        self.0.finish_and_clear();
    }
}

/// A flag that is set when Ctrl-C is pressed.
#[derive(Clone)]
pub(super) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From here on, Ctrl-C only makes reads and writes through this value fail, so that unfinished work can be
    /// undone.
    pub(super) fn watch() -> Result<Self, Failed> {
        let interrupt = Self(Arc::new(AtomicBool::new(false)));
        let asked = interrupt.clone();
        signals::on_end(move |_| asked.0.store(true, Ordering::Relaxed))?;
        Ok(interrupt)
    }

    pub(super) fn came(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) const fn with<T>(self, inner: T) -> Interruptible<T> {
        Interruptible { inner, interrupt: self }
    }

    fn check(&self) -> io::Result<()> {
        if self.came() { Err(io::Error::other("interrupted")) } else { Ok(()) }
    }
}

/// A reader or writer that fails after Ctrl-C was pressed.
pub(super) struct Interruptible<T> {
    inner: T,
    interrupt: Interrupt,
}

impl<T: Write> Write for Interruptible<T> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.interrupt.check()?;
        self.inner.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<T: Read> Read for Interruptible<T> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.interrupt.check()?;
        self.inner.read(bytes)
    }
}

/// Makes Ctrl-C wait for work that must not be interrupted. Pressed again, it ends the process at once; the log is
/// then recovered by the next open.
pub(super) fn finish_first(what: &'static str) -> Result<(), Failed> {
    let tell = move |_: &str| eprintln!("\nfinishing {what}; press Ctrl-C again to end it at once");
    Ok(signals::on_end(tell)?)
}

/// Opens a file for reading, with a large buffer.
pub(super) fn open(path: &Path) -> Result<impl BufRead + use<>, Failed> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(BufReader::with_capacity(1 << 20, file))
}

/// Writes a new file, completely or not at all.
pub(super) fn write_new(path: &Path, text: &str) -> Result<(), Failed> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(failed)?;
    file.persist_noclobber(path).map_err(|error| failed(error.error))?;
    Ok(())
}
