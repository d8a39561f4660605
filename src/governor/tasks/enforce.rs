//! Decisions under a task.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use super::call::{CallDigest, Called, part_of_key, targets_of};
use super::live::{Endorsement, LiveTask, Running, not_open};
use super::open::chain_of;
use super::under::{self, TaskFinding, Under};
use crate::governor::TaskBook;
use crate::governor::approvals::Queue;
use crate::governor::intake::risk::RiskSource;
use crate::mandate::{self, Deed, FaultKind, Finding};
use crate::model::facts::{Act, Cause, Operand};
use crate::model::parts::InputEnforcementParts;
use crate::model::{
    Decision, DenialClass, Enforcement, Error, EscalationId, Input, InputEnforcement, Intent, Operation, TaskId,
    TaskState, ToolCall,
};
use crate::parse::Catalogue;
use crate::telemetry::Work;

/// A request under a task, as received.
struct Asked<'a> {
    intent: &'a Intent,
    source: RiskSource,
    /// The text that it was parsed from.
    text: Option<&'a str>,
    /// The calls in it; none if it is not a call.
    called: Vec<Called>,
}

impl TaskBook {
    /// Parses a request of a task's agent and decides on it. `agent_id` is the requesting agent, if the caller names
    /// one.
    pub(crate) fn enforce_input_under(
        &self,
        id: TaskId,
        agent_id: Option<&str>,
        input: Input<'_>,
    ) -> Result<InputEnforcement, Error> {
        self.enforce_read_under(id, agent_id, input, || Called::all_in(input.text))
    }

    /// Decides on a call of a task's agent.
    pub(super) fn enforce_call_under(&self, id: TaskId, call: &ToolCall) -> Result<InputEnforcement, Error> {
        let called = || vec![Called::from(call.clone())];
        self.enforce_read_under(id, None, Input::new(&call.to_text()), called)
    }

    fn enforce_read_under(
        &self,
        id: TaskId,
        agent_id: Option<&str>,
        input: Input<'_>,
        called: impl FnOnce() -> Vec<Called>,
    ) -> Result<InputEnforcement, Error> {
        let started = Instant::now();
        Work::enforce().done_by(|work| {
            let task = self.task_of(id, agent_id)?;
            let parsed = self.intake.parsed(task.agent_id.as_str(), input)?;
            work.note_intent(&parsed.result.intent);
            let asked = Asked {
                intent: &parsed.result.intent,
                source: RiskSource::of(&parsed),
                text: Some(input.text),
                called: called(),
            };
            let enforcement = self.decide_under(&task, &asked)?;
            self.decider.record_verdict(work, started, &enforcement);
            Ok(InputEnforcement::from(InputEnforcementParts { enforcement, parse: parsed.result }))
        })
    }

    /// Decides on an intent of a task's agent.
    pub(crate) fn enforce_intent_under(
        &self,
        id: TaskId,
        intent: &Intent,
        source: RiskSource,
    ) -> Result<Enforcement, Error> {
        let started = Instant::now();
        Work::enforce().done_by(|work| {
            intent.check()?;
            work.note_intent(intent);
            let task = self.task_of(id, Some(intent.agent_id.as_str()))?;
            // The parser's result counts, whatever the caller changed.
            let bound = match source {
                RiskSource::Parse => self.intake.inputs.parsed(Cow::Borrowed(intent))?,
                _ => self.intake.inputs.bound(Cow::Borrowed(intent))?,
            };
            let asked = Asked { intent: &bound, source, text: None, called: Vec::new() };
            let enforcement = self.decide_under(&task, &asked)?;
            self.decider.record_verdict(work, started, &enforcement);
            Ok(enforcement)
        })
    }

    /// An open task of an agent; for other agents it does not exist.
    fn task_of(&self, id: TaskId, agent_id: Option<&str>) -> Result<Arc<LiveTask>, Error> {
        let owner = self.record(id)?.agent_id;
        if agent_id.is_some_and(|agent_id| agent_id != owner.as_str()) {
            return Err(Error::task_not_found(id));
        }
        self.live_task(id)
    }

