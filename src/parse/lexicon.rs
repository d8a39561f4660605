//! What is known of words: the small words of English and the cues of risk, read from TOML and laid out for lookup
//! once a process; the programs of command lines; the table that requests and names are read by.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use crate::model::{Error, Operation, Resource};

use super::document::Document;
use super::language::is_danger;
use super::learned::{IntentTable, Vocabulary as _};
use super::programs::Programs;
use super::sign::Sign;
use super::table::Table;

/// The small words and cues, the programs of command lines, and the table of words.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lexicon {
    words: Table<Entry>,
    /// Entries of several words, by their first word, the longest first.
    phrases: Table<Vec<Phrase>>,
    pub(crate) programs: Programs,
    /// What is known of the words of requests.
    table: Option<Arc<IntentTable>>,
}

impl Lexicon {
    /// The lexicon with the entries of a text.
    fn with(mut self, text: &str) -> Result<Self, Error> {
        let document = Document::read(text)?;
        self.add_words(&document)?;
        self.programs.add(&document)?;
        Ok(self)
    }

    /// The built-in lexicon, read on first use.
    pub(crate) fn shared() -> Result<Arc<Self>, Error> {
        static BUILTIN: OnceLock<Result<Arc<Lexicon>, Error>> = OnceLock::new();
        BUILTIN.get_or_init(|| Ok(Arc::new(Self::untrained()?.with_table(IntentTable::shared()?)))).clone()
    }

    /// The built-in lexicon without the table of words.
    pub(crate) fn untrained() -> Result<Self, Error> {
        let read = DATA.iter().try_fold(Self::default(), |lexicon, text| lexicon.with(text));
        read.map_err(|error| Error::Internal { message: format!("the built-in lexicon does not read: {error}") })
    }

    /// The table of words by which requests in English are read.
    pub(crate) fn table(&self) -> Option<&IntentTable> {
        self.table.as_deref()
    }

    /// The same lexicon with another table of words.
    pub(crate) fn with_table(self, table: Arc<IntentTable>) -> Self {
        Self { table: Some(table), ..self }
    }

    /// The entry of one lower-case word.
    pub(crate) fn word(&self, word: &str) -> Option<Entry> {
        self.words.get(word).copied()
    }

    /// The phrases that start with this word, the longest first.
    pub(crate) fn phrases(&self, first: &str) -> &[Phrase] {
        self.phrases.get(first).map_or(&[], Vec::as_slice)
    }

    /// Whether anything is known of a lower-case word.
    pub(crate) fn knows(&self, word: &str) -> bool {
        self.word(word).is_some()
            || self.table().is_some_and(|table| table.knows(word))
            || !self.phrases(word).is_empty()
    }

    /// Whether it is one of the small words of English.
    pub(crate) fn is_small(&self, word: &str) -> bool {
        self.word(word).is_some_and(|entry| entry.function.is_some())
    }

    /// Whether it is a word of English by itself, not only the name of a program.
    pub(crate) fn is_english(&self, word: &str) -> bool {
        use Resource::{Code, Config, Database, Network, System};
        let named = || self.table().and_then(|table| table.names(word));
        let is_technical = |resource| matches!(resource, Code | Config | Database | Network | System);
        self.is_small(word) || self.is_verb(word) || named().is_some_and(|resource| !is_technical(resource))
    }

    /// Whether it is a verb in its base form, which may open an order.
    pub(crate) fn is_verb(&self, word: &str) -> bool {
        self.table().is_some_and(|table| table.opens(word) && !table.is_inflected(word)) && !self.is_small(word)
    }

    /// Whether it plainly names a thing.
    pub(crate) fn is_noun(&self, word: &str) -> bool {
        self.table().is_some_and(|table| table.names(word).is_some())
    }

    /// What a verb in its base form does, and to what where nothing is named.
    pub(crate) fn deed(&self, verb: &str) -> Option<(Operation, Resource)> {
        self.table().filter(|_| self.is_verb(verb))?.deed(verb)
    }

