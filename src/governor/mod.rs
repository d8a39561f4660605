//! Floor 3: the [`Governor`], which composes the engines.
//!
//! Data flows one way: input -> `Intent` -> `Enforcement` -> `ProofRecord` -> `Event`.
//! The engines below do not know each other; what one needs of another passes
//! through here.
//!
//! | file | subject |
//! |---|---|
//! | `builder.rs` | how a governor is put together and opened |
//! | `decide.rs` | the way of a decision |
//! | `decision_clock.rs` | the time by which it is decided |
//! | `detail.rs` | what a decision depended on, for its evidence |
//! | `risk.rs` | the risk that counts, whatever the caller claims |
//! | `repair_states.rs` | what a repair takes over besides agents, policies and stops |
//! | `catalogue.rs` | the tools that a runtime hands over |
//! | `checkpoints.rs` | checkpoints of the log, and proofs against them |
//! | `alerts.rs` | what should be looked at, raised where it happens |
//! | `cursor.rs` | places in the stream of events that the store keeps |
//! | `export.rs` | the log as lines that can be checked without us, and read back |
//! | `erasure.rs` | erasing evidence |
//! | `escalations/` | people in the loop |
//! | `events.rs` | subscriptions to what happens |
//! | `follow.rs` | alerts on what the log tells by itself |
//! | `agents.rs` | registering, reading, changing, suspending agents |
//! | `agent_file.rs` | agents as lines of text |
//! | `guard.rs` | work under a grant, and what grants ask of the governor |
//! | `input_text.rs` | what is kept of what was asked, how long, and what is masked |
//! | `latency.rs` | how long enforcements took |
//! | `limits.rs` | the counters of the policies' limits |
//! | `pending.rs` | decisions that are waited for later |
//! | `outcome.rs` | reporting what became of an action |
//! | `policies.rs` | which policy set is in force |
//! | `preview.rs` | what would be decided |
//! | `repair.rs` | a new log in place of a broken one |
//! | `retention.rs` | logs that are frozen, entries that move to archives |
//! | `replay.rs` | past decisions decided again |
//! | `shadow.rs` | a second set that enforces nothing |
//! | `states.rs` | states in the log, and notes beside them |
//! | `status.rs` | health and metrics |
//! | `kill_switch.rs` | who must not act: setting and lifting stops |
//! | `streaks.rs` | denials of an agent that follow close on each other |
//! | `tasks/` | a user's words as the ceiling of what is done for them |
//! | `trust.rs` | what moves trust, and where each move is written |
//! | `trust_check.rs` | trust made anew from the log |
//! | `watch.rs` | how often what alert rules look for happened |
//! | `verification.rs` | verifying the log |
//! | `extension.rs` | access points for crates that stand on a governor |

mod agent_file;
mod agents;
mod alerts;
mod background;
mod builder;
mod calls;
mod catalogue;
#[cfg(feature = "checkpoints")]
mod checkpoints;
mod cursor;
mod decide;
mod decision_clock;
mod detail;
mod erasure;
mod escalations;
mod events;
mod export;
pub(crate) mod extension;
mod follow;
mod guard;
mod input_text;
mod kill_switch;
mod latency;
mod limits;
mod log;
mod outcome;
mod pending;
mod policies;
mod preview;
mod recent;
mod repair;
mod repair_states;
mod replay;
mod retention;
mod risk;
mod shadow;
mod standing;
mod states;
mod status;
mod streaks;
mod tasks;
mod trust;
mod trust_check;
mod verification;
mod watch;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use serde_json::Map;

pub use agents::Agents;
pub use builder::GovernorBuilder;
pub use catalogue::Tools;
#[cfg(feature = "checkpoints")]
pub use checkpoints::verify_signed_archive;
pub use escalations::{EscalationAnswer, Escalations, PreApprovalStanding};
pub use events::{EventFilter, Subscription};
pub use export::import;
pub use guard::{GuardError, Guarded};
pub use input_text::InputText;
pub use kill_switch::KillSwitch;
pub use log::Log;
pub use pending::PendingEnforcement;
pub use policies::Policies;
pub use preview::{Explanation, Preview, PreviewError, PreviewRequest};
pub use repair::{RepairOptions, repair};
pub use replay::{Replay, ReplayChange, ReplayRange};
pub use retention::verify_archive;
pub use shadow::{ShadowDifference, ShadowReport};
pub use tasks::{Task, Tasks};
pub use trust::Trust;

