//! The gateway's calls to governance, on threads for blocking work.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
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
}

/// An escalation, and the intent with which to claim it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) id: String,
    pub(crate) intent: Value,
}

/// The outcome of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    Failure,
    Unknown,
}

impl Governance {
    pub(crate) fn new(calls: Arc<dyn Calls>, options: Governed) -> Self {
        Self { calls, options: Arc::new(options) }
    }

    /// Makes one call. A panic or a shutdown of the runtime is a failed call.
    pub(crate) async fn call(&self, method: &'static str, params: Value) -> Result<Value, CallError> {
        let calls = Arc::clone(&self.calls);
        let made = tokio::task::spawn_blocking(move || calls.call(method, params)).await;
        made.unwrap_or_else(|_| Err(CallError::new("INTERNAL", format!("{method} did not finish"))))
    }

    /// Decides on a tool call.
    pub(crate) async fn enforce(&self, tool: &str, arguments: &Value) -> Result<Verdict, CallError> {
        let options = &self.options;
        let input = json!({ "tool": tool, "arguments": arguments, "server": options.server });
        let mut params = json!({ "input": input });
        if let Some(agent_id) = &options.agent_id {
            params["agentId"] = json!(agent_id);
        }
        if let Some(task_id) = &options.task_id {
            params["taskId"] = json!(task_id);
        }
        self.call("enforce", params).await.map(|answer| verdict(&answer))
    }

    /// Claims an approval.
    pub(crate) async fn claim(&self, asked: &Asked) -> Result<Verdict, CallError> {
        let params = json!({ "id": asked.id, "intent": asked.intent });
        self.call("escalation/claim", params).await.map(|answer| verdict(&answer))
    }

    /// Waits until the escalation is no longer pending, for at most `wait`, and returns it.
    pub(crate) async fn escalation(&self, id: &str, wait: Duration) -> Result<Value, CallError> {
        let end = Instant::now() + wait;
        let mut step = Duration::ZERO;
        loop {
            let params = json!({ "id": id, "timeoutMs": u64::try_from(step.as_millis()).unwrap_or(0) });
            let escalation = self.call("escalation/wait", params).await?;
            let left = end.saturating_duration_since(Instant::now());
            if escalation["state"] != "pending" || left.is_zero() {
                return Ok(escalation);
            }
            step = left.clamp(Duration::from_millis(1), LONGEST_STEP);
        }
    }

    /// Reports the outcome of a call. A failure is only logged: the call was made, and a refusal would make the
    /// client repeat it.
    pub(crate) async fn report(&self, permit: &Permit, outcome: Outcome) {
        let outcome = match outcome {
            Outcome::Success => "SUCCESS",
            Outcome::Failure => "FAILURE",
            Outcome::Unknown => "UNKNOWN",
        };
        let params = json!({ "proofId": permit.proof_id, "outcome": outcome });
        if let Err(error) = self.call("outcome/report", params).await {
            tracing::error!(proof_id = permit.proof_id, outcome, %error, "the outcome of a tool call is not recorded");
        }
    }

    /// Records a result under the task, if there is one.
    pub(crate) async fn observe(&self, tool: &str, arguments: &Value, result: Value) -> Result<(), CallError> {
        let Some(task_id) = &self.options.task_id else { return Ok(()) };
        let call = json!({ "name": tool, "arguments": arguments, "server": self.options.server });
        let params = json!({ "taskId": task_id, "call": call, "result": result });
        self.call("task/observe", params).await.map(drop)
    }
}

/// Parses a verdict. Anything that does not clearly grant or escalate is a refusal.
fn verdict(answer: &Value) -> Verdict {
    let text = |name: &str| answer.get(name).and_then(Value::as_str);
    let Some(proof_id) = text("proofId") else {
        return Verdict::Refused(Refusal::new("error", "governance answered without a proof id; update the gateway"));
    };
    match (text("decision"), answer.get("intent")) {
        (Some("ALLOW"), _) => {
            let timeout = answer["constraints"]["timeoutMs"].as_u64().map(Duration::from_millis);
            Verdict::Granted(Permit { proof_id: proof_id.to_owned(), timeout })
        }
        (Some("ESCALATE"), Some(intent)) => {
            Verdict::Escalated(Asked { id: proof_id.to_owned(), intent: intent.clone() })
        }
        (Some("DEGRADE"), _) => {
            let why = "The call needs all of its capabilities, and only a part was granted.";
            Verdict::Refused(Refusal::of_verdict(answer, Some(why)))
        }
        _ => Verdict::Refused(Refusal::of_verdict(answer, None)),
    }
}

/// The longest wait in one call of `escalation/wait`.
const LONGEST_STEP: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_allow_with_a_record_grants() {
        for (answer, granted) in [
            (json!({ "decision": "ALLOW", "proofId": "prf_1" }), true),
            (json!({ "decision": "ALLOW" }), false),
            (json!({ "decision": "allow", "proofId": "prf_1" }), false),
            (json!({ "decision": "DEGRADE", "proofId": "prf_1" }), false),
            (json!({ "decision": "ESCALATE", "proofId": "prf_1" }), false),
            (json!({ "decision": true, "proofId": "prf_1" }), false),
            (json!({}), false),
            (Value::Null, false),
        ] {
            assert_eq!(matches!(verdict(&answer), Verdict::Granted(_)), granted, "{answer}");
        }
    }
}
