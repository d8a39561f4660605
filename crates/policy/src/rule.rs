//! A checked rule, ready to be evaluated.

use std::cmp::Ordering;
use std::sync::Arc;
use std::time::Duration;

use regex::Regex;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::binding::{self, Binding, Folders, Globs, Named, Way};
use super::condition::Condition;
use super::conditions::Conditions;
use super::exclusion::Exclusion;
use super::fact::Fact;
use super::limit::Limit;
use super::pattern::{CapabilityPattern, Names};
use super::request::PolicyRequest;
use rulekeep_types::facts::{Act, Doing, Kind, Kinds, Operand, Role};
use rulekeep_types::{
    Capability, Classification, Constraints, DeniedPath, Facts, Intent, Operation, Resource, RiskLevel, Tier,
    closed_words,
};

closed_words! {
    /// The effect of a policy rule on the capabilities it matches. An earlier effect outranks a later one.
    pub enum Effect("effect") {
        /// Denies the matched capabilities.
        Deny = "deny",
        /// Escalates the matched capabilities to a reviewer.
        Escalate = "escalate",
        /// Grants those listed in `to` and withholds the rest.
        Degrade = "degrade",
        /// Grants the matched capabilities.
        Allow = "allow",
    }
}

impl Effect {
    /// Returns whether a rule with this effect can grant something by itself.
    pub(super) const fn grants(self) -> bool {
        matches!(self, Self::Allow | Self::Degrade)
    }
}

