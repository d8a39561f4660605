//! The data on the screen, from the answers of calls. No text in it moves a cursor or changes the direction of text.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use rulekeep::system::Timestamp;
use serde_json::{Value, json};

use super::Calls;
use crate::plain::plain;

/// The data shown at one moment.
#[derive(Default, Clone)]
pub(super) struct Look {
    pub(super) health: String,
    pub(super) chain: String,
    pub(super) warnings: Vec<String>,
    pub(super) time: String,
    pub(super) records: u64,
    /// Records per second, over the last ten seconds.
    pub(super) rate: f64,
    /// The newest decisions, newest first.
    pub(super) decisions: Vec<Decided>,
    /// Number of decisions in each minute, oldest first.
    pub(super) minutes: Vec<u64>,
    pub(super) pending: Vec<Pending>,
    /// Number of all pending escalations.
    pub(super) pending_total: u64,
}

/// A decision in the list.
#[derive(Clone)]
pub(super) struct Decided {
    pub(super) time: String,
    pub(super) agent: String,
    pub(super) decision: String,
    pub(super) risk: String,
    pub(super) action: String,
    pub(super) reason: String,
}

/// A pending escalation.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) id: String,
    /// The digest that an answer binds to.
    pub(super) digest: String,
    pub(super) agent: String,
    pub(super) risk: String,
    pub(super) action: String,
    pub(super) reason: String,
    pub(super) expires: String,
    /// Everything that a reviewer has to know: names and values.
    pub(super) details: Vec<(&'static str, String)>,
}

/// Makes the calls, and caches answers that do not change.
#[derive(Default)]
pub(super) struct Looking {
    /// The actions of the records that are shown, by ID.
    actions: HashMap<String, String>,
    /// Number of decisions by minute since 1970.
    minutes: BTreeMap<i64, u64>,
    totals: VecDeque<(Instant, u64)>,
}

impl Looking {
    pub(super) fn look(&mut self, call: &Calls<'_>) -> Result<Look, String> {
        let status = call("admin/status", json!({}))?;
        let page = call("proof/list", json!({ "pageSize": DECISIONS }))?;
        let waiting = call("escalation/list", json!({ "state": "pending", "pageSize": PENDING }))?;
        let records = number(&page, "/total");
        let warnings = list(&status, "/warnings").iter().filter_map(Value::as_str).map(plain).collect();
        Ok(Look {
            health: text(&status, "/status"),
            chain: text(&status, "/components/proofChain"),
            warnings,
            time: text(&status, "/timestamp"),
            records,
            rate: self.rate(records),
            decisions: self.decided(call, list(&page, "/items")),
            minutes: self.by_minute(call, &status)?,
            pending: list(&waiting, "/items").iter().map(pending).collect(),
            pending_total: number(&waiting, "/total"),
        })
    }

    fn rate(&mut self, records: u64) -> f64 {
        let now = Instant::now();
        self.totals.push_back((now, records));
        while self.totals.len() > 2 && self.totals.get(1).is_some_and(|(at, _)| now - *at >= RATE_OVER) {
            self.totals.pop_front();
        }
        let Some((at, before)) = self.totals.front() else { return 0.0 };
        let seconds = (now - *at).as_secs_f64();
        let more = u32::try_from(records.saturating_sub(*before)).unwrap_or(u32::MAX);
        if seconds > 0.0 { f64::from(more) / seconds } else { 0.0 }
    }

    fn decided(&mut self, call: &Calls<'_>, items: &[Value]) -> Vec<Decided> {
        let mut actions = HashMap::with_capacity(items.len());
        let shown = items
            .iter()
            .map(|item| {
                let id = text(item, "/id");
                let action = self.actions.remove(&id).unwrap_or_else(|| action(call, &id));
                actions.insert(id, action.clone());
                Decided {
                    time: clock(item, "/timestamp"),
                    agent: text(item, "/entityId"),
                    decision: text(item, "/decision"),
                    risk: text(item, "/riskLevel"),
                    action,
                    reason: text(item, "/reasoning"),
                }
            })
            .collect();
        self.actions = actions;
        shown
    }

