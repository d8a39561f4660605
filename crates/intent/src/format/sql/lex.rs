//! The tokens of SQL by the rules of one family of dialects. Where the families disagree about a byte, the text is
//! read by each of them.

/// The rules of a family of dialects for the bytes on which dialects disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one point on which dialects disagree")]
pub(super) struct Rules {
    /// A backslash in a string changes the meaning of the next character.
    backslash: bool,
    /// `#` starts a comment.
    hash: bool,
    /// `--` starts a comment only before a blank.
    strict_dash: bool,
    /// Comments can be nested.
    nests: bool,
    /// `/*! ... */` is executed.
    executes: bool,
    /// `$tag$ ... $tag$` is a string.
    dollar: bool,
}

/// `PostgreSQL` and its derivatives, and SQL Server.
pub(super) const STANDARD: Rules =
    Rules { backslash: false, hash: false, strict_dash: false, nests: true, executes: false, dollar: true };
/// `MySQL`, `MariaDB`, and the strings of `BigQuery` and others.
pub(super) const MYSQL: Rules =
    Rules { backslash: true, hash: true, strict_dash: true, nests: false, executes: true, dollar: false };
/// `SQLite`, and the standard taken literally.
pub(super) const PLAIN: Rules =
    Rules { backslash: false, hash: false, strict_dash: false, nests: false, executes: false, dollar: false };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A keyword or an unquoted name.
    Word,
    /// A quoted name.
    Name,
    /// A string.
    Text,
    Number,
    Symbol,
    Open,
    Close,
    /// `;`
    End,
    /// A client command, up to the end of its line.
    Client,
}

/// A token with its range; for names and strings, the range of their content.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

/// The tokens of a text, and observations made on the way.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that was met")]
pub(super) struct Lexed {
    pub tokens: Vec<Token>,
    /// A string, name or comment is not closed.
    pub unclosed: bool,
    /// A part has no certain reading.
    pub unclear: bool,
    /// Bytes on which dialects disagree occurred.
    pub disputed: bool,
    /// A comment was opened inside another.
    pub nested: bool,
}

/// Splits a text into tokens.
pub(super) fn lex(text: &str, rules: Rules) -> Lexed {
    let mut lexer = Lexer { text, bytes: text.as_bytes(), at: 0, rules, running_comments: 0, lexed: Lexed::default() };
    while lexer.at < lexer.bytes.len() {
        lexer.next();
    }
    lexer.lexed
}

struct Lexer<'t> {
    text: &'t str,
    bytes: &'t [u8],
    at: usize,
    rules: Rules,
    /// Number of executed comments that are still open.
    running_comments: usize,
    lexed: Lexed,
}

