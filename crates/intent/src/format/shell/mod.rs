//! Shell command lines, read conservatively. Every command of a line counts, including those in substitutions, loops
//! and functions, and after `sudo`, `xargs` or `bash -c`.
//!
//! `lexer` splits a line into simple commands, and `command` reads one of them behind its wrappers. `options` splits its
//! words by the program's row, and `effects` interprets them: `stated` gives the acts that the row states, `take` reads
//! each word by its meaning, `verbs` a subcommand without an entry. `operand` records paths and hosts with the effects
//! of their places, `environment` variables, `folders` the working folder, `code` the code passed to interpreters, `feed`
//! a command's input, `fresh` files that the line makes and runs, `request` the requests of `curl`, and `secret` what
//! must not be shown. `output` determines what a pipeline prints if the line itself shows it. What cannot be parsed
//! with certainty is an execution, at least HIGH.

mod code;
mod command;
mod control;
mod effects;
mod environment;
mod feed;
mod files;
mod folders;
mod form;
mod fresh;
mod function;
mod layers;
mod lexer;
mod operand;
mod options;
mod output;
mod process;
mod request;
mod secret;
mod sed;
mod stated;
mod take;
mod verbs;
mod word;

pub(super) use code::calls_code;
pub(super) use environment::is_hostile as is_hostile_variable;
use std::collections::{HashMap, HashSet};

use crate::lexicon::Lexicon;
use crate::programs::Program;
use crate::reading::{Act, Format, Reading};
use crate::sign::Sign;
use rulekeep_types::facts::{Cause, Kinds, Role};
use rulekeep_types::{Operation, Resource, RiskLevel};

use super::{access, place};
use folders::{Folders, Left, ONLY_PLACES, SEPARATORS};
use lexer::{Feed, Script};
use operand::{Appended, Changes};
use word::Word;

pub(super) use form::is_command;

/// Reads a command line.
pub(super) fn read(line: &str, lexicon: &Lexicon) -> Reading {
    let mut reading = Reading::new(Format::Shell);
    let line = line.trim().trim_start_matches("$ ");
    let sets_variables = line.contains("for ")
        || line.contains("read ")
        || line.contains("while ")
        || line.contains('=')
        || line.contains("<(");
    let mut shell = Shell::new(lexicon, &mut reading, line.len());
    shell.sets_variables = sets_variables;
    shell.line(line, 0);
    shell.end();
    if line.is_empty() {
        // A shell does nothing.
        reading.push(Act::new("run", "nothing", Resource::System, Operation::Execute, 0.9).at_risk(RiskLevel::Low));
    } else if reading.acts.is_empty() {
        reading.push(Act::unclear_execution("command"));
    }
    reading
}

/// The acts of high risk in the code that is written to a file.
pub(super) fn acts_of_file(path: &str, text: &str, lexicon: &Lexicon) -> Vec<Act> {
    let mut reading = Reading::new(Format::Shell);
    Shell::new(lexicon, &mut reading, text.len()).whole_file(path, text);
    reading.acts.retain(|act| act.risk >= Some(RiskLevel::High));
    reading.acts
}

