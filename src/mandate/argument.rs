//! The values of a call, and the role of each.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::text::{self, Shape};

/// The role of an argument in a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// A recipient, an account, a member: somebody or something that is written to, paid, given access, or acted on.
    Party,
    /// A URL or a host: a place on a network.
    Place,
    /// A file or a folder.
    Path,
    /// An amount of money.
    Amount,
    /// The ID of a record.
    Id,
    /// The name of a thing.
    Name,
    /// A password or another secret.
    Secret,
    /// Text that is written, sent or searched for.
    Content,
    /// A command or a statement in a language that is parsed.
    Code,
    /// Code in a language that is not parsed.
    Program,
    /// A choice, a date, or a number that says how to do something.
    Option,
    /// A value of unknown role.
    Other,
}

impl Part {
    pub(super) const fn is_path(self) -> bool {
        matches!(self, Self::Path | Self::Other | Self::Name)
    }

    /// Returns whether a value of this part is one token, in which every character counts.
    pub(super) const fn is_token(self) -> bool {
        matches!(self, Self::Path | Self::Id | Self::Secret)
    }

    /// Returns whether an effect needs a legitimate source for a value of this part: the user's words, a trusted
    /// value, or an entry that the words name.
    const fn is_critical(self) -> bool {
        matches!(self, Self::Party | Self::Place | Self::Path | Self::Amount | Self::Id | Self::Secret | Self::Code)
    }
}

/// A value of a call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Argument<'a> {
    /// The path of keys to the value, the outermost first: `attachments.file_id`.
    pub(super) key: String,
    pub(super) value: Cow<'a, str>,
    pub(super) part: Part,
}

impl Argument<'_> {
    /// Returns whether the value needs a legitimate source in an effect; `weight` describes the effect.
    pub(super) fn is_critical(&self, weight: Weight) -> bool {
        match self.part {
            Part::Name => weight.makes || weight.is_grave && !is_plain_choice(&self.value),
            Part::Other => weight.is_grave && !is_plain_choice(&self.value),
            part => part.is_critical(),
        }
    }
}

/// The properties of an effect that make further values critical.
#[derive(Debug, Clone, Copy)]
pub(super) struct Weight {
    /// The effect sends, pays, deletes or grants, so values of unknown role count too.
    pub(super) is_grave: bool,
    /// The effect creates something new, which is known by its name.
    pub(super) makes: bool,
}

/// The arguments of a call.
#[derive(Debug, Default)]
pub(super) struct Arguments<'a> {
    pub(super) all: Vec<Argument<'a>>,
    /// Not all arguments were read, because there are too many or they are nested too deeply.
    pub(super) is_cut: bool,
}

impl<'a> Arguments<'a> {
    /// Reads the values of a call; `known` returns the part of a key that the vocabulary of tools knows.
    pub(super) fn read(arguments: &'a Map<String, Value>, known: &dyn Fn(&str) -> Option<Part>) -> Self {
        let mut read = Self::default();
        for (key, value) in arguments {
            if !is_field(key) {
                read.push(key, Part::Other, key.as_str().into());
            }
            read.take(key, part_of(key, known), value, known, 0);
        }
        read
    }

    fn take(&mut self, key: &str, part: Part, value: &'a Value, known: &dyn Fn(&str) -> Option<Part>, depth: usize) {
        if self.all.len() >= MOST_ARGUMENTS || depth > DEEPEST {
            self.is_cut = true;
            return;
        }
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::String(text) if part == Part::Party => {
                // Mail programs send to every address in a list.
                text.split([',', ';', '\n', '\r']).for_each(|one| self.push(key, part, one.into()));
            }
            Value::String(text) => self.push(key, part, Cow::Borrowed(text)),
            Value::Number(number) => self.push(key, part, Cow::Owned(number.to_string())),
            Value::Array(items) => items.iter().for_each(|item| self.take(key, part, item, known, depth + 1)),
            Value::Object(fields) => {
                for (name, value) in fields {
                    // A key that is not a usual field name, or has no content below it, is a value itself.
                    if !is_field(name) || is_bare(value) {
                        self.push(key, part, name.as_str().into());
                    }
                    let inner = match part_of(name, known) {
                        // Everything inside a recipient is a recipient, whatever its key.
                        Part::Other => part,
                        inner => inner,
                    };
                    self.take(&format!("{key}.{name}"), inner, value, known, depth + 1);
                }
            }
        }
    }

    fn push(&mut self, key: &str, part: Part, value: Cow<'a, str>) {
        if value.trim().is_empty() {
            return;
        }
        let part = shown_part(part, &value);
        self.all.push(Argument { key: key.to_owned(), value, part });
    }
}

