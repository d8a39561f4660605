//! `rulekeep serve` in a process of its own, on a port and a store of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use serde_json::Value;
use tempfile::TempDir;

use crate::programs::SOON;

const PROGRAM: &str = env!("CARGO_BIN_EXE_rulekeep");

/// A server process that is killed when dropped.
pub(crate) struct Serve {
    pub(crate) child: Child,
    pub(crate) url: String,
    pub(crate) admin: String,
    pub(crate) store: TempDir,
}

impl Serve {
    pub(crate) fn start() -> Self {
        Self::by(Command::new(PROGRAM))
    }

    /// Starts a server that may have only this many files open.
    pub(crate) fn with_descriptors(most: usize) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -n {most} && exec \"$0\" \"$@\"")]).arg(PROGRAM);
        Self::by(shell)
    }

    fn by(mut command: Command) -> Self {
        let store = tempfile::tempdir().unwrap();
        let mut child = command
            .args(["serve", "--listen", "127.0.0.1:0", "--durability", "buffered", "--auto-register", "--store"])
            .arg(store.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = child.stdout.take().unwrap();
        let mut serve = Self { child, url: String::new(), admin: String::new(), store };
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let mut line = String::new();
            let read = BufReader::new(stdout).read_line(&mut line);
            tell.send(read.map(|_| line))
        });
        let line = told.recv_timeout(SOON).expect("serve says something in time").unwrap();
        let ready: Value = serde_json::from_str(&line).expect("serve says that it is ready");
        let text = |name: &str| ready[name].as_str().expect(name).to_owned();
        (serve.url, serve.admin) = (text("url"), text("adminKey"));
        serve
    }

    pub(crate) fn address(&self) -> String {
        self.url.trim_start_matches("http://").trim_end_matches("/v1").to_owned()
    }

    /// Asks the server to end.
    pub(crate) fn terminate(&self) {
        let kill = format!("kill -TERM {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
    }

    /// Asks the server to end, and checks that it ends successfully.
    pub(crate) fn end(mut self) {
        self.terminate();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
