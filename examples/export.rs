//! Writes the proof log of a store as lines that can be checked without us, checks
//! such a file, or makes a store of one.
//!
//! ```text
//! cargo run --release --example export -- --store DIR [--agent ID] [--no-evidence] [--entries] [--to FILE [--resume]]
//! cargo run --release --example export -- --check FILE
//! cargo run --release --example export -- --store DIR --import FILE
//! ```
//!
//! Without `--to` the lines go to standard output. `--resume` goes on with a file that was cut short. `--entries`
//! adds what is no decision, so that the file can be imported. Progress goes to standard error.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rulekeep::Governor;
use rulekeep::proof::{ExportPoint, ExportRange, ExportReport, verify_export};

type Failure = Box<dyn std::error::Error>;

#[derive(Default)]
struct Options {
    store: Option<PathBuf>,
    agent: Option<String>,
    no_evidence: bool,
    entries: bool,
    to: Option<PathBuf>,
    resume: bool,
    check: Option<PathBuf>,
    import: Option<PathBuf>,
}

fn main() -> ExitCode {
    let options = match Options::read(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("export: {message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(&options) {
        Ok(report) => {
            eprintln!(
                "{} records ({} without evidence), {} other entries, {} bytes; the last record's hash is {}",
                report.records, report.without_evidence, report.entries, report.bytes, report.head_hash
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("export: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<ExportReport, Failure> {
    if let Some(file) = &options.check {
        return Ok(verify_export(&mut open(file)?, &mut read_so_far)?);
    }
    let store = options.store.as_deref().ok_or("--store is missing")?;
    if let Some(file) = &options.import {
        return Ok(rulekeep::maintenance::import(store, &mut open(file)?, &mut read_so_far)?);
    }
    // Opening a folder without a store would make one there.
    if !store.join("HEAD").exists() {
        return Err(format!("{} holds no store", store.display()).into());
    }
    let governor = Governor::open(store)?;
    let report = match &options.to {
        Some(file) if options.resume => resume(&governor, file)?,
        Some(file) => {
            governor.log().export(&options.range()?, &mut BufWriter::new(File::create_new(file)?), &mut written)?
        }
        None => governor.log().export(&options.range()?, &mut BufWriter::new(io::stdout().lock()), &mut written)?,
    };
    governor.close()?;
    Ok(report)
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
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self::default();
        while let Some(option) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{option} needs a value"));
            match option.as_str() {
                "--store" => options.store = Some(value()?.into()),
                "--agent" => options.agent = Some(value()?),
                "--to" => options.to = Some(value()?.into()),
                "--check" => options.check = Some(value()?.into()),
                "--import" => options.import = Some(value()?.into()),
                "--no-evidence" => options.no_evidence = true,
                "--entries" => options.entries = true,
                "--resume" => options.resume = true,
                other => return Err(format!("unknown option {other:?}")),
            }
        }
        if options.store.is_none() && options.check.is_none() {
            return Err("--store or --check is needed".to_owned());
        }
        if options.resume && options.to.is_none() {
            return Err("--resume goes with --to".to_owned());
        }
        if options.entries && options.agent.is_some() {
            return Err("--entries are those of all agents".to_owned());
        }
        Ok(options)
    }

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

const USAGE: &str = "usage: export --store DIR [--agent ID] [--no-evidence] [--entries] [--to FILE [--resume]]
       export --check FILE
       export --store DIR --import FILE";
