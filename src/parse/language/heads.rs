//! Which verbs of a sentence ask for something: imperatives, polite forms,
//! wishes and questions; and which only tell, quote, or are forbidden.

use std::ops::Range;

use crate::model::Operation;
use crate::parse::lexicon::{Class, Function, Lexicon, VerbId};

use super::sentence::{Sentence, is_skipped};
use super::token::Token;

/// A verb that asks for something, and the tokens that it governs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    /// The verb; none for a question or a bare wish.
    pub verb: Option<VerbId>,
    pub manner: Manner,
    /// Where the verb stands; for a question, its first word.
    pub at: usize,
    /// First token after the verb.
    pub start: usize,
    /// One past the last token that it governs.
    pub end: usize,
    /// Where its sentence starts.
    pub sentence: usize,
    /// It only says what goes into something else: what it names is read for that.
    pub feeds: bool,
}

impl Head {
    fn new(verb: Option<VerbId>, manner: Manner, at: usize, governs: Range<usize>, sentence: usize) -> Self {
        Self { verb, manner, at, start: governs.start, end: governs.end, sentence, feeds: false }
    }
}

/// How it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    /// An imperative or a polite request.
    Asked,
    /// "I want to", "I need to": asks, unless it only tells why something else is asked.
    Wished,
    /// A purpose, a plan or a side remark: counts beside an asked one, or where there is none.
    Mentioned,
    /// A question of fact.
    Question,
    /// "I need the report": a wish without a verb.
    Wanted,
    /// "Could you frobnicate the table?": an order by a verb that is not known.
    Obscure,
}

/// The heads of the sentence that `tokens[from..to]` is.
pub(super) fn find(tokens: &[Token<'_>], from: usize, to: usize, lexicon: &Lexicon, heads: &mut Vec<Head>) {
    let first_new = heads.len();
    let Some(opening) = (from..to).find(|&index| !is_skipped(tokens, index)) else { return };
    let sentence = Sentence { tokens, from, to, lexicon };
    let asks = sentence.is_question(opening) && !sentence.is_polite_question(opening);
    let opens_with = tokens.get(opening);
    let inquires = asks && opens_with.is_some_and(|token| token.is(Function::Question));
    // "Did I remember to add it": what was done is asked about, whatever is led in by.
    let looks_back = asks && opens_with.is_some_and(|token| matches!(token.word, "did" | "was" | "were" | "has"));
    let (mut about, mut reminds) = (false, false);
    for index in opening..to {
        let Some(token) = tokens.get(index) else { break };
        if token.is(Function::About) {
            about = true;
            // "List the steps to revoke a key" asks about it.
            let looks = |head: &Head| head.verb.is_none_or(|verb| lexicon.verb(verb).operation == Operation::Read);
            if heads.len() > first_new && heads.last().is_some_and(looks) {
                heads.pop();
            } else if let Some(last) = heads.get_mut(first_new..).and_then(<[Head]>::last_mut) {
                last.end = index;
            }
            if heads.len() == first_new {
                heads.push(Head::new(None, Manner::Question, index, index + 1..to, from));
            }
            continue;
        }
        // "Remind me to call" calls nobody.
        let is_reminder = reminds && index > from && tokens.get(index - 1).is_some_and(|before| before.word == "to");
        let manner = if about || is_reminder { None } else { sentence.manner(index, asks) };
        // "How much do I have to pay": the verb is what is asked about.
        let manner = manner.filter(|_| !looks_back);
        let manner = manner.filter(|manner| !inquires || matches!(manner, Manner::Asked | Manner::Question));
        if manner.is_none()
            && !about
            && let Some((manner, verb)) = sentence.passive(index)
        {
            // "The logs should be wiped": what is done to stands before.
            let start = opening.max(index.saturating_sub(LONGEST_SUBJECT));
            heads.push(Head::new(Some(verb), manner, index, start..index, from));
            continue;
        }
        if manner.is_none()
            && !(about || is_reminder || looks_back || inquires)
            && sentence.is_obscure_order(index, asks, heads.iter().any(|head| head.verb.is_some()))
        {
            if let Some(previous) = heads.get_mut(first_new..).and_then(<[Head]>::last_mut) {
                previous.end = index;
            }
            heads.push(Head::new(None, Manner::Obscure, index, index + 1..to, from));
            continue;
        }
        if let (Some(manner), Some((verb, _))) = (manner, token.entry.verb) {
            let light = sentence.light_verb(index);
            let verb = light.map(|(deed, _)| deed).or_else(|| sentence.with_particle(index)).unwrap_or(verb);
            if let Some(previous) = heads.get_mut(first_new..).and_then(<[Head]>::last_mut) {
                previous.end = index;
            }
            reminds |= lexicon.verb(verb).is(Class::Reminds);
            let start = light.map_or(index + 1, |(_, behind)| behind);
            heads.push(Head::new(Some(verb), manner, index, start..to, from));
        }
    }
    add_what_no_verb_asks(&sentence, asks, opening, first_new, heads);
}

/// Tokens before a passive verb that can be what is done to.
const LONGEST_SUBJECT: usize = 24;

/// A question of fact, or a bare wish, where no verb asks.
fn add_what_no_verb_asks(
    sentence: &Sentence<'_, '_>,
    asks: bool,
    opening: usize,
    first_new: usize,
    heads: &mut Vec<Head>,
) {
    let (from, to) = (sentence.from, sentence.to);
    let found = heads.get(first_new..).unwrap_or(&[]);
    // "Can i substitute milk": a question whose verb is not known.
    let asks = asks || found.is_empty() && sentence.opens_as_question(opening);
    if found.iter().any(|head| head.manner == Manner::Obscure) {
        return;
    }
    if asks
        && !found.iter().any(|head| matches!(head.manner, Manner::Asked | Manner::Wished) && head.start < opening + 6)
    {
        let end = found.first().map_or(to, |head| head.start.saturating_sub(1).max(opening + 1));
        heads.insert(first_new, Head::new(None, Manner::Question, opening, opening..end, from));
    } else if !found.iter().any(|head| matches!(head.manner, Manner::Asked | Manner::Wished))
        && let Some(want) = (from..to).find(|&index| sentence.is_bare_wish(index))
    {
        heads.insert(first_new, Head::new(None, Manner::Wanted, want, want + 1..to, from));
    }
}
