//! The gateway's calls to governance, on threads for blocking work.

use std::sync::Arc;
use std::time::Duration;

use rulekeep::escalation::{Escalation, EscalationState};
use rulekeep::grant::narrowed;
use rulekeep::{Decision, Enforcement, Outcome};
use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use crate::calls::{CallError, Calls};
use crate::options::Governed;
use crate::refusal::Refusal;

/// Governance for one agent and one server.
#[derive(Clone)]
pub(crate) struct Governance {
    calls: Arc<dyn Calls>,
    pub(crate) options: Arc<Governed>,
}

/// A decision on a call.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The call may go on.
    Granted(Permit),
    /// A reviewer has to agree first.
    Escalated(Asked),
    /// The call must not go on.
    Refused(Refusal),
}

/// The permission to forward one call.
#[derive(Debug, Clone)]
pub(crate) struct Permit {
    /// The record of the decision, for the outcome.
    pub(crate) proof_id: String,
    /// The longest time that the call may take, if the decision limits it.
    pub(crate) timeout: Option<Duration>,
    /// The arguments to which the decision narrows the call; its own if absent.
    pub(crate) arguments: Option<Map<String, Value>>,
}

/// An escalation, and the intent with which to claim it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) id: String,
    /// The record that asks.
    pub(crate) proof_id: String,
    pub(crate) intent: Value,
}

impl Governance {
    pub(crate) fn new(calls: Arc<dyn Calls>, options: Governed) -> Self {
        Self { calls, options: Arc::new(options) }
    }

    /// Makes one call. A panic, a shutdown of the runtime or an answer of another form is a failed call.
    pub(crate) async fn call<A: DeserializeOwned>(&self, method: &'static str, params: Value) -> Result<A, CallError> {
        let calls = Arc::clone(&self.calls);
        let made = tokio::task::spawn_blocking(move || calls.call(method, params)).await;
        let answer = made.unwrap_or_else(|_| Err(CallError::new("INTERNAL", format!("{method} did not finish"))))?;
        serde_json::from_value(answer).map_err(|error| unexpected(&format!("the answer to {method}: {error}")))
    }

    /// Decides on a tool call.
    pub(crate) async fn enforce(&self, tool: &str, arguments: &Value) -> Result<Verdict, CallError> {
        let given = arguments.as_object();
        let decided = self.decide(tool, arguments).await?;
        let within = given.filter(|_| decided.may_narrow()).and_then(|given| narrowed(&decided.enforcement, given));
        let Some(within) = within else { return Ok(decided.verdict()) };
        // The narrowed call is what runs, so it is what the log has to show.
        let narrow = Value::Object(within);
        Ok(match (self.decide(tool, &narrow).await?.verdict(), narrow) {
            (Verdict::Granted(permit), Value::Object(within)) => {
                Verdict::Granted(Permit { arguments: Some(within), ..permit })
            }
            (verdict, _) => verdict,
        })
    }

    async fn decide(&self, tool: &str, arguments: &Value) -> Result<Decided, CallError> {
        let options = &self.options;
        let input = json!({ "tool": tool, "arguments": arguments, "server": options.server });
        let agent_id = options.agent_id.as_ref().map(|id| ("agentId", json!(id)));
        let task_id = options.task_id.as_ref().map(|id| ("taskId", json!(id)));
        let params = [Some(("input", input)), agent_id, task_id].into_iter().flatten();
        let params = params.map(|(name, value)| (name.to_owned(), value)).collect();
        self.call("enforce", params).await
    }

    /// Claims an approval.
    pub(crate) async fn claim(&self, asked: &Asked) -> Result<Verdict, CallError> {
        let params = json!({ "id": asked.id, "intent": asked.intent });
        self.call("escalation/claim", params).await.map(Decided::verdict)
    }

    /// Waits until the escalation is no longer pending, for at most `wait`, and returns it.
    pub(crate) async fn escalation(&self, id: &str, wait: Duration) -> Result<Escalation, CallError> {
        let end = Instant::now() + wait;
        let mut step = Duration::ZERO;
        loop {
            let params = json!({ "id": id, "timeoutMs": u64::try_from(step.as_millis()).unwrap_or(0) });
            let escalation: Escalation = self.call("escalation/wait", params).await?;
            let left = end.saturating_duration_since(Instant::now());
            if escalation.state != EscalationState::Pending || left.is_zero() {
                return Ok(escalation);
            }
            step = left.clamp(Duration::from_millis(1), LONGEST_STEP);
        }
    }

