//! The effects of single arguments beyond their text: permissions, links, verbs, places, commands hidden in values,
//! and switched-off controls.

use crate::language::{Kind, Token, classify, tokenise};
use crate::reading::Act;
use crate::risk;
use crate::sign::Sign;
use crate::target;
use rulekeep_types::{
    MAX_CONTEXT_DEPTH, Operation, Resource, RiskLevel, TargetKind, TargetRole, UnreadKind, json_depth,
};

use super::super::hosts::Through;
use super::super::tools::{Key, Role, key_words, tools};
use super::super::{access, driver, embedded, name, place};
use super::arguments::{Arguments, LONGEST_PLACE, LONGEST_VERB, Switched};
use super::json::{Field, Json, values};
use super::shape::Call;

impl Arguments<'_, '_> {
    /// Reads a role or permission: granting it is admin, whatever the tool is called.
    pub(super) fn access(&mut self, text: &str) {
        if self.act.operation == Operation::Read {
            return;
        }
        let last = text.rsplit(['/', ':', '.']).next().unwrap_or(text);
        if tools().value("open", text) {
            return self.opened(text);
        }
        if !(tools().value("administrator", text) || tools().value("administrator", last)) {
            return;
        }
        self.sign(Sign::Administrator, text);
        if self.act.operation != Operation::Admin {
            let grant = Act::new("grant", "role", Resource::Permission, Operation::Admin, 0.8).told_by(text);
            self.reader.reading.push(grant.marked(Sign::Administrator));
        }
    }

    /// Adds that something is opened to everybody.
    pub(super) fn opened(&mut self, found: &str) {
        if matches!(self.act.operation, Operation::Read | Operation::Transfer) || self.act.resource == Resource::Social
        {
            return;
        }
        self.sign(Sign::OpenLink, found);
        if self.act.operation != Operation::Admin {
            let share = Act::new("share", "link", Resource::Permission, Operation::Admin, 0.7).told_by(found);
            self.reader.reading.push(share.marked(Sign::OpenLink));
        }
    }

    /// Adds that what is written is shared with somebody.
    pub(super) fn opened_to(&mut self, found: &str) {
        if self.act.operation != Operation::Admin {
            let share = Act::new("share", "access", Resource::Permission, Operation::Admin, 0.7).told_by(found);
            self.reader.reading.push(share.at_risk(RiskLevel::Medium));
        }
    }

    /// Marks a deletion or change as unbounded if its filter excludes nothing.
    pub(super) fn bound(&mut self, key: &str, value: &Json<'_>) {
        let is_change = matches!(self.act.operation, Operation::Delete | Operation::Write);
        if is_change && tools().value("bounds", key) && bounds_nothing(value, 0) {
            self.sign(Sign::Bulk, key);
        }
    }