#[expect(clippy::struct_excessive_bools, reason = "each is one thing that a line may do")]
struct Shell<'l, 'r> {
    lexicon: &'l Lexicon,
    reading: &'r mut Reading,
    /// Bytes of nested commands that may still be read.
    // INVARIANT: each nested text is charged, so that the work grows only with the line.
    budget: usize,
    aliases: HashMap<String, String>,
    /// The functions that the line defines, each with its bodies.
    functions: HashMap<String, Vec<String>>,
    /// The functions that the line calls: their bodies are read at the call.
    called: HashSet<String>,
    /// Names of files that the line downloads.
    downloads: HashSet<String>,
    /// The texts that the line writes to files, by name; `None` if the line does not show the text.
    written: HashMap<String, Option<String>>,
    /// The paths of files whose text the line itself wrote.
    wrote: HashSet<String>,
    /// The first command of the current line that downloads or decodes.
    first_download: Option<usize>,
    /// Secrets in the line.
    secrets: Vec<String>,
    /// The line reads a secret.
    reads_secret: bool,
    sends: bool,
    /// Variables set for the program that is read next.
    preset: Vec<Word>,
    /// Variables set for all programs that follow.
    exported: Vec<Word>,
    /// The programs for which the line has chosen an environment.
    directed: HashSet<Box<str>>,
    /// The change that the command makes at the paths that it writes.
    changes: Changes,
    /// The line may set variables of its own; their values were read with it.
    sets_variables: bool,
    /// The folders that relative paths may start from.
    folders: Folders,
    /// The folders before a change that may have failed, until the commands end that run only if it did not.
    left: Option<Left>,
    /// The folders around a command that a wrapper runs in another one.
    outside: Option<Folders>,
    /// Commands follow each other only if the one before succeeds.
    only_goes_on: bool,
    /// The paths that the command in front of the pipe prints.
    fed_by: Option<Appended>,
    /// The words that a wrapper appends to the command that it runs.
    appended: Option<Appended>,
    /// The text that stands for the appended words: the `{}` of `xargs -I{}`.
    placeholder: Option<String>,
    /// The depth of nested commands at which the current one stands.
    depth: usize,
    /// Commands run with root's rights.
    as_root: bool,
    /// The command runs in a container, on another host or as another user.
    is_elsewhere: bool,
    /// The command runs on another machine.
    is_remote: bool,
    /// The places of the `find` around a command.
    roots: Option<Vec<Word>>,
    /// The values that each loop gives its variable.
    loops: HashMap<String, Vec<Word>>,
    /// The variables of which the request's line shows the value, each with the place behind which it is set.
    known: HashMap<String, (String, usize)>,
    /// The place of the command of that line that is read.
    at: usize,
    /// The variables that are set where the function runs that is read next.
    inherited: HashMap<String, String>,
    /// The variables that hold what a command prints.
    printed: HashSet<String>,
}

/// The words of a command, as the shell made them and as texts.
#[derive(Clone, Copy)]
struct View<'w> {
    words: &'w [Word],
    texts: &'w [&'w str],
}

impl View<'_> {
    /// The words from a place on.
    fn from(self, place: usize) -> Self {
        Self { words: self.words.get(place..).unwrap_or(&[]), texts: self.texts.get(place..).unwrap_or(&[]) }
    }

    /// The words up to a place.
    fn up_to(self, place: usize) -> Self {
        Self {
            words: self.words.get(..place).unwrap_or(self.words),
            texts: self.texts.get(..place).unwrap_or(self.texts),
        }
    }

    fn is_dynamic(self) -> bool {
        self.words.iter().any(|word| word.dynamic)
    }
}

impl<'l, 'r> Shell<'l, 'r> {
    fn new(lexicon: &'l Lexicon, reading: &'r mut Reading, length: usize) -> Self {
        Self {
            lexicon,
            reading,
            budget: length.saturating_mul(NESTED_BYTES) + SPARE_BYTES,
            aliases: HashMap::new(),
            functions: HashMap::new(),
            called: HashSet::new(),
            downloads: HashSet::new(),
            written: HashMap::new(),
            wrote: HashSet::new(),
            first_download: None,
            secrets: Vec::new(),
            reads_secret: false,
            sends: false,
            preset: Vec::new(),
            exported: Vec::new(),
            directed: HashSet::new(),
            changes: Changes::default(),
            sets_variables: false,
            folders: Folders::default(),
            left: None,
            outside: None,
            only_goes_on: false,
            fed_by: None,
            appended: None,
            placeholder: None,
            depth: 0,
            as_root: false,
            is_elsewhere: false,
            is_remote: false,
            roots: None,
            loops: HashMap::new(),
            known: HashMap::new(),
            at: 0,
            inherited: HashMap::new(),
            printed: HashSet::new(),
        }
    }

