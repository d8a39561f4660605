//! Progress of forwarded requests, kept in order with their results.
//!
//! The SDK handles each notification on its own task, so a result can overtake earlier progress. The transport to the
//! server is the last place where the order is known, so progress is taken out there.

use std::collections::HashMap;

use rmcp::RoleClient;
use rmcp::model::{
    ClientRequest, GetExtensions as _, GetMeta as _, JsonRpcMessage, ProgressNotificationParam, ProgressToken,
    ServerNotification,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc;

/// The progress of one request.
pub(crate) type Reports = mpsc::Receiver<ProgressNotificationParam>;

/// The sending end of [`Reports`], as an extension of the request that is not sent to the server.
#[derive(Clone)]
struct Sink(mpsc::Sender<ProgressNotificationParam>);

/// Follows the progress of a request that is about to be sent.
pub(crate) fn follow(request: &mut ClientRequest) -> Reports {
    let (sender, reports) = mpsc::channel(MOST_REPORTS);
    request.extensions_mut().insert(Sink(sender));
    reports
}

/// A transport to a server that delivers progress to its followers.
pub(crate) struct Ordered<T> {
    inner: T,
    /// The followers, by the tokens that the SDK gave the requests. Entries of finished requests are removed at the
    /// next request.
    sinks: HashMap<ProgressToken, Sink>,
}

impl<T> Ordered<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self { inner, sinks: HashMap::new() }
    }
}

impl<T: Transport<RoleClient> + 'static> Transport<RoleClient> for Ordered<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        mut item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(sent) = &mut item {
            let token = sent.request.get_meta().get_progress_token();
            if let (Some(token), Some(sink)) = (token, sent.request.extensions_mut().remove::<Sink>()) {
                self.sinks.retain(|_, Sink(sender)| !sender.is_closed());
                self.sinks.insert(token, sink);
            }
        }
        self.inner.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.inner.receive().await?;
            let JsonRpcMessage::Notification(received) = &message else { return Some(message) };
            let ServerNotification::ProgressNotification(progress) = &received.notification else {
                return Some(message);
            };
            // Progress that nobody requested, or that comes faster than the client takes it, is dropped.
            if let Some(Sink(sender)) = self.sinks.get(&progress.params.progress_token) {
                let _ = sender.try_send(progress.params.clone());
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

/// Number of reports of one request that may wait for the client.
const MOST_REPORTS: usize = 256;
