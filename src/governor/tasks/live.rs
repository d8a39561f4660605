//! Open tasks in memory, and the state that the log stores of each.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::{CallDigest, CallKey};
use crate::governor::keys::{self, Keyed as _};
use crate::governor::{Hold as _, TaskBook, states};
use crate::mandate::{Area, Asked, Fit, Memory, Order, Words};
use crate::model::{
    AgentId, Capability, DenialClass, Digest, Error, Operation, Outcome, ProofId, RiskLevel, TaskId, TaskState,
    Timestamp,
};
use crate::parse::{Catalogue, Parser, RatedTool};
use crate::proof::{InputEvidence, ProofQuery, StateDraft};

#[derive(Default)]
pub(super) struct Table {
    /// The state of each task in the log.
    pub(super) kept: HashMap<TaskId, TaskRecord>,
    /// Tasks in memory.
    pub(super) live: HashMap<TaskId, Arc<LiveTask>>,
    /// Tasks with pending escalations, by the record that opened each.
    pub(super) asked: HashMap<ProofId, TaskId>,
}

/// A task as the log stores it. Its words are in the evidence of the records that it names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TaskRecord {
    pub(super) agent_id: AgentId,
    pub(super) state: TaskState,
    /// The records of its opening, of further words and of reviewers' additions, in order.
    pub(super) proofs: Vec<ProofId>,
    pub(super) opened_at: Timestamp,
    pub(super) expires_at: Timestamp,
    pub(super) max_calls: u64,
    /// The salt of the digests of its calls.
    pub(super) salt: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parent: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) outcome: Option<Outcome>,
    /// Why it ended, if it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
    /// Number of calls decided under it; 0 while it is open, because the records are counted then.
    #[serde(default)]
    pub(super) calls: u64,
    /// Number of calls that the mandate refused, by class; 0 while it is open.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) refused: BTreeMap<DenialClass, u64>,
}

/// An open task.
pub(super) struct LiveTask {
    pub(super) id: TaskId,
    pub(super) agent_id: AgentId,
    pub(super) expires_at: Timestamp,
    pub(super) max_calls: u64,
    pub(super) salt: Digest,
    pub(super) parent: Option<Arc<Self>>,
    // Held from the decision on a call until its record is enqueued, so that no two calls use the last one of the
    // budget; never while waiting for the disk. A delegate's lock is acquired before its parent's, and an agent's after
    // both.
    running: Mutex<Running>,
}

/// The part of an open task that changes.
pub(super) struct Running {
    pub(super) words: Words,
    pub(super) asked: Asked,
    pub(super) trusted: usize,
    pub(super) memory: Memory,
    /// Number of calls decided, including those of delegates.
    pub(super) calls: u64,
    /// The calls decided, and whether each was granted.
    pub(super) made: HashMap<CallKey, bool>,
    /// Tools of requests whose arguments are not known.
    pub(super) loose: HashSet<Box<str>>,
    pub(super) refused: BTreeMap<DenialClass, u64>,
    /// The folders that the user works on, in which effects serve any request.
    pub(super) area: Area,
    /// The orders to the agent that results contained.
    pub(super) orders: Vec<Order>,
    /// Pending endorsements, by the record that opened each escalation.
    pub(super) endorsements: HashMap<ProofId, Endorsement>,
    pub(super) ended: bool,
    fits: Option<Fits>,
}

/// The addition to the mandate that an approval for the whole task makes.
#[derive(Debug, Clone, Default)]
pub(super) struct Endorsement {
    pub(super) values: Vec<String>,
    pub(super) acts: Vec<Capability>,
    /// The call that was escalated.
    pub(super) call: Option<CallKey>,
}

/// The rating of a tool against the words of a task.
#[derive(Debug, Clone, Copy)]
pub(super) struct RatedFit {
    pub(super) fit: Fit,
    /// Whether the tool only reads.
    pub(super) is_read: bool,
    /// Whether the tool's definition contains instructions to the agent.
    pub(super) is_poisoned: bool,
}

/// The ratings of a catalogue's tools against the words of a task.
struct Fits {
    catalogue: Arc<Catalogue>,
    by_place: Vec<RatedFit>,
}

