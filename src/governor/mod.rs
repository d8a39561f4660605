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
//! | `detail.rs` | what a decision depended on, for its evidence |
//! | `risk.rs` | the risk that counts, whatever the caller claims |
//! | `carried.rs` | what a repair takes over besides agents, policies and stops |
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
//! | `kept.rs` | what is kept of what was asked, how long, and what is masked |
//! | `keys.rs` | what the log keeps of API keys, and the doors for whoever checks them |
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
//! | `status.rs` | health and metrics |
//! | `stop.rs` | who must not act: setting and lifting stops |
//! | `streaks.rs` | denials of an agent that follow close on each other |
//! | `trust.rs` | what moves trust, and where each move is written |
//! | `trust_check.rs` | trust made anew from the log |
//! | `watch.rs` | how often what alert rules look for happened |
//! | `verification.rs` | verifying the log |
//! | `webhooks.rs` | what the log keeps of endpoints, and the doors for those that tell them |

mod agent_file;
mod agents;
mod alerts;
mod background;
mod builder;
mod carried;
mod catalogue;
#[cfg(feature = "checkpoints")]
mod checkpoints;
mod cursor;
mod decide;
mod detail;
mod erasure;
mod escalations;
mod events;
mod export;
mod follow;
mod kept;
pub(crate) mod keys;
mod latency;
mod limits;
mod outcome;
mod pending;
mod policies;
mod preview;
mod repair;
mod replay;
mod retention;
mod risk;
mod shadow;
#[cfg(feature = "http")]
mod standing;
mod status;
mod stop;
mod streaks;
mod trust;
mod trust_check;
mod verification;
mod watch;
pub(crate) mod webhooks;

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

use arc_swap::{ArcSwap, ArcSwapOption};
use serde_json::{Map, Value};

pub use builder::GovernorBuilder;
#[cfg(feature = "checkpoints")]
pub use checkpoints::verify_signed_archive;
pub(crate) use cursor::Reader;
pub use escalations::{EscalationAnswer, Escalations, PreApprovalStanding};
pub use events::{EventFilter, Subscription};
pub use kept::InputText;
pub use pending::PendingEnforcement;
pub use preview::{Explanation, Preview, PreviewError};
pub use repair::{RepairOptions, repair};
pub use replay::{Replay, ReplayChange, ReplayRange};
pub use retention::verify_archive;
pub use shadow::{ShadowDifference, ShadowReport};
#[cfg(feature = "http")]
pub(crate) use standing::Standing;
#[cfg(feature = "gateway")]
pub(crate) use stop::said_with;

