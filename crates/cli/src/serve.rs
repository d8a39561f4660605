//! A governor behind HTTP: the contract's five endpoints and what else a user needs, under `/v1`, and a console for
//! people at `/`.
//!
//! One line of JSON says when it is ready, `{"url": "http://.../v1", "adminKey": "..."}`: the key only when the store
//! had none for administrators. It is not shown again. On SIGINT and SIGTERM it finishes what it is answering, and closes the store; on a
//! second one it ends at once, which loses nothing that was acknowledged either.

use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use rulekeep_server::http::{Server, console, router};
use serde_json::json;
use tokio::net::TcpListener;

use crate::store::{StoreOptions, describe};

/// What a governor is served with, and where.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The address and port to listen on.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    listen: String,
    /// The certificate chain for TLS, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// The key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
    /// A proxy whose X-Forwarded-For is believed; may be given several times.
    #[arg(long = "trusted-proxy", value_name = "ADDRESS")]
    trusted_proxies: Vec<IpAddr>,
    #[command(flatten)]
    store: StoreOptions,
}

impl Options {
    fn server(&self) -> Result<Server, String> {
        let server = Server::new().trusted_proxies(self.trusted_proxies.iter().copied());
        match (&self.tls_certificate, &self.tls_key) {
            (None, None) => Ok(server),
            (Some(certificate), Some(key)) => {
                let read = |file: &PathBuf| fs::read(file).map_err(|error| format!("{}: {error}", file.display()));
                server.tls(&read(certificate)?, &read(key)?).map_err(|error| error.to_string())
            }
            // clap lets neither stand alone.
            _ => Err("--tls-certificate and --tls-key go together".to_owned()),
        }
    }
}

pub(crate) fn run(options: Options) -> Result<ExitCode, String> {
    let server = options.server()?;
    let scheme = if options.tls_certificate.is_some() { "https" } else { "http" };
    let listen = options.listen;
    let opened = options.store.open()?;
    let gateway = &opened.gateway;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no runtime: {error}"))?;
    let served = runtime.block_on(async {
        let listener = TcpListener::bind(&listen).await.map_err(|error| format!("{listen}: {error}"))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let ended = ended()?;
        let mut ready = json!({ "url": format!("{scheme}://{address}/v1") });
        // A broken or frozen log takes no keys in; what it has can still be read by those that it knows.
        match gateway.keys().ensure_admin("first") {
            Ok(None) => {}
            Ok(Some(first)) => ready["adminKey"] = json!(first.key.expose()),
            Err(error) => eprintln!("serve: no key for administrators could be made: {}", describe(error)),
        }
        println!("{ready}");
        server.serve(listener, router(gateway).merge(console(gateway)), ended).await.map_err(|error| error.to_string())
    });
    // Said at once: what follows may hang where the disk does.
    let code = match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("serve: {message}");
            ExitCode::FAILURE
        }
    };
    runtime.shutdown_timeout(LAST_WAIT);
    gateway.governor().close().map_err(describe)?;
    Ok(code)
}

/// Comes when the process is asked to end. Asked again it ends, whatever it is at: also while the store is closed.
fn ended() -> Result<impl Future<Output = ()>, String> {
    let (tell, told) = tokio::sync::oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime for signals: {error}"))?;
    let mut signals = {
        // Listened for from here on, so that none is missed once the address is told.
        let _within = runtime.enter();
        Signals::new()?
    };
    std::thread::spawn(move || {
        runtime.block_on(signals.next());
        let _ = tell.send(());
        runtime.block_on(signals.next());
        std::process::exit(ENDED_AT_ONCE);
    });
    Ok(async {
        let _ = told.await;
    })
}

/// How long calls that hang are waited for once the server has cut them.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// The exit status of who was asked twice.
const ENDED_AT_ONCE: i32 = 130;

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> Result<Self, String> {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| signal(kind).map_err(|error| format!("no signals: {error}"));
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> Result<Self, String> {
        Ok(Self)
    }

    async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
