//! Command lines within English: "Read the docs, then rm -rf /data", "Step 2: git push --force", "root@host:~# halt".
//! A command counts if a clause starts with it, or if only request words precede it; a command that is explained,
//! quoted or written about is content.

use crate::lexicon::Lexicon;
use crate::roles::{Role, Roles};

use super::tables::wording;

/// The command lines that clauses of a text start with.
pub(super) fn commands<'a>(text: &'a str, lexicon: &Lexicon) -> Vec<&'a str> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut open = true;
        let mut covered = false;
        for (at, word) in words(line) {
            if covered {
                break;
            }
            let bare = word.trim_matches(['"', '\'', '`', '(', ')', ',']);
            if open && word.ends_with(bare) && begins_command(bare, line.get(at + word.len()..).unwrap_or(""), lexicon)
            {
                let start = at + word.find(bare).unwrap_or(0);
                found.push(ended(line.get(start..).unwrap_or("")));
                covered = true;
                if found.len() >= MOST_COMMANDS {
                    return found;
                }
            } else if ends_clause(word) {
                open = !asks_for_text(line.get(..at + word.len()).unwrap_or(""));
            } else if is_link(bare) {
                // "Compare git merge and git rebase" runs neither.
                open = !matches!(bare, "and" | "&")
                    || !line.get(..at).is_some_and(|before| before.len() < LONGEST_LEAD && is_on_text(before));
            } else {
                open = open && only_asks(bare);
            }
        }
    }
    found
}

/// The line after a shell prompt: `root@host:~# halt`, `PS C:\> halt`, `C:\> halt`.
pub(super) fn behind_prompt(text: &str) -> &str {
    let Some((prompt, rest)) = text.split_once(' ') else { return text };
    let rest = rest.trim_start();
    if prompt.ends_with(['#', '$']) && prompt.len() > 2 && prompt.contains('@') && prompt.contains(':')
        || prompt.ends_with('>') && prompt.get(1..3) == Some(":\\")
    {
        return rest;
    }
    match (prompt, rest.split_once("> ")) {
        ("PS", Some((place, line))) if place.get(1..3) == Some(":\\") && !place.contains(' ') => line,
        _ => text,
    }
}

/// The parts of a line joined by a bare "and" or "then" before a program or a verb; empty if the line is a single
/// command.
pub(super) fn joined_parts<'a>(line: &'a str, lexicon: &Lexicon) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let (mut from, mut is_link_before) = (0, None);
    if line.contains(['"', '\'', '`', '\n']) || line.starts_with("echo ") {
        return parts;
    }
    for (at, word) in words(line) {
        if at > 0 && is_link(word) {
            is_link_before = is_link_before.or(Some(at));
            continue;
        }
        let Some(link) = is_link_before.take() else { continue };
        let acts = lexicon.programs.knows(word) || lexicon.is_verb(word);
        let goes_on = line.get(at + word.len()..).is_some_and(|rest| !rest.trim().is_empty());
        if acts && (goes_on || !lexicon.is_noun(word)) && parts.len() < MOST_COMMANDS {
            parts.push(line.get(from..link).unwrap_or("").trim());
            from = at;
        }
    }
    if !parts.is_empty() {
        parts.push(line.get(from..).unwrap_or("").trim());
    }
    parts
}

/// The words between blanks, with their places.
pub(super) fn words(line: &str) -> impl Iterator<Item = (usize, &str)> {
    line.split(' ')
        .scan(0, |next, word| {
            let at = *next;
            *next += word.len() + 1;
            Some((at, word))
        })
        .filter(|(_, word)| !word.is_empty())
}

fn ends_clause(word: &str) -> bool {
    word.ends_with([':', ',', '.', ';', '!', '?', ')', '#', '>'])
}

fn is_link(word: &str) -> bool {
    wording().clause_links.has(word)
}

/// Returns whether a word before a command still leaves it a request: "can you run", "you should", "just", "let's".
fn only_asks(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    if wording().asking_words.has(&lower)
        || lower.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_punctuation())
    {
        return true;
    }
    Roles::of(&lower).has_any(&[Role::Filler, Role::Modal])
}

/// Returns whether the clause asks to process the text after it: "Explain this:", "Translate:".
pub(super) fn asks_for_text(clause: &str) -> bool {
    clause.len() <= LONGEST_LEAD && clause.trim_end().ends_with(':') && is_on_text(clause)
}

/// Returns whether a clause asks a question, or processes a text as it is.
fn is_on_text(clause: &str) -> bool {
    clause.split_whitespace().any(|word| {
        let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_ascii_lowercase();
        is_of_text(&word) || Roles::of(&word).has(Role::Question)
    })
}

/// Returns whether a verb's object is a text.
fn is_of_text(word: &str) -> bool {
    wording().text_verbs.has(word)
}

/// Returns whether a word and the text after it are a command: a program with something that only commands have.
fn begins_command(word: &str, rest: &str, lexicon: &Lexicon) -> bool {
    // Length rules out most words: no program name that is not English is longer.
    if word.len() > LONGEST_PROGRAM || word.len() < 2 || !word.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return false;
    }
    let lower = word.to_ascii_lowercase();
    if !lexicon.programs.knows(&lower) {
        return false;
    }
    let next = rest.split_whitespace().next().unwrap_or("");
    let has_flag = next
        .strip_prefix("--")
        .or_else(|| next.strip_prefix('-'))
        .is_some_and(|flag| flag.starts_with(|c: char| c.is_ascii_alphabetic()));
    if has_flag {
        return true;
    }
    let is_only_program = !lexicon.is_english(&lower) || wording().never_english.has(&lower);
    if !is_only_program {
        return false;
    }
    let arguments: Vec<&str> = rest.split_whitespace().take(4).collect();
    next.starts_with(['/', '~', '$'])
        || next.starts_with("./")
        || next.starts_with("..")
        || lower == "sudo" && lexicon.programs.knows(&next.to_ascii_lowercase())
        || lexicon.programs.exact(&lower).is_some_and(|program| program.begins_with_sub(&arguments))
}

/// The command without the English end of the sentence: "for me?", a full stop, a quotation mark.
fn ended(line: &str) -> &str {
    let mut line = line.trim_end_matches(['?', '!', '"', '`', '\'', ' ', ')']);
    if let Some(bare) = line.strip_suffix('.').filter(|bare| bare.ends_with(|c: char| c.is_alphanumeric())) {
        line = bare;
    }
    for tail in [" for me", " please", " now", " for us", " again"] {
        line = line.strip_suffix(tail).unwrap_or(line);
    }
    line
}

/// Maximum number of commands read from one text.
const MOST_COMMANDS: usize = 16;
/// Maximum length of a program's name, in bytes.
const LONGEST_PROGRAM: usize = 24;
/// Maximum length of a clause that introduces a text, in bytes.
const LONGEST_LEAD: usize = 96;
