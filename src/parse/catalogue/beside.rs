//! What a sentence of a description says beside its first verb: "Searches tickets
//! and deletes them", "Imports data, replacing the table", "The file is deleted
//! afterwards". Advice to the caller, conditions and denials tell of no deed.

use crate::model::{Operation, Resource};
use crate::parse::format::tools;
use crate::parse::lexicon::{Form, Function, Lexicon};
use crate::parse::reading::Act;
use crate::parse::sign::Sign;

use super::description;

/// The acts of a sentence's further verbs that change something.
pub(super) fn acts(sentence: &str, lexicon: &Lexicon) -> Vec<Act> {
    let words = Words::of(description::opened(sentence), lexicon);
    let mut requests = words.coordinated();
    requests.extend(words.passive());
    requests
        .iter()
        .take(MOST_DEEDS)
        .flat_map(|request| description::acts(request, lexicon).into_iter().take(1).map(|act| settled(act, request)))
        .filter(|act| !matches!(act.operation, Operation::Read | Operation::Unknown))
        .collect()
}

/// What a verb is of a tool, where it could be something else of a person: to upload to somebody outside sends,
/// to replace everything removes what stood there, to charge a customer takes money.
fn settled(act: Act, request: &str) -> Act {
    let has = |list: &str| request.split(' ').any(|word| tools().name_word(list, &word.to_ascii_lowercase()));
    let first = request.split(' ').next().unwrap_or("");
    if act.operation == Operation::Write && tools().name_word("hands_over", first) && has("outside") {
        return Act { operation: Operation::Send, ..act }.marked(Sign::Outside);
    }
    if act.operation == Operation::Write && tools().name_word("overwrites", first) && has("wholesale") {
        return Act { operation: Operation::Delete, resource: Resource::Unknown, ..act }.marked(Sign::Bulk);
    }
    let is_owed = matches!(act.resource, Resource::Customer | Resource::Account | Resource::Payment);
    if tools().name_word("collects", first) && is_owed {
        return Act { operation: Operation::Transfer, resource: Resource::Payment, ..act };
    }
    act
}

/// One word with what stands before it.
struct Word<'s> {
    /// As it stands.
    text: &'s str,
    lower: String,
    verb: Option<(String, Form)>,
    is_noun: bool,
    function: Option<Function>,
    /// A comma, a semicolon or a dash stands before it.
    is_cut: bool,
}

/// The words of a sentence.
struct Words<'s> {
    words: Vec<Word<'s>>,
}

impl<'s> Words<'s> {
    fn of(sentence: &'s str, lexicon: &Lexicon) -> Self {
        let mut is_cut = false;
        let mut words = Vec::new();
        for piece in sentence.split_whitespace().take(MOST_WORDS) {
            let text = piece.trim_matches(|c: char| !c.is_alphanumeric());
            if text.is_empty() {
                is_cut |= matches!(piece, "-" | "\u{2013}" | "\u{2014}" | ";" | "&" | "+" | "/");
                continue;
            }
            let lower = text.to_lowercase();
            let entry = lexicon.word(&lower);
            words.push(Word {
                text,
                verb: entry
                    .and_then(|entry| entry.verb)
                    .map(|(id, form)| (lexicon.verb(id).lemma.replace('_', " "), form)),
                is_noun: entry.is_some_and(|entry| entry.noun.is_some()),
                function: entry.and_then(|entry| entry.function),
                lower,
                is_cut: is_cut || piece.starts_with('('),
            });
            is_cut = piece.ends_with([',', ';', ':', ')']);
        }
        Self { words }
    }

