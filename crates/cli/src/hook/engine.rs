//! The ruling on an event of a host, made by the daemon's governor.
//!
//! The user's prompts open a task and extend it. A call is decided under the task of its conversation. If a reviewer
//! has to agree, the host asks its user if it can; otherwise the hook waits for a reviewer. After that, the call is
//! refused with a ticket: once the escalation is approved, the same call goes through.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rulekeep::escalation::{EscalationId, EscalationState, Review};
use rulekeep::extension::{CONVERSATION, Extension, Wait};
use rulekeep::grant::narrowed;
use rulekeep::intent::{DenialClass, Facts};
use rulekeep::proof::ProofId;
use rulekeep::task::{Task, TaskId, TaskRequest, TaskState, ToolCall};
use rulekeep::{Decision, Enforcement, Error, Intent, Outcome, RiskLevel, Tier};
use rulekeep_confine::Profile;
use rulekeep_server::Access;
use rulekeep_server::calls::decisions::{self as requests, Asked, DecisionForm, Enforce, Enforced, InputForm, Parse};
use rulekeep_server::gateway::Gateway;
use serde_json::{Map, Value, json};

use super::area;
use super::calls::{Calls, Key, Made};
use super::confined::{Claim, Refused, Runs};
use super::dialects::{Dialect, Probe};
use super::event::{EventKind, HookAnswer, HookEvent, HookRequest, Host, HostCall, Ruling};
use super::newcomers::Newcomers;
use super::own::Own;
use super::written::Written;

/// Decides on the events of hosts.
pub struct Engine {
    gateway: Gateway,
    pub(super) settings: Settings,
    conversations: Mutex<HashMap<String, TaskId>>,
    // Held while a call opens the task of its conversation, so that another one does not open a second.
    opening: Mutex<()>,
    calls: Mutex<Calls>,
    hashers: [RandomState; 2],
    written: Written,
    own: Own,
    newcomers: Newcomers,
    pub(super) runs: Runs,
}

/// The settings of an engine.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The tier of an agent that is seen for the first time.
    pub tier: Tier,
    /// The user's prompts open tasks.
    pub mandates: bool,
    /// Folders in the work area of every task.
    pub folders: Vec<String>,
    /// Values that every task trusts.
    pub trusted: Vec<String>,
    /// Longest wait for a reviewer.
    pub wait: Duration,
    /// The home of the tool, which only operators may change.
    pub home: PathBuf,
    /// The path of this program, to which commands that a decision confines are rewritten; `None` if the system supports
    /// no confined runs.
    pub confining: Option<PathBuf>,
}

impl Engine {
    /// Creates an engine on a gateway, with the conversations that its store knows.
    pub fn new(gateway: Gateway, settings: Settings) -> Self {
        let states = Extension::of(gateway.governor()).states(&[CONVERSATION]);
        let read = |(key, value): (String, String)| Some((key, value.trim_matches('"').parse().ok()?));
        let conversations = Mutex::new(states.into_iter().filter_map(read).collect());
        let (calls, opening, written) = (Mutex::default(), Mutex::default(), Written::default());
        let (hashers, own) = (Default::default(), Own::new(&settings.home));
        let (runs, newcomers) = (Runs::new(settings.confining.clone()), Newcomers::default());
        Self { gateway, settings, conversations, opening, calls, hashers, written, own, newcomers, runs }
    }

    /// Forgets the conversations whose tasks are over. The log must be verified.
    pub fn forget_ended(&self) {
        let governor = self.gateway.governor();
        let known: Vec<(String, TaskId)> =
            self.conversations().iter().map(|(key, task)| (key.clone(), *task)).collect();
        for (key, id) in known {
            let is_over = match governor.tasks().get(id).and_then(|task| task.info()) {
                Ok(info) => info.state != TaskState::Open,
                Err(error) => matches!(error, Error::TaskNotFound { .. }),
            };
            let mut conversations = self.conversations();
            if is_over && conversations.get(&key) == Some(&id) {
                conversations.remove(&key);
                // If the log accepts no entries, it stays until the next start.
                let _ = Extension::of(governor).forget(&key, "its task is over");
            }
        }
    }

