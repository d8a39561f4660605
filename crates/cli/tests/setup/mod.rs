//! A home in a temporary folder, for running the tool on it.
#![allow(dead_code, clippy::unwrap_used, clippy::assigning_clones)] // each test program uses a part

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A home that `rulekeep init` made.
pub(crate) struct Setup {
    folder: TempDir,
    home: PathBuf,
    key: String,
}

/// The result of a process.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A daemon that runs until this is dropped.
pub(crate) struct Up<'a>(&'a Setup);

impl Setup {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut setup = Self { home: folder.path().join("home"), folder, key: String::new() };
        setup.key = setup.json(&["init", "--yes", "--json"])["operatorKey"].as_str().unwrap().to_owned();
        setup
    }

    /// Creates a home with the same content, in another folder.
    pub(crate) fn copied(&self) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let copied = Command::new("cp").arg("-a").arg(&self.home).arg(folder.path()).status().unwrap();
        assert!(copied.success());
        Self { home: folder.path().join("home"), folder, key: self.key.clone() }
    }

    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rulekeep"));
        command.args(arguments).env("RULEKEEP_HOME", &self.home).env_remove("RULEKEEP_OPERATOR_KEY");
        command.env("HOME", self.folder.path()).current_dir(self.folder.path()).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Answer {
        Answer::of(&self.command(arguments).output().unwrap())
    }

    pub(crate) fn run_in(&self, folder: &Path, arguments: &[&str]) -> Answer {
        Answer::of(&self.command(arguments).current_dir(folder).output().unwrap())
    }

    /// Runs the tool with the operator's key.
    pub(crate) fn operator(&self, arguments: &[&str]) -> Answer {
        Answer::of(&self.command(arguments).env("RULEKEEP_OPERATOR_KEY", &self.key).output().unwrap())
    }

    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let answer = self.run(arguments);
        serde_json::from_str(&answer.stdout).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
    }

    pub(crate) fn configure(&self, from: &str, to: &str) {
        let file = self.home().join("config.toml");
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.contains(from));
        std::fs::write(&file, text.replace(from, to)).unwrap();
    }

    pub(crate) fn up(&self) -> Up<'_> {
        let answer = self.run(&["up"]);
        assert_eq!(answer.code, 0, "{answer:?}");
        Up(self)
    }

    /// Starts a daemon that can have at most so many files open.
    pub(crate) fn up_with_files(&self, most: u32) -> Up<'_> {
        let up = self.command(&["up"]);
        let mut limited = Command::new("sh");
        limited.args(["-c", &format!("ulimit -n {most}; exec \"$0\" up")]).arg(up.get_program()).stdin(Stdio::null());
        for (name, value) in up.get_envs() {
            match value {
                Some(value) => limited.env(name, value),
                None => limited.env_remove(name),
            };
        }
        let answer = Answer::of(&limited.output().unwrap());
        assert_eq!(answer.code, 0, "{answer:?}");
        Up(self)
    }

    pub(crate) fn down(&self) {
        let answer = self.operator(&["down"]);
        assert_eq!(answer.code, 0, "{answer:?}");
    }

    pub(crate) fn hook(&self, host: &str, event: &Value) -> Answer {
        self.hook_text(host, &event.to_string())
    }

    pub(crate) fn hook_text(&self, host: &str, event: &str) -> Answer {
        self.hook_bytes(host, event.as_bytes())
    }

    pub(crate) fn hook_bytes(&self, host: &str, event: &[u8]) -> Answer {
        let mut command = self.command(&["hook", "--host", host]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // A process that refuses for another reason does not read to the end.
        let _ = child.stdin.take().unwrap().write_all(event);
        Answer::of(&child.wait_with_output().unwrap())
    }

    /// Makes a reading call on the daemon.
    pub(crate) fn ask(&self, method: &str, params: &Value) -> Value {
        self.calls(&[(method, params)]).pop().unwrap()
    }

    /// Makes a call on the daemon with the operator's key.
    pub(crate) fn operate(&self, method: &str, params: &Value) -> Value {
        self.calls(&[("session/authenticate", &json!({ "key": self.key })), (method, params)]).pop().unwrap()
    }

    /// Makes a call that must fail, with the operator's key. Returns the error's code.
    pub(crate) fn fails(&self, method: &str, params: &Value) -> String {
        let calls = [("session/authenticate", &json!({ "key": self.key })), (method, params)];
        let answer = self.answers(&calls).pop().unwrap();
        answer["error"]["data"]["code"].as_str().unwrap_or_else(|| panic!("{method}: {answer}")).to_owned()
    }

    fn calls(&self, calls: &[(&str, &Value)]) -> Vec<Value> {
        let result = |mut answer: Value| {
            assert!(answer.get("error").is_none(), "{calls:?}: {answer}");
            answer["result"].take()
        };
        self.answers(calls).into_iter().map(result).collect()
    }

    fn answers(&self, calls: &[(&str, &Value)]) -> Vec<Value> {
        let mut stream = UnixStream::connect(self.home().join("operator.sock")).unwrap();
        let mut answers = BufReader::new(stream.try_clone().unwrap());
        let each = calls.iter().map(|(method, params)| {
            writeln!(stream, "{}", json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })).unwrap();
            let mut line = String::new();
            answers.read_line(&mut line).unwrap();
            serde_json::from_str(&line).unwrap()
        });
        each.collect()
    }
}

impl Answer {
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Drop for Up<'_> {
    fn drop(&mut self) {
        let _ = self.0.operator(&["down"]);
    }
}
