//! Pre-approvals: what a reviewer agrees to in advance, limited in time, count and sum. This module defines the terms
//! and what they cover; who gave a pre-approval, how often it was used and whether it was revoked is stored
//! elsewhere.

use std::sync::Arc;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::binding::{self, Binding, Globs, Named, Way};
use super::fact::{Fact, TARGETS};
use super::limit::{AMOUNT_KEY, millionths, sum_of_acts};
use super::pattern::CapabilityPattern;
use super::request::PolicyRequest;
use super::rule::{Pattern, Runs};
use rulekeep_types::facts::Act;
use rulekeep_types::{
    Action, AgentId, Capability, Error, Facts, Glob, Intent, LONGEST_LIMIT_WINDOW, Label, RiskLevel, Timestamp,
    excerpt, hides_or_breaks,
};

/// The terms of a pre-approval as written, to be validated into a [`PreApproval`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PreApprovalTerms {
    /// The agent that may use it. Exactly one of `agentId` and `group` is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// The group whose agents may use it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Label>,
    /// The capabilities covered: 1 to 100 entries of the form `resource:operation`, where one half may be `*`.
    #[cfg_attr(feature = "schema", schema(min_items = 1, max_items = 100))]
    pub capabilities: Vec<String>,
    /// The ids of the escalating rules that it answers, 1 to 100. A request that another rule escalates as well is
    /// not covered.
    #[cfg_attr(feature = "schema", schema(min_items = 1, max_items = 100))]
    pub rules: Vec<String>,
    /// The actions covered, up to 100; any action if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schema(max_items = 100))]
    pub actions: Vec<Action>,
    /// The targets that may be acted on, up to 100: exact values, or prefixes followed by `*`. Everything that a
    /// request reads, writes, removes or sends to must be inside, and known. If empty, only requests without a target
    /// are covered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schema(max_items = 100))]
    pub targets: Vec<String>,
    /// The highest effective risk covered. Default HIGH, so that critical requests are still reviewed.
    #[serde(default = "usual_risk")]
    pub max_risk: RiskLevel,
    /// The expiry, exclusive; at most 31 days from now.
    pub until: Timestamp,
    /// The maximum number of uses, 1 to 10,000. Default 10,000.
    #[serde(default = "most_uses")]
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 10000))]
    pub count: u32,
    /// The maximum sum over all uses. If set, a request that states no amount is not covered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<PreApprovalSum>,
}

/// The sum limit of a pre-approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct PreApprovalSum {
    /// The context key whose numbers are added up.
    pub key: String,
    /// The maximum sum: above 0, at most 9e12.
    #[cfg_attr(feature = "schema", schema(exclusive_minimum = 0, maximum = 9e12))]
    pub most: f64,
}

/// A validated pre-approval of a class of actions. Its terms cover a request only if every one of them does.
///
/// ```
/// use rulekeep::escalation::{PreApproval, PreApprovalTerms};
/// use rulekeep::policy::PolicyRequest;
/// use rulekeep::system::Timestamp;
/// use rulekeep::trust::TrustSnapshot;
/// use rulekeep::{Intent, RiskLevel, Tier};
///
/// let now = Timestamp::from_millis(0);
/// let terms: PreApprovalTerms = serde_json::from_value(serde_json::json!({
///     "agentId": "desk-1", "capabilities": ["payment:transfer"], "rules": ["payments-need-a-person"],
///     "targets": ["INV-2026-*"], "maxRisk": "HIGH", "until": "1970-01-02T00:00:00Z", "count": 5,
///     "sum": { "key": "amount", "most": 500 },
/// })).expect("terms");
/// let approval = PreApproval::new(terms, now)?;
/// let intent = Intent::new("desk-1", "pay_invoice", RiskLevel::High, ["payment:transfer"])?
///     .with_context("target", "INV-2026-7")
///     .with_context("amount", 120);
/// let request = PolicyRequest::new(&intent, TrustSnapshot::new(Tier::T3.middle(), Tier::T3));
/// let used = approval.covers(&request, &intent.required_capabilities).expect("covered");
/// assert_eq!(used.amount, 120_000_000);
/// # Ok::<(), rulekeep::Error>(())
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "PreApprovalTerms", into = "PreApprovalTerms")]
pub struct PreApproval {
    terms: PreApprovalTerms,
    // INVARIANT: all of them follow from the terms.
    patterns: Vec<CapabilityPattern>,
    targets: Option<Targets>,
    most: Option<i64>,
}

/// The amount that a covered request consumes from a pre-approval, in addition to one use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreApprovalUse {
    /// The amount consumed from the sum, in millionths; 0 if there is no sum limit.
    pub amount: i64,
}

