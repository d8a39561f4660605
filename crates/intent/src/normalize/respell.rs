//! Words disguised by changed, separated or repeated letters: rewritten as intended, if the result is a dangerous
//! verb.

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::lexicon::Lexicon;
use crate::manipulation;

use super::confusable;
use super::glance;
use super::letters;
use super::segment;
use super::typos;

/// A text with its words rewritten as intended.
pub(crate) struct Respelled {
    pub text: String,
    /// Set if more than typing errors were corrected.
    pub disguised: bool,
}

/// A piece of the text: a word, or the characters between words.
struct Chunk<'a> {
    text: &'a str,
    /// The word in lower case; `None` between words.
    lower: Option<Cow<'a, str>>,
    known: bool,
}

/// Rewrites the text as intended, if any word is a dangerous verb in disguise. In `structured` text the names between
/// marks are words.
pub(crate) fn respelled(text: &str, structured: bool, lexicon: &Lexicon) -> Option<Respelled> {
    let worth_a_look = if structured {
        glance::is_worth_a_look_between_marks(text, lexicon)
    } else {
        glance::is_worth_a_look(text, lexicon)
    };
    if !worth_a_look {
        return None;
    }
    let joined = if text.contains('+') { unconcatenated(text) } else { None };
    let text = joined.as_deref().unwrap_or(text);
    let chunks = chunks(text, structured, lexicon);
    let mut work = Work { chunks: &chunks, lexicon, found: false, disguised: joined.is_some() };
    let mut out = String::with_capacity(text.len());
    let mut weak: Vec<(usize, usize, String)> = Vec::new();
    let mut index = 0;
    while let Some(chunk) = chunks.get(index) {
        let Some(lower) = chunk.lower.as_deref() else {
            out.push_str(chunk.text);
            index += 1;
            continue;
        };
        if let Some((word, taken)) = work.spelled_out(index).or_else(|| work.parted(index)) {
            out.push_str(&word);
            index += taken;
            continue;
        }
        match (!chunk.known).then(|| work.word(index, lower)).flatten() {
            Some(Meant::Dangerous(word)) => out.push_str(&word),
            Some(Meant::Word(word)) => {
                weak.push((out.len(), chunk.text.len(), word));
                out.push_str(chunk.text);
            }
            None => out.push_str(chunk.text),
        }
        index += 1;
    }
    // Other words with the same disguise count only beside a word that matters, or if several stand together.
    let matters = work.found || joined.is_some() || weak.iter().any(|(_, _, word)| word.len() >= SHORTEST_NOUN);
    if !matters {
        return None;
    }
    for (start, length, word) in weak.into_iter().rev() {
        out.replace_range(start..start + length, &word);
        work.disguised = true;
    }
    Some(Respelled { text: out, disguised: work.disguised })
}

/// The meaning of a disguised word.
enum Meant {
    Dangerous(String),
    Word(String),
}

struct Work<'t, 'a> {
    chunks: &'t [Chunk<'a>],
    lexicon: &'t Lexicon,
    found: bool,
    disguised: bool,
}

impl Work<'_, '_> {
    fn dangerous(&self, word: &str) -> bool {
        self.lexicon.is_dangerous(word)
    }

    fn take(&mut self, word: String, disguised: bool) -> Meant {
        self.found = true;
        self.disguised |= disguised;
        Meant::Dangerous(word)
    }

    /// Reads a single unknown word.
    fn word(&mut self, index: usize, lower: &str) -> Option<Meant> {
        if lower.len() > LONGEST || lower.contains("://") {
            return None;
        }
        let bytes = lower.as_bytes();
        if bytes.iter().all(u8::is_ascii_lowercase) {
            if let Some(word) = self.unstretched(lower) {
                return Some(self.take(word, true));
            }
            if self.verb_stands_at(index)
                && let Some(verb) = typos::meant(lower)
            {
                let verb = verb.to_owned();
                return Some(self.take(verb, false));
            }
            return None;
        }
        if let Some(plain) = letters::unaccented(lower)
            && !confusable::holds("ordinary", lower)
            && self.dangerous(&plain)
        {
            return Some(self.take(plain, true));
        }
        if !lower.chars().any(char::is_alphabetic) {
            return None;
        }
        if let Some(whole) = self.unparted(lower) {
            let plain_hyphen =
                lower.split_once('-').is_some_and(|(lead, rest)| lead.len() <= 3 && self.lexicon.knows(rest));
            return Some(self.take(whole, !plain_hyphen));
        }
        self.leet(lower)
    }

