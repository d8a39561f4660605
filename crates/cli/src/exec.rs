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
                  Examples:\n  rulekeep exec --decision prf_01jq8zj3v1f4s6kqg2m5x7n9pw -- make test\n  \
                  rulekeep exec --confine offline -- make test"
)]
#[group(id = "profile", args = ["decision", "confine", "attempt"], required = true)]
pub(crate) struct Options {
    /// The decision
    #[arg(long, value_name = "ID")]
    decision: Option<ProofId>,
    /// A profile for the working folder, without a decision
    #[arg(long, value_name = "PROFILE")]
    confine: Option<Confinement>,
    /// A host that the run may reach; can be given several times
    #[arg(long = "host", value_name = "HOST", requires = "confine")]
    hosts: Vec<String>,
    /// Confines this process in a folder, to find out whether the system can
    #[arg(long, hide = true, value_name = "FOLDER")]
    attempt: Option<std::path::PathBuf>,
    /// The command, as it was decided on
    #[arg(last = true, value_name = "COMMAND", required_unless_present = "attempt")]
    command: Vec<OsString>,
}

/// A profile that needs no decision, because it only takes something away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Confinement {
    /// Writes the working folder, and reaches the named hosts
    Workspace,
    /// Writes the working folder, and reaches no host
    Offline,
}

/// The command line that runs a program confined in the working folder.
pub(crate) fn confining(
    confinement: Confinement,
    hosts: &[String],
    command: Vec<OsString>,
) -> Result<Vec<OsString>, std::io::Error> {
    let word = if confinement == Confinement::Workspace { "workspace" } else { "offline" };
    let mut line = vec![std::env::current_exe()?.into(), "exec".into(), "--confine".into(), word.into()];
    line.extend(hosts.iter().flat_map(|host| ["--host".into(), host.into()]));
    line.push("--".into());
    line.extend(command);
    Ok(line)
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
    use rulekeep_confine::{attempt, supervised};
    use serde::de::IgnoredAny;

    if let Some(folder) = &options.attempt {
        return attempt(folder).map_err(|error| error.to_string());
    }
    if let Some(error) = supervised(&options.command, SECRETS) {
        return Err(error.to_string());
    }
    let Some(proof_id) = options.decision else {
        let profile = profile(options)?;
        let ended = start(&profile, &options.command)?;
        ended.exit()
    };
    let words = options.command.iter().map(|word| word.to_str().map(str::to_owned));
    let command = words.collect::<Option<Vec<String>>>().ok_or("the command is not UTF-8")?;
    let home = Home::find()?;
    home.check()?;
    let line = Line::agent(&home, Some(PATIENCE)).map_err(|failure| failure.message)?;
    let claim = Claim { proof_id, command };
    let profile: rulekeep_confine::Profile = line.call("run/claim", &claim).map_err(|failure| failure.message)?;
    let ended = start(&profile, &options.command)?;
    if !ended.refused.is_empty() {
        // Only told: the daemon may have ended during the run.
        let _ = line.call::<IgnoredAny>("run/refused", &Refused { proof_id, hosts: ended.refused.clone() });
    }
    ended.exit()
}

/// Runs a command under a profile: as this process, or as a child of it. Returns when that child has ended.
#[cfg(target_os = "linux")]
fn start(profile: &rulekeep_confine::Profile, command: &[OsString]) -> Result<rulekeep_confine::Ended, String> {
    if !profile.needs_supervisor() {
        return Err(profile.exec(command, SECRETS).to_string());
    }
    let this = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut this = std::process::Command::new(this);
    this.args(std::env::args_os().skip(1));
    rulekeep_confine::supervise(profile, this, HINT).map_err(|error| error.to_string())
}

/// The profile of the working folder, less what the policy of the home denies.
#[cfg(target_os = "linux")]
fn profile(options: &Options) -> Result<rulekeep_confine::Profile, String> {
    use rulekeep_confine::{Denied, Ground, Profile};
    use serde_json::json;

    let term = match options.confine {
        Some(Confinement::Workspace) => json!({ "hosts": options.hosts }),
        _ if !options.hosts.is_empty() => return Err("--host needs --confine workspace".to_owned()),
        _ => json!("offline"),
    };
    let mut constraints = rulekeep::policy::Constraints::new();
    constraints.insert("confine", term);
    let folder = std::env::current_dir().map_err(|error| format!("the working folder: {error}"))?;
    let own = Home::find()?;
    let mut denied = vec![Denied { pattern: own.root().display().to_string(), is_readable: false }];
    if own.policy().exists() {
        let policies = rulekeep::PolicySet::from_file(own.policy()).map_err(|error| error.message())?;
        denied.extend(crate::hook::denied(&policies, None));
    }
    let home = std::env::home_dir();
    let temp = crate::hook::temp_of(&folder.to_string_lossy());
    let ground = Ground { folder: &folder, home: home.as_deref(), areas: &[], temp: &temp, denied: &denied };
    let profile = Profile::of(&constraints, &rulekeep::intent::Facts::default(), &ground);
    profile.map_err(|error| error.to_string())?.ok_or_else(|| "there is no profile".to_owned())
}

#[cfg(not(target_os = "linux"))]
fn confined(_: &Options) -> Result<(), String> {
    Err("confined runs need Linux".to_owned())
}

/// The end of the line that tells of a refused host.
#[cfg(target_os = "linux")]
const HINT: &str = "a rule with `confine.hosts` permits it, and repeating the call asks for a run without confinement";
/// Variables that a run does not get.
const SECRETS: &[&str] = &[OPERATOR_KEY];
/// Longest wait for the daemon.
#[cfg(target_os = "linux")]
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);
/// The exit code of shells for a command that cannot be run.
const NOT_RUN: u8 = 126;
