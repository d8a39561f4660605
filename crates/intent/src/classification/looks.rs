//! A single pass over a text that selects the pattern groups worth trying on it. Ordinary sentences and calls need
//! none.

use serde::Deserialize;

/// A feature of a text that makes a group of patterns worth trying.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Look {
    /// Enough digits for an identity, account or phone number.
    Digits,
    /// A run of letters and digits that is not a word.
    Token,
    /// A word for a password.
    Password,
    /// Several e-mail addresses.
    Address,
    /// A word for a secret, followed by `:` or `=`.
    Named,
    /// A user name and password before a host.
    User,
    /// A flag or word after which a secret may follow, with or without a blank.
    Flag,
}

impl Look {
    pub(super) const ALL: [Self; 7] =
        [Self::Digits, Self::Token, Self::Password, Self::Address, Self::Named, Self::User, Self::Flag];
}

/// The set of looks of a text, one bit for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Looks(u8);

impl Looks {
    pub(super) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut looks = Self::default();
        let (mut digits, mut at_signs) = (0_usize, 0_usize);
        let mut run = Run::default();
        // Whether the current word or address contains a colon.
        let mut after_colon = false;
        for (place, &byte) in bytes.iter().enumerate() {
            let class = CLASSES.get(usize::from(byte)).copied().unwrap_or(SPECIAL);
            digits += usize::from(class & DIGIT);
            run.odd += usize::from(class >> ODD_AT & 1);
            // In random names letters and digits follow no order that a processor could foresee.
            if class & SPECIAL == 0 {
                run.length += 1;
                continue;
            }
            match KINDS.get(usize::from(byte)).copied().unwrap_or(Kind::Other) {
                Kind::Letter | Kind::Odd | Kind::Digit => {}
                Kind::Dash => {
                    run.dashes += 1;
                    looks.add(Look::Flag, is_flag(bytes, place));
                }
                Kind::LetterP => {
                    let next = bytes.get(place + 1..place + 4).unwrap_or(&[]);
                    let is_word = next.eq_ignore_ascii_case(b"ass")
                        || next.get(..2).is_some_and(|next| next.eq_ignore_ascii_case(b"wd"));
                    looks.add(Look::Password, is_word);
                }
                mark => {
                    if matches!(mark, Kind::Colon | Kind::Equals) && !looks.has(Look::Named) {
                        looks.add(Look::Named, ends_in_secret(bytes.get(..place).unwrap_or(&[])));
                    }
                    if matches!(mark, Kind::At) {
                        at_signs += 1;
                        looks.add(Look::User, after_colon);
                    }
                    after_colon = match mark {
                        Kind::Colon => true,
                        Kind::End => {
                            looks.add(Look::Flag, byte <= b' ' && has_value_behind(bytes, place));
                            false
                        }
                        _ => after_colon,
                    };
                    if !matches!(mark, Kind::Equals) {
                        looks.add(Look::Token, run.may_be_key());
                        run = Run::default();
                        continue;
                    }
                }
            }
            run.length += 1;
        }
        looks.add(Look::Token, run.may_be_key());
        looks.add(Look::Digits, digits >= FEWEST_DIGITS && may_hold_number(bytes));
        if looks == Self(1 << Look::Token as u8) && is_plain_id(bytes) {
            return Self::default();
        }
        looks.add(Look::Address, at_signs >= FEWEST_ADDRESSES);
        looks
    }

    fn add(&mut self, look: Look, there: bool) {
        self.0 |= u8::from(there) << look as u8;
    }

    pub(super) const fn has(self, look: Look) -> bool {
        self.0 & 1 << look as u8 != 0
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// A run of characters that keys consist of.
#[derive(Default)]
struct Run {
    length: usize,
    /// Number of digits, capitals and other characters that are common in keys and rare in words.
    odd: usize,
    dashes: usize,
}

impl Run {
    const fn may_be_key(&self) -> bool {
        self.length >= SHORTEST_TOKEN && self.odd + self.dashes > 0 || self.dashes >= DASHES_OF_A_BLOCK
    }
}

/// The role of a byte in this pass.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Common in words and in keys.
    Letter,
    LetterP,
    /// Common in keys, rare in words.
    Odd,
    Digit,
    Dash,
    Colon,
    Equals,
    At,
    /// Ends a word, an address or a key.
    End,
    Other,
}

const KINDS: [Kind; 256] = {
    let mut kinds = [Kind::Other; 256];
    let mut byte = 0_u8;
    loop {
        kinds[byte as usize] = match byte {
            b'p' | b'P' => Kind::LetterP,
            b'a'..=b'z' | b'+' | b'/' | b'.' => Kind::Letter,
            b'A'..=b'Z' | b'_' => Kind::Odd,
            b'0'..=b'9' => Kind::Digit,
            b'-' => Kind::Dash,
            b':' => Kind::Colon,
            b'=' => Kind::Equals,
            b'@' => Kind::At,
            0..=b' ' | b'"' | b'\'' | b',' | b'[' | b']' | b'{' | b'}' => Kind::End,
            _ => Kind::Other,
        };
        if byte == u8::MAX {
            break kinds;
        }
        byte += 1;
    }
};

