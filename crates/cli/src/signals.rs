//! The end of the process at a signal.

use std::thread;

use tokio::signal::unix::{SignalKind, signal};

/// Runs `end` when the process is asked to end, by SIGINT or SIGTERM. Asked again, the process ends at once, whatever it is
/// at: that loses nothing that was acknowledged.
pub(crate) fn on_end(end: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime for signals: {error}"))?;
    let listen = |kind| {
        // Listened for from here on, so that none is missed.
        let _within = runtime.enter();
        signal(kind).map_err(|error| format!("no signals: {error}"))
    };
    let (mut interrupt, mut terminate) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
    thread::spawn(move || {
        let mut next = || {
            runtime.block_on(async {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                }
            });
        };
        next();
        end();
        next();
        std::process::exit(ENDED_AT_ONCE);
    });
    Ok(())
}

/// The exit status of a process that was asked twice.
const ENDED_AT_ONCE: i32 = 130;