    /// Reports the outcome of a call; `None` if it is unknown. A failure is only logged: the call was made, and a
    /// refusal would make the client repeat it.
    pub(crate) async fn report(&self, permit: &Permit, outcome: Option<Outcome>) {
        self.report_of(&permit.proof_id, outcome).await;
    }

    /// Ends the question of a call that its client has given up. Nobody needs to answer it any more.
    pub(crate) async fn withdraw(&self, asked: &Asked) {
        self.report_of(&asked.proof_id, None).await;
    }

    async fn report_of(&self, proof_id: &str, outcome: Option<Outcome>) {
        let outcome = outcome.map_or("UNKNOWN", Outcome::as_str);
        let params = json!({ "proofId": proof_id, "outcome": outcome });
        if let Err(error) = self.call::<IgnoredAny>("outcome/report", params).await {
            tracing::error!(proof_id, outcome, %error, "the outcome of a tool call is not recorded");
        }
    }

    /// Records a result under the task, if there is one.
    pub(crate) async fn observe(&self, tool: &str, arguments: &Value, result: Value) -> Result<(), CallError> {
        let Some(task_id) = &self.options.task_id else { return Ok(()) };
        let call = json!({ "name": tool, "arguments": arguments, "server": self.options.server });
        let params = json!({ "taskId": task_id, "call": call, "result": result });
        self.call::<IgnoredAny>("task/observe", params).await.map(drop)
    }
}

/// A verdict of governance, with the parsed intent.
#[derive(Debug, Deserialize)]
struct Decided {
    #[serde(flatten)]
    enforcement: Enforcement,
    intent: Option<Value>,
}

impl Decided {
    /// Returns whether a call within the constraints may be granted.
    fn may_narrow(&self) -> bool {
        matches!(self.enforcement.decision, Decision::Allow | Decision::Degrade)
    }

    /// The consequence for the call. Anything except ALLOW and ESCALATE is a refusal.
    fn verdict(self) -> Verdict {
        let Self { enforcement, intent } = self;
        let proof_id = enforcement.proof_id.to_string();
        match (enforcement.decision, intent) {
            (Decision::Allow, _) => {
                let timeout = enforcement.constraints.timeout();
                Verdict::Granted(Permit { proof_id, timeout, arguments: None })
            }
            (Decision::Escalate, Some(intent)) => Verdict::Escalated(Asked { id: proof_id.clone(), proof_id, intent }),
            (Decision::Degrade, _) => {
                let why = "The call needs all of its capabilities, and only a part was granted.";
                Verdict::Refused(Refusal::of_verdict(&enforcement, Some(why)))
            }
            _ => Verdict::Refused(Refusal::of_verdict(&enforcement, None)),
        }
    }
}

/// The error of an answer that another version gave.
pub(crate) fn unexpected(what: &str) -> CallError {
    CallError::new("INTERNAL", format!("{what}; the gateway and the daemon must have the same version"))
}

/// The longest wait in one call of `escalation/wait`.
const LONGEST_STEP: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_allow_with_a_record_grants() {
        let governor = rulekeep::Governor::builder().auto_register().open_in_memory().unwrap();
        let allowed = json!(governor.enforce_input("a", "Summarize the meeting notes").unwrap());
        let granted = |answer: Value| {
            let decided = serde_json::from_value::<Decided>(answer);
            decided.is_ok_and(|decided| matches!(decided.verdict(), Verdict::Granted(_)))
        };
        assert!(granted(allowed.clone()));
        for (name, value) in [
            ("decision", json!("allow")),
            ("decision", json!("DEGRADE")),
            ("decision", json!("ESCALATE")),
            ("decision", json!("DENY")),
            ("decision", json!(true)),
            ("proofId", Value::Null),
            ("proofId", json!("prf_1")),
        ] {
            let mut answer = allowed.clone();
            answer[name] = value;
            assert!(!granted(answer.clone()), "{answer}");
        }
        assert!(!granted(json!({})) && !granted(Value::Null));
    }
}
