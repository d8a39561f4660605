//! `rulekeep hook install` and `rulekeep hook uninstall`.

use std::env;
use std::ffi::OsString;
use std::io::{self, BufRead, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::layout::Layout;
use super::{FileChange, Scope, apply, plan_install, plan_uninstall, registered};
use crate::hook::event::Host;

/// The arguments of `rulekeep hook install`.
#[derive(Debug, clap::Args)]
pub struct InstallArguments {
    #[command(flatten)]
    place: Place,
    /// The program that the host runs (default: this one)
    #[arg(long, value_name = "PATH")]
    command: Option<PathBuf>,
}

/// The arguments of `rulekeep hook uninstall`.
#[derive(Debug, clap::Args)]
pub struct UninstallArguments {
    #[command(flatten)]
    place: Place,
}

/// The settings to change.
#[derive(Debug, clap::Args)]
struct Place {
    /// The host whose settings are changed
    #[arg(long)]
    host: Host,
    /// Changes your user settings, for all projects (the default)
    #[arg(long, conflicts_with = "project")]
    user: bool,
    /// Changes the settings of the project in the current folder
    #[arg(long)]
    project: bool,
    /// Writes the changes without asking
    #[arg(long)]
    yes: bool,
}

/// Registers the hook in the settings of a host, after showing the difference. `operator` checks for the operator's
/// key, which is needed to replace a registered hook.
///
/// # Errors
///
/// Returns a message if a file cannot be read or written, if nobody agreed, or if `operator` fails.
pub fn install(arguments: &InstallArguments, operator: &dyn Fn() -> Result<(), String>) -> Result<ExitCode, String> {
    let place = &arguments.place;
    let (home, project) = place.folders()?;
    let program = match &arguments.command {
        Some(program) if program.components().count() > 1 => std::path::absolute(program),
        Some(program) => Ok(program.clone()),
        None => env::current_exe(),
    }
    .map_err(|error| format!("the program's own path is unknown ({error}); pass --command"))?;
    let program = program.to_str().ok_or_else(|| format!("{} is not UTF-8; pass --command", program.display()))?;
    let changes = plan_install(place.host, place.scope(), &home, &project, program)?;
    if !changes.is_empty() && !registered(place.host, &home, &project)?.is_empty() {
        operator()?;
    }
    place.carry_out(&changes)?;
    let has_claudes =
        matches!(place.host, Host::Vscode | Host::Cursor) && !registered(Host::Claude, &home, &project)?.is_empty();
    if has_claudes {
        println!(
            "Claude Code has the hook as well, and this host can read its settings: each call may then be decided twice. Keep one."
        );
    }
    let layout = Layout::of(place.host);
    let note = (!changes.is_empty()).then_some(layout.note);
    for sentences in layout.shared.into_iter().chain(note) {
        println!("{sentences}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Removes the hook from the settings of a host, after showing the difference.
///
/// # Errors
///
/// Returns a message if a file cannot be read or written, or if nobody agreed.
pub fn uninstall(arguments: &UninstallArguments) -> Result<ExitCode, String> {
    let place = &arguments.place;
    let (home, project) = place.folders()?;
    let changes = plan_uninstall(place.host, place.scope(), &home, &project)?;
    // Before it asks: the other host goes on without the hook.
    if let Some(shared) = Layout::of(place.host).shared.filter(|_| !changes.is_empty()) {
        println!("{shared}");
    }
    place.carry_out(&changes)?;
    Ok(ExitCode::SUCCESS)
}

impl Place {
    const fn scope(&self) -> Scope {
        if self.project { Scope::Project } else { Scope::User }
    }

    /// The home folder and the folder of the project.
    fn folders(&self) -> Result<(PathBuf, PathBuf), String> {
        let home = env::home_dir().filter(|home| home.is_absolute()).ok_or("no home folder is known; set HOME")?;
        if self.scope() == Scope::User {
            refuse_moved(self.host, &home, |name| env::var_os(name))?;
        }
        let project = env::current_dir().map_err(|error| format!("the current folder: {error}"))?;
        Ok((home, project))
    }

    fn carry_out(&self, changes: &[FileChange]) -> Result<(), String> {
        let terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
        carry_out(changes, self.yes, terminal, &mut io::stdin().lock(), &mut io::stdout())
    }
}

/// Refuses to write settings that the host does not read because a variable names another folder.
fn refuse_moved(host: Host, home: &Path, variable: impl Fn(&str) -> Option<OsString>) -> Result<(), String> {
    match moved(host, home, variable) {
        Some(moved) => Err(format!("{moved}, where this command does not write; unset it, or use --project")),
        None => Ok(()),
    }
}

/// Returns that a variable moves the user's settings of a host elsewhere, as a clause.
pub(crate) fn moved(host: Host, home: &Path, variable: impl Fn(&str) -> Option<OsString>) -> Option<String> {
    let layout = Layout::of(host);
    let usual = layout.file(Scope::User, home, home);
    layout.moved_by.iter().find_map(|name| {
        let folder = PathBuf::from(variable(name).filter(|folder| !folder.is_empty())?);
        let is_elsewhere = !usual.starts_with(&folder);
        is_elsewhere.then(|| format!("{name} moves the settings of this host to {}", folder.display()))
    })
}

/// Shows the changes, and writes them if the user agrees.
fn carry_out(
    changes: &[FileChange],
    agreed: bool,
    terminal: bool,
    input: &mut impl BufRead,
    output: &mut impl Write,
) -> Result<(), String> {
    let failed = |error: io::Error| format!("the difference could not be shown: {error}");
    if changes.is_empty() {
        return writeln!(output, "Nothing to change.").map_err(failed);
    }
    for change in changes {
        write!(output, "{change}").map_err(failed)?;
    }
    if !agreed {
        if !terminal {
            return Err(
                "nothing was written: without a terminal to ask at, --yes must agree to this difference".to_owned()
            );
        }
        write!(output, "Write this? [y/N] ").and_then(|()| output.flush()).map_err(failed)?;
        let mut answer = String::new();
        input.read_line(&mut answer).map_err(failed)?;
        if !matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
            return Err("nothing was written".to_owned());
        }
    }
    apply(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_written_only_when_it_is_agreed_to() {
        for (agreed, terminal, answer, written) in [
            (true, false, "", true),
            (false, true, "y\n", true),
            (false, true, "YES\n", true),
            (false, true, "\n", false),
            (false, true, "", false),
            (false, true, "no\n", false),
            (false, false, "y\n", false),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("settings.json");
            let change = FileChange { path: path.clone(), before: None, after: Some("{}\n".to_owned()), copy_of: None };
            let mut output = Vec::new();
            let done = carry_out(&[change], agreed, terminal, &mut answer.as_bytes(), &mut output);
            assert_eq!((done.is_ok(), path.exists()), (written, written), "{answer:?}");
            assert!(String::from_utf8(output).unwrap().contains("+{}"), "the difference comes first");
        }
    }

    #[test]
    fn settings_that_a_variable_moves_are_not_written() {
        let home = Path::new("/home/dev");
        let error =
            refuse_moved(Host::Codex, home, |name| (name == "CODEX_HOME").then(|| "/srv/codex".into())).unwrap_err();
        assert!(error.contains("CODEX_HOME") && error.contains("/srv/codex"), "{error}");
        assert!(refuse_moved(Host::Copilot, home, |name| (name == "COPILOT_HOME").then(|| "/srv".into())).is_err());
        assert_eq!(refuse_moved(Host::Codex, home, |_| None), Ok(()));
        assert_eq!(refuse_moved(Host::Opencode, home, |_| Some("/home/dev/.config".into())), Ok(()));
        assert_eq!(refuse_moved(Host::Cursor, home, |_| Some("/srv".into())), Ok(()));
    }
}
