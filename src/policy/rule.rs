//! A rule that has been checked, ready to be evaluated.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use regex::Regex;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::condition::Condition;
use super::conditions::Conditions;
use super::exclusion::Exclusion;
use super::fact::Fact;
use super::limit::Limit;
use super::pattern::{CapabilityPattern, Names};
use super::request::PolicyRequest;
use crate::model::{Capability, Classification, Constraints, Intent, RiskLevel, Tier, closed_words};

closed_words! {
    /// What a policy rule does with the capabilities that it matches; the
    /// earlier outranks the later.
    pub enum Effect("effect") {
        /// Refuses them.
        Deny = "deny",
        /// Has a person decide.
        Escalate = "escalate",
        /// Grants what it names of them and refuses the rest.
        Degrade = "degrade",
        /// Grants them.
        Allow = "allow",
    }
}

impl Effect {
    /// Whether a rule of it can grant something by itself.
    pub(super) const fn grants(self) -> bool {
        matches!(self, Self::Allow | Self::Degrade)
    }
}

/// One rule. It serializes to its canonical form, of which digests are made: names, order and omissions matter.
#[derive(Debug, Serialize)]
pub(super) struct Rule {
    pub(super) id: Arc<str>,
    /// Which of several documents it stands in, from 0.
    #[serde(skip_serializing_if = "is_base")]
    pub(super) layer: usize,
    pub(super) effect: Effect,
    pub(super) reviewer: Option<Arc<str>>,
    /// How many people have to agree; one unless the rule escalates.
    #[serde(skip_serializing_if = "is_one")]
    pub(super) approvals: u8,
    /// How long a person has to answer; the default unless the rule escalates.
    #[serde(skip_serializing_if = "is_default_expiry")]
    pub(super) expires: Duration,
    /// What remains of the matched capabilities; empty unless the rule degrades.
    pub(super) to: Vec<CapabilityPattern>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<Box<str>>,
    #[serde(rename = "match")]
    pub(super) matches: Match,
    #[serde(skip_serializing_if = "Conditions::says_nothing")]
    pub(super) conditions: Conditions,
    /// How grave it is that the rule matched, for people and alerts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) severity: Option<RiskLevel>,
    /// How often, or for how much, what it grants may be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<Limit>,
    pub(super) constraints: Constraints,
    /// The byte of its document at which it begins.
    #[serde(skip)]
    pub(super) at: usize,
    /// Line of the rule in its document.
    #[serde(skip)]
    pub(super) line: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_base(layer: &usize) -> bool {
    *layer == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_one(approvals: &u8) -> bool {
    *approvals == 1
}

fn is_default_expiry(expires: &Duration) -> bool {
    *expires == DEFAULT_EXPIRY
}

impl Rule {
    /// Whether a condition is left to hold once every clause does.
    pub(super) const fn is_conditional(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// The condition that keeps the rule from matching, if one does.
    ///
    /// # Errors
    ///
    /// Why a condition failed, in words without anything of the context.
    pub(super) fn condition(&self, request: &PolicyRequest<'_>) -> Result<Option<Clause<'_>>, String> {
        self.conditions.failing(&request.scope())
    }

    /// Who decides where the rule asks for a person, at once or when its limit is used up.
    pub(super) fn asks(&self) -> Option<&Arc<str>> {
        self.reviewer.as_ref().or_else(|| self.limit.as_ref()?.over.reviewer())
    }

    /// Whether the rule speaks about a capability.
    pub(super) fn speaks_about(&self, capability: &Capability) -> bool {
        let patterns = &self.matches.capabilities;
        patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(capability))
    }

    /// Makes it a rule that refuses whatever it matches, and says why.
    pub(super) fn refuse(&mut self, reason: String) {
        self.effect = Effect::Deny;
        self.matches.set_effect(Effect::Deny);
        self.reason = Some(reason.into());
        self.to.clear();
        self.limit = None;
        self.constraints = Constraints::new();
    }

    /// Whether a degrading rule leaves a capability that it speaks about.
    pub(super) fn leaves(&self, capability: &Capability) -> bool {
        self.to.iter().any(|pattern| pattern.matches(capability))
    }
}

/// How long a person has to answer, where no rule says.
pub(super) const DEFAULT_EXPIRY: Duration = Duration::from_secs(24 * 60 * 60);

/// The clauses of a rule: an empty one matches anything.
#[derive(Debug, Default, Serialize)]
pub(super) struct Match {
    pub(super) agents: Names,
    pub(super) labels: Names,
    #[serde(skip_serializing_if = "Names::is_any")]
    pub(super) groups: Names,
    pub(super) actions: Names,
    pub(super) capabilities: Vec<CapabilityPattern>,
    pub(super) levels: Levels,
    pub(super) environment: Vec<Box<str>>,
    pub(super) context: Vec<ContextClause>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) not: Option<Box<Exclusion>>,
}

/// A clause of a rule, as it is named where a rule did not match.
#[derive(Debug, Clone, Copy)]
pub(super) enum Clause<'a> {
    Risk,
    Tiers,
    Agents,
    Labels,
    Groups,
    Actions,
    Classification,
    Environment,
    Context(&'a ContextClause),
    /// A clause under `not`, which holds or may hold.
    Not {
        name: &'a str,
        /// Whether it looks at what the context says.
        of_context: bool,
    },
    When(&'a Condition),
    Unless(&'a Condition),
}

impl Match {
    /// The first clause that does not hold, capabilities aside; none when all do.
    pub(super) fn failing(&self, request: &PolicyRequest<'_>) -> Option<Clause<'_>> {
        if !self.levels.has_risk(request.risk) {
            return Some(Clause::Risk);
        }
        if !self.levels.has_tier(request.trust.tier) {
            return Some(Clause::Tiers);
        }
        if !self.levels.contains(Levels::of(request)) {
            return Some(Clause::Classification);
        }
        self.failing_besides_levels(request)
    }

    /// The same, for a caller that has compared the levels already.
    pub(super) fn failing_besides_levels(&self, request: &PolicyRequest<'_>) -> Option<Clause<'_>> {
        let intent = request.intent;
        if !self.actions.matches(intent.parsed_action.as_str()) {
            return Some(Clause::Actions);
        }
        if !self.agents.matches(intent.agent_id.as_str()) {
            return Some(Clause::Agents);
        }
        if !self.labels.is_any() && !request.traits.labels.iter().any(|label| self.labels.matches(label.as_str())) {
            return Some(Clause::Labels);
        }
        if !self.groups.is_any() && !request.traits.groups.iter().any(|group| self.groups.matches(group.as_str())) {
            return Some(Clause::Groups);
        }
        let text = |key: &str| intent.context.get(key).and_then(Value::as_str);
        if !self.environment.is_empty() && !text(ENVIRONMENT_KEY).is_some_and(|name| self.names_environment(name)) {
            return Some(Clause::Environment);
        }
        let failing = self.context.iter().find(|clause| !clause.holds(intent, clause.allows)).map(Clause::Context);
        failing.or_else(|| self.not.as_ref().and_then(|not| not.failing(request, not.allows)))
    }

    /// Says whose clauses they are: under an allow what is not known does not match, under what restricts it does.
    pub(super) fn set_effect(&mut self, effect: Effect) {
        let allows = effect == Effect::Allow;
        for clause in &mut self.context {
            clause.allows = allows;
        }
        if let Some(not) = &mut self.not {
            not.allows = allows;
        }
    }

    /// Whether the context clauses hold as they do in a rule that grants.
    pub(super) fn grants_by_context(&self, request: &PolicyRequest<'_>) -> bool {
        self.context.iter().all(|clause| clause.holds(request.intent, true))
            && self.not.as_ref().is_none_or(|not| not.failing(request, true).is_none())
    }

    /// Whether a clause looks at the environment.
    pub(super) fn looks_at_environment(&self) -> bool {
        !self.environment.is_empty() || self.not.as_ref().is_some_and(|not| not.clauses.looks_at_environment())
    }

    /// Whether nothing but capabilities, risk and tiers decides that it matches.
    pub(super) fn is_wide(&self) -> bool {
        self.agents.is_any()
            && self.labels.is_any()
            && self.groups.is_any()
            && self.actions.is_any()
            && self.levels.has_class(None)
            && self.environment.is_empty()
            && self.context.is_empty()
            && self.not.is_none()
    }

    // Lower case was made of the rule's words at load.
    pub(super) fn names_environment(&self, name: &str) -> bool {
        let name = name.trim();
        if name.is_ascii() {
            return self.environment.iter().any(|known| known.eq_ignore_ascii_case(name));
        }
        let name = name.to_lowercase();
        self.environment.iter().any(|known| **known == *name)
    }
}

/// Key of the context that `classification` looks at.
pub(super) const CLASSIFICATION_KEY: &str = "dataClassification";
/// Key of the context that `environment` looks at.
pub(super) const ENVIRONMENT_KEY: &str = "environment";

/// A context value held against a regular expression.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ContextClause {
    pub(super) key: Box<str>,
    pub(super) pattern: Pattern,
    /// The rule allows: then every item of a list must match, and what cannot be
    /// compared does not. In a rule that restricts one item is enough, and what
    /// cannot be compared does match, so that no other form of a value slips past.
    pub(super) allows: bool,
}

impl Serialize for ContextClause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        [&*self.key, self.pattern.0.as_str()].serialize(serializer)
    }
}

impl ContextClause {
    /// Whether it holds for an intent. Facts are lists: in a rule that allows all of one must match and nothing of it
    /// be unread, in one that restricts one match is enough, and so is what could not be read.
    fn holds(&self, intent: &Intent, allows: bool) -> bool {
        match Fact::of_key(&self.key) {
            Some(fact) if intent.has_facts() => {
                let matches = |text: &str| self.pattern.0.is_match(text);
                let mut values = fact.values(intent).peekable();
                if allows {
                    !fact.is_unread(intent) && values.peek().is_some() && values.all(|(value, _)| matches(value))
                } else {
                    fact.is_unread(intent)
                        || values.any(|(value, original)| matches(value) || original.is_some_and(matches))
                }
            }
            Some(Fact::Tool | Fact::Server | Fact::Formats) => false,
            Some(_) => self.holds_for(intent.context.get("target"), allows),
            None => self.holds_for(intent.context.get(&*self.key), allows),
        }
    }

    fn holds_for(&self, value: Option<&Value>, allows: bool) -> bool {
        value.is_some_and(|value| self.matches_as(value, allows))
    }

    pub(super) fn matches_as(&self, value: &Value, allows: bool) -> bool {
        match value {
            Value::String(text) => self.pattern.0.is_match(text),
            Value::Number(number) => self.pattern.0.is_match(&plain(number)),
            Value::Bool(flag) => self.pattern.0.is_match(if *flag { "true" } else { "false" }),
            Value::Array(items) if allows => {
                !items.is_empty() && items.iter().all(|item| self.matches_as(item, allows))
            }
            Value::Array(items) => items.is_empty() || items.iter().any(|item| self.matches_as(item, allows)),
            Value::Null | Value::Object(_) => !allows,
        }
    }
}

/// A number as people write it: 50000, whether it came as 50000, 50000.0 or 5e4, and without an exponent however
/// large it is.
fn plain(number: &serde_json::Number) -> String {
    match number.as_f64() {
        Some(value) if number.is_f64() => value.to_string(),
        _ => number.to_string(),
    }
}

/// A regular expression; two are equal, and ordered, as they are written.
#[derive(Debug, Clone)]
pub(super) struct Pattern(pub(super) Arc<Regex>);

impl Ord for Pattern {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.as_str().cmp(other.0.as_str())
    }
}

impl PartialOrd for Pattern {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Pattern {}

/// The risks, tiers and data classes that a rule is about, a bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Levels(u16);

impl Levels {
    pub(super) const ANY: Self = Self(0x7FFF);

    /// From both ends of each range, and the classes, none meaning any.
    pub(super) fn new(risk: (RiskLevel, RiskLevel), tiers: (Tier, Tier), classes: &[Classification]) -> Self {
        let classes = if classes.is_empty() {
            ALL_CLASSES
        } else {
            classes.iter().fold(0, |all, class| all | class_bit(Some(*class)))
        };
        let risks = RiskLevel::ALL.iter().filter(|level| (risk.0..=risk.1).contains(level));
        let tiers = Tier::ALL.iter().filter(|tier| (tiers.0..=tiers.1).contains(tier));
        let bits = risks.map(|level| risk_bit(*level)).chain(tiers.map(|tier| tier_bit(*tier)));
        Self(bits.fold(classes, |all, bit| all | bit))
    }

    /// The one risk, tier and class of a request.
    pub(super) fn of(request: &PolicyRequest<'_>) -> Self {
        let intent = request.intent;
        // A caller cannot call its data less sensitive than what it asks for, nor slip past by another spelling.
        let claimed = intent.context.get(CLASSIFICATION_KEY).filter(|value| !value.is_null());
        let claimed = claimed.map(|value| value.as_str().map_or(Classification::Restricted, Classification::of_word));
        let class = claimed.max(Classification::floor(&intent.parsed_action, &intent.required_capabilities));
        Self(risk_bit(request.risk) | tier_bit(request.trust.tier) | class_bit(class))
    }

    pub(super) const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub(super) const fn has_risk(self, risk: RiskLevel) -> bool {
        self.0 & risk_bit(risk) != 0
    }

    pub(super) const fn has_tier(self, tier: Tier) -> bool {
        self.0 & tier_bit(tier) != 0
    }

    /// The same at one tier alone; none when it does not name it.
    pub(super) fn at_tier(self, tier: Tier) -> Option<Self> {
        let others = Tier::ALL.iter().filter(|other| **other != tier).fold(0, |all, other| all | tier_bit(*other));
        self.has_tier(tier).then_some(Self(self.0 & !others))
    }

    /// Whether a request of this class, if it has one that is known, is meant.
    pub(super) const fn has_class(self, class: Option<Classification>) -> bool {
        self.0 & class_bit(class) != 0
    }

    /// The classes that are named; none when any will do.
    pub(super) fn classes(self) -> impl Iterator<Item = Classification> {
        let named = !self.has_class(None);
        Classification::ALL.iter().copied().filter(move |class| named && self.has_class(Some(*class)))
    }
}

impl Default for Levels {
    fn default() -> Self {
        Self::ANY
    }
}

const fn risk_bit(risk: RiskLevel) -> u16 {
    1 << risk as u16
}

const fn tier_bit(tier: Tier) -> u16 {
    1 << (FIRST_TIER + tier as u16)
}

const fn class_bit(class: Option<Classification>) -> u16 {
    match class {
        Some(class) => 1 << (FIRST_CLASS + class as u16),
        // No class, or a word that is none.
        None => 1 << NO_CLASS,
    }
}

// Where each kind of level begins among the bits.
const FIRST_TIER: u16 = 4;
const FIRST_CLASS: u16 = 10;
const NO_CLASS: u16 = 14;
const ALL_CLASSES: u16 = 0x7C00;
// A word that is added to the vocabulary has to be given a bit here too.
const _: () = assert!(RiskLevel::ALL.len() == 4 && Tier::ALL.len() == 6 && Classification::ALL.len() == 4);
