//! Measures the parser on labelled requests.
//!
//! `cargo run --release --example parse_report -- FILE [--errors]` reads JSON
//! lines (`id`, `text`, `command`, `capabilities`, `alternatives`, `risk`,
//! `riskAlternatives`) and prints, for each form that the inputs were read as:
//! how often operation, capability and risk are right, which kinds of error
//! there are, how long a parse takes, and, by cross-validation, how well the
//! confidence says how often it is right.

mod calibration;
mod score;

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Instant;

use rulekeep::agent::AgentId;
use rulekeep::intent::Parser;
use serde_json::{Map, Value};

use score::{Row, Score};

/// Timed parses of each input.
const REPEATS: u32 = 20;
const USAGE: &str = "usage: parse_report FILE [--errors]

FILE has labelled requests, one JSON object a line; --errors lists the rows that are not right.";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        println!("{USAGE}");
        return Ok(());
    }
    let file = arguments.iter().find(|argument| !argument.starts_with('-')).ok_or(USAGE)?;
    let show_errors = arguments.iter().any(|argument| argument == "--errors");
    let parser = Parser::new()?;
    let agent: AgentId = "report".parse()?;
    let mut scores: BTreeMap<String, Score> = BTreeMap::new();
    for (number, line) in std::fs::read_to_string(file)?.lines().enumerate().filter(|(_, line)| !line.trim().is_empty())
    {
        let row: Value = serde_json::from_str(line).map_err(|error| format!("line {}: {error}", number + 1))?;
        for field in ["text", "command"] {
            let Some(input) = row.get(field).and_then(Value::as_str) else { continue };
            let parsed = parser.parse_text(&agent, input, &Map::new())?;
            let start = Instant::now();
            for _ in 0..REPEATS {
                std::hint::black_box(parser.parse_text(&agent, std::hint::black_box(input), &Map::new())?);
            }
            let time = start.elapsed() / REPEATS;
            let outcome = Row { labels: &row, input, parsed: &parsed };
            if show_errors {
                outcome.print_error();
            }
            // What a text is taken for matters too: a sentence read as a command is an error of its own.
            let format = parsed.intent.context.get("inputFormat").and_then(Value::as_str).unwrap_or("?");
            scores.entry(format!("{field}s")).or_default().add(&outcome, time);
            scores.entry(format!("{field}s read as {format}")).or_default().add(&outcome, time);
        }
    }
    for (name, score) in &scores {
        score.print(name);
    }
    for (name, score) in scores.iter().filter(|(name, _)| !name.contains(' ')) {
        calibration::print(name, &score.confidences);
    }
    Ok(())
}
