//! Callers that prove who they are: an API key or an access token with each request, checked by the program that
//! embeds the gateway. Each caller is an agent of its own, and shares no state of the gateway with another one.
//!
//! The gateway is an OAuth 2.0 protected resource (RFC 6750, RFC 9728). It never sends a caller's token to the server.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get};
use axum::{Extension, Router};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rulekeep_server::http::Caller;
use serde_json::json;
use tokio::net::TcpListener;

use crate::entry::{Error, PATH, Service, serve_router, service};
use crate::shared::Shared;

/// Checks callers.
pub trait Callers: Send + Sync {
    /// Returns the agent that the holder of a bearer token acts as. May block.
    ///
    /// # Errors
    ///
    /// [`Refused`] for a caller who must not be served. Its text is sent to the caller and must not repeat the token.
    fn agent(&self, token: &str, peer: IpAddr) -> Result<String, Refused>;
}

/// The reason why a caller is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// The token is not accepted.
    Token(String),
    /// The token lacks a scope of [`Remote::scopes`].
    Scope(String),
    /// The caller is known, but must not use the gateway.
    Caller(String),
    /// The caller has to wait.
    Busy(String),
    /// Nobody can check the token at present.
    Unchecked(String),
}

/// The settings for callers that prove who they are.
#[derive(Clone)]
#[non_exhaustive]
pub struct Remote {
    /// The URL under which callers reach the gateway, which is also the audience of their tokens.
    pub url: String,
    /// Checks callers.
    pub callers: Arc<dyn Callers>,
    /// The authorization servers whose tokens are accepted. If there are none, the gateway serves no metadata.
    pub authorization_servers: Vec<String>,
    /// The scopes that a token needs.
    pub scopes: Vec<String>,
}

impl Remote {
    /// Creates settings for a gateway at this URL.
    pub fn new(url: impl Into<String>, callers: Arc<dyn Callers>) -> Self {
        Self { url: url.into(), callers, authorization_servers: Vec::new(), scopes: Vec::new() }
    }

    /// Accepts tokens of this authorization server that have these scopes.
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>, scopes: impl IntoIterator<Item = String>) -> Self {
        self.authorization_servers.push(issuer.into());
        self.scopes.extend(scopes);
        self
    }
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Serves callers until the listener fails. `make` creates the state of the gateway for an agent.
pub(crate) async fn serve(
    listener: TcpListener,
    remote: Remote,
    make: impl Fn(String) -> Result<Shared, String> + Send + Sync + 'static,
) -> Result<(), Error> {
    let wrong = || Error::Options(format!("the public URL {:?}: expected https:// or http:// and a host", remote.url));
    // Not parts of a resource's URL (RFC 9728, section 1.2), or not readable as a path.
    let plain = Some(&remote.url).filter(|url| !url.contains(['#', '?', '{', '}']));
    let url: Uri = plain.and_then(|url| url.parse().ok()).ok_or_else(wrong)?;
    let (Some(scheme @ ("https" | "http")), Some(authority)) = (url.scheme_str(), url.authority()) else {
        return Err(wrong());
    };
    let origin = format!("{scheme}://{authority}");
    let path = format!("{WELL_KNOWN}{}", url.path().trim_end_matches('/'));
    let door = Arc::new(Door {
        metadata: (!remote.authorization_servers.is_empty()).then(|| format!("{origin}{path}")),
        host: authority.host().trim_matches(['[', ']']).to_owned(),
        origin,
        remote,
        make: Box::new(make),
        rooms: Mutex::default(),
    });
    let mut router = Router::new().route(PATH, any(enter));
    if door.metadata.is_some() {
        router = router.route(&path, get(metadata));
    }
    serve_router(listener, router.with_state(door)).await
}

/// The gateway towards callers.
struct Door {
    remote: Remote,
    /// The public scheme, host and port.
    origin: String,
    host: String,
    /// The URL of the metadata of RFC 9728.
    metadata: Option<String>,
    make: Box<dyn Fn(String) -> Result<Shared, String> + Send + Sync>,
    /// The gateways of the agents. A session belongs to one of them, so nobody else finds it.
    rooms: Mutex<Rooms>,
}

/// The gateway of an agent, with its sessions.
type Room = (Service, Arc<LocalSessionManager>);

#[derive(Default)]
struct Rooms {
    uses: u64,
    /// By agent, with the number of the last use.
    open: HashMap<String, (u64, Room)>,
}