/// One rule. It serializes to its canonical form, which digests are computed over: field names, their order and
/// omissions matter.
#[derive(Debug, Serialize)]
pub(super) struct Rule {
    pub(super) id: Arc<str>,
    /// The number of the rule's document, from 0.
    #[serde(skip_serializing_if = "is_base")]
    pub(super) layer: usize,
    pub(super) effect: Effect,
    pub(super) reviewer: Option<Arc<str>>,
    /// The number of people who have to agree; 1 unless the rule escalates.
    #[serde(skip_serializing_if = "is_one")]
    pub(super) approvals: u8,
    /// The time a reviewer has to answer; the default unless the rule escalates.
    #[serde(skip_serializing_if = "is_default_expiry")]
    pub(super) expires: Duration,
    /// The capabilities that remain; empty unless the rule degrades.
    pub(super) to: Vec<CapabilityPattern>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<Box<str>>,
    #[serde(rename = "match")]
    pub(super) matches: Match,
    #[serde(skip_serializing_if = "Conditions::says_nothing")]
    pub(super) conditions: Conditions,
    /// The severity of a match, for people and alerts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) severity: Option<RiskLevel>,
    /// The limit on how often, or for how much, the rule's grant may be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<Limit>,
    pub(super) constraints: Constraints,
    /// The reason no request can match, as far as the rule alone shows.
    #[serde(skip)]
    pub(super) never: Option<Box<str>>,
    /// Byte offset of the rule in its document.
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
fn is_false(flag: &bool) -> bool {
    !*flag
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_one(approvals: &u8) -> bool {
    *approvals == 1
}

fn is_default_expiry(expires: &Duration) -> bool {
    *expires == DEFAULT_EXPIRY
}

impl Rule {
    /// Returns whether conditions remain to be checked after the clauses.
    pub(super) const fn is_conditional(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// The condition that keeps the rule from matching, if any.
    ///
    /// # Errors
    ///
    /// The reason a condition failed, without any value from the context.
    pub(super) fn condition(&self, request: &PolicyRequest<'_>) -> Result<Option<Clause<'_>>, String> {
        self.conditions.failing(&request.scope())
    }

    /// The reviewer whom the rule asks, at once or after its limit is used up.
    pub(super) fn asks(&self) -> Option<&Arc<str>> {
        self.reviewer.as_ref().or_else(|| self.limit.as_ref()?.over.reviewer())
    }

    /// Returns whether the rule applies to a capability.
    pub(super) fn speaks_about(&self, capability: &Capability) -> bool {
        let patterns = &self.matches.capabilities;
        patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(capability))
    }

    /// Turns the rule into a deny rule with the given reason.
    pub(super) fn refuse(&mut self, reason: String) {
        self.effect = Effect::Deny;
        self.matches.set_effect(Effect::Deny);
        self.reason = Some(reason.into());
        self.to.clear();
        self.limit = None;
        self.constraints = Constraints::new();
    }

    /// Returns whether a restriction only applies because a part of the request could not be read.
    pub(super) fn binds_unread(&self, request: &PolicyRequest<'_>) -> bool {
        self.matches.acts(request, None, Way::Restricts).is_ok_and(|binding| binding == Binding::Maybe)
    }

    /// The paths that the rule is about.
    pub(super) fn denied_paths(&self) -> impl Iterator<Item = DeniedPath> {
        let patterns = |fact: Fact| {
            let clauses = self.matches.context.iter().filter(move |clause| clause.fact == Some(fact));
            clauses.filter_map(|clause| clause.globs.as_deref()).flat_map(Globs::texts)
        };
        let reads = |resource| self.speaks_about(&Capability::new(resource, Operation::Read));
        let is_readable = !reads(Resource::File) && !reads(Resource::Credential);
        // A target can also be a table or an address.
        let is_path = |pattern: &&str| pattern.contains(['/', '.', '*']) && !pattern.contains(':');
        let texts = patterns(Fact::Paths).chain(patterns(Fact::Targets).filter(is_path));
        texts.map(move |pattern| DeniedPath { pattern: pattern.to_owned(), is_readable })
    }

    /// Returns whether a degrading rule lists a capability in `to`.
    pub(super) fn leaves(&self, capability: &Capability) -> bool {
        self.to.iter().any(|pattern| pattern.matches(capability))
    }
}

/// The time a reviewer has to answer if the rule does not say.
pub(super) const DEFAULT_EXPIRY: Duration = Duration::from_secs(24 * 60 * 60);

closed_words! {
    /// Whether a rule that allows covers acts that run code whose effects no text shows.
    pub enum Runs("runs") {
        /// The rule covers none of them.
        None = "none",
        /// The rule covers them if the code lies in the working folder or is configured by it, and all that their text
        /// names is inside.
        Folder = "folder",
        /// The rule covers them if all that their text names is inside.
        Any = "any",
    }
}

impl Runs {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
    fn is_none(&self) -> bool {
        *self == Self::None
    }
}

#[expect(clippy::derivable_impls, reason = "the macro takes no attributes on a word")]
impl Default for Runs {
    fn default() -> Self {
        Self::None
    }
}

/// The clauses of a rule. An empty clause matches anything.
#[derive(Debug, Default, Serialize)]
pub(super) struct Match {
    pub(super) agents: Names,
    pub(super) labels: Names,
    #[serde(skip_serializing_if = "Names::is_any")]
    pub(super) groups: Names,
    pub(super) actions: Names,
    pub(super) capabilities: Vec<CapabilityPattern>,
    #[serde(skip_serializing_if = "Names::is_any")]
    pub(super) commands: Names,
    /// The commands with the letters of each option sorted, as in a command's normal form.
    #[serde(skip)]
    pub(super) normal_commands: Names,
    pub(super) levels: Levels,
    pub(super) environment: Vec<Box<str>>,
    pub(super) context: Vec<ContextClause>,
    #[serde(skip_serializing_if = "Runs::is_none")]
    pub(super) runs: Runs,
    #[serde(skip_serializing_if = "is_false")]
    pub(super) trees: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) not: Option<Box<Exclusion>>,
    /// Whether the rule allows.
    #[serde(skip)]
    pub(super) allows: bool,
}

/// A clause of a rule, as named in the explanation of a rule that did not match.
#[derive(Debug, Clone, Copy)]
pub(super) enum Clause<'a> {
    Risk,
    Tiers,
    Agents,
    Labels,
    Groups,
    Actions,
    Commands,
    Classification,
    Environment,
    Context(&'a ContextClause),
    /// A clause under `not` that holds or may hold.
    Not {
        name: &'a str,
        /// Whether the clause reads the context.
        of_context: bool,
    },
    When(&'a Condition),
    Unless(&'a Condition),
}

impl Match {
    /// The first clause, capabilities excluded, that does not hold for one of the capabilities of the request, or for
    /// the request as a whole; `None` if all hold.
    pub(super) fn failing_for(
        &self,
        request: &PolicyRequest<'_>,
        capability: Option<&Capability>,
    ) -> Option<Clause<'_>> {
        if !self.levels.has_risk(request.risk) {
            return Some(Clause::Risk);
        }
        if !self.levels.has_tier(request.trust.tier) {
            return Some(Clause::Tiers);
        }
        if !self.levels.contains(Levels::of(request)) {
            return Some(Clause::Classification);
        }
        self.failing_besides_levels(request, capability)
    }

    /// Like `failing_for`, for a caller that has compared risk, tier and classification already. A rule that allows looks
    /// at the acts that need `capability`; without one, at all acts.
    pub(super) fn failing_besides_levels(
        &self,
        request: &PolicyRequest<'_>,
        capability: Option<&Capability>,
    ) -> Option<Clause<'_>> {
        let intent = request.intent;
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
        let mut others = self.context.iter().filter(|clause| intent.known.is_none() || !clause.is_of_acts());
        let failing = others.find(|clause| !clause.holds(intent, clause.allows)).map(Clause::Context);
        failing
            .or_else(|| self.not.as_ref().and_then(|not| not.failing(request, not.allows)))
            .or_else(|| self.acts(request, capability, self.way()).err())
    }

    /// The direction of the rule.
    pub(super) fn way(&self) -> Way {
        if self.allows { Way::Grants(self.runs) } else { Way::Restricts }
    }

    /// Relates the acts of a request to the clauses about acts, which must hold of the same act: for a restriction
    /// of one act, for a grant of all acts that need the capability. `Err` is a clause that does not hold.
    pub(super) fn acts(
        &self,
        request: &PolicyRequest<'_>,
        capability: Option<&Capability>,
        way: Way,
    ) -> Result<Binding, Clause<'_>> {
        let Some(facts) = &request.intent.known else {
            return self.built(request.intent);
        };
        if !self.looks_at_acts() {
            return Ok(Binding::Inside);
        }
        let speaks = |doing: &Doing| {
            self.capabilities.is_empty() || self.capabilities.iter().any(|pattern| pattern.matches(&doing.capability))
        };
        // Another reading of the request needs the capability, and may be of any act.
        let is_stated = capability.is_none_or(|capability| facts.acts.iter().any(|act| act.needs(capability)));
        // What no capability of the request asks for, such as a redirection, every grant has to cover.
        let is_asked = |doing: &Doing| request.intent.required_capabilities.contains(&doing.capability);
        let is_needed = |act: &Act| {
            !is_stated
                || act.does.is_empty()
                || match capability {
                    Some(capability) if way.grants() => act.needs(capability) || !act.does.iter().any(is_asked),
                    _ => act.does.iter().any(speaks),
                }
        };
        let (mut best, mut failing) = (None, None);
        for act in facts.acts.iter().filter(|act| is_needed(act)) {
            match (self.act(act, facts, way, &speaks), way) {
                (Ok(binding), Way::Restricts) => best = best.max(Some(binding)),
                (Ok(binding), Way::Grants(_)) => best = Some(best.map_or(binding, |known: Binding| known.min(binding))),
                (Err(clause), Way::Grants(_)) => return Err(clause),
                (Err(clause), Way::Restricts) => failing = failing.or(Some(clause)),
            }
        }
        let named = || self.context.iter().find(|clause| clause.is_of_acts()).map_or(Clause::Actions, Clause::Context);
        let binding = best.ok_or_else(|| failing.unwrap_or_else(named))?;
        if !way.grants() {
            return Ok(binding);
        }
        // A grant over operands needs at least one.
        let lacks = |clause: &&ContextClause| {
            clause.fact.is_some_and(|fact| {
                let is_of = |act: &Act| {
                    let is_named = |operand: &Operand| fact.kinds().has(operand.kind) && !operand.is_word();
                    act.operands.iter().any(is_named) || binding::runs_folder(act, fact.kinds())
                };
                fact.is_target() && !facts.acts.iter().filter(|act| is_needed(act)).any(is_of)
            })
        };
        let clauses = || self.context.iter().filter(|clause| clause.is_of_acts());
        let failing = clauses().find(lacks).or_else(|| self.speaks_of_others(capability));
        failing.map_or(Ok(binding), |clause| Err(Clause::Context(clause)))
    }

    /// The first clause over operands, if none of these speaks of what the capability acts on: that a file lies in a
    /// folder grants no access to the host that it is fetched from, and the host no writing of files.
    pub(super) fn speaks_of_others(&self, capability: Option<&Capability>) -> Option<&ContextClause> {
        let needed = Self::kinds_of(capability?.resource()?)?;
        let kinds = |clause: &ContextClause| clause.fact.filter(|fact| fact.is_target()).map(Fact::kinds);
        let speaks = |clause: &ContextClause| kinds(clause).is_some_and(|kinds| kinds.meets(needed));
        let first = self.context.iter().find(|clause| kinds(clause).is_some())?;
        (!self.context.iter().any(speaks)).then_some(first)
    }

    /// The kinds of operands that a resource is named by; `None` if it has no certain ones.
    pub(super) fn kinds_of(resource: Resource) -> Option<Kinds> {
        Some(match resource {
            Resource::Web | Resource::Network => Kinds::of(&[Kind::Host, Kind::Url]),
            Resource::Email | Resource::Message => Kinds::of(&[Kind::Recipient, Kind::Host, Kind::Url, Kind::Account]),
            Resource::Database => Kinds::of(&[Kind::Table]),
            Resource::File | Resource::Config | Resource::Credential => Kinds::of(&[Kind::Path]),
            _ => return None,
        })
    }

    /// Relates one act to the clauses about acts.
    fn act<'c>(
        &'c self,
        act: &Act,
        facts: &Facts,
        way: Way,
        speaks: &impl Fn(&Doing) -> bool,
    ) -> Result<Binding, Clause<'c>> {
        let is_unread = || binding::openness(act, Kinds::of(&[Kind::Command])) == Binding::Maybe;
        let mut weakest = Binding::Inside;
        let mut require = |binding: Binding, clause: Clause<'c>| {
            weakest = weakest.min(binding);
            let holds = if way.grants() { binding == Binding::Inside } else { binding >= Binding::Maybe };
            if holds { Ok(()) } else { Err(clause) }
        };
        let named = |is_named: bool| match is_named {
            true => Binding::Inside,
            false if is_unread() => Binding::Maybe,
            false => Binding::Outside,
        };
        if !self.actions.is_any() {
            let mut actions = act.does.iter().filter(|doing| speaks(doing)).map(|doing| doing.action.as_str());
            let is_named = match way {
                Way::Restricts => actions.any(|action| self.actions.matches(action)),
                Way::Grants(_) => !act.does.is_empty() && actions.all(|action| self.actions.matches(action)),
            };
            require(named(is_named), Clause::Actions)?;
        }
        if !self.commands.is_any() {
            let is_named = match way {
                Way::Restricts => self.names_a_form(act),
                Way::Grants(_) => self.covers_commands(act) && !is_unread(),
            };
            require(named(is_named), Clause::Commands)?;
        }
        // An allow of a host's own tool covers no tool of a server that has its name.
        let names_server = || self.context.iter().any(|clause| clause.fact == Some(Fact::Server));
        let is_any_server = !way.grants() || names_server();
        for clause in self.context.iter().filter(|clause| clause.is_of_acts()) {
            let Some(fact) = clause.fact else { continue };
            let binding = if fact.is_target() {
                binding::of_operands(clause.named(), fact, act, facts, way)
            } else {
                named(fact.is_named(act, is_any_server, |name| clause.pattern.0.is_match(name)))
            };
            require(binding, Clause::Context(clause))?;
        }
        if let Some(not) = &self.not {
            not.excludes(act, facts, way)?;
            if not.is_unsure(act) {
                weakest = weakest.min(Binding::Maybe);
            }
        }
        Ok(weakest)
    }

    /// Returns whether a layer of a command, or its normal form, is named.
    pub(super) fn names_a_form(&self, act: &Act) -> bool {
        let is_normal = |command: &String| self.commands.matches(command) || self.normal_commands.matches(command);
        act.commands.iter().any(|command| self.commands.matches(command)) || act.command.as_ref().is_some_and(is_normal)
    }

    /// Returns whether every layer of a command is covered as written. The normal form does not count: it drops the
    /// folder of the program, and options that lead to another repository or package.
    pub(super) fn covers_commands(&self, act: &Act) -> bool {
        !act.commands.is_empty() && act.commands.iter().all(|command| self.commands.matches(command))
    }

    fn built(&self, intent: &Intent) -> Result<Binding, Clause<'_>> {
        if !self.actions.matches(intent.parsed_action.as_str()) {
            return Err(Clause::Actions);
        }
        if !self.commands.is_any() {
            return Err(Clause::Commands);
        }
        Ok(Binding::Inside)
    }

    /// Returns whether a clause is about acts.
    pub(super) fn looks_at_acts(&self) -> bool {
        !self.actions.is_any()
            || !self.commands.is_any()
            || self.context.iter().any(ContextClause::is_of_acts)
            || self.not.as_ref().is_some_and(|not| not.clauses.looks_at_acts())
    }

    /// Sets the effect of the rule that the clauses belong to: an unknown value does not match under an allow, and
    /// matches under a restricting effect.
    pub(super) fn set_effect(&mut self, effect: Effect) {
        let allows = effect == Effect::Allow;
        self.allows = allows;
        for clause in &mut self.context {
            clause.allows = allows;
        }
        if let Some(not) = &mut self.not {
            not.allows = allows;
        }
    }

    /// Returns whether the context clauses hold by the rules for granting `capability`.
    pub(super) fn grants_by_context(&self, request: &PolicyRequest<'_>, capability: &Capability) -> bool {
        let known = request.intent.known.is_some();
        let mut others = self.context.iter().filter(|clause| !known || !clause.is_of_acts());
        others.all(|clause| clause.holds(request.intent, true))
            && self.not.as_ref().is_none_or(|not| not.failing(request, true).is_none())
            && (!known || self.acts(request, Some(capability), Way::Grants(self.runs)).is_ok())
    }

    /// Returns whether a clause reads the environment.
    pub(super) fn looks_at_environment(&self) -> bool {
        !self.environment.is_empty() || self.not.as_ref().is_some_and(|not| not.clauses.looks_at_environment())
    }

    /// Returns whether the rule matches by capabilities, risk and tier alone.
    pub(super) fn is_wide(&self) -> bool {
        self.agents.is_any()
            && self.labels.is_any()
            && self.groups.is_any()
            && self.actions.is_any()
            && self.commands.is_any()
            && self.levels.has_class(None)
            && self.environment.is_empty()
            && self.context.is_empty()
            && self.not.is_none()
    }

    // The rule's names were converted to lower case at load.
    pub(super) fn names_environment(&self, name: &str) -> bool {
        let name = name.trim();
        if name.is_ascii() {
            return self.environment.iter().any(|known| known.eq_ignore_ascii_case(name));
        }
        let name = name.to_lowercase();
        self.environment.iter().any(|known| **known == *name)
    }
}

