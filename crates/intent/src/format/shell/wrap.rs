//! Finds the command that a command runs.

use crate::programs::{CommandRule, Program, Wraps};

/// The command inside a command.
#[derive(Debug, PartialEq)]
pub(super) enum Inner {
    /// The arguments from this place on.
    Rest(usize),
    /// A text that a shell reads; the arguments up to the place belong to the wrapper.
    Text(String, usize),
    /// There is one, but it is not visible.
    Unclear,
}

/// The command in a program's arguments, and the rule of the subcommand that runs it.
pub(super) fn inner<'p>(program: &'p Program, arguments: &[&str]) -> Option<(Inner, Option<&'p CommandRule>)> {
    for wraps in &program.wraps {
        if let Some(inner) = by(wraps, program, arguments, 0) {
            return Some((inner, None));
        }
    }
    if !program.wraps_by_subcommand() {
        return None;
    }
    // The subcommand's words, and where they end.
    let mut plain: Vec<&str> = Vec::new();
    let mut ends: Vec<usize> = Vec::new();
    let mut skip = false;
    for (place, &argument) in arguments.iter().enumerate() {
        if skip {
            skip = false;
        } else if argument.starts_with('-') {
            skip = program.takes_value(argument);
        } else {
            plain.push(argument);
            ends.push(place + 1);
            if plain.len() == DEEPEST_SUBCOMMAND {
                break;
            }
        }
    }
    (1..=plain.len()).rev().find_map(|length| {
        let kinds = program.subcommand_wraps(plain.get(..length)?)?;
        let from = *ends.get(length - 1)?;
        let inner = kinds.iter().find_map(|wraps| by(wraps, program, arguments, from))?;
        Some((inner, program.subcommand(&plain)))
    })
}

fn by(wraps: &Wraps, program: &Program, arguments: &[&str], from: usize) -> Option<Inner> {
    match wraps {
        Wraps::Flag(flag) => by_flag(flag, program, arguments, from),
        Wraps::AfterWord(word) => {
            let place =
                arguments.iter().skip(from).take(MOST_BEFORE).position(|argument| *argument == &**word)? + from + 1;
            match arguments.get(place..)? {
                [text, ..] if text.contains(char::is_whitespace) => Some(Inner::Text((*text).to_owned(), place)),
                [] => None,
                _ => Some(Inner::Rest(place)),
            }
        }
        Wraps::After { plain, text } => {
            let place = first_plain(program, arguments, from, *plain)?;
            let rest = arguments.get(place..).filter(|rest| !rest.is_empty())?;
            match rest {
                // A name with blanks is a text that a shell reads: `parallel 'rm {}' ::: *`.
                [text, ..] if text.contains(char::is_whitespace) => Some(Inner::Text(rest.join(" "), place)),
                // An inner "--" belongs to the wrapper.
                _ if *text => Some(Inner::Text(rest.join(" "), place)),
                _ => Some(Inner::Rest(place)),
            }
        }
    }
}

/// The place after the program's own flags, assignments and `plain` plain arguments.
fn first_plain(program: &Program, arguments: &[&str], from: usize, mut plain: usize) -> Option<usize> {
    let mut skip = false;
    for (place, &word) in arguments.iter().enumerate().skip(from) {
        if skip {
            skip = false;
        } else if word == "--" {
            // Only plain arguments follow it.
            return Some(place + 1 + plain);
        } else if word.starts_with('-') && word.len() > 1 {
            skip = program.takes_value(word);
        } else if plain > 0 {
            plain -= 1;
        } else if super::assigned(word).is_some() || word == "..." {
            // An ellipsis stands for more of the same.
        } else {
            return Some(place);
        }
    }
    None
}

/// The text after `-c`, also in a cluster (`-lc`), long (`--command`) or joined (`--command=x`).
fn by_flag(flag: &str, program: &Program, arguments: &[&str], from: usize) -> Option<Inner> {
    let letter = flag.strip_prefix('-').filter(|rest| rest.len() == 1);
    for (place, &argument) in arguments.iter().enumerate().skip(from) {
        if !argument.starts_with(['-', '+', '/']) && letter.is_some() && !program.takes_early_plain() {
            // A shell's own flags end at the first plain argument.
            return None;
        }
        let cluster = letter.is_some_and(|letter| {
            argument.starts_with('-')
                && !argument.starts_with("--")
                && argument.contains(letter)
                && argument.len() <= LONGEST_CLUSTER
        });
        if argument == flag || cluster || flag == "-c" && argument == "--command" {
            let next = arguments.get(place + 1..).unwrap_or(&[]);
            let behind = next.iter().position(|text| !text.starts_with(['-', '+']) || text.contains(' '));
            return Some(match behind.and_then(|behind| next.get(behind).map(|text| (text, behind))) {
                Some((text, behind)) => Inner::Text((*text).to_owned(), place + 1 + behind),
                None => Inner::Unclear,
            });
        }
        let joined = argument
            .strip_prefix(flag)
            .filter(|_| flag.starts_with("--"))
            .or_else(|| argument.strip_prefix("--command"))
            .and_then(|rest| rest.strip_prefix('='));
        if let Some(text) = joined {
            return Some(Inner::Text(text.to_owned(), place + 1));
        }
    }
    None
}

/// Maximum number of words before a wrapper's `--`.
const MOST_BEFORE: usize = 64;
const DEEPEST_SUBCOMMAND: usize = 3;
/// Maximum length of a shell's flag cluster such as `-lic`.
const LONGEST_CLUSTER: usize = 6;
