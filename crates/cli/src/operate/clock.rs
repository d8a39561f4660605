//! `rulekeep clock accept`.

use std::process::ExitCode;

use clap::Subcommand;
use rulekeep_server::calls::clock::Accept;

use super::{Failed, Writing};

/// A subcommand of `rulekeep clock`.
#[derive(Subcommand)]
pub(crate) enum Clock {
    /// Confirms the time of a clock that was ahead: later decisions carry it, instead of that of the last entry
    #[command(after_help = "Examples:\n  rulekeep clock accept --note \"the clock was a year ahead\"")]
    Accept {
        /// The person who confirms it
        #[arg(long, value_name = "NAME", default_value = "operator")]
        by: String,
        /// The reason
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
        #[command(flatten)]
        to: Writing,
    },
}

/// Runs a subcommand.
pub(crate) fn clock(command: Clock) -> Result<ExitCode, Failed> {
    let Clock::Accept { by, note, to } = command;
    to.run(Accept { by, note })
}
