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
    let mut reading = read(&normalized.text, lexicon, tools);
    let written = normalized.text.len() + normalized.unseen.iter().map(String::len).sum::<usize>();
    let mut work = Work { lexicon, tools, left: written.saturating_mul(2), decoded: Vec::new() };
    reading.facts.signs = reading.facts.signs.with(normalized.signs);
    if normalized.styled && matters(&reading) {
        reading.facts.signs.add(Sign::Disguised);
    }
    for unseen in &normalized.unseen {
        reading.facts.show(Sign::HiddenCharacters, unseen);
        work.add(unseen, Some(Sign::HiddenCharacters), &mut reading, 1);
    }
    work.derive(&normalized.text, &mut reading, 0);
    (reading, work.decoded)
}

struct Work<'l> {
    lexicon: &'l Lexicon,
    tools: &'l ToolTurn<'l>,
    /// Bytes of decoded text that may still be read: three layers of base64 add up to less than twice the input.
    left: usize,
    /// The decoded texts, for pattern matching.
    decoded: Vec<String>,
}

impl Work<'_> {
    /// Adds the readings of all texts derived from a text, whose own reading is given.
    fn derive(&mut self, text: &str, reading: &mut Reading, depth: usize) {
        if depth >= DEEPEST {
            if !wrapped::pieces(text).is_empty() {
                // No honest text is encoded so many times.
                reading.push(Act::unclear_execution("encoded_text"));
            }
            return;
        }
        let undone = escapes::undone(text);
        if let Some(undone) = &undone {
            self.add_plain(undone, Some(Sign::Disguised), reading);
        }
        let (written, text) = (text, undone.as_deref().unwrap_or(text));
        let structured = text.trim_start().starts_with(['{', '[']);
        let guessed = reading.acts.iter().all(|act| act.signs.has(Sign::Unclear));
        if (structured || guessed || matches!(reading.format, Format::Text))
            && let Some(respelled) = respell::respelled(text, structured, self.lexicon)
        {
            self.add_plain(&respelled.text, respelled.disguised.then_some(Sign::Disguised), reading);
        }
        let turned = Turned::of(text, written, self.lexicon);
        let pieces = wrapped::pieces(text);
        if turned.is_none() && pieces.is_empty() || asks_of_code(text, reading) {
            return;
        }
        if let Some(rotated) = turned.rotated {
            self.add_plain(&rotated, Some(Sign::Encoded), reading);
        }
        if let Some([whole, by_word]) = turned.reversed {
            self.add(&whole, Some(Sign::Encoded), reading, depth + 1);
            self.add_plain(&by_word, Some(Sign::Encoded), reading);
        }
        if pieces.is_empty() {
            return;
        }
        if pieces.len() >= wrapped::MOST {
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
                self.add(&piece.text, Some(Sign::Encoded), reading, depth + 1);
            } else {
                reading.facts.signs.add(Sign::Unclear);
            }
        }
        whole.push_str(text.get(at..).unwrap_or(""));
        self.add_plain(&whole, Some(Sign::Encoded), reading);
        self.decoded.extend(pieces.into_iter().map(|piece| piece.text));
    }

    /// Adds the reading of another text, and of the texts derived from it.
    fn add(&mut self, text: &str, sign: Option<Sign>, reading: &mut Reading, depth: usize) {
        let normalized = normalize(text, self.lexicon);
        let mut other = self.read(&normalized);
        self.derive(&normalized.text, &mut other, depth);
        take_in(reading, other, sign, text);
    }

    /// Adds the reading of another spelling of the same text.
    fn add_plain(&mut self, text: &str, sign: Option<Sign>, reading: &mut Reading) {
        let other = self.read(&normalize(text, self.lexicon));
        take_in(reading, other, sign, text);
    }

    fn read(&self, normalized: &Normalized<'_>) -> Reading {
        let mut reading = read(&normalized.text, self.lexicon, self.tools);
        reading.facts.signs = reading.facts.signs.with(normalized.signs);
        reading
    }
}

fn read(text: &str, lexicon: &Lexicon, tools: &ToolTurn<'_>) -> Reading {
    let mut reading = format::read(text, lexicon, tools);
    overridden(text, &mut reading);
    for attempt in manipulation::find(text) {
        reading.facts.signs.add(attempt.sign);
        reading.facts.show(attempt.sign, attempt.words);
    }
    reading
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
    other.acts.retain(|act| !act.is_unknown());
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

/// Maximum depth of nested encodings that are decoded.
const DEEPEST: usize = 3;
