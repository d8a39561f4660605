//! A simple command: its program, behind wrappers, and the commands that the program runs.

use crate::format::tables::lines;
use crate::format::{name, place};
use crate::programs::{Program, Takes};
use crate::reading::Act;
use crate::sign::Sign;
use rulekeep_types::facts::{Cause, Kinds};
use rulekeep_types::{Operation, Resource, RiskLevel};

use super::operand::Appended;
use super::options::Lexed;
use super::word::{self, Word};
use super::{Shell, View, assigned, base_name};

impl Shell<'_, '_> {
    /// Reads a program with its arguments, and the programs that it runs.
    pub(super) fn command(&mut self, view: View<'_>, depth: usize) {
        let step = self.reading.begin_step();
        let around =
            (self.appended.take(), self.only_goes_on, self.placeholder.clone(), self.is_elsewhere, self.is_remote);
        let above = std::mem::replace(&mut self.depth, depth);
        let outside = self.outside.take();
        self.layers(view, depth);
        (self.appended, self.only_goes_on, self.placeholder, self.is_elsewhere, self.is_remote) = around;
        self.depth = above;
        self.preset.clear();
        if let Some(folders) = std::mem::replace(&mut self.outside, outside) {
            self.folders = folders;
        }
        self.reading.end_step(step);
    }

    fn layers(&mut self, view: View<'_>, depth: usize) {
        let mut view = view;
        let mut outer = Outer { is_root: self.as_root, ..Outer::default() };
        // INVARIANT: each round leaves fewer words, and looks only at the words it removes.
        loop {
            let skip = view.texts.iter().take_while(|text| is_prefix(text)).count();
            self.preset.extend(view.words.iter().take(skip).filter(|word| assigned(&word.text).is_some()).cloned());
            view = view.from(skip);
            let Some(first) = view.words.first() else { return };
            self.note_layer(view);
            self.note_program(first);
            if first.text.starts_with("$_") && !first.text.contains('(') {
                // A property of an object of PowerShell.
                return;
            }
            let mut guess = None;
            if first.dynamic || first.wild && !matches!(first.text.as_str(), "[" | "[[") {
                self.unclear("program", &first.text);
                self.open(Cause::Text, Kinds::ALL, &first.text);
                guess = Some(guessed(first));
            }
            let whole = guess.as_deref().unwrap_or(&first.text);
            if whole.is_empty() {
                return;
            }
            let Some(rest) = self.program(whole, view, &mut outer, depth) else { return };
            view = view.from(rest);
        }
    }

