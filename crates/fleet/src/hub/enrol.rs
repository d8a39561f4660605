//! Enrolment of governors.

use rulekeep::checkpoint::{CheckpointError, VerifierKey};
use rulekeep::system::Timestamp;

use super::{Hub, HubError, sequencer};
use crate::log::Leaf;
use crate::wire::{Enrol, Enrolled, Invitation};

impl Hub {
    /// Makes a governor a member.
    pub(super) async fn enrol(&self, request: &Enrol) -> Result<Enrolled, HubError> {
        let mut client = self.inner.store.client().await?;
        // The founding order may have been given to another hub a moment ago.
        self.read_orders(&client).await?;
        let invitation = Invitation::open(&request.invitation, &self.orders().chain).ok_or_else(|| {
            HubError::Forbidden("the invitation is not signed by an operator of this organisation".to_owned())
        })?;
        let key: VerifierKey =
            request.key.parse().map_err(|error: CheckpointError| HubError::Invalid(error.to_string()))?;
        let transaction = client.transaction().await?;
        let now = self.verified_now(&transaction).await?;
        if invitation.expires_at.as_millis() < now {
            return Err(HubError::Forbidden("the invitation has expired".to_owned()));
        }
        let known = transaction.query_opt("SELECT key, groups FROM governors WHERE id = $1", &[&key.name()]).await?;
        if let Some(known) = known {
            // The answer to an earlier attempt may have been lost.
            return if known.get::<_, String>(0) == request.key {
                Ok(Enrolled { groups: known.get(1) })
            } else {
                Err(HubError::Forbidden(format!("another governor has the id {}", key.name())))
            };
        }
        let used = "INSERT INTO invitations VALUES ($1, 1) ON CONFLICT (id) DO UPDATE SET used = invitations.used + 1 RETURNING used";
        let used: i32 = transaction.query_one(used, &[&invitation.id]).await?.get(0);
        if u32::try_from(used).unwrap_or(u32::MAX) > invitation.uses {
            return Err(HubError::Forbidden(format!("the invitation was for {} governors", invitation.uses)));
        }
        let groups = match &request.group {
            Some(group) if !invitation.groups.contains(group) => {
                return Err(HubError::Forbidden(format!("the invitation is not for the group {group}")));
            }
            Some(group) => vec![group.clone()],
            None => invitation.groups,
        };
        let new = "INSERT INTO governors (id, key, groups) VALUES ($1, $2, $3)";
        transaction.execute(new, &[&key.name(), &request.key, &groups]).await?;
        let leaf = Leaf::Enrol {
            governor: key.name().to_owned(),
            key: request.key.clone(),
            groups: groups.clone(),
            at: Timestamp::from_millis(now),
        };
        sequencer::enqueue(&transaction, &[(&leaf, key.name(), 0)]).await?;
        transaction.commit().await?;
        Ok(Enrolled { groups })
    }
}
