//! Derived readings: texts decoded or respelled from the input. What they ask for counts as if it had been written
//! plainly, and the disguise is a risk sign of its own.

use rulekeep_types::{Operation, Resource, RiskLevel};

use super::format::{self, ToolTurn};
use super::lexicon::Lexicon;
use super::normalize::{Normalized, Turned, confusable, escapes, normalize, respell, wrapped};
use super::reading::{Act, Format, Reading};
use super::sign::Sign;
use super::{manipulation, risk};

/// Reads a normalized text and every text derived from it.
pub(crate) fn read_on(normalized: &Normalized<'_>, lexicon: &Lexicon, tools: &ToolTurn<'_>) -> (Reading, Vec<String>) {
    let written = normalized.text.len() + normalized.unseen.iter().map(String::len).sum::<usize>();
    let mut driver =
        Driver { lexicon, tools, left: written.saturating_mul(2), decoded: Vec::new(), waiting: Vec::new() };
    let mut reading = driver.read(normalized);
    if normalized.styled && matters(&reading) {
        reading.facts.signs.add(Sign::Disguised);
    }
    for unseen in &normalized.unseen {
        reading.facts.show(Sign::HiddenCharacters, unseen);
        driver.waiting.push(Candidate::new(unseen, Some(Sign::HiddenCharacters), 1));
    }
    driver.candidates(&normalized.text, &mut reading, 0);
    let mut at = 0;
    // INVARIANT: a candidate waits only for a text below the greatest depth, and pieces take from the bytes left.
    while let Some(candidate) = driver.waiting.get_mut(at).map(std::mem::take) {
        at += 1;
        let normalized = normalize(&candidate.text, lexicon);
        let mut other = driver.read(&normalized);
        if let Some(depth) = candidate.depth {
            driver.candidates(&normalized.text, &mut other, depth);
        }
        take_in(&mut reading, other, candidate.sign, &candidate.text);
    }
    (reading, driver.decoded)
}

/// A text derived from another one.
#[derive(Default)]
struct Candidate {
    text: String,
    /// The sign of the derivation, if the text asks for something.
    sign: Option<Sign>,
    /// The number of derivations before; `None` for another spelling, from which nothing is derived.
    depth: Option<usize>,
}

impl Candidate {
    fn new(text: &str, sign: Option<Sign>, depth: usize) -> Self {
        Self { text: text.to_owned(), sign, depth: Some(depth) }
    }

    const fn spelling(text: String, sign: Option<Sign>) -> Self {
        Self { text, sign, depth: None }
    }
}

/// Reads a text and the candidates that it gives rise to, one after the other.
struct Driver<'l> {
    lexicon: &'l Lexicon,
    tools: &'l ToolTurn<'l>,
    /// Bytes of decoded text that may still be read: three layers of base64 add up to less than twice the input.
    left: usize,
    /// The decoded texts, for pattern matching.
    decoded: Vec<String>,
    waiting: Vec<Candidate>,
}

impl Driver<'_> {
    /// Notes the texts derived from a text, whose own reading is given.
    fn candidates(&mut self, text: &str, reading: &mut Reading, depth: usize) {
        if depth >= DEEPEST {
            if !wrapped::pieces(text).is_empty() {
                // No honest text is encoded so many times.
                reading.push(Act::unclear_execution("encoded_text"));
            }
            return;
        }
        let undone = escapes::undone(text);
        if let Some(undone) = &undone {
            self.decoded.push(undone.clone());
            self.waiting.push(Candidate::spelling(undone.clone(), Some(Sign::Disguised)));
        }
        let (written, text) = (text, undone.as_deref().unwrap_or(text));
        let structured = text.trim_start().starts_with(['{', '[']);
        let guessed = reading.acts.iter().all(|act| act.signs.has(Sign::Unclear));
        if (structured || guessed || matches!(reading.format, Format::Text))
            && let Some(respelled) = respell::respelled(text, structured, self.lexicon)
        {
            let sign = respelled.disguised.then_some(Sign::Disguised);
            self.waiting.push(Candidate::spelling(respelled.text, sign));
        }
        let turned = Turned::of(text, written, self.lexicon);
        let mut pieces = wrapped::pieces(text);
        let is_crowded = pieces.len() >= wrapped::MOST;
        pieces.retain(|piece| says_something(&piece.text, self.lexicon));
        if turned.is_none() && pieces.is_empty() || asks_of_code(text, reading) {
            return;
        }
        if let Some(rotated) = turned.rotated {
            self.waiting.push(Candidate::spelling(rotated, Some(Sign::Encoded)));
        }
        if let Some([whole, by_word]) = turned.reversed {
            self.waiting.push(Candidate::new(&whole, Some(Sign::Encoded), depth + 1));
            self.waiting.push(Candidate::spelling(by_word, Some(Sign::Encoded)));
        }
        if pieces.is_empty() {
            return;
        }
        if is_crowded {
            reading.push(Act::unclear_execution("encoded_text"));
        }
        let mut whole = String::with_capacity(text.len());
        let mut at = 0;
        for piece in &pieces {
            whole.push_str(text.get(at..piece.start).unwrap_or(""));
            whole.push_str(&piece.text);
            at = piece.end;
            if piece.text.len() <= self.left {
                self.left -= piece.text.len();
                self.waiting.push(Candidate::new(&piece.text, Some(Sign::Encoded), depth + 1));
            } else {
                reading.facts.signs.add(Sign::Unclear);
            }
        }
        whole.push_str(text.get(at..).unwrap_or(""));
        self.waiting.push(Candidate::spelling(whole, Some(Sign::Encoded)));
        self.decoded.extend(pieces.into_iter().map(|piece| piece.text));
    }

    fn read(&self, normalized: &Normalized<'_>) -> Reading {
        let text = &normalized.text;
        let mut reading = format::read(text, self.lexicon, self.tools);
        overridden(text, &mut reading);
        for attempt in manipulation::find(text) {
            reading.facts.signs.add(attempt.sign);
            reading.facts.show(attempt.sign, attempt.words);
        }
        reading.facts.signs = reading.facts.signs.with(normalized.signs);
        reading
    }
}

