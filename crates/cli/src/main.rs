//! The `rulekeep` command line.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use rulekeep_cli::policy;

#[derive(Parser)]
#[command(name = "rulekeep", about = "Governance for software agents", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Tests, checks and explains policy files, and prints their JSON Schema
    #[command(subcommand)]
    Policy(policy::Command),
}

fn main() -> ExitCode {
    let Arguments { command } = Arguments::parse();
    match command {
        Command::Policy(command) => policy::main(command),
    }
}
