//! Signed notes: a text and its signatures. SOURCE: <https://c2sp.org/signed-note>.

use super::{CheckpointError, CheckpointKey, VerifierKey, text};

/// A parsed note. Nothing in it is verified yet.
pub(super) struct Note<'a> {
    text: &'a str,
    signatures: Vec<NoteSignature<'a>>,
}

struct NoteSignature<'a> {
    name: &'a str,
    key_id: [u8; 4],
    signature: Vec<u8>,
}

impl<'a> Note<'a> {
    /// Parses a note.
    pub(super) fn parse(note: &'a str) -> Result<Self, CheckpointError> {
        text::check_size(WHAT, note, MAX_BYTES)?;
        let malformed = |line, expected| CheckpointError::Malformed { what: WHAT, line, expected };
        if let Some(at) = note.bytes().position(|byte| byte < b' ' && byte != b'\n') {
            return Err(malformed(line_at(note, at), "no control characters"));
        }
        // A text may contain empty lines; the last empty line ends it.
        let last_line = line_at(note, note.len().saturating_sub(1));
        let end = note.rfind("\n\n").ok_or(malformed(last_line, "an empty line and signatures behind the text"))?;
        let (text, signatures) = (note.get(..=end), note.get(end + 2..).and_then(|lines| lines.strip_suffix('\n')));
        let (Some(text), Some(signatures)) = (text, signatures) else {
            return Err(malformed(last_line, "signatures, each line ended by a newline"));
        };
        let first_line = line_at(note, end) + 2;
        let signatures = signatures.split('\n').enumerate().map(|(place, line)| {
            let too_many = place >= MAX_SIGNATURES;
            let signature = if too_many { None } else { NoteSignature::parse(line) };
            let expected =
                if too_many { "at most 64 signatures" } else { "— <name> <base 64 of key id and signature>" };
            signature.ok_or(malformed(first_line + place, expected))
        });
        Ok(Self { text, signatures: signatures.collect::<Result<_, _>>()? })
    }

    /// Returns the text, with its last newline, after verifying the key's signature. Signatures by other keys are
    /// ignored; every signature that names this key must be valid.
    pub(super) fn opened_by(&self, key: &VerifierKey) -> Result<&'a str, CheckpointError> {
        let id = key.id();
        let mut by_key = self.signatures.iter().filter(|signed| signed.name == key.name() && signed.key_id == id);
        let first = by_key.next().ok_or_else(|| CheckpointError::NotSigned { key: key.label() })?;
        if std::iter::once(first).chain(by_key).all(|signed| key.verifies(self.text, &signed.signature)) {
            Ok(self.text)
        } else {
            Err(CheckpointError::BadSignature { key: key.label() })
        }
    }

    /// Returns the text, with its last newline, without verifying any signature.
    pub(super) const fn unverified(&self) -> &'a str {
        self.text
    }
}

impl<'a> NoteSignature<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (name, signature) = line.strip_prefix("— ")?.split_once(' ')?;
        let bytes = text::bytes(signature)?;
        let (key_id, signature) = bytes.split_first_chunk::<4>()?;
        let whole = text::is_name(name) && !signature.is_empty();
        whole.then(|| Self { name, key_id: *key_id, signature: signature.to_vec() })
    }
}

/// Signs a text that ends in a newline, and returns the note.
pub(super) fn sign(text: &str, key: &CheckpointKey) -> String {
    let mut signed = key.verifier().id().to_vec();
    signed.extend_from_slice(&key.sign(text));
    format!("{text}\n— {} {}\n", key.name(), text::base64(signed))
}

/// The line of a byte of a text, counted from 1.
fn line_at(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

const WHAT: &str = "signed note";
/// Upper bound of signatures. The specification asks for at least 16, of up to 5 kB.
const MAX_SIGNATURES: usize = 64;
pub(super) const MAX_BYTES: usize = 256 * 1024;
