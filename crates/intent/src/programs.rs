//! The program table: the effect of a command-line program by name, subcommand and flags.

use std::collections::{HashMap, HashSet};

use rulekeep_types::{Error, Operation, Resource, RiskLevel};

use super::document::{Document, ProgramText};
use super::sign::{Sign, Signs};

/// All programs by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Programs(HashMap<Box<str>, Program>);

impl Programs {
    pub(crate) fn get(&self, name: &str) -> Option<&Program> {
        self.0.get(name)
    }

    /// The program, with its name as stored in the table.
    pub(crate) fn entry(&self, name: &str) -> Option<(&str, &Program)> {
        self.0.get_key_value(name).map(|(name, program)| (&**name, program))
    }

    pub(crate) fn knows(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    pub(super) fn add(&mut self, document: &Document) -> Result<(), Error> {
        for (rule, names) in &document.simple {
            let rule = CommandRule::read(rule)?;
            for name in names.split_whitespace() {
                self.0.insert(name.into(), Program { rule: Some(rule.clone()), ..Program::default() });
            }
        }
        for (name, text) in &document.program {
            self.0.insert(name.as_str().into(), Program::read(text)?);
        }
        Ok(())
    }
}

/// One program.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    /// The effect if no subcommand or flag decides.
    pub rule: Option<CommandRule>,
    /// The resource of subcommands that are read by their verb.
    pub resource: Option<Resource>,
    /// The ways in which it runs another command; the first that fits its arguments applies.
    pub wraps: Vec<Wraps>,
    subcommands: HashMap<Box<str>, CommandRule>,
    /// The ways in which a subcommand runs another command: `docker exec box ls`.
    sub_wraps: HashMap<Box<str>, Vec<Wraps>>,
    flags: HashMap<Box<str>, FlagRule>,
    /// The maximum number of subcommand words that a flag rule is attached to.
    scopes: usize,
    values: HashSet<Box<str>>,
}

/// The position of the command that a program runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wraps {
    /// After its own flags and `plain` plain arguments: `sudo -u bob ls`, `timeout 5 ls`. As `text` the rest is
    /// joined and parsed by a shell again: `ssh host ls`.
    After { plain: usize, text: bool },
    /// After a word: `kubectl exec box -- ls`, `gdb --args ls`.
    AfterWord(Box<str>),
    /// In the argument of a flag: `bash -c 'ls'`.
    Flag(Box<str>),
}

impl Wraps {
    /// Parses `rest`, `after-1`, `text`, `text-after-1`, `--`, `=WORD` (after that word) or a flag; several are
    /// separated by blanks.
    fn read(text: &str) -> Result<Vec<Self>, Error> {
        text.split_whitespace()
            .map(|word| {
                let faulty = || {
                    Error::input(
                        "program",
                        format!("wraps {word:?}: expected rest, after-N, text, text-after-N, -- or a flag"),
                    )
                };
                let count = |count: &str| count.parse().map_err(|_| faulty());
                Ok(match word {
                    "--" => Self::AfterWord(word.into()),
                    "rest" => Self::After { plain: 0, text: false },
                    "text" => Self::After { plain: 0, text: true },
                    "after-first" => Self::After { plain: 1, text: false },
                    marked if marked.starts_with('=') => Self::AfterWord(marked.trim_start_matches('=').into()),
                    flag if flag.starts_with(['-', '/']) => Self::Flag(flag.into()),
                    other => match (other.strip_prefix("after-"), other.strip_prefix("text-after-")) {
                        (Some(plain), _) => Self::After { plain: count(plain)?, text: false },
                        (_, Some(plain)) => Self::After { plain: count(plain)?, text: true },
                        _ => return Err(faulty()),
                    },
                })
            })
            .collect()
    }
}

impl Program {
    fn read(text: &ProgramText) -> Result<Self, Error> {
        Ok(Self {
            rule: text.rule.as_deref().map(CommandRule::read).transpose()?,
            resource: text
                .resource
                .as_deref()
                .map(|word| word.parse().map_err(|error| Error::input("program", format!("{error}"))))
                .transpose()?,
            wraps: Wraps::read(text.wraps.as_deref().unwrap_or(""))?,
            subcommands: text
                .sub
                .iter()
                .flat_map(|(names, rule)| names.split('|').map(move |name| (name, rule)))
                .map(|(name, rule)| Ok((name.into(), CommandRule::read(rule)?)))
                .collect::<Result<_, Error>>()?,
            sub_wraps: text
                .wrap
                .iter()
                .flat_map(|(names, wraps)| names.split('|').map(move |name| (name, wraps)))
                .map(|(name, wraps)| Ok((name.into(), Wraps::read(wraps)?)))
                .collect::<Result<_, Error>>()?,
            flags: text
                .flag
                .iter()
                .flat_map(|(names, rule)| names.split('|').map(move |name| (name, rule)))
                .map(|(name, rule)| Ok((name.into(), FlagRule::read(rule)?)))
                .collect::<Result<_, Error>>()?,
            scopes: text.flag.keys().map(|name| name.matches(' ').count().min(MOST_SCOPED)).max().unwrap_or(0),
            values: text.values.split_whitespace().map(Into::into).collect(),
        })
    }

    /// The rule of the longest subcommand that the plain arguments start with.
    pub(crate) fn subcommand(&self, plain: &[&str]) -> Option<&CommandRule> {
        if self.subcommands.is_empty() {
            return None;
        }
        (1..=plain.len().min(4)).rev().find_map(|length| self.subcommands.get(plain.get(..length)?.join(" ").as_str()))
    }

