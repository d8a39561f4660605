//! The difference of a change of a file, and its atomic write.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use similar::TextDiff;

/// A change of one file. It shows itself as a unified difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// The file.
    pub path: PathBuf,
    /// Its text now; nothing where it is absent.
    pub before: Option<String>,
    /// Its text after the change; nothing where it is removed.
    pub after: Option<String>,
    /// The file that this one copies, whose permissions it takes.
    pub copy_of: Option<PathBuf>,
}

impl fmt::Display for FileChange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(original) = &self.copy_of {
            let done = if self.after.is_some() { "is written" } else { "is removed" };
            return writeln!(formatter, "# {}, a copy of {}, {done}", self.path.display(), original.display());
        }
        let name = |text: &Option<String>| match text {
            Some(_) => self.path.display().to_string(),
            None => "/dev/null".to_owned(),
        };
        let (before, after) = (self.before.as_deref().unwrap_or_default(), self.after.as_deref().unwrap_or_default());
        let lines = TextDiff::from_lines(before, after);
        let shown = lines.unified_diff().header(&name(&self.before), &name(&self.after)).to_string();
        // A project's settings are of strangers: no character of them steers the terminal.
        let steers = |c: char| c.is_control() && c != '\n' && c != '\t';
        formatter.write_str(&shown.replace("\r\n", "\n").replace(steers, "\u{FFFD}"))
    }
}

/// Writes the changes, each in one step: a reader sees the file before or after it.
///
/// # Errors
///
/// Says which file could not be written, or has changed since the plan was made. Changes before it have been written.
pub fn apply(changes: &[FileChange]) -> Result<(), String> {
    for change in changes {
        write(change).map_err(|error| format!("{}: {error}", change.path.display()))?;
    }
    Ok(())
}

/// The text of a file; nothing where it is absent.
///
/// # Errors
///
/// Names the file that cannot be read, or is not UTF-8.
pub(super) fn read(path: &Path) -> Result<Option<String>, String> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

fn write(change: &FileChange) -> Result<(), io::Error> {
    // A settings file is often a link into a folder of dotfiles: the file it leads to is written, and the link stays.
    let path = fs::canonicalize(&change.path).unwrap_or_else(|_| change.path.clone());
    if read(&path).map_err(io::Error::other)? != change.before {
        return Err(io::Error::other("the file has changed since the difference was shown; run the command again"));
    }
    let Some(text) = &change.after else {
        fs::remove_file(&path)?;
        // Folders for nothing but hooks; one that still holds something stays.
        let own = |folder: &&Path| folder.ends_with("hooks") || folder.ends_with("rulekeep");
        for folder in path.ancestors().skip(1).take_while(own) {
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
        return Ok(());
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    match fs::metadata(change.copy_of.as_deref().unwrap_or(&path)) {
        Ok(original) => file.as_file().set_permissions(original.permissions())?,
        #[cfg(unix)] // A temporary file is for its owner alone; settings of a project are for all who work in it.
        Err(_) => file.as_file().set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))?,
        #[cfg(not(unix))]
        Err(_) => {}
    }
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(&path)?;
    Ok(())
}
