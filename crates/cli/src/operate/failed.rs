//! Failures of commands, with their exit codes and advice.

use std::fmt;
use std::process::ExitCode;

use rulekeep::Error;
use serde_json::Value;

use crate::client::{Failure, has_read_damage};

/// The command failed or found a problem.
pub(crate) const FAILED: u8 = 1;
/// The arguments are invalid; clap uses this code too.
pub(crate) const WRONG_USE: u8 = 2;
/// The daemon does not run, but is needed.
pub(crate) const NOT_RUNNING: u8 = 3;
/// The command was ended by Ctrl-C; the usual code of shells.
pub(crate) const INTERRUPTED: u8 = 130;

/// A failure of a command.
#[derive(Debug)]
pub(crate) struct Failed {
    exit: u8,
    message: String,
}

impl Failed {
    /// A failure because of invalid arguments.
    pub(crate) fn usage(message: &str) -> Self {
        Self { exit: WRONG_USE, message: message.to_owned() }
    }

    /// A failure because the daemon does not run.
    pub(crate) fn not_running(why: &str) -> Self {
        Self { exit: NOT_RUNNING, message: format!("{why}; start the daemon with: rulekeep up") }
    }

    /// A failure because of Ctrl-C.
    pub(crate) fn interrupted(message: String) -> Self {
        Self { exit: INTERRUPTED, message }
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::output::clean(&self.message))
    }
}

impl From<String> for Failed {
    fn from(message: String) -> Self {
        Self { exit: FAILED, message }
    }
}

impl From<Failure> for Failed {
    fn from(failure: Failure) -> Self {
        let exit = match failure.code.as_str() {
            "INVALID_INPUT" | "INVALID_QUERY" => WRONG_USE,
            "UNREACHABLE" => NOT_RUNNING,
            _ => FAILED,
        };
        let next = match failure.code.as_str() {
            "AGENT_NOT_FOUND" => "; list the agents with: rulekeep agents list",
            "CHAIN_BROKEN" => "; locate the damage with: rulekeep log verify",
            "PROOF_NOT_FOUND" if is_escalation(&failure) => "; list the escalations with: rulekeep escalations list",
            "PROOF_NOT_FOUND" => "; list the records with: rulekeep log query",
            "UNAUTHORIZED" => "; set RULEKEEP_OPERATOR_KEY to a valid key of the scope admin",
            "UNREACHABLE" => "; check the daemon with: rulekeep status",
            _ => "",
        };
        Self { exit, message: format!("{failure}{next}") }
    }
}

/// The id that was not found is an escalation's, not a record's.
fn is_escalation(failure: &Failure) -> bool {
    failure.details.get("proofId").and_then(Value::as_str).is_some_and(|id| id.starts_with("esc_"))
}

impl From<rulekeep::Error> for Failed {
    fn from(error: rulekeep::Error) -> Self {
        let is_found = matches!(error, Error::ExportBroken { .. } | Error::ArchiveBroken { .. });
        let failed = Self::from(Failure::from(error));
        // A file that does not hold is a result, and no invalid argument.
        if is_found { Self { exit: FAILED, ..failed } } else { failed }
    }
}

/// Ends a command: prints a failure on standard error, and returns the exit code. A command that answered from a damaged
/// log has failed.
pub(crate) fn finish(name: &str, done: Result<ExitCode, Failed>) -> ExitCode {
    match done {
        Ok(code) if code == ExitCode::SUCCESS && has_read_damage() => ExitCode::from(FAILED),
        Ok(code) => code,
        Err(failed) => {
            eprintln!("{name}: {failed}");
            ExitCode::from(failed.exit)
        }
    }
}