use crate::model::{
    AgentId, Error, Input, Intent, IntentId, InvalidValue, Opening, ParseResult, Period, ProofPage, ProofStats,
};
use crate::parse::{Catalogue, ParseRequest, Parsed, Parser};
use crate::proof::{ProofLog, ProofQuery};
use crate::system::Entropy;
use crate::telemetry::Work;
use crate::trust::{Ledger, TrustModel};

use latency::Latency;
use risk::ActionFloors;

/// Governs what agents do: parses what they ask, decides by policy and trust,
/// and keeps a proof of every decision.
///
/// Cheap to clone, and used from any number of threads. It fails closed:
/// whatever goes wrong inside is an error, never an ALLOW. The folder it keeps
/// belongs to one process at a time; [`Governor::close`], or dropping the last
/// clone, lets it go.
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
#[derive(Clone)]
pub struct Governor {
    inner: Arc<Inner>,
}

struct Inner {
    parser: Parser,
    tools: catalogue::Loaded,
    action_floors: ActionFloors,
    policies: policies::PolicySets,
    limits: limits::Counters,
    stops: kill_switch::KillSwitches,
    denials: streaks::Streaks,
    approvals: escalations::Approvals,
    inputs: input_text::Inputs,
    calls: calls::Calls,
    retention: input_text::Retention,
    tasks: tasks::TaskTable,
    alerts: alerts::Alerts,
    following: follow::Following,
    cursors: cursor::Cursors,
    ledger: Ledger,
    trust_model: TrustModel,
    log: ProofLog,
    #[cfg(feature = "checkpoints")]
    checkpoints: checkpoints::Checkpoints,
    clock: Arc<decision_clock::DecisionClock>,
    entropy: Arc<dyn Entropy>,
    auto_register: bool,
    opening: Opening,
    opened: Instant,
    latency: Latency,
    extensions: extension::Extensions,
}

