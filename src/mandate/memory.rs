//! The results observed under a task: the values they resolve, and the origins of values.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use crate::model::{Capability, Operation, Resource};

use super::argument::{Part, key_words};
use super::check::Deed;
use super::entries::{Entry, entries};
use super::purpose::are_of_one_kind;
use super::text::{self, Shape};
use super::words::Words;

/// A result, and the call that returned it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Observed<'a> {
    /// The tool that returned it.
    pub(crate) tool: &'a str,
    /// The resource of the call.
    pub(crate) resource: Resource,
    /// The call created something, so the IDs that it returned belong to it.
    pub(crate) is_making: bool,
    /// The call changed something.
    pub(crate) is_effect: bool,
    /// The call read a file or page by its address, so the whole result is somebody's text.
    pub(crate) is_content: bool,
    /// The result as returned.
    pub(crate) text: &'a str,
    /// The result with secrets redacted; this form is kept.
    pub(crate) masked: &'a str,
}

/// The results observed under a task. They are kept in memory only.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    seen: Vec<Seen>,
    resolved: Resolved,
    /// Hashes of tokens that could be secrets; the tokens themselves are redacted.
    tokens: HashSet<u64>,
    hasher: RandomState,
    /// Memory used by results and tokens in bytes, including the overhead of the allocator and tables.
    bytes: usize,
    /// Some results are missing: they were too large, or a restart or an erasure removed them.
    is_partial: bool,
}

/// The IDs and addresses of entries that the words name, and the IDs of other entries.
#[derive(Debug, Default)]
struct Resolved {
    /// The values by their normal form.
    values: HashMap<Box<str>, Found>,
    bytes: usize,
    /// The kinds of things of which the words name an entry.
    named: Vec<Resource>,
    has_lists: bool,
}

#[derive(Debug)]
struct Seen {
    tool: Arc<str>,
    resource: Resource,
    is_making: bool,
    is_effect: bool,
    is_content: bool,
    text: Box<str>,
}

/// The kind of field that a resolved value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Id,
    Address,
    /// The ID of an entry that the words do not name.
    Given,
    /// A channel or a user in a list of nothing else.
    Listed,
}

/// The entry of a resolved value: the kind of field, and the lookup that returned it.
#[derive(Debug, Clone)]
struct Found {
    kind: Kind,
    resource: Resource,
    tool: Arc<str>,
}

/// The location of a value in an observed result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// The tool that returned the result.
    pub(crate) tool: String,
    /// The text around the value.
    pub(crate) around: String,
}

impl Memory {
    /// Adds a result.
    pub(crate) fn observe(&mut self, observed: Observed<'_>, words: &Words) {
        let secrets = observed.text.split(|c: char| !c.is_alphanumeric()).filter(|token| could_be_secret(token));
        for token in secrets {
            if self.tokens.len() >= MOST_TOKENS || !self.has_room(TOKEN_BYTES) {
                self.is_partial = true;
                break;
            }
            if self.tokens.insert(self.hasher.hash_one(token)) {
                self.bytes += TOKEN_BYTES;
            }
        }
        let seen = Seen {
            tool: observed.tool.into(),
            resource: observed.resource,
            is_making: observed.is_making,
            is_effect: observed.is_effect,
            is_content: observed.is_content,
            text: observed.masked.into(),
        };
        seen.resolve(words, &mut self.resolved);
        let takes = seen.text.len() + seen.tool.len() + SEEN_BYTES;
        if !self.has_room(takes) {
            self.is_partial = true;
            return;
        }
        self.bytes += takes;
        self.seen.push(seen);
    }

    fn has_room(&self, more: usize) -> bool {
        self.bytes + more <= MOST_BYTES
    }

    /// Searches again for entries that the words name, after the user said more.
    pub(crate) fn resolve(&mut self, words: &Words) {
        for seen in &self.seen {
            seen.resolve(words, &mut self.resolved);
        }
    }

    /// Drops all results. From now on any text that is sent may contain observed content.
    pub(crate) fn lose(&mut self) {
        *self = Self { is_partial: true, ..Self::default() };
    }

