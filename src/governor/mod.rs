//! The [`Governor`], which composes the engines.
//!
//! Data flows in one direction: input, `Intent`, `Enforcement`, `ProofRecord`, `Event`. The engines do not depend on
//! each other; the governor passes on what one needs from another.
//!
//! | file | subject |
//! |---|---|
//! | `builder.rs` | configuring and opening a governor |
//! | `decide.rs` | the steps of a decision |
//! | `calls.rs` | idempotency keys of requests and their stored responses |
//! | `decision_clock.rs` | the clock that decisions use |
//! | `detail.rs` | the inputs of a decision, recorded as its evidence |
//! | `risk.rs` | the effective risk, whatever the caller states |
//! | `catalogue.rs` | the tools that a runtime loads |
//! | `checkpoints.rs` | checkpoints of the log, and proofs against them |
//! | `alerts.rs` | alerts raised where a problem occurs |
//! | `follow.rs` | alerts derived from the log |
//! | `watch.rs` | occurrence counts for alert rules |
//! | `events.rs` | event subscriptions |
//! | `cursor.rs` | stored positions in the event stream |
//! | `export.rs` | exporting the log for independent verification, and importing it |
//! | `erasure.rs` | erasing evidence |
//! | `escalations/` | escalations, reviews and pre-approvals |
//! | `agents.rs` | registering, reading, changing and suspending agents |
//! | `agent_file.rs` | agents as lines of text |
//! | `guard.rs` | work under a grant, and the governor as grants see it |
//! | `input_text.rs` | storage, lifetime and redaction of request texts |
//! | `latency.rs` | durations of enforcements |
//! | `limits.rs` | counters of the policies' rate limits |
//! | `pending.rs` | decisions whose commit the caller awaits later |
//! | `permit.rs` | the permit gate: decisions only while the organisation lets the governor decide |
//! | `background.rs` | background work of the governor |
//! | `organisation.rs` | access points for a member of a fleet |
//! | `outcome.rs` | outcomes of actions |
//! | `policies.rs` | the policy set in force |
//! | `preview.rs` | previews of decisions |
//! | `recent.rs` | bounded tables of recent entries |
//! | `repair.rs` | replacing a broken log by a new one |
//! | `retention.rs` | freezing the log and moving entries to archives |
//! | `replay.rs` | reevaluating past decisions with another policy set |
//! | `shadow.rs` | a second policy set that is evaluated but not enforced |
//! | `shared_limits.rs` | limits whose uses are taken from the organisation |
//! | `standing.rs` | interventions that invalidate stored responses |
//! | `state_kinds/` | the kinds of states, and what becomes of each at a restart, an archive and a repair |
//! | `states.rs` | states stored in the log, and their notes |
//! | `status.rs` | health and metrics |
//! | `kill_switch.rs` | setting and lifting kill switches |
//! | `streaks.rs` | repeated denials of an agent |
//! | `tasks/` | tasks, whose mandate follows from the user's words |
//! | `trust.rs` | changes of trust and their entries in the log |
//! | `trust_check.rs` | recomputing trust from the log |
//! | `verification.rs` | verifying the log |
//! | `extension.rs` | access points for crates that build on a governor |

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
#[cfg(test)]
mod index_tests;
mod input_text;
mod kill_switch;
mod latency;
mod limits;
mod log;
mod organisation;
mod outcome;
mod pending;
mod permit;
mod policies;
mod preview;
mod recent;
mod repair;
mod replay;
mod retention;
mod risk;
mod shadow;
mod shared_limits;
mod standing;
mod state_kinds;
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
    permits: permit::PermitGate,
    shared: shared_limits::Provider,
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
    boot_id: Box<str>,
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
        Ok(self.parsed(agent_id, input.into())?.result)
    }

    /// Parses an input with the current tool catalogue and remembers its text for the evidence.
    fn parsed(&self, agent_id: &str, input: Input<'_>) -> Result<Parsed, Error> {
        Work::parse().done_by(|work| {
            let parsed = self.read_input(agent_id, input, Parser::parse)?;
            work.note_parsed(&parsed.result);
            self.inner.inputs.remember(&parsed.result.intent, input.text, &parsed.redaction)?;
            Ok(parsed)
        })
    }

    /// Reads an input of a known agent with the parser and the current tool catalogue.
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
            // A log that could not be read completely may contain the agent.
            return Err(self.inner.log.refusal().unwrap_or_else(|| Error::agent_not_found(agent_id.as_str())));
        }
        Ok(agent_id)
    }

    /// Returns a page of the matching proof records, newest first by default.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidQuery`], which names the parameter; [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when
    /// the log cannot be read.
    pub fn query(&self, query: &ProofQuery) -> Result<ProofPage, Error> {
        self.inner.log.query(query)
    }

    /// Computes statistics over an agent's records: of all time (`..`), or of a range of chrono's UTC times, both ends
    /// included.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidQuery`], which names the parameter; [`Error::StorageUnavailable`] or [`Error::ChainBroken`] when
    /// the log cannot be read.
    pub fn stats(&self, entity_id: &str, period: impl Into<Period>) -> Result<ProofStats, Error> {
        self.inner.log.stats(entity_id, period.into())
    }

    /// The agents: register, read, change and suspend them.
    pub const fn agents(&self) -> Agents<'_> {
        Agents { governor: self }
    }

    /// The policies: loads and shows the set in force, and previews, explains or replays decisions under this or another set.
    pub const fn policies(&self) -> Policies<'_> {
        Policies { governor: self }
    }

    /// The escalations and pre-approvals: requests that await a reviewer, and the reviewers' answers.
    pub const fn escalations(&self) -> Escalations<'_> {
        Escalations { governor: self }
    }

    /// The agents' trust: its history, and an operator's adjustments.
    pub const fn trust(&self) -> Trust<'_> {
        Trust { governor: self }
    }

    /// The proof log: records and evidence, verification, exports, archives and event cursors.
    pub const fn log(&self) -> Log<'_> {
        Log { governor: self }
    }

    /// The tool catalogue: the tools that a runtime loads, and their classification.
    pub const fn tools(&self) -> Tools<'_> {
        Tools { governor: self }
    }

    /// The tasks: a user's words limit what an agent may do for them.
    pub const fn tasks(&self) -> Tasks<'_> {
        Tasks { governor: self }
    }

    /// The kill switch: stops agents, whatever the policies say.
    pub const fn kill_switch(&self) -> KillSwitch<'_> {
        KillSwitch { governor: self }
    }

    /// Writes pending entries to disk and releases the store folder. Later calls on any clone that read or write the
    /// log fail.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when an entry could not be written.
    pub fn close(&self) -> Result<(), Error> {
        self.inner.extensions.stop();
        self.inner.write_cursors(None);
        self.inner.log.close()
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
