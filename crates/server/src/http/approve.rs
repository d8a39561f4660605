//! The page of an approval link: shows one escalation to its reviewer, and takes the answer.
//!
//! Opening the page changes nothing, because chats and mail programs open links to preview them. The link is the only
//! proof of who answers, so it is in no other header, and the page loads nothing from elsewhere.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request as HttpRequest};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::get;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use maud::{DOCTYPE, Markup, html};
use rulekeep::Error;
use rulekeep::escalation::{Escalation, EscalationState, Resolved};
use rulekeep::extension::visible;
use serde_json::Value;

use super::handle::{App, aside};
use crate::webhooks::{LINK_PATH, Opened};

pub(super) fn routes(app: &Arc<App>) -> Router {
    let (showing, answering) = (Arc::clone(app), Arc::clone(app));
    let show = |Path(link): Path<String>, request: HttpRequest| show(showing, link, request);
    let answer = |Path(link): Path<String>, request: HttpRequest| answer(answering, link, request);
    Router::new().route(&format!("{LINK_PATH}{{link}}"), get(show).post(answer))
}

async fn show(app: Arc<App>, link: String, request: HttpRequest) -> Response {
    let (parts, _) = request.into_parts();
    let opened = aside(move || app.open_link(&link, &parts)).await;
    page(opened.and_then(|opened| opened).map(|opened| asking(&opened)))
}

async fn answer(app: Arc<App>, link: String, request: HttpRequest) -> Response {
    let (parts, body) = request.into_parts();
    let body = match Limited::new(body, MOST_BYTES).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            return page(Err(Error::PayloadTooLarge { what: "body", size: MOST_BYTES + 1, limit: MOST_BYTES }));
        }
        Err(_) => return page(Err(Error::input("body", "was too slow, or was cut off"))),
    };
    let answered = aside(move || {
        let Opened { escalation, mut review } = app.open_link(&link, &parts)?;
        let mut approved = None;
        for (name, value) in form_urlencoded::parse(&body) {
            match (&*name, &*value) {
                ("answer", "approve") => approved = Some(true),
                ("answer", "reject") => approved = Some(false),
                ("note", note) if !note.is_empty() => review = review.note(note),
                _ => {}
            }
        }
        let escalations = app.gateway.governor().escalations();
        let resolved = match approved {
            Some(true) => escalations.approve(escalation.id, review)?,
            Some(false) => escalations.reject(escalation.id, review)?,
            None => return Err(Error::input("answer", "expected approve or reject")),
        };
        Ok((escalation, resolved))
    });
    page(answered.await.and_then(|answered| answered).map(|(escalation, resolved)| done(&escalation, resolved)))
}

fn page(content: Result<Markup, Error>) -> Response {
    let (status, title, content) = match content {
        Ok(content) => (StatusCode::OK, "Approval", content),
        Err(error) => {
            let status = StatusCode::from_u16(error.http_status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (status, "Nothing to answer here", html! { p role="alert" { (error.message()) } })
        }
    };
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="robots" content="noindex";
                title { (title) " · Rulekeep" }
                link rel="stylesheet" href="../console.css";
            }
            body { main { h1 { (title) } (content) } }
        }
    };
    let mut response = Response::new(Body::from(page.into_string()));
    *response.status_mut() = status;
    super::console::put_headers(response.headers_mut(), "text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

/// The question and its form.
fn asking(Opened { escalation: asked, review }: &Opened) -> Markup {
    let intent = asked.intent.as_ref().unwrap_or(&Value::Null);
    html! {
        @if let Some(input) = &asked.input { pre tabindex="0" role="region" aria-label="Request" { (visible(input)) } }
        dl {
            (row("Agent", asked.agent_id.as_str()))
            (row("Action", intent["parsedAction"].as_str().unwrap_or("It cannot be read any more")))
            (row("Capabilities", &written(&intent["requiredCapabilities"])))
            @if intent["context"].as_object().is_some_and(|context| !context.is_empty()) {
                (row("Context", &written(&intent["context"])))
            }
            (row("Risk", asked.risk_level.as_str()))
            (row("Reason", &asked.reason))
            @if let Some(task) = &asked.task { (row("Task", &written(task))) }
            (row("An approval grants", &written(&serde_json::json!(asked.on_approval))))
            (row("Open until", &asked.expires_at.to_string()))
        }
        p { "Your answer counts as that of " strong { (review.reviewer) } "." }
        form method="post" {
            div class="field" {
                label for="note" { "Note (recorded)" }
                input id="note" name="note" maxlength="4096" autocomplete="off";
            }
            div class="pages" {
                button class="main" name="answer" value="approve" { "Approve" }
                button class="danger" name="answer" value="reject" { "Reject" }
            }
        }
    }
}

fn done(asked: &Escalation, resolved: Resolved) -> Markup {
    let result = match resolved.state {
        EscalationState::Pending => "Your approval is recorded. Another reviewer has to agree.",
        EscalationState::Approved => "The request is approved.",
        _ => "The request is rejected.",
    };
    html! { p role="status" { (result) } dl { (row("Agent", asked.agent_id.as_str())) (row("Escalation", &asked.id.to_string())) } }
}

fn row(name: &str, value: &str) -> Markup {
    html! { dt { (name) } dd { (visible(value)) } }
}

/// A value as people read it.
fn written(value: &Value) -> String {
    match value {
        Value::Array(items) => items.iter().map(written).collect::<Vec<_>>().join(", "),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Maximum size of an answer, in bytes: a note of 4,096 characters, percent-encoded.
const MOST_BYTES: usize = 64 << 10;

const POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
