//! Documents in files: the extension determines the format, and the size is limited.

use std::path::Path;

use super::PolicyFormat;
use crate::Error;

/// A document read from a file.
pub struct File {
    /// The file's name without its folder.
    pub name: String,
    /// The format, determined by the extension.
    pub format: PolicyFormat,
    /// The document's text.
    pub text: String,
}

impl File {
    /// Reads a file of at most `limit` bytes. `kind` (such as `policy`) and `too_large` compose error messages.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidPolicy`] when the file has another extension, is too large, or cannot be read.
    pub fn read(path: &Path, kind: &str, limit: usize, too_large: impl FnOnce(u64) -> String) -> Result<Self, Error> {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let failure = |message: &str| Error::InvalidPolicy {
            message: format!("{kind} {name:?}{message}"),
            problems: Vec::new(),
            cause: None,
        };
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        let format = extension.parse().map_err(|_| failure(": expected a file that ends in .toml or .json"))?;
        let size = std::fs::metadata(path).map_err(|error| failure("").caused_by(error))?.len();
        // Checked before reading, because a wrong path can name a file of any size.
        if usize::try_from(size).is_ok_and(|size| size > limit) {
            return Err(failure(&format!(": {}", too_large(size))));
        }
        let text = std::fs::read_to_string(path).map_err(|error| failure("").caused_by(error))?;
        Ok(Self { name, format, text })
    }
}