/// Returns whether a decoded text has a word that a request may have: bytes that are printable by chance have none.
fn says_something(text: &str, lexicon: &Lexicon) -> bool {
    let is_known = |word: &str| {
        let lower = word.to_ascii_lowercase();
        word.len() > 1 && lexicon.programs.knows(word)
            || word.len() > 2 && (lexicon.knows(&lower) || manipulation::knows(&lower))
    };
    let has_known = || text.split(|c: char| !c.is_ascii_alphanumeric()).any(is_known);
    text.len() >= LONGEST_BY_CHANCE || has_known() || !wrapped::pieces(text).is_empty()
}

/// Applies method override headers: the request does what they say, in whatever form they occur.
fn overridden(text: &str, reading: &mut Reading) {
    let is_web = |act: &Act| act.resource == Resource::Web;
    if !text.contains(['-', '_']) || !reading.acts.iter().any(is_web) {
        return;
    }
    let lower = text.to_ascii_lowercase();
    if !OVERRIDES.iter().any(|header| lower.contains(header)) {
        return;
    }
    let operation = if lower.contains("delete") { Operation::Delete } else { Operation::Write };
    reading.push(Act::new("override", "method", Resource::Web, operation, 0.7));
}

/// Headers that override a request's method.
const OVERRIDES: [&str; 2] = ["method-override", "x-http-method"];

/// Merges another reading if it found more than unknown words.
fn take_in(reading: &mut Reading, mut other: Reading, sign: Option<Sign>, text: &str) {
    // Undoing a disguise in a call's text may break its JSON, which says nothing then.
    let is_broken = |act: &Act| act.noun == "tool" && act.signs.has(Sign::Unclear);
    other.acts.retain(|act| !(act.is_unknown() || matches!(reading.format, Format::ToolCall) && is_broken(act)));
    let riskier = level(&other) > level(reading);
    let adds = matters(&other)
        && (riskier
            || other.facts.signs.with(reading.facts.signs) != reading.facts.signs
            || other.acts.iter().any(|act| {
                !reading.acts.iter().any(|known| known.resource == act.resource && known.operation == act.operation)
            }));
    let says_more = reading.acts.iter().all(Act::is_unknown) && !other.acts.is_empty();
    if !(adds || riskier || says_more) {
        return;
    }
    if let Some(sign) = sign.filter(|_| adds) {
        reading.facts.signs.add(sign);
        reading.facts.show(sign, text);
    }
    if !other.acts.is_empty() {
        reading.acts.retain(|act| !act.is_unknown());
    }
    // A sum that occurs in both readings counts once.
    other.facts.amounts.retain(|amount| !reading.facts.amounts.contains(amount));
    reading.absorb(other);
}

/// Returns whether a reading contains anything that is worth hiding.
fn matters(reading: &Reading) -> bool {
    reading.facts.signs.has(Sign::Override)
        || reading.facts.signs.has(Sign::Conceal)
        || reading.acts.iter().any(|act| {
            let acts = !matches!(act.operation, Operation::Read | Operation::Unknown);
            // An unclear part in a text that is only a guess proves nothing.
            let is_guess = act.signs.has(Sign::Unclear) && !matches!(reading.format, Format::Shell | Format::Text);
            act.resource == Resource::Credential || acts && !is_guess
        })
}

fn level(reading: &Reading) -> RiskLevel {
    let known = reading.acts.iter().filter(|act| !act.is_unknown());
    known.map(|act| risk::assess(act, &reading.facts).level).max().unwrap_or(RiskLevel::Low)
}

/// Returns whether the text only asks for the meaning of something encoded, which is then content and not a request.
fn asks_of_code(text: &str, reading: &Reading) -> bool {
    !reading.acts.is_empty()
        && matches!(reading.format, Format::Text)
        && !reading.facts.signs.has(Sign::UnseenInstructions)
        && reading.acts.iter().all(|act| act.operation == Operation::Read && act.resource != Resource::Credential)
        && confusable::says(text, "asks_of_code")
}

/// Length from which no text is printable by chance, in bytes.
const LONGEST_BY_CHANCE: usize = 12;
/// Maximum depth of nested encodings that are decoded.
const DEEPEST: usize = 3;
