//! Runs of words in which nothing is known: they may ask for anything.

use crate::learned::{IntentTable, Vocabulary as _};
use crate::reading::Facts;
use rulekeep_types::UnreadKind;

use super::token::{Kind, Token};

/// Records each run of words of another script, and each run of unknown words. Text in quotation marks is content;
/// names and numbers end a run.
pub(super) fn note(tokens: &[Token<'_>], table: &IntentTable, facts: &mut Facts) {
    let mut run = Run::default();
    for token in tokens {
        match Word::of(token, table) {
            Some(word) => run.take(word, token, facts),
            // "The" and "of" say nothing about the words around them.
            None if token.roles.is_small() => run.is_parted |= run.words > 0,
            None => run = Run::default(),
        }
    }
}

/// The script of an unknown word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Word {
    Latin,
    /// A script without blanks between words; the letters are counted.
    Unspaced(usize),
    Other,
}

impl Word {
    fn of(token: &Token<'_>, table: &IntentTable) -> Option<Self> {
        let is_known = || token.word.split(|c: char| !(c.is_alphanumeric() || c == '\'')).any(|word| table.knows(word));
        if token.kind != Kind::Word || token.roles.is_small() || token.cue.is_some() || is_known() {
            return None;
        }
        let letters = || token.text.chars().filter(|c| c.is_alphabetic());
        if token.text.is_ascii() {
            let is_plain = token.text.bytes().all(|byte| byte.is_ascii_lowercase()) && token.text.len() > 1;
            return is_plain.then_some(Self::Latin);
        }
        let unspaced = letters().filter(|&c| is_unspaced(c)).count();
        match unspaced {
            0 if letters().all(|c| c < '\u{250}') => {
                token.text.starts_with(|c: char| c.is_lowercase()).then_some(Self::Latin)
            }
            0 => Some(Self::Other),
            letters => Some(Self::Unspaced(letters)),
        }
    }
}

/// Unknown words in a row.
#[derive(Default)]
struct Run<'t> {
    first: Option<&'t str>,
    words: usize,
    letters: usize,
    /// Known function words stand between them.
    is_parted: bool,
}

impl<'t> Run<'t> {
    fn take(&mut self, word: Word, token: &Token<'t>, facts: &mut Facts) {
        self.first = self.first.or(Some(token.text));
        match word {
            Word::Unspaced(letters) => self.letters += letters,
            Word::Latin | Word::Other => self.words += 1,
        }
        let least = LEAST_WORDS + usize::from(self.is_parted);
        if self.words >= least || self.letters >= LEAST_LETTERS {
            facts.note_unread(UnreadKind::Text, self.first.unwrap_or_default());
        }
    }
}

/// Chinese, Japanese, Korean and similar scripts, Thai, Lao, Khmer and Burmese.
const fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{0E00}'..='\u{0EFF}' | '\u{1000}'..='\u{109F}' | '\u{1780}'..='\u{17FF}' | '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}')
}

/// Minimum number of words of a run that counts as unread.
const LEAST_WORDS: usize = 3;
/// Minimum number of letters of such a run if no blanks separate its words.
const LEAST_LETTERS: usize = 5;
