//! The schema: reads a located tree into rules, and reports every departure from
//! it with rule, field and place. `clauses` reads what stands under `match`.

use std::collections::HashMap;
use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use super::alert::{self, LocatedAlert};
use super::clauses::{self, Vocabulary};
use super::conditions::Conditions;
use super::duration;
use super::examples::Examples;
use super::limit::Limit;
use super::nearest::did_you_mean;
use super::pattern::CapabilityPattern;
use super::place::Lines;
use super::reviewers::Reviewers;
use super::rule::{DEFAULT_EXPIRY, Effect, Match, Pattern, Rule};
use super::tree::{Field, Node, Value};
use super::value;
use crate::model::{Constraints, Problem, RiskLevel, Severity, excerpt};

/// A document that follows the schema; what only the whole set shows is for `check`.
#[derive(Default)]
pub(super) struct Document {
    pub(super) name: String,
    pub(super) vocabulary: Vocabulary,
    /// What documents that are laid over this one may grant by themselves.
    pub(super) delegates: Vec<CapabilityPattern>,
    pub(super) reviewers: Reviewers,
    pub(super) rules: Vec<LocatedRule>,
    pub(super) alerts: Vec<LocatedAlert>,
}

/// A rule with the places that checks of the whole set point at.
pub(super) struct LocatedRule {
    pub(super) rule: Rule,
    pub(super) at: usize,
}

impl Document {
    /// Reads what can be read and reports the rest.
    pub(super) fn read(root: Node, report: &mut Report<'_>) -> Self {
        let mut document = Self::default();
        let Some(mut fields) = Fields::of_document(root, DOCUMENT_FIELDS, report) else { return document };
        document.name = fields.required_line("name", MAX_NAME_CHARS, report).unwrap_or_default();
        fields.line("description", MAX_TEXT_CHARS, report);
        if let Some(node) = fields.take("vocabulary") {
            document.vocabulary = Vocabulary::read(node, report);
        }
        if let Some(node) = fields.take("delegates") {
            document.delegates = document.vocabulary.patterns(node, "delegates", report);
        }
        if let Some(node) = fields.take("reviewers") {
            document.reviewers = Reviewers::read(node, report);
        }
        let (singular, plural) = (fields.take("rule"), fields.take("rules"));
        if let (Some(_), Some(second)) = (&singular, &plural) {
            report.error(second.at, "rules", "rules stand under both \"rule\" and \"rules\"; keep one of the two");
        }
        let mut patterns = HashMap::new();
        for list in [singular, plural].into_iter().flatten() {
            for (index, node) in report.list(list, "rule").into_iter().enumerate() {
                if report.is_full() {
                    break;
                }
                report.rule = Some(format!("rule number {}", index + 1));
                let at = node.at;
                let mut reader = RuleReader {
                    vocabulary: &document.vocabulary,
                    reviewers: &document.reviewers,
                    patterns: &mut patterns,
                };
                if let Some(rule) = reader.read(node, report) {
                    document.rules.push(LocatedRule { rule, at });
                }
                report.rule = None;
            }
        }
        if let Some(node) = fields.take("alert") {
            document.alerts = alert::read(node, report);
        }
        document
    }
}

/// Reads rules; equal regular expressions are compiled once.
struct RuleReader<'a> {
    vocabulary: &'a Vocabulary,
    reviewers: &'a Reviewers,
    patterns: &'a mut HashMap<String, Pattern>,
}

