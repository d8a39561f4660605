//! Showing the difference of a change of a file, and writing it atomically.

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use similar::TextDiff;

/// A change of one file. Its `Display` is a unified difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Path of the file.
    pub path: PathBuf,
    /// The current text; `None` if the file does not exist.
    pub before: Option<String>,
    /// The text after the change; `None` if the file is removed.
    pub after: Option<String>,
    /// The file that this one copies and whose permissions it gets.
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
        // A project's settings may come from strangers, so no character in them may control the terminal.
        let steers = |c: char| c.is_control() && c != '\n' && c != '\t';
        formatter.write_str(&shown.replace("\r\n", "\n").replace(steers, "\u{FFFD}"))
    }
}

/// Writes the changes, each one atomically: a reader sees the file before or after it.
///
/// # Errors
///
/// Names the file that could not be written, or that has changed since the plan was made. Earlier changes have been
/// written.
pub fn apply(changes: &[FileChange]) -> Result<(), String> {
    for change in changes {
        write(change).map_err(|error| format!("{}: {error}", change.path.display()))?;
    }
    Ok(())
}

/// Reads the text of a file; `None` if it does not exist.
///
/// # Errors
///
/// Names the file that cannot be read or is not UTF-8.
pub(super) fn read(path: &Path) -> Result<Option<String>, String> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// The path that the links at a path lead to, where nothing may be yet.
fn target(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(link) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(link);
    }
    path
}

fn write(change: &FileChange) -> Result<(), io::Error> {
    // A settings file is often a link into a folder of dotfiles. The target is written, and the link stays.
    let path = target(&change.path);
    if read(&path).map_err(io::Error::other)? != change.before {
        return Err(io::Error::other("the file has changed since the difference was shown; run the command again"));
    }
    let Some(text) = &change.after else {
        fs::remove_file(&path)?;
        // Folders used only for hooks; one that still has content stays.
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

const MOST_LINKS: usize = 40;
