//! Words, numbers, quotations, addresses and marks, found in a single pass over the text.

use crate::lexicon::{Lexicon, Phrase};
use crate::roles::{Role, Roles};
use crate::sign::{Sign, Signs};

/// One token of the text.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Token<'a> {
    /// Start of the token, in bytes.
    pub start: usize,
    /// The token as written.
    pub text: &'a str,
    /// The token in lower case.
    pub word: &'a str,
    pub kind: Kind,
    /// The roles of the word in a sentence.
    pub roles: Roles,
    /// The sign of the cue that starts at this word.
    pub cue: Option<Sign>,
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Word,
    Number(f64),
    /// Text in quotation marks: content, not a request.
    Quoted,
    /// Text in backquotes.
    CodeSpan,
    Email,
    Url,
    Path,
    /// A mark that ends a sentence.
    Stop,
    /// A comma, colon, bracket or dash.
    Mark,
}

impl Token<'_> {
    pub(crate) const fn is(&self, role: Role) -> bool {
        self.roles.has(role)
    }
}

/// Splits the text into tokens, and finds the roles and cues of words and phrases. `lower` is `text` in ASCII lower
/// case, so that offsets agree.
pub(crate) fn tokenise<'a>(text: &'a str, lower: &'a str, lexicon: &Lexicon) -> Vec<Token<'a>> {
    let raw = Cutter { text, lower, at: 0, unclosed: Vec::new(), tokens: Vec::with_capacity(text.len() / 5 + 4) }.cut();
    noted(&raw, text, lower, lexicon)
}

/// The signs of the cues among these tokens.
pub(crate) fn cues(tokens: &[Token<'_>]) -> Signs {
    let mut signs = Signs::default();
    for sign in tokens.iter().filter_map(|token| token.cue) {
        signs.add(sign);
    }
    signs
}

/// A piece with its place.
#[derive(Clone, Copy)]
struct Piece {
    start: usize,
    end: usize,
    kind: Kind,
}

struct Cutter<'a> {
    text: &'a str,
    lower: &'a str,
    at: usize,
    /// Quotation marks without a partner in the rest of the text. Each mark is searched once, so that the time stays
    /// linear.
    unclosed: Vec<char>,
    tokens: Vec<Piece>,
}

