//! The log of a store as lines that can be checked without us: written, checked, read back.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rulekeep::Governor;
use rulekeep::proof::{ExportPoint, ExportRange, ExportReport, verify_export};

use super::Failure;

/// What is exported, and to where.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The folder of the store.
    #[arg(long, value_name = "DIR")]
    store: PathBuf,
    /// Only the records of this agent.
    #[arg(long, value_name = "ID", conflicts_with = "entries")]
    agent: Option<String>,
    /// Leaves the evidence out.
    #[arg(long)]
    no_evidence: bool,
    /// Adds the entries that are no decisions, so that the file can be imported.
    #[arg(long)]
    entries: bool,
    /// The file to write; standard output without.
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Goes on with a file that was cut short.
    #[arg(long, requires = "to")]
    resume: bool,
}

/// The store that an export is read into.
#[derive(clap::Args)]
pub(crate) struct Import {
    /// The folder of the new store.
    #[arg(long, value_name = "DIR")]
    store: PathBuf,
    /// The export.
    file: PathBuf,
}

/// Exports the log of a store.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let governor = super::open(&options.store)?;
    let report = match &options.to {
        Some(file) if options.resume => resume(&governor, file)?,
        Some(file) => {
            governor.log().export(&options.range()?, &mut BufWriter::new(File::create_new(file)?), &mut written)?
        }
        None => governor.log().export(&options.range()?, &mut BufWriter::new(io::stdout().lock()), &mut written)?,
    };
    governor.close()?;
    say(&report);
    Ok(())
}

/// Checks an export without a store.
pub(crate) fn check(file: &Path) -> Result<(), Failure> {
    say(&verify_export(&mut open(file)?, &mut read_so_far)?);
    Ok(())
}

/// Makes a store of an export.
pub(crate) fn import(options: &Import) -> Result<(), Failure> {
    say(&rulekeep::maintenance::import(&options.store, &mut open(&options.file)?, &mut read_so_far)?);
    Ok(())
}

fn say(report: &ExportReport) {
    eprintln!(
        "{} records ({} without evidence), {} other entries, {} bytes; the last record's hash is {}",
        report.records, report.without_evidence, report.entries, report.bytes, report.head_hash
    );
}

/// Cuts off what is no whole line, and goes on behind it.
fn resume(governor: &Governor, path: &Path) -> Result<ExportReport, Failure> {
    let point = ExportPoint::of(&mut open(path)?, &mut read_so_far)?;
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.set_len(point.bytes())?;
    file.seek(SeekFrom::Start(point.bytes()))?;
    Ok(governor.log().resume_export(point, &mut BufWriter::new(file), &mut written)?)
}

fn open(path: &Path) -> Result<BufReader<File>, Failure> {
    let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(BufReader::with_capacity(1 << 20, file))
}

fn written(done: u64, of: u64) {
    if done.is_multiple_of(SHOWN_EVERY) || done == of {
        let end = if done == of { "\n" } else { "" };
        let _ = write!(io::stderr(), "\rwriting: {done} of {of} entries{end}");
    }
}

fn read_so_far(lines: u64, bytes: u64) {
    if lines.is_multiple_of(SHOWN_EVERY) {
        let _ = write!(io::stderr(), "\rreading: {lines} lines, {} MB\r", bytes / 1_000_000);
    }
}

/// A multiple of how often the library tells.
const SHOWN_EVERY: u64 = 64 * 1024;

impl Options {
    fn range(&self) -> Result<ExportRange, Failure> {
        let mut range = ExportRange::all();
        if let Some(agent) = &self.agent {
            range = range.of_agent(agent.parse()?);
        }
        if self.no_evidence {
            range = range.without_evidence();
        }
        Ok(if self.entries { range.with_entries() } else { range })
    }
}
