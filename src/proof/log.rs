//! The door of the proof engine.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::apply::Reading;
use super::entry::{RecoveryEntry, StoreEntry};
use super::evidence::{self, Evidence};
use super::feed::Feed;
use super::index::{Filter, Index, Tally, Totals};
use super::intake::{DecisionDraft, Draft, Durability, Intake, OutcomeDraft, OutcomeSlot, Refusal, StateDraft};
use super::past::{Past, PastDecision, PastRange};
use super::progress::Progress;
use super::query::{ProofQuery, checked_entity, checked_period};
use super::record::StoredRecord;
use super::shared::{Shared, load_view};
use super::used::UsedLimit;
use super::writer::{Pace, Writer};
use crate::model::{
    AgentId, Alert, Breakage, Decision, Error, Outcome, Period, ProofId, ProofPage, ProofRecord, ProofStats, Recovered,
    RiskLevel, Sequence, Timestamp, Verification,
};
use crate::store::{
    self, Files, FolderLock, Frame, FrameDraft, Journal, Kind, LockError, MemoryFiles, Position, RealFiles, StoreId,
    ViewError,
};

/// Where a log is kept.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// In a folder, which is made when it is not there.
    Folder(PathBuf),
    /// In memory; gone when the log is.
    Memory,
}

/// How a log is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogOptions {
    pub(crate) durability: Durability,
    /// Memory for the view's cache, in bytes.
    pub(crate) cache_bytes: u64,
    /// Drafts that may wait for the writer.
    pub(crate) queue: usize,
    /// How long a caller waits for room in the queue.
    pub(crate) patience: Duration,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { durability: Durability::Sync, cache_bytes: 16 << 20, queue: 1 << 16, patience: Duration::from_secs(2) }
    }
}

/// The log of one store.
pub(crate) struct ProofLog {
    shared: Arc<Shared>,
    durability: Durability,
    // Taken by whoever closes first.
    open: Mutex<Option<Open>>,
}

/// What an open log holds.
struct Open {
    /// A broken log has no writer.
    writer: Option<JoinHandle<()>>,
    /// A log in memory has no folder.
    _lock: Option<FolderLock>,
}

/// What a log held when it was opened.
pub(crate) struct Startup {
    /// Every state by its key, as JSON.
    pub(crate) states: Vec<(String, Vec<u8>)>,
    /// What was used of limits and may still count, in order.
    pub(crate) used: Vec<UsedLimit>,
    /// The log was made just now.
    pub(crate) created: bool,
    /// A write had been cut short, and this was set aside.
    pub(crate) recovered: Option<Recovered>,
}

/// Why a log could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenLogError {
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Store(#[from] store::OpenError),
    #[error("cannot {0}: {1}")]
    Io(&'static str, #[source] std::io::Error),
    #[error("{0} is a file, not a folder")]
    NotAFolder(PathBuf),
}

/// A decision that is in order.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Committed {
    pub(crate) proof_id: ProofId,
    pub(crate) sequence: Sequence,
    pub(crate) at: Timestamp,
}

/// What an outcome needs to know of its decision.
#[derive(Debug, Clone)]
pub(crate) struct DecisionFacts {
    pub(crate) entity: AgentId,
    pub(crate) decision: Decision,
    pub(crate) risk: RiskLevel,
}

/// How a log stands.
#[derive(Debug, Clone)]
pub(crate) struct LogState {
    pub(crate) totals: Totals,
    pub(crate) breakage: Option<Breakage>,
    /// Decisions are refused, and why.
    pub(crate) refusing: Option<String>,
    pub(crate) view_lost: bool,
}

