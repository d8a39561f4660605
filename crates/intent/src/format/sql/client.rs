//! Commands of database clients: psql's start with a backslash, sqlite's with a full stop.

use crate::reading::{Act, Reading};
use crate::sign::Sign;
use rulekeep_types::{Operation, Resource, RiskLevel};

use super::known::{client, unclear};

/// Reads one command with the rest of its line.
pub(super) fn read(line: &str, reading: &mut Reading) {
    let body = line.trim().trim_start_matches(['\\', '.']);
    let name = if body.starts_with('!') { "!" } else { body.split_whitespace().next().unwrap_or("") };
    let name = name.trim_end_matches(['+', ';']).to_ascii_lowercase();
    let rest = body.get(name.len()..).unwrap_or("").trim();
    let runs = client().runs.has(&name) || rest.starts_with('|') || rest.contains('`') && !client().writes.has(&name);
    if runs {
        reading.note_command(rest.trim_start_matches('|'));
    }
    let act = if runs {
        Act::new("run", "command", Resource::System, Operation::Execute, 0.9)
            .at_risk(RiskLevel::High)
            .marked(Sign::Downloaded)
    } else if client().writes.has(&name) {
        // The text after a pipe sign is a program: `\o | sh`.
        if rest.contains('|') || rest.contains("program") {
            let program = Act::new("run", "command", Resource::System, Operation::Execute, 0.8);
            reading.push(program.at_risk(RiskLevel::High).marked(Sign::Downloaded).told_by(line));
        }
        reading.facts.note_target(rest);
        Act::new("export", "file", Resource::File, Operation::Write, 0.8).at_risk(RiskLevel::High)
    } else if client().reads.has(&name) {
        Act::new("show", "database", Resource::Database, Operation::Read, 0.8).at_risk(RiskLevel::Low)
    } else if client().feeds.has(&name) {
        unclear("run", "script")
    } else {
        unclear("run", "command")
    };
    reading.push(act.told_by(line));
}

/// Returns whether a text starts with a command that only database clients have.
pub(super) fn opens_text(text: &str) -> bool {
    let Some(body) = text.strip_prefix(['\\', '.']) else { return false };
    if text.starts_with("\\!") {
        return true;
    }
    let name = body.split_whitespace().next().unwrap_or("").trim_end_matches(['+', ';']).to_ascii_lowercase();
    let is_known =
        [&client().reads, &client().runs, &client().writes, &client().feeds].iter().any(|list| list.has(&name));
    // `. file` and `.venv/bin/x` are shell commands.
    is_known && (text.starts_with('\\') || name.len() > 1)
}
