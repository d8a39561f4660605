//! Tests for policies: a document of cases, each a request and what it must come
//! to, held against a set of rules.
//!
//! It takes in [`PolicyCases`] and a [`PolicySet`], and hands out a [`CaseReport`]:
//! what each case expected and found, which rules and clauses the cases exercise,
//! and which changes to a rule no case would notice. It decides by the same call
//! as a governor does, reads texts only through the reader that it is given, and
//! the same cases and rules give the same report.
//!
//! On the way in: `read` (the schema of the document) over the located tree that
//! policies are read with. On the way out: `run` (requests and verdicts), `written`
//! (rules as their documents write them), `coverage`, `mutants` with `probe` (a
//! request that tells a change from the rule), and `report`, which people read.

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

/// Tests of a policy set: requests, and what each must come to.
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
    name: String,
    cases: Vec<read::Case>,
    equivalents: Vec<read::Equivalent>,
}

impl PolicyCases {
    /// Largest document in bytes.
    pub const MAX_BYTES: usize = PolicySet::MAX_BYTES;

    /// Loads cases from TOML.
    ///
    /// # Errors
    ///
    /// [`Error::Policy`] with every problem found.
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        Self::parse(text, PolicyFormat::Toml, "toml")
    }

    /// Loads cases from JSON.
    ///
    /// # Errors
    ///
    /// [`Error::Policy`] with every problem found.
    pub fn from_json(text: &str) -> Result<Self, Error> {
        Self::parse(text, PolicyFormat::Json, "json")
    }

    /// Loads cases from a text; `name` stands for the document in messages.
    ///
    /// # Errors
    ///
    /// [`Error::Policy`] with every problem found.
    pub fn parse(text: &str, format: PolicyFormat, name: &str) -> Result<Self, Error> {
        let (cases, problems) = document::read(text, format, Self::MAX_BYTES, too_large, read::read);
        let is_error = |problem: &Problem| problem.severity == Severity::Error;
        match cases.flatten() {
            Some(cases) if !problems.iter().any(is_error) => Ok(cases),
            _ => Err(document::refusal("cases", name, problems)),
        }
    }

    /// Loads cases from a file, its format told by the extension: `.toml` or `.json`.
    ///
    /// # Errors
    ///
    /// [`Error::Policy`] when the file cannot be read, has another extension, or
    /// holds a document with problems.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = File::read(path.as_ref(), "cases", Self::MAX_BYTES, too_large)?;
        Self::parse(&file.text, file.format, &file.name)
    }

    /// The cases' name, as their document gives it; empty without one.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many cases there are.
    pub fn len(&self) -> usize {
        self.cases.len()
    }

    /// Whether there is no case.
    pub fn is_empty(&self) -> bool {
        self.cases.is_empty()
    }

    /// Holds every case against a set. A case that is a text is read by `reader`.
    pub fn run(&self, policies: &PolicySet, reader: &dyn CaseReader) -> CaseReport {
        run::Run::of(self, policies, reader).into_report(None)
    }

    /// Each case by its name, as the request that it becomes, or why its text cannot be read.
    pub(super) fn requests<'a>(
        &'a self,
        reader: &'a dyn CaseReader,
    ) -> impl Iterator<Item = (&'a str, Result<CaseRequest, String>)> {
        self.cases.iter().map(|case| (case.name.as_str(), CaseRequest::of(case, reader)))
    }

    /// Like [`PolicyCases::run`], and changes each rule in small ways, one at a
    /// time, to tell which changes no case notices.
    pub fn run_with_mutants(&self, policies: &PolicySet, reader: &dyn CaseReader) -> CaseReport {
        let run = run::Run::of(self, policies, reader);
        let mutants = mutants::judge(&run, &self.equivalents);
        run.into_report(Some(mutants))
    }
}

/// What turns the text of a case into an intent: a parser.
///
/// Any function from the agent, the text and the case's context will do.
pub trait CaseReader {
    /// Reads a text.
    ///
    /// # Errors
    ///
    /// Why it cannot be read; the case fails with it.
    fn read(&self, agent: &AgentId, text: &str, context: &Map<String, Value>) -> Result<Intent, Error>;

    /// The effective risk of an intent; of itself the higher of what the intent
    /// says and the least that its action and capabilities imply.
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
