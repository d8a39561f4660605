//! The environments of a document: under `[environments]`, each environment and what commands name it by.

use super::clauses::globs;
use super::identifier::MAX_NAME_CHARS;
use rulekeep_types::document::{Node, Report, Value};
use rulekeep_types::{Glob, excerpt};

/// The environments, each with the globs of its names: those of clusters, profiles and workspaces.
#[derive(Debug, Default)]
pub(super) struct Environments(Vec<(Box<str>, Vec<Glob>)>);

impl Environments {
    /// Reads a document's `environments`.
    pub(super) fn read(node: Node, report: &mut Report<'_>) -> Self {
        let mut environments = Vec::new();
        for field in report.table(node, "environments", "a table of lists of names") {
            let path = format!("environments.{}", excerpt(&field.name));
            let name = Node { at: field.at, value: Value::Text(field.name) };
            let Some(name) = report.line(name, &path, MAX_NAME_CHARS) else { continue };
            let names = globs(field.node, &path, report);
            // Compared without case, like the environment itself.
            let names = names.iter().map(|name| Glob::new(&name.to_lowercase())).collect();
            environments.push((name.trim().to_lowercase().into(), names));
        }
        Self(environments)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The environments that a name stands for. One that is not listed, or that may be any, stands for an empty one.
    pub(super) fn of<'s>(&'s self, name: &str) -> Vec<&'s str> {
        let name = name.to_lowercase();
        let is_named = |globs: &[Glob]| !name.is_empty() && globs.iter().any(|glob| glob.matches(&name));
        let found: Vec<&str> = self.0.iter().filter(|(_, globs)| is_named(globs)).map(|(name, _)| &**name).collect();
        if found.is_empty() { vec![""] } else { found }
    }
}
