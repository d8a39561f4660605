//! Lists of the programs, flags, variables and paths that make a harmless-looking command dangerous. They are the
//! crate's own; a user's lexicon cannot reduce them.

use std::sync::LazyLock;

use crate::table::{WordSet, Words};

/// Returns whether the list contains the word.
pub(super) fn holds(list: &str, word: &str) -> bool {
    LISTS.get(list).is_some_and(|list| list.set.contains(word))
}

/// In a list of `program:part` entries, the parts of this program.
pub(super) fn parts(list: &str, program: &str) -> &'static [String] {
    LISTS.get(list).and_then(|list| list.of.get(program)).map_or(&[], Vec::as_slice)
}

/// The words of a list, in order.
pub(super) fn items(list: &str) -> &'static [String] {
    LISTS.get(list).map_or(&[], |list| list.words.as_slice())
}

/// Returns whether a text calls something that runs programs or removes files, in any programming language.
pub(super) fn calls_code(text: &str) -> bool {
    // Most sentences contain no mark of a call.
    let may_call = text.bytes().any(|byte| matches!(byte, b'(' | b'_'))
        || ["os.", "fs.", "::", "ctypes.", "!!", "!ruby", "py/"].iter().any(|part| text.contains(part));
    if !may_call {
        return false;
    }
    let text = text.to_ascii_lowercase();
    items("code_calls").iter().any(|call| {
        text.match_indices(call.as_str()).any(|(at, _)| {
            let before = text.get(..at).and_then(|before| before.chars().next_back());
            // "retrieval(" is not "eval(".
            before.is_none_or(|c| !c.is_alphanumeric() && c != '_')
        })
    })
}

/// One list, indexed for each kind of lookup.
#[derive(Debug, Default)]
struct List {
    words: Vec<String>,
    set: WordSet,
    of: Words<Vec<String>>,
}

impl List {
    fn new(text: &str) -> Self {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let mut of: Words<Vec<String>> = Words::default();
        for (program, part) in words.iter().filter_map(|word| word.split_once(':')) {
            of.entry(program.to_owned()).or_default().push(part.to_owned());
        }
        Self { set: words.iter().cloned().collect(), words, of }
    }
}

// A test ensures that the file parses.
static LISTS: LazyLock<Words<List>> = LazyLock::new(|| {
    let lists: Words<String> = toml::from_str(include_str!("../data/dangers.toml")).unwrap_or_default();
    lists.into_iter().map(|(name, words)| (name, List::new(&words))).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_read() {
        assert!(holds("shells", "bash"));
        assert!(LISTS.values().all(|words| !words.words.is_empty()));
    }

    #[test]
    fn a_call_that_runs_programs_is_told_from_a_word_ending_like_it() {
        for (text, expected) in [
            ("subprocess.run(['ls'])", true),
            ("require('child_process').exec('x')", true),
            ("Runtime.getRuntime().exec(\"x\")", true),
            ("!!python/object/apply:os.system [id]", true),
            ("the retrieval(x)", false),
            ("run the subprocess", false),
        ] {
            assert_eq!(calls_code(text), expected, "{text}");
        }
    }
}
