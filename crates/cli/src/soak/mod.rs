//! Measures what takes long: a log of many records, written, reopened, asked and verified.
//!
//! ```text
//! cargo run --release --example soak -- [--records N] [--sync-decisions N] [--store DIR] [--json]
//! ```
//!
//! The store is made in a new folder below DIR (default: the system's temporary one) and removed afterwards. A record takes some
//! 1.4 KB there until its segment is sealed, some 0.5 KB then. Progress goes to standard error.

mod load;
mod machine;
mod measures;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use table::Table;

/// What is asked for.
pub(crate) struct Options {
    records: u64,
    sync_decisions: u64,
    store: PathBuf,
    json: bool,
}

fn main() -> ExitCode {
    let options = match Options::read(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("soak: {message}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut table = Table::default();
    match measures::all(&options, &mut table) {
        Ok(()) => {
            print!("{}", if options.json { table.json() } else { table.text() });
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("soak: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Options {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self { records: 200_000, sync_decisions: 2_000, store: std::env::temp_dir(), json: false };
        while let Some(option) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{option} needs a value"));
            match option.as_str() {
                "--records" => options.records = number(&value()?)?,
                "--sync-decisions" => options.sync_decisions = number(&value()?)?,
                "--store" => options.store = value()?.into(),
                "--json" => options.json = true,
                other => return Err(format!("unknown option {other:?}")),
            }
        }
        if options.records < 1_000 || options.sync_decisions < 100 {
            return Err("at least 1000 records and 100 decisions in Sync, or the figures say nothing".to_owned());
        }
        Ok(options)
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.replace('_', "").parse().map_err(|_| format!("expected a whole number, not {text:?}"))
}

const USAGE: &str = "usage: soak [--records N] [--sync-decisions N] [--store DIR] [--json]";
