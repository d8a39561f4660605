//! `rulekeep policy`: tests policy files by cases, checks them, explains a decision, and prints the JSON Schemas.
//!
//! `cases` holds the tests: [`PolicyCases`] run against a set, with coverage and mutants. `explain` explains a decision.

mod cases;
mod explain;

use std::error::Error;
use std::fmt::Display;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Subcommand};
use rulekeep::PolicySet;
use rulekeep::document::File;
use rulekeep::intent::Parser;
use rulekeep::policy::Severity;

pub use cases::{
    CaseDifference, CaseReader, CaseReport, CaseResult, ClauseCoverage, Coverage, MutantReport, PolicyCases,
    RuleCoverage, Survivor,
};

/// A verb of `rulekeep policy`.
#[derive(Subcommand)]
pub enum Command {
    /// Tests a policy by a document of cases
    Test(TestArguments),
    /// Lists every problem of a policy document as `file:line:column`
    Check {
        /// The policy document: .toml or .json
        policy: PathBuf,
    },
    /// Explains what would be decided on an intent, and why each rule matches or does not
    Explain(explain::Arguments),
    /// Prints the JSON Schema of policy documents
    Schema {
        /// Print the schema of documents of cases instead
        #[arg(long)]
        cases: bool,
    },
}

/// The arguments of `rulekeep policy test`.
#[derive(Args)]
pub struct TestArguments {
    /// The policy document: .toml or .json
    policy: PathBuf,
    /// The document of cases: .toml or .json
    cases: PathBuf,
    /// Change each rule in small ways, and list the changes that no case notices
    #[arg(long)]
    mutants: bool,
    /// Fail below this coverage in percent, of rules, clauses and mutants alike
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    min_coverage: Option<f64>,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
}

/// Runs a verb. The exit code is 0 when all is well, and 1 for failed cases, too little coverage or errors.
pub fn main(command: Command) -> ExitCode {
    let result = match command {
        Command::Test(arguments) => test(&arguments),
        Command::Check { policy } => check(&policy),
        Command::Explain(arguments) => explain::explain(arguments),
        Command::Schema { cases } => print(if cases { CASES_SCHEMA } else { POLICY_SCHEMA }).map(|()| true),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if is_broken_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn test(arguments: &TestArguments) -> Result<bool, Box<dyn Error>> {
    let (policies, cases) = (PolicySet::from_file(&arguments.policy)?, PolicyCases::from_file(&arguments.cases)?);
    let parser = Parser::new()?;
    let read = |agent: &_, text: &str, context: &_| parser.parse_text(agent, text, context).map(|parsed| parsed.intent);
    let report = if arguments.mutants { cases.run_with_mutants(&policies, &read) } else { cases.run(&policies, &read) };
    if arguments.json {
        print(format_args!("{}\n", serde_json::to_string_pretty(&report)?))?;
    } else {
        print(format_args!("{report}\n"))?;
    }
    let is_refuted = report.mutants.as_ref().is_some_and(|mutants| mutants.refuted > 0);
    Ok(report.passed() && !is_refuted && is_enough(&report, arguments.min_coverage))
}

/// Whether coverage reaches the minimum; a surviving mutant counts too.
fn is_enough(report: &CaseReport, least: Option<f64>) -> bool {
    let Some(least) = least else { return true };
    let mutants = report.mutants.as_ref().map(|mutants| mutants.percent);
    let reached = [
        ("rules", Some(report.coverage.rules_percent)),
        ("clauses", Some(report.coverage.clauses_percent)),
        ("mutants", mutants),
    ];
    let short =
        reached.into_iter().filter_map(|(what, percent)| Some((what, percent.filter(|reached| *reached < least)?)));
    let short: Vec<String> = short.map(|(what, percent)| format!("{what} {percent:.1} %")).collect();
    if !short.is_empty() {
        eprintln!("coverage is below {least} %: {}", short.join(", "));
    }
    short.is_empty()
}

fn check(path: &Path) -> Result<bool, Box<dyn Error>> {
    let too_large = |size| format!("a policy document has at most {} bytes; this one has {size}", PolicySet::MAX_BYTES);
    let File { name, format, text } = File::read(path, "policy", PolicySet::MAX_BYTES, too_large)?;
    let (file, problems) = (path.display(), PolicySet::validate(&text, format));
    for problem in &problems {
        let (line, column) = (problem.line, problem.column);
        print(format_args!("{file}:{line}:{column}: {}: {}\n", problem.severity, problem.message))?;
    }
    let is_good = !problems.iter().any(|problem| problem.severity == Severity::Error);
    if is_good {
        let policies = PolicySet::parse(&text, format, &name)?;
        print(format_args!("{file}: {:?}, {} rules, {}\n", policies.name(), policies.len(), policies.digest()))?;
    }
    Ok(is_good)
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| "expected a number from 0 to 100".to_owned())
}

/// Prints to standard output; unlike `println!`, it does not panic when the reader has gone.
fn print(text: impl Display) -> Result<(), Box<dyn Error>> {
    Ok(write!(io::stdout(), "{text}")?)
}

fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

const POLICY_SCHEMA: &str = include_str!("../../../../docs/policy.schema.json");
const CASES_SCHEMA: &str = include_str!("../../../../docs/policy-cases.schema.json");