use crate::model::{
    AgentId, Error, IntentId, InvalidValue, Opening, Order, ParseExplanation, ParseResult, Period, ProofId, ProofPage,
    ProofRecord, ProofStats,
};
use crate::parse::{ParseRequest, Parsed, Parser};
use crate::policy::PolicySet;
use crate::proof::{Evidence, ProofLog, ProofQuery};
use crate::system::{Clock, Entropy};
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
/// governor.register_agent(Agent::new("support-1").at_tier(Tier::T4))?;
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
    tools: catalogue::Tools,
    action_floors: ActionFloors,
    /// The set in force. Read without a lock; swapped under `policy_turn`.
    policies: ArcSwap<PolicySet>,
    /// The set in the shadow, if there is one.
    shadow: ArcSwapOption<shadow::Shadow>,
    // Who swaps the set holds it, so that the journal's order is the order of swaps.
    policy_turn: Mutex<()>,
    limits: limits::Counters,
    stops: stop::Stops,
    denials: streaks::Streaks,
    escalations: escalations::Queue,
    /// What people agreed to beforehand.
    pre_approvals: escalations::PreApprovals,
    /// Ends escalations that are due; started with the first.
    escalation_watch: OnceLock<Option<background::Background>>,
    inputs: kept::Inputs,
    retention: kept::Retention,
    alerts: alerts::Alerts,
    following: follow::Following,
    cursors: cursor::Cursors,
    ledger: Ledger,
    trust_model: TrustModel,
    log: ProofLog,
    #[cfg(feature = "checkpoints")]
    checkpoints: checkpoints::Checkpoints,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    auto_register: bool,
    opening: Opening,
    opened: Instant,
    latency: Latency,
    webhooks: webhooks::Webhooks,
    keys: keys::Keys,
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

    /// A governor put together by hand.
    pub fn builder() -> GovernorBuilder {
        GovernorBuilder::new()
    }

    /// Parses an action request, in words or structured, into an intent.
    /// Nothing is recorded.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] for an empty input, [`Error::PayloadTooLarge`] past
    /// 64 KiB, [`Error::AgentNotFound`].
    pub fn parse(&self, agent_id: &str, input: &str) -> Result<ParseResult, Error> {
        self.parse_with(agent_id, input, &Map::new())
    }

    /// Like [`Governor::parse`], with a context of the caller's.
    ///
    /// # Errors
    ///
    /// Those of [`Governor::parse`]; also for a context past 64 KiB or 32 levels.
    pub fn parse_with(&self, agent_id: &str, input: &str, context: &Map<String, Value>) -> Result<ParseResult, Error> {
        Ok(self.parsed(agent_id, input, context)?.result)
    }

    /// Like [`Governor::parse_with`], and says why: which words or arguments gave
    /// the operation, the resource, each capability and each risk factor.
    ///
    /// # Errors
    ///
    /// Those of [`Governor::parse_with`].
    pub fn explain_parse(
        &self,
        agent_id: &str,
        input: &str,
        context: &Map<String, Value>,
    ) -> Result<ParseExplanation, Error> {
        let agent_id = self.known_agent(agent_id)?;
        let at = self.inner.clock.now();
        let id = IntentId::new(at, self.inner.entropy.bits());
        let request = ParseRequest { agent_id: &agent_id, input, context, id, at };
        let explained = self.inner.parser.explain(&request, &self.inner.tools.load())?;
        self.inner.inputs.remember(&explained.parse.intent, input);
        Ok(explained)
    }

    /// Parses by the catalogue in force.
    fn parsed(&self, agent_id: &str, input: &str, context: &Map<String, Value>) -> Result<Parsed, Error> {
        Work::parse().done_by(|work| {
            let agent_id = self.known_agent(agent_id)?;
            let at = self.inner.clock.now();
            let id = IntentId::new(at, self.inner.entropy.bits());
            let request = ParseRequest { agent_id: &agent_id, input, context, id, at };
            let parsed = self.inner.parser.parse(&request, &self.inner.tools.load())?;
            work.note_parsed(&parsed.result);
            self.inner.inputs.remember(&parsed.result.intent, input);
            Ok(parsed)
        })
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

    /// All proof records that match, one after another, in bounded memory: those
    /// that are there now. Page and page size of the query do not count.
    ///
    /// An item is an error when the query is refused or the index cannot be
    /// read, and then it is the last one, or when a record of a damaged log
    /// cannot be read.
    pub fn records<'a>(&'a self, query: &ProofQuery) -> impl Iterator<Item = Result<ProofRecord, Error>> + use<'a> {
        self.inner.log.records(query)
    }

    /// The proof records of an intent, the oldest first: each time that it was
    /// decided on.
    pub fn proofs_of(&self, intent_id: IntentId) -> impl Iterator<Item = Result<ProofRecord, Error>> {
        self.records(&ProofQuery::all().intent(intent_id).order(Order::OldestFirst))
    }

    /// A proof record by its id.
    ///
    /// # Errors
    ///
    /// [`Error::ProofNotFound`].
    pub fn proof(&self, proof_id: &ProofId) -> Result<ProofRecord, Error> {
        self.inner.log.record(proof_id)
    }

    /// What a decision depended on, as it was kept beside its record.
    ///
    /// # Errors
    ///
    /// [`Error::ProofNotFound`].
    pub fn evidence(&self, proof_id: &ProofId) -> Result<Evidence, Error> {
        self.inner.log.evidence(proof_id)
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

    /// What was found when the store was opened: whether it is new, and whether
    /// a crash had cut a write short.
    pub fn opening(&self) -> &Opening {
        &self.inner.opening
    }

    /// Waits until everything that was decided and reported before is on disk. Of use with
    /// [`Durability::Buffered`](crate::Durability::Buffered).
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when it could not be written.
    pub fn flush(&self) -> Result<(), Error> {
        self.inner.log.flush()
    }

    /// Writes everything down and lets the folder go. From then on, calls on any
    /// clone that read or write the log fail.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when something could not be written.
    pub fn close(&self) -> Result<(), Error> {
        self.inner.webhooks.stop();
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
