//! The function words of English, and words that relate a clause to the request, by their role in a sentence
//! (`data/roles.toml`).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::table::Words;

/// The role of a word in a sentence; `data/roles.toml` describes each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Role {
    Determiner,
    Preposition,
    Pronoun,
    Modal,
    Auxiliary,
    Question,
    Conjunction,
    Filler,
    Negation,
    Small,
    Opener,
    Lead,
    Quotes,
    Tells,
    Content,
    Announces,
    Obeys,
    Runs,
    Firm,
    Says,
    Instructions,
    Source,
    Wishes,
    Ends,
}

/// The roles of one word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Roles(u32);

impl Roles {
    /// The roles of a lower-case word.
    pub(super) fn of(word: &str) -> Self {
        KNOWN.words.get(word).copied().unwrap_or_default()
    }

    pub(super) const fn has(self, role: Role) -> bool {
        self.0 & (1 << role as u32) != 0
    }

    pub(super) fn has_any(self, roles: &[Role]) -> bool {
        roles.iter().any(|role| self.has(*role))
    }

    /// Returns whether the word is a function word, which has no meaning by itself.
    pub(super) const fn is_small(self) -> bool {
        self.0 & ((1 << (Role::Small as u32 + 1)) - 1) != 0
    }

    const fn with(self, role: Role) -> Self {
        Self(self.0 | 1 << role as u32)
    }
}

/// Returns whether the words start a question about doing something.
pub(super) fn ask_about(words: &[&str]) -> bool {
    opens(&KNOWN.about, words)
}

/// Returns whether the words start a question whether something can be done.
pub(super) fn ask_whether(words: &[&str]) -> bool {
    opens(&KNOWN.whether, words)
}

fn opens(openings: &[Vec<String>], words: &[&str]) -> bool {
    openings
        .iter()
        .any(|opening| words.len() >= opening.len() && opening.iter().zip(words).all(|(one, word)| one == word))
}

#[derive(Default)]
struct Known {
    words: Words<Roles>,
    about: Vec<Vec<String>>,
    whether: Vec<Vec<String>>,
}

#[derive(Deserialize)]
struct Text {
    openings: Openings,
    #[serde(flatten)]
    roles: BTreeMap<Role, String>,
}

#[derive(Deserialize)]
struct Openings {
    about: String,
    whether: String,
}

impl Text {
    fn known(self) -> Known {
        let phrases = |text: String| {
            text.split(',').map(|phrase| phrase.split_whitespace().map(str::to_owned).collect()).collect()
        };
        let mut words: Words<Roles> = Words::default();
        for (role, listed) in self.roles {
            for word in listed.split_whitespace() {
                let known = words.entry(word.to_owned()).or_default();
                *known = known.with(role);
            }
        }
        Known { words, about: phrases(self.openings.about), whether: phrases(self.openings.whether) }
    }
}

// A test ensures that the file parses.
static KNOWN: LazyLock<Known> =
    LazyLock::new(|| toml::from_str::<Text>(include_str!("data/roles.toml")).map(Text::known).unwrap_or_default());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_roles_of_words_read() {
        assert!(Roles::of("the").has(Role::Determiner) && Roles::of("the").is_small());
        assert_eq!(Roles::of("noon"), Roles::default());
        assert!(Roles::of("tweet").has(Role::Content) && !Roles::of("tweet").is_small());
        assert!(ask_about(&["how", "do", "i", "delete"]) && ask_whether(&["can", "i"]) && !ask_about(&["how"]));
    }
}
