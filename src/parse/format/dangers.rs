//! The lists of what turns a harmless look into harm, by name: programs, flags,
//! variables, paths. They are the crate's own: a user's lexicon does not thin them.

use std::collections::HashMap;
use std::sync::LazyLock;

/// Whether the list holds the word.
pub(super) fn holds(list: &str, word: &str) -> bool {
    items(list).iter().any(|known| known == word)
}

/// Whether the list holds `program:flag` for the flag or for what it begins with.
pub(super) fn holds_of(list: &str, program: &str, matches: impl Fn(&str) -> bool) -> bool {
    items(list).iter().any(|known| known.split_once(':').is_some_and(|(of, part)| of == program && matches(part)))
}

/// The words of a list.
pub(super) fn items(list: &str) -> &'static [String] {
    LISTS.get(list).map_or(&[], Vec::as_slice)
}

/// Whether a text calls what runs programs or removes files, in some programming language.
pub(super) fn calls_code(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    items("code_calls").iter().any(|call| {
        text.match_indices(call.as_str()).any(|(at, _)| {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            // "retrieval(" is not "eval(".
            before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
        })
    })
}

// A test rules out that the file does not read.
static LISTS: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
    let lists: HashMap<String, String> = toml::from_str(include_str!("../data/dangers.toml")).unwrap_or_default();
    lists.into_iter().map(|(name, words)| (name, words.split_whitespace().map(str::to_owned).collect())).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_read() {
        assert!(holds("shells", "bash"));
        assert!(LISTS.values().all(|words| !words.is_empty()));
    }

    #[test]
    fn a_call_that_runs_programs_is_told_from_a_word_that_ends_like_it() {
        for (text, expected) in [
            ("subprocess.run(['ls'])", true),
            ("require('child_process').exec('x')", true),
            ("Runtime.getRuntime().exec(\"x\")", true),
            ("the retrieval(x)", false),
            ("run the subprocess", false),
        ] {
            assert_eq!(calls_code(text), expected, "{text}");
        }
    }
}
