//! A governor behind standard input and output: JSON-RPC 2.0, one message a
//! line, so that a runtime in any language can embed it with no network.
//!
//! ```text
//! cargo run --release --example sidecar -- [--store DIR] [--policies FILE]
//!     [--durability sync|buffered|sync-from:RISK] [--input-text whole|digest|no]
//!     [--auto-register]
//!     [--checkpoint-name NAME --checkpoint-seed FILE]
//!     [--webhook-retry-seconds N,N,.. ] [--allow-private-webhooks]
//! ```
//!
//! Those of checkpoints need the feature `checkpoints`; the file holds the key's 32 secret
//! bytes in hex. The public key is said on standard error. Those of webhooks need the
//! feature `webhooks`: how long is waited before each attempt, instead of the documented
//! times, and that loopback and private addresses may be endpoints.

use std::io::{self, BufReader};
use std::process::ExitCode;

use rulekeep::sidecar;

use support::{Opened, STORE_USAGE, StoreOptions, describe};

mod support;

fn main() -> ExitCode {
    if std::env::args().skip(1).any(|argument| argument == "--help" || argument == "-h") {
        println!("usage: sidecar {STORE_USAGE}");
        return ExitCode::SUCCESS;
    }
    let options = match read(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(message) => {
            eprintln!("sidecar: {message}\nusage: sidecar {STORE_USAGE}");
            return ExitCode::from(2);
        }
    };
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("sidecar: {message}");
            ExitCode::FAILURE
        }
    }
}

fn read(mut arguments: impl Iterator<Item = String>) -> Result<StoreOptions, String> {
    let mut options = StoreOptions::default();
    while let Some(option) = arguments.next() {
        if !options.take(&option, &mut arguments)? {
            return Err(format!("unknown option {option:?}"));
        }
    }
    Ok(options)
}

fn run(options: StoreOptions) -> Result<(), String> {
    let Opened { governor, .. } = &options.open()?;
    let served = sidecar::serve(governor, BufReader::new(io::stdin().lock()), io::stdout());
    governor.close().map_err(describe)?;
    match served {
        // Whoever asked has gone; that is an end like any other.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.to_string()),
        _ => Ok(()),
    }
}
