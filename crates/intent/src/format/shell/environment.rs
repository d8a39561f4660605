//! Variables that a line sets for one program or for all that follow. Only of some is it known that they change nothing.

use rulekeep_types::facts::{Cause, Kinds};
use rulekeep_types::{Operation, Resource, RiskLevel};

use crate::format::tables::lines;
use crate::format::{access, place};
use crate::programs::{Means, Program, Takes};
use crate::reading::Act;

use super::options::Lexed;
use super::word::Word;
use super::{Shell, assigned, is_assignment};

impl<'l> Shell<'l, '_> {
    /// Reads assignments before a command that make it run something else.
    pub(super) fn assignments(&mut self, words: &[Word]) {
        for word in words.iter().take_while(|word| is_assignment(&word.text)) {
            self.note_variable(&word.text);
            self.keeps_no_history(&word.text);
            if is_hostile(&word.text) {
                self.unclear("environment", &word.text);
            }
        }
    }

    /// Reads a variable with which a shell stops to record what it runs.
    pub(super) fn keeps_no_history(&mut self, assignment: &str) {
        if lines().history_switches.has(assignment) {
            self.hides(assignment, assignment);
        }
    }

    /// Notes that a command may be directed at any environment, because it names none for its program.
    pub(super) fn note_unnamed(&mut self, lexed: &Lexed<'_>) {
        let program = lexed.program;
        let is_environment = |means: &Means| means.takes == Some(Takes::Environment);
        let by_option = lexed.options.iter().any(|given| is_environment(given.means));
        let by_operand = lexed.row.slots.iter().any(|slot| slot.takes == Takes::Environment);
        let mut set = self.preset.iter().chain(&self.exported).filter_map(|word| assigned(&word.text));
        let by_variable = set.any(|(name, _)| program.variable(name).is_some_and(is_environment));
        if by_operand {
            self.directed.insert(program.name.clone());
        }
        if program.has_environments() && !(by_option || by_variable || self.directed.contains(&program.name)) {
            self.push_environment("");
        }
    }

    /// Reads the variables that are set for a program, and those that the line exported before and the program knows.
    pub(super) fn variables(&mut self, program: Option<&'l Program>, depth: usize) {
        for word in std::mem::take(&mut self.preset) {
            let Some((name, value)) = assigned(&word.text) else { continue };
            let value = Word { text: value.to_owned(), ..word.clone() };
            if lines().environment_variables.has(name) {
                self.note_environment(&value);
            }
            match program.and_then(|program| program.variable(name)) {
                Some(means) => self.variable(means, name, &value, depth),
                None if is_hostile(&word.text) => self.unclear("environment", &word.text),
                None if lines().usual_viewers.has(&value.text) || lines().calm_variables.fits(name) => {}
                None => self.unknown_variable(name, &word, &value),
            }
        }
        for word in self.exported.clone() {
            let Some((name, value)) = assigned(&word.text) else { continue };
            let value = Word { text: value.to_owned(), ..word.clone() };
            if lines().environment_variables.has(name) {
                self.note_environment(&value);
            }
            if let Some(means) = program.and_then(|program| program.variable(name)) {
                self.variable(means, name, &value, depth);
            }
        }
    }

    pub(super) fn variable(&mut self, means: &Means, name: &str, value: &Word, depth: usize) {
        if means.takes == Some(Takes::Environment) {
            return self.note_environment(value);
        }
        if means.is_calm() || value.text.is_empty() || lines().usual_viewers.has(&value.text) {
            return;
        }
        let outer = self.reading.begin_step();
        self.raise(means, name);
        if place::is_open_to_all(&value.text)
            && !matches!(means.takes, Some(Takes::Path { role: rulekeep_types::facts::Role::Write, .. }))
        {
            // Anyone may have written the settings there.
            self.unclear("environment", &value.text);
        }
        match means.takes {
            Some(Takes::RunText) => {
                self.unclear("environment", &value.text);
                self.line(value.text.trim_start_matches('!'), depth + 1);
            }
            Some(Takes::Path { role, tree, .. }) => self.path(value, role, tree),
            Some(Takes::Proxy) => self.proxy(value),
            Some(Takes::Secret | Takes::UserSecret) => self.note_value(false, &value.text),
            Some(Takes::SendHost) => self.host(value, rulekeep_types::facts::Role::SendTo),
            Some(Takes::Host) => self.host(value, rulekeep_types::facts::Role::Named),
            Some(Takes::Url | Takes::SendUrl) => self.url(value, rulekeep_types::facts::Role::Named),
            Some(Takes::Text | Takes::Name) | None => {}
            Some(Takes::Code(language)) => self.code_in(language, value, depth),
            Some(_) => {
                // A file of settings or of code, which the program loads.
                self.path(value, rulekeep_types::facts::Role::Run, false);
                let cause = self.code_of(!value.dynamic && super::folders::stays(&value.text));
                self.open(cause, Kinds::OPERANDS, name);
                let act = Act::new("set", "environment", Resource::System, Operation::Execute, 0.8);
                self.reading.push(act.at_risk(RiskLevel::Medium).told_by(name));
            }
        }
        self.reading.end_step(outer);
    }

    /// Notes the options of any program that name an environment.
    pub(super) fn note_environments(&mut self, words: &[Word]) {
        for (place, word) in words.iter().enumerate().filter(|(_, word)| word.text.starts_with("--")) {
            match word.text.split_once('=') {
                Some((option, value)) if lines().environment_options.has(option) => {
                    self.note_environment(&Word { text: value.to_owned(), ..word.clone() });
                }
                None if lines().environment_options.has(&word.text) => {
                    words.get(place + 1).into_iter().for_each(|value| self.note_environment(value));
                }
                _ => {}
            }
        }
    }

    /// Notes an environment that a command is directed at.
    pub(super) fn note_environment(&mut self, word: &Word) {
        // `docker run --env NAME=value` sets a variable.
        if !word.text.starts_with('-') && !word.text.contains('=') {
            self.push_environment(if word.dynamic { "" } else { &word.text });
        }
    }

    /// Adds the name of an environment; an empty one stands for any. Beyond the limit, the command may mean any.
    fn push_environment(&mut self, name: &str) {
        let Some(step) = self.reading.current_step() else { return };
        let name = if step.environments.len() < MOST_ENVIRONMENTS { name } else { "" };
        if !step.environments.iter().any(|known| known == name) {
            step.environments.push(name.to_owned());
        }
    }

    /// Reads a variable of which nobody knows what it changes.
    fn unknown_variable(&mut self, name: &str, word: &Word, value: &Word) {
        let outer = self.reading.begin_step();
        self.open(Cause::Execution, Kinds::OPERANDS, &word.text);
        self.value_command(&value.text);
        self.leftover(value);
        if place::is_system(&value.text) {
            self.reading.extend(access::written(&value.text));
        }
        let act = Act::new("set", "environment", Resource::System, Operation::Execute, 0.6);
        self.reading.push(act.at_risk(RiskLevel::Medium).told_by(name));
        self.reading.end_step(outer);
    }
}

