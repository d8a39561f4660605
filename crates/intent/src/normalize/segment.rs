//! Splits words that were written without blanks between them.

use crate::lexicon::Lexicon;

/// Splits lower-case letters into words, if known words make up all of them and one is a dangerous verb. Of several
/// splits the one with the longest first words is chosen.
pub(super) fn words(letters: &str, lexicon: &Lexicon) -> Option<String> {
    if letters.len() > LONGEST || !letters.is_ascii() {
        return None;
    }
    // From the end: the length of the word at each place that lets the rest be words too.
    let mut starts: Vec<usize> = vec![0; letters.len() + 1];
    let mut reaches: Vec<bool> = vec![false; letters.len() + 1];
    if let Some(last) = reaches.last_mut() {
        *last = true;
    }
    for place in (0..letters.len()).rev() {
        let longest = LONGEST_WORD.min(letters.len() - place);
        let length = (1..=longest).rev().find(|&length| {
            reaches.get(place + length) == Some(&true)
                && letters.get(place..place + length).is_some_and(|word| is_word(word, lexicon))
        });
        if let Some(length) = length
            && let (Some(start), Some(reach)) = (starts.get_mut(place), reaches.get_mut(place))
        {
            (*start, *reach) = (length, true);
        }
    }
    let mut found: Vec<&str> = Vec::new();
    let mut place = 0;
    while place < letters.len() {
        let length = *starts.get(place).filter(|&&length| length > 0)?;
        found.push(letters.get(place..place + length)?);
        place += length;
    }
    let dangerous = found.iter().any(|word| lexicon.is_dangerous(word));
    dangerous.then(|| found.join(" "))
}

fn is_word(word: &str, lexicon: &Lexicon) -> bool {
    (word.len() > 2 || matches!(word, "a" | "i" | "to" | "of" | "in" | "on" | "at" | "my" | "me" | "it" | "db"))
        && lexicon.knows(word)
}

/// Maximum length of a run of letters that is split.
const LONGEST: usize = 512;
/// Maximum length of a word in it.
const LONGEST_WORD: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_run_together_are_words_again() {
        let lexicon = Lexicon::shared().unwrap();
        assert_eq!(words("deletealluseraccounts", &lexicon).as_deref(), Some("delete all user accounts"));
        assert_eq!(words("abcdefghijkl", &lexicon), None);
        assert_eq!(words("theweather", &lexicon), None);
    }
}
