//! The effect of a method on what a path names: its last noun, a verb after it, and ids.

use crate::format::name;
use crate::format::tools::tools;
use crate::language::{self, Kind};
use crate::lexicon::Lexicon;
use crate::reading::Act;
use crate::sign::Sign;
use rulekeep_types::{Operation, Resource, RiskLevel};

use super::address::Address;
use super::known;
use crate::format::tables;

/// The act of a method on an address.
pub(super) fn act(method: &str, address: &Address, lexicon: &Lexicon) -> Act {
    let by_method = known::method(method).unwrap_or(Operation::Execute);
    if let Some(act) = address.local_read() {
        return act;
    }
    let named = Named::of(address, lexicon);
    let (noun, resource) = match &named.noun {
        Some(noun) => (noun.name.as_str(), noun.resource),
        None => ("url", Resource::Web),
    };
    let operation = operation(by_method, resource);
    let mut act = Act::new(&method.to_ascii_lowercase(), noun, resource, operation, 0.7);
    if let Some(verb) = &named.verb
        && by_method != Operation::Delete
        && let Some(said) = said(verb, &act, lexicon)
    {
        act = said;
    }
    if act.resource == Resource::Information && act.operation != Operation::Read {
        // Public information cannot be changed; a database stands behind it.
        act.resource = Resource::Database;
    }
    if act.resource == Resource::Web && matches!(act.operation, Operation::Send | Operation::Execute) {
        // The server decides what a POST does.
        act = act.marked(Sign::Outside).at_risk(RiskLevel::Medium);
    }
    if named.whole || act.operation != Operation::Read && is_whole(&act, &named, address) {
        act.signs.add(Sign::Bulk);
    }
    if named.exports && matches!(act.operation, Operation::Read | Operation::Write | Operation::Execute) {
        act.operation = Operation::Read;
        act.signs.add(Sign::Bulk);
    }
    // A GET that acts on a service of the host or of its administration.
    let is_hidden = by_method == Operation::Read && address.is_inside();
    if (named.administration || is_hidden) && act.operation != Operation::Read {
        act = act.at_risk(RiskLevel::High);
    }
    if address.is_production() && act.operation != Operation::Read {
        act.signs.add(Sign::Production);
    }
    let shown = named.noun.as_ref().map_or(address.whole.as_str(), |noun| noun.segment.as_str());
    let told = named.verb.as_ref().map_or(method, |verb| verb.first().map_or(method, String::as_str));
    act.told_by(told).named_by(shown)
}

/// The operation of a method on a resource.
fn operation(by_method: Operation, resource: Resource) -> Operation {
    use Resource as R;
    match (by_method, resource) {
        (Operation::Send, R::Payment | R::Order | R::Booking) => Operation::Transfer,
        (Operation::Send | Operation::Write, R::Permission | R::Credential)
        | (Operation::Delete, R::Permission)
        | (Operation::Send, R::Account) => Operation::Admin,
        (Operation::Send, R::Email | R::Message | R::Social | R::Web) => Operation::Send,
        (Operation::Send, _) => Operation::Write,
        (other, _) => other,
    }
}

/// The act of a verb in the path on what precedes it.
fn said(verb: &[String], on: &Act, lexicon: &Lexicon) -> Option<Act> {
    let nameless = on.resource == Resource::Web;
    let base = if nameless { Act::unknown() } else { on.clone() };
    let found = name::verb_act(verb, &base, lexicon).or_else(|| stated(verb.first()?, &base))?;
    let mut act = Act::new(&found.verb, &found.noun, found.resource, found.operation, 0.75);
    act.signs = found.signs;
    if !nameless && matches!(act.resource, Resource::System | Resource::Unknown | Resource::Information) {
        act.resource = on.resource;
    }
    if act.resource == on.resource {
        act.noun.clone_from(&on.noun);
    }
    if act.operation == Operation::Read && nameless {
        act.resource = Resource::Web;
    }
    Some(act)
}

/// The act on an object that a word states by the table of effects alone.
pub(super) fn stated(word: &str, on: &Act) -> Option<Act> {
    let operation = tools().effect(word)?;
    Some(Act::new(word, &on.noun, on.resource, operation, 0.6))
}

