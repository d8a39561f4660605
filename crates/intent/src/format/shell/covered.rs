//! The table of programs whose every word is understood, `data/covered.toml`, and the words of a command read by a row
//! of it.

use std::sync::{Arc, LazyLock};

use rulekeep_types::facts::Role;
use serde::Deserialize;

use crate::table::Words;

use super::cover::{behind, here};
use super::word::Word;

/// The meaning of a plain word of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Plain {
    Read,
    Write,
    Remove,
    Named,
    Copy,
    Move,
    Text,
    /// All words are printed, whatever they are.
    Words,
    Mode,
    Script,
    Url,
    Recipient,
    Find,
    Tar,
    Dd,
}

/// A row of the table.
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that a program may do")]
#[derive(Debug, Default)]
pub(super) struct Row {
    pub(super) plain: Vec<Plain>,
    pub(super) is_tree: bool,
    /// Whether the program runs code that the working folder configures.
    pub(super) runs: bool,
    /// Whether the program reads the folder in which it runs if it gets no path.
    pub(super) is_here: bool,
    /// Whether the program writes to the folder in which it runs if no option names another.
    pub(super) saves: bool,
    calm: Vec<Box<str>>,
    values: Vec<Box<str>>,
    reads: Vec<Box<str>>,
    writes: Vec<Box<str>>,
    text: Vec<Box<str>>,
    tree: Vec<Box<str>>,
    becomes: Vec<(Box<str>, Role)>,
}

/// The meaning of an option to its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Means {
    Calm,
    Tree,
    Becomes(Role),
    Value,
    Reads,
    Writes,
    Text,
}

impl Row {
    fn means(&self, option: &str) -> Option<Means> {
        let holds = |list: &[Box<str>]| list.iter().any(|known| **known == *option);
        match () {
            () if holds(&self.tree) => Some(Means::Tree),
            () if holds(&self.calm) => Some(Means::Calm),
            () if holds(&self.values) => Some(Means::Value),
            () if holds(&self.reads) => Some(Means::Reads),
            () if holds(&self.writes) => Some(Means::Writes),
            () if holds(&self.text) => Some(Means::Text),
            () => self.becomes.iter().find(|(known, _)| **known == *option).map(|(_, role)| Means::Becomes(*role)),
        }
    }
}

/// A command as it is being covered.
pub(super) struct Covering<'w> {
    row: &'w Row,
    pub(super) plain: Vec<Word>,
    pub(super) unknown: Vec<Word>,
    pub(super) is_tree: bool,
    pub(super) becomes: Option<Role>,
    pub(super) has_text: bool,
    /// Values of options that are paths, and whether all below them counts.
    pub(super) paths: Vec<(Word, Role, bool)>,
}

impl<'w> Covering<'w> {
    /// The folder that an option names for what is written.
    pub(super) fn folder(&self) -> Option<&Word> {
        self.paths.iter().find(|(_, role, _)| *role == Role::Write).map(|(folder, ..)| folder)
    }

    pub(super) fn of(row: &'w Row, words: &[Word]) -> Self {
        let mut covering = Self {
            row,
            plain: Vec::new(),
            unknown: Vec::new(),
            is_tree: false,
            becomes: None,
            has_text: false,
            paths: Vec::new(),
        };
        match row.plain.first() {
            Some(Plain::Find) => covering.find(words),
            Some(Plain::Tar) => covering.tar(words),
            _ => covering.usual(words),
        }
        covering
    }

