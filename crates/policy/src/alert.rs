//! Alert rules: the events that somebody is told about at once. A document declares them under `[[alert]]`; the
//! follower of the event stream applies them.

use std::sync::Arc;
use std::time::Duration;

use super::clauses;
use super::duration;
use super::identifier;
use super::pattern::Names;
use rulekeep_types::document::{Fields, Node, Report};
use rulekeep_types::{AgentId, AgentTraits, RiskLevel, Tier, closed_words};

closed_words! {
    /// The event that an alert rule watches for.
    pub enum AlertOn("alert") {
        /// Decisions that are DENY.
        Denials = "denials",
        /// An attempt at CRITICAL effective risk, whatever the decision.
        Critical = "critical",
        /// A proof log that does not verify.
        Chain = "chain",
        /// An agent's tier that falls below the given one.
        Tier = "tier",
        /// A rejected API key.
        Key = "key",
        /// A shadow policy set that would have decided differently.
        Shadow = "shadow",
        /// A decision that failed because of a condition.
        PolicyError = "policy-error",
    }
}

impl AlertOn {
    /// Returns whether an agent causes the event.
    const fn is_about_agents(self) -> bool {
        !matches!(self, Self::Chain | Self::Key)
    }

    /// The default number of events that trigger the alert.
    const fn usual_count(self) -> u32 {
        if matches!(self, Self::Denials) { 5 } else { 1 }
    }
}

/// A policy document's rule about when somebody is alerted.
///
/// ```
/// use rulekeep::policy::AlertOn;
/// use rulekeep::PolicySet;
///
/// let policies = PolicySet::from_toml(r#"
///     name = "support"
///
///     [[alert]]
///     id = "many-denials"
///     on = "denials"
///     per = "10m"
///     severity = "HIGH"
///     match = { agents = ["support-*"] }
/// "#)?;
/// let alert = &policies.alerts()[0];
/// assert_eq!((alert.on, alert.count), (AlertOn::Denials, 5));
/// # Ok::<(), rulekeep::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AlertRule {
    /// The alert's id, unique within the set.
    pub id: Arc<str>,
    /// The event that the alert watches for.
    pub on: AlertOn,
    /// The number of events that trigger the alert, at least 1. Default 5 for denials, 1 otherwise.
    pub count: u32,
    // INVARIANT: `Some` if and only if `count` is above 1.
    /// The time within which the events count; `None` if one event is enough.
    pub per: Option<Duration>,
    // INVARIANT: `Some` if and only if `on` is `tier`; never T0.
    /// The tier below which an agent has to fall.
    pub below: Option<Tier>,
    /// The severity reported with the alert.
    pub severity: RiskLevel,
    /// The time during which the same alert is not repeated. Default 60 seconds.
    pub cooldown: Duration,
    agents: Names,
    labels: Names,
    groups: Names,
}

impl AlertRule {
    /// A built-in alert rule that is in no document: a single event triggers it, at most once per cooldown.
    pub fn built_in(what: &str, cooldown: Duration) -> Self {
        Self {
            // No id in a document starts with a blank.
            id: format!(" {what}").into(),
            on: AlertOn::PolicyError,
            count: 1,
            per: None,
            below: None,
            severity: RiskLevel::Medium,
            cooldown,
            agents: Names::default(),
            labels: Names::default(),
            groups: Names::default(),
        }
    }

    /// Returns whether the alert covers an agent: its id, one of its labels and one of its groups match, each if the
    /// rule names any.
    pub fn is_about(&self, agent: &AgentId, traits: &AgentTraits) -> bool {
        let any = |names: &Names, own: &[rulekeep_types::Label]| {
            names.is_any() || own.iter().any(|label| names.matches(label.as_str()))
        };
        self.agents.matches(agent.as_str()) && any(&self.labels, &traits.labels) && any(&self.groups, &traits.groups)
    }
}

/// An alert rule with the line that problems refer to.
pub(super) struct LocatedAlert {
    pub(super) alert: AlertRule,
    pub(super) line: usize,
}