impl ProofLog {
    /// Opens the log, verifying all of it, or makes a new one. A broken log
    /// opens too: it answers queries, and refuses everything new.
    pub(crate) fn open(
        place: &Place,
        options: &LogOptions,
        now: Timestamp,
        fresh: StoreId,
    ) -> Result<(Self, Startup), OpenLogError> {
        let (files, lock, view): (Arc<dyn Files>, _, _) = match place {
            Place::Folder(folder) => {
                if folder.exists() && !folder.is_dir() {
                    return Err(OpenLogError::NotAFolder(folder.clone()));
                }
                make_folder(folder)?;
                store::refuse_foreign(&RealFiles::new(folder.clone()))?;
                let lock = FolderLock::acquire(folder)?;
                (Arc::new(RealFiles::new(folder.clone())), Some(lock), Some(folder.join(store::VIEW_FOLDER)))
            }
            Place::Memory => (Arc::new(MemoryFiles::new()), None, None),
        };
        Self::open_files(files, lock, view, options, now, fresh)
    }

    pub(super) fn open_files(
        files: Arc<dyn Files>,
        lock: Option<FolderLock>,
        view: Option<PathBuf>,
        options: &LogOptions,
        now: Timestamp,
        fresh: StoreId,
    ) -> Result<(Self, Startup), OpenLogError> {
        // A folder that holds no store yet must not be given a view before it is known to become one.
        let (mut index, mark, load_error) = match files.list(Path::new("")) {
            Ok(names) if is_store(&names) => load_view(view.as_deref(), options.cache_bytes),
            _ => (Index::new(None), None, Some(ViewError::Disagrees("there is none yet"))),
        };
        let mut reading = Reading::into_index(&mut index);
        let view_entries = mark.map(|mark| (mark.store, mark.totals.applied.entries));
        let opened = store::open(files, &mut reading, view_entries, fresh)?;
        let Reading { states, used, census, view_error, .. } = reading;
        let view_error = load_error.or(view_error).or_else(|| {
            let mark = mark?;
            let applied = mark.totals.applied;
            let same = mark.store == opened.store && (applied.entries == 0 || opened.view_link == Some(applied.link));
            (!same).then_some(ViewError::Disagrees("it was made from another journal"))
        });
        let view_error = view_error.or_else(|| {
            (!index.agrees_with(&census)).then_some(ViewError::Disagrees("its sums are not the journal's"))
        });
        let (journal, breakage) = match opened.journal {
            Ok(journal) => (Some(journal), None),
            Err(breakage) => (None, Some(breakage)),
        };

        let shared = Shared {
            intake: Intake::new(options.queue, options.patience, options.durability == Durability::Sync),
            progress: Progress::new(opened.position.entries),
            index: RwLock::new(index),
            reader: opened.reader,
            store: opened.store,
            view,
            cache_bytes: options.cache_bytes,
            view_lost: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            breakage: Mutex::new(breakage.clone()),
        };
        {
            let mut index = shared.index.write().unwrap_or_else(PoisonError::into_inner);
            match (&breakage, view_error) {
                // The view is left as it is: it may help to tell what happened.
                (Some(_), _) => shared.index_in_memory(&mut index),
                (None, Some(_)) => shared.rebuild(&mut index),
                (None, None) => {}
            }
        }
        let shared = Arc::new(shared);
        let writer = if let Some(journal) = journal {
            Some(Self::start(&shared, journal, options, opened.created, opened.recovered.as_ref(), now)?)
        } else {
            let message = breakage.as_ref().map_or_else(String::new, ToString::to_string);
            shared.intake.refuse(Refusal::Broken(message));
            shared.intake.start_at(opened.position.entries, now);
            shared.progress.over();
            None
        };
        let open = Mutex::new(Some(Open { writer, _lock: lock }));
        let log = Self { shared, durability: options.durability, open };
        Ok((
            log,
            Startup {
                states: states.into_iter().collect(),
                used: used.into_list(),
                created: opened.created,
                recovered: opened.recovered,
            },
        ))
    }

