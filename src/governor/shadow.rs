//! A second policy set beside the one in force: it decides on everything and
//! enforces nothing.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use super::policies::Policies;
use super::replay::parts;
use crate::model::{AgentId, Alert, AlertKind, Decision, Digest, Enforcement, ProofId, RiskLevel};
use crate::policy::{PolicyRequest, PolicySet};

/// A set in the shadow, and where it differed.
pub(super) struct Shadow {
    set: PolicySet,
    decided: AtomicU64,
    differed: AtomicU64,
    failed: AtomicU64,
    // Held to add or read one difference; nothing else is taken meanwhile.
    differences: Mutex<VecDeque<ShadowDifference>>,
}

/// What a set in the shadow has come to so far.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ShadowReport {
    /// The digest of the set in the shadow.
    pub policy_digest: Digest,
    /// Decisions that it was held against.
    pub decided: u64,
    /// How many of them it would have made otherwise.
    pub differed: u64,
    /// On how many a condition of it failed.
    pub failed: u64,
    /// The last differences, the newest first, at most [`ShadowReport::MOST_DIFFERENCES`].
    pub differences: Vec<ShadowDifference>,
}

impl ShadowReport {
    /// The most differences that are kept.
    pub const MOST_DIFFERENCES: usize = 1_000;
}

/// A decision that the set in the shadow would have made otherwise.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ShadowDifference {
    /// The record of the decision.
    pub proof_id: ProofId,
    /// The agent that asked.
    pub agent_id: AgentId,
    /// What was decided.
    pub was: Decision,
    /// What the set in the shadow decides.
    pub shadow: Decision,
    /// By which of its rules.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<String>))]
    pub rules: Arc<[Arc<str>]>,
    /// What differs: `decision`, `granted`, `constraints`.
    pub differs: Vec<&'static str>,
}

impl Policies<'_> {
    /// Sets a policy set beside the one in force, or takes it away. From the next
    /// decision on it is held against everything that is asked, after the decision
    /// is recorded; what it would decide otherwise is in
    /// [`Policies::shadow_report`](crate::handle::Policies::shadow_report) and is told as
    /// an event of [`EventType::Alert`](crate::event::EventType), the like of it once a minute.
    /// It enforces nothing, counts no limit, and its errors are its own.
    pub fn shadow(self, set: Option<PolicySet>) {
        let shadow = set.map(|set| {
            Arc::new(Shadow {
                set,
                decided: AtomicU64::new(0),
                differed: AtomicU64::new(0),
                failed: AtomicU64::new(0),
                differences: Mutex::default(),
            })
        });
        self.governor.inner.policies.shadow.store(shadow);
    }

    /// What the set in the shadow has come to since it was set; none without one.
    pub fn shadow_report(self) -> Option<ShadowReport> {
        self.governor.inner.policies.shadow.load().as_ref().map(|shadow| shadow.report())
    }
}

fn named(rules: &[Arc<str>]) -> String {
    if rules.is_empty() { "no rule".to_owned() } else { rules.join(", ") }
}

impl Shadow {
    /// Holds the set against a request that was decided. What it says otherwise comes back as an alert, and what
    /// that is about: the like of it is not worth another.
    pub(super) fn look(&self, request: &PolicyRequest<'_>, enforcement: &Enforcement) -> Option<(Alert, String)> {
        self.decided.fetch_add(1, Ordering::Relaxed);
        let agent_id = request.intent.agent_id.clone();
        let verdict = match self.set.evaluate(request) {
            Ok(verdict) => verdict,
            Err(error) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                let subject = error.to_string();
                let message = format!("the set in the shadow fails: {subject}");
                let alert = Alert::new(AlertKind::ShadowError, RiskLevel::Low, Some(agent_id), message);
                return Some((alert.about(vec![enforcement.proof_id]), subject));
            }
        };
        let differs = parts([
            verdict.decision != enforcement.decision,
            verdict.granted != enforcement.granted_capabilities,
            verdict.constraints != enforcement.constraints,
        ]);
        if differs.is_empty() {
            return None;
        }
        let told = differs.join(" and ");
        self.differed.fetch_add(1, Ordering::Relaxed);
        let mut differences = self.differences.lock().unwrap_or_else(PoisonError::into_inner);
        if differences.len() == ShadowReport::MOST_DIFFERENCES {
            differences.pop_back();
        }
        differences.push_front(ShadowDifference {
            proof_id: enforcement.proof_id,
            agent_id: agent_id.clone(),
            was: enforcement.decision,
            shadow: verdict.decision,
            rules: Arc::clone(&verdict.rules),
            differs,
        });
        drop(differences);
        let rules = named(&verdict.rules);
        let subject = if verdict.decision == enforcement.decision {
            format!("{} with other {told} by {rules}", verdict.decision)
        } else {
            format!("{} and not {} by {rules}", verdict.decision, enforcement.decision)
        };
        let alert = Alert::new(
            AlertKind::ShadowDiffers,
            RiskLevel::Low,
            Some(agent_id),
            format!("the set in the shadow decides {subject}"),
        );
        Some((alert.about(vec![enforcement.proof_id]), subject))
    }

    fn report(&self) -> ShadowReport {
        let differences = self.differences.lock().unwrap_or_else(PoisonError::into_inner);
        ShadowReport {
            policy_digest: self.set.digest(),
            decided: self.decided.load(Ordering::Relaxed),
            differed: self.differed.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            differences: differences.iter().cloned().collect(),
        }
    }
}
