//! Reads a string by its content, whatever its key says: JSON, a command, a call, code, a template, a statement, an
//! address or a request. So an unlisted key hides nothing.

use crate::programs::Program;
use crate::reading::{Act, Reading};
use crate::risk;
use rulekeep_types::{MAX_CONTEXT_DEPTH, Operation, Resource, RiskLevel, UnreadKind, json_depth};

use super::super::tables::{lines, places, wording};
use super::super::tools::{Key, Role, tools};
use super::super::{driver, english, place, shell, tool_name};
use super::arguments::{Arguments, push_word};
use super::expression::{self, Expression};
use super::json::{Field, Json, values};
use super::{Call, changes};

impl Arguments<'_, '_> {
    /// Reads a string by its content. Text that is written, sent or searched for is content and requests nothing.
    pub(super) fn inspect(&mut self, key: &str, text: &str, role: Option<Role>) {
        let trimmed = text.trim();
        if role == Some(Role::Content) && !changes(self.act.operation) && trimmed.starts_with(['{', '[']) {
            self.json_inside(trimmed);
        }
        if matches!(role, Some(Role::Content | Role::Sql | Role::Command)) {
            return;
        }
        if text.len() > MOST_INSPECTED {
            return self.reader.reading.facts.note_unread(UnreadKind::Argument, key);
        }
        if trimmed.starts_with(['{', '[', '"']) && role != Some(Role::Nested) {
            self.json_inside(trimmed);
        }
        if let Some(line) = self.breaks_out(role, trimmed) {
            let reading = driver::command(line, self.reader.lexicon);
            if reading.acts.iter().any(|act| risk::assess(act, &reading.facts).level >= RiskLevel::High) {
                self.reader.reading.absorb(reading);
            }
            self.reader.reading.facts.note_unread(UnreadKind::Argument, text);
        }
        let is_shown = role == Some(Role::Code) && self.act.resource == Resource::Code && !changes(self.act.operation);
        if !is_shown
            && (shell::calls_code(text)
                || is_live_template(text)
                || is_script_address(trimmed)
                || is_frozen_object(trimmed))
        {
            self.reader.reading.push(Act::unseen_code().told_by(text));
        }
        if !matches!(role, None | Some(Role::Path | Role::Url | Role::Nested | Role::Environment | Role::Visibility)) {
            self.sensitive_place(role, text);
        }
        self.statements_behind(text);
        if role == Some(Role::Query) {
            return;
        }
        self.injected(text);
        self.call_inside(trimmed);
        if let Some(reading) = driver::sql(text, self.reader.lexicon) {
            self.absorb_changes(reading);
        }
        let keys = tools().keys(key);
        if keys.has(Key::Destination) && place::is_system(text) {
            let system = Act::new("write", "system_file", Resource::Config, Operation::Write, 0.8).named_by(text);
            self.reader.reading.push(system.at_risk(RiskLevel::High));
        }
        if keys.has(Key::Callback) {
            // A callback, by its name.
            let acts = tool_name::acts(trimmed, self.reader.lexicon).into_iter();
            acts.filter(|act| changes(act.operation)).for_each(|act| self.reader.reading.push(act.told_by(text)));
        }
        if (text.contains("://") || text.contains('@')) && keys.has(Key::Callback) {
            let resource = if text.contains("://") { Resource::Web } else { Resource::Email };
            self.reader.reading.push(Act::new("notify", "address", resource, Operation::Send, 0.7).named_by(key));
            self.reader.reading.facts.note_target(text);
        }
        if self.act.operation == Operation::Read && names_secret_value(trimmed) {
            let act = Act::new("read", "secret", Resource::Credential, Operation::Read, 0.7).named_by(text);
            self.reader.reading.push(act.at_risk(RiskLevel::High));
        }
        if matches!(role, None | Some(Role::Request)) {
            self.request_inside(trimmed);
        }
    }