    /// Writes what a new or a recovered journal must say first, then starts the writer.
    fn start(
        shared: &Arc<Shared>,
        mut journal: Journal,
        options: &LogOptions,
        created: bool,
        recovered: Option<&Recovered>,
        now: Timestamp,
    ) -> Result<JoinHandle<()>, OpenLogError> {
        let error = |error| OpenLogError::Io("write to the store", error);
        let at = now.max(Timestamp::from_millis(shared.index().totals().last_time));
        let mut first_entries = Vec::new();
        if journal.position().entries == 0 {
            let store = StoreEntry {
                format: 1,
                store: shared.store.to_string(),
                timestamp: at,
                made_by: format!("rulekeep {}", env!("CARGO_PKG_VERSION")),
            };
            first_entries.push((Kind::Store, json(&store).map_err(error)?));
        }
        if let Some(Recovered { copy, bytes, segment, offset }) = recovered.cloned() {
            let entry = RecoveryEntry { copy, bytes, segment, offset, timestamp: at };
            first_entries.push((Kind::Recovery, json(&entry).map_err(error)?));
        }
        for (kind, body) in &first_entries {
            let position = journal.stage(&FrameDraft { kind: *kind, body, evidence: &[] }).map_err(error)?;
            shared.index.write().unwrap_or_else(PoisonError::into_inner).advance(position);
        }
        journal.write().map_err(error)?;
        // Before anything is acknowledged, `HEAD` stands beside the journal.
        if created || !first_entries.is_empty() {
            journal.note_head().map_err(error)?;
        }
        let entries = journal.position().entries;
        shared.intake.start_at(entries, at);
        shared.progress.durable(entries);
        shared.progress.applied(entries);

        let gather = match options.durability {
            Durability::Sync => Duration::ZERO,
            Durability::Buffered => FLUSH_INTERVAL,
        };
        let pace = Pace { gather, idle: IDLE, persist_every: PERSIST_EVERY };
        let head_hash = shared.index().totals().head_hash;
        let writer = Writer::new(Arc::clone(shared), journal, pace, head_hash);
        thread::Builder::new().name("rulekeep-writer".to_owned()).spawn(move || writer.run()).map_err(error)
    }

    /// Puts a decision in order; [`ProofLog::settle`] waits for it.
    pub(crate) fn decide(&self, now: Timestamp, draft: DecisionDraft) -> Result<Committed, Error> {
        let (proof_id, sequence, at) = self.shared.intake.decision(now, draft)?;
        Ok(Committed { proof_id, sequence, at })
    }

    /// Puts a change of state in order.
    pub(crate) fn set_state(&self, now: Timestamp, state: StateDraft, cause: String) -> Result<Sequence, Error> {
        self.shared.intake.state(now, state, cause)
    }

    /// Puts an alert in order.
    pub(crate) fn alert(&self, now: Timestamp, alert: Alert) -> Result<Sequence, Error> {
        self.shared.intake.alert(now, alert)
    }

    /// The entries from `next` on, or those that are put in order from now on.
    pub(crate) fn feed(&self, next: Option<Sequence>) -> Feed {
        Feed::new(Arc::clone(&self.shared), next.map_or_else(|| self.shared.intake.ordered(), Sequence::get))
    }

    /// Puts an outcome in order. `Ok(None)` when the same outcome stands already.
    pub(crate) fn report(
        &self,
        now: Timestamp,
        mut draft: impl FnMut() -> Result<OutcomeDraft, Error>,
    ) -> Result<Option<Sequence>, Error> {
        loop {
            let draft = draft()?;
            let (proof_id, outcome) = (draft.proof_id, draft.outcome);
            let version = self.shared.intake.claims_version();
            let recorded = self.outcome_of(&draft.entity, proof_id.sequence())?;
            let standing = match recorded {
                Some(standing) => standing,
                None => match self.shared.intake.outcome(now, draft, version)? {
                    OutcomeSlot::Ordered(sequence) => return Ok(Some(sequence)),
                    OutcomeSlot::Standing(standing) => standing,
                    OutcomeSlot::LookAgain => continue,
                },
            };
            return if standing == outcome {
                Ok(None)
            } else {
                let message = format!("{proof_id} has the outcome {standing} already; the first one stands");
                Err(Error::Conflict { message })
            };
        }
    }