    /// Reads a line at this depth of nested commands.
    fn line(&mut self, line: &str, depth: usize) {
        let inherited = std::mem::take(&mut self.inherited);
        if depth > DEEPEST || self.budget < line.len() {
            self.unclear("nested_command", line);
            return;
        }
        self.budget -= line.len();
        #[cfg(test)]
        tests::count(1);
        let mut script = lexer::split_with(line, inherited);
        if depth == 0 {
            self.known = std::mem::take(&mut script.known);
        }
        if script.unclear {
            self.unclear("command", line);
        }
        for (name, body) in &script.functions {
            let bodies = self.functions.entry(name.clone()).or_default();
            if !bodies.contains(body) {
                bodies.push(body.clone());
            }
        }
        let loops = script.loops.keys();
        if let Some(name) = script.set.iter().chain(loops).find(|name| is_hostile_variable(&format!("{name}=$x"))) {
            self.unclear("environment", name);
        }
        self.printed.extend(script.printed.iter().chain(&script.set).cloned());
        let is_output = |value: &Word| value.dynamic && take::holds_output(&value.text);
        let fed = script.loops.iter().filter(|(_, values)| values.iter().any(is_output));
        self.printed.extend(fed.map(|(name, _)| name.clone()));
        for (name, values) in &script.loops {
            self.loops.entry(name.clone()).or_default().extend(values.iter().cloned());
        }
        for text in script.others.iter().map(|word| &word.text).chain(&script.unsure) {
            self.file(text);
        }
        let outer_download = self.first_download.take();
        self.first_download = script.commands.iter().position(|command| {
            command.words.iter().take(3).any(|word| {
                let name = base_name(&word.text);
                output::is_decoder(name) || self.lexicon.programs.exact(name).is_some_and(Program::fetches)
            })
        });
        let folders = self.folders.clone();
        let mut order: Vec<usize> = (0..script.commands.len()).collect();
        // A substitution precedes its command in the list, but follows the command's start in the line.
        order.sort_by_key(|&place| script.commands.get(place).map_or(0, |command| command.at));
        let around = self.left.take();
        let mut from = 0;
        let mut documents: Vec<&str> = Vec::new();
        for place in order {
            let Some(command) = script.commands.get(place) else { continue };
            let at = command.at;
            if depth == 0 {
                self.at = at;
            }
            if let Some(left) = &self.left {
                let ends = if left.exists { ONLY_PLACES } else { SEPARATORS };
                let mut between = line.get(from..at).unwrap_or("|").replace("&&", "");
                // The text of a here-document separates nothing. Each stands in the line once.
                documents.retain(|document| {
                    let found = between.find(document);
                    if let Some(start) = found {
                        between.replace_range(start..start + document.len(), "");
                    }
                    found.is_none()
                });
                if between.contains(ends) {
                    self.return_to_left();
                }
            }
            from = at;
            let texts = command.texts.iter().map(|text| text.text.as_str()).filter(|text| !text.is_empty());
            documents.extend(texts.take(MOST_DOCUMENTS.saturating_sub(documents.len())));
            self.simple(&script, place, depth);
            if line.get(at..).is_some_and(|rest| rest.trim_start().starts_with('!')) {
                // What follows runs only if the command failed.
                self.return_to_left();
            }
        }
        self.return_to_left();
        self.left = around;
        self.first_download = outer_download;
        self.uncalled(&script, depth);
        if depth > 0 {
            // Another shell has changed its own folder, `eval` that of this one.
            self.folders = std::mem::take(&mut self.folders).or(folders);
        }
    }

