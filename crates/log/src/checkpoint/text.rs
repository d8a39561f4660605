//! Functions shared by all texts of this engine: lines, and numbers and hashes with exactly one valid spelling.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::CheckpointError;
use rulekeep_types::Digest;

/// The lines of a text, numbered.
pub(super) struct Lines<'a> {
    what: &'static str,
    line: usize,
    rest: std::str::Split<'a, char>,
}

impl<'a> Lines<'a> {
    /// Splits `text` into lines, each of which ends in a newline; the last one may lack it.
    pub(super) fn new(what: &'static str, text: &'a str) -> Self {
        Self { what, line: 0, rest: text.strip_suffix('\n').unwrap_or(text).split('\n') }
    }

    /// Parses the next line with `read`. Returns an error with the line number if it is missing or invalid.
    pub(crate) fn read<T>(
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

/// Parses a decimal number without sign and leading zeros.
pub(super) fn decimal(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if plain { text.parse().ok() } else { None }
}

/// Parses a hash in padded base 64.
pub(super) fn hash(text: &str) -> Option<Digest> {
    bytes(text)?.try_into().ok().map(Digest::new)
}

/// Parses bytes in padded base 64, with one valid spelling for each.
pub(super) fn bytes(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// Encodes bytes in padded base 64.
pub(super) fn base64(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// Returns whether a name can be used in a signature line and in a key's text.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && !name.contains(|letter: char| letter == '+' || letter.is_whitespace() || letter.is_control())
}

/// Rejects a text that is longer than any valid one.
pub(super) const fn check_size(what: &'static str, text: &str, limit: usize) -> Result<(), CheckpointError> {
    if text.len() > limit { Err(CheckpointError::TooLarge { what, size: text.len(), limit }) } else { Ok(()) }
}

/// Longest name of a key in bytes.
const MAX_NAME_BYTES: usize = 256;
