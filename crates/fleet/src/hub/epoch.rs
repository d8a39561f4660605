//! The lives of the database. A restored database has forgotten orders, anchors and grants; a promoted standby may have.
//!
//! A change of the database's identity begins a new epoch. Until the organisation's log is known to be as long as its
//! witnesses have signed, nobody gets a permit; until every member has reported what it holds, nothing is granted.

use std::sync::atomic::Ordering;

use deadpool_postgres::GenericClient;

use super::store::{self, Identity};
use super::{Hub, HubError, sequencer};
use crate::budget::Fence;
use crate::log::Leaf;
use crate::membership::number;

/// The epoch of the database, read in a transaction.
pub(super) struct EpochNow {
    /// The governors that have not reported since it began: those asked for, and one of the others if there are any.
    pub(super) fence: Fence,
    /// The database's time.
    pub(super) now: i64,
    /// Why the database is not trusted, if it is not.
    pub(super) unverified: Option<&'static str>,
}

impl Hub {
    /// Reads the database's epoch. Begins a new one if the database is another, or its server was started again, because
    /// its disk may have been reset: then it has forgotten nonces and grants, perhaps without a leaf. Of the fence, it
    /// reads the rows of these governors, and one more so that a closed fence is seen.
    pub(super) async fn look_at_epoch(
        &self,
        client: &impl GenericClient,
        governors: &[&str],
    ) -> Result<EpochNow, HubError> {
        let (identity, now) = store::identity(client).await?;
        self.inner.store.check(&identity)?;
        let (system, timeline) = (&identity.system, number(identity.timeline));
        let mut row = client.query_opt(NEWEST, &[system, &timeline, &identity.started]).await?;
        if row.is_none() {
            // Hubs that find it out together wait for each other here.
            client.execute("LOCK TABLE epochs IN EXCLUSIVE MODE", &[]).await?;
            if client.query_opt(NEWEST, &[system, &timeline, &identity.started]).await?.is_none() {
                self.begin_epoch(client, &identity, now).await?;
            }
            self.inner.leaves.notify_one();
            row = client.query_opt(NEWEST, &[system, &timeline, &identity.started]).await?;
        }
        let row = row.ok_or_else(|| HubError::Database("it has no epoch".to_owned()))?;
        let (epoch, is_verified, since): (i64, bool, i64) = (row.get(0), row.get(1), row.get(2));
        let rows = client.query(AWAITED, &[&governors]).await?;
        let fence = Fence::from_rows(epoch.unsigned_abs(), since, rows.iter().map(|row| (row.get(0), row.get(1))));
        let is_verified = is_verified && self.inner.has_compared.load(Ordering::Relaxed);
        let unverified = (!is_verified).then_some("the database was started, and its log is not verified yet");
        Ok(EpochNow { fence, now, unverified })
    }

    /// Begins an epoch: members have to report what they hold of shared limits.
    pub(super) async fn begin_epoch(
        &self,
        client: &impl GenericClient,
        identity: &Identity,
        now: i64,
    ) -> Result<(), HubError> {
        let Identity { system, timeline, started } = identity;
        let new = "INSERT INTO epochs SELECT greatest($3, coalesce(max(n), 0) + 1), $1, $2, $4, $3, false FROM epochs RETURNING n";
        let epoch: i64 = client.query_one(new, &[system, &number(*timeline), &now, started]).await?.get(0);
        client.execute(RAISE, &[&self.orders().chain.retired().iter().collect::<Vec<_>>()]).await?;
        let leaf = Leaf::Epoch { system: system.clone(), timeline: *timeline, former: None };
        sequencer::enqueue(client, &[(&leaf, "", epoch)]).await
    }

    /// The database's time, if its log is verified.
    pub(super) async fn verified_now(&self, client: &impl GenericClient) -> Result<i64, HubError> {
        let EpochNow { now, unverified, .. } = self.look_at_epoch(client, &[]).await?;
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

const AWAITED: &str = "SELECT governor, boot FROM fence WHERE governor = ANY($1) \
    UNION (SELECT governor, boot FROM fence LIMIT 1)";
/// The newest epoch, if it is of this database.
const NEWEST: &str = "SELECT n, is_verified, at FROM (SELECT * FROM epochs ORDER BY n DESC LIMIT 1) AS newest \
    WHERE system = $1 AND timeline = $2 AND started = $3";
/// A governor that an earlier fence still waits for stays awaited as the run that fence expected. One that had left holds
/// nothing: its return is a leaf, which a database that goes back gets again.
const RAISE: &str = "INSERT INTO fence SELECT id, nullif(boot, '') FROM governors WHERE NOT has_left AND id <> ALL($1) \
    ON CONFLICT DO NOTHING";