    /// Reads JSON in a string; a text that only starts like it is not JSON.
    fn json_inside(&mut self, text: &str) {
        if json_depth(text) > MAX_CONTEXT_DEPTH {
            return self.reader.reading.facts.note_unread(UnreadKind::Argument, text);
        }
        let (found, is_complete) = values(text);
        let is_packed = match found.as_slice() {
            [Json::Fields(_) | Json::List(_)] => true,
            // A string within a string is meant to be unpacked; a quoted word is just a word.
            [Json::Text(inner)] => inner.trim().contains([' ', '{', '[', '"']),
            _ => false,
        };
        if is_complete && is_packed {
            self.unpack(text);
        }
    }

    /// The command that breaks out of a value where a shell would read it: `x; rm -rf /`, `$(id)`, `| sh`.
    fn breaks_out<'t>(&self, role: Option<Role>, text: &'t str) -> Option<&'t str> {
        let is_place = matches!(role, Some(Role::Path | Role::Url));
        let is_program = |rest: &str| {
            let word = rest.split(|c: char| c.is_whitespace() || matches!(c, '`' | ')' | ';' | '|')).next();
            word.is_some_and(|word| self.is_program(word.trim_start_matches('\\')))
        };
        let mut marks = text.match_indices(['$', '`', ';', '|', '&']);
        marks.find_map(|(at, mark)| {
            let behind = text.get(at + 1..)?;
            let is_start = at == 0 && mark != "&";
            let rest = match mark {
                "$" => behind.strip_prefix('(')?,
                "`" if behind.contains('`') => behind,
                "&" if behind.starts_with('&') => behind.get(1..)?,
                "|" | ";" if is_place || is_start || mark == "|" && self.is_runner(behind) => behind,
                _ => return None,
            };
            let line = rest.trim_start();
            is_program(line).then(|| line.split(['`', ')']).next().unwrap_or(line))
        })
    }

    /// Returns whether the program after a pipe runs its input or sends it away, and is no word of English.
    fn is_runner(&self, text: &str) -> bool {
        let word = text.split_whitespace().next().unwrap_or("");
        let word = word.rsplit('/').next().unwrap_or(word);
        let lexicon = self.reader.lexicon;
        lexicon.programs.exact(word).is_some_and(Program::applies_input)
            && (!lexicon.is_english(word) || wording().never_english.has(word))
    }

    /// Reads a call in a value: `send_email(to='eve@x.example')`.
    fn call_inside(&mut self, text: &str) {
        if !text.ends_with(')') || !text.contains('(') {
            return;
        }
        let Expression::Calls(calls) = expression::read(text) else { return };
        for call in &calls {
            let acts = tool_name::acts(call.name, self.reader.lexicon);
            if acts.iter().any(|act| changes(act.operation)) {
                self.reader.call(&Call { names: vec![call.name], arguments: vec![&call.arguments], ..Call::default() });
            }
        }
    }

    /// Reads SQL that breaks out of another statement.
    fn statements_behind(&mut self, text: &str) {
        if !text.bytes().any(|byte| matches!(byte, b';' | b'\'' | b'"')) {
            return;
        }
        let pieces = text.split([';', '\'', '"']).skip(1).take(MOST_PIECES);
        for piece in pieces.filter(|piece| piece.trim().contains(char::is_whitespace)) {
            if let Some(reading) = driver::sql(piece, self.reader.lexicon) {
                self.absorb_changes(reading);
            }
        }
    }

    /// Reads a request in words: one that starts with an act and does more than read.
    fn request_inside(&mut self, text: &str) {
        if text.split_whitespace().take(LEAST_WORDS).count() < LEAST_WORDS {
            return;
        }
        let first = text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("").to_ascii_lowercase();
        if self.reader.lexicon.is_verb(&first) && !self.reader.lexicon.is_noun(&first) {
            let reading = english::read(text, self.reader.lexicon);
            self.absorb_changes(reading);
        }
    }

    /// Merges a reading that does more than read.
    pub(super) fn absorb_changes(&mut self, reading: Reading) {
        let matters = |act: &Act| {
            changes(act.operation) && risk::assess(act, &reading.facts).level >= RiskLevel::Medium && !act.is_unknown()
                || act.resource == Resource::Credential
        };
        if reading.acts.iter().any(matters) {
            self.reader.reading.absorb(reading);
        }
    }

    /// Reads fields of one object that belong together: a program and its arguments, a folder and a name in it.
    pub(super) fn joined<'f, 'j: 'f>(&mut self, fields: impl Iterator<Item = &'f Field<'j>>) {
        let fields: Vec<_> = fields.collect();
        let text = |wanted: Key| {
            fields.iter().find_map(|(key, value)| value.as_text().filter(|_| tools().keys(key).has(wanted)))
        };
        let program = text(Key::Program).filter(|program| self.is_program(program));
        if let Some(program) = program {
            for (_, value) in fields.iter().filter(|(key, _)| tools().keys(key).has(Key::Argument)) {
                match value {
                    Json::List(items) => {
                        self.line(std::iter::once(program).chain(items.iter().filter_map(Json::as_text)));
                    }
                    Json::Text(rest) => self.absorb_line(&format!("{program} {rest}")),
                    _ => {}
                }
            }
        }
        if let Some(folder) = text(Key::Folder) {
            for (key, value) in fields {
                if let Some(name) = value.as_text().filter(|name| tools().keys(key).has(Key::Name) && *name != folder) {
                    self.place("path", Some(Role::Path), &format!("{}/{name}", folder.trim_end_matches('/')));
                }
            }
        }
    }

    /// Reads texts of a list that belong together: a command word by word, or the parts of a path.
    pub(super) fn joined_list(&mut self, items: &[Json<'_>]) {
        let mut texts = items.iter().filter_map(Json::as_text);
        let Some(first) = texts.next().filter(|_| (2..=MOST_JOINED).contains(&items.len())) else { return };
        if self.is_program(first) {
            self.line(items.iter().filter_map(Json::as_text));
        } else if first.starts_with(['/', '~', '.']) {
            let whole = texts.fold(first.to_owned(), |whole, part| whole + "/" + part);
            if place::is_secret(&whole) {
                self.place("path", Some(Role::Path), &whole);
            }
        }
    }

    fn is_program(&self, word: &str) -> bool {
        let name = word.rsplit('/').next().unwrap_or(word);
        !word.contains(char::is_whitespace) && self.reader.lexicon.programs.knows(name)
    }

    fn line<'t>(&mut self, words: impl Iterator<Item = &'t str>) {
        let mut line = String::new();
        words.for_each(|word| push_word(&mut line, word));
        self.absorb_line(&line);
    }

    fn absorb_line(&mut self, line: &str) {
        let reading = driver::command(line, self.reader.lexicon);
        self.absorb_changes(reading);
    }

    /// Reads `mode: "w"`: the opened file is written.
    pub(super) fn opens_to_write<'f, 'j: 'f>(&mut self, mut fields: impl Iterator<Item = &'f Field<'j>>) {
        let is_open = self.name.is_some_and(|name| name.to_ascii_lowercase().contains("open"));
        let writes = |(key, value): &Field<'_>| {
            let opens = |mode: &str| tools().keys(key).has(Key::Mode) && tools().value("write_modes", mode);
            let opens = |mode: &str| opens(mode) || is_open && mode.len() < 4 && tools().value("write_modes", mode);
            value.as_text().is_some_and(|mode| opens(mode) || mode.split(['|', ' ', ',']).any(is_write_flag))
        };
        if !changes(self.act.operation) && fields.any(writes) {
            self.act.operation = Operation::Write;
            "write".clone_into(&mut self.act.verb);
            if self.act.resource == Resource::Unknown {
                self.act.resource = Resource::File;
                "file".clone_into(&mut self.act.noun);
            }
        }
    }
}