    /// Reads `amount: {"value": 20000}`.
    pub(super) fn amount_in(&mut self, fields: &[Field<'_>]) {
        for (key, value) in fields.iter().filter(|(key, _)| tools().value("amounts", key)) {
            match value {
                Json::Number(_) | Json::Text(_) => self.value("amount", value),
                _ => self.value(key, value),
            }
        }
    }

    /// Adds that a given secret is stored with what is written.
    pub(super) fn stores_secret(&mut self, key: &str) {
        if matches!(self.act.operation, Operation::Write | Operation::Unknown) {
            let store = Act::new("store", "credential", Resource::Credential, Operation::Write, 0.7).named_by(key);
            self.reader.reading.push(store);
        }
    }

    /// Reads an argument that determines what the tool does: a verb or an HTTP method.
    pub(super) fn doing(&mut self, key: &str, text: &str) {
        if text.contains(' ') || text.len() > LONGEST_VERB {
            return;
        }
        if self.through == Some(Through::Verb) {
            return self.known_verb(text);
        }
        if matches!(self.through, Some(Through::Http)) && tools().is_http_method(text) {
            return;
        }
        // The means of a payment, and the state that a listing filters by.
        let is_means = self.act.operation == Operation::Transfer && tools().role(key) == Some(Role::Method);
        let is_filter = self.act.operation == Operation::Read && matches!(key, "state" | "status" | "type");
        if is_means || is_filter && tools().effect(text).is_none() {
            return;
        }
        let words = name::words(text);
        let mut other = match text.to_ascii_uppercase().as_str() {
            "GET" | "HEAD" | "OPTIONS" => return,
            "POST" if key.contains("method") => Act::new("post", "url", Resource::Web, Operation::Send, 0.7),
            "PUT" | "PATCH" if key.contains("method") => Act::new("put", "url", Resource::Web, Operation::Write, 0.7),
            _ => match self.verb(&words) {
                Some(other) => other,
                None => return self.set_to(&words, text),
            },
        };
        other = other.told_by(text);
        if self.act.resource != Resource::Unknown {
            other.resource = self.act.resource;
            other.noun.clone_from(&self.act.noun);
        }
        // "manage_user" with "delete" changes permissions.
        if other.operation == Operation::Delete {
            other = other.at_risk(RiskLevel::High);
        }
        if other.operation == Operation::Read {
            return;
        }
        if is_off(text) {
            self.switch_off(key);
        }
        self.reader.reading.push(other);
    }

    /// The act of a value that is a verb and not also a noun: "text" and "email" are kinds of things.
    fn verb(&self, words: &[String]) -> Option<Act> {
        let (first, lexicon) = (words.first()?, self.reader.lexicon);
        if words.len() == 1 && lexicon.is_noun(first) && !lexicon.is_dangerous(first) {
            return None;
        }
        name::verb_act(words, self.act, self.reader.lexicon)
    }

    /// Reads paths, hosts and addresses by the shape of the value.
    pub(super) fn place(&mut self, key: &str, role: Option<Role>, text: &str) {
        if text.len() > LONGEST_PLACE {
            if matches!(role, Some(Role::Path | Role::Url)) || !text.contains(' ') {
                self.reader.reading.facts.note_unread(UnreadKind::Argument, key);
            }
            return;
        }
        self.sensitive_place(role, text);
        if self.act.operation == Operation::Delete
            && (place::is_whole(text) && text.contains(['/', '~']) || matches!(text.trim(), "*" | "**"))
        {
            self.sign(Sign::Force, text);
        }
        self.note_place(key, role, text);
    }

    /// Reads a secret that is read, or a part of the system that is changed, whatever the argument is called.
    pub(super) fn sensitive_place(&mut self, role: Option<Role>, text: &str) {
        if place::is_secret(text) {
            self.sign(Sign::Secret, text);
            let read = Act::new("read", "secret", Resource::Credential, Operation::Read, 0.8).named_by(text);
            self.reader.reading.push(read.at_risk(RiskLevel::High));
        }
        if matches!(self.act.operation, Operation::Read | Operation::Send) || role == Some(Role::Url) {
            return;
        }
        // A secret's path among arguments of unknown meaning is more likely read.
        for act in access::written(text).into_iter().filter(|act| act.noun != access::SECRET) {
            self.reader.reading.push(act);
        }
    }

    /// Records a target by the shape of the value or by its key.
    fn note_place(&mut self, key: &str, role: Option<Role>, text: &str) {
        let shape = if text.contains(' ') { None } else { classify(text) };
        let is_named = matches!(role, Some(Role::Path | Role::Url));
        let is_file = role == Some(Role::Path) && !text.contains("://") && names_file(key);
        if is_file || is_named || matches!(shape, Some(Kind::Email | Kind::Path | Kind::Url)) {
            let kind = match shape {
                Some(Kind::Email) => TargetKind::Recipient,
                Some(Kind::Url) => TargetKind::Host,
                _ if tools().keys(key).has(Key::Table) => TargetKind::Table,
                _ if tools().keys(key).has(Key::Host) => TargetKind::Host,
                _ => TargetKind::Path,
            };
            let role = match self.act.operation {
                _ if tools().keys(key).has(Key::Source) => TargetRole::Source,
                _ if tools().keys(key).has(Key::Destination) => TargetRole::Destination,
                Operation::Read => TargetRole::Read,
                Operation::Write | Operation::Delete => TargetRole::Write,
                Operation::Send => TargetRole::To,
                _ => TargetRole::Named,
            };
            if is_file {
                self.reader.reading.facts.note_literal_path(role, text);
                return;
            }
            self.reader.reading.facts.note_target_as(kind, role, text);
        }
        if matches!(shape, Some(Kind::Email)) && self.act.operation == Operation::Send {
            self.act.signs.add(Sign::Outside);
        }
        if self.act.is_unknown() && shape == Some(Kind::Url) {
            // A tool whose name says nothing, with an address: it may send as well as fetch.
            let found = std::mem::take(&mut self.act.found);
            *self.act = Act::new("request", "url", Resource::Web, Operation::Execute, 0.35).marked(Sign::Unclear);
            self.act.found = found;
        }
    }

    /// Reads a command after a shell mark in a value that is not a command: `Oslo; rm -rf /`.
    pub(super) fn injected(&mut self, text: &str) {
        self.hidden_command(text);
        self.command_within(text);
        let marks = |c: char| matches!(c, '`' | ';' | '|' | '&' | '$' | '\n');
        let mut found = 0;
        for (at, _) in text.match_indices(marks) {
            let rest = text.get(at..).unwrap_or("").trim_start_matches(['`', ';', '|', '&', '$', '(', '{', ' ', '\n']);
            let program = rest.split(|c: char| c.is_whitespace() || matches!(c, '`' | ')' | ';')).next().unwrap_or("");
            if !self.reader.lexicon.programs.knows(program.rsplit('/').next().unwrap_or(program)) {
                continue;
            }
            found += 1;
            if found > MOST_INJECTED {
                return self.reader.reading.facts.note_unread(UnreadKind::Argument, text);
            }
            let line = rest.lines().next().unwrap_or("").trim_end_matches(['`', ')', '}', ' ']);
            let reading = driver::command(line, self.reader.lexicon);
            if reading.acts.iter().any(|act| risk::assess(act, &reading.facts).level >= RiskLevel::High) {
                self.reader.reading.absorb(reading);
            }
        }
    }

    /// Reads a command within a longer text, such as a crontab line: a program followed by a flag or a path.
    fn command_within(&mut self, text: &str) {
        let is_argument =
            |pair: &[u8]| pair.first() == Some(&b' ') && matches!(pair.last(), Some(b'-' | b'/' | b'~' | b'$'));
        if !text.as_bytes().windows(2).any(is_argument) {
            return;
        }
        let mut found = 0;
        let mut words = embedded::words(text).skip(1).take(MOST_WORDS).peekable();
        while let Some((at, word)) = words.next() {
            let bare = word.trim_matches(['"', '\'', '`', '(']);
            let is_argument = |(_, next): &(usize, &str)| next.len() > 1 && next.starts_with(['-', '/', '~', '$']);
            if words.peek().is_some_and(is_argument) && self.reader.lexicon.programs.knows(bare) {
                let start = at + word.find(bare).unwrap_or(0);
                let reading = driver::command(text.get(start..).unwrap_or(bare), self.reader.lexicon);
                if reading.acts.iter().any(|act| risk::assess(act, &reading.facts).level >= RiskLevel::High) {
                    self.reader.reading.absorb(reading);
                }
                found += 1;
                if found >= MOST_WITHIN {
                    return;
                }
            }
        }
    }

    /// Reads a value that is a command line although nothing says so: `job: "rm -rf /"`.
    pub(super) fn hidden_command(&mut self, text: &str) {
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or("");
        let is_program = self.reader.lexicon.programs.knows(first.rsplit('/').next().unwrap_or(first));
        if is_program && words.any(|word| word.starts_with(['-', '/', '~', '$', '*', '>']) || word.contains('|')) {
            let reading = driver::command(text, self.reader.lexicon);
            self.absorb_changes(reading);
        }
    }

    /// Reads `file://` in place of a web page: a file on the host itself.
    pub(super) fn local_file(&mut self, url: &str) -> bool {
        let Some(path) = target::file_path(url.trim_start()) else { return false };
        let level = if place::is_system(path) { RiskLevel::High } else { RiskLevel::Medium };
        let read = Act::new("read", "file", Resource::File, Operation::Read, 0.8).named_by(url).at_risk(level);
        self.reader.reading.push(read);
        self.place("path", Some(Role::Path), path);
        true
    }

    /// Reads a control that is switched off: `set_config(key="audit_log.enabled", value=false)`.
    pub(super) fn control(&mut self, call: &Call<'_>) {
        let mut line = String::new();
        if self.switched_off == Switched::Tool {
            call.names.iter().for_each(|name| push_words(name, &mut line));
        }
        for value in &call.arguments {
            gather(value, &mut line);
        }
        call.beside.iter().for_each(|field| gather_field(field, &mut line));
        let tokens = tokenise(&line, &line, self.reader.lexicon);
        if let Some(token) = tokens.iter().find(|token| is_control(token)) {
            let disable = Act::new("disable", "security_control", Resource::Permission, Operation::Admin, 0.7);
            let disable = disable.told_by(token.text).marked(Sign::Control);
            self.reader.reading.push(disable);
        }
    }
}

/// Returns whether a value switches off: `false`, `turn_off`.
pub(super) fn is_off(text: &str) -> bool {
    let is_one = |last: &str| ["off", "disable", "deactivate"].iter().any(|off| last.eq_ignore_ascii_case(off));
    let ends = || key_words(text).last().is_some_and(is_one);
    tools().value("off", text) || text.len() <= LONGEST_VERB && !text.contains(' ') && ends()
}

/// Returns whether a key names a file or folder, whatever the value looks like: `icon@2x.png` is no address.
fn names_file(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    key.ends_with("path")
        || key.ends_with("file")
        || key.ends_with("filename")
        || key.ends_with("paths")
        || key.ends_with("files")
}

/// Returns whether a filter is empty, or matches everything.
fn bounds_nothing(value: &Json<'_>, depth: u8) -> bool {
    match value {
        Json::Null => true,
        Json::Text(text) => text.trim().is_empty() || tools().value("unbounded", text),
        Json::List(items) => items.is_empty(),
        Json::Fields(fields) => fields.iter().all(|(key, value)| {
            tools().value("unbounded", key)
                || depth < 4 && tools().value("bounds", key) && bounds_nothing(value, depth + 1)
        }),
        Json::Bool(_) | Json::Number(_) => false,
    }
}

/// Parses a sum of money as people write it: "50,000.00 USD", "EUR 1.200,50", "$20".
pub(super) fn money(text: &str) -> Option<f64> {
    let digits = text.trim().trim_matches(|c: char| !c.is_ascii_digit() && c != '-');
    if digits.is_empty()
        || digits.len() > LONGEST_SUM
        || !digits.chars().all(|c| c.is_ascii_digit() || matches!(c, ',' | '.' | '\'' | ' ' | '_' | '-'))
    {
        return None;
    }
    // The last mark separates the decimals if one or two digits follow it.
    let last = digits.rfind([',', '.']);
    let fraction = last.filter(|&at| digits.len() - at <= 3);
    let plain = |part: &str| part.chars().filter(|c| c.is_ascii_digit() || *c == '-').collect::<String>();
    let whole = plain(digits.get(..fraction.unwrap_or(digits.len()))?);
    let cents = fraction.and_then(|at| digits.get(at + 1..)).unwrap_or("0");
    format!("{whole}.{}", plain(cents)).parse().ok()
}

/// Maximum number of words of a text in which commands are searched, and of commands read from it.
const MOST_WORDS: usize = 512;
const MOST_WITHIN: usize = 4;
/// Maximum number of programs after shell marks that are checked in one value.
const MOST_INJECTED: usize = 16;
/// Maximum length of a sum of money, in bytes.
const LONGEST_SUM: usize = 32;

fn is_control(token: &Token<'_>) -> bool {
    token.cue == Some(Sign::Control) || token.word.split(' ').any(|word| tools().value("controls", word))
}

/// Collects the words of a key, and those of its value unless it is content: a title about a control sets none.
fn gather_field((key, value): &Field<'_>, line: &mut String) {
    push_words(key, line);
    if value.as_text().is_none() || tools().role(key) != Some(Role::Content) {
        gather(value, line);
    }
}

/// Collects the words of a call: its names, keys and short values.
pub(super) fn gather_call(call: &Call<'_>, line: &mut String) {
    call.names.iter().for_each(|name| push_words(name, line));
    call.arguments.iter().for_each(|value| gather(value, line));
    call.beside.iter().for_each(|field| gather_field(field, line));
}

/// Collects the words of keys and short values.
fn gather(value: &Json<'_>, line: &mut String) {
    match value {
        Json::Fields(fields) => fields.iter().for_each(|field| gather_field(field, line)),
        Json::List(items) => items.iter().for_each(|item| gather(item, line)),
        // Arguments in a string have been unpacked, so their depth is known.
        Json::Text(text)
            if text.trim_start().starts_with('{')
                && json_depth(text) <= MAX_CONTEXT_DEPTH
                && line.len() < LONGEST_PLACE =>
        {
            values(text).0.iter().for_each(|value| gather(value, line));
        }
        Json::Text(text) if text.len() <= LONGEST_VERB => push_words(text, line),
        _ => {}
    }
}

fn push_words(text: &str, line: &mut String) {
    if line.len() < LONGEST_PLACE {
        for word in name::words(text) {
            line.push_str(&word);
            line.push(' ');
        }
    }
}
