//! The tokenizer. Outside string literals everything is ASCII, and no character of the source is invisible, so that a
//! reviewer reads exactly what is evaluated.

use super::error::ConditionError;
use super::{MAX_SOURCE_BYTES, MAX_TOKENS};

/// A token and its start.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token<'s> {
    pub(super) at: usize,
    pub(super) kind: TokenKind<'s>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind<'s> {
    Name(&'s str),
    /// The value of the digits; a sign is a token of its own.
    Int(u64),
    Double(f64),
    Text(String),
    Mark(&'static str),
    End,
}

/// Splits a source into tokens; the last one is `End`.
pub(super) fn tokens(source: &str) -> Result<Vec<Token<'_>>, ConditionError> {
    if source.len() > MAX_SOURCE_BYTES {
        let message = format!("{} bytes; a condition has at most {MAX_SOURCE_BYTES}", source.len());
        return Err(ConditionError::new(0, message));
    }
    if let Some((at, unseen)) = source.char_indices().find(|(_, c)| is_unseen(*c)) {
        let message = format!("the invisible character U+{:04X}; in a string write it as an escape", u32::from(unseen));
        return Err(ConditionError::new(at, message));
    }
    let mut lexer = Lexer { source, at: 0 };
    let mut found = Vec::new();
    loop {
        let token = lexer.token()?;
        let ended = token.kind == TokenKind::End;
        found.push(token);
        if ended {
            return Ok(found);
        }
        if found.len() > MAX_TOKENS {
            let message = format!("more than {MAX_TOKENS} words and signs");
            return Err(ConditionError::new(lexer.at, message));
        }
    }
}

/// Returns whether a word can be a name: a CEL identifier that is not reserved.
pub(super) fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && word.bytes().all(continues_name)
}

/// SOURCE: CEL specification, "Syntax": words that cannot be identifiers.
pub(super) fn is_reserved(word: &str) -> bool {
    LITERAL_WORDS.contains(&word)
        || matches!(
            word,
            "as" | "break"
                | "const"
                | "continue"
                | "else"
                | "for"
                | "function"
                | "if"
                | "import"
                | "let"
                | "loop"
                | "package"
                | "namespace"
                | "return"
                | "var"
                | "void"
                | "while"
        )
}

/// Words that are tokens of their own, and therefore cannot even be field names.
pub(super) const LITERAL_WORDS: [&str; 4] = ["true", "false", "null", "in"];

struct Lexer<'s> {
    source: &'s str,
    at: usize,
}

impl<'s> Lexer<'s> {
    fn token(&mut self) -> Result<Token<'s>, ConditionError> {
        self.skip_blanks();
        let at = self.at;
        let kind = match self.peek() {
            None => TokenKind::End,
            Some('"' | '\'') => TokenKind::Text(self.text(false)?),
            Some(c) if c.is_ascii_digit() => self.number()?,
            Some('.') if self.rest().as_bytes().get(1).is_some_and(u8::is_ascii_digit) => self.number()?,
            Some(c) if c.is_ascii_alphabetic() || c == '_' => self.word()?,
            Some(c) => self.mark(c)?,
        };
        Ok(Token { at, kind })
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{c}']);
            self.at += rest.len() - trimmed.len();
            if !trimmed.starts_with("//") {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    fn word(&mut self) -> Result<TokenKind<'s>, ConditionError> {
        let word = self.run(continues_name);
        if matches!(self.peek(), Some('"' | '\'')) {
            return match word {
                "r" | "R" => Ok(TokenKind::Text(self.text(true)?)),
                "b" | "B" | "br" | "bR" | "Br" | "BR" | "rb" | "rB" | "Rb" | "RB" => {
                    Err(self.refuse(word.len(), "bytes literals are not supported"))
                }
                _ => Err(self.refuse(0, "a string directly after a name")),
            };
        }
        Ok(TokenKind::Name(word))
    }