    /// Returns the decisions of each minute. Past minutes are queried only once.
    fn by_minute(&mut self, call: &Calls<'_>, status: &Value) -> Result<Vec<u64>, String> {
        let now: Timestamp = text(status, "/timestamp").parse().map_err(|error| format!("admin/status: {error}"))?;
        let this = now.as_millis().div_euclid(MINUTE);
        let wanted = this - MINUTES + 1..=this;
        self.minutes.retain(|minute, _| wanted.contains(minute));
        let mut shown = Vec::new();
        for minute in wanted {
            let known = self.minutes.get(&minute).copied();
            let total = if let Some(total) = known {
                total
            } else {
                let [from, to] = [minute * MINUTE, (minute + 1) * MINUTE - 1].map(Timestamp::from_millis);
                number(&call("proof/list", json!({ "from": from, "to": to, "pageSize": 1 }))?, "/total")
            };
            // A minute that has just ended may still get records.
            if minute < this - 1 {
                self.minutes.insert(minute, total);
            }
            shown.push(total);
        }
        Ok(shown)
    }
}

/// Returns the action of a record. It is in the evidence, which may be erased.
fn action(call: &Calls<'_>, id: &str) -> String {
    let record = call("proof/get", json!({ "proofId": id, "evidence": true }));
    let action = record.map(|record| text(&record, "/evidence/intent/parsedAction")).unwrap_or_default();
    if action.is_empty() { "-".to_owned() } else { action }
}

fn pending(item: &Value) -> Pending {
    let texts =
        |pointer| list(item, pointer).iter().filter_map(Value::as_str).map(plain).collect::<Vec<_>>().join(", ");
    let needs = list(item, "/needs").iter().map(|need| {
        format!(
            "{} of {}",
            number(need, "/approvals"),
            need.get("reviewer").and_then(Value::as_str).map_or("anybody".to_owned(), plain)
        )
    });
    let votes = list(item, "/votes").iter().map(|vote| {
        let said = if vote.get("approved") == Some(&Value::Bool(true)) { "approved" } else { "rejected" };
        format!("{} {said}", text(vote, "/reviewer"))
    });
    let all = [
        ("Agent", text(item, "/agentId")),
        ("Action", text(item, "/intent/parsedAction")),
        ("Capabilities", texts("/intent/requiredCapabilities")),
        ("Risk", text(item, "/riskLevel")),
        ("Reason", text(item, "/reason")),
        ("Request text", text(item, "/input")),
        ("Context", compact(item, "/intent/context")),
        ("Task", compact(item, "/task/faults")),
        ("Not readable", text(item, "/unreadable")),
        ("Grants", texts("/onApproval/granted")),
        ("Withholds", texts("/onApproval/denied")),
        ("Constraints", compact(item, "/onApproval/constraints")),
        ("Needs", needs.collect::<Vec<_>>().join(", ")),
        ("Votes", votes.collect::<Vec<_>>().join(", ")),
        ("Asked", text(item, "/createdAt")),
        ("Expires", text(item, "/expiresAt")),
        ("Escalation", text(item, "/id")),
        ("Digest", text(item, "/digest")),
    ];
    Pending {
        id: text(item, "/id"),
        digest: text(item, "/digest"),
        agent: text(item, "/agentId"),
        risk: text(item, "/riskLevel"),
        action: text(item, "/intent/parsedAction"),
        reason: text(item, "/reason"),
        expires: clock(item, "/expiresAt"),
        details: all.into_iter().filter(|(_, value)| !value.is_empty()).collect(),
    }
}

fn text(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).map(plain).unwrap_or_default()
}

/// Returns JSON on one line; an empty text for an empty object.
fn compact(value: &Value, pointer: &str) -> String {
    let found = value.pointer(pointer).filter(|found| !found.is_null() && **found != json!({}));
    found.map(|found| plain(&found.to_string())).unwrap_or_default()
}

/// Returns the time of day of a timestamp.
fn clock(value: &Value, pointer: &str) -> String {
    let text = text(value, pointer);
    text.get(11..19).unwrap_or(&text).to_owned()
}

fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or_default()
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Number of decisions: the lines of a tall terminal.
const DECISIONS: u64 = 60;
const PENDING: u64 = 100;
const MINUTE: i64 = 60_000;
const MINUTES: i64 = 60;
const RATE_OVER: Duration = Duration::from_secs(10);
