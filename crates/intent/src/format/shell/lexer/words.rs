//! Words, quotes and keywords.

use super::{Lexer, State};
use crate::format::shell::assigned;
use crate::format::shell::word::{CLOSE, COMMA, Draft, OPEN, Word};

impl Lexer<'_> {
    /// Reads one word at the current place, or several if it expands; keywords control the list.
    pub(super) fn word(&mut self, state: &mut State, depth: usize) {
        let start = self.at;
        let had = state.command.words.len();
        let mut draft = std::mem::take(&mut state.draft);
        let mut words = std::mem::take(&mut state.command.words);
        self.scan_word(&mut draft, &mut words, depth);
        let is_descriptor = matches!(self.peek(), Some(b'<' | b'>'))
            && words.len() == had
            && draft.begun
            && !draft.word.quoted
            && is_descriptor(&draft.word.text, draft.braces);
        if is_descriptor && !state.test {
            // "2>file": the number belongs to the redirection.
            draft = Draft::default();
        }
        draft.end(&mut words);
        state.draft = draft;
        state.command.words = words;
        if self.at == start {
            // INVARIANT: every round of the list's loop advances.
            self.at += 1;
            self.script.unclear = true;
        }
        if had > 0
            && let [.., before, word] = state.command.words.as_slice()
            && before.placeholder
        {
            // If it was a redirection after all, this is the file written.
            state.command.doubtful.push(word.text.clone());
        }
        let begins = state.command.words.len() == had + 1 && only_assigned(state, had);
        if begins {
            self.keyword(state, depth);
        } else if state.test && state.command.words.last().is_some_and(|word| word.text == "]]" && !word.quoted) {
            state.test = false;
        }
    }

    /// Reads into the draft up to an unquoted blank or operator.
    pub(super) fn scan_word(&mut self, draft: &mut Draft, words: &mut Vec<Word>, depth: usize) {
        while let Some(byte) = self.peek() {
            match byte {
                b'<' | b'>' if self.peek_at(1) == Some(b'(') => {
                    // The file that it stands for is known only at run time.
                    let is_fed = byte == b'>';
                    self.at += 1;
                    draft.push_unknown("$");
                    self.bracketed(depth, is_fed);
                }
                b'<' if let Some(length) = self.placeholder() => {
                    draft.push_str(self.text.get(self.at..self.at + length).unwrap_or(""));
                    draft.word.placeholder = true;
                    self.at += length;
                }
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b')' | b'<' | b'>' => return,
                b'(' => {
                    if draft.begun && !draft.word.quoted && draft.word.text.ends_with(['?', '*', '+', '@', '!']) {
                        self.pattern_group(draft, words, depth);
                    } else if draft.begun && draft.word.text.ends_with('=') && assigned(&draft.word.text).is_some() {
                        self.array(draft, depth);
                    } else {
                        return;
                    }
                }
                b'\\' => {
                    self.at += 1;
                    if self.peek() == Some(b'\n') {
                        self.at += 1;
                    } else if is_drive(&draft.word.text) {
                        // A path of Windows: `C:\data`.
                        draft.push('\\');
                    } else if let Some(c) = self.take_char() {
                        draft.push(c);
                        draft.word.quoted = true;
                    }
                }
                b'\'' => self.single_quoted(draft),
                b'"' => self.double_quoted(draft, words, depth),
                b'`' => self.backquoted(draft, words, depth, true),
                b'$' => self.dollar(draft, words, depth, true),
                b'{' => {
                    self.at += 1;
                    draft.braces = true;
                    draft.push(OPEN);
                }
                b',' if draft.braces => {
                    self.at += 1;
                    draft.push(COMMA);
                }
                b'}' if draft.braces => {
                    self.at += 1;
                    draft.push(CLOSE);
                }
                b'*' | b'?' | b'[' => {
                    self.at += 1;
                    draft.word.wild = true;
                    draft.push(char::from(byte));
                }
                _ => self.plain(draft),
            }
        }
    }

    /// Reads a run of literal characters.
    fn plain(&mut self, draft: &mut Draft) {
        let start = self.at;
        self.at += 1;
        while self.peek().is_some_and(|byte| !is_special(byte)) {
            self.at += 1;
        }
        // Special characters are ASCII, so the cut is at a character boundary.
        draft.push_str(self.text.get(start..self.at).unwrap_or(""));
    }

    fn single_quoted(&mut self, draft: &mut Draft) {
        self.at += 1;
        let rest = self.text.get(self.at..self.end).unwrap_or("");
        let close = rest.find('\'');
        // A line that ends within quotes is an error of the shell: it runs nothing.
        self.script.unclear |= close.is_none() && rest.contains('\n');
        let inside = rest.get(..close.unwrap_or(rest.len())).unwrap_or("");
        draft.push_str(inside);
        draft.word.quoted = true;
        self.at += inside.len() + usize::from(close.is_some());
    }

    pub(super) fn double_quoted(&mut self, draft: &mut Draft, words: &mut Vec<Word>, depth: usize) {
        self.at += 1;
        draft.begun = true;
        draft.word.quoted = true;
        let opened = self.at;
        loop {
            let start = self.at;
            while self.peek().is_some_and(|byte| !matches!(byte, b'"' | b'\\' | b'`' | b'$')) {
                self.at += 1;
            }
            draft.push_str(self.text.get(start..self.at).unwrap_or(""));
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return;
                }
                Some(b'\\') => {
                    self.at += 1;
                    match self.peek() {
                        Some(b'\n') => self.at += 1,
                        Some(b'"' | b'\\' | b'`' | b'$') => draft.word.text.extend(self.take_char()),
                        _ => draft.push('\\'),
                    }
                }
                Some(b'`') => self.backquoted(draft, words, depth, false),
                Some(_) => self.dollar(draft, words, depth, false),
                None => {
                    self.script.unclear |= self.text.get(opened..self.end).is_none_or(|rest| rest.contains('\n'));
                    return;
                }
            }
        }
    }

    /// Reads a pattern group inside a word: `!(x|y)`, `?(x)`.
    fn pattern_group(&mut self, draft: &mut Draft, words: &mut Vec<Word>, depth: usize) {
        let mut open = 0_usize;
        draft.word.wild = true;
        while let Some(byte) = self.peek() {
            match byte {
                b'(' | b')' => {
                    open = if byte == b'(' { open + 1 } else { open.saturating_sub(1) };
                    self.at += 1;
                    draft.push(char::from(byte));
                    if open == 0 {
                        return;
                    }
                }
                b'\'' => self.single_quoted(draft),
                b'"' => self.double_quoted(draft, words, depth),
                b'`' => self.backquoted(draft, words, depth, false),
                b'$' => self.dollar(draft, words, depth, false),
                b';' | b'\n' | b'&' => {
                    self.script.unclear = true;
                    return;
                }
                _ => draft.word.text.extend(self.take_char()),
            }
        }
        self.script.unclear = true;
    }

    /// Reads `a=(rm -rf /)`: the words, separated by single blanks.
    fn array(&mut self, draft: &mut Draft, depth: usize) {
        self.at += 1;
        let mut words = Vec::new();
        let mut inner = Draft::default();
        loop {
            match self.peek() {
                None => {
                    self.script.unclear = true;
                    break;
                }
                Some(b')') => {
                    self.at += 1;
                    break;
                }
                Some(b'#') => self.skip_line(),
                Some(b'(' | b';' | b'&' | b'|' | b'<' | b'>') if self.peek_at(1) != Some(b'(') => {
                    self.script.unclear = true;
                    break;
                }
                Some(b' ' | b'\t' | b'\r' | b'\n') => self.at += 1,
                Some(_) => {
                    let start = self.at;
                    self.scan_word(&mut inner, &mut words, depth);
                    inner.end(&mut words);
                    self.at += usize::from(self.at == start);
                }
            }
        }
        draft.word.dynamic |= words.iter().any(|word| word.dynamic || word.wild);
        let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        draft.push_str(&texts.join(" "));
    }
}

/// Returns whether a keyword may stand here: at the start of a command.
const fn only_assigned(state: &State, had: usize) -> bool {
    had == 0 && !state.head && !state.test
}

/// Returns whether a byte ends a run of literal characters.
const fn is_special(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t'
            | b'\r'
            | b'\n'
            | b';'
            | b'&'
            | b'|'
            | b'('
            | b')'
            | b'<'
            | b'>'
            | b'\\'
            | b'\''
            | b'"'
            | b'`'
            | b'$'
            | b'{'
            | b'}'
            | b','
            | b'*'
            | b'?'
            | b'['
    )
}

/// Returns whether a text is a descriptor: `2>`, `{fd}>`.
fn is_descriptor(text: &str, braces: bool) -> bool {
    braces && text.starts_with(OPEN) && text.ends_with(CLOSE)
        || !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns whether a word begins as a place of Windows: `C:`, `HKLM:`.
fn is_drive(word: &str) -> bool {
    word.split_once(':').is_some_and(|(drive, _)| {
        let is_letter = drive.len() == 1 && drive.bytes().all(|byte| byte.is_ascii_alphabetic());
        is_letter || matches!(drive, "HKLM" | "HKCU" | "HKCR" | "HKU" | "Registry")
    })
}