impl LiveTask {
    pub(super) fn lock(&self) -> MutexGuard<'_, Running> {
        self.running.hold()
    }

    /// The task and its ancestors.
    pub(super) fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |task| task.parent.as_deref())
    }

    pub(super) fn new(id: TaskId, record: &TaskRecord, parent: Option<Arc<Self>>, running: Running) -> Self {
        Self {
            id,
            agent_id: record.agent_id.clone(),
            expires_at: record.expires_at,
            max_calls: record.max_calls,
            salt: record.salt,
            parent,
            running: Mutex::new(running),
        }
    }
}

impl Running {
    pub(super) fn new(words: Words, asked: Asked) -> Self {
        Self {
            words,
            asked,
            trusted: 0,
            memory: Memory::default(),
            calls: 0,
            made: HashMap::new(),
            loose: HashSet::new(),
            refused: BTreeMap::new(),
            area: Area::default(),
            orders: Vec::new(),
            endorsements: HashMap::new(),
            ended: false,
            fits: None,
        }
    }

    /// The rating of a tool; `None` if the catalogue has no tool with this name. Of several tools with this name, the
    /// worst rating applies.
    pub(super) fn fit(&mut self, parser: &Parser, catalogue: &Arc<Catalogue>, tool: &str) -> Option<RatedFit> {
        let places = catalogue.places(tool);
        if places.is_empty() {
            return None;
        }
        if !self.fits.as_ref().is_some_and(|fits| Arc::ptr_eq(&fits.catalogue, catalogue)) {
            self.fits = Some(Fits { catalogue: Arc::clone(catalogue), by_place: self.rate(parser, catalogue) });
        }
        let fits = self.fits.as_ref()?;
        let found = places.iter().filter_map(|place| fits.by_place.get(*place).copied());
        found.min_by(|one, other| one.fit.score.total_cmp(&other.fit.score))
    }

    fn rate(&self, parser: &Parser, catalogue: &Catalogue) -> Vec<RatedFit> {
        let text: Vec<&str> = self.words.texts().collect();
        let rated = parser.rated_tools(&text.join("\n"), catalogue);
        let asked = |tool: &RatedTool| {
            let effects = tool.capabilities.iter().filter(|one| !tool.is_read && self.asked.asks_for_effect(one));
            effects.filter_map(Capability::operation).collect::<Vec<_>>()
        };
        let mut best: BTreeMap<Operation, f64> = BTreeMap::new();
        for tool in &rated {
            for operation in asked(tool) {
                let score = best.entry(operation).or_default();
                *score = score.max(tool.score);
            }
        }
        let mut scores: Vec<f64> = rated.iter().map(|tool| tool.score).collect();
        scores.sort_by(|one, other| other.total_cmp(one));
        let fit = |tool: &RatedTool| Fit {
            score: tool.score,
            rank: scores.partition_point(|other| *other > tool.score),
            best_effect: asked(tool).iter().filter_map(|operation| best.get(operation)).copied().fold(0.0, f64::max),
        };
        rated
            .iter()
            .map(|tool| RatedFit { fit: fit(tool), is_read: tool.is_read, is_poisoned: tool.is_poisoned })
            .collect()
    }

    /// Adds an order to the agent, unless it is known or there are too many.
    pub(super) fn add_order(&mut self, order: Option<Order>) {
        let is_new = |order: &Order| self.orders.iter().all(|known| known.words != order.words);
        if let Some(order) = order.filter(is_new).filter(|_| self.orders.len() < MOST_ORDERS) {
            self.orders.push(order);
        }
    }

    /// Discards the ratings, because the words have changed.
    pub(super) fn forget_fits(&mut self) {
        self.fits = None;
    }
}

impl TaskRecord {
    fn is_open(&self, now: Timestamp) -> bool {
        self.state == TaskState::Open && now < self.expires_at
    }

    pub(super) fn draft(&self, id: TaskId) -> Result<StateDraft, Error> {
        states::draft(keys::Tasks::key(id), self)
    }
}

impl TaskBook {
    pub(super) fn read(&self) -> std::sync::RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> std::sync::RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Passes on the state of each open task; none changes meanwhile.
    pub(crate) fn each_open(
        &self,
        now: Timestamp,
        mut pass: impl FnMut(StateDraft) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let table = self.read();
        let mut open = table.kept.iter().filter(|(_, record)| record.is_open(now));
        open.try_for_each(|(id, record)| pass(record.draft(*id)?))
    }

