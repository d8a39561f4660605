//! Tools for policy files: test them by cases, check them, explain a decision,
//! print the JSON Schema of both documents.
//!
//! ```text
//! cargo run --example policy -- test policies/recommended.toml policies/recommended.cases.toml --mutants
//! ```

mod arguments;

use std::error::Error;
use std::fmt::{Display, Write as _};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use arguments::{Arguments, Usage};
use rulekeep::intent::Parser;
use rulekeep::policy::{CaseReport, PolicyCases, PolicyFormat, RuleTrace, Severity};
use rulekeep::system::{Clock, Timestamp};
use rulekeep::trust::Score;
use rulekeep::{Agent, Governor, Intent, PolicySet, Tier};
use serde_json::Value;

fn main() -> ExitCode {
    let arguments = Arguments::of(std::env::args().skip(1).collect());
    match run(arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) if error.is::<Usage>() => {
            eprintln!("{error}\n\n{USAGE}");
            ExitCode::from(2)
        }
        Err(error) if is_broken_pipe(&*error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether all is well.
fn run(mut arguments: Arguments) -> Result<bool, Box<dyn Error>> {
    if arguments.flag("--help") || arguments.flag("-h") {
        print(format_args!("{USAGE}\n"))?;
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
        print(format_args!("{}\n", serde_json::to_string_pretty(&report)?))?;
    } else {
        print(format_args!("{report}\n"))?;
    }
    let is_refuted = report.mutants.as_ref().is_some_and(|mutants| mutants.refuted > 0);
    Ok(report.passed() && !is_refuted && is_enough(&report, least))
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
        let (line, column) = (problem.line, problem.column);
        print(format_args!("{file}:{line}:{column}: {}: {}\n", problem.severity, problem.message))?;
    }
    let is_good = !problems.iter().any(|problem| problem.severity == Severity::Error);
    if is_good {
        let policies = PolicySet::parse(&text, format, &file)?;
        print(format_args!("{file}: {:?}, {} rules, {}\n", policies.name(), policies.len(), policies.digest()))?;
    }
    Ok(is_good)
}

fn explain(mut arguments: Arguments) -> Result<bool, Box<dyn Error>> {
    let as_json = arguments.flag("--json");
    let asker = Asker::read(&mut arguments)?;
    let (policies, file) = (arguments.next("POLICY")?, arguments.next("INTENT.json")?);
    arguments.end()?;
    let policies = PolicySet::from_file(policies)?;
    let intent = read_intent(&file).map_err(|error| format!("{file}: {error}"))?;
    let mut builder = Governor::builder().policies(policies);
    if let Some(at) = asker.at {
        builder = builder.clock(Stopped(at));
    }
    let governor = builder.open_in_memory()?;
    governor.agents().register(asker.agent(intent.agent_id.as_str()))?;
    let explanation = governor.policies().explain(&intent)?;
    if as_json {
        print(format_args!("{}\n", serde_json::to_string_pretty(&explanation)?))?;
        return Ok(true);
    }
    let preview = &explanation.preview;
    let outcome = match &preview.error {
        Some(error) => format!("No decision: {}", error.code),
        None => preview.decision.to_string(),
    };
    let (tier, risk) = (preview.trust_snapshot.tier, preview.risk_level);
    let mut text = format!("{} at {tier}, risk {risk}: {outcome}\n", intent.parsed_action);
    writeln!(text, "{}", preview.error.as_ref().map_or(&preview.reasoning, |error| &error.message))?;
    // Where nothing is decided no rule decides.
    let decides = |rule: &RuleTrace| rule.decided && preview.error.is_none();
    for (title, is_decided) in [("decided by", true), ("without a part in it", false)] {
        let rules: Vec<&RuleTrace> = explanation.rules.iter().filter(|rule| decides(rule) == is_decided).collect();
        if !rules.is_empty() {
            writeln!(text, "\n{title}:")?;
        }
        for rule in rules {
            let severity = rule.severity.map(|severity| format!(" (severity {severity})")).unwrap_or_default();
            writeln!(text, "  line {:>4}  {:<8} {}{severity}: {}", rule.line, rule.effect, rule.rule, rule.why)?;
        }
    }
    print(text)?;
    Ok(true)
}

fn read_intent(file: &str) -> Result<Intent, Box<dyn Error>> {
    let value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    Ok(Intent::from_json(&value)?)
}

/// Who asks, and when.
struct Asker {
    tier: Option<Tier>,
    score: Option<Score>,
    labels: Vec<String>,
    groups: Vec<String>,
    attributes: Vec<(String, Value)>,
    at: Option<Timestamp>,
}

impl Asker {
    fn read(arguments: &mut Arguments) -> Result<Self, Usage> {
        let (tier, score) = (arguments.parsed("--tier")?, arguments.parsed::<u64>("--score")?);
        if tier.is_some() && score.is_some() {
            return Err(Usage("an agent has a --tier or a --score, not both".to_owned()));
        }
        let score = score.map(Score::try_from).transpose().map_err(|error| Usage(format!("--score: {error}")))?;
        let (labels, groups) = (arguments.values("--label")?, arguments.values("--group")?);
        let attributes =
            arguments.values("--attribute")?.iter().map(|text| attribute(text)).collect::<Result<_, _>>()?;
        Ok(Self { tier, score, labels, groups, attributes, at: arguments.parsed("--at")? })
    }

    fn agent(self, id: &str) -> Agent {
        let mut agent = Agent::new(id);
        if let Some(tier) = self.tier {
            agent = agent.at_tier(tier);
        }
        if let Some(score) = self.score {
            agent = agent.at_score(score);
        }
        agent = self.labels.into_iter().fold(agent, Agent::with_label);
        agent = self.groups.into_iter().fold(agent, Agent::in_group);
        self.attributes.into_iter().fold(agent, |agent, (name, value)| agent.with_attribute(name, value))
    }
}

/// `name=value`: the value is JSON, or else a text.
fn attribute(text: &str) -> Result<(String, Value), Usage> {
    let (name, value) =
        text.split_once('=').ok_or_else(|| Usage(format!("--attribute {text}: expected name=value")))?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    Ok((name.to_owned(), value))
}

/// A clock that shows one moment.
struct Stopped(Timestamp);

impl Clock for Stopped {
    fn now(&self) -> Timestamp {
        self.0
    }
}

/// Unlike `println!`, an error is none to panic for: whoever reads may have gone.
fn print(text: impl Display) -> io::Result<()> {
    write!(io::stdout(), "{text}")
}

fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn schema(mut arguments: Arguments) -> Result<bool, Box<dyn Error>> {
    let of_cases = arguments.flag("--cases");
    arguments.end()?;
    print(if of_cases { CASES_SCHEMA } else { POLICY_SCHEMA })?;
    Ok(true)
}

const USAGE: &str = "usage:
  policy test POLICY CASES [--mutants] [--min-coverage PERCENT] [--json]
      holds the cases against the rules; --mutants changes each rule in small ways and tells which
      changes no case notices; --min-coverage is for rules, clauses and mutants alike
  policy check POLICY
      every problem of a document, as file:line:column
  policy explain POLICY INTENT.json [--tier T0..T5 | --score 0..1000] [--label NAME]... [--group NAME]...
      [--attribute NAME=VALUE]... [--at TIME] [--json]
      what would be decided on an intent, and why each rule matches or not; a VALUE is JSON or else a text,
      TIME is ISO 8601 with an offset; INTENT.json holds
      {\"agentId\": \"a\", \"parsedAction\": \"send_mail\", \"riskLevel\": \"LOW\",
       \"requiredCapabilities\": [\"email:send\"], \"context\": {}}
  policy schema [--cases]
      the JSON Schema of a policy document, or of a document of cases

Exit code: 0 when all is well, 1 for failed cases, too little coverage or errors, 2 for wrong usage.";
const POLICY_SCHEMA: &str = include_str!("../../docs/policy.schema.json");
const CASES_SCHEMA: &str = include_str!("../../docs/policy-cases.schema.json");