    /// Memory used by the results and the resolved values, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.resolved.bytes
    }

    /// Number of results kept.
    pub(crate) fn results(&self) -> usize {
        self.seen.len()
    }

    /// Returns whether a value is the ID or address of an entry that the words name, in a call on things of its kind.
    pub(super) fn resolves(&self, value: &str, part: Part, deed: &Deed<'_>) -> bool {
        let Some(Found { kind, resource, tool }) = self.resolved.values.get(&*text::normal_value(value)) else {
            return false;
        };
        match kind {
            Kind::Id => {
                matches!(part, Part::Id | Part::Path | Part::Name | Part::Other)
                    && (are_of_one_kind(*resource, deed.capabilities) || share_a_word(tool, deed.tool))
            }
            Kind::Address => part != Part::Amount,
            Kind::Given | Kind::Listed => false,
        }
    }

    /// Returns whether a service listed channels or users.
    pub(super) const fn has_lists(&self) -> bool {
        self.resolved.has_lists
    }

    /// Returns whether the service that a call goes to gave a value as the ID of an entry, in a call that changes
    /// things of its kind, and the words name no other entry: they may describe it, as "the largest file" does. Channels
    /// and users that the service lists are such IDs in a call that carries only the user's text.
    pub(super) fn gives(&self, value: &str, part: Part, deed: &Deed<'_>, is_own_text: bool) -> bool {
        let Some(Found { kind, resource, tool }) = self.resolved.values.get(&*text::normal_value(value)) else {
            return false;
        };
        let is_near = || are_of_one_kind(*resource, deed.capabilities) || share_a_word(tool, deed.tool);
        match kind {
            Kind::Given => {
                let changes = deed.capabilities.first().and_then(Capability::operation) == Some(Operation::Write);
                part == Part::Id && changes && !self.resolved.named.contains(resource) && is_near()
            }
            Kind::Listed => part == Part::Party && is_own_text && is_near(),
            Kind::Id | Kind::Address => false,
        }
    }

    /// Finds the first location of a value in the results.
    pub(super) fn place_of(&self, value: &str) -> Option<Place> {
        let found = self.seen.iter().find_map(|seen| Some((seen, seen.around(value)?)));
        found.map(|(seen, around)| Place { tool: seen.tool.to_string(), around })
    }

    /// Returns whether a text contains an observed token that could be a secret and that the user did not say.
    pub(super) fn has_token(&self, text: &str, words: &Words) -> bool {
        let is_secret = |token: &str| self.tokens.contains(&self.hasher.hash_one(token)) && !words.mention(token);
        text.split(|c: char| !c.is_alphanumeric()).any(is_secret)
    }

    /// Finds observed content in texts that are about to be sent: a run of words of a result, or a token that could
    /// be a secret. Returns the positions of these texts, each with the tool of the result. Content that is also in
    /// the user's words does not count.
    ///
    /// All texts are searched in one pass over the results, because a call has many arguments.
    pub(super) fn carried(&self, leaving: &[&str], words: &Words) -> BTreeMap<usize, String> {
        let mut carried = BTreeMap::new();
        let folded: Vec<Cow<'_, str>> = leaving.iter().map(|text| text::folded(text)).collect();
        // The runs of words in the texts, each with the texts and positions in which it occurs.
        let mut runs: HashMap<[u64; LEAST_RUN], Vec<(usize, usize)>> = HashMap::new();
        for (place, (text, folded)) in leaving.iter().zip(&folded).enumerate() {
            let is_secret = |token: &&str| self.tokens.contains(&self.hasher.hash_one(token)) && !words.mention(token);
            if let Some(token) = text.split(|c: char| !c.is_alphanumeric()).find(is_secret) {
                let from = if carried.len() < MOST_ORIGINS { self.place_of(token) } else { None };
                carried.insert(place, from.map_or_else(|| "a result".to_owned(), |from| from.tool));
                continue;
            }
            for (start, run) in self.runs(folded).take(MOST_WORDS).enumerate() {
                runs.entry(run).or_default().push((place, start));
            }
        }
        if runs.is_empty() {
            return carried;
        }
        let is_said = |place: usize, start: usize| {
            let text = folded.get(place).map(|text| &**text).unwrap_or_default();
            let run: Vec<&str> = text::words(text).skip(start).take(LEAST_RUN).collect();
            words.mention(&run.join(" "))
        };
        // A bitmap over the hashes of last words skips most words of a result without a table lookup.
        let bit = |[.., last]: &[u64; LEAST_RUN]| {
            let [slot, shift, ..] = last.to_le_bytes();
            (usize::from(slot), shift & 63)
        };
        let mut ends = [0_u64; 256];
        for (slot, shift) in runs.keys().map(bit) {
            ends[slot] |= 1 << shift;
        }
        let may_stand = |run: &[u64; LEAST_RUN]| {
            let (slot, shift) = bit(run);
            ends[slot] >> shift & 1 == 1
        };
        for seen in &self.seen {
            for run in self.runs(&text::folded(&seen.text)).filter(may_stand) {
                for (place, start) in runs.remove(&run).unwrap_or_default() {
                    if !carried.contains_key(&place) && !is_said(place, start) {
                        carried.insert(place, seen.tool.to_string());
                    }
                }
            }
        }
        if self.is_partial {
            // The missing results may contain what is being sent.
            for (place, start) in runs.into_values().flatten() {
                if !carried.contains_key(&place) && !is_said(place, start) {
                    carried.insert(place, "a result that is not kept".to_owned());
                }
            }
        }
        carried
    }

    /// Returns the runs of words of a folded text, as hashes of their words.
    fn runs<'t>(&'t self, folded: &'t str) -> impl Iterator<Item = [u64; LEAST_RUN]> + 't {
        let mut run = [0; LEAST_RUN];
        let hashes = text::words(folded).map(|word| self.hasher.hash_one(word));
        let windows = hashes.map(move |hash| {
            run.rotate_left(1);
            run[LEAST_RUN - 1] = hash;
            run
        });
        windows.skip(LEAST_RUN - 1)
    }
}

