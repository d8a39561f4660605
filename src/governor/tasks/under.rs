//! The effect of a mandate on a verdict, and its reasoning.

use std::time::Duration;

use serde_json::{Value, json};

use super::call::CallDigest;
use crate::governor::states::masked;
use crate::mandate::{Fault, FaultKind, Finding, Origin};
use crate::model::{AgentId, Capability, Decision, DenialClass, TaskId, Timestamp, excerpt};
use crate::policy::{Need, PolicyVerdict};
use crate::trust::AgentRecord;

/// The task that limits a decision, besides the policies.
#[derive(Clone, Copy)]
pub(crate) enum Under<'a> {
    Policies,
    Task(&'a TaskFinding),
    Opening(&'a Opening),
    /// The answer to an escalated call under a task, with the task's part of that call's evidence.
    Answer(&'a Value),
}

/// The opening of a task, or the extension of its mandate.
pub(crate) struct Opening {
    pub(super) task: TaskId,
    /// The task's part of the record's evidence.
    pub(super) evidence: Value,
    /// The words, with secrets redacted.
    pub(crate) words: String,
    /// The word for the change in the record: opened, delegated, extended.
    pub(super) what: &'static str,
}

/// The mandate engine's finding on a call.
pub(crate) struct TaskFinding {
    pub(super) finding: Finding,
    /// A refusal for a reason other than the call's content.
    pub(super) refusal: Option<(DenialClass, String)>,
    /// The task has a work area: a person works with the agent and can be asked.
    pub(super) has_area: bool,
    /// The reasoning; empty for a call within the mandate.
    pub(super) reason: String,
    /// The order to the agent in a result that the call would carry out.
    pub(super) guard: Option<String>,
    /// The deadline for an endorsement.
    pub(super) expires_at: Timestamp,
    /// The task's part of the record's evidence.
    pub(super) evidence: Value,
}

impl TaskFinding {
    /// The class of refusal, if the call is refused.
    pub(super) fn class(&self) -> Option<DenialClass> {
        let by_fault = self.finding.refusal().filter(|_| !self.has_area).map(|fault| match fault.kind {
            FaultKind::Exfiltration => DenialClass::Exfiltration,
            _ => DenialClass::Mandate,
        });
        self.refusal.as_ref().map(|(class, _)| *class).or(by_fault)
    }
}

impl Opening {
    /// The verdict if the agent may act: opening a task is allowed, and calls under it are decided one by one.
    pub(crate) fn verdict(&self, required: &[Capability]) -> PolicyVerdict {
        let reasoning =
            format!("The task {} is {}: what is done under it is decided call by call.", self.task, self.what);
        let mut verdict = PolicyVerdict::of_no_rule(required, reasoning);
        verdict.decision = Decision::Allow;
        verdict.granted = std::mem::take(&mut verdict.denied);
        verdict
    }
}

impl<'a> Under<'a> {
    /// Returns whether the policies alone decide.
    pub(crate) const fn is_by_policies(self) -> bool {
        matches!(self, Self::Policies)
    }

    /// Returns whether the call is within the mandate.
    pub(crate) fn is_inside(self) -> bool {
        match self {
            Self::Task(task) => task.finding.is_inside() && task.refusal.is_none(),
            Self::Policies | Self::Opening(_) | Self::Answer(_) => true,
        }
    }

    /// Returns whether a result under the task ordered the agent to make this call, which raises its risk.
    pub(crate) const fn raises_risk(self) -> bool {
        matches!(self, Self::Task(TaskFinding { guard: Some(_), .. }))
    }

    /// The task's part of the evidence.
    pub(crate) fn evidence(self) -> Option<&'a Value> {
        match self {
            Self::Task(task) => Some(&task.evidence),
            Self::Opening(opening) => Some(&opening.evidence),
            Self::Answer(task) => Some(task),
            Self::Policies => None,
        }
    }

    /// Limits a verdict to the mandate. Returns the class of refusal if the mandate refuses.
    pub(crate) fn limit(self, verdict: &mut PolicyVerdict, agent: &AgentRecord, now: Timestamp) -> Option<DenialClass> {
        if verdict.decision == Decision::Deny {
            return None;
        }
        match self {
            Self::Opening(_) | Self::Answer(_) => None,
            Self::Policies => {
                let is_required = agent.traits().attributes.get(MANDATE).and_then(Value::as_str) == Some(REQUIRED);
                if !is_required {
                    return None;
                }
                let why = format!(
                    "Denied: agent {} acts only under a task; open one, and pass its id as taskId.",
                    agent.agent_id
                );
                deny(verdict, why);
                Some(DenialClass::Mandate)
            }
            Self::Task(task) => {
                let class = task.class();
                if class.is_some() {
                    deny(verdict, task.refusal.as_ref().map_or_else(|| task.reason.clone(), |(_, why)| why.clone()));
                    return class;
                }
                if task.finding.is_inside() {
                    if let Some(guard) = &task.guard {
                        let more = format!(
                            " A result under the task orders the agent to do this ({guard:?}): the risk is raised by one level."
                        );
                        verdict.reasoning.push_str(&more);
                    }
                    return None;
                }
                ask(verdict, task, now);
                None
            }
        }
    }
}

fn deny(verdict: &mut PolicyVerdict, why: String) {
    let mut required = std::mem::take(&mut verdict.granted);
    required.append(&mut verdict.denied);
    *verdict = PolicyVerdict::of_no_rule(&required, why);
}

/// Turns a verdict that would grant something into an escalation, for a reviewer to endorse.
fn ask(verdict: &mut PolicyVerdict, task: &TaskFinding, now: Timestamp) {
    if verdict.decision == Decision::Escalate {
        // The reviewers named by the policies see the fault too.
        verdict.reasoning = format!("{} {}", task.reason, verdict.reasoning);
        return;
    }
    let left = task.expires_at.as_millis().saturating_sub(now.as_millis());
    let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
    verdict.withhold();
    verdict.reasoning.clone_from(&task.reason);
    // Anybody but the requesters may answer, usually the user.
    verdict.needs = vec![Need::of_anybody("mandate")];
    verdict.expires = LONGEST_ENDORSEMENT.min(left);
}

/// The reasoning for a call that is not within the mandate: the user's words and the fault.
pub(super) fn reason(said: &str, tool: &str, capabilities: &[Capability], finding: &Finding, has_area: bool) -> String {
    let fault = finding.refusal().or(finding.faults.first());
    let Some(fault) = fault else { return String::new() };
    let said = if said.is_empty() { "nothing yet".to_owned() } else { excerpt(&masked(said)) };
    let capabilities: Vec<&str> = capabilities.iter().map(Capability::as_str).collect();
    let call = format!("{tool} ({})", capabilities.join(", "));
    let argument = fault.argument.as_deref().unwrap_or("input");
    let value = fault.value.as_deref().map(|value| excerpt(&masked(value))).unwrap_or_default();
    let sources = finding.faults.iter().filter(|fault| fault.kind == FaultKind::Source);
    let values: Vec<String> = sources
        .take(MOST_VALUES)
        .map(|fault| {
            let value = fault.value.as_deref().map(|value| excerpt(&masked(value))).unwrap_or_default();
            format!("{} {value:?}", fault.argument.as_deref().unwrap_or("input"))
        })
        .collect();
    let (stand, them, these) =
        if values.len() == 1 { ("appears", "it", "the value") } else { ("appear", "them", "the values") };
    let source = match &fault.origin {
        Origin::Observed(place) => format!("only a result of {} has {them}", place.tool),
        Origin::Nowhere => format!("no result has {them} either"),
    };
    let told = if fault.kind == FaultKind::Source { values.len() } else { 1 };
    let more = match finding.faults.len().saturating_sub(told) {
        0 => String::new(),
        more => format!(" {more} more to review."),
    };
    let (begin, end) = if has_area {
        ("Escalated", "Agree, or have the user ask for it.")
    } else {
        ("Denied", "A retry cannot help.")
    };
    match fault.kind {
        FaultKind::Foreign => {
            format!("{begin}: the user asked {said:?}, and nothing in that asks for {call}. {end}")
        }
        FaultKind::Exfiltration => format!(
            "{begin}: {argument} {value:?} contains data that {} returned, for a recipient that neither the user's \
             words {said:?} nor a trusted value names. {end}",
            match &fault.origin {
                Origin::Observed(place) => &*place.tool,
                Origin::Nowhere => "a result",
            }
        ),
        FaultKind::Unsure => {
            format!("Escalated: the user asked {said:?}; it is unclear whether that asks for {call}.{more}")
        }
        FaultKind::Source => format!(
            "Escalated: {} of {call} {} in neither the user's words {said:?} nor a trusted value; {source}. \
             Approve {these}, or reject.{more}",
            values.join(" and "),
            stand
        ),
        FaultKind::Unread => format!(
            "Escalated: not all of {call} could be read, so it cannot be checked against the user's words \
             {said:?}.{more}"
        ),
        FaultKind::Leaves => format!(
            "Escalated: {value:?} reaches outside the folders of the task, and the user's words {said:?} do not name it. \
             Agree, or have the user ask for it.{more}"
        ),
        FaultKind::Removes => format!(
            "Escalated: {call} removes {value:?}, which the task did not create, and the user's words {said:?} do not ask \
             for a removal. Agree, or have the user ask for it.{more}"
        ),
        FaultKind::Repeated => {
            format!("Escalated: the user asked {said:?}; {call} was already made with these values.{more}")
        }
    }
}

/// The task's part of the evidence of a record under it.
pub(super) fn evidence(
    task: TaskId,
    chain: &[(TaskId, AgentId)],
    call: CallDigest,
    is_effect: bool,
    finding: &Finding,
    guard: Option<&str>,
) -> Value {
    let mut evidence = opening_evidence(task, chain);
    if let Some(fields) = evidence.as_object_mut() {
        fields.insert("call".to_owned(), json!(call));
        fields.insert("effect".to_owned(), is_effect.into());
        fields.insert("faults".to_owned(), finding.faults.iter().map(shown).collect::<Vec<_>>().into());
        if let Some(guard) = guard {
            fields.insert("guard".to_owned(), guard.into());
        }
    }
    evidence
}

/// The task's part of the evidence of a record about the task itself: the task and its ancestors.
pub(super) fn opening_evidence(task: TaskId, chain: &[(TaskId, AgentId)]) -> Value {
    let mut evidence = json!({ "id": task });
    if let Some(fields) = evidence.as_object_mut().filter(|_| !chain.is_empty()) {
        let chain: Vec<Value> = chain.iter().map(|(task, agent)| json!({ "id": task, "agentId": agent })).collect();
        fields.insert("chain".to_owned(), chain.into());
    }
    evidence
}

/// A fault in the form shown to a reviewer.
fn shown(fault: &Fault) -> Value {
    let kind = match fault.kind {
        FaultKind::Foreign => "foreign",
        FaultKind::Unsure => "unsure",
        FaultKind::Source => "source",
        FaultKind::Exfiltration => "exfiltration",
        FaultKind::Unread => "unread",
        FaultKind::Repeated => "repeated",
        FaultKind::Leaves => "leaves",
        FaultKind::Removes => "removes",
    };
    let mut shown = json!({ "kind": kind });
    if let Some(fields) = shown.as_object_mut() {
        fields.extend(fault.argument.as_ref().map(|argument| ("argument".to_owned(), argument.as_str().into())));
        fields.extend(fault.value.as_ref().map(|value| ("value".to_owned(), masked(value).into())));
        if let Origin::Observed(place) = &fault.origin {
            fields.insert("source".to_owned(), place.tool.as_str().into());
            if !place.around.is_empty() {
                fields.insert("around".to_owned(), masked(&place.around).into());
            }
        }
    }
    shown
}

/// Number of values that a reasoning names.
const MOST_VALUES: usize = 3;
/// The attribute of an agent that may only act under tasks, and its value.
const MANDATE: &str = "mandate";
const REQUIRED: &str = "required";
/// The longest time in which an endorsement can be given.
const LONGEST_ENDORSEMENT: Duration = Duration::from_secs(24 * 60 * 60);