    /// Reads a program. Returns the place in the view at which a command starts that it runs, if any.
    fn program(&mut self, whole: &str, view: View<'_>, outer: &mut Outer, depth: usize) -> Option<usize> {
        // A blank before a name is quoted only to evade checks.
        let name = base_name(whole).trim();
        let arguments = view.from(1);
        self.note_environments(arguments.words);
        #[cfg(test)]
        super::tests::count(arguments.texts.len());
        if let Some(alias) = self.aliases.remove(name) {
            // INVARIANT: within its own expansion an alias is a plain name, as in the shell, so this ends.
            let line: Vec<&str> = std::iter::once(alias.as_str()).chain(arguments.texts.iter().copied()).collect();
            self.line(&line.join(" "), depth + 1);
            self.aliases.insert(name.to_owned(), alias);
            return None;
        }
        if self.functions.contains_key(name) && !whole.contains('/') {
            self.note_normal(name, None, arguments);
            if !self.lexicon.programs.knows(name) {
                if !self.call(name, arguments, depth) {
                    arguments.words.iter().for_each(|word| self.leftover(word));
                    self.open(Cause::Text, Kinds::OPERANDS, name);
                }
                return None;
            }
            // A function with a program's name: only running the line shows which of the two runs.
            if !self.call(name, arguments, depth) {
                self.unclear("shadowed_program", name);
            }
        }
        self.runs_fresh_program(whole, depth);
        let lexicon = self.lexicon;
        // `npx semantic-release@latest`
        let unversioned = name.split_once('@').map_or(name, |(name, _)| name);
        let program = lexicon.programs.get(name).or_else(|| lexicon.programs.exact(unversioned));
        let Some(program) = program.filter(|_| !place::is_open_to_all(whole)) else {
            // In a folder to which anyone may write, a name says nothing of what the program is.
            return self.unknown(whole, arguments, outer, depth);
        };
        let name = if lexicon.programs.knows(name) { name } else { &program.name };
        let lexed = Lexed::of(program, arguments.words);
        let carried = match lexed.rest {
            Some((place, Takes::RunRest | Takes::RunText)) => Some(place),
            _ => None,
        };
        if let Some(entry) = lexed.options.iter().find(|given| given.means.takes == Some(Takes::Entry)) {
            let entry = entry.value.as_ref().map_or("", |word| word.text.as_str());
            let rest = carried.map_or(&[][..], |place| arguments.texts.get(place..).unwrap_or(&[]));
            let line: Vec<&str> = std::iter::once(entry).chain(rest.iter().copied()).collect();
            self.line(&line.join(" "), depth + 1);
        }
        let own = carried.map_or(arguments, |place| arguments.up_to(place));
        self.note_secrets(own.texts);
        for word in own.texts {
            self.note_production(word);
        }
        if carried.is_none() {
            self.note_normal(name, Some(&lexed), arguments);
            self.note_unnamed(&lexed);
            self.variables(Some(program), depth);
        }
        if lexed.row.is_listed {
            self.lists(&lexed);
        }
        let before = self.reading.acts.len();
        self.is_elsewhere |= lexed.row.is_elsewhere || lexed.row.is_root;
        self.is_remote |= lexed.row.is_elsewhere && lexed.leaves();
        let as_root = std::mem::replace(&mut self.as_root, outer.is_root || lexed.row.is_root);
        if !place::is_installed(whole) {
            // A file of that name: it need not be the program that the row describes.
            let cause = self.code_of(super::folders::stays(whole));
            self.open(cause, Kinds::OPERANDS, name);
        }
        self.effects(name, &lexed, arguments, depth);
        let executes = |act: &Act| act.operation == Operation::Execute;
        if !place::is_installed(whole) && !self.reading.acts.get(before..).unwrap_or(&[]).iter().any(executes) {
            self.reading.push(Act::new("run", "program", Resource::System, Operation::Execute, 0.2).told_by(whole));
        }
        self.notes(name, &lexed, own);
        if carried.is_none() {
            if outer.is_listed {
                self.takes_all_listed(before);
            }
            if outer.is_root {
                self.acts_as_root(name, program, &lexed, before);
            }
        }
        outer.is_root |= lexed.row.is_root;
        outer.is_listed |= lexed.row.is_listed;
        let carried = self.carried_command(name, &lexed, carried, arguments, outer, depth);
        self.as_root = as_root;
        carried
    }

    /// Reads the command that a wrapper hands to a shell. Returns the place of one that is in words of its own.
    fn carried_command(
        &mut self,
        name: &str,
        lexed: &Lexed<'_>,
        carried: Option<usize>,
        arguments: View<'_>,
        outer: &Outer,
        depth: usize,
    ) -> Option<usize> {
        // `git config KEY VALUE`: the table of keys says what a value does.
        let key = lexed.operands.first().filter(|key| lexed.sub.starts_with("config") && !key.dynamic);
        let setting = key.and_then(|key| lexed.program.setting(&key.text));
        match (lexed.rest, carried) {
            (Some((_, Takes::RunText)), Some(_)) if setting.is_some_and(crate::programs::Means::is_calm) => None,
            (Some((_, Takes::RunText)), Some(place)) => {
                let rest = arguments.from(place);
                let text = rest.texts.join(" ");
                let is_one = rest.words.first().is_some_and(|word| word.dynamic && word.text.starts_with('$'));
                if is_one && rest.words.len() == 1 {
                    self.unclear("code", &text);
                }
                let alias = key.and_then(|key| super::take::alias_of(lexed, &key.text, &text));
                self.carried_line(alias.as_deref().unwrap_or(&text), depth);
                None
            }
            (_, Some(place)) => {
                let rest = arguments.from(place);
                match rest.texts {
                    [] => None,
                    // A name with blanks is a text that a shell reads: `parallel 'rm {}' ::: *`.
                    [text, ..] if text.contains(char::is_whitespace) => {
                        self.carried_line(&rest.texts.join(" "), depth);
                        None
                    }
                    [text, ..] if outer.is_root && text.starts_with('!') => {
                        self.unclear("repeated_command", name);
                        None
                    }
                    _ => Some(place + 1),
                }
            }
            _ => None,
        }
    }

