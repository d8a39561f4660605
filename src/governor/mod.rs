//! The [`Governor`], which composes the engines.
//!
//! Data flows in one direction: input, `Intent`, `Enforcement`, `ProofRecord`, `Event`. The engines do not depend on
//! each other; the governor passes on what one needs from another.
//!
//! The parts are structs with locks of their own, whose documentation says in which order they are acquired. Besides the
//! log, the clock and the source of randomness, a part sees at most four others.
//!
//! | part | folder | subject | sees |
//! |---|---|---|---|
//! | `Roster` | `roster/` | the agents, their trust, and the kill switches and the permit that stop them | |
//! | `Rules` | `rules/` | the policy sets, their rate limits and alert rules | `Roster` |
//! | `Intake` | `intake/` | the parser, the tool catalogue, the risk floors, and the request texts | `Roster` |
//! | `Alerting` | `alerting/` | alerts derived from the log, event subscriptions and cursors | `Rules` |
//! | `Approvals` | `approvals/` | escalations, reviews and pre-approvals | `Roster`, `Rules`, `Intake` |
//! | `Decider` | `decider/` | decisions, the work under them, and their outcomes | `Roster`, `Rules`, `Intake`, `Approvals` |
//! | `TaskBook` | `tasks/` | tasks, whose mandate follows from the user's words | `Intake`, `Approvals`, `Decider` |
//! | `Past` | `past/` | previews, replays, and the check of trust | `Decider` |
//!
//! | folder or file | subject |
//! |---|---|
//! | `base.rs` | the log, the clock and the source of randomness |
//! | `builder.rs` | configuring and opening a governor |
//! | `commands.rs` | commands that run within their decisions |
//! | `record/` | the record of a decision before it is enqueued |
//! | `log/` | records, exports, archives, checkpoints, verification and repair of the log |
//! | `state_kinds/` | the kinds of states, and what becomes of each at a restart, an archive and a repair |
//! | `keys.rs` | the keys of states by kind |
//! | `states.rs` | states stored in the log, and their notes |
//! | `status.rs` | health and metrics |
//! | `background.rs` | periodic work on a thread |
//! | `extension.rs`, `organisation.rs` | access points for crates that build on a governor |

mod alerting;
mod approvals;
mod background;
mod base;
mod builder;
mod commands;
mod decider;
pub(crate) mod extension;
#[cfg(test)]
mod index_tests;
mod intake;
mod keys;
mod log;
mod organisation;
mod past;
mod record;
mod roster;
mod rules;
#[cfg(test)]
mod stall_tests;
mod state_kinds;
mod states;
mod status;
mod tasks;

use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use alerting::events::{EventFilter, Subscription};
pub use approvals::{EscalationClaim, Escalations, PreApprovalStanding};
pub use builder::GovernorBuilder;
pub use commands::{AgentCommand, Confiner};
pub use decider::guard::{GuardError, GuardRequest, Guarded};
pub use decider::pending::PendingEnforcement;
pub use intake::catalogue::Tools;
pub use intake::input_text::InputText;
#[cfg(feature = "checkpoints")]
pub use log::checkpoints::{import_against, verify_signed_archive};
pub use log::repair::{RepairOptions, repair};
pub use log::retention::verify_archive;
pub use log::{Log, import};
pub use past::preview::{Explanation, Preview, PreviewError, PreviewRequest};
pub use past::replay::{Replay, ReplayChange, ReplayRange};
pub use roster::agents::Agents;
pub use roster::kill_switch::KillSwitch;
pub use roster::trust::Trust;
pub use rules::policies::Policies;
pub use rules::shadow::{ShadowDifference, ShadowReport};
pub use tasks::{Task, Tasks};

use crate::model::{AgentId, Error, Input, InvalidValue, Opening, ParseResult, Period, ProofPage, ProofStats};
use crate::proof::ProofQuery;

use alerting::Alerting;
use approvals::Approvals;
use base::{Base, Hold, conflict};
use decider::Decider;
use intake::Intake;
use past::Past;
use roster::Roster;
use rules::Rules;
use tasks::TaskBook;