    /// Waits until the entry is as durable as the log promises.
    pub(crate) fn settle(&self, sequence: Sequence) -> Result<(), Error> {
        match self.durability {
            Durability::Buffered => Ok(()),
            Durability::Sync if self.shared.progress.wait_durable(sequence) => Ok(()),
            Durability::Sync => Err(self.refused("the writer stopped")),
        }
    }

    /// What an outcome needs to know of its decision.
    pub(crate) fn facts(&self, proof_id: &ProofId) -> Result<DecisionFacts, Error> {
        self.check_open()?;
        let pending = self.shared.intake.pending(proof_id.sequence(), |pending| match &pending.draft {
            Draft::Decision { id, draft } if id == proof_id => {
                Some(DecisionFacts { entity: draft.entity.clone(), decision: draft.decision, risk: draft.risk })
            }
            _ => None,
        });
        match pending {
            Some(facts) => facts.ok_or_else(|| Error::proof_not_found(proof_id)),
            None => self.stored(proof_id, |frame| {
                let fields = StoredRecord::split(frame.body).and_then(|stored| stored.fields().ok());
                fields.filter(|fields| fields.id == *proof_id).map(|fields| DecisionFacts {
                    entity: fields.entity_id,
                    decision: fields.decision,
                    risk: fields.risk_level,
                })
            }),
        }
    }

    /// A record by its id, with its outcome.
    pub(crate) fn record(&self, proof_id: &ProofId) -> Result<ProofRecord, Error> {
        self.catch_up()?;
        let mut record = self.stored(proof_id, |frame| {
            let record = StoredRecord::split(frame.body)?.record(None).ok()?;
            (record.id == *proof_id).then_some(record)
        })?;
        record.outcome = self.outcome_of(&record.entity_id, proof_id.sequence())?;
        Ok(record)
    }

    /// The evidence beside a record.
    pub(crate) fn evidence(&self, proof_id: &ProofId) -> Result<Evidence, Error> {
        self.catch_up()?;
        self.stored(proof_id, |frame| {
            let fields = StoredRecord::split(frame.body)?.fields().ok()?;
            if fields.id == *proof_id { evidence::decode(frame.evidence) } else { None }
        })
    }

    /// Hands every decision of a range on, the oldest first, until `each` fails.
    pub(crate) fn each_past(
        &self,
        range: &PastRange,
        each: &mut dyn FnMut(PastDecision) -> Result<(), Error>,
    ) -> Result<(), Error> {
        self.catch_up()?;
        let until: Position = self.shared.index().totals().applied;
        let mut past = Past { range, each, stopped: None };
        let found = self.shared.reader.verify(&mut past, until).map_err(|error| read_error(&error))?;
        let stopped = past.stopped.take();
        if let Some(breakage) = self.shared.note_breakage(found) {
            return Err(Error::ChainBroken { message: breakage.to_string() });
        }
        stopped.map_or(Ok(()), Err)
    }

    /// Answers a query.
    pub(crate) fn query(&self, query: &ProofQuery) -> Result<ProofPage, Error> {
        let query = query.checked()?;
        self.catch_up()?;
        let skip = (query.page - 1).saturating_mul(query.page_size);
        let take = usize::try_from(query.page_size).unwrap_or(usize::MAX);
        let selection = self.with_index(|index| index.select(&query.entity, &query.filter, skip, take))?;
        let items = selection
            .records
            .into_iter()
            .map(|(sequence, outcome)| self.record_at(sequence, outcome))
            // A broken log answers with what can still be read; that it is broken is said elsewhere.
            .filter(|record| record.is_ok() || self.integrity())
            .collect::<Result<Vec<ProofRecord>, Error>>()?;
        Ok(ProofPage::new(items, selection.total, query.page, query.page_size))
    }

