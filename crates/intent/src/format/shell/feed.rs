//! The input of a command: a pipe, a redirection or a here-document.

use crate::format::tables::calls;
use crate::format::{access, http, patch, sql};
use crate::programs::{Input, Language, Program, Takes};
use crate::reading::Act;
use crate::sign::Sign;
use rulekeep_types::facts::{Cause, Kind, Kinds, Role};
use rulekeep_types::{Operation, Resource, RiskLevel};

use super::lexer::{Feed, Script};
use super::options::Lexed;
use super::word::Word;
use super::{Shell, View, base_name, is_assignment, output};

/// The program that gets the input of a command, behind its wrappers.
struct Reader<'l> {
    name: String,
    row: &'l Program,
    lexed: Lexed<'l>,
    /// The program's first operand is a script to run.
    script: Option<String>,
    is_remote: bool,
}

impl<'l> Shell<'l, '_> {
    /// Reads the input of a shell, an interpreter or a database client.
    pub(super) fn fed(&mut self, script: &Script, place: usize, view: View<'_>, depth: usize) {
        let Some(command) = script.commands.get(place) else { return };
        let has_input = command.feed != Feed::None || !command.reads.is_empty() || !command.texts.is_empty();
        if !has_input {
            return;
        }
        self.note_fed(script, place, command, view.texts);
        let Some(reader) = self.reader_of(view) else { return };
        let is_piped = command.feed != Feed::None;
        let downloads = is_piped && self.first_download.is_some_and(|first| first <= place);
        if downloads && reader.applies_input() {
            return self.piped_program(place, &reader.name);
        }
        let texts = command.texts.iter().map(|text| text.text.clone());
        match reader.row.input {
            Input::Calm | Input::Paths | Input::Patch | Input::Secret => {
                if reader.is_remote && is_piped {
                    // `tar c . | ssh host 'cat > x'`: data piped into a program on another machine leaves this one.
                    self.sends = true;
                    let act = Act::new("send", "data", Resource::File, Operation::Send, 0.7);
                    self.reading.push(act.at_risk(RiskLevel::Medium).told_by("|"));
                }
                return;
            }
            Input::Send => {
                self.sends = true;
                let hosts = reader
                    .lexed
                    .operands
                    .iter()
                    .chain(reader.lexed.options.iter().filter_map(|given| given.value.as_ref()));
                // A number is a port or a time.
                let is_named = |word: &&Word| !word.text.bytes().all(|byte| byte.is_ascii_digit());
                let is_local =
                    hosts.filter(is_named).any(|word| http::is_loopback(word.text.split(':').next().unwrap_or("")));
                let level = if is_local { RiskLevel::Medium } else { RiskLevel::High };
                let act = Act::new("send", "data", Resource::Web, Operation::Send, 0.7).at_risk(level);
                self.reading.push(act.marked(Sign::Outside).told_by("|"));
                return;
            }
            Input::Schedule | Input::Run | Input::Code(_) => {}
        }
        if !reader.reads_input() {
            return;
        }
        let language = match reader.row.input {
            Input::Code(language) => language,
            _ => Language::Shell,
        };
        let is_query = matches!(language, Language::Sql | Language::Mongo | Language::Redis);
        let mut is_known = is_query;
        for text in texts {
            is_known = true;
            self.told(&reader.name, language, &text, depth);
        }
        if let Some((text, decoded)) = piped(script, place) {
            is_known = true;
            if decoded && !is_query {
                // Encoding a command serves to hide it.
                self.unclear("piped_program", &reader.name);
            }
            self.told(&reader.name, language, &text, depth);
        }
        if !is_known && language != Language::Awk && language != Language::Jq {
            self.piped_program(place, &reader.name);
        } else if is_query && !command.reads.is_empty() {
            self.open(Cause::Text, Kinds::OPERANDS, "<");
        }
    }

    /// Returns whether a command line is a shell or an interpreter that runs its input.
    pub(super) fn reads_code(&self, line: &str) -> bool {
        let Some(command) = super::lexer::split(line).commands.into_iter().next() else { return false };
        let texts: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
        let reader = self.reader_of(View { words: &command.words, texts: &texts });
        reader.is_some_and(|reader| {
            let runs = match reader.row.input {
                Input::Run => true,
                Input::Code(language) => !matches!(language, Language::Sql | Language::Mongo | Language::Redis),
                _ => false,
            };
            runs && reader.reads_input()
        })
    }

    /// The program that gets the input of a command.
    fn reader_of(&self, view: View<'_>) -> Option<Reader<'l>> {
        let mut words: Vec<Word> = view.words.to_vec();
        let mut is_remote = false;
        // INVARIANT: each round leaves fewer words.
        for _ in 0..MOST_WRAPPED {
            let skip = words.iter().take_while(|word| is_assignment(&word.text)).count();
            words.drain(..skip);
            let first = words.first()?;
            let name = base_name(&first.text).to_owned();
            let program = self.lexicon.programs.get(&name)?;
            let arguments = words.get(1..)?;
            let lexed = Lexed::of(program, arguments);
            match lexed.rest {
                Some((place, Takes::RunRest)) => {
                    is_remote |= lexed.row.is_elsewhere;
                    words = arguments.get(place..)?.to_vec();
                }
                Some((place, Takes::RunText)) => {
                    is_remote |= lexed.row.is_elsewhere;
                    let texts: Vec<&str> = arguments.get(place..)?.iter().map(|word| word.text.as_str()).collect();
                    let script = super::lexer::split(&texts.join(" "));
                    words = script.commands.into_iter().next()?.words;
                }
                Some((place, Takes::Script)) => {
                    let script = arguments.get(place).map(|word| word.text.clone());
                    return Some(Reader { name, row: lexed.row, lexed, script, is_remote });
                }
                _ => return Some(Reader { name, row: lexed.row, lexed, script: None, is_remote }),
            }
        }
        None
    }

    /// Reads the patches that a command applies: in its input, or as an argument. A here-document that is a patch counts
    /// whatever reads it, because a later command may apply it.
    pub(super) fn patches(&mut self, script: &Script, place: usize, view: View<'_>) {
        let Some(command) = script.commands.get(place) else { return };
        let has_texts = command.feed != Feed::None || !command.texts.is_empty();
        let is_patch = |word: &&str| patch::is_patch(word);
        if !has_texts && !view.texts.iter().any(is_patch) {
            return;
        }
        let applies = self.reader_of(view).is_some_and(|reader| reader.row.input == Input::Patch);
        let piped = piped(script, place).map(|(text, _)| text).filter(|_| applies);
        let texts = command.texts.iter().map(|text| text.text.as_str()).chain(piped.as_deref());
        let texts = texts.filter(|text| applies || patch::is_patch(text));
        for text in texts.chain(view.texts.iter().copied().filter(is_patch)) {
            let outer = self.reading.begin_step();
            for change in access::patch(text, self.reading) {
                if change.path.contains('\\') {
                    self.open(Cause::Text, Kinds::of(&[Kind::Path]), change.path);
                }
                let role = if change.removes { Role::Remove } else { Role::Write };
                self.path(&Word { text: change.path.to_owned(), ..Word::default() }, role, false);
            }
            self.reading.end_step(outer);
        }
    }

    /// Reads a program that is part of the line and passed to an interpreter.
    pub(super) fn told(&mut self, name: &str, language: Language, text: &str, depth: usize) {
        if language == Language::Shell {
            let act = Act::new("run", "script", Resource::System, Operation::Execute, 0.8);
            self.reading.push(act.at_risk(RiskLevel::Medium).told_by(name));
            self.line(text, depth + 1);
        } else {
            self.code_in(language, &Word { text: text.to_owned(), ..Word::default() }, depth);
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

    /// Reads a statement of a database client.
    pub(super) fn statement(&mut self, text: &str) {
        let lower = text.to_ascii_lowercase();
        if calls().database_deletes.iter().any(|call| lower.contains(call)) {
            let act = Act::new("delete", "records", Resource::Database, Operation::Delete, 0.8);
            self.reading.push(act.at_risk(RiskLevel::High).told_by(text));
        }
        if only_looks(text) {
            let act = Act::new("query", "documents", Resource::Database, Operation::Read, 0.8);
            self.reading.push(act.at_risk(RiskLevel::Low).told_by(text));
            return;
        }
        let statement = sql::read_anyway(text);
        let format = self.reading.format;
        self.reading.absorb(statement);
        self.reading.format = format;
    }
}

impl Reader<'_> {
    /// Returns whether the program carries out what its input defines: `kubectl apply -f -`.
    fn applies_input(&self) -> bool {
        let is_input = |word: &Word| word.text == "-";
        !self.row.only_reads() && self.lexed.options.iter().any(|given| given.value.as_ref().is_some_and(is_input))
    }

    /// Returns whether the program runs its input: it has no script and no code among its words.
    fn reads_input(&self) -> bool {
        let is_input = |text: &str| matches!(text, "-" | "/dev/stdin" | "-s");
        if self.row.input == Input::Schedule || self.lexed.options.iter().any(|given| is_input(given.key)) {
            return true;
        }
        if matches!(self.row.input, Input::Code(Language::Sql | Language::Mongo | Language::Redis)) {
            return true;
        }
        let has_code = self.lexed.options.iter().any(|given| {
            matches!(given.means.takes, Some(Takes::Code(_) | Takes::RunText | Takes::RunFile))
                && !given.value.as_ref().is_some_and(|word| is_input(&word.text))
        });
        !has_code && self.script.as_deref().is_none_or(is_input)
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
            name.is_empty() && piece.trim_end().ends_with('(') || calls().document_reads.has(name)
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

/// Maximum number of wrappers before the program that gets the input.
const MOST_WRAPPED: usize = 16;
