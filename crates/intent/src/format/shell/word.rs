//! Words of a command line after shell processing: without quotes, and with marks for what is known only at run time.

/// A word.
#[expect(clippy::struct_excessive_bools, reason = "four independent marks of one word")]
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// Without quotes; a value known only at run time appears as `$` or `$NAME`.
    pub text: String,
    /// Whether a part is known only at run time.
    pub dynamic: bool,
    /// Set if the word contains an unquoted wildcard.
    pub wild: bool,
    /// Whether a part was quoted.
    pub quoted: bool,
    /// Set if the word contains a documentation placeholder: `<name>`.
    pub placeholder: bool,
}

impl Word {
    /// Returns whether quoting keeps characters of a name that the shell would expand: `'app/[lang]/page.tsx'`.
    pub(super) fn is_literal_name(&self) -> bool {
        self.quoted
            && !self.dynamic
            && !self.wild
            && self.text.contains(['/', '.'])
            && self.text.contains(['[', '{', '$'])
            && !self.text.contains(|c: char| c.is_whitespace() || matches!(c, '(' | '`' | '"' | ';' | '@'))
    }
}

/// A word being assembled. Braces and commas that may expand are marked by characters from a private use area, which
/// distinguishes them from quoted ones.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub word: Word,
    /// Set if there is a word, possibly an empty one.
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

    /// Appends a value known only at run time.
    pub(super) fn push_unknown(&mut self, placeholder: &str) {
        self.push_str(placeholder);
        self.word.dynamic = true;
    }

    /// Moves the finished words out and starts a new word.
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
            // A range, or too many words to list: their values are unknown.
            word.dynamic |= word.text.contains(COMMA) || word.text.contains("..");
            word.text = restored(&word.text);
            words.push(word);
            return;
        };
        words.extend(texts.into_iter().map(|text| Word { text, ..word.clone() }));
    }
}

/// Expands braces, `r{m,mdir} x`, one group after the other. `None` if nothing expands, if groups nest, or if there
/// are too many words.
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
    // The shell drops a word that expands to nothing.
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

/// Maximum number of words that one word may expand to.
const MOST_WORDS: usize = 64;

/// Decodes the escapes of an ANSI-C quotation (`$'\x72m'`).
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

/// Returns whether a pattern of `*` and `?` matches; brackets match any single character.
pub(super) fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().take(LONGEST_PATTERN).collect();
    let name: Vec<char> = name.chars().collect();
    // For each part of the pattern, the places in the name where it can end.
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
