//! Sort orders and cursors of record queries.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{InvalidValue, closed_words};

closed_words! {
    /// The order of a query's records.
    #[derive(Default)]
    pub enum Order("order") {
        /// The latest decision comes first (the default).
        #[default]
        NewestFirst = "newest",
        /// The earliest decision comes first.
        OldestFirst = "oldest",
    }
}

/// A cursor: the position in a query's result at which a page ended.
///
/// Pages fetched by cursor neither repeat nor miss a record while new ones are written: they show the log as of the
/// first page. The text form is opaque and only valid for the same query on the same log; [`ProofCursor::START`] is
/// `start`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProofCursor(#[doc(hidden)] pub Option<CursorPlace>);

/// The position where a page ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CursorPlace {
    /// Check bytes derived from the query and the numbers below.
    pub check: [u8; 8],
    /// Number of journal entries when the first page was read.
    pub entries: u64,
    /// The position of the last record returned.
    pub last: u64,
    /// The number of the page that ended with it, counted from 1.
    pub page: u64,
}

impl ProofCursor {
    /// The start of any query's result.
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
        // Only the canonical spelling is accepted.
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