    /// Answers an event. Any problem with it is a refusal.
    pub fn answer(&self, request: HookRequest) -> HookAnswer {
        let HookRequest { host, agent, event } = request;
        let dialect = Dialect::of_event(host, &event);
        let event = match dialect.read(&event) {
            Ok(event) => event,
            Err(message) => return dialect.refusal(&format!("rulekeep cannot read this event: {message}")),
        };
        let started = Instant::now();
        let host = dialect.host();
        let agent = agent.unwrap_or_else(|| host.name().to_owned());
        let hearing = Hearing { engine: self, dialect, agent: &agent, host, event: &event, started };
        let ruling =
            hearing.rule().unwrap_or_else(|error| Ruling::Deny(format!("rulekeep refuses: {}", error.message())));
        dialect.answer(&event, &ruling)
    }

    /// Registers an agent at its first call.
    pub(crate) fn register(&self, agent_id: &str) -> Result<(), Error> {
        self.newcomers.register(self.gateway.governor(), agent_id, self.settings.tier)
    }

    /// Hands out the profile of a confined run, once.
    pub(crate) fn claim_run(&self, claim: &Claim) -> Result<Profile, Error> {
        self.runs.claim(claim)
    }

    /// Notes what a confined run was refused.
    pub(crate) fn note_refused(&self, refused: Refused) {
        self.runs.note_refused(refused);
    }

    fn calls(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn conversations(&self) -> MutexGuard<'_, HashMap<String, TaskId>> {
        self.conversations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The processing of one event.
pub(super) struct Hearing<'a> {
    pub(super) engine: &'a Engine,
    pub(super) dialect: &'static Dialect,
    pub(super) agent: &'a str,
    pub(super) host: Host,
    pub(super) event: &'a HookEvent,
    started: Instant,
}

impl Hearing<'_> {
    fn rule(&self) -> Result<Ruling, Error> {
        match &self.event.kind {
            EventKind::Prompt(words) => self.prompt(words).map(|()| Ruling::Allow),
            EventKind::Call(call) => self.decide(call),
            EventKind::Result { call, result, outcome } => {
                let told = self.observe(call, result.as_ref(), *outcome)?;
                Ok(told.map_or(Ruling::Allow, Ruling::Tell))
            }
            EventKind::End => self.end().map(|()| Ruling::Allow),
            EventKind::Other => Ok(Ruling::Allow),
        }
    }

    /// Opens the task of the conversation with the user's words, or adds the words to it.
    fn prompt(&self, words: &str) -> Result<(), Error> {
        if self.engine.written.holds(self.agent, words) {
            return Ok(());
        }
        self.engine.register(self.agent)?;
        self.withdraw("the user continued without approving")?;
        if !self.engine.settings.mandates || words.trim().is_empty() {
            return Ok(());
        }
        let words = within(words, rulekeep::intent::MAX_INPUT_BYTES);
        if let Some(task) = self.task()? {
            match task.say(words) {
                Ok(_) => return Ok(()),
                Err(Error::Conflict { .. }) => {} // it is over: these words open the next
                Err(error) => return Err(error),
            }
        }
        self.open(words).map(drop)
    }