async fn enter(
    State(door): State<Arc<Door>>,
    Extension(Caller(peer)): Extension<Caller>,
    mut request: Request,
) -> Response {
    let token = bearer(request.headers());
    request.headers_mut().remove(AUTHORIZATION);
    let Some(token) = token else {
        return door.refusal(
            StatusCode::UNAUTHORIZED,
            None,
            "a token is missing: expected Authorization: Bearer TOKEN",
        );
    };
    let callers = Arc::clone(&door.remote.callers);
    let checked = tokio::task::spawn_blocking(move || callers.agent(&token, peer)).await;
    let checked = checked.unwrap_or_else(|_| Err(Refused::Unchecked("the check did not finish".to_owned())));
    match checked.and_then(|agent| door.room(agent).map_err(Refused::Unchecked)) {
        Ok((room, sessions)) => {
            let is_new = !request.headers().contains_key("mcp-session-id");
            if is_new && sessions.sessions.read().await.len() >= MOST_SESSIONS {
                return door.refusal(StatusCode::TOO_MANY_REQUESTS, None, "this agent has too many sessions: end some");
            }
            room.handle(request).await.map(Body::new)
        }
        Err(refused) => {
            tracing::info!(%peer, ?refused, "a caller is refused");
            let (status, code, why) = match &refused {
                Refused::Token(why) => (StatusCode::UNAUTHORIZED, Some("invalid_token"), why),
                Refused::Scope(why) => (StatusCode::FORBIDDEN, Some("insufficient_scope"), why),
                Refused::Caller(why) => (StatusCode::FORBIDDEN, None, why),
                Refused::Busy(why) => (StatusCode::TOO_MANY_REQUESTS, None, why),
                Refused::Unchecked(why) => (StatusCode::SERVICE_UNAVAILABLE, None, why),
            };
            door.refusal(status, code, why)
        }
    }
}

async fn metadata(State(door): State<Arc<Door>>) -> Response {
    let mut document = json!({
        "resource": door.remote.url,
        "authorization_servers": door.remote.authorization_servers,
        "bearer_methods_supported": ["header"],
    });
    if !door.remote.scopes.is_empty() {
        document["scopes_supported"] = json!(door.remote.scopes);
    }
    ([(CONTENT_TYPE, "application/json")], document.to_string()).into_response()
}

impl Door {
    /// The gateway of an agent. Beyond the limit, the one that was not used for the longest time is closed.
    fn room(&self, agent: String) -> Result<Room, String> {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        rooms.uses += 1;
        let now = rooms.uses;
        if let Some((last, room)) = rooms.open.get_mut(&agent) {
            *last = now;
            return Ok(room.clone());
        }
        if rooms.open.len() >= MOST_ROOMS {
            let oldest = rooms.open.iter().min_by_key(|(_, (last, _))| *last).map(|(agent, _)| agent.clone());
            oldest.and_then(|agent| rooms.open.remove(&agent));
        }
        let shared = Arc::new((self.make)(agent.clone())?);
        let room = service(shared, [self.host.clone()], [self.origin.clone()]);
        rooms.open.insert(agent, (now, room.clone()));
        Ok(room)
    }

    /// The answer to a caller who is not served (RFC 6750, section 3).
    fn refusal(&self, status: StatusCode, code: Option<&str>, why: &str) -> Response {
        let quoted = |(name, value): (&str, &str)| {
            let is_plain = |c: char| matches!(c, ' '..='~') && !matches!(c, '"' | '\\');
            let value: String = value.chars().map(|c| if is_plain(c) { c } else { '\'' }).collect();
            format!("{name}=\"{value}\"")
        };
        let scopes = self.remote.scopes.join(" ");
        let parts = [
            code.map(|code| ("error", code)),
            code.map(|_| ("error_description", why)),
            Some(("scope", scopes.as_str())).filter(|_| !scopes.is_empty()),
            self.metadata.as_deref().map(|url| ("resource_metadata", url)),
        ];
        let parts = parts.into_iter().flatten().map(quoted).collect::<Vec<_>>().join(", ");
        let challenge = format!("Bearer {parts}").trim_end().to_owned();
        let body = json!({ "error": code.unwrap_or("access_denied"), "error_description": why }).to_string();
        let own: Option<(HeaderName, String)> = match status {
            StatusCode::TOO_MANY_REQUESTS => Some((RETRY_AFTER, "60".to_owned())),
            _ if status == StatusCode::UNAUTHORIZED || code.is_some() => Some((WWW_AUTHENTICATE, challenge)),
            _ => None,
        };
        let fixed = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store")];
        (status, fixed, axum::response::AppendHeaders(own), body).into_response()
    }
}

/// The bearer token of a request with a single `Authorization` header.
fn bearer(headers: &HeaderMap) -> Option<String> {
    let mut sent = headers.get_all(AUTHORIZATION).iter();
    let (scheme, token) = sent.next()?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (sent.next().is_none() && scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then(|| token.to_owned())
}

/// The start of the path of the metadata; the path of the resource follows (RFC 9728, section 3.1).
const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";
/// Number of agents that are served at a time.
const MOST_ROOMS: usize = 1000;
/// Largest number of sessions of an agent. Beyond it a session has to end, by its client or after minutes of silence.
pub(crate) const MOST_SESSIONS: usize = 256;
