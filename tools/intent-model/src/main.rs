//! The Rust half of the trainer of the intent table, and its evaluation.
//!
//! - `clauses VERBS` reads texts as lines of JSON and writes their clauses as the parser cuts them.
//! - `pack HEADER KEYS ROWS TABLE` makes a table of what was trained.
//! - `commands DESCRIPTIONS TABLE` makes the table of commands of their public descriptions.
//! - `evaluate [--table TABLE] [--errors] FILE...` reads labelled rows and reports how well they are read.
//! - `check FOLDER` fails where the built-in table was trained on other rows than the folder's, or reads the rows that were
//!   held out worse than its floor.
mod evaluate;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use rulekeep::RiskLevel;
use rulekeep::intent::{Capability, Parser, training};
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
        Some("commands") => {
            let descriptions = arguments.next().ok_or("expected the file of descriptions")?;
            commands(&descriptions, &arguments.next().ok_or("expected the file of the table")?)
        }
        Some("evaluate") => report(arguments),
        Some("check") => check(Path::new(&arguments.next().ok_or("expected the folder of rows")?)),
        _ => Err("expected `clauses`, `pack`, `commands`, `evaluate` or `check`".into()),
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

/// Reads descriptions of commands, a line `program subcommand<TAB>description`, and packs those that are read with enough
/// certainty: a subcommand's description says what it does, a program's may only say what it is.
fn commands(descriptions: &str, table: &str) -> Result<(), Box<dyn Error>> {
    let (parser, agent) = (Parser::new()?, "evaluation".parse()?);
    let mut read = BTreeMap::new();
    for line in std::fs::read_to_string(descriptions)?.lines() {
        let (command, description) = line.split_once('\t').ok_or_else(|| format!("{line:?}: expected a tab"))?;
        let description = description.split(". ").next().unwrap_or_default();
        let parsed = parser.parse_text(&agent, description, &serde_json::Map::new())?;
        let least = if command.contains(' ') { 0.4 } else { 0.5 };
        if let Some(capability) = parsed.intent.required_capabilities.into_iter().next()
            && parsed.confidence >= least
            && capability != Capability::unknown()
        {
            // What its words say of one description is too little for CRITICAL.
            read.insert(command.to_owned(), (capability, parsed.intent.risk_level.min(RiskLevel::High)));
        }
    }
    let entries = read.iter().map(|(command, (capability, risk))| (command.as_str(), capability, *risk));
    let bytes = training::pack_commands(entries)?;
    println!("{} commands, {} bytes: {table}", read.len(), bytes.len());
    Ok(std::fs::write(table, bytes)?)
}

fn report(mut arguments: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    let mut parser = None;
    let mut all = evaluate::Score::default();
    let mut shows_errors = false;
    while let Some(argument) = arguments.next() {
        if argument == "--errors" {
            shows_errors = true;
        } else if argument == "--table" {
            parser =
                Some(training::parser(&std::fs::read(arguments.next().ok_or("expected the file of the table")?)?)?);
        } else {
            let parser = parser.get_or_insert(Parser::new()?);
            let score = evaluate::score(parser, &training::rows(&std::fs::read_to_string(&argument)?)?, shows_errors)?;
            score.report(argument.rsplit('/').next().unwrap_or(&argument));
            all.join(&score);
        }
    }
    all.report("all");
    Ok(())
}

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

/// The text files of a folder, by name.
fn texts(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    Ok(paths)
}
