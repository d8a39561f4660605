//! The lexicon: risk cues from TOML files, the programs of command lines, and the word table for requests and names.
//! It is built once per process.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use rulekeep_types::{Error, Operation, Resource};

use super::document::Document;
use super::language::floor::is_danger;
use super::learned::{IntentTable, Vocabulary as _};
use super::programs::Programs;
use super::reading::Act;
use super::roles::Roles;
use super::sign::Sign;
use super::table::Table;

/// Risk cues, command-line programs and the word table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lexicon {
    cues: Table<Sign>,
    /// Cues of several words by their first word, longest first.
    phrases: Table<Vec<Phrase>>,
    pub(crate) programs: Programs,
    /// The trained word table.
    table: Option<Arc<IntentTable>>,
    /// The acts that names of tools were read as by this lexicon.
    pub(crate) names: ReadNames,
}

impl Lexicon {
    /// Adds the entries of a TOML text.
    fn with(mut self, text: &str) -> Result<Self, Error> {
        let document = Document::read(text)?;
        self.add_words(&document)?;
        Ok(self)
    }

    /// Returns the built-in lexicon, built on first use.
    pub(crate) fn shared() -> Result<Arc<Self>, Error> {
        static BUILTIN: OnceLock<Result<Arc<Lexicon>, Error>> = OnceLock::new();
        BUILTIN.get_or_init(|| Ok(Arc::new(Self::untrained()?.with_table(IntentTable::shared()?)))).clone()
    }

    /// Builds the built-in lexicon without the word table.
    pub(crate) fn untrained() -> Result<Self, Error> {
        super::format::check_tables()?;
        let programs = Programs::builtin();
        let words = |programs| Self { programs, ..Self::default() }.with(include_str!("data/words.toml"));
        let read = programs.and_then(words);
        read.map_err(|error| Error::internal("the built-in lexicon does not read").caused_by(error))
    }

    /// The word table that English requests are read by.
    pub(crate) fn table(&self) -> Option<&IntentTable> {
        self.table.as_deref()
    }

    /// Returns the same lexicon with another word table.
    pub(crate) fn with_table(self, table: Arc<IntentTable>) -> Self {
        Self { table: Some(table), names: ReadNames::default(), ..self }
    }

    /// The sign that a lower-case word shows.
    pub(crate) fn cue(&self, word: &str) -> Option<Sign> {
        self.cues.get(word).copied()
    }

    /// The phrases that start with this word, longest first.
    pub(crate) fn phrases(&self, first: &str) -> &[Phrase] {
        self.phrases.get(first).map_or(&[], Vec::as_slice)
    }

    /// Returns whether the lexicon knows a lower-case word.
    pub(crate) fn knows(&self, word: &str) -> bool {
        Roles::of(word).is_small()
            || self.cues.contains_key(word)
            || self.table().is_some_and(|table| table.knows(word))
            || !self.phrases(word).is_empty()
    }

    /// Returns whether a word is English, not only the name of a program.
    pub(crate) fn is_english(&self, word: &str) -> bool {
        use Resource::{Code, Config, Database, Network, System};
        let named = || self.table().and_then(|table| table.names(word));
        let is_technical = |resource| matches!(resource, Code | Config | Database | Network | System);
        Roles::of(word).is_small() || self.is_verb(word) || named().is_some_and(|resource| !is_technical(resource))
    }

    /// Returns whether a word is a verb in its base form, which may start an order.
    pub(crate) fn is_verb(&self, word: &str) -> bool {
        self.table().is_some_and(|table| table.opens(word) && !table.is_inflected(word)) && !Roles::of(word).is_small()
    }

    /// Returns whether a word states a deed in the third person, as "deletes".
    pub(crate) fn is_deed(&self, word: &str) -> bool {
        let base = self.table().filter(|_| word.ends_with('s')).and_then(|table| table.base_of_deed(word));
        base.is_some_and(|base| self.is_verb(&base))
    }

    /// Returns whether a word is a known noun.
    pub(crate) fn is_noun(&self, word: &str) -> bool {
        self.table().is_some_and(|table| table.names(word).is_some())
    }

    /// The operation of a verb in its base form, and its default resource.
    pub(crate) fn deed(&self, verb: &str) -> Option<(Operation, Resource)> {
        self.table().filter(|_| self.is_verb(verb))?.deed(verb)
    }

