//! HTTP and the console of the daemon, if the configuration names an address.

use std::thread::JoinHandle;
use std::time::Duration;

use rulekeep_server::gateway::Gateway;
use rulekeep_server::http::{Server, console, router};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// A server for HTTP and the console that runs until it is dropped.
pub(super) struct Console {
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Console {
    pub(super) fn start(listen: &str, gateway: &Gateway) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| format!("no runtime for HTTP: {error}"))?;
        let listener = runtime.block_on(TcpListener::bind(listen));
        let listener = listener.map_err(|error| format!("config.toml, listen = {listen:?}: {error}"))?;
        let pages = router(gateway).merge(console(gateway));
        let (end, ended) = oneshot::channel();
        let thread = std::thread::spawn(move || {
            let ended = async {
                let _ = ended.await;
            };
            if let Err(error) = runtime.block_on(Server::new().serve(listener, pages, ended)) {
                eprintln!("HTTP ended: {error}");
            }
            runtime.shutdown_timeout(LAST_WAIT);
        });
        Ok(Self { end: Some(end), thread: Some(thread) })
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Longest time to wait for calls in progress at the end.
const LAST_WAIT: Duration = Duration::from_secs(5);
