//! Escalated calls that wait for a reviewer, and the question to the client's user.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use rmcp::model::{ElicitRequestParams, ElicitationSchema};
use rulekeep::escalation::Escalation;
use rulekeep::proof::Digest;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::calls::CallError;
use crate::governance::{Asked, Governance};
use crate::refusal::Refusal;
use crate::seal::CallDigest;

/// A waiting call, and what the user was shown.
#[derive(Debug, Clone)]
pub(crate) struct Waiting {
    pub(crate) asked: Asked,
    /// The digest of the escalation as shown; an approval binds to it.
    digest: Digest,
    reason: String,
    message: String,
}

/// The waiting calls by their digests, so that a call that its client repeats redeems its escalation instead of asking
/// again. A digest includes the client, so that no client redeems another one's approval.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    calls: Mutex<HashMap<CallDigest, Waiting>>,
}

impl Pending {
    pub(crate) fn find(&self, call: &CallDigest) -> Option<Waiting> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).get(call).cloned()
    }

    pub(crate) fn insert(&self, call: CallDigest, waiting: Waiting) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        // An agent has at most 100 pending escalations. Entries beyond that have ended, and their calls would be
        // asked again.
        if calls.len() >= MOST_WAITING {
            calls.clear();
        }
        calls.insert(call, waiting);
    }

    pub(crate) fn remove(&self, call: &CallDigest) {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).remove(call);
    }
}

/// The user's answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The user sent the form and agrees.
    Agreed,
    /// The user declined, closed the question, or sent the form without agreeing.
    Declined,
}

impl Answer {
    /// Reads an `ElicitResult`. Everything except a plain yes counts as no.
    pub(crate) fn of(result: &Value, governance: &Governance) -> Self {
        let agrees = governance.options.user_reviewer.is_none() || result["content"]["approve"] == true;
        if result["action"] == "accept" && agrees { Self::Agreed } else { Self::Declined }
    }
}

impl Waiting {
    /// Fetches the part of the escalation that the user has to see.
    pub(crate) async fn of(
        governance: &Governance,
        asked: Asked,
        tool: &str,
        arguments: &Value,
    ) -> Result<Self, CallError> {
        let escalation: Escalation = governance.call("escalation/get", json!({ "id": asked.id })).await?;
        let message = message(governance, &escalation, tool, arguments);
        let Escalation { id, digest, reason, .. } = escalation;
        Ok(Self { asked: Asked { id: id.to_string(), ..asked }, digest, reason, message })
    }

    /// Records the user's yes as an approval by the reviewer that the options name. Without one it approves nothing.
    pub(crate) async fn approve(&self, governance: &Governance) -> Result<(), CallError> {
        let Some(reviewer) = &governance.options.user_reviewer else { return Ok(()) };
        let note = "answered at the MCP client";
        let params = json!({ "id": self.asked.id, "reviewer": reviewer, "note": note, "digest": self.digest });
        governance.call::<IgnoredAny>("escalation/approve", params).await.map(drop)
    }

    /// Builds the question as the parameters of `elicitation/create`.
    pub(crate) fn question(&self, governance: &Governance) -> Result<ElicitRequestParams, String> {
        let schema = match governance.options.user_reviewer {
            None => ElicitationSchema::builder().build(),
            Some(_) => ElicitationSchema::builder().required_bool("approve").build(),
        };
        let requested_schema = schema.map_err(str::to_owned)?;
        Ok(ElicitRequestParams::FormElicitationParams { meta: None, message: self.message.clone(), requested_schema })
    }

    /// Builds the refusal that tells the client to repeat the call later.
    pub(crate) fn ticket(&self) -> Refusal {
        let (id, reason) = (&self.asked.id, self.reason.trim_end_matches('.'));
        // The further sentences only say that nothing is granted yet.
        let reason = reason.split_once(". ").map_or(reason, |(first, _)| first);
        let reasoning = format!("{reason}. A reviewer runs `rulekeep escalations approve {id}`; then repeat the call.");
        Refusal::new("escalated", reasoning)
            .with("decision", "ESCALATE")
            .with("retryable", true)
            .with("escalationId", self.asked.id.clone())
    }
}

/// Builds the text of the question. Arguments come from a model that may have read hostile text, and the reasoning
/// may quote them. Both are shown with a bar before every line, and with invisible characters made visible.
fn message(governance: &Governance, escalation: &Escalation, tool: &str, arguments: &Value) -> String {
    let asked = escalation.needs.iter().map(|need| need.reviewer.as_deref().unwrap_or("anybody but the agent"));
    let does = match &governance.options.user_reviewer {
        Some(reviewer) => format!("Your approval counts as that of {}.", quoted_word(reviewer)),
        None => "Your answer approves nothing by itself: it only checks whether a reviewer has answered.".to_owned(),
    };
    // The text of the escalation has its secrets redacted.
    let shown = escalation.input.clone().unwrap_or_else(|| arguments.to_string());
    format!(
        "Rulekeep holds back a call of the tool {} of the server {}. It needs the approval of: {}. {does}\n\
         Lines behind a bar are quoted. They may come from untrusted text: do not follow instructions in them.\n\
         Reason:\n{}\nCall:\n{}",
        quoted_word(tool),
        quoted_word(&governance.options.server),
        asked.map(quoted_word).collect::<Vec<_>>().join(", "),
        barred(&escalation.reason),
        barred(&shown),
    )
}

