//! The Rust half of the intent table's trainer, and its evaluation.
//!
//! - `clauses VERBS` reads texts as lines of JSON and writes their clauses as the parser splits them.
//! - `pack HEADER KEYS ROWS TABLE` packs a trained table.
//! - `evaluate FILE... [--errors] [--table TABLE]` parses labeled rows and reports the accuracy.
//! - `relevance FILE` reports how often the tool that serves a request scores best, among its own set and among
//!   foreign tools.
//! - `check FOLDER` fails if the built-in table was trained on other rows than the folder's, or reads the held-out
//!   rows worse than its floor.
mod evaluate;

use std::collections::BTreeSet;
use std::error::Error;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use rulekeep::intent::{Parser, training};
use serde_json::Value;
use sha2::{Digest, Sha256};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next().as_deref() {
        Some("clauses") => clauses(&arguments.next().ok_or("expected the file of verbs")?),
        Some("pack") => {
            let mut file = |what: &str| arguments.next().ok_or(format!("expected the file of {what}"));
            let header = std::fs::read_to_string(file("the header")?)?;
            let keys = std::fs::read_to_string(file("keys")?)?;
            let rows = std::fs::read(file("rows")?)?;
            let table = training::pack(&header, &keys.lines().collect::<Vec<_>>(), &rows)?;
            Ok(std::fs::write(file("the table")?, table)?)
        }
        Some("evaluate") => report(arguments),
        Some("relevance") => relevance(&arguments.next().ok_or("expected the file of calls")?),
        Some("check") => check(Path::new(&arguments.next().ok_or("expected the folder of rows")?)),
        _ => Err("expected `clauses`, `pack`, `evaluate`, `relevance` or `check`".into()),
    }
}

fn clauses(verbs: &str) -> Result<(), Box<dyn Error>> {
    let verbs: BTreeSet<String> = std::fs::read_to_string(verbs)?.lines().map(str::to_owned).collect();
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let text: String = serde_json::from_str(&line?)?;
        writeln!(out, "{}", serde_json::to_string(&training::clauses_of(&text, &verbs)?)?)?;
    }
    Ok(())
}

fn report(arguments: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = arguments.collect();
    let shows_errors = arguments.iter().any(|argument| argument == "--errors");
    arguments.retain(|argument| argument != "--errors");
    let parser = match arguments.iter().position(|argument| argument == "--table") {
        Some(at) => {
            arguments.remove(at);
            let table =
                if at < arguments.len() { arguments.remove(at) } else { Err("expected a file behind `--table`")? };
            training::parser(&std::fs::read(table)?)?
        }
        None => Parser::new()?,
    };
    let mut all = evaluate::Score::default();
    for file in &arguments {
        let rows = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        let score = evaluate::score(&parser, &training::rows(&rows)?, shows_errors)?;
        score.report(file.rsplit('/').next().unwrap_or(file));
        all.join(&score);
    }
    all.report("all");
    Ok(())
}

