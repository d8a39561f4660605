//! A cheap first pass over a text without allocations. Most sentences contain no word that could be another in
//! disguise, and need no more than this pass.

use crate::lexicon::Lexicon;

use super::{confusable, typos};

/// A word of the text.
#[derive(Clone, Copy)]
struct Word<'t> {
    text: &'t str,
    known: bool,
    /// Whether a single blank precedes it.
    after_blank: bool,
}

/// Returns whether any word may be a dangerous verb in disguise.
pub(super) fn is_worth_a_look(text: &str, lexicon: &Lexicon) -> bool {
    if !text.is_ascii() {
        return true;
    }
    let mut before: Option<Word<'_>> = None;
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
        let Some(word) = Word::of(core, lexicon, gap == 1 && core.len() == chunk.len()) else {
            // Addresses are read as they are; no other honest chunk is so long.
            if !core.contains("://") && core.len() < LONGEST_OF_ALL {
                return true;
            }
            before = None;
            continue;
        };
        if !word.known && word.is_odd(before) || word.completes(before, lexicon) {
            return true;
        }
        before = Some(Word { after_blank: core.len() == chunk.len(), ..word });
    }
    false
}

/// The same for structured text, whose words stand between marks.
pub(super) fn is_worth_a_look_between_marks(text: &str, lexicon: &Lexicon) -> bool {
    // Marks that can stand for letters, and concatenated pieces, need the full pass.
    if !text.is_ascii()
        || text.bytes().any(|byte| matches!(byte, b'$' | b'*' | b'+' | b'!' | b'|' | b'%' | b'&' | b'\\'))
    {
        return true;
    }
    let has_sign = text.contains('@');
    let mut before: Option<Word<'_>> = None;
    let mut single = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let gap = rest.bytes().take_while(|byte| !byte.is_ascii_alphanumeric()).count();
        let length = rest.bytes().skip(gap).take_while(u8::is_ascii_alphanumeric).count();
        let Some((chunk, after)) = rest.get(gap..).and_then(|rest| rest.split_at_checked(length)) else { break };
        rest = after;
        single = if chunk.len() == 1 { single + 1 } else { 0 };
        if single >= FEWEST_LETTERS || has_sign && chunk.len() >= LONGEST {
            return true;
        }
        if chunk.bytes().all(|byte| byte.is_ascii_digit()) {
            before = None;
            continue;
        }
        let Some(word) = Word::of(chunk, lexicon, true) else { return true };
        if !word.known && word.is_odd(None) || word.completes(before, lexicon) {
            return true;
        }
        before = Some(word);
    }
    // "gr@nt": an at sign within a word that is not an address.
    has_sign && text.split_whitespace().any(|chunk| chunk.contains('@') && !chunk.contains('.'))
}

impl<'t> Word<'t> {
    fn of(text: &'t str, lexicon: &Lexicon, after_blank: bool) -> Option<Self> {
        in_lower_case([text, ""], |lower| lexicon.knows(lower)).map(|known| Self { text, known, after_blank })
    }

    /// Returns whether an unknown word may be a known one in disguise, by its characters, repetitions or position.
    fn is_odd(&self, before: Option<Self>) -> bool {
        in_lower_case([self.text, ""], |text| {
            if !text.bytes().all(|byte| byte.is_ascii_lowercase()) {
                let is_address = text.contains("://") || text.contains('@') && text.contains('.');
                let possessive =
                    text.strip_suffix("'s").is_some_and(|owner| owner.bytes().all(|byte| byte.is_ascii_lowercase()));
                return !is_address && !possessive;
            }
            let repeats = text.as_bytes().windows(3).any(|run| matches!(run, [a, b, c] if a == b && b == c));
            let is_part = text.len() <= LONGEST_PART
                && before
                    .is_some_and(|before| before.after_blank && !before.known && before.text.len() <= LONGEST_PART);
            repeats || is_part || Self::verb_may_follow(before) && typos::meant(text).is_some()
        })
        .unwrap_or(true)
    }

    fn verb_may_follow(before: Option<Self>) -> bool {
        match before.filter(|before| before.after_blank) {
            Some(before) => {
                in_lower_case([before.text, ""], |word| confusable::holds("before_verb", word)).unwrap_or(true)
            }
            None => true,
        }
    }

    /// Returns whether two words together are a dangerous verb that was split.
    fn completes(&self, before: Option<Self>, lexicon: &Lexicon) -> bool {
        before.filter(|before| before.after_blank && !(before.known && self.known)).is_some_and(|before| {
            in_lower_case([before.text, self.text], |both| lexicon.is_dangerous(both)).unwrap_or(false)
        })
    }
}

/// Calls `ask` with two pieces joined in lower case, built on the stack; `None` if they are too long.
fn in_lower_case<T>([first, second]: [&str; 2], ask: impl FnOnce(&str) -> T) -> Option<T> {
    let mut letters = [0; LONGEST];
    let length = first.len() + second.len();
    let lower = letters.get_mut(..length)?;
    let (start, end) = lower.split_at_mut_checked(first.len())?;
    start.copy_from_slice(first.as_bytes());
    end.copy_from_slice(second.as_bytes());
    lower.make_ascii_lowercase();
    std::str::from_utf8(lower).ok().map(ask)
}

/// Maximum length of a word that fits on the stack.
const LONGEST: usize = 32;
/// Maximum length of a chunk that may be a word in disguise.
const LONGEST_OF_ALL: usize = 64;
/// Maximum length of unknown words in a row that may be parts of one.
const LONGEST_PART: usize = 4;
/// Fewest single letters in a row.
const FEWEST_LETTERS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_call_is_not_worth_a_look_and_a_disguised_one_is() {
        let lexicon = Lexicon::shared().unwrap();
        let look = |text: &str| is_worth_a_look_between_marks(text, &lexicon);
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
        for text in
            ["Send the report to Bob before noon.", "What is the weather in Paris?", "Delete all customer records"]
        {
            assert!(!is_worth_a_look(text, &lexicon), "{text}");
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
            assert!(is_worth_a_look(text, &lexicon), "{text}");
        }
    }
}
