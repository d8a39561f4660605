//! The lives of the database. A restored database has forgotten orders, anchors and grants; a promoted standby may have.
//!
//! A change of the database's identity begins a new epoch. Until the organisation's log is known to be as long as its
//! witnesses have signed, nobody gets a permit; until every member has reported what it holds, nothing is granted.

use deadpool_postgres::GenericClient;

use super::orders::number;
use super::{Hub, HubError, sequencer, store};
use crate::budget::Fence;
use crate::log::Leaf;

/// The epoch of the database, read in a transaction.
pub(super) struct EpochNow {
    /// Who has not reported since it began.
    pub(super) fence: Fence,
    /// The database's time.
    pub(super) now: i64,
    /// Why the database is not trusted, if it is not.
    pub(super) unverified: Option<&'static str>,
}

impl Hub {
    /// Reads the database's epoch, and begins a new one if the database is another.
    pub(super) async fn look_at_epoch(&self, client: &impl GenericClient) -> Result<EpochNow, HubError> {
        let (identity, now) = store::identity(client).await?;
        let newest = "SELECT n, system, timeline, is_verified, at FROM epochs ORDER BY n DESC LIMIT 1";
        let row = client.query_opt(newest, &[]).await?;
        let of_now = (identity.system.clone(), number(identity.timeline));
        let known = row.filter(|row| (row.get(1), row.get(2)) == of_now);
        let (epoch, is_verified, since): (i64, bool, i64) = match known {
            Some(row) => (row.get(0), row.get(3), row.get(4)),
            None => {
                let new = "INSERT INTO epochs SELECT greatest($3, coalesce(max(n), 0) + 1), $1, $2, $3, false FROM epochs RETURNING n";
                // Hubs that find it out together wait for each other here.
                client.execute("LOCK TABLE epochs IN EXCLUSIVE MODE", &[]).await?;
                if let Some(row) = client.query_opt(newest, &[]).await?.filter(|row| (row.get(1), row.get(2)) == of_now)
                {
                    (row.get(0), row.get(3), row.get(4))
                } else {
                    let epoch: i64 = client.query_one(new, &[&of_now.0, &of_now.1, &now]).await?.get(0);
                    client.execute(RAISE, &[]).await?;
                    // The nonces that members hold may be newer than those of a restored database.
                    client.execute(FORGET_BOOTS, &[]).await?;
                    let leaf = Leaf::Epoch { system: identity.system, timeline: identity.timeline, former: None };
                    sequencer::enqueue(client, &[(&leaf, "", epoch)]).await?;
                    self.inner.leaves.notify_one();
                    (epoch, false, now)
                }
            }
        };
        let rows = client.query("SELECT governor, boot FROM fence", &[]).await?;
        let fence = Fence::from_rows(epoch.unsigned_abs(), since, rows.iter().map(|row| (row.get(0), row.get(1))));
        let unverified =
            (!is_verified).then_some("the database was restored or promoted, and its log is not verified yet");
        Ok(EpochNow { fence, now, unverified })
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

/// A governor that an earlier fence still waits for stays awaited as the run that fence expected.
const RAISE: &str = "INSERT INTO fence SELECT id, nullif(boot, '') FROM governors ON CONFLICT DO NOTHING";
const FORGET_BOOTS: &str = "UPDATE governors SET boot = '', boot_before = '', nonce = '', nonce_before = ''";