impl<'a> Cutter<'a> {
    fn cut(mut self) -> Vec<Piece> {
        while let Some(c) = self.rest().chars().next() {
            match c {
                '\n' => self.take(1, Kind::Stop),
                c if c.is_whitespace() => self.at += c.len_utf8(),
                '\'' | '"' | '`' if self.quotation(c) => {}
                c if c.is_alphanumeric() || matches!(c, '/' | '~' | '$' | '€' | '£' | '@' | '#' | '.' | '_') => {
                    self.chunk();
                }
                '?' | '!' | ';' => self.take(c.len_utf8(), Kind::Stop),
                '*' if self.pattern() => {}
                _ => self.take(c.len_utf8(), Kind::Mark),
            }
        }
        self.tokens
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn take(&mut self, length: usize, kind: Kind) {
        self.tokens.push(Piece { start: self.at, end: self.at + length, kind });
        self.at += length;
    }

    /// Takes a file name pattern: `*.txt`.
    fn pattern(&mut self) -> bool {
        let rest = self.rest();
        // Only a few characters ahead, so that a text of asterisks is scanned once.
        let near = (0..=rest.len().min(LONGEST_PATTERN)).rev().find(|&end| rest.is_char_boundary(end)).unwrap_or(0);
        let rest = rest.get(..near).unwrap_or("");
        let end = rest.find(|c: char| c.is_whitespace() || matches!(c, ',' | ')' | '"' | '\'')).unwrap_or(rest.len());
        let whole = rest.get(..end).unwrap_or("").trim_end_matches('.');
        let is_pattern = whole.len() > 2
            && whole.starts_with("*.")
            && whole.chars().skip(2).all(|c| c.is_alphanumeric() || c == '*');
        if is_pattern {
            self.take(whole.len(), Kind::Path);
        }
        is_pattern
    }

    /// Takes the text between this mark and its partner, if there is one.
    fn quotation(&mut self, mark: char) -> bool {
        if self.unclosed.contains(&mark) {
            return false;
        }
        let inner = self.at + 1;
        let Some(rest) = self.text.get(inner..) else { return false };
        let closing = rest.char_indices().find(|&(place, c)| {
            c == mark
                && (mark != '\''
                    || !rest.get(place + 1..).is_some_and(|after| after.starts_with(char::is_alphanumeric)))
        });
        let Some((length, _)) = closing else {
            self.unclosed.push(mark);
            return false;
        };
        let content = rest.get(..length).unwrap_or("").trim();
        let kind = match classify(content) {
            _ if mark == '`' => Kind::CodeSpan,
            Some(kind @ (Kind::Email | Kind::Path | Kind::Url)) if !content.contains(' ') => kind,
            _ => Kind::Quoted,
        };
        self.tokens.push(Piece { start: inner, end: inner + length, kind });
        self.at = inner + length + 1;
        true
    }

    /// Takes the text up to the next blank or quotation mark as a word, address, path or number.
    fn chunk(&mut self) {
        let rest = self.rest();
        let end = rest
            .char_indices()
            .find(|&(place, c)| {
                c.is_whitespace()
                    // "$50,000🔥": a picture is not part of a number or word.
                    || c >= FIRST_SYMBOL && !c.is_alphanumeric()
                    || matches!(c, '"' | '`' | ',' | ';' | '!' | '(' | ')' | '[' | ']' | '{' | '}' | '|' | '<' | '>')
                        && !(c == ',' && is_inside_number(rest, place))
            })
            .map_or(rest.len(), |(place, _)| place);
        let whole = rest.get(..end).unwrap_or("");
        let trimmed = whole.trim_end_matches(['.', '?', ':', '\'', '*']);
        let trimmed = if trimmed.is_empty() { whole } else { trimmed };
        let (whole, trimmed) = match next_sentence(trimmed) {
            // "www.example.com.They sent": the next sentence starts without a blank.
            Some(end) => (trimmed.get(..=end).unwrap_or(whole), trimmed.get(..end).unwrap_or(trimmed)),
            None => (whole, trimmed),
        };
        let start = self.at;
        let is_short = self.lower.get(start..start + trimmed.len()).is_some_and(is_abbreviation);
        let has_stop = !is_short
            && whole.len() > trimmed.len()
            && whole.get(trimmed.len()..).is_some_and(|end| end.contains(['.', '?']));
        if let Some(kind) = classify(trimmed) {
            self.tokens.push(Piece { start, end: start + trimmed.len(), kind });
        } else {
            self.words(start, trimmed.len());
        }
        self.at = start + trimmed.len();
        if has_stop {
            let tail = whole.len() - trimmed.len();
            self.tokens.push(Piece { start: self.at, end: self.at + tail, kind: Kind::Stop });
            self.at += tail;
        } else if whole.len() > trimmed.len() {
            let tail = whole.len() - trimmed.len();
            self.take(tail, Kind::Mark);
        }
    }

    /// Splits a chunk at marks inside it ("and/or", "pages.They"), but keeps hyphens and apostrophes.
    fn words(&mut self, start: usize, length: usize) {
        let chunk = self.text.get(start..start + length).unwrap_or("");
        let mut from = 0;
        for (place, c) in chunk.char_indices().chain(std::iter::once((length, ' '))) {
            if c.is_alphanumeric() || matches!(c, '-' | '_' | '\'' | '#' | '@') {
                continue;
            }
            if place > from {
                let end = start + place;
                let word = self.lower.get(start + from..end).unwrap_or("");
                // "Bob's" becomes Bob; "what's" stays, because the lexicon knows it.
                let possessive = word.ends_with("'s") && !is_short_form(word);
                self.tokens.push(Piece {
                    start: start + from,
                    end: if possessive { end - 2 } else { end },
                    kind: Kind::Word,
                });
            }
            if place < length {
                let kind = if c == '.' || c == '?' { Kind::Stop } else { Kind::Mark };
                self.tokens.push(Piece { start: start + place, end: start + place + c.len_utf8(), kind });
            }
            from = place + c.len_utf8();
        }
    }
}

fn is_short_form(word: &str) -> bool {
    matches!(
        word,
        "it's" | "that's" | "there's" | "what's" | "who's" | "where's" | "when's" | "how's" | "let's" | "here's"
    )
}

/// The place of the full stop after which an address continues as a sentence.
fn next_sentence(chunk: &str) -> Option<usize> {
    if !chunk.starts_with("www.") && !chunk.contains("://") {
        return None;
    }
    let (at, _) = chunk.rmatch_indices('.').next()?;
    let mut rest = chunk.get(at + 1..)?.chars();
    (rest.next()?.is_ascii_uppercase() && rest.all(|c| c.is_ascii_lowercase())).then_some(at)
}

/// Returns whether a full stop after this word does not end a sentence.
fn is_abbreviation(word: &str) -> bool {
    matches!(
        word,
        "mr" | "mrs"
            | "ms"
            | "dr"
            | "prof"
            | "st"
            | "jr"
            | "sr"
            | "e.g"
            | "i.e"
            | "vs"
            | "etc"
            | "approx"
            | "inc"
            | "ltd"
            | "resp"
            | "incl"
            | "excl"
            | "cf"
            | "a.k.a"
    )
}

fn is_inside_number(text: &str, place: usize) -> bool {
    let before = text.get(..place).and_then(|part| part.chars().next_back());
    let after = text.get(place + 1..).and_then(|part| part.chars().next());
    before.is_some_and(|c| c.is_ascii_digit()) && after.is_some_and(|c| c.is_ascii_digit())
}

/// The kind of a chunk without blanks, if its shape shows it.
pub(crate) fn classify(chunk: &str) -> Option<Kind> {
    let first = chunk.chars().next()?;
    if chunk.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        // Whatever has a shape has a mark or a digit.
        return None;
    }
    if (first.is_ascii_digit() || (matches!(first, '$' | '€' | '£') && chunk.len() > first.len_utf8()))
        && let Some(number) = number(chunk)
    {
        return Some(Kind::Number(number));
    }
    if chunk.contains("://") || chunk.starts_with("www.") {
        return Some(Kind::Url);
    }
    if let Some((user, host)) = chunk.split_once('@')
        && !user.is_empty()
        && host.contains('.')
        && !host.starts_with('.')
    {
        return Some(Kind::Email);
    }
    // ".log", ".tar.gz": a file extension or a hidden file.
    if first == '.'
        && chunk.len() > 2
        && chunk.chars().skip(1).all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
        && !chunk.contains("..")
    {
        return Some(Kind::Path);
    }
    let rooted = chunk.len() > 1 && ["/", "./", "../", "~/"].iter().any(|root| chunk.starts_with(root));
    if rooted || chunk.get(1..3) == Some(":\\") {
        return Some(Kind::Path);
    }
    let (stem, ending) = chunk.rsplit_once('.')?;
    if stem.is_empty() || stem.ends_with('.') {
        return None;
    }
    let ending = ending.to_ascii_lowercase();
    if FILE_ENDINGS.contains(&ending.as_str()) {
        return Some(Kind::Path);
    }
    let is_host = DOMAIN_ENDINGS.contains(&ending.split('/').next().unwrap_or(""))
        && stem.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'));
    is_host.then_some(Kind::Url)
}

