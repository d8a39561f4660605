//! The order of a query's records, and the place in its answer where a page ended.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{InvalidValue, closed_words};

closed_words! {
    /// In which order a query's records come.
    #[derive(Default)]
    pub enum Order("order") {
        /// The last decision first.
        #[default]
        NewestFirst = "newest",
        /// The first decision first.
        OldestFirst = "oldest",
    }
}

/// A place in the answer to a query. Pages that are fetched by it neither repeat
/// nor miss a record while new ones are written: they are pages of what was
/// there when the first of them was asked for.
///
/// It is written as a text that means nothing to its reader and holds for the
/// same query of the same log only; [`ProofCursor::START`] is `start`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProofCursor(pub(crate) Option<CursorPlace>);

/// Where a page ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CursorPlace {
    /// What follows from the query and the numbers below.
    pub(crate) check: [u8; 8],
    /// How many entries the journal had at the first page.
    pub(crate) entries: u64,
    /// The last record handed out.
    pub(crate) last: u64,
    /// The page that ended with it, counted from 1.
    pub(crate) page: u64,
}

impl ProofCursor {
    /// The start of any query's answer.
    pub const START: Self = Self(None);
}

impl fmt::Display for ProofCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(CursorPlace { check, entries, last, page }) = &self.0 else { return f.write_str(START) };
        write!(f, "{VERSION}{}{entries:016x}{last:016x}{page:016x}", hex::encode(check))
    }
}

impl FromStr for ProofCursor {
    type Err = InvalidValue;

    fn from_str(text: &str) -> Result<Self, InvalidValue> {
        if text == START {
            return Ok(Self::START);
        }
        let place = || {
            let digits = text.strip_prefix(VERSION)?;
            let mut bytes = [0; 32];
            hex::decode_to_slice(digits, &mut bytes).ok()?;
            let (words, _) = bytes.as_chunks::<8>();
            let [check, entries, last, page] = words.try_into().ok()?;
            let [entries, last, page] = [entries, last, page].map(u64::from_be_bytes);
            Some(Self(Some(CursorPlace { check, entries, last, page })))
        };
        // One place has one spelling.
        place()
            .filter(|cursor| cursor.to_string() == text)
            .ok_or_else(|| InvalidValue::new("cursor", text, "start, or the nextCursor of a page of the same query"))
    }
}

impl Serialize for ProofCursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ProofCursor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

const START: &str = "start";
const VERSION: &str = "c1";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_reads_back_and_has_one_spelling() {
        let place = CursorPlace { check: [1, 2, 3, 4, 5, 6, 7, 0xab], entries: 9, last: u64::MAX, page: 3 };
        for cursor in [ProofCursor::START, ProofCursor(Some(place))] {
            assert_eq!(cursor.to_string().parse::<ProofCursor>().unwrap(), cursor);
        }
        let text = ProofCursor(Some(place)).to_string();
        for wrong in [&text.to_uppercase(), &text[1..], &text[..text.len() - 1], "", "START", "c1", "é1"] {
            assert!(wrong.parse::<ProofCursor>().is_err(), "{wrong}");
        }
    }
}
