//! The `rulekeep` tool: one program for people and for the hooks of their agents.
//!
//! | module | subject |
//! |---|---|
//! | `home` | the folder with configuration, policies, store and sockets |
//! | `daemon` | the process that has the store open |
//! | `client` | calls to the daemon, or on the store if it does not run |
//! | `hook` | the events of agents' hosts |
//! | `doctor` | proof that hosts run the hook |
//! | `exec` | confined runs |
//! | `fleet` | an organisation of governors: hub, witness, orders |
//! | `operate` | commands that are one call each: `agents`, `clock`, `escalations`, `keys`, `kill-switch`, `tasks`, `webhooks` |
//! | `output` | printing answers for people and programs |
//! | `manual` | completions and manual pages |
//! | `mcp` | the gateway between MCP clients and servers |
//! | `policy`, `log` | the commands of these names |
//! | `serve`, `sidecar` | a governor for programs, over HTTP and over standard input and output |

mod callers;
mod client;
mod daemon;
pub mod doctor;
mod exec;
mod fleet;
mod home;
pub mod hook;
mod log;
mod manual;
mod mcp;
mod operate;
mod output;
mod plain;
pub mod policy;
pub mod report;
mod serve;
mod sidecar;
mod signals;
mod store;
mod times;
pub mod watch;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};

use operate::finish;

/// Governs what software agents do: blocking hooks, policies, and a log that proves every decision.
#[derive(Parser)]
#[command(name = "rulekeep", version, after_help = EXIT_CODES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Creates the home of the tool: configuration, policies, store and the operator's key
    Init(home::InitOptions),
    /// Starts the daemon that serves hooks
    Up(daemon::UpOptions),
    /// Stops the daemon
    Down(daemon::DownOptions),
    /// Shows whether the daemon runs, and the state of the log
    Status(daemon::StatusOptions),
    /// Answers one event of an agent's host
    Hook(hook::Options),
    /// Runs a command that was decided on, so that it can do no more than the decision permits
    Exec(exec::Options),
    /// Sends a harmless, forbidden call through each registered hook, and lists when a host lets calls through
    Doctor(doctor::Options),
    /// Governs the calls between an MCP client and an MCP server
    #[command(subcommand)]
    Mcp(mcp::Command),
    /// Serves a governor on standard input and output: JSON-RPC 2.0, one message per line
    Sidecar(sidecar::Options),
    /// Serves a governor over HTTP, with a console
    Serve(serve::Options),
    /// Reads, verifies, exports and maintains the log
    #[command(subcommand)]
    Log(log::Command),
    /// Lists agents, and changes their state and trust
    #[command(subcommand)]
    Agents(operate::Agents),
    /// Lists escalations, and answers them
    #[command(subcommand)]
    Escalations(operate::Escalations),
    /// Denies everything to an agent, a group or all agents
    #[command(subcommand)]
    KillSwitch(operate::KillSwitch),
    /// Confirms the time of a clock that was ahead
    #[command(subcommand)]
    Clock(operate::Clock),
    /// Lists, creates and revokes API keys
    #[command(subcommand)]
    Keys(operate::Keys),
    /// Manages the endpoints to which events are sent
    #[command(subcommand)]
    Webhooks(operate::Webhooks),
    /// Tests, checks and explains policies, and prints their JSON Schema
    #[command(subcommand)]
    Policy(policy::Command),
    /// Opens, shows and closes tasks
    #[command(subcommand)]
    Tasks(operate::Tasks),
    /// Runs an organisation of governors: its hub, its orders and its log
    #[command(subcommand)]
    Fleet(fleet::Command),
    /// Lists the questions that were asked, and the smallest changes that would end them
    #[command(after_help = "Examples:\n  rulekeep tune\n  rulekeep tune --whole --max-rules 20")]
    Tune(policy::Tuning),
    /// Writes an HTML report about a period of a store's log
    Report(report::Options),
    /// Shows decisions as they come, and lets you answer escalations
    Watch(watch::Options),
    /// Prints the completions for a shell
    Completions(manual::CompletionOptions),
    /// Prints a manual page
    Man(manual::ManOptions),
}

