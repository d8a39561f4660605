//! Programs that the table does not contain.
//!
//! A program's public description decides, if there is one. Otherwise a bare name with plain words is the rubric's
//! "run a named program": MEDIUM and never less, whatever its words say, and marked as unclear. It is HIGH if
//! anything hides what runs or extends its reach: a part known only at run time, a file from a place that anyone can
//! write to, a hidden file, a download of the same line, root rights, or a harmful known program among its arguments.
//! In the last case it may be a wrapper, and that command is read as well.

use crate::commands::{self, Described};
use crate::format::{dangers, name, place};
use crate::language::floor::is_danger;
use crate::reading::Act;
use crate::sign::Sign;
use rulekeep_types::{Operation, Resource, RiskLevel};

use super::command::Outer;
use super::invocation::settle;
use super::{Shell, View, base_name};

impl Shell<'_, '_> {
    /// Reads an unknown program. Returns the place in its view of a command that it may run.
    pub(super) fn unknown(
        &mut self,
        whole: &str,
        arguments: View<'_>,
        outer: &mut Outer,
        depth: usize,
    ) -> Option<usize> {
        if self.cmdlet(whole, arguments, depth) {
            return None;
        }
        self.dangers(base_name(whole), arguments, depth);
        self.runs_download(whole, arguments);
        self.runs_written(whole, arguments, depth);
        if matches!(whole, "command" | "program" | "program_name" | "arguments_source") {
            // A documentation placeholder: some named program.
            self.reading.push(Act::new("run", "program", Resource::System, Operation::Execute, 0.7));
            return None;
        }
        // INVARIANT: once for each chain of wrappers, so that the arguments are not searched for each of them.
        let may_carry = !std::mem::replace(&mut outer.carried, true);
        let carried = arguments
            .texts
            .iter()
            .take(MOST_LOOKED_AT)
            .position(|word| may_carry && dangers::holds("carried_programs", base_name(word)));
        if self.windows(base_name(whole), arguments.texts) {
            return None;
        }
        let is_hidden = !is_plain_name(base_name(whole))
            || place::is_open_to_all(whole)
            || arguments.is_dynamic()
            || outer.is_root
            // Inside code passed to something else, an unknown name is code too.
            || depth > 0
            || carried.is_some();
        if is_hidden {
            self.unclear("program", whole);
        }
        let plain: Vec<&str> = arguments.texts.iter().filter(|word| !word.starts_with('-')).take(2).copied().collect();
        let described = commands::described(base_name(whole), &plain);
        let by_subcommand = described.filter(|found| found.words > 0).map(act_of);
        let mut act = by_subcommand
            .or_else(|| self.by_words(arguments.texts))
            .or_else(|| described.map(act_of))
            .unwrap_or_else(|| Act::new("run", "program", Resource::System, Operation::Execute, 0.5));
        if described.is_some() && act.operation == Operation::Read && !is_hidden && !names_danger(arguments.texts) {
            self.reading.push(act.told_by(whole));
            return None;
        }
        if act.operation == Operation::Delete && arguments.texts.iter().any(|word| dangers::holds("wide_flags", word)) {
            act.risk = Some(RiskLevel::High);
            act.signs.add(Sign::Force);
        }
        self.reading.facts.show(Sign::Unclear, whole);
        // The sign keeps the rubric's level at MEDIUM or above.
        self.reading.push(act.marked(Sign::Unclear).told_by(whole));
        carried.map(|place| place + 1)
    }

    /// Reads Windows programs, whose switches start with a slash: `del /s`, `format c:`.
    fn windows(&mut self, name: &str, arguments: &[&str]) -> bool {
        let name = name.to_ascii_lowercase();
        let name = name.trim_end_matches(".exe");
        let is_switch = |word: &&str| {
            super::form::is_long_switch(name, word)
                || word.len() == 2 && (word.ends_with(':') || word.starts_with('/'))
                || word.eq_ignore_ascii_case("delete")
        };
        if !dangers::holds("windows_programs", name) || !arguments.iter().any(is_switch) {
            return false;
        }
        self.unclear("program", name);
        if dangers::holds("windows_deleters", name) || arguments.iter().any(|word| word.eq_ignore_ascii_case("delete"))
        {
            let act = Act::new("delete", "files", Resource::File, Operation::Delete, 0.8);
            self.reading.push(act.at_risk(RiskLevel::High).told_by(name));
        }
        true
    }

    /// Reads "foo create bar" by its subcommand.
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
        let resource = if matches!(act.resource, Resource::Unknown | Resource::Information) {
            Resource::System
        } else {
            act.resource
        };
        let mut act = Act { resource, sure: 0.55, ..act };
        settle(&mut act);
        Some(act)
    }

    /// Reads a call of a function that the line defines; its body is read where it is defined.
    pub(super) fn call(&mut self, name: &str, arguments: View<'_>) {
        if !arguments.texts.is_empty() {
            // The body shows only in part what is done with the arguments.
            let act = Act::new("call", "function", Resource::System, Operation::Execute, 0.6);
            // A flag or a path can make a harmless body dangerous.
            let reaches = arguments.texts.iter().any(|word| word.starts_with(['-', '/', '~']));
            let risk = if reaches { RiskLevel::High } else { RiskLevel::Medium };
            self.reading.push(act.at_risk(risk).marked(Sign::Unclear).told_by(name));
        }
    }
}

/// The act of a command by its public description.
pub(super) fn act_of(found: Described) -> Act {
    let (operation, resource) = (found.operation, found.resource);
    let act = Act::new(operation.as_str(), resource.as_str(), resource, operation, 0.6);
    act.at_risk(found.risk)
}

/// Returns whether the arguments contain a flag or word of destruction, whatever the description says: `--delete`,
/// `--purge-all`.
fn names_danger(arguments: &[&str]) -> bool {
    let mut words =
        arguments.iter().take(MOST_LOOKED_AT).flat_map(|argument| argument.split(['-', '=', ':', '_', ' ']));
    words.any(is_danger) || arguments.iter().any(|word| dangers::holds("wide_flags", word))
}

/// Returns whether a name looks like a program's.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+' | b':' | b'@' | b'['))
}

/// Number of arguments among which a wrapper's command is searched.
const MOST_LOOKED_AT: usize = 32;
const LONGEST_WORD: usize = 40;