impl Resolved {
    /// Adds a value. Without room it is dropped, and a reviewer must endorse it.
    fn add(&mut self, value: &str, found: Found) {
        let value = text::normal_value(value);
        let takes = value.len() + RESOLVED_BYTES;
        // The entries that the words name come first.
        let is_named = matches!(found.kind, Kind::Id | Kind::Address);
        let most = if is_named { MOST_RESOLVED_BYTES } else { MOST_RESOLVED_BYTES / 2 };
        if found.kind == Kind::Id && !self.named.contains(&found.resource) {
            self.named.push(found.resource);
        }
        self.has_lists |= found.kind == Kind::Listed;
        if let Some(known) = self.values.get_mut(&*value) {
            if is_named || !matches!(known.kind, Kind::Id | Kind::Address) {
                *known = found;
            }
        } else if self.bytes + takes <= most {
            self.bytes += takes;
            self.values.insert(value.into(), found);
        }
    }
}

impl Seen {
    /// Adds the IDs and addresses of the entries that the words name.
    fn resolve(&self, words: &Words, resolved: &mut Resolved) {
        if self.is_content || matches!(self.resource, Resource::Web | Resource::Social) {
            return;
        }
        let entries = entries(&self.text);
        let mut note = |value: &str, kind| {
            resolved.add(value, Found { kind, resource: self.resource, tool: Arc::clone(&self.tool) });
        };
        if self.is_effect {
            // The task may use what it created itself.
            let ids = entries.iter().filter(|_| self.is_making).flat_map(Entry::ids);
            return ids.for_each(|id| note(id, Kind::Id));
        }
        let is_listed = |entry: &Entry, name: &str| {
            self.resource == Resource::Message && entry.fields.len() == 1 && is_handle(name)
        };
        for entry in &entries {
            entry.ids().for_each(|id| note(id, Kind::Given));
            entry.names().filter(|name| is_listed(entry, name)).for_each(|name| note(name, Kind::Listed));
        }
        let first_word = |name: &str| text::phrase(name).split_whitespace().next().map(str::to_owned);
        // Counted once, so that the time does not grow with the square of the number of entries.
        let mut firsts: HashMap<Option<String>, usize> = HashMap::new();
        for name in entries.iter().flat_map(Entry::names) {
            *firsts.entry(first_word(name)).or_default() += 1;
        }
        let is_one = |name: &str| firsts.get(&first_word(name)) == Some(&1);
        let named: Vec<(&Entry, &str)> = entries
            .iter()
            .filter_map(|entry| {
                let by_first = |name: &&str| words.name_by_first_word(name) && is_one(name);
                let by_name = |name: &&str| {
                    let stem = name.rsplit_once('.').map_or(*name, |(stem, _)| stem);
                    name.len() >= SHORTEST_ENTRY
                        && (words.name(name, Part::Name) || stem.contains(['-', '_', ' ']) && words.mention(stem))
                };
                entry.names().find(by_name).or_else(|| entry.names().find(by_first)).map(|name| (entry, name))
            })
            .collect();
        let mut alike: HashMap<String, usize> = HashMap::new();
        for (_, name) in &named {
            *alike.entry(text::normal_value(name)).or_default() += 1;
        }
        for (entry, name) in &named {
            // If two entries have the same name, it is unknown which one is meant.
            if alike.get(&text::normal_value(name)) != Some(&1) {
                continue;
            }
            entry.ids().for_each(|id| note(id, Kind::Id));
            // A single word may be used without naming the entry: the entry can then be acted on, but nothing is sent
            // to it.
            let is_by_first = words.name_by_first_word(name);
            if !is_by_first && !words.name(name, Part::Party) {
                continue;
            }
            // Only an address book says who somebody is, and only a messaging service which channels and users it
            // has. Anybody can send a mail whose subject is a name.
            let is_name = |c: char| c.is_alphabetic() || matches!(c, ' ' | '.' | '-' | '\'');
            let is_person =
                is_address_book(self.resource) && name.chars().all(is_name) && text::shape(name) == Shape::Phrase;
            if is_by_first && (is_person || is_listed(entry, name)) {
                note(name, Kind::Address);
            }
            entry.addresses(self, words).for_each(|address| note(address, Kind::Address));
        }
    }

