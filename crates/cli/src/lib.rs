//! The `rulekeep` tool: one binary for people and for the hooks of their agents.
//!
//! | module | subject |
//! |---|---|
//! | `home` | the folder with configuration, policies, store and sockets |
//! | `daemon` | the process that has the store open |
//! | `client` | calls on the daemon, or on the store where it does not run |
//! | `hook` | the events of agents' hosts |
//! | `doctor` | proof that hosts ask the hook |
//! | `policy`, `log`, `tasks`, `soak` | the verbs of these names |
//! | `serve`, `sidecar` | a governor for programs, over HTTP and over lines |

mod client;
mod daemon;
pub mod doctor;
mod home;
pub mod hook;
mod log;
mod plain;
pub mod policy;
pub mod report;
mod serve;
mod sidecar;
mod signals;
mod soak;
mod store;
mod tasks;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Governs what software agents do: hooks that block, policies, and a log that proves every decision.
#[derive(Parser)]
#[command(name = "rulekeep", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Makes the home of the tool: configuration, policies, store and the operator's key
    Init(home::InitOptions),
    /// Starts the daemon that hooks ask
    Up(daemon::UpOptions),
    /// Ends the daemon
    Down(daemon::DownOptions),
    /// Shows whether the daemon runs, and how the log is
    Status(daemon::StatusOptions),
    /// Answers one event of an agent's host
    Hook(hook::Options),
    /// Fires a harmless, forbidden call through each registered hook, and lists where a host lets calls through
    Doctor(doctor::Options),
    /// Serves a governor on standard input and output: JSON-RPC 2.0, one message a line
    Sidecar(sidecar::Options),
    /// Serves a governor over HTTP, with a console
    Serve(serve::Options),
    /// Exports, imports, verifies and repairs the log of a store
    #[command(subcommand)]
    Log(log::Command),
    /// Tests, checks and explains policies, and prints their JSON Schema
    #[command(subcommand)]
    Policy(policy::Command),
    /// Replays recorded tasks under mandates
    #[command(subcommand)]
    Tasks(tasks::Command),
    /// Writes an HTML report about a period of a store's log
    Report(report::Options),
    /// Measures a log of many records: written, reopened, queried and verified
    Soak(soak::Options),
}

/// Runs the tool with the arguments of the process.
#[must_use]
pub fn main() -> ExitCode {
    let (name, done) = match Arguments::parse().command {
        Command::Init(options) => ("init", home::init(&options)),
        Command::Up(options) => ("up", daemon::up(&options)),
        Command::Down(options) => ("down", daemon::down(&options)),
        Command::Status(options) => ("status", daemon::status(&options)),
        Command::Hook(options) => return hook::run(&options),
        Command::Doctor(options) => ("doctor", doctor::run(options)),
        Command::Sidecar(options) => ("sidecar", sidecar::run(options)),
        Command::Serve(options) => ("serve", serve::run(options)),
        Command::Log(command) => ("log", log::run(command)),
        Command::Policy(command) => return policy::main(command),
        Command::Tasks(command) => ("tasks", tasks::run(command)),
        Command::Report(options) => ("report", report::run(&options)),
        Command::Soak(options) => ("soak", soak::run(&options)),
    };
    done.unwrap_or_else(|message| {
        eprintln!("{name}: {message}");
        ExitCode::FAILURE
    })
}
