//! Runs a program under a profile: `confined PROFILE.json PROGRAM [ARGUMENT...]`. `confined attempt` finds out whether
//! this system can confine a process.

#[cfg(target_os = "linux")]
fn main() {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if let Err(error) = run(&arguments) {
        eprintln!("{error}");
        std::process::exit(126);
    }
}

#[cfg(target_os = "linux")]
fn run(arguments: &[std::ffi::OsString]) -> Result<(), Box<dyn std::error::Error>> {
    use rulekeep_confine::{Profile, attempt, help};
    use std::process::Command;

    let [file, command @ ..] = arguments else { return Err("expected a profile and a program".into()) };
    let this = |word: &str| -> std::io::Result<Command> {
        let mut this = Command::new(std::env::current_exe()?);
        this.arg(word);
        Ok(this)
    };
    match (file.to_string_lossy().as_ref(), command) {
        ("attempt", []) => Ok(attempt()?),
        ("help", []) => Ok(help(Some(this("helper")?), "").map(drop)?),
        ("helper", []) => Ok(help(None, "it is not in the profile").map(drop)?),
        _ => {
            let profile: Profile = serde_json::from_slice(&std::fs::read(file)?)?;
            Err(profile.exec(command, &[], this("help")?).into())
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("confined runs need Linux");
}