/// Governs the actions of software agents: parses requests, decides by policy and trust, and keeps a proof record of
/// every decision.
///
/// A governor is cheap to clone and can be used from any number of threads. It fails closed: an internal failure is an
/// error, never an ALLOW. Its store folder belongs to one process at a time; [`Governor::close`], or dropping the last
/// clone, releases it.
///
/// ```
/// use rulekeep::{Agent, Decision, Governor, Outcome, ProofQuery, Tier};
///
/// let governor = Governor::builder().open_in_memory()?;
/// governor.agents().register(Agent::new("support-1").at_tier(Tier::T4))?;
///
/// let verdict = governor.enforce_input("support-1", "Summarize the meeting notes")?.enforcement;
/// assert_eq!(verdict.decision, Decision::Allow);
/// governor.report(&verdict.proof_id, Outcome::Success)?;
///
/// let page = governor.query(&ProofQuery::entity("support-1"))?;
/// assert_eq!(page.items[0].id, verdict.proof_id);
/// assert!(governor.verify()?.valid);
/// # Ok::<(), rulekeep::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Governor {
    inner: Arc<Inner>,
}

/// The parts of a governor, lower ones first.
pub(crate) struct Inner {
    base: Arc<Base>,
    roster: Arc<Roster>,
    rules: Arc<Rules>,
    intake: Arc<Intake>,
    alerting: Arc<Alerting>,
    approvals: Arc<Approvals>,
    decider: Arc<Decider>,
    tasks: TaskBook,
    past: Past,
    #[cfg(feature = "checkpoints")]
    checkpoints: log::checkpoints::Checkpoints,
    retention: intake::input_text::Retention,
    confiner: Option<Confiner>,
    /// The folder of the store.
    folder: Option<PathBuf>,
    opening: Opening,
    extensions: extension::Extensions,
}

