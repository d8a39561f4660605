//! The words of a command, split by its program's row into options, operands, a carried command and what no row knows.
//!
//! Every word is consumed once or left over.

use crate::programs::{Means, Program, Slot, Style, Takes, Times};

use super::assigned;
use super::operand::behind;
use super::word::Word;

/// An option as it was given.
#[derive(Debug)]
pub(super) struct Given<'p> {
    /// The option's name in the row.
    pub(super) key: &'p str,
    pub(super) means: &'p Means,
    pub(super) value: Option<Word>,
    /// The further values.
    pub(super) more: Vec<Word>,
    /// The words that the option takes, for a command that ends at `;`.
    pub(super) words: (usize, usize),
    /// The option is the subcommand's own, or there is none.
    pub(super) is_own: bool,
}

/// The words of a command by their meaning.
#[derive(Debug)]
pub(super) struct Lexed<'p> {
    pub(super) program: &'p Program,
    /// The row of the subcommand, or of the program if it has none.
    pub(super) row: &'p Program,
    /// The words of the subcommand.
    pub(super) sub: String,
    pub(super) options: Vec<Given<'p>>,
    pub(super) operands: Vec<Word>,
    pub(super) left: Vec<Word>,
    /// The place of the words that belong together, and what they are.
    pub(super) rest: Option<(usize, Takes)>,
    /// The command only asks for help.
    pub(super) asks_for_help: bool,
    /// A word in the place of a subcommand is not known.
    pub(super) hides_sub: bool,
    /// The places of the words that are consumed or left over, without those that belong together at the end.
    #[cfg(test)]
    pub(super) consumed: std::collections::BTreeSet<usize>,
}

impl<'p> Lexed<'p> {
    pub(super) fn of(program: &'p Program, words: &[Word]) -> Self {
        let mut lexer = Lexer {
            found: Self {
                program,
                row: program,
                sub: String::new(),
                options: Vec::new(),
                operands: Vec::new(),
                left: Vec::new(),
                rest: None,
                asks_for_help: false,
                hides_sub: false,
                #[cfg(test)]
                consumed: std::collections::BTreeSet::new(),
            },
            path: String::new(),
            seeks: program.has_subs(),
            pending: Vec::new(),
            slot: 0,
            words,
            at: 0,
            current: 0,
        };
        lexer.run();
        lexer.found
    }

    /// The places of plain words; those of the program for a subcommand that names none.
    pub(super) fn places(&self) -> &'p [Slot] {
        if self.row.slots.is_empty() { &self.program.slots } else { &self.row.slots }
    }

    /// The operands with what each of them is.
    pub(super) fn slots(&self) -> Vec<Option<Takes>> {
        let slots: Vec<_> = self.places().iter().filter(|slot| !slot.takes.takes_rest()).collect();
        let filled = |takes: Takes| self.options.iter().any(|given| given.fills() && given.stands_for(takes));
        let mut slots: Vec<_> = slots.into_iter().copied().collect();
        // An option's value stands for an operand: `grep -e`, `cp -t`.
        if self.options.iter().any(Given::fills)
            && let Some(place) = slots.iter().position(|slot| filled(slot.takes))
        {
            slots.remove(place);
        }
        let count = self.operands.len();
        let needed = slots.iter().filter(|slot| slot.times == Times::Once).count();
        let mut spare = count.saturating_sub(needed);
        let mut taken = Vec::with_capacity(count);
        for slot in &slots {
            match slot.times {
                Times::Once if taken.len() < count => taken.push(Some(slot.takes)),
                Times::AtMostOnce if spare > 0 => {
                    taken.push(Some(slot.takes));
                    spare -= 1;
                }
                Times::Once | Times::AtMostOnce => {}
                Times::Any => {
                    taken.extend(std::iter::repeat_n(Some(slot.takes), spare));
                    spare = 0;
                }
            }
        }
        taken.resize(count, None);
        taken
    }
}

