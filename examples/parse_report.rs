//! Measures the parser on labelled requests.
//!
//! `cargo run --release --example parse_report -- FILE [--errors]` reads JSON
//! lines (`id`, `text`, `command`, `capabilities`, `alternatives`, `risk`,
//! `riskAlternatives`) and prints how often operation, capability and risk are
//! right, for texts and for commands, and how long a parse takes.

use std::collections::BTreeSet;
use std::error::Error;
use std::time::{Duration, Instant};

use rulekeep::{AgentId, ParseResult, Parser, RiskLevel};
use serde_json::{Map, Value};

/// Timed parses of each input.
const REPEATS: u32 = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: parse_report FILE [--errors]")?;
    let show_errors = arguments.any(|argument| argument == "--errors");
    let parser = Parser::new()?;
    let agent: AgentId = "report".parse()?;
    let (mut texts, mut commands) = (Score::default(), Score::default());
    for line in std::fs::read_to_string(file)?.lines().filter(|line| !line.trim().is_empty()) {
        let row: Value = serde_json::from_str(line)?;
        for (field, score) in [("text", &mut texts), ("command", &mut commands)] {
            if let Some(input) = row.get(field).and_then(Value::as_str) {
                let parsed = parser.parse_text(&agent, input, &Map::new())?;
                let start = Instant::now();
                for _ in 0..REPEATS {
                    std::hint::black_box(parser.parse_text(&agent, std::hint::black_box(input), &Map::new())?);
                }
                score.time += start.elapsed() / REPEATS;
                score.bytes += input.len();
                score.add(&row, input, &parsed, show_errors);
            }
        }
    }
    texts.print("texts");
    commands.print("commands");
    Ok(())
}

#[derive(Default)]
struct Score {
    rows: u32,
    operation: u32,
    capability: u32,
    f1: f64,
    risk: u32,
    risk_near: u32,
    calmed: u32,
    time: Duration,
    bytes: usize,
}

impl Score {
    fn add(&mut self, row: &Value, input: &str, parsed: &ParseResult, show_errors: bool) {
        let wanted = words(row, "capabilities");
        let accepted = words(row, "alternatives");
        let primary = wanted.first().map_or("", |word| *word);
        let found: Vec<&str> = parsed.intent.required_capabilities.iter().map(rulekeep::Capability::as_str).collect();
        let first = found.first().copied().unwrap_or("");
        let operation_of =
            |capability: &str| capability.split_once(':').map_or(String::new(), |(_, operation)| operation.to_owned());
        let capability_right = first == primary || accepted.contains(&first);
        let operation_right = operation_of(first) == operation_of(primary) || capability_right;
        let risk: RiskLevel =
            row.get("risk").and_then(Value::as_str).and_then(|word| word.parse().ok()).unwrap_or(RiskLevel::Low);
        let level = parsed.intent.risk_level;
        let risk_right = level == risk || words(row, "riskAlternatives").contains(&level.as_str());
        let near = (level as i32 - risk as i32).abs() <= 1;
        let calmed = level == RiskLevel::Low && risk >= RiskLevel::High;
        self.rows += 1;
        self.operation += u32::from(operation_right);
        self.capability += u32::from(capability_right);
        self.risk += u32::from(risk_right);
        self.risk_near += u32::from(near);
        self.calmed += u32::from(calmed);
        self.f1 += f1(&wanted, &found);
        if show_errors && !(operation_right && capability_right && risk_right) {
            let mark = |right: bool, letter: char| if right { '.' } else { letter };
            println!(
                "{}{}{}{} {} {:?}\n      wanted {} {risk}; found {} {} {level} ({})",
                mark(operation_right, 'O'),
                mark(capability_right, 'C'),
                mark(risk_right, 'R'),
                mark(!calmed, '!'),
                row.get("id").and_then(Value::as_str).unwrap_or("?"),
                input,
                wanted.join(","),
                parsed.intent.parsed_action,
                found.join(","),
                parsed.confidence,
            );
        }
    }

    fn print(&self, name: &str) {
        let rows = f64::from(self.rows.max(1));
        let share = |count: u32| 100.0 * f64::from(count) / rows;
        println!(
            "{name}: {} rows; operation {:.1} %, capability {:.1} %, set F1 {:.3}, risk exact {:.1} %, within one {:.1} %, HIGH read as LOW {}; {:.1} us a parse of {} bytes on average",
            self.rows,
            share(self.operation),
            share(self.capability),
            self.f1 / rows,
            share(self.risk),
            share(self.risk_near),
            self.calmed,
            self.time.as_secs_f64() * 1e6 / rows,
            self.bytes / usize::try_from(self.rows.max(1)).unwrap_or(1),
        );
    }
}

fn words<'r>(row: &'r Value, field: &str) -> Vec<&'r str> {
    row.get(field)
        .and_then(Value::as_array)
        .map_or_else(Vec::new, |items| items.iter().filter_map(Value::as_str).collect())
}

fn f1(wanted: &[&str], found: &[&str]) -> f64 {
    let (wanted, found): (BTreeSet<_>, BTreeSet<_>) = (wanted.iter().collect(), found.iter().collect());
    let common = u32::try_from(wanted.intersection(&found).count()).unwrap_or(0);
    let total = u32::try_from(wanted.len() + found.len()).unwrap_or(1);
    2.0 * f64::from(common) / f64::from(total.max(1))
}