    /// Returns the text around a value.
    fn around(&self, value: &str) -> Option<String> {
        let folded = text::folded(&self.text);
        let needle = match text::shape(value) {
            Shape::Phrase => text::folded(value).trim().to_owned(),
            Shape::Atom => text::atom(value),
            Shape::Number | Shape::Account => value.trim().to_lowercase(),
        };
        let at = if needle.is_empty() { None } else { folded.find(&*needle) };
        let at = match at {
            Some(at) => at,
            // Grouped differently, so the exact position is unknown.
            None if text::shape(value) == Shape::Account
                && text::squeezed(&folded).contains(&text::squeezed(value)) =>
            {
                0
            }
            None => return None,
        };
        let start = (0..=at.saturating_sub(AROUND)).rev().find(|place| folded.is_char_boundary(*place)).unwrap_or(0);
        let end = (at + needle.len() + AROUND..=folded.len())
            .find(|place| folded.is_char_boundary(*place))
            .unwrap_or(folded.len());
        folded.get(start..end).map(|around| around.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}

impl Entry {
    /// Returns the ID of the entry: its only ID field, or the only one called exactly "id". If several fields
    /// qualify, one of them may have been injected.
    fn ids(&self) -> impl Iterator<Item = &str> {
        let last_is_id =
            |key: &str| key_words(key).last().is_some_and(|last| matches!(&**last, "id" | "uuid" | "guid"));
        let all: Vec<&(String, Vec<String>)> = self.fields.iter().filter(|(key, _)| last_is_id(key)).collect();
        let own: Vec<&(String, Vec<String>)> =
            all.iter().copied().filter(|(key, _)| key_words(key).len() == 1).collect();
        let id = match (all.as_slice(), own.as_slice()) {
            ([id], _) | (_, [id]) => id.1.first().map(String::as_str),
            _ => None,
        };
        id.into_iter()
    }

    /// Returns the values of the fields that reach the entry: those of an address book entry, and those of an event
    /// that the words request by the field's name. A message's statement about its sender is not trusted.
    fn addresses<'e>(&'e self, seen: &Seen, words: &'e Words) -> impl Iterator<Item = &'e str> {
        let (is_book, resource) = (is_address_book(seen.resource), seen.resource);
        let is_asked = move |key: &str| resource == Resource::Calendar && words.mention(&key_words(key).join(" "));
        let is_address = move |key: &str| {
            let last = key_words(key).pop().unwrap_or_default();
            let reaches = matches!(
                &*last,
                "email" | "mail" | "address" | "phone" | "iban" | "account" | "number" | "handle" | "username"
            );
            is_book && reaches || is_asked(key)
        };
        self.fields
            .iter()
            .filter(move |(key, _)| is_address(key))
            .flat_map(|(_, values)| values.iter().map(String::as_str))
    }
}

/// Returns whether things of this kind say who somebody is, as entries of an address book do.
pub(crate) const fn is_address_book(resource: Resource) -> bool {
    matches!(resource, Resource::Contact | Resource::Account | Resource::Customer | Resource::Payment)
}

/// Returns whether a text is the name of a channel or a user: one token that is not an address.
fn is_handle(name: &str) -> bool {
    name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
}

/// Returns whether the names of two tools share a noun, like `get_transactions` and `update_transaction`.
fn share_a_word(one: &str, other: &str) -> bool {
    let words = |tool: &str| {
        let words = key_words(tool).into_iter().filter(|word| word.len() >= SHORTEST_NOUN);
        words.map(|word| word.trim_end_matches('s').to_owned()).collect::<Vec<_>>()
    };
    let other = words(other);
    words(one).iter().skip(1).any(|word| other.iter().skip(1).any(|other| other == word))
}

/// Returns whether a token could be a secret, such as a code, a key or a confidential number.
fn could_be_secret(token: &str) -> bool {
    let has_digit = token.bytes().any(|byte| byte.is_ascii_digit());
    (SHORTEST_SECRET..=LONGEST_SECRET).contains(&token.len()) && (has_digit || token.len() >= SHORTEST_KEY)
}

/// Largest memory for the results and tokens of one task, in bytes.
const MOST_BYTES: usize = 2 << 20;
/// Largest memory for the IDs and addresses of named entries, in bytes.
const MOST_RESOLVED_BYTES: usize = 256 << 10;
/// Overhead of a result, a token and a resolved value in bytes: tables are up to half empty, and an allocation takes
/// 16 bytes of its own.
const SEEN_BYTES: usize = 2 * size_of::<Seen>() + 32;
const TOKEN_BYTES: usize = 21;
const RESOLVED_BYTES: usize = 80;
/// Largest number of tokens kept for one task.
const MOST_TOKENS: usize = 64 * 1024;
/// Largest number of words of a text to be sent that are checked.
const MOST_WORDS: usize = 4096;
/// Number of consecutive words that count as carried content.
const LEAST_RUN: usize = 6;
/// Number of values in a call whose origin is looked up.
pub(super) const MOST_ORIGINS: usize = 8;
/// Number of bytes shown around a value.
const AROUND: usize = 120;
/// Shortest word in a tool's name that can be its noun, in bytes.
const SHORTEST_NOUN: usize = 4;
/// Shortest name of an entry that words can refer to, in bytes.
const SHORTEST_ENTRY: usize = 4;
const SHORTEST_SECRET: usize = 5;
const SHORTEST_KEY: usize = 20;
const LONGEST_SECRET: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    fn observed(tool: &'static str, resource: Resource, text: &'static str) -> Observed<'static> {
        Observed { tool, resource, is_making: false, is_effect: false, is_content: false, text, masked: text }
    }

