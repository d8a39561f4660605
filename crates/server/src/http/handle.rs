//! Handles a request: its key, its parameters, the call, the response.

use rulekeep::extension::Extension;
use std::sync::Arc;
use std::time::Duration;

use axum::RequestPartsExt;
use axum::body::{Body, Bytes};
use axum::extract::{RawPathParams, Request as HttpRequest};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response as HttpResponse;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde_json::json;
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use super::answer::{self, Frame, Refusal};
use super::asked;
use super::caller::Caller;
use super::connection::Late;
use super::idempotency;
use super::openapi;
use super::place::Place;
use crate::calls::{Entry, Job, Size, Spec, Subject, Verb};
use crate::calls::{MAX_LINE_BYTES, MAX_REQUEST_BYTES};
use crate::gateway::{Admitted, Gateway, Given, Made, Once, Refused};
use crate::webhooks::Opened;
use rulekeep::Error;
use rulekeep::escalation::EscalationId;
use rulekeep::status::Health;

/// Closed when the server ends, so that a waiting request does not delay it.
#[derive(Debug, Clone)]
pub(super) struct Ending(pub(super) watch::Receiver<()>);

/// The state shared by all requests.
pub(super) struct App {
    pub(super) gateway: Gateway,
    /// The time at which the last health check started, and its result. Held during a check; other requests wait for
    /// it without occupying a thread.
    health: Mutex<Option<(Instant, Health)>>,
}

/// The parts of a request.
pub(super) struct Asked<'a> {
    pub(super) spec: &'static Spec,
    pub(super) path: Vec<(String, String)>,
    pub(super) query: Option<&'a str>,
    pub(super) body: &'a [u8],
}

impl App {
    pub(super) fn new(gateway: Gateway) -> Self {
        Self { gateway, health: Mutex::default() }
    }

    /// Answers a request.
    pub(super) async fn answer(self: Arc<Self>, entry: &'static Entry, request: HttpRequest) -> HttpResponse {
        let (parts, body) = request.into_parts();
        let frame = self.frame(&parts);
        if let Err(error) = asked::check_head(&parts) {
            return frame.refusal(&error.into());
        }
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
        if let Some(place) = parts.extensions.get::<Place>() {
            place.keep();
        }
        let allowance = admitted.allowance();
        let mut response = match self.perform(entry, admitted, parts, body).await {
            Err(refusal) => frame.refusal(&refusal),
            Ok(Given::Now(answer)) => frame.answer(answer),
            Ok(Given::Again(answer)) => {
                let mut response = frame.answer(answer);
                response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
                response
            }
        };
        answer::put_allowance(response.headers_mut(), &allowance);
        response
    }

    /// Refuses a request that no path matches.
    pub(super) fn refuse(&self, refusal: &Refusal, request: HttpRequest) -> HttpResponse {
        let (parts, _) = request.into_parts();
        match asked::check_head(&parts) {
            Err(error) => self.frame(&parts).refusal(&error.into()),
            Ok(()) => self.frame(&parts).refusal(refusal),
        }
    }

    /// Returns the OpenAPI document.
    pub(super) fn describe(&self, request: HttpRequest) -> HttpResponse {
        let (parts, _) = request.into_parts();
        match asked::check_head(&parts) {
            Err(error) => self.frame(&parts).refusal(&error.into()),
            Ok(()) => self.frame(&parts).answer(openapi::DOCUMENT),
        }
    }