/// Bits of each byte: whether it is a digit, whether keys have it and words do not, and whether more is to be looked at.
const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match KINDS[byte] {
            Kind::Letter => 0,
            Kind::Odd => 1 << ODD_AT,
            Kind::Digit => 1 << ODD_AT | DIGIT,
            Kind::LetterP if byte == b'P' as usize => 1 << ODD_AT | SPECIAL,
            _ => SPECIAL,
        };
        byte += 1;
    }
    classes
};
const DIGIT: u8 = 1;
const ODD_AT: u32 = 1;
const SPECIAL: u8 = 4;

/// Whether a text is one word of letters, such as the key of a context: nothing that a pattern matches is so short without
/// a digit or a mark.
pub(super) fn is_short_word(text: &str) -> bool {
    text.len() < SHORTEST_TOKEN && text.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_')
}

/// Returns whether a flag starts at `place` after which passwords or logins follow: `-p`, `-u`, `--user`.
fn is_flag(bytes: &[u8], place: usize) -> bool {
    let is_first = place.checked_sub(1).and_then(|before| bytes.get(before)).is_some_and(|byte| *byte <= b' ');
    let letter = match bytes.get(place + 1) {
        Some(b'-') => bytes.get(place + 2),
        letter => letter,
    };
    is_first && matches!(letter, Some(b'p' | b'P' | b'u' | b'U' | b'a' | b'w'))
}

/// Returns whether the blank at `place` follows "identified by", or follows "is" and precedes a digit: "my PIN is
/// 4821".
fn has_value_behind(bytes: &[u8], place: usize) -> bool {
    let ends = |word: &[u8]| {
        place
            .checked_sub(word.len())
            .and_then(|start| bytes.get(start..place))
            .is_some_and(|end| end.eq_ignore_ascii_case(word))
    };
    ends(b"identified by") || (ends(b" is") || ends(b" is:")) && bytes.get(place + 1).is_some_and(u8::is_ascii_digit)
}

/// Returns whether a text consists only of the characters of identifiers and digests, which no key does.
fn is_plain_id(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-'))
}

/// Returns whether enough digits stand together for a number, or a code of letters and digits may begin. In random
/// names the digits are scattered.
fn may_hold_number(bytes: &[u8]) -> bool {
    let (mut digits, mut letters) = (0_usize, 0_usize);
    bytes.iter().any(|byte| {
        match byte {
            b'0'..=b'9' if letters == LETTERS_OF_A_CODE => return true,
            b'0'..=b'9' => (digits, letters) = (digits + 1, 0),
            b' ' | b'-' | b'.' | b'+' | b'(' | b')' => letters = 0,
            byte if byte.is_ascii_alphabetic() => (digits, letters) = (0, letters + 1),
            _ => (digits, letters) = (0, 0),
        }
        digits >= FEWEST_DIGITS
    })
}

/// Returns whether the text before a `:` or `=` ends in a word for a secret, judged by its last letters.
pub(super) fn ends_in_secret(before: &[u8]) -> bool {
    let end = before
        .iter()
        .rposition(|byte| !matches!(byte, b'"' | b'\'' | b' ' | b'\t' | b']' | b')'))
        .map_or(0, |last| last + 1);
    let ends = |word: &[u8]| {
        end.checked_sub(word.len())
            .and_then(|start| before.get(start..end))
            .is_some_and(|end| end.eq_ignore_ascii_case(word))
    };
    let Some(last) = end.checked_sub(1).and_then(|last| before.get(last)).map(u8::to_ascii_lowercase) else {
        return false;
    };
    ENDINGS.iter().any(|word| word.last() == Some(&last) && ends(word))
}