/// Returns whether a whole collection is addressed, without an id or a filter.
fn is_whole(act: &Act, named: &Named, address: &Address) -> bool {
    let reaches = match act.operation {
        Operation::Delete => true,
        Operation::Write => matches!(act.verb.as_str(), "put" | "patch"),
        _ => false,
    };
    let bounded = address.query.iter().any(|(key, _)| tables::http().bounding.has(key) || key.ends_with("id"));
    reaches && !bounded && named.noun.as_ref().is_some_and(|noun| noun.is_last && noun.is_plural)
}

/// The objects named by a path's segments.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent notes, each set by any segment")]
struct Named {
    noun: Option<Noun>,
    verb: Option<Vec<String>>,
    /// `/all`, `/batch`
    whole: bool,
    /// `/export`
    exports: bool,
    administration: bool,
    /// The host is not a public one.
    inside: bool,
}

struct Noun {
    name: String,
    resource: Resource,
    segment: String,
    is_plural: bool,
    /// No id follows it.
    is_last: bool,
}

impl Named {
    fn of(address: &Address, lexicon: &Lexicon) -> Self {
        let mut named = Self { inside: address.is_inside(), ..Self::default() };
        for segment in address.path.split('/').filter(|segment| !segment.is_empty()).take(MOST_SEGMENTS) {
            named.segment(segment, lexicon);
        }
        named
    }

    fn segment(&mut self, segment: &str, lexicon: &Lexicon) {
        let lower = segment.to_ascii_lowercase();
        if tables::http().whole.has(&lower) {
            self.whole = true;
            return;
        }
        if tables::http().administration.has(&lower) {
            self.administration = true;
            return;
        }
        let stem = lower.split('.').next().unwrap_or(&lower);
        if lower.rsplit_once('.').is_some_and(|(_, ending)| tables::http().page_endings.has(ending)) {
            // A page about something has no effect on it.
            self.id();
            return;
        }
        if is_version(&lower)
            || tables::http().skipped.has(&lower)
            || stem.len() < lower.len() && tables::http().pages.has(stem)
        {
            return;
        }
        if is_id(&lower) {
            self.id();
            return;
        }
        let mut words = name::words(segment);
        words.truncate(MOST_WORDS);
        let Some(first) = words.first() else { return };
        self.exports |= tables::http().exports.has(first);
        // On a public host a page can be about a word of the table.
        let acts = || (self.administration || self.inside) && words.len() == 1 && tools().effect(first).is_some();
        let is_verb =
            !tables::http().no_verbs.has(first) && known::noun(first).is_none() && (lexicon.is_verb(first) || acts());
        if is_verb {
            self.whole |= words.iter().any(|word| word == "query" || word == "all") && words.len() > 1;
            self.verb = Some(words);
            return;
        }
        match noun(segment, &words, lexicon) {
            Some((name, resource)) => {
                let last = words.last().map_or("", String::as_str);
                let is_plural = last.ends_with('s') && !["ss", "us", "is"].iter().any(|end| last.ends_with(end));
                // A verb before a noun belongs to that noun: "/send/email".
                self.noun = Some(Noun { name, resource, segment: segment.to_owned(), is_plural, is_last: true });
            }
            None => self.id(),
        }
    }

    /// A segment that names one item of the preceding noun.
    fn id(&mut self) {
        if let Some(noun) = &mut self.noun {
            noun.is_last = false;
        }
    }
}

/// The noun and the resource that a segment names.
fn noun(segment: &str, words: &[String], lexicon: &Lexicon) -> Option<(String, Resource)> {
    let joined = words.concat();
    if let Some((noun, resource)) =
        known::noun(&joined).or_else(|| words.iter().rev().find_map(|word| known::noun(word)))
    {
        return Some((noun.to_owned(), resource));
    }
    if language::classify(segment) == Some(Kind::Path) {
        return Some(("file".to_owned(), Resource::File));
    }
    let act = name::act(words, None, lexicon)?;
    (act.resource != Resource::Unknown).then_some((act.noun, act.resource))
}

fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Returns whether a segment is a number, a hexadecimal or other key, or a placeholder.
fn is_id(segment: &str) -> bool {
    let digits = segment.bytes().filter(u8::is_ascii_digit).count();
    segment.starts_with([':', '{', '<', '$', '@'])
        || digits == segment.len()
        || segment.contains('@')
        || segment.len() >= 8
            && digits >= 2
            && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// Maximum number of path segments read.
const MOST_SEGMENTS: usize = 32;
/// Maximum number of words read from a segment.
const MOST_WORDS: usize = 8;
