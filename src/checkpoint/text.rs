//! What all texts of this engine share: lines, numbers and hashes in one
//! spelling only.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::CheckpointError;
use crate::model::Digest;

/// The lines of a text of one kind, counted.
pub(super) struct Lines<'a> {
    what: &'static str,
    line: usize,
    rest: std::str::Split<'a, char>,
}

impl<'a> Lines<'a> {
    /// The lines of `text`, each of which ends in a newline; the last one may lack it.
    pub(super) fn new(what: &'static str, text: &'a str) -> Self {
        Self { what, line: 0, rest: text.strip_suffix('\n').unwrap_or(text).split('\n') }
    }

    /// The next line, read by `read`; absent or unreadable it is an error at its place.
    pub(super) fn read<T>(
        &mut self,
        expected: &'static str,
        read: impl FnOnce(&'a str) -> Option<T>,
    ) -> Result<T, CheckpointError> {
        let line = self.next();
        line.and_then(read).ok_or(CheckpointError::Malformed { what: self.what, line: self.line, expected })
    }

    /// The number of the next line.
    pub(super) const fn next_number(&self) -> usize {
        self.line + 1
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.line += 1;
        self.rest.next()
    }
}

/// A number in decimal digits, without a sign and without leading zeros.
pub(super) fn decimal(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

/// A hash in base 64, padded.
pub(super) fn hash(text: &str) -> Option<Digest> {
    bytes(text)?.try_into().ok().map(Digest::new)
}

/// Bytes in base 64, padded; one spelling for each.
pub(super) fn bytes(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// The text of bytes.
pub(super) fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// Whether a name can stand in a signature's line and in a key's text.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && !name.contains(|letter: char| letter == '+' || letter.is_whitespace() || letter.is_control())
}

/// Refuses a text that no honest one is as long as.
pub(super) const fn check_size(what: &'static str, text: &str, limit: usize) -> Result<(), CheckpointError> {
    if text.len() > limit { Err(CheckpointError::TooLarge { what, size: text.len(), limit }) } else { Ok(()) }
}

/// The longest name of a key.
const MAX_NAME_BYTES: usize = 256;
