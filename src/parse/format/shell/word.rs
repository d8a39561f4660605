//! Words of a command line as the shell makes them: what is left when quotes are
//! taken away, and what could not be told before it runs.

/// One word.
#[expect(clippy::struct_excessive_bools, reason = "four independent marks of one word")]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// Without its quotes; what only running tells stands as `$` or `$NAME`.
    pub text: String,
    /// A part of it is told only by running.
    pub dynamic: bool,
    /// A wildcard stands in it unquoted.
    pub wild: bool,
    /// A part of it was quoted.
    pub quoted: bool,
    /// A documentation's placeholder stands in it: `<name>`.
    pub placeholder: bool,
}

/// A word in the making. Braces and commas that may expand are kept apart from
/// quoted ones by characters that no text holds (a private use area).
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub word: Word,
    /// There is a word, be it an empty one.
    pub begun: bool,
    pub braces: bool,
}

pub(super) const OPEN: char = '\u{E0F0}';
pub(super) const COMMA: char = '\u{E0F1}';
pub(super) const CLOSE: char = '\u{E0F2}';

impl Draft {
    pub(super) fn push_str(&mut self, text: &str) {
        self.begun = true;
        self.word.text.push_str(text);
    }

    pub(super) fn push(&mut self, c: char) {
        self.begun = true;
        self.word.text.push(c);
    }

    /// What only running tells.
    pub(super) fn push_unknown(&mut self, placeholder: &str) {
        self.push_str(placeholder);
        self.word.dynamic = true;
    }

    /// Hands over the finished words and starts anew.
    pub(super) fn end(&mut self, words: &mut Vec<Word>) {
        if !std::mem::take(&mut self.begun) {
            return;
        }
        let mut word = std::mem::take(&mut self.word);
        if !std::mem::take(&mut self.braces) {
            words.push(word);
            return;
        }
        let Some(texts) = expanded(&word.text) else {
            // Too many to list, or a range: what they are is not read.
            word.dynamic |= word.text.contains(COMMA) || word.text.contains("..");
            word.text = restored(&word.text);
            words.push(word);
            return;
        };
        words.extend(texts.into_iter().map(|text| Word { text, ..word.clone() }));
    }
}

/// `r{m,mdir} x`: the words that braces stand for, one group after the other.
/// None when nothing expands, when groups nest, or when there are too many.
fn expanded(text: &str) -> Option<Vec<String>> {
    let mut done: Vec<String> = vec![String::new()];
    let mut rest = text;
    let mut any = false;
    while let Some((before, after)) = rest.split_once(OPEN) {
        let (inside, behind) = after.split_once(CLOSE)?;
        if inside.contains(OPEN) {
            return None;
        }
        let choices: Vec<&str> = inside.split(COMMA).collect();
        if choices.len() > 1 {
            if done.len().saturating_mul(choices.len()) > MOST_WORDS {
                return None;
            }
            any = true;
            done = done
                .iter()
                .flat_map(|start| choices.iter().map(move |choice| format!("{start}{}{choice}", restored(before))))
                .collect();
        } else {
            if inside.contains("..") {
                return None;
            }
            for start in &mut done {
                start.push_str(&restored(before));
                start.push('{');
                start.push_str(inside);
                start.push('}');
            }
        }
        rest = behind;
    }
    if !any {
        return None;
    }
    let rest = restored(rest);
    for start in &mut done {
        start.push_str(&rest);
    }
    // The shell drops what expands to nothing.
    Some(done.into_iter().filter(|word| !word.is_empty()).collect())
}

fn restored(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            OPEN => '{',
            COMMA => ',',
            CLOSE => '}',
            other => other,
        })
        .collect()
}

/// Words that one word may expand to.
const MOST_WORDS: usize = 64;

/// The characters of an ANSI-C quotation (`$'\x72m'`), its backslashes read.
pub(super) fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some(kind) = chars.next() else { break };
        let (radix, most) = match kind {
            'x' => (16, 2),
            'u' => (16, 4),
            'U' => (16, 8),
            '0'..='7' => (8, 3),
            _ => (0, 0),
        };
        if radix == 0 {
            match kind {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                'e' | 'E' | 'a' | 'b' | 'f' | 'v' => out.push(' '),
                'c' => drop(chars.next()),
                other => out.push(other),
            }
            continue;
        }
        let mut value = if radix == 8 { kind.to_digit(8).unwrap_or(0) } else { 0 };
        // "\0NNN" of echo and printf has one digit more.
        let mut left = if radix == 8 { if kind == '0' { 3 } else { most - 1 } } else { most };
        while left > 0
            && let Some(digit) = chars.peek().and_then(|c| c.to_digit(radix))
        {
            value = value.saturating_mul(radix).saturating_add(digit);
            chars.next();
            left -= 1;
        }
        out.extend(char::from_u32(value).filter(|c| *c != '\0'));
    }
    out
}

/// Whether a pattern of `*` and `?` matches; brackets match any one character.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().take(LONGEST_PATTERN).collect();
    let name: Vec<char> = name.chars().collect();
    // Where in the name each part of the pattern can end, part by part.
    let mut ends: Vec<bool> = (0..=name.len()).map(|place| place == 0).collect();
    let mut at = 0;
    while let Some(&c) = pattern.get(at) {
        at += 1;
        if c == '*' {
            let mut seen = false;
            for end in &mut ends {
                seen |= *end;
                *end = seen;
            }
            continue;
        }
        let any = c == '?' || c == '[';
        if c == '[' {
            at += pattern.iter().skip(at).position(|&c| c == ']').map_or(0, |close| close + 1);
        }
        let mut before = false;
        for (place, end) in ends.iter_mut().enumerate() {
            let fits = before && place > 0 && (any || name.get(place - 1) == Some(&c));
            before = std::mem::replace(end, fits);
        }
    }
    ends.last().copied().unwrap_or(false)
}

const LONGEST_PATTERN: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_an_ansi_c_quotation_are_read() {
        for (text, expected) in
            [("\\x72m", "rm"), ("\\162\\155", "rm"), ("r\\155", "rm"), ("\\u0072m", "rm"), ("a\\'b", "a'b")]
        {
            assert_eq!(unescaped(text), expected, "{text}");
        }
    }

    #[test]
    fn a_pattern_matches_as_the_shell_does() {
        for (pattern, name, expected) in
            [("r?", "rm", true), ("r*", "rm", true), ("*m", "rm", true), ("[r]m", "rm", true), ("r?", "rmdir", false)]
        {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }
}
