//! Limits that hold for a whole organisation: their uses are taken from it before a decision is recorded.
//!
//! A decision is evaluated as if these limits had room. The uses that its verdict charges are then taken, with no lock
//! held, and it is evaluated again: with the limit used up if they were refused.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;

use crate::governor::Rules;
use crate::model::Share;
use crate::policy::Charge;
use crate::system::Entropy;

/// Access to the limits that the governors of an organisation share.
pub trait SharedLimits: Send + Sync {
    /// Takes all uses or none for a request, whose name is never used again for another. It may block, for at most a
    /// fraction of a second: the decision waits for it.
    fn take(&self, request: &str, uses: &[SharedUse<'_>]) -> Taken;

    /// Returns what [`SharedLimits::take`] got for a request that did not use it in the end. It must not block.
    fn give_back(&self, request: &str);
}

/// A use of a shared limit that a decision asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedUse<'a> {
    /// The name of the counter: `<rule>/<measure>/organisation`.
    pub counter: &'a str,
    /// The amount to take, in millionths.
    pub amount: i64,
    /// The maximum amount within a window, in millionths, by the policies of this governor.
    pub most: i64,
    /// The length of the sliding window.
    pub window: Duration,
    /// The way to obtain uses, by the policies.
    pub share: Share,
}

/// The answer to a request for uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// All uses are taken.
    All,
    /// None is taken: this counter has no room, or did not answer.
    Short {
        /// The name of the counter.
        counter: Box<str>,
    },
}

/// The uses of shared limits that one decision takes. Dropped, it returns what the decision did not charge.
pub(crate) struct Taking<'a> {
    provider: &'a ArcSwapOption<Arc<dyn SharedLimits>>,
    entropy: &'a dyn Entropy,
    /// The limits that `request` took from, as long as the uses are not charged.
    taken: Option<(Arc<dyn SharedLimits>, String, Vec<Charge>)>,
    /// The counters that have no room.
    short: Vec<Box<str>>,
}

impl Taking<'_> {
    /// Returns whether a counter was found to have no room.
    pub(crate) fn is_short(&self, counter: &str) -> bool {
        self.short.iter().any(|short| **short == *counter)
    }

    /// The uses that must be taken before a decision with these charges is recorded, if they are not taken yet.
    pub(crate) fn missing(&self, charges: &[Charge]) -> Option<Vec<Charge>> {
        if charges.iter().all(|charge| charge.share.is_none()) {
            return None;
        }
        let shared: Vec<Charge> = charges.iter().filter(|charge| charge.is_taken()).cloned().collect();
        let is_taken = self.taken.as_ref().is_some_and(|(_, _, taken)| *taken == shared);
        (!shared.is_empty() && !is_taken).then_some(shared)
    }

    /// Takes uses for a decision. Must be called without a lock that another decision needs.
    pub(crate) fn take(&mut self, wanted: Vec<Charge>, request: &str) {
        self.give_back();
        let Some(limits) = self.provider.load_full() else {
            self.short.extend(wanted.into_iter().map(|charge| charge.counter));
            return;
        };
        let request = format!("{request}-{:032x}", self.entropy.bits());
        let uses: Vec<SharedUse<'_>> = wanted.iter().filter_map(used).collect();
        match limits.take(&request, &uses) {
            Taken::All => self.taken = Some((Arc::clone(&limits), request, wanted)),
            // A counter that was not asked for, or was asked for in vain before, would be asked for forever.
            Taken::Short { counter } if wanted.iter().any(|charge| charge.counter == counter) => {
                self.short.push(counter);
            }
            Taken::Short { .. } => self.short.extend(wanted.into_iter().map(|charge| charge.counter)),
        }
    }

    /// Keeps what was taken, if the recorded decision charges it.
    pub(crate) fn charge(&mut self, charges: &[Charge]) {
        if charges.iter().any(Charge::is_taken) {
            self.taken = None;
        }
    }

    fn give_back(&mut self) {
        if let Some((limits, request, _)) = self.taken.take() {
            limits.give_back(&request);
        }
    }
}

impl Drop for Taking<'_> {
    fn drop(&mut self) {
        self.give_back();
    }
}

impl Rules {
    /// Begins to take uses of shared limits for a decision.
    pub(crate) fn taking(&self) -> Taking<'_> {
        Taking { provider: &self.shared, entropy: &*self.base.entropy, taken: None, short: Vec::new() }
    }
}

fn used(charge: &Charge) -> Option<SharedUse<'_>> {
    Some(SharedUse {
        counter: &charge.counter,
        amount: charge.amount,
        most: charge.most,
        window: Duration::from_millis(charge.window.unsigned_abs()),
        share: charge.share?,
    })
}
