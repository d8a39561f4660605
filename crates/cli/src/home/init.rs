//! `rulekeep init`: creates the home, with a policy file, its cases, a configuration and the operator's key.

use std::fs;
use std::io::{IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::ExitCode;

use rulekeep_server::gateway::{Gateway, KeyDraft, Plan, Scope};
use serde_json::json;

use super::{Home, make_private};
use crate::store::describe;

/// The options of `rulekeep init`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  rulekeep init --yes")]
pub(crate) struct Options {
    /// Does not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Prints the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, String> {
    let home = Home::find()?;
    let shown = home.root().display().to_string();
    if home.root().join("config.toml").exists() {
        return Err(format!("{shown} exists already; to start over, move it away first"));
    }
    if !options.yes {
        confirm(&format!("Make {shown}, with a policy for coding agents?"))?;
    }
    // Created beside its place and then moved there, so that no incomplete home is ever found.
    let parent = home.root().parent().ok_or_else(|| format!("{shown}: expected a folder below another"))?;
    make_private(parent)?;
    let failed = |error: std::io::Error| format!("{shown}: {error}");
    let made = tempfile::Builder::new().prefix(".rulekeep-").tempdir_in(parent).map_err(failed)?;
    let (draft, key) = draft(made.path())?;
    if home.root().exists() {
        // An empty folder may be used; one with content belongs to somebody.
        fs::remove_dir(home.root()).map_err(failed)?;
    }
    fs::rename(draft.root(), home.root()).map_err(failed)?;
    drop(made.keep());
    if options.json {
        println!("{}", json!({ "home": shown, "policy": home.policy(), "operatorKey": key }));
    } else {
        println!(
            "made {shown}\n  policies/policy.toml        what agents may do\n  policies/policy.cases.toml  its tests\n  \
             config.toml                 settings\n  store/                      the log\n\n\
             operator key, shown only here:\n  {key}\n\
             Keep it where the agent cannot read it. Approving, stopping the daemon and removing hooks need it, as\n\
             RULEKEEP_OPERATOR_KEY in your own shell; never set it in the shell that runs the agent.\n\n\
             next: rulekeep up && rulekeep hook install --host claude && rulekeep doctor"
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Creates the home in a folder. Returns the operator's key.
fn draft(folder: &Path) -> Result<(Home, String), String> {
    let home = Home { root: folder.to_owned() };
    let shown = folder.display();
    fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o700))
        .map_err(|error| format!("{shown}: {error}"))?;
    make_private(&home.root().join("policies"))?;
    write(&home.policy(), include_str!("policy.toml"))?;
    write(&home.cases(), include_str!("policy.cases.toml"))?;
    write(&home.config_file(), include_str!("config.toml"))?;
    let config = home.config()?;
    let governor = home.builder(&config)?.open(home.store()).map_err(describe)?;
    let gateway = Gateway::new(&governor).map_err(describe)?;
    // A dashboard makes several calls per second, and the kill switch must never wait for the rate limit.
    let plan = Plan::enterprise(60_000_000, 1_000_000).map_err(describe)?;
    let draft = KeyDraft::new(Scope::Admin, plan).name("operator");
    let key = gateway.keys().create(draft).map_err(describe)?;
    governor.close().map_err(describe)?;
    Ok((home, key.key.expose().to_owned()))
}

/// Asks for confirmation on the terminal. Returns an error without a terminal, and for any answer except yes.
pub(crate) fn confirm(question: &str) -> Result<(), String> {
    if !std::io::stdin().is_terminal() {
        return Err("there is no terminal to confirm on: add --yes".to_owned());
    }
    eprint!("{question} [y/N] ");
    std::io::stderr().flush().map_err(|error| error.to_string())?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|error| error.to_string())?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err("nothing was changed".to_owned()),
    }
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    let opened = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    let written = opened.and_then(|mut opened| opened.write_all(text.as_bytes()));
    written.map_err(|error| format!("{}: {error}", file.display()))
}
