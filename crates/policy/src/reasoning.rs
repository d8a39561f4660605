//! Writes the reasoning of a verdict: one line that says what was decided, by which rules, and how the request could
//! be granted. Equal requests get equal lines.

use std::cell::LazyCell;
use std::collections::BTreeSet;

use super::evaluate::{Engine, Findings, FirstRules, Standing};
use super::limit::{Decimal, Limit, LimitUse};
use super::naming::DocumentNames;
use super::request::PolicyRequest;
use super::rule::Rule;
use super::verdict::Need;
use rulekeep_types::facts::Act;
use rulekeep_types::{Capability, Decision, Timestamp};

/// The citation of each rule, `"id" at policies.toml:12 (reason)`, written once at load.
#[derive(Debug)]
pub(super) struct Citations {
    rules: Vec<Box<str>>,
    documents: DocumentNames,
}

impl Citations {
    /// Citations of the rules of documents whose sources have these names.
    pub(super) fn of(rules: &[Rule], sources: &[&str]) -> Self {
        let documents = DocumentNames::of(sources);
        Self { rules: rules.iter().map(|rule| citation(rule, &documents)).collect(), documents }
    }

    /// The name of a rule's document; `None` if its line number identifies it.
    pub(super) fn document(&self, rule: &Rule) -> Option<&str> {
        self.documents.get(rule.layer)
    }

    /// The place of a rule.
    pub(super) fn place(&self, rule: &Rule) -> String {
        self.documents.place(rule)
    }

    /// Cites the first rules of a list, and states how many more there are.
    pub(super) fn list(&self, first: &[u32], total: usize) -> String {
        let named = first.iter().filter_map(|rule| self.rules.get(*rule as usize)).map(|citation| &**citation);
        let mut line = String::from(if total == 1 { "rule " } else { "rules " });
        list(&mut line, named, total, MAX_NAMED);
        line
    }
}

fn citation(rule: &Rule, documents: &DocumentNames) -> Box<str> {
    let place = documents.place(rule);
    // A final full stop would stand inside the brackets.
    match rule.reason.as_deref().map(|reason| reason.trim().trim_end_matches('.')) {
        Some(reason) => format!("{:?} at {place} ({reason})", rule.id).into(),
        None => format!("{:?} at {place}", rule.id).into(),
    }
}

/// Writes the reasoning of a decision. `needs` are all the approvals that rules ask for, whatever the decision.
pub(super) fn write(
    engine: &Engine,
    request: &PolicyRequest<'_>,
    findings: &Findings,
    decision: Decision,
    needs: &[Need],
    limits: &[LimitUse],
) -> String {
    let mut writer = Writer { engine, request, findings, needs, line: String::with_capacity(LIKELY_BYTES) };
    writer.line.push_str(match decision {
        Decision::Allow => "Allowed: ",
        Decision::Deny => "Denied: ",
        Decision::Escalate => "Escalated: ",
        Decision::Degrade => "Degraded: ",
    });
    let mut is_first = true;
    for standing in STANDINGS {
        // What is granted but has to wait for the reviewer gets no sentence of its own.
        let is_silent = decision == Decision::Escalate && standing == Standing::Granted;
        if is_silent || !findings.has(standing) {
            continue;
        }
        if !is_first {
            writer.line.push_str("; ");
        }
        is_first = false;
        writer.standing(standing);
    }
    if is_first {
        writer.line.push_str("no capability was asked for");
    }
    writer.line.push('.');
    writer.spent(limits);
    writer.uncounted(limits);
    writer.way_on(decision, limits);
    writer.line
}

struct Writer<'a> {
    engine: &'a Engine,
    request: &'a PolicyRequest<'a>,
    findings: &'a Findings,
    needs: &'a [Need],
    line: String,
}

