//! Orders of the organisation: one numbered, hash-linked chain, signed by its operators.
//!
//! An order changes something for the members of a fleet: policies, kill switches, limits, keys, membership. Hubs store
//! and pass on orders; they cannot make, change or reorder them, because each order names the digest of the one before
//! it and every member verifies the signatures. A member trusts the digest of the first order, which names the
//! operators and how many of them must sign.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rulekeep::checkpoint::{CheckpointKey, VerifierKey};
use rulekeep::kill_switch::KillSwitchScope;
use rulekeep::policy::PolicyFormat;
use rulekeep::proof::Digest;
use rulekeep::system::Timestamp;
use rulekeep::{Error, PolicySet};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::keys;

/// An order, as operators sign it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Order {
    /// The position in the chain, from 1.
    pub seq: u64,
    /// The digest of the order before it; [`Digest::ZERO`] for the first.
    pub prev: Digest,
    /// The time at which it was written.
    pub at: Timestamp,
    /// The change that it orders.
    pub command: Command,
}

/// The change that an order makes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub enum Command {
    /// Founds the organisation, or changes its operators.
    Organisation(Organisation),
    /// Puts a policy document in force, in stages.
    Policies(Policies),
    /// Moves the rollout of a `policies` order to a stage without waiting for the stages before it.
    Skip {
        /// The `policies` order.
        order: u64,
        /// The index of the stage, from 0; messages count from 1.
        stage: usize,
    },
    /// Sets a kill switch.
    Stop {
        /// The agents that it stops.
        scope: KillSwitchScope,
        /// The groups of governors that it binds; empty for all.
        groups: Vec<String>,
        /// The reason.
        note: String,
    },
    /// Lifts the kill switch of an earlier order.
    Lift {
        /// The `stop` order.
        order: u64,
        /// The reason.
        note: String,
    },
    /// Sets the maximum of a limit that policies name, in millionths. It replaces the policies' own.
    Limit {
        /// The counter's name: `<rule>/<measure>/organisation`.
        counter: String,
        /// The largest sum within the window, in millionths.
        max: i64,
    },
    /// Lets the governors of a group decide on LOW-risk reads for some time after their permit has ended.
    Offline {
        /// The group.
        group: String,
        /// The time after the permit, in seconds; 0 ends the rule.
        seconds: u64,
    },
    /// Revokes API keys, by their ids.
    RevokeKeys {
        /// Ids such as `key_...`.
        keys: BTreeSet<String>,
    },
    /// Ends the membership of a governor: it gets no permits any more.
    Retire {
        /// The governor's id.
        governor: String,
    },
    /// Declares that the database has lost no grants of shared limits with its last restore or promotion.
    Reopen,
    /// Lets a governor take part again after a fork, a restored folder or a cloned process.
    Readmit {
        /// The governor's id.
        governor: String,
    },
}

/// The organisation: its operators, and what they have to agree on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Organisation {
    /// The name of its log, such as `fleet.example.com`.
    pub name: String,
    /// The public key that signs the checkpoints of its log.
    pub log: String,
    /// The public keys of the operators. Their names must differ.
    pub operators: Vec<String>,
    /// Number of operators who must sign an order.
    pub needed: usize,
    /// Number of operators who must sign an order that may allow more than before.
    pub needed_to_loosen: usize,
    /// The term of a permit, in seconds: 3 to 3,600.
    pub permit_seconds: u64,
}

/// A policy document and its rollout.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Policies {
    /// The groups of governors that it is for; empty for all.
    pub groups: Vec<String>,
    /// The document, in TOML.
    pub document: String,
    /// The stages, one after the other. Without stages it is in force everywhere at once.
    pub plan: Vec<Stage>,
}

/// A stage of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Stage {
    /// Whether the stage's governors only evaluate the document, or enforce it.
    pub mode: Mode,
    /// The share of governors in hundredths: 1 to 100.
    pub percent: u8,
    /// The least time before the next stage, in seconds.
    pub soak_seconds: u64,
}

/// The use that the governors of a stage make of a policy document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Evaluation beside the document in force, with reports of differences.
    Shadow,
    /// Enforcement.
    Enforce,
}

/// An order with its operators' signatures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignedOrder {
    /// The JSON of the order, byte by byte as it was signed.
    pub body: String,
    /// Signatures by the operators' names.
    pub signatures: BTreeMap<String, String>,
}

