//! Evaluation of a request: the strongest matching effect decides each required capability, and the capabilities
//! together decide the verdict.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::assumptions::{Approved, Assumptions, ConditionCache, Resolved};
use super::canonical;
use super::clauses::Vocabulary;
use super::index::{Index, RequestNumbers};
use super::pattern::CapabilityPattern;
use super::reasoning::{self, Citations};
use super::request::PolicyRequest;
use super::reviewers::Reviewers;
use super::rule::{Effect, Rule};
use super::verdict::{Approval, Need, PolicyVerdict};
use rulekeep_types::{Capability, Constraints, Decision, Digest, RETRY_OF, Rewrite};

/// The rules of a policy set, indexed for evaluation.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) rules: Vec<Rule>,
    /// For each layer, its vocabulary and that of the layers before it.
    vocabularies: Vec<Vocabulary>,
    groups: Vec<Group>,
    index: Index,
    citations: Citations,
    /// For each layer, the capabilities that it delegates to later layers.
    delegates: Vec<Vec<CapabilityPattern>>,
    /// The people behind the reviewer names.
    reviewers: Reviewers,
    has_limits: bool,
}

/// Rules with the same clauses, effect and other terms, which are evaluated once for all of them.
#[derive(Debug)]
pub(super) struct Group {
    // INVARIANT: never empty, sorted in document order.
    members: Vec<u32>,
    /// The ids of the first members, at most [`MAX_RULES`].
    ids: Arc<[Arc<str>]>,
    /// The members as the reasoning cites them, written once at load: most verdicts rest on a single group.
    pub(super) cited: Box<str>,
    /// The merged constraints of the members.
    constraints: Constraints,
}

/// The result for one required capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// A rule denies it.
    Denied,
    /// A rule escalates it if a part that could not be read is what the rule names; the request may be rewritten first.
    Unread,
    /// A rule escalates it to a reviewer.
    NeedsPerson,
    /// A degrading rule matches it and leaves it out of `to`.
    Withheld,
    /// A rule grants it.
    Granted,
    /// No rule grants it.
    Unmatched,
}

/// A request in text form and in index numbers, and the assumptions under which rules are evaluated.
struct Asked<'a> {
    request: &'a PolicyRequest<'a>,
    numbers: &'a RequestNumbers,
    assumed: &'a Assumptions,
    cache: &'a ConditionCache,
}

/// The standing of each required capability, and the groups that decided it.
#[derive(Debug, PartialEq)]
pub(super) struct Findings {
    standings: Vec<(Standing, usize)>,
    /// The deciding groups of all capabilities in sequence; each standing records where its own groups end.
    groups: Vec<u32>,
    /// The standings that occur, one bit each: they are queried more often than there are capabilities.
    seen: u8,
}

impl Engine {
    pub(super) fn new(
        rules: Vec<Rule>,
        vocabularies: Vec<Vocabulary>,
        delegates: Vec<Vec<CapabilityPattern>>,
        reviewers: Reviewers,
        documents: &[&str],
    ) -> Self {
        let mut groups: Vec<Group> = Vec::new();
        let mut index = Index::default();
        let mut known: HashMap<String, u32> = HashMap::with_capacity(rules.len());
        for (number, rule) in (0..).zip(&rules) {
            let next = u32::try_from(groups.len()).unwrap_or(u32::MAX);
            let place = *known.entry(canonical::twin_key(rule)).or_insert(next);
            if let Some(group) = groups.get_mut(place as usize) {
                group.members.push(number);
                group.constraints.tighten(&rule.constraints);
            } else {
                groups.push(Group {
                    members: vec![number],
                    ids: Arc::default(),
                    cited: Box::default(),
                    constraints: rule.constraints.clone(),
                });
                index.add(place, rule);
            }
        }
        let citations = Citations::of(&rules, documents);
        for group in &mut groups {
            let first = group.first().iter().filter_map(|rule| rules.get(*rule as usize));
            group.ids = first.map(|rule| Arc::clone(&rule.id)).collect();
            group.cited = citations.list(group.first(), group.members.len()).into();
        }
        let has_limits = rules.iter().any(|rule| rule.limit.is_some());
        Self { rules, vocabularies, groups, index, citations, delegates, reviewers, has_limits }
    }

