//! Groups, loops, conditions and functions: their keywords are removed, and their commands are kept.

use super::{Command, DEEPEST, End, Feed, Lexer, State, Variable};
use crate::format::shell::word::{Draft, Word};

impl Lexer<'_> {
    /// Applies the first word of a command to the list, if it is a keyword.
    pub(super) fn keyword(&mut self, state: &mut State, depth: usize) {
        let Some(word) = state.command.words.last() else { return };
        if word.quoted || word.dynamic {
            return;
        }
        match word.text.as_str() {
            "if" | "then" | "elif" | "else" | "while" | "until" | "do" | "!" | "{" | "}" | "fi" | "done" => {
                if state.command.feed != Feed::None {
                    // Any command in a group may read the group's input.
                    state.fed = true;
                }
                let closes = matches!(word.text.as_str(), "}" | "fi" | "done");
                state.command.words.clear();
                if closes {
                    // A pipe after it takes the output of the whole group.
                    state.last = None;
                }
            }
            "esac" if state.cases > 0 => {
                state.cases -= 1;
                state.command.words.clear();
                state.last = None;
            }
            "case" => self.case(state, depth),
            "for" | "select" => {
                state.command.words.clear();
                if state.command.feed != Feed::None {
                    state.fed = true;
                }
                self.skip_blanks();
                if self.peek() == Some(b'(') && self.peek_at(1) == Some(b'(') {
                    self.arithmetic(depth);
                } else {
                    state.head = true;
                }
            }
            "function" => self.function_name(state),
            "[[" => {
                state.test = true;
            }
            _ => {}
        }
    }

    /// Reads `(` where a command or a word may start.
    pub(super) fn open_bracket(&mut self, state: &mut State, depth: usize) {
        if state.head {
            self.script.unclear = true;
            self.at += 1;
            return;
        }
        if let [name] = state.command.words.as_slice()
            && !name.dynamic
            && self
                .text
                .get(self.at + 1..self.end)
                .is_some_and(|rest| rest.trim_start_matches([' ', '\t']).starts_with(')'))
        {
            let name = name.text.clone();
            state.command.words.clear();
            self.at += 1;
            self.skip_blanks();
            self.at += 1;
            let body = self.body();
            self.script.functions.push((name, body));
            return;
        }
        if state.command.words.is_empty() && self.peek_at(1) == Some(b'(') && self.is_arithmetic() {
            self.arithmetic(depth);
            return;
        }
        // A bracket after words is not shell grammar; its content is read as commands.
        self.script.unclear |= !state.command.words.is_empty();
        let fed = state.fed || state.command.feed != Feed::None;
        if !state.command.words.is_empty() {
            self.finish(state);
        }
        self.bracketed(depth, fed);
        state.last = None;
        let at = self.at;
        state.command = Command { at, ..Command::default() };
    }

    /// Reads the commands in brackets as a list of their own.
    pub(super) fn bracketed(&mut self, depth: usize, fed: bool) {
        self.at += 1;
        if depth >= DEEPEST {
            // The surrounding list reads the deeper part.
            self.script.unclear = true;
            return;
        }
        self.list(End::Bracket, depth + 1, fed);
    }

    /// Reads `case x in` and the first patterns.
    fn case(&mut self, state: &mut State, depth: usize) {
        state.command.words.clear();
        state.cases += 1;
        let mut words = Vec::new();
        let mut draft = Draft::default();
        self.skip_space();
        self.scan_word(&mut draft, &mut words, depth);
        draft.end(&mut words);
        self.script.others.append(&mut words);
        self.skip_space();
        if self.text.get(self.at..self.end).is_some_and(|rest| rest.starts_with("in")) {
            self.at += 2;
            self.patterns(state, depth);
        } else {
            self.script.unclear = true;
        }
    }

    /// Reads patterns up to their bracket: `a|b)`. They are not commands, but may contain substitutions.
    pub(super) fn patterns(&mut self, state: &mut State, depth: usize) {
        let mut words = Vec::new();
        let mut draft = Draft::default();
        loop {
            self.skip_space();
            let start = self.at;
            match self.peek() {
                None => {
                    self.script.unclear = true;
                    break;
                }
                Some(b')') => {
                    self.at += 1;
                    break;
                }
                Some(b'(' | b'|') => self.at += 1,
                Some(b'#') => self.skip_line(),
                Some(b';' | b'&' | b'<' | b'>') if self.peek_at(1) != Some(b'(') => {
                    // A pattern does not continue like this.
                    self.script.unclear = true;
                    break;
                }
                Some(_) => {
                    self.scan_word(&mut draft, &mut words, depth);
                    draft.end(&mut words);
                    if words.len() == 1 && words.first().is_some_and(|word| word.text == "esac" && !word.quoted) {
                        state.cases = state.cases.saturating_sub(1);
                        words.clear();
                        break;
                    }
                    self.at += usize::from(self.at == start);
                }
            }
        }
        self.script.others.append(&mut words);
        state.command.at = self.at;
    }

    fn function_name(&mut self, state: &mut State) {
        state.command.words.clear();
        self.skip_blanks();
        let mut words = Vec::new();
        let mut draft = Draft::default();
        self.scan_word(&mut draft, &mut words, DEEPEST);
        draft.end(&mut words);
        self.skip_blanks();
        if self.peek() == Some(b'(') && self.peek_at(1) == Some(b')') {
            self.at += 2;
        }
        let body = self.body();
        self.script.functions.extend(words.into_iter().map(|word| (word.text, body.clone())));
    }

    /// Passes over the body of the function whose name ends here, which is read where it is called; what stands between
    /// its braces, or nothing for a body that is read in its place.
    fn body(&mut self) -> String {
        let rest = self.text.get(self.at..self.end).unwrap_or("");
        let Some(inside) = rest.trim_start().strip_prefix('{').filter(|inside| inside.starts_with(char::is_whitespace))
        else {
            return String::new();
        };
        let (mut open, mut quote, mut is_escaped) = (1_usize, None, false);
        for (at, c) in inside.char_indices() {
            match (quote, c) {
                _ if std::mem::take(&mut is_escaped) => {}
                (Some('\''), '\'') | (Some('"'), '"') => quote = None,
                (Some('\''), _) => {}
                (_, '\\') => is_escaped = true,
                (None, '\'' | '"') => quote = Some(c),
                (None, '{') => open += 1,
                (None, '}') if open == 1 => {
                    self.at += rest.len() - inside.len() + at + 1;
                    return inside.get(..at).unwrap_or("").trim().to_owned();
                }
                (None, '}') => open -= 1,
                _ => {}
            }
        }
        String::new()
    }

    /// Reads `for x in a b`: the variable is known if there is a single value.
    pub(super) fn loop_head(&mut self, command: Command) {
        let mut words = command.words.into_iter();
        let Some(Word { text: name, .. }) = words.next() else { return };
        let values: Vec<_> = words.filter(|word| word.text != "in").collect();
        match values.as_slice() {
            [only] if !only.dynamic && !only.wild => self.set(&name, &only.text, false),
            _ => {
                self.variables.insert(name.clone(), Variable::Unclear);
            }
        }
        self.script.loops.entry(name).or_default().extend(values.iter().cloned());
        self.script.others.extend(values);
    }

    /// Returns whether `((` at this place starts arithmetic: its brackets close together, and soon.
    pub(super) fn is_arithmetic(&self) -> bool {
        let bytes = self.text.as_bytes();
        let mut open = 0_usize;
        for at in self.at..self.end.min(self.at + LONGEST_ARITHMETIC) {
            match bytes.get(at) {
                Some(b'(') => open += 1,
                Some(b')') => {
                    open = open.saturating_sub(1);
                    if open == 1 {
                        return bytes.get(at + 1) == Some(&b')');
                    }
                }
                _ => {}
            }
        }
        false
    }

    /// Reads arithmetic from its `((` on: only its substitutions are commands.
    pub(super) fn arithmetic(&mut self, depth: usize) {
        let mut draft = Draft::default();
        let mut words = Vec::new();
        let mut open = 0_usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'(' => {
                    open += 1;
                    self.at += 1;
                }
                b')' => {
                    open = open.saturating_sub(1);
                    self.at += 1;
                    if open == 0 {
                        return;
                    }
                }
                b'$' => self.dollar(&mut draft, &mut words, depth, false),
                b'`' => self.backquoted(&mut draft, &mut words, depth, false),
                _ => {
                    self.take_char();
                }
            }
        }
        self.script.unclear = true;
    }

    pub(super) fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }
}

/// Maximum length at which arithmetic is distinguished from nested groups, in bytes.
const LONGEST_ARITHMETIC: usize = 256;
