//! Look-alike letters: words forged with letters of other scripts.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde::Deserialize;

use crate::lexicon::Lexicon;
use crate::table::{WordSet, Words};

/// A text with its forged words rewritten in Latin.
pub(super) struct Unmixed {
    pub text: String,
    /// Whether a word mixed scripts, or was forged completely.
    pub mixes: bool,
    /// Set if Latin letters were replaced by letters of no language.
    pub styled: bool,
}

/// Rewrites forged words in Latin; `None` if there are none.
pub(super) fn unmixed(text: &str, lexicon: &Lexicon) -> Option<Unmixed> {
    let mut out = Unmixed { text: String::with_capacity(text.len()), mixes: false, styled: false };
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !is_letter(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        out.word(word, lexicon);
        let gap = after.find(is_letter).unwrap_or(after.len());
        let (between, next) = after.split_at(gap);
        out.text.push_str(between);
        rest = next;
    }
    (out.mixes || out.styled).then_some(out)
}

impl Unmixed {
    fn word(&mut self, word: &str, lexicon: &Lexicon) {
        if word.is_ascii() {
            self.text.push_str(word);
            return;
        }
        let (mut latin, mut alike, mut styled, mut foreign) = (false, false, false, false);
        for c in word.chars() {
            if c.is_ascii_alphabetic() {
                latin = true;
            } else if is_ornament(c) {
                styled = true;
            } else if ALIKE.contains_key(&c) {
                alike = true;
            } else if !c.is_ascii() {
                foreign = true;
            }
        }
        if !latin && !alike && !styled {
            self.text.push_str(word);
            return;
        }
        let plain: String = word.chars().map(latin_of).collect();
        // A word of look-alikes only is forged if it spells a word of the lexicon, and honest if it does not.
        let forged = !latin && alike && !foreign && is_ours(&plain.to_ascii_lowercase(), lexicon);
        if latin && alike || forged {
            self.mixes = true;
            self.text.push_str(&plain);
        } else if styled && !alike {
            self.styled = true;
            // Upside-down letters are read from the right.
            let turned = word.chars().filter(|c| TURNED.contains(*c)).count() >= 2;
            if turned {
                self.text.extend(word.chars().rev().map(|c| upright(c).unwrap_or_else(|| latin_of(c))));
            } else {
                self.text.push_str(&plain);
            }
        } else {
            self.text.push_str(word);
        }
    }
}

/// Returns whether letters spell a word of the lexicon, long enough not to be another language's word by chance.
fn is_ours(word: &str, lexicon: &Lexicon) -> bool {
    word.len() >= SHORTEST_FORGED && (lexicon.is_verb(word) || lexicon.is_noun(word))
        || word.len() + 1 >= SHORTEST_FORGED && lexicon.is_dangerous(word)
}

/// The Latin letter that a letter looks like, or the letter itself.
pub(super) fn latin_of(c: char) -> char {
    enclosed(c).or_else(|| ALIKE.get(&c).copied()).unwrap_or(c)
}

/// The letter without its stroke or hook.
pub(super) fn unstroked(c: char) -> char {
    STROKED.get(&c).copied().unwrap_or(c)
}

/// Returns whether a list of the data file contains the word.
pub(super) fn holds(name: &str, word: &str) -> bool {
    WORDS.get(name).is_some_and(|list| list.set.contains(word))
}

/// Whether a text has a word of a list of the data file, in whatever case. Only for lists whose words are made of letters,
/// digits, `-` and `_`, and begin with a letter.
pub(crate) fn says(text: &str, name: &str) -> bool {
    WORDS.get(name).is_some_and(|list| list.is_in(text.as_bytes()))
}

/// A word list of the data file.
struct List {
    set: WordSet,
    words: Vec<String>,
    /// The bytes that its words begin with, in either case.
    begins: [bool; 256],
}

impl List {
    fn of(words: &str) -> Self {
        let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let mut begins = [false; 256];
        for first in words.iter().filter_map(|word| word.bytes().next()) {
            for byte in [first.to_ascii_lowercase(), first.to_ascii_uppercase()] {
                begins[usize::from(byte)] = true;
            }
        }
        Self { set: words.iter().cloned().collect(), words, begins }
    }

    /// Returns whether one of its words stands in the text, with no letter, digit or `_` of ASCII before or behind it.
    fn is_in(&self, text: &[u8]) -> bool {
        let mut at = 0;
        while let Some(rest) = text.get(at..) {
            let Some(step) = rest.iter().position(|byte| self.begins[usize::from(*byte)]) else { return false };
            at += step;
            if self.begins_at(text, at) {
                return true;
            }
            at += 1;
        }
        false
    }