    /// Builds the verdict from the findings.
    pub(super) fn verdict(&self, request: &PolicyRequest<'_>, resolved: Resolved) -> PolicyVerdict {
        let Resolved { findings, limits, charges, approved } = resolved;
        let required = &request.intent.required_capabilities;
        let decision = findings.decision();
        let is_granted = |standing: Standing| match decision {
            Decision::Allow | Decision::Degrade => standing == Standing::Granted,
            Decision::Deny | Decision::Escalate => false,
        };
        let (granted, denied) = findings.part(required, is_granted);
        let constraints = if granted.is_empty() { Constraints::new() } else { self.constraints(&findings) };
        let rules = self.deciding(&findings, decision);
        let needs = if findings.has(Standing::NeedsPerson) { self.needs(&findings) } else { Vec::new() };
        let reasoning = reasoning::write(self, request, &findings, decision, &needs, &limits);
        let (needs, expires) = match decision {
            Decision::Escalate => (needs, self.expires(&findings)),
            _ => (Vec::new(), Duration::ZERO),
        };
        PolicyVerdict {
            decision,
            reasoning,
            granted,
            denied,
            constraints,
            rules_total: rules.total(),
            rules: self.ids(&rules),
            reviewer: needs.first().map(|need| Arc::clone(&need.reviewer)),
            needs,
            expires,
            on_approval: approved.map(|approved| self.approval(&findings, approved, required)),
            limits,
            charges,
            failures: Vec::new(),
            rewrite: (decision == Decision::Deny).then(|| self.rewrite(request, &findings)).flatten(),
        }
    }

    /// The way to write a request so that no rule denies it for what could not be read; `None` if a rule denies what it
    /// says.
    pub(super) fn rewrite(&self, request: &PolicyRequest<'_>, findings: &Findings) -> Option<Rewrite> {
        let facts = request.intent.known.as_ref()?;
        if findings.has(Standing::Unmatched) {
            return None;
        }
        let mut denying = findings.groups_of(|standing| matches!(standing, Standing::Denied | Standing::Unread));
        denying.clone().next()?;
        let is_unread = |group: u32| self.lead(group).is_some_and(|rule| rule.binds_unread(request));
        denying.all(is_unread).then(|| Rewrite::of(facts.shown()))
    }

    fn asks_unread(&self, request: &PolicyRequest<'_>, group: u32) -> bool {
        self.lead(group).is_some_and(|rule| rule.effect == Effect::Escalate && rule.binds_unread(request))
    }

    /// Finds the standing of each required capability.
    pub(super) fn find(&self, request: &PolicyRequest<'_>, assumed: &Assumptions, cache: &ConditionCache) -> Findings {
        let required = &request.intent.required_capabilities;
        let asked = Asked { request, numbers: &self.index.numbers(request), assumed, cache };
        let mut findings = Findings::with_room_for(required.len());
        for capability in required {
            let buckets = self.index.buckets(asked.numbers, capability);
            let standing = self.resolve(&asked, capability, buckets.as_slice(), &mut findings);
            findings.close(standing);
        }
        findings
    }

    /// Finds the standing of one capability and appends its deciding groups to `found`.
    fn resolve(&self, asked: &Asked<'_>, capability: &Capability, buckets: &[u32], found: &mut Findings) -> Standing {
        let start = found.groups.len();
        self.collect(asked, capability, buckets, Effect::Deny, found);
        self.collect_spent(asked, capability, buckets, Effect::Deny, found);
        let standing = if found.groups.len() > start {
            Standing::Denied
        } else {
            self.resolve_undenied(asked, capability, buckets, found)
        };
        sort_tail(&mut found.groups, start);
        standing
    }

