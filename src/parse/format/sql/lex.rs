//! SQL's tokens under the rules of one family of dialects. Where the families
//! disagree about what a byte means, the text is read under each of them.

/// What a family of dialects makes of the bytes on which dialects disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one point on which dialects disagree")]
pub(super) struct Rules {
    /// A backslash in a string takes the next character's meaning.
    backslash: bool,
    /// `#` opens a comment.
    hash: bool,
    /// `--` opens a comment only before a blank.
    strict_dash: bool,
    /// A comment can hold another.
    nests: bool,
    /// `/*! ... */` is run.
    executes: bool,
    /// `$tag$ ... $tag$` is a string.
    dollar: bool,
}

/// `PostgreSQL` and what follows it; SQL Server.
pub(super) const STANDARD: Rules =
    Rules { backslash: false, hash: false, strict_dash: false, nests: true, executes: false, dollar: true };
/// `MySQL`, `MariaDB`, and the strings of `BigQuery` and others.
pub(super) const MYSQL: Rules =
    Rules { backslash: true, hash: true, strict_dash: true, nests: false, executes: true, dollar: false };
/// `SQLite` and the letter of the standard.
pub(super) const PLAIN: Rules =
    Rules { backslash: false, hash: false, strict_dash: false, nests: false, executes: false, dollar: false };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A keyword or a bare name.
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
    /// A command of the client, to the end of its line.
    Client,
}

/// A piece of the text; of names and strings it is what stands inside.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
}

/// The tokens of a text, and what was seen on the way.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that was met")]
pub(super) struct Lexed {
    pub tokens: Vec<Token>,
    /// A string, a name or a comment did not end.
    pub unclosed: bool,
    /// Something stands there of which no reading is certain.
    pub unclear: bool,
    /// Bytes on which dialects disagree were met.
    pub disputed: bool,
    /// A comment opened inside of another.
    pub nested: bool,
}

/// The tokens of a text.
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
    /// Comments that are run and still open.
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

    /// Comparisons, arrows and casts in one piece; signs by themselves, so that `=-1` and `=?` come apart.
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

    /// A string in single quotes; two of them are one inside.
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

    /// `[name]` of SQL Server and `SQLite`, where it can be nothing else; an index otherwise.
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

    /// `$tag$ ... $tag$`, or a parameter.
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

    /// A word, or the letters before a string that say how to read it.
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
                // Escapes that another statement's clause can redefine.
                self.lexed.unclear = true;
                self.at += 1;
            }
            _ => self.push(Kind::Word, start, self.at),
        }
    }

    fn client(&mut self) {
        let start = self.at;
        self.skip_line();
        // MySQL's `\G` ends a statement and shows it.
        let line = self.text.get(start..self.at).unwrap_or("");
        if matches!(line.trim(), "\\G" | "\\g" | "\\G;" | "\\g;") {
            self.push(Kind::End, start, self.at);
        } else {
            self.push(Kind::Client, start, self.at);
        }
    }

    /// Whether nothing but blanks stands before on the line, and no statement is open.
    fn opens_line(&self) -> bool {
        let before = self.bytes.get(..self.at).and_then(<[u8]>::last);
        let is_open = self.lexed.tokens.last().is_some_and(|last| !matches!(last.kind, Kind::End | Kind::Client));
        matches!(before, None | Some(b'\n')) && !is_open
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

/// Longest name in square brackets.
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