    /// "d-e-l-e-t-e", "de*lete": the word without the marks inside.
    fn unparted(&self, lower: &str) -> Option<String> {
        let is_mark = |c: char| c.is_ascii_punctuation() && !matches!(c, '@' | '$' | '!');
        if !lower.contains(is_mark) || lower.contains('@') {
            return None;
        }
        let parts = || lower.split(is_mark).filter(|part| !part.is_empty());
        // "check-out" and "sign-up" are nouns made of a verb and a particle.
        let is_noun = lower.rsplit_once(['-', '/', '_']).is_some_and(|(verb, particle)| {
            confusable::holds("particles", particle) && verb.bytes().all(|byte| byte.is_ascii_lowercase())
        });
        if is_noun {
            return None;
        }
        let whole: String = lower.chars().filter(|&c| !is_mark(c)).collect();
        let whole = self.read_leet(&whole).map_or(whole, |(word, _)| word);
        if whole.len() >= SHORTEST_PARTED && self.dangerous(&whole) {
            return Some(whole);
        }
        // "re-send" means to send again.
        if let Some(rest) = lower.strip_prefix("re-").filter(|rest| self.dangerous(rest)) {
            return Some(rest.to_owned());
        }
        let single = parts().all(|part| part.chars().count() == 1);
        if single { segment::words(&whole, self.lexicon) } else { None }
    }

    /// "d3l3te", "$end": digits and marks in place of letters.
    fn leet(&mut self, lower: &str) -> Option<Meant> {
        let (word, dangerous) = self.read_leet(lower)?;
        if dangerous { Some(self.take(word, true)) } else { Some(Meant::Word(word)) }
    }

