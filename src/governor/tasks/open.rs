//! Opening tasks, further words of the user, approvals that widen a mandate, delegation, and closing.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use super::live::{Endorsement, LiveTask, Running, TaskRecord, WORK_AREA, not_open};
use super::under::{Opening, Under, opening_evidence};
use crate::governor::intake::risk::RiskSource;
use crate::governor::states::masked;
use crate::governor::{TaskBook, checked_agent_id, conflict};
use crate::mandate::{Asked, Words};
use crate::model::parts::{MandateParts, OpenedTaskParts, TaskInfoParts};
use crate::model::{
    AgentId, Capability, Decision, Error, Input, Intent, MAX_INPUT_BYTES, Mandate, OpenedTask, Outcome, ProofId,
    RiskLevel, TaskId, TaskInfo, TaskRequest, TaskState, Timestamp,
};

impl TaskBook {
    /// Opens a task, or one that is delegated from another.
    pub(super) fn open_task(&self, request: TaskRequest, parent: Option<TaskId>) -> Result<TaskId, Error> {
        let agent_id = checked_agent_id(&request.agent_id)?;
        self.decider.roster.acting(&agent_id)?;
        if parent.is_some() {
            self.base.log.wait_verified()?;
        }
        let parent = parent.map(|parent| self.live_task(parent)).transpose()?;
        if parent.as_ref().is_some_and(|parent| parent.chain().count() >= DEEPEST_CHAIN) {
            return conflict(format!("a task is delegated at most {DEEPEST_CHAIN} times deep"));
        }
        if request.work_area.is_empty() || !request.input.is_empty() {
            check_words(&request.input)?;
        }
        check_trusted("trusted", &request.trusted)?;
        check_trusted(WORK_AREA, &request.work_area)?;
        check_opening_context(&request.context)?;
        let mut context = request.context;
        if !request.work_area.is_empty() {
            context.insert(WORK_AREA.to_owned(), request.work_area.as_slice().into());
        }
        let lasts = checked_duration(request.expires_in)?;
        let max_calls = checked_calls(request.max_calls)?;
        let (acts, risk) = if request.input.is_empty() {
            (Vec::new(), RiskLevel::Low)
        } else {
            self.asked_by(&request.agent_id, &request.input)?
        };
        let now = self.base.clock.now();
        let id = TaskId::new(now, self.base.entropy.bits());
        let opening = Opening {
            task: id,
            evidence: opening_evidence(id, &chain_of(parent.as_deref())),
            words: masked(&request.input),
            what: if parent.is_some() { "delegated" } else { "opened" },
        };
        let proof_id =
            self.record_opening(&agent_id, "open_task", context, &request.trusted, &[], &opening).map_err(of_input)?;

        let expires_at = Timestamp::from_millis(now.as_millis().saturating_add(millis(lasts)));
        let (expires_at, max_calls) = match &parent {
            Some(parent) => (expires_at.min(parent.expires_at), max_calls.min(parent.max_calls)),
            None => (expires_at, max_calls),
        };
        let record = TaskRecord {
            agent_id,
            state: TaskState::Open,
            proofs: vec![proof_id],
            opened_at: now,
            expires_at,
            max_calls,
            salt: parent.as_ref().map_or_else(|| self.base.salt(), |parent| parent.salt),
            parent: parent.as_ref().map(|parent| parent.id),
            outcome: None,
            why: None,
            calls: 0,
            refused: BTreeMap::new(),
        };
        let sequence = self.base.set_state(record.draft(id)?, opening.what)?;
        let mut words = Words::new(&request.input);
        request.trusted.iter().for_each(|value| words.trust(value));
        if let Some(parent) = &parent {
            words.trust_as(&parent.lock().words);
        }
        let mut running = Running::new(words, Asked { acts, risk });
        running.trusted = request.trusted.len();
        request.work_area.iter().for_each(|folder| running.area.add(folder));
        if let Some(parent) = &parent {
            running.area.add_all(&parent.lock().area);
        }
        let task = LiveTask::new(id, &record, parent, running);
        self.add(record, task);
        self.base.log.settle(sequence)?;
        Ok(id)
    }

