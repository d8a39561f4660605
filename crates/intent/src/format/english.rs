//! English with embedded command lines, SQL and names of secrets.

use crate::language;
use crate::lexicon::Lexicon;
use crate::reading::{Act, Reading};
use crate::sign::Sign;
use rulekeep_types::{Operation, Resource, RiskLevel, UnreadKind};

use super::{driver, embedded, place};

/// Reads a text as English.
pub(super) fn read(text: &str, lexicon: &Lexicon) -> Reading {
    let lower = text.to_ascii_lowercase();
    let understood = language::read(text, &lower, lexicon);
    let mut reading = understood.reading;
    for command in understood.commands {
        reading.acts.retain(|act| !runs(act, command, text));
        reading.absorb(driver::command(command, lexicon));
    }
    for order in understood.orders {
        let lower = order.to_ascii_lowercase();
        let mut ordered = language::read(order, &lower, lexicon).reading;
        ordered.acts.retain(|act| !act.is_unknown() && act.operation != Operation::Read);
        reading.absorb(ordered);
    }
    for command in embedded::commands(text, lexicon) {
        reading.acts.retain(|act| !runs(act, command, text));
        absorb_command(command, &mut reading, lexicon);
    }
    let names_secret = text.split_whitespace().any(|word| {
        // A full stop after a word does not make it a path.
        let inner = word.trim_end_matches(|c: char| !c.is_alphanumeric());
        inner.contains(['.', '/'])
            && place::is_secret(
                inner.trim_start_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '.' | '/' | '~')),
            )
    });
    if names_secret {
        // The file contains a secret, whatever the sentence calls it.
        let secret = Act::new("read", "secret_file", Resource::Credential, Operation::Read, 0.8);
        reading.push(secret.at_risk(RiskLevel::High));
    }
    // "Read the file at $TARGET" refers to the unknown value of the variable.
    let words = text.contains('$').then(|| text.split_whitespace()).into_iter().flatten();
    for variable in words.filter(|word| is_variable(word)) {
        reading.facts.note_unread(UnreadKind::Target, variable);
        reading.facts.signs.add(Sign::Unclear);
    }
    if let Some(path) = written_system_path(text, &reading) {
        let system = Act::new("write", "system_file", Resource::Config, Operation::Write, 0.8).named_by(path);
        reading.push(system.at_risk(RiskLevel::High));
    }
    // "Explain what DROP TABLE does" runs nothing.
    let only_asks = !reading.acts.is_empty()
        && reading.acts.iter().all(|act| act.operation == Operation::Read && act.resource == Resource::Information);
    let hands_over = reading.acts.iter().all(|act| act.operation == Operation::Read)
        && text.find(':').and_then(|colon| text.get(..=colon)).is_some_and(embedded::asks_for_text);
    if let Some(statement) = driver::embedded_sql(text, lexicon).filter(|_| !only_asks && !hands_over) {
        reading.absorb(statement);
    }
    reading
}

/// Returns whether an act is the "run" before a command line: then it means the command's effect.
fn runs(act: &Act, command: &str, text: &str) -> bool {
    let before = || text.find(command).and_then(|at| text.get(..at)).unwrap_or_default();
    let is_said = |verb: &str| {
        let mut words = before().split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).rev();
        words.by_ref().take(LONGEST_LEAD).any(|word| word == verb)
    };
    act.learned.is_some()
        && act.operation == Operation::Execute
        && !act.signs.has(Sign::UnseenInstructions)
        && act.found.operation.as_deref().is_some_and(is_said)
}

/// Returns whether a word is `$NAME` or `${NAME}`, not a sum of dollars.
fn is_variable(word: &str) -> bool {
    let name = word.strip_prefix('$').map(|name| name.trim_start_matches('{'));
    name.is_some_and(|name| name.len() > 1 && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

/// A system path that a sentence writes to: "save it to /etc/cron.d/job", "edit /etc/hosts".
fn written_system_path<'t>(text: &'t str, reading: &Reading) -> Option<&'t str> {
    let changes = |act: &Act| matches!(act.operation, Operation::Write | Operation::Delete);
    if !text.contains(['/', '\\', '~']) || !reading.acts.iter().any(changes) {
        return None;
    }
    let only_changes = reading.acts.iter().all(changes);
    let mut before = "";
    for word in text.split_whitespace() {
        let path = word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '/' | '~' | '.' | '\\'));
        let is_destination = ["to", "into", "onto", "over", "in", "at", "as"].contains(&before);
        if path.contains(['/', '\\']) && (is_destination || only_changes) && place::is_system(path) {
            return Some(path);
        }
        before = word;
    }
    None
}

/// Merges the reading of a command line within a sentence, whose words are not nouns and verbs of the sentence.
fn absorb_command(command: &str, reading: &mut Reading, lexicon: &Lexicon) {
    let capitalised = command.starts_with(|c: char| c.is_ascii_uppercase());
    let shouts = capitalised && !command.bytes().any(|byte| byte.is_ascii_lowercase());
    let lower = match command.split_once(' ') {
        _ if shouts => command.to_ascii_lowercase(),
        Some((program, rest)) => format!("{} {rest}", program.to_ascii_lowercase()),
        None => command.to_ascii_lowercase(),
    };
    reading.acts.retain(|act| !act.is_unknown());
    reading.absorb(driver::command(&lower, lexicon));
}

/// Maximum number of words between "run" and the command.
const LONGEST_LEAD: usize = 6;
