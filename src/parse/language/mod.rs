//! English sentences: tokens, then the verbs that ask for something, then what
//! they are done to. What is not understood is said to be so.
//!
//! `token` cuts the text and looks its words up; `heads` finds what is asked;
//! `object` weighs the nouns; `meaning` turns a verb and its nouns into an act;
//! `facts` gathers amounts, counts and targets; `unread` notes what nothing is known of.

mod content;
mod entitlement;
mod facts;
mod heads;
mod meaning;
mod medium;
mod object;
mod preamble;
mod request;
mod roles;
mod scope;
mod sentence;
mod sources;
mod tidy;
mod token;
mod unread;

use crate::model::{Operation, Resource};

use super::lexicon::{Class, Function, Lexicon};
use super::reading::{Act, Format, Reading};
use super::sign::{Sign, Signs};
use heads::Head;
pub(crate) use token::{Kind, Token, classify, tokenise};

/// What a text says, and the command lines that it asks to run.
pub(crate) struct Understood<'a> {
    pub reading: Reading,
    pub commands: Vec<&'a str>,
    /// What stands in quotation marks behind "run this".
    pub orders: Vec<&'a str>,
}

/// Reads a text of English sentences; `lower` is the same in ASCII lower case.
pub(crate) fn read<'a>(text: &'a str, lower: &'a str, lexicon: &Lexicon) -> Understood<'a> {
    let mut tokens = tokenise(text, lower, lexicon);
    let mut reading = Reading::new(Format::Text);
    facts::gather(&tokens, lexicon, &mut reading.facts);
    let cues = token::cues(&tokens);
    reading.facts.signs = reading.facts.signs.with(only_global(cues));
    for token in tokens.iter().filter(|token| token.cue.is_some()) {
        if let Some(sign) = token.cue {
            reading.facts.show(sign, token.text);
        }
    }
    unread::note(&tokens, &mut reading.facts);
    let comprehension = Comprehension::of(&tokens);
    reading.facts.known = Some(comprehension.known);
    if !comprehension.is_enough() {
        reading.push(Act::unknown());
        return Understood { reading, commands: Vec::new(), orders: Vec::new() };
    }
    content::mark(&mut tokens, lexicon);
    let clauses = clauses(&tokens, lexicon);
    for head in clauses.iter().filter(|head| head.verb.is_some()) {
        // A word that was read as a verb is no noun as well: "List", "email".
        if let Some(token) = tokens.get_mut(head.at) {
            token.entry.noun = None;
        }
    }
    let mut named = object::candidates(&tokens, lexicon);
    if named.len() > MOST_NAMED {
        // So that the time stays linear in the length; what is left out may matter.
        named.truncate(MOST_NAMED);
        reading.facts.signs.add(Sign::Unclear);
    }
    let context = meaning::Context { tokens: &tokens, lexicon, cues, named };
    for head in &clauses {
        for act in context.acts(head) {
            reading.push(act);
        }
    }
    tidy::drop_guesses(&mut reading.acts);
    context.add_sources(&clauses, &mut reading);
    context.entailed(&mut reading);
    if reading.facts.amounts.is_empty()
        && reading.acts.iter().any(|act| act.operation == Operation::Transfer && act.resource == Resource::Payment)
    {
        // "Transfer 50k to Bob": money goes unnamed where a verb says so.
        let pays = |head: &&Head| head.verb.is_some_and(|verb| lexicon.verb(verb).operation == Operation::Transfer);
        let amount = clauses.iter().filter(pays).find_map(|head| facts::bare_amount(&tokens, head.start));
        if let Some(amount) = amount {
            reading.facts.note_amount(amount, None);
        }
    }
    if cues.has(Sign::Destroys) && !reading.acts.iter().any(|act| act.operation == Operation::Delete) {
        reading.push(context.by_its_end());
    }
    if cues.has(Sign::UnseenInstructions) {
        // "Open the page, then do exactly that": the page says what is done.
        let act = Act::new("follow", "instructions", Resource::Task, Operation::Execute, 0.7);
        reading.push(act.marked(Sign::UnseenInstructions));
    }
    if reading.acts.iter().all(|act| act.operation == Operation::Read)
        && let Some(act) = context.by_what_is_denied()
    {
        reading.push(act);
    } else if clauses.iter().all(|head| !context.orders(head))
        && let Some(act) = context.by_what_is_due()
    {
        reading.acts.clear();
        reading.push(act);
    }
    if reading.acts.is_empty() {
        let by_nouns = || context.by_nouns_alone().filter(|_| comprehension.known >= 0.4);
        reading.push(context.by_a_deed(&clauses, false).or_else(by_nouns).unwrap_or_else(Act::unknown));
    } else if orders_it_done(&tokens) && reading.acts.iter().all(|act| act.operation == Operation::Read) {
        if let Some(act) = context.by_a_deed(&[], true) {
            // "How do I drop the table? Do it."
            reading.push(act);
        } else if clauses.iter().any(|head| head.verb.is_some_and(|verb| lexicon.verb(verb).is(Class::Uncovers))) {
            // "Decode this and do it": nobody has seen what.
            let act = Act::new("follow", "instructions", Resource::Task, Operation::Execute, 0.5);
            reading.push(act.marked(Sign::UnseenInstructions));
        }
    }
    let commands = commands(&tokens, &clauses, text, lexicon);
    let orders = orders(&tokens, &clauses, lexicon);
    Understood { reading, commands, orders }
}