const EXIT_CODES: &str = "Exit codes:
  0    done
  1    failed, or found a problem: a log that does not verify, a failing test
  2    wrong use, such as a mistyped filter
  3    the daemon is needed, but does not run
  130  ended by Ctrl-C; nothing is left half-written
`rulekeep hook` uses the exit codes of the agent's host instead.";

/// The exit code of a command that finds something or does not.
fn found(result: Result<bool, Box<dyn std::error::Error>>) -> Result<ExitCode, String> {
    let code = |is_found: bool| if is_found { ExitCode::SUCCESS } else { ExitCode::from(1) };
    result.map(code).map_err(|error| error.to_string())
}

/// The command-line interface, for manual pages and completions.
#[must_use]
pub fn command() -> clap::Command {
    Arguments::command()
}

/// Runs the tool with the arguments of the process.
#[must_use]
pub fn main() -> ExitCode {
    end_with_the_reader();
    let (name, done) = match often().unwrap_or_else(|| Arguments::parse().command) {
        Command::Init(options) => ("init", home::init(&options)),
        Command::Up(options) => ("up", daemon::up(&options)),
        Command::Down(options) => ("down", daemon::down(&options)),
        Command::Status(options) => ("status", daemon::status(&options)),
        Command::Hook(options) => return hook::run(&options),
        Command::Exec(options) => return exec::run(&options),
        Command::Doctor(options) => ("doctor", doctor::run(options)),
        Command::Mcp(command) => ("mcp", mcp::run(command)),
        Command::Sidecar(options) => ("sidecar", sidecar::run(options)),
        Command::Serve(options) => ("serve", serve::run(options)),
        Command::Log(command) => return log::run(command),
        Command::Agents(command) => return finish("agents", operate::agents(command)),
        Command::Escalations(command) => return finish("escalations", operate::escalations(command)),
        Command::KillSwitch(command) => return finish("kill-switch", operate::kill_switch(command)),
        Command::Clock(command) => return finish("clock", operate::clock(command)),
        Command::Keys(command) => return finish("keys", operate::keys(command)),
        Command::Webhooks(command) => return finish("webhooks", operate::webhooks(command)),
        Command::Fleet(command) => return fleet::run(command),
        Command::Policy(command) => return policy::main(command),
        Command::Tasks(command) => return finish("tasks", operate::tasks(command)),
        Command::Tune(options) => ("tune", found(policy::tune(&options))),
        Command::Report(options) => ("report", report::run(&options)),
        Command::Watch(options) => ("watch", watch::main(&options)),
        Command::Completions(options) => ("completions", manual::completions(&options)),
        Command::Man(options) => ("man", manual::man(&options)),
    };
    done.unwrap_or_else(|message| {
        eprintln!("{name}: {message}");
        ExitCode::FAILURE
    })
}

/// Reads the command line of a hook or a confined run without the interface of the other commands, because both start
/// often and building it takes most of a start. Leaves mistakes and `--help` to the whole interface.
fn often() -> Option<Command> {
    let mut words = std::env::args_os().skip(1);
    let name = words.next()?;
    if name == "hook" {
        alone(words).map(Command::Hook)
    } else if name == "exec" {
        alone(words).map(Command::Exec)
    } else {
        None
    }
}

/// Reads the options of one command.
fn alone<T: Args>(words: impl Iterator<Item = OsString>) -> Option<T> {
    let interface = T::augment_args(clap::Command::new("rulekeep").no_binary_name(true).disable_help_flag(true));
    T::from_arg_matches(&interface.try_get_matches_from(words).ok()?).ok()
}

/// Ends the process when standard output cannot be written: quietly if its reader closed it, as `head` does.
fn end_with_the_reader() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let message = panic.payload().downcast_ref::<String>().map_or("", String::as_str);
        match message.strip_prefix("failed printing to stdout: ") {
            Some(error) if error.starts_with("Broken pipe") => std::process::exit(0),
            Some(error) => {
                eprintln!("standard output: {error}");
                std::process::exit(1);
            }
            None => usual(panic),
        }
    }));
}
