//! Programs that the table does not know.
//!
//! What is known of a program by its public description decides; else a bare name with plain words is the rubric's
//! "run a named program": MEDIUM, never less, whatever its words say, and it says that it is unclear. It is HIGH
//! where anything hides what runs or reaches further: a part that only running
//! tells, a file from a place that anyone can write to, a hidden file, a download
//! of the same line, root's rights, a known program among its arguments that does
//! harm (then it may be a wrapper, and the command is read as well).

use crate::model::{Operation, Resource, RiskLevel};
use crate::parse::commands::{self, Described};
use crate::parse::format::{dangers, name, place};
use crate::parse::language::is_danger;
use crate::parse::reading::Act;
use crate::parse::sign::Sign;

use super::command::Outer;
use super::invocation::settle;
use super::{Shell, View, base_name};

impl Shell<'_, '_> {
    /// An unknown program. Returns where in its view a command begins that it may run.
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
            // A documentation's placeholder: some named program.
            self.reading.push(Act::new("run", "program", Resource::System, Operation::Execute, 0.7));
            return None;
        }
        // INVARIANT: once a line of wrappers, so that the arguments are not looked through for each of them.
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
            // Inside code that something else is handed, an unknown name is code, too.
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
        // The sign keeps the rubric's level at MEDIUM at least.
        self.reading.push(act.marked(Sign::Unclear).told_by(whole));
        carried.map(|place| place + 1)
    }

    /// Windows' own programs, whose switches open with a slash: `del /s`, `format c:`.
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

    /// "foo create bar": its subcommand says what it does.
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
        // The verb stands first or behind one noun; further on it is a name.
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

    /// A function that the line itself defines; its body is read where it stands.
    pub(super) fn call(&mut self, name: &str, arguments: View<'_>) {
        if !arguments.texts.is_empty() {
            // What it does with them, the body tells only in part.
            let act = Act::new("call", "function", Resource::System, Operation::Execute, 0.6);
            // A flag or a path is what a body is made dangerous with.
            let reaches = arguments.texts.iter().any(|word| word.starts_with(['-', '/', '~']));
            let risk = if reaches { RiskLevel::High } else { RiskLevel::Medium };
            self.reading.push(act.at_risk(risk).marked(Sign::Unclear).told_by(name));
        }
    }
}

/// What a command does by its public description.
pub(super) fn act_of(found: Described) -> Act {
    let (operation, resource) = (found.operation, found.resource);
    let act = Act::new(operation.as_str(), resource.as_str(), resource, operation, 0.6);
    act.at_risk(found.risk)
}

/// A flag or a word of destruction, whatever the description says: `--delete`, `--purge-all`.
fn names_danger(arguments: &[&str]) -> bool {
    let mut words =
        arguments.iter().take(MOST_LOOKED_AT).flat_map(|argument| argument.split(['-', '=', ':', '_', ' ']));
    words.any(is_danger) || arguments.iter().any(|word| dangers::holds("wide_flags", word))
}

/// A name as programs have them.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+' | b':' | b'@' | b'['))
}

/// Arguments among which a wrapper's command is looked for.
const MOST_LOOKED_AT: usize = 32;
const LONGEST_WORD: usize = 40;
