//! The thread that beats: it fetches permits and orders, carries orders out, and anchors the log.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use rulekeep::Governor;
use rulekeep::checkpoint::Checkpoint;
use rulekeep::extension::{Extension, Permit, Wait};
use rulekeep::system::{Entropy as _, SystemEntropy, Timestamp};

use super::{LEAST, MemberError, Shared};
use crate::budget::Return;
use crate::log::Head;
use crate::permit::{Deadlines, Moment};
use crate::session::Task;
use crate::wire::{Anchor, Answer, MAX_RETURNED};

impl Shared {
    /// Beats until the membership or the governor ends.
    pub(super) fn beat_until_it_ends(&self) {
        let (mut longest, mut failures, mut anchored) = (Duration::ZERO, 0, None);
        loop {
            let Some(governor) = self.governor.upgrade() else { return };
            if self.state().is_leaving {
                return;
            }
            let known = self.state().session.chain().seq();
            let result = self.beat(&governor, longest, &mut anchored);
            drop(governor);
            let mut state = self.state();
            let has_news = state.session.chain().seq() > known;
            // What a hub asks for is sent at once. After a failure the permit is older than it should be.
            let is_asked = state.session.must_show() || state.session.must_report().is_some();
            let is_calm = !is_asked && state.is_permitted && result.is_ok();
            longest = if is_calm { self.settings.wait } else { Duration::ZERO };
            failures = if result.is_ok() { 0 } else { failures + 1 };
            state.problem = result.err();
            self.changed.notify_all();
            let pause = match (failures, state.is_permitted) {
                // An order reaches all members at once; their acknowledgments must not stand in the way of those behind.
                (0, true) if has_news => spread(ACKNOWLEDGE_WITHIN),
                (0, true) => continue,
                (0, false) if has_news || state.session.must_show() => continue,
                (0, false) => Duration::from_secs(1),
                (failures, _) => back_off(failures),
            };
            drop(self.changed.wait_timeout_while(state, pause, |state| !state.is_leaving));
        }
    }

    /// One beat, which a hub may hold for the longest time given, and what follows from its answer.
    fn beat(&self, governor: &Governor, longest: Duration, anchored: &mut Option<Instant>) -> Result<(), String> {
        let moment = now(governor);
        let (wait, patience) = self.state().session.patience(moment, longest);
        let (number, mut beat) = self.state().session.beat(moment, wait);
        let (must_show, must_report, is_shown) = {
            let state = self.state();
            (state.session.must_show(), state.session.must_report(), state.session.is_shown())
        };
        if is_shown {
            // Without it the governor hears of orders all the same.
            beat.log = Extension::of(governor).tree_head().map(|(size, root)| Head { size, root }).ok();
        }
        let is_due = anchored.is_none_or(|at: Instant| at.elapsed() >= self.settings.anchor_every);
        if must_show || (is_due && anchored.is_some()) {
            beat.anchor = Some(self.anchor(governor)?);
        }
        beat.open = open_actions(governor);
        beat.returned = self.returning(moment);
        beat.report = must_report.map(|epoch| self.purse().report(epoch));
        let sent = Instant::now();
        let answer: Result<Answer, MemberError> = self.link.call(&self.key, "/fleet/v1/beat", &beat, wait + patience);
        self.state().session.took(sent.elapsed().saturating_sub(wait));
        let answer = answer.map_err(|error| error.to_string())?;
        if answer.is_taken {
            self.purse().confirmed(&beat.returned);
        }
        if beat.anchor.is_some() || anchored.is_none() {
            *anchored = Some(Instant::now());
        }
        let tasks = self.state().session.answered(number, &answer, Extension::of(governor).clock().now());
        let mut refused = None;
        for task in tasks {
            let withheld = self.state().session.withheld(now(governor));
            let task = match (task, withheld) {
                (Task::Permit(_), Some(why)) => Task::Refused(why),
                (task, _) => task,
            };
            let result = self.carry_out(governor, &task);
            if let Task::Refused(why) = &task {
                refused = Some(why.clone());
            }
            let mut state = self.state();
            state.session.done(&task, result, now(governor));
            state.is_permitted = match task {
                Task::Permit(_) => true,
                Task::Refused(_) => false,
                _ => state.is_permitted,
            };
        }
        self.remember_order(governor)?;
        refused.map_or(Ok(()), Err)
    }

    fn carry_out(&self, governor: &Governor, task: &Task) -> Result<(), String> {
        let extension = Extension::of(governor);
        let told = |error: rulekeep::Error| error.message();
        match task {
            Task::Stop(order, stop) => {
                let by: String = format!("{ORDER}{order} by {}", stop.by).chars().take(MAX_BY_CHARS).collect();
                let set = extension.set_kill_switch(stop.scope.clone(), &by, &stop.note);
                // After most errors it is in force, and is set again after a restart.
                if orders_of_stops(governor).contains(order) { Ok(()) } else { set.map(drop).map_err(told) }
            }
            Task::Lift(order) => {
                for stop in governor.kill_switch().list() {
                    if order_of(&stop.by) == Some(*order) {
                        extension.lift_kill_switch(&stop.id, "order", "").map_err(told)?;
                    }
                }
                Ok(())
            }
            Task::Enforce(order) => {
                let set = self.document(*order)?;
                if governor.policies().current().digest() == set.digest() {
                    Ok(())
                } else {
                    governor.policies().load(set).map_err(told)
                }
            }
            Task::Shadow(order) => {
                governor.policies().shadow(order.map(|order| self.document(order)).transpose()?);
                Ok(())
            }
            Task::Revoke(keys) => {
                if let Some(callback) = &self.settings.revoked {
                    callback(keys);
                }
                Ok(())
            }
            Task::Recall(leases) => {
                let mut purse = self.purse();
                for lease in leases {
                    purse.recall(*lease);
                }
                Ok(())
            }
            Task::Permit(deadlines) => {
                extension.grant_permit(permit(deadlines));
                Ok(())
            }
            Task::Refused(_) => {
                extension.revoke_permit();
                Ok(())
            }
        }
    }

