//! The reviewers of a document: under `[reviewers]`, each name that rules ask and the people who may answer for it.
//!
//! A name without a list is itself the only person. A later document may remove people from a list and never add one,
//! so that layering widens nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use unicode_normalization::UnicodeNormalization as _;

use super::identifier::MAX_NAME_CHARS;
use super::rule::Rule;
use rulekeep_types::document::{Node, Report, Value, did_you_mean};
use rulekeep_types::{Problem, Severity, excerpt};

/// The people behind each name that has a list.
#[derive(Debug, Default)]
pub(super) struct Reviewers(BTreeMap<Arc<str>, List>);

/// The people behind one name.
#[derive(Debug)]
struct List {
    // INVARIANT: never empty, and no two entries are the same person.
    people: Arc<[Arc<str>]>,
    /// Line of the list in its document.
    line: usize,
}

impl Reviewers {
    /// Reads a document's `reviewers`.
    pub(super) fn read(node: Node, report: &mut Report<'_>) -> Self {
        let mut lists = BTreeMap::new();
        for field in report.table(node, "reviewers", "a table of lists of people") {
            let path = format!("reviewers.{}", excerpt(&field.name));
            let name = Node { at: field.at, value: Value::Text(field.name) };
            let Some(name) = report.line(name, &path, MAX_NAME_CHARS) else { continue };
            let Some(people) = people(field.node, &path, report) else { continue };
            let line = report.lines.place(field.at).0;
            if lists.insert(Arc::from(name), List { people, line }).is_some() {
                report.error(field.at, &path, "this list occurs twice");
            }
        }
        Self(lists)
    }

    /// The people who may answer for a name; `None` if it has no list.
    pub(super) fn people(&self, name: &str) -> Option<&Arc<[Arc<str>]>> {
        self.0.get(name).map(|list| &list.people)
    }

    /// The number of people who may answer for a name.
    fn count(&self, name: &str) -> usize {
        // A name without a list is the only person.
        self.people(name).map_or(1, |people| people.len())
    }

    /// Merges a later document's lists as far as they narrow. If a name has a list already, or an earlier rule asks
    /// it, only people who could answer before remain.
    ///
    /// # Errors
    ///
    /// A problem for each name that has nobody left.
    pub(super) fn narrow(&mut self, later: Self, earlier: &[Rule]) -> Result<(), Vec<Problem>> {
        let asked: BTreeSet<&str> = earlier.iter().filter_map(Rule::asks).map(|name| &**name).collect();
        let mut problems = Vec::new();
        for (name, list) in later.0 {
            let before = match self.people(&name) {
                Some(people) => Arc::clone(people),
                None if asked.contains(&*name) => Arc::from([Arc::clone(&name)]),
                None => {
                    self.0.insert(name, list);
                    continue;
                }
            };
            let kept: Arc<[Arc<str>]> = before.iter().filter(|one| is_among(one, &list.people)).cloned().collect();
            if kept.is_empty() {
                let message = format!(
                    "no reviewer is left for {name:?}: a later document can only remove some of {}, not all",
                    before.join(", ")
                );
                problems.push(Problem::new(list.line, 1, Severity::Error, message));
            }
            self.0.insert(name, List { people: kept, line: list.line });
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// The first rule that asks for more approvals than its list has people.
    pub(super) fn unanswerable<'a>(&self, rules: &'a [Rule]) -> Option<(&'a Rule, String)> {
        rules.iter().find_map(|rule| Some((rule, self.too_few(rule.reviewer.as_deref()?, rule.approvals)?)))
    }

    /// Explains why the list of a name cannot give so many approvals; `None` if it can.
    pub(super) fn too_few(&self, name: &str, approvals: u8) -> Option<String> {
        let people = self.people(name)?;
        (people.len() < usize::from(approvals)).then(|| {
            format!(
                "{approvals} approvals are required of {name:?}, but its list under reviewers has only {}",
                people.len()
            )
        })
    }

    /// Warnings about lists and rules that probably do not mean what was intended.
    pub(super) fn warnings(&self, rules: &[&Rule]) -> Vec<Problem> {
        let warning = |line: usize, message: String| Problem::new(line, 1, Severity::Warning, message);
        let asked: BTreeSet<&str> = rules.iter().filter_map(|rule| rule.asks()).map(|name| &**name).collect();
        let unlisted = || asked.iter().copied().filter(|name| self.people(name).is_none());
        let idle = self.0.iter().filter(|(name, _)| !asked.contains(&***name)).map(|(name, list)| {
            let meant = did_you_mean(name, unlisted());
            warning(list.line, format!("no rule asks {:?}, which has a list under reviewers{meant}", excerpt(name)))
        });
        let alone = rules.iter().filter_map(|rule| {
            let name = rule.reviewer.as_deref()?;
            (self.people(name).is_none() && self.count(name) < usize::from(rule.approvals)).then(|| {
                let (id, approvals) = (&rule.id, rule.approvals);
                let message = format!(
                    "rule {id:?} asks for {approvals} approvals, and without a list under reviewers {name:?} is one person"
                );
                warning(rule.line, message)
            })
        });
        idle.chain(alone).collect()
    }

    /// Each name and its people, sorted, for the canonical form.
    pub(super) fn canonical(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        self.0.iter().map(|(name, list)| (&**name, list.people.iter().map(|one| &**one).collect())).collect()
    }
}

/// Reads the people of one list.
fn people(node: Node, path: &str, report: &mut Report<'_>) -> Option<Arc<[Arc<str>]>> {
    let at = node.at;
    let before = report.problems.len();
    let items = report.list(node, path);
    if report.problems.len() > before {
        return None;
    }
    if items.is_empty() || items.len() > MAX_PEOPLE {
        report.error(at, path, format!("expected from 1 to {MAX_PEOPLE} people, found {}", items.len()));
        return None;
    }
    let mut people: Vec<Arc<str>> = Vec::with_capacity(items.len());
    for item in items {
        let at = item.at;
        let Some(name) = report.line(item, path, MAX_PERSON_CHARS) else { continue };
        if name.trim() != name {
            report.error(at, path, format!("{name:?} has spaces around it"));
        } else if let Some(known) = people.iter().find(|known| is_same(known, &name)) {
            report.error(at, path, format!("{name:?} is the same person as {known:?}, which is listed already"));
        } else {
            people.push(name.into());
        }
    }
    (report.problems.len() == before).then(|| people.into())
}

fn is_among(person: &str, people: &[Arc<str>]) -> bool {
    people.iter().any(|other| is_same(person, other))
}

/// Returns whether two names are the same person's: compatibility forms and case are ignored.
fn is_same(one: &str, other: &str) -> bool {
    folded(one) == folded(other)
}

/// A name with compatibility forms and case folded.
fn folded(name: &str) -> String {
    name.nfkc().flat_map(char::to_lowercase).nfkc().collect()
}

const MAX_PEOPLE: usize = 100;
const MAX_PERSON_CHARS: usize = 256;