    /// Forgets the tasks that are over and whose records are in an archive.
    pub(crate) fn forget_before(&self, first: u64, now: Timestamp) {
        let mut table = self.write();
        let is_kept = |record: &TaskRecord| {
            record.is_open(now) || record.proofs.last().is_some_and(|proof| proof.sequence().get() >= first)
        };
        let gone: Vec<TaskId> = table.kept.extract_if(|_, record| !is_kept(record)).map(|(id, _)| id).collect();
        for id in gone {
            table.live.remove(&id);
        }
    }

    pub(super) fn record(&self, id: TaskId) -> Result<TaskRecord, Error> {
        self.read().kept.get(&id).cloned().ok_or_else(|| Error::task_not_found(id))
    }

    pub(super) fn in_memory(&self, id: TaskId) -> Option<Arc<LiveTask>> {
        self.read().live.get(&id).cloned()
    }

    /// Adds a task to memory; returns the existing one if another thread added it first.
    pub(super) fn add(&self, record: TaskRecord, task: LiveTask) -> Arc<LiveTask> {
        let mut table = self.write();
        table.kept.insert(task.id, record);
        Arc::clone(table.live.entry(task.id).or_insert_with(|| Arc::new(task)))
    }

    /// Changes the stored state of a task.
    pub(super) fn change(&self, id: TaskId, change: impl FnOnce(&mut TaskRecord)) -> Option<TaskRecord> {
        let mut table = self.write();
        let record = table.kept.get_mut(&id)?;
        change(record);
        Some(record.clone())
    }

    /// Removes a task from memory once it is no longer open. Returns the records of its pending escalations.
    pub(super) fn drop_live(&self, id: TaskId) -> HashSet<ProofId> {
        let mut table = self.write();
        table.live.remove(&id);
        table.asked.extract_if(|_, task| *task == id).map(|(asked, _)| asked).collect()
    }

    /// The open tasks that were delegated from this one.
    pub(super) fn children(&self, id: TaskId) -> Vec<TaskId> {
        let table = self.read();
        let is_child = |record: &TaskRecord| record.parent == Some(id) && record.state == TaskState::Open;
        table.kept.iter().filter(|(_, record)| is_child(record)).map(|(child, _)| *child).collect()
    }
}

impl TaskBook {
    /// An open task, loaded into memory if necessary.
    ///
    /// # Errors
    ///
    /// [`Error::TaskNotFound`]; [`Error::Conflict`] for a task that is not open.
    pub(super) fn live_task(&self, id: TaskId) -> Result<Arc<LiveTask>, Error> {
        let task = match self.in_memory(id) {
            Some(task) => task,
            None => self.restored_task(id)?,
        };
        let now = self.base.clock.now();
        if let Some(expired) = task.chain().find(|task| now >= task.expires_at) {
            self.end_task(expired.id, TaskState::Expired, None, None)?;
            return Err(not_open(id, TaskState::Expired, None));
        }
        Ok(task)
    }

    /// Restores a task after a restart: its words from the evidence, its calls from their records. Observed results are
    /// lost.
    fn restored_task(&self, id: TaskId) -> Result<Arc<LiveTask>, Error> {
        let record = self.record(id)?;
        if record.state != TaskState::Open {
            return Err(not_open(id, record.state, record.why.as_deref()));
        }
        let parent = record.parent.map(|parent| self.live_task(parent)).transpose()?;
        let (mut words, mut area) = (None, Area::default());
        let (mut trusted, mut risk, mut asked) = (0, RiskLevel::Low, Vec::new());
        for proof in &record.proofs {
            let evidence = self.base.log.evidence(proof);
            let said = match evidence {
                Ok(evidence) => evidence.input.and_then(InputEvidence::into_text).map(|text| (text, evidence.intent)),
                Err(Error::EvidenceErased { .. }) => None,
                Err(error) => return Err(error),
            };
            let Some((text, intent)) = said else {
                let why = "its words were erased";
                self.end_task(id, TaskState::Ended, Some(why.to_owned()), None)?;
                return Err(not_open(id, TaskState::Ended, Some(why)));
            };
            let words = words.get_or_insert_with(Words::default);
            if !text.is_empty() {
                let (acts, level) = self.asked_by(record.agent_id.as_str(), &text)?;
                asked.extend(acts);
                risk = risk.max(level);
                words.say(&text);
            }
            for value in kept_texts(&intent, "trusted") {
                words.trust(value);
                trusted += 1;
            }
            kept_texts(&intent, WORK_AREA).for_each(|folder| area.add(folder));
            asked.extend(kept_texts(&intent, "acts").filter_map(|act| act.parse().ok()));
        }
        let mut words = words.unwrap_or_default();
        if let (Some(parent), Some(opening)) = (record.parent, record.proofs.first()) {
            for value in self.trusted_before(parent, *opening)? {
                words.trust(&value);
            }
        }
        let mut running = Running::new(words, Asked { acts: asked, risk });
        running.trusted = trusted;
        if let Some(parent) = &parent {
            area.add_all(&parent.lock().area);
        }
        running.area = area;
        self.count_past_calls(id, &record, &mut running)?;
        if running.calls > 0 {
            running.memory.lose();
        }
        let task = LiveTask::new(id, &record, parent, running);
        Ok(self.add(record, task))
    }

