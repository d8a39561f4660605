//! Requests of members that are answered together: as many in one transaction as have arrived.
//!
//! A request whose content the database refuses fails alone: the batch is halved until the culprit is found, and further
//! requests of that governor are answered by themselves.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::{Hub, HubError, PAUSE, store};

/// A request that is answered in batches.
pub(super) trait Request: Send + Sync + Sized + 'static {
    /// The answer to it.
    type Answer: Send;
    /// The time for which more requests are awaited.
    const GATHER: Duration;
    /// Whether a second request of one governor waits for the next transaction.
    const IS_ONE_EACH: bool;

    /// The governor that sent it.
    fn governor(&self) -> &str;

    /// Answers requests in one transaction, in their order.
    fn answer_all(hub: &Hub, requests: &[&Self]) -> impl Future<Output = Result<Vec<Answered<Self>>, HubError>> + Send;
}

/// The answer to a request, or the reason there is none.
pub(super) type Answered<Q> = Result<<Q as Request>::Answer, String>;

/// A request that waits for the next transaction.
pub(super) struct Waiting<Q: Request> {
    request: Q,
    answer: oneshot::Sender<Answered<Q>>,
}

/// Sends a request to the batches, and waits for its answer.
pub(super) async fn ask<Q: Request>(queue: &mpsc::Sender<Waiting<Q>>, request: Q) -> Result<Q::Answer, HubError> {
    let (answer, answered) = oneshot::channel();
    let ended = || HubError::Database("this hub is shutting down".to_owned());
    queue.send(Waiting { request, answer }).await.map_err(|_| ended())?;
    answered.await.map_err(|_| ended())?.map_err(HubError::Database)
}

/// Answers requests until the program ends.
pub(super) async fn serve<Q: Request>(hub: Hub, mut queue: mpsc::Receiver<Waiting<Q>>) {
    let (mut left_over, mut suspects) = (Vec::new(), HashSet::new());
    loop {
        let mut batch: Vec<Waiting<Q>> = std::mem::take(&mut left_over);
        if batch.is_empty() {
            if queue.recv_many(&mut batch, MOST_AT_ONCE).await == 0 {
                return;
            }
            tokio::time::sleep(Q::GATHER).await;
        }
        while batch.len() < MOST_AT_ONCE
            && let Ok(next) = queue.try_recv()
        {
            batch.push(next);
        }
        // Those whose callers have given up come again in another request.
        batch.retain(|next| !next.answer.is_closed());
        if Q::IS_ONE_EACH {
            let mut seen = HashSet::new();
            (batch, left_over) = batch.into_iter().partition(|next| seen.insert(next.request.governor().to_owned()));
        }
        let (alone, together): (Vec<_>, Vec<_>) =
            batch.into_iter().partition(|next| suspects.contains(next.request.governor()));
        let mut parts: VecDeque<Vec<_>> = VecDeque::from([together]);
        parts.extend(alone.into_iter().map(|next| vec![next]));
        while let Some(part) = parts.pop_front() {
            answer_part(&hub, part, &mut parts, &mut suspects).await;
        }
    }
}

/// Answers a part of a batch, or halves it if something in it cannot be stored.
async fn answer_part<Q: Request>(
    hub: &Hub,
    mut part: Vec<Waiting<Q>>,
    parts: &mut VecDeque<Vec<Waiting<Q>>>,
    suspects: &mut HashSet<String>,
) {
    if part.is_empty() {
        return;
    }
    let requests: Vec<&Q> = part.iter().map(|next| &next.request).collect();
    let error = match hub.inner.store.in_time(store::TIMEOUT, Q::answer_all(hub, &requests)).await {
        Ok(answers) => {
            for (next, answer) in part.into_iter().zip(answers) {
                // A caller that has gone needs no answer.
                let _ = next.answer.send(answer);
            }
            return;
        }
        Err(error) => error,
    };
    match &error {
        HubError::Content(_) if part.len() > 1 => {
            let rest = part.split_off(part.len() / 2);
            parts.extend([part, rest]);
            return;
        }
        HubError::Content(_) => {
            if suspects.len() >= MOST_SUSPECTS {
                suspects.clear();
            }
            suspects.extend(part.iter().map(|next| next.request.governor().to_owned()));
        }
        _ => tokio::time::sleep(PAUSE).await,
    }
    for next in part {
        let _ = next.answer.send(Err(error.to_string()));
    }
}

/// Requests in one transaction.
const MOST_AT_ONCE: usize = 512;
/// Governors whose requests are answered by themselves.
const MOST_SUSPECTS: usize = 10_000;
