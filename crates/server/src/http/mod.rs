//! The calls over HTTP: a router that can be mounted anywhere, and a server for it.
//!
//! `docs/reference/http.md` lists the paths and the order of checks.
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
mod approve;
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
mod place;
mod server;
mod stall;

use std::sync::Arc;

use axum::Router;
use axum::extract::Request as HttpRequest;
use axum::routing::{MethodFilter, MethodRouter, get, on};

pub use caller::Caller;
pub use place::Place;
pub use server::{Server, ServerError, TlsFault};

use crate::calls::{CALLS, Entry, Verb};
use crate::gateway::Gateway;

use answer::Refusal;
use handle::App;

/// Creates the router with everything that is served: the calls under `/v1`, `POST /access/v1/evaluation` and `POST
/// /access/v1/evaluations` of OpenID AuthZEN, `GET /openapi.json`, which describes them, and `GET /healthz`. The last
/// two need no key.
///
/// If you do not serve it with [`Server`], you have to limit connections and the time of a body, and add a [`Caller`]
/// to each request's extensions. Without it, all rejected keys are counted as those of a single caller.
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
    router = router.merge(approve::routes(&app));
    let (unknown, other) = (Arc::clone(&app), app);
    router
        .fallback(move |request: HttpRequest| async move { unknown.refuse(&Refusal::Path, request) })
        .method_not_allowed_fallback(move |request: HttpRequest| async move { other.refuse(&Refusal::Method, request) })
}

/// Creates the console: a web page at `/` that uses the paths of [`router`]. Mount both together:
/// `router(&gateway).merge(console(&gateway))`.
///
/// The page contains no data and is shown to anybody; it reads the store with an admin key. It works only at the path
/// `/` of an origin.
pub fn console(gateway: &Gateway) -> Router {
    console::routes(&Arc::new(app(gateway)))
}

fn app(gateway: &Gateway) -> App {
    App::new(gateway.clone())
}

/// The health path for monitoring, which needs no key.
const HEALTH: &str = "/healthz";

/// The base path of the calls.
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