impl Given<'_> {
    pub(super) fn fills(&self) -> bool {
        self.means.does.iter().any(|does| matches!(does, crate::programs::Does::Fills))
    }

    /// Returns whether the option's value stands for an operand of a kind.
    fn stands_for(&self, slot: Takes) -> bool {
        match (self.means.takes, slot) {
            (Some(Takes::Path { role, .. }), Takes::Path { role: wanted, .. }) => role == wanted,
            // A file of patterns or a script stands for the text.
            (Some(Takes::Path { .. } | Takes::RunFile), slot) => {
                matches!(slot, Takes::Text | Takes::Code(_) | Takes::Url)
            }
            (_, Takes::Path { .. }) => false,
            _ => true,
        }
    }
}

struct Lexer<'p, 'w> {
    found: Lexed<'p>,
    /// The words of the subcommand so far.
    path: String,
    seeks: bool,
    /// Words that may still belong to a longer subcommand.
    pending: Vec<Word>,
    slot: usize,
    words: &'w [Word],
    at: usize,
    /// The place of the word that is being read.
    current: usize,
}

impl<'p> Lexer<'p, '_> {
    /// Notes that a word is consumed or left over, for a test that none is skipped.
    #[cfg(test)]
    fn mark(&mut self, place: usize) {
        self.found.consumed.insert(place);
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "tests note the place")]
    fn mark(&mut self, _: usize) {}

    /// Notes that the word that is being read says nothing.
    fn ignore(&mut self) {
        self.mark(self.current);
    }

    fn run(&mut self) {
        let style = self.found.program.style;
        if style == Style::Tar {
            self.old_style();
        }
        let mut is_over = false;
        while let Some(word) = self.words.get(self.at) {
            if self.found.rest.is_some() {
                break;
            }
            let text = word.text.as_str();
            self.current = self.at;
            self.at += 1;
            is_over |= self.found.row.stops && !self.found.operands.is_empty();
            if is_over || self.prints(text) {
                self.operand(word);
            } else if text == "--" && style != Style::PowerShell {
                match self.means("--") {
                    Some((key, means, is_own)) => self.give(key, means, is_own, None, word),
                    None => self.ignore(),
                }
                is_over = true;
            } else if word.dynamic && text.starts_with("-$") {
                self.leave(word, self.current);
            } else if !self.option(word) {
                self.operand(word);
            }
        }
        self.settle();
    }

    /// Returns whether an option that no row has asks for help or a version, and notes it.
    fn asks_for_help(&mut self, name: &str) -> bool {
        let asks = matches!(name, "--help" | "--version" | "-help" | "-version") && self.means(name).is_none();
        if asks {
            self.ignore();
            self.found.asks_for_help = true;
        }
        asks
    }

    /// Keeps a word that no row knows.
    fn leave(&mut self, word: &Word, place: usize) {
        self.mark(place);
        self.found.left.push(word.clone());
    }

    /// The meaning of an option, by the subcommand or by the program.
    fn means(&self, name: &str) -> Option<(&'p str, &'p Means, bool)> {
        let (row, program) = (self.found.row, self.found.program);
        let own = row.entry(name).map(|(key, means)| (key, means, true));
        own.or_else(|| program.entry(name).map(|(key, means)| (key, means, std::ptr::eq(row, program))))
    }

    /// Reads an option. Returns whether the word is one.
    fn option(&mut self, word: &Word) -> bool {
        let text = word.text.as_str();
        match self.found.program.style {
            Style::Windows => self.switch(word),
            Style::PowerShell => text.len() > 1 && text.starts_with('-') && self.parameter(word),
            Style::Dd => self.keyed(word),
            Style::Find => self.predicate(word),
            _ if text.starts_with('+') && text.len() > 1 => self.plus(word),
            _ if !text.starts_with('-') || text.len() < 2 => false,
            _ if self.takes_mode(text) => false,
            Style::Single => {
                self.single(word);
                true
            }
            _ if text.starts_with("--") => {
                self.long(word);
                true
            }
            _ => {
                self.cluster(word);
                true
            }
        }
    }

    /// Returns whether a word is only printed, whatever it looks like.
    fn prints(&self, text: &str) -> bool {
        let begins_sub =
            || self.seeks && (self.found.program.sub(text).is_some() || self.found.program.may_go_on(text));
        self.found.places().get(self.slot).is_some_and(|slot| slot.takes == Takes::Words) && !begins_sub()
    }

    /// `chmod -rwx a`: the mode looks like an option.
    fn takes_mode(&self, text: &str) -> bool {
        self.found.row.slots.first().is_some_and(|slot| slot.takes == Takes::Mode)
            && self.found.operands.is_empty()
            && text.bytes().all(|byte| b"-+=,rwxXstugoa01234567".contains(&byte))
            && self.means(text).is_none()
    }

    fn long(&mut self, word: &Word) {
        let text = word.text.as_str();
        let (name, joined) = split_value(word, '=');
        if joined.is_none() && self.asks_for_help(&name) {
            return;
        }
        if joined.is_some() && self.give_exact(text) {
            return;
        }
        if let Some((key, means, is_own)) = self.means(&name).or_else(|| self.prefixed(&name)) {
            return self.give(key, means, is_own, joined, word);
        }
        if joined.is_none() && self.give_with_next(&name) {
            return;
        }
        // A switch that is switched off: `--no-color`.
        let negated = name.strip_prefix("--no-").map(|rest| format!("--{rest}"));
        if negated.and_then(|name| self.means(&name)).is_some_and(|(_, means, _)| means.is_calm()) && joined.is_none() {
            return self.ignore();
        }
        self.unknown(word, joined.is_some());
    }

    /// The only option that begins like this, or one of several that mean the same.
    fn prefixed(&self, name: &str) -> Option<(&'p str, &'p Means, bool)> {
        if name.len() < SHORTEST_PREFIX {
            return None;
        }
        let (row, program) = (self.found.row, self.found.program);
        let fits = |(key, _): &(&'p str, &'p Means)| key.starts_with(name) && !key.contains('=');
        let of = |row: &'p Program, is_own: bool| {
            let mut all: Vec<_> = row.options().filter(fits).collect();
            all.sort_by_key(|(key, _)| key.len());
            let (key, means) = *all.first()?;
            let calm = all.iter().filter(|(_, means)| means.is_calm() && means.takes.is_none()).count();
            (all.len() == 1 || calm == all.len()).then_some((key, means, is_own))
        };
        of(row, true).or_else(|| of(program, std::ptr::eq(row, program)))
    }

    fn single(&mut self, word: &Word) {
        let text = word.text.as_str();
        let (name, joined) = split_value(word, '=');
        let bare = format!("-{}", name.trim_start_matches('-'));
        if joined.is_none() && self.asks_for_help(&bare) {
            return;
        }
        if joined.is_some() && self.give_exact(text) {
            return;
        }
        if let Some((key, means, is_own)) = self.means(&name).or_else(|| self.means(&bare)) {
            return self.give(key, means, is_own, joined, word);
        }
        // `-Dname=value`, `-Xmx1g`: a letter with what is joined to it.
        let starts = (2..text.len().min(LONGEST_START)).rev().filter_map(|end| text.get(..end));
        let found = starts.filter_map(|start| self.means(start).map(|found| (start.len(), found)));
        let mut found = found.filter(|(_, (_, means, _))| means.takes.is_some());
        if let Some((length, (key, means, is_own))) = found.next() {
            return self.give(key, means, is_own, Some(behind(word, length)), word);
        }
        self.unknown(word, joined.is_some());
    }

    fn cluster(&mut self, word: &Word) {
        let text = word.text.as_str();
        if let Some((key, means, is_own)) = self.means(text) {
            return self.give(key, means, is_own, None, word);
        }
        if self.asks_for_help(text) {
            return;
        }
        let (name, joined) = split_value(word, '=');
        if joined.is_some() && name.len() > 2 {
            if self.give_exact(text) {
                return;
            }
            if let Some((key, means, is_own)) = self.means(&name) {
                return self.give(key, means, is_own, joined, word);
            }
        }
        if text.bytes().skip(1).all(|byte| byte.is_ascii_digit()) {
            // `head -20`.
            return self.ignore();
        }
        let mut apart = None;
        for (at, letter) in text.char_indices().skip(1) {
            let end = at + letter.len_utf8();
            let Some((key, means, is_own)) = self.means(&format!("-{letter}")) else {
                if letter.is_ascii_digit() && at > 1 {
                    self.ignore();
                    continue;
                }
                return self.unknown(word, end < text.len());
            };
            let rest = (end < text.len()).then(|| behind(word, end));
            if means.apart {
                apart = Some((key, means, is_own));
                continue;
            }
            if means.takes.is_some() {
                let joined = rest.map(|rest| if rest.text.starts_with('=') { behind(&rest, 1) } else { rest });
                return self.give(key, means, is_own, joined, word);
            }
            self.push(key, means, is_own, None);
        }
        if let Some((key, means, is_own)) = apart {
            self.give(key, means, is_own, None, word);
        }
    }

    /// Gives an option that the row names together with its value.
    fn give_exact(&mut self, text: &str) -> bool {
        let Some((key, means, is_own)) = self.means(text) else { return false };
        self.push(key, means, is_own, None);
        true
    }

    /// Gives an option that the row names only together with the value that is the next word.
    fn give_with_next(&mut self, name: &str) -> bool {
        let next = self.words.get(self.at).map(|word| format!("{name}={}", word.text));
        let is_known = next.is_some_and(|text| self.give_exact(&text));
        if is_known {
            self.mark(self.at);
            self.at += 1;
        }
        is_known
    }

    fn give(&mut self, key: &'p str, means: &'p Means, is_own: bool, joined: Option<Word>, word: &Word) {
        let Some(takes) = means.takes else {
            if joined.is_some() && !means.is_calm() {
                // A switch with a value, as `--delete=false`.
                return self.push(key, means, is_own, joined);
            }
            return self.push(key, means, is_own, None);
        };
        if takes == Takes::RunUntil || takes == Takes::RunRest && joined.is_some() {
            let start = self.at;
            let ends = |word: &Word| takes == Takes::RunUntil && ends_command(word);
            let length = self.words.get(start..).unwrap_or(&[]).iter().position(ends);
            let end = length.map_or(self.words.len(), |length| start + length);
            self.at = (end + 1).min(self.words.len());
            (self.current..self.at).for_each(|place| self.mark(place));
            self.found.options.push(Given { key, means, value: joined, more: Vec::new(), words: (start, end), is_own });
            return;
        }
        if takes.takes_rest() && matches!(takes, Takes::RunRest | Takes::Words) && joined.is_none() {
            self.push(key, means, is_own, None);
            self.found.rest = Some((self.at, takes));
            return;
        }
        let value = match joined {
            Some(value) => Some(value),
            None if means.joined => None,
            None => match self.next_value() {
                Some(next) => Some(next),
                None => return self.unknown(word, true),
            },
        };
        let more: Vec<Word> = means.more.iter().map_while(|_| self.next_value()).collect();
        // The same option may be known with this very value.
        let is_exact = !matches!(self.found.program.style, Style::Windows | Style::PowerShell);
        let exact = |value: &Word| if is_exact { value.text.clone() } else { value.text.to_ascii_lowercase() };
        if let Some(value) = &value
            && let Some((key, means, is_own)) = self.means(&format!("{key}={}", exact(value)))
        {
            return self.push(key, means, is_own, Some(value.clone()));
        }
        self.push(key, means, is_own, value);
        if let Some(given) = self.found.options.last_mut() {
            given.more = more;
        }
    }

    /// The next word; a block in braces is one value.
    fn next_value(&mut self) -> Option<Word> {
        let next = self.words.get(self.at)?.clone();
        let start = self.at;
        self.at += 1;
        self.mark(start);
        if !next.text.starts_with('{') || next.text.ends_with('}') {
            return Some(next);
        }
        let rest = self.words.get(self.at..).unwrap_or(&[]);
        let length = rest.iter().position(|word| word.text.ends_with('}')).map_or(rest.len(), |end| end + 1);
        let block = rest.iter().take(length);
        let texts: Vec<&str> = std::iter::once(&next).chain(block).map(|word| word.text.as_str()).collect();
        self.at += length;
        (start..self.at).for_each(|place| self.mark(place));
        Some(Word { text: texts.join(" "), ..next })
    }

    fn push(&mut self, key: &'p str, means: &'p Means, is_own: bool, value: Option<Word>) {
        self.ignore();
        self.found.options.push(Given { key, means, value, more: Vec::new(), words: (0, 0), is_own });
    }

    /// Keeps an option that no row knows, and the word that may be its value.
    fn unknown(&mut self, word: &Word, is_joined: bool) {
        self.leave(word, self.current);
        let next = self.words.get(self.at).filter(|next| !is_joined && !next.text.starts_with('-'));
        if let Some(next) = next
            && (self.found.row.is_loose || self.found.program.is_loose || !self.seeks)
            && self.found.places().first().is_none_or(|slot| !slot.takes.takes_rest())
        {
            self.leave(next, self.at);
            self.at += 1;
        }
    }

    /// A plain word, or the first of those that belong together.
    fn operand(&mut self, word: &Word) {
        if self.seeks {
            if word.dynamic || word.wild {
                self.found.hides_sub = true;
                self.settle();
            } else {
                let lower = word.text.to_ascii_lowercase();
                let text = if self.found.program.style == Style::Windows { &lower } else { &word.text };
                let path = if self.path.is_empty() { text.clone() } else { format!("{} {text}", self.path) };
                let exact = self.found.program.sub(&path);
                let goes_on = self.found.program.may_go_on(&path);
                if exact.is_some() || goes_on {
                    self.ignore();
                    if let Some(sub) = exact {
                        self.found.row = sub;
                        self.found.sub.clone_from(&path);
                        self.pending.clear();
                        self.slot = 0;
                    } else {
                        self.pending.push(word.clone());
                    }
                    self.path = path;
                    self.seeks = goes_on;
                    if !goes_on {
                        self.settle();
                    }
                    return;
                }
                self.settle();
            }
        }
        self.place(word, self.at - 1);
    }

    /// Ends the search for a subcommand: what did not belong to one is an operand.
    fn settle(&mut self) {
        self.seeks = false;
        let at = self.at;
        for word in std::mem::take(&mut self.pending) {
            self.place(&word, at);
        }
    }

    fn place(&mut self, word: &Word, at: usize) {
        let slots = self.found.places();
        while let Some(slot) = slots.get(self.slot) {
            if slot.times == Times::Any && slot.takes == Takes::Assign && assigned(&word.text).is_none() {
                self.slot += 1;
                continue;
            }
            if slot.takes.takes_rest() {
                let is_filled = |given: &Given<'_>| given.fills() && given.stands_for(slot.takes);
                if self.found.options.iter().any(is_filled) {
                    self.slot += 1;
                    continue;
                }
                self.found.rest = Some((at, slot.takes));
                return;
            }
            if slot.times != Times::Any {
                self.slot += 1;
            }
            break;
        }
        self.mark(at.min(self.current));
        self.found.operands.push(word.clone());
    }

    /// `+x`, if the row has options that begin so.
    fn plus(&mut self, word: &Word) -> bool {
        if let Some((key, means, is_own)) = self.means(&word.text) {
            self.give(key, means, is_own, None, word);
            return true;
        }
        if let Some((key, means, is_own)) = self.means("+") {
            self.push(key, means, is_own, Some(behind(word, 1)));
            return true;
        }
        let letters = word.text.get(1..).unwrap_or_default();
        if let [letter] = letters.as_bytes()
            && let Some((key, means, is_own)) = self.means(&format!("-{}", char::from(*letter)))
        {
            self.give(key, means, is_own, None, word);
            return true;
        }
        false
    }

    fn predicate(&mut self, word: &Word) -> bool {
        let text = word.text.as_str();
        if self.asks_for_help(text) {
            return true;
        }
        if let Some((key, means, is_own)) = self.means(text) {
            self.give(key, means, is_own, None, word);
            return true;
        }
        if !text.starts_with('-') || text.len() < 2 {
            return false;
        }
        let (name, joined) = split_value(word, '=');
        match self.means(&name) {
            Some((key, means, is_own)) => self.give(key, means, is_own, joined, word),
            // `-O3`, `-regextype`: a letter with a number.
            None if self.means(text.get(..2).unwrap_or(text)).is_some() => {
                let Some((key, means, is_own)) = self.means(text.get(..2).unwrap_or(text)) else { return true };
                self.push(key, means, is_own, Some(behind(word, 2)));
            }
            None => self.unknown(word, false),
        }
        true
    }

    /// The letters of `tar xvf a.tar -C b`, whose values follow in order.
    fn old_style(&mut self) {
        let Some(first) = self.words.first().filter(|word| !word.text.starts_with('-') && !word.dynamic) else {
            return;
        };
        self.at = 1;
        for letter in first.text.chars() {
            let Some((key, means, is_own)) = self.means(&format!("-{letter}")) else {
                let first = first.clone();
                return self.leave(&first, 0);
            };
            self.give(key, means, is_own, None, first);
        }
    }

    fn keyed(&mut self, word: &Word) -> bool {
        let Some((key, _)) = word.text.split_once('=') else {
            if self.asks_for_help(&word.text) {
                return true;
            }
            let is_option = word.text.starts_with('-');
            if is_option {
                self.cluster(word);
            }
            return is_option;
        };
        let name = format!("{key}=");
        if let Some((found, means, is_own)) = self.means(&word.text).or_else(|| self.means(&name)) {
            self.push(found, means, is_own, Some(behind(word, name.len())));
        } else {
            self.leave(word, self.current);
        }
        true
    }

    /// A switch of a Windows program: `/s`, `/f:x`, `-s`.
    fn switch(&mut self, word: &Word) -> bool {
        let lower = word.text.to_ascii_lowercase();
        if !lower.starts_with(['/', '-']) || lower.len() < 2 {
            return false;
        }
        if matches!(lower.as_str(), "/?" | "-?" | "--help" | "/help") {
            self.ignore();
            self.found.asks_for_help = true;
            return true;
        }
        let slash = format!("/{}", lower.trim_start_matches(['/', '-']));
        let (name, value) = slash.split_once([':', '=']).map_or((slash.as_str(), None), |(name, _)| {
            (name, Some(behind(word, word.text.find([':', '=']).map_or(0, |at| at + 1))))
        });
        let dashed = format!("-{}", name.trim_start_matches('/'));
        match self.means(&slash).or_else(|| self.means(name)).or_else(|| self.means(&dashed)) {
            Some((key, means, is_own)) => self.give(key, means, is_own, value, word),
            None if lower.starts_with('/') && lower.len() > LONGEST_SWITCH || lower.matches('/').count() > 1 => {
                return false;
            }
            None => self.unknown(word, true),
        }
        true
    }

    /// A parameter of a cmdlet, whole or as the beginning of a single one: `-Rec`, `-Force:$true`.
    fn parameter(&mut self, word: &Word) -> bool {
        let (name, joined) = split_value(word, ':');
        let name = name.to_ascii_lowercase();
        if name.bytes().skip(1).all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return false;
        }
        let found = self.means(&name).or_else(|| {
            let row = self.found.row;
            let mut all: Vec<_> = row.options().filter(|(key, _)| key.starts_with(&name)).collect();
            all.sort_by_key(|(key, _)| *key);
            // The most harmful of several that begin so.
            let worst = all.iter().find(|(_, means)| !means.is_calm()).or(all.first());
            worst.map(|(key, means)| (*key, *means, true))
        });
        match found {
            Some((key, means, is_own)) => self.give(key, means, is_own, joined, word),
            None => self.unknown(word, joined.is_some()),
        }
        true
    }
}

/// An option's name, and the value joined to it.
fn split_value(word: &Word, mark: char) -> (String, Option<Word>) {
    match word.text.find(mark) {
        Some(at) => (word.text.get(..at).unwrap_or_default().to_owned(), Some(behind(word, at + 1))),
        None => (word.text.clone(), None),
    }
}

fn ends_command(word: &Word) -> bool {
    matches!(word.text.as_str(), ";" | "+")
}

/// Minimum length of the beginning of a long option, with its dashes.
const SHORTEST_PREFIX: usize = 4;
/// Maximum length of an option to which a value is joined.
const LONGEST_START: usize = 24;
/// Maximum length of a Windows switch, which tells it from a path.
const LONGEST_SWITCH: usize = 24;