/// Returns whether a value is the name of a stored secret: `stripe.secret_key`, `prod/db/password`, `env://API_KEY`.
fn names_secret_value(text: &str) -> bool {
    if text.len() > LONGEST_NAME || text.contains(char::is_whitespace) || !text.contains(['.', '/', ':', '_']) {
        return false;
    }
    let lower = text.to_ascii_lowercase();
    let is_kept = |scheme: &str| lower.starts_with(scheme);
    let last = lower.rsplit(['/', '.', ':']).next().unwrap_or("");
    let words: Vec<&str> = last.split(['_', '-']).collect();
    lines().secret_stores.iter().any(is_kept)
        || words.iter().any(|word| places().secret_words.has(word))
        || words.windows(2).any(|pair| matches!(pair, ["api" | "access" | "private", "key"]))
}

const LONGEST_NAME: usize = 128;

/// Returns whether a flag of `open(2)` opens a file for writing.
fn is_write_flag(flag: &str) -> bool {
    matches!(flag.trim(), "O_WRONLY" | "O_RDWR" | "O_TRUNC" | "O_CREAT" | "O_APPEND")
}

/// The HTTP method that an object or its content names.
pub(super) fn method_in<'f>(value: &'f Json<'_>, depth: u8) -> Option<&'f str> {
    let Json::Fields(fields) = value else { return None };
    fields.iter().find_map(|(key, value)| match value {
        Json::Text(text) if tools().role(key) == Some(Role::Method) || tools().keys(key).has(Key::Override) => {
            Some(&**text).filter(|text| tools().is_http_method(text))
        }
        // Under any key, because these words in capitals mean nothing else.
        Json::Text(text) if matches!(&**text, "DELETE" | "PUT" | "PATCH" | "POST") => Some(&**text),
        Json::Fields(_) if depth > 0 => method_in(value, depth - 1),
        _ => None,
    })
}

