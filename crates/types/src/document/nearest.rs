//! Suggestions for unknown words.

use strsim::osa_distance;

/// The candidate with the smallest edit distance from `word`, if it is at most two or a third of the word's length.
pub(super) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A long text is not a misspelled word, and the distance takes time.
    if word.len() > MAX_WORD_BYTES {
        return None;
    }
    let limit = (word.chars().count() / 3).max(2);
    let lower = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (osa_distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(edits, candidate)| *edits <= limit && *edits < candidate.chars().count())
        .min_by_key(|(edits, _)| *edits)
        .map(|(_, candidate)| candidate)
}

/// Composes `; did you mean "..."?` for the candidate nearest to a word; empty if none is near.
pub fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map(|meant| format!("; did you mean {meant:?}?")).unwrap_or_default()
}

const MAX_WORD_BYTES: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_what_was_meant_and_another_word_does_not() {
        let words = ["payment:transfer", "payment:read", "email:send"];
        assert_eq!(nearest("payment:trasnfer", words), Some("payment:transfer"));
        assert_eq!(nearest("emial:send", words), Some("email:send"), "two swapped neighbors are one edit");
        assert_eq!(nearest("Email:Send", words), Some("email:send"));
        assert_eq!(nearest("crm:export", words), None);
        assert_eq!(nearest("", words), None);
    }
}
