//! What cases came to: for programs by `Serialize`, for people by `Display`.

use std::fmt;

use rulekeep::Decision;
use rulekeep::proof::Digest;
use serde::Serialize;
use serde_json::Value;

/// What a document of cases came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CaseReport {
    /// The name of the policy set.
    pub policies: String,
    /// Its digest.
    pub policy_digest: Digest,
    /// Each case, in the order of the document.
    pub cases: Vec<CaseResult>,
    /// What of the rules the cases exercise.
    pub coverage: Coverage,
    /// Which changes to rules they notice, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutants: Option<MutantReport>,
}

/// What one case came to.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct CaseResult {
    /// The case's name.
    pub name: String,
    /// The line on which it begins in its document.
    pub line: usize,
    /// Whether it came to what was expected.
    pub passed: bool,
    /// What of the case is not as it would be with a governor, though it may hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    /// What was otherwise than expected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<CaseDifference>,
    /// What was decided; none when it could not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Why, in words.
    pub reasoning: String,
    /// Every rule that had a part in it.
    pub rules: Vec<String>,
}

/// A part of a verdict that is otherwise than a case expects.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct CaseDifference {
    /// Which part: `decision`, `granted`, `constraints.maxRecords`, `rules`.
    pub what: String,
    /// What the case expects.
    pub expected: Value,
    /// What was found.
    pub found: Value,
}

/// What of the rules of a set its cases exercise.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Coverage {
    /// Rules that decided some case, of all rules.
    pub rules_percent: f64,
    /// Clauses that were seen both ways, of all clauses.
    pub clauses_percent: f64,
    /// Each rule, in the order of the set.
    pub rules: Vec<RuleCoverage>,
}

/// What of a rule the cases exercise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RuleCoverage {
    /// The rule's id.
    pub rule: String,
    /// The line on which it begins in its document.
    pub line: usize,
    /// How many cases it had a part in deciding.
    pub decided: usize,
    /// Each clause that it has.
    pub clauses: Vec<ClauseCoverage>,
}

/// How often cases saw a clause hold and fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ClauseCoverage {
    /// Its name: `tiers`, `context.target`, `when`.
    pub clause: String,
    /// Cases in which the rule matched.
    pub held: usize,
    /// Cases in which this clause, and no other, kept the rule from matching.
    pub failed: usize,
}

/// Which changes to rules the cases notice.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct MutantReport {
    /// Changes that were caught, of those that are not declared to change nothing.
    pub percent: f64,
    /// Changes that were tried.
    pub total: usize,
    /// Changes by which some case fails that passes without them.
    pub caught: usize,
    /// Changes that no case notices and that the document declares to change nothing.
    pub equivalent: Vec<Survivor>,
    /// Changes that no case notices.
    pub survivors: Vec<Survivor>,
    /// Changes that were not tried, for there are more than are worth the time.
    pub left_out: usize,
    /// Declarations of the document that name no change which every verdict survives.
    pub idle_declarations: Vec<String>,
    /// How many changes are declared to change nothing and do: they are among the survivors.
    pub refuted: usize,
}

/// A change to a rule that no case notices.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Survivor {
    /// The rule's id.
    pub rule: String,
    /// The line on which it begins in its document.
    pub line: usize,
    /// What was changed: `left out`, `without tiers`, `risk.min LOW instead of MEDIUM`.
    pub mutation: String,
    /// What would notice it; or why nothing can, as the document declares.
    pub advice: String,
}

impl CaseReport {
    /// Whether every case came to what was expected.
    pub fn passed(&self) -> bool {
        self.cases.iter().all(|case| case.passed)
    }

    /// The cases that did not.
    pub fn failed(&self) -> impl Iterator<Item = &CaseResult> {
        self.cases.iter().filter(|case| !case.passed)
    }
}

impl RuleCoverage {
    /// Whether some case was decided by it.
    pub const fn is_covered(&self) -> bool {
        self.decided > 0
    }
}

impl ClauseCoverage {
    /// Whether the cases saw it both ways.
    pub const fn is_covered(&self) -> bool {
        self.held > 0 && self.failed > 0
    }
}

/// A share in percent; of nothing all is reached.
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
        // 50 and "50" read alike without their quotes.
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
        write!(f, ", {} declared to change nothing ({:.1} %)", self.equivalent.len(), self.percent)?;
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

/// A value as JSON, and what kind of value it is.
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

/// A value as people write it: texts without quotes where they stand alone.
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