    /// Opens the task of the conversation. Without words, as when a host does not pass them on, only what stays in the
    /// work area is asked for.
    fn open(&self, words: &str) -> Result<TaskId, Error> {
        // The files that the user works on are trusted values.
        let folder = self.event.cwd.as_deref().filter(|folder| Path::new(folder).parent().is_some());
        let area = folder.map(|folder| area::of(self.host, Path::new(folder)));
        let request = TaskRequest::new(self.agent, words)
            .trusting(folder)
            .trusting(folder.map(|_| "."))
            .trusting(self.engine.settings.trusted.iter().cloned())
            .work_area(area.unwrap_or_default())
            .work_area(self.engine.settings.folders.iter().cloned())
            .expires_in(Duration::from_secs(31 * 86_400))
            .max_calls(100_000);
        let task = self.governor().tasks().open(request)?.opened()?.task_id;
        let key = self.conversation();
        let kept = json!(task).to_string();
        let mut conversations = self.engine.conversations();
        Extension::of(self.governor()).keep(key.clone(), kept, "a host's conversation began", Wait::Enqueued)?;
        conversations.insert(key, task);
        Ok(task)
    }

    /// The task of the conversation; a new one without words if there is none, or only one that is over.
    fn task_or_new(&self, over: Option<TaskId>) -> Result<TaskId, Error> {
        let _opening = self.engine.opening.lock().unwrap_or_else(PoisonError::into_inner);
        match self.task_id().filter(|task| Some(*task) != over) {
            Some(task) => Ok(task),
            None => self.open(""),
        }
    }

    fn decide(&self, call: &HostCall) -> Result<Ruling, Error> {
        if let Some(nonce) = probe(&call.arguments) {
            return Ok(Ruling::Deny(format!("rulekeep doctor probe {nonce}: refused")));
        }
        self.engine.written.add(self.agent, call);
        self.engine.register(self.agent)?;
        let InputForm { agent_id, input, context } = self.input(call);
        let parse = Parse { agent_id, input, context, explain: None };
        let parsed = Access::Everything.make(&self.engine.gateway, parse)?.parse.intent;
        let facts = parsed.facts();
        if let Some(refusal) = self.guard(call, &parsed, &facts)? {
            return Ok(refusal);
        }
        let open = self.engine.calls().get(&self.key(call));
        if let Some(Made { proof_id, asked: Some(intent), cwd, .. }) = open
            && cwd == self.event.cwd
            && let Some(ruling) = self.redeem(call, &facts, EscalationId::of(proof_id), &intent)?
        {
            return Ok(ruling);
        }
        if let Err(several) = self.governor().policies().current().environment_of(&facts) {
            return Ok(Ruling::Deny(format!("rulekeep: {several}")));
        }
        let Enforced { enforcement, intent, .. } = self.enforce(call, &facts)?;
        if let Some(ruling) = self.narrow(call, &enforcement)? {
            return Ok(ruling);
        }
        let unread = enforcement.denial_class.filter(|class| *class == DenialClass::Unread);
        self.engine.calls().note_unread(self.conversation(), unread.map(|_| enforcement.proof_id));
        if enforcement.decision == Decision::Allow {
            return Ok(self.granted(call, &facts, &enforcement));
        }
        let Enforcement { decision, proof_id, reasoning, granted_capabilities, denial_class, .. } = enforcement;
        let asked = intent.filter(|_| decision == Decision::Escalate);
        self.note(call, proof_id, asked.clone());
        let reasoning = cause(&facts).map(|cause| format!("{cause} {reasoning}")).unwrap_or(reasoning);
        match (decision, asked) {
            (Decision::Escalate, Some(_)) if self.dialect.asks() => Ok(Ruling::Ask(format!("rulekeep: {reasoning}"))),
            (Decision::Escalate, Some(intent)) => {
                self.wait(call, &facts, EscalationId::of(proof_id), &intent, &reasoning)
            }
            (Decision::Degrade, _) => Ok(Ruling::Deny(format!(
                "rulekeep permits only a part of this call ({}): {reasoning} [{proof_id}]",
                json!(granted_capabilities),
            ))),
            _ => {
                let class = denial_class.map_or("", DenialClass::as_str);
                Ok(Ruling::Deny(format!("rulekeep: {reasoning} [{class} {proof_id}]")))
            }
        }
    }