/// Returns whether a key looks like a field name in a program.
fn is_field(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Returns whether a value has no content, so that only its key matters.
fn is_bare(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Number(_) => false,
    }
}

/// The part of a key, from the vocabulary of tools or from the key's last word.
fn part_of(key: &str, known: &dyn Fn(&str) -> Option<Part>) -> Part {
    let words = key_words(key);
    let last = words.last().map(String::as_str).unwrap_or_default();
    // "recipient_id" is an ID of a recipient: the record that it names matters. Other IDs are IDs too.
    if matches!(last, "id" | "ids" | "uuid" | "guid") {
        return Part::Id;
    }
    let by_last = match last {
        "recipient" | "recipients" | "participant" | "participants" | "attendee" | "attendees" | "guest" | "guests"
        | "invitee" | "invitees" | "member" | "members" | "user" | "users" | "username" | "usernames" | "email"
        | "emails" | "mail" | "phone" | "contact" | "contacts" | "receiver" | "payee" | "beneficiary" | "account"
        | "iban" | "bic" | "wallet" | "channel" | "channels" | "group" | "team" | "owner" | "assignee" | "friend"
        | "customer" | "to" | "cc" | "bcc" => Some(Part::Party),
        "url" | "urls" | "uri" | "link" | "href" | "host" | "hostname" | "domain" | "endpoint" | "webhook"
        | "website" => Some(Part::Place),
        "path" | "paths" | "file" | "files" | "filename" | "directory" | "folder" => Some(Part::Path),
        "amount" | "price" | "total" | "sum" | "fee" => Some(Part::Amount),
        "password" | "passphrase" | "secret" | "token" => Some(Part::Secret),
        "title" | "name" => Some(Part::Name),
        "table" | "resource" => Some(Part::Other),
        "location" | "venue" | "description" => Some(Part::Content),
        "date" | "time" | "day" | "start" | "end" | "language" | "locale" | "format" | "type" | "unit" | "units"
        | "limit" | "offset" | "page" | "color" | "priority" | "status" | "mode" | "permission" => Some(Part::Option),
        _ => None,
    };
    match (known(key), by_last) {
        // A word that names a target takes precedence over a less specific part in the vocabulary.
        (Some(Part::Content | Part::Option | Part::Path) | None, Some(by_last)) => by_last,
        (Some(part), _) => part,
        (None, None) => Part::Other,
    }
}

/// Adjusts the part to the value: an address is one in any argument, except inside a text.
fn shown_part(part: Part, value: &str) -> Part {
    if matches!(part, Part::Content | Part::Code | Part::Program | Part::Secret) {
        return part;
    }
    if is_place(value) {
        return Part::Place;
    }
    let is_party = text::shape(value) == Shape::Account || value.contains('@') && text::shape(value) == Shape::Atom;
    if is_party && matches!(part, Part::Option | Part::Other | Part::Name) { Part::Party } else { part }
}

/// Returns whether the whole text is a web address.
pub(super) fn is_place(value: &str) -> bool {
    let value = value.trim();
    !value.contains(char::is_whitespace) && (value.contains("://") || value.starts_with("www."))
}

/// Returns whether a value is a network address in any form that programs accept.
pub(super) fn is_host(value: &str) -> bool {
    let value = value.trim();
    let has_scheme = value.split_once("://").is_some_and(|(scheme, _)| !scheme.contains(char::is_whitespace));
    let starts = ["//", "\\\\", "webcal:", "ftp.", "www.", "git@"];
    has_scheme || starts.iter().any(|start| value.starts_with(start))
}

/// Returns whether a value is a date, a time, a small number or a short word, which says how and not what.
fn is_plain_choice(value: &str) -> bool {
    text::is_date(value)
        || value.len() <= SHORTEST_NAME && value.chars().all(char::is_alphanumeric)
        || text::number(value).is_some_and(|number| number.len() < 4)
}

