//! The form of a lexicon's text: what `Lexicon::from_toml` reads.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::model::Error;

/// A lexicon's text as TOML lays it out.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Document {
    pub verbs: Vec<VerbGroup>,
    pub nouns: Vec<NounGroup>,
    pub cues: Vec<CueGroup>,
    pub rules: Vec<RuleText>,
    /// Kinds of small words, each with its words between commas.
    pub functions: BTreeMap<String, String>,
    /// Classes of verbs by the role that they give what they govern, each with its verbs between blanks.
    pub classes: BTreeMap<String, String>,
    /// Irregular forms: `sent = "send past"`.
    pub irregular: BTreeMap<String, String>,
    /// Programs that need no more than one rule: the rule, and their names between blanks.
    pub simple: BTreeMap<String, String>,
    /// Programs with subcommands and flags, by name.
    pub program: BTreeMap<String, ProgramText>,
}

impl Document {
    pub(super) fn read(text: &str) -> Result<Self, Error> {
        toml::from_str(text).map_err(|error| Error::input("lexicon", error.to_string().replace('\n', " ")))
    }
}

impl Document {
    /// Words in small letters: that is how a text is looked up.
    pub(super) fn lower(&mut self) {
        let groups = self.verbs.iter_mut().map(|group| &mut group.words);
        let groups = groups.chain(self.nouns.iter_mut().map(|group| &mut group.words));
        let groups = groups.chain(self.cues.iter_mut().map(|group| &mut group.words));
        let groups =
            groups.chain(self.rules.iter_mut().flat_map(|rule| [&mut rule.verbs, &mut rule.nouns, &mut rule.after]));
        let groups = groups.chain(self.functions.values_mut()).chain(self.classes.values_mut());
        for words in groups.filter(|words| words.chars().any(char::is_uppercase)) {
            *words = words.to_lowercase();
        }
    }
}

/// Verbs of one operation; a word's underscores are blanks in the text.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VerbGroup {
    pub words: String,
    pub operation: String,
    pub resource: Option<String>,
    pub always: Option<String>,
}

/// Nouns of one resource, between commas.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NounGroup {
    pub words: String,
    pub resource: String,
    #[serde(default = "usual_strength")]
    pub strength: u8,
}

/// Words that show one sign, between commas.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CueGroup {
    pub words: String,
    pub sign: String,
}

/// A rule: which verbs (or which operation) on which resource (or nouns) give what.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleText {
    #[serde(default)]
    pub verbs: String,
    pub operation: Option<String>,
    pub on: Option<String>,
    #[serde(default)]
    pub nouns: String,
    /// The prepositions of which one must open the noun's phrase, between blanks.
    #[serde(default)]
    pub after: String,
    pub gives: String,
    pub sign: Option<String>,
}

/// A program: what it does by itself, by subcommand and by flag.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ProgramText {
    /// What it does when nothing below matches: `capability[,capability] RISK action`.
    pub rule: Option<String>,
    /// The resource of its subcommands where their words name none.
    pub resource: Option<String>,
    /// Where a command stands that it runs: `rest`, `after-N`, `text`, `text-after-N`, `--`, a flag; several between blanks.
    pub wraps: Option<String>,
    /// The same for its subcommands.
    pub wrap: BTreeMap<String, String>,
    /// Subcommands of one or more words; `|` stands between names of one meaning.
    pub sub: BTreeMap<String, String>,
    /// Flags that decide.
    pub flag: BTreeMap<String, String>,
    /// Flags that take a value, between blanks, so that the value is not taken for a subcommand.
    pub values: String,
}

const fn usual_strength() -> u8 {
    3
}
