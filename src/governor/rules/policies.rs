//! The policy set in force, now and after a restart.

use std::sync::{Arc, Mutex};

use arc_swap::{ArcSwap, ArcSwapOption, Guard};
use serde::{Deserialize, Serialize};

use crate::governor::keys::{self, Keyed as _};
use crate::governor::rules::shadow::Shadow;
use crate::governor::{Hold as _, Inner, Rules, states};
use crate::model::{Digest, Error, Sequence};
use crate::policy::{PolicyFormat, PolicySet, PolicySource};
use crate::proof::StateDraft;

/// The policy set in force and the shadow set.
pub(crate) struct PolicySets {
    /// The set in force. Read without a lock; swapped under `turn`.
    in_force: ArcSwap<PolicySet>,
    /// The shadow set, if there is one.
    pub(crate) shadow: ArcSwapOption<Shadow>,
    // Held to swap the set, so that the journal's order is the order of swaps.
    pub(crate) turn: Mutex<()>,
}

impl PolicySets {
    pub(crate) fn new(set: PolicySet) -> Self {
        Self { in_force: ArcSwap::from_pointee(set), shadow: ArcSwapOption::empty(), turn: Mutex::new(()) }
    }

    /// The set in force.
    pub(crate) fn load(&self) -> Guard<Arc<PolicySet>> {
        self.in_force.load()
    }

    pub(crate) fn load_full(&self) -> Arc<PolicySet> {
        self.in_force.load_full()
    }
}

/// The set in force, as the journal stores it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PolicyState {
    name: String,
    digest: Digest,
    /// Digest of the whole documents, including parts that no decision depends on; absent in states of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<Digest>,
    format: PolicyFormat,
    text: String,
    /// The documents layered over the first one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    later: Vec<PolicySource>,
    /// True for the recommended set; a later version of the library then uses its own.
    recommended: bool,
}

impl PolicyState {
    /// Chooses the set to put in force, and whether it must be recorded.
    pub(crate) fn choose(asked: Option<PolicySet>, recorded: Option<Self>) -> Result<(PolicySet, bool), Error> {
        let set = match (asked, &recorded) {
            (Some(asked), _) => asked,
            (None, Some(recorded)) if !recorded.recommended => PolicySet::of(recorded.documents())?,
            (None, _) => PolicySet::recommended()?,
        };
        let is_same = |recorded: Self| recorded.digest == set.digest() && recorded.content == Some(set.content());
        let is_new = !recorded.is_some_and(is_same);
        Ok((set, is_new))
    }

    pub(crate) fn of(set: &PolicySet) -> Result<Self, Error> {
        // A set with the recommended rules but other alerts counts as different.
        let recommended = PolicySet::recommended()?.content() == set.content();
        let Some((base, later)) = set.documents().split_first() else {
            return Err(Error::internal("a policy set without a document"));
        };
        let PolicySource { name, format, text } = base.clone();
        Ok(Self {
            name,
            digest: set.digest(),
            content: Some(set.content()),
            format,
            text,
            later: later.to_vec(),
            recommended,
        })
    }

    pub(crate) fn draft(&self) -> Result<StateDraft, Error> {
        states::draft(keys::Policies::PREFIX, self)
    }

    fn documents(&self) -> Vec<PolicySource> {
        let base = PolicySource { name: self.name.clone(), format: self.format, text: self.text.clone() };
        std::iter::once(base).chain(self.later.iter().cloned()).collect()
    }
}

/// The policy sets of a governor, see [`Governor::policies`](crate::Governor::policies).
#[derive(Debug, Clone, Copy)]
pub struct Policies<'a> {
    pub(crate) inner: &'a Arc<Inner>,
}

impl Policies<'_> {
    /// Returns the policy set in force.
    pub fn current(self) -> PolicySet {
        PolicySet::clone(&self.inner.rules.policies.load())
    }

    /// Puts a policy set in force for every decision that starts afterwards, also after a restart. Decisions in flight
    /// finish with the previous set.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when the change cannot be recorded; the previous set
    /// then stays in force.
    pub fn load(self, set: PolicySet) -> Result<(), Error> {
        self.inner.here()?.base.log.wait_verified()?;
        let turn = self.inner.rules.policies.turn.hold();
        let sequence = self.inner.rules.order_policies(&set, "loaded by an operator")?;
        self.inner.rules.policies.in_force.store(Arc::new(set));
        self.inner.roster.stops.interventions().note_change();
        self.inner.approvals.bind_pre_approvals(&self.inner.rules.policies.load());
        drop(turn);
        self.inner.base.log.settle(sequence)?;
        self.inner.alerting.follow_alerts()
    }
}

impl Rules {
    pub(crate) fn order_policies(&self, set: &PolicySet, cause: &str) -> Result<Sequence, Error> {
        self.base.set_state(PolicyState::of(set)?.draft()?, cause)
    }
}
