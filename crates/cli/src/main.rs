//! `rulekeep`: serves a governor to other programs, and keeps its log.

mod log;
mod serve;
mod sidecar;
mod soak;
mod store;
mod tasks;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use rulekeep_cli::policy;

/// Governs what software agents do: serves a governor, and keeps its log.
#[derive(Parser)]
#[command(name = "rulekeep", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serves a governor on standard input and output: JSON-RPC 2.0, one message a line.
    Sidecar(sidecar::Options),
    /// Serves a governor over HTTP, with a console.
    Serve(serve::Options),
    /// Exports, imports, verifies and repairs the log of a store.
    #[command(subcommand)]
    Log(log::Command),
    /// Works on policy documents, and on their decisions about requests and logs.
    #[command(subcommand)]
    Policy(policy::Command),
    /// Replays recorded tasks under mandates.
    #[command(subcommand)]
    Tasks(tasks::Command),
    /// Measures a log of many records: written, reopened, queried and verified.
    Soak(soak::Options),
}

fn main() -> ExitCode {
    let (name, done) = match Arguments::parse().command {
        Command::Sidecar(options) => ("sidecar", sidecar::run(options)),
        Command::Serve(options) => ("serve", serve::run(options)),
        Command::Log(command) => ("log", log::run(command)),
        Command::Policy(command) => return policy::main(command),
        Command::Tasks(command) => ("tasks", tasks::run(command)),
        Command::Soak(options) => ("soak", soak::run(&options)),
    };
    done.unwrap_or_else(|message| {
        eprintln!("{name}: {message}");
        ExitCode::FAILURE
    })
}