    fn decide_under(&self, task: &Arc<LiveTask>, asked: &Asked<'_>) -> Result<Enforcement, Error> {
        let catalogue = self.intake.tools.load_full();
        let mut chain: Vec<(&LiveTask, std::sync::MutexGuard<'_, Running>)> =
            task.chain().map(|task| (task, task.lock())).collect();
        if let Some((ended, _)) = chain.iter().find(|(_, running)| running.ended) {
            return Err(not_open(task.id, TaskState::Ended, Some(&format!("{} is no longer open", ended.id))));
        }
        let deeds = asked.deeds(task);
        let tool = deeds.first().map_or_else(|| asked.named(), |deed| deed.tool.clone());
        let digest = match deeds.as_slice() {
            [one] => one.digest,
            _ => asked.digest(task, &tool),
        };
        let mut finding = Finding::default();
        let mut refusal = None;
        let has_area = chain.iter().any(|(_, running)| running.area.is_known());
        let (mut guard, mut is_effect) = (None, true);
        for (level, running) in &mut chain {
            is_effect = false;
            for deed in &deeds {
                let (found, reads) = self.finding_of(running, &catalogue, asked, deed);
                if found.leaves {
                    guard = guard.or_else(|| running.order_for(asked, deed));
                }
                finding.join(found);
                is_effect |= !reads;
            }
            if running.calls >= level.max_calls {
                let why = format!(
                    "Denied: the {} calls of the task {} are used up. A retry cannot help.",
                    level.max_calls, level.id
                );
                refusal.get_or_insert((DenialClass::Mandate, why));
            }
        }
        if chain.first_mut().is_some_and(|(_, running)| running.asks_too_much(&self.approvals.queue))
            && !finding.is_inside()
        {
            let why = format!(
                "Denied: {MOST_ASKED} calls of the task {} are pending already; have these answered first.",
                task.id
            );
            refusal.get_or_insert((DenialClass::Limit, why));
        }
        let said = chain.first().and_then(|(_, running)| running.words.texts().next()).unwrap_or_default();
        let under = TaskFinding {
            reason: under::reason(said, &tool, &asked.intent.required_capabilities, &finding, has_area),
            evidence: under::evidence(
                task.id,
                &chain_of(task.parent.as_deref()),
                digest,
                is_effect,
                &finding,
                guard.as_deref(),
            ),
            refusal,
            has_area,
            guard,
            expires_at: task.expires_at,
            finding,
        };
        let (enforcement, committed) = self.decider.decide_in_order(asked.intent, asked.source, Under::Task(&under))?;
        let is_granted = matches!(enforcement.decision, Decision::Allow | Decision::Degrade);
        // A denial by the policies or a kill switch is not a refusal by the mandate.
        let class = enforcement.denial_class;
        for (_, running) in &mut chain {
            running.calls += 1;
            for digest in deeds.iter().map(|deed| deed.digest).chain([digest]) {
                *running.made.entry(digest.key()).or_default() |= is_granted;
            }
        }
        if let Some((_, running)) = chain.first_mut() {
            if asked.called.is_empty() && running.loose.len() < MOST_LOOSE {
                running.loose.insert(tool.as_ref().into());
            }
            if let Some(class @ (DenialClass::Mandate | DenialClass::Exfiltration)) = class {
                *running.refused.entry(class).or_default() += 1;
            }
            if enforcement.decision == Decision::Escalate {
                // Includes escalations by the policies alone: they end with the task, and their approval counts as a
                // granted call.
                running.endorsements.insert(enforcement.proof_id, endorsement(&under.finding, asked.intent, digest));
                self.write().asked.insert(enforcement.proof_id, task.id);
            }
        }
        drop(chain);
        self.decider.settled(enforcement, &committed)
    }

    /// Checks a request against one mandate; also returns whether the request only reads.
    fn finding_of(
        &self,
        running: &mut Running,
        catalogue: &Arc<Catalogue>,
        asked: &Asked<'_>,
        one: &OneDeed<'_>,
    ) -> (Finding, bool) {
        let tool = &*one.tool;
        let fit = running.fit(&self.intake.parser, catalogue, tool);
        let intent = asked.intent;
        let only_reads = intent.required_capabilities.iter().all(|one| one.operation() == Some(Operation::Read));
        if let Some(facts) = intent.known.as_deref().filter(|facts| running.area.works_here(facts)) {
            let Running { words, asked, memory, area, .. } = running;
            return (mandate::check_acts(words, asked, memory, facts, area), only_reads);
        }
        let deed = Deed {
            tool,
            capabilities: &intent.required_capabilities,
            is_read: only_reads || fit.is_some_and(|rated| rated.is_read),
            is_poisoned: fit.is_some_and(|rated| rated.is_poisoned),
            risk: intent.risk_level,
            fit: fit.map(|rated| rated.fit),
            arguments: one.arguments,
            text: asked.text.filter(|_| one.arguments.is_none()),
            targets: targets_of(intent),
            is_unread: intent.known.as_ref().is_some_and(|facts| facts.acts.iter().any(is_unread)),
            is_repeated: running.made.get(&one.digest.key()).copied().unwrap_or_default(),
            known: &part_of_key,
            offers: &|argument, value| catalogue.offers(tool, argument, value),
        };
        (mandate::check(&running.words, &running.asked, &running.memory, &deed), deed.is_read)
    }
}

/// Returns whether a part of an act could not be read, or a path leads out of the folder that it names.
fn is_unread(act: &Act) -> bool {
    let leads_up = |operand: &Operand| operand.original.as_ref().is_some_and(|sent| sent.contains("/.."));
    // What no argument names, the mandate judges by the arguments that there are.
    act.open.iter().any(|open| open.cause == Cause::Text) || act.operands.iter().any(leads_up)
}

impl Running {
    /// The order to the agent in a result that a call would carry out.
    fn order_for(&self, asked: &Asked<'_>, deed: &OneDeed<'_>) -> Option<String> {
        let facts = asked.intent.known.as_deref();
        let operands = facts.into_iter().flat_map(|facts| &facts.acts).flat_map(|act| &act.operands);
        let sent = operands.flat_map(|operand| [Some(operand.value.as_str()), operand.original.as_deref()]);
        let mut values: Vec<&str> = sent.flatten().collect();
        deed.arguments.into_iter().flat_map(serde_json::Map::values).for_each(|value| texts(value, &mut values));
        values.extend(asked.text.filter(|_| deed.arguments.is_none()));
        let order =
            |order: &&mandate::Order| order.concerns(&asked.intent.required_capabilities, values.iter().copied());
        self.orders.iter().find(order).map(|order| order.words.clone())
    }