    fn begins_at(&self, text: &[u8], place: usize) -> bool {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let stands = |word: &[u8]| {
            let behind = place + word.len();
            text.get(place..behind).is_some_and(|here| here.eq_ignore_ascii_case(word))
                && !text.get(behind).is_some_and(is_part)
        };
        let is_inside = place.checked_sub(1).and_then(|before| text.get(before)).is_some_and(is_part);
        !is_inside && self.words.iter().any(|word| stands(word.as_bytes()))
    }
}

/// The letters that a digit or mark stands for in a word.
pub(super) fn leet(c: char) -> &'static str {
    DOCUMENT.leet.get(&c).map_or("", String::as_str)
}

fn is_letter(c: char) -> bool {
    c.is_alphanumeric() || is_ornament(c)
}

/// Returns whether a character is a small capital, a phonetic or upside-down letter, or a letter in a filled sign:
/// part of no language's words.
fn is_ornament(c: char) -> bool {
    matches!(c, '\u{1d00}'..='\u{1d2b}' | '\u{250}'..='\u{2af}' | '\u{a730}' | '\u{a731}' | '\u{1dd}')
        && ALIKE.contains_key(&c)
        || enclosed(c).is_some()
}

/// The letter in a black circle or square, which compatibility folding leaves unchanged.
fn enclosed(c: char) -> Option<char> {
    let code = u32::from(c);
    let letter = match code {
        0x1f150..=0x1f169 => code - 0x1f150,
        0x1f170..=0x1f189 => code - 0x1f170,
        _ => return None,
    };
    u8::try_from(letter).ok().map(|letter| char::from(b'a' + letter))
}

/// The letter that a letter turned upside down looks like.
const fn upright(c: char) -> Option<char> {
    Some(match c {
        'p' => 'd',
        'd' => 'p',
        'b' => 'q',
        'q' => 'b',
        'u' => 'n',
        'n' => 'u',
        _ => return None,
    })
}

/// Fewest letters of a word that counts as completely forged.
const SHORTEST_FORGED: usize = 4;
/// Letters turned upside down.
const TURNED: &str = "ɐǝɟƃɥɾʞɯɹʇʌʍʎ";

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    alike: BTreeMap<char, String>,
    stroked: BTreeMap<char, String>,
    leet: BTreeMap<char, String>,
    words: BTreeMap<String, String>,
}

// A test ensures that the file parses.
static DOCUMENT: LazyLock<Document> =
    LazyLock::new(|| toml::from_str(include_str!("../data/confusables.toml")).unwrap_or_default());
static ALIKE: LazyLock<HashMap<char, char>> = LazyLock::new(|| by_letter(&DOCUMENT.alike));
static STROKED: LazyLock<HashMap<char, char>> = LazyLock::new(|| by_letter(&DOCUMENT.stroked));
static WORDS: LazyLock<Words<List>> =
    LazyLock::new(|| DOCUMENT.words.iter().map(|(name, words)| (name.clone(), List::of(words))).collect());

fn by_letter(letters: &BTreeMap<char, String>) -> HashMap<char, char> {
    letters.iter().flat_map(|(&latin, alike)| alike.chars().map(move |c| (c, latin))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_reads() {
        assert!(!ALIKE.is_empty() && !STROKED.is_empty() && !DOCUMENT.leet.is_empty());
        assert!(holds("ordinary", "remote") && !holds("nonsense", "remote"));
        assert!(says("a ROT13 text", "rotated") && says("read it, backwards", "reversed"));
        assert!(!says("a reversal of rot130", "rotated") && !says("a reversal", "reversed"));
        assert!(says("what does it mean?", "asks_of_code"));
    }

    proptest::proptest! {
        #[test]
        fn words_are_found_in_a_text_as_by_a_pattern(
            parts in proptest::collection::vec("[ -~]{0,4}|_|\\PC|(?i)(rot13|rot-13|caesar|reverse|reversed|mirrored|plain)", 0..6), name in 0_usize..3,
        ) {
            let (name, text) = (["rotated", "reversed", "asks_of_code"][name], parts.concat());
            let words: Vec<&str> = DOCUMENT.words[name].split_whitespace().collect();
            let pattern = regex::Regex::new(&format!(r"(?i-u)\b(?:{})\b", words.join("|"))).unwrap();
            proptest::prop_assert_eq!(says(&text, name), pattern.is_match(&text), "{}", text);
            proptest::prop_assert!(words.iter().all(|word| word.starts_with(|c: char| c.is_ascii_lowercase())
                && word.ends_with(|c: char| c.is_ascii_alphanumeric())));
        }
    }

    #[test]
    fn a_word_wholly_of_look_alikes_is_forged_only_if_it_is_a_word() {
        let lexicon = Lexicon::shared().unwrap();
        assert_eq!(unmixed("ԁеӏеtе it", &lexicon).unwrap().text, "delete it");
        assert_eq!(unmixed("ѕепd", &lexicon).unwrap().text, "send");
        assert!(unmixed("рост сохнет", &lexicon).is_none());
    }
}