    /// Statistics over an entity's records in a period.
    pub(crate) fn stats(&self, entity_id: &str, period: Period) -> Result<ProofStats, Error> {
        let entity = checked_entity(entity_id)?;
        let filter: Filter = checked_period(period.from, period.to)?;
        self.catch_up()?;
        let (tally, ends) = self.with_index(|index| index.tally(&entity, &filter))?;
        let ends = ends.map(|(first, last)| (Timestamp::from_millis(first), Timestamp::from_millis(last)));
        let period = match ends {
            Some((first, last)) => Period::new(period.from.or(Some(first)), period.to.or(Some(last))),
            None => Period::default(),
        };
        Ok(stats_of(entity, &tally, period, self.integrity()))
    }

    /// Reads the whole journal and checks all of it.
    pub(crate) fn verify(&self) -> Result<Verification, Error> {
        self.catch_up()?;
        let until: Position = self.shared.index().totals().applied;
        let mut reading = Reading::checking();
        let found = self.shared.reader.verify(&mut reading, until).map_err(|error| read_error(&error))?;
        let chain = reading.verified();
        Ok(Verification::new(chain.records, chain.head_hash, self.shared.note_breakage(found)))
    }

    /// Why nothing new is taken in, if so.
    pub(crate) fn refusal(&self) -> Option<Error> {
        self.shared.intake.refusal().map(|refusal| refusal.error())
    }

    /// How the log stands.
    pub(crate) fn state(&self) -> LogState {
        let totals = *self.shared.index().totals();
        LogState {
            totals,
            breakage: self.shared.first_breakage(),
            refusing: self.shared.intake.refusal().map(|refusal| refusal.error().to_string()),
            view_lost: self.shared.view_lost.load(Ordering::Relaxed),
        }
    }

    /// Waits until all that was put in order before is in the index.
    pub(crate) fn catch_up(&self) -> Result<(), Error> {
        self.check_open()?;
        let ordered = self.shared.intake.ordered();
        if !self.shared.progress.has_applied(ordered) {
            self.shared.intake.hurry();
            // When the writer has failed, what it had written is still answered.
            self.shared.progress.wait_applied(ordered);
        }
        Ok(())
    }

    /// Waits until all that was put in order before is on disk.
    pub(crate) fn flush(&self) -> Result<(), Error> {
        let ordered = self.shared.intake.ordered();
        self.catch_up()?;
        if self.shared.progress.has_applied(ordered) { Ok(()) } else { Err(self.refused("the writer stopped")) }
    }

