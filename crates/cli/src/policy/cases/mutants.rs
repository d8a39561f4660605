//! Mutants: changing each rule in small ways, one at a time, and reporting the changes that make no case fail.
//!
//! A changed set is the document with one rule rewritten, loaded again. That is slow, but covers everything the
//! loader understands. The `rules` that a case expects do not count here: a change must affect the decision.

use rulekeep::policy::PolicyVerdict;
use rulekeep::{PolicySet, RiskLevel, Tier};
use serde_json::{Map, Value, json};

use super::probe;
use super::read::Equivalent;
use super::report::{MutantReport, Survivor, percent};
use super::run::Run;
use super::written::{WrittenClause, WrittenRule};

/// Tests every mutant of a run's rules.
pub(super) fn judge(run: &Run<'_>, declared: &[Equivalent]) -> MutantReport {
    let (needed, report) = (vec![false; declared.len()], MutantReport::default());
    let mut judge = Judge { run, declared, needed, probed: 0, report };
    for (number, rule) in run.tally.written.rules.iter().enumerate() {
        for mutation in mutations(rule) {
            judge.add(number, rule, &mutation);
        }
    }
    judge.finish()
}

struct Judge<'a> {
    run: &'a Run<'a>,
    declared: &'a [Equivalent],
    /// Flags the declarations that a surviving change needs.
    needed: Vec<bool>,
    /// Number of changes for which a distinguishing request was searched.
    probed: usize,
    report: MutantReport,
}

impl Judge<'_> {
    fn add(&mut self, number: usize, rule: &WrittenRule, mutation: &Mutation) {
        if self.report.total >= MAX_MUTANTS {
            self.report.left_out += 1;
            return;
        }
        // A change that cannot be loaded is skipped, such as an empty range or a missing required field.
        let Ok(changed) = self.run.tally.written.with(rule, mutation.changed.as_ref()) else { return };
        self.report.total += 1;
        let fate = fate(self.run, &changed);
        if matches!(fate, Fate::Caught) {
            self.report.caught += 1;
            return;
        }
        let (id, line) = (rule.id.clone(), self.run.tally.line(number));
        let survivor = |advice| Survivor { rule: id, line, mutation: mutation.text.clone(), advice };
        let advice = match fate {
            // A verdict changes, whatever is declared.
            Fate::Seen(advice) => advice,
            Fate::Caught | Fate::Missed => {
                let witness = self.witness(rule, &changed);
                match (self.declaration(rule, mutation), witness) {
                    (Some(reason), None | Some(None)) => {
                        self.report.equivalent.push(survivor(reason));
                        return;
                    }
                    (Some(_), Some(Some(telling))) => {
                        self.report.refuted += 1;
                        format!("it is declared equivalent, but it is not: drop the declaration and {telling}")
                    }
                    (None, Some(Some(telling))) => telling,
                    (None, witness) => probe::advice(mutation, witness.is_some()),
                }
            }
        };
        self.report.survivors.push(survivor(advice));
    }

    /// Returns the declared reason why a change has no effect, if there is one.
    fn declaration(&mut self, rule: &WrittenRule, mutation: &Mutation) -> Option<String> {
        let is_meant = |one: &Equivalent| one.rule == rule.id && one.mutation == mutation.text;
        let place = self.declared.iter().position(is_meant)?;
        *self.needed.get_mut(place)? = true;
        Some(self.declared.get(place)?.reason.clone())
    }

    /// Returns a request that distinguishes a change from the rule, if one was found; the outer `None` if none was
    /// searched.
    #[expect(clippy::option_option, reason = "that nothing was found says something, that nothing was tried does not")]
    fn witness(&mut self, rule: &WrittenRule, changed: &PolicySet) -> Option<Option<String>> {
        self.probed += 1;
        (self.probed <= MAX_PROBED).then(|| probe::witness(self.run, rule, changed))
    }

    fn finish(self) -> MutantReport {
        let Self { declared, needed, mut report, .. } = self;
        report.percent = share(report.caught, report.total.saturating_sub(report.equivalent.len()));
        if report.left_out == 0 {
            let idle = declared.iter().zip(needed).filter(|(_, is_needed)| !is_needed).map(|(one, _)| one);
            report.idle_declarations = idle
                .map(|one| {
                    format!(
                        "a case notices {:?} {}, or no such mutant exists: drop its declaration",
                        one.rule, one.mutation
                    )
                })
                .collect();
        }
        report
    }
}

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
fn share(part: usize, whole: usize) -> f64 {
    percent(part as f64, whole as f64)
}