    /// Reads a simple command with its redirections.
    fn simple(&mut self, script: &Script, place: usize, depth: usize) {
        let Some(command) = script.commands.get(place) else { return };
        #[cfg(test)]
        tests::count(1);
        let texts: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
        let view = View { words: &command.words, texts: &texts };
        let assigned = texts.iter().take_while(|text| assigned(text).is_some()).count();
        self.assignments(command.words.get(..assigned).unwrap_or(&[]));
        let program = view.from(assigned);
        if assigned > 0 && program.texts.is_empty() && !self.reading.facts.signs.has(Sign::Unclear) {
            self.reading.push(
                Act::new("set", "variable", Resource::Config, Operation::Write, 0.8)
                    .at_risk(RiskLevel::Low)
                    .told_by(texts.first().copied().unwrap_or("")),
            );
        }
        let producer =
            |place: usize| script.commands.get(place).map_or(Appended::Unknown, |from| self.producer(&from.words));
        self.fed_by = match command.feed {
            Feed::From(place) => Some(producer(place)),
            Feed::Group => Some(Appended::Unknown),
            Feed::None => None,
        };
        self.command(view, depth);
        self.fed(script, place, program, depth);
        let empties = match program.texts {
            [] | [":" | "true"] => assigned == 0,
            ["cat", "/dev/null"] | ["echo", "-n"] => true,
            _ => false,
        };
        for target in &command.writes {
            self.redirected(target, Role::Write);
            if place::is_secret(&target.text) {
                self.note_kept(program.texts);
            }
            self.redirect(target);
            if empties && !target.text.starts_with("/dev/") {
                // The content is replaced by nothing.
                let act = Act::new("truncate", "file", Resource::File, Operation::Delete, 0.8);
                self.reading.push(act.at_risk(RiskLevel::Medium).told_by(">").named_by(&target.text));
                if control::is_trace(&target.text) {
                    self.hides(">", &target.text);
                }
            }
        }
        self.note_written(script, place);
        self.patches(script, place, program);
        for target in &command.doubtful {
            self.reading.extend(access::changed(target));
        }
        for source in &command.reads {
            self.redirected(source, Role::Read);
            self.file(&source.text);
        }
    }

    /// Adds an execution that cannot be parsed with certainty.
    fn unclear(&mut self, noun: &str, found: &str) {
        let outer = self.reading.current_step().is_none().then(|| self.reading.begin_step());
        self.reading.facts.show(Sign::Unclear, found);
        self.reading.push(Act::unclear_execution(noun).told_by(found));
        if noun == "program" {
            self.open(Cause::Execution, Kinds::OPERANDS, found);
        } else {
            self.open(Cause::Text, Kinds::ALL, found);
        }
        if let Some(outer) = outer {
            self.reading.end_step(outer);
        }
    }

    /// Adds what only the whole line shows.
    fn end(&mut self) {
        if self.reads_secret && self.sends {
            let act = Act::new("upload", "secret", Resource::Web, Operation::Send, 0.8).at_risk(RiskLevel::Critical);
            self.reading.push(act.marked(Sign::Secret).marked(Sign::Outside));
        }
        self.hide_secrets();
    }
}

/// Number of here-documents of a line that are told from its commands where a folder changes.
const MOST_DOCUMENTS: usize = 4;

fn base_name(word: &str) -> &str {
    word.rsplit(['/', '\\']).next().unwrap_or(word)
}

/// The name and value of `NAME=value` before a command.
fn assigned(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let bare = name.trim_end_matches('+');
    let bare = bare.split('[').next().unwrap_or(bare);
    let is_name = !bare.is_empty()
        && bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        && !bare.starts_with(|c: char| c.is_ascii_digit());
    is_name.then_some((name, value))
}

fn is_assignment(word: &str) -> bool {
    assigned(word).is_some()
}

/// Bytes of nested commands read for each byte of the line, and the minimum.
const NESTED_BYTES: usize = 8;
const SPARE_BYTES: usize = 4096;
/// Maximum nesting depth of lines.
const DEEPEST: usize = 12;

#[cfg(test)]
mod row_tests;
#[cfg(test)]
mod tests;
