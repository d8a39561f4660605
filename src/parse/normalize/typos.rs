//! Words of danger that were written wrong.

use crate::parse::language::{Letters, floor_words};

use super::confusable;

/// The word of the danger floor that an unknown lower-case word is one edit away from, of eight letters and more two:
/// a letter too many, too few, another one, or two swapped.
pub(super) fn meant(word: &str) -> Option<&'static str> {
    if !(SHORTEST..=LONGEST).contains(&word.len()) || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return None;
    }
    // A slip leaves the first letter as it is. Short words have too many neighbours for anything but two letters swapped.
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

/// Whether the two are of the same letters.
fn is_swapped(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.as_bytes().to_vec(), other.as_bytes().to_vec());
    one.sort_unstable();
    other.sort_unstable();
    one == other
}

/// Shorter words are other words with any slip.
const SHORTEST: usize = 4;
/// Shortest word of which a letter may be wrong, too many or too few.
const LEAST_FOR_A_LETTER: usize = 5;
/// Shortest word that may be two edits away.
const LEAST_FOR_TWO: usize = 8;
/// No word of danger is longer.
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
