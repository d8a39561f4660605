//! Whether every argument of a call was read. Each value is consumed by its role or left over; what is left over
//! leaves the call open, and its words are named operands, so that a restriction still finds them.

use rulekeep_types::facts::{Cause, Kind, Kinds, Open, Operand, Role as Part, host_of};
use rulekeep_types::{Operation, Resource, TargetKind};

use crate::reading::{Act, Reading, add_open};
use crate::target;

use super::super::hosts::{Known, Use};
use super::super::tools::{Key, Role, tools};
use super::json::Json;
use super::shape::{self, Call};

/// Records what the call's own step leaves open.
pub(super) fn note(call: &Call<'_>, act: &Act, known: Option<&'static Known>, reading: &mut Reading) {
    reading.flush();
    let mut cover = Cover { act, known, reading };
    for value in &call.arguments {
        cover.value("", value);
    }
    for (key, value) in &call.beside {
        cover.value(key, value);
    }
    cover.needs();
}

struct Cover<'c> {
    act: &'c Act,
    /// The row of the tool.
    known: Option<&'static Known>,
    reading: &'c mut Reading,
}

impl Cover<'_> {
    fn value(&mut self, key: &str, value: &Json<'_>) {
        if let Some(role) = self.known.and_then(|known| known.argument(key)) {
            return self.by_row(role, key, value);
        }
        let role = tools().role(key);
        match value {
            Json::Null | Json::Bool(false) => {}
            Json::Fields(fields) => {
                if tools().nests(key) && !shape::calls(value).is_empty() {
                    return;
                }
                for (inner, value) in fields {
                    // Everything inside content is content, and inside a recipient a recipient.
                    let is_part = matches!(role, Some(Role::Content | Role::Recipient | Role::Amount))
                        && tools().role(inner).is_none();
                    self.value(if is_part { key } else { inner }, value);
                }
            }
            Json::List(items) => {
                self.joined(role, items);
                if role != Some(Role::Command) && !(tools().nests(key) && !shape::calls(value).is_empty()) {
                    items.iter().for_each(|item| self.value(key, item));
                }
            }
            Json::Bool(true) => self.flag(key, role),
            // "recipient_ids": the records say who they are.
            Json::Number(_) if self.sends() && is_recipient(key) => {
                self.open(Cause::Text, Kinds::of(&[Kind::Recipient]), key);
            }
            Json::Number(_) => {}
            Json::Text(text) => self.text(key, role, text),
        }
    }

    /// Accounts for an argument that the tool's row names.
    fn by_row(&mut self, role: Use, key: &str, value: &Json<'_>) {
        match (role, value) {
            (Use::Code, _) => self.open(Cause::Execution, Kinds::OPERANDS, key),
            (Use::Url, Json::Text(text)) => self.text(key, Some(Role::Url), text),
            (Use::Read | Use::Write | Use::Remove, Json::Text(text)) => self.path(key, text.trim()),
            (Use::Read | Use::Write | Use::Remove | Use::Url, Json::List(items)) => {
                items.iter().for_each(|item| self.by_row(role, key, item));
            }
            _ => {}
        }
    }

    fn flag(&mut self, key: &str, role: Option<Role>) {
        match role {
            Some(Role::Force | Role::DryRun | Role::Count | Role::Environment | Role::Idle) => {}
            Some(Role::Bulk | Role::Public | Role::Recipient) => self.open(Cause::Text, Kinds::OPERANDS, key),
            _ if names(key, &["all", "every", "everyone", "everybody"]) => self.open(Cause::Text, Kinds::OPERANDS, key),
            _ => self.open(Cause::Execution, Kinds::OPERANDS, key),
        }
    }

    fn text(&mut self, key: &str, role: Option<Role>, text: &str) {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return;
        }
        let is_header = !matches!(role, Some(Role::Content)) || names(key, &["subject", "title", "header", "headers"]);
        if self.sends() && is_header && text.contains(['\r', '\n']) {
            self.open(Cause::Text, Kinds::OPERANDS, key);
            return self.leftover(text);
        }
        match role {
            Some(Role::Recipient) => self.recipient(key, trimmed),
            Some(Role::Path) => self.path(key, trimmed),
            Some(Role::Url) => {
                if trimmed.contains(char::is_whitespace) || !trimmed.contains(['.', ':', '/']) {
                    self.leftover(trimmed);
                    self.open(Cause::Execution, Kinds::OPERANDS, key);
                } else if let Some(path) = trimmed.strip_prefix("file://") {
                    self.add(Operand::new(Kind::Path, Part::Read, target::resolved_path(path), trimmed));
                } else if let Some(host) = host_of(trimmed) {
                    self.add(Operand::new(Kind::Host, Part::Read, host, trimmed));
                }
            }
            Some(Role::Code) => {
                self.open(Cause::Execution, Kinds::OPERANDS, key);
                self.leftover(text);
            }
            Some(Role::Idle | Role::Visibility | Role::Environment) if self.sends() && is_recipient(key) => {
                self.open(Cause::Text, Kinds::of(&[Kind::Recipient]), key);
            }
            Some(Role::Idle | Role::Environment | Role::Visibility) => {
                // An id, a page, a format; but an address in it counts.
                if trimmed.contains(['/', '@', '.']) {
                    self.leftover(trimmed);
                }
            }
            Some(
                Role::Amount
                | Role::Content
                | Role::Query
                | Role::Command
                | Role::Script
                | Role::Sql
                | Role::Method
                | Role::Currency
                | Role::Count
                | Role::Force
                | Role::DryRun
                | Role::Access
                | Role::Doing
                | Role::Secret,
            ) => {}
            Some(Role::Bulk | Role::Public | Role::Nested | Role::Request) | None => {
                self.leftover(trimmed);
                self.open(Cause::Execution, Kinds::OPERANDS, if key.is_empty() { trimmed } else { key });
            }
        }
    }

    fn recipient(&mut self, key: &str, text: &str) {
        let is_address = |one: &str| {
            let inner = one.rsplit_once('<').map_or(one, |(_, rest)| rest.trim_end_matches('>')).trim();
            let is_plain =
                |c: char| c.is_alphanumeric() || matches!(c, '@' | '.' | '_' | '-' | '+' | ' ' | '#' | '/' | ':');
            inner.matches('@').count() <= 1 && !inner.starts_with('@') && inner.chars().all(is_plain)
        };
        if !text.split([',', ';']).all(is_address) || tools().value("everybody", text) {
            self.open(Cause::Text, Kinds::of(&[Kind::Recipient, Kind::Account]), key);
            self.leftover(text);
        } else if text.contains([',', ';']) {
            for one in text.split([',', ';']).map(str::trim).filter(|one| !one.is_empty()) {
                self.add(Operand::new(Kind::Recipient, Part::SendTo, target::plain(TargetKind::Recipient, one), one));
            }
        }
    }

    fn path(&mut self, key: &str, text: &str) {
        // "target" and "location" may be a host; "file_path" is not: `icon@2x.png`.
        if !text.contains('/') && !names(key, FILES) {
            for host in target::hosts_in(text) {
                self.add(Operand::new(Kind::Host, Part::Named, host, text));
            }
        }
        let bare = text.strip_prefix("file://").unwrap_or(text);
        let behind_drive = if bare.get(1..3) == Some(":\\") { bare.get(2..).unwrap_or_default() } else { bare };
        if tools().keys(key).has(Key::Host) || bare.contains("://") {
            if let Some(host) = host_of(bare) {
                self.add(Operand::new(Kind::Host, Part::Named, host, text));
            }
        } else if behind_drive.contains([':', ';', '\n']) {
            // Several paths in one text.
            self.open(Cause::Text, Kinds::of(&[Kind::Path]), text);
            for piece in bare.split([':', ';', '\n']).map(str::trim).filter(|piece| !piece.is_empty()) {
                self.add(Operand::new(Kind::Path, Part::Named, target::resolved_path(piece), text));
            }
        } else if bare.len() < text.len() {
            self.add(Operand::new(Kind::Path, self.role(), target::resolved_path(bare), text));
        }
    }

    /// Parts of one path or address in a list.
    fn joined(&mut self, role: Option<Role>, items: &[Json<'_>]) {
        let parts: Vec<&str> = items.iter().filter_map(Json::as_text).collect();
        let (Some(first), true) = (parts.first(), parts.len() > 1 && parts.len() <= MOST_JOINED) else { return };
        let whole = match role {
            Some(Role::Path) if first.starts_with(['/', '~']) => parts.join("/"),
            Some(Role::Url) if first.contains("://") => parts.concat(),
            _ => return,
        };
        if parts.iter().skip(1).any(|part| !part.starts_with('/') && !part.contains("://")) {
            self.leftover(&whole);
        }
    }

    /// What the act does to something that no argument names.
    fn needs(&mut self) {
        let Some(step) = self.reading.current_step() else { return };
        let has = |kinds: &[Kind]| step.operands.iter().any(|operand| kinds.contains(&operand.kind));
        let needed = match (self.act.operation, self.act.resource) {
            (Operation::Send, Resource::Email | Resource::Message)
                if !has(&[Kind::Recipient, Kind::Host, Kind::Account]) =>
            {
                Kind::Recipient
            }
            (Operation::Transfer, _) if step.amounts.is_empty() => Kind::Amount,
            (Operation::Delete | Operation::Write, Resource::File) if !has(&[Kind::Path]) => Kind::Path,
            _ => return,
        };
        self.open(Cause::Text, Kinds::of(&[needed]), Open::UNNAMED);
    }

    /// Records the paths, addresses and hosts in a text of unknown meaning.
    fn leftover(&mut self, text: &str) {
        let is_end =
            |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '(' | ')' | ',' | ';' | '<' | '>' | '=');
        for piece in text.split(is_end).filter(|piece| piece.len() > 1).take(MOST_PIECES) {
            let piece = piece.trim_end_matches(['.', ':']);
            if piece.contains("://") || piece.starts_with("//") {
                if let Some(path) = piece.strip_prefix("file://") {
                    self.add(Operand::new(Kind::Path, Part::Named, target::resolved_path(path), piece));
                } else if let Some(host) = host_of(piece) {
                    self.add(Operand::new(Kind::Host, Part::Named, host, piece));
                }
            } else if piece.contains('@') {
                let value = target::plain(TargetKind::Recipient, piece);
                self.add(Operand::new(Kind::Recipient, Part::Named, value, piece));
            } else {
                if piece.contains('/') || !text.contains(char::is_whitespace) {
                    self.add(Operand::new(Kind::Path, Part::Named, target::resolved_path(piece), piece));
                }
            }
        }
        for host in target::hosts_in(text) {
            self.add(Operand::new(Kind::Host, Part::Named, host, text));
        }
    }

    fn role(&self) -> Part {
        match self.act.operation {
            Operation::Read => Part::Read,
            Operation::Write => Part::Write,
            Operation::Delete => Part::Remove,
            _ => Part::Named,
        }
    }

    fn sends(&self) -> bool {
        self.act.operation == Operation::Send || matches!(self.act.resource, Resource::Email | Resource::Message)
    }

    fn open(&mut self, cause: Cause, kinds: Kinds, found: &str) {
        let found = found.chars().take(LONGEST_FOUND).collect();
        if let Some(step) = self.reading.current_step() {
            add_open(step, Open::new(cause, kinds, found));
        }
    }

    fn add(&mut self, operand: Operand) {
        if let Some(step) = self.reading.current_step()
            && !step.operands.contains(&operand)
        {
            step.operands.push(operand);
        }
    }
}

/// Returns whether one of the words of a key is in a list.
fn names(key: &str, words: &[&str]) -> bool {
    key.split(|c: char| !c.is_alphanumeric()).any(|word| words.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// Returns whether a word of a key means somebody who receives something.
fn is_recipient(key: &str) -> bool {
    names(
        key,
        &["recipient", "recipients", "to", "cc", "bcc", "contact", "contacts", "audience", "segment", "group", "list"],
    )
}

/// Words of keys whose values are files and never hosts.
const FILES: &[&str] = &["path", "paths", "file", "files", "filename", "dir", "directory", "folder"];
/// Maximum number of words of one text that are recorded.
const MOST_PIECES: usize = 32;
/// Maximum number of parts of one path.
const MOST_JOINED: usize = 16;
/// Maximum length of a quoted part, in characters.
const LONGEST_FOUND: usize = 60;