    /// Narrows a call that is permitted only within constraints, and decides on what is left of it.
    fn narrow(&self, call: &HostCall, verdict: &Enforcement) -> Result<Option<Ruling>, Error> {
        let is_granted = matches!(verdict.decision, Decision::Allow | Decision::Degrade);
        let given = call.arguments.as_object().filter(|_| is_granted);
        let Some((given, within)) = given.and_then(|given| Some((given, narrowed(verdict, given)?))) else {
            return Ok(None);
        };
        let changes: Vec<String> = within
            .iter()
            .filter(|(key, value)| given.get(*key) != Some(value))
            .map(|(key, value)| format!("{key} = {value}"))
            .collect();
        let reason = format!("rulekeep: the policy permits this call with {}.", changes.join(", "));
        if !self.dialect.rewrites() {
            return Ok(Some(Ruling::Deny(format!("{reason} Send it so. [{}]", verdict.proof_id))));
        }
        let narrow = HostCall { arguments: Value::Object(within), ..call.clone() };
        let InputForm { agent_id, input, context } = self.input(&narrow);
        let parse = Parse { agent_id, input, context, explain: None };
        let facts = Access::Everything.make(&self.engine.gateway, parse)?.parse.intent.facts();
        let again = self.enforce(&narrow, &facts)?.enforcement;
        self.governor().report_unknown(&verdict.proof_id, Some(&format!("narrowed: {} decides", again.proof_id)))?;
        if again.decision != Decision::Allow {
            return Ok(Some(Ruling::Deny(format!("rulekeep: {} [{}]", again.reasoning, again.proof_id))));
        }
        Ok(Some(match self.granted(&narrow, &facts, &again) {
            Ruling::Allow => Ruling::Rewrite { arguments: narrow.arguments, reason },
            ruling => ruling,
        }))
    }

    /// Decides on a call under the task of its conversation.
    fn enforce(&self, call: &HostCall, facts: &Facts) -> Result<Enforced, Error> {
        let fresh = area::fresh(facts);
        let decide = |task: Option<TaskId>| {
            let mut asked = self.asked(call, facts);
            // A task that is over refuses the call.
            let held = task.and_then(|id| self.governor().tasks().get(id).ok());
            if let Some(task) = &held {
                // What a call makes it may remove, and later ones may run.
                let is_own = task.fetched(&fresh).and_then(|()| task.is_own_work(facts));
                if is_own.unwrap_or(false) {
                    asked.context.get_or_insert_default().insert(OWN_WORK.to_owned(), true.into());
                }
            }
            let request = Enforce { form: DecisionForm::Input(asked), task: task.map(|task| task.to_string()) };
            let decided = Access::Everything.make(&self.engine.gateway, request);
            if let Some(task) = &held {
                let is_granted = decided.as_ref().is_ok_and(|decided| decided.enforcement.decision == Decision::Allow);
                let _ = if !is_granted {
                    task.disowned(&fresh)
                } else if area::brings_in(facts) {
                    task.disowned(area::removed(facts))
                } else {
                    task.created(&fresh).and_then(|()| task.disowned(area::removed(facts)))
                };
            }
            decided
        };
        let has_folder = self.event.cwd.as_deref().is_some_and(|folder| Path::new(folder).parent().is_some());
        if !self.engine.settings.mandates || !has_folder {
            return decide(self.task_id());
        }
        let task = self.task_or_new(None)?;
        match decide(Some(task)) {
            // The task is over: an operator ended it, or its time is up.
            Err(Error::Conflict { .. } | Error::TaskNotFound { .. }) => decide(Some(self.task_or_new(Some(task))?)),
            decided => decided,
        }
    }

