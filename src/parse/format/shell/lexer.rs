//! A command line cut into its simple commands, in one pass: those of lists,
//! pipes, groups, loops, conditions, functions and substitutions all stand in one
//! list. Words come without their quotes, with what is known of variables put in.
//!
//! It reads more than a shell would accept, never less: where the grammar is
//! broken it says so and goes on reading commands.

mod compound;
mod heredoc;
mod redirect;
mod substitution;
mod words;

use std::collections::{HashMap, HashSet};

use super::output;
use super::word::{Draft, Word};

/// A line cut into its simple commands.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// In the order in which they end: those of a substitution before the command that holds it.
    pub commands: Vec<Command>,
    /// The grammar is broken, or nested too deep to be followed.
    pub unclear: bool,
    /// Names of the functions that the line defines.
    pub functions: HashSet<String>,
    /// Words in a loop's head or a test: no command's, but they may name secrets.
    pub others: Vec<Word>,
}

/// One simple command.
#[derive(Debug, Default)]
pub(super) struct Command {
    /// Assignments, the program, its arguments.
    pub words: Vec<Word>,
    pub writes: Vec<Word>,
    pub reads: Vec<Word>,
    /// What is written if `<x> y` was meant as redirections.
    pub doubtful: Vec<String>,
    /// Here-documents and here-strings.
    pub texts: Vec<Text>,
    /// Where it begins in the line.
    pub at: usize,
    pub feed: Feed,
}

/// What a command is handed to read.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Text {
    pub text: String,
    /// Not yet read: its place among the bodies.
    body: Option<usize>,
}

/// What stands before the pipe that a command stands behind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Feed {
    #[default]
    None,
    /// The output of the command of this place in the list.
    From(usize),
    /// The output of a group, or of several commands.
    Group,
}

/// Cuts a line.
pub(super) fn split(line: &str) -> Script {
    let mut lexer = Lexer { text: line, end: line.len(), budget: EXPANSION + line.len(), ..Lexer::default() };
    lexer.list(End::Text, 0, false);
    lexer.bodies_at_end();
    let mut script = lexer.script;
    for command in &mut script.commands {
        for text in &mut command.texts {
            if let Some(body) = text.body.and_then(|place| lexer.bodies.get(place)) {
                text.text.clone_from(body);
            }
        }
    }
    script
}

#[derive(Default)]
struct Lexer<'t> {
    text: &'t str,
    at: usize,
    /// Where reading ends: the text's end, or that of a here-document's body.
    end: usize,
    script: Script,
    variables: HashMap<String, Variable>,
    /// Here-documents whose body has not been reached.
    pending: Vec<heredoc::Pending>,
    bodies: Vec<String>,
    /// Bytes that variables may still expand to: `a=$a$a` must not double for ever.
    budget: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Variable {
    Known(String),
    /// Set twice, or to what only running tells.
    Unclear,
}

/// What closes a list of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Text,
    Bracket,
}

/// Deepest nesting that is followed; what lies deeper is read as one flat list.
const DEEPEST: usize = 24;
const EXPANSION: usize = 4096;

/// What a list of commands has read so far of its current command and around it.
#[derive(Default)]
struct State {
    command: Command,
    /// The last command behind which a pipe may stand.
    last: Option<usize>,
    /// Everything in this list is fed from outside.
    fed: bool,
    /// Inside `[[ ... ]]`.
    test: bool,
    /// A loop's head: `for x in a b`.
    head: bool,
    /// `case`s that are open.
    cases: usize,
    draft: Draft,
}

