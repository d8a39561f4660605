//! A governor over standard input and output: JSON-RPC 2.0, one message per line. A runtime in any language can embed
//! it without a network.

use std::io::{self, BufReader};
use std::process::ExitCode;

use rulekeep_server::sidecar;

use crate::store::{StoreOptions, describe};

/// The options of `rulekeep sidecar`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  rulekeep sidecar --store governance --auto-register")]
pub(crate) struct Options {
    #[command(flatten)]
    store: StoreOptions,
}

pub(crate) fn run(options: Options) -> Result<ExitCode, String> {
    let opened = options.store.open()?;
    let served = sidecar::serve(&opened.gateway, BufReader::new(io::stdin().lock()), io::stdout());
    opened.gateway.governor().close().map_err(describe)?;
    match served {
        // The reader of the answers has gone, which is a normal end.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(ExitCode::SUCCESS),
    }
}
