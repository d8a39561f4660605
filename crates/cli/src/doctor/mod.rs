//! `rulekeep doctor`: proves that a host runs the hook, with probes that must be refused, and lists the conditions
//! under which the host itself lets calls through.
//!
//! | file | subject |
//! |---|---|
//! | `hosts.toml`, `model.rs` | how each host treats a hook, as data |
//! | `settings.rs` | the entries in a host's settings, as the host sees them |
//! | `fire.rs` | sending a probe through the registered command |
//! | `examine.rs` | examining one host |
//! | `codex.rs`, `gemini.rs` | the trust that these hosts require before they run a hook |
//! | `report.rs` | the verdict, the findings and the table of faults |

mod codex;
mod examine;
mod fire;
mod gemini;
mod model;
mod report;
mod settings;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum as _;

pub use examine::examine;
pub use fire::Machine;
pub use model::Fault;
pub use report::{Cell, Finding, Report, State, Verdict};

use crate::client::OPERATOR_KEY;
use crate::hook::event::Host;

/// The options of `rulekeep doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  rulekeep doctor\n  rulekeep doctor --host claude --json")]
pub struct Options {
    /// The host to examine (default: all that are used here)
    #[arg(long, value_enum)]
    host: Option<Host>,
    /// Prints the report as JSON
    #[arg(long)]
    json: bool,
    /// The folder whose settings count as the user's, instead of the home folder
    #[arg(long, value_name = "FOLDER")]
    settings_root: Option<PathBuf>,
    /// Seconds to wait for a hook; a slower one counts as failed
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    patience: u64,
}

/// Examines the hosts and prints the findings. The exit code is 0 if all are green.
///
/// # Errors
///
/// Returns a message if no home or project folder is known.
pub fn run(options: Options) -> Result<ExitCode, String> {
    let home = options.settings_root.or_else(std::env::home_dir);
    let home = home.ok_or("there is no home folder: name one with --settings-root")?;
    let project = std::env::current_dir().map_err(|error| format!("the folder of the project: {error}"))?;
    // The operator's own shell is not the environment of the host.
    let environment = std::env::vars_os().filter(|(name, _)| name != OPERATOR_KEY).collect();
    let machine =
        Machine { home, project, environment: Some(environment), patience: Duration::from_secs(options.patience) };
    let all = Host::value_variants().iter().copied();
    let hosts: Vec<Host> = match options.host {
        Some(host) => vec![host],
        None => all.filter(|host| examine::is_here(*host, &machine)).collect(),
    };
    if hosts.is_empty() {
        return Err("no host is set up here: run `rulekeep hook install`, or name a host with --host".to_owned());
    }
    let reports: Vec<Report> = hosts.into_iter().map(|host| examine(host, &machine)).collect();
    if options.json {
        println!("{}", serde_json::Value::from(reports.iter().map(Report::json).collect::<Vec<_>>()));
    } else {
        for report in &reports {
            println!("{report}");
        }
    }
    let green = reports.iter().all(|report| report.verdict == Verdict::Green);
    Ok(if green { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