/// The reason an order is not accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OrderError {
    /// The body is not an order.
    #[error("the order cannot be read: {0}")]
    Malformed(String),
    /// The order is not the next one of the chain.
    #[error("the order has number {found} and follows {prev}; expected number {expected} after {head}")]
    OutOfSequence {
        /// The number that it has.
        found: u64,
        /// The digest that it names.
        prev: Digest,
        /// The next number.
        expected: u64,
        /// The digest of the newest order.
        head: Digest,
    },
    /// The first order is not the one that the caller trusts.
    #[error("the first order is {found}; expected the trust anchor {expected}")]
    OtherOrganisation {
        /// The digest of that order.
        found: Digest,
        /// The trusted digest.
        expected: Digest,
    },
    /// Too few operators signed it.
    #[error("the order is signed by {found} of the operators; it needs {needed}")]
    TooFewSignatures {
        /// Valid signatures of different operators.
        found: usize,
        /// The number that it needs.
        needed: usize,
    },
    /// A signature in an operator's name is wrong.
    #[error("the signature of {0} is not valid")]
    BadSignature(String),
    /// The order refers to something that the chain does not have.
    #[error("the order cannot be carried out: {0}")]
    Pointless(String),
}

impl Order {
    /// The order as the next one of a chain, to be signed.
    pub fn next(chain: &Chain, at: Timestamp, command: Command) -> Self {
        Self { seq: chain.seq + 1, prev: chain.head, at, command }
    }

    /// Checks that the document of a `policies` order loads. A chain does not: most of its documents are superseded.
    ///
    /// # Errors
    ///
    /// [`OrderError::Pointless`] with every problem in it.
    pub fn check_document(&self) -> Result<(), OrderError> {
        let Command::Policies(policies) = &self.command else { return Ok(()) };
        let wrong = |error| OrderError::Pointless(format!("the policy document does not load: {error}"));
        policies.set().map(drop).map_err(wrong)
    }

    /// Signs the order by some operators.
    ///
    /// # Errors
    ///
    /// [`OrderError::Malformed`] if it cannot be written.
    pub fn sign(&self, operators: &[CheckpointKey]) -> Result<SignedOrder, OrderError> {
        let body = serde_json::to_string(self).map_err(|error| OrderError::Malformed(error.to_string()))?;
        let mut signed = SignedOrder { body, signatures: BTreeMap::new() };
        for operator in operators {
            signed.add(operator);
        }
        Ok(signed)
    }
}

impl SignedOrder {
    /// Adds an operator's signature.
    pub fn add(&mut self, operator: &CheckpointKey) {
        let signature = keys::sign(operator, &Self::signed_text(&self.body));
        self.signatures.insert(operator.name().to_owned(), signature);
    }

    /// The digest of the order, by which the next one refers to it.
    pub fn digest(&self) -> Digest {
        Digest::new(Sha256::digest(self.body.as_bytes()).into())
    }

    /// Reads the order without verifying it.
    ///
    /// # Errors
    ///
    /// [`OrderError::Malformed`].
    pub fn read(&self) -> Result<Order, OrderError> {
        serde_json::from_str(&self.body).map_err(|error| OrderError::Malformed(error.to_string()))
    }

    fn signed_text(body: &str) -> String {
        format!("rulekeep fleet order\n{body}")
    }
}

/// A kill switch in force by an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// The agents that it stops.
    pub scope: KillSwitchScope,
    /// The groups of governors that it binds; empty for all.
    pub groups: Vec<String>,
    /// The operators who signed it.
    pub by: String,
    /// The reason.
    pub note: String,
}

/// The state that the orders of an organisation lead to, up to one of them.
#[derive(Debug, Clone)]
pub struct Chain {
    anchor: Option<Digest>,
    seq: u64,
    head: Digest,
    organisation: Option<Organisation>,
    operators: BTreeMap<String, VerifierKey>,
    stops: BTreeMap<u64, Stop>,
    policies: BTreeMap<u64, Rollout>,
    limits: BTreeMap<String, i64>,
    offline: BTreeMap<String, u64>,
    revoked: BTreeSet<String>,
    retired: BTreeSet<String>,
}