impl Lexer<'_> {
    /// Reads commands up to the end of the list.
    fn list(&mut self, end: End, depth: usize, fed: bool) {
        let mut state = State { fed, ..State::default() };
        state.command.at = self.at;
        if fed {
            state.command.feed = Feed::Group;
        }
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' => self.at += 1,
                b'\r' if self.peek_at(1) == Some(b'\n') => self.at += 1,
                b'\\' if self.peek_at(1) == Some(b'\n') => self.at += 2,
                b'#' => self.skip_line(),
                b'<' if !state.test && self.placeholder().is_some() => self.word(&mut state, depth),
                b'<' | b'>' if self.peek_at(1) != Some(b'(') && !state.test => self.redirection(&mut state, depth),
                b'&' if self.peek_at(1) == Some(b'>') && !state.test => {
                    self.at += 1;
                    self.redirection(&mut state, depth);
                }
                b'&' | b'|' | b'(' | b')' | b'\n' | b'\r' if state.test => self.at += 1,
                b'<' | b'>' if state.test && self.peek_at(1) != Some(b'(') => self.at += 1,
                // A lone carriage return overwrites on a screen what stood before it: no line is read past it.
                b'\n' | b'\r' => {
                    self.at += 1;
                    self.finish(&mut state);
                    self.bodies(depth);
                }
                b';' => {
                    let start = self.at;
                    while matches!(self.peek(), Some(b';' | b'&')) {
                        self.at += 1;
                    }
                    self.script.unclear |= state.test;
                    self.finish(&mut state);
                    if self.at - start > 1 && state.cases > 0 {
                        self.patterns(&mut state, depth);
                    }
                }
                b'&' => {
                    while self.peek() == Some(b'&') {
                        self.at += 1;
                    }
                    self.finish(&mut state);
                }
                b'|' => self.pipe(&mut state),
                b'(' => self.open_bracket(&mut state, depth),
                b')' if end == End::Bracket => {
                    self.finish(&mut state);
                    self.at += 1;
                    return;
                }
                b')' => {
                    self.at += 1;
                    self.script.unclear |= depth < DEEPEST;
                    self.finish(&mut state);
                }
                _ => self.word(&mut state, depth),
            }
        }
        self.script.unclear |= state.test || state.cases > 0 || end == End::Bracket;
        self.finish(&mut state);
    }

    /// Ends a command and notes what it sets.
    fn finish(&mut self, state: &mut State) {
        let fresh =
            Command { at: self.at, feed: if state.fed { Feed::Group } else { Feed::None }, ..Command::default() };
        let command = std::mem::replace(&mut state.command, fresh);
        state.test = false;
        if std::mem::take(&mut state.head) {
            self.loop_head(command);
            return;
        }
        if command.words.is_empty() && command.writes.is_empty() && command.reads.is_empty() && command.texts.is_empty()
        {
            return;
        }
        self.note_variables(&command);
        self.script.commands.push(command);
        state.last = Some(self.script.commands.len() - 1);
    }

    fn pipe(&mut self, state: &mut State) {
        self.at += 1;
        let is_or = self.peek() == Some(b'|');
        if is_or || self.peek() == Some(b'&') {
            self.at += 1;
        }
        let had_words = !state.command.words.is_empty();
        self.finish(state);
        if !is_or {
            state.command.feed = match state.last {
                Some(place) if had_words => Feed::From(place),
                _ => Feed::Group,
            };
        }
    }

    /// `x=rm` and its like, so that `$x` can be read later in the line.
    fn note_variables(&mut self, command: &Command) {
        let words = &command.words;
        let first = words.iter().find(|word| super::assigned(&word.text).is_none()).map(|word| word.text.as_str());
        let sets = match first {
            None => true,
            Some(name) => matches!(name, "export" | "declare" | "typeset" | "local" | "readonly"),
        };
        for word in words {
            if let Some((name, value)) = super::assigned(&word.text).filter(|_| sets) {
                self.set(name, value, word.dynamic || word.wild);
            }
        }
        if matches!(first, Some("read" | "mapfile" | "readarray" | "printf" | "unset" | "let" | "getopts")) {
            for word in words {
                if let Some(known) = self.variables.get_mut(&word.text) {
                    *known = Variable::Unclear;
                }
            }
        }
    }

    fn set(&mut self, name: &str, value: &str, dynamic: bool) {
        let name = name.trim_end_matches('+');
        let value =
            if dynamic || value.len() > LONGEST_VALUE { Variable::Unclear } else { Variable::Known(value.to_owned()) };
        // Which of two assignments holds may depend on what runs.
        let value = match self.variables.get(name) {
            Some(known) if *known != value => Variable::Unclear,
            _ => value,
        };
        self.variables.insert(name.to_owned(), value);
    }

    /// The output of the commands from this place on, if it can be told.
    fn output_since(&self, first: usize) -> Option<String> {
        output::of_list(self.script.commands.get(first..)?, first)
    }

    fn peek(&self) -> Option<u8> {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Option<u8> {
        let at = self.at + ahead;
        if at < self.end { self.text.as_bytes().get(at).copied() } else { None }
    }

    fn skip_line(&mut self) {
        let rest = self.text.get(self.at..self.end).unwrap_or("");
        self.at += rest.find(['\n', '\r']).unwrap_or(rest.len());
    }

    /// Takes the character at hand, of whatever length.
    fn take_char(&mut self) -> Option<char> {
        let c = self.text.get(self.at..self.end)?.chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }
}

/// Longest value of a variable that is kept.
const LONGEST_VALUE: usize = 4096;
