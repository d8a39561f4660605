//! A server as a child process that leads a process group of its own, so that its children end with it.

use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::{sleep, timeout};

/// A process group with a server as its leader.
pub(crate) struct Process {
    group: Pid,
    /// The leader; `None` once the group has ended. It is held while the group is being ended.
    leader: tokio::sync::Mutex<Option<Child>>,
}

impl Process {
    /// Starts a server. Its standard error is the gateway's.
    pub(crate) fn start(mut command: Command) -> io::Result<(Arc<Self>, ChildStdout, ChildStdin)> {
        let mut leader = command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let group = leader.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
        match (leader.stdout.take(), leader.stdin.take(), group) {
            (Some(output), Some(input), Some(group)) => {
                Ok((Arc::new(Self { group, leader: tokio::sync::Mutex::new(Some(leader)) }), output, input))
            }
            _ => Err(io::Error::other("the server has no standard streams")),
        }
    }

    /// Ends the group: its leader has this time to leave by itself, what is left gets SIGTERM, and then SIGKILL.
    pub(crate) async fn end(&self, grace: Duration) {
        let mut held = self.leader.lock().await;
        let Some(leader) = held.as_mut() else { return };
        let _ = timeout(grace, leader.wait()).await;
        if kill_process_group(self.group, Signal::TERM).is_ok() {
            let gone = async {
                // A leader that was not waited for still belongs to the group.
                while leader.try_wait().is_err() || test_kill_process_group(self.group).is_ok() {
                    sleep(STEP).await;
                }
            };
            if timeout(GRACE, gone).await.is_err() {
                let _ = kill_process_group(self.group, Signal::KILL);
                let _ = leader.wait().await;
            }
        }
        *held = None;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.leader.get_mut().is_some() {
            let _ = kill_process_group(self.group, Signal::KILL);
        }
    }
}

/// The time that a server has to leave once its input has ended, or after a signal.
pub(crate) const GRACE: Duration = Duration::from_secs(3);
const STEP: Duration = Duration::from_millis(10);