/// The context key that the `classification` clause reads.
pub(super) const CLASSIFICATION_KEY: &str = "dataClassification";
/// The context key that the `environment` clause reads.
pub(super) const ENVIRONMENT_KEY: &str = "environment";

/// A regular expression that a context value has to match.
#[derive(Debug)]
pub(super) struct ContextClause {
    pub(super) key: Box<str>,
    pub(super) pattern: Pattern,
    /// Whether the rule allows. Then every item of a list must match, and a value that cannot be compared does not
    /// match. In a restricting rule one item suffices and a value that cannot be compared matches, so that no other
    /// form of a value evades the rule.
    pub(super) allows: bool,
    /// The fact that the key names.
    pub(super) fact: Option<Fact>,
    /// The globs that the pattern was made of.
    pub(super) globs: Option<Arc<Globs>>,
}

impl PartialEq for ContextClause {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ContextClause {}

impl PartialOrd for ContextClause {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ContextClause {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.key, &self.pattern, self.allows).cmp(&(&other.key, &other.pattern, other.allows))
    }
}

impl Serialize for ContextClause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        [&*self.key, self.pattern.0.as_str()].serialize(serializer)
    }
}

impl ContextClause {
    /// Returns whether the clause is about the acts of a parsed request.
    pub(super) fn is_of_acts(&self) -> bool {
        self.fact.is_some_and(|fact| fact != Fact::Formats)
    }

