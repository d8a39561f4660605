//! Orders that do not open their sentence: behind a time, a place, a purpose or
//! an address without a comma, and verbs that the lexicon does not know.

use crate::model::Operation;
use crate::parse::lexicon::{Form, Function};
use crate::parse::sign::Sign;

use super::heads::Manner;
use super::sentence::{Sentence, is_skipped};
use super::token::{Kind, Token};

impl Sentence<'_, '_> {
    /// Whether the base form at `index` orders although something stands before it in its clause: "Tomorrow reboot
    /// it", "To free space delete it", "Someone please stop it". A subject that agrees with the verb rules it out.
    pub(super) fn opens_behind_preamble(&self, index: usize, place: usize) -> bool {
        let Some(token) = self.tokens.get(index) else { return false };
        if self.is_begged(index) {
            return self.takes_object(index) || token.entry.noun.is_none() && index + 1 < self.to;
        }
        let Some(next) = self.tokens.get(index + 1).filter(|_| index + 1 < self.to) else { return false };
        let Some(lead) = self.tokens.get(place) else { return false };
        if lead.entry.function.is_some_and(|function| function != Function::Want) || self.is_placeholder(index) {
            return false;
        }
        let Some(start) = self.clause_start(place) else { return false };
        let Some(opening) = self.tokens.get(start) else { return false };
        let frame = Frame::of(opening, self.tokens.get(start + 1));
        if self.has_subject(start, place, frame) {
            return false;
        }
        let takes_object = self.takes_object(index);
        let is_noun = token.entry.noun.is_some();
        match frame {
            Frame::None => {
                let acts = self
                    .operation(token)
                    .is_some_and(|operation| !matches!(operation, Operation::Read | Operation::Write));
                let reaches = next.is(Function::Determiner) && next.word != "no" || points_at(next);
                acts && reaches && place < start + 3 && (!is_noun || is_firm(next))
            }
            _ if takes_object => true,
            _ if is_noun || token.text.starts_with(char::is_uppercase) => false,
            _ => {
                let follows = next.kind == Kind::Word
                    && !next.is(Function::Auxiliary)
                    && !next.is(Function::Modal)
                    && !next.is(Function::Conjunction);
                let behind_determiner =
                    place > start && self.tokens.get(place - 1).is_some_and(|before| before.is(Function::Determiner));
                follows
                    && (is_time(lead.word)
                        || !matches!(lead.kind, Kind::Word)
                        || behind_determiner
                        || frame == Frame::Purpose)
            }
        }
    }

    /// Whether the word at `index` stands where only a verb can, and is none that the lexicon knows: "Could you
    /// frobnicate the table?" What it orders nobody can tell.
    pub(super) fn is_obscure_order(&self, index: usize, in_question: bool, has_heads: bool) -> bool {
        let Some(token) = self.tokens.get(index) else { return false };
        let is_known = token.entry.noun.is_some() || token.cue.is_some();
        if token.kind != Kind::Word
            || token.entry.verb.is_some()
            || token.entry.function.is_some()
            || token.entry.cue == Some(Sign::Ordinary)
            || !token.word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')
            || token.word.ends_with("ing")
        {
            return false;
        }
        let next = self.tokens.get(index + 1).filter(|_| index + 1 < self.to);
        let is_dated = self.tokens.get(index + 2).is_some_and(|token| is_time(token.word));
        let governs = next.is_some_and(|next| (is_firm(next) || points_at(next)) && !is_dated);
        let names =
            governs || !is_known && next.is_some_and(|next| next.entry.noun.is_some() || next.is(Function::Determiner));
        if !names && !token.word.ends_with("ed") {
            return false;
        }
        let before = self.before(index);
        let Some((place, lead)) = before.and_then(|place| Some((place, self.tokens.get(place)?))) else {
            return !in_question
                && (self.is_begged(index) && governs || !is_known && next.is_some_and(is_firm) && !is_dated);
        };
        if self.is_begged(index) {
            return governs;
        }
        match lead.entry.function {
            Some(Function::Lead) => names && !matches!(lead.word, "mind" | "what about" | "how about" | "help with"),
            Some(Function::Pronoun) => {
                names && is_addressee(lead.word) && self.before(place).is_some_and(|earlier| self.asks_at(earlier))
            }
            Some(Function::Preposition) if lead.word == "to" => {
                governs
                    && match self.after_to(place) {
                        Some(Manner::Asked) => true,
                        Some(Manner::Wished) => !in_question,
                        _ => false,
                    }
            }
            Some(Function::Conjunction) => {
                has_heads && !is_known && !in_question && !token.word.ends_with('s') && next.is_some_and(is_firm)
            }
            // "The servers must be frobbed".
            Some(Function::Auxiliary) if lead.word == "be" => {
                !has_heads
                    && !in_question
                    && token.word.ends_with("ed")
                    && !is_known
                    && self.before(place).and_then(|earlier| self.tokens.get(earlier)).is_some_and(|earlier| {
                        matches!(earlier.word, "should" | "must" | "shall") || earlier.word == "to"
                    })
            }
            _ => false,
        }
    }

