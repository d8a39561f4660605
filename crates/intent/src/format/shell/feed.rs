//! The input of a command: a pipe, a redirection or a here-document.

use crate::format::{access, dangers, patch, place, sql};
use crate::reading::Act;
use crate::sign::Sign;
use rulekeep_types::facts::{Cause, Kind, Kinds, Role};
use rulekeep_types::{Operation, Resource, RiskLevel};

use super::lexer::{Feed, Script};
use super::word::Word;
use super::{Shell, View, base_name, output};

impl Shell<'_, '_> {
    /// Reads the input of a shell, an interpreter or a database client.
    pub(super) fn fed(&mut self, script: &Script, place: usize, view: View<'_>, depth: usize) {
        let Some(command) = script.commands.get(place) else { return };
        if command.feed == Feed::None && command.reads.is_empty() && command.texts.is_empty() && !view.is_dynamic() {
            return;
        }
        if command.feed != Feed::None || !command.texts.is_empty() {
            self.note_fed(script, place, command, view.texts);
        }
        if self.first_download.is_some() && command.feed != Feed::None {
            let program = view.texts.iter().find(|word| !dangers::holds("wrappers", base_name(word)));
            if let Some(applier) = program.filter(|word| dangers::holds("appliers", base_name(word))) {
                self.piped_program(place, applier);
            }
        }
        let Some((name, arguments)) = self.fed_program(view) else {
            self.hands_on(command.feed, view);
            return;
        };
        let texts = command.texts.iter().map(|text| text.text.clone());
        if dangers::holds("sql_clients", &name) {
            let piped = piped(script, place).map(|(text, _)| text);
            for text in texts.chain(piped) {
                self.statement(&text);
            }
            return;
        }
        if name == "crontab" {
            // The input is scheduled to run later, repeatedly.
            self.unclear("schedule", &name);
            return;
        }
        let is_shell = dangers::holds("shells", &name);
        if !is_shell && !dangers::holds("interpreters", &name) || dangers::holds("filters", &name) {
            return;
        }
        let script_file = arguments.texts.iter().position(|argument| !argument.starts_with('-'));
        let reads_input = script_file.is_none()
            || dangers::holds("schedulers", &name)
            || arguments.texts.iter().any(|argument| matches!(*argument, "-" | "-s" | "/dev/stdin"));
        if script_file.and_then(|place| arguments.words.get(place)).is_some_and(|word| word.dynamic)
            && !arguments.texts.iter().any(|text| text.starts_with("-c"))
        {
            self.piped_program(place, &name);
        }
        if !reads_input {
            return;
        }
        for text in texts {
            self.told(&name, &text, is_shell, depth);
        }
        if !command.reads.is_empty() {
            self.piped_program(place, &name);
        }
        match (command.feed, piped(script, place)) {
            (Feed::None, _) => {}
            (_, Some((text, decoded))) => {
                if decoded {
                    // Encoding a command serves to hide it.
                    self.unclear("piped_program", &name);
                }
                self.told(&name, &text, is_shell, depth);
            }
            (..) => self.piped_program(place, &name),
        }
    }

    /// `tar c . | ssh host 'cat > x'`: data piped into a program on another machine leaves this one.
    fn hands_on(&mut self, feed: Feed, view: View<'_>) {
        let is_remote = view.texts.first().is_some_and(|word| dangers::holds("remote_shells", base_name(word)));
        if is_remote && feed != Feed::None {
            self.sends = true;
            let act = Act::new("send", "data", Resource::File, Operation::Send, 0.7).at_risk(RiskLevel::Medium);
            self.reading.push(act.told_by("|"));
        }
    }

    /// Reads the patches that a command applies: in its input, or as an argument. A here-document that is a patch counts
    /// whatever reads it, because a later command may apply it.
    pub(super) fn patches(&mut self, script: &Script, place: usize, words: &[&str]) {
        let Some(command) = script.commands.get(place) else { return };
        let applies = words.iter().enumerate().take(MOST_SCRIPT).any(|(at, word)| {
            let next = || words.iter().skip(at + 1).find(|word| !word.starts_with('-'));
            let known = dangers::parts("patchers", base_name(word));
            known.iter().any(|sub| sub == "*" || next().is_some_and(|next| next == sub))
        });
        let piped = piped(script, place).map(|(text, _)| text).filter(|_| applies);
        let texts = command.texts.iter().map(|text| text.text.as_str()).chain(piped.as_deref());
        let texts = texts.filter(|text| applies || patch::is_patch(text));
        for text in texts.chain(words.iter().copied().filter(|word| patch::is_patch(word))) {
            let outer = self.reading.begin_step();
            for change in access::patch(text, self.reading) {
                if change.path.contains('\\') {
                    self.open(Cause::Text, Kinds::of(&[Kind::Path]), change.path);
                }
                self.in_governing_folder(change.path);
                let role = if change.removes { Role::Remove } else { Role::Write };
                self.path(&Word { text: change.path.to_owned(), ..Word::default() }, role, false);
            }
            self.reading.end_step(outer);
        }
    }