impl Writer<'_> {
    /// Writes which capabilities have a standing, and by which rules.
    fn standing(&mut self, standing: Standing) {
        match standing {
            Standing::Granted => {
                self.capabilities(standing);
                self.line.push_str(" granted by ");
            }
            Standing::Denied => {
                self.capabilities(standing);
                self.line.push_str(" denied by ");
            }
            Standing::Unread => {
                self.capabilities(standing);
                self.line.push_str(" possibly subject to approval under ");
            }
            Standing::Withheld => {
                self.capabilities(standing);
                self.line.push_str(" withheld by ");
            }
            Standing::NeedsPerson => {
                self.capabilities(standing);
                self.line.push_str(" subject to approval by ");
                self.reviewers();
                self.line.push_str(" under ");
            }
            Standing::Unmatched => {
                self.line.push_str("no rule grants ");
                self.capabilities(standing);
                self.line.push_str(" at tier ");
                self.line.push_str(self.request.trust.tier.as_str());
                self.line.push_str(" and risk ");
                self.line.push_str(self.request.risk.as_str());
                return;
            }
        }
        self.rules(standing);
    }

    /// Writes which limits are used up, and when each has room again.
    fn spent(&mut self, limits: &[LimitUse]) {
        for limit in limits.iter().filter(|limit| limit.is_spent()).take(MAX_NAMED) {
            let rule = self.engine.rules.iter().find(|rule| rule.id == limit.rule);
            let terms = rule.and_then(|rule| rule.limit.as_ref()).map(ToString::to_string).unwrap_or_default();
            let told = match (limit.amount, limit.frees_at) {
                (None, _) => {
                    let why = rule.and_then(|rule| rule.limit.as_ref()?.uncounted(rule, self.request));
                    let why = why.unwrap_or_else(|| "the request names no amount".to_owned());
                    format!(" The limit of rule {:?} ({terms}) cannot be counted: {why}.", limit.rule)
                }
                (Some(amount), None)
                    if amount <= limit.most
                        && rule.and_then(|rule| rule.limit.as_ref()).is_some_and(Limit::is_shared) =>
                {
                    format!(" The organisation has no room left in the limit of rule {:?} ({terms}).", limit.rule)
                }
                (Some(_), None) => {
                    format!(" This is more than the limit of rule {:?} ({terms}) ever allows.", limit.rule)
                }
                (Some(_), Some(at)) => {
                    let left = Decimal(limit.most.saturating_sub(limit.used).max(0));
                    format!(" The limit of rule {:?} ({terms}) has {left} left until {at}.", limit.rule)
                }
            };
            self.line.push_str(&told);
        }
    }

    /// Writes which limits have nobody to count for, and so are absent from the list of uses.
    fn uncounted(&mut self, limits: &[LimitUse]) {
        if !self.engine.has_limits() {
            return;
        }
        let mut told: Vec<&Rule> = Vec::new();
        let listed = LazyCell::new(|| limits.iter().map(|limit| &*limit.rule).collect::<BTreeSet<_>>());
        for group in self.findings.groups_of(|one| matches!(one, Standing::Denied | Standing::NeedsPerson)) {
            let Some(rule) = self.engine.lead(group).filter(|rule| rule.effect.grants()) else { continue };
            if listed.contains(&*rule.id) || told.len() == MAX_NAMED || told.iter().any(|known| known.id == rule.id) {
                continue;
            }
            let Some(limit) = &rule.limit else { continue };
            let Some(why) = limit.uncounted(rule, self.request) else { continue };
            let told_so = format!(" The limit of rule {:?} ({limit}) cannot be counted: {why}.", rule.id);
            self.line.push_str(&told_so);
            told.push(rule);
        }
    }

    /// The time at which the request fits again, if only used-up limits refuse it.
    fn frees_at(&self, limits: &[LimitUse]) -> Option<Timestamp> {
        let is_by_limits = self
            .findings
            .groups_of(|one| matches!(one, Standing::Denied | Standing::Withheld))
            .all(|group| self.engine.lead(group).is_some_and(|rule| rule.effect.grants() && rule.limit.is_some()));
        let spent = limits.iter().filter(|limit| limit.is_spent());
        // The latest of them; `None` if waiting does not help.
        let latest =
            spent.map(|limit| limit.frees_at.filter(|_| limit.amount.is_some_and(|amount| amount <= limit.most)));
        latest.reduce(|one, other| Some(one?.max(other?))).flatten().filter(|_| is_by_limits)
    }

    fn way_on(&mut self, decision: Decision, limits: &[LimitUse]) {
        let has = |standing| self.findings.has(standing);
        let has_denied = [Standing::Denied, Standing::Unread, Standing::Withheld].into_iter().any(has);
        let has_person = has(Standing::NeedsPerson) && !has(Standing::Unread);
        match decision {
            Decision::Allow => {}
            Decision::Escalate => {
                self.line.push_str(" Nothing is granted until ");
                self.reviewers();
                self.line.push_str(if self.needs_several() { " approve." } else { " approves." });
            }
            Decision::Degrade => {
                self.line.push_str(" Continue with ");
                self.capabilities(Standing::Granted);
                self.line.push_str(" only.");
            }
            Decision::Deny if has_person => {}
            Decision::Deny if has_denied && let Some(at) = self.frees_at(limits) => {
                let wait = format!(
                    " Wait until {at}, when the oldest use leaves the window; the policy owner can allow more."
                );
                self.line.push_str(&wait);
            }
            Decision::Deny if has_denied && let Some(rewrite) = self.engine.rewrite(self.request, self.findings) => {
                self.line.push_str(" A part of the request could not be read: ");
                self.line.push_str(&rewrite.how);
                self.line.push('.');
            }
            Decision::Deny if has_denied => {
                self.line.push_str(" Rephrasing the request will not change this; ask the policy owner.");
            }
            Decision::Deny => self.line.push_str(" If the agent needs this, ask the policy owner."),
        }
        if has_person && decision != Decision::Escalate {
            self.line.push_str(" Request ");
            self.capabilities(Standing::NeedsPerson);
            self.line.push_str(" separately to have ");
            self.reviewers();
            self.line.push_str(" decide.");
        }
        if decision != Decision::Allow
            && let Some(tool) = self.unread_tool()
        {
            let advice = format!(" The tool {tool:?} cannot be read: load its definition or match it by `tools`.");
            self.line.push_str(&advice);
        }
    }

    /// A called tool of which it is not known what it does, or to what.
    fn unread_tool(&self) -> Option<&str> {
        let mut acts = self.request.intent.known.as_ref()?.acts.iter();
        let is_unread =
            |act: &&Act| act.commands.is_empty() && act.does.iter().any(|does| does.capability.is_unknown());
        let act = acts.find(|act| act.tool.is_some() && is_unread(act))?;
        act.tool.as_deref()
    }

    fn rules(&mut self, standing: Standing) {
        match self.engine.first_rules(self.findings.groups_of(|one| one == standing)) {
            FirstRules::OfOne(group) => self.line.push_str(&group.cited),
            FirstRules::OfSeveral { first, total } => self.line.push_str(&self.engine.citations().list(&first, total)),
        }
    }

    fn capabilities(&mut self, standing: Standing) {
        let all = || self.findings.capabilities(&self.request.intent.required_capabilities, standing);
        list(&mut self.line, all().map(Capability::as_str), all().count(), MAX_CAPABILITIES);
    }

    fn reviewers(&mut self) {
        let told = |need: &Need| match need.approvals {
            0 | 1 => need.reviewer.to_string(),
            several => format!("{} ({several} people)", need.reviewer),
        };
        let reviewers: Vec<String> = self.needs.iter().take(MAX_NAMED).map(told).collect();
        list(&mut self.line, reviewers.iter().map(String::as_str), self.needs.len(), MAX_NAMED);
    }

    /// Returns whether more than one person has to agree.
    fn needs_several(&self) -> bool {
        self.needs.len() > 1 || self.needs.iter().any(|need| need.approvals > 1)
    }
}

/// Appends `a, b and c`, or `a, b, c and 4 more`.
fn list<'a>(line: &mut String, items: impl Iterator<Item = &'a str>, total: usize, most: usize) {
    let named = total.min(most);
    for (index, item) in items.take(named).enumerate() {
        if index > 0 {
            line.push_str(if index + 1 == total { " and " } else { ", " });
        }
        line.push_str(item);
    }
    if total > named {
        line.push_str(" and ");
        line.push_str(&(total - named).to_string());
        line.push_str(" more");
    }
}

/// The order in which the standings are reported.
const STANDINGS: [Standing; 6] = [
    Standing::Granted,
    Standing::Denied,
    Standing::Unread,
    Standing::Withheld,
    Standing::NeedsPerson,
    Standing::Unmatched,
];
/// Maximum number of rules named for one standing.
const MAX_NAMED: usize = 3;
const MAX_CAPABILITIES: usize = 5;
const LIKELY_BYTES: usize = 256;
