//! Sending a probe through the command that a host has registered, the way the host runs it.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// The machine that the doctor examines.
#[derive(Clone)]
pub struct Machine {
    /// The home folder of the user.
    pub home: PathBuf,
    /// The folder of the project.
    pub project: PathBuf,
    /// The environment that hosts give their hooks; `None` for that of this process.
    pub environment: Option<Vec<(OsString, OsString)>>,
    /// Longest time to wait for a hook, even if the host would wait longer.
    pub patience: Duration,
}

/// The end of a hook.
#[derive(Debug)]
pub(super) enum End {
    /// The hook ended.
    Done(Output),
    /// The hook did not answer in time.
    Late(Duration),
    /// The hook did not start.
    Failed(String),
}

impl Machine {
    /// Passes an event to a command line, with additional variables.
    pub(super) fn fire(&self, shell: &str, line: &str, event: &str, limit: Duration, more: &[(&str, &Path)]) -> End {
        let mut command = match line.split_once(HOOK) {
            // The host starts this program without a shell.
            Some((program, host)) if shell == "none" => {
                let mut command = Command::new(program);
                command.args(["hook", "--host", host]);
                command
            }
            _ => {
                let mut command = if cfg!(windows) { Command::new("cmd") } else { Command::new(shell) };
                command.args([if cfg!(windows) { "/C" } else { "-c" }, line]);
                command
            }
        };
        command.envs(more.iter().copied());
        self.run(command, event, limit)
    }

    /// Finds a program on the path.
    pub(super) fn program(&self, name: &str) -> Option<PathBuf> {
        let path = match &self.environment {
            Some(environment) => environment.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone()),
            None => std::env::var_os("PATH"),
        };
        std::env::split_paths(&path?).map(|folder| folder.join(name)).find(|file| file.is_file())
    }

    /// The version that a program on the path reports.
    pub(super) fn version(&self, name: &str) -> Option<Vec<u64>> {
        let mut command = Command::new(self.program(name)?);
        command.arg("--version");
        match self.run(command, "", self.patience) {
            End::Done(output) => version(&String::from_utf8_lossy(&output.stdout)),
            End::Late(_) | End::Failed(_) => None,
        }
    }

    /// Runs a program in the environment, with a text on standard input.
    pub(super) fn run(&self, mut command: Command, input: &str, limit: Duration) -> End {
        if let Some(environment) = &self.environment {
            let more: Vec<_> =
                command.get_envs().map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned))).collect();
            command.env_clear().envs(environment.iter().cloned());
            command.envs(more.into_iter().filter_map(|(name, value)| Some((name, value?))));
        }
        command.current_dir(&self.project).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) => return End::Failed(error.to_string()),
        };
        let id = child.id();
        let input = input.to_owned();
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            if let Some(mut stdin) = child.stdin.take() {
                // A hook may end without reading.
                let _ = stdin.write_all(input.as_bytes());
            }
            let _ = sender.send(child.wait_with_output());
        });
        let limit = limit.min(self.patience);
        match receiver.recv_timeout(limit) {
            Ok(Ok(output)) => End::Done(output),
            Ok(Err(error)) => End::Failed(error.to_string()),
            Err(_) => {
                end(id);
                End::Late(limit)
            }
        }
    }
}

impl End {
    /// Checks for a refusal that the host honors and that gives `reason`. Every host honors exit code 2 with the
    /// reason on standard error and nothing on standard output; some hosts also read "deny" on standard output.
    pub(super) fn refusal(&self, decision: Option<&str>, reason: &str) -> Result<(), String> {
        let denies = |stdout: &str| {
            let answer: Value = serde_json::from_str(stdout).unwrap_or_default();
            decision.and_then(|at| answer.pointer(at)).is_some_and(|decision| decision == "deny")
        };
        let output = match self {
            Self::Done(output) => output,
            Self::Late(limit) => return Err(format!("it did not answer within {} s", limit.as_secs_f32())),
            Self::Failed(message) => return Err(format!("it did not start: {message}")),
        };
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        let said = match output.status.code() {
            Some(2) if stdout.is_empty() || denies(&stdout) => stderr,
            Some(2) => return Err(format!("it printed {:?} in addition to its refusal", first_line(&stdout))),
            Some(0) if denies(&stdout) => stdout,
            Some(0) => return Err(format!("it lets the call run: {:?}", first_line(&stdout))),
            _ => return Err(format!("it ended with {}: {:?}", output.status, first_line(&stderr))),
        };
        if said.trim().is_empty() || !said.contains(reason) {
            return Err(format!("it refused without the daemon's reason: {:?}", first_line(&said)));
        }
        Ok(())
    }
}

/// Ends the processes of a hook.
fn end(id: u32) {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    #[cfg(not(unix))]
    let _ = id;
}

/// Returns the first version in a text: `codex-cli 0.169.0`, `2.1.332 (Claude Code)`.
pub(super) fn version(text: &str) -> Option<Vec<u64>> {
    let words = text.split(|c: char| !c.is_ascii_digit() && c != '.');
    words
        .map(|word| word.split('.').map(|part| part.parse().ok()).collect::<Option<Vec<u64>>>())
        .find_map(|parts| parts.filter(|parts| parts.len() > 1))
}

fn first_line(text: &str) -> String {
    text.trim().lines().next().unwrap_or("").chars().take(200).collect()
}

/// The text between the program and the host in a command line that `rulekeep hook install` writes.
const HOOK: &str = " hook --host ";

#[cfg(test)]
mod tests {
    #[test]
    fn a_version_is_read_from_the_words_around_it() {
        for (text, expected) in [
            ("codex-cli 0.169.0\n", Some(vec![0, 169, 0])),
            ("2.1.332 (Claude Code)", Some(vec![2, 1, 332])),
            (" 1.52.0", Some(vec![1, 52, 0])),
            ("no version 7", None),
        ] {
            assert_eq!(super::version(text), expected, "{text}");
        }
    }
}