    /// Reads a command line that a wrapper hands to a shell.
    fn carried_line(&mut self, text: &str, depth: usize) {
        // In code it stands for a value that is not known.
        let holds = |placeholder: &&String| text.contains(placeholder.as_str());
        let filled = self.placeholder.as_ref().filter(holds).map(|mark| text.replace(mark.as_str(), "${REPLY}"));
        self.line(filled.as_deref().unwrap_or(text), depth + 1);
    }

    /// Notes what a lister such as `xargs` appends to the command that it runs.
    fn lists(&mut self, lexed: &Lexed<'_>) {
        self.appended = Some(self.fed_by.clone().unwrap_or(Appended::Unknown));
        let mark = lexed.options.iter().find(|given| matches!(given.key, "-I" | "-J" | "--replace" | "-i"));
        let mark = mark.and_then(|given| given.value.as_ref()).map_or("{}", |word| word.text.as_str());
        self.placeholder = Some(if mark.is_empty() { "{}".to_owned() } else { mark.to_owned() });
    }

    /// A program that root runs is an execution with root's rights, unless it only reads.
    fn acts_as_root(&mut self, name: &str, program: &Program, lexed: &Lexed<'_>, before: usize) {
        let acts = self.reading.acts.get(before..).unwrap_or(&[]);
        let only_reads = acts.iter().all(|act| {
            act.operation == Operation::Read && act.resource != Resource::Credential && act.risk <= Some(RiskLevel::Low)
        });
        if only_reads && program.only_reads() && lexed.left.is_empty() {
            return;
        }
        let act = Act::new("run", "as_root", Resource::System, Operation::Execute, 0.8).at_risk(RiskLevel::High);
        self.reading.push(act.marked(Sign::Administrator).told_by(name));
    }

    /// Reads a program without a row: an execution of which only the words are known.
    fn unknown(&mut self, whole: &str, arguments: View<'_>, outer: &mut Outer, depth: usize) -> Option<usize> {
        let name = base_name(whole);
        self.note_normal(name, None, arguments);
        self.note_secrets(arguments.texts);
        self.variables(None, depth);
        let is_hidden = !is_plain_name(name) || place::is_open_to_all(whole) && !self.wrote.contains(whole);
        if super::take::is_remote_code(whole) {
            self.runs_download_of(whole);
        }
        if is_hidden || outer.is_root {
            self.unclear("program", whole);
        }
        let stays = whole.contains('/') && super::folders::stays(whole);
        let cause = self.code_of(stays);
        self.open(cause, Kinds::OPERANDS, name);
        for word in arguments.words {
            self.note_word(word, rulekeep_types::facts::Role::Named);
            self.note_production(&word.text);
            self.leftover(word);
        }
        if self.appended.take().is_some() {
            self.open(Cause::Text, Kinds::OPERANDS, "what is appended");
        }
        self.reading.facts.show(Sign::Unclear, whole);
        let act = self
            .by_words(arguments.texts)
            .unwrap_or_else(|| Act::new("run", "program", Resource::System, Operation::Execute, 0.5));
        self.reading.push(act.marked(Sign::Unclear).told_by(whole));
        // INVARIANT: once for each chain of wrappers, so that the arguments are not searched for each of them.
        if std::mem::replace(&mut outer.carried, true) {
            return None;
        }
        self.carried(arguments)
    }

