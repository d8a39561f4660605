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
    /// What the preposition that opens its phrase says.
    pub preposition: Preposition,
    /// That preposition.
    pub after: &'static str,
    /// The phrase's head is a word that the lexicon does not know.
    pub behind_unknown: bool,
    /// "The", "my", "this" before it: a certain one.
    pub definite: bool,
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

    /// "The bill", "my order": somebody's own rather than one of the world's.
    pub(super) const fn is_certain(&self) -> bool {
        self.definite
            && matches!(self.resource, Resource::Payment | Resource::Order | Resource::Customer | Resource::Health)
    }

    /// Whether it is something that other things are put into.
    fn holds(&self) -> bool {
        matches!(self.after, "to" | "in" | "on")
            && matches!(
                self.resource,
                Resource::Calendar
                    | Resource::Database
                    | Resource::File
                    | Resource::Document
                    | Resource::Code
                    | Resource::Order
                    | Resource::Account
                    | Resource::Task
                    | Resource::Contact
                    | Resource::Config
                    | Resource::Permission
                    | Resource::Customer
                    | Resource::Message
            )
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
    /// in, on, at, from: where content stands
    Source,
    /// based on, according to, same as: what something is made of
    Basis,
    /// about, regarding: what it tells of
    Topic,
    /// using: by what it is done
    Means,
    /// to, with, for: whom it reaches
    Goal,
    Other,
}

/// The nouns of these tokens, in their order.
pub(super) fn candidates<'l>(tokens: &[Token<'_>], lexicon: &'l Lexicon) -> Vec<Candidate<'l>> {
    let mut walk = Walk::default();
    let mut found: Vec<Candidate<'l>> = Vec::new();
    for token in tokens {
        walk.preposition(token, found.is_empty());
        let Some((noun, resource, strength)) = named(token, lexicon).or_else(|| walk.channel(token)) else {
            walk.unnamed(token);
            continue;
        };
        if walk.last_was_noun {
            // In a compound the last noun is the head: "order status", "email address".
            if let Some(modifier) = found.last_mut() {
                // A secret stays one in whatever holds it: "password list".
                let is_head_sure = strength >= 3 && modifier.resource != Resource::Credential;
                modifier.score -= if is_head_sure { 3.0 } else { 1.0 };
            }
        }
        found.push(Candidate {
            noun,
            resource,
            strength,
            score: f32::from(strength) + walk.nearness(resource, strength),
            phrase: walk.phrase,
            preposition: walk.preposition,
            after: walk.after,
            behind_unknown: walk.behind_unknown,
            definite: walk.definite,
        });
        walk.last_was_noun = true;
        walk.last_was_text = strength > 1 && matches!(resource, Resource::Document | Resource::Information);
        walk.named = strength > 1;
    }
    found
}

/// Where in the clause the walk over its tokens stands.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the words passed")]
struct Walk {
    phrase: usize,
    preposition: Preposition,
    after: &'static str,
    last_was_noun: bool,
    /// The last noun is a text, which tells of something.
    last_was_text: bool,
    /// A noun that says something was named in this phrase.
    named: bool,
    /// A word that is not known stood in this phrase.
    unknown: bool,
    /// Behind an "of" whose head is such a word: "the statute of a contract".
    behind_unknown: bool,
    behind_of: bool,
    /// A determiner that points at something certain stood in this phrase.
    definite: bool,
}

impl Default for Walk {
    fn default() -> Self {
        Self {
            phrase: 0,
            preposition: Preposition::None,
            after: "",
            last_was_noun: false,
            last_was_text: false,
            named: false,
            unknown: false,
            behind_unknown: false,
            behind_of: false,
            definite: false,
        }
    }
}

impl Walk {
    fn preposition(&mut self, token: &Token<'_>, is_first: bool) {
        self.definite |= matches!(token.word, "the" | "my" | "our" | "this" | "his" | "her" | "their" | "your");
        if !token.is(Function::Preposition) {
            return;
        }
        self.definite = false;
        if token.word == "of" {
            self.behind_unknown = self.unknown && !self.named;
            self.behind_of = self.named;
            return;
        }
        // A preposition right behind the verb ("look for", "search in") does not push the object away.
        self.phrase += usize::from(!is_first || self.phrase > 0 || self.preposition != Preposition::None);
        (self.preposition, self.after) = preposition_of(token.word);
        if token.word == "on" && self.last_was_text {
            // "An article on password security".
            self.preposition = Preposition::Topic;
        }
        (self.named, self.behind_of) = (false, false);
        // What a phrase of an unknown thing adds is no nearer to the verb: "the rules for a contract".
        self.behind_unknown = self.unknown && is_first;
    }