    /// For an inflected word of the danger floor, the base verb and its operation.
    pub(crate) fn danger<'w>(&self, word: &'w str) -> Option<(Cow<'w, str>, Operation)> {
        let base = self.table().filter(|_| is_danger(word))?.base(word);
        let (operation, _) = self.deed(&base)?;
        Some((base, operation))
    }

    /// Returns whether a word is in the danger floor, or a verb that does more than read or write.
    pub(crate) fn is_dangerous(&self, word: &str) -> bool {
        let acts = |operation| !matches!(operation, Operation::Read | Operation::Write | Operation::Unknown);
        is_danger(word) || self.deed(word).is_some_and(|(operation, _)| acts(operation))
    }

    fn add_words(&mut self, document: &Document) -> Result<(), Error> {
        for (place, group) in document.cues.iter().enumerate() {
            if group.words.split([',', ' ', '\n']).all(str::is_empty) {
                let message = format!("group {}: words is empty; expected at least one word", place + 1);
                return Err(Error::input("cues", message));
            }
            let sign = Sign::from_word(&group.sign)
                .ok_or_else(|| Error::input("sign", not_one_of(&group.sign, Sign::WORDS)))?;
            for word in listed(&group.words) {
                self.add_cue(word, sign);
            }
        }
        Ok(())
    }

    /// Adds a cue word or a phrase of several words.
    fn add_cue(&mut self, spelling: &str, sign: Sign) {
        let Some((first, rest)) = spelling.split_once(' ') else {
            self.cues.insert(spelling.into(), sign);
            return;
        };
        let phrases = self.phrases.entry(first.into()).or_default();
        let rest: Box<[Box<str>]> = rest.split(' ').map(Into::into).collect();
        match phrases.iter_mut().find(|phrase| phrase.rest == rest) {
            Some(known) => known.cue = sign,
            None => phrases.push(Phrase { rest, cue: sign }),
        }
        phrases.sort_by_key(|phrase| std::cmp::Reverse(phrase.rest.len()));
    }
}

/// A cache of the acts that names of tools were read as. Agents call the same few tools again and again, and reading a
/// name costs as much as reading a sentence. A clone is empty.
#[derive(Debug, Default)]
pub(crate) struct ReadNames(
    // Held to look up or to add a name. Names come from requests, hence the hash that is keyed at random.
    RwLock<HashMap<Box<str>, Arc<[Act]>>>,
);

impl Clone for ReadNames {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl ReadNames {
    /// Returns the acts of a name, from the cache or from `read`.
    pub(crate) fn acts(&self, name: &str, read: impl FnOnce() -> Vec<Act>) -> Vec<Act> {
        if !is_plain_name(name) {
            return read();
        }
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).map(Arc::clone);
        if let Some(known) = known {
            return known.to_vec();
        }
        let acts = read();
        let mut names = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if names.len() < MOST_NAMES {
            names.insert(name.into(), acts.as_slice().into());
        }
        acts
    }
}

/// Returns whether a name looks like that of a tool. Neither sentences nor keys are remembered.
fn is_plain_name(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'/');
    let digits = name.bytes().filter(u8::is_ascii_digit).count();
    name.len() <= LONGEST_NAME && digits <= MOST_DIGITS && name.bytes().all(is_part)
}

/// Names of tools that are remembered, at the most.
const MOST_NAMES: usize = 1024;
/// Longest name that is remembered, in bytes.
const LONGEST_NAME: usize = 64;
/// Most digits of a name that is remembered: keys have more.
const MOST_DIGITS: usize = 2;

/// A cue of several words: what follows the first.
#[derive(Debug, Clone)]
pub(crate) struct Phrase {
    pub rest: Box<[Box<str>]>,
    pub cue: Sign,
}

/// The comma-separated words and phrases of a text.
fn listed(words: &str) -> impl Iterator<Item = &str> {
    words.split(',').map(str::trim).filter(|word| !word.is_empty())
}

fn not_one_of(word: &str, known: &[&str]) -> String {
    let start: String = word.chars().take(LONGEST_QUOTE).collect();
    format!("{start:?} is not known; expected one of {}", known.join(" "))
}

/// Maximum number of characters of a word that an error quotes.
const LONGEST_QUOTE: usize = 40;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Lexicon, Error> {
        Lexicon::default().with(text)
    }

    #[test]
    fn the_builtin_lexicon_reads() {
        assert!(Lexicon::shared().is_ok(), "{:?}", Lexicon::shared().err());
    }

    #[test]
    fn a_name_is_read_once_and_by_its_own_table() {
        let names = ReadNames::default();
        let once = || names.acts("send_email", || vec![Act::unknown()]);
        assert_eq!(once().len(), 1);
        assert_eq!(names.acts("send_email", Vec::new).len(), 1, "as it was read before");
        assert_eq!(names.clone().acts("send_email", Vec::new).len(), 0, "another table reads for itself");
        for name in ["x".repeat(LONGEST_NAME + 1).as_str(), "two words", "ghp_1a2b3c"] {
            assert_eq!([names.acts(name, || vec![Act::unknown()]).len(), names.acts(name, Vec::new).len()], [1, 0]);
        }
    }

    #[test]
    fn a_faulty_lexicon_says_what_was_expected() {
        for (text, expected) in [
            ("[[cues]]\nsign = \"loud\"\nwords = \"zap\"", "expected one of override conceal"),
            ("[[cues]]\nsign = \"bulk\"\nwords = \"\"", "group 1: words is empty"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
