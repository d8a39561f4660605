//! Files that a line makes and then runs: downloads, and what it writes itself. What is written is known by the path,
//! so that a build reads the file that the line wrote for it.

use rulekeep_types::facts::Role;

use crate::format::place;
use crate::programs::{Language, Takes};

use super::lexer::Script;
use super::operand::known_path;
use super::options::Lexed;
use super::word::Word;
use super::{Shell, base_name, output};

impl Shell<'_, '_> {
    /// Records what the command writes to a file that the line may run later.
    pub(super) fn note_written(&mut self, script: &Script, place: usize) {
        // INVARIANT: one file for each command, so that no text is stored twice.
        let Some(target) = script.commands.get(place).and_then(|command| command.writes.last()) else { return };
        let path = target.text.as_str();
        let is_kept = script.commands.len() > 1 && (!path.starts_with(['/', '&']) || place::is_open_to_all(path));
        // INVARIANT: the text of a file in the text of a file is not read.
        let is_loaded = self.depth == 0 && place::is_loaded(path);
        if !is_kept && !is_loaded {
            return;
        }
        let text = output::written(&script.commands, place);
        if let Some(text) = text.as_deref().filter(|_| is_loaded) {
            let acts = super::acts_of_file(path, text, self.lexicon);
            self.reading.extend(acts);
        }
        if is_kept {
            if text.is_some() {
                self.wrote.insert(path.to_owned());
            }
            self.keep_written(path, text);
        }
    }

    /// Stores a file's text; for a file written twice, only the fact that it is written.
    fn keep_written(&mut self, file: &str, text: Option<String>) {
        let known = self.written.entry(base_name(file).to_owned());
        known.and_modify(|known| *known = None).or_insert(text);
    }

    /// Records the files that a command writes, and those that it downloads.
    pub(super) fn note_files(&mut self, lexed: &Lexed<'_>) {
        let is_address = |text: &str| text.contains("://") || text.starts_with("git@");
        let fetches = lexed.operands.iter().any(|word| is_address(&word.text))
            || lexed.options.iter().any(|given| matches!(given.means.takes, Some(Takes::Url)));
        let is_write = |takes: Option<Takes>| matches!(takes, Some(Takes::Path { role: Role::Write, .. }));
        let written =
            lexed.options.iter().filter(|given| is_write(given.means.takes)).filter_map(|given| given.value.as_ref());
        let operands =
            lexed.operands.iter().zip(lexed.slots()).filter(|(_, takes)| is_write(*takes)).map(|(word, _)| word);
        let mut files: Vec<String> = written.chain(operands).map(|word| base_name(&word.text).to_owned()).collect();
        if fetches {
            for word in &lexed.operands {
                let path = word.text.split(['?', '#']).next().unwrap_or("");
                let last = path.rsplit_once('/').map(|(_, last)| last).filter(|_| is_address(path));
                files.extend(last.filter(|last| !last.is_empty()).map(|last| last.trim_end_matches(".git").to_owned()));
            }
            self.downloads.extend(files.into_iter().take(MOST_FILES));
        } else if matches!(&*lexed.program.name, "tee" | "sponge") {
            for file in files.into_iter().take(MOST_FILES) {
                self.keep_written(&file, None);
            }
        }
    }

    /// Reads a program that the same line has downloaded or written.
    pub(super) fn runs_fresh_program(&mut self, whole: &str, depth: usize) {
        let name = base_name(whole);
        if self.downloads.contains(name) {
            self.runs_download_of(whole);
        }
        if self.written.contains_key(name) && whole.contains('/') {
            self.runs_written(name, depth);
        }
        if whole.starts_with("./") {
            self.runs_folder(whole);
        }
    }

    /// Reads a file that a command runs, if the same line has downloaded or written it.
    pub(super) fn runs_fresh(&mut self, word: &Word) {
        let Some(path) = known_path(word) else { return };
        let name = base_name(&path).to_owned();
        if self.downloads.contains(&name) {
            self.runs_download_of(&word.text);
        }
        if self.written.contains_key(&name) {
            self.runs_written(&name, self.depth);
        }
    }

