//! `rulekeep log export` and `import`: the log of a store as lines that can be verified without this program.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rulekeep::agent::AgentId;
use rulekeep::maintenance::{import, import_against};
use rulekeep::proof::{ExportPoint, ExportRange, ExportReport, Order};
use rulekeep::system::Timestamp;
use rulekeep::{Error, Governor, ProofQuery};

use super::work::{Interrupt, Progress, open};
use super::{Kept, folder};
use crate::client::opened;
use crate::operate::{Failed, show};
use crate::output::Standard;
use crate::times;

/// The part to export, and the destination.
#[allow(clippy::struct_excessive_bools)] // flags of the command line
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The folder of the store (default: the one in the home)
    #[arg(long, value_name = "DIR")]
    store: Option<PathBuf>,
    /// Exports only the records of this agent
    #[arg(long, value_name = "AGENT", conflicts_with = "entries")]
    agent: Option<AgentId>,
    /// Only decisions from this time on: 2026-01-31T09:30:00Z, 2026-01-31, yesterday, 7d (ago), 12h
    #[arg(long, value_name = "TIME", value_parser = times::from)]
    from: Option<Timestamp>,
    /// Only decisions up to this time, inclusive; a day counts as a whole
    #[arg(long, value_name = "TIME", value_parser = end)]
    to: Option<End>,
    /// Leaves out the evidence
    #[arg(long)]
    no_evidence: bool,
    /// Adds the entries that are not decisions, so that the file can be imported
    #[arg(long, conflicts_with = "from")]
    entries: bool,
    /// The file to write (default: standard output); it is called FILE.part until it is complete
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Continues FILE.part if it exists, and keeps it when interrupted
    #[arg(long, conflicts_with = "from")]
    resume: bool,
    /// Prints the report as JSON, on standard output
    #[arg(long)]
    json: bool,
}

/// The end of the period to export. A path, which earlier versions took here, is the file to write.
#[derive(Clone)]
enum End {
    At(Timestamp),
    File(PathBuf),
}

fn end(text: &str) -> Result<End, String> {
    match times::to(text) {
        Err(_) if text.contains(['/', '.']) => Ok(End::File(PathBuf::from(text))),
        read => read.map(End::At),
    }
}

/// The store into which an export is imported.
#[derive(clap::Args)]
pub(crate) struct Import {
    /// The folder of the new store
    #[arg(long, value_name = "DIR")]
    store: PathBuf,
    /// The export
    file: PathBuf,
    #[command(flatten)]
    kept: Kept,
    /// Prints the report as JSON
    #[arg(long)]
    json: bool,
}

/// Exports the log of a store.
pub(super) fn run(options: &Options) -> Result<ExitCode, Failed> {
    let file = options.file()?;
    let governor = opened(&folder(options.store.as_ref())?)?;
    let progress = Progress::new("writing");
    let report = if let Some(file) = file {
        to_file(&governor, file, options, &progress)?
    } else {
        let mut out = Standard::new();
        let range = options.range(&governor)?;
        let report = governor.log().export(&range, &mut out, &mut |done, of| progress.set(done, of));
        let Some(report) = out.end(report.map_err(Failed::from))? else { return Ok(ExitCode::SUCCESS) };
        report
    };
    progress.end();
    governor.close()?;
    tell(&report, options.json)
}

/// Creates a store from an export.
pub(super) fn import_file(options: &Import) -> Result<ExitCode, Failed> {
    let interrupt = Interrupt::watch()?;
    let progress = Progress::new("reading");
    let mut file = io::BufReader::with_capacity(1 << 20, interrupt.clone().with(open(&options.file)?));
    let mut shown = |_, bytes| progress.bytes(bytes);
    let report = match options.kept.open()? {
        Some(checkpoint) => import_against(&options.store, &mut file, &checkpoint, &mut shown),
        None => import(&options.store, &mut file, &mut shown),
    };
    progress.end();
    match report {
        Err(_) if interrupt.came() => Err(Failed::interrupted("interrupted; nothing was imported".to_owned())),
        report => tell(&report?, options.json),
    }
}

