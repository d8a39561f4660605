//! The lexicon: verbs, nouns, cues, rules and programs, read from TOML and laid
//! out for lookup by word, once a process.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::model::{Error, Operation, Resource};

use super::document::Document;
use super::inflect;
pub(crate) use super::inflect::Form;
use super::learned::IntentTable;
use super::programs::Programs;
use super::sign::Sign;
use super::table::Table;

/// The words that names of tools and their arguments are read by, and the programs of command lines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Lexicon {
    words: Table<Entry>,
    /// Entries of several words, by their first word, the longest first.
    phrases: Table<Vec<Phrase>>,
    verbs: Vec<Verb>,
    nouns: Vec<Noun>,
    rules: Vec<Rule>,
    /// The places of the rules that name a verb, by its lemma, and of those that name none.
    rules_of: Table<Vec<u16>>,
    rules_of_any: Vec<u16>,
    /// Irregular forms and the verbs that they are of: those of an earlier text hold for a later one's verbs.
    irregular: BTreeMap<String, String>,
    /// The classes of verbs, by lemma.
    classes: Table<Classes>,
    pub(crate) programs: Programs,
    /// What is known of the words of requests.
    table: Option<Arc<IntentTable>>,
}

impl Lexicon {
    /// The lexicon with the entries of a text.
    fn with(mut self, text: &str) -> Result<Self, Error> {
        let mut document = Document::read(text)?;
        document.lower();
        self.add_words(&document)?;
        self.add_rules(&document)?;
        self.programs.add(&document)?;
        Ok(self)
    }

    /// The built-in lexicon, read on first use.
    pub(crate) fn shared() -> Result<Arc<Self>, Error> {
        static BUILTIN: OnceLock<Result<Arc<Lexicon>, Error>> = OnceLock::new();
        BUILTIN.get_or_init(|| Ok(Arc::new(Self::of_names()?.with_table(IntentTable::shared()?)))).clone()
    }