/// A `policies` order and how far it has been skipped ahead.
#[derive(Debug, Clone)]
pub struct Rollout {
    /// The document and its plan.
    pub order: Arc<Policies>,
    /// The time of the order.
    pub at: Timestamp,
    /// The stage that operators have skipped to.
    pub skipped_to: usize,
}

impl Chain {
    /// An empty chain. With a trust anchor, its first order must have this digest.
    pub fn new(anchor: Option<Digest>) -> Self {
        Self {
            anchor,
            seq: 0,
            head: Digest::ZERO,
            organisation: None,
            operators: BTreeMap::new(),
            stops: BTreeMap::new(),
            policies: BTreeMap::new(),
            limits: BTreeMap::new(),
            offline: BTreeMap::new(),
            revoked: BTreeSet::new(),
            retired: BTreeSet::new(),
        }
    }

    /// Verifies the next order and adds it. After an error the chain is unchanged.
    ///
    /// # Errors
    ///
    /// [`OrderError`].
    pub fn add(&mut self, signed: &SignedOrder) -> Result<Order, OrderError> {
        let (order, digest, by) = self.verified(signed)?;
        self.carry_out(&order, by)?;
        (self.seq, self.head) = (order.seq, digest);
        Ok(order)
    }

    /// Verifies the place and the signatures of the next order. Returns it with its digest and the operators' names.
    pub(crate) fn verified(&self, signed: &SignedOrder) -> Result<(Order, Digest, String), OrderError> {
        let order = signed.read()?;
        if (order.seq, order.prev) != (self.seq + 1, self.head) {
            let (found, prev, expected, head) = (order.seq, order.prev, self.seq + 1, self.head);
            return Err(OrderError::OutOfSequence { found, prev, expected, head });
        }
        let digest = signed.digest();
        if let (1, Some(expected)) = (order.seq, self.anchor)
            && digest != expected
        {
            return Err(OrderError::OtherOrganisation { found: digest, expected });
        }
        let by = self.verify(signed, &order.command)?;
        Ok((order, digest, by))
    }

    /// Verifies the signatures, and returns the names of the operators.
    fn verify(&self, signed: &SignedOrder, command: &Command) -> Result<String, OrderError> {
        // The first order is signed by the operators that it names.
        let first = match command {
            Command::Organisation(organisation) if self.seq == 0 => Some(keys_of(organisation)?),
            _ => None,
        };
        let operators = first.as_ref().unwrap_or(&self.operators);
        let text = SignedOrder::signed_text(&signed.body);
        let mut by = Vec::new();
        for (name, signature) in &signed.signatures {
            let Some(key) = operators.get(name) else { continue };
            if !keys::verify(key, &text, signature) {
                return Err(OrderError::BadSignature(name.clone()));
            }
            by.push(name.as_str());
        }
        let needed = match (&self.organisation, command) {
            (Some(organisation), command) if self.loosens(command) => organisation.needed_to_loosen,
            (Some(organisation), _) => organisation.needed,
            (None, Command::Organisation(organisation)) => organisation.needed_to_loosen,
            (None, _) => return Err(OrderError::Pointless("the first order must found the organisation".to_owned())),
        };
        if by.len() < needed {
            return Err(OrderError::TooFewSignatures { found: by.len(), needed });
        }
        Ok(by.join(", "))
    }

    /// Returns whether a command may allow more than before.
    fn loosens(&self, command: &Command) -> bool {
        match command {
            Command::Stop { .. } | Command::RevokeKeys { .. } | Command::Retire { .. } => false,
            Command::Limit { counter, max } => self.limits.get(counter).is_none_or(|known| max > known),
            Command::Offline { group, seconds } => *seconds > self.offline.get(group).copied().unwrap_or(0),
            _ => true,
        }
    }