    /// Records what the command writes to a file that the line may run later.
    pub(super) fn note_written(&mut self, script: &Script, place: usize) {
        let Some(command) = script.commands.get(place).filter(|_| script.commands.len() > 1) else { return };
        // INVARIANT: one file for each command, so that no text is stored twice.
        let Some(target) = command
            .writes
            .last()
            .filter(|target| !target.text.starts_with(['/', '&']) || place::is_open_to_all(&target.text))
        else {
            return;
        };
        let text = output::written(&script.commands, place);
        self.keep_written(&target.text, text);
    }

    /// Stores a file's text; for a file written twice, only the fact that it is written.
    pub(super) fn keep_written(&mut self, file: &str, text: Option<String>) {
        let known = self.written.entry(base_name(file).to_owned());
        known.and_modify(|known| *known = None).or_insert(text);
    }

    /// Reads a file that the line itself has written and then runs, as a program or with an interpreter.
    pub(super) fn runs_written(&mut self, whole: &str, arguments: View<'_>, depth: usize) {
        if self.written.is_empty() {
            return;
        }
        let name = base_name(whole);
        let interprets = || dangers::holds("interpreters", name) || dangers::holds("shells", name);
        let file = if self.written.contains_key(name) {
            Some(name)
        } else if interprets() {
            let mut files = arguments.texts.iter().take(MOST_SCRIPT).map(|word| base_name(word));
            files.find(|file| self.written.contains_key(*file))
        } else {
            None
        };
        // INVARIANT: it is read once, however often it runs.
        let Some((file, text)) = file.and_then(|file| self.written.remove_entry(file)) else { return };
        let Some(text) = text else {
            self.unclear("written_script", &file);
            return;
        };
        let named = text.strip_prefix("#!").and_then(|rest| rest.lines().next()).map_or(name, |line| {
            base_name(line.split_whitespace().find(|word| !word.ends_with("/env")).unwrap_or(line))
        });
        let is_code = dangers::holds("interpreters", named) && !dangers::holds("shells", named);
        self.told(named, &text, !is_code, depth);
    }

    /// Reads a program that is part of the line and passed to an interpreter.
    fn told(&mut self, name: &str, text: &str, is_shell: bool, depth: usize) {
        if is_shell {
            let act = Act::new("run", "script", Resource::System, Operation::Execute, 0.8);
            self.reading.push(act.at_risk(RiskLevel::Medium));
            self.line(text, depth + 1);
        } else {
            self.code(name, text, depth);
        }
    }

    /// Adds a program that comes from elsewhere.
    fn piped_program(&mut self, place: usize, name: &str) {
        self.unclear("piped_program", name);
        let downloads = self.first_download.is_some_and(|first| first <= place);
        if downloads {
            for act in self.reading.acts.iter_mut().filter(|act| act.noun == "piped_program") {
                act.signs.add(Sign::Downloaded);
            }
        }
    }

    /// Reads the statements of a database client. Returns whether they determine the whole effect.
    pub(super) fn statements(&mut self, arguments: &[&str]) -> bool {
        let mut found = false;
        let mut is_text = false;
        for argument in arguments {
            let joined =
                argument.split_once('=').filter(|(flag, _)| dangers::holds("sql_flags", flag)).map(|(_, value)| value);
            // "mysql -eDROP" needs no blank.
            let glued = argument
                .strip_prefix("-e")
                .or_else(|| argument.strip_prefix("-Q"))
                .filter(|rest| rest.contains(char::is_whitespace));
            let statement = match joined.or(glued) {
                Some(value) => Some(value),
                None if is_text
                    || argument.contains(char::is_whitespace) && !argument.starts_with('-')
                    || argument.starts_with(['.', '\\']) && !argument.contains('/') =>
                {
                    Some(*argument)
                }
                None => {
                    if let Some(statement) = sql::read(argument) {
                        self.absorb_statement(statement);
                        found = true;
                    }
                    None
                }
            };
            is_text = dangers::holds("sql_flags", argument);
            if let Some(statement) = statement {
                self.statement(statement);
                found = true;
            }
        }
        found
    }

