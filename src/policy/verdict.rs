//! What a policy set decided.

use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::limit::{Charge, LimitUse};
use crate::model::{Capability, Constraints, Decision};

/// What a policy set decided.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PolicyVerdict {
    /// What was decided.
    pub decision: Decision,
    /// One line for people: the rules that decided, and the lawful way on.
    pub reasoning: String,
    // INVARIANT: `granted` and `denied` part the required capabilities, in their order.
    /// What is granted.
    pub granted: Vec<Capability>,
    /// What is refused.
    pub denied: Vec<Capability>,
    /// Limits on what is granted; empty when nothing is.
    pub constraints: Constraints,
    /// The ids of the rules that decided, in the order of the document, the first eight.
    pub rules: Arc<[Arc<str>]>,
    /// How many rules decided in all.
    pub rules_total: usize,
    /// Whom an escalation goes to, of several the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<Arc<str>>,
    /// All who have to agree to an escalation, each once, in the order of the document.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<Need>,
    /// How long they have to answer: the least that the deciding rules say; zero but for an escalation. Written in
    /// milliseconds.
    #[serde(rename = "expiresMs", skip_serializing_if = "Duration::is_zero", serialize_with = "as_millis")]
    pub expires: Duration,
    /// What an approval would grant; only of an escalation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_approval: Option<Approval>,
    /// How the limits stand that the deciding rules have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<LimitUse>,
    /// What the decision uses of them.
    #[serde(skip)]
    pub(crate) charges: Vec<Charge>,
    /// Conditions that failed, and made no difference.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<ConditionFailure>,
}

/// A condition that could not be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ConditionFailure {
    /// The rule's id.
    pub rule: Arc<str>,
    /// Where the rule stands: `policies.toml:12`, or `line 12` of the only document.
    pub place: Box<str>,
    /// Which of its conditions, and why; nothing of the context stands in it.
    pub message: String,
}

/// Somebody who has to agree to an escalation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Need {
    /// Whom the rules ask: a name that stands for people, or one person's.
    pub reviewer: Arc<str>,
    /// How many different people have to agree.
    pub approvals: u8,
    /// The people who may answer; empty where the policy lists none, and the name is itself the only person.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub people: Arc<[Arc<str>]>,
    /// The rule that asks; of several that ask the same, the first that asks for so many.
    pub rule: Arc<str>,
}

impl Need {
    /// Whether the same people have to agree, whichever rules ask them.
    pub(super) fn asks_alike(one: &[Self], other: &[Self]) -> bool {
        let whom = |need: &Self| (Arc::clone(&need.reviewer), need.approvals);
        one.iter().map(whom).eq(other.iter().map(whom))
    }
}

/// What a person's approval of an escalation grants.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Approval {
    /// What it grants.
    pub granted: Vec<Capability>,
    /// What a degrading rule withholds all the same.
    pub denied: Vec<Capability>,
    /// Limits on what it grants.
    pub constraints: Constraints,
    /// What the approved use takes of limits, those that were used up and had a person asked among them.
    #[serde(skip)]
    pub(crate) charges: Vec<Charge>,
}

impl PolicyVerdict {
    /// A verdict that no rule has a part in.
    pub(crate) fn of_no_rule(required: &[Capability], reasoning: String) -> Self {
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
        }
    }

    /// A verdict on another reading of a request, as one on what the request was read as: `best` is the verdict on that.
    /// Nothing is granted that either refuses.
    pub(crate) fn for_reading(mut self, reading: &Capability, best: &Self, required: &[Capability]) -> Self {
        // The reading stands for the primary capability, which is the first.
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
            "The request is not plain: it may mean {reading}, and the stricter reading counts. {}",
            self.reasoning
        );
        self
    }
}

fn as_millis<S: Serializer>(length: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(length.as_millis()).unwrap_or(u64::MAX))
}
