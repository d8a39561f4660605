//! The contract over HTTP: a router to mount anywhere, and a server for it.
//!
//! `docs/reference/http.md` has the order of checks and the limits, `docs/reference/calls.md` the paths.
//!
//! ```no_run
//! use rulekeep_server::http::{Server, router};
//! use rulekeep_server::gateway::Gateway;
//! use rulekeep::Governor;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let gateway = Gateway::new(&Governor::open("governance")?)?;
//! if let Some(first) = gateway.keys().ensure_admin("first")? {
//!     println!("the administrator's key, shown once: {}", first.key.expose());
//! }
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
//! Server::new().serve(listener, router(&gateway), std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```

mod answer;
mod asked;
mod authzen;
mod caller;
mod connection;
mod console;
mod descriptors;
mod error_code;
mod handle;
mod idempotency;
mod openapi;
mod server;
mod stall;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request as HttpRequest;
use axum::routing::{MethodFilter, MethodRouter, get, on};

pub use caller::Caller;
pub use server::{Server, ServerError, TlsFault};

use crate::calls::{CALLS, Entry, Verb};
use crate::gateway::Gateway;

use answer::Refusal;
use handle::App;

/// Everything that is served: the versioned address `/v1` with the contract, `POST /access/v1/evaluation` and
/// `POST /access/v1/evaluations` of OpenID AuthZEN, `GET /openapi.json`, which describes them, and `GET /healthz`; the last two need no key.
///
/// Who mounts it elsewhere than in [`Server`] sees to the limits of connections, and puts a [`Caller`] into
/// each request's extensions: without, refused keys are counted as those of one caller, for the router knows no addresses.
pub fn router(gateway: &Gateway) -> Router {
    let app = Arc::new(app(gateway));
    let mut router = Router::new();
    for entry in CALLS {
        router = router.route(&format!("{BASE}{}", entry.spec.path), answering(&app, entry));
    }
    for entry in &authzen::CALLS {
        router = router.route(entry.spec.path, answering(&app, entry));
    }
    let described = Arc::clone(&app);
    router = router.route(openapi::PATH, get(move |request: HttpRequest| async move { described.describe(request) }));
    let asked = Arc::clone(&app);
    router = router.route(HEALTH, get(move |request: HttpRequest| async move { asked.health(request).await }));
    let (unknown, other) = (Arc::clone(&app), app);
    router
        .fallback(move |request: HttpRequest| async move { unknown.refuse(&Refusal::Path, request) })
        .method_not_allowed_fallback(move |request: HttpRequest| async move { other.refuse(&Refusal::Method, request) })
}

/// The console: a page for people at `/`, over the paths of [`router`], beside which it is to stand:
/// `router(&gateway).merge(console(&gateway))`.
///
/// The page holds no data and is shown to anybody; what it shows of the store it asks for with an administrator's key.
/// It is of use only where its path is `/` of an origin.
pub fn console(gateway: &Gateway) -> Router {
    console::routes(&Arc::new(app(gateway)))
}

fn app(gateway: &Gateway) -> App {
    App::new(gateway.clone())
}

/// Where whoever watches the service asks whether it works; nobody needs a key for that one word.
const HEALTH: &str = "/healthz";

/// Where the paths of the contract begin.
const BASE: &str = "/v1";

fn answering(app: &Arc<App>, entry: &'static Entry) -> MethodRouter {
    let app = Arc::clone(app);
    on(filter(entry.spec.verb), move |request: HttpRequest| Arc::clone(&app).answer(entry, request))
}

const fn filter(verb: Verb) -> MethodFilter {
    match verb {
        Verb::Get => MethodFilter::GET,
        Verb::Post => MethodFilter::POST,
        Verb::Put => MethodFilter::PUT,
        Verb::Patch => MethodFilter::PATCH,
        Verb::Delete => MethodFilter::DELETE,
    }
}
