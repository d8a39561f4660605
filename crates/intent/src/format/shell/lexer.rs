//! Splits a command line into its simple commands, in a single pass: those of lists, pipes, groups, loops,
//! conditions, functions and substitutions are all in one list. Words have no quotes, and known variables are
//! expanded.
//!
//! It accepts more than a shell would, never less: if the grammar is broken, it records that and continues to read
//! commands.

mod changing;
mod compound;
mod heredoc;
mod redirect;
mod substitution;
mod words;

use std::collections::{HashMap, HashSet};

use changing::Changing;

use super::output;
use super::word::{Draft, Word};

/// A line split into its simple commands.
#[derive(Debug, Default)]
pub(super) struct Script {
    /// In the order in which they end: commands of a substitution precede the command that contains it.
    pub commands: Vec<Command>,
    /// Whether the grammar is broken, or nested too deep.
    pub unclear: bool,
    /// The functions that the line defines, with what stands between their braces; empty if they have none.
    pub functions: Vec<(String, String)>,
    /// The variables that built-in commands set.
    pub set: Vec<String>,
    /// The values of variables of which only running the line shows which one holds.
    pub unsure: Vec<String>,
    /// For its functions: the variables of which the line shows the value, each with the place behind which it is set.
    pub known: HashMap<String, (String, usize)>,
    /// The variables that hold what a command prints.
    pub printed: HashSet<String>,
    /// The values that each loop gives its variable.
    pub loops: HashMap<String, Vec<Word>>,
    /// Words in a loop's head or a test: not part of a command, but they may name secrets.
    pub others: Vec<Word>,
}

/// A simple command.
#[derive(Debug, Default)]
pub(super) struct Command {
    /// Assignments, the program, and its arguments.
    pub words: Vec<Word>,
    pub writes: Vec<Word>,
    pub reads: Vec<Word>,
    /// The files written if `<x> y` was meant as redirections.
    pub doubtful: Vec<String>,
    /// Here-documents and here-strings.
    pub texts: Vec<Text>,
    /// Start of the command in the line.
    pub at: usize,
    pub feed: Feed,
}

/// A text that a command reads.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Text {
    pub text: String,
    /// The place of a body that has not been read yet.
    body: Option<usize>,
}

/// The source of a command's piped input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Feed {
    #[default]
    None,
    /// The output of the command at this place in the list.
    From(usize),
    /// The output of a group, or of several commands.
    Group,
}

/// Splits a line.
pub(super) fn split(line: &str) -> Script {
    split_with(line, HashMap::new())
}

/// Splits a line that runs where these variables are set.
pub(super) fn split_with(line: &str, known: HashMap<String, String>) -> Script {
    let variables = known.into_iter().map(|(name, value)| (name, Variable::Known(value))).collect();
    let mut changing = Changing::of(line);
    let set = std::mem::take(&mut changing.set);
    let budget = EXPANSION + line.len();
    let mut lexer = Lexer { text: line, end: line.len(), budget, changing, variables, ..Lexer::default() };
    lexer.list(End::Text, 0, false);
    lexer.bodies_at_end();
    let mut script = lexer.script;
    script.set = set;
    if !script.functions.is_empty() {
        let known = lexer.variables.into_iter().filter_map(|(name, value)| match (value, lexer.set_at.get(&name)) {
            (Variable::Known(value), Some(at)) => Some((name, (value, *at))),
            _ => None,
        });
        script.known = known.collect();
    }
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
    /// The end of the text, or of a here-document's body.
    end: usize,
    script: Script,
    variables: HashMap<String, Variable>,
    /// The place behind which each variable is first set.
    set_at: HashMap<String, usize>,
    changing: Changing,
    /// Here-documents whose body has not been reached.
    pending: Vec<heredoc::Pending>,
    bodies: Vec<String>,
    /// Bytes that variables may still expand to: `a=$a$a` must not grow forever.
    budget: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Variable {
    Known(String),
    /// Set twice, or to a value known only at run time.
    Unclear,
}

/// The end of a list of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Text,
    Bracket,
}

/// Maximum nesting depth that is followed; deeper parts are read as a flat list.
const DEEPEST: usize = 24;
const EXPANSION: usize = 4096;

/// The state of a list: its current command, and its surroundings.
#[derive(Default)]
struct State {
    command: Command,
    /// The last command that a pipe may follow.
    last: Option<usize>,
    /// Everything in this list has piped input.
    fed: bool,
    /// Inside `[[ ... ]]`.
    test: bool,
    /// In a loop's head: `for x in a b`.
    head: bool,
    /// Number of open `case` constructs.
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
                // A lone carriage return overwrites the preceding text on a screen, so it ends a command.
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

    /// Ends a command and records the variables it sets.
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

    /// Records assignments such as `x=rm`, so that `$x` can be expanded later in the line.
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
    }

    fn set(&mut self, name: &str, value: &str, dynamic: bool) {
        let name = name.trim_end_matches('+');
        if !dynamic && self.changing.has(name) {
            self.script.unsure.push(value.to_owned());
        }
        if dynamic && (super::take::holds_output(value) || super::take::names_one_of(value, &self.script.printed)) {
            self.script.printed.insert(name.to_owned());
        }
        let value = if dynamic || value.len() > LONGEST_VALUE || self.changing.has(name) {
            Variable::Unclear
        } else {
            Variable::Known(value.to_owned())
        };
        // Which of two assignments holds may depend on what runs.
        let value = match self.variables.get(name) {
            Some(known) if *known != value => Variable::Unclear,
            _ => value,
        };
        self.set_at.entry(name.to_owned()).or_insert(self.at);
        self.variables.insert(name.to_owned(), value);
    }

    /// The output of the commands from this place on, if it is known.
    fn output_since(&self, first: usize) -> Option<String> {
        let commands = self.script.commands.get(first..)?;
        let is_own = |name: &str| self.script.functions.iter().any(|(function, _)| function == name);
        let may_be_another = commands
            .iter()
            .any(|command| command.words.first().is_some_and(|word| is_own(super::base_name(&word.text))));
        if may_be_another || self.text.contains("alias ") {
            return None;
        }
        output::of_list(commands, first)
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

    /// Takes the next character.
    fn take_char(&mut self) -> Option<char> {
        let c = self.text.get(self.at..self.end)?.chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }
}

/// Maximum length of a variable's value, in bytes.
const LONGEST_VALUE: usize = 4096;