/// Maximum number of environments of a command.
const MOST_ENVIRONMENTS: usize = 8;

pub(in crate::format) fn is_hostile(assignment: &str) -> bool {
    let (name, value) = assignment.split_once('=').unwrap_or((assignment, ""));
    let name = name.trim_end_matches('+');
    if name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        // "path=x" is a script's own variable.
        return false;
    }
    if name == "IFS" {
        // Blanks and punctuation split lines; a letter or a slash splits words.
        return value.contains(|c: char| c.is_alphanumeric() || c == '/');
    }
    let name = name.to_ascii_lowercase();
    if name == "path" && only_adds_to_path(value) || lines().usual_viewers.has(value) && !name.starts_with("ld_") {
        return false;
    }
    let is_library = matches!(name.as_str(), "pythonpath" | "rubylib" | "perl5lib");
    lines().hostile_variables.fits(&name) && !(is_library && value.split(':').all(is_of_folder))
}

/// Returns whether a path is plainly below the working folder, whose code runs anyway.
fn is_of_folder(path: &str) -> bool {
    !path.is_empty()
        && !path.starts_with(['/', '~', '-'])
        && !path.contains(['$', '`'])
        && !path.split('/').any(|part| part == "..")
}

/// Returns whether a value only extends the path: `$PATH:/usr/local/bin` keeps the old value and adds no folder that
/// others may write to.
fn only_adds_to_path(value: &str) -> bool {
    let is_old = |part: &str| matches!(part, "$PATH" | "${PATH}");
    // Behind the old folders no new one hides a program of theirs.
    let is_behind = value.split(':').next().is_some_and(is_old);
    value.split(':').any(is_old)
        && value.split(':').all(|part| {
            is_old(part)
                || is_behind && is_of_folder(part)
                || part.starts_with(['/', '~']) && !part.contains('$') && !place::is_open_to_all(part)
                || part.starts_with("$HOME/")
        })
}
