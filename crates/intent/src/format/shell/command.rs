//! A simple command: its program, behind wrappers, and the commands that the program runs. A program of the table is
//! read by its rules, any other as unknown.

use crate::format::dangers;
use crate::lexicon::Lexicon;
use crate::programs::Program;
use crate::reading::Act;
use crate::sign::Sign;
use rulekeep_types::facts::{Cause, Kinds};
use rulekeep_types::{Operation, Resource, RiskLevel, TargetRole, UnreadKind};

use super::cover::Appended;
use super::invocation::{self, Invocation};
use super::word::{self, Word};
use super::wrap::{self, Inner};
use super::{DEEPEST, Shell, View, assigned, base_name};

impl Shell<'_, '_> {
    /// Reads a program with its arguments, and the programs that it runs.
    pub(super) fn command(&mut self, view: View<'_>, depth: usize) {
        let step = self.reading.begin_step();
        let around = (self.appended.take(), self.only_goes_on, self.placeholder.clone(), self.is_elsewhere);
        let above = std::mem::replace(&mut self.depth, depth);
        self.layers(view, depth);
        (self.appended, self.only_goes_on, self.placeholder, self.is_elsewhere) = around;
        self.depth = above;
        self.reading.end_step(step);
    }

    fn layers(&mut self, view: View<'_>, depth: usize) {
        let mut view = view;
        let mut outer = Outer::default();
        // INVARIANT: each round leaves fewer words, and looks only at the words it removes.
        loop {
            let skip = view.texts.iter().take_while(|text| is_prefix(text)).count();
            view = view.from(skip);
            let Some(first) = view.words.first() else { return };
            self.note_layer(view);
            self.note_program(first);
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
    #[expect(clippy::too_many_lines, reason = "one decision after the other, in order")]
    fn program(&mut self, whole: &str, view: View<'_>, outer: &mut Outer, depth: usize) -> Option<usize> {
        // A blank before a name is quoted only to evade checks.
        let name = base_name(whole).trim();
        let arguments = view.from(1);
        if let Some(alias) = self.aliases.remove(name) {
            // INVARIANT: within its own expansion an alias is a plain name, as in the shell, so this ends.
            self.line(&alias, depth + 1);
            self.aliases.insert(name.to_owned(), alias);
            self.cover(whole, arguments);
            return None;
        }
        if self.functions.contains(name) && !whole.contains('/') {
            if !self.lexicon.programs.knows(name) {
                self.call(name, arguments);
                self.cover(whole, arguments);
                return None;
            }
            // A function with a program's name: only running the line shows which of the two runs.
            self.unclear("shadowed_program", name);
        }
        if self.aliased_cmdlet(name, arguments, depth) {
            self.cover(name, arguments);
            return None;
        }
        let lexicon = self.lexicon;
        let Some((name, program)) = known(name, lexicon) else {
            self.note_normal(name, None, arguments);
            self.cover(name, arguments);
            self.arguments(name, arguments);
            return self.unknown(whole, arguments, outer, depth);
        };
        self.runs_download(whole, arguments);
        self.runs_written(whole, arguments, depth);
        let inner = wrap::inner(program, arguments.texts);
        let own = match &inner {
            Some((Inner::Rest(place) | Inner::Text(_, place), _)) => arguments.up_to(*place),
            _ => arguments,
        };
        match &inner {
            None => {
                self.note_normal(name, Some(program), arguments);
                self.cover(name, arguments);
            }
            Some((Inner::Unclear, _)) => self.open(Cause::Text, Kinds::ALL, name),
            Some(_) => self.cover_wrapper(name, own),
        }
        self.arguments(name, own);
        if !own.texts.is_empty() || inner.is_none() {
            self.dangers(name, own, depth);
        }
        if name == "command" && own.texts.first().is_some_and(|flag| matches!(*flag, "-v" | "-V" | "-pv")) {
            let act = Act::new("find", "program", Resource::System, Operation::Read, 0.9);
            self.reading.push(act.at_risk(RiskLevel::Low).told_by(name));
            return None;
        }
        if outer.is_root && arguments.texts.is_empty() && dangers::holds("shells", name) {
            self.unclear("root_shell", name);
        }
        if matches!(name, "docker" | "podman" | "nerdctl") && inner.is_some() {
            self.container(own.texts, depth);
        }
        let Some((inner, rule)) = inner else {
            let before = self.reading.acts.len();
            self.known(name, program, arguments, depth);
            if outer.is_listed {
                self.takes_all_listed(before);
            }
            return None;
        };
        if let Some(rule) = rule {
            for act in invocation::from_rule(rule) {
                self.reading.push(act.told_by(name));
            }
        }
        outer.is_root |= dangers::holds("root_wrappers", name);
        if dangers::holds("remote_wrappers", name) {
            self.reading.push(
                Act::new("connect", "host", Resource::System, Operation::Execute, 0.8)
                    .at_risk(RiskLevel::Medium)
                    .told_by(name),
            );
        }
        let deletes = matches!(&inner, Inner::Rest(place) if arguments.texts.get(*place).is_some_and(|word| dangers::holds("deleters", base_name(word))));
        if deletes && matches!(name, "xargs" | "parallel" | "gxargs") {
            // Everything listed is deleted.
            let act = Act::new("delete", "files", Resource::File, Operation::Delete, 0.9);
            self.reading.push(act.at_risk(RiskLevel::High).marked(Sign::Bulk).told_by(name));
        }
        outer.is_listed |= dangers::holds("listers", name);
        match inner {
            Inner::Rest(place) => {
                if outer.is_root && arguments.texts.get(place).is_some_and(|word| word.starts_with('!')) {
                    self.unclear("repeated_command", name);
                    return None;
                }
                Some(place + 1)
            }
            Inner::Text(text, place) => {
                if arguments.words.get(place).is_some_and(|word| word.dynamic && word.text.starts_with('$')) {
                    self.unclear("code", &text);
                }
                // In code it stands for a value that is not known.
                let holds = |placeholder: &&String| text.contains(placeholder.as_str());
                let filled =
                    self.placeholder.as_ref().filter(holds).map(|mark| text.replace(mark.as_str(), "${REPLY}"));
                self.line(filled.as_ref().unwrap_or(&text), depth + 1);
                None
            }
            Inner::Unclear => {
                self.unclear("code", name);
                None
            }
        }
    }

    /// `redis-cli --scan | xargs redis-cli del` deletes everything listed.
    fn takes_all_listed(&mut self, before: usize) {
        for act in self.reading.acts.iter_mut().skip(before) {
            let is_kept = matches!(act.resource, Resource::Database | Resource::Credential | Resource::Account);
            if act.operation == Operation::Delete && is_kept {
                act.risk = act.risk.max(Some(RiskLevel::High));
                act.signs.add(Sign::Bulk);
            }
        }
    }

    /// Reads a program of the table that runs no other, or does more than that.
    fn known(&mut self, name: &str, program: &Program, arguments: View<'_>, depth: usize) {
        if let Some(disk) =
            arguments.texts.iter().find_map(|argument| argument.strip_prefix("of=")).filter(|_| name == "dd")
        {
            self.reading.facts.note_target(disk);
        }
        let mut plain = arguments.words.iter().filter(|word| !word.text.starts_with('-'));
        if dangers::holds("pattern_first", name) && plain.clone().nth(1).is_some() {
            plain.next();
        }
        let handles_files = program.rule.as_ref().is_some_and(|rule| {
            rule.capabilities.iter().any(|&(resource, _)| matches!(resource, Resource::File | Resource::Document))
        });
        for word in plain {
            let argument = word.text.as_str();
            if word.is_literal_name() {
                self.reading.facts.note_literal_path(TargetRole::Named, argument);
                continue;
            }
            let variable = argument
                .find('$')
                .and_then(|at| argument.get(at..))
                .filter(|rest| rest.len() > 1 || !self.sets_variables);
            if let Some(variable) = variable.filter(|_| !dangers::holds("prints", name)) {
                let first = variable.split('/').next().unwrap_or(variable);
                if !dangers::holds("usual_variables", first) && !self.sets_variables {
                    self.reading.facts.note_unread(UnreadKind::Target, argument);
                    if handles_files {
                        self.reading.facts.signs.add(Sign::Unclear);
                    }
                }
            } else if argument.contains(['/', '.', '@', ':', '*']) && !self.shows_secret(argument) {
                self.reading.facts.note_target(argument);
            }
        }
        let is_client = program
            .rule
            .as_ref()
            .is_some_and(|rule| rule.capabilities.first().is_some_and(|&(resource, _)| resource == Resource::Database));
        if is_client && program.subcommand(arguments.texts).is_none() && self.statements(arguments.texts) {
            return;
        }
        if dangers::parts("sql_callers", name).iter().any(|sub| arguments.texts.first() == Some(&sub.as_str())) {
            // The program's own statements, with a database client behind it: `wrangler d1 execute x --command
            // "..."`.
            self.statements(arguments.texts);
        }
        self.carried(name, arguments, depth);
        let mut acts = Invocation { program, arguments: arguments.texts, lexicon: self.lexicon }.acts(name);
        if let Some(requested) = self.requested(name, program, arguments.texts) {
            // The request determines what is done; what the table says about files is kept.
            acts.retain(|act| act.resource == Resource::File);
            acts.splice(0..0, requested);
        }
        for act in acts {
            self.reading.push(act);
        }
        self.notes(name, arguments);
        self.runs_remote(name, program, arguments.texts);
        self.embedded(name, arguments, depth);
        if matches!(name, "docker" | "podman" | "nerdctl") {
            self.container(arguments.texts, depth);
        }
    }

    /// Reads a framework's program behind its runner: `php artisan migrate`, `npx prisma migrate reset`.
    fn carried(&mut self, name: &str, arguments: View<'_>, depth: usize) {
        if !dangers::holds("framework_carriers", name) {
            return;
        }
        let mut words = arguments.texts.iter().take(MOST_CARRIED);
        if let Some(place) = words.position(|word| dangers::holds("frameworks", base_name(word))) {
            // INVARIANT: no framework runs another, and fewer words are left, so this ends.
            self.command(arguments.from(place), depth);
        }
    }

    /// Marks a container whose entry point the line chooses, or that mounts the host's files.
    fn container(&mut self, arguments: &[&str], depth: usize) {
        for pair in arguments.windows(2) {
            match pair {
                ["--entrypoint", program] => {
                    let rest: Vec<&str> = arguments.iter().rev().take(MOST_ENTRY).rev().copied().collect();
                    self.line(&format!("{program} {}", rest.join(" ")), depth + 1);
                }
                ["-v" | "--volume", volume] if volume.starts_with("/:") || volume.contains("docker.sock") => {
                    self.unclear("host", volume);
                }
                _ => {}
            }
        }
    }

    /// Records what later parts of the line depend on.
    fn notes(&mut self, name: &str, arguments: View<'_>) {
        match name {
            "alias" => {
                for (alias, value) in arguments.texts.iter().filter_map(|text| text.split_once('=')) {
                    self.aliases.insert(alias.to_owned(), value.to_owned());
                }
            }
            "tee" | "sponge" => {
                for file in arguments.texts.iter().filter(|text| !text.starts_with('-')).take(MOST_WRITTEN) {
                    self.keep_written(file, None);
                }
            }
            "curl" | "wget" | "aria2c" | "http" | "xh" | "fetch" | "axel" => self.note_downloads(arguments.texts),
            _ => {}
        }
    }

    /// Reads commands among the arguments: `find -exec rm {} ;`, `fd -x rm`.
    fn embedded(&mut self, name: &str, arguments: View<'_>, depth: usize) {
        let known = dangers::parts("exec_flags", name);
        if known.is_empty() {
            return;
        }
        let flags = arguments.texts.iter().enumerate();
        let places: Vec<usize> = flags
            .filter(|(_, argument)| known.iter().any(|flag| flag == **argument))
            .map(|(place, _)| place)
            .take(MOST_EMBEDDED + 1)
            .collect();
        let outer = self.roots.replace(match Self::producer_of(name, arguments) {
            Appended::Below(roots) => roots,
            Appended::Unknown => Vec::new(),
        });
        for (turn, &place) in places.iter().enumerate() {
            if turn == MOST_EMBEDDED || depth > DEEPEST {
                self.unclear("command", name);
                break;
            }
            // INVARIANT: each command ends where the next starts, so nothing is read twice.
            let until = places.get(turn + 1).copied().unwrap_or(arguments.texts.len());
            let behind = arguments.up_to(until).from(place + 1);
            let length = behind.texts.iter().position(|word| matches!(*word, ";" | "+")).unwrap_or(behind.texts.len());
            let inner = behind.up_to(length);
            // INVARIANT: its words contain no such flag any more, so this recurses once and ends.
            self.command(inner, depth);
            if inner.texts.iter().take(4).any(|word| dangers::holds("deleters", base_name(word))) {
                // Everything found is deleted.
                let act = Act::new("delete", "files", Resource::File, Operation::Delete, 0.9);
                self.reading.push(act.at_risk(RiskLevel::High).marked(Sign::Bulk).told_by(name));
            }
        }
        self.roots = outer;
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

/// The program with this name: as is, without version (`python3.11`), in lower case, without `.exe`.
fn known<'l>(name: &str, lexicon: &'l Lexicon) -> Option<(&'l str, &'l Program)> {
    let programs = &lexicon.programs;
    programs.entry(name).or_else(|| {
        let bare = name.strip_suffix(".exe").unwrap_or(name);
        let unversioned = bare.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
        programs
            .entry(bare)
            .or_else(|| programs.entry(unversioned).filter(|_| !unversioned.is_empty()))
            .or_else(|| programs.entry(&bare.to_ascii_lowercase()).filter(|_| bare.len() < LONGEST_NAME))
    })
}

/// The likely program of a word known only at run time: its literal part, or a program that its pattern matches.
fn guessed(word: &Word) -> String {
    let name = base_name(&word.text);
    if word.wild
        && let Some(fits) = dangers::items("guessed_programs").iter().find(|program| word::matches(name, program))
    {
        return fits.clone();
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

/// Maximum number of commands read among one command's arguments.
const MOST_EMBEDDED: usize = 64;
const LONGEST_NAME: usize = 64;
/// Maximum number of written files that are remembered.
const MOST_WRITTEN: usize = 8;
/// Number of words among which a framework's program is searched.
const MOST_CARRIED: usize = 6;
/// Maximum number of arguments read for a container's entry point.
const MOST_ENTRY: usize = 8;
