//! The report of a run, for programs with `Serialize`, for people with `Display`.

use std::fmt;

use rulekeep::Decision;
use rulekeep::proof::Digest;
use serde::Serialize;
use serde_json::Value;

/// The report of running a document of cases.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CaseReport {
    /// The name of the policy set.
    pub policies: String,
    /// The digest of the policy set.
    pub policy_digest: Digest,
    /// The result of each case, in the order of the document.
    pub cases: Vec<CaseResult>,
    /// The coverage of the rules.
    pub coverage: Coverage,
    /// The changes to rules that the cases notice; `None` unless requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutants: Option<MutantReport>,
}

/// The result of one case.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CaseResult {
    /// The case's name.
    pub name: String,
    /// The line in the document on which the case begins.
    pub line: usize,
    /// The result was as expected.
    pub passed: bool,
    /// A difference from a governor's behavior that does not make the case fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// The differences from the expected result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<CaseDifference>,
    /// The decision; `None` if none could be made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The reasoning of the decision.
    pub reasoning: String,
    /// Every rule that took part in the decision.
    pub rules: Vec<String>,
}

/// A part of a verdict that differs from what a case expects.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CaseDifference {
    /// The part: for example `decision`, `granted`, `constraints.maxRecords` or `rules`.
    pub what: String,
    /// The value that the case expects.
    pub expected: Value,
    /// The value that was found.
    pub found: Value,
}

/// The coverage of a policy set's rules.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Coverage {
    /// Percentage of rules that decided some case.
    pub rules_percent: f64,
    /// Percentage of clauses that were seen to hold and to fail.
    pub clauses_percent: f64,
    /// The coverage of each rule, in the order of the set.
    pub rules: Vec<RuleCoverage>,
}

/// The coverage of a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RuleCoverage {
    /// The rule's ID.
    pub rule: String,
    /// The line in its document on which the rule begins.
    pub line: usize,
    /// Number of cases in whose decision the rule took part.
    pub decided: usize,
    /// The coverage of each clause of the rule.
    pub clauses: Vec<ClauseCoverage>,
}

/// Number of cases that saw a clause hold and fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClauseCoverage {
    /// The clause's name, for example `tiers`, `context.target` or `when`.
    pub clause: String,
    /// Number of cases in which the rule matched.
    pub held: usize,
    /// Number of cases in which only this clause kept the rule from matching.
    pub failed: usize,
}

/// The changes to rules that the cases notice.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MutantReport {
    /// Percentage of changes that were caught, not counting those declared to have no effect.
    pub percent: f64,
    /// Number of changes that were tried.
    pub total: usize,
    /// Number of changes that make a passing case fail.
    pub caught: usize,
    /// Changes that no case notices and that the document declares to have no effect.
    pub equivalent: Vec<Survivor>,
    /// Changes that no case notices.
    pub survivors: Vec<Survivor>,
    /// Number of changes that were not tried, because there are too many.
    pub left_out: usize,
    /// Declarations of the document that name no surviving change.
    pub idle_declarations: Vec<String>,
    /// Number of changes that are declared to have no effect but do; they are among the survivors.
    pub refuted: usize,
}

/// A change to a rule that no case notices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Survivor {
    /// The rule's ID.
    pub rule: String,
    /// The line in its document on which the rule begins.
    pub line: usize,
    /// The change, for example `left out`, `without tiers` or `risk.min LOW instead of MEDIUM`.
    pub mutation: String,
    /// A case that would notice the change; or the declared reason why nothing can.
    pub advice: String,
}

impl CaseReport {
    /// Returns whether every case passed.
    pub fn passed(&self) -> bool {
        self.cases.iter().all(|case| case.passed)
    }

    /// Returns the cases that failed.
    pub fn failed(&self) -> impl Iterator<Item = &CaseResult> {
        self.cases.iter().filter(|case| !case.passed)
    }
}

impl RuleCoverage {
    /// Returns whether the rule decided some case.
    pub const fn is_covered(&self) -> bool {
        self.decided > 0
    }
}

