//! Dangerous verbs: which words they are, and which words are one slip away.

use std::sync::{Arc, OnceLock};

use crate::model::Operation;
use crate::parse::lexicon::{Entry, Lexicon};

use super::confusable;

/// The verbs of a lexicon that are looked for behind misspellings.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    /// By first letter, which a slip leaves as it is.
    by_initial: [Vec<Box<str>>; 26],
}

impl Watched {
    pub(crate) fn of(lexicon: &Lexicon) -> Self {
        let mut watched = Self::default();
        let verbs = lexicon.verbs().filter(|verb| is_effect(verb.operation) && verb.lemma.len() >= SHORTEST);
        for verb in verbs.filter(|verb| verb.lemma.bytes().all(|byte| byte.is_ascii_lowercase())) {
            let known = initial(&verb.lemma).and_then(|initial| watched.by_initial.get_mut(initial));
            if let Some(known) = known.filter(|known| !known.iter().any(|known| **known == *verb.lemma)) {
                known.push((*verb.lemma).into());
            }
        }
        watched
    }

    /// The same for the built-in lexicon, made once a process.
    pub(crate) fn shared(lexicon: &Lexicon) -> Arc<Self> {
        static BUILTIN: OnceLock<Arc<Watched>> = OnceLock::new();
        Arc::clone(BUILTIN.get_or_init(|| Arc::new(Self::of(lexicon))))
    }

    /// The dangerous verb that a lower-case word is one slip away from: a letter too many or
    /// too few, two letters swapped, or one letter written as it sounds.
    pub(super) fn meant(&self, word: &str) -> Option<&str> {
        if !(SHORTEST..=LONGEST).contains(&word.len()) || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return None;
        }
        let verbs = initial(word).and_then(|initial| self.by_initial.get(initial))?;
        let found = verbs.iter().find(|verb| verb.len().abs_diff(word.len()) <= 1 && is_slip(word, verb))?;
        (!confusable::holds("ordinary", word)).then_some(found)
    }
}

/// Whether a word is a verb that acts on something rather than looks at it.
pub(super) fn is_dangerous(entry: Entry, lexicon: &Lexicon) -> bool {
    entry.verb.is_some_and(|(verb, _)| is_effect(lexicon.verb(verb).operation))
}

const fn is_effect(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::Delete | Operation::Transfer | Operation::Admin | Operation::Send | Operation::Execute
    )
}

/// The place of a small first letter in the alphabet.
fn initial(word: &str) -> Option<usize> {
    word.bytes().next()?.checked_sub(b'a').map(usize::from)
}

/// Whether two different words of ASCII letters with one initial differ by one slip.
fn is_slip(word: &str, verb: &str) -> bool {
    let (one, other) = (word.as_bytes(), verb.as_bytes());
    if one == other || one.first() != other.first() {
        return false;
    }
    // Short words have too many neighbors for anything but two letters swapped.
    let is_short = one.len().min(other.len()) < FEWEST_FOR_A_LETTER;
    let start = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let room = one.len().min(other.len()) - start;
    let end = one.iter().rev().zip(other.iter().rev()).take(room).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one.get(start..one.len() - end), &other.get(start..other.len() - end));
    match (one, other) {
        (Some([a, b]), Some([c, d])) => a == d && b == c,
        _ if is_short => false,
        (Some([]), Some([_])) | (Some([_]), Some([])) => true,
        (Some([a]), Some([b])) => sounds_alike(*a, *b),
        _ => false,
    }
}

const fn sounds_alike(one: u8, other: u8) -> bool {
    const fn kind(letter: u8) -> u8 {
        match letter {
            b'a' | b'e' | b'i' | b'o' | b'u' | b'y' => 1,
            b's' | b'z' => 2,
            b'c' | b'k' | b'q' => 3,
            b'v' | b'w' => 4,
            b'm' | b'n' => 5,
            _ => 0,
        }
    }
    kind(one) != 0 && kind(one) == kind(other)
}

/// Shorter words are other words with any slip.
const SHORTEST: usize = 4;
/// Shortest word of which a letter may be wrong, too many or too few.
const FEWEST_FOR_A_LETTER: usize = 5;
/// No verb is longer.
const LONGEST: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slip_is_seen_through_and_other_words_are_left_alone() {
        let watched = Watched::of(&Lexicon::shared().unwrap());
        for (word, verb) in [
            ("delte", "delete"),
            ("dellete", "delete"),
            ("remvoe", "remove"),
            ("tranfer", "transfer"),
            ("eraze", "erase"),
            ("terminat", "terminate"),
            ("sned", "send"),
        ] {
            assert_eq!(watched.meant(word), Some(verb), "{word}");
        }
        for word in [
            "remote", "weather", "delta", "instill", "steam", "change", "grand", "relate", "delete", "star", "wide",
            "mail",
        ] {
            assert_eq!(watched.meant(word), None, "{word}");
        }
    }
}