/// Endings of the words that name a secret in the patterns.
const ENDINGS: [&[u8]; 21] = [
    b"key",
    b"token",
    b"secret",
    b"credential",
    b"credentials",
    b"word",
    b"passwd",
    b"phrase",
    b"code",
    b"pwd",
    b"pin",
    b"cvv",
    b"cvc",
    b"otp",
    b"ation",
    b"auth",
    b"sig",
    b"ature",
    b"pass",
    b"jwt",
    b"cookie",
];
/// Fewest digits of a text that can contain a number.
const FEWEST_DIGITS: usize = 6;
/// Number of letters before the first digit of an Italian codice fiscale.
const LETTERS_OF_A_CODE: usize = 6;
/// Length of the shortest key, in bytes.
const SHORTEST_TOKEN: usize = 16;
/// Number of dashes before and after the name of a PEM block.
const DASHES_OF_A_BLOCK: usize = 5;
/// Fewest addresses that count as a list.
const FEWEST_ADDRESSES: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_sentence_or_call_is_not_looked_into() {
        for text in [
            "Send the report of May 2024 to Bob before noon, please",
            r#"{"name":"send_email","arguments":{"subject":"Report","body":"Hello Ann, see below."}}"#,
        ] {
            assert!(Looks::of(text).is_empty(), "{text}: {:?}", Looks::of(text));
        }
    }

    #[test]
    fn no_short_word_is_a_secret() {
        use proptest::strategy::{Strategy, ValueTree};
        let words = proptest::string::string_regex("(?:pass|pwd|secret|token|key|[A-Za-z_]){0,4}").unwrap();
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        for _ in 0..5_000 {
            let word = words.new_tree(&mut runner).unwrap().current();
            if is_short_word(&word) {
                assert!(super::super::scan(&word, &[]).secrets.is_empty(), "{word}");
            }
        }
    }

    #[test]
    fn each_look_has_what_calls_for_it() {
        for (look, text) in [
            (Look::Digits, "call 555 123"),
            (Look::Token, "use AKIAABCDEFGHIJKLMNOP"),
            (Look::Token, "-----BEGIN"),
            (Look::Password, "the passwd"),
            (Look::Address, "a@b c@d e@f g@h i@j"),
            (Look::Named, "my_token = x"),
            (Look::Named, r#"{"API_KEY" : "x"}"#),
            (Look::Named, "Authorization: x"),
            (Look::User, "root:pw@host"),
            (Look::Flag, "mysql -px"),
            (Look::Flag, "curl --user a:b"),
            (Look::Flag, "alter user a Identified by b"),
            (Look::Flag, "my CVV is: 123"),
        ] {
            assert!(Looks::of(text).has(look), "{text}");
        }
    }

    #[test]
    fn random_names_are_no_numbers() {
        for text in ["9e3779b97f4a7c15", "item-8f0a55b1c2@example.com", "b6d3c1e2-0a4f-4c55-9d1e-7f2a1b3c4d5e"] {
            assert!(!Looks::of(text).has(Look::Digits), "{text}");
        }
        for text in ["9e3779b97f4a7c15", "b6d3c1e2-0a4f-4c55-9d1e-7f2a1b3c4d5e"] {
            assert!(Looks::of(text).is_empty(), "{text}");
        }
        // Next to a word, or with other letters, it may be a key.
        for text in ["bearer 9e3779b97f4a7c15", "AC9e3779b97f4a7c159e3779b97f4a7c15"] {
            assert!(Looks::of(text).has(Look::Token), "{text}");
        }
    }

    #[test]
    fn accounts_of_all_shapes_are_looked_into() {
        for account in [
            "GB82WEST12345698765432",
            "GB82 WEST 1234 5698 7654 32",
            "MT84MALT011000012345MTLCAST001S",
            "FR1420041010050500013M02606",
            "KZ86125KZT5004100100",
            "NO9386011117947",
            "BR1800360305000010009795493C1",
            "KW81CBKU0000000000001234560101",
            "MU17BOMM0101101030300200000MUR",
            "VG96VPVG0000012345678901",
            "LC55HEMM000100010012001200023015",
        ] {
            assert!(Looks::of(account).has(Look::Digits), "{account}");
        }
    }

    /// Every text that a number pattern may match is looked into. The pattern for account numbers allows letters
    /// only, but no country's numbers are so.
    #[test]
    fn nothing_that_a_pattern_of_numbers_matches_is_passed_over() {
        use proptest::strategy::{Strategy, ValueTree};
        let document: toml::Table = toml::from_str(include_str!("../data/patterns.toml")).unwrap();
        let patterns = document["patterns"].as_array().unwrap().iter().map(|pattern| pattern.as_table().unwrap());
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let mut tried = 0;
        for pattern in patterns.filter(|pattern| pattern["look"].as_str() == Some("digits")) {
            if pattern.get("check").and_then(toml::Value::as_str) == Some("iban") {
                continue;
            }
            let form = pattern["form"].as_str().unwrap().replace(r"\b", "").replace(r"\d", "[0-9]");
            let texts = proptest::string::string_regex(&form).unwrap();
            for _ in 0..50 {
                let text = texts.new_tree(&mut runner).unwrap().current();
                let digits = text.bytes().filter(u8::is_ascii_digit).count();
                // Compiled for ASCII, the patterns match no other letters.
                let is_passed_over = text.is_ascii() && !Looks::of(&text).has(Look::Digits);
                assert!(!is_passed_over || digits < FEWEST_DIGITS, "{form}: {text}");
                tried += 1;
            }
        }
        assert!(tried >= 500);
    }
}