    /// Resolves a capability that nothing denies.
    ///
    /// A word that is in no vocabulary up to a rule's own layer is not covered by the rule's wildcards: such a rule
    /// neither grants it nor escalates it, since an approval could not grant it either.
    fn resolve_undenied(
        &self,
        asked: &Asked<'_>,
        capability: &Capability,
        buckets: &[u32],
        found: &mut Findings,
    ) -> Standing {
        let start = found.groups.len();
        let is_of_taxonomy = capability.resource().is_some() && capability.operation().is_some();
        let knows = |group: &u32| {
            is_of_taxonomy
                || self.lead(*group).is_some_and(|rule| {
                    self.vocabularies.get(rule.layer).is_some_and(|vocabulary| vocabulary.knows(capability))
                })
        };
        let may_grant = |group: &u32| self.lead(*group).is_some_and(|rule| self.may_grant(rule, capability));
        if !asked.assumed.is_approved() {
            self.collect(asked, capability, buckets, Effect::Escalate, found);
            self.collect_spent(asked, capability, buckets, Effect::Escalate, found);
            retain_tail(&mut found.groups, start, knows);
            if found.groups.iter().skip(start).any(may_grant) {
                let is_repeated = asked.request.intent.context.contains_key(RETRY_OF);
                let mut asks = found.groups.iter().skip(start).filter(|group| may_grant(group));
                let is_unread = !is_repeated && asks.all(|group| self.asks_unread(asked.request, *group));
                return if is_unread { Standing::Unread } else { Standing::NeedsPerson };
            }
        }
        // The remaining escalations come from later documents that the capability was not delegated to. They narrow
        // what is granted without them, and open nothing.
        let asks_further: Vec<u32> =
            if found.groups.len() > start { found.groups.split_off(start) } else { Vec::new() };
        let standing = self.resolve_grants(asked, capability, buckets, found, &knows);
        if standing == Standing::Granted && !asks_further.is_empty() {
            found.groups.truncate(start);
            found.groups.extend(asks_further);
            return Standing::NeedsPerson;
        }
        standing
    }

    fn resolve_grants(
        &self,
        asked: &Asked<'_>,
        capability: &Capability,
        buckets: &[u32],
        found: &mut Findings,
        knows: &impl Fn(&u32) -> bool,
    ) -> Standing {
        let start = found.groups.len();
        self.collect(asked, capability, buckets, Effect::Degrade, found);
        retain_tail(&mut found.groups, start, knows);
        let leaves = |group: &u32| self.lead(*group).is_some_and(|rule| rule.leaves(capability));
        if found.groups.iter().skip(start).any(|group| !leaves(group)) {
            let (withholds, leaving): (Vec<u32>, Vec<u32>) =
                found.groups.split_off(start).into_iter().partition(|group| !leaves(group));
            // A later document can only withhold what somebody grants. Otherwise it would turn a capability that
            // nobody grants into one that an approval may leave out.
            let may_withhold = |group: &u32| self.lead(*group).is_some_and(|rule| self.may_grant(rule, capability));
            if !withholds.iter().any(may_withhold) {
                found.groups.extend(leaving);
                let standing = self.resolve_allowed(asked, capability, buckets, found, start, knows);
                if standing != Standing::Granted {
                    return standing;
                }
                found.groups.truncate(start);
            }
            found.groups.extend(withholds);
            return Standing::Withheld;
        }
        self.resolve_allowed(asked, capability, buckets, found, start, knows)
    }

    /// Resolves a capability by the allow rules and by the groups already in `found` from `start` on.
    fn resolve_allowed(
        &self,
        asked: &Asked<'_>,
        capability: &Capability,
        buckets: &[u32],
        found: &mut Findings,
        start: usize,
        knows: &impl Fn(&u32) -> bool,
    ) -> Standing {
        self.collect(asked, capability, buckets, Effect::Allow, found);
        retain_tail(&mut found.groups, start, knows);
        // A degrading rule whose context clause cannot be compared constrains but does not grant. After an approval,
        // rules without delegation constrain all the same.
        let grants = |rule: &Rule| {
            asked.assumed.is_approved()
                || self.may_grant(rule, capability)
                    && (rule.effect == Effect::Allow || rule.matches.grants_by_context(asked.request, capability))
        };
        if found.groups.iter().skip(start).any(|group| self.lead(*group).is_some_and(grants)) {
            return Standing::Granted;
        }
        found.groups.truncate(start);
        Standing::Unmatched
    }

    /// Returns whether every earlier layer delegates the capability to the rule's layer. Always true in the base
    /// layer.
    pub(super) fn may_grant(&self, rule: &Rule, capability: &Capability) -> bool {
        self.delegates.iter().take(rule.layer).all(|left| left.iter().any(|pattern| pattern.matches(capability)))
    }

