//! The data on the screen, from the answers of calls. No text in it moves a cursor or changes the direction of text.

use std::collections::{BTreeMap, VecDeque};
use std::iter;
use std::time::{Duration, Instant};

use rulekeep::escalation::{Escalation, EscalationId, EscalationState};
use rulekeep::proof::Digest;
use rulekeep::status::Health;
use rulekeep::system::Timestamp;
use rulekeep::{Decision, RiskLevel};
use rulekeep_server::calls::escalations;
use rulekeep_server::calls::records::{List, ListedRecord, RecordsForm, Status};
use rulekeep_server::calls::request::StoredIntent;
use serde_json::Value;

use crate::client::Client;
use crate::operate::details;
use crate::output::cell;
use crate::plain::plain;

/// The data shown at one moment.
pub(super) struct Look {
    pub(super) health: Health,
    pub(super) chain: Health,
    pub(super) warnings: Vec<String>,
    pub(super) time: Timestamp,
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
pub(super) struct Decided {
    pub(super) time: String,
    pub(super) agent: String,
    pub(super) decision: Decision,
    pub(super) risk: RiskLevel,
    /// The rules that decided, separated by commas.
    pub(super) rules: String,
    /// The command, or the action and its target.
    pub(super) request: String,
    pub(super) reason: String,
}

/// A pending escalation.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) id: EscalationId,
    /// The digest that an answer binds to.
    pub(super) digest: Digest,
    pub(super) agent: String,
    pub(super) risk: RiskLevel,
    /// The command, or the tool and its target.
    pub(super) request: String,
    pub(super) reason: String,
    pub(super) expires: String,
    /// Everything that a reviewer has to know: names and values.
    pub(super) details: Vec<(&'static str, String)>,
}

/// Makes the calls, and caches answers that do not change.
#[derive(Default)]
pub(super) struct Looking {
    /// Number of decisions by minute since 1970.
    minutes: BTreeMap<i64, u64>,
    totals: VecDeque<(Instant, u64)>,
}

impl Looking {
    pub(super) fn look(&mut self, client: &Client) -> Result<Look, String> {
        let status = client.make(Status {})?;
        let form = RecordsForm { page_size: Some(DECISIONS), request: Some(true), ..RecordsForm::default() };
        let newest = client.make(List(form))?;
        let state = Some(EscalationState::Pending);
        let waiting = client.make(escalations::List { state, agent_id: None, page: None, page_size: Some(PENDING) })?;
        Ok(Look {
            health: status.status,
            chain: status.components.proof_chain,
            warnings: status.warnings.iter().map(|warning| plain(warning)).collect(),
            time: status.timestamp,
            records: newest.total,
            rate: self.rate(newest.total),
            decisions: newest.items.iter().map(|listed| Decided::of(listed, status.timestamp)).collect(),
            minutes: self.by_minute(client, status.timestamp)?,
            pending: waiting.items.iter().map(|pending| Pending::of(pending, status.timestamp)).collect(),
            pending_total: waiting.total,
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

    /// Returns the decisions of each minute. Past minutes are queried only once.
    fn by_minute(&mut self, client: &Client, now: Timestamp) -> Result<Vec<u64>, String> {
        let this = now.as_millis().div_euclid(MINUTE);
        let wanted = this - MINUTES + 1..=this;
        self.minutes.retain(|minute, _| wanted.contains(minute));
        let mut shown = Vec::new();
        for minute in wanted {
            let known = self.minutes.get(&minute).copied();
            let total = if let Some(total) = known {
                total
            } else {
                let [from, to] =
                    [minute * MINUTE, (minute + 1) * MINUTE - 1].map(|at| Some(Timestamp::from_millis(at)));
                client.make(List(RecordsForm { from, to, page_size: Some(1), ..RecordsForm::default() }))?.total
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

impl Decided {
    pub(super) fn of(ListedRecord { record, request }: &ListedRecord, now: Timestamp) -> Self {
        let said = request.as_ref().and_then(|request| request.command.as_ref().or(request.action.as_ref()));
        Self {
            time: moment(record.timestamp, now),
            agent: plain(record.entity_id.as_str()),
            decision: record.decision,
            risk: record.risk_level,
            rules: request.as_ref().map(|request| plain(&request.rules.join(", "))).unwrap_or_default(),
            request: said.map(|said| plain(said)).unwrap_or_default(),
            reason: plain(&record.reasoning),
        }
    }
}

impl Pending {
    pub(super) fn of(of: &Escalation, now: Timestamp) -> Self {
        let said = StoredIntent::read(of.intent.as_ref()).said().unwrap_or_default();
        Self {
            id: of.id,
            digest: of.digest,
            agent: plain(of.agent_id.as_str()),
            risk: of.risk_level,
            request: plain(&said),
            reason: plain(&of.reason),
            expires: moment(of.expires_at, now),
            details: details(of).iter().flat_map(|(name, value)| lines(name, value)).collect(),
        }
    }
}

/// Returns the lines of a value; the name stands before the first.
fn lines(name: &'static str, value: &Value) -> Vec<(&'static str, String)> {
    let text = value.as_str().map_or_else(|| cell(value), str::to_owned);
    iter::once(name).chain(iter::repeat("")).zip(text.lines().map(plain)).collect()
}

/// Returns the time of day, with the date unless it is today's, and the date alone in another year.
pub(super) fn moment(time: Timestamp, now: Timestamp) -> String {
    let (text, now) = (time.to_string(), now.to_string());
    let shown = if text.get(..10) == now.get(..10) {
        text.get(11..19)
    } else if text.get(..4) == now.get(..4) {
        text.get(5..16)
    } else {
        text.get(..10)
    };
    shown.unwrap_or_default().replace('T', " ")
}

/// Number of decisions: the lines of a tall terminal.
const DECISIONS: u64 = 60;
const PENDING: u64 = 100;
const MINUTE: i64 = 60_000;
const MINUTES: i64 = 60;
const RATE_OVER: Duration = Duration::from_secs(10);