    fn resolves(memory: &Memory, value: &str, part: Part) -> bool {
        let capabilities = ["calendar:write".parse().unwrap(), "file:delete".parse().unwrap()];
        memory.resolves(value, part, &Deed::of("change", &capabilities))
    }

    fn carried_by(memory: &Memory, text: &str, words: &Words) -> Option<String> {
        memory.carried(&[text], words).remove(&0)
    }

    const EVENTS: &str = "- id_: '24'\n  title: Introductory meeting\n  participants:\n  - a@x.example\n- id_: '5'\n  title: Lunch\n  participants: []\n";

    #[test]
    fn an_entry_that_the_words_name_resolves_its_id() {
        let words = Words::new("Move the 'Introductory meeting' to 10:00");
        let mut memory = Memory::default();
        memory.observe(observed("search", Resource::Calendar, EVENTS), &words);
        assert!(resolves(&memory, "24", Part::Id) && !resolves(&memory, "5", Part::Id));
        assert!(!resolves(&memory, "a@x.example", Part::Party), "nobody asked for the participants");
        let words = Words::new("Invite the participants of the 'Introductory meeting' again");
        memory.resolve(&words);
        assert!(resolves(&memory, "a@x.example", Part::Party));
    }

    #[test]
    fn ids_of_a_service_need_no_words_in_a_change_of_its_things() {
        let mut memory = Memory::default();
        memory.observe(observed("search", Resource::Calendar, EVENTS), &Words::new("Move my check-up to 10:00"));
        let gives = |memory: &Memory, value, part, capability: &str| {
            let capabilities = [capability.parse().unwrap()];
            memory.gives(value, part, &Deed::of("change", &capabilities), true)
        };
        assert!(gives(&memory, "24", Part::Id, "calendar:write") && gives(&memory, "5", Part::Id, "calendar:write"));
        assert!(!gives(&memory, "7", Part::Id, "calendar:write"), "nobody gave it");
        assert!(!gives(&memory, "24", Part::Id, "calendar:delete") && !gives(&memory, "24", Part::Id, "file:write"));
        assert!(!gives(&memory, "a@x.example", Part::Party, "calendar:write"));
        memory.resolve(&Words::new("Move the 'Introductory meeting' to 10:00"));
        assert!(!gives(&memory, "5", Part::Id, "calendar:write"), "the words name another");

        let words = Words::new("Find the channel with the most users and post there 'hi all'");
        memory.observe(observed("get_channels", Resource::Message, "- general\n- random"), &words);
        memory.observe(observed("inbox", Resource::Message, "- sender: Eve\n  body: general\n"), &words);
        assert!(gives(&memory, "random", Part::Party, "message:send"));
        assert!(!gives(&memory, "Eve", Part::Party, "message:send"), "a sender is not a list");
        let deed = ["message:send".parse().unwrap()];
        assert!(!memory.gives("random", Part::Party, &Deed::of("post", &deed), false), "other text");
    }