    /// A token that names nothing.
    fn unnamed(&mut self, token: &Token<'_>) {
        self.last_was_noun = false;
        if token.kind == Kind::Stop {
            // The next sentence begins anew: what opens it stands behind no preposition.
            *self = Self { phrase: self.phrase + 1, ..Self::default() };
            return;
        }
        if token.kind == Kind::Mark && token.word != "-" {
            self.phrase += 1;
            (self.behind_of, self.behind_unknown) = (false, false);
        }
        let entry = token.entry;
        self.unknown |= token.kind == Kind::Word
            && entry.function.is_none()
            && entry.verb.is_none()
            && token.cue.is_none()
            && !token.word.ends_with("ly");
    }

    /// "#design" behind "in" or "to" is a channel.
    fn channel(&self, token: &Token<'_>) -> Option<(&'static str, Resource, u8)> {
        let is_channel = token.word.starts_with('#')
            && token.word.len() > 1
            && matches!(self.preposition, Preposition::Source | Preposition::Goal);
        is_channel.then_some(("channel", Resource::Message, 4))
    }

    fn nearness(&self, resource: Resource, strength: u8) -> f32 {
        // "Encrypt it with a password" is not about the password.
        let instrument =
            if matches!(self.after, "with" | "using") && resource == Resource::Credential { 3.0 } else { 0.0 };
        let nearness = match self.phrase {
            // "Content", "list", "page" say little: "the content of the web page".
            _ if strength <= 1 => 1.5,
            _ if self.preposition == Preposition::Topic => -2.0,
            0 if self.behind_of => 1.5,
            0 => 3.0,
            1 => 1.0,
            _ => 0.0,
        };
        nearness - instrument
    }
}

/// The one that fits best; of equals the first.
pub(super) fn best<'c, 'l>(candidates: &'c [Candidate<'l>]) -> Option<&'c Candidate<'l>> {
    candidates.iter().reduce(|best, next| if next.score > best.score { next } else { best })
}

/// The one that fits best as what is changed: facts of the world give way to what holds them.
pub(super) fn best_to_change<'c, 'l>(candidates: &'c [Candidate<'l>], fills: bool) -> Option<&'c Candidate<'l>> {
    // "Put the train into my calendar" changes the calendar.
    let container =
        candidates.iter().find(|candidate| fills && candidate.phrase > 0 && candidate.holds() && !candidate.is_weak());
    if container.is_some() {
        return container;
    }
    // "Documentation on rotating keys" changes no key.
    let has_direct = candidates.first().is_some_and(|first| first.phrase == 0 && !first.is_weak());
    let held = candidates.iter().filter(|candidate| {
        candidate.resource != Resource::Information
            && !candidate.is_weak()
            && !(has_direct && candidate.preposition == Preposition::Topic)
    });
    held.reduce(|best, next| if next.score > best.score { next } else { best }).or_else(|| best(candidates))
}

/// The one that comes next with another resource, and by how much less it fits.
pub(super) fn rival(candidates: &[Candidate<'_>]) -> Option<(Box<str>, f32)> {
    let best = best(candidates)?;
    let others: Vec<_> = candidates.iter().copied().filter(|other| other.resource != best.resource).collect();
    let next = self::best(&others)?;
    Some((next.noun.into(), best.score - next.score))
}

fn named<'l>(token: &Token<'_>, lexicon: &'l Lexicon) -> Option<(&'l str, Resource, u8)> {
    match token.kind {
        Kind::Path if is_office(token.word) => Some(("document", Resource::Document, 3)),
        Kind::Path => Some((PATH, Resource::File, 3)),
        Kind::Url if is_page(token.word) => Some(("webpage", Resource::Web, 2)),
        // The bare name of a host.
        Kind::Url => Some(("website", Resource::Web, 1)),
        Kind::Word => {
            let noun = lexicon.noun(token.entry.noun?);
            Some((&noun.lemma, noun.resource, noun.strength))
        }
        _ => None,
    }
}

/// What a path names.
pub(super) const PATH: &str = "file";

/// An address of a page rather than the bare name of a host.
pub(super) fn is_page(address: &str) -> bool {
    address.contains('/') || address.starts_with("www.")
}

/// Files that people write as documents.
fn is_office(path: &str) -> bool {
    ["docx", "doc", "odt", "pptx", "ppt", "xlsx", "xls", "rtf", "pdf"]
        .iter()
        .any(|ending| path.rsplit_once('.').is_some_and(|(_, last)| last == *ending))
}

fn preposition_of(word: &str) -> (Preposition, &'static str) {
    match word {
        "from" => (Preposition::Source, "from"),
        "based on" | "according to" | "as" | "like" => (Preposition::Basis, "as"),
        "using" => (Preposition::Means, "using"),
        "in" | "within" | "inside" => (Preposition::Source, "in"),
        "on" | "at" => (Preposition::Source, "on"),
        "about" | "regarding" | "concerning" => (Preposition::Topic, "about"),
        "to" | "into" | "onto" => (Preposition::Goal, "to"),
        "with" => (Preposition::Goal, "with"),
        "for" => (Preposition::Goal, "for"),
        _ => (Preposition::Other, ""),
    }
}