    /// Returns whether the maximum number of pending escalations is reached.
    fn asks_too_much(&mut self, queue: &Queue) -> bool {
        if self.endorsements.len() >= MOST_ASKED {
            self.endorsements.retain(|asked, _| queue.is_pending(EscalationId::of(*asked)));
        }
        self.endorsements.len() >= MOST_ASKED
    }
}

/// Collects the texts in a value.
fn texts<'v>(value: &'v serde_json::Value, found: &mut Vec<&'v str>) {
    match value {
        serde_json::Value::String(text) => found.push(text),
        serde_json::Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        serde_json::Value::Object(fields) => fields.values().for_each(|value| texts(value, found)),
        serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
    }
}

/// One of the calls of a request, or the request as a whole if it is no call.
struct OneDeed<'a> {
    tool: Cow<'a, str>,
    arguments: Option<&'a serde_json::Map<String, serde_json::Value>>,
    digest: CallDigest,
}

impl Asked<'_> {
    /// Each call of the request, or the request as a whole.
    fn deeds<'c>(&'c self, task: &LiveTask) -> Vec<OneDeed<'c>> {
        if self.called.is_empty() {
            let tool = self.named();
            return vec![OneDeed { digest: self.digest(task, &tool), tool, arguments: None }];
        }
        let deed = |called: &'c Called| {
            let Called { tool, arguments } = called;
            let tool = if tool.is_empty() { self.named() } else { Cow::Borrowed(tool.as_str()) };
            OneDeed { digest: Called::digest(task.salt, &tool, arguments), tool, arguments: Some(arguments) }
        };
        self.called.iter().map(deed).collect()
    }

    /// The tool that the parser found, or else the action.
    fn named(&self) -> Cow<'_, str> {
        let tool = self.intent.known.as_ref().and_then(|facts| facts.tool());
        Cow::Borrowed(tool.unwrap_or(self.intent.parsed_action.as_str()))
    }

    /// The digest of the request as a whole.
    fn digest(&self, task: &LiveTask, tool: &str) -> CallDigest {
        let mut arguments = serde_json::Map::new();
        let text = self.text.map_or_else(|| self.intent.members().to_json(), Into::into);
        arguments.insert("input".to_owned(), text);
        Called::digest(task.salt, tool, &arguments)
    }
}

/// The addition to the mandate that an approval for the whole task makes.
fn endorsement(finding: &Finding, intent: &Intent, call: CallDigest) -> Endorsement {
    let mut endorsement = Endorsement { call: Some(call.key()), ..Endorsement::default() };
    for fault in &finding.faults {
        match fault.kind {
            FaultKind::Source | FaultKind::Leaves | FaultKind::Removes => {
                endorsement.values.extend(fault.value.clone());
            }
            FaultKind::Unsure => endorsement.acts.clone_from(&intent.required_capabilities),
            FaultKind::Foreign | FaultKind::Exfiltration | FaultKind::Unread | FaultKind::Repeated => {}
        }
    }
    if endorsement.values.iter().map(String::len).sum::<usize>() > MOST_ENDORSED_BYTES {
        // No reviewer reads that much, so the approval covers only the one call.
        return Endorsement { call: endorsement.call, ..Endorsement::default() };
    }
    endorsement
}

/// Maximum number of pending escalations of one task.
const MOST_ASKED: usize = 100;
/// Maximum number of tools, named in words, whose results can be observed.
const MOST_LOOSE: usize = 1_000;
/// Maximum size of the values that one approval adds to a mandate, in bytes.
const MOST_ENDORSED_BYTES: usize = 4 << 10;