    /// Reads options as most programs do: clusters of letters, long names, joined values, `--`.
    fn usual(&mut self, words: &[Word]) {
        let mut words = words.iter();
        let mut is_over = false;
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            // `chmod -rwx a`: the mode looks like an option.
            let is_mode = self.row.plain.first() == Some(&Plain::Mode)
                && text.bytes().all(|byte| b"-+=,rwxXstugoa01234567".contains(&byte));
            let is_option = !is_over && !is_mode && text.len() > 1 && text.starts_with('-');
            if !is_option {
                self.plain.push(word.clone());
            } else if text == "--" {
                is_over = true;
            } else if word.dynamic {
                self.unknown.push(word.clone());
            } else if text.starts_with("--") {
                let (name, length) =
                    text.split_once('=').map_or((text, None), |(name, _)| (name, Some(name.len() + 1)));
                let joined = length.map(|length| behind(word, length));
                let is_joined = joined.is_some();
                if !self.option(name, joined, &mut words) {
                    self.unknown(word, is_joined, words.as_slice());
                }
            } else if text.bytes().skip(1).all(|byte| byte.is_ascii_digit()) {
                // `head -20`.
            } else {
                self.cluster(word, &mut words);
            }
        }
    }

    /// Keeps an option that the row does not know, and the word that may be its value.
    fn unknown(&mut self, word: &Word, is_joined: bool, next: &[Word]) {
        self.unknown.push(word.clone());
        self.unknown.extend(next.first().filter(|next| !is_joined && !next.text.starts_with('-')).cloned());
    }

    fn cluster(&mut self, word: &Word, words: &mut std::slice::Iter<'_, Word>) {
        for (at, letter) in word.text.char_indices().skip(1) {
            let option = format!("-{letter}");
            let end = at + letter.len_utf8();
            let rest = (end < word.text.len()).then(|| behind(word, end));
            match self.row.means(&option) {
                Some(Means::Calm) => {}
                Some(Means::Tree) => self.is_tree = true,
                Some(Means::Becomes(role)) => {
                    // `sed -i.bak`: what follows is a suffix.
                    self.becomes = Some(role);
                    return;
                }
                Some(_) => {
                    self.option(&option, rest, words);
                    return;
                }
                None => {
                    self.unknown(word, end < word.text.len(), words.as_slice());
                    return;
                }
            }
        }
    }

    /// Reads an option. Returns whether the row knows it.
    fn option<'a>(&mut self, name: &str, joined: Option<Word>, words: &mut impl Iterator<Item = &'a Word>) -> bool {
        let Some(means) = self.row.means(name) else { return false };
        match means {
            Means::Calm => return joined.is_none() || name == "--color",
            Means::Tree => self.is_tree = true,
            Means::Becomes(role) => self.becomes = Some(role),
            Means::Value | Means::Reads | Means::Writes | Means::Text => {
                let Some(value) = joined.or_else(|| words.next().cloned()) else { return false };
                match means {
                    Means::Reads => {
                        self.paths.push((value, Role::Read, false));
                        // A file of patterns or of a script stands for the first operand.
                        self.has_text = true;
                    }
                    Means::Value if value.text.starts_with('@') => {
                        self.paths.push((behind(&value, 1), Role::Read, false));
                    }
                    Means::Writes => self.paths.push((value, Role::Write, false)),
                    Means::Text => self.has_text = true,
                    _ => {}
                }
            }
        }
        true
    }

    fn find(&mut self, words: &[Word]) {
        let mut words = words.iter();
        let mut is_expression = false;
        while let Some(word) = words.next() {
            let text = word.text.as_str();
            if matches!(text, "-exec" | "-execdir" | "-ok" | "-okdir") {
                // The command is read by itself.
                words.by_ref().find(|word| matches!(word.text.as_str(), ";" | "+"));
                continue;
            }
            is_expression |= text.starts_with(['-', '(', '!']) && !matches!(text, "-L" | "-H" | "-P");
            if !is_expression && !text.starts_with('-') {
                self.plain.push(word.clone());
            } else if word.dynamic && self.row.means(text).is_none() || !self.option(text, None, &mut words) {
                self.unknown.push(word.clone());
            }
        }
        if self.plain.is_empty() {
            self.plain.push(here());
        }
    }

    /// Only the creation of an archive is complete: what an archive holds is unknown.
    fn tar(&mut self, words: &[Word]) {
        let Some((first, rest)) = words.split_first() else { return };
        let letters = first.text.trim_start_matches('-');
        // Behind a dash, the archive stands behind its letter: `-cfv` writes to `v`.
        let is_ordered = !first.text.starts_with('-') || !letters.contains('f') || letters.ends_with('f');
        let creates = is_ordered && letters.contains('c') && letters.chars().all(|letter| "cfzjJv".contains(letter));
        let mut rest = rest.iter();
        if letters.contains('f')
            && is_ordered
            && let Some(archive) = rest.next()
        {
            self.paths.push((archive.clone(), if creates { Role::Write } else { Role::Read }, false));
        }
        if !creates || first.text.starts_with("--") {
            self.unknown.push(first.clone());
            // It unpacks into the folder in which it runs.
            self.paths.push((here(), Role::Write, true));
        }
        while let Some(word) = rest.next() {
            match word.text.as_str() {
                text if !text.starts_with('-') => self.paths.push((word.clone(), Role::Read, true)),
                "-C" | "--directory" => {
                    self.unknown.push(word.clone());
                    if let Some(folder) = rest.next() {
                        self.paths.push((folder.clone(), Role::Write, true));
                    }
                }
                text if is_list_of_files(text) => {
                    self.unknown.push(Word { text: "$".to_owned(), dynamic: true, ..Word::default() });
                    if text == "-T"
                        && let Some(list) = rest.next()
                    {
                        self.unknown.push(list.clone());
                    }
                }
                _ => self.unknown.push(word.clone()),
            }
        }
    }
}

fn is_list_of_files(option: &str) -> bool {
    option == "-T" || option.starts_with("--files-from")
}

/// The table: its rows by program, and what runs code of the folder. A table that does not load leaves every command
/// open.
#[derive(Default)]
struct Covered {
    rows: Words<Arc<Row>>,
    programs: Vec<Box<str>>,
    scripts: Vec<Box<str>>,
    options: Vec<Box<str>>,
    variables: Vec<Box<str>>,
    builtins: Vec<Box<str>>,
}

