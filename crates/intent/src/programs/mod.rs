//! The table of programs: a row for each program says what every word of its command lines does.
//!
//! `text` is the file format, `meaning` the vocabulary, `rule` an effect, and `row` a program as the shell reader uses
//! it. Every option that no row names is left over, so a missing row costs a question.

mod meaning;
mod row;
mod rule;
mod text;

use std::sync::Arc;

use rulekeep_types::Error;

use crate::table::Words;

pub(crate) use meaning::{Does, Language, Means, Slot, Takes, Times};
pub(crate) use row::{Input, Program, Runs, Style};
pub(crate) use rule::Rule;

/// All programs by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Programs(Words<Arc<Program>>);

impl Programs {
    /// Reads the built-in rows.
    pub(crate) fn builtin() -> Result<Self, Error> {
        let mut programs = Words::default();
        for (file, text) in FILES {
            let document: text::Document =
                toml::from_str(text).map_err(|error| Error::input("program", format!("{file}: {error}")))?;
            for row in &document.program {
                let at = |error: Error| Error::input("program", format!("{file}: {}: {error}", row.names));
                let program = Arc::new(Program::read(row).map_err(at)?);
                for name in row.names.split_whitespace() {
                    let key = if matches!(program.style, Style::PowerShell | Style::Windows) {
                        name.to_ascii_lowercase()
                    } else {
                        name.to_owned()
                    };
                    if programs.insert(key, Arc::clone(&program)).is_some() {
                        return Err(Error::input("program", format!("{file}: {name} has another row")));
                    }
                }
            }
        }
        Ok(Self(programs))
    }

    /// The program with this name: as is, without version (`python3.11`), in lower case, without `.exe`.
    pub(crate) fn get(&self, name: &str) -> Option<&Program> {
        self.exact(name).or_else(|| {
            if name.len() > LONGEST_NAME || name.is_empty() {
                return None;
            }
            let bare = name.strip_suffix(".exe").unwrap_or(name);
            let unversioned = bare.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'));
            let shorter = |part: &str| (part.len() < name.len()).then(|| self.exact(part)).flatten();
            let has_capitals = bare.bytes().any(|byte| byte.is_ascii_uppercase());
            shorter(bare)
                .or_else(|| shorter(unversioned).filter(|_| !unversioned.is_empty()))
                .or_else(|| has_capitals.then(|| self.exact(&bare.to_ascii_lowercase())).flatten())
                .or_else(|| self.exact("mkfs").filter(|_| bare.starts_with("mkfs.")))
        })
    }

    pub(crate) fn exact(&self, name: &str) -> Option<&Program> {
        self.0.get(name).map(Arc::as_ref)
    }

    pub(crate) fn knows(&self, name: &str) -> bool {
        self.exact(name).is_some_and(|program| program.style != Style::Windows || !WORDS.contains(&name))
    }

    /// The rows: the file, the names, and the harmless and the harmful example.
    #[cfg(test)]
    pub(crate) fn examples() -> Vec<(&'static str, String, Option<String>, Option<String>)> {
        let documents = FILES.iter().map(|(file, text)| (*file, toml::from_str::<text::Document>(text).unwrap()));
        documents
            .flat_map(|(file, document)| document.program.into_iter().map(move |row| (file, row)))
            .map(|(file, row)| (file, row.names, row.example, row.harmful))
            .collect()
    }
}

/// Names of Windows commands that are words as well.
const WORDS: &[&str] = &[
    "copy", "move", "del", "erase", "format", "start", "net", "reg", "sc", "rd", "md", "ren", "cls", "title", "color",
    "more", "where", "choice", "assoc", "path", "call", "cipher", "query", "print", "replace", "compact", "convert",
    "label", "tree", "type", "find", "sort",
];
/// Maximum length of a program's name, in bytes.
const LONGEST_NAME: usize = 64;

/// The files of rows.
const FILES: &[(&str, &str)] = &[
    ("build.toml", include_str!("../data/programs/build.toml")),
    ("cloud.toml", include_str!("../data/programs/cloud.toml")),
    ("files-archive.toml", include_str!("../data/programs/files-archive.toml")),
    ("files-change.toml", include_str!("../data/programs/files-change.toml")),
    ("files-transfer.toml", include_str!("../data/programs/files-transfer.toml")),
    ("files.toml", include_str!("../data/programs/files.toml")),
    ("frameworks.toml", include_str!("../data/programs/frameworks.toml")),
    ("git.toml", include_str!("../data/programs/git.toml")),
    ("interp.toml", include_str!("../data/programs/interp.toml")),
    ("javascript.toml", include_str!("../data/programs/javascript.toml")),
    ("network.toml", include_str!("../data/programs/network.toml")),
    ("packages.toml", include_str!("../data/programs/packages.toml")),
    ("python.toml", include_str!("../data/programs/python.toml")),
    ("shell.toml", include_str!("../data/programs/shell.toml")),
    ("system.toml", include_str!("../data/programs/system.toml")),
    ("text.toml", include_str!("../data/programs/text.toml")),
    ("vcs.toml", include_str!("../data/programs/vcs.toml")),
    ("windows.toml", include_str!("../data/programs/windows.toml")),
];

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    /// The options of a row and of its subcommands.
    fn options(row: &text::Row, found: &mut BTreeSet<String>) {
        let keys = row.options.keys().map(String::as_str);
        let words = [row.calm.as_str(), row.values.as_str()].into_iter().chain(keys).flat_map(str::split_whitespace);
        let names = words.map(|word| word.split('=').next().unwrap_or(word));
        found.extend(names.filter(|name| name.len() > 1 && name.starts_with(['-', '+'])).map(str::to_owned));
        row.sub.iter().for_each(|sub| options(sub, found));
    }

    /// The lines `name: option...` of a list that `tools/programs/manuals check` wrote.
    fn listed(file: &str) -> BTreeMap<String, BTreeSet<String>> {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/programs").join(file);
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.map(|(name, rest)| (name.to_owned(), rest.split_whitespace().map(str::to_owned).collect())).collect()
    }

    #[test]
    fn options_were_looked_up_in_the_manual_of_their_program() {
        let (confirmed, unconfirmed) = (listed("confirmed.txt"), listed("unconfirmed.txt"));
        let mut strange = Vec::new();
        for (file, text) in FILES {
            let document: text::Document = toml::from_str(text).unwrap();
            for row in &document.program {
                let name = row.names.split_whitespace().next().unwrap();
                let Some(known) = confirmed.get(name) else { continue };
                let mut given = BTreeSet::new();
                options(row, &mut given);
                let is_listed = |option: &&String| {
                    known.contains(*option) || unconfirmed.get(name).is_some_and(|list| list.contains(*option))
                };
                let missing: Vec<&String> = given.iter().filter(|option| !is_listed(option)).collect();
                if !missing.is_empty() {
                    strange.push(format!("{file} {name}: {missing:?}"));
                }
            }
        }
        assert!(strange.is_empty(), "run tools/programs/manuals check: {}", strange.join("\n"));
        let count = |lists: &BTreeMap<String, BTreeSet<String>>| lists.values().map(BTreeSet::len).sum::<usize>();
        // Other builds of the same programs have them, or aliases that share the row.
        assert!(count(&unconfirmed) * 5 < count(&confirmed));
    }
}
