//! `rulekeep policy`: work on policy documents, and on the decisions they make on requests and on a log.
//!
//! | file | subject |
//! |---|---|
//! | `cases/` | `test`: cases run against a set, with coverage and mutants |
//! | `explain.rs`, `asked.rs` | `explain`: the parse of a request in any form, and the decision rule by rule |
//! | `compare.rs` | `diff`: two sets, rule by rule and decision by decision |
//! | `replay.rs` | `replay` and `shadow`: a candidate on past decisions, and beside the set in force |
//! | `tune.rs` | `rulekeep tune`: the questions that were asked, and what would end them |
//! | `suggest/` | `rulekeep tune --whole`: the smallest set for the habits in a log |
//! | `import/` | `import`: the permissions of agents' hosts |
//! | `format.rs` | `fmt`: the layout of a document |
//! | `past.rs` | the past decisions of a store, for commands that read a log |
//!
//! Every command exits with 0 if all is well, with 1 for a finding, and with 2 for wrong use: invalid arguments,
//! files and stores that cannot be read, documents that do not load.

mod asked;
mod cases;
mod compare;
mod explain;
mod format;
mod import;
mod past;
mod replay;
mod suggest;
mod tune;

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
use serde::Serialize;
use serde_json::json;

use crate::client::Client;
use crate::home::Home;

pub use cases::{
    CaseDifference, CaseReader, CaseReport, CaseResult, ClauseCoverage, Coverage, MutantReport, PolicyCases,
    RuleCoverage, Survivor,
};

pub use replay::{ShadowArguments, run_shadow};
pub use tune::{Tuning, run as tune};

/// A subcommand of `rulekeep policy`.
#[derive(Subcommand)]
pub enum Command {
    /// Tests a policy with a document of cases
    #[command(after_help = "Examples:\n  rulekeep policy test policy.toml policy.cases.toml")]
    Test(TestArguments),
    /// Lists every problem of a policy document as `file:line:column`
    #[command(after_help = "Examples:\n  rulekeep policy check policy.toml")]
    Check(CheckArguments),
    /// Formats policy documents, keeping comments
    #[command(after_help = "Examples:\n  rulekeep policy fmt policy.toml")]
    Fmt(format::Arguments),
    /// Explains how a request is parsed, what would be decided on it, and why each rule matches or not
    #[command(
        after_help = "Examples:\n  rulekeep policy explain --input \"Delete all customer records\"\n  rulekeep policy explain --tool '{\"tool\": \"Bash\", \"arguments\": {\"command\": \"ls\"}}' --context environment=production"
    )]
    Explain(Box<explain::Arguments>),
    /// Shows the differences between two policy sets: rules, and decisions on cases or on a log
    #[command(after_help = "Examples:\n  rulekeep policy diff policy.toml policy.toml --cases policy.cases.toml")]
    Diff(compare::Arguments),
    /// Decides past requests again with a candidate set, and lists the decisions that would change
    #[command(after_help = "Examples:\n  rulekeep policy replay policy.toml --agent nobody")]
    Replay(replay::Arguments),
    /// Evaluates a candidate beside the set in force, and shows the decisions that would change; needs the daemon and
    /// the operator's key
    #[command(after_help = "Examples:\n  rulekeep policy shadow policy.toml\n  rulekeep policy shadow --clear")]
    Shadow(ShadowArguments),
    /// Imports the permissions of an agent's host
    #[command(after_help = "Examples:\n  rulekeep policy import --host claude settings.json")]
    Import(import::Arguments),
    /// Prints the JSON Schema of policy documents
    #[command(after_help = "Examples:\n  rulekeep policy schema\n  rulekeep policy schema --cases")]
    Schema {
        /// Prints the schema of documents of cases instead
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
    /// Changes each rule in small ways, and lists the changes that no case notices
    #[arg(long)]
    mutants: bool,
    /// Fails below this coverage in percent, which applies to rules, clauses and mutants
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    min_coverage: Option<f64>,
    /// Prints the report as JSON
    #[arg(long)]
    json: bool,
}

/// The arguments of `rulekeep policy check`.
#[derive(Args)]
pub struct CheckArguments {
    /// The policy document: .toml or .json
    policy: PathBuf,
    /// Prints the problems as JSON
    #[arg(long)]
    json: bool,
}

/// Runs a command. The exit code is 0 if all is well, 1 for a finding, 2 for wrong use.
pub fn main(command: Command) -> ExitCode {
    let as_json = command.is_json();
    let result = match command {
        Command::Test(arguments) => test(&arguments),
        Command::Check(arguments) => check(&arguments),
        Command::Fmt(arguments) => format::run(&arguments),
        Command::Explain(arguments) => explain::run(*arguments),
        Command::Diff(arguments) => compare::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::Shadow(arguments) => shadow(&arguments),
        Command::Import(arguments) => import::run(&arguments),
        Command::Schema { cases } => print(if cases { CASES_SCHEMA } else { POLICY_SCHEMA }).map(|()| true),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            // Nothing else fails so: errors of files are texts that name the file.
            if let Some(error) = error.downcast_ref::<io::Error>() {
                return unwritten(error);
            }
            let (code, message) = match error.downcast_ref::<rulekeep::Error>() {
                Some(error) => (error.code(), error.message()),
                None => ("INVALID_USE", error.to_string()),
            };
            if as_json {
                // If this fails too, the error on standard error still tells the cause.
                let _ = print_json(&json!({ "error": { "code": code, "message": message } }));
            }
            eprintln!("{code}: {message}");
            ExitCode::from(2)
        }
    }
}