    fn number(&mut self) -> Result<TokenKind<'s>, ConditionError> {
        let start = self.at;
        let hex = self.rest().strip_prefix("0x").or_else(|| self.rest().strip_prefix("0X"));
        if hex.is_some() {
            self.at += 2;
            let digits = self.run(|byte| byte.is_ascii_hexdigit());
            self.end_of_number(start)?;
            return match u64::from_str_radix(digits, 16) {
                Ok(value) => Ok(TokenKind::Int(value)),
                Err(_) => Err(ConditionError::new(start, "expected a hexadecimal integer of 64 bits")),
            };
        }
        self.run(|byte| byte.is_ascii_digit());
        let mut double = false;
        if self.peek() == Some('.') && self.rest().as_bytes().get(1).is_some_and(u8::is_ascii_digit) {
            double = true;
            self.at += 1;
            self.run(|byte| byte.is_ascii_digit());
        }
        if matches!(self.peek(), Some('e' | 'E')) {
            double = true;
            self.at += 1;
            if matches!(self.peek(), Some('+' | '-')) {
                self.at += 1;
            }
            if self.run(|byte| byte.is_ascii_digit()).is_empty() {
                return Err(ConditionError::new(start, "a number whose exponent has no digits"));
            }
        }
        let digits = self.source.get(start..self.at).unwrap_or_default();
        self.end_of_number(start)?;
        if double {
            return match digits.parse::<f64>() {
                Ok(value) if value.is_finite() => Ok(TokenKind::Double(value)),
                _ => Err(ConditionError::new(start, "the number is out of the range of a double")),
            };
        }
        digits.parse().map(TokenKind::Int).map_err(|_| ConditionError::new(start, "the integer does not fit 64 bits"))
    }

    /// Refuses `12u` and `12abc`, which are not a number followed by a name.
    fn end_of_number(&self, start: usize) -> Result<(), ConditionError> {
        match self.peek() {
            Some('u' | 'U') => {
                Err(ConditionError::new(start, "unsigned integers are not supported; leave the \"u\" off"))
            }
            Some(c) if c.is_ascii_alphanumeric() || c == '_' => {
                Err(ConditionError::new(self.at, "a name directly after a number"))
            }
            _ => Ok(()),
        }
    }

    /// Reads a string literal, starting at its first quote.
    fn text(&mut self, raw: bool) -> Result<String, ConditionError> {
        let start = self.at;
        let quote = self.bump().unwrap_or('"');
        let triple = if quote == '"' { "\"\"\"" } else { "'''" };
        let is_triple = self.source.get(start..).is_some_and(|rest| rest.starts_with(triple));
        if is_triple {
            self.at = start + triple.len();
        }
        let mut text = String::new();
        loop {
            if is_triple && self.rest().starts_with(triple) {
                self.at += triple.len();
                return Ok(text);
            }
            let Some(c) = self.bump() else {
                return Err(ConditionError::new(start, "a string without its closing quote"));
            };
            match c {
                _ if c == quote && !is_triple => return Ok(text),
                '\n' | '\r' if !is_triple => {
                    return Err(ConditionError::new(start, "a string without its closing quote on the same line"));
                }
                '\\' if !raw => text.push(self.escape()?),
                _ => text.push(c),
            }
        }
    }

    /// The character that an escape sequence stands for, after its backslash.
    fn escape(&mut self) -> Result<char, ConditionError> {
        let start = self.at - 1;
        let Some(c) = self.bump() else {
            return Err(ConditionError::new(start, "a string without its closing quote"));
        };
        let digits = match c {
            'a' => return Ok('\u{7}'),
            'b' => return Ok('\u{8}'),
            'f' => return Ok('\u{c}'),
            'n' => return Ok('\n'),
            'r' => return Ok('\r'),
            't' => return Ok('\t'),
            'v' => return Ok('\u{b}'),
            '\\' | '?' | '"' | '\'' | '`' => return Ok(c),
            'x' | 'X' => 2,
            'u' => 4,
            'U' => 8,
            '0'..='3' => {
                self.at -= 1;
                return self.code(start, 3, 8);
            }
            _ => return Err(ConditionError::new(start, "an unknown escape; a backslash itself is written \\\\")),
        };
        self.code(start, digits, 16)
    }

    fn code(&mut self, start: usize, digits: usize, radix: u32) -> Result<char, ConditionError> {
        let found = self.rest().get(..digits).filter(|text| text.chars().all(|c| c.is_digit(radix)));
        let character = found.and_then(|text| u32::from_str_radix(text, radix).ok()).and_then(char::from_u32);
        self.at += digits;
        character
            .ok_or_else(|| ConditionError::new(start, format!("expected an escape of {digits} digits for a character")))
    }

    fn mark(&mut self, c: char) -> Result<TokenKind<'s>, ConditionError> {
        if let Some(mark) = MARKS.iter().find(|mark| self.rest().starts_with(**mark)) {
            self.at += mark.len();
            return Ok(TokenKind::Mark(mark));
        }
        let hint = match c {
            '=' => "; equality is ==",
            '&' => "; and is &&",
            '|' => "; or is ||",
            _ if !c.is_ascii() => "; names are ASCII letters, digits and _",
            _ => "",
        };
        Err(self.refuse(0, format!("unexpected {c:?} (U+{:04X}){hint}", u32::from(c))))
    }

    /// Makes an error at `back` bytes before the current place.
    fn refuse(&self, back: usize, message: impl Into<String>) -> ConditionError {
        ConditionError::new(self.at.saturating_sub(back), message)
    }

    fn rest(&self) -> &'s str {
        self.source.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    /// Consumes the following bytes as long as `belongs` accepts them.
    fn run(&mut self, belongs: impl Fn(u8) -> bool) -> &'s str {
        let rest = self.rest();
        let length = rest.bytes().take_while(|byte| belongs(*byte)).count();
        self.at += length;
        rest.get(..length).unwrap_or_default()
    }
}

fn continues_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Returns whether a character is a control, has no width, or changes the direction of text.
/// SOURCE: Unicode 16, default-ignorable code points and bidirectional controls (UAX #9, UTS #39).
fn is_unseen(c: char) -> bool {
    (c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{c}'))
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0000}'..='\u{e0fff}')
}

/// A mark that starts with another one comes first.
const MARKS: [&str; 24] = [
    "&&", "||", "==", "!=", "<=", ">=", "<", ">", "!", "+", "-", "*", "/", "%", "?", ":", ".", ",", "(", ")", "[", "]",
    "{", "}",
];
