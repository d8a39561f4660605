//! Approval links: whoever opens one may answer one escalation as one reviewer, once, until it expires.
//!
//! A link names its escalation and endpoint, and is signed over what the reviewer is asked. The key belongs to the
//! endpoint and stays in the file of secrets; the endpoint's receiver does not know it.

use rulekeep::escalation::{Escalation, EscalationId, Review, ReviewerIdentity};
use rulekeep::extension::{Extension, WebhookId};
use rulekeep::signature::{Secret, sign};
use rulekeep::{Error, Governor};
use subtle::ConstantTimeEq;

use super::Webhooks;

/// The path below which links are answered.
pub(crate) const PATH: &str = "/approve/";

/// Makes the links of an endpoint.
#[derive(Clone)]
pub(super) struct Links {
    /// The URL of the server, without a slash at its end.
    pub(super) base: String,
    pub(super) webhook: WebhookId,
    pub(super) reviewer: String,
    pub(super) key: Secret,
}

/// An escalation that a link opened, and the review that the link permits.
pub(crate) struct Opened {
    pub(crate) escalation: Escalation,
    pub(crate) review: Review,
}

impl Links {
    /// The link to an escalation; `None` if the reviewer cannot answer it.
    pub(super) fn link(&self, governor: &Governor, escalation: &Escalation) -> Option<String> {
        Extension::of(governor).check_review(escalation.id, self.review(escalation)).ok()?;
        Some(format!("{}{PATH}{}.{}.{}", self.base, escalation.id, self.webhook, self.signature(escalation)))
    }

    fn review(&self, escalation: &Escalation) -> Review {
        let identity = ReviewerIdentity::Link { webhook: self.webhook };
        Review::by(&*self.reviewer).of(escalation.digest).identified(identity)
    }

    /// The signature over everything that must not change, in hex.
    fn signature(&self, escalation: &Escalation) -> String {
        let statement = format!("approval link\n{}\n{}\n{}", self.webhook, self.reviewer, escalation.digest);
        let expires = escalation.expires_at.as_millis();
        let signed = sign(&[&self.key], expires, &escalation.id.to_string(), statement.as_bytes());
        signed.rsplit('=').next().unwrap_or_default().to_owned()
    }
}

impl Webhooks {
    /// Opens the part of an approval link after [`PATH`].
    ///
    /// # Errors
    ///
    /// * [`Error::Unauthorized`] for anything that is not a link of an existing endpoint.
    /// * [`Error::Conflict`] or [`Error::Forbidden`] if the link was used, or the escalation was answered or expired.
    pub(crate) fn open_link(&self, link: &str) -> Result<Opened, Error> {
        let unknown = || Error::Unauthorized { message: "this is no valid approval link".to_owned() };
        let mut parts = link.split('.');
        let (Some(id), Some(webhook), Some(signature), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(unknown());
        };
        let (id, webhook) = (id.parse::<EscalationId>(), webhook.parse::<WebhookId>());
        let (id, webhook) = id.ok().zip(webhook.ok()).ok_or_else(unknown)?;
        let links = self.service.courier(webhook).ok().and_then(|courier| courier.links().cloned());
        let links = links.ok_or_else(unknown)?;
        let escalation = self.governor.escalations().get(id).map_err(|_| unknown())?;
        if !bool::from(links.signature(&escalation).as_bytes().ct_eq(signature.as_bytes())) {
            return Err(unknown());
        }
        let review = links.review(&escalation);
        Extension::of(&self.governor).check_review(id, review.clone())?;
        Ok(Opened { escalation, review })
    }
}
