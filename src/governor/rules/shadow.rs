//! The shadow policy set: a second set that is evaluated for every decision but not enforced.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde::{Deserialize, Serialize};

use crate::governor::Hold as _;
use crate::governor::rules::policies::Policies;
use crate::model::{AgentId, Alert, AlertKind, Decision, Digest, Enforcement, ProofId, RiskLevel};
use crate::policy::{PolicyRequest, PolicySet};

/// The shadow set and its differences so far.
pub(crate) struct Shadow {
    set: PolicySet,
    decided: AtomicU64,
    differed: AtomicU64,
    failed: AtomicU64,
    // Held to add or read a difference; no other lock is acquired meanwhile.
    differences: Mutex<VecDeque<ShadowDifference>>,
}

/// The results of the shadow policy set so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ShadowReport {
    /// The digest of the shadow set.
    pub policy_digest: Digest,
    /// Number of decisions compared.
    pub decided: u64,
    /// Number of decisions that the shadow set would have made differently.
    pub differed: u64,
    /// Number of decisions for which a condition of the shadow set failed.
    pub failed: u64,
    /// The most recent differences, newest first, at most [`ShadowReport::MOST_DIFFERENCES`].
    pub differences: Vec<ShadowDifference>,
}

impl ShadowReport {
    /// Maximum number of differences kept.
    pub const MOST_DIFFERENCES: usize = 1_000;
}

/// A decision that the shadow policy set would have made differently.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ShadowDifference {
    /// The record of the decision.
    pub proof_id: ProofId,
    /// The agent that made the request.
    pub agent_id: AgentId,
    /// The decision that was made.
    pub was: Decision,
    /// The decision of the shadow set.
    pub shadow: Decision,
    /// The rules of the shadow set that decide.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<String>))]
    pub rules: Arc<[Arc<str>]>,
    /// The parts that differ: `decision`, `granted`, `constraints`.
    pub differs: Vec<Cow<'static, str>>,
}

impl Policies<'_> {
    /// Sets or removes the shadow policy set.
    ///
    /// From the next decision on, it is evaluated after each decision is recorded.
    /// [`Policies::shadow_report`](crate::handle::Policies::shadow_report) lists the differences, and each kind raises
    /// an event of [`EventType::Alert`](crate::event::EventType) at most once a minute. The shadow set enforces nothing
    /// and consumes no rate limit, and its errors do not affect decisions. It is not stored: a governor opened later
    /// starts without one.
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
        self.inner.rules.policies.shadow.store(shadow);
    }

    /// Returns the results of the shadow set since it was set; `None` without one.
    pub fn shadow_report(self) -> Option<ShadowReport> {
        self.inner.rules.policies.shadow.load().as_ref().map(|shadow| shadow.report())
    }
}

fn named(rules: &[Arc<str>]) -> String {
    if rules.is_empty() { "no rule".to_owned() } else { rules.join(", ") }
}

impl Shadow {
    /// Compares the shadow set with a decision. Returns an alert for a difference and the alert's subject, by which
    /// repetitions are recognized.
    pub(crate) fn look(&self, request: &PolicyRequest<'_>, enforcement: &Enforcement) -> Option<(Alert, String)> {
        self.decided.fetch_add(1, Ordering::Relaxed);
        let agent_id = request.intent.agent_id.clone();
        let verdict = match self.set.evaluate(request) {
            Ok(verdict) => verdict,
            Err(error) => {
                self.failed.fetch_add(1, Ordering::Relaxed);
                let subject = error.to_string();
                let message = format!("the shadow set fails: {subject}");
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
        let mut differences = self.differences.hold();
        if differences.len() == ShadowReport::MOST_DIFFERENCES {
            differences.pop_back();
        }
        differences.push_front(ShadowDifference {
            proof_id: enforcement.proof_id,
            agent_id: agent_id.clone(),
            was: enforcement.decision,
            shadow: verdict.decision,
            rules: Arc::clone(&verdict.rules),
            differs: differs.into_iter().map(Cow::from).collect(),
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
            format!("the shadow set decides {subject}"),
        );
        Some((alert.about(vec![enforcement.proof_id]), subject))
    }

    fn report(&self) -> ShadowReport {
        let differences = self.differences.hold();
        ShadowReport {
            policy_digest: self.set.digest(),
            decided: self.decided.load(Ordering::Relaxed),
            differed: self.differed.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            differences: differences.iter().cloned().collect(),
        }
    }
}

/// The names of the parts that differ. Denied capabilities follow from the granted ones.
pub(crate) fn parts([decision, granted, constraints]: [bool; 3]) -> Vec<&'static str> {
    let all = [("decision", decision), ("granted", granted), ("constraints", constraints)];
    all.into_iter().filter_map(|(part, differs)| differs.then_some(part)).collect()
}
