//! `rulekeep tasks open`, `show` and `close`.

use std::process::ExitCode;

use clap::Subcommand;
use rulekeep::Outcome;
use rulekeep_server::calls::tasks::{Close, Get, Open};

use super::{Failed, Reading, Writing};

/// A subcommand of `rulekeep tasks`.
#[derive(Subcommand)]
pub(crate) enum Tasks {
    /// Opens a task: the user's own words limit what is done under it
    #[command(after_help = "Examples:\n  rulekeep tasks open support-1 \"Read the file notes.txt\" --max-calls 20")]
    Open {
        #[arg(value_name = "AGENT", help = "The agent that works on it")]
        agent_id: String,
        /// The user's own words
        input: String,
        /// A value that may be used although the words do not name it; can be given several times
        #[arg(long, value_name = "VALUE")]
        trusted: Vec<String>,
        /// Largest number of calls under the task
        #[arg(long, value_name = "N")]
        max_calls: Option<u64>,
        /// Seconds until the task expires
        #[arg(long, value_name = "SECONDS")]
        expires_in: Option<u64>,
        #[command(flatten)]
        to: Writing,
    },
    /// Shows a task with its mandate
    #[command(after_help = "Examples:\n  rulekeep tasks show tsk_01m89vy2x6z7e9r8r000000003")]
    Show {
        #[arg(value_name = "TASK", help = "The task's id")]
        task_id: String,
        #[command(flatten)]
        from: Reading,
    },
    /// Closes a task, and those delegated from it
    #[command(after_help = "Examples:\n  rulekeep tasks close tsk_01m89vy2x6z7e9r8r000000003 --outcome success")]
    Close {
        #[arg(value_name = "TASK", help = "The task's id")]
        task_id: String,
        /// The outcome of the task: success, failure or escalated
        #[arg(long, value_parser = super::upper::<Outcome>)]
        outcome: Option<Outcome>,
        #[command(flatten)]
        to: Writing,
    },
}

/// Runs a subcommand.
pub(crate) fn tasks(command: Tasks) -> Result<ExitCode, Failed> {
    match command {
        Tasks::Open { agent_id, input, trusted, max_calls, expires_in, to } => {
            to.run(Open { agent_id, input, trusted, work_area: Vec::new(), context: None, expires_in, max_calls })
        }
        Tasks::Show { task_id, from } => from.run(Get { task_id }),
        Tasks::Close { task_id, outcome, to } => to.run(Close { task_id, outcome }),
    }
}
