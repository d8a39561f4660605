//! A new log in place of a broken one, which is kept as it is. `docs/proof-log.md` says what is taken over.

use std::path::PathBuf;

use rulekeep::maintenance::{RepairOptions, repair};

use super::{Failure, Kept};

/// What is repaired.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The folder of the store.
    store: PathBuf,
    /// Suspends every agent.
    #[arg(long)]
    suspend_all: bool,
    #[command(flatten)]
    kept: Kept,
}

/// Repairs, and prints the report as JSON.
pub(crate) fn run(options: &Options) -> Result<(), Failure> {
    let settings = RepairOptions::default();
    let settings = if options.suspend_all { settings.suspend_all() } else { settings };
    let settings = match options.kept.read()? {
        Some((note, key)) => settings.checkpoint(&note, &key)?,
        None => settings,
    };
    println!("{}", serde_json::to_string_pretty(&repair(&options.store, &settings)?)?);
    Ok(())
}