    /// "Is it possible for you to", "do you mind", "any chance you could": a request in the form of a question.
    pub(super) fn is_polite_question(&self, opening: usize) -> bool {
        let opens = self.tokens.get(opening..self.to.min(opening + LONGEST_PREAMBLE)).unwrap_or(&[]);
        let asks_whether = opens.iter().any(|token| {
            matches!(
                token.word,
                "possible" | "mind" | "chance" | "okay" | "ok" | "alright" | "way" | "trouble" | "bother"
            )
        });
        // "Is it possible to delete an account?" asks; "for me", "for you to" does not.
        asks_whether
            && (opens.iter().any(|token| is_addressee(token.word) && token.word != "one")
                || (opening..self.to)
                    .take(LONGEST_QUESTION)
                    .any(|at| self.tokens.get(at).is_some_and(|token| matches!(token.word, "for me" | "for us"))))
    }

    /// Whether "please" stands right before the word at `index`.
    fn is_begged(&self, index: usize) -> bool {
        index > self.from
            && self
                .tokens
                .get(index - 1)
                .is_some_and(|before| matches!(before.word, "please" | "pls" | "plz" | "kindly"))
    }

    /// A modal, or a lead: what may stand before "you" in a request.
    fn asks_at(&self, place: usize) -> bool {
        self.tokens.get(place).is_some_and(|token| token.is(Function::Modal) || token.is(Function::Lead))
    }

    /// "<delete>", "[delete]": stands for something.
    fn is_placeholder(&self, index: usize) -> bool {
        self.tokens.get(index + 1).is_some_and(|next| matches!(next.word, ">" | "]" | "="))
    }

    /// The first token of the clause that ends at `place`, if it is short enough to be a preamble.
    fn clause_start(&self, place: usize) -> Option<usize> {
        let earliest = self.from.max((place + 1).saturating_sub(LONGEST_PREAMBLE));
        let mut start = place;
        for at in (earliest..=place).rev() {
            if self.tokens.get(at).is_some_and(|token| token.kind == Kind::Mark && token.word != "-") {
                return Some(start);
            }
            if !is_skipped(self.tokens, at) {
                start = at;
            }
        }
        (earliest == self.from).then_some(start)
    }

    /// Whether the words of the preamble hold a subject, or a verb of their own.
    fn has_subject(&self, start: usize, place: usize, frame: Frame) -> bool {
        let mut before: Option<&Token<'_>> = None;
        let mut only_determiners = true;
        for at in start..=place {
            let Some(token) = self.tokens.get(at) else { break };
            let is_clausal = matches!(
                token.entry.function,
                Some(
                    Function::Auxiliary
                        | Function::Modal
                        | Function::Question
                        | Function::About
                        | Function::Negation
                        | Function::Conjunction
                        | Function::Lead
                        | Function::Constraint
                )
            );
            let is_subject = token.is(Function::Pronoun)
                && !(frame == Frame::Purpose && matches!(token.word, "it" | "them" | "me" | "us"));
            let is_relative =
                at > start && matches!(token.word, "who" | "that" | "which" | "if" | "when" | "while" | "because");
            let is_verb = token.entry.verb.is_some_and(|(_, form)| {
                let is_led =
                    before.is_some_and(|before| before.is(Function::Preposition)) || at == start && token.word == "go";
                token.entry.noun.is_none() && form != Form::Ing && !is_led && !is_time(token.word)
            });
            if is_clausal || is_subject || is_relative || is_verb {
                return true;
            }
            if at > start && at < place {
                only_determiners &= token.is(Function::Determiner);
            }
            before = Some(token);
        }
        let is_object = frame != Frame::None && place > start && only_determiners;
        before.is_some_and(|lead| is_plural(lead) && !is_object && !is_time(lead.word))
    }

