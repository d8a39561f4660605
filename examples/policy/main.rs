//! Tools for policy files: test them by cases, check them, explain a decision,
//! print the JSON Schema of both documents.
//!
//! ```text
//! cargo run --example policy -- test policies/recommended.toml policies/recommended.cases.toml --mutants
//! ```

mod arguments;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use arguments::{Arguments, Usage};
use rulekeep::{Agent, CaseReport, Governor, Intent, Parser, PolicyCases, PolicyFormat, PolicySet, Severity, Tier};

fn main() -> ExitCode {
    let arguments = Arguments::of(std::env::args().skip(1).collect());
    match run(arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if error.is::<Usage>() => {
            eprintln!("{error}\n\n{USAGE}");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all is well.
fn run(mut arguments: Arguments) -> Result<bool, Box<dyn Error>> {
    if arguments.flag("--help") || arguments.flag("-h") {
        println!("{USAGE}");
        return Ok(true);
    }
    let command = arguments.next("a command")?;
    match command.as_str() {
        "test" => test(arguments),
        "check" => check(arguments),
        "explain" => explain(arguments),
        "schema" => schema(arguments),
        other => Err(Usage(format!("unknown command {other:?}")).into()),
    }
}

fn test(mut arguments: Arguments) -> Result<bool, Box<dyn Error>> {
    let (as_json, mutants) = (arguments.flag("--json"), arguments.flag("--mutants"));
    let least = arguments.number("--min-coverage")?;
    let (policies, cases) = (arguments.next("POLICY")?, arguments.next("CASES")?);
    arguments.end()?;
    let (policies, cases) = (PolicySet::from_file(policies)?, PolicyCases::from_file(cases)?);
    let parser = Parser::new()?;
    let read = |agent: &_, text: &str, context: &_| parser.parse_text(agent, text, context).map(|parsed| parsed.intent);
    let report = if mutants { cases.run_with_mutants(&policies, &read) } else { cases.run(&policies, &read) };
    if as_json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{report}");
    }
    Ok(report.passed() && is_enough(&report, least))
}

/// Whether coverage reaches what was asked for; a surviving mutant fails it too.
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

fn check(mut arguments: Arguments) -> Result<bool, Box<dyn Error>> {
    let file = arguments.next("POLICY")?;
    arguments.end()?;
    let format: PolicyFormat = match Path::new(&file).extension().and_then(|extension| extension.to_str()) {
        Some(extension) => extension.to_lowercase().parse()?,
        None => return Err(format!("{file}: expected a file that ends in .toml or .json").into()),
    };
    let text = std::fs::read_to_string(&file).map_err(|error| format!("{file}: {error}"))?;
    let problems = PolicySet::validate(&text, format);
    for problem in &problems {
        println!("{file}:{}:{}: {}: {}", problem.line, problem.column, problem.severity, problem.message);
    }
    let is_good = !problems.iter().any(|problem| problem.severity == Severity::Error);
    if is_good {
        let policies = PolicySet::parse(&text, format, &file)?;
        println!("{file}: {:?}, {} rules, {}", policies.name(), policies.len(), policies.digest());
    }
    Ok(is_good)
}

fn explain(mut arguments: Arguments) -> Result<bool, Box<dyn Error>> {
    let as_json = arguments.flag("--json");
    let (tier, labels, groups) =
        (arguments.values("--tier")?, arguments.values("--label")?, arguments.values("--group")?);
    let (policies, intent) = (arguments.next("POLICY")?, arguments.next("INTENT.json")?);
    arguments.end()?;
    let policies = PolicySet::from_file(policies)?;
    let text = std::fs::read_to_string(&intent).map_err(|error| format!("{intent}: {error}"))?;
    let value = serde_json::from_str(&text).map_err(|error| format!("{intent}: {error}"))?;
    let intent = Intent::from_json(&value)?;
    let mut agent = Agent::new(intent.agent_id.as_str());
    if let Some(tier) = tier.last() {
        agent = agent.at_tier(tier.parse::<Tier>()?);
    }
    agent = labels.into_iter().fold(agent, Agent::with_label);
    agent = groups.into_iter().fold(agent, Agent::in_group);
    let governor = Governor::builder().policies(policies).open_in_memory()?;
    governor.register_agent(agent)?;
    let explanation = governor.explain(&intent)?;
    if as_json {
        println!("{}", serde_json::to_string_pretty(&explanation)?);
        return Ok(true);
    }
    let preview = &explanation.preview;
    println!(
        "{} at {}, risk {}: {}",
        intent.parsed_action, preview.trust_snapshot.tier, preview.risk_level, preview.decision
    );
    println!("{}", preview.reasoning);
    for (title, decided) in [("decided by", true), ("without a part in it", false)] {
        println!("\n{title}:");
        for rule in explanation.rules.iter().filter(|rule| rule.decided == decided) {
            println!("  line {:>4}  {:<8} {}: {}", rule.line, rule.effect, rule.rule, rule.why);
        }
    }
    Ok(true)
}

fn schema(mut arguments: Arguments) -> Result<bool, Box<dyn Error>> {
    let of_cases = arguments.flag("--cases");
    arguments.end()?;
    print!("{}", if of_cases { CASES_SCHEMA } else { POLICY_SCHEMA });
    Ok(true)
}

const USAGE: &str = "usage:
  policy test POLICY CASES [--mutants] [--min-coverage PERCENT] [--json]
      holds the cases against the rules; --mutants changes each rule in small ways and tells which
      changes no case notices; --min-coverage is for rules, clauses and mutants alike
  policy check POLICY
      every problem of a document, as file:line:column
  policy explain POLICY INTENT.json [--tier T0..T5] [--label NAME]... [--group NAME]... [--json]
      what would be decided on an intent, and why each rule matches or not
  policy schema [--cases]
      the JSON Schema of a policy document, or of a document of cases

Exit code: 0 when all is well, 1 for failed cases, too little coverage or errors, 2 for wrong usage.";
const POLICY_SCHEMA: &str = include_str!("../../docs/policy.schema.json");
const CASES_SCHEMA: &str = include_str!("../../docs/policy-cases.schema.json");
