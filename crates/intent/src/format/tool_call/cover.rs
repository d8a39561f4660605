//! Whether every argument of a call was read. Each value is consumed by its role or left over; what is left over
//! leaves the call open, and its words are named operands, so that a restriction still finds them.

use std::sync::LazyLock;

use regex::Regex;
use rulekeep_types::facts::{self, Cause, Kind, Kinds, Open, Operand, Role as Part, host_of};
use rulekeep_types::{Operation, Resource, TargetKind};

use crate::reading::{Act, Reading, add_open, add_operand};
use crate::target;

use super::super::hosts::{Known, Use};
use super::super::tools::{Key, Role, key_words, tools};
use super::json::{Field, Json};
use super::shape::{self, Call};

/// Records what the call's own step leaves open.
pub(super) fn note(call: &Call<'_>, act: &Act, known: Option<&'static Known>, reading: &mut Reading) {
    reading.flush();
    let mut cover = Cover { act, known, reading };
    for value in &call.arguments {
        cover.value("", value);
    }
    let around = call.around.iter().filter(|_| call.arguments.is_empty());
    for (key, value) in call.beside.iter().chain(around) {
        cover.value(key, value);
    }
    cover.needs();
    cover.trees(call);
    for other in call.names.iter().skip(1) {
        // Which of several names a runtime calls is unknown.
        cover.open(Cause::Text, Kinds::ALL, other);
    }
}

