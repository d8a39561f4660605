//! The names of documents in messages about their rules.

use super::rule::Rule;
use rulekeep_types::hides_or_breaks;

/// The display name of each document of a set; `None` for a single document that was not loaded from a file.
#[derive(Debug)]
pub(super) struct DocumentNames(Vec<Option<Box<str>>>);

impl DocumentNames {
    /// Names documents by their sources, or by number if the sources do not identify them.
    pub(super) fn of(sources: &[&str]) -> Self {
        let name = |(index, source): (usize, &&str)| {
            let number = index + 1;
            let is_twice = sources.iter().filter(|other| *other == source).count() > 1;
            match sources.len() {
                1 => is_file(source).then(|| (*source).into()),
                _ if !is_telling(source) => Some(format!("document {number}").into()),
                _ if is_twice => Some(format!("{source} (document {number})").into()),
                _ => Some((*source).into()),
            }
        };
        Self(sources.iter().enumerate().map(name).collect())
    }

    /// The name of a document.
    pub(super) fn get(&self, layer: usize) -> Option<&str> {
        self.0.get(layer)?.as_deref()
    }

    /// The place of a rule: `policies.toml:12`, `document 2 line 12`, `line 12`.
    pub(super) fn place(&self, rule: &Rule) -> String {
        match self.get(rule.layer) {
            Some(name) if is_file(name) => format!("{name}:{}", rule.line),
            Some(name) => format!("{name} line {}", rule.line),
            None => format!("line {}", rule.line),
        }
    }
}

fn is_file(name: &str) -> bool {
    [".toml", ".json"].iter().any(|ending| name.ends_with(ending))
}

/// Returns whether a source name identifies its document. A text without a file often has only the name of its
/// format, and a name must not look like another document's number.
fn is_telling(source: &str) -> bool {
    let is_nameless = source.trim().is_empty() || ["toml", "json", "text"].contains(&source);
    !is_nameless && !source.contains("document ") && !source.contains(hides_or_breaks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_told_apart_by_name_or_by_number() {
        for (sources, names) in [
            (&["toml"][..], &[None][..]),
            (&["team.toml"], &[Some("team.toml")]),
            (&["toml", "toml"], &[Some("document 1"), Some("document 2")]),
            (&["base.toml", "json"], &[Some("base.toml"), Some("document 2")]),
            (
                &["a.toml", "b.toml", "a.toml"],
                &[Some("a.toml (document 1)"), Some("b.toml"), Some("a.toml (document 3)")],
            ),
            (&["a\nb.toml", "document 1"], &[Some("document 1"), Some("document 2")]),
            (&["layer 1", "layer 2"], &[Some("layer 1"), Some("layer 2")]),
        ] {
            let named = DocumentNames::of(sources);
            let found: Vec<_> = (0..sources.len()).map(|layer| named.get(layer)).collect();
            assert_eq!(found, names, "{sources:?}");
        }
    }
}