impl PreApproval {
    /// Validates the terms of a pre-approval that is given at `now`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidInput`] naming the first invalid term.
    pub fn new(terms: PreApprovalTerms, now: Timestamp) -> Result<Self, Error> {
        let lasts = terms.until.as_millis().saturating_sub(now.as_millis());
        if !(1..=LONGEST_LIMIT_WINDOW).contains(&lasts) {
            return Err(Error::input(
                "until",
                format!("expected a time within 31 days from now, found {}", terms.until),
            ));
        }
        Self::try_from(terms)
    }

    /// The terms of the pre-approval.
    pub fn terms(&self) -> &PreApprovalTerms {
        &self.terms
    }

    /// The maximum sum over all uses, in millionths; `None` if there is no sum limit.
    pub fn most(&self) -> Option<i64> {
        self.most
    }

    /// Returns what a request consumes, if all the given capabilities are covered; `None` if any is not.
    ///
    /// The remaining count and sum are not checked here.
    pub fn covers(&self, request: &PolicyRequest<'_>, capabilities: &[Capability]) -> Option<PreApprovalUse> {
        let (terms, intent) = (&self.terms, request.intent);
        let is_who = match (&terms.agent_id, &terms.group) {
            (Some(agent), None) => intent.agent_id == *agent,
            (None, Some(group)) => request.traits.groups.contains(group),
            _ => false,
        };
        // An unknown capability is covered by no pre-approval.
        let has = |one: &Capability| !one.is_unknown() && self.patterns.iter().any(|pattern| pattern.matches(one));
        let is_what = !capabilities.is_empty() && capabilities.iter().all(has);
        if !is_who || !is_what || request.risk > terms.max_risk || request.now >= terms.until {
            return None;
        }
        let is_covered = match &intent.known {
            Some(facts) => self.covers_acts(facts, intent, capabilities),
            None => self.covers_acts(&intent.facts(), intent, capabilities),
        };
        let amount = match &terms.sum {
            Some(sum) if is_covered => match &intent.known {
                Some(facts) if sum.key == AMOUNT_KEY => sum_of_acts(facts, |one| capabilities.contains(one))?,
                _ => millionths(intent.context.get(&sum.key)?.as_f64()?)?,
            },
            _ => 0,
        };
        is_covered.then_some(PreApprovalUse { amount })
    }

    /// Returns whether every act that needs one of the capabilities is one of those named, and all that it acts on is
    /// inside the targets.
    fn covers_acts(&self, facts: &Facts, intent: &Intent, capabilities: &[Capability]) -> bool {
        let is_asked = |act: &Act| intent.required_capabilities.iter().any(|one| act.needs(one));
        let is_needed = |act: &&Act| capabilities.iter().any(|one| act.needs(one)) || !is_asked(act);
        let is_stated = capabilities.iter().all(|one| facts.acts.iter().any(|act| act.needs(one)));
        let acts: Vec<&Act> = facts.acts.iter().filter(|act| !is_stated || is_needed(act)).collect();
        let is_how = |act: &Act| {
            let mut doings = act.does.iter().filter(|doing| capabilities.contains(&doing.capability));
            self.terms.actions.is_empty() || doings.all(|doing| self.terms.actions.contains(&doing.action))
        };
        let names_any = acts.iter().any(|act| act.operands.iter().any(|operand| TARGETS.has(operand.kind)));
        names_any != self.terms.targets.is_empty()
            && acts.iter().all(|act| {
                is_how(act)
                    && self.targets.as_ref().map_or(binding::openness(act, TARGETS) == Binding::Outside, |targets| {
                        binding::of_operands(targets.named(), Fact::Targets, act, facts, Way::Grants(Runs::None))
                            == Binding::Inside
                    })
            })
    }
}

/// The targets of a pre-approval, as a clause.
#[derive(Debug, Clone)]
struct Targets {
    pattern: Pattern,
    globs: Arc<Globs>,
}

impl Targets {
    fn of(targets: &[String]) -> Result<Option<Self>, Error> {
        if targets.is_empty() {
            return Ok(None);
        }
        let one = |glob: &String| regex::escape(glob).replace("\\*", ".*");
        let source = targets.iter().map(one).collect::<Vec<_>>().join("|");
        let compiled = |flags: &str| {
            let regex = Regex::new(&format!("({flags})^(?:{source})$"));
            regex.map(|regex| Pattern(Arc::new(regex))).map_err(|error| Error::input("targets", error.to_string()))
        };
        // In a target `?` is a character, in a glob a wildcard.
        let granted = targets.iter().filter(|target| !target.contains('?'));
        let globs = Arc::new(Globs::new(granted, targets, compiled("?s")?, false));
        Ok(Some(Self { pattern: compiled("?is")?, globs }))
    }