/// Completes the relative paths of a call's steps with the folder that the call names: the folder in which its command
/// runs, or in which other arguments may lie.
pub(super) fn complete(call: &Call<'_>, steps: &mut [facts::Act]) {
    let fields = call.arguments.iter().filter_map(|value| match value {
        Json::Fields(fields) => Some(fields.iter()),
        _ => None,
    });
    let mut fields = fields.flatten().chain(call.beside.iter().copied());
    let folder = fields.find_map(|(key, value)| {
        value.as_text().map(str::trim).filter(|text| !text.is_empty() && tools().keys(key).has(Key::Folder))
    });
    let Some(folder) = folder.map(|folder| target::file_path(folder).unwrap_or(folder)) else { return };
    let own = target::resolved_path(folder);
    for step in steps {
        let mut further = Vec::new();
        for operand in step.operands.iter_mut().filter(|operand| operand.kind == Kind::Path) {
            if target::is_absolute(&operand.value) || operand.value == own {
                continue;
            }
            let whole = target::resolved_path(&format!("{folder}/{}", operand.value));
            if step.commands.is_empty() {
                let sent = operand.original.as_deref().unwrap_or(&operand.value);
                let whole = Operand::new(Kind::Path, operand.role, whole, sent);
                further.push(whole.as_tree(operand.tree).as_pattern(operand.pattern));
            } else {
                let sent = std::mem::replace(&mut operand.value, whole);
                operand.original.get_or_insert(sent);
            }
        }
        step.operands.extend(further);
    }
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
            Json::Fields(fields) => {
                if tools().nests(key) && !shape::calls(value).is_empty() {
                    return;
                }
                for (inner, value) in fields {
                    if inner.contains(['/', '@', '\\']) {
                        // A key that is a value itself: {"/etc/hosts": "..."}.
                        self.leftover(inner);
                    }
                    // Everything inside content is content, and inside a recipient a recipient.
                    let is_part = matches!(role, Some(Role::Content | Role::Recipient | Role::Amount))
                        && tools().role(inner).is_none()
                        || self.sends() && is_recipient(key);
                    self.value(if is_part { key } else { inner }, value);
                }
            }
            Json::List(items) => {
                self.joined(role, items);
                let holds_calls = tools().nests(key) && !shape::calls(value).is_empty();
                if role == Some(Role::Command) || holds_calls {
                    return;
                }
                for item in items {
                    self.value(key, item);
                }
            }
            Json::Bool(true) => self.flag(key, role),
            // "recipient_ids": the records say who they are.
            Json::Number(_) if self.sends() && is_recipient(key) => {
                self.open(Cause::Text, Kinds::of(&[Kind::Recipient]), key);
            }
            Json::Null | Json::Bool(false) | Json::Number(_) => {}
            Json::Text(text) => self.text(key, role, text),
        }
    }

    /// Accounts for an argument that the tool's row names.
    fn by_row(&mut self, role: Use, key: &str, value: &Json<'_>) {
        match (role, value) {
            (Use::Code, _) => self.open(Cause::Execution, Kinds::OPERANDS, key),
            (Use::Pattern | Use::Query, Json::Text(text)) => self.whole_path(text.trim()),
            (Use::Url, Json::Text(text)) => self.text(key, Some(Role::Url), text),
            (Use::Read | Use::Write | Use::Remove, Json::Text(text)) => self.path(key, text.trim()),
            (Use::Read | Use::Write | Use::Remove | Use::Url, Json::List(items)) => {
                self.joined(Some(if role == Use::Url { Role::Url } else { Role::Path }), items);
                for item in items {
                    self.by_row(role, key, item);
                }
            }
            (Use::Read | Use::Write | Use::Remove | Use::Url, Json::Fields(fields)) => {
                for (inner, value) in fields {
                    self.leftover(inner);
                    self.by_row(role, key, value);
                }
            }
            (Use::Choice, Json::Text(text)) if text.contains(['/', '@', '\\']) => self.leftover(text),
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
        if tools().keys(key).has(Key::Table) && !trimmed.contains(['/', '\\']) {
            for name in trimmed.split(',').map(|name| name.trim().trim_matches(['"', '`', '[', ']'])) {
                self.add(Operand::new(Kind::Table, self.role(), name.to_owned(), trimmed));
            }
        }
        if self.sends() && !matches!(role, Some(Role::Content | Role::Recipient)) {
            if is_recipient(key) {
                self.open(Cause::Text, Kinds::of(&[Kind::Recipient]), key);
            }
            if trimmed.contains('@') {
                self.leftover(trimmed);
            }
        }
        match role {
            Some(Role::Recipient) => self.recipient(key, trimmed),
            Some(Role::Path) => self.path(key, trimmed),
            Some(Role::Url) => {
                if trimmed.contains(char::is_whitespace) {
                    // Clients drop tabs and line ends within an address.
                    self.leftover(trimmed);
                    self.open(Cause::Text, Kinds::of(&[Kind::Host, Kind::Url]), key);
                } else if !trimmed.contains(['.', ':', '/']) {
                    self.leftover(trimmed);
                    self.open(Cause::Execution, Kinds::OPERANDS, key);
                } else if trimmed.starts_with(['/', '~']) && !trimmed.starts_with("//") {
                    self.path(key, trimmed);
                } else if let Some(path) = target::file_path(trimmed) {
                    self.add(Operand::new(Kind::Path, Part::Read, target::resolved_path(path), trimmed));
                } else if let Some(host) = host_of(trimmed) {
                    self.add(Operand::new(Kind::Host, Part::Read, host, trimmed));
                }
            }
            Some(Role::Code) => {
                self.open(Cause::Execution, Kinds::OPERANDS, key);
                self.leftover(text);
            }
            Some(Role::Idle | Role::Environment | Role::Visibility) => {
                // An id, a page, a format; but an address in it counts.
                if trimmed.contains(['/', '@', '.']) {
                    self.leftover(trimmed);
                }
            }
            Some(Role::Content | Role::Query) if self.act.operation == Operation::Read => self.whole_path(trimmed),
            Some(Role::Doing | Role::Currency | Role::Count | Role::Access) if trimmed.contains(['/', '@']) => {
                self.leftover(trimmed);
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
        if !text.contains(['/', '@']) && !names(key, FILES) {
            for host in target::hosts_in(text) {
                self.add(Operand::new(Kind::Host, Part::Named, host, text));
            }
        }
        let bare = target::file_path(text).unwrap_or(text);
        let behind_drive = if bare.get(1..3) == Some(":\\") { bare.get(2..).unwrap_or_default() } else { bare };
        if tools().keys(key).has(Key::Host) || bare.contains("://") {
            if let Some(host) = host_of(bare) {
                self.add(Operand::new(Kind::Host, Part::Named, host, text));
            }
        } else if behind_drive.contains([':', ';', '\n']) || is_several(bare) {
            // Several paths in one text.
            self.open(Cause::Text, Kinds::of(&[Kind::Path]), text);
            let ends = |c: char| matches!(c, ':' | ';' | '\n' | ',') || c.is_whitespace();
            for piece in bare.split(ends).filter(|piece| !piece.is_empty()).take(MOST_PIECES) {
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
        if parts.iter().skip(1).all(|part| part.starts_with('/') || part.contains("://")) {
            return;
        }
        match role {
            Some(Role::Path) if first.starts_with(['/', '~']) => {
                let whole = target::resolved_path(&parts.join("/"));
                self.add(Operand::new(Kind::Path, self.role(), whole, first));
            }
            Some(Role::Url) if first.contains("://") => self.leftover(&parts.concat()),
            _ => {}
        }
    }

    /// Leaves the act open in a kind of operand that it needs and no argument names.
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
        self.open(Cause::Unnamed, Kinds::of(&[needed]), self.act.noun.as_str());
    }

    /// Records a search text that is a path, or a pattern of paths.
    fn whole_path(&mut self, text: &str) {
        if text.contains("://") && !text.contains(char::is_whitespace) {
            return self.leftover(text);
        }
        if !text.starts_with(['/', '~']) && !text.starts_with("./") && !text.starts_with("../") {
            return;
        }
        if text.contains(['{', '$', '`']) {
            self.open(Cause::Text, Kinds::of(&[Kind::Path]), text);
        }
        let is_wild = text.contains(['*', '?', '[']);
        let path = Operand::new(Kind::Path, self.role(), target::resolved_path(text), text);
        // `**` crosses folders, which a shell's `*` does not.
        let folder = text.find("**").and_then(|at| text.get(..at)).filter(|folder| !folder.is_empty());
        match folder {
            Some(folder) => {
                let path = Operand::new(Kind::Path, self.role(), target::resolved_path(folder), text);
                self.add(path.as_tree(true).as_pattern(folder.contains(['*', '?', '['])));
            }
            None => self.add(path.as_pattern(is_wild)),
        }
    }

    /// Marks the paths of a call that reads or changes all that is below them.
    fn trees(&mut self, call: &Call<'_>) {
        let is_deep =
            |(key, value): &Field<'_>| *value == Json::Bool(true) && names(key, &["recursive", "recursively"]);
        let has_flag = |value: &Json<'_>| matches!(value, Json::Fields(fields) if fields.iter().any(is_deep));
        let is_path = |operand: &Operand| operand.kind == Kind::Path;
        if !self.reading.current_step().is_some_and(|step| step.operands.iter().any(is_path)) {
            return;
        }
        let is_tree = call.names.iter().any(|name| DEEP.as_ref().is_some_and(|deep| deep.is_match(name)))
            || call.arguments.iter().copied().any(has_flag)
            || call.beside.iter().copied().any(is_deep);
        let moves = call.names.iter().any(|name| names(name, &["move", "rename", "mv", "relocate"]));
        let Some(step) = self.reading.current_step() else { return };
        for operand in step.operands.iter_mut().filter(|operand| is_path(operand)) {
            operand.tree |= is_tree;
            if moves && operand.role == Part::Read {
                operand.role = Part::Remove;
            }
        }
    }

    /// Records the paths, addresses and hosts in a text of unknown meaning.
    fn leftover(&mut self, text: &str) {
        let is_filled = |(at, mark): (usize, &str)| {
            text.as_bytes().get(at + 1).is_some_and(|next| *next == b'{' || *next == b'(' && mark == "$")
        };
        if text.match_indices(['{', '$']).any(is_filled) {
            self.open(Cause::Text, Kinds::OPERANDS, text);
        }
        let is_end =
            |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '(' | ')' | ',' | ';' | '<' | '>' | '=');
        for piece in text.split(is_end).filter(|piece| piece.len() > 1).take(MOST_PIECES) {
            let piece = piece.trim_end_matches(['.', ':']);
            if piece.contains("://") || piece.starts_with("//") {
                if let Some(path) = target::file_path(piece) {
                    self.add(Operand::new(Kind::Path, Part::Named, target::resolved_path(path), piece));
                } else if let Some(host) = host_of(piece) {
                    self.add(Operand::new(Kind::Host, Part::Named, host, piece));
                }
            } else if piece.contains('@') {
                let value = target::plain(TargetKind::Recipient, piece);
                self.add(Operand::new(Kind::Recipient, Part::Named, value, piece));
            } else if piece.contains('/') || !text.contains(char::is_whitespace) {
                self.add(Operand::new(Kind::Path, Part::Named, target::resolved_path(piece), piece));
                // "/tmp/a:/srv/b": several paths.
                for part in piece.split(':').skip(1).filter(|part| part.contains('/')) {
                    self.add(Operand::new(Kind::Path, Part::Named, target::resolved_path(part), piece));
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
        if let Some(step) = self.reading.current_step() {
            add_operand(step, operand);
        }
    }
}

/// Returns whether one of the words of a key is in a list.
fn names(key: &str, words: &[&str]) -> bool {
    key_words(key).any(|word| words.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// Returns whether a word of a key means somebody who receives something.
fn is_recipient(key: &str) -> bool {
    names(
        key,
        &[
            "recipient",
            "recipients",
            "to",
            "cc",
            "bcc",
            "contact",
            "contacts",
            "audience",
            "segment",
            "segments",
            "group",
            "groups",
            "list",
            "lists",
            "team",
            "teams",
            "members",
            "subscribers",
            "followers",
            "invitees",
            "attendees",
            "guests",
            "watchers",
        ],
    )
}

/// Returns whether a text has several paths in a row: `/srv/a,/srv/b`, `/srv/a ./b`.
fn is_several(text: &str) -> bool {
    text.match_indices([',', ' ']).any(|(at, mark)| {
        let rest = text.get(at + 1..).unwrap_or_default();
        ["/", "./", "../", "~/"].iter().any(|start| rest.starts_with(start)) || mark == "," && rest.starts_with('~')
    })
}

/// Parts of the names of tools that look into all folders below the one they get.
static DEEP: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let parts = "(?i)tree|grep|glob|search|find|archiv|compress|zip|backup|mirror|recurs|director|folder|walk|scan|sync|list_dir";
    Regex::new(parts).ok()
});
/// Words of keys whose values are files and never hosts.
const FILES: &[&str] = &["path", "paths", "file", "files", "filename", "dir", "directory", "folder"];
/// Maximum number of words of one text that are recorded.
const MOST_PIECES: usize = 32;
/// Maximum number of parts of one path.
const MOST_JOINED: usize = 16;
/// Maximum length of a quoted part, in characters.
const LONGEST_FOUND: usize = 60;
