//! Knowledge of HTTP requests from `data/http.toml`.

use std::sync::LazyLock;

use crate::table::Words;
use rulekeep_types::{Operation, Resource};

/// Returns whether a list contains the word.
pub(super) fn holds(list: &str, word: &str) -> bool {
    items(list).iter().any(|known| known == word)
}

/// The list's own spelling of a word.
pub(super) fn entry(list: &str, word: &str) -> Option<&'static str> {
    items(list).iter().find(|known| known.eq_ignore_ascii_case(word)).map(String::as_str)
}

/// The operation of a method.
pub(super) fn method(method: &str) -> Option<Operation> {
    value("methods", method)?.parse().ok()
}

/// The resource that a path's noun names, singular or plural.
pub(super) fn noun(word: &str) -> Option<(&'static str, Resource)> {
    let singular = [Some(word), word.strip_suffix('s'), word.strip_suffix("es")];
    let found = singular.into_iter().flatten().find_map(|word| {
        let entry = items("nouns").iter().find(|entry| entry.split_once(':').is_some_and(|(noun, _)| noun == word))?;
        entry.split_once(':')
    });
    // "policies"
    let (noun, resource) = found.or_else(|| {
        let stem = word.strip_suffix("ies")?;
        items("nouns")
            .iter()
            .filter_map(|entry| entry.split_once(':'))
            .find(|(noun, _)| noun.strip_suffix('y').is_some_and(|noun| noun == stem))
    })?;
    Some((noun, resource.parse().ok()?))
}

fn value(list: &str, key: &str) -> Option<&'static str> {
    items(list)
        .iter()
        .filter_map(|entry| entry.split_once(':'))
        .find(|(known, _)| *known == key)
        .map(|(_, value)| value)
}

fn items(list: &str) -> &'static [String] {
    LISTS.get(list).map_or(&[], Vec::as_slice)
}

// A test ensures that the file parses.
static LISTS: LazyLock<Words<Vec<String>>> = LazyLock::new(|| {
    let lists: Words<String> = toml::from_str(include_str!("../../data/http.toml")).unwrap_or_default();
    lists.into_iter().map(|(name, words)| (name, words.split_whitespace().map(str::to_owned).collect())).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_of_the_data_reads() {
        assert!(!LISTS.is_empty());
        for entry in items("nouns") {
            let (noun, resource) = entry.split_once(':').unwrap();
            assert!(resource.parse::<Resource>().is_ok(), "{noun}");
        }
        for entry in items("methods") {
            assert!(method(entry.split_once(':').unwrap().0).is_some(), "{entry}");
        }
        assert_eq!(noun("policies").unwrap().1, Resource::Permission);
    }
}