    /// Refuses a call that accesses what governs the agent, except for reading, and one that removes a folder around it.
    fn guard(&self, call: &HostCall, parsed: &Intent, facts: &Facts) -> Result<Option<Ruling>, Error> {
        let own = &self.engine.own;
        let only_reads = || parsed.required_capabilities.iter().all(|needed| needed.as_str().ends_with(":read"));
        let named = own.named(self.event, call).filter(|place| own.is_socket(place) || !only_reads());
        let Some(place) = named.or_else(|| own.removed(facts)) else { return Ok(None) };
        let mut intent = Intent::new(self.agent, "change_governance", RiskLevel::Critical, ["permission:admin"])?
            .with_context("tool", call.tool.clone())
            .with_context("place", place.display().to_string());
        if let Some(command) = call.arguments["command"].as_str() {
            intent = intent.with_context("command", command);
        }
        let verdict = self.governor().enforce(&intent)?;
        Ok(match verdict.decision {
            Decision::Allow => None,
            _ => Some(Ruling::Deny(format!(
                "rulekeep: {} governs the agent, and only an operator may change it. {} [{}]",
                place.display(),
                verdict.reasoning,
                verdict.proof_id
            ))),
        })
    }

    /// The call as the request to decide on: it says where links lead, and which call that could not be read it repeats.
    fn asked(&self, call: &HostCall, facts: &Facts) -> InputForm {
        let mut asked = self.input(call);
        let folders: Vec<PathBuf> = self
            .event
            .cwd
            .iter()
            .map(PathBuf::from)
            .chain(std::env::home_dir())
            .filter(|path| path.is_absolute())
            .collect();
        let links = rulekeep_confine::links_of(facts, &folders);
        let unread = self.engine.calls().unread(&self.conversation());
        let context = asked.context.get_or_insert_default();
        if !links.is_empty() {
            context.insert("links".to_owned(), links.into());
        }
        if let Some(unread) = unread {
            context.insert("retryOf".to_owned(), unread.to_string().into());
        }
        if let Ok(Some(environment)) = self.governor().policies().current().environment_of(facts) {
            context.insert("environment".to_owned(), environment.into());
        }
        if let Some(key) = self.confinable(call, facts) {
            context.insert(key.to_owned(), true.into());
        }
        asked
    }

    /// The call as a request.
    fn input(&self, call: &HostCall) -> InputForm {
        let mut context = Map::new();
        context.insert("host".to_owned(), self.host.name().into());
        if let Some(cwd) = &self.event.cwd {
            context.insert("cwd".to_owned(), cwd.clone().into());
        }
        if let Some(home) = std::env::home_dir() {
            context.insert("home".to_owned(), home.display().to_string().into());
        }
        if let Some(subagent) = &self.event.subagent {
            context.insert("subagent".to_owned(), subagent.clone().into());
        }
        let HostCall { tool, server, arguments, .. } = call.clone();
        let input = Asked::call(requests::ToolCall { tool, server, arguments, call_id: None });
        InputForm { agent_id: self.agent.to_owned(), input, context: Some(context) }
    }

    /// Stores the decision on a call, for its retry and its result.
    pub(super) fn note(&self, call: &HostCall, proof_id: ProofId, asked: Option<Intent>) {
        let facts = asked.as_ref().map(Intent::facts);
        let removed = facts.as_ref().map(area::removed).unwrap_or_default();
        let fresh = facts.filter(|facts| !area::brings_in(facts)).map(|facts| area::fresh(&facts)).unwrap_or_default();
        let (conversation, cwd) = (self.conversation(), self.event.cwd.clone());
        let made = Made { conversation, proof_id, asked, fresh, removed, cwd };
        self.engine.calls().put(self.key(call), made);
    }

