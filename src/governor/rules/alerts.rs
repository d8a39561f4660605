//! Alerts raised where a problem occurs, because the log has no trace of it. The alert rules in force, or built-in
//! ones, decide which are raised. Repetitions are counted and reported at intervals. Alerts derived from the log are in
//! `alerting/follow.rs`.

use std::time::Duration;

use crate::governor::rules::watch::{Due, How};
use crate::governor::states::masked;
use crate::governor::{Hold as _, Rules};
use crate::model::{AgentId, Alert, AlertKind, RiskLevel, Timestamp};
use crate::policy::{AlertOn, AlertRule};

impl Rules {
    /// Records an alert according to the alert rules. If no rule concerns its kind, records it unless one with the same
    /// `subject` and agent was raised within the last minute. If the log accepts no entries, nothing is recorded; every
    /// request is refused anyway, with the reason.
    pub(crate) fn raise(&self, alert: &Alert, subject: &str, now: Timestamp) {
        let policies = self.policies.load();
        let on = match alert.alert {
            AlertKind::PolicyError => Some(AlertOn::PolicyError),
            AlertKind::ShadowDiffers => Some(AlertOn::Shadow),
            AlertKind::Key => Some(AlertOn::Key),
            _ => None,
        };
        let mut rules = policies.alerts().iter().filter(|rule| on == Some(rule.on)).peekable();
        let agent = alert.agent_id.as_ref();
        if rules.peek().is_none() && alert.alert != AlertKind::Key {
            let subject = format!("{} {subject}", agent.map_or("", AgentId::as_str));
            let built_in = AlertRule::built_in(alert.alert.as_str(), COOLDOWN);
            self.raise_due(alert.clone(), &built_in, &subject, now);
            return;
        }
        for rule in rules.filter(|rule| agent.is_none_or(|agent| self.is_about(rule, agent))) {
            let mut alert = alert.clone();
            (alert.rule, alert.severity) = (Some(rule.id.clone()), rule.severity);
            let subject = agent.map_or(subject, AgentId::as_str);
            self.raise_due(alert, rule, subject, now);
        }
    }

    /// Counts a refused API key, under the name that its sender used.
    pub(crate) fn record_refused_key(&self, name: &str) {
        let message = format!("the key {name:?} was refused");
        let alert = Alert::new(AlertKind::Key, RiskLevel::Medium, None, message);
        self.raise(&alert, name, self.base.clock.now());
    }

    /// Returns whether an agent's actions count for a rule, by the agent's current traits.
    pub(crate) fn is_about(&self, rule: &AlertRule, agent_id: &AgentId) -> bool {
        match self.roster.ledger.get(agent_id) {
            Some(cell) => rule.is_about(agent_id, cell.read().traits()),
            None => rule.is_about(agent_id, &crate::model::AgentTraits::default()),
        }
    }

    fn raise_due(&self, alert: Alert, rule: &AlertRule, subject: &str, now: Timestamp) {
        let mut watch = self.watch.hold();
        let due = watch.note(rule, subject, now, alert.proof_id, How::Now);
        drop(watch);
        if let Some(due) = due {
            let _ = self.base.log.alert(now, due.told_by(alert), None);
        }
    }
}

impl Due {
    /// The alert with the records behind it and secrets redacted from its message.
    pub(crate) fn told_by(self, mut alert: Alert) -> Alert {
        alert.message = masked(&alert.message);
        alert.occurrences = self.occurrences;
        alert.about(self.proof_ids)
    }
}

/// Interval of built-in alerts.
const COOLDOWN: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governor::EventFilter;
    use crate::governor::Governor;
    use crate::model::EventData;
    use crate::policy::PolicySet;

    #[test]
    fn a_key_refused_repeatedly_is_told_where_a_rule_asks_for_it() {
        let rule = "name = \"a\"\n[[alert]]\nid = \"keys\"\non = \"key\"\ncount = 3\nper = \"1h\"\nseverity = \"HIGH\"";
        let governor =
            Governor::builder().policies(PolicySet::from_toml("name = \"a\"").unwrap()).open_in_memory().unwrap();
        let mut events = governor.subscribe(&EventFilter::all()).unwrap();
        let mut told = || {
            governor.log().flush().unwrap();
            events.poll().unwrap().map(|event| match event.data {
                EventData::Alert(alert) => *alert,
                other => panic!("{other:?}"),
            })
        };
        governor.inner.rules.record_refused_key("ci");
        assert_eq!(told(), None);
        governor.policies().load(PolicySet::from_toml(rule).unwrap()).unwrap();
        for name in ["ci", "shop", "ci"] {
            governor.inner.rules.record_refused_key(name);
        }
        assert_eq!(told(), None, "no key was refused three times");
        governor.inner.rules.record_refused_key("ci");
        let alert = told().unwrap();
        assert_eq!((alert.alert, alert.severity, alert.occurrences), (AlertKind::Key, RiskLevel::High, 3));
        assert!(alert.agent_id.is_none() && alert.message.contains("ci"), "{alert:?}");
    }
}