    fn statement(&mut self, text: &str) {
        let lower = text.to_ascii_lowercase();
        if dangers::items("database_deletes").iter().any(|call| lower.contains(call.as_str())) {
            let act = Act::new("delete", "records", Resource::Database, Operation::Delete, 0.8);
            self.reading.push(act.at_risk(RiskLevel::High).told_by(text));
        }
        if only_looks(text) {
            let act = Act::new("query", "documents", Resource::Database, Operation::Read, 0.8);
            self.reading.push(act.at_risk(RiskLevel::Low).told_by(text));
            return;
        }
        self.absorb_statement(sql::read_anyway(text));
    }

    fn absorb_statement(&mut self, statement: crate::reading::Reading) {
        let format = self.reading.format;
        self.reading.absorb(statement);
        self.reading.format = format;
    }
}

/// Returns whether all calls of a document store only read: `db.products.find({a: 1}).limit(3)`.
fn only_looks(text: &str) -> bool {
    let text = text.trim().trim_end_matches(';');
    if !text.starts_with("db.") || text.contains([';', '$', '=', '\n', '`']) || text.len() > LONGEST_LOOK {
        return false;
    }
    let mut pieces: Vec<&str> = text.split('(').collect();
    pieces.pop();
    // The name before each bracket is the function called.
    !pieces.is_empty()
        && pieces.iter().all(|piece| {
            let name = piece.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or("");
            name.is_empty() && piece.trim_end().ends_with('(') || dangers::holds("document_reads", name)
        })
}

/// Maximum length of a text checked for read-only calls, in bytes.
const LONGEST_LOOK: usize = 512;

/// The text piped into the command, and whether a decoder precedes it.
pub(super) fn piped(script: &Script, place: usize) -> Option<(String, bool)> {
    let Feed::From(before) = script.commands.get(place)?.feed else { return None };
    let text = output::of_place(&script.commands, before)?;
    let program = script.commands.get(before)?.words.first()?;
    Some((text, output::is_decoder(base_name(&program.text))))
}

impl Shell<'_, '_> {
    /// The program that receives the input, behind its wrappers, in lower case.
    fn fed_program<'w>(&self, view: View<'w>) -> Option<(String, View<'w>)> {
        let skip = view
            .texts
            .iter()
            .take_while(|word| {
                super::is_assignment(word)
                    || word.starts_with('-')
                    || word.bytes().all(|byte| byte.is_ascii_digit())
                    || dangers::holds("wrappers", base_name(word))
            })
            .count();
        let mut program = view.from(skip);
        if dangers::holds("remote_wrappers", base_name(program.texts.first()?)) {
            // "ssh host bash" passes its input on.
            let inner = program.texts.iter().take(MOST_WRAPPED).position(|word| {
                dangers::holds("shells", base_name(word)) || dangers::holds("sql_clients", base_name(word))
            });
            match inner {
                Some(inner) => program = program.from(inner),
                // "ssh host" alone runs its input.
                None if self.names_host_alone(program.texts) => {
                    return Some(("sh".to_owned(), program.from(usize::MAX)));
                }
                None => return None,
            }
        }
        let name = base_name(program.texts.first()?).to_ascii_lowercase();
        let unversioned = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let known =
            if dangers::holds("interpreters", &name) || dangers::holds("shells", &name) { &name } else { unversioned };
        Some((known.to_owned(), program.from(1)))
    }

    /// Returns whether a remote shell has a host and no command.
    fn names_host_alone(&self, words: &[&str]) -> bool {
        let Some((&name, arguments)) = words.split_first() else { return false };
        let name = base_name(name);
        let Some(program) = self.lexicon.programs.get(name).filter(|_| dangers::holds("remote_shells", name)) else {
            return false;
        };
        let mut plain = 0;
        let mut skip = false;
        for argument in arguments.iter().take(MOST_WRAPPED) {
            if std::mem::take(&mut skip) {
                continue;
            }
            let is_flag = argument.starts_with('-') && argument.len() > 1;
            skip = is_flag && program.takes_value(argument);
            plain += usize::from(!is_flag);
        }
        plain == 1
    }
}

/// Number of an interpreter's arguments among which its script is searched.
const MOST_SCRIPT: usize = 16;
/// Number of words in which the program that a remote shell runs is searched.
const MOST_WRAPPED: usize = 16;
