//! The text as a person sees it: compatible forms folded (NFKC), typographic
//! quotes straightened, and invisible characters taken out and reported.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

use super::sign::{Sign, Signs};

/// The folded text, and what had been hidden in it.
pub(crate) fn normalise(text: &str) -> (Cow<'_, str>, Signs) {
    let mut signs = Signs::default();
    if text.is_ascii() {
        return (Cow::Borrowed(text), signs);
    }
    let mut folded = String::with_capacity(text.len());
    for c in text
        .chars()
        .filter(|&c| {
            let hidden = is_hidden(c);
            if hidden {
                signs.add(Sign::HiddenCharacters);
            }
            !hidden
        })
        .nfkc()
    {
        folded.push(straightened(c));
    }
    // A byte order mark at the very start, and a joiner inside an emoji, hide nothing.
    if mixes_scripts(&folded) {
        signs.add(Sign::MixedScripts);
        folded = unmixed(&folded);
    }
    (Cow::Owned(folded), signs)
}

/// Characters that take no place on the screen or change the order of what is read.
/// SOURCE: Unicode 16, default-ignorable code points and bidirectional controls (UAX #9, UTS #39).
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0e}' | '\u{feff}' | '\u{ffa0}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

const fn straightened(c: char) -> char {
    match c {
        '\u{2018}' | '\u{2019}' | '\u{201b}' | '\u{2032}' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' | '\u{ab}' | '\u{bb}' => '"',
        '\u{2010}'..='\u{2013}' | '\u{2212}' => '-',
        other => other,
    }
}

/// Whether some word has both Latin letters and look-alikes from Greek or Cyrillic.
fn mixes_scripts(text: &str) -> bool {
    let (mut latin, mut alike) = (false, false);
    for c in text.chars() {
        if c.is_ascii_alphabetic() {
            latin = true;
        } else if matches!(c, '\u{370}'..='\u{3ff}' | '\u{400}'..='\u{52f}') && c.is_alphabetic() {
            alike = true;
        } else if !c.is_alphanumeric() {
            (latin, alike) = (false, false);
        }
        if latin && alike {
            return true;
        }
    }
    false
}

/// The text with the look-alikes of words that mix scripts written in Latin.
fn unmixed(text: &str) -> String {
    text.split_inclusive(|c: char| !c.is_alphanumeric())
        .flat_map(|word| {
            let mixed = mixes_scripts(word);
            word.chars().map(move |c| if mixed { latin(c) } else { c })
        })
        .collect()
}

/// SOURCE: Unicode UTS #39, confusables; the letters that words are forged with.
const fn latin(c: char) -> char {
    match c {
        'а' | 'α' => 'a',
        'е' | 'ε' => 'e',
        'о' | 'ο' => 'o',
        'р' | 'ρ' => 'p',
        'с' | 'ϲ' => 'c',
        'х' | 'χ' => 'x',
        'у' | 'γ' => 'y',
        'і' | 'ι' => 'i',
        'ј' => 'j',
        'ѕ' => 's',
        'ԁ' => 'd',
        'һ' => 'h',
        'ӏ' => 'l',
        'ԛ' => 'q',
        'ԝ' => 'w',
        'ν' => 'v',
        'κ' | 'к' => 'k',
        'т' | 'τ' => 't',
        'м' => 'm',
        'А' | 'Α' => 'A',
        'В' | 'Β' => 'B',
        'Е' | 'Ε' => 'E',
        'К' | 'Κ' => 'K',
        'М' | 'Μ' => 'M',
        'Н' | 'Η' => 'H',
        'О' | 'Ο' => 'O',
        'Р' | 'Ρ' => 'P',
        'С' => 'C',
        'Т' | 'Τ' => 'T',
        'Х' | 'Χ' => 'X',
        'Ѕ' => 'S',
        'І' | 'Ι' => 'I',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_taken_out_and_reported() {
        let (text, signs) = normalise("del\u{200b}ete \u{202e}all");
        assert_eq!(text, "delete all");
        assert!(signs.has(Sign::HiddenCharacters));
    }

    #[test]
    fn full_width_letters_read_as_plain_ones() {
        let (text, signs) = normalise("\u{ff44}\u{ff45}\u{ff4c}\u{ff45}\u{ff54}\u{ff45}");
        assert_eq!(text, "delete");
        assert!(!signs.has(Sign::HiddenCharacters));
    }

    #[test]
    fn a_word_of_two_scripts_is_reported() {
        assert!(normalise("p\u{0430}ypal").1.has(Sign::MixedScripts));
        assert!(!normalise("\u{043f}\u{0440}\u{0438}\u{0432}\u{0435}\u{0442} friend").1.has(Sign::MixedScripts));
    }
}
