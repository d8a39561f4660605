//! The lives of the database. A restored database has forgotten orders, anchors and grants; a promoted standby may have.
//!
//! A change of the database's identity begins a new epoch. Until the organisation's log is known to be as long as its
//! witnesses have signed, nobody gets a permit; until every member has reported what it holds, nothing is granted.

use deadpool_postgres::GenericClient;

use super::orders::number;
use super::{Hub, HubError, sequencer, store};
use crate::log::Leaf;

/// The epoch of the database, read in a transaction.
pub(super) struct EpochNow {
    pub(super) epoch: i64,
    /// The database's time.
    pub(super) now: i64,
    /// Why the database is not trusted, if it is not.
    pub(super) unverified: Option<&'static str>,
}

impl Hub {
    /// Reads the database's epoch, and begins a new one if the database is another.
    pub(super) async fn look_at_epoch(&self, client: &impl GenericClient) -> Result<EpochNow, HubError> {
        let (identity, now) = store::identity(client).await?;
        let newest = "SELECT n, system, timeline, is_verified FROM epochs ORDER BY n DESC LIMIT 1";
        let row = client.query_opt(newest, &[]).await?;
        let known = row.map(|row| (row.get::<_, i64>(0), (row.get::<_, String>(1), row.get::<_, i64>(2)), row.get(3)));
        let of_now = (identity.system.clone(), number(identity.timeline));
        let (epoch, is_verified) = match known {
            Some((epoch, of, is_verified)) if of == of_now => (epoch, is_verified),
            former => {
                let epoch = former.map_or(1, |(epoch, ..)| epoch + 1);
                let new = "INSERT INTO epochs VALUES ($1, $2, $3, $4, false) ON CONFLICT DO NOTHING";
                let stored = client.execute(new, &[&epoch, &of_now.0, &of_now.1, &now]).await?;
                if stored == 1 {
                    // The nonces that members hold may be newer than those of a restored database.
                    let forget = "UPDATE governors SET boot = '', boot_before = '', nonce = '', nonce_before = ''";
                    client.execute(forget, &[]).await?;
                    let leaf = Leaf::Epoch { system: identity.system, timeline: identity.timeline, former: None };
                    sequencer::enqueue(client, &[(&leaf, "", epoch)]).await?;
                }
                self.inner.leaves.notify_one();
                (epoch, false)
            }
        };
        let unverified = (!is_verified).then_some("the database was restored or promoted, and its log is not verified yet");
        Ok(EpochNow { epoch, now, unverified })
    }

    /// The database's time, if its log is verified.
    pub(super) async fn verified_now(&self, client: &impl GenericClient) -> Result<i64, HubError> {
        let EpochNow { now, unverified, .. } = self.look_at_epoch(client).await?;
        unverified.map_or(Ok(now), |why| Err(HubError::Log(why.to_owned())))
    }

    /// Declares the newest epoch verified once the log has `size` entries, which witnesses or published files name.
    pub(super) async fn verify_epoch(&self, client: &impl GenericClient, size: u64) -> Result<(), HubError> {
        let verified = "UPDATE epochs SET is_verified = true WHERE NOT is_verified AND n = (SELECT max(n) FROM epochs) \
                        AND (SELECT coalesce(max(size), 0) FROM head) >= $1";
        client.execute(verified, &[&number(size)]).await?;
        Ok(())
    }
}