    /// Reads what the line has written or downloaded into the folder whose code a command runs.
    pub(super) fn runs_folder(&mut self, name: &str) {
        let built: Vec<String> =
            self.written.keys().chain(&self.downloads).filter(|file| configures(file)).cloned().collect();
        for file in built {
            if self.downloads.contains(&file) {
                self.runs_download_of(&file);
            }
            if self.written.contains_key(&file) {
                self.runs_written(&file, self.depth);
            }
        }
        let is_fetched = match &self.folders {
            super::folders::Folders::OneOf(folders) => {
                let is_fetched = |part: &str| {
                    let unpacked = || self.downloads.iter().any(|file| file.split('.').next() == Some(part));
                    !part.is_empty() && (self.downloads.contains(part) || unpacked())
                };
                folders.iter().any(|folder| folder.split('/').any(is_fetched))
            }
            super::folders::Folders::Unknown => false,
        };
        if is_fetched {
            self.runs_download_of(name);
        }
    }

    /// Reads a file that the line itself has written, as the code that it is.
    fn runs_written(&mut self, file: &str, depth: usize) {
        // INVARIANT: it is read once, however often it runs.
        let Some(text) = self.written.remove(file) else { return };
        let Some(text) = text else { return self.unclear("written_script", file) };
        self.told(file, language_in(file, &text), &text, depth);
    }

    /// Reads the text of a file as the code that it is.
    pub(super) fn whole_file(&mut self, path: &str, text: &str) {
        self.depth = 1;
        self.told(path, language_in(base_name(path), text), text, 1);
    }
}

/// The language of a file, by its first line or its name.
fn language_in(file: &str, text: &str) -> Language {
    let named = text
        .strip_prefix("#!")
        .and_then(|rest| rest.lines().next())
        .map(|line| base_name(line.split_whitespace().find(|word| !word.ends_with("/env")).unwrap_or(line)).to_owned());
    named.map_or_else(|| language_of(file), |name| language_named(&name))
}

/// The language of a file by its name. Build files hold commands.
fn language_of(file: &str) -> Language {
    let lower = file.to_ascii_lowercase();
    match lower.rsplit_once('.').map(|(_, ending)| ending) {
        Some("py") => Language::Named("python"),
        Some("js" | "mjs" | "cjs" | "ts" | "jsx" | "tsx") => Language::Named("node"),
        Some("rb") => Language::Named("ruby"),
        Some("pl" | "pm") => Language::Named("perl"),
        Some("php") => Language::Named("php"),
        Some("lua") => Language::Named("lua"),
        Some("rs" | "go" | "c" | "cpp" | "java" | "kts" | "gradle") => Language::Named("go"),
        Some("json" | "toml" | "yml" | "yaml" | "xml") => Language::Make,
        _ if matches!(lower.as_str(), "makefile" | "gnumakefile" | "justfile" | "rakefile" | "dockerfile") => {
            Language::Make
        }
        _ => Language::Shell,
    }
}

fn language_named(interpreter: &str) -> Language {
    let name = interpreter.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    match name {
        "python" | "pypy" => Language::Named("python"),
        "node" | "deno" | "bun" => Language::Named("node"),
        "perl" => Language::Named("perl"),
        "ruby" => Language::Named("ruby"),
        "php" => Language::Named("php"),
        "lua" => Language::Named("lua"),
        "awk" => Language::Awk,
        _ => Language::Shell,
    }
}

/// Returns whether a file of this name tells a build what to run, or is run by it.
fn configures(file: &str) -> bool {
    let lower = file.to_ascii_lowercase();
    language_of(file) != Language::Shell && !matches!(lower.rsplit_once('.'), Some((_, "c" | "cpp")))
        || place::runs_later(&format!("./{file}")).is_some()
        || lower.rsplit_once('.').is_some_and(|(_, ending)| ending == "sh")
}

/// Maximum number of files of one command that are remembered.
const MOST_FILES: usize = 8;