    /// The values that were trusted under a task and its ancestors before a record.
    fn trusted_before(&self, id: TaskId, record: ProofId) -> Result<Vec<String>, Error> {
        let task = self.record(id)?;
        let mut trusted = match (task.parent, task.proofs.first()) {
            (Some(parent), Some(opening)) => self.trusted_before(parent, *opening)?,
            _ => Vec::new(),
        };
        for proof in task.proofs.iter().filter(|proof| proof.sequence() < record.sequence()) {
            trusted.extend(kept_texts(&self.base.log.evidence(proof)?.intent, "trusted").map(str::to_owned));
        }
        Ok(trusted)
    }

    /// Counts the calls in the log of a task and of its delegates.
    fn count_past_calls(&self, id: TaskId, record: &TaskRecord, running: &mut Running) -> Result<(), Error> {
        let own = id.to_string();
        let mut agents: HashSet<AgentId> = HashSet::from([record.agent_id.clone()]);
        agents.extend(self.family(id));
        for agent in agents {
            for found in self.base.log.records(&ProofQuery::entity(agent.as_str()).from(record.opened_at)) {
                let found = found?;
                let Ok(evidence) = self.base.log.evidence(&found.id) else { continue };
                let Some(task) = evidence.detail.get("task") else { continue };
                let is_of_it = task["id"] == *own
                    || task["chain"].as_array().is_some_and(|chain| chain.iter().any(|step| step["id"] == *own));
                if !is_of_it || !task["faults"].is_array() {
                    continue;
                }
                if let Some(call) = task["call"].as_str().and_then(|call| call.parse().ok()) {
                    let is_granted =
                        matches!(found.decision, crate::model::Decision::Allow | crate::model::Decision::Degrade);
                    *running.made.entry(CallDigest(call).key()).or_default() |= is_granted;
                }
                if found.resolves.is_some() {
                    // A reviewer's answer to a call that is counted already.
                    continue;
                }
                running.calls += 1;
                running.add_order(task["guard"].as_str().map(|words| Order::of_words(words.to_owned())));
                let class = evidence.detail["denialClass"].as_str().and_then(|class| class.parse().ok());
                if let Some(class @ (DenialClass::Mandate | DenialClass::Exfiltration)) = class {
                    *running.refused.entry(class).or_default() += 1;
                }
            }
        }
        Ok(())
    }
}

/// The key of the work area in the context of an opening's intent.
pub(super) const WORK_AREA: &str = "workArea";

/// The texts of a list in the context of a stored intent.
fn kept_texts<'v>(intent: &'v Value, key: &str) -> impl Iterator<Item = &'v str> {
    let list = intent.get("context").and_then(|context| context.get(key)).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

impl TaskBook {
    /// The agents of the tasks delegated from one, at any depth.
    fn family(&self, id: TaskId) -> Vec<AgentId> {
        let table = self.read();
        let mut tasks = vec![id];
        let mut agents = Vec::new();
        while let Some(parent) = tasks.pop() {
            for (child, record) in table.kept.iter().filter(|(_, record)| record.parent == Some(parent)) {
                tasks.push(*child);
                agents.push(record.agent_id.clone());
            }
        }
        agents
    }
}

/// Largest number of orders to the agent that a task keeps.
const MOST_ORDERS: usize = 32;

pub(super) fn not_open(id: TaskId, state: TaskState, why: Option<&str>) -> Error {
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    Error::Conflict { message: format!("the task {id} is {state}{why}; open another one") }
}
