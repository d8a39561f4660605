//! Subscriptions of clients without a session to changes on the server.

use rmcp::model::{
    ClientRequest, ErrorData, ServerNotification, SubscribeRequest, SubscribeRequestParams, UnsubscribeRequest,
    UnsubscribeRequestParams,
};
use rmcp::service::SubscriptionContext;
use tokio::sync::broadcast::error::RecvError;

use crate::catalogue::Catalogue;
use crate::upstream::{Upstream, error_of};

/// Passes on the server's reports of the subscribed changes, until the client cancels or the connection ends.
pub(crate) async fn follow(
    upstream: &Upstream,
    catalogue: &Catalogue,
    subscription: &SubscriptionContext,
) -> Result<(), ErrorData> {
    if !upstream.is_stateless() {
        return follow_session(upstream, subscription).await;
    }
    let mut changes = upstream.peer().listen(subscription.accepted().clone()).await.map_err(error_of)?;
    loop {
        let change = tokio::select! {
            change = changes.next() => change.map_err(error_of)?,
            () = subscription.cancelled() => return changes.cancel().await.map_err(error_of),
        };
        let Some(change) = change else { return Ok(()) };
        if matches!(change, ServerNotification::ToolListChangedNotification(_)) {
            catalogue.expire();
        }
        send(subscription, change).await;
    }
}

/// Like [`follow`], for a server that reports changes to the session.
async fn follow_session(upstream: &Upstream, subscription: &SubscriptionContext) -> Result<(), ErrorData> {
    let mut changes = upstream.notifications();
    let resources = subscription.accepted().resource_subscriptions.clone().unwrap_or_default();
    for uri in &resources {
        let request = SubscribeRequest::new(SubscribeRequestParams::new(uri.clone()));
        upstream.peer().send_request(ClientRequest::SubscribeRequest(request)).await.map_err(error_of)?;
    }
    loop {
        let change = tokio::select! {
            change = changes.recv() => change,
            () = subscription.cancelled() => break,
        };
        match change {
            Ok(change) => send(subscription, change).await,
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => break,
        }
    }
    for uri in resources {
        let request = UnsubscribeRequest::new(UnsubscribeRequestParams::new(uri));
        // The connection may have ended, and the subscription with it.
        let _ = upstream.peer().send_request(ClientRequest::UnsubscribeRequest(request)).await;
    }
    Ok(())
}

/// Sends a notification, unless the client did not subscribe to it.
async fn send(subscription: &SubscriptionContext, change: ServerNotification) {
    if let Err(error) = subscription.sink().send(change).await {
        tracing::debug!(%error, "a notification is not forwarded");
    }
}