    /// The place of a command that an unknown program may run: `mywrapper rm -rf /srv`.
    fn carried(&mut self, arguments: View<'_>) -> Option<usize> {
        let programs = &self.lexicon.programs;
        let place = arguments.texts.iter().take(MOST_LOOKED_AT).position(|word| {
            let name = base_name(word);
            !word.contains(['.', '=']) && programs.exact(name).is_some_and(Program::may_harm)
        })?;
        (place + 1 < arguments.texts.len()).then_some(place + 1)
    }

    /// Reads "foo create bar" by its subcommand: what it says counts, but calms nothing.
    fn by_words(&self, arguments: &[&str]) -> Option<Act> {
        let mut words: Vec<String> = Vec::new();
        for argument in arguments.iter().take(4) {
            let bare = argument.strip_prefix("--").unwrap_or(argument);
            if bare.starts_with('-')
                || bare.contains(['/', '.', '=', '_', ':', '@', '$', ' '])
                || bare.len() > LONGEST_WORD
            {
                break;
            }
            words.extend(name::words(bare));
        }
        // The verb comes first, or after one noun; further on it is a name.
        words.iter().take(2).any(|word| self.lexicon.is_verb(word)).then_some(())?;
        let act = name::act(&words, Some(Resource::System), self.lexicon)?;
        let unnamed = matches!(act.resource, Resource::Unknown | Resource::Information);
        let resource = if unnamed { Resource::System } else { act.resource };
        let operation =
            if act.operation == Operation::Transfer && !is_trade(resource) { Operation::Write } else { act.operation };
        // Words behind a program have no other meanings.
        let mut act = Act { resource, operation, sure: 0.55, others: Vec::new(), ..act };
        if operation == Operation::Delete && arguments.iter().any(|word| lines().wide_flags.has(word)) {
            act.risk = Some(RiskLevel::High);
            act.signs.add(Sign::Force);
        }
        Some(act)
    }

    /// Records what later parts of the line depend on.
    fn notes(&mut self, name: &str, lexed: &Lexed<'_>, own: View<'_>) {
        if name == "alias" {
            for (alias, value) in own.texts.iter().filter_map(|text| text.split_once('=')) {
                self.aliases.insert(alias.to_owned(), value.to_owned());
            }
        }
        self.note_files(lexed);
    }
}

/// The surroundings of a command.
#[derive(Default)]
pub(super) struct Outer {
    pub is_root: bool,
    /// The items of a list are appended to its arguments.
    pub is_listed: bool,
    /// A command was searched among an unknown program's arguments.
    pub carried: bool,
}

fn is_trade(resource: Resource) -> bool {
    matches!(resource, Resource::Payment | Resource::Order | Resource::Booking)
}

/// Returns whether a name looks like a program's.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+' | b':' | b'@' | b'['))
}

/// The likely program of a word known only at run time: its literal part, or a program that its pattern matches.
fn guessed(word: &Word) -> String {
    let name = base_name(&word.text);
    if word.wild
        && let Some(fits) = lines().guessed_programs.iter().find(|program| word::matches(name, program))
    {
        return fits.to_owned();
    }
    let mut plain = String::new();
    let mut rest = word.text.as_str();
    while let Some((before, after)) = rest.split_once('$') {
        plain.push_str(before);
        let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
        let end = if end == 0 && after.starts_with(['@', '*', '#', '?', '!', '-']) { 1 } else { end };
        let end = if after.starts_with(|c: char| c.is_ascii_digit()) { 1 } else { end };
        rest = after.get(end..).unwrap_or("");
    }
    plain.push_str(rest);
    plain
}

/// Returns whether a word before a command is not the program: an assignment, or a grammar mark kept by quoting.
fn is_prefix(word: &str) -> bool {
    assigned(word).is_some() || matches!(word, "!" | "--")
}

/// Number of arguments among which a wrapper's command is searched.
const MOST_LOOKED_AT: usize = 32;
const LONGEST_WORD: usize = 40;
