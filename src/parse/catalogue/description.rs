//! What a description says that the tool does: its first sentence, and the later
//! ones that tell of a deed, read as requests.

use crate::model::Operation;
use crate::parse::format::tools;
use crate::parse::language;
use crate::parse::lexicon::{Form, Function, Lexicon};
use crate::parse::reading::Act;

use super::beside;

/// What the description asks for: the acts of its first sentence, whether a verb
/// opens it, and what else it does besides.
#[derive(Debug, Default)]
pub(super) struct Described {
    pub acts: Vec<Act>,
    pub is_verb: bool,
    pub also: Vec<Act>,
}

/// Reads a description.
pub(super) fn read(description: &str, lexicon: &Lexicon) -> Described {
    let mut described = Described::default();
    let mut sentences = sentences(description);
    if let Some(first) = sentences.next() {
        let (asked, is_verb) = asked(first, lexicon);
        described.acts = acts(&asked, lexicon);
        described.is_verb = is_verb;
        described.also = beside::acts(first, lexicon);
    }
    for sentence in sentences.take(MOST_SENTENCES) {
        let lower = sentence.to_ascii_lowercase();
        let also = lower.find("also ").filter(|&place| place < OPENS_WITHIN).map(|place| place + "also ".len());
        let told = sentence.get(also.unwrap_or(0)..).unwrap_or("");
        let (asked, is_verb) = asked(told, lexicon);
        if is_verb && (also.is_some() || tells(told, lexicon)) {
            let acts = acts(&asked, lexicon).into_iter();
            described
                .also
                .extend(acts.take(1).filter(|act| !matches!(act.operation, Operation::Read | Operation::Unknown)));
        }
        described.also.extend(beside::acts(sentence, lexicon));
    }
    described
}

pub(super) fn acts(sentence: &str, lexicon: &Lexicon) -> Vec<Act> {
    let lower = sentence.to_ascii_lowercase();
    language::read(sentence, &lower, lexicon).reading.acts.into_iter().filter(|act| !act.is_unknown()).collect()
}

/// The sentences, each cut to what is read of one.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.split(['\n', '!'])
        .flat_map(|line| line.split(". "))
        .map(|sentence| sentence.trim().trim_end_matches('.'))
        .filter(|sentence| !sentence.is_empty())
        .map(|sentence| {
            let end = (0..=sentence.len().min(LONGEST_SENTENCE)).rev().find(|&end| sentence.is_char_boundary(end));
            sentence.get(..end.unwrap_or(0)).unwrap_or("")
        })
}

/// The sentence as a request: "This tool sends an email" is "send an email".
fn asked(sentence: &str, lexicon: &Lexicon) -> (String, bool) {
    let rest = opened(sentence);
    let (first, tail) = rest.split_at(rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len()));
    let first = first.to_lowercase();
    match lexicon.word(&first).and_then(|entry| entry.verb) {
        Some((id, form)) => {
            let verb = if form == Form::Base { first } else { lexicon.verb(id).lemma.replace('_', " ") };
            // Things in backquotes are arguments, not commands.
            (format!("{verb}{}", tail.replace('`', "")), true)
        }
        None => (rest.replace('`', ""), false),
    }
}

/// The sentence behind what only opens it.
pub(super) fn opened(sentence: &str) -> &str {
    let mut rest = sentence.trim_start_matches(|c: char| !c.is_alphanumeric());
    loop {
        let lower = rest.to_ascii_lowercase();
        let opening =
            tools().openings.iter().filter(|opening| opens_with(&lower, opening)).map(|opening| opening.len()).max();
        let Some(length) = opening else { return rest };
        rest = rest.get(length..).unwrap_or("").trim_start();
    }
}

/// "Deletes the sessions", "It sends a copy": what the tool does. "Delete them first" tells the caller what to do.
fn tells(sentence: &str, lexicon: &Lexicon) -> bool {
    let mut words = sentence.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let entry = |word: &str| lexicon.word(&word.to_ascii_lowercase());
    let verb = words.by_ref().find(|word| !tools().name_word("subjects", &word.to_ascii_lowercase()));
    let is_verb = verb.and_then(entry).and_then(|entry| entry.verb).is_some_and(|(_, form)| form == Form::Third);
    // "Posts are kept", "Reports can be sent": a noun.
    let is_noun = words.next().and_then(entry).is_some_and(|next| {
        matches!(next.function, Some(Function::Auxiliary | Function::Modal | Function::Constraint))
    });
    is_verb && !is_noun
}

fn opens_with(text: &str, opening: &str) -> bool {
    text.strip_prefix(opening).is_some_and(|rest| rest.starts_with(' '))
}

/// Sentences after the first that are looked at.
const MOST_SENTENCES: usize = 8;
/// How far from its start a sentence says "also", in bytes.
const OPENS_WITHIN: usize = 24;
/// Longest piece of a sentence that is read, in bytes.
const LONGEST_SENTENCE: usize = 300;