/// A changed rule.
pub(super) struct Mutation {
    /// The name of the change in reports and declarations.
    pub(super) text: String,
    /// The clause that was changed.
    pub(super) clause: Option<String>,
    /// The changed rule; `None` if the rule is left out.
    pub(super) changed: Option<Map<String, Value>>,
}

/// The result of testing a mutant.
enum Fate {
    /// A case fails that passed before.
    Caught,
    /// A verdict changes in a part that its case does not expect; the advice for the case.
    Seen(String),
    /// No verdict changes.
    Missed,
}

fn fate(run: &Run<'_>, changed: &PolicySet) -> Fate {
    let mut fate = Fate::Missed;
    for held in &run.cases {
        let Some(request) = &held.request else { continue };
        let (before, after) = match (&held.verdict, request.evaluate(changed)) {
            (Some(before), Ok(after)) => (before, after),
            // A verdict where the case expects an error, or the reverse.
            (Some(_), Err(_)) | (None, Ok(_)) if held.result.passed => return Fate::Caught,
            _ => continue,
        };
        if held.result.passed && !held.case.expect.differences(&after).is_empty() {
            return Fate::Caught;
        }
        if let (Fate::Missed, Some(part)) = (&fate, part_that_differs(before, &after)) {
            let name = &held.case.name;
            let failing = if held.result.passed { "" } else { ", once it passes" };
            fate = Fate::Seen(format!(
                "case {name:?} is affected by it but expects nothing about {part}: add it there{failing}"
            ));
        }
    }
    fate
}

/// Returns the part of a verdict that a change affects.
pub(super) fn part_that_differs(before: &PolicyVerdict, after: &PolicyVerdict) -> Option<&'static str> {
    [
        ("decision", before.decision != after.decision),
        ("granted", before.granted != after.granted),
        ("denied", before.denied != after.denied),
        ("constraints", before.constraints != after.constraints),
        ("reviewer", before.reviewer != after.reviewer),
    ]
    .into_iter()
    .find_map(|(part, differs)| differs.then_some(part))
}

/// Returns every mutation of a rule.
pub(super) fn mutations(rule: &WrittenRule) -> Vec<Mutation> {
    let mut mutations = vec![Mutation { text: "left out".to_owned(), clause: None, changed: None }];
    mutations.extend(weakened(rule));
    for clause in rule.clauses() {
        mutations.push(dropped(rule, &clause));
    }
    let (risks, tiers) = (words(RiskLevel::ALL), words(Tier::ALL));
    for (name, all) in [("risk", risks), ("tiers", tiers)] {
        for end in ["min", "max"] {
            mutations.extend(moved(rule, name, end, &all));
        }
    }
    mutations
}

/// Returns the rule with a weaker effect; a deny can only be left out.
fn weakened(rule: &WrittenRule) -> Option<Mutation> {
    if !matches!(rule.effect.as_str(), "escalate" | "degrade") {
        return None;
    }
    let mut changed = rule.fields.clone();
    changed.insert("effect".to_owned(), json!("allow"));
    for field in ["reviewer", "approvals", "expires"] {
        changed.remove(field);
    }
    changed.remove("to");
    Some(Mutation { text: format!("effect allow instead of {}", rule.effect), clause: None, changed: Some(changed) })
}

fn dropped(rule: &WrittenRule, clause: &WrittenClause) -> Mutation {
    let text = format!("without {}", clause.name);
    Mutation { text, clause: Some(clause.name.clone()), changed: Some(rule.without(clause)) }
}

/// Returns the rule with a bound one step higher, and one step lower.
fn moved(rule: &WrittenRule, name: &str, end: &str, all: &[String]) -> Vec<Mutation> {
    let bound = rule.clause(name).and_then(|range| range.get(end)).and_then(Value::as_str);
    let place = bound.and_then(|bound| all.iter().position(|word| word == bound));
    let (Some(bound), Some(place)) = (bound, place) else { return Vec::new() };
    let neighbours = [place.checked_sub(1), place.checked_add(1)].into_iter().flatten();
    let neighbours = neighbours.filter_map(|place| all.get(place));
    let move_to = |word: &String| {
        let mut changed = rule.fields.clone();
        let range = changed.get_mut("match")?.get_mut(name)?.as_object_mut()?;
        range.insert(end.to_owned(), json!(word));
        let text = format!("{name}.{end} {word} instead of {bound}");
        Some(Mutation { text, clause: Some(name.to_owned()), changed: Some(changed) })
    };
    neighbours.filter_map(move_to).collect()
}

pub(super) fn words<T: ToString>(all: &[T]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

/// Upper bound of mutants: each one costs a load of its document.
const MAX_MUTANTS: usize = 5_000;
/// Upper bound of mutants for which a request is searched: nobody reads more proposals.
const MAX_PROBED: usize = 200;