    fn read_leet(&self, lower: &str) -> Option<(String, bool)> {
        let plain = lower.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '!' | '$'));
        let odd = lower.chars().filter(|c| !c.is_ascii_lowercase() && *c != '-').count();
        // "user5" is the fifth user, and "done!" is done.
        if odd == 0 || odd == lower.chars().count() || plain.len() + 1 >= lower.len() && self.lexicon.knows(plain) {
            return None;
        }
        // Each ambiguous mark has the same meaning throughout a word.
        for variant in 0..2 {
            let mut word = String::with_capacity(lower.len());
            for c in lower.chars() {
                let read = if c.is_ascii_lowercase() || c == '-' {
                    c
                } else {
                    let options = confusable::leet(c);
                    options.chars().nth(variant).or_else(|| options.chars().next())?
                };
                word.push(read);
            }
            if self.lexicon.knows(&word) {
                let is_dangerous = self.dangerous(&word);
                return Some((word, is_dangerous));
            }
            if manipulation::knows(&word) {
                return Some((word, false));
            }
        }
        None
    }

    /// "deleeeete": repeated letters.
    fn unstretched(&self, lower: &str) -> Option<String> {
        let bytes = lower.as_bytes();
        if !bytes.windows(3).any(|run| run.iter().all(|byte| Some(byte) == run.first())) {
            return None;
        }
        [2, 1].into_iter().find_map(|most| {
            let mut word = String::with_capacity(lower.len());
            let mut run = 0;
            for c in lower.chars() {
                run = if word.ends_with(c) { run + 1 } else { 1 };
                if run <= most {
                    word.push(c);
                }
            }
            self.dangerous(&word).then_some(word)
        })
    }

    /// Returns whether a verb can stand here: at a start, or after a word that requires one.
    fn verb_stands_at(&self, index: usize) -> bool {
        let Some(before) = index.checked_sub(2).and_then(|place| self.chunks.get(place)) else { return true };
        let gap = self.chunks.get(index - 1).map_or("", |gap| gap.text);
        gap.contains(['.', ',', ';', ':', '!', '?', '\n', '(', '"'])
            || before.lower.as_deref().is_some_and(|word| confusable::holds("before_verb", word))
    }

    /// "del ete": this word and the next ones, at least one unknown, together form a dangerous verb.
    fn parted(&mut self, index: usize) -> Option<(String, usize)> {
        let mut joined = SmallVec::<[u8; LONGEST_VERB]>::new();
        let mut unknown = false;
        for step in 0..MOST_PARTS {
            let place = index + step * 2;
            if step > 0 && self.chunks.get(place - 1).is_none_or(|gap| gap.text != " ") {
                return None;
            }
            let chunk = self.chunks.get(place)?;
            let part = chunk.lower.as_deref().filter(|part| part.bytes().all(|byte| byte.is_ascii_lowercase()))?;
            unknown |= !chunk.known;
            if joined.len() + part.len() > LONGEST_VERB {
                return None;
            }
            joined.extend_from_slice(part.as_bytes());
            if step == 0 || !unknown || joined.len() < SHORTEST_PARTED {
                continue;
            }
            let whole = std::str::from_utf8(&joined).unwrap_or_default();
            if self.dangerous(whole) {
                let whole = whole.to_owned();
                (self.found, self.disguised) = (true, true);
                return Some((whole, step * 2 + 1));
            }
        }
        None
    }

    /// "d e l e t e": single letters in a row.
    fn spelled_out(&mut self, index: usize) -> Option<(String, usize)> {
        let single = |place: usize| {
            self.chunks.get(place).and_then(|chunk| chunk.lower.as_deref()).filter(|word| is_single(word))
        };
        // Only at the start of a row, so that each row is read once.
        if single(index).is_none() || index >= 2 && single(index - 2).is_some() {
            return None;
        }
        let mut words = vec![String::new()];
        let mut last = index;
        while let Some(letter) = single(last) {
            if let Some(word) = words.last_mut() {
                word.push_str(letter);
            }
            let gap = self.chunks.get(last + 1).map_or("", |gap| gap.text);
            if single(last + 2).is_none() || gap.len() > LONGEST_GAP {
                break;
            }
            // A wider gap separates words.
            if gap.len() > 1 && gap.bytes().all(|byte| byte == b' ') {
                words.push(String::new());
            }
            last += 2;
        }
        let taken = last - index + 1;
        if taken < FEWEST_LETTERS * 2 - 1 {
            return None;
        }
        for word in &mut words {
            if let Some((meant, _)) = self.read_leet(word) {
                *word = meant;
            }
        }
        let text = if words.iter().any(|word| self.dangerous(word)) {
            words.join(" ")
        } else {
            segment::words(&words.concat(), self.lexicon)?
        };
        (self.found, self.disguised) = (true, true);
        Some((text, taken))
    }
}