    /// Appends the matching groups of an effect.
    fn collect(
        &self,
        asked: &Asked<'_>,
        capability: &Capability,
        buckets: &[u32],
        effect: Effect,
        found: &mut Findings,
    ) {
        let grants = |group| {
            !asked.assumed.is_spent(group)
                || asked.assumed.is_approved() && self.past_its_limit(group) == Some(Effect::Escalate)
        };
        self.each_match(asked, capability, buckets, effect, found, grants);
    }

    /// The effect of a group after its limit is used up.
    fn past_its_limit(&self, group: u32) -> Option<Effect> {
        self.lead(group)?.limit.as_ref().map(|limit| limit.over.effect())
    }

    /// Appends the groups whose limit is used up and whose effect past the limit is `instead`.
    fn collect_spent(
        &self,
        asked: &Asked<'_>,
        capability: &Capability,
        buckets: &[u32],
        instead: Effect,
        found: &mut Findings,
    ) {
        if asked.assumed.has_spent() {
            let does_instead = |group| asked.assumed.is_spent(group) && self.past_its_limit(group) == Some(instead);
            self.each_match(asked, capability, buckets, Effect::Degrade, found, does_instead);
            self.each_match(asked, capability, buckets, Effect::Allow, found, does_instead);
        }
    }

    fn each_match(
        &self,
        asked: &Asked<'_>,
        capability: &Capability,
        buckets: &[u32],
        effect: Effect,
        found: &mut Findings,
        wanted: impl Fn(u32) -> bool,
    ) {
        for bucket in buckets {
            for entry in self.index.entries(*bucket, effect).iter().filter(|entry| entry.may_match(asked.numbers)) {
                if wanted(entry.group)
                    && (entry.is_settled(asked.numbers) || self.holds(asked, capability, entry.group))
                {
                    found.groups.push(entry.group);
                }
            }
        }
    }

    /// Returns whether all clauses and conditions of a group hold. A condition that failed holds as the assumptions
    /// say.
    fn holds(&self, asked: &Asked<'_>, capability: &Capability, group: u32) -> bool {
        let Some(rule) = self.lead(group) else { return false };
        if rule.matches.failing_besides_levels(asked.request, Some(capability)).is_some() {
            return false;
        }
        if !rule.is_conditional() {
            return true;
        }
        let run = || rule.condition(asked.request).map(|failing| failing.is_none());
        asked.cache.ask(group, run).unwrap_or_else(|| asked.assumed.failed_holds(group, rule.effect))
    }

    fn constraints(&self, findings: &Findings) -> Constraints {
        let mut constraints = Constraints::new();
        for group in findings.groups_of(|standing| standing == Standing::Granted) {
            if let Some(group) = self.groups.get(group as usize) {
                constraints.tighten(&group.constraints);
            }
        }
        constraints
    }

    /// Computes what an approval grants: everything requested except what is still withheld, under the constraints of
    /// every rule that grants it without the escalation. If the approved request would still be denied in part, the
    /// approval grants nothing.
    fn approval(&self, findings: &Findings, approved: Approved, required: &[Capability]) -> Approval {
        let refused = |standing: Standing| matches!(standing, Standing::Withheld | Standing::Denied);
        let is_denied = approved.findings.has(Standing::Denied);
        let (mut granted, mut denied) = (Vec::new(), Vec::new());
        let standings = findings.standings.iter().zip(&approved.findings.standings);
        for (capability, ((now, _), (then, _))) in required.iter().zip(standings) {
            let side = if is_denied || refused(*now) || refused(*then) { &mut denied } else { &mut granted };
            side.push(capability.clone());
        }
        Approval { granted, denied, constraints: self.constraints(&approved.findings), charges: approved.charges }
    }

    /// The reviewers of the deciding escalations in document order, each once, with the highest number of approvals
    /// that a rule asks of them.
    fn needs(&self, findings: &Findings) -> Vec<Need> {
        let mut needs: Vec<Need> = Vec::new();
        // A lookup table, because thousands of rules may each ask a different reviewer.
        let mut places: HashMap<&str, usize> = HashMap::new();
        for rule in self.asking(findings) {
            let Some(reviewer) = rule.asks() else { continue };
            let place = *places.entry(reviewer).or_insert(needs.len());
            match needs.get_mut(place) {
                Some(need) if need.approvals >= rule.approvals => {}
                Some(need) => (need.approvals, need.rule) = (rule.approvals, Arc::clone(&rule.id)),
                None => needs.push(Need {
                    reviewer: Arc::clone(reviewer),
                    approvals: rule.approvals,
                    people: self.reviewers.people(reviewer).cloned().unwrap_or_default(),
                    rule: Arc::clone(&rule.id),
                }),
            }
        }
        needs
    }