    fn named(&self) -> Named<'_> {
        Named { pattern: &self.pattern, globs: Some(&self.globs) }
    }
}

impl PartialEq for PreApproval {
    fn eq(&self, other: &Self) -> bool {
        self.terms == other.terms
    }
}

impl TryFrom<PreApprovalTerms> for PreApproval {
    type Error = Error;

    /// Validates terms without the check of the expiry against the current time.
    fn try_from(terms: PreApprovalTerms) -> Result<Self, Error> {
        if terms.agent_id.is_some() == terms.group.is_some() {
            return Err(Error::input("agentId", "expected either agentId or group"));
        }
        bounded("capabilities", terms.capabilities.len(), 1)?;
        bounded("rules", terms.rules.len(), 1)?;
        bounded("actions", terms.actions.len(), 0)?;
        bounded("targets", terms.targets.len(), 0)?;
        if !(1..=MOST_USES).contains(&terms.count) {
            return Err(Error::input("count", format!("expected 1 to {MOST_USES}, found {}", terms.count)));
        }
        for target in &terms.targets {
            is_target(target).map_err(|wrong| Error::input("targets", format!("{:?} {wrong}", excerpt(target))))?;
        }
        let patterns = terms.capabilities.iter().map(|text| pattern(text)).collect::<Result<_, _>>()?;
        let most = terms.sum.as_ref().map(most).transpose()?;
        let targets = Targets::of(&terms.targets)?;
        Ok(Self { terms, patterns, targets, most })
    }
}

impl From<PreApproval> for PreApprovalTerms {
    fn from(approval: PreApproval) -> Self {
        approval.terms
    }
}

fn bounded(field: &'static str, found: usize, least: usize) -> Result<(), Error> {
    if (least..=MOST_LISTED).contains(&found) {
        return Ok(());
    }
    Err(Error::input(field, format!("expected {least} to {MOST_LISTED}, found {found}")))
}

fn most(sum: &PreApprovalSum) -> Result<i64, Error> {
    let key = sum.key.as_str();
    if key.trim().is_empty() || key.chars().any(hides_or_breaks) || key.chars().count() > MAX_KEY_CHARS {
        return Err(Error::input("sum", format!("expected a key of the context of 1 to {MAX_KEY_CHARS} characters")));
    }
    let most = millionths(sum.most).filter(|most| *most > 0);
    most.ok_or_else(|| Error::input("sum", format!("expected a most above 0 and at most 9e12, found {}", sum.most)))
}

/// Parses a capability of which one half may be `*`.
fn pattern(text: &str) -> Result<CapabilityPattern, Error> {
    let wrong = |expected: &str| Error::input("capabilities", format!("{:?}: expected {expected}", excerpt(text)));
    let form = "resource:operation, of which one half may be *, such as payment:*";
    let (resource, operation) = text.split_once(':').ok_or_else(|| wrong(form))?;
    let filled = match (resource, operation) {
        ("*", "*") => return Err(wrong("a narrower pattern: *:* covers everything")),
        ("*", word) => format!("a:{word}"),
        (word, "*") => format!("{word}:a"),
        _ => text.to_owned(),
    };
    let capability: Capability = filled.parse().map_err(|_| wrong(form))?;
    if capability.is_unknown() {
        return Err(wrong("known words: an unknown action cannot be pre-approved"));
    }
    Ok(CapabilityPattern::new(resource, operation))
}

/// Explains why a text cannot be a target.
fn is_target(text: &str) -> Result<(), &'static str> {
    let start = text.strip_suffix('*').unwrap_or(text);
    if start.trim().is_empty() {
        return Err("names no target: expected one, or what one begins with and *");
    }
    if start.contains('*') {
        return Err("has a * that is not at its end");
    }
    if text.chars().count() > MAX_TARGET_CHARS || text.chars().any(hides_or_breaks) {
        return Err("is not a valid target: expected at most 1024 characters, none of them a control character");
    }
    // "https://bank.example*" would also match https://bank.example.evil.example.
    if binding::splits_host(&Glob::new(text)) {
        return Err("ends within a host name: expected a / after it");
    }
    Ok(())
}

const fn usual_risk() -> RiskLevel {
    RiskLevel::High
}

const fn most_uses() -> u32 {
    MOST_USES
}

