//! Permits as hubs count them: on the clock of the hub that granted one, which runs during suspend and is never set.
//!
//! Each hub stores its time every second. Of another hub, the time is known that it stored last, and how long ago this hub
//! saw it: at least that much has passed there, whatever the clock of the database says.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::GenericClient;
use rulekeep::system::{Clock as _, SystemClock};

use super::{HubError, random};

/// The clock of this hub, and what it knows of the others'.
pub(super) struct HubClock {
    /// A random name of this run of the hub.
    pub(super) hub: String,
    // The last time that each hub stored, with this hub's time when it saw that first.
    others: Mutex<HashMap<String, (i64, i64)>>,
}

impl HubClock {
    pub(super) fn new() -> Self {
        Self { hub: random(), others: Mutex::default() }
    }

    /// The time of this hub, in milliseconds.
    pub(super) fn now() -> i64 {
        let now = SystemClock.since_boot().unwrap_or(Duration::ZERO).as_millis();
        i64::try_from(now).unwrap_or(i64::MAX)
    }

    /// Stores the time of this hub, and reads that of the others.
    pub(super) async fn exchange(&self, client: &impl GenericClient) -> Result<(), HubError> {
        client.execute(STORE, &[&self.hub, &Self::now()]).await?;
        self.read(client).await
    }

    /// Reads the times of the other hubs.
    pub(super) async fn read(&self, client: &impl GenericClient) -> Result<(), HubError> {
        let rows = client.query("SELECT id, at FROM hubs", &[]).await?;
        let now = Self::now();
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        for row in rows {
            let at: i64 = row.get(1);
            let known = others.entry(row.get(0)).or_insert((at, now));
            if known.0 < at {
                *known = (at, now);
            }
        }
        Ok(())
    }

    /// The time that is left until a moment on the clock of a hub, in milliseconds; 0 or less if it has passed. `longest`
    /// is the longest term of a permit, which counts from now for a hub that nothing is known of.
    pub(super) fn left(&self, hub: &str, until: i64, longest: i64) -> i64 {
        let now = Self::now();
        if until == 0 || hub == self.hub {
            return until.saturating_sub(now);
        }
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, seen) = *others.entry(hub.to_owned()).or_insert((until.saturating_sub(longest), now));
        until.saturating_sub(at.saturating_add(now.saturating_sub(seen)))
    }
}

const STORE: &str = "INSERT INTO hubs VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET at = excluded.at";
