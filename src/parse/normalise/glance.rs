//! A first look at a text, without memory of its own: most sentences have no
//! word that could be another in disguise, and pay for no more than this.

use crate::parse::lexicon::Lexicon;

use super::confusable;
use super::typos::{Watched, is_dangerous};

/// A word in lower case, on the stack.
#[derive(Clone, Copy)]
struct Word {
    letters: [u8; LONGEST],
    length: usize,
    known: bool,
    /// Whether a single blank stands before it.
    after_blank: bool,
}

impl Word {
    fn as_str(&self) -> &str {
        self.letters.get(..self.length).and_then(|letters| std::str::from_utf8(letters).ok()).unwrap_or("")
    }
}

/// Whether some word may be a dangerous verb in disguise.
pub(super) fn is_worth_a_look(text: &str, lexicon: &Lexicon, watched: &Watched) -> bool {
    if !text.is_ascii() {
        return true;
    }
    let mut before: Option<Word> = None;
    let mut single = 0;
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let gap = bytes.iter().skip(at).take_while(|byte| byte.is_ascii_whitespace()).count();
        at += gap;
        let length = bytes.iter().skip(at).take_while(|byte| !byte.is_ascii_whitespace()).count();
        let Some(chunk) = text.get(at..at + length).filter(|chunk| !chunk.is_empty()) else { break };
        at += length;
        let core =
            chunk.trim_matches(|c: char| matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '"' | '\'' | '(' | ')'));
        single = if core.len() == 1 { single + 1 } else { 0 };
        if single >= FEWEST_LETTERS {
            return true;
        }
        if core.is_empty()
            || core.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b',' | b'.' | b'%' | b'-'))
        {
            before = None;
            continue;
        }
        let Some(word) = lowered(core, lexicon, gap == 1 && core.len() == chunk.len()) else {
            // Addresses are read as they are; nothing else is so long.
            if !core.contains("://") && core.len() < LONGEST_OF_ALL {
                return true;
            }
            before = None;
            continue;
        };
        if !word.known && is_odd(&word, before.as_ref(), watched) || joins(before.as_ref(), &word, lexicon) {
            return true;
        }
        before = Some(Word { after_blank: core.len() == chunk.len(), ..word });
    }
    false
}

/// The same of structured text, whose words stand between marks.
pub(super) fn is_worth_a_look_between_marks(text: &str, lexicon: &Lexicon, watched: &Watched) -> bool {
    // Marks that stand for letters, and joined pieces: the whole look is for them.
    if !text.is_ascii()
        || text.bytes().any(|byte| matches!(byte, b'$' | b'*' | b'+' | b'!' | b'|' | b'%' | b'&' | b'\\'))
    {
        return true;
    }
    let has_sign = text.contains('@');
    let mut before: Option<Word> = None;
    let mut single = 0;
    for chunk in text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|chunk| !chunk.is_empty()) {
        single = if chunk.len() == 1 { single + 1 } else { 0 };
        if single >= FEWEST_LETTERS || has_sign && chunk.len() >= LONGEST {
            return true;
        }
        if chunk.bytes().all(|byte| byte.is_ascii_digit()) {
            before = None;
            continue;
        }
        let Some(word) = lowered(chunk, lexicon, true) else { return true };
        if !word.known && is_odd(&word, None, watched) || joins(before.as_ref(), &word, lexicon) {
            return true;
        }
        before = Some(word);
    }
    // "gr@nt": a sign within a word that is no address.
    has_sign && text.split_whitespace().any(|chunk| chunk.contains('@') && !chunk.contains('.'))
}

fn lowered(core: &str, lexicon: &Lexicon, after_blank: bool) -> Option<Word> {
    let mut word = Word { letters: [0; LONGEST], length: core.len(), known: false, after_blank };
    for (place, byte) in word.letters.get_mut(..core.len())?.iter_mut().zip(core.bytes()) {
        *place = byte.to_ascii_lowercase();
    }
    let text = word.as_str();
    word.known = lexicon.word(text).is_some() || !lexicon.phrases(text).is_empty();
    Some(word)
}

