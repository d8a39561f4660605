//! Key files, and signatures over texts other than checkpoints by the same keys.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use rulekeep::checkpoint::{CheckpointKey, VerifierKey};
use zeroize::Zeroizing;

/// The reason a key file cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFileError {
    /// The file cannot be written or read.
    #[error("{}: {}", .0.display(), .1)]
    File(PathBuf, #[source] io::Error),
    /// The file has another form.
    #[error("{}: expected the key's name on the first line and 32 bytes in hex on the second", .0.display())]
    Form(PathBuf),
}

/// Writes a key to a new file that only its owner can open: its name, and on the second line its seed in hex.
///
/// # Errors
///
/// [`KeyFileError::File`], also if the file exists.
pub fn write_key(path: &Path, key: &CheckpointKey) -> Result<(), KeyFileError> {
    let failed = |error| KeyFileError::File(path.to_owned(), error);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path).map_err(failed)?;
    let seed = Zeroizing::new(hex::encode(*key.seed()));
    let text = Zeroizing::new(format!("{}\n{}\n", key.name(), *seed));
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)
}

/// Reads the key in a file that [`write_key`] wrote.
///
/// # Errors
///
/// [`KeyFileError`].
pub fn read_key(path: &Path) -> Result<CheckpointKey, KeyFileError> {
    let text = fs::read_to_string(path).map_err(|error| KeyFileError::File(path.to_owned(), error))?;
    let text = Zeroizing::new(text);
    let mut seed = Zeroizing::new([0; 32]);
    let (name, digits) = text.split_once('\n').unwrap_or_default();
    let read = hex::decode_to_slice(digits.trim_end(), &mut *seed).ok();
    let key = read.and_then(|()| CheckpointKey::from_seed(name, &seed).ok());
    key.ok_or_else(|| KeyFileError::Form(path.to_owned()))
}

/// Signs a text; the signature is in base 64.
pub(crate) fn sign(key: &CheckpointKey, text: &str) -> String {
    STANDARD.encode(SigningKey::from_bytes(&key.seed()).sign(text.as_bytes()).to_bytes())
}

/// Returns whether a signature over a text is by a key.
pub(crate) fn verify(key: &VerifierKey, text: &str, signature: &str) -> bool {
    let signature = STANDARD.decode(signature).ok().and_then(|bytes| Signature::from_slice(&bytes).ok());
    public(key).zip(signature).is_some_and(|(key, signature)| key.verify_strict(text.as_bytes(), &signature).is_ok())
}

fn public(key: &VerifierKey) -> Option<VerifyingKey> {
    // The third part of the key's text: a byte for the algorithm, and the key.
    let bytes = STANDARD.decode(key.to_string().splitn(3, '+').nth(2)?).ok()?;
    VerifyingKey::from_bytes(bytes.get(1..)?.try_into().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_reads_back_and_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ann.key");
        let key = CheckpointKey::from_seed("ann", &[7; 32]).unwrap();
        write_key(&file, &key).unwrap();
        assert_eq!(read_key(&file).unwrap().verifier(), key.verifier());
        assert!(matches!(write_key(&file, &key), Err(KeyFileError::File(..))));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        }
        for wrong in ["", "ann", "ann\n07", "a+n\n0707070707070707070707070707070707070707070707070707070707070707\n"] {
            fs::write(&file, wrong).unwrap();
            assert!(matches!(read_key(&file), Err(KeyFileError::Form(_))), "{wrong:?}");
        }
    }
}
