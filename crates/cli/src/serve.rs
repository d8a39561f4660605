//! A governor over HTTP: the API under `/v1`, and a console for people at `/`.
//!
//! When it is ready, it prints one line of JSON, `{"url": "http://.../v1", "adminKey": "..."}`. It has the key only
//! if the store had no administrator's key; the key is not shown again. On SIGINT and SIGTERM it finishes the calls
//! in progress and closes the store. On a second signal it ends at once, which loses nothing that was acknowledged.

use std::fs;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use rulekeep_server::gateway::Gateway;
use rulekeep_server::http::{Server, console, router};
use rulekeep_server::tokens::Verifier;
use serde_json::json;
use tokio::net::TcpListener;

use crate::signals;
use crate::store::{StoreOptions, describe};

/// The options of `rulekeep serve`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  rulekeep serve --listen 127.0.0.1:8080 --store governance")]
pub(crate) struct Options {
    /// The address and port to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    listen: String,
    #[command(flatten)]
    tls: Tls,
    /// A proxy whose X-Forwarded-For is trusted; can be given several times
    #[arg(long = "trusted-proxy", value_name = "ADDRESS")]
    trusted_proxies: Vec<IpAddr>,
    #[command(flatten)]
    tokens: Tokens,
    #[command(flatten)]
    store: StoreOptions,
}

/// The OpenID provider whose tokens reviewers may send instead of an API key.
#[derive(clap::Args)]
struct Tokens {
    /// The issuer of tokens with which reviewers may answer escalations
    #[arg(long = "oidc-issuer", value_name = "URL", requires_all = ["audience", "jwks"])]
    issuer: Option<String>,
    /// The audience that these tokens must name
    #[arg(long = "oidc-audience", value_name = "NAME", requires = "issuer")]
    audience: Option<String>,
    /// The file with the issuer's public keys, a JWK Set; read again when it changes
    #[arg(long = "oidc-jwks", value_name = "FILE", requires = "issuer")]
    jwks: Option<PathBuf>,
    /// The claim with the reviewer's name; email counts only if it is verified
    #[arg(long = "oidc-claim", value_name = "NAME", default_value = "sub", requires = "issuer")]
    claim: String,
}

impl Tokens {
    /// Lets the gateway accept the tokens, if there is a provider.
    fn accept(self, gateway: &Gateway) -> Result<(), String> {
        let (Some(issuer), Some(audience), Some(jwks)) = (self.issuer, self.audience, self.jwks) else {
            return Ok(());
        };
        let verifier = Verifier::load(jwks, &issuer, &audience).map_err(|error| error.to_string())?;
        gateway.accept_tokens(verifier, &self.claim).map_err(describe)
    }
}

/// The certificate of a server.
#[derive(clap::Args)]
pub(crate) struct Tls {
    /// The certificate chain for TLS, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_certificate: Option<PathBuf>,
    /// The key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_certificate")]
    tls_key: Option<PathBuf>,
}

impl Tls {
    pub(crate) fn server(&self) -> Result<Server, String> {
        match (&self.tls_certificate, &self.tls_key) {
            (None, None) => Ok(Server::new()),
            (Some(certificate), Some(key)) => {
                let read = |file: &PathBuf| fs::read(file).map_err(|error| format!("{}: {error}", file.display()));
                Server::new().tls(&read(certificate)?, &read(key)?).map_err(|error| error.to_string())
            }
            // clap requires both or neither.
            _ => Err("--tls-certificate and --tls-key go together".to_owned()),
        }
    }

    pub(crate) const fn is_on(&self) -> bool {
        self.tls_certificate.is_some()
    }

    pub(crate) const fn scheme(&self) -> &'static str {
        if self.is_on() { "https" } else { "http" }
    }
}

pub(crate) fn run(options: Options) -> Result<ExitCode, String> {
    let server = options.tls.server()?.trusted_proxies(options.trusted_proxies);
    let scheme = options.tls.scheme();
    let listen = options.listen;
    let opened = options.store.open()?;
    let gateway = &opened.gateway;
    options.tokens.accept(gateway)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("no runtime: {error}"))?;
    let served = runtime.block_on(async {
        let listener = TcpListener::bind(&listen).await.map_err(|error| format!("{listen}: {error}"))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let ended = ended()?;
        let mut ready = json!({ "url": format!("{scheme}://{address}/v1") });
        // A broken or frozen log stores no new keys; callers with known keys can still read it.
        match gateway.keys().ensure_admin("first") {
            Ok(None) => {}
            Ok(Some(first)) => ready["adminKey"] = json!(first.key.expose()),
            Err(error) => eprintln!("serve: no key for administrators could be made: {}", describe(error)),
        }
        println!("{ready}");
        server.serve(listener, router(gateway).merge(console(gateway)), ended).await.map_err(|error| error.to_string())
    });
    // Reported at once, because closing may hang if the disk does.
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

/// Completes when the process is asked to end.
pub(crate) fn ended() -> Result<impl Future<Output = ()>, String> {
    let (tell, told) = tokio::sync::oneshot::channel();
    signals::on_end(move |_| {
        let _ = tell.send(());
    })?;
    Ok(async {
        let _ = told.await;
    })
}

/// Longest time to wait for calls in progress after the server has cut them.
const LAST_WAIT: Duration = Duration::from_secs(5);
