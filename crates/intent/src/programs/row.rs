//! A program as the shell reader uses it.

use rulekeep_types::facts::Role;
use rulekeep_types::{Error, Operation, Resource};

use super::meaning::{Language, Means, Slot, Takes};
use super::rule::Rule;
use super::text::Row;
use crate::table::{WordSet, Words};

/// The grammar of a program's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Style {
    #[default]
    Gnu,
    /// Long options behind a single dash.
    Single,
    Find,
    Tar,
    /// Plain words of the form `key=value`.
    Dd,
    Windows,
    PowerShell,
}

/// The place of the code that a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runs {
    Folder,
    Code,
}

/// The use that a program makes of its standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Input {
    #[default]
    Calm,
    /// A shell reads it.
    Run,
    Code(Language),
    Paths,
    Patch,
    Secret,
    Schedule,
    Send,
}

/// A program, or one of its subcommands.
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that a program may do")]
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    /// The name in the row's first place.
    pub(crate) name: Box<str>,
    pub(crate) style: Style,
    pub(crate) rules: Vec<Rule>,
    pub(crate) bare: Vec<Rule>,
    pub(crate) slots: Vec<Slot>,
    /// The role of the working folder in a command without operands.
    pub(crate) here: Option<Slot>,
    pub(crate) verbs: Option<Resource>,
    pub(crate) is_loose: bool,
    pub(crate) runs: Option<Runs>,
    pub(crate) input: Input,
    pub(crate) yields_paths: bool,
    pub(crate) is_elsewhere: bool,
    /// Whether the effects reach the whole machine, or a service elsewhere; of a subcommand, if it differs.
    pub(crate) leaves: Option<bool>,
    pub(crate) is_root: bool,
    pub(crate) is_listed: bool,
    /// Options end at the first plain word.
    pub(crate) stops: bool,
    /// The first word is a key rather than a subcommand.
    pub(crate) has_keys: bool,
    options: Words<Means>,
    subs: Words<Program>,
    /// The beginnings of subcommands of several words.
    beginnings: WordSet,
    environment: Vec<(Box<str>, Means)>,
    config: Vec<(Box<str>, Means)>,
}

impl Program {
    pub(super) fn read(row: &Row) -> Result<Self, Error> {
        let faulty = |what: &str, found: &str| Error::input("program", format!("{what} {found:?} is not known"));
        let mut program = Self {
            name: row.names.split_whitespace().next().unwrap_or_default().into(),
            style: match row.style.as_deref() {
                None | Some("gnu") => Style::Gnu,
                Some("single") => Style::Single,
                Some("find") => Style::Find,
                Some("tar") => Style::Tar,
                Some("dd") => Style::Dd,
                Some("windows") => Style::Windows,
                Some("powershell") => Style::PowerShell,
                Some(other) => return Err(faulty("style", other)),
            },
            rules: Rule::read_all(row.act.as_deref().unwrap_or_default())?,
            bare: Rule::read_all(row.bare.as_deref().unwrap_or_default())?,
            slots: Slot::read_all(row.operands.as_deref().unwrap_or_default())?,
            here: Slot::read_all(row.here.as_deref().unwrap_or_default())?.first().copied(),
            verbs: row
                .verbs
                .as_deref()
                .map(|word| word.parse().map_err(|error| Error::input("program", format!("{error}"))))
                .transpose()?,
            is_loose: row.loose,
            runs: match row.runs.as_deref() {
                None => None,
                Some("folder") => Some(Runs::Folder),
                Some("code") => Some(Runs::Code),
                Some(other) => return Err(faulty("runs", other)),
            },
            input: match row.input.as_deref() {
                None | Some("calm") => Input::Calm,
                Some("run") => Input::Run,
                Some("sql") => Input::Code(Language::Sql),
                Some("paths") => Input::Paths,
                Some("patch") => Input::Patch,
                Some("secret") => Input::Secret,
                Some("schedule") => Input::Schedule,
                Some("send") => Input::Send,
                Some(other) => match Means::read(&other.replace(':', " "))?.takes {
                    Some(Takes::Code(language)) => Input::Code(language),
                    _ => return Err(faulty("input", other)),
                },
            },
            yields_paths: row.output.is_some(),
            is_elsewhere: row.elsewhere,
            leaves: row.leaves,
            is_root: row.root,
            is_listed: row.lists,
            stops: row.stops,
            has_keys: row.keys,
            ..Self::default()
        };
        let mut options = Words::default();
        let fields = [(&row.calm, Means::calm()), (&row.values, Means::value())];
        let lists = fields.iter().map(|(keys, means)| (keys.as_str(), means.clone()));
        let others = row.options.iter().map(|(keys, effect)| Means::read(effect).map(|means| (keys.as_str(), means)));
        for entry in lists.map(Ok).chain(others) {
            let (keys, means) = entry?;
            for key in keys.split_whitespace() {
                program.add_option(&mut options, key, &means)?;
            }
        }
        if program.style == Style::PowerShell {
            // Those that every cmdlet has, unless the row says otherwise.
            for (keys, effect) in COMMON_PARAMETERS {
                for key in keys.split_whitespace() {
                    options.entry(key.to_owned()).or_insert(Means::read(effect)?);
                }
            }
        }
        program.options = options;
        for (names, text) in &row.subs {
            let (act, slots) = text.split_once(';').unwrap_or((text, ""));
            let sub = Self {
                name: program.name.clone(),
                style: program.style,
                rules: Rule::read_all(act)?,
                slots: Slot::read_all(slots)?,
                ..Self::default()
            };
            program.add_sub(names, &sub)?;
        }
        for row in &row.sub {
            let mut sub = Self::read(row)
                .map_err(|error| Error::input("program", format!("subcommand {}: {error}", row.names)))?;
            sub.name = program.name.clone();
            sub.style = program.style;
            program.add_sub(&row.names, &sub)?;
        }
        program.environment = keyed(&row.environment)?;
        program.config = keyed(&row.config)?;
        Ok(program)
    }