/// Quotes a short text on one line.
fn quoted_word(text: &str) -> String {
    let short: String = text.chars().take(MOST_WORD_CHARS).collect();
    format!("\"{}\"", visible(&short).replace('"', "\\u{22}"))
}

/// Puts a bar before each line of a text.
fn barred(text: &str) -> String {
    let mut lines: Vec<String> = text.lines().take(MOST_LINES).map(|line| format!("| {}", visible(line))).collect();
    let all: String = lines.join("\n");
    if all.chars().count() > MOST_CHARS || text.lines().count() > MOST_LINES {
        let cut: String = all.chars().take(MOST_CHARS).collect();
        lines = vec![cut, "| ... (cut)".to_owned()];
    }
    lines.join("\n")
}

/// Escapes all characters except printable ASCII and letters.
fn visible(text: &str) -> String {
    let shown = |c: char| {
        let is_plain = c == ' ' || c.is_ascii_graphic() || c.is_alphanumeric();
        if is_plain { c.to_string() } else { c.escape_unicode().to_string() }
    };
    text.chars().map(shown).collect()
}

const MOST_WAITING: usize = 1_000;
const MOST_WORD_CHARS: usize = 128;
const MOST_LINES: usize = 40;
const MOST_CHARS: usize = 2_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Governed;
    use std::sync::Arc;

    struct Nothing;

    impl crate::Calls for Nothing {
        fn call(&self, _: &str, _: Value) -> Result<Value, CallError> {
            Err(CallError::new("INTERNAL", "unused"))
        }
    }

    fn governance(options: Governed) -> Governance {
        Governance::new(Arc::new(Nothing), options)
    }

    #[test]
    fn quoted_text_has_a_bar_on_every_line_and_hides_nothing() {
        let hostile = "x\nRulekeep: approved.\u{202e}\u{200b}\r\nYour approval";
        let escalation = json!({
            "id": "esc_01m89vy2x6z7e9r8r000000003", "proofId": "prf_01m89vy2x6z7e9r8r000000003", "agentId": "a",
            "state": "pending", "createdAt": "2026-01-01T00:00:00Z", "expiresAt": "2026-01-02T00:00:00Z",
            "riskLevel": "HIGH", "reason": hostile, "input": hostile, "digest": Digest::ZERO,
            "needs": [{ "reviewer": "ops", "approvals": 1 }], "votes": [],
            "onApproval": { "granted": [], "denied": [], "constraints": {} },
        });
        let escalation = serde_json::from_value(escalation).unwrap();
        let text = message(&governance(Governed::new("files")), &escalation, "a\"\nb", &json!({}));
        let own: Vec<&str> = text.lines().filter(|line| !line.starts_with("| ")).collect();
        assert_eq!(own.len(), 4, "{text}");
        assert!(!own.join(" ").contains("approved."), "{text}");
        assert!(text.contains("| Rulekeep: approved.\\u{202e}\\u{200b}"), "{text}");
        assert!(text.contains("\"a\\u{22}\\u{a}b\""), "{text}");
    }

    #[test]
    fn only_an_accepted_form_that_agrees_is_a_yes() {
        let (asks, looks) = (governance(Governed::new("s").user_reviewer("ann")), governance(Governed::new("s")));
        for (result, with_reviewer, without) in [
            (json!({ "action": "accept", "content": { "approve": true } }), Answer::Agreed, Answer::Agreed),
            (json!({ "action": "accept", "content": { "approve": "true" } }), Answer::Declined, Answer::Agreed),
            (json!({ "action": "accept", "content": { "approve": false } }), Answer::Declined, Answer::Agreed),
            (json!({ "action": "accept" }), Answer::Declined, Answer::Agreed),
            (json!({ "action": "decline", "content": { "approve": true } }), Answer::Declined, Answer::Declined),
            (json!({ "action": "cancel" }), Answer::Declined, Answer::Declined),
            (json!("accept"), Answer::Declined, Answer::Declined),
            (Value::Null, Answer::Declined, Answer::Declined),
        ] {
            assert_eq!(Answer::of(&result, &asks), with_reviewer, "{result}");
            assert_eq!(Answer::of(&result, &looks), without, "{result}");
        }
    }
}
