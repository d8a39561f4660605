//! The file format of program rows.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A file of rows.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Document {
    pub(super) program: Vec<Row>,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a field of the file")]
/// A program or one of its subcommands. The head of `data/programs/README.md` explains each field.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Row {
    pub(super) names: String,
    pub(super) style: Option<String>,
    pub(super) act: Option<String>,
    /// The effect if the command has no operand and no option that says what is done.
    pub(super) bare: Option<String>,
    pub(super) operands: Option<String>,
    pub(super) here: Option<String>,
    pub(super) calm: String,
    pub(super) values: String,
    pub(super) options: BTreeMap<String, String>,
    pub(super) subs: BTreeMap<String, String>,
    pub(super) sub: Vec<Row>,
    pub(super) verbs: Option<String>,
    pub(super) loose: bool,
    pub(super) runs: Option<String>,
    pub(super) input: Option<String>,
    pub(super) output: Option<String>,
    pub(super) elsewhere: bool,
    pub(super) leaves: Option<bool>,
    pub(super) root: bool,
    pub(super) lists: bool,
    pub(super) stops: bool,
    pub(super) keys: bool,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) config: BTreeMap<String, String>,
    /// A harmless command, which a test reads.
    pub(super) example: Option<String>,
    /// A harmful command, which a test reads.
    pub(super) harmful: Option<String>,
}