    fn operation(&self, token: &Token<'_>) -> Option<Operation> {
        token.entry.verb.map(|(verb, _)| self.lexicon.verb(verb).operation)
    }
}

/// What a preamble is, by its first words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Frame {
    /// A time, a place, a means: "At noon", "Every Monday", "Via the console", "/do".
    Adverbial,
    /// "To free up space".
    Purpose,
    /// Whatever else: a name that is spoken to, an exclamation.
    None,
}

impl Frame {
    fn of(opening: &Token<'_>, next: Option<&Token<'_>>) -> Self {
        match opening.entry.function {
            Some(Function::Preposition) => match opening.word {
                "to" | "in order" => Self::Purpose,
                "if" | "when" | "while" | "where" | "because" | "so" | "who" | "than" | "like" | "of" | "about" => {
                    Self::None
                }
                _ => Self::Adverbial,
            },
            Some(Function::Determiner) if next.is_some_and(|next| is_time(next.word)) => Self::Adverbial,
            _ if is_time(opening.word) || !opening.word.contains(|c: char| c.is_alphabetic()) => Self::Adverbial,
            _ if opening.kind == Kind::Path || matches!(opening.kind, Kind::Number(_)) => Self::Adverbial,
            _ => Self::None,
        }
    }
}

/// "The", "all", "my" before what is acted on: no adverb of time, no number.
fn is_firm(token: &Token<'_>) -> bool {
    matches!(
        token.word,
        "the"
            | "my"
            | "our"
            | "all"
            | "every"
            | "each"
            | "any"
            | "this"
            | "that"
            | "these"
            | "those"
            | "his"
            | "her"
            | "their"
            | "your"
            | "everything"
            | "everyone"
    )
}

fn points_at(token: &Token<'_>) -> bool {
    matches!(token.word, "it" | "them")
        || matches!(token.kind, Kind::Quoted | Kind::Number(_) | Kind::Email | Kind::Path | Kind::Url)
}

/// Whom a request is put to.
pub(super) fn is_addressee(word: &str) -> bool {
    matches!(word, "you" | "u" | "ya" | "y'all" | "yall" | "someone" | "somebody" | "anyone" | "anybody" | "one")
}

/// A noun with which a base form agrees.
fn is_plural(token: &Token<'_>) -> bool {
    token.kind == Kind::Word
        && token.text.starts_with(char::is_lowercase)
        && (matches!(token.word, "people" | "children" | "kids" | "men" | "women" | "police" | "staff" | "data")
            || token.word.len() > 3 && token.word.ends_with('s') && !token.word.ends_with("ss"))
}

/// Days, hours, and what stands for them.
pub(super) fn is_time(word: &str) -> bool {
    let word = word.strip_suffix('s').unwrap_or(word);
    // Told apart by their length first: most words are none.
    (2..=9).contains(&word.len()) && TIMES.binary_search(&word).is_ok()
}

/// Sorted, in the singular.
const TIMES: &[&str] = &[
    "afternoon",
    "am",
    "daily",
    "day",
    "evening",
    "fortnight",
    "fri",
    "friday",
    "hour",
    "hourly",
    "midnight",
    "minute",
    "mon",
    "monday",
    "month",
    "monthly",
    "morning",
    "night",
    "nightly",
    "noon",
    "now",
    "pm",
    "quarter",
    "sat",
    "saturday",
    "sun",
    "sunday",
    "thu",
    "thursday",
    "today",
    "tomorrow",
    "tonight",
    "tue",
    "tuesday",
    "wed",
    "wednesday",
    "week",
    "weekend",
    "weekly",
    "year",
    "yearly",
];

/// Tokens of a question that are looked over.
const LONGEST_QUESTION: usize = 40;
/// Tokens of the longest preamble.
const LONGEST_PREAMBLE: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_sorted_for_the_search() {
        assert!(TIMES.is_sorted());
        assert!(is_time("mondays") && is_time("tonight") && !is_time("server"));
    }
}