    fn add_option(&self, options: &mut Words<Means>, key: &str, means: &Means) -> Result<(), Error> {
        let (key, joined) = match key.strip_suffix('=') {
            Some(bare) if self.style != Style::Dd => (bare, true),
            _ => (key, false),
        };
        let key = if matches!(self.style, Style::Windows | Style::PowerShell) {
            key.to_ascii_lowercase()
        } else {
            key.to_owned()
        };
        let mut means = means.clone();
        if joined {
            means.takes = means.takes.or(Some(Takes::Text));
            means.joined = true;
        }
        if options.insert(key.clone(), means).is_some() {
            return Err(Error::input("program", format!("option {key} stands twice")));
        }
        Ok(())
    }

    fn add_sub(&mut self, names: &str, sub: &Self) -> Result<(), Error> {
        for name in names.split('|').map(str::trim) {
            let name = if matches!(self.style, Style::Windows) { name.to_ascii_lowercase() } else { name.to_owned() };
            for (end, _) in name.match_indices(' ') {
                self.beginnings.extend(name.get(..end).map(str::to_owned));
            }
            if self.subs.insert(name.clone(), sub.clone()).is_some() {
                return Err(Error::input("program", format!("subcommand {name} stands twice")));
            }
        }
        Ok(())
    }

    /// An option with its name as the row has it.
    pub(crate) fn entry(&self, name: &str) -> Option<(&str, &Means)> {
        self.options.get_key_value(name).map(|(key, means)| (key.as_str(), means))
    }

    /// All options with their names.
    pub(crate) fn options(&self) -> impl Iterator<Item = (&str, &Means)> {
        self.options.iter().map(|(name, means)| (name.as_str(), means))
    }

    /// Returns whether what the program does depends on a subcommand.
    pub(crate) fn has_subs(&self) -> bool {
        !self.subs.is_empty() || self.verbs.is_some()
    }

    /// The subcommand of exactly these words, which one blank separates.
    pub(crate) fn sub(&self, words: &str) -> Option<&Self> {
        self.subs.get(words)
    }

    /// All subcommands with their words.
    #[cfg(test)]
    pub(crate) fn subs(&self) -> impl Iterator<Item = (&str, &Self)> {
        self.subs.iter().map(|(name, sub)| (name.as_str(), sub))
    }

    /// Returns whether a longer subcommand begins with these words.
    pub(crate) fn may_go_on(&self, words: &str) -> bool {
        self.beginnings.contains(words)
    }