const MOST_LISTED: usize = 100;
const MOST_USES: u32 = 10_000;
const MAX_KEY_CHARS: usize = 128;
const MAX_TARGET_CHARS: usize = 1_024;

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use rulekeep_types::{AgentTraits, Tier, TrustSnapshot};

    fn now() -> Timestamp {
        Timestamp::from_millis(0)
    }

    /// Terms with every field set, and some of them changed.
    fn terms(changes: &Value) -> Result<PreApprovalTerms, String> {
        let mut terms = json!({
            "agentId": "desk-1", "capabilities": ["payment:transfer", "email:*"], "actions": ["pay_invoice"],
            "rules": ["money"], "targets": ["INV-7", "INV-2026-*"], "maxRisk": "HIGH", "until": "1970-01-02T00:00:00.000Z", "count": 5,
            "sum": { "key": "amount", "most": 500.0 },
        });
        for (key, value) in changes.as_object().unwrap() {
            if value.is_null() {
                terms.as_object_mut().unwrap().remove(key);
            } else {
                terms[key] = value.clone();
            }
        }
        serde_json::from_value(terms).map_err(|error| error.to_string())
    }

    fn approval(changes: &Value) -> PreApproval {
        PreApproval::new(terms(changes).unwrap(), now()).unwrap()
    }

    /// Returns the consumed amount of a request that the full terms cover, with some of its parts changed.
    fn covered(approval: &PreApproval, changes: &Value) -> Option<i64> {
        let text = |key: &str, usual: &str| changes[key].as_str().unwrap_or(usual).to_owned();
        let capability = text("capability", "payment:transfer");
        let (agent, action) = (text("agent", "desk-1"), text("action", "pay_invoice"));
        let mut intent = Intent::new(&agent, &action, RiskLevel::Low, [&capability]).unwrap();
        for (key, usual) in [("target", json!("INV-2026-8")), ("amount", json!(120))] {
            let value = changes.get(key).cloned().unwrap_or(usual);
            if value != "absent" {
                intent = intent.with_context(key, value);
            }
        }
        let mut traits = AgentTraits::default();
        traits.groups = vec!["desk".parse().unwrap()];
        let risk: RiskLevel = text("risk", "HIGH").parse().unwrap();
        let request = PolicyRequest::new(&intent, TrustSnapshot::new(Tier::T3.middle(), Tier::T3))
            .at_risk(risk)
            .of_agent(&traits)
            .at(Timestamp::from_millis(changes["now"].as_i64().unwrap_or(0)));
        approval.covers(&request, &intent.required_capabilities).map(|used| used.amount)
    }

    #[test]
    fn what_one_term_leaves_out_is_not_covered() {
        let all = approval(&json!({}));
        assert_eq!(covered(&all, &json!({})), Some(120_000_000));
        for (request, expected) in [
            (json!({ "agent": "desk-2" }), None),
            (json!({ "action": "pay_rent" }), None),
            (json!({ "capability": "payment:read" }), None),
            (json!({ "capability": "email:send" }), Some(120_000_000)),
            (json!({ "capability": "email:unknown" }), None),
            (json!({ "risk": "CRITICAL" }), None),
            (json!({ "risk": "LOW" }), Some(120_000_000)),
            (json!({ "now": 86_399_999 }), Some(120_000_000)),
            (json!({ "now": 86_400_000 }), None),
            (json!({ "target": "INV-7" }), Some(120_000_000)),
            (json!({ "target": "INV-77" }), None),
            (json!({ "target": "inv-7" }), None),
            (json!({ "target": "INV-2026-" }), Some(120_000_000)),
            (json!({ "target": "INV-2026-8/../../x" }), None),
            (json!({ "target": "INV-2026-8\u{202e}" }), None),
            (json!({ "target": "absent" }), None),
            (json!({ "target": null }), None),
            (json!({ "target": ["INV-7", "INV-2026-1"] }), Some(120_000_000)),
            (json!({ "target": ["INV-7", "other"] }), None),
            (json!({ "target": ["INV-7", null] }), None),
            (json!({ "target": [] }), None),
            (json!({ "target": { "to": "INV-7" } }), None),
            (json!({ "amount": "absent" }), None),
            (json!({ "amount": "120" }), None),
            (json!({ "amount": -1 }), None),
            (json!({ "amount": 1e-7 }), Some(1)),
        ] {
            assert_eq!(covered(&all, &request), expected, "{request}");
        }
    }

    #[test]
    fn terms_that_are_left_out_mean_what_they_say() {
        let any_action = approval(&json!({ "actions": null, "sum": null }));
        assert_eq!(covered(&any_action, &json!({ "action": "send_it", "amount": "absent" })), Some(0));
        let no_target = approval(&json!({ "targets": null }));
        assert_eq!(covered(&no_target, &json!({ "target": "absent" })), Some(120_000_000));
        assert_eq!(covered(&no_target, &json!({ "target": null })), Some(120_000_000));
        assert_eq!(covered(&no_target, &json!({})), None, "no target is any target");
        let of_group = approval(&json!({ "agentId": null, "group": "desk" }));
        assert_eq!(covered(&of_group, &json!({ "agent": "desk-2" })), Some(120_000_000));
        let any_number = approval(&json!({ "count": null, "maxRisk": null }));
        assert_eq!((any_number.terms().count, any_number.terms().max_risk), (10_000, RiskLevel::High));
        let other_group = approval(&json!({ "agentId": null, "group": "till" }));
        assert_eq!(covered(&other_group, &json!({})), None);
    }

    #[test]
    fn every_capability_that_needs_a_person_has_to_be_covered() {
        let all = approval(&json!({ "targets": null, "sum": null }));
        let intent = Intent::new("desk-1", "pay_invoice", RiskLevel::Low, ["payment:transfer", "file:read"]).unwrap();
        let request = PolicyRequest::new(&intent, TrustSnapshot::new(Tier::T3.middle(), Tier::T3));
        let both = &intent.required_capabilities;
        assert!(all.covers(&request, &both[..1]).is_some());
        assert!(all.covers(&request, both).is_none());
        assert!(all.covers(&request, &[]).is_none(), "nothing is nothing that needs one");
    }

    #[test]
    fn each_wrong_term_is_named() {
        for (changes, expected) in [
            (json!({ "agentId": null }), "agentId: expected either agentId or group"),
            (json!({ "group": "desk" }), "agentId: expected either agentId or group"),
            (json!({ "capabilities": [] }), "capabilities: expected 1 to 100, found 0"),
            (json!({ "capabilities": ["*:*"] }), "capabilities: \"*:*\": expected a narrower pattern"),
            (json!({ "capabilities": ["pay*:read"] }), "capabilities: \"pay*:read\": expected resource:operation"),
            (json!({ "capabilities": ["payment"] }), "capabilities: \"payment\": expected resource:operation"),
            (json!({ "capabilities": ["unknown:*"] }), "capabilities: \"unknown:*\": expected known words"),
            (json!({ "rules": [] }), "rules: expected 1 to 100, found 0"),
            (json!({ "targets": ["*"] }), "targets: \"*\" names no target"),
            (json!({ "targets": ["a*b"] }), "targets: \"a*b\" has a * that is not at its end"),
            (json!({ "targets": ["a\u{7}"] }), "targets: \"a\\u{7}\" is not a valid target"),
            (
                json!({ "targets": ["https://bank.example*"] }),
                "targets: \"https://bank.example*\" ends within a host name",
            ),
            (json!({ "targets": vec!["a"; 101] }), "targets: expected 0 to 100, found 101"),
            (json!({ "count": 0 }), "count: expected 1 to 10000, found 0"),
            (json!({ "sum": { "key": " ", "most": 1 } }), "sum: expected a key of the context"),
            (json!({ "sum": { "key": "a", "most": 0 } }), "sum: expected a most above 0"),
            (json!({ "until": "1970-01-01T00:00:00Z" }), "until: expected a time within 31 days"),
            (json!({ "until": "1970-02-01T00:00:00.001Z" }), "until: expected a time within 31 days"),
        ] {
            let error = PreApproval::new(terms(&changes).unwrap(), now()).unwrap_err().to_string();
            assert!(error.contains(expected), "{changes}: {error}");
        }
        for good in [json!({ "targets": ["https://bank.example/*"] }), json!({ "until": "1970-02-01T00:00:00Z" })] {
            assert!(PreApproval::new(terms(&good).unwrap(), now()).is_ok(), "{good}");
        }
        assert!(terms(&json!({ "target": ["a"] })).unwrap_err().contains("unknown field `target`"));
    }

    #[test]
    fn it_is_written_as_its_terms_and_read_through_the_same_checks() {
        let all = approval(&json!({}));
        let written = serde_json::to_value(&all).unwrap();
        assert_eq!(written, serde_json::to_value(terms(&json!({})).unwrap()).unwrap());
        assert_eq!(serde_json::from_value::<PreApproval>(written.clone()).unwrap(), all);
        let mut wrong = written;
        wrong["capabilities"] = json!(["*:*"]);
        assert!(serde_json::from_value::<PreApproval>(wrong).is_err());
    }
}
