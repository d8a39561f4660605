//! Alerts that are raised where they happen: what leaves no trace in the log, or is known at that moment
//! alone. By the rules of the policies in force, or as it is built in; told once in a while, and counted
//! in between. What the log tells by itself is followed in `follow.rs`.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Governor;
use super::states::masked;
use super::watch::{Due, How, Watch};
use crate::model::{AgentId, Alert, AlertKind, RiskLevel, Timestamp};
use crate::policy::{AlertOn, AlertRule};

/// The state that says how far the log was followed for alerts.
pub(super) const PLACE_KEY: &str = "cursor/alerts";

/// Which alerts were told, and when.
#[derive(Default)]
pub(super) struct Alerts {
    // Held to look up and count one subject; nothing else is taken meanwhile.
    watch: Mutex<Watch>,
}

impl Governor {
    /// Puts an alert into the log as the rules of the policies say, and where none is about such things, unless the like
    /// of `subject` about the same agent was told within the last minute. Where the log takes nothing in, everything is
    /// refused anyway, and says why.
    pub(super) fn raise(&self, alert: &Alert, subject: &str, now: Timestamp) {
        let policies = self.inner.policies.load();
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
            let alert = Alert { rule: Some(rule.id.clone()), severity: rule.severity, ..alert.clone() };
            let subject = agent.map_or(subject, AgentId::as_str);
            self.raise_due(alert, rule, subject, now);
        }
    }

    /// Counts that a key was refused, by the name that whoever sent it went by.
    pub(crate) fn record_refused_key(&self, name: &str) {
        let message = format!("the key {name:?} was refused");
        let alert = Alert::new(AlertKind::Key, RiskLevel::Medium, None, message);
        self.raise(&alert, name, self.inner.clock.now());
    }

    /// Whether what an agent does counts for a rule, by what is known of the agent now.
    pub(super) fn is_about(&self, rule: &AlertRule, agent_id: &AgentId) -> bool {
        match self.inner.ledger.get(agent_id) {
            Some(cell) => rule.is_about(agent_id, cell.read().traits()),
            None => rule.is_about(agent_id, &crate::model::AgentTraits::default()),
        }
    }

    fn raise_due(&self, alert: Alert, rule: &AlertRule, subject: &str, now: Timestamp) {
        let mut watch = self.inner.alerts.watch.lock().unwrap_or_else(PoisonError::into_inner);
        let due = watch.note(rule, subject, now, alert.proof_id, How::Now);
        drop(watch);
        if let Some(due) = due {
            let _ = self.inner.log.alert(now, due.told_by(alert), None);
        }
    }
}

impl Due {
    /// The alert with the records behind it, secrets masked in what it says.
    pub(super) fn told_by(self, alert: Alert) -> Alert {
        let message = masked(&alert.message);
        Alert { message, occurrences: self.occurrences, ..alert }.about(self.proof_ids)
    }
}

/// What is built in is told once in this time.
const COOLDOWN: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::governor::EventFilter;
    use crate::model::EventData;
    use crate::policy::PolicySet;

    #[test]
    fn a_key_that_is_refused_again_and_again_is_told_where_a_rule_asks_for_it() {
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
        governor.record_refused_key("ci");
        assert_eq!(told(), None);
        governor.policies().load(PolicySet::from_toml(rule).unwrap()).unwrap();
        for name in ["ci", "shop", "ci"] {
            governor.record_refused_key(name);
        }
        assert_eq!(told(), None, "no key was refused three times");
        governor.record_refused_key("ci");
        let alert = told().unwrap();
        assert_eq!((alert.alert, alert.severity, alert.occurrences), (AlertKind::Key, RiskLevel::High, 3));
        assert!(alert.agent_id.is_none() && alert.message.contains("ci"), "{alert:?}");
    }
}