/// Words and the characters between them, alternating.
fn chunks<'a>(text: &'a str, structured: bool, lexicon: &Lexicon) -> Vec<Chunk<'a>> {
    let is_ascii = text.is_ascii();
    // Of ASCII byte by byte, which is the same and faster.
    let reach = |text: &str, divides: bool| {
        let is_end = |byte: &u8| {
            let [plain, between_marks] = DIVIDERS.get(usize::from(*byte)).copied().unwrap_or_default();
            (if structured { between_marks } else { plain }) == divides
        };
        let place = if is_ascii {
            text.as_bytes().iter().position(is_end)
        } else {
            text.find(|c| parts_words(c, structured) == divides)
        };
        place.unwrap_or(text.len())
    };
    let mut found = Vec::with_capacity(text.len() / 3 + 2);
    let mut rest = text;
    while !rest.is_empty() {
        let end = reach(rest, true);
        let (word, after) = rest.split_at(end);
        // Marks around a word are no part of it, but "$end" and "de!ete" have theirs inside.
        let open =
            word.trim_start_matches(|c: char| c.is_ascii_punctuation() && !matches!(c, '$' | '@' | '(' | '|' | '+'));
        let core = open.trim_end_matches(|c: char| c.is_ascii_punctuation() && c != '$');
        let core = if core.len() < 2 { core.trim_start_matches(|c: char| c.is_ascii_punctuation()) } else { core };
        let lead = if core.is_empty() { 0 } else { word.len() - open.len() };
        let (before, tail) = (word.get(..lead).unwrap_or(""), word.get(lead + core.len()..).unwrap_or(""));
        let gap = reach(after, false);
        let (between, next) = after.split_at(gap);
        if !before.is_empty() {
            found.push(Chunk { text: "", lower: None, known: true });
            found.push(Chunk { text: before, lower: None, known: true });
        }
        let lower = (!core.is_empty() && core.len() <= LONGEST).then(|| lowered(core));
        let known = lower.as_deref().is_none_or(|word| lexicon.knows(word));
        found.push(Chunk { text: core, lower, known });
        let start = text.len() - rest.len() + lead + core.len();
        let stop = text.len() - next.len();
        debug_assert!(stop - start == tail.len() + between.len());
        found.push(Chunk { text: text.get(start..stop).unwrap_or(""), lower: None, known: true });
        rest = next;
    }
    found
}

/// Returns whether a character separates words, in structured text or outside.
const fn parts_words(c: char, structured: bool) -> bool {
    c.is_whitespace()
        || matches!(c, '"' | ',' | ';' | '?' | '`' | '[' | ']' | '{' | '}' | '<' | '>' | ')')
        || structured && matches!(c, ':' | '_' | '.')
}

/// The results of [`parts_words`] for each ASCII character: outside structured text, and in it.
const DIVIDERS: [[bool; 2]; 128] = {
    let mut dividers = [[false; 2]; 128];
    let mut byte = 0_u8;
    while byte < 128 {
        dividers[byte as usize] = [parts_words(byte as char, false), parts_words(byte as char, true)];
        byte += 1;
    }
    dividers
};

fn is_single(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some() && letters.next().is_none()
}

fn lowered(word: &str) -> Cow<'_, str> {
    let is_lower = word.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    if is_lower { Cow::Borrowed(word) } else { Cow::Owned(word.to_lowercase()) }
}

/// `"del" + "ete"` as a single bare word.
fn unconcatenated(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut changed = false;
    while let Some(place) = rest.find('+') {
        let (before, after) = (rest.get(..place)?, rest.get(place + 1..)?);
        let left = before.trim_end();
        let right = after.trim_start();
        let mark = left.chars().next_back().filter(|mark| matches!(mark, '"' | '\''));
        match mark {
            Some(mark) if right.starts_with(mark) => {
                out.push_str(left.get(..left.len() - 1)?);
                rest = right.get(1..)?;
                changed = true;
            }
            _ => {
                out.push_str(rest.get(..=place)?);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    // The outer quotes would turn what is meant to be run into a quotation.
    changed.then(|| out.replace(['"', '\''], ""))
}

/// Maximum length of a word that is looked into.
const LONGEST: usize = 64;
/// Maximum length of a dangerous verb.
const LONGEST_VERB: usize = 16;
/// Minimum length of a verb that is searched in parts.
const SHORTEST_PARTED: usize = 4;
/// Maximum number of parts of a verb.
const MOST_PARTS: usize = 3;
/// Fewest single letters in a row.
const FEWEST_LETTERS: usize = 4;
/// Maximum gap between single letters.
const LONGEST_GAP: usize = 4;
/// Minimum length of a noun that is worth a second reading by itself.
const SHORTEST_NOUN: usize = 4;
