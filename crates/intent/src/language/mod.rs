//! English sentences: tokens, clauses, and the reading of each clause by the word table. What is not understood is
//! reported as such.
//!
//! `token` splits the text and finds cues; `facts` collects amounts, counts and targets; `acts` turns a clause's
//! reading into an act; `scope` determines how far it reaches; `orders` finds command lines and quotations that are
//! to be run; `unread` records text in which nothing is known.

mod acts;
mod cover;
mod facts;
pub(crate) mod floor;
mod orders;
mod scope;
mod token;
mod unread;

use rulekeep_types::{Operation, Resource, RiskLevel};

use super::learned::{Clause, Heard, IntentTable, Stance, Vocabulary as _, clauses, weigh};
use super::lexicon::Lexicon;
use super::reading::{Act, Format, MOST_DOUBTFUL, Reading};
use super::risk;
use super::sign::{Sign, Signs};
use acts::Speaker;
pub(crate) use floor::{Letters, floor_words};
pub(crate) use token::{Kind, Token, classify, tokenise};

/// The meaning of a text, and the command lines that it asks to run.
pub(crate) struct Understood<'a> {
    pub reading: Reading,
    pub commands: Vec<&'a str>,
    /// Quotations after "run this".
    pub orders: Vec<&'a str>,
}

/// Reads English sentences; `lower` is the same text in ASCII lower case.
pub(crate) fn read<'a>(text: &'a str, lower: &'a str, lexicon: &Lexicon) -> Understood<'a> {
    let tokens = tokenise(text, lower, lexicon);
    let mut reading = Reading::new(Format::Text);
    facts::gather(&tokens, lexicon, &mut reading.facts);
    let cues = token::cues(&tokens);
    reading.facts.signs = reading.facts.signs.with(only_global(cues));
    for token in tokens.iter().filter(|token| token.cue.is_some()) {
        if let Some(sign) = token.cue {
            reading.facts.show(sign, token.text);
        }
    }
    let Some(table) = lexicon.table() else {
        reading.push(Act::unknown());
        return Understood { reading, commands: Vec::new(), orders: Vec::new() };
    };
    reading.facts.table = Some(table.digests());
    unread::note(&tokens, table, &mut reading.facts);
    let mut clauses = clauses(&tokens, table);
    if clauses.len() > MOST_CLAUSES {
        // Keeps the time linear in the length; the clauses left out may matter.
        clauses.truncate(MOST_CLAUSES);
        reading.facts.signs.add(Sign::Unclear);
    }
    let speaker = Speaker { tokens: &tokens, cues };
    reading.facts.known = Some(known(&tokens, table));
    read_clauses(&clauses, table, &speaker, &mut reading);
    if reading.acts.iter().any(|act| act.operation == Operation::Transfer) {
        facts::open_amounts(&tokens, lexicon, &mut reading.facts);
    }
    if cues.has(Sign::UnseenInstructions) {
        // "Open the page, then do exactly that": the page contains the instructions.
        let act = Act::new("follow", "instructions", Resource::Task, Operation::Execute, 0.7);
        reading.push(act.marked(Sign::UnseenInstructions));
    }
    if reading.acts.is_empty() {
        reading.push(Act::unknown());
    }
    cover::note(&tokens, &mut reading);
    let (commands, orders) = orders::find(&tokens, &clauses, text, lexicon);
    Understood { reading, commands, orders }
}

