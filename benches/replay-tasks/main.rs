//! Replays recorded tasks, attacks and calls under mandates, and counts the results.
//!
//! The policies allow everything, so that only the mandate decides. No model takes part: the calls are those in the
//! files, and the attacker requests every effect in turn.

mod adaptive;
mod asb;
mod bfcl;
mod dojo;
mod equal;
mod table;
mod world;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use serde_json::Value;

use table::Table;

/// Replays recorded tasks, attacks and calls under mandates, and counts the results
#[derive(Parser)]
struct Options {
    // Written as an attribute, because the help shows backticks unchanged.
    #[arg(
        required = true,
        help = "Files of AgentDojo suites, of Agent Security Bench, or of calls of the Berkeley Function-Calling Leaderboard"
    )]
    files: Vec<PathBuf>,
    #[arg(
        long,
        help = "Also tries attackers that know how mandates work, one family after another; AgentDojo suites only"
    )]
    adaptive: bool,
    /// Prints only the table of figures
    #[arg(long)]
    quiet: bool,
    /// Prints the figures as JSON, and nothing else
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let mut table = Table::new(options.quiet || options.json);
    for file in &options.files {
        if let Err(error) = replay_file(file, &options, &mut table) {
            eprintln!("replay-tasks: {}: {error}", file.display());
            return ExitCode::FAILURE;
        }
    }
    print!("{}", if options.json { table.json() } else { table.text() });
    ExitCode::SUCCESS
}

fn replay_file(file: &Path, options: &Options, table: &mut Table) -> Result<(), Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(file)?;
    let Ok(whole) = serde_json::from_str::<Value>(&text) else {
        let rows: Result<Vec<Value>, _> = text.lines().map(serde_json::from_str).collect();
        let rows = rows.map_err(|error| format!("is not JSON ({error}); {EXPECTED}"))?;
        if rows.is_empty() {
            return Err(format!("is empty; {EXPECTED}").into());
        }
        return bfcl::replay(&rows, table);
    };
    if whole.get("agents").is_some() {
        return asb::replay(&whole, table);
    }
    let suites = whole.as_object().ok_or(EXPECTED)?;
    for (name, suite) in suites {
        let suite = dojo::Suite::read(name, suite)?;
        dojo::replay(&suite, table)?;
        if options.adaptive {
            adaptive::replay(&suite, table)?;
        }
    }
    Ok(())
}

/// The formats of files that can be replayed.
const EXPECTED: &str = "expected suites of AgentDojo, agents of Agent Security Bench, or rows of the Berkeley Function-Calling Leaderboard";
