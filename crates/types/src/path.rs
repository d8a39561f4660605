//! Paths: those that rules deny, and their form without dots.

use std::path::{Component, Path, PathBuf};

/// A pattern of paths that a rule denies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeniedPath {
    /// The pattern, as the rule has it: a [`Glob`](crate::Glob), whose `*` also stands for slashes. It begins at the root,
    /// at `~`, anywhere if it begins with `*`, and else at a folder of the work.
    pub pattern: String,
    /// True if reading stays permitted.
    pub is_readable: bool,
}

impl DeniedPath {
    /// A file or folder, with what is in it, that is neither read nor written. A part of its name that is not UTF-8
    /// stands for any text, so that nothing is open by how it is written.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        let pattern = path.to_string_lossy().replace(char::REPLACEMENT_CHARACTER, "*");
        Self { pattern, is_readable: false }
    }
}

/// Returns a path without `.` and `..`, as text: links count for nothing.
pub fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}