impl RuleReader<'_> {
    fn read(&mut self, node: Node, report: &mut Report<'_>) -> Option<Rule> {
        let at = node.at;
        // Known before the fields are looked at, so that their problems name the rule.
        if let Some(id) = well_formed_id(&node) {
            report.rule = Some(format!("rule {id:?}"));
        }
        let mut fields = Fields::of(node, "", RULE_FIELDS, report)?;
        let id = id(&mut fields, "rule", report);
        let effect: Option<Effect> = fields.required_word("effect", Effect::ALL, report);
        let reviewer_at = fields.place("reviewer");
        let reviewer = fields.line("reviewer", MAX_NAME_CHARS, report);
        let (approvals_at, expires_at) = (fields.place("approvals"), fields.place("expires"));
        let approvals = fields.take("approvals").and_then(|node| {
            let number = report.whole(&node, "approvals", MAX_APPROVALS)?;
            u8::try_from(number).ok()
        });
        let expires = fields.take("expires").and_then(|node| duration::read(node, "expires", report));
        let to_at = fields.place("to");
        let to = fields.take("to").map(|node| self.vocabulary.patterns(node, "to", report));
        let reason = fields.line("reason", MAX_TEXT_CHARS, report);
        let mut matches = match fields.take("match") {
            Some(node) => clauses::read(node, self.vocabulary, self.patterns, report),
            None => Match::default(),
        };
        let constraints_at = fields.place("constraints");
        let constraints = fields.take("constraints").map(|node| value::constraints(node, report));

        let severity = fields.word("severity", RiskLevel::ALL, report);
        let limit_node = fields.take("limit");
        let conditions = Conditions::read(&mut fields, report);
        let examples = fields.take("examples").and_then(|node| Examples::read(node, report));

        let effect = effect?;
        let mut must_fit = |field: &'static str, at: Option<usize>, goes_with: &[Effect], is_needed: bool| {
            let fits = goes_with.contains(&effect);
            match at {
                Some(at) if !fits => {
                    let whom = goes_with.iter().map(|effect| effect.as_str()).collect::<Vec<_>>().join(" or ");
                    report.error(at, field, format!("a rule that says {effect} has no {field}; it goes with {whom}"));
                }
                None if fits && is_needed => {
                    report.error(fields.at, field, format!("a rule that says {effect} needs a field {field:?}"));
                }
                _ => {}
            }
        };
        must_fit("reviewer", reviewer_at, &[Effect::Escalate], true);
        must_fit("approvals", approvals_at, &[Effect::Escalate], false);
        must_fit("expires", expires_at, &[Effect::Escalate], false);
        must_fit("to", to_at, &[Effect::Degrade], true);
        must_fit("constraints", constraints_at, &[Effect::Allow, Effect::Degrade], false);

        let approvals = approvals.unwrap_or(1);
        if let Some(wrong) = reviewer.as_deref().and_then(|name| self.reviewers.too_few(name, approvals)) {
            report.error(approvals_at.unwrap_or(at), "approvals", wrong);
        }
        let limit = limit_node.and_then(|node| Limit::read(node, effect, &conditions, report));

        let to = to.unwrap_or_default();
        warn_of_idle_remains(&to, to_at, &matches.capabilities, report);
        for clause in &mut matches.context {
            clause.allows = effect == Effect::Allow;
        }
        let rule = Rule {
            id: id?.into(),
            effect,
            reviewer: reviewer.map(Arc::from),
            approvals,
            expires: expires.unwrap_or(DEFAULT_EXPIRY),
            to,
            reason: reason.map(String::into_boxed_str),
            matches,
            constraints: constraints.unwrap_or_else(Constraints::new),
            conditions,
            limit,
            severity,
            layer: 0,
            line: report.lines.place(at).0,
        };
        if let Some(examples) = examples.filter(|_| !report.has_errors()) {
            examples.check(&rule, report);
        }
        Some(rule)
    }
}

/// The id of a rule or an alert.
pub(super) fn id(fields: &mut Fields, what: &str, report: &mut Report<'_>) -> Option<String> {
    let at = fields.place("id");
    let id = fields.required_line("id", MAX_ID_CHARS, report)?;
    if is_id(&id) {
        return Some(id);
    }
    let expected = "lower-case letters, digits and . _ - that start with a letter or digit";
    report.error(at.unwrap_or(fields.at), "id", format!("{id:?} is no {what} id: expected {expected}"));
    None
}

pub(super) fn well_formed_id(rule: &Node) -> Option<&str> {
    let Value::Table(fields) = &rule.value else { return None };
    match &fields.iter().find(|field| field.name == "id")?.node.value {
        Value::Text(id) if is_id(id) => Some(id),
        _ => None,
    }
}

fn is_id(text: &str) -> bool {
    let is_start = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= MAX_ID_CHARS
        && text.starts_with(is_start)
        && text.chars().all(|c| is_start(c) || matches!(c, '.' | '_' | '-'))
}

fn warn_of_idle_remains(
    to: &[CapabilityPattern],
    to_at: Option<usize>,
    matched: &[CapabilityPattern],
    report: &mut Report<'_>,
) {
    let remains = |left: &CapabilityPattern| matched.is_empty() || matched.iter().any(|pattern| pattern.meets(left));
    if !to.is_empty() && !to.iter().any(remains) {
        let message = "this rule leaves nothing of what it matches: name something that it matches, or say deny";
        report.warn(to_at.unwrap_or_default(), "to", message);
        return;
    }
    for idle in to.iter().filter(|left| !remains(left)) {
        let message = format!("{idle} can never remain, for the rule does not match it");
        report.warn(to_at.unwrap_or_default(), "to", message);
    }
}