    /// Writes everything down and lets the folder go. Whoever comes second waits
    /// for nothing and changes nothing.
    pub(crate) fn close(&self) -> Result<(), Error> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(open) = open else { return Ok(()) };
        self.shared.intake.refuse(Refusal::Closed);
        let joined = open.writer.map_or(Ok(()), JoinHandle::join);
        self.shared.closed.store(true, Ordering::Release);
        // The view's folder is free again once sled is dropped; then the store's is.
        *self.shared.index.write().unwrap_or_else(PoisonError::into_inner) = Index::new(None);
        match self.shared.intake.refusal() {
            _ if joined.is_err() => Err(Error::Internal { message: "the writer panicked".to_owned() }),
            Some(refusal @ Refusal::Failed(_)) => Err(refusal.error()),
            _ => Ok(()),
        }
    }

    fn integrity(&self) -> bool {
        self.shared.first_breakage().is_none()
    }

    fn check_open(&self) -> Result<(), Error> {
        if self.shared.closed.load(Ordering::Acquire) { Err(Refusal::Closed.error()) } else { Ok(()) }
    }

    fn refused(&self, otherwise: &str) -> Error {
        self.shared.intake.refusal().map_or_else(|| Error::storage(otherwise), |refusal| refusal.error())
    }

    fn outcome_of(&self, entity: &AgentId, sequence: Sequence) -> Result<Option<Outcome>, Error> {
        self.with_index(|index| index.outcome_of(entity, sequence))
    }

    /// Asks the index; when the view fails, it is rebuilt and asked once more.
    fn with_index<T>(&self, ask: impl Fn(&Index) -> Result<T, ViewError>) -> Result<T, Error> {
        let first = ask(&self.shared.index());
        if let Ok(answer) = first {
            return Ok(answer);
        }
        let mut index = self.shared.index.write().unwrap_or_else(PoisonError::into_inner);
        self.shared.rebuild(&mut index);
        ask(&index).map_err(|error| Error::storage(format!("the view cannot be rebuilt: {error}")))
    }

    fn record_at(&self, sequence: Sequence, outcome: Option<Outcome>) -> Result<ProofRecord, Error> {
        let bytes = self.shared.reader.read(sequence).map_err(|error| read_error(&error))?;
        let record = bytes.as_deref().and_then(|bytes| {
            let frame = Frame::decode(bytes).ok().filter(|frame| frame.sequence == sequence)?;
            StoredRecord::split(frame.body)?.record(outcome).ok()
        });
        record.ok_or_else(|| Error::ChainBroken { message: format!("entry {sequence} cannot be read; verify the log") })
    }

    /// Looks into the stored entry of a proof id.
    fn stored<T>(&self, proof_id: &ProofId, look: impl FnOnce(&Frame<'_>) -> Option<T>) -> Result<T, Error> {
        let bytes = self.shared.reader.read(proof_id.sequence()).map_err(|error| read_error(&error))?;
        let frame = bytes.as_deref().and_then(|bytes| Frame::decode(bytes).ok());
        frame
            .filter(|frame| frame.kind == Kind::Decision && frame.sequence == proof_id.sequence())
            .and_then(|frame| look(&frame))
            .ok_or_else(|| Error::proof_not_found(proof_id))
    }
}

impl Drop for ProofLog {
    fn drop(&mut self) {
        // Who wants to know closes; a drop can only do its best.
        let _ = self.close();
    }
}

/// How long a Buffered record may wait in memory.
const FLUSH_INTERVAL: Duration = Duration::from_millis(10);
/// Quiet after which the index is persisted and the head noted.
const IDLE: Duration = Duration::from_secs(1);
const PERSIST_EVERY: u64 = 1 << 16;

/// Whether a folder of these names holds a journal and a view of it.
fn is_store(names: &[String]) -> bool {
    [store::JOURNAL_FOLDER, store::VIEW_FOLDER].iter().all(|wanted| names.iter().any(|name| name == wanted))
}

fn make_folder(folder: &Path) -> Result<(), OpenLogError> {
    std::fs::create_dir_all(folder).map_err(|error| OpenLogError::Io("make the folder", error))
}

fn stats_of(entity_id: AgentId, tally: &Tally, period: Period, chain_integrity: bool) -> ProofStats {
    let reported: u64 = Outcome::ALL.iter().map(|outcome| tally.with_outcome(*outcome)).sum();
    ProofStats::new(
        entity_id,
        tally.total(),
        ratio(tally.with_outcome(Outcome::Success), reported),
        ratio(tally.score_sum(), tally.total()),
        chain_integrity,
        Decision::ALL.iter().map(|decision| (*decision, tally.with_decision(*decision))).collect(),
        RiskLevel::ALL.iter().map(|risk| (*risk, tally.with_risk(*risk))).collect(),
        period,
    )
}

/// A quotient, 0 when there is nothing to divide by. Counts stay far below 2^53.
#[allow(clippy::cast_precision_loss)]
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn json(entry: &impl serde::Serialize) -> std::io::Result<Vec<u8>> {
    Ok(serde_json::to_vec(entry)?)
}

fn read_error(error: &std::io::Error) -> Error {
    Error::storage(format!("cannot read the journal: {error}"))
}