    /// The verb of which a word of the danger floor is a form, and what it does.
    pub(crate) fn danger<'w>(&self, word: &'w str) -> Option<(Cow<'w, str>, Operation)> {
        let base = self.table().filter(|_| is_danger(word))?.base(word);
        let (operation, _) = self.deed(&base)?;
        Some((base, operation))
    }

    /// Whether a word is one of the danger floor, or a verb that acts on something rather than looks at it.
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
                self.entry(word, |entry| entry.cue = Some(sign));
            }
        }
        for (name, words) in &document.functions {
            let function = Function::from_word(name)
                .ok_or_else(|| Error::input("functions", not_one_of(name, Function::WORDS)))?;
            for word in listed(words) {
                self.entry(word, |entry| entry.function = Some(function));
            }
        }
        Ok(())
    }

    /// Changes the entry of a word, or of a phrase of several.
    fn entry(&mut self, spelling: &str, change: impl FnOnce(&mut Entry)) {
        let Some((first, rest)) = spelling.split_once(' ') else {
            change(self.words.entry(spelling.into()).or_default());
            return;
        };
        let phrases = self.phrases.entry(first.into()).or_default();
        let rest: Box<[Box<str>]> = rest.split(' ').map(Into::into).collect();
        if let Some(known) = phrases.iter_mut().find(|phrase| phrase.rest == rest) {
            change(&mut known.entry);
            return;
        }
        let mut entry = Entry::default();
        change(&mut entry);
        phrases.push(Phrase { rest, entry });
        phrases.sort_by_key(|phrase| std::cmp::Reverse(phrase.rest.len()));
    }
}

/// What is known of a word or a phrase; it may be several things at once.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Entry {
    pub cue: Option<Sign>,
    pub function: Option<Function>,
}

/// An entry of several words: what follows the first.
#[derive(Debug, Clone)]
pub(crate) struct Phrase {
    pub rest: Box<[Box<str>]>,
    pub entry: Entry,
}

/// The grammatical work that a word does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    /// the, a, my, this
    Determiner,
    /// of, in, from, with
    Preposition,
    /// it, them, me
    Pronoun,
    /// can, could, would
    Modal,
    /// is, are, do, have
    Auxiliary,
    /// what, who, when
    Question,
    /// and, then, or
    Conjunction,
    /// please, kindly, also
    Filler,
    /// not, never, don't
    Negation,
    /// want, need, like, have (before "to")
    Want,
    /// "don't forget to", "make sure to": the verb after it is asked for
    Lead,
    /// "how do i", "what does": asks about doing, not to do
    About,
    /// "make sure that": tells how what is asked is to turn out
    Constraint,
}

impl Function {
    const WORDS: &[&str] = &[
        "determiner",
        "preposition",
        "pronoun",
        "modal",
        "auxiliary",
        "question",
        "conjunction",
        "filler",
        "negation",
        "want",
        "lead",
        "about",
        "constraint",
    ];

    fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "determiner" => Self::Determiner,
            "preposition" => Self::Preposition,
            "pronoun" => Self::Pronoun,
            "modal" => Self::Modal,
            "auxiliary" => Self::Auxiliary,
            "question" => Self::Question,
            "conjunction" => Self::Conjunction,
            "filler" => Self::Filler,
            "negation" => Self::Negation,
            "want" => Self::Want,
            "lead" => Self::Lead,
            "about" => Self::About,
            "constraint" => Self::Constraint,
            _ => return None,
        })
    }
}

/// The built-in lexicon's files, in the order in which they are read.
const DATA: &[&str] = &[include_str!("data/words.toml"), include_str!("data/programs.toml")];

/// The words and phrases between commas.
fn listed(words: &str) -> impl Iterator<Item = &str> {
    words.split(',').map(str::trim).filter(|word| !word.is_empty())
}

fn not_one_of(word: &str, known: &[&str]) -> String {
    let start: String = word.chars().take(LONGEST_QUOTE).collect();
    format!("{start:?} is not known; expected one of {}", known.join(" "))
}

/// Characters of a given word that an error quotes.
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
    fn a_faulty_lexicon_says_what_was_expected() {
        for (text, expected) in [
            ("[[cues]]\nsign = \"loud\"\nwords = \"zap\"", "expected one of override conceal"),
            ("[simple]\n\"file:read low read_file\" = \"zap\"", "\"low\" is no level; expected LOW, MEDIUM"),
            ("[[cues]]\nsign = \"bulk\"\nwords = \"\"", "group 1: words is empty"),
            ("[functions]\nzap = \"x\"", "expected one of determiner"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