    /// Returns whether these plain words begin with a subcommand.
    pub(crate) fn begins_with_sub(&self, plain: &[&str]) -> bool {
        (1..=plain.len().min(MOST_WORDS))
            .any(|length| plain.get(..length).is_some_and(|words| self.subs.contains_key(&words.join(" "))))
    }

    /// Returns whether the program works in one of several environments, even if its command names none.
    pub(crate) fn has_environments(&self) -> bool {
        self.environment.iter().any(|(_, means)| means.takes == Some(Takes::Environment))
    }

    /// The meaning of a variable set for the program.
    pub(crate) fn variable(&self, name: &str) -> Option<&Means> {
        find(&self.environment, name)
    }

    /// The meaning of a key of the program's settings.
    pub(crate) fn setting(&self, key: &str) -> Option<&Means> {
        find(&self.config, key)
    }

    /// Returns whether settings make the program run others.
    pub(crate) fn has_settings(&self) -> bool {
        !self.config.is_empty()
    }

    /// Returns whether the program runs the lines that it is told: those of its input, or a command among its words.
    pub(crate) fn runs_lines(&self) -> bool {
        matches!(self.input, Input::Run | Input::Schedule)
            || self.slots.iter().any(|slot| matches!(slot.takes, Takes::RunRest | Takes::RunText))
    }

    /// Returns whether the program runs its input, or sends it away.
    pub(crate) const fn applies_input(&self) -> bool {
        matches!(self.input, Input::Run | Input::Code(_) | Input::Send)
    }

    /// Returns whether the program gets what an address names.
    pub(crate) fn fetches(&self) -> bool {
        self.slots.iter().any(|slot| slot.takes == Takes::Url) && self.subs.is_empty()
    }

    /// Returns whether the program can do more than read and print.
    pub(crate) fn may_harm(&self) -> bool {
        let takes = |takes: Takes| {
            matches!(takes, Takes::RunRest | Takes::RunText | Takes::Script | Takes::Code(_))
                || matches!(takes, Takes::Path { role: Role::Write | Role::Remove, .. })
        };
        !self.only_reads()
            || !self.subs.is_empty()
            || self.slots.iter().any(|slot| takes(slot.takes))
            || self.options.values().any(|means| !means.is_calm())
    }

    /// Returns whether the row states that something runs, or nothing.
    pub(crate) fn executes(&self) -> bool {
        let runs = |rule: &Rule| rule.capabilities.iter().any(|(_, operation)| *operation == Operation::Execute);
        self.rules.is_empty() || self.rules.iter().any(runs)
    }

    /// Returns whether all that the row states only reads, at the lowest risk.
    pub(crate) fn only_reads(&self) -> bool {
        self.rules.iter().all(Rule::only_reads)
    }
}

fn keyed(entries: &std::collections::BTreeMap<String, String>) -> Result<Vec<(Box<str>, Means)>, Error> {
    let mut found = Vec::new();
    for (keys, effect) in entries {
        let means = Means::read(effect)?;
        found.extend(keys.split_whitespace().map(|key| (key.to_ascii_lowercase().into(), means.clone())));
    }
    Ok(found)
}

/// The meaning of a name among patterns with `*`.
fn find<'m>(entries: &'m [(Box<str>, Means)], name: &str) -> Option<&'m Means> {
    let name = name.to_ascii_lowercase();
    entries.iter().find(|(key, _)| fits(key, &name)).map(|(_, means)| means)
}

fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            rest.is_empty() || (0..=name.len()).any(|at| name.get(at..).is_some_and(|name| fits(rest, name)))
        }),
    }
}

/// Parameters of every cmdlet, with their effects.
/// SOURCE: `about_CommonParameters` of PowerShell 7.
const COMMON_PARAMETERS: &[(&str, &str)] = &[
    ("-verbose -debug -vb -db -confirm -cf", "calm"),
    ("-erroraction -ea -errorvariable -ev -warningaction -wa -warningvariable -wv", "value"),
    (
        "-informationaction -informationvariable -outvariable -ov -outbuffer -ob -pipelinevariable -pv -progressaction",
        "value",
    ),
    ("-whatif -wi", "=LOW"),
];
/// Maximum number of words of a subcommand.
const MOST_WORDS: usize = 4;