/// Normalizes "1,200.50" and "1.200,50" to a decimal point and no other mark. If a mark is ambiguous, the larger
/// number is taken.
fn plain_digits(digits: &str) -> String {
    let last_mark = digits.rfind(['.', ',']);
    let decimals = last_mark.map_or(0, |at| digits.len() - at - 1);
    let marks = digits.bytes().filter(|byte| matches!(byte, b'.' | b',')).count();
    let mixed = digits.contains('.') && digits.contains(',');
    let groups = marks > 1 && !mixed || decimals == 3 && !mixed && !digits.starts_with("0.");
    match last_mark {
        Some(at) if !groups => {
            let whole: String = digits.get(..at).unwrap_or("").chars().filter(char::is_ascii_digit).collect();
            format!("{whole}.{}", digits.get(at + 1..).unwrap_or(""))
        }
        _ => digits.chars().filter(char::is_ascii_digit).collect(),
    }
}

/// The number of "1,200.50", "$120", "70%" or "12k".
fn number(chunk: &str) -> Option<f64> {
    let digits = chunk.trim_start_matches(['$', '€', '£']).trim_end_matches('%');
    let (digits, factor) = match digits.strip_suffix(['k', 'K']) {
        Some(thousands) => (thousands, 1_000.0),
        None => match digits.strip_suffix(['m', 'M']) {
            Some(millions) => (millions, 1_000_000.0),
            None => (digits, 1.0),
        },
    };
    if digits.len() > 24 || !digits.chars().all(|c| c.is_ascii_digit() || c == '.' || c == ',') {
        return None;
    }
    plain_digits(digits).parse::<f64>().ok().map(|value| value * factor)
}

