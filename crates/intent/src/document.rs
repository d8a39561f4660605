//! The file format of the lexicon.

use std::collections::BTreeMap;

use serde::Deserialize;

use rulekeep_types::Error;

/// The content of a lexicon's TOML file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Document {
    pub cues: Vec<CueGroup>,
    /// Programs with a single rule: the rule, and the programs' names separated by blanks.
    pub simple: BTreeMap<String, String>,
    /// Programs with subcommands and flags, by name.
    pub program: BTreeMap<String, ProgramText>,
}

impl Document {
    pub(super) fn read(text: &str) -> Result<Self, Error> {
        toml::from_str(text).map_err(|error| Error::input("lexicon", error.to_string().replace('\n', " ")))
    }
}

/// Comma-separated words that show one sign.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CueGroup {
    pub words: String,
    pub sign: String,
}

/// A program: its effect by itself, by subcommand and by flag.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ProgramText {
    /// The effect if nothing below matches: `capability[,capability] RISK action`.
    pub rule: Option<String>,
    /// The resource of subcommands whose words name none.
    pub resource: Option<String>,
    /// The position of a command that the program runs: `rest`, `after-N`, `text`, `text-after-N`, `--` or a flag;
    /// several are separated by blanks.
    pub wraps: Option<String>,
    /// The same for each subcommand.
    pub wrap: BTreeMap<String, String>,
    /// Subcommands of one or more words; `|` separates synonyms.
    pub sub: BTreeMap<String, String>,
    /// Flags that change the effect.
    pub flag: BTreeMap<String, String>,
    /// Flags that take a value, separated by blanks, so that the value is not taken for a subcommand.
    pub values: String,
}
