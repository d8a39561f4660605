//! Runs a program under a profile: `confined PROFILE.json PROGRAM [ARGUMENT...]`. `confined attempt FOLDER` finds out
//! whether this system can confine a process.

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
    use rulekeep_confine::{Profile, attempt, supervise, supervised};

    let [file, command @ ..] = arguments else { return Err("expected a profile and a program".into()) };
    if let ("attempt", [folder]) = (file.to_string_lossy().as_ref(), command) {
        return Ok(attempt(folder.as_ref())?);
    }
    if let Some(error) = supervised(command, &[]) {
        return Err(error.into());
    }
    let profile: Profile = serde_json::from_slice(&std::fs::read(file)?)?;
    if !profile.needs_supervisor() {
        return Err(profile.exec(command, &[]).into());
    }
    let mut this = std::process::Command::new(std::env::current_exe()?);
    this.args(arguments);
    supervise(&profile, this, "it is not in the profile")?.exit()
}

#[cfg(not(target_os = "linux"))]
fn main() {
    eprintln!("confined runs need Linux");
}
