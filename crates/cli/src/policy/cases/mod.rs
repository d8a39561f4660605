//! Tests for policies: a document of cases, each a request with its expected result, run against a set of rules.
//!
//! The input is [`PolicyCases`] and a [`PolicySet`], the output a [`CaseReport`]: the expected and actual result of
//! each case, the rules and clauses that the cases exercise, and the changes to a rule that no case would notice.
//! Decisions are made by the same call as in a governor. Texts are read only by the given reader, and the same cases
//! and rules always give the same report.
//!
//! | file | subject |
//! |---|---|
//! | `read.rs` | the schema of the document |
//! | `run.rs` | requests and verdicts |
//! | `written.rs` | rules as written in their documents |
//! | `coverage.rs` | coverage of rules and clauses |
//! | `mutants.rs`, `probe.rs` | changes to rules, and requests that distinguish them |
//! | `report.rs` | the report |

mod coverage;
mod mutants;
mod probe;
mod read;
mod report;
mod run;
mod written;

#[cfg(test)]
mod tests;

use std::path::Path;

use rulekeep::agent::AgentId;
use rulekeep::document::{self, File};
use rulekeep::intent::risk_floor;
use rulekeep::policy::{PolicyFormat, Problem, Severity};
use rulekeep::{Error, Intent, PolicySet, RiskLevel};
use serde_json::{Map, Value};

pub(super) use run::CaseRequest;
pub(super) use written::{Written, WrittenRule};

pub use report::{
    CaseDifference, CaseReport, CaseResult, ClauseCoverage, Coverage, MutantReport, RuleCoverage, Survivor,
};

/// Tests of a policy set: requests, and the expected result of each.
///
/// `docs/reference/policy-tests.md` describes the document.
///
/// ```
/// use rulekeep::intent::Parser;
/// use rulekeep::PolicySet;
/// use rulekeep_cli::policy::PolicyCases;
///
/// let policies = PolicySet::from_toml(r#"
///     name = "support"
///     [[rule]]
///     id = "mail"
///     effect = "allow"
///     match = { capabilities = ["email:send"], tiers = { min = "T3" } }
/// "#)?;
/// let cases = PolicyCases::from_toml(r#"
///     [[case]]
///     name = "a trusted agent sends mail"
///     intent = { action = "send_mail", capabilities = ["email:send"] }
///     agent = { tier = "T3" }
///     expect = { decision = "ALLOW", rules = ["mail"] }
///
///     [[case]]
///     name = "a newcomer does not"
///     input = "Send the agenda to ann@example.com"
///     agent = { tier = "T2" }
///     expect = { decision = "DENY" }
/// "#)?;
/// let parser = Parser::new()?;
/// let report = cases.run(&policies, &|agent: &_, text: &str, context: &_| {
///     parser.parse_text(agent, text, context).map(|parsed| parsed.intent)
/// });
/// assert!(report.passed(), "{report}");
/// assert_eq!(report.coverage.rules_percent, 100.0);
/// # Ok::<(), rulekeep::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct PolicyCases {
    cases: Vec<read::Case>,
    equivalents: Vec<read::Equivalent>,
}

impl PolicyCases {
    /// Largest size of a document in bytes.
    pub const MAX_BYTES: usize = PolicySet::MAX_BYTES;

    /// Loads cases from TOML.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] with every problem found.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        Self::parse(text, PolicyFormat::Toml, "toml")
    }

    /// Loads cases from JSON.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] with every problem found.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        Self::parse(text, PolicyFormat::Json, "json")
    }

    /// Loads cases from a text; `name` is the name of the document in messages.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] with every problem found.
    pub fn parse(text: &str, format: PolicyFormat, name: &str) -> Result<Self, Error> {
        let (cases, problems) = document::read(text, format, Self::MAX_BYTES, too_large, read::read);
        let is_error = |problem: &Problem| problem.severity == Severity::Error;
        match cases.flatten() {
            Some(cases) if !problems.iter().any(is_error) => Ok(cases),
            _ => Err(document::refusal("cases", name, problems)),
        }
    }

    /// Loads cases from a file. The extension, `.toml` or `.json`, tells the format.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] if the file cannot be read, has another extension, or contains a document with problems.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = File::read(path.as_ref(), "cases", Self::MAX_BYTES, too_large)?;
        Self::parse(&file.text, file.format, &file.name)
    }

    /// Runs every case against a policy set. `reader` parses cases that are texts.
    pub fn run(&self, policies: &PolicySet, reader: &dyn CaseReader) -> CaseReport {
        run::Run::of(self, policies, reader).into_report(None)
    }

    /// Returns each case by its name, with its request or the reason why its text cannot be read.
    pub(super) fn requests<'a>(
        &'a self,
        policies: &'a PolicySet,
        reader: &'a dyn CaseReader,
    ) -> impl Iterator<Item = (&'a str, Result<CaseRequest, String>)> {
        self.cases.iter().map(|case| (case.name.as_str(), CaseRequest::of(case, policies, reader)))
    }

    /// Like [`PolicyCases::run`], but also changes each rule in small ways, one at a time, and reports the changes
    /// that no case notices.
    pub fn run_with_mutants(&self, policies: &PolicySet, reader: &dyn CaseReader) -> CaseReport {
        let run = run::Run::of(self, policies, reader);
        let mutants = mutants::judge(&run, &self.equivalents);
        run.into_report(Some(mutants))
    }
}

/// A reader that turns the text of a case into an intent, such as a parser.
///
/// Any function of the agent, the text and the case's context can be used.
pub trait CaseReader {
    /// Reads a text.
    ///
    /// # Errors
    ///
    /// Returns the reason why the text cannot be read; the case then fails with it.
    fn read(&self, agent: &AgentId, text: &str, context: &Map<String, Value>) -> Result<Intent, Error>;

    /// Returns the effective risk of an intent. By default this is the intent's risk level, but at least the risk
    /// floor of its action and capabilities.
    fn risk(&self, intent: &Intent) -> RiskLevel {
        intent.risk_level.max(risk_floor(&intent.parsed_action, &intent.required_capabilities))
    }
}

impl<F> CaseReader for F
where
    F: Fn(&AgentId, &str, &Map<String, Value>) -> Result<Intent, Error>,
{
    fn read(&self, agent: &AgentId, text: &str, context: &Map<String, Value>) -> Result<Intent, Error> {
        self(agent, text, context)
    }
}

fn too_large(size: u64) -> String {
    format!("a document of cases has at most {} bytes; this one has {size}", PolicyCases::MAX_BYTES)
}
