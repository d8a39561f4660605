//! The member: what links a governor to the hubs of its organisation.
//!
//! Two threads work beside the governor. One beats: it fetches permits and orders, carries orders out, and anchors the
//! governor's log. The other copies the records that the organisation wants. Decisions are made in process, as ever.
//!
//! | file | subject |
//! |---|---|
//! | `link.rs` | the connection to the hubs: signed calls, failover |
//! | `beats.rs` | the thread that beats |
//! | `copies.rs` | the thread that copies records |
//! | `limits.rs` | shared limits |

mod beats;
mod copies;
mod limits;
mod link;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rulekeep::checkpoint::CheckpointKey;
use rulekeep::extension::{Extension, Follower, Wait, WeakGovernor};
use rulekeep::proof::Digest;
use rulekeep::system::{Entropy as _, SystemEntropy};
use rulekeep::{Decision, Governor, ProofRecord, RiskLevel};

use crate::enrolment::Enrol;
use crate::keys::{read_key, write_key};
use crate::order::Chain;
use crate::purse::Purse;
use crate::session::Session;
use link::Link;

/// The rule for decisions after the permit has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Offline(Duration);

impl Offline {
    /// Denies everything. This is the default.
    pub const fn deny() -> Self {
        Self(Duration::ZERO)
    }

    /// Continues to decide on LOW-risk reads for a time, at most as long as the orders allow the governor's groups.
    pub const fn low_risk_for(time: Duration) -> Self {
        Self(time)
    }
}

/// The records that a member copies to the organisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum CopyRule {
    /// Refusals, escalations, degraded decisions, and everything of HIGH or CRITICAL risk.
    #[default]
    Notable,
    /// Every record.
    All,
    /// None.
    Nothing,
}

impl CopyRule {
    fn wants(self, record: &ProofRecord) -> bool {
        match self {
            Self::Notable => record.decision != Decision::Allow || record.risk_level >= RiskLevel::High,
            Self::All => true,
            Self::Nothing => false,
        }
    }
}

/// The reason a governor cannot take part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemberError {
    /// A setting is wrong.
    #[error("{0}")]
    Settings(String),
    /// No hub answers.
    #[error("no hub answers: {0}")]
    Unreachable(String),
    /// A hub refuses.
    #[error("the hub refuses: {0}")]
    Refused(String),
    /// The governor cannot do what is needed.
    #[error(transparent)]
    Governor(#[from] rulekeep::Error),
}

/// The settings of a member.
#[derive(Clone)]
#[must_use]
pub struct MemberBuilder {
    hubs: Vec<String>,
    trust_anchor: String,
    key_file: PathBuf,
    name: Option<String>,
    invitation: Option<String>,
    group: Option<String>,
    ca: Option<Vec<u8>>,
    offline: Offline,
    copies: CopyRule,
    wait: Duration,
    anchor_every: Duration,
    patience: Duration,
    revoked: Option<Arc<OnRevoked>>,
}

impl std::fmt::Debug for MemberBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Whoever has the invitation can enrol.
        let Self { hubs, trust_anchor, key_file, name, .. } = self;
        let shown = &mut f.debug_struct("MemberBuilder");
        shown.field("hubs", hubs).field("trust_anchor", trust_anchor).field("key_file", key_file);
        shown.field("name", name).finish_non_exhaustive()
    }
}

/// A callback that gets the ids of revoked API keys.
type OnRevoked = dyn Fn(&BTreeSet<String>) + Send + Sync;

/// A governor's membership in an organisation. It ends with [`Member::leave`], or when the governor is closed.
#[derive(Debug)]
pub struct Member {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// The state of a membership.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemberStatus {
    /// The governor's id.
    pub governor: String,
    /// The groups of the governor.
    pub groups: Vec<String>,
    /// The number of the order in force.
    pub order: u64,
    /// The time for which the permit still lasts; `None` if there is none.
    pub permit_left: Option<Duration>,
    /// Number of log entries that the organisation has anchored.
    pub anchored: u64,
    /// Number of log entries whose records are copied where they are wanted.
    pub copied: u64,
    /// The last failure, if nothing has succeeded since.
    pub problem: Option<String>,
}

