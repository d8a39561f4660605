//! The file format of the lexicon.

use serde::Deserialize;

use rulekeep_types::Error;

/// The content of a lexicon's TOML file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Document {
    pub cues: Vec<CueGroup>,
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