impl Lexer<'_> {
    fn byte(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn push(&mut self, kind: Kind, start: usize, end: usize) {
        self.lexed.tokens.push(Token { kind, start, end });
    }

    fn next(&mut self) {
        let start = self.at;
        match (self.byte(0), self.byte(1)) {
            (byte, _) if byte.is_ascii_whitespace() => self.at += 1,
            (b'-', b'-') => self.dashes(),
            (b'/', b'*') => self.comment(),
            (b'*', b'/') if self.running_comments > 0 => {
                self.running_comments -= 1;
                self.at += 2;
            }
            (b'#', next) => self.hash(next),
            (b'\'', _) => self.string(self.rules.backslash),
            (b'"', _) => self.quoted(b'"', if self.rules.backslash { Kind::Text } else { Kind::Name }),
            (b'`', _) => self.quoted(b'`', Kind::Name),
            (b'[', _) => self.bracketed(),
            (b'$', _) => self.dollar(),
            (b'(', _) => self.single(Kind::Open),
            (b')', _) => self.single(Kind::Close),
            (b';', _) => self.single(Kind::End),
            (b'\\', _) => self.client(),
            (b'.', next) if next.is_ascii_alphabetic() && self.opens_line() => self.client(),
            (byte, _) if byte.is_ascii_digit() => {
                self.skip_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_'));
                self.push(Kind::Number, start, self.at);
            }
            (byte, _) if is_word(byte) || byte == b'@' => self.word(),
            _ => self.symbol(),
        }
    }

    fn single(&mut self, kind: Kind) {
        self.push(kind, self.at, self.at + 1);
        self.at += 1;
    }

    fn skip_while(&mut self, fits: impl Fn(u8) -> bool) {
        while self.at < self.bytes.len() && fits(self.byte(0)) {
            self.at += 1;
        }
    }

    fn skip_line(&mut self) {
        self.skip_while(|byte| byte != b'\n');
    }

    /// Reads comparisons, arrows and casts as one token; signs separately, so that `=-1` and `=?` are split.
    fn symbol(&mut self) {
        let start = self.at;
        let run: &[u8] = match (self.byte(0), self.byte(1)) {
            (b'-', b'>') => b">",
            (b':', b':') => b":",
            (b'<' | b'>' | b'=' | b'!' | b'|' | b'&' | b'~' | b'^', _) => b"<>=!|&~^",
            _ => b"",
        };
        self.at += 1;
        self.skip_while(|byte| run.contains(&byte));
        self.push(Kind::Symbol, start, self.at);
    }

    fn dashes(&mut self) {
        let spaced = self.bytes.get(self.at + 2).is_none_or(u8::is_ascii_whitespace);
        if !spaced {
            self.lexed.disputed = true;
            if self.rules.strict_dash {
                self.push(Kind::Symbol, self.at, self.at + 1);
                self.at += 1;
                return;
            }
        }
        self.skip_line();
    }

    fn hash(&mut self, next: u8) {
        if self.rules.hash {
            self.skip_line();
            return;
        }
        self.lexed.disputed = true;
        if is_word(next) {
            // A temporary table of SQL Server.
            self.word();
        } else {
            self.symbol();
        }
    }

    fn comment(&mut self) {
        let marker = if self.byte(2) == b'M' { self.byte(3) } else { self.byte(2) };
        if marker == b'!' {
            self.lexed.unclear = true;
            self.lexed.disputed = true;
            if self.rules.executes {
                self.at += if self.byte(2) == b'M' { 4 } else { 3 };
                self.skip_while(|byte| byte.is_ascii_digit());
                self.running_comments += 1;
                return;
            }
        }
        self.at += 2;
        let mut depth = 1_usize;
        while depth > 0 {
            match (self.byte(0), self.byte(1)) {
                _ if self.at >= self.bytes.len() => {
                    self.lexed.unclosed = true;
                    return;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                }
                (b'/', b'*') => {
                    self.lexed.nested = true;
                    self.lexed.disputed = true;
                    depth += usize::from(self.rules.nests);
                    self.at += 2;
                }
                _ => self.at += 1,
            }
        }
    }

    /// Reads a string in single quotes; two of them stand for one.
    fn string(&mut self, backslash: bool) {
        self.text_until(b'\'', Kind::Text, backslash);
    }

    fn quoted(&mut self, quote: u8, kind: Kind) {
        let backslash = self.rules.backslash && quote == b'"';
        self.text_until(quote, kind, backslash);
    }

    fn text_until(&mut self, quote: u8, kind: Kind, backslash: bool) {
        self.at += 1;
        let start = self.at;
        loop {
            match (self.byte(0), self.byte(1)) {
                _ if self.at >= self.bytes.len() => {
                    self.lexed.unclosed = true;
                    self.push(kind, start, self.at);
                    return;
                }
                (b'\\', next) if next == quote || next == b'\\' => {
                    self.lexed.disputed = true;
                    self.at += if backslash { 2 } else { 1 };
                }
                (byte, next) if byte == quote && next == quote => self.at += 2,
                (byte, _) if byte == quote => {
                    self.push(kind, start, self.at);
                    self.at += 1;
                    return;
                }
                _ => self.at += 1,
            }
        }
    }

    /// Reads `[name]` of SQL Server and `SQLite` if it can be nothing else; otherwise an index.
    fn bracketed(&mut self) {
        let rest = self.bytes.get(self.at + 1..).unwrap_or(&[]);
        let plain = rest
            .iter()
            .take(LONGEST_BRACKET)
            .take_while(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"_ -.$#/".contains(byte))
            .count();
        let is_name = plain > 0 && rest.get(plain) == Some(&b']') && !rest.first().is_some_and(u8::is_ascii_digit);
        if is_name {
            self.push(Kind::Name, self.at + 1, self.at + 1 + plain);
            self.at += plain + 2;
        } else {
            self.single(Kind::Symbol);
        }
    }

    /// Reads `$tag$ ... $tag$`, or a parameter.
    fn dollar(&mut self) {
        let rest = self.text.get(self.at + 1..).unwrap_or("");
        let tag = rest.bytes().take_while(|&byte| byte.is_ascii_alphanumeric() || byte == b'_').count();
        let opens = rest.as_bytes().get(tag) == Some(&b'$') && !rest.starts_with(|c: char| c.is_ascii_digit());
        if !opens {
            self.at += 1;
            self.skip_while(is_word);
            self.push(Kind::Number, self.at, self.at);
            return;
        }
        self.lexed.disputed = true;
        let start = self.at + tag + 2;
        if !self.rules.dollar {
            self.push(Kind::Symbol, self.at, start);
            self.at = start;
            return;
        }
        let mark = self.text.get(self.at..start).unwrap_or("$$");
        let end = self.text.get(start..).and_then(|body| body.find(mark)).map(|length| start + length);
        self.lexed.unclosed |= end.is_none();
        let end_of_text = self.bytes.len();
        self.push(Kind::Text, start, end.unwrap_or(end_of_text));
        self.at = end.map_or(end_of_text, |end| end + mark.len());
    }

    /// Reads a word, or the prefix of a string.
    fn word(&mut self) {
        let start = self.at;
        self.at += 1;
        self.skip_while(|byte| is_word(byte) || matches!(byte, b'@' | b'#' | b'$'));
        let word = self.bytes.get(start..self.at).unwrap_or(&[]);
        let is_prefix =
            matches!(word, [b'n' | b'N' | b'b' | b'B' | b'x' | b'X' | b'r' | b'R']) || word.first() == Some(&b'_');
        match self.byte(0) {
            b'\'' if word.eq_ignore_ascii_case(b"e") => self.string(true),
            b'\'' if is_prefix => self.string(self.rules.backslash),
            b'&' if word.eq_ignore_ascii_case(b"u") && matches!(self.byte(1), b'"' | b'\'') => {
                // Another clause of the statement can redefine these escapes.
                self.lexed.unclear = true;
                self.at += 1;
            }
            _ => self.push(Kind::Word, start, self.at),
        }
    }

    fn client(&mut self) {
        let start = self.at;
        self.skip_line();
        // MySQL's `\G` ends a statement and displays its result.
        let line = self.text.get(start..self.at).unwrap_or("");
        if matches!(line.trim(), "\\G" | "\\g" | "\\G;" | "\\g;") {
            self.push(Kind::End, start, self.at);
        } else {
            self.push(Kind::Client, start, self.at);
        }
    }

    /// Returns whether only blanks precede on the line, and no statement is open.
    fn opens_line(&self) -> bool {
        let before = self.bytes.get(..self.at).and_then(<[u8]>::last);
        let is_open = self.lexed.tokens.last().is_some_and(|last| !matches!(last.kind, Kind::End | Kind::Client));
        matches!(before, None | Some(b'\n')) && !is_open
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// Maximum length of a name in square brackets, in bytes.
const LONGEST_BRACKET: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, rules: Rules) -> Vec<&str> {
        lex(text, rules).tokens.iter().map(|token| &text[token.start..token.end]).collect()
    }

    #[test]
    fn the_same_bytes_are_read_by_each_familys_rules() {
        for (text, standard, mysql) in [
            ("a 'b\\'; c'", vec!["a", "b\\", ";", "c", ""], vec!["a", "b\\'; c"]),
            ("1--1", vec!["1"], vec!["1", "-", "-", "1"]),
            ("a # b", vec!["a", "#", "b"], vec!["a"]),
            ("$$;$$", vec![";"], vec!["$$", ";", "$$"]),
            ("a /*! b */ c", vec!["a", "c"], vec!["a", "b", "c"]),
            ("/* /* */ a */ b", vec!["b"], vec!["a", "*", "/", "b"]),
        ] {
            assert_eq!(shown(text, STANDARD), standard, "{text}");
            assert_eq!(shown(text, MYSQL), mysql, "{text}");
        }
    }

    #[test]
    fn quotes_hide_what_they_hold_and_nothing_else() {
        assert_eq!(
            shown("\"a;b\" [c d] `e` 'f''g' E'h\\'i' N'j' a[1]", STANDARD),
            ["a;b", "c d", "e", "f''g", "h\\'i", "j", "a", "[", "1", "]"]
        );
    }
}
