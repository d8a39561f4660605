//! Ending the process on a signal.

use std::thread;

use tokio::signal::unix::{SignalKind, signal};

/// Runs `end` with the name of the signal when the process is asked to end with SIGINT or SIGTERM. On a second signal the
/// process ends at once, which loses nothing that was acknowledged.
pub(crate) fn on_end(end: impl FnOnce(&'static str) + Send + 'static) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime for signals: {error}"))?;
    let listen = |kind| {
        // Listening starts here, so that no signal is missed.
        let _within = runtime.enter();
        signal(kind).map_err(|error| format!("no signals: {error}"))
    };
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    thread::spawn(move || {
        let mut next = || {
            runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => "SIGINT",
                    _ = terminate.recv() => "SIGTERM",
                }
            })
        };
        end(next());
        next();
        std::process::exit(ENDED_AT_ONCE);
    });
    Ok(())
}

/// The exit status of a process that was asked twice.
const ENDED_AT_ONCE: i32 = 130;
