//! What a verb is done to: the nouns that it governs, weighed by how surely each
//! names a resource and how near it stands.

use crate::model::Resource;
use crate::parse::lexicon::{Function, Lexicon};

use super::token::{Kind, Token};

/// A noun that a verb governs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate<'l> {
    pub noun: &'l str,
    pub resource: Resource,
    /// How surely the noun names its resource, from 1 to 5.
    pub strength: u8,
    /// How well it fits as the object.
    pub score: f32,
    /// Which phrase of the clause it stands in: 0 is the direct object.
    pub phrase: usize,
    /// The preposition that opens its phrase.
    pub preposition: Preposition,
}

impl Candidate<'_> {
    /// Whether content is taken from it.
    pub(super) fn is_source(&self) -> bool {
        match self.preposition {
            Preposition::Source | Preposition::Basis => true,
            // "Using the schematic" reads it; "using my email" only says who one is.
            Preposition::Means => matches!(self.resource, Resource::File | Resource::Document | Resource::Web),
            _ => false,
        }
    }

    /// Whether it says little by itself: content, list, page, summary.
    pub(super) const fn is_weak(&self) -> bool {
        self.strength <= 1
    }
}

/// What the preposition before a noun says of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preposition {
    None,
    /// in, on, about, at: where content stands
    Source,
    /// from, based on, according to, same as: what something is made of
    Basis,
    /// using: by what it is done
    Means,
    /// to, with, for: whom it reaches
    Goal,
    Other,
}

/// The nouns of these tokens, in their order.
pub(super) fn candidates<'l>(tokens: &[Token<'_>], lexicon: &'l Lexicon) -> Vec<Candidate<'l>> {
    let mut found: Vec<Candidate<'l>> = Vec::new();
    let (mut phrase, mut preposition) = (0, Preposition::None);
    let (mut last_was_noun, mut is_means) = (false, false);
    for token in tokens {
        if token.is(Function::Preposition) && token.word != "of" {
            // A preposition right behind the verb ("look for", "search in") does not push the object away.
            phrase += usize::from(!found.is_empty() || phrase > 0 || preposition != Preposition::None);
            preposition = preposition_of(token.word);
            is_means = matches!(token.word, "with" | "using");
        }
        let Some((noun, resource, strength)) = named(token, lexicon) else {
            last_was_noun = false;
            if token.kind == Kind::Mark && token.word != "-" {
                phrase += 1;
            }
            continue;
        };
        if last_was_noun {
            // In a compound the last noun is the head: "order status", "email address".
            if let Some(modifier) = found.last_mut() {
                modifier.score -= 1.0;
            }
        }
        last_was_noun = true;
        // "Encrypt it with a password" is not about the password.
        let instrument = if is_means && resource == Resource::Credential { 3.0 } else { 0.0 };
        let nearness = match phrase {
            // "Content", "list", "page" say little: "the content of the web page".
            _ if strength <= 1 => 1.5,
            0 => 3.0,
            1 => 1.0,
            _ => 0.0,
        };
        found.push(Candidate {
            noun,
            resource,
            strength,
            score: f32::from(strength) + nearness - instrument,
            phrase,
            preposition,
        });
    }
    found
}

/// The one that fits best; of equals the first.
pub(super) fn best<'c, 'l>(candidates: &'c [Candidate<'l>]) -> Option<&'c Candidate<'l>> {
    candidates.iter().reduce(|best, next| if next.score > best.score { next } else { best })
}

fn named<'l>(token: &Token<'_>, lexicon: &'l Lexicon) -> Option<(&'l str, Resource, u8)> {
    match token.kind {
        Kind::Path => Some(("file", Resource::File, 3)),
        Kind::Url => Some(("webpage", Resource::Web, 2)),
        Kind::Word => {
            let noun = lexicon.noun(token.entry.noun?);
            Some((&noun.lemma, noun.resource, noun.strength))
        }
        _ => None,
    }
}

fn preposition_of(word: &str) -> Preposition {
    match word {
        "from" | "based on" | "according to" | "as" | "like" => Preposition::Basis,
        "using" => Preposition::Means,
        "in" | "on" | "about" | "within" | "inside" | "at" => Preposition::Source,
        "to" | "with" | "for" | "into" | "onto" => Preposition::Goal,
        _ => Preposition::Other,
    }
}
