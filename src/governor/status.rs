//! The governor's own health and metrics, measured when they are asked for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Map;

use super::Governor;
use crate::model::{Components, Health, IntentId, JournalStatus, Metrics, SystemStatus};
use crate::parse::ParseRequest;

/// The sum of enforcement times.
#[derive(Default)]
pub(super) struct Latency {
    count: AtomicU64,
    nanos: AtomicU64,
}

impl Latency {
    pub(super) fn add(&self, elapsed: Duration) {
        // Two counters that are read apart may be one enforcement apart; a mean can bear that.
        self.count.fetch_add(1, Ordering::Relaxed);
        self.nanos.fetch_add(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The mean in milliseconds, 0 when nothing was enforced.
    #[allow(clippy::cast_precision_loss)] // a mean of latencies needs no more than 53 bits
    fn mean_millis(&self) -> f64 {
        let count = self.count.load(Ordering::Relaxed);
        if count == 0 {
            return 0.0;
        }
        self.nanos.load(Ordering::Relaxed) as f64 / count as f64 / 1e6
    }
}

impl Governor {
    /// The governor's health and metrics. Days are UTC.
    pub fn status(&self) -> SystemStatus {
        // What was decided before this call is counted; a log that cannot catch up shows in the health.
        let caught_up = self.inner.log.catch_up().is_ok();
        let log = self.inner.log.state();
        let now = self.inner.clock.now();
        let policies = self.policies();
        let health = |works: bool| if works { Health::Healthy } else { Health::Unhealthy };
        let checkpoint_failure = self.checkpoint_failure();
        let components = Components::new(
            match health(caught_up && log.refusing.is_none()) {
                // It takes decisions, and can only refuse.
                Health::Healthy if !policies.grants_something() => Health::Degraded,
                health => health,
            },
            Health::Healthy,
            match health(log.breakage.is_none()) {
                Health::Healthy if checkpoint_failure.is_some() => Health::Degraded,
                health => health,
            },
            health(self.parser_works()),
            if log.view_lost { Health::Degraded } else { Health::Healthy },
        );
        let is_today = log.totals.day == now.day();
        let metrics = Metrics::new(
            self.inner.ledger.active(),
            if is_today { log.totals.decisions_that_day } else { 0 },
            self.inner.latency.mean_millis(),
            log.totals.records,
            if is_today { log.totals.escalations_that_day } else { 0 },
        );
        let mut status = SystemStatus::new(self.inner.opened.elapsed().as_secs(), components, metrics, now);
        if !policies.grants_something() {
            let name = policies.name();
            status
                .warnings
                .push(format!("the policy set {name:?} grants nothing: everything is denied or asks a person"));
        }
        status.warnings.extend(log.refusing.map(|refusing| format!("nothing is decided: {refusing}")));
        if let Some(failure) = checkpoint_failure {
            status.warnings.push(format!("the last checkpoint could not be made: {failure}"));
        }
        status
    }

    #[cfg(feature = "checkpoints")]
    fn checkpoint_failure(&self) -> Option<String> {
        self.inner.checkpoints.failure()
    }

    #[cfg(not(feature = "checkpoints"))]
    #[allow(clippy::unused_self)] // as it is with the feature
    fn checkpoint_failure(&self) -> Option<String> {
        None
    }

    /// How the journal stands: what is on disk, and how full segments are being sealed.
    pub fn journal(&self) -> JournalStatus {
        self.inner.log.journal()
    }

    /// Whether the parser still tells a plain request from nonsense.
    fn parser_works(&self) -> bool {
        let Ok(agent_id) = "status".parse() else { return false };
        let at = self.inner.clock.now();
        let request = ParseRequest {
            agent_id: &agent_id,
            input: "Read the file",
            context: &Map::new(),
            id: IntentId::new(at, 0),
            at,
        };
        let parsed = self.inner.parser.parse(&request, &self.inner.tools.load());
        parsed.is_ok_and(|parsed| {
            parsed.result.intent.required_capabilities.iter().all(|capability| !capability.is_unknown())
        })
    }
}
