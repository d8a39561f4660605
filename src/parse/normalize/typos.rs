//! Misspelled words of the danger floor.

use crate::parse::language::floor_words;

use super::confusable;

/// The word of the danger floor that an unknown lower-case word is one edit away from, or two edits from eight
/// letters on: an added, missing or changed letter, or two swapped letters.
pub(super) fn meant(word: &str) -> Option<&'static str> {
    if !(SHORTEST..=LONGEST).contains(&word.len()) || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return None;
    }
    // A typing error keeps the first letter. Short words have too many neighbors to allow anything but swapped
    // letters.
    let most = if word.len() >= LEAST_FOR_TWO { 2 } else { 1 };
    let is_slip = |meant: &&str| {
        meant.len().abs_diff(word.len()) <= most
            && (word.len().min(meant.len()) >= LEAST_FOR_A_LETTER || is_swapped(word, meant))
            && strsim::osa_distance(word, meant) <= most
    };
    let found =
        floor_words(word.bytes().next()?).filter(is_slip).min_by_key(|meant| strsim::osa_distance(word, meant))?;
    (found != word && !confusable::holds("ordinary", word)).then_some(found)
}

/// Returns whether two words have the same letters.
fn is_swapped(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.as_bytes().to_vec(), other.as_bytes().to_vec());
    one.sort_unstable();
    other.sort_unstable();
    one == other
}

/// Minimum length: any edit of a shorter word is another word.
const SHORTEST: usize = 4;
/// Minimum length of a word with an added, missing or changed letter.
const LEAST_FOR_A_LETTER: usize = 5;
/// Minimum length of a word that may be two edits away.
const LEAST_FOR_TWO: usize = 8;
/// Maximum length of a word of the danger floor.
const LONGEST: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slip_is_seen_through_and_other_words_are_left_alone() {
        for (word, verb) in [
            ("delte", "delete"),
            ("dellete", "delete"),
            ("remvoe", "remove"),
            ("tranfer", "transfer"),
            ("eraze", "erase"),
            ("wpie", "wipe"),
            ("deactvte", "deactivate"),
            ("exfiltate", "exfiltrate"),
        ] {
            assert_eq!(meant(word), Some(verb), "{word}");
        }
        for word in ["weather", "steam", "star", "wide", "mail", "kubernetes", "delete"] {
            assert_eq!(meant(word), None, "{word}");
        }
    }
}
