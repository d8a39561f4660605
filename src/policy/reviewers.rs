//! Who may answer an escalation: the `[reviewers]` of a document, each a name that
//! rules ask and the people behind it.
//!
//! A name without a list is itself the only person. A later document may leave people
//! out of a list and never add one, so that laying it over widens nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use unicode_normalization::UnicodeNormalization as _;

use super::identifier::MAX_NAME_CHARS;
use super::rule::Rule;
use crate::document::{Node, Report, Value, did_you_mean};
use crate::model::{Problem, Severity, excerpt};

/// The people behind each name that has a list.
#[derive(Debug, Default)]
pub(super) struct Reviewers(BTreeMap<Arc<str>, List>);

/// The people behind one name.
#[derive(Debug)]
struct List {
    // INVARIANT: never empty, and no two are the same person.
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
                report.error(field.at, &path, "this list stands twice");
            }
        }
        Self(lists)
    }

    /// The people who may answer for a name; none where it has no list.
    pub(super) fn people(&self, name: &str) -> Option<&Arc<[Arc<str>]>> {
        self.0.get(name).map(|list| &list.people)
    }

    /// How many may answer for a name.
    fn count(&self, name: &str) -> usize {
        // A name without a list is the only person.
        self.people(name).map_or(1, |people| people.len())
    }

    /// Takes over a later document's lists as far as they narrow: of a name that has a list, or that an earlier rule
    /// asks, only those stay who could answer before.
    ///
    /// # Errors
    ///
    /// A problem for each name that nobody is left for.
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
                    "nobody is left who may answer for {name:?}: a later document may only leave out some of {}",
                    before.join(", ")
                );
                problems.push(Problem::new(list.line, 1, Severity::Error, message));
            }
            self.0.insert(name, List { people: kept, line: list.line });
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// The first rule that asks for more approvals than the people of its list can give.
    pub(super) fn unanswerable<'a>(&self, rules: &'a [Rule]) -> Option<(&'a Rule, String)> {
        rules.iter().find_map(|rule| Some((rule, self.too_few(rule.reviewer.as_deref()?, rule.approvals)?)))
    }

    /// Why the list of a name cannot give so many approvals, if it cannot.
    pub(super) fn too_few(&self, name: &str, approvals: u8) -> Option<String> {
        let people = self.people(name)?;
        (people.len() < usize::from(approvals)).then(|| {
            format!(
                "{approvals} approvals cannot be had of {name:?}, whose list under reviewers names {}",
                people.len()
            )
        })
    }

    /// What of lists and rules together probably does not say what was meant.
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

    /// Each name and its people, sorted: what counts of them.
    pub(super) fn canonical(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        self.0.iter().map(|(name, list)| (&**name, list.people.iter().map(|one| &**one).collect())).collect()
    }
}

/// The people of one list.
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
            report.error(at, path, format!("{name:?} has blanks around it"));
        } else if let Some(known) = people.iter().find(|known| is_same(known, &name)) {
            report.error(at, path, format!("{name:?} is the same person as {known:?}, which stands there already"));
        } else {
            people.push(name.into());
        }
    }
    (report.problems.len() == before).then(|| people.into())
}

fn is_among(person: &str, people: &[Arc<str>]) -> bool {
    people.iter().any(|other| is_same(person, other))
}

/// Whether two names are one person's: compatible forms of letters and their case do not count.
fn is_same(one: &str, other: &str) -> bool {
    folded(one) == folded(other)
}

/// A name without its compatible forms and its case.
fn folded(name: &str) -> String {
    name.nfkc().flat_map(char::to_lowercase).nfkc().collect()
}

const MAX_PEOPLE: usize = 100;
const MAX_PERSON_CHARS: usize = 256;