    /// The policy set of a `policies` order.
    fn document(&self, order: u64) -> Result<rulekeep::PolicySet, String> {
        let state = self.state();
        let rollout = state.session.chain().rollouts().get(&order).ok_or("there is no such order")?;
        rollout.order.set().map_err(|error| error.to_string())
    }

    /// A checkpoint of the log, with the proofs that it continues what the hub knows.
    fn anchor(&self, governor: &Governor) -> Result<Anchor, String> {
        let told = |error: rulekeep::Error| error.message();
        let (anchored, continues) = {
            let state = self.state();
            (state.session.anchored(), state.session.continues())
        };
        let (size, root) = Extension::of(governor).tree_head().map_err(told)?;
        let note = Checkpoint::new(self.key.name(), size, root).and_then(|checkpoint| checkpoint.sign(&self.key));
        let note = note.map_err(|error| error.to_string())?;
        let proof = |since: u64| {
            let is_longer = since > 0 && since < size;
            is_longer.then(|| governor.log().prove_consistency(since, size)).transpose().map_err(told)
        };
        Ok(Anchor { note, proof: proof(anchored)?, continues: proof(continues.unwrap_or(0))? })
    }

    /// Remembers the order in force, so that a restart does not accept an older one.
    fn remember_order(&self, governor: &Governor) -> Result<(), String> {
        let (seq, head) = {
            let state = self.state();
            (state.session.chain().seq(), state.session.chain().head())
        };
        let value = serde_json::to_string(&(seq, head)).unwrap_or_default();
        let extension = Extension::of(governor);
        let kept = extension.states(&[LEAST]).into_iter().next();
        let known: u64 = kept
            .and_then(|(_, value)| serde_json::from_str::<(u64, rulekeep::proof::Digest)>(&value).ok())
            .map_or(0, |kept| kept.0);
        if seq <= known {
            return Ok(());
        }
        let cause = format!("order {seq} of the organisation is in force");
        extension.keep(LEAST.to_owned(), value, &cause, Wait::Committed).map_err(|error| error.message())
    }

    /// What to give back with a beat. The rest goes with the next ones; after the last it counts as spent.
    fn returning(&self, moment: Moment) -> Vec<Return> {
        let mut returned = self.purse().returning(moment);
        returned.truncate(MAX_RETURNED);
        returned
    }

    /// Gives leases back and anchors the log a last time.
    pub(super) fn say_goodbye(&self, governor: &Governor) -> Result<(), MemberError> {
        let moment = now(governor);
        let (_, mut beat) = self.state().session.beat(moment, Duration::ZERO);
        beat.anchor = Some(self.anchor(governor).map_err(MemberError::Settings)?);
        self.purse().close();
        (beat.is_leaving, beat.returned) = (true, self.returning(moment));
        let answer: Answer = self.link.call(&self.key, "/fleet/v1/beat", &beat, GOODBYE_TIMEOUT)?;
        match answer.refused {
            Some(why) => Err(MemberError::Refused(why)),
            None if !answer.is_taken => Err(MemberError::Refused("it does not know this run".to_owned())),
            None => Ok(()),
        }
    }
}

/// The orders whose kill switches are set at a governor.
pub(super) fn orders_of_stops(governor: &Governor) -> BTreeSet<u64> {
    governor.kill_switch().list().iter().filter_map(|stop| order_of(&stop.by)).collect()
}

/// Number of open actions of agents that the organisation has stopped.
fn open_actions(governor: &Governor) -> u64 {
    let stops = governor.kill_switch().list().into_iter().filter(|stop| order_of(&stop.by).is_some());
    let open = |scope| governor.kill_switch().open_actions(&scope, 1, 1).map_or(0, |page| page.total);
    stops.map(|stop| open(stop.scope)).max().unwrap_or(0)
}

/// The order that a kill switch of the organisation belongs to.
fn order_of(by: &str) -> Option<u64> {
    by.strip_prefix("organisation/")?.strip_prefix(ORDER)?.split(' ').next()?.parse().ok()
}

/// The present moment on both clocks.
pub(super) fn now(governor: &Governor) -> Moment {
    let extension = Extension::of(governor);
    Moment { boot: extension.clock().since_boot().unwrap_or_default(), wall_ms: extension.clock().now().as_millis() }
}

fn permit(deadlines: &Deadlines) -> Permit {
    let at = Timestamp::from_millis;
    Permit {
        until: deadlines.until,
        offline_until: deadlines.offline_until,
        wall_until: at(deadlines.wall_until_ms),
        offline_wall_until: at(deadlines.offline_wall_until_ms),
    }
}

/// The pause after some failures in a row: it doubles up to 5 s, and is spread so that members do not come back at once.
fn back_off(failures: u32) -> Duration {
    let most = Duration::from_millis(100).saturating_mul(1 << failures.min(6)).min(Duration::from_secs(5));
    most / 2 + spread(most / 2)
}

/// A random part of a time.
fn spread(most: Duration) -> Duration {
    most.mul_f64(f64::from(u16::try_from(SystemEntropy.bits() & 0xffff).unwrap_or(0)) / f64::from(u16::MAX))
}

/// The time within which a member acknowledges an order.
const ACKNOWLEDGE_WITHIN: Duration = Duration::from_secs(1);
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(5);
const ORDER: &str = "order ";
/// The longest name that a governor takes for whoever sets a kill switch.
const MAX_BY_CHARS: usize = 256;