/// The first of the arrows, signs and pictures; quotation marks, dashes and currencies come before it.
const FIRST_SYMBOL: char = '\u{2190}';
/// Maximum length of a file name pattern, in bytes.
const LONGEST_PATTERN: usize = 32;

const FILE_ENDINGS: &[&str] = &[
    "txt", "md", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "pdf", "csv", "tsv", "json", "yaml", "yml", "toml",
    "xml", "html", "htm", "log", "py", "rs", "js", "ts", "go", "c", "h", "cpp", "java", "sh", "rb", "php", "sql", "db",
    "sqlite", "zip", "tar", "gz", "tgz", "png", "jpg", "jpeg", "gif", "svg", "mp3", "mp4", "wav", "flac", "conf",
    "cfg", "ini", "env", "pem", "key", "crt", "bak", "ipynb", "tf", "lock", "exe", "deb", "rpm", "iso", "img",
    "parquet", "rtf", "odt",
];

const DOMAIN_ENDINGS: &[&str] = &[
    "com", "org", "net", "io", "ai", "dev", "edu", "gov", "co", "uk", "de", "fr", "info", "app", "cloud", "eu", "us",
    "ch",
];

/// Looks up the roles of each word and the cue that starts there, the longest phrase first.
fn noted<'a>(pieces: &[Piece], text: &'a str, lower: &'a str, lexicon: &Lexicon) -> Vec<Token<'a>> {
    let word_at = |index: usize| {
        pieces.get(index).filter(|piece| piece.kind == Kind::Word).and_then(|piece| lower.get(piece.start..piece.end))
    };
    let token = |(index, piece): (usize, &Piece)| {
        let (mut roles, mut cue) = (Roles::default(), None);
        if let Some(word) = word_at(index) {
            let fits = |phrase: &&Phrase| {
                phrase.rest.iter().enumerate().all(|(step, part)| word_at(index + 1 + step) == Some(&**part))
            };
            roles = Roles::of(word);
            cue = lexicon.phrases(word).iter().find(fits).map(|phrase| phrase.cue).or_else(|| lexicon.cue(word));
        }
        let (text, word) = (text.get(piece.start..piece.end), lower.get(piece.start..piece.end));
        let (text, word) = (text.unwrap_or_default(), word.unwrap_or_default());
        Token { start: piece.start, text, word, kind: piece.kind, roles, cue }
    };
    pieces.iter().enumerate().map(token).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(String, Kind)> {
        let lower = text.to_ascii_lowercase();
        let lexicon = Lexicon::default();
        tokenise(text, &lower, &lexicon).iter().map(|token| (token.word.to_owned(), token.kind)).collect()
    }

    #[test]
    fn addresses_paths_and_numbers_are_told_by_their_shape() {
        for (text, kind) in [
            ("bob@example.com", Kind::Email),
            ("https://example.com/a", Kind::Url),
            ("www.example.com", Kind::Url),
            ("/etc/passwd", Kind::Path),
            ("report.docx", Kind::Path),
            ("$1,200.50", Kind::Number(1200.5)),
        ] {
            assert_eq!(kinds(text), vec![(text.to_owned(), kind)]);
        }
    }

    #[test]
    fn a_quotation_is_one_token_and_an_apostrophe_opens_none() {
        let tokens = kinds("Don't send 'delete it all' to Bob's friend");
        let quoted: Vec<_> = tokens.iter().filter(|(_, kind)| *kind == Kind::Quoted).collect();
        assert_eq!(quoted.len(), 1);
        assert_eq!(quoted[0].0, "delete it all");
        assert!(tokens.iter().any(|(word, _)| word == "bob"));
    }

    #[test]
    fn a_full_stop_ends_a_sentence_even_without_a_blank() {
        assert!(kinds("our website.They sent").iter().any(|(_, kind)| *kind == Kind::Stop));
    }
}