    /// Changes the state by an order, or nothing if it cannot be carried out.
    fn carry_out(&mut self, order: &Order, by: String) -> Result<(), OrderError> {
        let pointless = |why: String| Err(OrderError::Pointless(why));
        match order.command.clone() {
            Command::Organisation(organisation) => {
                self.operators = keys_of(&organisation)?;
                self.organisation = Some(organisation);
            }
            Command::Policies(policies) => {
                check_plan(&policies)?;
                self.policies.insert(order.seq, Rollout { order: Arc::new(policies), at: order.at, skipped_to: 0 });
            }
            Command::Skip { order: seq, stage } => match self.policies.get_mut(&seq) {
                Some(rollout) if stage < rollout.order.plan.len() => {
                    rollout.skipped_to = rollout.skipped_to.max(stage);
                }
                _ => return pointless(format!("order {seq} is no rollout with a stage {}", stage.saturating_add(1))),
            },
            Command::Stop { note, .. } if note.chars().count() > MAX_NOTE_CHARS => {
                return pointless(format!("a note has at most {MAX_NOTE_CHARS} characters"));
            }
            Command::Stop { scope, groups, note } => {
                self.stops.insert(order.seq, Stop { scope, groups, by, note });
            }
            Command::Lift { order: seq, .. } => {
                if self.stops.remove(&seq).is_none() {
                    return pointless(format!("order {seq} is not a kill switch in force"));
                }
            }
            Command::Limit { counter, max } => {
                if max < 0 || !counter.ends_with(SHARED) {
                    return pointless(format!("a limit needs a counter that ends in {SHARED:?}, and a maximum from 0"));
                }
                self.limits.insert(counter, max);
            }
            Command::Offline { group, seconds } => {
                self.offline.insert(group, seconds);
            }
            Command::RevokeKeys { keys } => self.revoked.extend(keys),
            Command::Reopen => {}
            Command::Retire { governor } => {
                self.retired.insert(governor);
            }
            Command::Readmit { governor } => {
                self.retired.remove(&governor);
            }
        }
        Ok(())
    }

    /// The number of the newest order; 0 if there is none.
    pub const fn seq(&self) -> u64 {
        self.seq
    }

    /// The digest of the newest order.
    pub const fn head(&self) -> Digest {
        self.head
    }

    /// The organisation, once it is founded.
    pub const fn organisation(&self) -> Option<&Organisation> {
        self.organisation.as_ref()
    }

    /// The operators' public keys by name.
    pub const fn operators(&self) -> &BTreeMap<String, VerifierKey> {
        &self.operators
    }

    /// The kill switches in force for a governor of these groups, by the number of their orders.
    pub fn stops_for(&self, groups: &[String]) -> BTreeMap<u64, &Stop> {
        let bound = self.stops.iter().filter(|(_, stop)| concerns(&stop.groups, groups));
        bound.map(|(seq, stop)| (*seq, stop)).collect()
    }

    /// All kill switches in force, by the number of their orders.
    pub const fn stops(&self) -> &BTreeMap<u64, Stop> {
        &self.stops
    }

    /// The `policies` orders by their numbers.
    pub const fn rollouts(&self) -> &BTreeMap<u64, Rollout> {
        &self.policies
    }

    /// The `policies` orders that a governor enforces and evaluates as a shadow. `stages` are those that the hub has
    /// reached; a stage before its time, by the signed plan, does not count.
    pub fn policies_for(
        &self,
        governor: &str,
        groups: &[String],
        stages: &BTreeMap<u64, usize>,
        now: Timestamp,
    ) -> (Option<u64>, Option<u64>) {
        let mut shadow = None;
        for (seq, rollout) in self.policies.iter().rev().filter(|(_, rollout)| concerns(&rollout.order.groups, groups))
        {
            let reached = stages.get(seq).copied().unwrap_or(0).min(rollout.due(now)).max(rollout.skipped_to);
            let Some(stage) = rollout.order.plan.get(reached) else { return (Some(*seq), shadow) };
            match stage.mode {
                _ if share_of(governor, *seq) >= u32::from(stage.percent) * 100 => {}
                Mode::Enforce => return (Some(*seq), shadow),
                Mode::Shadow => shadow = shadow.or(Some(*seq)),
            }
        }
        (None, shadow)
    }

    /// The maximum of each shared limit that operators have set, in millionths.
    pub const fn limits(&self) -> &BTreeMap<String, i64> {
        &self.limits
    }

    /// The time for which a governor may decide on LOW-risk reads without a permit: the shortest of its groups' rules,
    /// and none if one of its groups has no rule.
    pub fn offline_for(&self, groups: &[String]) -> Duration {
        let seconds = groups.iter().map(|group| self.offline.get(group).copied().unwrap_or(0)).min();
        Duration::from_secs(seconds.unwrap_or(0))
    }

    /// The longest time for which a permit may last, offline terms included, in milliseconds.
    pub fn longest_permit(&self) -> i64 {
        let term = self.organisation.as_ref().map_or(0, |organisation| organisation.permit_seconds);
        let offline = self.offline.values().max().copied().unwrap_or(0);
        i64::try_from(term.saturating_add(offline).saturating_mul(1000)).unwrap_or(i64::MAX)
    }