/// The fields of a table, taken one by one; what is not in the schema was
/// reported when the table was opened.
pub(super) struct Fields {
    pub(super) at: usize,
    path: &'static str,
    open: Vec<Field>,
    /// The table held nothing at all, refused fields included.
    pub(super) was_empty: bool,
}

impl Fields {
    /// Opens a table whose place in the rule is `path`, for example `match.`.
    pub(super) fn of(node: Node, path: &'static str, known: &[&str], report: &mut Report<'_>) -> Option<Self> {
        let (at, kind) = (node.at, node.kind());
        let Value::Table(all) = node.value else {
            report.error(at, path.trim_end_matches('.'), format!("expected a table, found {kind}"));
            return None;
        };
        let was_empty = all.is_empty();
        let mut fields: Vec<Field> = Vec::with_capacity(all.len());
        for field in all {
            let name = field.name.as_str();
            let path = format!("{path}{}", excerpt(name));
            if !known.contains(&name) {
                let meant = did_you_mean(name, known.iter().copied());
                let meant = if meant.is_empty() { format!("; known are {}", known.join(", ")) } else { meant };
                report.error(field.at, &path, format!("unknown field {:?}{meant}", excerpt(name)));
            } else if fields.iter().any(|earlier| earlier.name == name) {
                report.error(field.at, &path, format!("the field {name:?} stands twice"));
            } else {
                fields.push(field);
            }
        }
        Some(Self { at, path, open: fields, was_empty })
    }

    /// Opens a whole document; which schema an editor holds it against is no part of it.
    pub(super) fn of_document(root: Node, known: &[&str], report: &mut Report<'_>) -> Option<Self> {
        let Node { at, mut value } = root;
        if let Value::Table(all) = &mut value {
            all.retain(|field| !(field.name == "$schema" && matches!(field.node.value, Value::Text(_))));
        }
        Self::of(Node { at, value }, "", known, report)
    }

    pub(super) fn take(&mut self, name: &str) -> Option<Node> {
        let index = self.open.iter().position(|field| field.name == name)?;
        Some(self.open.swap_remove(index).node)
    }

    /// Where the field's value stands, while it has not been taken.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        self.open.iter().find(|field| field.name == name).map(|field| field.node.at)
    }

    /// A line of text for people: not blank, no control characters, bounded.
    pub(super) fn line(&mut self, name: &str, longest: usize, report: &mut Report<'_>) -> Option<String> {
        let node = self.take(name)?;
        report.line(node, &format!("{}{name}", self.path), longest)
    }

    pub(super) fn required_line(&mut self, name: &str, longest: usize, report: &mut Report<'_>) -> Option<String> {
        self.must_have(name, report);
        self.line(name, longest, report)
    }

    /// One of a closed list of words.
    pub(super) fn word<T: FromStr + Display>(&mut self, name: &str, all: &[T], report: &mut Report<'_>) -> Option<T> {
        let node = self.take(name)?;
        report.word(node, &format!("{}{name}", self.path), name, all)
    }

    pub(super) fn required_word<T: FromStr + Display>(
        &mut self,
        name: &str,
        all: &[T],
        report: &mut Report<'_>,
    ) -> Option<T> {
        self.must_have(name, report);
        self.word(name, all, report)
    }

    fn must_have(&self, name: &str, report: &mut Report<'_>) {
        if self.place(name).is_none() {
            report.error(self.at, &format!("{}{name}", self.path), format!("the field {name:?} is missing"));
        }
    }
}

/// The problems found so far, and where in the document the reader is.
pub(super) struct Report<'a> {
    pub(super) lines: Lines<'a>,
    pub(super) problems: Vec<Problem>,
    /// The rule that is being read, as messages name it.
    pub(super) rule: Option<String>,
}