    /// Parses the acts that the user's words ask for, and their risk.
    pub(super) fn asked_by(&self, agent_id: &str, words: &str) -> Result<(Vec<Capability>, RiskLevel), Error> {
        let parsed = self.intake.read_input(agent_id, Input::new(words), crate::parse::Parser::parse)?;
        Ok((parsed.result.intent.required_capabilities, parsed.result.intent.risk_level))
    }

    /// Records that a task is opened or its mandate extended, with the user's words.
    fn record_opening(
        &self,
        agent_id: &AgentId,
        action: &str,
        context: Map<String, Value>,
        trusted: &[String],
        acts: &[Capability],
        opening: &Opening,
    ) -> Result<ProofId, Error> {
        let mut intent = Intent::new(agent_id.as_str(), action, RiskLevel::Low, ["task:write"])?;
        intent.context = context;
        intent.context.insert("taskId".to_owned(), Value::String(opening.task.to_string()));
        if !trusted.is_empty() {
            intent.context.insert("trusted".to_owned(), trusted.into());
        }
        if !acts.is_empty() {
            let acts: Vec<&str> = acts.iter().map(Capability::as_str).collect();
            intent.context.insert("acts".to_owned(), acts.into());
        }
        intent.check()?;
        let enforcement = self.decider.decide(&intent, RiskSource::Operator, Under::Opening(opening))?;
        if enforcement.decision != Decision::Allow {
            return Err(Error::Forbidden { message: enforcement.reasoning });
        }
        Ok(enforcement.proof_id)
    }

    /// Adds further words of the user.
    pub(super) fn say_more(&self, id: TaskId, said: &str) -> Result<Mandate, Error> {
        check_words(said)?;
        self.extend(id, said, "extend_task", &[], &[])
    }

    /// Extends a mandate by words, values and acts.
    pub(super) fn extend(
        &self,
        id: TaskId,
        said: &str,
        action: &str,
        values: &[String],
        acts: &[Capability],
    ) -> Result<Mandate, Error> {
        self.base.log.wait_verified()?;
        let task = self.live_task(id)?;
        let (said_acts, risk) =
            if said.is_empty() { (Vec::new(), RiskLevel::Low) } else { self.asked_by(task.agent_id.as_str(), said)? };
        let opening = Opening {
            task: id,
            evidence: opening_evidence(id, &chain_of(task.parent.as_deref())),
            words: masked(said),
            what: "extended",
        };
        let proof_id = self.record_opening(&task.agent_id, action, Map::new(), values, acts, &opening)?;
        let record = self.change(id, |record| record.proofs.push(proof_id)).ok_or_else(|| Error::task_not_found(id))?;
        let sequence = self.base.set_state(record.draft(id)?, opening.what)?;
        let mandate = {
            let mut running = task.lock();
            if !said.is_empty() {
                running.words.say(said);
            }
            for value in values {
                running.words.trust(value);
            }
            running.trusted += values.len();
            running.asked.acts.extend(said_acts);
            running.asked.acts.extend(acts.iter().cloned());
            running.asked.risk = running.asked.risk.max(risk);
            running.forget_fits();
            let Running { words, memory, .. } = &mut *running;
            memory.resolve(words);
            running.mandate()
        };
        self.base.log.settle(sequence)?;
        Ok(mandate)
    }

    /// Closes a task and the tasks delegated from it.
    pub(super) fn close_task(&self, id: TaskId, outcome: Option<Outcome>) -> Result<TaskInfo, Error> {
        self.live_task(id)?;
        self.end_task(id, TaskState::Closed, None, outcome)?;
        self.task_info(id)
    }

