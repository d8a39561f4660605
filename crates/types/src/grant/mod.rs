//! Grants: permissions to carry out one decision, which enforce their own constraints.
//!
//! The governor attaches a [`GrantSource`] to an [`Enforcement`](super::Enforcement) on ALLOW and DEGRADE. The source
//! holds the decision apart from the public fields, so an enforcement that was read from JSON or modified grants
//! nothing more. The constraints are parsed when the grant is made, not at the decision.

mod error;

use std::fmt;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value;
use smallvec::SmallVec;

pub use error::GrantError;

use super::{AgentId, Capability, Constraints, Decision, ProofId, Timestamp, excerpt};

/// The permission to carry out one decided action.
///
/// Code that acts for an agent takes a grant as an argument, so it cannot be called without a decision: only
/// [`Enforcement::grant`](crate::Enforcement::grant) and `Governor::guard` create one, and it
/// cannot be cloned.
///
/// Every method that checks or consumes something fails once the grant has ended: after `timeoutMs` or `expiresAt`, or
/// five minutes after the decision if neither is set; after a guard reported the outcome; and while a kill switch stops
/// the agent, or it is suspended or retired.
///
/// ```
/// use rulekeep::grant::{Grant, GrantError};
/// use rulekeep::{Agent, Governor, PolicySet, Tier};
///
/// fn delete_rows(grant: &Grant, table: &str, rows: u64) -> Result<(), GrantError> {
///     grant.check_target(table)?;
///     grant.take_records(rows)
///     // ... and only then delete them.
/// }
///
/// let policies = PolicySet::from_toml(
///     r#"
///     name = "cleaning"
///     [[rule]]
///     id = "drafts"
///     effect = "allow"
///     constraints = { maxRecords = 10, allowedTargets = ["drafts"] }
///     "#,
/// )?;
/// let governor = Governor::builder().policies(policies).open_in_memory()?;
/// governor.agents().register(Agent::new("cleaner").at_tier(Tier::T4))?;
/// let verdict = governor.enforce_input("cleaner", "Delete old drafts")?.enforcement;
/// let grant = verdict.grant()?;
/// delete_rows(&grant, "drafts", 8)?;
/// assert!(matches!(delete_rows(&grant, "drafts", 3), Err(GrantError::Records { left: 2, .. })));
/// assert!(matches!(delete_rows(&grant, "letters", 1), Err(GrantError::Target { .. })));
/// assert!(matches!(verdict.grant(), Err(GrantError::UsedUp { .. })), "once, unless maxUses says otherwise");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "a grant that is dropped is used"]
pub struct Grant {
    terms: GrantTerms,
}

impl Grant {
    /// The proof record of the decision, for reporting the outcome.
    pub fn proof_id(&self) -> ProofId {
        self.terms.issued.origin.proof_id
    }

    /// The agent that may act.
    pub fn agent_id(&self) -> &AgentId {
        &self.terms.issued.agent
    }

    /// The granted capabilities; after a DEGRADE only some of the requested ones.
    pub fn granted_capabilities(&self) -> &[Capability] {
        &self.terms.issued.granted
    }

    /// The constraints of the decision. The caller must enforce those that have no method here.
    pub fn constraints(&self) -> &Constraints {
        &self.terms.issued.constraints
    }

    /// The time the grant ends: the earlier of `expiresAt` and `timeoutMs` after the grant was made. If neither is set,
    /// five minutes after the decision.
    pub fn ends_at(&self) -> Timestamp {
        let GrantTerms { issued, limits, begun_at, .. } = &self.terms;
        let timeout = limits.timeout.map(|timeout| after(*begun_at, timeout));
        let ends = timeout.into_iter().chain(limits.expires_at).min();
        ends.unwrap_or_else(|| issued.default_end())
    }

    /// Checks that the grant has not ended. Call it from time to time during long work.
    ///
    /// # Errors
    ///
    /// [`GrantError::Expired`], [`GrantError::Overdue`], [`GrantError::Ended`], [`GrantError::Barred`] or
    /// [`GrantError::GovernorGone`] when the grant has ended.
    pub fn check(&self) -> Result<(), GrantError> {
        self.holding().map(drop)
    }

