//! `rulekeep exec`: runs a command under the profile of the decision that permits it.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::client::{Line, OPERATOR_KEY};
use crate::home::Home;
use crate::hook::{Claim, Refused};
use rulekeep::proof::ProofId;

/// The options of `rulekeep exec`.
#[derive(clap::Args)]
#[command(
    after_help = "Hooks write this command; a decision permits one run of the command that it was made on. Linux only.\n\n\
                  Exit codes: those of the command, and 126 if the run cannot be confined; then nothing has run.\n\n\
                  Examples:\n  rulekeep exec --decision prf_01jq8zj3v1f4s6kqg2m5x7n9pw -- make test"
)]
pub(crate) struct Options {
    /// The decision
    #[arg(long, value_name = "ID", required_unless_present = "attempt")]
    decision: Option<ProofId>,
    /// Confines this process in a folder, to find out whether the system can
    #[arg(long, hide = true, value_name = "FOLDER", conflicts_with = "decision")]
    attempt: Option<std::path::PathBuf>,
    /// The command, as it was decided on
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "attempt")]
    command: Vec<OsString>,
}

/// Runs the command. Returns only if it did not run.
pub(crate) fn run(options: &Options) -> ExitCode {
    let message = match confined(options) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(message) => message,
    };
    eprintln!("rulekeep: {message}");
    ExitCode::from(NOT_RUN)
}

#[cfg(target_os = "linux")]
fn confined(options: &Options) -> Result<(), String> {
    use rulekeep_confine::{attempt, supervise, supervised};
    use serde::de::IgnoredAny;

    if let Some(folder) = &options.attempt {
        return attempt(folder).map_err(|error| error.to_string());
    }
    if let Some(error) = supervised(&options.command, SECRETS) {
        return Err(error.to_string());
    }
    let proof_id = options.decision.ok_or("the decision is missing")?;
    let words = options.command.iter().map(|word| word.to_str().map(str::to_owned));
    let command = words.collect::<Option<Vec<String>>>().ok_or("the command is not UTF-8")?;
    let home = Home::find()?;
    home.check()?;
    let line = Line::agent(&home, Some(PATIENCE)).map_err(|failure| failure.message)?;
    let claim = Claim { proof_id, command };
    let profile: rulekeep_confine::Profile = line.call("run/claim", &claim).map_err(|failure| failure.message)?;
    if !profile.needs_supervisor() {
        drop(line);
        return Err(profile.exec(&options.command, SECRETS).to_string());
    }
    let this = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut this = std::process::Command::new(this);
    this.args(std::env::args_os().skip(1));
    let hint = "a rule with `confine.hosts` permits it, and repeating the call asks for a run without confinement";
    let ended = supervise(&profile, this, hint).map_err(|error| error.to_string())?;
    if !ended.refused.is_empty() {
        // Only told: the daemon may have ended during the run.
        let _ = line.call::<IgnoredAny>("run/refused", &Refused { proof_id, hosts: ended.refused.clone() });
    }
    ended.exit()
}

#[cfg(not(target_os = "linux"))]
fn confined(_: &Options) -> Result<(), String> {
    Err("confined runs need Linux".to_owned())
}

/// Variables that a run does not get.
const SECRETS: &[&str] = &[OPERATOR_KEY];
/// Longest wait for the daemon.
#[cfg(target_os = "linux")]
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);
/// The exit code of shells for a command that cannot be run.
const NOT_RUN: u8 = 126;
