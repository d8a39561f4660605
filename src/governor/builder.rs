//! Configuring and opening a governor.

use std::fs;
use std::path::{self, Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;

use crate::governor::decider::{calls::Calls, latency::Latency};
use crate::governor::extension::{Extension, Extensions};
use crate::governor::intake::input_text::{InputText, Inputs, Retention};
use crate::governor::intake::{catalogue::Loaded, risk::ActionFloors};
use crate::governor::log::decision_clock::DecisionClock;
use crate::governor::roster::{kill_switch::KillSwitches, permit::PermitGate, streaks::Streaks};
use crate::governor::rules::limits::Counters;
use crate::governor::rules::policies::{PolicySets, PolicyState};
use crate::governor::state_kinds::Restored;
use crate::governor::{
    Alerting, Approvals, Base, Confiner, Decider, Governor, Inner, Intake, Past, Roster, Rules, TaskBook,
};
use crate::model::{Error, OpenVerification, Opening, Timestamp};
use crate::parse::{self, Parser};
use crate::policy::PolicySet;
use crate::proof::{Durability, LogOptions, OpenLogError, Place, ProofLog, Startup};
use crate::store::StoreId;
use crate::system::{Clock, Entropy, SystemClock, SystemEntropy};
use crate::telemetry;
use crate::trust::TrustModel;

/// Configures and opens a [`Governor`].
///
/// ```
/// use rulekeep::{Decision, Durability, Governor, Intent, PolicySet, RiskLevel};
///
/// let policies = PolicySet::from_toml(
///     r#"
///     name = "readers"
///     [[rule]]
///     id = "anybody-reads-documents"
///     effect = "allow"
///     match.capabilities = ["document:read"]
///     "#,
/// )?;
/// let governor = Governor::builder()
///     .policies(policies)
///     .durability(Durability::Buffered)
///     .auto_register()
///     .open_in_memory()?;
/// let intent = Intent::new("reader-1", "read_document", RiskLevel::Low, ["document:read"])?;
/// assert_eq!(governor.enforce(&intent)?.decision, Decision::Allow);
/// # Ok::<(), rulekeep::Error>(())
/// ```
#[must_use]
pub struct GovernorBuilder {
    policies: Option<PolicySet>,
    rows: Option<String>,
    trust_model: TrustModel,
    durability: Durability,
    cache_bytes: u64,
    auto_register: bool,
    requires_permit: bool,
    requires_base: bool,
    verifying: OpenVerification,
    input_text: InputText,
    retention: Retention,
    confiner: Option<Confiner>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    #[cfg(feature = "checkpoints")]
    pub(crate) checkpoints: crate::governor::log::checkpoints::Checkpoints,
}

impl GovernorBuilder {
    pub(crate) fn new() -> Self {
        Self {
            policies: None,
            rows: None,
            trust_model: TrustModel::default(),
            durability: Durability::default(),
            cache_bytes: LogOptions::default().cache_bytes,
            auto_register: false,
            requires_permit: false,
            requires_base: false,
            verifying: OpenVerification::default(),
            input_text: InputText::default(),
            retention: Retention::default(),
            confiner: None,
            clock: Arc::new(SystemClock),
            entropy: Arc::new(SystemEntropy),
            #[cfg(feature = "checkpoints")]
            checkpoints: crate::governor::log::checkpoints::Checkpoints::default(),
        }
    }

    /// Sets the policy set to put in force. Default: the one that was last in force in the store; in a new store
    /// [`PolicySet::recommended`].
    pub fn policies(mut self, policies: PolicySet) -> Self {
        self.policies = Some(policies);
        self
    }

    /// Sets labeled requests that adapt the parser, see [`Parser::with_rows`]. They are checked when the store is
    /// opened. Default: none.
    pub fn intent_rows(mut self, rows: impl Into<String>) -> Self {
        self.rows = Some(rows.into());
        self
    }

    /// Sets the parameters of trust changes. They are checked when the store is opened, see [`TrustModel::checked`].
    pub fn trust_model(mut self, model: TrustModel) -> Self {
        self.trust_model = model;
        self
    }

    /// Sets when calls that record something return. Default: [`Durability::Sync`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the memory for the index's cache in bytes; sled can use several times as much. Default: 16 MiB.
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// Registers unknown agents at their first request, with a score of 200 (T1). Default: such requests fail with
    /// `AGENT_NOT_FOUND`.
    pub fn auto_register(mut self) -> Self {
        self.auto_register = true;
        self
    }

    /// Requires a permit of the governor's organisation for every decision, from the opening on. Opening fails with
    /// [`Error::Conflict`] if the clock does not tell the time since boot. Default: no permit is required. See
    /// [`Extension::require_permit`](crate::extension::Extension::require_permit).
    pub fn require_permit(mut self) -> Self {
        self.requires_permit = true;
        self
    }

    /// Leaves an act open if it names a relative path and the context has no `cwd`: no grant over paths covers it, and
    /// every restriction over paths binds it. Default: a relative path is outside absolute globs.
    pub fn require_base(mut self) -> Self {
        self.requires_base = true;
        self
    }

    /// Sets how much of the log is verified before opening returns. Default: all of it. See
    /// [`Log::verification`](crate::handle::Log::verification).
    pub fn verification(mut self, when: OpenVerification) -> Self {
        self.verifying = when;
        self
    }

    /// Sets how the evidence stores request texts. Default: [`InputText::Asked`].
    pub fn input_text(mut self, how: InputText) -> Self {
        self.input_text = how;
        self
    }

    /// Sets the minimum age of evidence that may be erased; erasing younger evidence is refused. Default: zero.
    pub fn retain_evidence_for(mut self, duration: Duration) -> Self {
        self.retention.keep_for(duration);
        self
    }

    /// Refuses every erasure of evidence before this time. Together with [`GovernorBuilder::retain_evidence_for`], the
    /// later time applies.
    pub fn retain_evidence_until(mut self, until: impl Into<Timestamp>) -> Self {
        self.retention.until = Some(until.into());
        self
    }

    /// Sets the program that confines commands, see [`Governor::guard_command`]. Default: none, and a command that a
    /// decision confines does not run.
    pub fn confiner(mut self, confiner: Confiner) -> Self {
        self.confiner = Some(confiner);
        self
    }

    /// Sets the source of time. Default: the system clock.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Sets the source of random bits. Default: the operating system.
    pub fn entropy(mut self, entropy: impl Entropy + 'static) -> Self {
        self.entropy = Arc::new(entropy);
        self
    }

    /// Opens the store in a folder, or creates one in an empty or new folder.
    ///
    /// # Errors
    ///
    /// The errors of [`Governor::open`]; [`Error::InvalidPolicy`] when the policy set that was last in force no longer loads
    /// or the labeled requests are invalid.
    pub fn open(self, folder: impl AsRef<Path>) -> Result<Governor, Error> {
        let folder: PathBuf = folder.as_ref().to_owned();
        self.open_at(&Place::Folder(folder))
    }

    /// Opens a store for reading, see [`Governor::open_read_only`].
    ///
    /// # Errors
    ///
    /// The errors of [`Governor::open_read_only`].
    pub fn open_read_only(self, folder: impl AsRef<Path>) -> Result<Governor, Error> {
        self.open_at(&Place::ReadOnly(folder.as_ref().to_owned()))
    }

    /// Opens a store in memory, for tests and trials. It runs the same code and leaves no files behind.
    ///
    /// # Errors
    ///
    /// [`Error::StorageUnavailable`] when the writer thread cannot be started.
    pub fn open_in_memory(self) -> Result<Governor, Error> {
        self.open_at(&Place::Memory)
    }

    fn open_at(mut self, place: &Place) -> Result<Governor, Error> {
        self.trust_model = self.trust_model.checked()?;
        let options = LogOptions {
            durability: self.durability,
            cache_bytes: self.cache_bytes,
            verifying: self.verifying,
            ..LogOptions::default()
        };
        let fresh = StoreId(self.entropy.bits().to_le_bytes());
        let (log, startup) =
            ProofLog::open(place, &options, self.clock.now(), fresh).map_err(|error| open_error(place, error))?;
        let folder = match place {
            Place::Folder(folder) | Place::ReadOnly(folder) => {
                fs::canonicalize(folder).or_else(|_| path::absolute(folder)).ok()
            }
            Place::Memory => None,
        };
        self.assemble(log, startup, folder)
    }

    /// Opens a store in files prepared by a test.
    #[cfg(test)]
    pub(crate) fn open_files(self, files: Arc<dyn crate::store::Files>) -> Result<Governor, Error> {
        let fresh = StoreId(self.entropy.bits().to_le_bytes());
        let opened = ProofLog::open_files(files, None, None, &LogOptions::default(), self.clock.now(), fresh);
        let (log, startup) = opened.map_err(|error| open_error(&Place::Memory, error))?;
        self.assemble(log, startup, None)
    }

    fn assemble(self, log: ProofLog, startup: Startup, folder: Option<PathBuf>) -> Result<Governor, Error> {
        parse::prepare();
        let parser = self.rows.as_deref().map_or_else(Parser::new, Parser::with_rows)?;
        let parser = if self.requires_base { parser.require_base() } else { parser };
        let restored = Restored::of(&startup.states)?;
        #[cfg(feature = "checkpoints")]
        self.checkpoints.resume(&log)?;
        let clock = Arc::new(DecisionClock::new(self.clock, log.queue().last_time()));
        let permits = PermitGate::default();
        if self.requires_permit {
            permits.require(&*clock)?;
        }
        let (policies, is_new) = PolicyState::choose(self.policies, restored.policies)?;
        let base = Arc::new(Base { log, clock, entropy: self.entropy });
        let roster = Arc::new(Roster {
            base: Arc::clone(&base),
            ledger: restored.ledger,
            trust_model: self.trust_model,
            auto_register: self.auto_register,
            denials: Streaks::default(),
            stops: KillSwitches::restored(restored.stops),
            permits,
        });
        let rules = Arc::new(Rules {
            base: Arc::clone(&base),
            roster: Arc::clone(&roster),
            policies: PolicySets::new(policies),
            limits: Counters::restored(startup.used),
            shared: ArcSwapOption::empty(),
            watch: Mutex::default(),
        });
        let intake = Arc::new(Intake {
            base: Arc::clone(&base),
            roster: Arc::clone(&roster),
            parser,
            tools: Loaded::restored(restored.rulings),
            action_floors: ActionFloors::default(),
            inputs: Inputs::kept_as(self.input_text),
        });
        let alerting = Arc::new(Alerting {
            base: Arc::clone(&base),
            rules: Arc::clone(&rules),
            following: restored.following,
            cursors: restored.cursors,
        });
        let approvals = Arc::new(Approvals {
            base: Arc::clone(&base),
            roster: Arc::clone(&roster),
            rules: Arc::clone(&rules),
            intake: Arc::clone(&intake),
            queue: restored.queue,
            given: restored.given,
            watch: OnceLock::new(),
            mended: OnceLock::new(),
        });
        let decider = Arc::new(Decider {
            base: Arc::clone(&base),
            roster: Arc::clone(&roster),
            rules: Arc::clone(&rules),
            intake: Arc::clone(&intake),
            approvals: Arc::clone(&approvals),
            calls: Calls::default(),
            latency: Latency::default(),
            opened: Instant::now(),
        });
        let tasks = TaskBook::restored(&approvals, &decider, restored.tasks);
        let past = Past(Arc::clone(&decider));
        let governor = Governor {
            inner: Arc::new(Inner {
                base,
                roster,
                rules,
                intake,
                alerting,
                approvals,
                decider,
                tasks,
                past,
                #[cfg(feature = "checkpoints")]
                checkpoints: self.checkpoints,
                retention: self.retention,
                confiner: self.confiner,
                folder,
                opening: Opening::new(startup.created, startup.recovered, startup.erased_evidence),
                extensions: Extensions::restored(restored.extensions),
            }),
        };
        let weak = Extension::of(&governor).weakly();
        let mended = move || {
            if let Some(governor) = weak.upgrade() {
                governor.inner.extensions.running().iter().for_each(|follower| follower.expire(&governor));
            }
        };
        let _ = governor.inner.approvals.mended.set(Box::new(mended));
        telemetry::describe();
        governor.inner.approvals.publish_pending();
        governor.resume(restored.trust_model.as_deref(), is_new)?;
        Ok(governor)
    }
}

impl Governor {
    /// Continues what the log says is going on, and records the settings that are new.
    fn resume(&self, trust_model: Option<&[u8]>, has_new_policies: bool) -> Result<(), Error> {
        let Inner { base, roster, rules, alerting, approvals, .. } = &*self.inner;
        // A broken log accepts no entries; its decisions are refused anyway.
        if base.log.state().refusing.is_some() {
            return Ok(());
        }
        approvals.resume_escalations()?;
        roster.record_trust_model(trust_model)?;
        if has_new_policies {
            let cause = "put in force when the store was opened";
            base.log.settle(rules.order_policies(&rules.policies.load(), cause)?)?;
        }
        alerting.follow_alerts()
    }
}

fn open_error(place: &Place, error: OpenLogError) -> Error {
    let place = match place {
        Place::Folder(folder) | Place::ReadOnly(folder) => folder.display().to_string(),
        Place::Memory => "a store in memory".to_owned(),
    };
    Error::storage(place).caused_by(error)
}