struct Shared {
    governor: WeakGovernor,
    link: Link,
    key: CheckpointKey,
    boot: String,
    settings: MemberBuilder,
    state: Mutex<State>,
    /// Signals every change of `state`.
    changed: Condvar,
    purse: Mutex<Purse>,
}

#[derive(Debug)]
struct State {
    session: Session,
    is_permitted: bool,
    problem: Option<String>,
    copy_problem: Option<String>,
    is_leaving: bool,
}

impl Member {
    /// Prepares a membership: the URLs of the hubs, separated by commas; the digest of the organisation's first order;
    /// and the file with the governor's own key, which is created when it enrols.
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// use rulekeep::Governor;
    /// use rulekeep_fleet::{Member, Offline};
    ///
    /// let governor = Governor::builder().require_permit().open("governance")?;
    /// let anchor = "sha256:6dcd4ce23d88e2ee9568ba546c007c63d9131c1b0d9a9f8d5f2e0e6e1b4b9f3a";
    /// let member = Member::builder("https://fleet.example.com:7443", anchor, "governance.key")
    ///     .enrol_with(std::env::var("RULEKEEP_ENROL").ok())
    ///     .offline(Offline::low_risk_for(Duration::from_secs(900)))
    ///     .join(&governor)?;
    /// // From here on, governor.enforce(..) works as before, under the organisation's orders.
    /// member.leave()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn builder(hubs: &str, trust_anchor: &str, key_file: impl AsRef<Path>) -> MemberBuilder {
        MemberBuilder {
            hubs: hubs.split(',').map(|hub| hub.trim().trim_end_matches('/').to_owned()).collect(),
            trust_anchor: trust_anchor.trim().to_owned(),
            key_file: key_file.as_ref().to_owned(),
            name: None,
            invitation: None,
            group: None,
            ca: None,
            offline: Offline::default(),
            copies: CopyRule::default(),
            wait: Duration::from_secs(10),
            anchor_every: Duration::from_secs(300),
            patience: Duration::from_secs(30),
            revoked: None,
        }
    }

    /// The state of the membership.
    pub fn status(&self) -> MemberStatus {
        self.shared.status()
    }

    /// The number of the order in force at this governor.
    pub fn order(&self) -> u64 {
        self.shared.state().session.chain().seq()
    }

    /// Waits until an order is in force at this governor; `false` if it is not within `time`.
    pub fn wait_for_order(&self, order: u64, time: Duration) -> bool {
        let state = self.shared.state();
        let wait = self.shared.changed.wait_timeout_while(state, time, |state| state.session.chain().seq() < order);
        !wait.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Ends the membership for this run: gives leases back, anchors the log once more, and ends the permit. The
    /// governor decides nothing more until it joins again.
    ///
    /// # Errors
    ///
    /// [`MemberError::Unreachable`] or [`MemberError::Refused`] if the last message was not taken; the membership has
    /// ended for this process all the same.
    pub fn leave(mut self) -> Result<(), MemberError> {
        let governor = self.shared.governor.upgrade();
        self.end();
        let Some(governor) = governor else { return Ok(()) };
        Extension::of(&governor).revoke_permit();
        self.shared.say_goodbye(&governor)
    }

    fn end(&mut self) {
        if self.threads.is_empty() {
            return;
        }
        self.shared.stop();
        for thread in self.threads.drain(..).filter(|thread| thread.thread().id() != std::thread::current().id()) {
            // A panic has been reported already.
            let _ = thread.join();
        }
        if let Some(governor) = self.shared.governor.upgrade() {
            Extension::of(&governor).detach(FOLLOWER);
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.end();
    }
}

impl MemberBuilder {
    /// Sets the invitation to enrol with. It is used when there is no key file yet, or the store lacks the groups of the
    /// key: at the first start, and after the store was lost.
    pub fn enrol_with(mut self, invitation: impl Into<Option<String>>) -> Self {
        self.invitation = invitation.into();
        self
    }

    /// Sets the governor's id: 1 to 256 bytes of ASCII without spaces and `+`. Default: a random one.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets which of the invitation's groups the governor is in. Default: all of them.
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.group = Some(group.into());
        self
    }

    /// Sets what the governor decides after its permit has ended. Default: it denies everything.
    pub fn offline(mut self, offline: Offline) -> Self {
        self.offline = offline;
        self
    }

    /// Sets which records are copied to the organisation. Default: [`CopyRule::Notable`].
    pub fn copy(mut self, rule: CopyRule) -> Self {
        self.copies = rule;
        self
    }

    /// Sets the certificates that a hub's certificate may be signed by, in PEM, instead of the public authorities.
    pub fn authorities(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.ca = Some(pem.into());
        self
    }

    /// Sets how often the log is anchored while it grows. Default: 5 minutes.
    pub fn anchor_every(mut self, every: Duration) -> Self {
        self.anchor_every = every;
        self
    }

    /// Sets how long a hub may hold a beat open while there is no news; at most a third of the permit's term counts.
    /// Default: 10 s.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Sets how long [`MemberBuilder::join`] waits for the first permit. Default: 30 s.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets a callback that gets the ids of API keys that an order revokes. It is called on the thread that beats.
    pub fn on_revoked_keys(mut self, callback: impl Fn(&BTreeSet<String>) + Send + Sync + 'static) -> Self {
        self.revoked = Some(Arc::new(callback));
        self
    }

    /// Makes the governor a member, and waits for its first permit. From the call on, the governor decides nothing
    /// without a permit.
    ///
    /// # Errors
    ///
    /// [`MemberError`]. Without a permit the governor decides nothing after an error.
    pub fn join(self, governor: &Governor) -> Result<Member, MemberError> {
        let extension = Extension::of(governor);
        extension.require_permit()?;
        let anchor: Digest = self
            .trust_anchor
            .parse()
            .map_err(|error| MemberError::Settings(format!("the trust anchor {:?}: {error}", self.trust_anchor)))?;
        let link = Link::new(&self.hubs, self.ca.as_deref())?;
        let (key, groups) = self.key_or_enrol(&link, extension)?;
        let least = extension.states(&[LEAST]).first().and_then(|(_, value)| serde_json::from_str(value).ok());
        let stops = beats::orders_of_stops(governor);
        // Another run for hubs also if this process has been a member before: its numbers begin anew.
        let boot = hex::encode(SystemEntropy.bits().to_be_bytes());
        let session = Session::new(
            key.name(),
            &boot,
            groups,
            Chain::new(Some(anchor)),
            least.unwrap_or((0, Digest::ZERO)),
            stops,
            self.offline.0,
        );
        let (patience, purse) = (self.patience, Mutex::new(Purse::new(boot.as_str())));
        let state = State { session, is_permitted: false, problem: None, copy_problem: None, is_leaving: false };
        let shared = Arc::new(Shared {
            governor: extension.weakly(),
            link,
            key,
            boot,
            settings: self,
            state: Mutex::new(state),
            changed: Condvar::new(),
            purse,
        });
        extension.attach(FOLLOWER, Arc::clone(&shared) as Arc<dyn Follower>)?;
        extension.share_limits(Arc::new(limits::Limits::new(Arc::clone(&shared))));
        let start = |name: &str, work: fn(&Shared)| {
            let shared = Arc::clone(&shared);
            let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || work(&shared));
            thread.map_err(|error| MemberError::Settings(format!("cannot start a thread: {error}")))
        };
        let mut member = Member { shared: Arc::clone(&shared), threads: Vec::new() };
        member.threads.push(start("rulekeep-fleet-beat", Shared::beat_until_it_ends)?);
        member.threads.push(start("rulekeep-fleet-copy", Shared::copy_until_it_ends)?);
        let state = shared.state();
        let waited =
            shared.changed.wait_timeout_while(state, patience, |state| !state.is_permitted && !state.is_leaving);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if state.is_permitted {
            drop(state);
            return Ok(member);
        }
        let problem = state.problem.clone().unwrap_or_else(|| "no answer".to_owned());
        drop(state);
        Err(MemberError::Refused(problem))
    }

    /// Reads the key file and the groups that the key was enrolled for; enrols if one of them is missing.
    fn key_or_enrol(&self, link: &Link, extension: Extension<'_>) -> Result<(CheckpointKey, Vec<String>), MemberError> {
        let settings = |why: String| MemberError::Settings(format!("{}: {why}", self.key_file.display()));
        let is_new = !self.key_file.exists();
        let key = if is_new {
            let random = hex::encode(SystemEntropy.bits().to_be_bytes());
            let random = format!("governor-{}", random.get(..12).unwrap_or_default());
            let name = self.name.as_ref().unwrap_or(&random);
            if !name.bytes().all(|byte| byte.is_ascii_graphic()) {
                return Err(MemberError::Settings(format!("the name {name:?}: expected ASCII without spaces")));
            }
            CheckpointKey::generate(name, &SystemEntropy).map_err(|error| settings(error.to_string()))?
        } else {
            read_key(&self.key_file).map_err(|error| MemberError::Settings(error.to_string()))?
        };
        let public = key.verifier().to_string();
        let kept = extension.states(&[GROUPS]).first().and_then(|(_, value)| serde_json::from_str(value).ok());
        if let Some((_, groups)) = kept.filter(|(of, _): &(String, Vec<String>)| !is_new && *of == public) {
            return Ok((key, groups));
        }
        let invitation = self.invitation.as_ref().ok_or_else(|| {
            let what = if is_new { "no key" } else { "the store does not have the groups of this key" };
            settings(format!("{what}, and no invitation to enrol"))
        })?;
        let request = Enrol::accept(invitation, &key, self.group.as_deref());
        let request = request.ok_or_else(|| MemberError::Settings("the invitation cannot be read".to_owned()))?;
        // Kept first: a key that was enrolled and lost would be a member for ever silent.
        if is_new {
            write_key(&self.key_file, &key).map_err(|error| MemberError::Settings(error.to_string()))?;
        }
        link.call::<()>(&key, "/fleet/v1/enrol", &request, ENROL_TIMEOUT).inspect_err(|error| {
            // The hub does not know it: it is made anew at the next attempt.
            if is_new && matches!(error, MemberError::Refused(_)) {
                let _ = fs::remove_file(&self.key_file);
            }
        })?;
        let value = serde_json::to_string(&(public, &request.groups)).unwrap_or_default();
        extension.keep(GROUPS.to_owned(), value, "the governor is a member of the organisation", Wait::Committed)?;
        Ok((key, request.groups))
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn purse(&self) -> MutexGuard<'_, Purse> {
        self.purse.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn status(&self) -> MemberStatus {
        let permit_left = self.governor.upgrade().and_then(|governor| {
            let extension = Extension::of(&governor);
            extension.permit()?.until.checked_sub(extension.clock().since_boot()?)
        });
        let state = self.state();
        MemberStatus {
            governor: self.key.name().to_owned(),
            groups: state.session.groups().to_vec(),
            order: state.session.chain().seq(),
            permit_left,
            anchored: state.session.anchored(),
            copied: state.session.copied(),
            problem: state.problem.clone().or_else(|| state.copy_problem.clone()),
        }
    }
}

impl Follower for Shared {
    fn stop(&self) {
        self.state().is_leaving = true;
        self.changed.notify_all();
    }

    fn problems(&self) -> Vec<String> {
        let status = self.status();
        status.problem.map(|problem| format!("the fleet: {problem}")).into_iter().collect()
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("governor", &self.key.name()).finish_non_exhaustive()
    }
}

const FOLLOWER: &str = "fleet";
const ENROL_TIMEOUT: Duration = Duration::from_secs(20);
/// The key of the state that remembers the order in force.
const LEAST: &str = "fleet/order";
/// The key of the state that remembers the governor's groups, with the key that was enrolled for them.
const GROUPS: &str = "fleet/groups";
