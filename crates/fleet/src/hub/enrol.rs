//! Enrolment of governors.

use rulekeep::checkpoint::VerifierKey;
use rulekeep::system::Timestamp;

use super::{Hub, HubError, sequencer};
use crate::enrolment::{Enrol, Invitation};
use crate::log::Leaf;

impl Hub {
    /// Verifies that a request to enrol is invited and signed, by the orders that this hub knows.
    pub(super) fn verified(&self, request: &Enrol) -> Result<(VerifierKey, Invitation), HubError> {
        let orders = self.orders();
        let organisation = orders.chain.organisation().map(|organisation| organisation.name.as_str());
        let verified = request.verify(organisation.unwrap_or_default(), orders.chain.operators().values());
        verified.map_err(|expected| HubError::Forbidden(format!("the enrolment: expected {expected}")))
    }

    /// Makes a governor a member, and returns its key.
    pub(super) async fn enrol(&self, request: Enrol) -> Result<VerifierKey, HubError> {
        let mut client = self.inner.store.client().await?;
        // The founding order may have been given to another hub a moment ago.
        self.read_orders(&client).await?;
        let (key, invitation) = self.verified(&request)?;
        let Enrol { key: text, groups, proof } = request;
        let transaction = client.transaction().await?;
        let known = transaction.query_opt("SELECT key, groups FROM governors WHERE id = $1", &[&key.name()]).await?;
        if let Some(known) = known {
            // The answer to an earlier attempt may have been lost, and so may a governor's store.
            let is_same = known.get::<_, String>(0) == text && known.get::<_, Vec<String>>(1) == groups;
            let why = format!("a governor with another key or other groups has the id {}", key.name());
            return is_same.then_some(key).ok_or(HubError::Forbidden(why));
        }
        let now = self.verified_now(&transaction).await?;
        if invitation.expires_at.as_millis() < now {
            return Err(HubError::Forbidden("the invitation has expired".to_owned()));
        }
        let used = "INSERT INTO invitations VALUES ($1, 1) ON CONFLICT (id) DO UPDATE SET used = invitations.used + 1 RETURNING used";
        let used: i32 = transaction.query_one(used, &[&invitation.key]).await?.get(0);
        if u32::try_from(used).unwrap_or(u32::MAX) > invitation.uses {
            return Err(HubError::Forbidden(format!("the invitation was for {} governors", invitation.uses)));
        }
        let new = "INSERT INTO governors (id, key, groups) VALUES ($1, $2, $3)";
        transaction.execute(new, &[&key.name(), &text, &groups]).await?;
        let (governor, at) = (key.name().to_owned(), Timestamp::from_millis(now));
        let leaf = Leaf::Enrol { governor, key: text, groups, at, proof: Some(proof) };
        sequencer::enqueue(&transaction, &[(&leaf, key.name(), 0)]).await?;
        transaction.commit().await?;
        Ok(key)
    }
}
