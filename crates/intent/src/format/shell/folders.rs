//! The folder in which a command runs, as a line changes it.

use rulekeep_types::facts::Cause;

use crate::target;

use super::Shell;
use super::operand::known_path;
use super::word::Word;

/// The folder that relative paths of a command start from, as far as the line shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Folders {
    /// One of these; the empty text is the folder in which the line starts.
    OneOf(Vec<String>),
    Unknown,
}

impl Folders {
    /// The folders if either may be the current one.
    pub(super) fn or(self, other: Self) -> Self {
        let (Self::OneOf(mut folders), Self::OneOf(others)) = (self, other) else { return Self::Unknown };
        for folder in others {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        if folders.len() > MOST_FOLDERS { Self::Unknown } else { Self::OneOf(folders) }
    }
}

/// The folders before a change.
pub(super) struct Left {
    pub(super) folders: Folders,
    /// The change goes to a folder that is on every machine, so it does not fail.
    pub(super) exists: bool,
}

/// Signs between two commands behind which the second may run although the first failed, or in another shell.
pub(super) const SEPARATORS: &[char] = &[';', '|', '&', '\n', '(', ')', '{', '}'];
/// Signs between two commands behind which the second may run in another shell.
pub(super) const ONLY_PLACES: &[char] = &['|', '&', '(', ')'];

impl Default for Folders {
    fn default() -> Self {
        Self::OneOf(vec![String::new()])
    }
}

impl Shell<'_, '_> {
    /// Follows a change of the folder.
    pub(super) fn change_folder(&mut self, to: Option<&Word>) {
        let home = Word { text: "~".to_owned(), ..Word::default() };
        let to = to.unwrap_or(&home);
        let path = known_path(to).filter(|path| path != "-" && !to.wild && path.len() <= LONGEST_FOLDER);
        let next = match (path, &self.folders) {
            (Some(path), _) if path.starts_with(['/', '~']) => Folders::OneOf(vec![target::resolved_path(&path)]),
            (Some(path), Folders::OneOf(folders)) => Folders::OneOf(
                folders
                    .iter()
                    .map(|folder| {
                        target::resolved_path(&if folder.is_empty() {
                            path.clone()
                        } else {
                            format!("{folder}/{path}")
                        })
                    })
                    .collect(),
            ),
            _ => Folders::Unknown,
        };
        let is_long = matches!(&next, Folders::OneOf(folders) if folders.iter().any(|one| one.len() > LONGEST_FOLDER));
        let next = if is_long { Folders::Unknown } else { next };
        // The command may fail, or run in a subshell: then the folder stays.
        let before = std::mem::take(&mut self.folders);
        let exists = |folder: &String| matches!(folder.as_str(), "/" | "/tmp" | "/private/tmp" | "/var/tmp" | "~");
        let is_there = matches!(&next, Folders::OneOf(folders) if folders.iter().all(exists));
        self.folders = next;
        if !self.only_goes_on {
            let left = self.left.take();
            let exists = is_there && left.as_ref().is_none_or(|left| left.exists);
            let folders = left.map_or(before.clone(), |left| left.folders.or(before));
            self.left = Some(Left { folders, exists });
        }
    }

    /// Ends the commands that run only if the last change of the folder did not fail.
    pub(super) fn return_to_left(&mut self) {
        if let Some(left) = self.left.take() {
            self.folders = std::mem::take(&mut self.folders).or(left.folders);
        }
    }

    /// Follows a change of the folder without which the command does not run.
    pub(super) fn go_on_in(&mut self, folder: Option<&Word>) {
        let only_goes_on = std::mem::replace(&mut self.only_goes_on, true);
        self.change_folder(folder);
        self.only_goes_on = only_goes_on;
    }

    /// The cause of running code: of the folder, while the line has not left the one in which it starts.
    pub(super) fn code_of(&self, is_of_folder: bool) -> Cause {
        let is_inside = matches!(&self.folders, Folders::OneOf(folders) if folders.iter().all(|folder| stays(folder)));
        if is_of_folder && is_inside && !self.is_elsewhere { Cause::Folder } else { Cause::Execution }
    }
}

/// Returns whether a word is a relative path that leads out of no folder.
pub(super) fn stays(path: &str) -> bool {
    !path.starts_with(['/', '~', '-']) && !path.split('/').any(|part| part == "..")
}

/// Maximum number of folders that are followed at once.
const MOST_FOLDERS: usize = 8;
/// Maximum length of a folder that is followed, in bytes.
const LONGEST_FOLDER: usize = 1024;