/// Returns the addresses, URLs and account numbers inside a text.
pub(super) fn embedded(text: &str) -> Vec<&str> {
    let marks = |c: char| matches!(c, ',' | ';' | '(' | ')' | '[' | ']' | '<' | '>' | '"' | '\'' | '!' | '?');
    let pieces = text.split_whitespace().map(|piece| piece.trim_matches(marks).trim_end_matches(['.', ':']));
    let is_address = |piece: &&str| {
        let letters = piece.bytes().filter(u8::is_ascii_alphabetic).count();
        let digits = piece.bytes().filter(u8::is_ascii_digit).count();
        let is_iban = letters >= 2 && digits >= 10 && piece.bytes().all(|byte| byte.is_ascii_alphanumeric());
        is_place(piece) || is_iban || is_domain(piece)
    };
    pieces.filter(is_address).take(MOST_EMBEDDED).collect()
}

/// Returns whether a text is a host with a path, such as `evil.example/path`.
fn is_domain(piece: &str) -> bool {
    let Some((host, _)) = piece.split_once('/') else { return false };
    let mut labels = host.rsplit('.');
    let is_label =
        |label: &str| !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    let is_top = labels.next().is_some_and(|top| top.len() >= 2 && top.bytes().all(|byte| byte.is_ascii_alphabetic()));
    is_top && host.contains('.') && labels.all(is_label)
}

/// The words of a key in lower case: `recipientEmail` and `recipient_email` have the same.
pub(super) fn key_words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in key.chars().take(LONGEST_KEY) {
        if !c.is_alphanumeric() || c.is_uppercase() && was_lower {
            words.push(String::new());
        }
        was_lower = c.is_lowercase();
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Largest number of values of a call that are checked.
const MOST_ARGUMENTS: usize = 512;
/// Largest nesting depth of a call that is checked.
const DEEPEST: usize = 16;
/// Largest number of addresses in a text that are checked.
pub(super) const MOST_EMBEDDED: usize = 64;
/// Longest part of a key that is split into words, in characters.
const LONGEST_KEY: usize = 128;
/// Longest value that cannot name anything, in bytes.
const SHORTEST_NAME: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parts(arguments: &Value) -> Vec<(String, Part)> {
        let map = arguments.as_object().unwrap();
        let known = |key: &str| matches!(key, "body" | "subject").then_some(Part::Content);
        Arguments::read(map, &known).all.into_iter().map(|one| (one.key, one.part)).collect()
    }

    #[test]
    fn the_part_of_an_argument_follows_from_its_key_and_its_value() {
        let read = parts(&json!({
            "recipients": ["ann@example.com", "Bob"], "body": "see www.example.com", "eventId": "24", "note": "ann@example.com",
            "amount": 40, "when": "2024-05-15", "target_url": "x", "attachments": [{ "type": "file", "file_id": "19" }],
        }));
        let expected = [
            ("amount", Part::Amount),
            ("attachments.file_id", Part::Id),
            ("attachments.type", Part::Option),
            ("body", Part::Content),
            ("eventId", Part::Id),
            ("note", Part::Party),
            ("recipients", Part::Party),
            ("recipients", Part::Party),
            ("target_url", Part::Place),
            ("when", Part::Other),
        ];
        assert_eq!(read, expected.map(|(key, part)| (key.to_owned(), part)));
    }

    #[test]
    fn addresses_inside_a_text_are_found() {
        let text = "See https://a.example/x, (www.b.example), evil.example/y and pay DE89370400440532013000. Not e.g. this/that.";
        assert_eq!(
            embedded(text),
            ["https://a.example/x", "www.b.example", "evil.example/y", "DE89370400440532013000"]
        );
    }

    #[test]
    fn what_is_too_deep_or_too_much_is_told() {
        let deep = (0..40).fold(json!("x"), |inner, _| json!([inner]));
        let known = |_: &str| None;
        assert!(Arguments::read(json!({ "a": deep }).as_object().unwrap(), &known).is_cut);
        let many: Vec<Value> = (0..2000).map(|number| json!(format!("v{number}"))).collect();
        assert!(Arguments::read(json!({ "a": many }).as_object().unwrap(), &known).is_cut);
    }
}
