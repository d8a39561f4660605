//! The nearest known word to one that is not known.

/// The candidate that takes the fewest edits to reach from `word`, if it is near
/// enough to have been meant: two edits, or a third of the word.
pub(super) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A long text is no mistyped word, and the distance costs its length.
    if word.len() > MAX_WORD_BYTES {
        return None;
    }
    let limit = (word.chars().count() / 3).max(2);
    let lower = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(edits, candidate)| *edits <= limit && *edits < candidate.chars().count())
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Composes `; did you mean "..."?` for the candidate nearest to a word; empty where none is near.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map(|meant| format!("; did you mean {meant:?}?")).unwrap_or_default()
}

/// Edits between two words, two swapped neighbours counting as one
/// (optimal string alignment).
pub(crate) fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (row, &a) in from.iter().enumerate() {
        let mut current = Vec::with_capacity(last.len());
        current.push(row + 1);
        for (column, &b) in to.iter().enumerate() {
            let replaced = last[column] + usize::from(a != b);
            let mut best = replaced.min(last[column + 1] + 1).min(current[column] + 1);
            let swapped = row > 0 && column > 0 && a == to[column - 1] && from[row - 1] == b;
            if swapped {
                best = best.min(before_last[column - 1] + 1);
            }
            current.push(best);
        }
        before_last = std::mem::replace(&mut last, current);
    }
    last.last().copied().unwrap_or(0)
}

const MAX_WORD_BYTES: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_what_was_meant_and_another_word_does_not() {
        let words = ["payment:transfer", "payment:read", "email:send"];
        assert_eq!(nearest("payment:trasnfer", words), Some("payment:transfer"));
        assert_eq!(nearest("Email:Send", words), Some("email:send"));
        assert_eq!(nearest("crm:export", words), None);
        assert_eq!(nearest("", words), None);
    }

    #[test]
    fn two_swapped_neighbours_are_one_edit() {
        assert_eq!(distance("trasnfer", "transfer"), 1);
        assert_eq!(distance("abc", ""), 3);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}