fn tell(report: &ExportReport, json: bool) -> Result<ExitCode, Failed> {
    if json {
        return show(report, json);
    }
    eprintln!(
        "{} records ({} without evidence), {} other entries, {} bytes; the last record's hash is {}",
        report.records, report.without_evidence, report.entries, report.bytes, report.head_hash
    );
    Ok(ExitCode::SUCCESS)
}

/// Writes a file beside the named one, which gets its name when it is complete.
fn to_file(governor: &Governor, file: &Path, options: &Options, progress: &Progress) -> Result<ExportReport, Failed> {
    let shown = file.display();
    if file.exists() {
        return Err(format!("{shown} exists already: name another file, or move it away").into());
    }
    let interrupt = Interrupt::watch()?;
    let mut part = OsString::from(file);
    part.push(".part");
    let part = PathBuf::from(part);
    let written = write(governor, &part, options, progress, &interrupt);
    let report = match written {
        Ok(report) => report,
        Err(failed) => {
            let kept = if options.resume {
                format!("continue with --resume, which reads {}", part.display())
            } else {
                let _ = fs::remove_file(&part); // where that fails, it is no file of the name that was given
                format!("{shown} was not written")
            };
            progress.end();
            let interrupted = || Failed::interrupted(format!("interrupted; {kept}"));
            return Err(if interrupt.came() { interrupted() } else { format!("{failed}; {kept}").into() });
        }
    };
    fs::rename(&part, file).map_err(|error| format!("{shown}: {error}"))?;
    Ok(report)
}

/// Writes the partial file, continuing after its last whole line.
fn write(
    governor: &Governor,
    part: &Path,
    options: &Options,
    progress: &Progress,
    interrupt: &Interrupt,
) -> Result<ExportReport, Failed> {
    let failed = |error: io::Error| format!("{}: {error}", part.display());
    let is_begun = options.resume && fs::metadata(part).is_ok_and(|found| found.len() > 0);
    let point = if is_begun { Some(ExportPoint::of(&mut open(part)?, &mut |_, _| {})?) } else { None };
    let bytes = point.as_ref().map_or(0, ExportPoint::bytes);
    let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(part).map_err(failed)?;
    file.set_len(bytes).and_then(|()| file.seek(SeekFrom::Start(bytes))).map_err(failed)?;
    let mut out = BufWriter::new(interrupt.clone().with(&file));
    let mut shown = |done, of| progress.set(done, of);
    let report: Result<_, Error> = match point {
        Some(point) => governor.log().resume_export(point, &mut out, &mut shown),
        None => governor.log().export(&options.range(governor)?, &mut out, &mut shown),
    };
    let report = report?;
    out.flush().and_then(|()| file.sync_all()).map_err(failed)?;
    Ok(report)
}

impl Options {
    /// The file to write, of options that fit each other.
    fn file(&self) -> Result<Option<&Path>, Failed> {
        let file = match (&self.out, &self.to) {
            (Some(_), Some(End::File(other))) => {
                return Err(Failed::usage(&format!("--to: expected a time, found {}", other.display())));
            }
            (None, Some(End::File(file))) | (Some(file), _) => Some(file.as_path()),
            (None, _) => None,
        };
        if (self.resume || self.json) && file.is_none() {
            return Err(Failed::usage("--resume and --json need --out"));
        }
        if (self.entries || self.resume) && matches!(self.to, Some(End::At(_))) {
            return Err(Failed::usage("--entries and --resume take no --to"));
        }
        if let (Some(from), Some(End::At(to))) = (self.from, &self.to)
            && from > *to
        {
            return Err(Failed::usage(&format!("--from {from} is after --to {to}")));
        }
        Ok(file)
    }

    fn range(&self, governor: &Governor) -> Result<ExportRange, Error> {
        let mut range = ExportRange::all();
        if let Some(End::At(to)) = self.to {
            range = range.until(to);
        }
        if let Some(from) = self.from {
            let before = ProofQuery::all().to(Timestamp::from_millis(from.as_millis().saturating_sub(1)));
            let before = governor.log().records(&before.order(Order::NewestFirst)).next().transpose()?;
            range = before.into_iter().fold(range, |range, record| range.after(record.id));
        }
        if let Some(agent) = &self.agent {
            range = range.of_agent(agent.clone());
        }
        if self.no_evidence {
            range = range.without_evidence();
        }
        Ok(if self.entries { range.with_entries() } else { range })
    }
}