impl<'a> Report<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { lines: Lines::of(text), problems: Vec::new(), rule: None }
    }

    pub(super) fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }

    /// Whether another error would not be told any more.
    fn is_full(&self) -> bool {
        self.problems.iter().filter(|problem| problem.severity == Severity::Error).count() >= MAX_PROBLEMS
    }

    pub(super) fn error(&mut self, at: usize, field: &str, message: impl Display) {
        self.add(at, field, Severity::Error, &message);
    }

    pub(super) fn warn(&mut self, at: usize, field: &str, message: impl Display) {
        self.add(at, field, Severity::Warning, &message);
    }

    /// Errors first in their number: a broken document of many rules is not
    /// worth more messages than a person reads.
    fn add(&mut self, at: usize, field: &str, severity: Severity, message: &dyn Display) {
        if self.problems.iter().filter(|problem| problem.severity == severity).count() >= MAX_PROBLEMS {
            return;
        }
        let (line, column) = self.lines.place(at);
        let context = match (&self.rule, field.is_empty()) {
            (Some(rule), true) => format!(" ({rule})"),
            (Some(rule), false) => format!(" ({rule}, {field})"),
            (None, _) => String::new(),
        };
        self.problems.push(Problem::new(line, column, severity, format!("{message}{context}")));
    }

    /// The items of a list.
    pub(super) fn list(&mut self, node: Node, field: &str) -> Vec<Node> {
        let (at, kind) = (node.at, node.kind());
        let Value::List(items) = node.value else {
            self.error(at, field, format!("expected a list, found {kind}"));
            return Vec::new();
        };
        items
    }

    /// The items of a list in a clause, where an empty one would match nothing.
    pub(super) fn filled_list(&mut self, node: Node, field: &str) -> Vec<Node> {
        let at = node.at;
        let before = self.problems.len();
        let items = self.list(node, field);
        if items.is_empty() && self.problems.len() == before {
            self.error(at, field, "an empty list names nothing; leave the field out to mean anything");
        }
        items
    }

    /// A whole number from 1 to the most.
    pub(super) fn whole(&mut self, node: &Node, field: &str, most: i64) -> Option<i64> {
        match node.value {
            Value::Integer(number) if (1..=most).contains(&number) => Some(number),
            _ => {
                self.error(node.at, field, format!("expected a whole number from 1 to {most}, found {}", node.told()));
                None
            }
        }
    }

    pub(super) fn text(&mut self, node: Node, field: &str) -> Option<String> {
        let (at, kind) = (node.at, node.kind());
        let Value::Text(text) = node.value else {
            self.error(at, field, format!("expected a string, found {kind}"));
            return None;
        };
        Some(text)
    }

    pub(super) fn line(&mut self, node: Node, field: &str, longest: usize) -> Option<String> {
        let at = node.at;
        let text = self.text(node, field)?;
        let wrong = if text.trim().is_empty() {
            "expected a text that is not blank".to_owned()
        } else if text.chars().any(hides_or_breaks) {
            "expected a text without control characters".to_owned()
        } else if text.chars().count() > longest {
            format!("expected at most {longest} characters")
        } else {
            return Some(text);
        };
        self.error(at, field, wrong);
        None
    }

    pub(super) fn word<T: FromStr + Display>(&mut self, node: Node, field: &str, what: &str, all: &[T]) -> Option<T> {
        let at = node.at;
        let text = self.text(node, field)?;
        if let Ok(word) = text.parse() {
            return Some(word);
        }
        let words: Vec<String> = all.iter().map(ToString::to_string).collect();
        // Of words as short as T0 to T5 each is as near as any other.
        let is_telling = words.iter().any(|word| word.len() > SHORT_WORD);
        let meant = if is_telling { did_you_mean(&text, words.iter().map(String::as_str)) } else { String::new() };
        let meant = if meant.is_empty() { format!("; expected one of {}", words.join(", ")) } else { meant };
        self.error(at, field, format!("unknown {what} {:?}{meant}", excerpt(&text)));
        None
    }
}

/// Whether a character could break a line of reasoning, or make it read otherwise
/// than it is written: control characters, line separators, and those that turn
/// the direction of text.
pub(super) fn hides_or_breaks(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{2028}' | '\u{2029}' | '\u{061C}' | '\u{200B}'..='\u{200F}')
        || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
}

const DOCUMENT_FIELDS: &[&str] =
    &["name", "description", "vocabulary", "delegates", "reviewers", "rule", "rules", "alert"];
const RULE_FIELDS: &[&str] = &[
    "id",
    "effect",
    "reviewer",
    "approvals",
    "expires",
    "to",
    "reason",
    "severity",
    "match",
    "let",
    "when",
    "unless",
    "constraints",
    "limit",
    "examples",
];
const SHORT_WORD: usize = 2;
const MAX_ID_CHARS: usize = 128;
const MAX_APPROVALS: i64 = 5;
/// Longest name of a set, and of whom a rule asks.
pub(super) const MAX_NAME_CHARS: usize = 128;
const MAX_TEXT_CHARS: usize = 1_000;
const MAX_PROBLEMS: usize = 100;
