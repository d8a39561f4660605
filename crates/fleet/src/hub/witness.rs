//! The call of a witness over HTTP.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use rulekeep::system::{Clock as _, SystemClock};

use super::HubError;
use crate::wire::MAX_STRANGERS_BYTES;
use crate::witness::{Witness, WitnessError};

/// The call `POST /add-checkpoint` of a witness (C2SP tlog-witness), to be served over HTTP.
pub fn witness_router(witness: Witness) -> Router {
    Router::new()
        .route("/add-checkpoint", post(add_checkpoint))
        .layer(DefaultBodyLimit::max(MAX_STRANGERS_BYTES))
        .with_state(Arc::new(Mutex::new(witness)))
}

async fn add_checkpoint(State(witness): State<Arc<Mutex<Witness>>>, body: String) -> Result<Response, HubError> {
    // It waits for the disk.
    let done = tokio::task::spawn_blocking(move || {
        witness.lock().unwrap_or_else(PoisonError::into_inner).add_checkpoint(&body, SystemClock.now())
    });
    let done = done.await.map_err(|error| HubError::Log(error.to_string()))?;
    Ok(done.map_or_else(IntoResponse::into_response, IntoResponse::into_response))
}

impl IntoResponse for WitnessError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        match self.kept_size() {
            Some(size) => (status, [(header::CONTENT_TYPE, "text/x.tlog.size")], format!("{size}\n")).into_response(),
            None => (status, format!("{self}\n")).into_response(),
        }
    }
}