    pub(super) fn named(&self) -> Named<'_> {
        Named { pattern: &self.pattern, globs: self.globs.as_deref() }
    }

    /// Returns whether the clause holds for what is not an act: the formats of a request, the target of an intent that
    /// its caller built, and the other values of the context.
    fn holds(&self, intent: &Intent, allows: bool) -> bool {
        match (self.fact, &intent.known) {
            (Some(Fact::Formats), Some(facts)) => {
                let mut formats = facts.formats.iter();
                let matches = |format: &String| self.pattern.0.is_match(format);
                if allows { !facts.formats.is_empty() && formats.all(matches) } else { formats.any(matches) }
            }
            (Some(Fact::Tool | Fact::Server | Fact::Formats), None) => false,
            (Some(_), _) => match intent.context.get("target") {
                Some(Value::String(target)) => self.binds_built(target, allows),
                Some(Value::Array(items)) if !items.is_empty() && items.iter().all(Value::is_string) => {
                    let mut targets = items.iter().filter_map(Value::as_str);
                    let binds = |target| self.binds_built(target, allows);
                    if allows { targets.all(binds) } else { targets.any(binds) }
                }
                value => self.holds_for(value, allows),
            },
            (None, _) => self.holds_for(intent.context.get(&*self.key), allows),
        }
    }

    /// Returns whether a target of an intent that its caller built binds like an operand of an unknown kind.
    fn binds_built(&self, target: &str, allows: bool) -> bool {
        let operand = Operand::new(Kind::Any, Role::Named, target.to_owned(), target);
        let way = if allows { Way::Grants(Runs::None) } else { Way::Restricts };
        self.named().binds(&operand, Folders::default(), way) >= if allows { Binding::Inside } else { Binding::Maybe }
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

/// The number as people write it: 50000, whether it was written 50000, 50000.0 or 5e4, and never with an exponent.
fn plain(number: &serde_json::Number) -> String {
    match number.as_f64() {
        Some(value) if number.is_f64() => value.to_string(),
        _ => number.to_string(),
    }
}

/// A regular expression. Equality and order compare its source text.
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

/// The risks, tiers and data classes that a rule applies to, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Levels(u16);

impl Levels {
    pub(super) const ANY: Self = Self(0x7FFF);

    /// Builds the set from two ranges, both ends inclusive, and a list of classes, where an empty list means any.
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

    /// The risk, tier and class of a request.
    pub(super) fn of(request: &PolicyRequest<'_>) -> Self {
        let intent = request.intent;
        // A caller can neither declare its data less sensitive than the request implies, nor evade a rule by another
        // spelling.
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

    /// The same levels restricted to one tier; `None` if the tier is not included.
    pub(super) fn at_tier(self, tier: Tier) -> Option<Self> {
        let others = Tier::ALL.iter().filter(|other| **other != tier).fold(0, |all, other| all | tier_bit(*other));
        self.has_tier(tier).then_some(Self(self.0 & !others))
    }

    /// Returns whether a request of this class is included; `None` stands for an absent or unknown class.
    pub(super) const fn has_class(self, class: Option<Classification>) -> bool {
        self.0 & class_bit(class) != 0
    }

    /// The classes that are named; empty if any class will do.
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
        // No class, or an unknown word.
        None => 1 << NO_CLASS,
    }
}

// The first bit of each kind of level.
const FIRST_TIER: u16 = 4;
const FIRST_CLASS: u16 = 10;
const NO_CLASS: u16 = 14;
const ALL_CLASSES: u16 = 0x7C00;
// A word added to one of these vocabularies needs a bit here too.
const _: () = assert!(RiskLevel::ALL.len() == 4 && Tier::ALL.len() == 6 && Classification::ALL.len() == 4);