impl Governor {
    /// Opens the store in a folder, or creates one there, with the default settings:
    /// [`Durability::Sync`](crate::Durability::Sync), the policy set that was last in force (in a new store the
    /// recommended one), and the built-in lexicon.
    ///
    /// The whole log is verified first. A damaged log opens too: it answers queries, [`Governor::verify`] reports the
    /// break, and every new decision fails with [`Error::ChainBroken`].
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when the folder is not a store, is open in another governor, or cannot be read or
    /// written.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Self::builder().open(folder)
    }

    /// Opens the store in a folder for reading: verify, query, export, replay. No file is changed, and another process
    /// may have the store open and decide meanwhile; entries it adds later are not visible. Calls that would record
    /// something fail.
    ///
    /// The whole journal is read and verified, because the index is built in memory: about 3 seconds per million
    /// records, and about 300 bytes per record.
    ///
    /// ```
    /// use rulekeep::{Governor, ProofQuery};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let governor = Governor::builder().auto_register().open(folder.path())?;
    /// governor.enforce_input("support-1", "Summarize the meeting notes")?;
    ///
    /// let auditor = Governor::open_read_only(folder.path())?;
    /// assert!(auditor.verify()?.valid);
    /// assert_eq!(auditor.query(&ProofQuery::entity("support-1"))?.total, 1);
    /// assert!(auditor.enforce_input("support-1", "Summarize the meeting notes").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when the folder is not a store or cannot be read.
    pub fn open_read_only(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Self::builder().open_read_only(folder)
    }

    /// Creates a builder to configure a governor.
    pub fn builder() -> GovernorBuilder {
        GovernorBuilder::new()
    }

    /// Parses a request, a text or a structured call, into an intent. Nothing is recorded.
    ///
    /// ```
    /// use rulekeep::intent::Input;
    /// use rulekeep::{Agent, Governor};
    ///
    /// let governor = Governor::builder().open_in_memory()?;
    /// governor.agents().register(Agent::new("support-1"))?;
    /// let context = serde_json::Map::from_iter([("environment".to_owned(), "production".into())]);
    /// let parsed = governor.parse("support-1", Input::new("Read the file").context(&context))?;
    /// assert_eq!(parsed.intent.context["environment"], "production");
    /// # Ok::<(), rulekeep::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for an empty input or a context deeper than 32 levels, [`Error::PayloadTooLarge`] for an
    /// input or context over 64 KiB, [`Error::AgentNotFound`].
    pub fn parse<'a>(&self, agent_id: &str, input: impl Into<Input<'a>>) -> Result<ParseResult, Error> {
        Ok(self.inner.here()?.intake.parsed(agent_id, input.into())?.result)
    }

    /// Returns a page of the matching proof records, newest first by default.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidQuery`], which names the parameter; [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when
    /// the log cannot be read.
    pub fn query(&self, query: &ProofQuery) -> Result<ProofPage, Error> {
        self.inner.here()?.base.log.query(query)
    }

    /// Computes statistics over an agent's records: of all time (`..`), or of a range of chrono's UTC times, both ends
    /// included.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidQuery`], which names the parameter; [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when
    /// the log cannot be read.
    pub fn stats(&self, entity_id: &str, period: impl Into<Period>) -> Result<ProofStats, Error> {
        self.inner.here()?.base.log.stats(entity_id, period.into())
    }

    /// The agents: register, read, change and suspend them.
    pub const fn agents(&self) -> Agents<'_> {
        Agents { inner: &self.inner }
    }

    /// The policies: loads and shows the set in force, and previews, explains or replays decisions under this or another set.
    pub const fn policies(&self) -> Policies<'_> {
        Policies { inner: &self.inner }
    }

    /// The escalations and pre-approvals: requests that await a reviewer, and the reviewers' answers.
    pub const fn escalations(&self) -> Escalations<'_> {
        Escalations { inner: &self.inner }
    }

    /// The agents' trust: its history, and an operator's adjustments.
    pub const fn trust(&self) -> Trust<'_> {
        Trust { inner: &self.inner }
    }

    /// The proof log: records and evidence, verification, exports, archives and event cursors.
    pub const fn log(&self) -> Log<'_> {
        Log { governor: self }
    }

    /// The tool catalogue: the tools that a runtime loads, and their classification.
    pub const fn tools(&self) -> Tools<'_> {
        Tools { inner: &self.inner }
    }

    /// The tasks: a user's words limit what an agent may do for them.
    pub const fn tasks(&self) -> Tasks<'_> {
        Tasks { governor: self }
    }

    /// The kill switch: stops agents, whatever the policies say.
    pub const fn kill_switch(&self) -> KillSwitch<'_> {
        KillSwitch { inner: &self.inner }
    }

    /// Writes pending entries to disk and releases the store folder. Later calls on any clone that read or write the
    /// log fail.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when an entry could not be written.
    pub fn close(&self) -> Result<(), Error> {
        // First, because the threads stopped next may wait for it.
        self.inner.here()?.base.log.stop_verifying();
        self.inner.extensions.running().iter().for_each(|follower| follower.stop());
        self.inner.alerting.write_cursors(None);
        self.inner.base.log.close()
    }
}

impl Inner {
    /// The parts, unless this process was forked from the one that opened the governor.
    fn here(&self) -> Result<&Self, Error> {
        self.base.log.check_process().map(|()| self)
    }
}

impl Drop for Governor {
    fn drop(&mut self) {
        // In a forked process the threads to wait for do not exist, and the locks to release are its parent's.
        if self.inner.here().is_err() {
            std::mem::forget(Arc::clone(&self.inner));
        }
    }
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Governor").field("policies", &**self.rules.policies.load()).finish_non_exhaustive()
    }
}

fn checked_agent_id(agent_id: &str) -> Result<AgentId, Error> {
    agent_id.parse().map_err(|error: InvalidValue| Error::input("agentId", error.to_string()))
}

const _: fn() = || {
    fn shared_by_threads<T: Send + Sync + Clone>() {}
    shared_by_threads::<Governor>();
};
