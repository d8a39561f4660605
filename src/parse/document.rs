//! The form of the lexicon's files.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::model::Error;

/// A lexicon's text as TOML lays it out.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Document {
    pub cues: Vec<CueGroup>,
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

/// Words that show one sign, between commas.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CueGroup {
    pub words: String,
    pub sign: String,
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