    /// Checks that a capability was granted.
    ///
    /// # Errors
    ///
    /// [`GrantError::Capability`] for a capability that was not granted, and the errors of [`Grant::check`].
    pub fn check_capability(&self, capability: &str) -> Result<(), GrantError> {
        self.check()?;
        if self.granted_capabilities().iter().any(|granted| granted.as_str() == capability) {
            return Ok(());
        }
        Err(GrantError::Capability { capability: excerpt(capability) })
    }

    /// Checks a target against `allowedTargets`, by [`Constraints::allows_target`].
    ///
    /// # Errors
    ///
    /// [`GrantError::Target`] for a target that is not allowed, and the errors of [`Grant::check`].
    pub fn check_target(&self, target: &str) -> Result<(), GrantError> {
        self.check()?;
        if self.constraints().allows_target(target) {
            return Ok(());
        }
        Err(GrantError::Target { target: excerpt(target) })
    }

    /// Consumes `records` of `maxRecords`; call it before touching them. All uses of one decision share the limit. If
    /// too few are left, nothing is consumed.
    ///
    /// # Errors
    ///
    /// [`GrantError::Records`] when too few are left, and the errors of [`Grant::check`].
    pub fn take_records(&self, records: u64) -> Result<(), GrantError> {
        let mut spent = self.holding()?;
        let Some(most) = self.terms.limits.records else { return Ok(()) };
        let left = most.saturating_sub(spent.records);
        if records > left {
            return Err(GrantError::Records { asked: records, most, left });
        }
        spent.records += records;
        Ok(())
    }

    /// Consumes `amount` of `maxAmount`, in the currency that the policy means; call it before moving the money. All
    /// uses of one decision share the limit. If too little is left, nothing is consumed.
    ///
    /// # Errors
    ///
    /// [`GrantError::InvalidAmount`] for an amount that is negative or not finite, also without `maxAmount`;
    /// [`GrantError::Amount`] when too little is left; and the errors of [`Grant::check`].
    pub fn take_amount(&self, amount: f64) -> Result<(), GrantError> {
        let mut spent = self.holding()?;
        if !(amount.is_finite() && amount >= 0.0) {
            return Err(GrantError::InvalidAmount { amount });
        }
        let Some(most) = self.terms.limits.amount else { return Ok(()) };
        let sum = spent.amount + amount;
        // 0.1 + 0.2 is slightly more than 0.3 in binary floating point.
        if sum > most + most * SLACK {
            return Err(GrantError::Amount { asked: amount, most, left: (most - spent.amount).max(0.0) });
        }
        spent.amount = sum;
        Ok(())
    }

    /// The terms that a guard keeps while the work holds the grant.
    pub fn terms(&self) -> GrantTerms {
        self.terms.clone()
    }

    /// The amounts consumed so far; fails if the grant has ended.
    fn holding(&self) -> Result<MutexGuard<'_, Spent>, GrantError> {
        let authority = self.terms.issued.authority()?;
        self.terms.check_time(&*authority)?;
        self.terms.issued.check_agent(&*authority)?;
        let spent = self.terms.issued.spent();
        if spent.has_ended { Err(GrantError::Ended) } else { Ok(spent) }
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Grant");
        shown.field("proof_id", &self.proof_id()).field("agent_id", &self.agent_id());
        shown.field("constraints", self.constraints()).finish_non_exhaustive()
    }
}

/// The governor, as seen by grants.
pub trait GrantAuthority: Send + Sync {
    /// The governor's current time.
    fn now(&self) -> Timestamp;
    /// A monotonic clock, measured from an arbitrary moment.
    fn monotonic(&self) -> Duration;
    /// The reason the agent may not act on a grant, if any; `is_low_read` as in [`GrantOrigin`].
    fn barred(&self, agent: &AgentId, is_low_read: bool) -> Option<String>;
}

/// The decision that a grant rests on.
#[derive(Clone, Copy)]
#[allow(missing_docs)] // engines exchange it; the names say it
pub struct GrantOrigin {
    pub at: Timestamp,
    pub proof_id: ProofId,
    /// True for a LOW-risk read, whose grant also lasts through an offline term.
    pub is_low_read: bool,
    /// Number of operators' interventions that the decision took into account.
    pub interventions: u64,
}

