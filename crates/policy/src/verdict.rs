//! The verdict of a policy set on a request.

use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::limit::{Charge, LimitUse};
use rulekeep_types::{Capability, Constraints, Decision, Rewrite};

/// The verdict of a policy set on a request.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PolicyVerdict {
    /// The decision on the request.
    pub decision: Decision,
    /// One line for people: the rules that decided, and how the request could be granted.
    pub reasoning: String,
    // INVARIANT: `granted` and `denied` together are the required capabilities, each in request order.
    /// The capabilities granted; none for DENY and ESCALATE.
    pub granted: Vec<Capability>,
    /// The capabilities not granted.
    pub denied: Vec<Capability>,
    /// Limits on what is granted; empty when nothing is.
    pub constraints: Constraints,
    /// The ids of the rules that decided, in document order, at most eight.
    pub rules: Arc<[Arc<str>]>,
    /// The total number of rules that decided.
    pub rules_total: usize,
    /// The reviewer an escalation is assigned to; the first one when several rules escalate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<Arc<str>>,
    /// Everybody who has to agree to an escalation, each reviewer once, in document order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// The time to answer an escalation: the shortest among the deciding rules; zero for other decisions. Serialized
    /// in milliseconds.
    #[serde(rename = "expiresMs", skip_serializing_if = "Duration::is_zero", serialize_with = "as_millis")]
    pub expires: Duration,
    /// The grant that an approval would give; only for an escalation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_approval: Option<Approval>,
    /// The state of the deciding rules' limits.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitUse>,
    /// The amounts that the decision consumes from limits.
    #[serde(skip)]
    pub charges: Vec<Charge>,
    /// Conditions that failed without affecting the verdict.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<ConditionFailure>,
    /// A way to write the request, if it is denied only for a part that could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<Rewrite>,
}

/// A condition that could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ConditionFailure {
    /// The id of the rule with the condition.
    pub rule: Arc<str>,
    /// The place of the rule: `policies.toml:12`, or `line 12` if there is only one document.
    pub place: Box<str>,
    /// The condition that failed and the reason. Contains no value from the context.
    pub message: String,
}

/// A reviewer whose approval an escalation needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Need {
    /// The reviewer named by the rules: a name with a list of people, or a single person's name.
    pub reviewer: Arc<str>,
    /// The number of different people who have to agree.
    pub approvals: u8,
    /// The people who may answer; empty if the policy lists none and the name itself is the only person.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub people: Arc<[Arc<str>]>,
    /// The rule that asks. When several ask the same reviewer, the first that asks for this many approvals.
    pub rule: Arc<str>,
}

impl Need {
    /// The approval of one person, whoever it is, which a rule of the library itself asks for.
    #[doc(hidden)]
    pub fn of_anybody(rule: &str) -> Self {
        Self { reviewer: "".into(), approvals: 1, people: Arc::default(), rule: rule.into() }
    }

    /// Returns whether two lists need the same approvals, whichever rules ask for them.
    pub(super) fn asks_alike(one: &[Self], other: &[Self]) -> bool {
        let whom = |need: &Self| (Arc::clone(&need.reviewer), need.approvals);
        one.iter().map(whom).eq(other.iter().map(whom))
    }
}

/// The grant that the approval of an escalation gives.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Approval {
    /// The capabilities that the approval grants.
    pub granted: Vec<Capability>,
    /// The capabilities that a degrading rule withholds despite the approval.
    pub denied: Vec<Capability>,
    /// Limits on what is granted.
    pub constraints: Constraints,
    /// The amounts that the approved use consumes from limits, including limits that were used up and caused the
    /// escalation.
    #[serde(skip)]
    pub charges: Vec<Charge>,
}

impl PolicyVerdict {
    /// Withholds what the verdict grants until a person approves.
    #[doc(hidden)]
    pub fn withhold(&mut self) {
        let granted = std::mem::take(&mut self.granted);
        let denied = std::mem::take(&mut self.denied);
        self.denied = granted.iter().chain(&denied).cloned().collect();
        self.on_approval = Some(Approval {
            granted,
            denied,
            constraints: std::mem::take(&mut self.constraints),
            charges: std::mem::take(&mut self.charges),
        });
        self.decision = Decision::Escalate;
    }

    /// A DENY verdict that rests on no rule.
    pub fn of_no_rule(required: &[Capability], reasoning: String) -> Self {
        Self {
            decision: Decision::Deny,
            reasoning,
            granted: Vec::new(),
            denied: required.to_vec(),
            constraints: Constraints::new(),
            rules: Arc::default(),
            rules_total: 0,
            reviewer: None,
            needs: Vec::new(),
            expires: Duration::ZERO,
            on_approval: None,
            limits: Vec::new(),
            charges: Vec::new(),
            failures: Vec::new(),
            rewrite: None,
        }
    }

    /// Combines this verdict, on an alternative reading of a request, with `best`, the verdict on the main reading.
    /// Nothing is granted that either of them refuses.
    pub(crate) fn for_reading(mut self, reading: &Capability, best: &Self, required: &[Capability]) -> Self {
        // The reading replaces the primary capability, which is the first.
        let stands_for = |granted: &[Capability], place: usize, one: &Capability| {
            granted.contains(if place == 0 { reading } else { one })
        };
        let parted = |granted: &[Capability], own: &[Capability]| -> (Vec<_>, Vec<_>) {
            let mut both = (Vec::new(), Vec::new());
            for (place, one) in required.iter().enumerate() {
                let list = if stands_for(granted, place, one) && own.contains(one) { &mut both.0 } else { &mut both.1 };
                list.push(one.clone());
            }
            both
        };
        if let Some(approval) = &mut self.on_approval {
            let own = best.on_approval.as_ref().map_or(&best.granted, |approval| &approval.granted);
            (approval.granted, approval.denied) = parted(&approval.granted, own);
        }
        (self.granted, self.denied) = parted(&self.granted, &best.granted);
        self.reasoning = format!(
            "The request is ambiguous: it may mean {reading}, and the stricter reading applies. {}",
            self.reasoning
        );
        self
    }
}

fn as_millis<S: Serializer>(length: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(length.as_millis()).unwrap_or(u64::MAX))
}