    /// Returns the service's health in a word, with status 503 if nothing can be governed.
    pub(super) async fn health(self: Arc<Self>, request: HttpRequest) -> HttpResponse {
        let (parts, _) = request.into_parts();
        if let Err(error) = asked::check_head(&parts) {
            return self.frame(&parts).refusal(&error.into());
        }
        let status = match self.health_now().await {
            Ok(status) => status,
            Err(error) => return self.frame(&parts).refusal(&error.into()),
        };
        let mut response = self.frame(&parts).answer(json!(openapi::HealthWord { status }).to_string());
        if status == Health::Unhealthy {
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        response
    }

    /// The current health. A check may wait for the disk and needs no key, so only one runs at a time, for all
    /// requests that arrived before it started.
    async fn health_now(&self) -> Result<Health, Error> {
        let asked = Instant::now();
        let mut last = self.health.lock().await;
        if let Some((_, status)) = last.filter(|(begun, _)| *begun >= asked) {
            return Ok(status);
        }
        let begun = Instant::now();
        let governor = self.gateway.governor().clone();
        let status = aside(move || governor.status().status).await?;
        *last = Some((begun, status));
        Ok(status)
    }

    /// Returns a static part of the console.
    pub(super) fn show(&self, part: impl FnOnce() -> HttpResponse, request: HttpRequest) -> HttpResponse {
        let (parts, _) = request.into_parts();
        match asked::check_head(&parts) {
            Err(error) => self.frame(&parts).refusal(&error.into()),
            Ok(()) => part(),
        }
    }

    fn frame(&self, parts: &Parts) -> Frame {
        Frame::of(&parts.headers, || Extension::of(self.gateway.governor()).entropy().bits())
    }

    fn admit(&self, parts: &Parts) -> Result<Admitted, Refused> {
        self.gateway.admit_or_say(asked::bearer(&parts.headers), &caller_of(&parts.extensions))
    }

    /// Opens an approval link. Links that are not valid count like rejected keys.
    pub(super) fn open_link(&self, link: &str, parts: &Parts) -> Result<Opened, Error> {
        asked::check_head(parts)?;
        self.gateway.open_link(link, &caller_of(&parts.extensions))
    }

    async fn perform(
        self: Arc<Self>,
        entry: &'static Entry,
        admitted: Admitted,
        mut parts: Parts,
        body: Body,
    ) -> Result<Given, Refusal> {
        // Checked before the body is read, so that nobody can send large bodies for calls they may not make.
        let spec = entry.spec;
        admitted.may_call(spec)?;
        let path = path_of(spec, &mut parts).await?;
        let idempotency_key = match spec.verb {
            Verb::Post => idempotency::key_of(&parts.headers)?,
            _ => None,
        };
        let body = self.body(spec, &parts, body).await?;
        let asked = Asked { spec, path, query: parts.uri.query(), body: &body };
        let mut job = (entry.read)(asked::params(asked)?)?;
        if let Some(wait) = job.wait() {
            let (id, timeout) = (wait.id, wait.take_timeout()?);
            // Waiting changes nothing, so a repeated request waits again.
            let admitted = waited(admitted, id, timeout, parts.extensions.get().cloned()).await?;
            return Ok(Given::Now(self.run(admitted, job).await?.answer));
        }
        let Some(idempotency_key) = idempotency_key else {
            return Ok(Given::Now(self.run(admitted, job).await?.answer));
        };
        // A separate task: if the client disconnects, its retry still gets the response.
        let done = tokio::spawn(async move {
            let (key, call) = (admitted.key_id(), parts.uri.path());
            let is_accepted = &admitted.look_again();
            let once = Once { key, call, idempotency_key: &idempotency_key, body: &body, is_accepted };
            self.gateway.once(&once, self.run(admitted, job)).await
        });
        let done = done.await.map_err(|_| Error::internal("the request was not finished"));
        Ok(done??)
    }

    /// Runs the call. A quick call runs here; one that may wait for the disk runs on a thread of its own kind, where
    /// it delays no connection.
    async fn run(&self, admitted: Admitted, job: Box<dyn Job>) -> Result<Made, Error> {
        if job.spec().is_quick && admitted.answers_at_once() {
            return job.run_for(&admitted);
        }
        aside(move || job.run_for(&admitted)).await?
    }

    async fn body(&self, spec: &Spec, parts: &Parts, body: Body) -> Result<Bytes, Refusal> {
        if !spec.verb.has_body() {
            return Ok(Bytes::new());
        }
        let limit = match spec.size {
            Size::Request => MAX_REQUEST_BYTES,
            Size::Document => MAX_LINE_BYTES,
        };
        let too_large = |size| Refusal::Of(Error::PayloadTooLarge { what: "body", size, limit });
        let announced = parts.headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        if let Some(size) = announced.filter(|size: &usize| *size > limit) {
            return Err(too_large(size));
        }
        let body = match Limited::new(body, limit).collect().await {
            Err(error) if Late::is_cause_of(&*error) => return Err(Refusal::Slow),
            Err(error) if error.is::<LengthLimitError>() => return Err(too_large(limit + 1)),
            Err(_) => return Err(Error::input("body", "was cut off").into()),
            Ok(collected) => collected.to_bytes(),
        };
        if !body.is_empty() {
            asked::check_content_type(&parts.headers)?;
        }
        Ok(body)
    }
}

/// The caller under whose name rejected keys are counted.
fn caller_of(extensions: &Extensions) -> String {
    extensions.get::<Caller>().map_or_else(|| "unknown".to_owned(), |caller| caller.name())
}

/// Waits for the answer to an escalation, at most for `timeout`, or until the server ends.
async fn waited(
    admitted: Admitted,
    id: EscalationId,
    timeout: Duration,
    ending: Option<Ending>,
) -> Result<Admitted, Error> {
    let until = Instant::now() + timeout;
    if timeout.is_zero() {
        return Ok(admitted);
    }
    let (admitted, answered) = aside(move || {
        // Checked first, so that nobody learns when another agent's escalation is answered.
        admitted.permit(&Subject::Escalation(id))?;
        let answered = admitted.answered(id);
        Ok::<_, Error>((admitted, answered))
    })
    .await??;
    let ended = async {
        match ending {
            // An error means that the server is ending.
            Some(Ending(mut ending)) => _ = ending.changed().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = answered => {}
        () = ended => {}
        () = tokio::time::sleep_until(until) => {}
    }
    Ok(admitted)
}

/// Runs work that may be slow on a blocking thread, so that it delays no connection.
pub(super) async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Error::internal("the request was not finished"))
}

async fn path_of(spec: &Spec, parts: &mut Parts) -> Result<Vec<(String, String)>, Refusal> {
    if !spec.path.contains('{') {
        return Ok(Vec::new());
    }
    let params = parts.extract::<RawPathParams>().await.map_err(|_| Refusal::Path)?;
    Ok(params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

#[cfg(test)]
mod tests {
    use super::*;
    use rulekeep::Governor;

    #[tokio::test]
    async fn a_health_request_takes_no_thread_and_one_check_serves_all() {
        let governor = Governor::builder().open_in_memory().unwrap();
        let app = Arc::new(App::new(Gateway::new(&governor).unwrap()));
        let asks = || HttpRequest::get("/healthz").header(header::HOST, "x").body(Body::empty()).unwrap();
        // A check is running, and the disk hangs.
        let looking = app.health.lock().await;
        let asked: Vec<_> = (0..1_000).map(|_| tokio::spawn(Arc::clone(&app).health(asks()))).collect();
        tokio::task::yield_now().await;
        assert!(asked.iter().all(|one| !one.is_finished()));
        assert_eq!(app.describe(asks()).status(), StatusCode::OK, "others are answered, on the only thread");
        drop(looking);
        let mut begun = std::collections::BTreeSet::new();
        for one in asked {
            assert_eq!(one.await.unwrap().status(), StatusCode::OK);
            begun.extend(app.health.lock().await.map(|(begun, _)| begun));
        }
        assert!(begun.len() <= 2, "{} looked", begun.len());
    }
}