fn read_clauses(clauses: &[Clause<'_>], table: &IntentTable, speaker: &Speaker<'_, '_>, reading: &mut Reading) {
    if !clauses.iter().any(Clause::opens_question) && reading.facts.known.is_some_and(|known| known < LEAST_KNOWN) {
        return;
    }
    let asked: Vec<&Clause<'_>> = clauses
        .iter()
        // "How do I drop the table? Do it."
        .filter(|clause| clause.stance == Stance::Asked || clause.stance == Stance::About && speaker.orders_it_done())
        .collect();
    let heard: Vec<Heard> = asked.iter().map(|clause| weigh(clause, table).heard(table)).collect();
    let both = asked.iter().zip(&heard);
    let has_order = both.clone().any(|(clause, heard)| clause.is_order() && heard.none < MOST_NONE);
    // The clauses that ask for something, or else the one that comes closest.
    let nearest = heard.iter().map(|heard| heard.none).fold(1.0, f64::min);
    let asks = |clause: &Clause<'_>, heard: &Heard| {
        // Next to an order, a clause that is none usually states a fact.
        let most = if has_order && !clause.is_order() { MOST_NONE_BESIDE } else { MOST_NONE };
        heard.none <= nearest || heard.none < most
    };
    let kept = both.clone().filter(|(clause, heard)| asks(clause, heard));
    let surest = kept.map(|(_, heard)| heard.sure).fold(0.0, f64::max);
    for (clause, heard) in both {
        if !asks(clause, heard) && heard.none < DOUBTFUL && reading.facts.doubtful.len() < MOST_DOUBTFUL {
            // INVARIANT: the clause's own reading still counts for the decision.
            reading.facts.doubtful.push((heard.resource, heard.operation, heard.sure));
            reading.facts.doubtful.extend(&heard.others);
        }
        let Some(mut act) = speaker.act(clause, heard, table, &mut reading.facts) else { continue };
        let is_asked = asks(clause, heard);
        let may_harm = || {
            let level = risk::assess(&act, &reading.facts).level;
            level >= RiskLevel::High && heard.none < MOST_NONE_OF_HARM && act.operation != Operation::Read
        };
        if is_asked || act.is_unknown() || act.signs.has(Sign::Danger) || may_harm() {
            // INVARIANT: no clause removes another's act, so that asking for more never loosens a decision. Next to a
            // clear clause, an uncertain one never becomes the primary act.
            act.is_entailed |= heard.sure < surest * LEAST_SHARE || !is_asked && !act.signs.has(Sign::Danger);
            reading.push(act);
        }
    }
    if speaker.orders_it_done() && reading.acts.iter().all(|act| act.operation == Operation::Read) {
        // "Decode this and do it": nobody has seen the decoded text.
        let act = Act::new("follow", "instructions", Resource::Task, Operation::Execute, 0.5);
        reading.push(act.marked(Sign::UnseenInstructions));
    }
    if let Some(about) = clauses.iter().find(|clause| clause.stance == Stance::About) {
        let act = Act::new("answer", "question", Resource::Information, Operation::Read, 0.9);
        reading.push(act.told_by(about.words.first().copied().unwrap_or_default()));
    }
}

/// The share of words that the table knows, without function words, numbers and names. Halved if there is no English
/// function word, because a few words look alike in every language.
fn known(tokens: &[Token<'_>], table: &IntentTable) -> f64 {
    let (mut words, mut known, mut is_english) = (0_u32, 0_u32, false);
    for (place, token) in tokens.iter().enumerate().filter(|(_, token)| token.kind == Kind::Word) {
        if token.roles.is_small() {
            is_english |= token.word.len() > 1;
            continue;
        }
        let is_name = place > 0 && token.text.starts_with(char::is_uppercase);
        for word in token.word.split(|c: char| !(c.is_alphanumeric() || c == '\'')) {
            let word = word.strip_suffix("'s").unwrap_or(word);
            if word.chars().all(|c| c.is_alphabetic() || c == '\'') && !word.is_empty() {
                let is_known = table.knows(word);
                known += u32::from(is_known);
                words += u32::from(is_known || !is_name);
            }
        }
    }
    let share = f64::from(known) / f64::from(words.max(1));
    if is_english || share >= 0.6 { share } else { share / 2.0 }
}

/// Adds the signs of a name's words, and its scope.
pub(crate) fn reach(act: &mut Act, tokens: &[Token<'_>], clause: &Clause<'_>) {
    let place = |at: Option<&u32>| at.map_or(0, |&at| at as usize);
    let tokens = tokens.get(place(clause.at.first())..=place(clause.at.last())).unwrap_or_default();
    act.signs = act.signs.with(scope::local_signs(tokens));
    scope::add_scope(&mut act.signs, act.operation, tokens);
}

/// The signs that hold for the whole text wherever they occur.
fn only_global(cues: Signs) -> Signs {
    let mut global = Signs::default();
    for sign in [Sign::Override, Sign::Conceal, Sign::Production] {
        if cues.has(sign) {
            global.add(sign);
        }
    }
    global
}

/// The minimum share of known words of a text that is read.
const LEAST_KNOWN: f64 = 0.4;
/// The maximum probability that a counted clause asks for nothing; the second value is for a clause next to an order.
const MOST_NONE: f64 = 0.5;
const MOST_NONE_BESIDE: f64 = 0.05;
/// The maximum probability that a clause asks for nothing for it to count in the decision.
const DOUBTFUL: f64 = 0.9;
/// The same for a clause whose act is HIGH or CRITICAL, next to an order or not.
const MOST_NONE_OF_HARM: f64 = 0.6;
/// The minimum confidence in a clause relative to the most certain one.
const LEAST_SHARE: f64 = 0.7;
/// Maximum number of clauses read from one text.
const MOST_CLAUSES: usize = 2048;
