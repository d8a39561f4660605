//! Work on the log of a store that no other program has open.

mod export;
mod repair;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use rulekeep::Governor;

type Failure = Box<dyn std::error::Error>;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Writes the log as lines that can be checked without this program.
    Export(export::Options),
    /// Checks an export.
    Check {
        /// The export.
        file: PathBuf,
    },
    /// Makes a store of an export.
    Import(export::Import),
    /// Verifies the whole log, and prints the result as JSON.
    Verify {
        /// The folder of the store.
        store: PathBuf,
    },
    /// Puts a new log in place of a broken one, which is kept.
    Repair(repair::Options),
}

pub(crate) fn run(command: Command) -> Result<ExitCode, String> {
    let done = match command {
        Command::Export(options) => export::run(&options),
        Command::Check { file } => export::check(&file),
        Command::Import(options) => export::import(&options),
        Command::Verify { store } => return verify(&store).map_err(|error| error.to_string()),
        Command::Repair(options) => repair::run(&options),
    };
    done.map(|()| ExitCode::SUCCESS).map_err(|error| error.to_string())
}

fn verify(store: &Path) -> Result<ExitCode, Failure> {
    let governor = open(store)?;
    let verification = governor.verify()?;
    println!("{}", serde_json::to_string(&verification)?);
    governor.close()?;
    Ok(if verification.valid { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Opens a store as it is, also beside a service that writes to it.
fn open(store: &Path) -> Result<Governor, Failure> {
    Ok(Governor::open_read_only(store)?)
}