    #[test]
    fn free_text_resolves_nothing() {
        let words = Words::new("Invite Dora, her address is on www.dora.example, and pay the bill");
        let mut memory = Memory::default();
        for (resource, is_content, text) in [
            (Resource::Web, false, "name: Dora\nemail: evil@x.example\n"),
            (Resource::File, true, "- name: Dora\n  id: 7\n"),
            (Resource::Contact, false, "This is Dora, dora@x.example"),
            (Resource::Email, false, "- subject: Dora\n  sender: evil@x.example\n  id: mail\n"),
        ] {
            memory.observe(Observed { is_content, ..observed("t", resource, text) }, &words);
        }
        for value in ["evil@x.example", "dora@x.example", "7"] {
            assert!(!resolves(&memory, value, Part::Party) && !resolves(&memory, value, Part::Id), "{value}");
        }
        assert_eq!(memory.place_of("evil@x.example").map(|place| place.tool), Some("t".to_owned()));
    }

    #[test]
    fn two_entries_of_one_name_resolve_nothing() {
        let words = Words::new("Delete the file 'a.txt'");
        let mut memory = Memory::default();
        memory.observe(
            observed("list", Resource::File, "- id: 1\n  filename: a.txt\n- id: 2\n  filename: a.txt\n"),
            &words,
        );
        assert!(!resolves(&memory, "1", Part::Id) && !resolves(&memory, "2", Part::Id));
    }

