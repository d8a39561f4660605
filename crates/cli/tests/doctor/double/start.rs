//! Starting a hook's process as hosts do.

use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::world::World;

/// The end of a hook.
pub(super) struct Done {
    /// The exit code; `None` if the hook was killed, was late or did not start.
    pub(super) exit: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
    pub(super) late: bool,
}

impl Done {
    /// Its output, as JSON.
    pub(super) fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_str(self.stdout.trim()).ok().filter(serde_json::Value::is_object)
    }
}

/// Runs a hook with a time limit, which is shortened to that of the tests.
pub(super) fn hook(world: &World, shell: &str, line: &str, input: &str, limit: Duration) -> Done {
    let mut command = Command::new(shell);
    command.args(["-c", line]);
    program(world, command, input, limit)
}

pub(super) fn program(world: &World, mut command: Command, input: &str, limit: Duration) -> Done {
    let failed = || Done { exit: None, stdout: String::new(), stderr: String::new(), late: false };
    command.env_clear().envs(world.environment()).current_dir(&world.project);
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(mut child) = spawned else { return failed() };
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let readers = [reader(stdout), reader(stderr)];
    let end = Instant::now() + limit.min(LONGEST);
    let exit = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() >= end => {
                child.kill().unwrap();
                child.wait().unwrap();
                return Done { late: true, ..failed() };
            }
            None => thread::sleep(Duration::from_millis(2)),
        }
    };
    writer.join().unwrap();
    let [stdout, stderr] = readers.map(|reader| reader.join().unwrap());
    Done { exit: exit.code(), stdout, stderr, late: false }
}

fn reader(mut from: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        drop(from.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The longest time limit of tests: a hook that hangs is killed after it.
const LONGEST: Duration = Duration::from_secs(4);
