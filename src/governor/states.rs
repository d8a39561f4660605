//! States that the log stores as JSON under a key, and their notes.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::model::Error;
use crate::parse::conceal_text;
use crate::proof::StateDraft;

/// A state to be recorded.
pub(crate) fn draft(key: impl Into<String>, value: &impl Serialize) -> Result<StateDraft, Error> {
    let key = key.into();
    match serde_json::to_string(value) {
        Ok(text) => Ok(StateDraft::new(key, text)),
        Err(error) => Err(Error::internal(format!("the state {key:?} cannot be serialized")).caused_by(error)),
    }
}

/// Reads a state from the log.
pub(crate) fn read<T: DeserializeOwned>(key: &str, value: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(value)
        .map_err(|error| Error::storage(format!("the state {key:?} cannot be read")).caused_by(error))
}

/// The text with secrets redacted.
pub(crate) fn masked(text: &str) -> String {
    conceal_text(text).unwrap_or_else(|| text.to_owned())
}

/// A note for the record: at most 4,096 characters, with secrets redacted.
pub(crate) fn checked_note(note: &str) -> Result<String, Error> {
    const LONGEST: usize = 4096;
    if note.chars().count() > LONGEST {
        return Err(Error::input("note", format!("expected at most {LONGEST} characters")));
    }
    Ok(masked(note))
}