    fn expires(&self, findings: &Findings) -> Duration {
        self.asking(findings).map(|rule| rule.expires).min().unwrap_or_default()
    }

    /// The rules that escalate, in document order, one for each group of equal rules.
    fn asking(&self, findings: &Findings) -> impl Iterator<Item = &Rule> {
        // A group's number is that of its first member, which stands for all.
        let mut groups: Vec<u32> = findings.groups_of(|standing| standing == Standing::NeedsPerson).collect();
        groups.sort_unstable();
        groups.dedup();
        groups.into_iter().filter_map(|group| self.lead(group))
    }

    fn deciding(&self, findings: &Findings, decision: Decision) -> FirstRules<'_> {
        self.first_rules(
            findings.groups_of(|standing| decision != Decision::Escalate || standing == Standing::NeedsPerson),
        )
    }

    /// The first rules of some groups in document order, and the total number.
    pub(super) fn first_rules(&self, groups: impl Iterator<Item = u32> + Clone) -> FirstRules<'_> {
        let mut rest = groups.clone();
        let first = rest.next();
        if rest.all(|group| Some(group) == first)
            && let Some(only) = first.and_then(|group| self.groups.get(group as usize))
        {
            // The common case needs no sorting.
            return FirstRules::OfOne(only);
        }
        let mut groups: Vec<u32> = groups.collect();
        groups.sort_unstable();
        groups.dedup();
        let groups = || groups.iter().filter_map(|group| self.groups.get(*group as usize));
        let total = groups().map(|group| group.members.len()).sum();
        // A group is numbered by its first member, so the groups past this many begin after that many rules.
        let mut first: Vec<u32> = groups().take(MAX_RULES).flat_map(Group::first).copied().collect();
        first.sort_unstable();
        first.truncate(MAX_RULES);
        FirstRules::OfSeveral { first, total }
    }

    /// The ids of some rules; those of a single group are precomputed.
    fn ids(&self, rules: &FirstRules<'_>) -> Arc<[Arc<str>]> {
        match rules {
            FirstRules::OfOne(group) => Arc::clone(&group.ids),
            FirstRules::OfSeveral { first, .. } => {
                first.iter().filter_map(|rule| Some(Arc::clone(&self.rule(*rule)?.id))).collect()
            }
        }
    }

    /// The first rule of a group, which stands for all of them.
    pub(super) fn lead(&self, group: u32) -> Option<&Rule> {
        let members = &self.groups.get(group as usize)?.members;
        self.rule(*members.first()?)
    }

    fn rule(&self, number: u32) -> Option<&Rule> {
        self.rules.get(number as usize)
    }

    /// The reviewer that the rule with this id asks; `None` if there is no such rule or it asks nobody.
    pub(super) fn need_of(&self, id: &str) -> Option<Need> {
        let rule = self.rules.iter().find(|rule| *rule.id == *id)?;
        let reviewer = Arc::clone(rule.asks()?);
        let people = self.reviewers.people(&reviewer).cloned().unwrap_or_default();
        Some(Need { reviewer, approvals: rule.approvals, people, rule: Arc::clone(&rule.id) })
    }

    /// SHA-256 over a rule and the people it asks; `None` if no rule has this id.
    pub(super) fn rule_digest(&self, id: &str) -> Option<Digest> {
        let rule = self.rules.iter().find(|rule| *rule.id == *id)?;
        Some(canonical::rule_digest(rule, &self.reviewers))
    }

    pub(super) fn citations(&self) -> &Citations {
        &self.citations
    }

    /// Returns whether any rule has a limit.
    pub(super) const fn has_limits(&self) -> bool {
        self.has_limits
    }

    /// Returns whether a rule is among those that decided.
    pub(super) fn decided(&self, findings: &Findings, rule: usize) -> bool {
        findings
            .groups
            .iter()
            .filter_map(|group| self.groups.get(*group as usize))
            .any(|group| u32::try_from(rule).is_ok_and(|rule| group.members.binary_search(&rule).is_ok()))
    }
}