impl ClauseCoverage {
    /// Returns whether the cases saw the clause hold and fail.
    pub const fn is_covered(&self) -> bool {
        self.held > 0 && self.failed > 0
    }
}

/// A share in percent; 100 if there is nothing to share.
pub(super) fn percent(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 100.0 } else { 100.0 * part / whole }
}

impl fmt::Display for CaseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for case in self.failed() {
            writeln!(f, "{case}")?;
        }
        for case in &self.cases {
            if let Some(warning) = &case.warning {
                writeln!(f, "warning (line {}): {:?}: {warning}", case.line, case.name)?;
            }
        }
        let failed = self.failed().count();
        writeln!(
            f,
            "{}: {} cases, {} passed, {failed} failed",
            self.policies,
            self.cases.len(),
            self.cases.len() - failed
        )?;
        write!(f, "{}", self.coverage)?;
        match &self.mutants {
            Some(mutants) => write!(f, "\n{mutants}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for CaseResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (line {}): {:?}", if self.passed { "passed" } else { "FAILED" }, self.line, self.name)?;
        for difference in &self.differences {
            write!(f, "\n  {difference}")?;
        }
        if !self.passed && !self.reasoning.is_empty() {
            write!(f, "\n  {}", self.reasoning)?;
        }
        Ok(())
    }
}

impl fmt::Display for CaseDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (expected, found) = (Plain(&self.expected).to_string(), Plain(&self.found).to_string());
        if expected != found {
            return write!(f, "{}: expected {expected}, found {found}", self.what);
        }
        // Without quotes, 50 and "50" look the same.
        write!(f, "{}: expected {}, found {}", self.what, Typed(&self.expected), Typed(&self.found))
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rules {:.1} %, clauses {:.1} %", self.rules_percent, self.clauses_percent)?;
        for rule in &self.rules {
            if !rule.is_covered() {
                write!(f, "\n  line {}: no case is decided by {:?}", rule.line, rule.rule)?;
            }
            for clause in rule.clauses.iter().filter(|clause| !clause.is_covered()) {
                let (id, name) = (&rule.rule, &clause.clause);
                match (clause.held, clause.failed) {
                    (0, 0) => write!(
                        f,
                        "\n  line {}: {id:?}, {name}: no case sees it hold, and none sees it fail",
                        rule.line
                    )?,
                    (0, _) => write!(f, "\n  line {}: {id:?}, {name}: no case sees it hold", rule.line)?,
                    _ => write!(f, "\n  line {}: {id:?}, {name}: no case in which it alone fails", rule.line)?,
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for MutantReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let survivors = self.survivors.len();
        write!(f, "mutants: {} tried, {} caught, {survivors} survived", self.total, self.caught)?;
        write!(f, ", {} declared equivalent ({:.1} %)", self.equivalent.len(), self.percent)?;
        if self.left_out > 0 {
            write!(f, "; {} more were not tried", self.left_out)?;
        }
        for survivor in &self.survivors {
            write!(f, "\n  line {}: {:?} {}: {}", survivor.line, survivor.rule, survivor.mutation, survivor.advice)?;
        }
        for idle in &self.idle_declarations {
            write!(f, "\n  {idle}")?;
        }
        Ok(())
    }
}

/// A value as JSON, with its type.
struct Typed<'a>(&'a Value);

impl fmt::Display for Typed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.0 {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "a table",
        };
        write!(f, "{} ({kind})", self.0)
    }
}

/// A value for people: single texts without quotes.
struct Plain<'a>(&'a Value);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Value::Null => f.write_str("nothing"),
            Value::String(text) => f.write_str(text),
            Value::Array(items) if items.is_empty() => f.write_str("none"),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let comma = if index == 0 { "" } else { ", " };
                    write!(f, "{comma}{}", Plain(item))?;
                }
                Ok(())
            }
            other => write!(f, "{other}"),
        }
    }
}