    fn get(&self, place: usize) -> Option<&Word<'s>> {
        self.words.get(place)
    }

    /// The verbs that stand beside the first one, each with its object, as requests.
    fn coordinated(&self) -> Vec<String> {
        let Some((_, form)) = self.words.first().and_then(|first| first.verb.as_ref()) else { return Vec::new() };
        if !matches!(form, Form::Base | Form::Third) || self.is_advice(0) {
            return Vec::new();
        }
        let heads: Vec<usize> = (1..self.words.len()).filter(|&place| self.stands_beside(place, *form)).collect();
        // What the first verb governs stands in for "it" and "them".
        let until = heads.first().map_or(self.words.len(), |&head| self.start_of(head));
        let object = self.object(1, until);
        heads
            .iter()
            .enumerate()
            .map(|(turn, &head)| {
                let end = heads.get(turn + 1).map_or(self.words.len(), |&next| self.start_of(next));
                let mut behind = self.phrase(head + 1, end, &object);
                if behind.is_empty() {
                    // "List, create, and delete tickets": what they share stands behind the last.
                    behind =
                        heads.last().map_or_else(String::new, |&last| self.phrase(last + 1, self.words.len(), &object));
                }
                let lemma = self.get(head).and_then(|word| word.verb.as_ref()).map_or("", |(lemma, _)| lemma);
                format!("{lemma} {}", if behind.is_empty() { &object } else { &behind })
            })
            .collect()
    }

    /// Whether the word is a verb beside the first one, in its form, behind a comma or "and".
    fn stands_beside(&self, place: usize, form: Form) -> bool {
        let Some(word) = self.get(place) else { return false };
        let Some((_, own)) = &word.verb else { return false };
        let start = self.start_of(place);
        let is_cut = (start..=place).any(|place| self.get(place).is_some_and(|word| word.is_cut));
        let is_joined = start < place && self.get(start).is_some_and(Word::joins);
        if self.is_advice(place) || !(is_cut || is_joined || *own == Form::Ing) {
            return false;
        }
        if *own == Form::Ing {
            // "Imports data, replacing the table"
            let is_means = form == Form::Third && self.get(place - 1).is_some_and(|word| word.lower == "by");
            return (is_cut || is_means) && !word.is_noun && !self.is_denied(start);
        }
        if *own != form || form == Form::Base && self.depends(start) {
            return false;
        }
        // "Lists reviews and comments": a noun, unless it governs something.
        !word.is_noun || self.get(place + 1).is_some_and(|next| next.opens_object(form))
    }

    /// Where the words begin that only lead up to a verb: "and then permanently deletes".
    fn start_of(&self, verb: usize) -> usize {
        let leads = |place: &usize| self.get(*place).is_some_and(|word| word.joins() || word.leads_up());
        (1..verb).rev().take_while(leads).last().unwrap_or(verb)
    }

    /// "Use x to delete it", "See also": what the caller is to do.
    fn is_advice(&self, place: usize) -> bool {
        self.get(place).is_some_and(|word| tools().name_word("advice", &word.lower))
    }

    /// Whether the words before a place make what follows somebody else's deed: "whether the user may read and delete".
    fn depends(&self, place: usize) -> bool {
        let infinitive = |at: usize| {
            self.get(at).is_some_and(|word| word.lower == "to")
                && self.get(at + 1).is_some_and(|next| matches!(next.verb, Some((_, Form::Base))) && !next.is_noun)
        };
        (1..place).any(|at| infinitive(at) || self.get(at).is_some_and(Word::subordinates))
    }

    /// Whether the verb before a place is denied: "without changing it, deleting nothing".
    fn is_denied(&self, place: usize) -> bool {
        place.checked_sub(1).and_then(|before| self.get(before)).is_some_and(Word::denies)
            || self.get(place).is_some_and(Word::denies)
    }

    /// What is done to something: "the document is deleted afterwards", as "delete the document".
    fn passive(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut clause = 0;
        for (place, word) in self.words.iter().enumerate() {
            if word.is_cut || word.joins() {
                clause = place;
            }
            if !matches!(word.lower.as_str(), "is" | "are" | "be" | "gets" | "get") || clause >= place {
                continue;
            }
            let is_asked = word.lower == "be"
                && place.checked_sub(1).and_then(|at| self.get(at)).is_none_or(|word| word.lower != "will");
            // "The document, which is deleted after that": told of what stands before it.
            let tells_more = self.get(clause).is_some_and(|word| word.is_cut && word.lower == "which");
            let governs = (clause + usize::from(tells_more)..place).any(|at| {
                self.get(at).is_some_and(|word| {
                    word.subordinates() || word.denies() || matches!(word.lower.as_str(), "after" | "before" | "once")
                })
            });
            let mut next = place + 1;
            while self.get(next).is_some_and(Word::leads_up) {
                next += 1;
            }
            let Some((lemma, Form::Past)) = self.get(next).and_then(|word| word.verb.as_ref()) else { continue };
            if is_asked || governs {
                continue;
            }
            let subject = if tells_more { self.object(1, clause) } else { self.phrase(clause, place, "") };
            let subject = subject.strip_suffix(" will").unwrap_or(&subject);
            found.push(format!("{lemma} {subject} {}", self.phrase(next + 1, self.words.len(), "")));
        }
        found
    }

    /// The first object: the words up to a preposition.
    fn object(&self, from: usize, to: usize) -> String {
        let end = (from..to)
            .find(|&place| {
                place > from
                    && self.get(place).is_some_and(|word| word.is_cut || word.function == Some(Function::Preposition))
            })
            .unwrap_or(to);
        self.phrase(from, end, "")
    }

    /// The words of a piece, with what a pronoun stands for in its place.
    fn phrase(&self, from: usize, to: usize, object: &str) -> String {
        let mut phrase = String::new();
        for word in self.words.get(from..to).unwrap_or(&[]).iter().skip_while(|word| word.joins()) {
            let stands_in = !object.is_empty() && matches!(word.lower.as_str(), "it" | "them");
            if !phrase.is_empty() {
                phrase.push_str(if word.is_cut { ", " } else { " " });
            }
            phrase.push_str(if stands_in { object } else { word.text });
        }
        phrase
    }
}

impl Word<'_> {
    fn joins(&self) -> bool {
        matches!(self.lower.as_str(), "and" | "or" | "then" | "but" | "plus")
    }

    /// "permanently", "also": what says how, not what.
    fn leads_up(&self) -> bool {
        self.function == Some(Function::Filler)
            || tools().name_word("subjects", &self.lower)
            || self.verb.is_none() && !self.is_noun && self.lower.len() > 4 && self.lower.ends_with("ly")
    }

    fn denies(&self) -> bool {
        self.function == Some(Function::Negation) || matches!(self.lower.as_str(), "without" | "no" | "nothing")
    }

    /// What makes the deed a question, a condition or another's.
    fn subordinates(&self) -> bool {
        tools().name_word("subordinating", &self.lower)
    }

    /// Whether a verb before it governs it: "the", "it", "all", or behind "posts" a plain noun.
    fn opens_object(&self, form: Form) -> bool {
        let is_joined_noun = form == Form::Third && self.is_noun && !self.is_cut;
        !self.is_cut && (matches!(self.function, Some(Function::Determiner | Function::Pronoun)) || is_joined_noun)
    }
}

/// Deeds of one sentence that are read.
const MOST_DEEDS: usize = 8;
/// Words of one sentence that are looked at.
const MOST_WORDS: usize = 64;
