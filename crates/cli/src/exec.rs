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
    after_help = "Hooks write `rulekeep exec --decision ID -- COMMAND`; a decision permits one run of the command that it was \
                  made on. Linux only.\n\n\
                  Exit codes: those of the command, 127 if there is no such program, 2 for wrong use, and 126 if the run \
                  cannot be confined; then nothing has run.\n\n\
                  Examples:\n  rulekeep exec --confine offline -- true"
)]
#[group(id = "limits", args = ["decision", "confine", "profile", "attempt"])]
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
    /// A profile in JSON, which a guard derived from its decision
    #[arg(long, hide = true, value_name = "JSON")]
    profile: Option<String>,
    /// Confines this process, to find out whether the system can
    #[arg(long, hide = true)]
    attempt: bool,
    /// Does the work of a run's helper
    #[arg(long, hide = true, value_enum, value_name = "PART")]
    help_run: Option<HelpPart>,
    /// The command, as it was decided on
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["attempt", "help_run"])]
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
    let failed = match confined(options) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(failed) => failed,
    };
    eprintln!("rulekeep: {}", failed.message);
    ExitCode::from(failed.code)
}

/// The reason why a command did not run, and the exit code that shells have for it.
struct Failed {
    message: String,
    code: u8,
}

impl From<String> for Failed {
    fn from(message: String) -> Self {
        Self { message, code: NOT_RUN }
    }
}

#[cfg(target_os = "linux")]
impl Failed {
    #[expect(clippy::needless_pass_by_value, reason = "it is the last use of the error")]
    fn of(error: rulekeep_confine::Error) -> Self {
        let is_missing = |source: &std::io::Error| source.kind() == std::io::ErrorKind::NotFound;
        let code = match &error {
            rulekeep_confine::Error::Program { source, .. } if is_missing(source) => NOT_FOUND,
            _ => NOT_RUN,
        };
        Self { message: error.to_string(), code }
    }
}

/// The parts of the helper of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum HelpPart {
    /// Starts the helper and ends
    Start,
    /// Is the helper
    Stay,
}

#[cfg(target_os = "linux")]
fn confined(options: &Options) -> Result<(), Failed> {
    use rulekeep_confine::{attempt, help};
    use serde::de::IgnoredAny;

    if options.attempt {
        return attempt().map_err(Failed::of);
    }
    if let Some(part) = options.help_run {
        let again = if part == HelpPart::Start { Some(this(options, HelpPart::Stay)?) } else { None };
        let hint = if options.decision.is_some() { HINT } else { "permit it with --host" };
        let hosts = help(again, hint).map_err(Failed::of)?;
        if let Some(proof_id) = options.decision.filter(|_| !hosts.is_empty()) {
            // Only told: the daemon may have ended during the run.
            let line = Home::find().ok().and_then(|home| Line::agent(&home, Some(PATIENCE)).ok());
            let _ = line.map(|line| line.call::<IgnoredAny>("run/refused", &Refused { proof_id, hosts }));
        }
        return Ok(());
    }
    let profile = match (options.decision, &options.profile) {
        (Some(proof_id), _) => claimed(proof_id, &options.command)?,
        (None, Some(given)) => serde_json::from_str(given).map_err(|error| format!("--profile: {error}"))?,
        (None, None) => profile(options)?,
    };
    Err(Failed::of(profile.exec(&options.command, SECRETS, this(options, HelpPart::Start)?)))
}

/// Returns the command that starts this program as the helper of the run.
#[cfg(target_os = "linux")]
fn this(options: &Options, part: HelpPart) -> Result<std::process::Command, String> {
    let this = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut this = std::process::Command::new(this);
    this.args(["exec", "--help-run", if part == HelpPart::Start { "start" } else { "stay" }]);
    if let Some(proof_id) = options.decision {
        this.args(["--decision", &proof_id.to_string()]);
    }
    Ok(this)
}

/// Claims the profile of a decision from the daemon.
#[cfg(target_os = "linux")]
fn claimed(proof_id: ProofId, command: &[OsString]) -> Result<rulekeep_confine::Profile, String> {
    let words = command.iter().map(|word| word.to_str().map(str::to_owned));
    let command = words.collect::<Option<Vec<String>>>().ok_or("the command is not UTF-8")?;
    let home = Home::find()?;
    home.check()?;
    let line = Line::agent(&home, Some(PATIENCE)).map_err(|failure| failure.message)?;
    line.call("run/claim", &Claim { proof_id, command }).map_err(|failure| failure.message)
}

/// The profile of the working folder, less what the policy of the home denies.
#[cfg(target_os = "linux")]
fn profile(options: &Options) -> Result<rulekeep_confine::Profile, String> {
    use rulekeep_confine::{DeniedPath, Ground, Profile};
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
    let mut denied = vec![DeniedPath::at(own.root())];
    if own.policy().exists() {
        let policies = rulekeep::PolicySet::from_file(own.policy()).map_err(|error| error.message())?;
        denied.extend(policies.denied_paths(None));
    }
    let home = std::env::home_dir();
    let temp = rulekeep_confine::temp_of(&folder.to_string_lossy());
    let ground = Ground { folder: &folder, home: home.as_deref(), areas: &[], temp: &temp, denied: &denied };
    let profile = Profile::of(&constraints, &rulekeep::intent::Facts::default(), &ground);
    let mut profile = profile.map_err(|error| error.to_string())?.ok_or("there is no profile")?;
    // Nothing outside is made for a run that nobody decided on.
    profile.caches.clear();
    Ok(profile)
}

#[cfg(not(target_os = "linux"))]
fn confined(_: &Options) -> Result<(), Failed> {
    Err("confined runs need Linux".to_owned().into())
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
/// The exit code of shells for a program that does not exist.
#[cfg(target_os = "linux")]
const NOT_FOUND: u8 = 127;
