//! A witness over HTTP.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use rulekeep::system::{Clock as _, SystemClock};
use rulekeep_fleet::cosignature::WitnessKey;
use rulekeep_fleet::witness::Witness;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::organisation::log_key;

/// A witness of the organisation's log. It ends with the value.
pub(crate) struct RunningWitness {
    pub(crate) key: WitnessKey,
    pub(crate) url: String,
    task: JoinHandle<()>,
    _folder: TempDir,
}

impl RunningWitness {
    pub(crate) async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let seed = [7; 32];
        let key = WitnessKey::from_seed("witness", &seed).expect("a good name");
        let witness = Witness::open(folder.path(), "witness", &seed, &[log_key().verifier()]).expect("a new witness");
        let router = Router::new().route("/add-checkpoint", post(add)).with_state(Arc::new(Mutex::new(witness)));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/add-checkpoint", listener.local_addr().expect("it listens"));
        let task = tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        Self { key, url, task, _folder: folder }
    }
}

impl Drop for RunningWitness {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn add(State(witness): State<Arc<Mutex<Witness>>>, body: String) -> (StatusCode, String) {
    let added = witness.lock().expect("no panic").add_checkpoint(&body, SystemClock.now());
    match added {
        Ok(line) => (StatusCode::OK, line),
        Err(error) => {
            let status = StatusCode::from_u16(error.status()).expect("a status");
            (status, error.kept_size().map_or_else(|| error.to_string(), |size| format!("{size}\n")))
        }
    }
}
