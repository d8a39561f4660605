//! Finds what a text asks to run: command lines, quoted or bare after "run", and quotations that are orders.

use crate::learned::{Clause, Stance};
use crate::lexicon::Lexicon;
use crate::roles::Role;

use super::token::{Kind, Token};

/// The command lines that the text asks to run, and the quotations after "run this" and "do this" that are not
/// commands.
pub(super) fn find<'a>(
    tokens: &[Token<'a>],
    clauses: &[Clause<'_>],
    text: &'a str,
    lexicon: &Lexicon,
) -> (Vec<&'a str>, Vec<&'a str>) {
    let (mut commands, mut orders) = (Vec::new(), Vec::new());
    // A bare command extends to the end of its line, so a later one on the line is part of it.
    let mut covered = 0;
    for (at, runs) in runners(tokens, clauses) {
        let behind = tokens.get(at + 1..).unwrap_or(&[]);
        let behind = behind.get(..LONGEST_ORDER).unwrap_or(behind);
        let end = behind.iter().position(|token| token.kind == Kind::Stop).unwrap_or(behind.len());
        let governed = behind.get(..end).unwrap_or(&[]);
        let quoted = governed.iter().filter(|token| matches!(token.kind, Kind::CodeSpan | Kind::Quoted));
        for span in quoted {
            if starts_with_program(span.text, lexicon) {
                if runs {
                    commands.push(span.text);
                }
            } else if span.kind == Kind::Quoted && span.text.contains(' ') && orders.len() < MOST_ORDERS {
                orders.push(span.text);
            }
        }
        let start = tokens.get(at).map_or(0, |token| token.start);
        if !runs || start < covered {
            continue;
        }
        if let Some(rest) = behind_colon(text, start).filter(|rest| starts_with_program(rest, lexicon)) {
            commands.push(rest);
            covered = text.len();
        } else if let Some(first) = governed.iter().find(|token| token.kind == Kind::Word && token.word != "the") {
            let rest = text.get(first.start..).unwrap_or("").lines().next().unwrap_or("");
            covered = first.start + rest.len();
            let is_line = rest.contains(['|', ';', '&', '>', '$', '`'])
                || rest.split_whitespace().nth(1).is_some_and(looks_like_argument);
            if starts_with_program(rest, lexicon) && is_line {
                commands.push(rest);
            }
        }
    }
    (commands, orders)
}

/// The tokens that order something to be run or followed, and whether their object may be a command.
fn runners(tokens: &[Token<'_>], clauses: &[Clause<'_>]) -> Vec<(usize, bool)> {
    let ordered = clauses.iter().filter(|clause| clause.stance == Stance::Asked);
    let mut found: Vec<(usize, bool)> = ordered
        .flat_map(|clause| clause.roles.iter().zip(&clause.at))
        .filter_map(|(roles, &at)| {
            let runs = roles.has(Role::Runs);
            (runs || roles.has(Role::Obeys)).then_some((at as usize, runs))
        })
        .collect();
    found.dedup_by_key(|(at, _)| *at);
    found.retain(|(at, _)| tokens.get(*at).is_some_and(|token| token.kind == Kind::Word));
    found
}

/// The text after a colon, also on the next line and in code fences: "Run the following: ...", "Execute: ...".
fn behind_colon(text: &str, start: usize) -> Option<&str> {
    let behind = text.get(start..)?;
    let colon = behind.bytes().take(LONGEST_LEAD + 1).position(|byte| matches!(byte, b':' | b'\n'))?;
    let rest = behind.get(colon..)?.strip_prefix(':')?.trim_start_matches(['\n', '\r', ' ', '`']);
    let rest = ["bash", "sh", "shell", "console"]
        .iter()
        .find_map(|fence| rest.strip_prefix(fence)?.strip_prefix('\n'))
        .unwrap_or(rest);
    Some(rest.trim_end_matches(['`', '\n', ' ']))
}

fn starts_with_program(text: &str, lexicon: &Lexicon) -> bool {
    text.split_whitespace().next().is_some_and(|first| lexicon.programs.knows(first))
}

fn looks_like_argument(word: &str) -> bool {
    word.starts_with(['-', '/', '.', '~', '$', '*']) || word.contains('/')
}

/// Maximum number of bytes between "run" and the colon before a command.
const LONGEST_LEAD: usize = 48;
/// Number of tokens after "run" in which its object is searched.
const LONGEST_ORDER: usize = 128;
/// Maximum number of quotations read as orders.
const MOST_ORDERS: usize = 8;