/// The hidden part of an enforcement from which grants are made. It is ignored by equality and not serialized.
#[derive(Clone, Default)]
pub struct GrantSource(Option<Arc<Issued>>);

impl GrantSource {
    /// Creates the source for a decision.
    pub fn new(
        authority: Weak<dyn GrantAuthority>,
        origin: GrantOrigin,
        agent: &AgentId,
        granted: &[Capability],
        constraints: &Constraints,
    ) -> Self {
        Self(Some(Arc::new(Issued {
            authority,
            origin,
            agent: agent.clone(),
            granted: granted.iter().cloned().collect(),
            constraints: constraints.clone(),
            spent: Mutex::default(),
        })))
    }

    /// The agent that may act and the decision; `None` if nothing is granted.
    pub fn origin(&self) -> Option<(&AgentId, &GrantOrigin)> {
        self.0.as_deref().map(|issued| (&issued.agent, &issued.origin))
    }

    /// Consumes one use and creates a grant. `decision` only serves the error message.
    pub(crate) fn grant(&self, decision: Decision) -> Result<Grant, GrantError> {
        let Some(issued) = &self.0 else {
            return Err(match decision {
                Decision::Allow | Decision::Degrade => GrantError::NotIssued,
                Decision::Deny | Decision::Escalate => GrantError::NotGranted { decision },
            });
        };
        let limits = Limits::read(&issued.constraints)?;
        let authority = issued.authority()?;
        issued.check_agent(&*authority)?;
        let (begun_at, begun) = (authority.now(), authority.monotonic());
        if limits.expires_at.is_none() && begun_at >= issued.default_end() {
            return Err(GrantError::Expired { at: issued.default_end() });
        }
        let terms = GrantTerms { issued: Arc::clone(issued), limits, begun_at, begun };
        terms.check_deadline(&*authority)?;
        let mut spent = issued.spent();
        if spent.has_ended {
            return Err(GrantError::Ended);
        }
        if spent.uses >= limits.uses {
            return Err(GrantError::UsedUp { most: limits.uses });
        }
        spent.uses += 1;
        drop(spent);
        Ok(Grant { terms })
    }
}

impl PartialEq for GrantSource {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for GrantSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "issued" } else { "none" })
    }
}

// A panic cannot leave the locked state inconsistent.
impl UnwindSafe for GrantSource {}
impl RefUnwindSafe for GrantSource {}

/// A grant without the right to use it: it can check the deadline and end the grant.
#[derive(Clone)]
pub struct GrantTerms {
    issued: Arc<Issued>,
    limits: Limits,
    begun_at: Timestamp,
    begun: Duration,
}

impl GrantTerms {
    /// Fails after `timeoutMs` or `expiresAt`. Work without these constraints may take any time.
    pub fn check_work(&self) -> Result<(), GrantError> {
        self.check_deadline(&*self.issued.authority()?)
    }

    /// Ends the grant and every other use of the same decision.
    pub fn end(&self) {
        self.issued.spent().has_ended = true;
    }

    fn check_time(&self, authority: &dyn GrantAuthority) -> Result<(), GrantError> {
        self.check_deadline(authority)?;
        let is_limited = self.limits.timeout.is_some() || self.limits.expires_at.is_some();
        if !is_limited && authority.now() >= self.issued.default_end() {
            return Err(GrantError::Expired { at: self.issued.default_end() });
        }
        Ok(())
    }

    fn check_deadline(&self, authority: &dyn GrantAuthority) -> Result<(), GrantError> {
        let now = authority.now();
        if let Some(timeout) = self.limits.timeout {
            let shown = now.as_millis().saturating_sub(self.begun_at.as_millis());
            let shown = Duration::from_millis(u64::try_from(shown).unwrap_or(0));
            // The larger of wall-clock and monotonic time counts, so setting the clock back does not extend the work.
            if shown.max(authority.monotonic().saturating_sub(self.begun)) >= timeout {
                return Err(GrantError::Overdue { timeout });
            }
        }
        match self.limits.expires_at {
            Some(at) if now >= at => Err(GrantError::Expired { at }),
            _ => Ok(()),
        }
    }
}

