//! Puts a new log in place of a broken one, which is kept as it is.
//!
//! ```text
//! cargo run --release --example repair -- DIR [--suspend-all]
//! ```
//!
//! Prints the report as JSON. `docs/proof-log.md` says what is taken over.

use std::process::ExitCode;

use rulekeep::maintenance::{RepairOptions, repair};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (folder, options) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [folder] => (folder, RepairOptions::default()),
        [folder, "--suspend-all"] => (folder, RepairOptions::default().suspend_all()),
        _ => {
            eprintln!("usage: repair DIR [--suspend-all]");
            return ExitCode::from(2);
        }
    };
    let report = repair(folder, &options).map_err(|error| error.to_string());
    match report.and_then(|report| serde_json::to_string_pretty(&report).map_err(|error| error.to_string())) {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("repair: {error}");
            ExitCode::FAILURE
        }
    }
}