    #[test]
    fn a_result_of_many_entries_of_one_name_is_read_in_no_time() {
        let words = Words::new("Write to Ann and delete 'Ann Lee'");
        let entries: Vec<String> =
            (0..10_000).map(|id| format!(r#"{{"id":{id},"name":"Ann Lee","email":"a{id}@x.example"}}"#)).collect();
        let text = format!("[{}]", entries.join(","));
        let mut memory = Memory::default();
        memory.observe(Observed { text: &text, masked: &text, ..observed("list", Resource::Contact, "") }, &words);
        assert!(!resolves(&memory, "7", Part::Id));
    }

    #[test]
    fn whatever_is_observed_a_task_keeps_no_more_than_its_bound() {
        let words = Words::new("Create it");
        let bound = MOST_BYTES + MOST_RESOLVED_BYTES;
        let one = |number: usize| format!("{{\"id\": \"{number:030}\", \"b\": 1}}");
        let tiny = |number: usize| ["a", "b", "c"][number % 3].to_owned();
        let tokens = |number: usize| (0..3_000).map(|place| format!("t{number}x{place}")).collect::<Vec<_>>().join(" ");
        let texts: [(&dyn Fn(usize) -> String, usize); 3] = [(&one, 50_000), (&tiny, 100_000), (&tokens, 40)];
        for (text, count) in texts {
            let mut memory = Memory::default();
            for number in 0..count {
                let text = text(number);
                let made =
                    Observed { is_making: true, is_effect: true, text: &text, ..observed("make", Resource::File, "") };
                memory.observe(Observed { masked: &text, ..made }, &words);
            }
            assert!(memory.bytes() > bound / 8 && memory.bytes() <= bound, "{}", memory.bytes());
            assert!(carried_by(&memory, "six words that nobody said before", &words).is_some(), "not all is kept");
        }
    }

    /// A slow, simple search for runs of words, to compare with the hashed one.
    #[test]
    fn runs_of_words_are_found_exactly_where_they_stand() {
        let words = Words::new("one two three one two three four");
        let mut seed = 7_u64;
        let mut text = |count: usize| -> String {
            let mut next = || {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ["One", "two,", "three", "\u{c9}t\u{e9}"][usize::try_from(seed >> 33).unwrap() % 4]
            };
            (0..count).map(|_| next()).collect::<Vec<_>>().join(" ")
        };
        let mut found = 0;
        for round in 0..2_000 {
            let (seen, leaving) = (text(24), [text(round % 9), text(8)]);
            let mut memory = Memory::default();
            memory.observe(Observed { text: &seen, masked: &seen, ..observed("look", Resource::Email, "") }, &words);
            let phrase = text::phrase(&seen);
            let slow = leaving.iter().enumerate().filter(|(_, text)| {
                let folded = text::folded(text);
                let spoken: Vec<&str> = text::words(&folded).collect();
                let mut runs = spoken.windows(LEAST_RUN).map(|run| format!(" {} ", run.join(" ")));
                runs.any(|run| phrase.contains(&*run) && !words.mention(&run))
            });
            let slow: Vec<usize> = slow.map(|(place, _)| place).collect();
            let texts = leaving.each_ref().map(|text| &**text);
            assert_eq!(memory.carried(&texts, &words).into_keys().collect::<Vec<_>>(), slow, "{seen} / {leaving:?}");
            found += slow.len();
        }
        assert!(found > 20, "{found}");
    }

    #[test]
    fn content_and_secrets_are_known_again_when_they_leave() {
        let words = Words::new("Summarize my mail");
        let mut memory = Memory::default();
        let text = "Your security code is 463820. We will never ask for it by telephone or mail.";
        memory.observe(
            Observed {
                masked: "Your security code is ***. We will never ask for it by telephone or mail.",
                ..observed("inbox", Resource::Email, text)
            },
            &words,
        );
        assert!(carried_by(&memory, "code 463820", &words).is_some());
        assert!(carried_by(&memory, "note: we will never ask for it, she said", &words).is_some());
        assert_eq!(carried_by(&memory, "hotels in Bremen with parking and a pool", &words), None);
        memory.lose();
        assert!(
            carried_by(&memory, "hotels in Bremen with parking and a pool", &words).is_some(),
            "what was lost may leave"
        );
    }
}
