//! The way of one request: its key, its parts, the call, the answer.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::RequestPartsExt;
use axum::body::{Body, Bytes};
use axum::extract::{RawPathParams, Request as HttpRequest};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::sync::Semaphore;

use super::answer::{self, Frame, Refusal};
use super::asked;
use super::idempotency::{self, Answers, Known};
use super::openapi;
use super::routes::{Method, Route, Size};
use super::server::BODY_TIMEOUT;
use crate::edge::gateway::{Admitted, Gateway, Refused, Request};
use crate::edge::sidecar::{MAX_LINE_BYTES, MAX_REQUEST_BYTES};
use crate::model::Error;

/// Where a request came from, and how long its body may take to come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    pub(super) body_timeout: Duration,
}

/// What all requests share.
pub(super) struct App {
    pub(super) gateway: Gateway,
    pub(super) answers: Answers,
    pub(super) waits: Arc<Semaphore>,
}

/// What a request asks for, read from its parts.
type Read = fn(&Asked<'_>) -> Result<Request, Error>;

/// The parts of a request.
pub(super) struct Asked<'a> {
    pub(super) route: &'a Route,
    pub(super) path: BTreeMap<String, String>,
    pub(super) query: Option<&'a str>,
    pub(super) body: &'a [u8],
}

/// How what was done is told.
type Tell = fn(crate::edge::gateway::Response) -> Result<Vec<u8>, Error>;

/// A path's call, read and told in its way.
#[derive(Clone, Copy)]
pub(super) struct Way {
    pub(super) route: &'static Route,
    pub(super) read: Read,
    pub(super) tell: Tell,
}

impl Way {
    /// The protocol's own.
    pub(super) const fn plain(route: &'static Route) -> Self {
        Self { route, read: plain, tell: |response| to_bytes(&response) }
    }
}

fn plain(asked: &Asked<'_>) -> Result<Request, Error> {
    let params = asked::params(asked.route, asked.path.clone(), asked.query, asked.body)?;
    Request::read(asked.route.call, params)
}

pub(super) fn to_bytes(answer: &impl serde::Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(answer)
        .map_err(|error| Error::Internal { message: format!("an answer does not serialise: {error}") })
}

impl App {
    /// Answers a request.
    pub(super) async fn answer(self: Arc<Self>, way: Way, request: HttpRequest) -> Response {
        let (parts, body) = request.into_parts();
        let frame = self.frame(&parts);
        let admitted = match self.admit(&parts) {
            Ok(admitted) => admitted,
            Err(Refused { error, allowance }) => {
                let mut response = frame.refusal(&error.into());
                if let Some(allowance) = allowance {
                    answer::put_allowance(response.headers_mut(), &allowance);
                }
                return response;
            }
        };
        let allowance = admitted.allowance();
        let mut response = match self.perform(way, admitted, parts, body).await {
            Err(refusal) => frame.refusal(&refusal),
            Ok((answer, is_replayed)) => {
                let mut response = match &*answer {
                    Ok(body) => frame.answer(body.clone()),
                    Err(error) => frame.refusal(&error.clone().into()),
                };
                if is_replayed {
                    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
                }
                response
            }
        };
        answer::put_allowance(response.headers_mut(), &allowance);
        response
    }

    /// Refuses what no path is for.
    pub(super) fn refuse(&self, refusal: &Refusal, request: HttpRequest) -> Response {
        let (parts, _) = request.into_parts();
        self.frame(&parts).refusal(refusal)
    }

    /// Answers with the document that describes everything.
    pub(super) fn describe(&self, request: HttpRequest) -> Response {
        let (parts, _) = request.into_parts();
        self.frame(&parts).answer(openapi::document())
    }

    fn frame(&self, parts: &Parts) -> Frame {
        Frame::of(&parts.headers, || format!("req_{:032x}", self.gateway.governor().random_bits()))
    }

    fn admit(&self, parts: &Parts) -> Result<Admitted, Refused> {
        let peer = parts.extensions.get::<Peer>().map(|peer| peer.address.ip());
        self.gateway.admit_or_say(asked::bearer(&parts.headers), &asked::caller(peer))
    }

    async fn perform(
        self: Arc<Self>,
        way: Way,
        admitted: Admitted,
        mut parts: Parts,
        body: Body,
    ) -> Result<(Arc<Result<Vec<u8>, Error>>, bool), Refusal> {
        // Before the body, so that nobody has large ones read who may not do what they are for.
        admitted.may_call(way.route.call)?;
        let path = path_of(&mut parts).await?;
        let idempotency_key = match way.route.method {
            Method::Post => idempotency::key_of(&parts.headers)?,
            _ => None,
        };
        let body = self.body(way.route, &parts, body).await?;
        let asked = Asked { route: way.route, path, query: parts.uri.query(), body: &body };
        let request = (way.read)(&asked)?;
        let Some(idempotency_key) = idempotency_key else {
            return Ok((Arc::new(self.run(way, admitted, request).await), false));
        };
        let known = Known { key: admitted.key_id(), call: parts.uri.path().to_owned(), idempotency_key };
        let now = self.gateway.governor().time().now();
        // On a task of its own: when the client has gone meanwhile, its retry is still answered with what was done.
        let done =
            tokio::spawn(async move { self.answers.once(&known, &body, now, self.run(way, admitted, request)).await });
        done.await.map_err(|_| Refusal::Of(Error::Internal { message: "the request was not finished".to_owned() }))
    }

    /// Does what is asked. What comes back at once does so here; what may wait for the disk or takes longer does so where
    /// it holds up no connection.
    async fn run(&self, way: Way, admitted: Admitted, request: Request) -> Result<Vec<u8>, Error> {
        let is_quick = request.is_quick() && admitted.answers_at_once();
        // Those that wait for people wait for one another, so that there are threads for all else.
        let place = match way.route.call {
            "escalation/wait" => Arc::clone(&self.waits).acquire_owned().await.ok(),
            _ => None,
        };
        let work = move || {
            let _place = place;
            admitted.perform(request).and_then(way.tell)
        };
        if is_quick {
            return work();
        }
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|_| Err(Error::Internal { message: "the request was not finished".to_owned() }))
    }

    async fn body(&self, route: &Route, parts: &Parts, body: Body) -> Result<Bytes, Refusal> {
        if matches!(route.method, Method::Get | Method::Delete) {
            return Ok(Bytes::new());
        }
        let limit = match route.size {
            Size::Request => MAX_REQUEST_BYTES,
            Size::Document => MAX_LINE_BYTES,
        };
        let too_large = |size| Refusal::Of(Error::PayloadTooLarge { what: "body", size, limit });
        let announced = parts.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        if let Some(size) = announced.filter(|size: &usize| *size > limit) {
            return Err(too_large(size));
        }
        let peer = parts.extensions.get::<Peer>();
        let read = tokio::time::timeout(
            peer.map_or(BODY_TIMEOUT, |peer| peer.body_timeout),
            Limited::new(body, limit).collect(),
        );
        let body = match read.await {
            Err(_) => return Err(Refusal::Slow),
            Ok(Err(error)) if error.is::<LengthLimitError>() => return Err(too_large(limit + 1)),
            Ok(Err(_)) => return Err(Error::input("body", "was cut off").into()),
            Ok(Ok(collected)) => collected.to_bytes(),
        };
        if !body.is_empty() {
            asked::check_content_type(&parts.headers)?;
        }
        Ok(body)
    }
}

async fn path_of(parts: &mut Parts) -> Result<BTreeMap<String, String>, Refusal> {
    let params = parts.extract::<RawPathParams>().await.map_err(|_| Refusal::Path)?;
    Ok(params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
