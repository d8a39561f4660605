//! `rulekeep hook`: reads one event of a host and prints the host's answer. Any error is a refusal.

use std::io::{Read as _, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;

use super::dialects::{Dialect, MAX_INPUT, read_input};
use super::event::{HookAnswer, HookRequest, Host};
use super::install::{self, InstallArguments, UninstallArguments};
use crate::client::{Client, Line, OPERATOR_KEY};
use crate::home::Home;

/// The options of `rulekeep hook`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Options {
    #[command(subcommand)]
    command: Option<Command>,
    /// The host whose event is on standard input
    #[arg(long, value_enum)]
    host: Option<Host>,
    /// The ID under which the agent is governed, instead of the host's name
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
}

#[derive(clap::Subcommand)]
enum Command {
    #[command(after_help = "Examples:\n  rulekeep hook install --host claude --user --yes")]
    /// Registers the hook in a host's settings, after showing the difference
    Install(InstallArguments),
    #[command(after_help = "Examples:\n  rulekeep hook uninstall --host claude --user --yes")]
    /// Removes the hook from a host's settings; needs the operator's key
    Uninstall(UninstallArguments),
}

/// Answers the event on standard input, or changes a host's settings.
pub(crate) fn run(options: &Options) -> ExitCode {
    let Some(command) = &options.command else { return answer_event(options) };
    let done = match command {
        Command::Install(arguments) => install::install(arguments, &check_operator),
        Command::Uninstall(arguments) => check_operator().and_then(|()| install::uninstall(arguments)),
    };
    done.unwrap_or_else(|message| {
        eprintln!("hook: {message}");
        ExitCode::FAILURE
    })
}

/// Checks the operator's key against the home.
fn check_operator() -> Result<(), String> {
    Client::operating(&Home::find()?).map(drop)
}

fn answer_event(options: &Options) -> ExitCode {
    // A panic's message would be printed beside the reason.
    std::panic::set_hook(Box::new(|_| {}));
    refuse_in_time(options.host);
    // Hosts share settings files, so the sender is known only after the event is read.
    let mut dialect = None;
    let answer = catch_unwind(AssertUnwindSafe(|| answer(options, &mut dialect)));
    let answer = answer.unwrap_or_else(|_| Err("rulekeep hook failed; this is a bug".to_owned()));
    let answer = answer.unwrap_or_else(|message| {
        let message = format!("rulekeep refuses: {message}");
        dialect.map_or_else(|| HookAnswer::refusal(&message), |dialect| dialect.refusal(&message))
    });
    let written = std::io::stdout().write_all(answer.stdout.as_bytes()).and_then(|()| std::io::stdout().flush());
    let _ = std::io::stderr().write_all(answer.stderr.as_bytes());
    ExitCode::from(if written.is_ok() { answer.exit } else { REFUSED })
}

/// Refuses shortly before the host's timeout, whatever the process is doing then, because most hosts run the call
/// once it has passed.
fn refuse_in_time(host: Option<Host>) {
    let Some(host) = host else { return };
    let deadline = Dialect::of(host).timeout().saturating_sub(MARGIN);
    std::thread::spawn(move || {
        std::thread::sleep(deadline);
        eprintln!("rulekeep refuses: there was no answer within {} s", deadline.as_secs());
        std::process::exit(i32::from(REFUSED));
    });
}

/// Asks the daemon for the answer to the event, and puts the event's dialect into `dialect`.
fn answer(options: &Options, dialect: &mut Option<&'static Dialect>) -> Result<HookAnswer, String> {
    let host = options.host.ok_or("the host is missing: rulekeep hook --host claude")?;
    if std::env::var_os(OPERATOR_KEY).is_some() {
        return Err(format!(
            "{OPERATOR_KEY} is set in the agent's environment, so the agent could approve its own calls: unset it and \
             start the agent again"
        ));
    }
    let mut bytes = Vec::new();
    let most = MAX_INPUT as u64 + 1;
    let read = std::io::stdin().lock().take(most).read_to_end(&mut bytes);
    read.map_err(|error| format!("the event cannot be read: {error}"))?;
    let event = read_input(&bytes)?;
    let of_event = Dialect::of_event(host, &event);
    *dialect = Some(of_event);
    // Answered well within the host's timeout, because most hosts run the call once it has passed.
    let patience = of_event.timeout().saturating_sub(std::time::Duration::from_millis(1_500));
    let home = Home::find()?;
    home.check()?;
    let request = HookRequest { host, agent: options.agent.clone(), event };
    let answer = Line::agent(&home, Some(patience)).and_then(|line| line.call("hook/event", &request));
    answer.map_err(|failure| failure.message)
}

/// The time before the host's timeout at which the hook gives up.
const MARGIN: std::time::Duration = std::time::Duration::from_secs(3);
/// The exit code with which every host refuses.
const REFUSED: u8 = 2;
