//! Measures a log of many records while it is written, reopened, queried and verified.
//!
//! The store is created in a new folder below DIR (default: the system's temporary folder) and removed afterwards. A
//! record takes about 1.4 KB there until its segment is sealed, then about 0.5 KB. Progress goes to standard error.

mod load;
mod machine;
mod measures;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use table::Table;

/// Measures a log of many records: writing, reopening, querying and verifying
#[derive(Parser)]
struct Options {
    /// Number of records in the log
    #[arg(long, default_value = "200000", value_parser = at_least::<1_000>)]
    records: u64,
    /// Number of decisions in Sync mode
    #[arg(long, default_value = "2000", value_parser = at_least::<100>)]
    sync_decisions: u64,
    /// The folder in which the store is created
    #[arg(long, value_name = "DIR", default_value_os_t = std::env::temp_dir())]
    store: PathBuf,
    /// Prints one line of JSON per measure
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let mut table = Table::default();
    if let Err(error) = measures::all(&options, &mut table) {
        eprintln!("soak: {error}");
        return ExitCode::FAILURE;
    }
    print!("{}", if options.json { table.json() } else { table.text() });
    ExitCode::SUCCESS
}

/// Parses a whole number, optionally with `_` between digits. Below `LEAST` the figures mean nothing.
fn at_least<const LEAST: u64>(text: &str) -> Result<u64, String> {
    let number: u64 = text.replace('_', "").parse().map_err(|_| "expected a whole number".to_owned())?;
    if number < LEAST { Err(format!("expected at least {LEAST}")) } else { Ok(number) }
}
