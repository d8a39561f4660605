//! Both ends of training: clauses out, a table in. Used only by `tools/intent-model`.

use std::collections::BTreeSet;
use std::sync::OnceLock;

pub use super::rows::{Row, read as rows};
use crate::Parser;
use crate::language::tokenise;
use crate::lexicon::Lexicon;

use super::clause::{Stance, Vocabulary, clauses};
use super::relevance::{Relevance, ToolText};
use super::table::{Header, IntentTable, bytes_of};

/// A clause as the trainer sees it.
#[derive(Debug, serde::Serialize)]
pub struct TrainingClause {
    /// The stance of the clause.
    pub stance: &'static str,
    /// The words and placeholders of the clause.
    pub words: Vec<String>,
    /// The place of the word that starts the request, if any.
    pub head: Option<usize>,
}

struct Verbs<'v>(&'v BTreeSet<String>);

impl Vocabulary for Verbs<'_> {
    fn opens(&self, word: &str) -> bool {
        self.0.contains(word)
    }

    fn knows(&self, _: &str) -> bool {
        true
    }
}

/// Splits a text into clauses as the parser does with these verbs.
///
/// # Errors
///
/// [`crate::Error::Internal`] if the built-in data does not load.
pub fn clauses_of(text: &str, verbs: &BTreeSet<String>) -> Result<Vec<TrainingClause>, crate::Error> {
    // Without the table, which is being trained.
    static NAMES: OnceLock<Result<Lexicon, crate::Error>> = OnceLock::new();
    let lexicon = NAMES.get_or_init(Lexicon::untrained).as_ref().map_err(Clone::clone)?;
    let lower = text.to_ascii_lowercase();
    let tokens = tokenise(text, &lower, lexicon);
    let cut = clauses(&tokens, &Verbs(verbs));
    let stance = |stance| match stance {
        Stance::Asked => "asked",
        Stance::Forbidden => "forbidden",
        Stance::About => "about",
    };
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    Ok(cut
        .iter()
        .map(|clause| TrainingClause { stance: stance(clause.stance), words: owned(&clause.words), head: clause.head })
        .collect())
}

/// Packs a table: `header` as JSON, `keys` sorted by bytes, and as many rows of eight-bit weights.
///
/// # Errors
///
/// [`crate::Error::InvalidInput`] if the parts do not belong together.
pub fn pack(header: &str, keys: &[&str], rows: &[u8]) -> Result<Vec<u8>, crate::Error> {
    let wrong = |error: &dyn std::fmt::Display| crate::Error::input("table", error.to_string());
    let header: Header = serde_json::from_str(header).map_err(|error| wrong(&error))?;
    let map = fst::Map::from_iter(keys.iter().zip(0_u64..)).map_err(|error| wrong(&error))?;
    let bytes = bytes_of(header, map.as_fst().as_bytes(), rows).map_err(|error| wrong(&error))?;
    IntentTable::read(&bytes).map(|_| bytes)
}

/// Creates a parser that uses this table instead of the built-in one.
///
/// # Errors
///
/// [`crate::Error::Internal`] if the bytes are not a table.
pub fn parser(table: &[u8]) -> Result<Parser, crate::Error> {
    let table = std::sync::Arc::new(IntentTable::read(table)?);
    Ok(Parser::of(Lexicon::clone(&*Lexicon::shared()?).with_table(table)))
}

/// Rates how well each tool fits the request, given as name, description and parameters.
///
/// # Errors
///
/// [`crate::Error::Internal`] if the built-in data does not load.
pub fn relevance(request: &str, tools: &[[&str; 3]]) -> Result<Vec<f64>, crate::Error> {
    let lexicon = Lexicon::shared()?;
    let texts = tools.iter().map(|&[name, description, parameters]| ToolText { name, description, parameters });
    Ok(Relevance::of(texts, &lexicon).scores(request, &lexicon))
}

/// The digest of the rows that the built-in table was trained on, as recorded by the trainer.
///
/// # Errors
///
/// [`crate::Error::Internal`] if the built-in table does not load.
pub fn trained_on() -> Result<String, crate::Error> {
    IntentTable::shared().map(|table| table.trained_on().to_owned())
}