/// Whether an unknown word may be a known one: by its characters, its repetitions or its place.
fn is_odd(word: &Word, before: Option<&Word>, watched: &Watched) -> bool {
    let text = word.as_str();
    if !text.bytes().all(|byte| byte.is_ascii_lowercase()) {
        let is_address = text.contains("://") || text.contains('@') && text.contains('.');
        let possessive =
            text.strip_suffix("'s").is_some_and(|owner| owner.bytes().all(|byte| byte.is_ascii_lowercase()));
        return !is_address && !possessive;
    }
    let repeats = text.as_bytes().windows(3).any(|run| run.iter().all(|byte| Some(byte) == run.first()));
    let verb_may_stand = match before {
        Some(before) if before.after_blank => confusable::holds("before_verb", before.as_str()),
        _ => true,
    };
    let is_part = word.length <= LONGEST_PART
        && before.is_some_and(|before| before.after_blank && !before.known && before.length <= LONGEST_PART);
    repeats || is_part || verb_may_stand && watched.meant(text).is_some()
}

/// Whether two words are a dangerous verb that was parted.
fn joins(before: Option<&Word>, word: &Word, lexicon: &Lexicon) -> bool {
    let Some(before) = before.filter(|before| before.after_blank && !(before.known && word.known)) else {
        return false;
    };
    let mut both = *before;
    let length = before.length + word.length;
    let Some(rest) = both.letters.get_mut(before.length..length) else { return false };
    for (place, letter) in rest.iter_mut().zip(word.as_str().bytes()) {
        *place = letter;
    }
    both.length = length;
    lexicon.word(both.as_str()).is_some_and(|entry| is_dangerous(entry, lexicon))
}

/// Longest word that is looked at on the stack.
const LONGEST: usize = 32;
/// Longest chunk that may be a word in disguise.
const LONGEST_OF_ALL: usize = 64;
/// Unknown words in a row that are as short as this may be parts of one.
const LONGEST_PART: usize = 4;
/// Fewest letters that stand one by one.
const FEWEST_LETTERS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_call_is_not_worth_a_look_and_a_disguised_one_is() {
        let lexicon = Lexicon::shared().unwrap();
        let watched = Watched::of(&lexicon);
        let look = |text: &str| is_worth_a_look_between_marks(text, &lexicon, &watched);
        let ordinary = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"send_email","arguments":{"recipients":["bob@example.com"],"subject":"Report for the quarter","body":"Please find the numbers of the third quarter below."}}}"#;
        assert!(!look(ordinary));
        for text in [
            r#"{"name":"d3l3te_file"}"#,
            r#"{"name":"delte_file"}"#,
            r#"{"name":"del_ete_file"}"#,
            r#"{"name":"deleeete_file"}"#,
            r#"{"name":"gr@nt_role"}"#,
            r#"{"name":"d_e_l_e_t_e"}"#,
            r#"{"name":"$end_money"}"#,
        ] {
            assert!(look(text), "{text}");
        }
    }

    #[test]
    fn ordinary_sentences_are_not_worth_a_look() {
        let lexicon = Lexicon::shared().unwrap();
        let watched = Watched::of(&lexicon);
        for text in
            ["Send the report to Bob before noon.", "What is the weather in Paris?", "Delete all customer records"]
        {
            assert!(!is_worth_a_look(text, &lexicon, &watched), "{text}");
        }
        for text in [
            "d3l3te it",
            "del ete it",
            "d e l e t e",
            "delte it",
            "de-lete it",
            "deleeete",
            "g\u{200b}o",
            "de le te it",
        ] {
            assert!(is_worth_a_look(text, &lexicon, &watched), "{text}");
        }
    }
}
