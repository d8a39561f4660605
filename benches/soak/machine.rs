//! Measurements of the machine: memory, disk, and the time of a bare sync.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// The peak memory of the process in bytes; `None` if the system does not report it.
pub(crate) fn peak_memory() -> Option<f64> {
    status("VmHWM:")
}

fn status(name: &str) -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok().map(|kilobytes| kilobytes * 1024.0)
}

/// The size of all files below a folder, in bytes.
pub(crate) fn bytes_below(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() { bytes_below(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}

/// A preallocated file, for bare writes and syncs.
pub(crate) struct BareFile {
    file: File,
    at: u64,
}

impl BareFile {
    pub(crate) fn new(folder: &Path) -> io::Result<Self> {
        let file = File::create(folder.join("bare"))?;
        write_at(&file, &vec![0; ROOM], 0)?;
        file.sync_all()?;
        Ok(Self { file, at: 0 })
    }

    /// Measures one write of an entry's size and one `fdatasync`.
    pub(crate) fn sync(&mut self) -> io::Result<Duration> {
        self.at = (self.at + ENTRY as u64) % (ROOM - ENTRY) as u64;
        let started = Instant::now();
        write_at(&self.file, &[7; ENTRY], self.at)?;
        self.file.sync_data()?;
        Ok(started.elapsed())
    }
}

fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    use std::io::{Seek, SeekFrom, Write};
    let mut file = file;
    file.seek(SeekFrom::Start(at))?;
    file.write_all(bytes)
}

const ROOM: usize = 4 << 20;
const ENTRY: usize = 1_400;