impl Governor {
    /// Opens the store in a folder, or makes one there, with all defaults: the
    /// policy set that was last in force (a new store: the recommended one),
    /// [`Durability::Sync`](crate::Durability::Sync), the built-in lexicon.
    ///
    /// The whole log is verified. A damaged one opens too: it answers queries,
    /// [`Governor::verify`] says where it breaks, and every new decision is
    /// [`Error::ChainBroken`].
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when the folder is no store, is held by
    /// another governor, or cannot be read or written.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Self::builder().open(folder)
    }

    /// Opens the store in a folder to read it: verify, query, export, replay. No byte of it changes, nor a time of
    /// change, and it can be open in another process that decides meanwhile; what that adds later is not seen. Whatever
    /// would be recorded is refused.
    ///
    /// The whole journal is read and verified, for the index is made in memory: some 3 s a million records, and some
    /// 300 bytes of each.
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
    /// [`Error::StorageUnavailable`] when the folder is no store or cannot be read.
    pub fn open_read_only(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Self::builder().open_read_only(folder)
    }

    /// A governor put together by hand.
    pub fn builder() -> GovernorBuilder {
        GovernorBuilder::new()
    }

    /// Parses an action request, in words or structured, into an intent.
    /// Nothing is recorded.
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
    /// [`Error::InvalidInput`] for an empty input or a context of more than 32 levels, [`Error::PayloadTooLarge`] past
    /// 64 KiB of either, [`Error::AgentNotFound`].
    pub fn parse<'a>(&self, agent_id: &str, input: impl Into<Input<'a>>) -> Result<ParseResult, Error> {
        Ok(self.parsed(agent_id, input.into())?.result)
    }

    /// Parses by the catalogue in force.
    fn parsed(&self, agent_id: &str, input: Input<'_>) -> Result<Parsed, Error> {
        Work::parse().done_by(|work| {
            let parsed = self.read_input(agent_id, input, Parser::parse)?;
            work.note_parsed(&parsed.result);
            self.inner.inputs.remember(&parsed.result.intent, input.text, &parsed.redaction)?;
            Ok(parsed)
        })
    }

    /// Reads an input of a known agent with the parser and the tools in force.
    fn read_input<T>(
        &self,
        agent_id: &str,
        input: Input<'_>,
        read: impl FnOnce(&Parser, &ParseRequest<'_>, &Catalogue) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let agent_id = self.known_agent(agent_id)?;
        let at = self.inner.clock.now();
        let call_id = input.context.and_then(Intent::call_id_in);
        let id = call_id.map_or_else(
            || IntentId::new(at, self.inner.entropy.bits()),
            |call_id| IntentId::of_call(&agent_id, call_id),
        );
        let no_context = Map::new();
        let context = input.context.unwrap_or(&no_context);
        let request = ParseRequest { agent_id: &agent_id, input: input.text, context, id, at };
        read(&self.inner.parser, &request, &self.inner.tools.load())
    }

    fn known_agent(&self, agent_id: &str) -> Result<AgentId, Error> {
        let agent_id = checked_agent_id(agent_id)?;
        if !self.inner.auto_register && self.inner.ledger.get(&agent_id).is_none() {
            // A log that could not be read whole may have known it.
            return Err(self.inner.log.refusal().unwrap_or_else(|| Error::agent_not_found(agent_id.as_str())));
        }
        Ok(agent_id)
    }

    /// A page of the proof records that match, newest first unless said otherwise.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidQuery`] that names the parameter.
    pub fn query(&self, query: &ProofQuery) -> Result<ProofPage, Error> {
        self.inner.log.query(query)
    }

    /// Statistics over an entity's records: of all time (`..`), or of a period
    /// given as a range of chrono's UTC times, both ends included.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidQuery`] that names the parameter.
    pub fn stats(&self, entity_id: &str, period: impl Into<Period>) -> Result<ProofStats, Error> {
        self.inner.log.stats(entity_id, period.into())
    }

    /// The agents: registering, reading, changing and suspending them.
    pub const fn agents(&self) -> Agents<'_> {
        Agents { governor: self }
    }

    /// The policy sets: the one in force, and what it or another one decides.
    pub const fn policies(&self) -> Policies<'_> {
        Policies { governor: self }
    }

    /// The escalations and pre-approvals: requests that wait for a reviewer, and the reviewers' answers.
    pub const fn escalations(&self) -> Escalations<'_> {
        Escalations { governor: self }
    }

    /// The agents' trust: its history, and an operator's adjustments.
    pub const fn trust(&self) -> Trust<'_> {
        Trust { governor: self }
    }

    /// The proof log: records and evidence, verification, exports, archives and cursors.
    pub const fn log(&self) -> Log<'_> {
        Log { governor: self }
    }

    /// The tools that a runtime hands over, and how they are classified.
    pub const fn tools(&self) -> Tools<'_> {
        Tools { governor: self }
    }

    /// The tasks: a user's words as the ceiling of what an agent does for them.
    pub const fn tasks(&self) -> Tasks<'_> {
        Tasks { governor: self }
    }

    /// The kill switch: who must not act, whatever the policies say.
    pub const fn kill_switch(&self) -> KillSwitch<'_> {
        KillSwitch { governor: self }
    }

    /// Writes everything down and lets the folder go. From then on, calls on any
    /// clone that read or write the log fail.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when something could not be written.
    pub fn close(&self) -> Result<(), Error> {
        self.inner.extensions.stop();
        #[cfg(feature = "checkpoints")]
        let last_checkpoint = self.stop_checkpoints();
        self.inner.write_cursors(None);
        self.inner.log.close()?;
        #[cfg(feature = "checkpoints")]
        last_checkpoint?;
        Ok(())
    }
}

impl std::fmt::Debug for Governor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Governor").field("policies", &**self.inner.policies.load()).finish_non_exhaustive()
    }
}

fn checked_agent_id(agent_id: &str) -> Result<AgentId, Error> {
    agent_id.parse().map_err(|error: InvalidValue| Error::input("agentId", error.to_string()))
}

const _: fn() = || {
    fn shared_by_threads<T: Send + Sync + Clone>() {}
    shared_by_threads::<Governor>();
};
