//! Misspelled words of the danger floor.

use crate::language::{Letters, floor_words};

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
    let letters = Letters::of(word);
    let slip = |(meant, of_meant): (&'static str, Letters)| {
        // Most words are too far away by their letters alone, which is told in no time.
        let may_be = letters.apart(of_meant) as usize <= 2 * most
            && meant.len().abs_diff(word.len()) <= most
            && (word.len().min(meant.len()) >= LEAST_FOR_A_LETTER || is_swapped(word, meant));
        let edits = may_be.then(|| strsim::osa_distance(word, meant)).filter(|edits| *edits <= most)?;
        Some((meant, edits))
    };
    let (found, _) = floor_words(word.bytes().next()?).filter_map(slip).min_by_key(|(_, edits)| *edits)?;
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
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn letters_rule_out_no_word_that_is_near(initial in b'a'..=b'z', place in any::<prop::sample::Index>(), edits in proptest::collection::vec((0_u8..4, any::<prop::sample::Index>(), b'a'..=b'z'), 1..3)) {
            let words: Vec<&str> = floor_words(initial).map(|(word, _)| word).collect();
            prop_assume!(!words.is_empty());
            let mut word = place.get(&words).as_bytes().to_vec();
            for (how, place, letter) in edits {
                let (at, last) = (place.index(word.len()), word.len() - 1);
                match how {
                    0 => word[at] = letter,
                    1 => word.insert(at, letter),
                    2 if last > 0 => drop(word.remove(at)),
                    _ => word.swap(at, (at + 1).min(last)),
                }
            }
            let word = String::from_utf8(word).unwrap();
            for (known, letters) in floor_words(initial) {
                prop_assert!(Letters::of(&word).apart(letters) as usize <= 2 * strsim::osa_distance(&word, known));
            }
        }
    }

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