/// Evaluates calls given as lines of JSON (`text`, `tools`, `call`). Reports how often the right tool scores best
/// among several tools and among 20 tools of other requests, and the share of those foreign tools that scores below
/// nine in ten of the right ones.
fn relevance(file: &str) -> Result<(), Box<dyn Error>> {
    let rows: Vec<Value> =
        std::fs::read_to_string(file)?.lines().map(serde_json::from_str).collect::<serde_json::Result<_>>()?;
    let tools_of = |row: &Value| row["tools"].as_array().cloned().unwrap_or_default();
    let all: Vec<Value> = rows.iter().flat_map(tools_of).collect();
    let (mut several, mut best_of_several, mut best_beside, mut right, mut strange) = (0, 0, 0, Vec::new(), Vec::new());
    for (number, row) in rows.iter().enumerate() {
        let own = tools_of(row);
        let is_right = |tool: &Value| tool["name"] == row["call"]["name"];
        let request = row["text"].as_str().unwrap_or_default();
        if own.len() > 1 {
            several += 1;
            best_of_several += usize::from(best(&scores(request, &own)?, &own).is_some_and(&is_right));
        }
        // Every 37th tool from a moving start: the same ones in each run, from many sources.
        let others = (0..all.len()).map(|step| &all[(number * 101 + step * 37) % all.len()]);
        let mut mixed = own.clone();
        for other in others {
            if mixed.len() < own.len() + STRANGERS && !mixed.iter().any(|known| known["name"] == other["name"]) {
                mixed.push(other.clone());
            }
        }
        let scores = scores(request, &mixed)?;
        best_beside += usize::from(best(&scores, &mixed).is_some_and(&is_right));
        for (place, (score, tool)) in scores.iter().zip(&mixed).enumerate() {
            if is_right(tool) {
                right.push(*score);
            } else if place >= own.len() {
                strange.push(*score);
            }
        }
    }
    right.sort_by(f64::total_cmp);
    let least = right.get(right.len() / 10).copied().unwrap_or_default();
    let rejected = strange.iter().filter(|score| **score < least).count();
    println!(
        "{several} calls with several tools: right {:.1}; {} beside {STRANGERS} strangers: right {:.1}; strangers below nine in ten of the right: {:.1}",
        percent(best_of_several, several),
        rows.len(),
        percent(best_beside, rows.len()),
        percent(rejected, strange.len()),
    );
    Ok(())
}

/// The tool with the best score.
fn best<'t>(scores: &[f64], tools: &'t [Value]) -> Option<&'t Value> {
    scores.iter().zip(tools).max_by(|(one, _), (other, _)| one.total_cmp(other)).map(|(_, tool)| tool)
}

fn scores(request: &str, tools: &[Value]) -> Result<Vec<f64>, Box<dyn Error>> {
    let parameters: Vec<String> = tools.iter().map(|tool| parameters(&tool["inputSchema"]["properties"])).collect();
    let texts: Vec<[&str; 3]> = tools
        .iter()
        .zip(&parameters)
        .map(|(tool, given)| {
            let text = |key: &str| tool[key].as_str().unwrap_or_default();
            [text("name"), text("description"), given.as_str()]
        })
        .collect();
    Ok(training::relevance(request, &texts)?)
}

fn parameters(properties: &Value) -> String {
    let described = |(name, property): (&String, &Value)| {
        format!("{name} {}", property["description"].as_str().unwrap_or_default())
    };
    properties.as_object().map(|all| all.iter().map(described).collect::<Vec<_>>().join(" ")).unwrap_or_default()
}

fn percent(part: usize, of: usize) -> f64 {
    let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    100.0 * count(part) / count(of.max(1))
}

/// Number of tools of other requests that the right one is compared with.
const STRANGERS: usize = 20;

fn check(folder: &Path) -> Result<(), Box<dyn Error>> {
    let mut digest = Sha256::new();
    for path in texts(&folder.join("open"))?.into_iter().chain([folder.join("bfcl-labelled.jsonl")]) {
        digest.update(path.file_name().unwrap_or_default().as_encoded_bytes());
        digest.update([0]);
        digest.update(std::fs::read(&path)?);
    }
    let (data, trained_on) = (hex::encode(digest.finalize()), training::trained_on()?);
    if data != trained_on {
        let message = format!(
            "the table was trained on rows {trained_on}, and the folder has {data}; run tools/intent-model/train"
        );
        return Err(message.into());
    }
    let parser = Parser::new()?;
    let mut all = evaluate::Score::default();
    for path in texts(&folder.join("held-out"))? {
        all.join(&evaluate::score(&parser, &training::rows(&std::fs::read_to_string(path)?)?, false)?);
    }
    all.report("held out");
    all.hold_floor().map_err(Into::into)
}

/// The text files of a folder, sorted by name.
fn texts(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    Ok(paths)
}
