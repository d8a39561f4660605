//! Compares the shell reader with a full grammar of the shell.
//!
//! `cargo run --release -- FILE` reads one command line from each line. The grammar finds the places of commands in
//! it, at any depth. A dangerous command is inserted at each of these places in turn, and the parser must find it.
//! Misses are printed; the last line counts lines, places and misses.

use std::error::Error;

use rulekeep::agent::AgentId;
use rulekeep::intent::Parser;
use rulekeep::RiskLevel;
use serde_json::Map;

/// The inserted command, and the capability that shows it was found; the second one for lines that have the first
/// capability by themselves.
const MARKERS: [(&str, &str, RiskLevel); 2] =
    [("rm -rf /marker; ", "file:delete", RiskLevel::High), ("visudo; ", "permission:admin", RiskLevel::Critical)];

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("usage: rulekeep-peers FILE")?;
    let text = std::fs::read_to_string(file)?;
    let mut count = Count::default();
    let mut peer = Peer::new()?;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        for miss in peer.check(line, &mut count)? {
            println!("missed: {miss}");
        }
    }
    println!("{count:?}");
    Ok(())
}

/// The number of attempts, and their results.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    lines: usize,
    /// Lines that the grammar parses without an error.
    read: usize,
    /// Places of commands that were tried.
    places: usize,
    /// Places in lines that have both capabilities by themselves.
    undecided: usize,
    missed: usize,
}

/// The grammar and the parser.
struct Peer {
    grammar: tree_sitter::Parser,
    parser: Parser,
    agent: AgentId,
}

impl Peer {
    fn new() -> Result<Self, Box<dyn Error>> {
        let mut grammar = tree_sitter::Parser::new();
        grammar.set_language(&tree_sitter_bash::LANGUAGE.into())?;
        Ok(Self { grammar, parser: Parser::new()?, agent: "peer".parse()? })
    }

    /// The lines with an inserted command that the parser did not find.
    fn check(&mut self, line: &str, count: &mut Count) -> Result<Vec<String>, Box<dyn Error>> {
        count.lines += 1;
        let Some(tree) = self.grammar.parse(line, None) else { return Ok(Vec::new()) };
        if tree.root_node().has_error() {
            return Ok(Vec::new());
        }
        count.read += 1;
        let mut places = Vec::new();
        commands(tree.root_node(), &mut places);
        let by_itself = self.capabilities(line)?;
        let marker = MARKERS.iter().find(|(_, capability, _)| !by_itself.0.iter().any(|found| found == capability));
        let Some(&(marker, capability, least)) = marker else {
            count.undecided += places.len();
            return Ok(Vec::new());
        };
        let mut missed = Vec::new();
        for place in places {
            count.places += 1;
            let Some((before, behind)) = line.split_at_checked(place) else { continue };
            let changed = format!("{before}{marker}{behind}");
            let (found, risk) = self.capabilities(&changed)?;
            if risk < least || !found.iter().any(|found| found == capability) {
                count.missed += 1;
                missed.push(changed);
            }
        }
        Ok(missed)
    }

    fn capabilities(&self, line: &str) -> Result<(Vec<String>, RiskLevel), Box<dyn Error>> {
        // The prompt marks it as a command line.
        let intent = self.parser.parse_text(&self.agent, &format!("$ {line}"), &Map::new())?.intent;
        let capabilities = intent.required_capabilities.iter().map(|found| found.as_str().to_owned()).collect();
        Ok((capabilities, intent.risk_level))
    }
}

/// Collects the places where commands start, at any depth.
fn commands(root: tree_sitter::Node<'_>, places: &mut Vec<usize>) {
    let mut left = vec![root];
    while let Some(node) = left.pop() {
        if node.kind() == "command" {
            places.push(node.start_byte());
        }
        let mut cursor = node.walk();
        left.extend(node.children(&mut cursor));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_command_of_the_kept_lines_is_missed() {
        let mut peer = Peer::new().unwrap();
        let mut count = Count::default();
        let lines = include_str!("../data/lines.txt");
        let missed: Vec<String> = lines
            .lines()
            .filter(|line| !line.is_empty())
            .flat_map(|line| peer.check(line, &mut count).unwrap())
            .collect();
        assert!(missed.is_empty(), "{}", missed.join("\n"));
        assert!(count.read * 10 >= count.lines * 9, "the grammar should read most lines: {count:?}");
        assert!(count.places >= count.lines, "{count:?}");
    }
}
