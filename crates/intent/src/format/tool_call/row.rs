//! Arguments whose role the row of a host's tool gives.

use crate::sign::Sign;
use crate::target;
use rulekeep_types::{Operation, Resource, TargetRole, UnreadKind};

use super::super::hosts::{Through, Use};
use super::super::tools::Role;
use super::super::{access, driver, english, is_code, place, shell};
use super::arguments::{Arguments, LONGEST_PLACE, push_word};
use super::json::{Field, Json};

impl Arguments<'_, '_> {
    /// Reads an argument by its role. Nothing else is read from it.
    pub(super) fn by_row(&mut self, role: Use, key: &str, value: &Json<'_>) {
        match (role, value) {
            (Use::Content | Use::Words | Use::Choice, _) => {}
            (Use::Command, Json::List(words)) => {
                let mut line = String::new();
                words.iter().filter_map(Json::as_text).for_each(|word| push_word(&mut line, word));
                self.command(&line);
            }
            (_, Json::List(items)) => items.iter().for_each(|item| self.by_row(role, key, item)),
            (Use::Read | Use::Write | Use::Remove | Use::Url, Json::Fields(fields)) => {
                for (_, value) in fields {
                    self.by_row(role, key, value);
                }
            }
            (_, Json::Text(text)) => self.text_by_row(role, key, text),
            (_, value) => self.value(key, value),
        }
    }

    fn text_by_row(&mut self, role: Use, key: &str, text: &str) {
        match role {
            Use::Read | Use::Write | Use::Remove => self.path(role, key, text),
            Use::Patch => self.patch(text),
            Use::Command => self.command(text),
            Use::Code => self.code(),
            Use::Pattern => self.pattern(text),
            Use::Query => {
                let addresses = text.split_whitespace().filter(|word| word.contains("://"));
                addresses.take(MOST_ADDRESSES).for_each(|word| self.reader.reading.facts.note_target(word));
            }
            Use::Url => self.place(key, Some(Role::Url), text),
            Use::Request => self.order(text),
            Use::Verb => self.known_verb(text),
            Use::Content | Use::Words | Use::Choice => {}
        }
    }

    /// Reads a path that is used as it stands.
    fn path(&mut self, role: Use, key: &str, text: &str) {
        if text.len() > LONGEST_PLACE {
            return self.reader.reading.facts.note_unread(UnreadKind::Argument, text);
        }
        let path = target::file_path(text.trim_start()).unwrap_or(text);
        // A tool that both shows and edits files says which by its verb, one that opens files by a mode.
        let reads = self.looks || role == Use::Read && self.act.operation != Operation::Write;
        let part = if reads { TargetRole::Read } else { TargetRole::Write };
        let is_literal = self.reader.reading.facts.note_literal_path(part, path);
        if place::is_secret(path) {
            self.sign(Sign::Secret, path);
        }
        let acts = match role {
            _ if reads => access::read(path).into_iter().collect(),
            Use::Remove => access::changed(path),
            _ => access::written(path),
        };
        self.reader.reading.extend(acts);
        if !is_literal {
            self.inspect(key, text, Some(Role::Path));
        }
    }

    /// Notes whether the verb of the call only reads.
    pub(super) fn note_verb(&mut self, fields: &[Field<'_>]) {
        let Some(known) = self.known.filter(|_| self.through == Some(Through::Verb)) else { return };
        let verb = fields.iter().find(|(key, _)| known.argument(key) == Some(Use::Verb));
        let does = verb.and_then(|(_, value)| known.under(value.as_text()?.trim()));
        self.looks |= does.is_some_and(|(_, operation)| operation == Operation::Read);
    }

    /// Records the folder in which a pattern with a path of its own searches.
    fn pattern(&mut self, text: &str) {
        let first = text.find(place::WILD).unwrap_or(text.len());
        let (start, behind) = text.split_at(first);
        if behind.contains("..") {
            self.reader.reading.facts.note_unread(UnreadKind::Target, text);
        }
        if text.starts_with(['/', '~']) || start.contains("..") {
            self.sensitive_place(Some(Role::Path), text);
            let folder = if behind.is_empty() { start.len() } else { start.rfind('/').map_or(0, |slash| slash + 1) };
            let folder = start.get(..folder).unwrap_or(start);
            self.reader.reading.facts.note_literal_path(TargetRole::Named, folder);
        }
    }

    /// Reads a patch. One whose headers name no file changes the file that another argument names.
    pub(super) fn patch(&mut self, text: &str) {
        access::patch(text, &mut self.reader.reading);
        self.is_told |= self.act.is_unknown();
    }

    /// Reads an order to another agent. Program code in it is content, not an order.
    pub(super) fn order(&mut self, text: &str) {
        if is_code(text) || is_listing(text) {
            return;
        }
        let lexicon = self.reader.lexicon;
        if shell::is_command(text.trim(), lexicon) {
            self.reader.reading.absorb(driver::command(text.trim(), lexicon));
        } else {
            self.reader.reading.absorb(english::read(text, lexicon));
        }
        self.is_told = self.act.resource != Resource::Task;
    }
}

/// Returns whether a text starts like a piece of program code and its first line ends like one.
fn is_listing(text: &str) -> bool {
    let first = text.trim_start().lines().next().unwrap_or("").trim_end();
    CODE_STARTS.iter().any(|start| first.starts_with(start)) && first.ends_with(['{', ':', ';', '(', '>'])
}

const CODE_STARTS: &[&str] = &[
    "class ",
    "fn ",
    "pub ",
    "impl ",
    "struct ",
    "enum ",
    "export ",
    "use ",
    "func ",
    "public ",
    "private ",
    "static ",
    "@",
    "<?php",
    "type ",
    "interface ",
    "namespace ",
    "module ",
    "async ",
];
/// Maximum number of addresses recorded from a query.
const MOST_ADDRESSES: usize = 8;