impl Command {
    fn is_json(&self) -> bool {
        match self {
            Self::Test(arguments) => arguments.json,
            Self::Check(arguments) => arguments.json,
            Self::Fmt(arguments) => arguments.json,
            Self::Explain(arguments) => arguments.json,
            Self::Diff(arguments) => arguments.json,
            Self::Replay(arguments) => arguments.json,
            Self::Shadow(arguments) => arguments.json,
            Self::Import(arguments) => arguments.json,
            Self::Schema { .. } => false,
        }
    }
}

/// Returns the policies of a command that is given none.
fn default_policy() -> Result<PolicySet, rulekeep::Error> {
    match Home::find().map(|home| home.policy()).ok().filter(|file| file.exists()) {
        Some(file) => PolicySet::from_file(file),
        None => PolicySet::recommended(),
    }
}

fn shadow(arguments: &ShadowArguments) -> Result<bool, Box<dyn Error>> {
    let client = Client::operating(&Home::find()?)?;
    if client.line().is_none() {
        return Err("the shadow policy set is in the daemon, which does not run; start it with: rulekeep up".into());
    }
    replay::run_shadow(arguments, &|call| Ok(client.make(call)?))
}

fn test(arguments: &TestArguments) -> Result<bool, Box<dyn Error>> {
    let (policies, cases) = (PolicySet::from_file(&arguments.policy)?, PolicyCases::from_file(&arguments.cases)?);
    let parser = Parser::new()?;
    let read = |agent: &_, text: &str, context: &_| parser.parse_text(agent, text, context).map(|parsed| parsed.intent);
    let report = if arguments.mutants { cases.run_with_mutants(&policies, &read) } else { cases.run(&policies, &read) };
    if arguments.json {
        print_json(&report)?;
    } else {
        print(format_args!("{report}\n"))?;
    }
    let is_refuted = report.mutants.as_ref().is_some_and(|mutants| mutants.refuted > 0);
    Ok(report.passed() && !is_refuted && is_enough(&report, arguments.min_coverage))
}

/// Returns whether coverage reaches the minimum. A surviving mutant counts too.
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

fn check(arguments: &CheckArguments) -> Result<bool, Box<dyn Error>> {
    let path: &Path = &arguments.policy;
    let File { name, format, text } = File::read(path, "policy", PolicySet::MAX_BYTES, too_large)?;
    let (file, problems) = (path.display(), PolicySet::validate(&text, format));
    let is_good = !problems.iter().any(|problem| problem.severity == Severity::Error);
    if arguments.json {
        print_json(&json!({ "file": path, "valid": is_good, "problems": problems }))?;
        return Ok(is_good);
    }
    for problem in &problems {
        let (line, column) = (problem.line, problem.column);
        print(format_args!("{file}:{line}:{column}: {}: {}\n", problem.severity, problem.message))?;
    }
    if is_good {
        let policies = PolicySet::parse(&text, format, &name)?;
        print(format_args!("{file}: {:?}, {} rules, {}\n", policies.name(), policies.len(), policies.digest()))?;
    }
    Ok(is_good)
}

fn too_large(size: u64) -> String {
    format!("a policy document has at most {} bytes; this one has {size}", PolicySet::MAX_BYTES)
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (0.0..=100.0).contains(number));
    number.ok_or_else(|| "expected a number from 0 to 100".to_owned())
}

/// Prints to standard output. Unlike `println!`, it does not panic if the reader has gone.
fn print(text: impl Display) -> Result<(), Box<dyn Error>> {
    Ok(write!(io::stdout(), "{text}")?)
}

/// Returns a text as a basic string of TOML.
fn toml_text(text: &str) -> String {
    // The escapes of JSON are valid in TOML. TOML requires one more character to be escaped.
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// Shows a foreign text on one line of a comment or a terminal, which it must not control.
fn shown(text: &str) -> String {
    let steers = |c: char| {
        c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if steers(c) { c.escape_unicode().to_string() } else { c.to_string() }).collect()
}

fn print_json(value: &impl Serialize) -> Result<(), Box<dyn Error>> {
    print(format_args!("{}\n", serde_json::to_string_pretty(value)?))
}

/// The end of a command that could not write to standard output; that the reader has gone is not an error.
fn unwritten(error: &io::Error) -> ExitCode {
    if error.kind() == io::ErrorKind::BrokenPipe {
        return ExitCode::SUCCESS;
    }
    eprintln!("standard output: {error}");
    ExitCode::from(1)
}

const POLICY_SCHEMA: &str = include_str!("policy.schema.json");
const CASES_SCHEMA: &str = include_str!("policy-cases.schema.json");