/// A decision that grants something, shared by the clones of an enforcement and by its grants.
struct Issued {
    /// A weak reference, so an enforcement does not keep the governor open.
    authority: Weak<dyn GrantAuthority>,
    origin: GrantOrigin,
    agent: AgentId,
    /// Inline, because nearly every decision grants one capability.
    granted: SmallVec<[Capability; 1]>,
    constraints: Constraints,
    // Held only to consume something; no other lock is taken while it is held.
    spent: Mutex<Spent>,
}

/// The uses, records and amount consumed so far.
#[derive(Default)]
struct Spent {
    uses: u64,
    records: u64,
    amount: f64,
    has_ended: bool,
}

impl Issued {
    fn authority(&self) -> Result<Arc<dyn GrantAuthority>, GrantError> {
        self.authority.upgrade().ok_or(GrantError::GovernorGone)
    }

    fn check_agent(&self, authority: &dyn GrantAuthority) -> Result<(), GrantError> {
        authority
            .barred(&self.agent, self.origin.is_low_read)
            .map_or(Ok(()), |reason| Err(GrantError::Barred { reason }))
    }

    fn default_end(&self) -> Timestamp {
        after(self.origin.at, DEFAULT_LIFETIME)
    }

    fn spent(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The parsed constraints that a grant enforces.
#[derive(Clone, Copy)]
struct Limits {
    uses: u64,
    records: Option<u64>,
    amount: Option<f64>,
    timeout: Option<Duration>,
    expires_at: Option<Timestamp>,
}

impl Limits {
    fn read(constraints: &Constraints) -> Result<Self, GrantError> {
        const WHOLE: &str = "a whole number from 0";
        let amount = |value: &Value| value.as_f64().filter(|amount| amount.is_finite() && *amount >= 0.0);
        let time = |value: &Value| value.as_str()?.parse().ok();
        let texts = |value: &Value| value.as_array()?.iter().all(Value::is_string).then_some(());
        read(constraints, "allowedTargets", "a list of strings", texts)?;
        Ok(Self {
            uses: read(constraints, "maxUses", WHOLE, Value::as_u64)?.unwrap_or(1),
            records: read(constraints, "maxRecords", WHOLE, Value::as_u64)?,
            amount: read(constraints, "maxAmount", "a number from 0", amount)?,
            timeout: read(constraints, "timeoutMs", WHOLE, Value::as_u64)?.map(Duration::from_millis),
            expires_at: read(constraints, "expiresAt", "a timestamp with an offset", time)?,
        })
    }
}

fn read<T>(
    constraints: &Constraints,
    key: &'static str,
    expected: &'static str,
    read: impl FnOnce(&Value) -> Option<T>,
) -> Result<Option<T>, GrantError> {
    let malformed = |value: &Value| GrantError::Malformed { key, found: excerpt(&value.to_string()), expected };
    constraints.get(key).map(|value| read(value).ok_or_else(|| malformed(value))).transpose()
}

fn after(at: Timestamp, duration: Duration) -> Timestamp {
    let millis = i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(at.as_millis().saturating_add(millis))
}

/// Lifetime of a grant, from the decision, without `timeoutMs` and `expiresAt`.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(5 * 60);
/// Relative tolerance for a sum of amounts.
const SLACK: f64 = 1e-12;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_constraint_of_a_wrong_form_grants_nothing() {
        for (key, values) in [
            ("maxUses", vec![json!(null), json!("3"), json!(-1), json!(1.5)]),
            ("maxRecords", vec![json!(null), json!([10]), json!(0.5)]),
            ("timeoutMs", vec![json!(null), json!("1s"), json!(-1)]),
            ("maxAmount", vec![json!(null), json!("10"), json!(-0.1)]),
            ("allowedTargets", vec![json!(null), json!("a"), json!(["a", 1]), json!({})]),
            ("expiresAt", vec![json!(null), json!("soon"), json!(0)]),
        ] {
            for value in values {
                let mut constraints = Constraints::new();
                constraints.insert(key, value.clone());
                let refused = Limits::read(&constraints).err();
                let is_told = |error| matches!(&error, GrantError::Malformed { key: told, .. } if *told == key);
                assert!(refused.clone().is_some_and(is_told), "{key} {value}: {refused:?}");
            }
        }
        let mut good = Constraints::new();
        good.insert("region", json!(null));
        assert!(Limits::read(&good).is_ok_and(|limits| limits.uses == 1), "a key of one's own is the caller's to read");
    }
}
