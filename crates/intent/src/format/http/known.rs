//! What methods and nouns of HTTP requests stand for.

use crate::format::tables;
use rulekeep_types::{Operation, Resource};

/// The operation of a method.
pub(super) fn method(method: &str) -> Option<Operation> {
    tables::http().methods.of(method)
}

/// The resource that a path's noun names, singular or plural.
pub(super) fn noun(word: &str) -> Option<(&'static str, Resource)> {
    let nouns = &tables::http().nouns;
    let singular = [Some(word), word.strip_suffix('s'), word.strip_suffix("es")];
    let found = singular.into_iter().flatten().find_map(|word| nouns.entry(word));
    // "policies"
    found.or_else(|| nouns.entry(&format!("{}y", word.strip_suffix("ies")?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noun_is_known_in_the_plural() {
        for word in ["policy", "policies"] {
            assert_eq!(noun(word), Some(("policy", Resource::Permission)), "{word}");
        }
    }
}