    /// The ids of revoked API keys.
    pub const fn revoked_keys(&self) -> &BTreeSet<String> {
        &self.revoked
    }

    /// The ids of governors whose membership has ended.
    pub const fn retired(&self) -> &BTreeSet<String> {
        &self.retired
    }

    /// Returns whether a governor's membership has ended.
    pub fn is_retired(&self, governor: &str) -> bool {
        self.retired.contains(governor)
    }
}

impl Rollout {
    /// The stage that the plan allows at a time.
    fn due(&self, now: Timestamp) -> usize {
        let mut left = now.as_millis().saturating_sub(self.at.as_millis());
        let passed = self.order.plan.iter().take_while(|stage| {
            left = left.saturating_sub(i64::try_from(stage.soak_seconds).unwrap_or(i64::MAX).saturating_mul(1000));
            left >= 0
        });
        passed.count().min(self.order.plan.len().saturating_sub(1))
    }
}

impl Policies {
    /// Loads the document.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] with every problem in it.
    pub fn set(&self) -> Result<PolicySet, Error> {
        PolicySet::parse(&self.document, PolicyFormat::Toml, "organisation")
    }
}

fn keys_of(organisation: &Organisation) -> Result<BTreeMap<String, VerifierKey>, OrderError> {
    let pointless = |why: String| OrderError::Pointless(why);
    let read = |key: &String| key.parse().map_err(|error| pointless(format!("{key:?} is not a public key: {error}")));
    let keys: Vec<VerifierKey> = organisation.operators.iter().map(read).collect::<Result<_, _>>()?;
    if read(&organisation.log)?.name() != organisation.name {
        return Err(pointless(format!(
            "the organisation {:?} is not named as the key of its log is",
            organisation.name
        )));
    }
    let count = keys.len();
    let keys: BTreeMap<String, VerifierKey> = keys.into_iter().map(|key| (key.name().to_owned(), key)).collect();
    let Organisation { needed, needed_to_loosen, permit_seconds, .. } = organisation;
    if keys.len() < count {
        return Err(pointless("two operators have the same name".to_owned()));
    }
    let public = |key: &VerifierKey| key.to_string().splitn(3, '+').nth(2).map(str::to_owned);
    if keys.values().map(public).collect::<BTreeSet<_>>().len() < count {
        return Err(pointless("two operators have the same key".to_owned()));
    }
    if !(1..=*needed_to_loosen).contains(needed) || *needed_to_loosen > count {
        return Err(pointless(format!(
            "of {count} operators {needed} and {needed_to_loosen} must sign; expected 1 <= needed <= neededToLoosen <= {count}"
        )));
    }
    if !(3..=3600).contains(permit_seconds) {
        return Err(pointless(format!("a permit of {permit_seconds} s; expected 3 to 3,600")));
    }
    Ok(keys)
}

fn check_plan(policies: &Policies) -> Result<(), OrderError> {
    let Some(last) = policies.plan.last() else { return Ok(()) };
    let is_share = |stage: &Stage| (1..=100).contains(&stage.percent);
    if !policies.plan.iter().all(is_share) || (last.mode, last.percent) != (Mode::Enforce, 100) {
        let why = "a plan has shares of 1 to 100 percent, and its last stage enforces at 100 percent";
        return Err(OrderError::Pointless(why.to_owned()));
    }
    Ok(())
}

fn concerns(wanted: &[String], groups: &[String]) -> bool {
    wanted.is_empty() || wanted.iter().any(|group| groups.contains(group))
}

/// The place of a governor in a rollout, from 0 to 9,999: the same in each stage, another in each rollout.
fn share_of(governor: &str, order: u64) -> u32 {
    let hash = Sha256::new().chain_update(order.to_be_bytes()).chain_update(governor).finalize();
    let [a, b, c, d, ..] = <[u8; 32]>::from(hash);
    u32::from_be_bytes([a, b, c, d]) % 10_000
}

/// The longest note that governors take with a kill switch.
const MAX_NOTE_CHARS: usize = 4096;
/// The end of the name of a counter that a whole organisation shares.
pub const SHARED: &str = "/organisation";

#[cfg(test)]
mod tests;
