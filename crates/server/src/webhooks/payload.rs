//! The body of a delivery: the event itself, or a message for a chat.

use rulekeep::escalation::{Escalation, EscalationState};
use rulekeep::event::EventData;
use rulekeep::extension::{closed_words, visible};
use rulekeep::{Decision, Error, Event, Governor};
use serde_json::json;

use super::links::Links;

closed_words! {
    /// The form of deliveries.
    pub enum Format("format") {
        /// The event as JSON.
        Event = "event",
        /// Messages for people, as incoming webhooks of Slack and compatible chats take them: `{"text"}`. Only
        /// escalations and alerts are sent.
        Slack = "slack",
    }
}

impl Default for Format {
    /// The form of records from before there were others.
    fn default() -> Self {
        Self::Event
    }
}

/// Returns whether an endpoint of this format sends the event.
pub(super) fn is_sent(format: Format, event: &Event) -> bool {
    match (format, &event.data) {
        (Format::Event, _) | (Format::Slack, EventData::Alert(_)) => true,
        (Format::Slack, EventData::Decision(decision)) => decision.decision == Decision::Escalate,
        (Format::Slack, _) => false,
    }
}

/// The body of an event, with a link for the endpoint's reviewer.
pub(super) fn body_of(
    governor: &Governor,
    event: &Event,
    format: Format,
    links: Option<&Links>,
) -> Result<Vec<u8>, Error> {
    let asked = match &event.data {
        EventData::Decision(decision) if format == Format::Slack || links.is_some() => decision.escalation_id,
        _ => None,
    };
    // One that can no longer be read is told without its details.
    let asked = asked.and_then(|id| governor.escalations().get(id).ok());
    let link = links.zip(asked.as_ref()).and_then(|(links, asked)| links.link(governor, asked));
    let unwritable = |error| Error::internal("an event cannot be serialized").caused_by(error);
    let body = match format {
        Format::Event if link.is_none() => return serde_json::to_vec(event).map_err(unwritable),
        Format::Event => {
            let mut body = serde_json::to_value(event).map_err(unwritable)?;
            body["data"]["approvalUrl"] = json!(link);
            body
        }
        Format::Slack => json!({ "text": message(event, asked.as_ref(), link.as_deref()) }),
    };
    serde_json::to_vec(&body).map_err(unwritable)
}

/// A message for a chat.
fn message(event: &Event, asked: Option<&Escalation>, link: Option<&str>) -> String {
    let lines = match (&event.data, asked) {
        (EventData::Alert(alert), _) => {
            vec![format!("*Alert {}* ({})", alert.alert, alert.severity), quoted(&alert.message)]
        }
        (_, Some(asked)) => {
            let action =
                asked.intent.as_ref().and_then(|intent| intent["parsedAction"].as_str()).unwrap_or("an action");
            let mut lines = vec![
                format!("*An agent asks for approval* (risk {}, until {})", asked.risk_level, asked.expires_at),
                quoted(&format!("{}: {action}", asked.agent_id)),
            ];
            lines.extend([asked.input.as_deref(), Some(&*asked.reason)].into_iter().flatten().map(quoted));
            lines.push(match (link, asked.state) {
                (Some(link), _) => format!("<{link}|Review and answer>"),
                (None, EscalationState::Pending) => format!("To answer: `rulekeep escalations show {}`", asked.id),
                (None, state) => format!("It is {state} already."),
            });
            lines
        }
        (EventData::Decision(decision), None) => vec![quoted(&decision.reasoning)],
        _ => Vec::new(),
    };
    lines.join("\n")
}

/// Text from outside as a block that is shown as it is: no link, mention or format in it has an effect. The fences stand
/// on lines of their own, and no backtick of the text can end the block.
fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(MOST_CHARS).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    let shown =
        visible(&shown).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace(['`', '~'], "'");
    format!("```\n{shown}{more}\n```")
}

/// Number of characters of a text that a message shows.
// SOURCE: Slack, "chat.postMessage": a text should have at most 4,000 characters.
const MOST_CHARS: usize = 1_000;