    /// Rules on a call that was escalated before; `None` if it has to be decided again.
    fn redeem(
        &self,
        call: &HostCall,
        facts: &Facts,
        id: EscalationId,
        intent: &Intent,
    ) -> Result<Option<Ruling>, Error> {
        match self.governor().escalations().get(id)?.state {
            EscalationState::Pending if !self.dialect.asks() => {
                self.wait(call, facts, id, intent, "this call was escalated before and is still pending.").map(Some)
            }
            EscalationState::Approved => match self.governor().escalations().claim(id, intent) {
                Ok(verdict) if verdict.decision == Decision::Allow => Ok(Some(self.granted(call, facts, &verdict))),
                _ => Ok(None), // used up, or under other rules by now
            },
            EscalationState::Pending => {
                let _ = self.governor().escalations().reject(id, Review::by(HOST_USER).note("asked again"));
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Waits for a reviewer as long as the host's timeout permits.
    fn wait(
        &self,
        call: &HostCall,
        facts: &Facts,
        id: EscalationId,
        intent: &Intent,
        reason: &str,
    ) -> Result<Ruling, Error> {
        let margin = Duration::from_secs(3);
        let host = self.dialect.timeout().saturating_sub(margin).saturating_sub(self.started.elapsed());
        let escalations = self.governor().escalations();
        match escalations.wait(id, intent, self.engine.settings.wait.min(host))? {
            Some(verdict) if verdict.decision == Decision::Allow => Ok(self.granted(call, facts, &verdict)),
            Some(verdict) => Ok(Ruling::Deny(format!("rulekeep: {}", verdict.reasoning))),
            None => {
                let asked = escalations.get(id)?.reviewer.filter(|reviewer| reviewer != "operator");
                let by = asked.map(|reviewer| format!(" --reviewer {reviewer}")).unwrap_or_default();
                Ok(Ruling::Deny(format!(
                    "rulekeep: {reason} Ticket {id}: an operator approves it with `rulekeep escalations approve {id}{by}`; then \
                     the same call goes through."
                )))
            }
        }
    }

    /// Reports the outcome of a call, and passes its result to the task.
    /// Takes note of a result. Returns what to tell the user about it.
    fn observe(
        &self,
        call: &HostCall,
        result: Option<&Value>,
        outcome: Option<Outcome>,
    ) -> Result<Option<String>, Error> {
        let Some(made) = self.engine.calls().take(&self.key(call)) else { return Ok(None) };
        let mut proof_id = made.proof_id;
        if let Some(intent) = made.asked {
            if !self.dialect.asks() {
                return Ok(None); // nobody let it through, so this is not its result
            }
            let id = EscalationId::of(proof_id);
            let escalations = self.governor().escalations();
            if escalations.get(id)?.state == EscalationState::Pending {
                // The event says that the host's user agreed, but any program of the agent can send it.
                let note = format!("approval presumed: {} reports that the tool ran", self.host.name());
                if let Some(task) = self.task()? {
                    let _ = task.presume(&proof_id).and_then(|()| task.created(&made.fresh));
                    let _ = task.disowned(&made.removed);
                }
                return self.governor().report_unknown(&proof_id, Some(&note)).map(|()| None);
            }
            if let Ok(verdict) = escalations.claim(id, &intent) {
                proof_id = verdict.proof_id;
            }
        }
        let confined = self.engine.runs.end(made.proof_id, result);
        match outcome {
            None => {
                let note = confined.as_ref().map(|ended| ended.note.as_str());
                self.governor().report_unknown(&proof_id, note)?;
            }
            Some(outcome) => {
                let note = confined.as_ref().filter(|ended| ended.told.is_some()).map(|ended| ended.note.as_str());
                let report = note.map_or_else(|| outcome.into(), |note| outcome.note(note));
                self.governor().report(&proof_id, report)?;
            }
        }
        if let (Some(result), Some(task)) = (result, self.task()?) {
            let mut observed = ToolCall::new(&call.tool, call.arguments.clone());
            observed.server.clone_from(&call.server);
            // A result that cannot be parsed supplies no values; the call has run all the same.
            let _ = task.observe(&observed, result);
        }
        Ok(confined.and_then(|ended| ended.told))
    }

    fn end(&self) -> Result<(), Error> {
        self.withdraw("the conversation ended")?;
        // Only what confined runs left there; there may be nothing.
        let _ = std::fs::remove_dir_all(rulekeep_confine::temp_of(&self.conversation()));
        let key = self.conversation();
        let task = self.engine.conversations().remove(&key);
        if let Some(task) = task {
            Extension::of(self.governor()).forget(&key, "the conversation ended")?;
            self.governor().tasks().get(task)?.close(None)?;
        }
        Ok(())
    }

    /// Rejects the escalations that the host's user did not agree to.
    fn withdraw(&self, why: &str) -> Result<(), Error> {
        if !self.dialect.asks() {
            return Ok(());
        }
        let conversation = self.conversation();
        for made in self.engine.calls().take_asked(&conversation) {
            let id = EscalationId::of(made.proof_id);
            if self.governor().escalations().get(id)?.state == EscalationState::Pending {
                // Custom policies may not name the host's user; then the escalation stays open until it expires.
                let _ = self.governor().escalations().reject(id, Review::by(HOST_USER).note(why));
            }
        }
        Ok(())
    }

    pub(super) fn governor(&self) -> &rulekeep::Governor {
        self.engine.gateway.governor()
    }

    /// The key of the conversation.
    pub(super) fn conversation(&self) -> String {
        format!("{CONVERSATION}{}", json!([self.host.name(), self.agent, self.event.session]))
    }

    fn task_id(&self) -> Option<TaskId> {
        self.engine.conversations().get(&self.conversation()).copied()
    }

    fn task(&self) -> Result<Option<Task>, Error> {
        self.task_id().map(|id| self.governor().tasks().get(id)).transpose()
    }

    /// The key of a call: the same for a retry and for its result.
    pub(super) fn key(&self, call: &HostCall) -> Key {
        let all = json!([self.conversation(), self.event.subagent, call.server, call.tool, call.arguments]).to_string();
        self.engine.hashers.each_ref().map(|hasher| hasher.hash_one(&all))
    }
}

/// The part of a call that has its risk, if it is HIGH or more: a person who is asked need not look for it.
fn cause(facts: &Facts) -> Option<String> {
    let acts = facts.acts.iter().filter_map(|act| Some((act, act.does.iter().max_by_key(|does| does.risk)?)));
    let (act, does) = acts.rev().max_by_key(|(_, does)| does.risk).filter(|(_, does)| does.risk >= RiskLevel::High)?;
    let tool = act.tool.as_deref().unwrap_or_else(|| does.action.as_str());
    let said = act.commands.first().map_or(tool, String::as_str).lines().next().unwrap_or_default();
    let said: String = if said.chars().count() > LONGEST_CAUSE {
        said.chars().take(LONGEST_CAUSE).chain(['…']).collect()
    } else {
        said.to_owned()
    };
    Some(format!("`{said}` is {} at {} risk.", does.capability, does.risk))
}

/// Returns the nonce of a probe of `rulekeep doctor` in the arguments of a call; empty for a probe without one.
fn probe(arguments: &Value) -> Option<String> {
    match arguments {
        Value::String(text) => {
            let (_, rest) = text.split_once(Probe::MARK)?;
            Some(rest.trim_start_matches('-').chars().take_while(char::is_ascii_alphanumeric).take(64).collect())
        }
        Value::Array(values) => values.iter().find_map(probe),
        Value::Object(fields) => fields.values().find_map(probe),
        _ => None,
    }
}

/// Returns the start of a text, at most `most` bytes long.
fn within(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}

/// The key of a context that says that the riskiest parts of a call only remove or run what its conversation made.
const OWN_WORK: &str = "ownWork";
/// Longest part of a call that a ruling quotes, in characters.
const LONGEST_CAUSE: usize = 120;
/// The reviewer that stands for the user whom a host asked.
pub(crate) const HOST_USER: &str = "host-user";

#[cfg(test)]
mod tests;