impl Findings {
    fn with_room_for(capabilities: usize) -> Self {
        let (standings, groups) = (Vec::with_capacity(capabilities), Vec::with_capacity(2 * capabilities));
        Self { standings, groups, seen: 0 }
    }

    /// Records the standing of the next capability; its groups are those added since the last call.
    fn close(&mut self, standing: Standing) {
        self.seen |= 1 << standing as u8;
        self.standings.push((standing, self.groups.len()));
    }

    /// Returns whether some capability has this standing.
    pub(super) const fn has(&self, standing: Standing) -> bool {
        self.seen & 1 << standing as u8 != 0
    }

    pub(super) fn decision(&self) -> Decision {
        if self.has(Standing::Unread) {
            return Decision::Deny;
        }
        let is_refused = self.has(Standing::Denied) || self.has(Standing::Unmatched);
        if self.has(Standing::NeedsPerson) && !is_refused {
            return Decision::Escalate;
        }
        let is_partial = is_refused || self.has(Standing::NeedsPerson) || self.has(Standing::Withheld);
        match (self.has(Standing::Granted), is_partial) {
            (true, false) => Decision::Allow,
            (true, true) => Decision::Degrade,
            // A request without capabilities is granted nothing.
            (false, _) => Decision::Deny,
        }
    }

    /// The groups that decided the capabilities with some standings; a group may occur twice.
    pub(super) fn groups_of(&self, wanted: impl Fn(Standing) -> bool + Clone) -> impl Iterator<Item = u32> + Clone {
        let mut start = 0;
        let groups = self.standings.iter().flat_map(move |(standing, end)| {
            let theirs = self.groups.get(start..*end).filter(|_| wanted(*standing));
            start = *end;
            theirs.unwrap_or_default()
        });
        groups.copied()
    }

    /// The capabilities with a standing, in request order.
    pub(super) fn capabilities<'a>(
        &self,
        required: &'a [Capability],
        wanted: Standing,
    ) -> impl Iterator<Item = &'a Capability> {
        required.iter().zip(&self.standings).filter(move |(_, (standing, _))| *standing == wanted).map(|(one, _)| one)
    }

    fn part(&self, required: &[Capability], is_in: impl Fn(Standing) -> bool) -> (Vec<Capability>, Vec<Capability>) {
        let count = self.standings.iter().filter(|(standing, _)| is_in(*standing)).count();
        let (mut inside, mut outside) = (Vec::with_capacity(count), Vec::with_capacity(required.len() - count));
        for (capability, (standing, _)) in required.iter().zip(&self.standings) {
            let side = if is_in(*standing) { &mut inside } else { &mut outside };
            side.push(capability.clone());
        }
        (inside, outside)
    }
}

impl Group {
    /// The first members in order, at most [`MAX_RULES`].
    fn first(&self) -> &[u32] {
        self.members.get(..MAX_RULES).unwrap_or(&self.members)
    }
}

/// Some rules by their position in the document.
pub(super) enum FirstRules<'a> {
    OfOne(&'a Group),
    OfSeveral {
        /// The first of them in order, at most [`MAX_RULES`].
        first: Vec<u32>,
        total: usize,
    },
}

impl FirstRules<'_> {
    fn total(&self) -> usize {
        match self {
            Self::OfOne(group) => group.members.len(),
            Self::OfSeveral { total, .. } => *total,
        }
    }
}

/// Maximum number of rule ids in a verdict.
pub(super) const MAX_RULES: usize = 8;

/// Sorts the groups from `start` on and removes duplicates: several overlapping globs of one rule lead to it more
/// than once.
fn sort_tail(groups: &mut Vec<u32>, start: usize) {
    if groups.len() <= start + 1 {
        return;
    }
    let mut tail = groups.split_off(start);
    tail.sort_unstable();
    tail.dedup();
    groups.append(&mut tail);
}

fn retain_tail(groups: &mut Vec<u32>, start: usize, keep: impl Fn(&u32) -> bool) {
    if groups.len() <= start {
        return;
    }
    let mut place = 0;
    groups.retain(|group| {
        place += 1;
        place <= start || keep(group)
    });
}
