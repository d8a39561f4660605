//! The end of a server and of the processes that it started.

use crate::process::Process;
use rustix::process::{Pid, test_kill_process};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

/// Starts a shell with a child, and returns the process id of that child.
async fn started(script: &str) -> (std::sync::Arc<Process>, Pid) {
    let mut command = Command::new("sh");
    command.arg("-c").arg(script);
    let (process, output, _) = Process::start(command).unwrap();
    let id = BufReader::new(output).lines().next_line().await.unwrap().unwrap();
    (process, Pid::from_raw(id.trim().parse().unwrap()).unwrap())
}

async fn is_gone(id: Pid) {
    let state = || std::fs::read_to_string(format!("/proc/{}/stat", id.as_raw_nonzero()));
    super::fixture::until(|| test_kill_process(id).is_err() || state().is_ok_and(|state| state.contains(") Z "))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_children_of_a_server_end_with_it() {
    for script in [
        "sleep 600 & echo $!; wait",
        "sleep 600 & echo $!",
        "trap '' TERM; sleep 600 & echo $!; wait; wait",
        "sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' & wait",
    ] {
        let (process, child) = started(script).await;
        process.end(Duration::ZERO).await;
        is_gone(child).await;
    }
    let (process, child) = started("sleep 600 & echo $!; wait").await;
    drop(process);
    is_gone(child).await;
}