fn covered() -> &'static Covered {
    static COVERED: LazyLock<Covered> =
        LazyLock::new(|| read(include_str!("../../data/covered.toml")).unwrap_or_default());
    &COVERED
}

/// The rows by program.
pub(super) fn rows() -> &'static Words<Arc<Row>> {
    &covered().rows
}

/// Returns whether a command runs code that lies in the folder in which it runs, or that this folder configures, and no
/// other.
pub(super) fn runs_folder(name: &str, words: &[Word]) -> bool {
    let Covered { programs, scripts, options, .. } = covered();
    let holds = |list: &[Box<str>], wanted: &str| list.iter().any(|known| **known == *wanted);
    let first = words.first().map_or("", |word| word.text.as_str());
    if words.iter().any(|word| word.dynamic || word.wild) {
        return false;
    }
    if holds(scripts, name) {
        return !first.is_empty() && stays(first);
    }
    // `-j4` is `-j` with its number.
    let is_option = |text: &str| holds(options, text.trim_end_matches(|c: char| c.is_ascii_digit()));
    let is_known = |word: &Word| !word.text.contains('=') && (!word.text.starts_with('-') || is_option(&word.text));
    (holds(programs, name) || holds(programs, &format!("{name} {first}"))) && words.iter().all(is_known)
}

/// Returns whether a word is a command of the shell itself whose words are no places.
pub(super) fn is_builtin(name: &str) -> bool {
    covered().builtins.iter().any(|known| **known == *name)
}

/// Returns whether a variable changes nothing but how a program shows what it does.
pub(super) fn is_calm_variable(name: &str) -> bool {
    covered().variables.iter().any(|known| match known.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => **known == *name,
    })
}

/// Returns whether a word is a relative path that leads out of no folder.
pub(super) fn stays(path: &str) -> bool {
    !path.starts_with(['/', '~', '-']) && !path.split('/').any(|part| part == "..")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    folder: FolderText,
    builtins: String,
    calm_variables: String,
    program: Vec<RowText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FolderText {
    programs: String,
    scripts: String,
    options: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RowText {
    names: String,
    operands: String,
    #[serde(default)]
    runs: bool,
    #[serde(default)]
    here: bool,
    #[serde(default)]
    saves: bool,
    #[serde(default)]
    calm: String,
    #[serde(default)]
    values: String,
    #[serde(default)]
    read: String,
    #[serde(default)]
    write: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    tree: String,
    #[serde(default)]
    becomes: String,
}

fn read(text: &str) -> Result<Covered, String> {
    let table: Table = toml::from_str(text).map_err(|error| error.to_string())?;
    let listed = |words: &str| -> Vec<Box<str>> { words.split_whitespace().map(Into::into).collect() };
    let named = |names: &str| -> Vec<Box<str>> { names.split(',').map(|name| name.trim().into()).collect() };
    let mut rows = Words::default();
    for row in table.program {
        let mut plain = Vec::new();
        let mut is_tree = false;
        for word in row.operands.split_whitespace() {
            if word == "tree" {
                is_tree = true;
            } else {
                plain.push(serde_json::from_value(word.into()).map_err(|error| format!("{word:?}: {error}"))?);
            }
        }
        let becomes = row.becomes.split_whitespace().map(|pair| {
            let (option, role) =
                pair.split_once('=').ok_or_else(|| format!("{pair:?} is not of the form option=role"))?;
            Ok((option.into(), role.parse().map_err(|error| format!("{pair:?}: {error}"))?))
        });
        let becomes = becomes.collect::<Result<_, String>>()?;
        let (calm, values, reads) = (listed(&row.calm), listed(&row.values), listed(&row.read));
        let (writes, text, tree) = (listed(&row.write), listed(&row.text), listed(&row.tree));
        let known = Arc::new(Row {
            plain,
            is_tree,
            runs: row.runs,
            is_here: row.here,
            saves: row.saves,
            calm,
            values,
            reads,
            writes,
            text,
            tree,
            becomes,
        });
        for name in row.names.split(',').map(str::trim) {
            if rows.insert(name.to_owned(), Arc::clone(&known)).is_some() {
                return Err(format!("{name} has two rows"));
            }
        }
    }
    let FolderText { programs, scripts, options } = table.folder;
    Ok(Covered {
        rows,
        programs: named(&programs),
        scripts: named(&scripts),
        options: listed(&options),
        variables: listed(&table.calm_variables),
        builtins: listed(&table.builtins),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_loads_and_stays_short() {
        let rows = read(include_str!("../../data/covered.toml")).unwrap().rows;
        assert!((1..=60).contains(&rows.len()), "{} programs", rows.len());
    }
}