    /// The built-in lexicon without the table of words.
    pub(crate) fn of_names() -> Result<Self, Error> {
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

    /// All verbs, in the order in which they were read.
    pub(crate) fn verbs(&self) -> impl Iterator<Item = &Verb> {
        self.verbs.iter()
    }

    pub(crate) fn verb(&self, id: VerbId) -> &Verb {
        // INVARIANT: ids are handed out by this lexicon alone; a foreign one reads as the fallback.
        self.verbs.get(usize::from(id.0)).unwrap_or(&Verb::FALLBACK)
    }

    pub(crate) fn noun(&self, id: NounId) -> &Noun {
        self.nouns.get(usize::from(id.0)).unwrap_or(&Noun::FALLBACK)
    }

    /// What the rules make of a verb on a resource; the last rule that fits decides,
    /// so that a user's own come before the built-in ones.
    pub(crate) fn rule(&self, verb: &Verb, resource: Resource, noun: &str, after: &str) -> Option<&Rule> {
        // Of the rules that name this verb and of those that name none, the later decides.
        let named = self.rules_of.get(&*verb.lemma).map_or(&[][..], Vec::as_slice);
        let find = |places: &[u16]| {
            places.iter().rev().find_map(|&place| {
                let rule = self.rules.get(usize::from(place))?;
                rule.fits(verb, resource, noun, after).then_some((place, rule))
            })
        };
        let (one, other) = (find(named), find(&self.rules_of_any));
        [one, other].into_iter().flatten().max_by_key(|(place, _)| *place).map(|(_, rule)| rule)
    }

    fn add_words(&mut self, document: &Document) -> Result<(), Error> {
        for (name, verbs) in &document.classes {
            let class =
                Class::from_word(name).ok_or_else(|| Error::input("classes", not_one_of(name, Class::WORDS)))?;
            for verb in verbs.split_whitespace() {
                self.classes.entry(verb.into()).or_default().add(class);
            }
        }
        for verb in &mut self.verbs {
            verb.classes = self.classes.get(&*verb.lemma).copied().unwrap_or_default();
        }
        self.irregular.extend(document.irregular.iter().map(|(form, verb)| (form.clone(), verb.clone())));
        for (place, group) in document.verbs.iter().enumerate() {
            expect_words("verbs", place, &group.words)?;
            let operation = word_of::<Operation>("operation", &group.operation)?;
            let resource = optional_word("resource", group.resource.as_deref())?;
            let always = optional_word("always", group.always.as_deref())?;
            for word in group.words.split_whitespace() {
                let lemma = word.replace('_', " ");
                let id = VerbId(count_of(self.verbs.len())?);
                let classes = self.classes.get(word).copied().unwrap_or_default();
                self.verbs.push(Verb { lemma: word.to_owned().into(), operation, resource, always, classes });
                for (form, spelling) in inflect::verb_forms(&lemma, &self.irregular) {
                    self.entry(&spelling, |entry| {
                        // A base form is never hidden by another verb's inflection ("found" and "find").
                        if form == Form::Base || entry.verb.is_none_or(|(_, known)| known != Form::Base) {
                            entry.verb = Some((id, form));
                        }
                    });
                }
            }
        }
        for (place, group) in document.nouns.iter().enumerate() {
            expect_words("nouns", place, &group.words)?;
            if !(1..=6).contains(&group.strength) {
                let message =
                    format!("{}: strength {}; expected 1 to 6", place_of(place, &group.words), group.strength);
                return Err(Error::input("nouns", message));
            }
            let resource = word_of::<Resource>("resource", &group.resource)?;
            for word in group.words.split(',').map(str::trim).filter(|word| !word.is_empty()) {
                let id = NounId(count_of(self.nouns.len())?);
                self.nouns.push(Noun { lemma: word.to_owned().into(), resource, strength: group.strength });
                for spelling in inflect::noun_forms(word) {
                    self.entry(&spelling, |entry| entry.noun = Some(id));
                }
            }
        }
        for (place, group) in document.cues.iter().enumerate() {
            expect_words("cues", place, &group.words)?;
            let sign = sign_of(&group.sign)?;
            for word in group.words.split(',').map(str::trim).filter(|word| !word.is_empty()) {
                self.entry(word, |entry| entry.cue = Some(sign));
                if matches!(sign, Sign::Sensitive | Sign::Secret) {
                    for plural in inflect::noun_forms(word) {
                        self.entry(&plural, |entry| entry.cue = entry.cue.or(Some(sign)));
                    }
                }
            }
        }
        for (name, words) in &document.functions {
            let function = Function::from_word(name)
                .ok_or_else(|| Error::input("functions", not_one_of(name, Function::WORDS)))?;
            for word in words.split(',').map(str::trim).filter(|word| !word.is_empty()) {
                self.entry(word, |entry| entry.function = Some(function));
            }
        }
        Ok(())
    }

    fn add_rules(&mut self, document: &Document) -> Result<(), Error> {
        for rule in &document.rules {
            let (resource, operation) = rule
                .gives
                .split_once(':')
                .ok_or_else(|| Error::input("rules", format!("{:?} is no resource:operation", rule.gives)))?;
            let place = count_of(self.rules.len())?;
            for verb in rule.verbs.split_whitespace() {
                self.rules_of.entry(verb.into()).or_default().push(place);
            }
            if rule.verbs.trim().is_empty() {
                self.rules_of_any.push(place);
            }
            self.rules.push(Rule {
                #[cfg(test)]
                verbs: rule.verbs.split_whitespace().map(Into::into).collect(),
                operation: optional_word("operation", rule.operation.as_deref())?,
                on: optional_word("on", rule.on.as_deref())?,
                nouns: rule.nouns.split(',').map(str::trim).filter(|noun| !noun.is_empty()).map(Into::into).collect(),
                after: rule.after.split_whitespace().map(Into::into).collect(),
                resource: word_of("gives", resource)?,
                gives: word_of("gives", operation)?,
                sign: rule.sign.as_deref().map(sign_of).transpose()?,
            });
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

/// What a word can be; it may be several things at once.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Entry {
    pub verb: Option<(VerbId, Form)>,
    pub noun: Option<NounId>,
    pub cue: Option<Sign>,
    pub function: Option<Function>,
}

/// An entry of several words: what follows the first.
#[derive(Debug, Clone)]
pub(crate) struct Phrase {
    pub rest: Box<[Box<str>]>,
    pub entry: Entry,
}

/// A verb's place in its lexicon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VerbId(u16);

/// A noun's place in its lexicon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NounId(u16);

/// A verb: what it does, and to what when the sentence does not say.
#[derive(Debug, Clone)]
pub(crate) struct Verb {
    /// The base form, words joined by underscores.
    pub lemma: std::borrow::Cow<'static, str>,
    pub operation: Operation,
    /// The resource when the sentence names none.
    pub resource: Option<Resource>,
    /// The resource whatever the sentence names.
    pub always: Option<Resource>,
    /// What it does to the roles of what it governs.
    pub classes: Classes,
}

impl Verb {
    const FALLBACK: Self = Self {
        lemma: std::borrow::Cow::Borrowed("unknown"),
        operation: Operation::Unknown,
        resource: None,
        always: None,
        classes: Classes(0),
    };

    /// Whether it belongs to the class.
    pub(crate) const fn is(&self, class: Class) -> bool {
        self.classes.has(class)
    }
}

/// Defines an enum whose values have names in data files.
macro_rules! named {
    ($(#[$says:meta])* $type:ident { $( $(#[$meta:meta])* $name:ident = $word:literal; )+ }) => {
        $(#[$says])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum $type { $( $(#[$meta])* $name ),+ }

        impl $type {
            const WORDS: &[&str] = &[$( $word ),+];

            fn from_word(word: &str) -> Option<Self> {
                match word { $( $word => Some(Self::$name), )+ _ => None }
            }
        }
    };
}

named! {
    /// What a verb does to what it governs.
    Class {
        /// Runs a command or a program: run, execute.
        Runs = "runs";
    }
}

/// A set of classes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Classes(u32);

impl Classes {
    const fn has(self, class: Class) -> bool {
        self.0 & (1 << class as u8) != 0
    }

    const fn add(&mut self, class: Class) {
        self.0 |= 1 << class as u8;
    }
}

/// A noun: the resource that it names, and how surely, from 1 to 6.
#[derive(Debug, Clone)]
pub(crate) struct Noun {
    pub lemma: std::borrow::Cow<'static, str>,
    pub resource: Resource,
    pub strength: u8,
}

impl Noun {
    const FALLBACK: Self =
        Self { lemma: std::borrow::Cow::Borrowed("thing"), resource: Resource::Unknown, strength: 1 };
}

named! {
    /// The grammatical work that a word does.
    Function {
        /// the, a, my, this
        Determiner = "determiner";
        /// of, in, from, with
        Preposition = "preposition";
        /// it, them, me
        Pronoun = "pronoun";
        /// can, could, would
        Modal = "modal";
        /// is, are, do, have
        Auxiliary = "auxiliary";
        /// what, who, when
        Question = "question";
        /// and, then, or
        Conjunction = "conjunction";
        /// please, kindly, also
        Filler = "filler";
        /// not, never, don't
        Negation = "negation";
        /// want, need, like, have (before "to")
        Want = "want";
        /// "don't forget to", "make sure to": the verb after it is asked for
        Lead = "lead";
        /// "how do i", "what does": asks about doing, not to do
        About = "about";
        /// "make sure that": tells how what is asked is to turn out
        Constraint = "constraint";
    }
}

/// What a verb on a resource, or on a noun, means beyond its class.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    #[cfg(test)]
    verbs: Vec<Box<str>>,
    operation: Option<Operation>,
    on: Option<Resource>,
    nouns: Vec<Box<str>>,
    after: Vec<Box<str>>,
    pub resource: Resource,
    pub gives: Operation,
    pub sign: Option<Sign>,
}

impl Rule {
    fn fits(&self, verb: &Verb, resource: Resource, noun: &str, after: &str) -> bool {
        // Whether it names the verb is told by the place where it was found.
        self.operation.is_none_or(|operation| operation == verb.operation)
            && self.on.is_none_or(|on| on == resource)
            && (self.nouns.is_empty() || self.nouns.iter().any(|known| **known == *noun))
            && (self.after.is_empty() || self.after.iter().any(|known| **known == *after))
    }
}

/// The built-in lexicon's files, in the order in which they are read.
const DATA: &[&str] = &[
    include_str!("data/words.toml"),
    include_str!("data/verbs.toml"),
    include_str!("data/nouns.toml"),
    include_str!("data/rules.toml"),
    include_str!("data/everyday_rules.toml"),
    include_str!("data/programs.toml"),
    include_str!("data/technical.toml"),
];

/// Refuses a group without a word: it was meant to say something.
fn expect_words(field: &'static str, place: usize, words: &str) -> Result<(), Error> {
    if words.split([',', ' ', '\n']).all(str::is_empty) {
        let message = format!("{}: words is empty; expected at least one word", place_of(place, words));
        return Err(Error::input(field, message));
    }
    Ok(())
}

/// Which group of its kind it is, and how its words begin.
fn place_of(place: usize, words: &str) -> String {
    let start: String = words.trim().chars().take(LONGEST_QUOTE).collect();
    format!("group {} ({start:?})", place + 1)
}

fn not_one_of(word: &str, known: &[&str]) -> String {
    let start: String = word.chars().take(LONGEST_QUOTE).collect();
    format!("{start:?} is not known; expected one of {}", known.join(" "))
}

/// Characters of a given word that an error quotes.
const LONGEST_QUOTE: usize = 40;

fn word_of<T: std::str::FromStr>(field: &'static str, word: &str) -> Result<T, Error>
where
    T::Err: std::fmt::Display,
{
    word.parse().map_err(|error: T::Err| Error::input(field, error.to_string()))
}

fn optional_word<T: std::str::FromStr>(field: &'static str, word: Option<&str>) -> Result<Option<T>, Error>
where
    T::Err: std::fmt::Display,
{
    word.map(|word| word_of(field, word)).transpose()
}

fn sign_of(word: &str) -> Result<Sign, Error> {
    Sign::from_word(word).ok_or_else(|| Error::input("sign", not_one_of(word, Sign::WORDS)))
}

fn count_of(length: usize) -> Result<u16, Error> {
    u16::try_from(length).map_err(|_| Error::input("lexicon", "expected at most 65,535 words of a class"))
}

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
    fn every_rule_and_class_names_words_that_the_lexicon_knows() {
        let lexicon = Lexicon::shared().unwrap();
        let mut strangers = Vec::new();
        for rule in &lexicon.rules {
            let unknown_verbs =
                rule.verbs.iter().filter(|verb| !lexicon.verbs.iter().any(|known| *known.lemma == ***verb));
            strangers.extend(unknown_verbs.map(|verb| format!("verb {verb}")));
            let unknown_nouns =
                rule.nouns.iter().filter(|noun| !lexicon.nouns.iter().any(|known| *known.lemma == ***noun));
            strangers.extend(unknown_nouns.map(|noun| format!("noun {noun}")));
        }
        let unknown_classed =
            lexicon.classes.keys().filter(|verb| !lexicon.verbs.iter().any(|known| *known.lemma == ***verb));
        strangers.extend(unknown_classed.map(|verb| format!("class of {verb}")));
        strangers.sort();
        strangers.dedup();
        assert!(strangers.is_empty(), "{strangers:?}");
    }

    #[test]
    fn a_faulty_lexicon_says_what_was_expected() {
        let error = read("[[verbs]]\nwords = \"zap\"\noperation = \"zapping\"").unwrap_err();
        assert!(error.to_string().contains("one of read write"), "{error}");
        for (text, expected) in [
            (
                "[[nouns]]\nresource = \"file\"\nwords = \"zap\"\nstrength = 9",
                "group 1 (\"zap\"): strength 9; expected 1 to 6",
            ),
            ("[[nouns]]\nresource = \"file\"\nwords = \"zap\"\nstrength = 0", "strength 0; expected 1 to 6"),
            ("[[cues]]\nsign = \"loud\"\nwords = \"zap\"", "expected one of override conceal"),
            ("[simple]\n\"file:read low read_file\" = \"zap\"", "\"low\" is no level; expected LOW, MEDIUM"),
            ("[[nouns]]\nresource = \"file\"\nwords = \" , \"", "group 1 (\",\"): words is empty"),
            ("[[verbs]]\noperation = \"read\"\nwords = \"\"", "words is empty"),
            ("[[cues]]\nsign = \"bulk\"\nwords = \"\"", "words is empty"),
            ("[classes]\nzaps = \"read\"", "expected one of runs"),
            ("[functions]\nzap = \"x\"", "expected one of determiner"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
