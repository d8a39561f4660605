//! Substitutions by `$` and backquotes: commands, variables, arithmetic.

use std::collections::HashMap;

use super::{DEEPEST, Lexer, Variable};
use crate::format::shell::word::{Draft, Word, unescaped};

impl Lexer<'_> {
    /// Reads what follows a `$`. Outside quotes, the result is split at blanks.
    pub(super) fn dollar(&mut self, draft: &mut Draft, words: &mut Vec<Word>, depth: usize, bare: bool) {
        self.at += 1;
        match self.peek() {
            Some(b'(') if self.peek_at(1) == Some(b'(') && self.is_arithmetic() => {
                draft.push_unknown("$");
                self.arithmetic(depth);
            }
            Some(b'(') => {
                let first = self.script.commands.len();
                if depth >= DEEPEST {
                    // Read on as part of the surrounding list.
                    self.script.unclear = true;
                    draft.push_unknown("$");
                    if bare {
                        draft.end(words);
                    }
                    return;
                }
                self.bracketed(depth, false);
                let output = self.output_since(first);
                Self::put(draft, words, output.as_deref().map(|text| text.trim_end_matches('\n')), "$", bare);
            }
            Some(b'{') => self.braced(draft, words, depth, bare),
            Some(b'\'') if bare => self.ansi_quoted(draft),
            Some(b'"') if bare => self.double_quoted(draft, words, depth),
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                let start = self.at;
                while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                    self.at += 1;
                }
                let name = self.text.get(start..self.at).unwrap_or("");
                self.variable(draft, words, name, bare);
            }
            Some(byte) if byte.is_ascii_digit() || b"@*#?!$-".contains(&byte) => {
                self.at += 1;
                draft.push_unknown("$");
                draft.push(char::from(byte));
            }
            _ => draft.push('$'),
        }
    }

    fn variable(&mut self, draft: &mut Draft, words: &mut Vec<Word>, name: &str, bare: bool) {
        if name == "IFS" && bare {
            draft.end(words);
            return;
        }
        let separators = match self.variables.get("IFS") {
            Some(Variable::Known(value)) if value.len() <= MOST_SEPARATORS => Some(value.as_str()),
            Some(_) => None,
            None => Some(""),
        };
        let known = match self.variables.get(name) {
            Some(Variable::Known(value)) if value.len() <= self.budget && (!bare || separators.is_some()) => {
                Some(value.clone())
            }
            _ => None,
        };
        if let Some(value) = &known {
            self.budget -= value.len();
        }
        Self::put_cut(draft, words, known.as_deref(), bare, separators.unwrap_or(""));
        if known.is_none() {
            draft.push_unknown("$");
            draft.push_str(name);
        }
    }

    /// Adds a known text to the draft, split at blanks outside quotes.
    fn put(draft: &mut Draft, words: &mut Vec<Word>, text: Option<&str>, unknown: &str, bare: bool) {
        if text.is_none() && !unknown.is_empty() {
            draft.push_unknown(unknown);
        }
        Self::put_cut(draft, words, text, bare, "");
    }

    /// The same, split at these separators as well.
    fn put_cut(draft: &mut Draft, words: &mut Vec<Word>, text: Option<&str>, bare: bool, separators: &str) {
        let Some(text) = text else { return };
        if !bare {
            draft.push_str(text);
            return;
        }
        for (place, part) in text.split(|c: char| c.is_whitespace() || separators.contains(c)).enumerate() {
            if place > 0 {
                draft.end(words);
            }
            if !part.is_empty() {
                draft.word.wild |= part.contains(['*', '?', '[']);
                draft.push_str(part);
            }
        }
    }

    /// Reads `${name}`, `${name:-word}` and the other forms.
    fn braced(&mut self, draft: &mut Draft, words: &mut Vec<Word>, depth: usize, bare: bool) {
        self.at += 1;
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            self.at += 1;
        }
        let name = self.text.get(start..self.at).unwrap_or("").to_owned();
        let plain = match (self.peek(), self.peek_at(1), self.peek_at(3)) {
            (Some(b'}'), ..) => 1,
            // All values of an array, or its only value.
            (Some(b'['), Some(b'@' | b'*'), Some(b'}')) => 4,
            _ => 0,
        };
        if plain > 0 && !name.is_empty() {
            self.at += plain;
            // `"${a[@]}"` keeps its words separate even in quotes.
            self.variable(draft, words, &name, bare || plain == 4);
            return;
        }
        let operator = self.at;
        let mut inner = Draft::default();
        let mut inner_words = Vec::new();
        self.read_to_brace(&mut inner, &mut inner_words, depth);
        if name == "IFS" && bare {
            draft.end(words);
            return;
        }
        let rest = self.text.get(operator..self.at).unwrap_or("");
        let has_default =
            rest.starts_with(":-") || rest.starts_with('-') || rest.starts_with(":=") || rest.starts_with('=');
        inner.end(&mut inner_words);
        if has_default && !self.variables.contains_key(&name) {
            // The default for an unset variable; a set value is known only at run time.
            let skip = if rest.starts_with(':') { 2 } else { 1 };
            let text: Vec<&str> = inner_words.iter().map(|word| word.text.as_str()).collect();
            let text = text.join(" ");
            Self::put(draft, words, Some(text.get(skip..).unwrap_or("")), "", bare);
            draft.word.dynamic = true;
            draft.begun = true;
            return;
        }
        draft.push_unknown("$");
        draft.push_str(&name);
    }

    /// Reads the inside of `${`, including its substitutions.
    fn read_to_brace(&mut self, inner: &mut Draft, words: &mut Vec<Word>, depth: usize) {
        while let Some(byte) = self.peek() {
            match byte {
                b'}' => {
                    self.at += 1;
                    return;
                }
                b'\\' => {
                    self.at += 1;
                    if let Some(c) = self.take_char() {
                        inner.push(c);
                    }
                }
                b'$' if depth >= DEEPEST => {
                    self.script.unclear = true;
                    self.at += 1;
                }
                b'$' => self.dollar(inner, words, depth + 1, false),
                b'`' => self.backquoted(inner, words, depth + 1, false),
                b'"' => {
                    self.at += 1;
                }
                b'\'' => {
                    self.at += 1;
                    let rest = self.text.get(self.at..self.end).unwrap_or("");
                    // A lone quote inside double quotes is literal.
                    if let Some(inside) = rest.find(['\'', '}']).and_then(|close| {
                        rest.get(..close).filter(|_| rest.get(close..).is_some_and(|rest| rest.starts_with('\'')))
                    }) {
                        inner.push_str(inside);
                        self.at += inside.len() + 1;
                    }
                }
                b'<' | b'>' if self.peek_at(1) == Some(b'(') => {
                    self.at += 1;
                    self.bracketed(depth, byte == b'>');
                }
                _ => {
                    if let Some(c) = self.take_char() {
                        inner.push(c);
                    }
                }
            }
        }
        self.script.unclear = true;
    }

    /// Reads `$'...'`.
    fn ansi_quoted(&mut self, draft: &mut Draft) {
        self.at += 1;
        let start = self.at;
        let mut escaped = false;
        while let Some(byte) = self.peek() {
            if byte == b'\'' && !escaped {
                break;
            }
            escaped = byte == b'\\' && !escaped;
            self.at += 1;
        }
        let inside = self.text.get(start..self.at).unwrap_or("");
        draft.push_str(&unescaped(inside));
        draft.word.quoted = true;
        self.script.unclear |= self.peek().is_none();
        self.at += usize::from(self.peek().is_some());
    }

    /// Reads backquotes: their content is a line of its own after removing backslashes.
    pub(super) fn backquoted(&mut self, draft: &mut Draft, words: &mut Vec<Word>, depth: usize, bare: bool) {
        self.at += 1;
        let mut inner = String::new();
        let mut closed = false;
        while let Some(c) = self.take_char() {
            match c {
                '`' => {
                    closed = true;
                    break;
                }
                '\\' => match self.take_char() {
                    Some(c @ ('`' | '\\' | '$')) => inner.push(c),
                    Some(c) => inner.extend(['\\', c]),
                    None => inner.push('\\'),
                },
                c => inner.push(c),
            }
        }
        self.script.unclear |= !closed;
        if depth >= DEEPEST {
            self.script.unclear = true;
            draft.push_unknown("$");
            return;
        }
        let first = self.script.commands.len();
        self.nested(&inner, depth);
        let output = self.output_since(first);
        Self::put(draft, words, output.as_deref().map(|text| text.trim_end_matches('\n')), "$", bare);
    }

    /// Reads another text with the current state.
    fn nested(&mut self, text: &str, depth: usize) {
        let begin = self.at;
        let first = self.script.commands.len();
        let mut lexer: Lexer<'_> = Lexer {
            text,
            at: 0,
            end: text.len(),
            script: std::mem::take(&mut self.script),
            variables: std::mem::take(&mut self.variables),
            set_at: HashMap::new(),
            changing: std::mem::take(&mut self.changing),
            pending: Vec::new(),
            bodies: std::mem::take(&mut self.bodies),
            budget: self.budget,
        };
        lexer.list(super::End::Text, depth + 1, false);
        lexer.bodies_at_end();
        self.script = lexer.script;
        self.variables = lexer.variables;
        for name in lexer.set_at.into_keys() {
            self.set_at.entry(name).or_insert(begin);
        }
        self.changing = lexer.changing;
        self.bodies = lexer.bodies;
        self.budget = lexer.budget;
        for command in self.script.commands.iter_mut().skip(first) {
            command.at = begin;
        }
    }
}

/// Maximum number of separators (`IFS`) at which a variable is split.
const MOST_SEPARATORS: usize = 8;