/// Returns whether an address is a script: `javascript:`, or a page contained in the address.
fn is_script_address(text: &str) -> bool {
    SCRIPT_SCHEMES.iter().any(|scheme| text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme)))
}

/// Returns whether a text is an object whose loading runs code: a pickle or a serialized Java object.
fn is_frozen_object(text: &str) -> bool {
    FROZEN.iter().any(|start| text.starts_with(start))
}

/// Returns whether a template calls something or accesses private members, instead of naming a value.
fn is_live_template(text: &str) -> bool {
    if !text.bytes().any(|byte| matches!(byte, b'{' | b'<')) {
        return false;
    }
    [("{{", "}}"), ("<%", "%>"), ("${", "}"), ("#{", "}"), ("{%", "%}")].iter().any(|(open, close)| {
        text.match_indices(open).take(MOST_PIECES).any(|(at, _)| {
            let rest = text.get(at + open.len()..).unwrap_or("");
            let inside = rest.split_once(close).map_or(rest, |(inside, _)| inside);
            inside.contains("__") || inside.contains('(') || inside.contains("jndi:")
        })
    })
}

/// Starts of pickles and of serialized Java objects, in base64 and in hexadecimal.
const FROZEN: &[&str] = &["gASV", "gAN", "rO0AB", "aced0005"];
/// Schemes of addresses that are a script or a page of their own.
const SCRIPT_SCHEMES: &[&str] = &["javascript:", "vbscript:", "data:text/html", "data:application"];
/// Maximum length of an argument that is inspected, in bytes.
const MOST_INSPECTED: usize = 16 * 1024;
/// Maximum number of pieces of one argument that are inspected separately.
const MOST_PIECES: usize = 32;
/// Maximum number of list words that are joined.
const MOST_JOINED: usize = 64;
/// The fewest words of a request.
const LEAST_WORDS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_that_names_a_value_is_told_from_one_that_calls() {
        for (text, expected) in [
            ("Dear {{ name }}", false),
            ("{{ ''.__class__ }}", true),
            ("{{ x.popen('id').read() }}", true),
            ("<%= system('id') %>", true),
            ("${jndi:ldap://x}", true),
            ("costs ${price}", false),
        ] {
            assert_eq!(is_live_template(text), expected, "{text}");
        }
    }
}