    /// Ends a task, and the tasks delegated from it.
    pub(super) fn end_task(
        &self,
        id: TaskId,
        state: TaskState,
        why: Option<String>,
        outcome: Option<Outcome>,
    ) -> Result<(), Error> {
        for child in self.children(id) {
            self.end_task(child, state, Some(format!("the task {id} that it was delegated from is {state}")), None)?;
        }
        // INVARIANT: a thread that holds the task and decides sees that it ended, or is waited for.
        let counted = self.in_memory(id).map(|task| {
            let mut running = task.lock();
            running.ended = true;
            (running.calls, running.refused.clone())
        });
        let record = self.change(id, |record| {
            if let Some((calls, refused)) = counted {
                record.calls = calls;
                record.refused = refused;
            }
            record.state = state;
            record.why = why;
            record.outcome = outcome;
        });
        let asked = self.drop_live(id);
        if !asked.is_empty() {
            self.approvals
                .end_escalations(|record| asked.contains(&record.proof_id), &format!("the task {id} is {state}"));
        }
        if let Some(record) = record {
            self.base.log.wait_verified()?;
            let sequence = self.base.set_state(record.draft(id)?, state.as_str())?;
            self.base.log.settle(sequence)?;
        }
        Ok(())
    }

    pub(super) fn task_info(&self, id: TaskId) -> Result<TaskInfo, Error> {
        let live = match self.live_task(id) {
            Ok(task) => Some(task),
            Err(Error::Conflict { .. }) => None,
            Err(error) => return Err(error),
        };
        let record = self.record(id)?;
        let mut info = TaskInfo::from(TaskInfoParts {
            task_id: id,
            agent_id: record.agent_id,
            state: record.state,
            why: record.why,
            mandate: None,
            proof_id: record.proofs.first().copied().ok_or_else(|| Error::task_not_found(id))?,
            parent: record.parent,
            opened_at: record.opened_at,
            expires_at: record.expires_at,
            calls: record.calls,
            max_calls: record.max_calls,
            refused: record.refused,
            results: 0,
            bytes: 0,
            outcome: record.outcome,
        });
        if let Some(task) = live {
            let running = task.lock();
            info.mandate = Some(running.mandate());
            info.calls = running.calls;
            info.refused.clone_from(&running.refused);
            info.results = running.memory.results();
            info.bytes = running.memory.bytes();
        }
        Ok(info)
    }

    pub(super) fn opened_task(&self, id: TaskId) -> Result<OpenedTask, Error> {
        let task = self.live_task(id)?;
        let record = self.record(id)?;
        let proof_id = record.proofs.first().copied().ok_or_else(|| not_open(id, record.state, None))?;
        let mandate = task.lock().mandate();
        Ok(OpenedTask::from(OpenedTaskParts { task_id: id, mandate, proof_id, expires_at: task.expires_at }))
    }

    /// Refuses an approval under a task that is no longer open.
    pub(crate) fn check_task_of(&self, asked: ProofId) -> Result<(), Error> {
        // Unreadable evidence is refused where its other parts are checked.
        let Ok(evidence) = self.base.log.evidence(&asked) else { return Ok(()) };
        let id = evidence.detail.get("task").and_then(|task| task["id"].as_str()?.parse().ok());
        id.map_or(Ok(()), |id| self.live_task(id).map(drop))
    }

    /// Records that a reviewer approved a call. If the approval is for the whole task, the escalated values and, if it
    /// was in doubt, the act are added to the mandates of the task and its ancestors. A task that is no longer open
    /// gains nothing.
    pub(crate) fn endorsed(&self, asked: ProofId, is_for_task: bool) -> Result<(), Error> {
        let asked_under = self.write().asked.remove(&asked);
        let Some(id) = asked_under else { return Ok(()) };
        let Ok(task) = self.live_task(id) else { return Ok(()) };
        let Some(endorsement) = task.lock().endorsements.remove(&asked) else { return Ok(()) };
        for level in task.chain() {
            // An approval counts as one granted call.
            level.lock().made.extend(endorsement.call.map(|call| (call, true)));
        }
        if !is_for_task || endorsement.values.is_empty() && endorsement.acts.is_empty() {
            return Ok(());
        }
        let Endorsement { values, acts, .. } = &endorsement;
        task.chain().try_for_each(|level| self.extend(level.id, "", "widen_task", values, acts).map(drop))
    }
}

impl Running {
    /// The mandate in its public form.
    pub(super) fn mandate(&self) -> Mandate {
        let mut capabilities: Vec<Capability> = Vec::new();
        for act in &self.asked.acts {
            if !capabilities.contains(act) {
                capabilities.push(act.clone());
            }
        }
        Mandate::from(MandateParts {
            words: self.words.texts().map(masked).collect(),
            capabilities,
            risk_level: self.asked.risk,
            open: self.asked.is_open(),
            trusted: self.trusted,
        })
    }
}