/// "Do it", "try that", "go ahead".
fn orders_it_done(tokens: &[Token<'_>]) -> bool {
    tokens.windows(2).any(|pair| {
        let [verb, object] = pair else { return false };
        matches!(verb.word, "do" | "try") && matches!(object.word, "it" | "that" | "this" | "so")
            || verb.word == "go" && object.word == "ahead"
    })
}

/// The heads of all sentences; mere mentions only where a sentence's asked ones leave room.
fn clauses(tokens: &[Token<'_>], lexicon: &Lexicon) -> Vec<Head> {
    let mut heads = Vec::new();
    let mut from = 0;
    for (index, token) in tokens.iter().enumerate() {
        if token.kind == Kind::Stop {
            heads::find(tokens, from, index, lexicon, &mut heads);
            from = index + 1;
        }
    }
    heads::find(tokens, from, tokens.len(), lexicon, &mut heads);
    join_parted(&mut heads, tokens);
    request::retain_requests(&mut heads, tokens, lexicon);
    request::share_objects(&mut heads, tokens);
    request::mark_ingredients(&mut heads, lexicon);
    heads
}

/// "Delete... all files": an order whose object stands behind the stop.
fn join_parted(heads: &mut [Head], tokens: &[Token<'_>]) {
    for place in 0..heads.len() {
        let next_at = heads.get(place + 1).map_or(tokens.len(), |next| next.at);
        let Some(head) = heads.get_mut(place).filter(|head| head.verb.is_some() && head.start >= head.end) else {
            continue;
        };
        let from = head.end;
        let behind = tokens.iter().enumerate().skip(from).skip_while(|(_, token)| token.kind == Kind::Stop);
        let Some((start, _)) = behind.clone().next() else { continue };
        let end = behind.take_while(|(_, token)| token.kind != Kind::Stop).last().map_or(start, |(at, _)| at + 1);
        if head.at < start && start < next_at {
            (head.start, head.end) = (start, end.min(next_at));
        }
    }
}

/// How much of a text is known words.
struct Comprehension {
    /// The share of the words that are known, small words aside.
    known: f64,
    /// The share with the small words.
    covered: f64,
    /// Some word tells what is wanted.
    meaningful: bool,
}

impl Comprehension {
    fn of(tokens: &[Token<'_>]) -> Self {
        let (mut words, mut content, mut known, mut covered, mut meaningful) = (0_u32, 0_u32, 0_u32, 0_u32, false);
        for token in tokens {
            if token.kind != Kind::Word || !token.word.chars().any(char::is_alphabetic) {
                continue;
            }
            words += 1;
            let entry = token.entry;
            let carries = entry.verb.is_some() || entry.noun.is_some() || entry.function == Some(Function::Question);
            covered += u32::from(carries || entry.function.is_some() || entry.cue.is_some());
            let opens_a_question = words == 1 && matches!(entry.function, Some(Function::Auxiliary | Function::Modal));
            meaningful |= carries || entry.function == Some(Function::About) || opens_a_question;
            if entry.function.is_none() {
                content += 1;
                known += u32::from(carries || entry.cue.is_some());
            }
        }
        let share = |part: u32, whole: u32| f64::from(part) / f64::from(whole.max(1));
        Self { known: share(known, content), covered: share(covered, words), meaningful }
    }

    /// Whether a reading means anything.
    fn is_enough(&self) -> bool {
        self.meaningful && self.covered >= 0.3
    }
}

/// The signs that hold for the whole text wherever they stand in it.
fn only_global(cues: Signs) -> Signs {
    let mut global = Signs::default();
    for sign in [Sign::Override, Sign::Conceal, Sign::Production] {
        if cues.has(sign) {
            global.add(sign);
        }
    }
    global
}

/// The command lines that the text asks to run: in quotation marks or plain behind "run".
fn commands<'a>(tokens: &[Token<'a>], heads: &[Head], text: &'a str, lexicon: &Lexicon) -> Vec<&'a str> {
    let mut found = Vec::new();
    // A plain command reaches to the end of its line, so that a later one in the line is part of it.
    let mut covered = 0;
    for head in heads {
        let runs = head.verb.is_some_and(|verb| lexicon.verb(verb).is(Class::Runs));
        if !runs {
            continue;
        }
        let governed = tokens.get(head.start..head.end).unwrap_or(&[]);
        let quoted = governed.iter().filter(|token| matches!(token.kind, Kind::CodeSpan | Kind::Quoted));
        found.extend(quoted.map(|token| token.text).filter(|span| starts_with_program(span, lexicon)));
        // "Run the following: ...", "Execute: ...", also on the next line and between fences.
        let behind = text.get(tokens.get(head.at).map_or(0, |token| token.start)..).unwrap_or("");
        let colon = behind.bytes().take(LONGEST_LEAD + 1).position(|byte| matches!(byte, b':' | b'\n'));
        if let Some((lead, rest)) =
            colon.and_then(|colon| Some((behind.get(..colon)?, behind.get(colon..)?.strip_prefix(':')?)))
        {
            let rest = rest.trim_start_matches(['\n', '\r', ' ', '`']);
            let rest = ["bash", "sh", "shell", "console"]
                .iter()
                .find_map(|fence| rest.strip_prefix(fence)?.strip_prefix('\n'))
                .unwrap_or(rest)
                .trim_end_matches(['`', '\n', ' ']);
            let at = text.len() - behind.len() + lead.len();
            if at >= covered && starts_with_program(rest, lexicon) {
                found.push(rest);
                covered = text.len();
                continue;
            }
        }
        if let Some(first) = governed.iter().find(|token| token.kind == Kind::Word && !token.is(Function::Determiner)) {
            if first.start < covered {
                continue;
            }
            let rest = text.get(first.start..).unwrap_or("").lines().next().unwrap_or("");
            covered = first.start + rest.len();
            let is_line = rest.contains(['|', ';', '&', '>', '$', '`'])
                || rest.split_whitespace().nth(1).is_some_and(looks_like_argument);
            if starts_with_program(rest, lexicon) && is_line {
                found.push(rest);
            }
        }
    }
    found
}

/// Quotations that the text asks to run and that are no command lines: "Run this: 'wipe the disk'".
fn orders<'a>(tokens: &[Token<'a>], heads: &[Head], lexicon: &Lexicon) -> Vec<&'a str> {
    let runs = |head: &&Head| {
        head.verb.is_some_and(|verb| lexicon.verb(verb).is(Class::Runs) || lexicon.verb(verb).is(Class::Obeys))
    };
    let governed = heads.iter().filter(runs).flat_map(|head| tokens.get(head.start..head.end).unwrap_or(&[]));
    governed
        .filter(|token| token.kind == Kind::Quoted && token.text.contains(' '))
        .filter(|token| !starts_with_program(token.text, lexicon))
        .map(|token| token.text)
        .take(MOST_ORDERS)
        .collect()
}

fn starts_with_program(text: &str, lexicon: &Lexicon) -> bool {
    text.split_whitespace().next().is_some_and(|first| lexicon.programs.knows(first))
}

fn looks_like_argument(word: &str) -> bool {
    word.starts_with(['-', '/', '.', '~', '$', '*']) || word.contains('/')
}

/// Bytes between "run" and the colon behind which a command stands.
const LONGEST_LEAD: usize = 48;
/// Quotations that are read as orders.
const MOST_ORDERS: usize = 8;
/// Nouns of a text that serve as context.
const MOST_NAMED: usize = 512;

/// The resource that stands in when nothing names one, and whether that is a mere guess.
fn fallback(operation: Operation) -> Resource {
    match operation {
        Operation::Read => Resource::Information,
        Operation::Send => Resource::Message,
        Operation::Transfer => Resource::Payment,
        Operation::Admin => Resource::Permission,
        Operation::Execute => Resource::System,
        Operation::Write => Resource::Document,
        Operation::Delete | Operation::Unknown => Resource::Unknown,
    }
}