/// Reads a document's `alert`.
pub(super) fn read(node: Node, report: &mut Report<'_>) -> Vec<LocatedAlert> {
    let at = node.at;
    let items = report.list(node, "alert");
    if items.len() > MAX_ALERTS {
        report.error(at, "alert", format!("expected at most {MAX_ALERTS} alerts, found {}", items.len()));
        return Vec::new();
    }
    let mut alerts: Vec<LocatedAlert> = Vec::with_capacity(items.len());
    for (index, node) in items.into_iter().enumerate() {
        let at = node.at;
        let line = report.line_of(at);
        report.rule = Some(match identifier::well_formed_id(&node) {
            Some(id) => format!("alert {id:?}"),
            None => format!("alert number {}", index + 1),
        });
        if let Some(alert) = alert(node, report) {
            match alerts.iter().find(|known| known.alert.id == alert.id) {
                Some(known) => {
                    report.error(at, "id", format!("another alert has the id {:?}, on line {}", alert.id, known.line));
                }
                None => alerts.push(LocatedAlert { alert, line }),
            }
        }
        report.rule = None;
    }
    alerts
}

fn alert(node: Node, report: &mut Report<'_>) -> Option<AlertRule> {
    let mut fields = Fields::of(node, "", FIELDS, report)?;
    let id = identifier::id(&mut fields, "alert", report);
    let on: Option<AlertOn> = fields.required_word("on", AlertOn::ALL, report);
    let (count_at, per_at) = (fields.place("count"), fields.place("per"));
    let (below_at, match_at) = (fields.place("below"), fields.place("match"));
    let count = fields.take("count").map(|node| report.whole(&node, "count", MAX_COUNT));
    let per = fields.take("per").map(|node| duration::read(node, "per", report));
    let below = fields.word("below", Tier::ALL, report);
    let severity = fields.word("severity", RiskLevel::ALL, report).unwrap_or(RiskLevel::Medium);
    let cooldown = fields.take("cooldown").map_or(Some(COOLDOWN), |node| duration::read(node, "cooldown", report));
    let [agents, labels, groups] = match fields.take("match") {
        Some(node) => names(node, report)?,
        None => Default::default(),
    };

    let on = on?;
    let at = fields.at;
    // A count that could not be read has been reported already.
    let count = count.map_or(Some(on.usual_count()), |count| u32::try_from(count?).ok())?;
    match (per_at, count) {
        (Some(at), 1) => report.error(at, "per", "an alert with a count of 1 cannot have per"),
        (None, 2..) => {
            let message = format!("an alert on {count} occurrences needs a field \"per\", such as \"10m\"");
            report.error(count_at.unwrap_or(at), "per", message);
        }
        _ => {}
    }
    match (below_at, on) {
        (Some(place), AlertOn::Tier) if below == Some(Tier::T0) => {
            report.error(place, "below", "no tier is below T0; expected one of T1, T2, T3, T4, T5");
        }
        (None, AlertOn::Tier) => report.error(at, "below", "an alert on tier needs a field \"below\""),
        (Some(_), AlertOn::Tier) | (None, _) => {}
        (Some(place), _) => {
            report.error(place, "below", format!("an alert on {on} cannot have below; it belongs to an alert on tier"));
        }
    }
    if let Some(place) = match_at
        && !on.is_about_agents()
    {
        report.error(place, "match", format!("an alert on {on} cannot have match: it is not about an agent"));
    }
    if let Some(place) = count_at
        && on == AlertOn::Chain
        && count > 1
    {
        report.error(place, "count", "an alert on chain cannot have a count above 1: a chain breaks once");
    }
    let per = per.map_or(Some(None), |per| per.map(Some))?;
    Some(AlertRule { id: id?.into(), on, count, per, below, severity, cooldown: cooldown?, agents, labels, groups })
}

/// The agents, labels and groups that `match` names.
fn names(node: Node, report: &mut Report<'_>) -> Option<[Names; 3]> {
    let mut fields = Fields::of(node, "match.", MATCH_FIELDS, report)?;
    if fields.was_empty {
        report.error(fields.at, "match", "an empty match limits nothing; omit the field to match any agent");
    }
    Some(["agents", "labels", "groups"].map(|name| fields.read_with(name, report, clauses::names).unwrap_or_default()))
}

const FIELDS: &[&str] = &["id", "on", "count", "per", "below", "match", "severity", "cooldown"];
const MATCH_FIELDS: &[&str] = &["agents", "labels", "groups"];
const COOLDOWN: Duration = Duration::from_secs(60);
const MAX_COUNT: i64 = 10_000;
const MAX_ALERTS: usize = 100;