/// The ancestors of a task with their agents, the root first.
pub(super) fn chain_of(task: Option<&LiveTask>) -> Vec<(TaskId, AgentId)> {
    let mut chain: Vec<(TaskId, AgentId)> =
        task.into_iter().flat_map(LiveTask::chain).map(|task| (task.id, task.agent_id.clone())).collect();
    chain.reverse();
    chain
}

fn check_words(words: &str) -> Result<(), Error> {
    if words.len() > MAX_INPUT_BYTES {
        return Err(Error::PayloadTooLarge { what: "input", size: words.len(), limit: MAX_INPUT_BYTES });
    }
    if words.trim().is_empty() {
        return Err(Error::input("input", "is blank; expected what the user wants, in their words"));
    }
    Ok(())
}

fn check_trusted(field: &'static str, values: &[String]) -> Result<(), Error> {
    if values.len() > MOST_TRUSTED {
        return Err(Error::input(field, format!("expected at most {MOST_TRUSTED} values")));
    }
    let is_fit = |value: &&String| !value.trim().is_empty() && value.len() <= LONGEST_TRUSTED;
    if let Some(place) = values.iter().position(|value| !is_fit(&value)) {
        let message = format!("value {}: expected 1 to {LONGEST_TRUSTED} bytes that are not blank", place + 1);
        return Err(Error::input(field, message));
    }
    let size = values.iter().map(String::len).sum();
    if size > MOST_TRUSTED_BYTES {
        return Err(Error::PayloadTooLarge { what: field, size, limit: MOST_TRUSTED_BYTES });
    }
    Ok(())
}

/// Rejects a context with a key that stores the mandate: the caller's value would become part of the mandate after a
/// restart.
fn check_opening_context(context: &Map<String, Value>) -> Result<(), Error> {
    match KEPT_KEYS.iter().find(|key| context.contains_key(**key)) {
        Some(key) => Err(Error::input("context", format!("{key}: is set by the task; leave it out"))),
        None => Ok(()),
    }
}

/// Converts an error about the recorded intent into one about the caller's context.
fn of_input(error: Error) -> Error {
    match error {
        Error::InvalidIntent { message, .. } => Error::input("context", message),
        other => other,
    }
}

fn checked_duration(lasts: Option<Duration>) -> Result<Duration, Error> {
    let lasts = lasts.unwrap_or(DEFAULT_EXPIRY);
    if lasts.is_zero() || lasts > LONGEST_EXPIRY {
        return Err(Error::input("expiresIn", "expected 1 second to 31 days"));
    }
    Ok(lasts)
}

fn checked_calls(calls: Option<u64>) -> Result<u64, Error> {
    let calls = calls.unwrap_or(DEFAULT_CALLS);
    if (1..=MOST_CALLS).contains(&calls) {
        return Ok(calls);
    }
    Err(Error::input("maxCalls", format!("expected 1 to {MOST_CALLS}")))
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Default and maximum lifetime of a task.
const DEFAULT_EXPIRY: Duration = Duration::from_secs(24 * 60 * 60);
const LONGEST_EXPIRY: Duration = Duration::from_secs(31 * 24 * 60 * 60);
/// Default and maximum number of calls of a task.
const DEFAULT_CALLS: u64 = 1_000;
const MOST_CALLS: u64 = 100_000;
/// Maximum number of trusted values, and the maximum size of one in bytes.
const MOST_TRUSTED: usize = 1_000;
const LONGEST_TRUSTED: usize = 1_024;
/// Maximum size of all of them in bytes, because the record of the opening stores them in its context.
const MOST_TRUSTED_BYTES: usize = 32 << 10;
/// Context keys of the opening's record that restore the mandate.
const KEPT_KEYS: &[&str] = &["taskId", "trusted", "acts", WORK_AREA];
/// Maximum depth of delegation.
const DEEPEST_CHAIN: usize = 8;
