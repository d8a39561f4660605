//! Work on the log of a store that no other program has open.

mod export;
mod repair;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use rulekeep::Governor;
use rulekeep::checkpoint::VerifierKey;
use rulekeep::proof::VerifyOptions;

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
        #[command(flatten)]
        kept: Kept,
    },
    /// Puts a new log in place of a broken one, which is kept.
    Repair(repair::Options),
}

/// A checkpoint of the log that was kept elsewhere.
#[derive(clap::Args)]
pub(crate) struct Kept {
    /// A signed checkpoint of the log that was kept elsewhere: holds the log against it.
    #[arg(long, requires = "checkpoint_key")]
    checkpoint: Option<PathBuf>,
    /// The public key that signed the checkpoint, as text.
    #[arg(long, requires = "checkpoint")]
    checkpoint_key: Option<String>,
}

impl Kept {
    fn read(&self) -> Result<Option<(String, VerifierKey)>, Failure> {
        let (Some(file), Some(key)) = (&self.checkpoint, &self.checkpoint_key) else { return Ok(None) };
        let note = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(Some((note, key.parse()?)))
    }
}

pub(crate) fn run(command: Command) -> Result<ExitCode, String> {
    let done = match command {
        Command::Export(options) => export::run(&options),
        Command::Check { file } => export::check(&file),
        Command::Import(options) => export::import(&options),
        Command::Verify { store, kept } => return verify(&store, &kept).map_err(|error| error.to_string()),
        Command::Repair(options) => repair::run(&options),
    };
    done.map(|()| ExitCode::SUCCESS).map_err(|error| error.to_string())
}

fn verify(store: &Path, kept: &Kept) -> Result<ExitCode, Failure> {
    let kept = kept.read()?;
    let governor = open(store)?;
    let verification = match kept {
        Some((note, key)) => governor.log().verify_with_checkpoint(&VerifyOptions::new(), &note, &key)?,
        None => governor.verify()?,
    };
    println!("{}", serde_json::to_string(&verification)?);
    governor.close()?;
    Ok(if verification.valid { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Opens a store as it is, also beside a service that writes to it.
fn open(store: &Path) -> Result<Governor, Failure> {
    Ok(Governor::open_read_only(store)?)
}