    /// Returns whether what the program does depends on a subcommand.
    pub(crate) fn has_subcommands(&self) -> bool {
        !self.subcommands.is_empty()
    }

    /// Returns whether any subcommand runs other commands.
    pub(crate) fn wraps_by_subcommand(&self) -> bool {
        !self.sub_wraps.is_empty()
    }

    /// The ways in which the subcommand of exactly these words runs another command.
    pub(crate) fn subcommand_wraps(&self, words: &[&str]) -> Option<&[Wraps]> {
        self.sub_wraps.get(words.join(" ").as_str()).map(Vec::as_slice)
    }

    /// Returns whether flags may follow a plain argument: `su bob -c ls`.
    pub(crate) fn takes_early_plain(&self) -> bool {
        self.wraps.len() == 1 || self.wraps_by_subcommand()
    }

    /// The number of subcommand words that flag rules depend on: one for `git push -f`, two for `aws s3 sync
    /// --delete`.
    pub(crate) fn scoped_words(&self) -> usize {
        self.scopes
    }

    /// The rule of a flag; for a cluster or an assignment, the rule of its name.
    pub(crate) fn flag(&self, flag: &str) -> Option<&FlagRule> {
        let name = flag.split('=').next().unwrap_or(flag);
        let with_value = if name.len() < flag.len() { self.flags.get(flag) } else { None };
        with_value.or_else(|| self.flags.get(name)).or_else(|| {
            let letters = name.strip_prefix('-').filter(|rest| !rest.starts_with('-') && rest.len() > 1)?;
            // "pacman -Syu" is determined by "-S", "tar -xzf" by "-x".
            let mut one = String::from("-");
            let mut is_value = false;
            letters.chars().take_while(char::is_ascii_alphanumeric).take(LONGEST_CLUSTER).find_map(|letter| {
                one.truncate(1);
                one.push(letter);
                // "tar -Cdata": behind the letter stands its value.
                let is_behind = is_value;
                is_value |= self.values.contains(one.as_str());
                self.flags.get(one.as_str()).filter(|_| !is_behind)
            })
        })
    }

    /// Returns whether the flag takes the next word as its value.
    pub(crate) fn takes_value(&self, flag: &str) -> bool {
        self.values.contains(flag)
    }
}

/// Maximum number of letters of a flag cluster that are looked up.
const LONGEST_CLUSTER: usize = 16;
/// Maximum number of subcommand words that a flag rule can be attached to.
const MOST_SCOPED: usize = 2;

/// The effect of a command: `capability[,capability] RISK action [sign...]`.
#[derive(Debug, Clone)]
pub(crate) struct CommandRule {
    pub capabilities: Vec<(Resource, Operation)>,
    pub risk: RiskLevel,
    pub verb: Box<str>,
    pub noun: Box<str>,
    /// Further signs for the risk rubric.
    pub signs: Signs,
}

impl CommandRule {
    fn read(text: &str) -> Result<Self, Error> {
        let faulty =
            || Error::input("program", format!("{text:?}: expected \"resource:operation RISK verb_noun [sign]\""));
        let mut parts = text.split_whitespace();
        let (Some(capabilities), Some(risk), Some(action)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(faulty());
        };
        let mut signs = Signs::default();
        for word in parts {
            signs.add(Sign::from_word(word).ok_or_else(faulty)?);
        }
        let capabilities = capabilities
            .split(',')
            .map(|pair| {
                let (resource, operation) = pair.split_once(':').ok_or_else(faulty)?;
                Ok((resource.parse().map_err(|_| faulty())?, operation.parse().map_err(|_| faulty())?))
            })
            .collect::<Result<Vec<_>, Error>>()?;
        let (verb, noun) = action.split_once('_').ok_or_else(faulty)?;
        let risk = risk.parse().map_err(|_| {
            let message = format!("{text:?}: {risk:?} is not a risk level; expected LOW, MEDIUM, HIGH or CRITICAL");
            Error::input("program", message)
        })?;
        Ok(Self { capabilities, risk, verb: verb.into(), noun: noun.into(), signs })
    }
}

/// The effect of a flag on its command.
#[derive(Debug, Clone)]
pub(crate) enum FlagRule {
    /// Determines what is done.
    Is(CommandRule),
    /// Raises the risk to at least this level.
    AtLeast(RiskLevel),
    /// Makes it a trial without effect, at this risk.
    Only(RiskLevel),
}

impl FlagRule {
    fn read(text: &str) -> Result<Self, Error> {
        let level = |word: &str| {
            word.parse::<RiskLevel>().map_err(|error| Error::input("program", format!("flag rule {text:?}: {error}")))
        };
        if let Some(word) = text.strip_prefix('+') {
            return level(word).map(Self::AtLeast);
        }
        if let Some(word) = text.strip_prefix('=') {
            return level(word).map(Self::Only);
        }
        CommandRule::read(text).map(Self::Is)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_that_does_not_read_says_what_was_expected() {
        for text in [
            "file:read LOW",
            "file LOW read_file",
            "file:read MILD read_file",
            "file:read LOW read",
            "file:read LOW read_file mild",
        ] {
            assert!(CommandRule::read(text).unwrap_err().to_string().contains("expected"), "{text}");
        }
    }
}
